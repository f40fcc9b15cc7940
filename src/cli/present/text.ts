/** Results as short, aligned text. Pure: colours are passed in, text from elsewhere is printed without control characters. */
import { FIRST_TURN } from '../../core/errors.ts'
import type { MarkResult } from '../../core/marker.ts'
import { printable, shown } from '../../core/paths.ts'
import type { ToldAction } from '../../core/plan.ts'
import type { FileDiff, Stat } from '../../git/diff.ts'
import type { DiffResult } from '../../ops/diff.ts'
import type { ListResult, SessionView, ShowResult, TurnView } from '../../ops/history.ts'
import type { CommitOrigin } from '../../ops/origins.ts'
import type { StatusResult } from '../../ops/status.ts'
import type { ChangeResult } from '../../ops/undo.ts'
import { ofPlace, type Said, sameAs } from '../again.ts'
import type { Colors } from '../command.ts'

const short = (id: string): string => id.slice(0, 10)
export const plural = (count: number, word: string, words = `${word}s`): string =>
  `${count} ${count === 1 ? word : words}`

export function statText(stat: Stat | null, c: Colors): string {
  if (stat === null) return c.red('damaged')
  if (stat.files === 0) return c.dim('no files')
  return `${plural(stat.files, 'file')} ${c.green(`+${stat.insertions}`)} ${c.red(`-${stat.deletions}`)}`
}

/** `12:04` of today, else the date. */
function when(time: string, now: number): string {
  const date = new Date(time)
  const two = (n: number) => String(n).padStart(2, '0')
  const today = new Date(now)
  const clock = `${two(date.getHours())}:${two(date.getMinutes())}`
  if (date.toDateString() === today.toDateString()) return clock
  return `${date.getFullYear()}-${two(date.getMonth() + 1)}-${two(date.getDate())} ${clock}`
}

