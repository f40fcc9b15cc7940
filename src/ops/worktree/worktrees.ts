/** Every worktree that has checkpoints in this store. */
import type { Oid, SessionId } from '../../core/ids.ts'
import { runningTurn } from '../../core/timeline.ts'
import { worktreeNames } from '../../git/frame.ts'
import { groupRefs, type WorktreeRefs } from '../../git/history.ts'
import { worktreeOf } from '../../git/tips.ts'
import type { Context } from './context.ts'
import { linkedWorktrees, rootOfWorktree } from './place.ts'
import { loadTimeline } from './sessions.ts'

export interface WorktreeView {
  context: Context
  refs: WorktreeRefs
}

/**
 * Worktrees that came from elsewhere (src/ops/transport/unpack.ts names them): they go out only from where they were made, and no git hook
 * looks at them.
 */
export const foreignWorktree = (id: string): boolean => /^from-[0-9a-f]{8}-/.test(id)

/** Whether a linked worktree is one no more for git (git-worktree(1) remove, prune): nobody will work in it again. */
export function isRemoved({ env, repository }: Context, id: string): boolean {
  if (repository === null || id === '@main' || foreignWorktree(id)) return false
  const known = linkedWorktrees(env, repository)
  // One whose own id cannot be read may be any of that name.
  return !known.has(id) && !known.has(id.replace(/-[0-9a-f]{12}$/, '-new'))
}

/** The refs of each worktree of the store, of this one in any case, by its id; none, where only its directory is left. */
export async function refsByWorktree({ env, place, store }: Context): Promise<Map<string, Map<string, Oid>>> {
  const ids = new Set([...worktreeNames(env, place), place.worktreeId])
  const found = new Map([...ids].map((id) => [id, new Map<string, Oid>()]))
  for (const { ref, oid } of await store.refs('refs/ckpt/', 'refs/notes/ckpt/')) {
    const id = worktreeOf(ref)!
    found.set(id, (found.get(id) ?? new Map<string, Oid>()).set(ref, oid))
  }
  return found
}

/** This worktree first, the others by id. Their contexts read the store; their files are elsewhere. */
export async function allWorktrees(context: Context): Promise<WorktreeView[]> {
  const { place, store } = context
  if (!context.exists) return []
  const tips = await store.wholeRefs('refs/ckpt/', 'refs/notes/ckpt/')
  const ids = new Set(tips.filter(({ ref }) => ref.startsWith('refs/ckpt/')).map(({ ref }) => ref.split('/')[2]!))
  const own = place.worktreeId
  const views: WorktreeView[] = []
  for (const worktreeId of [...ids].sort((a, b) => Number(b === own) - Number(a === own) || (a < b ? -1 : 1))) {
    const there = { ...place, worktreeId }
    const one = worktreeId === own ? context : { ...context, place: there, store: store.of(worktreeId) }
    const { refPrefix, notesRef } = one.store
    const refs = groupRefs(
      refPrefix,
      tips.filter(({ ref }) => ref.startsWith(refPrefix) || ref === notesRef),
    )
    views.push({ context: one, refs })
  }
  return views
}

/** Roots of the store's other worktrees where a session's turn runs: that one, by the agent's own id, or any (null). */
export async function runningElsewhere(context: Context, session: SessionId, turn: string | null): Promise<string[]> {
  const { env, place, repository } = context
  if (repository === null || worktreeNames(env, place).length < 2) return []
  const roots: string[] = []
  for (const { context: one, refs } of await allWorktrees(context)) {
    const { worktreeId } = one.place
    if (worktreeId === place.worktreeId || foreignWorktree(worktreeId) || !refs.sessions.has(session)) continue
    const timeline = await loadTimeline(one, refs, { session, recent: true })
    const running = timeline.boundary ? null : runningTurn(timeline)
    if (!running || (turn !== null && running.before.marker !== turn)) continue
    const root = rootOfWorktree(env, repository, worktreeId)
    if (root !== null) roots.push(root)
  }
  return roots
}
