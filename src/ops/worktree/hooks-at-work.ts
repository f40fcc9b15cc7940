/**
 * A git whose hooks are at work: what is not to be committed, or pushed, they may have put away for that time, as pre-commit and
 * lint-staged do with changes that are not staged. As proc(5) shows it; elsewhere none is seen.
 */
import { CkptError } from '../../core/errors.ts'
import { type Env, errno, statIfThere } from '../../env.ts'
import { ageByOurs } from '../../git/file-clock.ts'
import type { Store } from '../../git/store.ts'
import { isNoted } from './commit-note.ts'
import type { Context } from './context.ts'
import { allProcesses, type Process, readText } from './processes.ts'

/** Milliseconds since something came or went in git's directory, after which nobody is looked for: a commit locks its index first. */
const RECENT = 3_600_000
/** The same, after which what began then has started its hooks. */
const STARTED = 2000

/** When something came or went last, and neither hooks nor an editor of git's were at work after it: asked once for each such time. */
const atRest = new WeakMap<Store, number>()

/** Its process id; null: there is none. One among whose hooks this process is does not count. */
export function hooksAtWork(context: Context): number | null {
  const { env, repository, worktree, store } = context
  const changed = repository && statIfThere(env.files, repository.gitDir)
  if (!changed) return null
  const age = ageByOurs(env, changed)
  const isOurs = isNoted(context) // `ckpt commit` has git lock another index
  if (!isOurs && (age > RECENT || atRest.get(store) === changed.mtimeMs)) return null
  const all = allProcesses(env)
  const above = ancestors(all, env.pid)
  const gits = all.filter(({ pid, name }) => name === 'git' && !above.has(pid))
  const told = gits.flatMap(({ pid }) => {
    const found = toldByGit(env, all, pid)
    return found.length > 0 && isIn(env, pid, worktree.root) ? found : []
  })
  if (!isOurs && told.length === 0 && age > STARTED) atRest.set(store, changed.mtimeMs)
  return told.find(({ isEditor }) => !isEditor)?.git ?? null
}

/** @throws CkptError GIT_BUSY */
export function refuseAmidHooks(context: Context): void {
  const git = hooksAtWork(context)
  if (git === null) return
  throw new CkptError(
    'GIT_BUSY',
    `git (process ${git}) runs hooks, which may have put changes of files away until they are through. Nothing was changed.`,
    { hints: [`ps -fp ${git}   (once it is through, the same again)`] },
  )
}

function ancestors(all: readonly Process[], pid: number): Set<number> {
  const parents = new Map(all.map((one) => [one.pid, one.parent]))
  const found = new Set<number>()
  for (let at = parents.get(pid); at !== undefined && !found.has(at); at = parents.get(at)) found.add(at)
  return found
}

/**
 * What a git has at work, and told an index (githooks(5)): hooks, and editors, which get the message by its absolute path, last. Those
 * before a push are not told one; they are known by their names. A git below it (git-gc(1)) only inherits that.
 */
function toldByGit(env: Env, all: readonly Process[], git: number): { git: number; isEditor: boolean }[] {
  return all.flatMap(({ pid, parent, name, state }) => {
    if (parent !== git || name === 'git' || state === 'Z') return []
    const args = readText(env, `/proc/${pid}/cmdline`).split('\0').filter(Boolean)
    if (args.some((one) => /(^|[/=])pre-push$/.test(one))) return [{ git, isEditor: false }]
    const vars = readText(env, `/proc/${pid}/environ`).split('\0')
    if (!vars.some((one) => one.startsWith('GIT_INDEX_FILE='))) return []
    const last = args.pop() ?? ''
    const isOfHook = args.some((one) => /(^|\/)hooks\/|hook-impl|-msg$/.test(one))
    return [{ git, isEditor: /^\/.*(_EDITMSG|_MSG)$/.test(last) && !isOfHook }]
  })
}

/**
 * Whether a process is at work in a directory, by whatever mount it came there. Another file system is not asked: it may not
 * answer. False: it has ended, or is another user's.
 */
function isIn({ files }: Env, pid: number, directory: string): boolean {
  try {
    const link = `/proc/${pid}/cwd`
    const path = files.readlinkSync(link)
    const [theirs, ours] = [pid, 'self'].map((one) => files.readlinkSync(`/proc/${one}/ns/mnt`))
    if (theirs === ours && path === directory) return true // else it may be another directory: all containers have an /app
    if (deviceAt(files, pid, path) !== deviceAt(files, 'self', directory)) return false
    const [there, here] = [link, directory].map((one) => files.statSync(one, { bigint: true }))
    return there!.ino === here!.ino && there!.dev === here!.dev
  } catch (error) {
    if (errno(error) === undefined) throw error
    return false
  }
}

/** What the mount is of that a path of a process lies on: the last of the longest in proc_pid_mountinfo(5). */
function deviceAt({ readFileSync }: Env['files'], pid: number | 'self', path: string): string | null {
  let found = { length: -1, device: null as string | null }
  for (const line of readFileSync(`/proc/${pid}/mountinfo`, 'utf8').split('\n')) {
    const [, , device = null, , at] = line.split(' ')
    const mount = at?.replace(/\\([0-7]{3})/g, (_, octal: string) => String.fromCharCode(Number.parseInt(octal, 8)))
    const isAbove = mount === path || (mount !== undefined && path.startsWith(mount === '/' ? mount : `${mount}/`))
    if (isAbove && mount.length >= found.length) found = { length: mount.length, device }
  }
  return found.device
}
