/** Which turns and steps an undo is about. */

import type { Checkpoint } from '../../core/checkpoint.ts'
import { CkptError, FIRST_TURN } from '../../core/errors.ts'
import { sessionOption } from '../../core/hint-words.ts'
import { parseAlone, parsePlace, type SessionId } from '../../core/ids.ts'
import { noneVisibleIn } from '../../core/none-visible.ts'
import { nothingToUndo } from '../../core/own-session.ts'
import { printable } from '../../core/paths.ts'
import { lastBefore, lastOf, type Timeline, type Turn, visibleTurns } from '../../core/timeline.ts'
import type { WorktreeRefs } from '../../git/history.ts'
import { resolveCheckpoint, resolvePlace } from '../history/resolve.ts'
import { ChangeReader, type Part } from '../history/turn-changes.ts'
import type { Context } from '../worktree/context.ts'
import { turnIds } from '../worktree/replaced.ts'

/** What somebody names: a turn or a checkpoint to go back to, one turn alone, the last step, so many turns; the last turn without any. */
export interface SelectionOptions {
  turns?: number
  to?: string
  step?: boolean
  only?: string
}

/** What is to be undone: whole turns, and perhaps the later steps of one more. */
export interface Selection {
  turns: Turn[]
  /** The turn that is cut, and the first step that goes. */
  cut: { turn: Turn; step: number } | null
}

export const nothingRecorded = (code: 'NOTHING_TO_UNDO' | 'NOTHING_TO_REDO') =>
  new CkptError(code, 'There is no turn in this worktree yet. Nothing was changed.', { hints: FIRST_TURN })

/** @throws CkptError NOTHING_TO_UNDO, NOT_FOUND, USAGE */
export async function select(
  context: Context,
  { timeline, options, reader }: { timeline: Timeline; options: SelectionOptions; reader: ChangeReader },
): Promise<Selection> {
  const visible = visibleTurns(timeline)
  if (visible.length === 0) throw nothingToUndo(...noneVisibleIn(timeline))
  const newestFirst = [...visible].reverse()
  if (options.only !== undefined) return { turns: [await turnAlone(context, options.only, timeline)], cut: null }
  if (options.step) return lastChangingStep(newestFirst, reader)
  if (options.to === undefined) return { turns: newestFirst.slice(0, options.turns ?? 1), cut: null }
  const target = parsePlace(options.to)
  let first: { turn: Turn; step: number | null } | null
  if (target.kind === 'turn') first = { turn: findTurn(context, options.to, timeline), step: null }
  else if (target.kind === 'step') {
    const turn = findTurn(context, String(target.turn), timeline)
    if (
      turn.hiddenFromStep !== null &&
      target.step >= turn.hiddenFromStep &&
      turn.steps.some((one) => one.number === target.step)
    )
      throw notFound(`Step ${turn.number}.${target.step} is undone already.`)
    if (!visibleSteps(turn).some((step) => step.number === target.step))
      throw notFound(`Turn ${turn.number} has no step ${target.step} to undo.`)
    first = { turn, step: target.step }
  } else if (target.kind === 'turn-id') first = { turn: findTurn(context, options.to, timeline), step: null }
  else {
    const checkpoint = await resolveCheckpoint(context, { timeline, target })
    const isOutside = await isOfNoTurn(timeline, { checkpoint, reader })
    first = isOutside ? firstSince(visible, checkpoint) : firstAfter(visible, checkpoint.id)
  }
  if (!first) throw nothingToUndo('Nothing came after that checkpoint.')
  const later = newestFirst.filter((turn) => turn.number > first.turn.number)
  if (first.step === null) return { turns: [...later, first.turn], cut: null }
  return { turns: later, cut: { turn: first.turn, step: first.step } }
}

const notFound = (why: string) =>
  new CkptError('NOT_FOUND', `${why} Nothing was changed.`, { hints: ['ckpt list --hidden --abandoned'] })

function findTurn({ env, store }: Context, id: string, timeline: Timeline): Turn {
  const ids = turnIds(env, store, id)
  const isMeant = (one: Turn) => (/^\d+$/.test(id) ? one.number === Number(id) : ids.has(one.id))
  const turn = visibleTurns(timeline).find(isMeant)
  if (turn) return turn
  const elsewhere = [...timeline.turns, ...timeline.abandoned].find(isMeant)
  if (elsewhere) throw notFound(`Turn ${elsewhere.number} is ${elsewhere.abandoned ? 'abandoned' : 'undone already'}.`)
  throw notFound(`Session ${printable(timeline.session)} has no turn ${id}.`)
}

