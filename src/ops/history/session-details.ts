/** One session with all that is undone in it: what a front end shows, the same before and after it was closed. */
import { turnsToRedo } from '../../core/boundary.ts'
import { CkptError } from '../../core/errors.ts'
import { printable } from '../../core/paths.ts'
import { hiddenTurns, messageIdOf, runningTurn, type Timeline, type Turn } from '../../core/timeline.ts'
import { diffTrees } from '../../git/diff.ts'
import { readCheckpoint } from '../../git/history.ts'
import type { Context } from '../worktree/context.ts'
import { chooseSession, loadTimeline, readRefs } from '../worktree/sessions.ts'
import { type SessionView, type TurnView, viewTurns } from './history.ts'

export interface RevertDetails {
  view: SessionView
  messageId: string | null
  partId: string | null
  /** Unified. */
  diff: string
  /** Oldest first. */
  hidden: TurnView[]
  prompt: string | null
}

/** @throws CkptError NOT_FOUND, USAGE, DAMAGED */
export async function sessionDetails(context: Context, wanted: string | undefined): Promise<RevertDetails> {
  const refs = await readRefs(context)
  const session = chooseSession(refs, wanted)
  if (session === null) {
    throw new CkptError('NOT_FOUND', 'There is no session in this worktree yet.', { hints: ['ckpt list --sessions'] })
  }
  const timeline = await loadTimeline(context, refs, { session })
  const state = runningTurn(timeline) && !timeline.boundary ? 'running' : 'idle'
  const view: SessionView = { timeline, worktree: context.place.worktreeId, state }
  const first = timeline.turns.find((turn) => turn.number === timeline.boundary?.turn)
  if (!timeline.boundary || !first) return { view, messageId: null, partId: null, diff: '', hidden: [], prompt: null }
  const cut = first.hidden ? [] : [first]
  const views = await viewTurns(context, refs, [{ timeline, turns: [...cut, ...hiddenTurns(timeline)] }])
  return {
    view,
    messageId: messageIdOf(first),
    partId: partOf(first, timeline.boundary.step),
    diff: await undoneDiff(context, timeline),
    hidden: views.filter(({ turn }) => turn.hidden),
    prompt: views.find(({ turn }) => turn === first)?.text ?? null,
  }
}

function partOf(turn: Turn, number: number | null): string | null {
  if (number === null) return null
  const step = turn.steps.find((one) => one.number === number)
  const named = step?.end ?? step?.start
  return named?.messageId ?? named?.callId ?? `${turn.number}.${number}`
}

/** From the state before the first undo to the one that the last undo or redo left, on the paths that they are about. */
async function undoneDiff({ store }: Context, { boundary, boundaryCheckpoint }: Timeline): Promise<string> {
  const paths = new Set(boundary!.units.flatMap((unit) => unit.changes.map(({ path }) => path)))
  const files = [...paths].filter((path) => !path.endsWith('/'))
  if (files.length === 0) return ''
  const baseline = await readCheckpoint(store, boundary!.baseline)
  return (await diffTrees(store, { from: baseline.tree, to: boundaryCheckpoint!.tree }, { paths: files })).patch
}

/** How far a revert goes: to a visible turn or step, or forward to one that is hidden. */
export type RevertTarget = { kind: 'undo'; to: string } | { kind: 'redo'; turns: number }

/**
 * The turn that a message belongs to, and the step of a part of it.
 * @throws CkptError NOT_FOUND, NOTHING_TO_UNDO when exactly that is undone already
 */
export async function revertTarget(
  context: Context,
  { session: wanted, messageId, partId }: { session?: string; messageId: string; partId?: string },
): Promise<RevertTarget> {
  const refs = await readRefs(context)
  const session = chooseSession(refs, wanted)
  const missing = (what: string) =>
    new CkptError('NOT_FOUND', `There is no ${what}. Nothing was changed.`, { hints: ['ckpt list --hidden'] })
  const undone = () =>
    new CkptError('NOTHING_TO_UNDO', 'That is undone already. Nothing was changed.', { hints: ['ckpt redo'] })
  if (session === null) throw missing(`message ${printable(messageId)}`)
  const timeline = await loadTimeline(context, refs, { session })
  const { turns } = timeline
  // A message id may look like a turn's number: it is what is asked for.
  const turn =
    turns.find(({ before, after }) => [before.messageId, after?.messageId].includes(messageId)) ??
    turns.find(({ id, number }) => [id, String(number)].includes(messageId))
  if (!turn) throw missing(`message ${printable(messageId)} in session ${printable(session)}`)
  if (partId === undefined) {
    if (!turn.hidden) return { kind: 'undo', to: turn.id }
    const turns = turnsToRedo(timeline.boundary!, turn.number - 1)
    if (turns === 0) throw undone()
    return { kind: 'redo', turns }
  }
  const step =
    turn.steps.find(({ start, end }) =>
      [end?.messageId, end?.callId, start?.messageId, start?.callId].includes(partId),
    ) ?? turn.steps.find(({ number }) => `${turn.number}.${number}` === partId)
  if (!step) throw missing(`part ${printable(partId)} in turn ${turn.number}`)
  if (turn.hidden || (turn.hiddenFromStep !== null && step.number >= turn.hiddenFromStep)) throw undone()
  return { kind: 'undo', to: `${turn.number}.${step.number}` }
}
