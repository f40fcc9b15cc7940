/** Where a remote lies, and which places are none. */
import { fileURLToPath } from 'node:url'
import { CkptError } from '../../core/errors.ts'
import { printable } from '../../core/paths.ts'
import { type Env, errno } from '../../env.ts'
import { isStore } from '../../git/frame.ts'
import { tryGit } from '../../git/process.ts'
import { type Repository, remoteUrl, rewrittenUrl } from '../../git/repository.ts'
import type { Context } from '../worktree/context.ts'

export interface Remote {
  /** As it was given. */
  name: string
  url: string
  /** A directory of this machine, where git is asked to run nobody's hooks. */
  isLocal: boolean
}

/** What is said of a place that is none, and what to do instead. */
const REFUSED = {
  push: {
    untouched: 'Nothing was sent.',
    hints: [
      'git init --bare DIRECTORY   (one that takes them)',
      'ckpt export FILE   (a bundle, which `ckpt import` takes in)',
    ],
  },
  pull: {
    untouched: 'Nothing was changed.',
    hints: ['ckpt export FILE   (in another repository; `ckpt import FILE` takes it in here)'],
  },
} as const

/** @throws CkptError USAGE, NOT_FOUND */
export async function remoteFor(context: Context, name: string, verb: keyof typeof REFUSED): Promise<Remote> {
  const url = await urlOf(context, { remote: name, isPush: verb === 'push' })
  const at = await rewrittenUrl(context.env, url)
  const what = await ownPlace(context, at)
  if (what === null) return { name, url, isLocal: isLocal(at) }
  const { untouched, hints } = REFUSED[verb]
  throw new CkptError('USAGE', `${printable(name)} is ${what}. ${untouched}`, { hints })
}

/** A remote's name, a URL, or a directory: as git would reach it from anywhere. */
async function urlOf(
  { env, repository, worktree }: Context,
  { remote, isPush }: { remote: string; isPush: boolean },
): Promise<string> {
  const hints = repository ? ['git remote -v'] : [`ckpt ${isPush ? 'push' : 'pull'} --help`]
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

const isLocal = (url: string) => url.startsWith('/') || url.startsWith('file:')

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

/** A store takes each ref in it for one of its own, and what is in the person's repository is in their log. Null: it is neither. */
async function ownPlace({ env, repository }: Context, url: string): Promise<string | null> {
  const path = isLocal(url) ? pathOf(env, url) : null
  if (path === null) return null
  if (isStore(env, path)) return "a store of ckpt's, which is no remote"
  const isItself = repository && (await isIn(env, repository, path))
  return isItself ? 'this repository itself, in which ckpt makes no refs' : null
}