/** The same of any id: the turn that a checkpoint begins or ends. @throws CkptError NOT_FOUND, USAGE of a step's */
async function turnAlone(context: Context, id: string, timeline: Timeline): Promise<Turn> {
  const place = parseAlone(id)
  if (place.kind === 'edge') return findTurn(context, String(place.turn), timeline)
  if (place.kind !== 'checkpoint') return findTurn(context, id, timeline)
  const checkpoint = await resolveCheckpoint(context, { timeline, target: place })
  for (const turn of [...timeline.turns, ...timeline.abandoned]) {
    const at = turn.checkpoints.find((one) => one.id === checkpoint.id)
    if (at?.kind === 'step') parseAlone(`${turn.number}.${at.step}`)
    if (at) return findTurn(context, String(turn.number), timeline)
  }
  throw notFound(`Checkpoint ${id} is of no turn of session ${printable(timeline.session)}.`)
}

const visibleSteps = (turn: Turn) =>
  turn.steps.filter((step) => turn.hiddenFromStep === null || step.number < turn.hiddenFromStep)

/** Whose turn an id names that serves everywhere; undefined: it names none of this worktree's, and the latest session is meant. */
export async function sessionOf(
  context: Context,
  refs: WorktreeRefs,
  id: string | undefined,
): Promise<SessionId | undefined> {
  const kind = id === undefined ? null : parsePlace(id).kind
  if (kind !== 'turn-id' && kind !== 'checkpoint') return undefined
  const found = await resolvePlace(context, refs, { id: id! }).catch((error: unknown) => {
    if (error instanceof CkptError && (error.code === 'NOT_FOUND' || error.code === 'USAGE')) return null
    throw error
  })
  if (!found || (found.at && found.at.context !== context)) return undefined
  const { resolved } = found
  if (resolved.kind === 'turn') return resolved.turn.session
  const { session, kind: what } = resolved.checkpoint
  return what === 'manual' || what === 'safety' || !refs.sessions.has(session) ? undefined : session
}

/** The first turn or step after a checkpoint of the visible chain. */
function firstAfter(visible: readonly Turn[], id: string): { turn: Turn; step: number | null } | null {
  for (const [i, turn] of visible.entries()) {
    const at = turn.checkpoints.find((one) => one.id === id)
    if (!at) continue
    if (at.kind === 'before') return { turn, step: null }
    if (at.kind === 'step') {
      const next = visibleSteps(turn).find((step) => (at.start ? step.number >= at.step! : step.number > at.step!))
      if (next) return { turn, step: next.number }
    }
    const following = visible[i + 1]
    return following ? { turn: following, step: null } : null
  }
  throw notFound('That checkpoint is not in the visible part of the session: bring it back with `ckpt restore`.')
}

/** Whether it is one of this worktree that lies in no turn of the session: made by hand, before an undo, by another session. */
async function isOfNoTurn(
  timeline: Timeline,
  { checkpoint, reader }: { checkpoint: Checkpoint; reader: ChangeReader },
): Promise<boolean> {
  const { kind, session, id, seq } = checkpoint
  if (session === timeline.session && kind !== 'manual' && kind !== 'safety') return false
  return (await reader.activitySince(seq - 1)).checkpoints.some((one) => one.id === id)
}

/** The same of such a one, by its place in the worktree's order. */
function firstSince(visible: readonly Turn[], { seq }: Checkpoint): { turn: Turn; step: number | null } | null {
  for (const turn of visible) {
    if (turn.before.seq > seq) return { turn, step: null }
    if (lastOf(turn).seq < seq) continue
    const next = visibleSteps(turn).find(({ start, end }) => (start ?? end!).seq > seq)
    if (next) return { turn, step: next.number }
    throw notFound(
      `That checkpoint was made in the middle of turn ${turn.number}, and none of its steps began after it.`,
    )
  }
  return null
}

/** With later turns that nothing is left of, or was: they hold nothing up. */
async function lastChangingStep(newestFirst: readonly Turn[], reader: ChangeReader): Promise<Selection> {
  const later: Turn[] = []
  let whole = newestFirst[0]!
  for (const turn of newestFirst) {
    const changes = await reader.changesOf(turn)
    const steps = visibleSteps(turn).filter((step) => ChangeReader.ofStep(changes, step.number).length > 0)
    const last = steps.at(-1)
    if (last) return { turns: later, cut: { turn, step: last.number } }
    const isUndone = ({ step }: Part) => step !== null && turn.hiddenFromStep !== null && step >= turn.hiddenFromStep
    if (!changes.parts.every(isUndone)) {
      whole = turn
      break
    }
    later.push(turn)
  }
  const to = whole === newestFirst[0] ? '' : ` --to ${whole.number}`
  const undo = `ckpt undo${to} ${sessionOption(whole.session)}`
  throw nothingToUndo(
    `Turn ${whole.number} has no step${whole.hiddenFromStep === null ? '' : ' left'} that changed something: \`${undo}\` takes the whole turn.`,
  )
}

/** The checkpoint whose state the worktree goes back to. */
export const targetCheckpoint = ({ turns, cut }: Selection): Checkpoint =>
  cut ? lastBefore(cut.turn, cut.step) : turns.at(-1)!.before
