/** Turns, sessions and checkpoints as short, aligned text. Pure; text from elsewhere is printed without control characters. */

import { describePrompt } from '../../core/checkpoint.ts'
import { clipped, columnsOf } from '../../core/columns.ts'
import { FIRST_TURN } from '../../core/errors.ts'
import type { MarkResult } from '../../core/marker.ts'
import { printable, reasonedList, shown } from '../../core/paths.ts'
import { endOf, visibleTurns } from '../../core/timeline.ts'
import { when } from '../../library/local-time.ts'
import type { CommitOrigin } from '../../ops/committed/origins.ts'
import type { ByHand, ListResult, SessionView, ShowResult, TurnView } from '../../ops/history/history.ts'
import type { Colors } from '../command.ts'
import { diffFilesText } from './changes.ts'
import { beginning, plural, short, statText, table } from './text.ts'

/** What is special about a turn: where it stands, and whether some paths could not be captured. */
function mark({ turn }: TurnView, c: Colors): string {
  const isDegraded = turn.before.degraded || turn.after?.degraded
  return [standing(turn, c), isDegraded ? c.yellow('degraded') : ''].filter((word) => word !== '').join(', ')
}

function standing(turn: TurnView['turn'], c: Colors): string {
  if (turn.abandoned) return c.dim('abandoned')
  if (turn.hidden) return c.yellow('undone')
  if (turn.hiddenFromStep !== null) return c.yellow(`undone from ${turn.number}.${turn.hiddenFromStep}`)
  if (turn.status === 'completed') return ''
  return turn.status === 'running' ? c.cyan('running') : c.red(turn.status)
}

/** On a terminal with fewer columns the counts give way to the prompt, by which a person knows the turn. */
const COUNTED_FROM = 60

/** Number, time, counts, description, and what is special about it. */
function turnRow(view: TurnView, { c, now, columns }: Omit<TurnsShown, 'lead'>): string[] {
  const { turn, stat, description } = view
  return [
    c.bold(String(turn.number).padStart(3)),
    c.dim(when(turn.before.time, now)),
    ...(columns && columns < COUNTED_FROM ? [] : [statText(stat, c)]),
    printable(description),
    mark(view, c),
  ]
}

export const NO_TURNS = ['No turns yet. What makes some:', ...FIRST_TURN.map((line) => `  ${line}`)].join('\n')

/** Where nothing of all sessions is to be shown: `all` is what there is. `named`: of one session only. */
export function noneText(all: readonly TurnView[], { named, same }: { named: boolean; same: string }): string {
  if (all.length === 0) return named ? 'No turns to show.' : NO_TURNS
  const [word, option] = all.some(({ turn }) => turn.hidden) ? ['undone', '--hidden'] : ['abandoned', '--abandoned']
  return `No turns to show. See the ${word} ones: ckpt list ${option}${same}`
}

/** Rows whose description, the last cell but one, is cut so that none is wider than the terminal. */
export function fitted(rows: readonly string[][], columns: number | undefined): string[][] {
  if (!columns) return [...rows]
  const description = (rows[0]?.length ?? 0) - 2
  const widths = (rows[0] ?? []).map((_, i) =>
    i === description ? 0 : Math.max(...rows.map((row) => columnsOf(row[i]!))),
  )
  const others = widths.reduce((sum, width) => sum + width, 0) + 2 * (widths.length - 1)
  const room = Math.max(10, columns - others)
  return rows.map((row) => row.with(description, clipped(row[description]!, room)))
}

/** How turns are shown. `columns` where a terminal has so many; `lead`: cells before the others. */
export interface TurnsShown<View extends TurnView = TurnView> {
  c: Colors
  now: number
  columns: number | undefined
  lead?: (view: View) => readonly string[]
}

/** A line for each turn, none wider than the terminal. */
export function turnLines<View extends TurnView>(
  views: readonly View[],
  { c, now, columns, lead }: TurnsShown<View>,
): string[] {
  if (views.length === 0) return []
  const rows = views.map((view) => [...(lead?.(view) ?? []), ...turnRow(view, { c, now, columns })])
  return table(fitted(rows, columns)).split('\n')
}

