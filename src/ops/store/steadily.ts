/** Looking at a store that others are at work in, here or in another of its worktrees: what is half done looks like damage. */
import { worktreeNames } from '../../git/frame.ts'
import type { Context } from '../worktree/context.ts'
import { isAtWork, whileAtWork } from '../worktree/lock.ts'

/** So often what looks bad is looked at again. */
const AGAIN = 3

/**
 * What was found; what is not `fine` is looked at once more, for what was read before may be of a moment when somebody was
 * at work, and is believed once nobody changed the store meanwhile.
 */
export async function steadily<T>(context: Context, look: () => Promise<T>, fine: (found: T) => boolean): Promise<T> {
  const { env, store } = context
  for (let left = AGAIN; ; left--) {
    const { generation } = store
    const found = await look()
    const moving = () => store.generation !== generation || locksOf(context).some(({ path }) => isAtWork(env, path))
    if (fine(found) || left === 0 || (left < AGAIN && !moving())) return found
    await whileAtWork(
      env,
      locksOf(context).map(({ path }) => path),
    )
    store.forget()
  }
}

/** Until nobody is at work in this worktree, or that has lasted too long. */
export const untilQuiet = ({ env, store }: Context): Promise<void> => whileAtWork(env, [`${store.worktreeDir}/lock`])

/** The store's own, and those of its worktrees. */
export function locksOf({ env, place }: Context): { path: string; worktree: string | null }[] {
  const { directory } = place
  return [
    { path: `${directory}/lock`, worktree: null },
    ...worktreeNames(env, place).map((name) => ({ path: `${directory}/worktrees/${name}/lock`, worktree: name })),
  ]
}
