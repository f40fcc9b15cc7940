/** What a pending undo took back: an agent that goes on may have to hear of it. */
import { withoutTold } from '../../core/claims.ts'
import type { SessionId, TurnNumber } from '../../core/ids.ts'
import type { Context } from '../worktree/context.ts'
import { readBoundary, readRefs } from '../worktree/sessions.ts'

export interface Undone {
  turn: TurnNumber
  /** Null: the whole turn. */
  step: number | null
  /** Worktree paths, latin1 bytes. */
  paths: string[]
}

/** Null: nothing of this session is undone, or nothing was changed by it. */
export async function undoneIn(context: Context, session: SessionId): Promise<Undone | null> {
  const tip = (await readRefs(context)).sessions.get(session)?.boundary
  if (!tip) return null
  const { record } = await readBoundary(context, tip)
  const paths = new Set(record.units.flatMap(({ changes }) => withoutTold(changes).map(({ path }) => path)))
  return paths.size === 0 ? null : { turn: record.turn, step: record.step, paths: [...paths].sort() }
}