const widthOf = (text: string): number => text.replace(/\x1b\[[0-9;]*m/g, '').length

/** Rows with their columns aligned; colours do not count. */
export function table(rows: readonly (readonly string[])[]): string {
  const width = widthOf
  const widths: number[] = []
  for (const row of rows) for (const [i, cell] of row.entries()) widths[i] = Math.max(widths[i] ?? 0, width(cell))
  return rows
    .map((row) =>
      row
        .map((cell, i) => (i === row.length - 1 ? cell : cell + ' '.repeat(widths[i]! - width(cell))))
        .join('  ')
        .trimEnd(),
    )
    .join('\n')
}

function mark(view: TurnView, c: Colors): string {
  const { turn } = view
  if (turn.abandoned) return c.dim('abandoned')
  if (turn.hidden) return c.yellow('undone')
  if (turn.hiddenFromStep !== null) return c.yellow(`undone from ${turn.number}.${turn.hiddenFromStep}`)
  if (turn.status === 'completed') return ''
  return turn.status === 'running' ? c.cyan('running') : c.red(turn.status)
}

/** Where the description stands in a turn's row. */
const DESCRIPTION = 3

/** Number, time, counts, description, and what is special about it. */
export function turnRow(view: TurnView, { c, now }: { c: Colors; now: number }): string[] {
  const { turn, stat, description } = view
  return [
    c.bold(String(turn.number).padStart(3)),
    c.dim(when(turn.before.time, now)),
    statText(stat, c),
    printable(description),
    mark(view, c),
  ]
}

export const NO_TURNS = ['No turns yet. What makes some:', ...FIRST_TURN.map((line) => `  ${line}`)].join('\n')

/** Rows whose description is cut so that none is wider than the terminal. */
export function fitted(rows: readonly string[][], columns: number | undefined): string[][] {
  if (!columns) return [...rows]
  const widths = (rows[0] ?? []).map((_, i) =>
    i === DESCRIPTION ? 0 : Math.max(...rows.map((row) => widthOf(row[i]!))),
  )
  const others = widths.reduce((sum, width) => sum + width, 0) + 2 * (widths.length - 1)
  const room = Math.max(20, columns - others)
  return rows.map((row) => {
    const text = [...row[DESCRIPTION]!]
    return text.length <= room ? row : row.with(DESCRIPTION, `${text.slice(0, room - 1).join('')}…`)
  })
}

export function listText(
  result: ListResult,
  { c, now, columns, same = '' }: { c: Colors; now: number; columns?: number | undefined; same?: string },
): string {
  const { timeline, turns } = result
  if (!timeline) return NO_TURNS
  const head = `Session ${c.bold(printable(timeline.session))}${timeline.agent ? ` (${printable(timeline.agent)})` : ''}`
  if (turns.length === 0)
    return `${head}: no turns to show.${timeline.boundary ? ` See the undone ones: ckpt list --hidden${same}` : ''}`
  const rows = turns.map((view) => turnRow(view, { c, now }))
  const lines = [head, table(fitted(rows, columns))]
  if (timeline.boundary) {
    const { turn, step } = timeline.boundary
    lines.push(
      `Undone from turn ${step === null ? turn : `${turn}.${step}`} on. Bring it back: ckpt redo --all${same}   Keep it: ckpt accept${same}`,
    )
  }
  return lines.join('\n')
}

export function sessionsText(sessions: readonly SessionView[], c: Colors): string {
  if (sessions.length === 0) return 'No sessions yet.'
  return table(
    sessions.map(({ timeline, state }) => [
      c.bold(printable(timeline.session)),
      printable(timeline.agent ?? ''),
      plural(timeline.turns.filter((turn) => !turn.hidden).length, 'turn'),
      state === 'running' ? c.cyan(state) : state,
      timeline.boundary ? c.yellow(`undone from turn ${timeline.boundary.turn}`) : '',
    ]),
  )
}

const verbs: Record<ToldAction['action'], string> = {
  write: 'write',
  delete: 'delete',
  mode: 'mode',
  link: 'link',
  merge: 'merge',
  skip: 'skip',
  conflict: 'conflict',
}

export function filesText(files: readonly ToldAction[], c: Colors, limit = 20): string[] {
  const paint = (action: ToldAction['action']) =>
    action === 'conflict'
      ? c.red(verbs[action])
      : action === 'skip'
        ? c.yellow(verbs[action])
        : action === 'delete'
          ? c.red(verbs[action])
          : c.green(verbs[action])
  const rows = files
    .slice(0, limit)
    .map((file) => [`  ${paint(file.action)}`, shown(file.path), file.reason ? c.dim(printable(file.reason)) : ''])
  const lines = rows.length > 0 ? table(rows).split('\n') : []
  if (files.length > limit) lines.push(`  … and ${files.length - limit} more (--json lists all)`)
  return lines
}

/** `said`: what lines to run say again. */
export function changeText(
  verb: 'undo' | 'redo' | 'restore' | 'switch',
  result: ChangeResult,
  c: Colors,
  said: Said = {},
): string {
  const { turns, files, dryRun, boundary, safety } = result
  const same = sameAs(said)
  const done = files.filter((file) => file.action !== 'skip' && file.action !== 'conflict')
  const what =
    turns.length === 0
      ? 'the checkpoint'
      : turns.length === 1
        ? `turn ${turns[0]}`
        : `turns ${turns[0]} to ${turns.at(-1)}`
  if (verb === 'undo' && !dryRun && !boundary && !safety)
    return [`Nothing of ${what} is left to take back: nothing was recorded.`, ...filesText(files, c)].join('\n')
  const past = { undo: 'Undid', redo: 'Redid', restore: 'Restored from', switch: 'Switched to' }[verb]
  const count = files.length === 0 ? 'no files differ' : plural(done.length, 'file')
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
        ? `Still undone: from turn ${boundary.record.turn}. More: ckpt redo${same}`
        : 'Nothing is undone any more.',
    )
  if (!dryRun && safety)
    lines.push(c.dim(`As it was before: ckpt restore ${short(safety)} --exact${ofPlace(said.cwd)}`))
  if (dryRun && result.token && conflicts === 0)
    lines.push(c.dim(`Do exactly this: ckpt apply TOKEN${ofPlace(said.cwd)}   The token:`), result.token)
  return lines.join('\n')
}

