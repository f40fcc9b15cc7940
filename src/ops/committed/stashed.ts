/** What a person has put away with `git stash`, to bring it back later. */
import { splitNul } from '../../core/paths.ts'
import { tryUsersGit } from '../../git/users-git.ts'
import type { Context } from '../worktree/context.ts'

/** Older ones are not looked at. */
const STASHES = 20

/** Paths that stashes change, also where git did not track them. None where git cannot say. */
export async function stashedPaths({ env, worktree }: Context): Promise<Set<string>> {
  const ask = async (...args: string[]) => {
    const { code, stdout } = await tryUsersGit(env, { args, cwd: worktree.root })
    return code === 0 ? stdout : Buffer.alloc(0)
  }
  const stashes = await ask('rev-list', '-g', `--max-count=${STASHES}`, 'refs/stash', '--')
  const found = new Set<string>()
  for (const stash of stashes.toString('latin1').split('\n').filter(Boolean)) {
    const names = ['-r', '-z', '--name-only']
    const changed = await ask('diff-tree', '--no-renames', ...names, `${stash}^1`, stash)
    const untracked = await ask('ls-tree', '--full-tree', ...names, `${stash}^3`) // there where some were put away too
    for (const path of [...splitNul(changed), ...splitNul(untracked)]) found.add(path)
  }
  return found
}
