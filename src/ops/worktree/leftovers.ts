/** What commands keep in `tmp/` of a worktree while they hold its lock: nobody's, once somebody else holds it. */
import { errno } from '../../env.ts'
import { remove } from '../../snapshot/aside.ts'
import type { Context } from './context.ts'

/** All but the old inodes of an operation, which may be somebody's only copy. The caller holds that worktree's lock. */
export function removeLeftovers({ env, store }: Pick<Context, 'env' | 'store'>): void {
  const directory = `${store.worktreeDir}/tmp`
  try {
    for (const name of env.files.readdirSync(directory)) if (!name.endsWith('.old')) remove(env, `${directory}/${name}`)
  } catch (error) {
    if (errno(error) === undefined) throw error // there is none, or it is another user's
  }
}
