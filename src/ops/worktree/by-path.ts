/**
 * Where a worktree is recorded whose store lies apart from it (plain directories, `store.location`), for those who look
 * without git and without the configuration: `quick-place.ts`, and `bin/ckpt-hook`, which starts no process for it. Below the
 * state directory lie directories named as those above the worktree, and in the last one a link.
 *
 * ```
 * <state directory>/by-path<root>/.ckpt-worktree -> the worktree's own directory in its store
 * ```
 */
import { type Env, errno } from '../../env.ts'
import { makeDirectories, removeIfThere } from '../../git/whole-file.ts'
import { stateDirectory } from './state-directory.ts'

/** The worktree's own directory in its store, which need not be there any more. Null: nothing is known by that path. */
export function linkedByPath(env: Env, root: string): string | null {
  return readLink(env, linkOf(env, root))
}

/** `worktreeDir` null: its store does not lie apart. Where it cannot be written nothing else fails: it only makes things fast. */
export function linkByPath(env: Env, root: string, worktreeDir: string | null): void {
  const link = linkOf(env, root)
  if (readLink(env, link) === worktreeDir) return
  try {
    if (worktreeDir === null) {
      removeIfThere(env, link)
      return
    }
    makeDirectories(env, link.slice(0, link.lastIndexOf('/')))
    const temporary = `${link}.${env.random(6)}.tmp`
    env.files.symlinkSync(worktreeDir, temporary)
    env.files.renameSync(temporary, link)
  } catch (error) {
    if (errno(error) === undefined) throw error
  }
}

const linkOf = (env: Env, root: string): string => `${stateDirectory(env)}/by-path${root}/.ckpt-worktree`

function readLink({ files }: Env, link: string): string | null {
  try {
    return files.readlinkSync(link)
  } catch (error) {
    if (errno(error) === undefined) throw error
    return null
  }
}
