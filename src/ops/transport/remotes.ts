/** Where a remote lies, and which places are none. */
import { fileURLToPath } from 'node:url'
import { CkptError } from '../../core/errors.ts'
import { printable } from '../../core/paths.ts'
import { type Env, errno } from '../../env.ts'
import { isStore } from '../../git/frame.ts'
import { tryGit } from '../../git/process.ts'
import { type Repository, remoteUrl } from '../../git/repository.ts'
import type { Context } from '../worktree/context.ts'

/** A remote's name, a URL, or a directory: as git would reach it from anywhere. */
export async function urlOf(
  { env, repository, worktree }: Context,
  { remote, isPush }: { remote: string; isPush: boolean },
): Promise<string> {
  const hints = repository ? ['git remote -v'] : []
  if (remote === '' || remote.startsWith('-'))
    throw new CkptError('USAGE', `${JSON.stringify(remote)} is no remote. Nothing was changed.`, { hints })
  const known = repository ? await remoteUrl(env, repository, { remote, isPush }) : null
  const url = known ?? remote
  if (/^[a-z][a-z0-9+.-]*:\/\//i.test(url) || /^[^/]+:/.test(url)) return url
  const path = url.startsWith('/') ? url : `${known ? worktree.root : env.cwd}/${url}`
  try {
    return env.files.realpathSync(path)
  } catch (error) {
    if (errno(error) !== 'ENOENT' && errno(error) !== 'ENOTDIR') throw error
    const why = known
      ? `Remote ${JSON.stringify(remote)} is ${printable(path)}, and there is nothing.`
      : repository
        ? `There is no remote ${JSON.stringify(remote)}.`
        : `There is no directory ${JSON.stringify(remote)}, and a plain directory has no remotes: a directory or a URL is wanted.`
    throw new CkptError('NOT_FOUND', `${why} Nothing was changed.`, { hints })
  }
}

export const isLocal = (url: string) => url.startsWith('/') || url.startsWith('file:')

/** Whether a path is of this repository: of its own directories, or of any worktree's (git-push(1): what git takes for a remote). */
async function isIn(env: Env, { root, commonDir }: Repository, path: string): Promise<boolean> {
  const args = ['rev-parse', '--path-format=absolute', '--git-common-dir']
  for (const at of [`${path}/.git`, path]) {
    const { code, stdout } = await tryGit(env, { args, cwd: root, vars: { GIT_DIR: at } })
    if (code === 0) return stdout.toString('utf8').trimEnd() === commonDir
  }
  return false
}

/** Null: what git says of it will be told. */
function pathOf({ files }: Env, url: string): string | null {
  try {
    return files.realpathSync(url.startsWith('/') ? url : fileURLToPath(url))
  } catch {
    return null
  }
}

/**
 * A store takes each ref in it for one of its own, and what is in the person's repository is in their log.
 * @throws CkptError USAGE
 */
export async function refuseOwn(
  { env, repository }: Context,
  { remote, url }: { remote: string; url: string },
  { untouched, hints }: { untouched: string; hints: readonly string[] },
): Promise<void> {
  const path = isLocal(url) ? pathOf(env, url) : null
  if (path === null) return
  const what = isStore(env, path)
    ? "a store of ckpt's, which is no remote"
    : repository && (await isIn(env, repository, path))
      ? 'this repository itself, in which ckpt makes no refs'
      : null
  if (what === null) return
  throw new CkptError('USAGE', `${printable(remote)} is ${what}. ${untouched}`, { hints })
}
