/** Log: the whole tree of the sessions, hidden and abandoned branches included. */
import type { Oid, SessionId } from '../../core/ids.ts'
import type { Timeline, Turn } from '../../core/timeline.ts'
import { learnSessions } from '../../git/history.ts'
import type { Context } from '../worktree/context.ts'
import { chooseSession, loadTimeline, readRefs } from '../worktree/sessions.ts'
import { type Chosen, type TurnView, viewTurns } from './history.ts'

interface LogNode {
  view: TurnView
  /** The id of the turn it came after; null for a first one. */
  parent: string | null
}

export interface SessionLog {
  timeline: Timeline
  /** Newest first. */
  nodes: LogNode[]
}

export async function readLog(context: Context, wanted: string | undefined): Promise<SessionLog[]> {
  const refs = await readRefs(context)
  const sessions: SessionId[] = []
  if (wanted === undefined) {
    const newest = (id: SessionId) => refs.sessions.get(id)?.live?.seq ?? 0
    sessions.push(...[...refs.sessions.keys()].filter((id) => id !== 'manual').sort((a, b) => newest(b) - newest(a)))
  } else {
    const chosen = chooseSession(refs, wanted)
    if (chosen) sessions.push(chosen)
  }
  if (sessions.length > 1) await learnSessions(context.store, refs)
  const chosen: Chosen[] = []
  for (const session of sessions) {
    const timeline = await loadTimeline(context, refs, { session, abandoned: true })
    const turns = [...timeline.turns, ...timeline.abandoned].sort((a, b) => b.before.seq - a.before.seq)
    chosen.push({ timeline, turns })
  }
  const views = new Map((await viewTurns(context, refs, chosen)).map((view) => [view.turn, view]))
  return chosen.map(({ timeline, turns }) => {
    const owner = new Map<Oid, Turn>(
      turns.flatMap((turn) => turn.checkpoints.map((checkpoint) => [checkpoint.id, turn] as const)),
    )
    const nodes = turns.map((turn) => {
      const above = turn.before.parents[0]
      return { view: views.get(turn)!, parent: (above && owner.get(above)?.id) ?? null }
    })
    return { timeline, nodes }
  })
}