export function markText(event: string, result: MarkResult): string {
  const { checkpoint, turn, abandoned } = result
  if (!checkpoint) return 'Nothing was recorded.'
  const what =
    checkpoint.kind === 'manual'
      ? 'Snapshot'
      : checkpoint.late
        ? `Late ${event} after turn ${turn}`
        : checkpoint.kind === 'before'
          ? `Turn ${turn} starts`
          : checkpoint.kind === 'after'
            ? `Turn ${turn} ends`
            : `Step ${turn}.${checkpoint.step}${checkpoint.start ? ' starts' : ''}`
  const gone = abandoned.length > 0 ? ` Abandoned now: turn ${abandoned.join(', ')}.` : ''
  return `${what}: checkpoint ${short(checkpoint.id)}.${gone}`
}

function fileDiffRow(file: FileDiff, c: Colors): string[] {
  const name = file.oldPath === undefined ? shown(file.path) : `${shown(file.oldPath)} → ${shown(file.path)}`
  const count = file.binary
    ? c.dim('binary')
    : file.insertions + file.deletions === 0
      ? ''
      : `${c.green(`+${file.insertions}`)} ${c.red(`-${file.deletions}`)}`
  return [`  ${file.status}`, name, count]
}

export function diffFilesText(files: readonly FileDiff[], c: Colors): string {
  return files.length === 0 ? 'No differences.' : table(files.map((file) => fileDiffRow(file, c)))
}

export function patchText(result: DiffResult, c: Colors): string {
  if (result.files.length === 0) return 'No differences.'
  const lines = result.patch.split('\n').map((line) => {
    const safe = line
      .split('\t')
      .map((part) => printable(part))
      .join('\t')
    if (line.startsWith('index ')) return c.bold(safe.replace(/[0-9a-f]{11,}/g, short))
    if (/^(diff|---|\+\+\+|old mode|new mode|similarity|rename|new file|deleted file|Binary)/.test(line))
      return c.bold(safe)
    if (line.startsWith('@@')) return c.cyan(safe)
    if (line.startsWith('+')) return c.green(safe)
    return line.startsWith('-') ? c.red(safe) : safe
  })
  const modes = result.files.filter((file) => file.status === 'mode' || file.path.endsWith('/'))
  const extra = modes.length > 0 ? [table(modes.map((file) => fileDiffRow(file, c)))] : []
  return [lines.join('\n').trimEnd(), ...extra].filter((text) => text !== '').join('\n')
}

export function showText(result: ShowResult, { c, now }: { c: Colors; now: number }): string {
  const lines: string[] = []
  if (result.turn) {
    const { turn, description, stat } = result.turn
    lines.push(
      `${c.bold(`Turn ${turn.number}`)} of session ${printable(turn.session)}  ${mark(result.turn, c)}`.trimEnd(),
    )
    lines.push(
      `  ${when(turn.before.time, now)}${turn.after ? ` to ${when(turn.after.time, now)}` : ''}, ${statText(stat, c)}`,
    )
    for (const line of (result.turn.text ?? description).split('\n')) lines.push(`  > ${printable(line)}`)
    for (const step of turn.steps) {
      const paths = result.turn.stepPaths.get(step.number) ?? []
      lines.push(
        `  ${turn.number}.${step.number}  ${printable(step.end?.tool ?? step.start?.tool ?? 'step')}  ${paths.map(shown).join(', ')}`.trimEnd(),
      )
    }
    if (result.turn.unclaimed.length > 0)
      lines.push(`  Changed outside its steps: ${result.turn.unclaimed.map(shown).join(', ')}`)
  } else if (result.checkpoint) {
    const { id, kind, session, turn, time, tree } = result.checkpoint
    lines.push(
      `${c.bold(`Checkpoint ${short(id)}`)} (${kind}${turn === undefined ? '' : `, turn ${turn}`}) of session ${printable(session)}`,
    )
    lines.push(`  ${when(time, now)}, tree ${short(tree)}`)
    if (result.prompt) lines.push(`  > ${printable(result.prompt)}`)
  }
  lines.push(diffFilesText(result.files, c))
  const left = result.uncovered
  if (left.length > 0)
    lines.push(`Not covered, and changed: ${left.map((entry) => `${shown(entry.path)} (${entry.reason})`).join(', ')}`)
  return lines.join('\n')
}

