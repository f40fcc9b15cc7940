/** What of a session's paths is not for a commit: what git ignores, and what it refuses to be asked about. */
import { CkptError } from '../../core/errors.ts'
import { shortList } from '../../core/paths.ts'
import type { PathState } from '../../core/state.ts'
import { tryUsersGit } from '../../git/users-git.ts'
import { behindSymlink } from '../../snapshot/disk.ts'
import { type Entry, readIndexEntries } from '../committed/entries.ts'
import type { Context } from '../worktree/context.ts'

/**
 * Captured though ignored (`snapshot.include`, for `.env` and the like): not for a commit, unless it is in one already.
 * `left`: what the session left at each path.
 */
export async function withoutIgnored(
  context: Context,
  left: ReadonlyMap<string, PathState>,
  committed: ReadonlyMap<string, Entry>,
): Promise<string[]> {
  const { env, worktree } = context
  const paths = [...left.keys()]
  const staged = await readIndexEntries(context)
  const inQuestion = paths.filter((path) => !committed.has(path) && !staged.has(path)) // tracked paths are never ignored
  const [behind, asked] = [new Set<string>(), [] as string[]]
  for (const path of inQuestion) {
    if (behindSymlink(env, worktree.root, path))
      behind.add(path) // git refuses to say
    else asked.push(path)
  }
  const ignored = await ignoredAmong(context, asked)
  if (ignored.size > 0) context.warnings.push(`Ignored by git, and left out of the commit: ${shortList([...ignored])}.`)
  const missed = [...behind].filter((path) => left.get(path)?.kind !== 'absent')
  if (missed.length > 0)
    context.warnings.push(
      `Left out of the commit, for a link or a file is where a directory was: ${shortList(missed)}.`,
    )
  return paths.filter((path) => !ignored.has(path) && !behind.has(path))
}

async function ignoredAmong(context: Context, paths: readonly string[]): Promise<Set<string>> {
  if (paths.length === 0) return new Set()
  const { code, stdout } = await tryUsersGit(context.env, {
    // With the index git dies of a path below a submodule.
    args: ['check-ignore', '--no-index', '-z', '--stdin'],
    cwd: context.worktree.root,
    input: Buffer.from(paths.map((path) => `./${path}\0`).join(''), 'latin1'),
  })
  if (code > 1) throw new CkptError('INTERNAL', 'git check-ignore failed. Nothing was committed.')
  const answers = stdout.toString('latin1').split('\0').filter(Boolean)
  return new Set(answers.map((path) => path.replace(/^\.\//, '')))
}
