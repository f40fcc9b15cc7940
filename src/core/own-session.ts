/**
 * A session as a backend with an undo of its own knows it, and what an undo, redo or revert of it is about. Pure.
 *
 * ```
 * turn 1 ─ turn 2 ─ turn 3 ─ turn 4
 *             └──── boundary { turn: 2, step: null } ────┘     2, 3 and 4 are hidden
 * ```
 */

import { CkptError } from './errors.ts'
import { parseTarget, type SessionId } from './ids.ts'
import { noneVisible } from './none-visible.ts'
import { printable } from './paths.ts'

/** One tool call of a turn. */
export interface OwnStep {
  /** Its place in the turn, from 1. */
  number: number
  /** The backend's id of the part, and of the message it is in; `callId` is the model's. */
  id: string
  messageId: string
  callId: string | null
  tool: string | null
}

/** One prompt and what was done for it. */
export interface OwnTurn {
  /** Its place in the session, from 1. */
  number: number
  messageId: string
  /** The whole prompt. */
  text: string | null
  status: 'running' | 'completed' | 'interrupted' | 'failed'
  /** ISO 8601 in UTC. */
  startedAt: string
  endedAt: string | null
  steps: readonly OwnStep[]
}

export interface OwnBoundary {
  turn: number
  step: number | null
  messageId: string
  partId: string | null
}

export interface OwnSession {
  session: SessionId
  agent: string
  parent: string | null
  state: 'running' | 'idle'
  /** Oldest first, hidden ones included. */
  turns: readonly OwnTurn[]
  /** The first turn that is undone, wholly or from a step on, and the backend's own words for it; null: nothing is. */
  boundary: OwnBoundary | null
  /** What undoing changed, as a unified diff; empty where the backend does not say. */
  diff: string
}

/** A place in a session: before a turn, or before a step of it. */
export interface OwnPlace {
  turn: OwnTurn
  step: OwnStep | null
}

export interface OwnChoice {
  turns?: number
  to?: string
  step?: boolean
}

export const isHidden = ({ boundary }: Pick<OwnSession, 'boundary'>, turn: OwnTurn): boolean =>
  boundary !== null && (turn.number > boundary.turn || (turn.number === boundary.turn && boundary.step === null))

export const isStepHidden = (own: Pick<OwnSession, 'boundary'>, turn: OwnTurn, step: OwnStep): boolean =>
  isHidden(own, turn) ||
  (own.boundary?.turn === turn.number && own.boundary.step !== null && step.number >= own.boundary.step)

export const hiddenOwnTurns = (own: OwnSession): OwnTurn[] => own.turns.filter((turn) => isHidden(own, turn))
export const visibleOwnTurns = (own: OwnSession): OwnTurn[] => own.turns.filter((turn) => !isHidden(own, turn))

export const nothingToUndo = (why: string, hints: readonly string[] = []): CkptError =>
  new CkptError('NOTHING_TO_UNDO', `${why} Nothing was changed.`, {
    hints: [...hints, 'ckpt list', 'ckpt list --sessions'],
  })

export const nothingToRedo = (why: string): CkptError =>
  new CkptError('NOTHING_TO_REDO', `${why} Nothing was changed.`, {
    hints: ['ckpt list --sessions'],
  })

/** Back to where an undo goes. @throws CkptError NOTHING_TO_UNDO, NOT_FOUND, USAGE */
export function placeToUndo(own: OwnSession, { turns = 1, to, step = false }: OwnChoice): OwnPlace {
  const visible = visibleOwnTurns(own)
  const last = visible.at(-1)
  if (!last) throw nothingToUndo(...noneVisible(own.session, { hidden: hiddenOwnTurns(own).length }))
  if (step) {
    const shown = last.steps.filter((one) => !isStepHidden(own, last, one)).at(-1)
    if (!shown) throw nothingToUndo(`Turn ${last.number} has no step: \`ckpt undo\` takes the whole turn.`)
    return { turn: last, step: shown }
  }
  if (to === undefined) return { turn: visible.at(-turns) ?? visible[0]!, step: null }
  const asked = own.turns.find(({ messageId }) => messageId === to)
  if (asked) return whole(own, asked)
  const target = parseTarget(to)
  if (target.kind !== 'turn' && target.kind !== 'step')
    throw new CkptError('USAGE', 'This session has turns (3) and steps (3.2) to go back to. Nothing was changed.', {
      hints: ['ckpt list'],
    })
  const turn = own.turns.find(({ number }) => number === target.turn)
  if (!turn) throw notFound(`Session ${printable(own.session)} has no turn ${target.turn}.`)
  if (target.kind === 'turn') return whole(own, turn)
  const found = turn.steps.find(({ number }) => number === target.step)
  if (!found || isStepHidden(own, turn, found))
    throw notFound(`Turn ${turn.number} has no step ${target.step} to undo.`)
  return { turn, step: found }
}

function whole(own: OwnSession, turn: OwnTurn): OwnPlace {
  if (isHidden(own, turn)) throw notFound(`Turn ${turn.number} is undone already.`)
  return { turn, step: null }
}

/** Where the boundary lies after a redo; null: everything is back. @throws CkptError NOTHING_TO_REDO */
export function placeAfterRedo(own: OwnSession, { turns = 1, all = false }: { turns?: number; all?: boolean }) {
  if (!own.boundary) throw nothingToRedo(`Session ${printable(own.session)} has nothing undone.`)
  if (all) return null
  // What is left of a turn that was cut comes back as a turn of its own.
  const cut = own.boundary.step === null ? 0 : 1
  return hiddenOwnTurns(own)[turns - cut] ?? null
}

/** How far a revert goes: to a visible place, or forward to one that is hidden. */
export type OwnRevert = { kind: 'undo'; to: string } | { kind: 'redo'; turns: number }

/** @throws CkptError NOT_FOUND, NOTHING_TO_UNDO when exactly that is undone already */
export function ownRevert(own: OwnSession, messageId: string, partId: string | undefined): OwnRevert {
  // A message id may look like a turn's number: it is what is asked for.
  const turn =
    own.turns.find(
      (one) =>
        one.messageId === messageId || (partId !== undefined && one.steps.some((step) => step.messageId === messageId)),
    ) ?? own.turns.find(({ number }) => String(number) === messageId)
  if (!turn) throw notFound(`There is no message ${printable(messageId)} in session ${printable(own.session)}.`)
  const undone = nothingToUndo('That is undone already.')
  if (partId === undefined) {
    if (!isHidden(own, turn)) return { kind: 'undo', to: String(turn.number) }
    const cut = own.boundary!.step === null ? 0 : 1
    const turns = hiddenOwnTurns(own).indexOf(turn) + cut
    if (turns === 0) throw undone
    return { kind: 'redo', turns }
  }
  const step =
    turn.steps.find(({ id, callId }) => id === partId || callId === partId) ??
    turn.steps.find(({ number }) => `${turn.number}.${number}` === partId)
  if (!step) throw notFound(`There is no part ${printable(partId)} in turn ${turn.number}.`)
  if (isStepHidden(own, turn, step)) throw undone
  return { kind: 'undo', to: `${turn.number}.${step.number}` }
}

function notFound(why: string): CkptError {
  const said = why.endsWith('.') ? why : `${why}.`
  return new CkptError('NOT_FOUND', `${said} Nothing was changed.`, { hints: ['ckpt list --hidden'] })
}
