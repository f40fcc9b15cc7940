/** Which turns go: pure. Abandoned ones past their grace, then visible ones over the limits, oldest first. */
import { endOf, type Timeline, type Turn, visibleTurns } from './timeline.ts'

export interface PruneLimits {
  /** Milliseconds since 1970. */
  now: number
  /** Turns kept per session; 0: all. */
  keep: number
  /** Milliseconds; visible turns that ended longer ago go. Null: none. */
  olderThan: number | null
  /** Milliseconds that abandoned turns stay. */
  grace: number
}

export interface PruneCandidate {
  timeline: Timeline
  /** When each abandoned branch was abandoned, by the ids of its turns. */
  abandonedAt: ReadonlyMap<string, number>
}

export interface PrunedTurns {
  timeline: Timeline
  /** Visible turns that go, oldest first: always a beginning of the session. */
  visible: Turn[]
  abandoned: Turn[]
}

const endedAt = (turn: Turn) => Date.parse(endOf(turn).time)

export function planPrune({ timeline, abandonedAt }: PruneCandidate, limits: PruneLimits): PrunedTurns {
  const abandoned = timeline.abandoned.filter(
    (turn) => limits.now - (abandonedAt.get(turn.id) ?? limits.now) >= limits.grace,
  )
  const removable = removableTurns(timeline)
  const shown = visibleTurns(timeline)
  const over = limits.keep > 0 ? Math.max(0, shown.length - limits.keep) : 0
  let count = 0
  while (count < removable.length) {
    const turn = removable[count]!
    const old = limits.olderThan !== null && limits.now - endedAt(turn) >= limits.olderThan
    if (count >= over && !old) break
    count++
  }
  return { timeline, visible: removable.slice(0, count), abandoned }
}

/**
 * The turns that may go at all, oldest first: never the newest, never one that is running, never what a pending redo
 * needs (everything from the last visible turn on).
 */
export function removableTurns(timeline: Timeline): Turn[] {
  const visible = visibleTurns(timeline).slice(0, -1)
  const staying = visible.findIndex((turn) => turn.after === null || turn.hiddenFromStep !== null)
  return staying < 0 ? visible : visible.slice(0, staying)
}