/** What a commit came from. */
export function originText({ commit, pending, checkpoints }: CommitOrigin, c: Colors): string {
  const rows = checkpoints.map(({ id, session, turn, time }) => [
    `  ${short(id)}`,
    turn === undefined ? '' : `turn ${turn}`,
    `of session ${printable(session)}`,
    time.slice(0, 16).replace('T', ' '),
  ])
  return [
    `${c.bold(`Commit ${short(commit)}`)} came from ${checkpoints.length === 0 ? 'checkpoints that are gone' : plural(checkpoints.length, 'checkpoint')}:`,
    ...(rows.length === 0 ? [] : [table(rows)]),
    ...(pending ? [c.red('It was made while a revert boundary was pending.')] : []),
  ].join('\n')
}

export function bytesText(bytes: number): string {
  const units = ['B', 'KiB', 'MiB', 'GiB']
  let value = bytes
  let unit = 0
  while (value >= 1024 && unit < units.length - 1) {
    value /= 1024
    unit++
  }
  return `${unit === 0 ? value : value.toFixed(1)} ${units[unit]}`
}

/** So many sessions are named, the newest first. */
const FEW_SESSIONS = 5

function sessionsInShort(sessions: readonly SessionView[]): string {
  const named = sessions
    .slice(0, FEW_SESSIONS)
    .map(
      ({ timeline, state }) =>
        `${printable(timeline.session)} (${plural(timeline.turns.filter((turn) => !turn.hidden).length, 'turn')}, ${state})`,
    )
  const more = sessions.length - named.length
  return `${named.join(', ')}${more > 0 ? `, and ${more} more   (ckpt list --sessions)` : ''}`
}

/** `same`: the words that lines to run need, where what is undone is of another session than the one that is meant without a word. */
export function statusText(
  result: StatusResult,
  { c, daemon, same }: { c: Colors; daemon: string; same: string },
): string {
  const { head, store, sessions, uncovered } = result
  const git =
    result.gitDir === null
      ? 'plain directory'
      : `${head.branch ? printable(head.branch) : head.head ? `detached at ${head.head.slice(0, 7)}` : 'no commit yet'}${result.dirty ? ', uncommitted changes' : ''}${head.busy ? `, in the middle of a ${head.busy}` : ''}`
  const rows = [
    ['Worktree', shown(result.root)],
    ['Git', git],
    [
      'Store',
      store.checkpoints === 0
        ? 'nothing recorded yet'
        : `${plural(store.checkpoints, 'checkpoint')}, ${bytesText(store.bytes)}, ${result.durable ? 'survives git gc' : c.red('not durable')}`,
    ],
    ['Sessions', sessions.length === 0 ? 'none yet   (first: ckpt agent install NAME)' : sessionsInShort(sessions)],
    ['Daemon', daemon],
  ]
  if (result.boundary) {
    const { session, turn } = result.boundary.timeline.boundary!
    rows.push(['Undone', c.yellow(`from turn ${turn} of ${printable(session)}`)])
  }
  const lines = [table(rows.map(([name, value]) => [c.dim(name!), value!]))]
  if (result.boundary) lines.push(`Bring it back: ckpt redo --all${same}   Keep it this way: ckpt accept${same}`)
  if (uncovered.length > 0 || result.ignoredCount > 0) {
    lines.push(
      `Not covered: ${uncovered
        .slice(0, 10)
        .map((entry) => `${shown(entry.path)} (${entry.reason})`)
        .join(
          ', ',
        )}${uncovered.length > 10 ? `, ${uncovered.length - 10} more` : ''}${uncovered.length > 0 && result.ignoredCount > 0 ? ', and ' : ''}${result.ignoredCount > 0 ? plural(result.ignoredCount, 'ignored path') : ''}`,
    )
  }
  const failed = result.lastHookError
  if (failed) {
    const when = failed.time.slice(0, 16).replace('T', ' ')
    lines.push(c.yellow(`A hook failed at ${when} (${printable(failed.where)}): ${printable(failed.message)}`))
  }
  if (result.unfinished)
    lines.push(c.yellow('A killed operation is unfinished: the next command that writes finishes it.'))
  return lines.join('\n')
}
