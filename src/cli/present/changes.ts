/** Plans, what was done of them, and diffs, as text. Pure; text from elsewhere is printed without control characters. */
import { type Checkpoint, isOutside } from '../../core/checkpoint.ts'
import { printable, shown } from '../../core/paths.ts'
import type { ToldAction } from '../../core/plan.ts'
import type { FileDiff } from '../../git/diff.ts'
import { when } from '../../library/local-time.ts'
import type { ChangeResult } from '../../ops/change/change.ts'
import type { DiffResult } from '../../ops/history/diff.ts'
import { ofPlace, type Said, sameAs } from '../again.ts'
import type { Colors } from '../command.ts'
import { beginning, plural, short, table } from './text.ts'

/** Rows that are shown of what a plan simply does. */
const SHOWN = 20

/** What conflicts, what stays, and whatever is said of a file is shown always: nobody agrees to what was left out. */
export function filesText(files: readonly ToldAction[], c: Colors): string[] {
  const paint = (action: ToldAction['action']) =>
    action === 'skip'
      ? c.yellow(action)
      : action === 'conflict' || action === 'delete'
        ? c.red(action)
        : c.green(action)
  const isPlain = ({ reason }: ToldAction) => reason === undefined
  let room = SHOWN - files.filter((file) => !isPlain(file)).length
  const told = files.filter((file) => !isPlain(file) || room-- > 0)
  const rows = told.map((file) => [
    `  ${paint(file.action)}`,
    shown(file.path),
    file.reason ? c.dim(printable(file.reason)) : '',
  ])
  const lines = rows.length > 0 ? table(rows).split('\n') : []
  if (told.length < files.length) lines.push(`  … and ${files.length - told.length} more (--json lists all)`)
  return lines
}

/** The turns after the first: some between them may be another branch's. */
function othersText(turns: readonly number[]): string {
  const isRow = turns.at(-1)! - turns[0]! === turns.length - 1
  return isRow ? ` to ${turns.at(-1)}` : `, ${turns.slice(1).join(', ')}`
}

const stepText = ({ turn, step, start }: Pick<Checkpoint, 'turn' | 'step' | 'start'>): string =>
  `${start ? 'start of ' : ''}step ${turn}.${step}`

function placeText(checkpoint: Checkpoint): string {
  const { id, kind, turn, start } = checkpoint
  if (kind === 'before') return `the start of turn ${turn}`
  if (kind === 'step' && !isOutside(checkpoint)) return `${start ? 'the ' : ''}${stepText(checkpoint)}`
  return `${kind === 'safety' ? 'safety ' : ''}checkpoint ${short(id)}`
}

/** `said`: what lines to run say again. */
export function changeText(
  verb: 'undo' | 'redo' | 'restore' | 'switch',
  result: ChangeResult,
  { colors: c, said = {} }: { colors: Colors; said?: Said },
): string {
  const { turns, files, dryRun, boundary, safety } = result
  const same = sameAs(said)
  const done = files.filter((file) => file.action !== 'skip' && file.action !== 'conflict')
  // Of the first turn an undo may take some steps only.
  const cut = verb === 'undo' && boundary && boundary.record.step !== null ? beginning(boundary.record) : null
  const what =
    result.checkpoint !== undefined
      ? placeText(result.checkpoint)
      : turns.length === 1
        ? `turn ${turns[0]}${cut === null ? '' : ` from ${cut} on`}`
        : `turns ${turns[0]}${cut === null ? '' : ` (from ${cut} on)`}${othersText(turns)}`
  if (verb === 'undo' && !dryRun && !boundary && !safety)
    return [`Nothing of ${what} is left to take back: nothing was recorded.`, ...filesText(files, c)].join('\n')
  const past = { undo: 'Undid', redo: 'Redid', restore: 'Restored from', switch: 'Switched to' }[verb]
  const count = files.length === 0 ? 'no files to change' : plural(done.length, 'file')
  const lines = [dryRun ? `Would ${verb} ${what}: ${count}. Nothing was changed.` : `${past} ${what}: ${count}.`]
  lines.push(...filesText(files, c))
  const conflicts = files.filter((file) => file.action === 'conflict').length
  if (dryRun && conflicts > 0) lines.push(c.red(`It would be refused: ${plural(conflicts, 'conflict')}.`))
  if (!dryRun && verb === 'undo') {
    lines.push(
      boundary
        ? `Back again: ckpt redo${same}   Keep it this way: ckpt accept${same}`
        : `Recorded as a turn of its own. Take it back: ckpt undo${same}`,
    )
  }
  if (!dryRun && verb === 'redo')
    lines.push(
      boundary
        ? `Still undone: from ${beginning(boundary.record)}. More: ckpt redo${same}`
        : 'Nothing is undone any more.',
    )
  // Where its agent goes on from, or nobody does.
  const isOpen = verb === 'switch' && (result.checkpoint?.kind === 'before' || result.checkpoint?.kind === 'step')
  if (!dryRun && isOpen)
    lines.push(
      `Turn ${result.checkpoint?.turn} runs again from there. It ends with its agent, or: ckpt mark stop${sameAs({ ...said, session: result.session })}`,
    )
  if (!dryRun && safety)
    lines.push(
      c.dim(
        `As it was before${isOpen ? ', once it has ended' : ''}: ckpt restore ${short(safety)} --exact${ofPlace(said.cwd)}`,
      ),
    )
  if (dryRun && result.token && conflicts === 0 && !result.isLost)
    lines.push(c.dim(`Do exactly this: ckpt apply TOKEN${ofPlace(said.cwd)}   The token:`), result.token)
  return lines.join('\n')
}