export function listText(
  result: ListResult,
  { c, now, columns, same = '' }: Omit<TurnsShown, 'lead'> & { same?: string },
): string {
  const { timeline, turns, byHand } = result
  if (!timeline) return NO_TURNS
  const ownTurns = turns.length > 0 || timeline.boundary || timeline.branches > 0
  if (byHand.length > 0 && !ownTurns) return byHandText(byHand, { c, now, columns })
  const more = byHand.length > 0 ? `\n\n${byHandText(byHand, { c, now, columns })}` : ''
  const head = `Session ${c.bold(printable(timeline.session))}${timeline.agent ? ` (${printable(timeline.agent)})` : ''}`
  if (turns.length === 0)
    return `${head}: no turns to show.${timeline.boundary ? ` See the undone ones: ckpt list --hidden${same}` : timeline.branches > 0 ? ` See the abandoned ones: ckpt list --abandoned${same}` : ''}${more}`
  const lines = [head, ...turnLines(turns, { c, now, columns })]
  if (timeline.boundary) {
    lines.push(
      `Undone from ${beginning(timeline.boundary)} on. Bring it back: ckpt redo --all${same}   Keep it: ckpt accept${same}`,
    )
  }
  return lines.join('\n') + more
}

function byHandText(byHand: readonly ByHand[], { c, now, columns }: Omit<TurnsShown, 'lead'>): string {
  const rows = byHand.map(({ checkpoint: { id, time, degraded }, message }) => [
    c.bold(short(id)),
    c.dim(when(time, now)),
    printable(describePrompt(message, time)),
    degraded ? c.yellow('degraded') : '',
  ])
  return [
    'Checkpoints by hand',
    ...table(fitted(rows, columns))
      .split('\n')
      .map((row) => `  ${row}`),
  ].join('\n')
}

export const forkedFrom = (parent: string): string => `forked from ${printable(parent)}`

/** `worktrees`: of more than this one, so that it is said which. */
export function sessionsText(
  sessions: readonly SessionView[],
  { c, worktrees }: { c: Colors; worktrees: boolean },
): string {
  if (sessions.length === 0) return 'No sessions yet.'
  return table(
    sessions.map(({ timeline, worktree, state }) => [
      ...(worktrees ? [c.dim(printable(worktree))] : []),
      c.bold(printable(timeline.session)),
      printable(timeline.agent ?? ''),
      plural(visibleTurns(timeline).length, 'turn'),
      state === 'running' ? c.cyan(state) : state,
      [
        ...(timeline.boundary ? [c.yellow(`undone from ${beginning(timeline.boundary)}`)] : []),
        ...(timeline.parent === null ? [] : [forkedFrom(timeline.parent)]),
      ].join(', '),
    ]),
  )
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

export function showText(result: ShowResult, { c, now }: { c: Colors; now: number }): string {
  const lines: string[] = []
  if (result.turn) {
    const { turn, description, stat } = result.turn
    lines.push(
      `${c.bold(`Turn ${turn.number}`)} of session ${printable(turn.session)}  ${mark(result.turn, c)}`.trimEnd(),
    )
    lines.push(
      `  ${when(turn.before.time, now)}${turn.after ? ` to ${when(endOf(turn).time, now)}` : ''}, ${statText(stat, c)}`,
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
  const left = result.turn ? [] : (result.beside?.uncovered ?? [])
  if (left.length > 0) lines.push(`Not covered: ${reasonedList(left)}`)
  if (result.uncovered.length > 0) lines.push(`Not covered, and changed: ${reasonedList(result.uncovered)}`)
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
    `${c.bold(`Commit ${short(commit)}`)} came from ${checkpoints.length === 0 ? 'checkpoints that were pruned since.' : `${plural(checkpoints.length, 'checkpoint')}:`}`,
    ...(rows.length === 0 ? [] : [table(rows)]),
    ...(pending ? [c.red('It was made while a revert boundary was pending.')] : []),
  ].join('\n')
}
