/** What a person has put away with `git stash`, to bring it back later. */
import { splitNul } from '../../core/paths.ts'
import { tryUsersGit } from '../../git/users-git.ts'
import type { Context } from '../worktree/context.ts'

/** Older ones are not looked at. */
const STASHES = 20

const NAMES = ['-r', '-z', '--name-only']

/** Paths that stashes change, also where git did not track them. Null: git cannot say. */
export async function stashedPaths({ env, worktree }: Context): Promise<Set<string> | null> {
  const ask = async (...args: string[]) => {
    const { code, stdout } = await tryUsersGit(env, { args, cwd: worktree.root })
    return code === 0 ? stdout : null
  }
  const found = new Set<string>()
  const newest = await ask('for-each-ref', 'refs/stash') // nothing, where there is none
  if (newest?.length === 0) return found
  const known = ['-g', `--max-count=${STASHES}`, '--no-show-signature', '--format=%H %P', 'refs/stash', '--']
  const stashes = newest && (await ask('log', ...known))
  if (!stashes) return null
  for (const row of stashes.toString('latin1').trim().split('\n')) {
    const [stash, base, , untracked] = row.split(' ') // git-stash(1), DISCUSSION
    const changed = await ask('diff-tree', '--no-renames', ...NAMES, base!, stash!)
    const beside = untracked === undefined ? Buffer.alloc(0) : await ask('ls-tree', '--full-tree', ...NAMES, untracked)
    if (!changed || !beside) return null
    for (const path of [...splitNul(changed), ...splitNul(beside)]) found.add(path)
  }
  return found
}
