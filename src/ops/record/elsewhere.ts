/** Sessions that go on in another worktree of the same repository. */
import type { SessionId } from '../../core/ids.ts'
import { worktreeNames } from '../../git/frame.ts'
import { findByMarker } from '../../git/history.ts'
import { promptReader } from '../../git/side-refs.ts'
import type { Context } from '../worktree/context.ts'
import { allWorktrees, foreignWorktree } from '../worktree/worktrees.ts'

export interface Announced {
  agent?: string
  text?: string
  messageId?: string
}

/** The prompt that a session was given in another worktree of the repository, by the agent's own turn id. */
export async function announcedElsewhere(
  context: Context,
  session: SessionId,
  turn: string,
): Promise<Announced | null> {
  if (worktreeNames(context.env, context.place).length < 2) return null
  for (const { context: one, refs } of await allWorktrees(context)) {
    const { worktreeId } = one.place
    if (worktreeId === context.place.worktreeId || foreignWorktree(worktreeId) || !refs.sessions.has(session)) continue
    const found = await findByMarker(one.store, turn)
    if (!found) continue
    const text = await (await promptReader(one.store, refs.notes))(found.id)
    const { agent, messageId } = found
    return {
      ...(agent === undefined ? {} : { agent }),
      ...(text === null ? {} : { text }),
      ...(messageId === undefined ? {} : { messageId }),
    }
  }
  return null
}