export const diffName = ({ path, oldPath }: FileDiff): string =>
  oldPath === undefined ? shown(path) : `${shown(oldPath)} → ${shown(path)}`

function fileDiffRow(file: FileDiff, c: Colors): string[] {
  const count = file.binary
    ? c.dim('binary')
    : file.insertions + file.deletions === 0
      ? ''
      : `${c.green(`+${file.insertions}`)} ${c.red(`-${file.deletions}`)}`
  return [`  ${file.status}`, diffName(file), count]
}

export function diffFilesText(files: readonly FileDiff[], c: Colors): string {
  return files.length === 0 ? 'No differences.' : table(files.map((file) => fileDiffRow(file, c)))
}

/** Above a patch: git-apply(1) passes over it. Each by the name that takes one to it. */
export function checkpointsText(
  checkpoints: NonNullable<DiffResult['checkpoints']>,
  { c, now }: { c: Colors; now: number },
): string {
  const rows = checkpoints.map(({ checkpoint }) => [
    `  ${c.bold(short(checkpoint.id))}`,
    checkpoint.kind === 'step' ? stepText(checkpoint) : `${checkpoint.kind} turn ${checkpoint.turn}`,
    c.dim(when(checkpoint.time, now)),
  ])
  return [`${plural(checkpoints.length, 'checkpoint')}:`, table(rows)].join('\n')
}

/** `raw`: for a file or a pipe, where the end of a line stays as it is, and git-apply(1) finds it. A terminal shows it. */
export function patchText(result: DiffResult, { c, raw }: { c: Colors; raw: boolean }): string {
  const lines = result.patch.split('\n').map((line) => {
    const end = raw && line.endsWith('\r') ? '\r' : ''
    const safe = `${line
      .slice(0, line.length - end.length)
      .split('\t')
      .map((part) => printable(part))
      .join('\t')}${end}`
    if (line.startsWith('index ')) return c.bold(safe.replace(/[0-9a-f]{11,}/g, short))
    if (/^(diff|---|\+\+\+|old mode|new mode|similarity|rename|new file|deleted file|Binary)/.test(line))
      return c.bold(safe)
    if (line.startsWith('@@')) return c.cyan(safe)
    if (line.startsWith('+')) return c.green(safe)
    return line.startsWith('-') ? c.red(safe) : safe
  })
  const modes = result.files.filter((file) => file.status === 'mode' || file.path.endsWith('/'))
  const extra = modes.length > 0 ? [table(modes.map((file) => fileDiffRow(file, c)))] : []
  return [lines.join('\n').replace(/\n+$/, ''), ...extra].filter((text) => text !== '').join('\n')
}
