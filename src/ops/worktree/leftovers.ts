/** What commands keep in `tmp/` of a worktree while they hold its lock: nobody's, once somebody else holds it. */
import { errno } from '../../env.ts'
import { removeIfThere, removeTree } from '../../git/whole-file.ts'
import type { Context } from './context.ts'

/** All but the old inodes of an operation, which may be somebody's only copy. The caller holds that worktree's lock. */
export function removeLeftovers({ env, store }: Pick<Context, 'env' | 'store'>): void {
  const directory = `${store.worktreeDir}/tmp`
  try {
    for (const entry of env.files.readdirSync(directory, { withFileTypes: true })) {
      const path = `${directory}/${entry.name}`
      if (entry.isDirectory()) removeTree(env, path)
      else if (!entry.name.endsWith('.old')) removeIfThere(env, path)
    }
  } catch (error) {
    if (errno(error) === undefined) throw error // there is none, or it is another user's
  }
}
