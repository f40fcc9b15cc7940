/** From two looks at a session to the events in between. Pure. */

import type { Checkpoint } from '../core/checkpoint.ts'
import { describePrompt } from '../core/checkpoint.ts'
import { hiddenTurns, messageIdOf, runningTurn, type Timeline, type Turn, visibleTurns } from '../core/timeline.ts'
import { sessionJson, timelineBoundary } from '../results/json.ts'
import type { SessionInfo } from '../results/shapes.ts'
import type { CheckpointSummary, CkptEvent, TurnSummary } from './protocol.ts'

export function checkpointSummary(one: Checkpoint): CheckpointSummary {
  return {
    id: one.id,
    kind: one.kind,
    turn: one.turn ?? null,
    step: one.step === undefined ? null : `${one.turn}.${one.step}`,
    time: one.time,
    degraded: one.degraded ?? false,
    late: one.late ?? false,
  }
}

export function turnSummary(turn: Turn, prompt: string | null): TurnSummary {
  return {
    n: turn.number,
    id: turn.id,
    messageId: messageIdOf(turn),
    prompt: describePrompt(prompt, turn.before.time),
    agent: turn.before.agent ?? null,
    status: turn.status,
    startedAt: turn.before.time,
  }
}

function sessionInfo(timeline: Timeline, worktree: string): SessionInfo {
  const state = runningTurn(timeline) && !timeline.boundary ? 'running' : 'idle'
  return sessionJson({ timeline, worktree, state })
}

/** Turns that are visible now and were not; oldest first. */
export function addedTurns(before: Timeline | null, after: Timeline): Turn[] {
  const were = new Set(before ? visibleTurns(before).map(({ id }) => id) : [])
  return visibleTurns(after).filter(({ id }) => !were.has(id))
}

/** Everything but new checkpoints and added turns. */
export function changesBetween(before: Timeline | null, after: Timeline, worktree: string): CkptEvent[] {
  const { session } = after
  const events: CkptEvent[] = []
  const visible = new Map(visibleTurns(after).map((turn) => [turn.id, turn]))
  const hidden = new Set(hiddenTurns(after).map(({ id }) => id))
  for (const turn of before ? visibleTurns(before).reverse() : []) {
    const now = visible.get(turn.id)
    if (!now) {
      const why = hidden.has(turn.id) ? 'undone' : 'left'
      events.push({ type: 'turn.removed', session, turn: turn.number, id: turn.id, why })
      continue
    }
    const [from, was] = [
      now.hiddenFromStep ?? Number.POSITIVE_INFINITY,
      turn.hiddenFromStep ?? Number.POSITIVE_INFINITY,
    ]
    for (const { number, start, end } of [...turn.steps].reverse()) {
      if (number >= from && number < was)
        events.push({ type: 'step.removed', session, step: `${turn.number}.${number}`, id: (end ?? start)!.id })
    }
  }
  const boundary = timelineBoundary(after)
  if (!same(before && timelineBoundary(before), boundary)) events.push({ type: 'boundary.changed', session, boundary })
  const info = sessionInfo(after, worktree)
  if (!same(before && sessionInfo(before, worktree), info)) events.push({ type: 'session.updated', session, info })
  return events
}

const same = (a: unknown, b: unknown) => JSON.stringify(a) === JSON.stringify(b)
