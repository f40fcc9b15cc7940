/**
 * A git whose hooks are at work: what is not to be committed, or pushed, they may have put away for that time, as pre-commit and
 * lint-staged do with changes that are not staged. As proc(5) shows it; elsewhere none is seen.
 */
import { CkptError } from '../../core/errors.ts'
import { type Env, errno, statIfThere } from '../../env.ts'
import { ageByOurs } from '../../git/file-clock.ts'
import { isNoted } from './commit-note.ts'
import type { Context, LiveScan } from './context.ts'
import { allProcesses, type Process, readText } from './processes.ts'

/** Milliseconds since something came or went in git's directory, after which nobody is looked for: a commit locks its index first. */
const RECENT = 3_600_000
/** The same, after which what began then has started its hooks. */
const STARTED = 2000

/** In the daemon: when something came or went last, and no git was at work after it. */
const atRest = new WeakMap<LiveScan, number>()

/** Its process id; null: there is none. One among whose hooks this process is does not count. */
export function hooksAtWork(context: Context): number | null {
  const { env, repository, worktree, live } = context
  const changed = repository && statIfThere(env.files, repository.gitDir)
  if (!changed) return null
  const age = ageByOurs(env, changed)
  const isOurs = isNoted(context) // `ckpt commit` has git lock another index
  if (!isOurs && (age > RECENT || (live && atRest.get(live) === changed.mtimeMs))) return null
  const all = allProcesses(env)
  const above = ancestors(all, env.pid)
  const gits = all.filter(
    ({ pid, name }) => name === 'git' && !above.has(pid) && directoryOf(env, pid) === worktree.root,
  )
  if (live && !isOurs && gits.length === 0 && age > STARTED) atRest.set(live, changed.mtimeMs)
  const hasHook = ({ pid }: Process) => all.some((one) => one.parent === pid && one.state !== 'Z' && isHook(env, one))
  return gits.find(hasHook)?.pid ?? null
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
 * Hooks of a commit are told an index (githooks(5)), as editors are, which get the message by its absolute path, last. Those
 * before a push are not; they are known by their names.
 */
function isHook(env: Env, { pid }: Process): boolean {
  const args = readText(env, `/proc/${pid}/cmdline`).split('\0').filter(Boolean)
  if (args.some((one) => /(^|[/=])pre-push$/.test(one))) return true
  const isEditor = /^\/.*(_EDITMSG|_MSG)$/.test(args.at(-1) ?? '') && !args.some((one) => /hook|-msg$/.test(one))
  return (
    !isEditor &&
    readText(env, `/proc/${pid}/environ`)
      .split('\0')
      .some((one) => one.startsWith('GIT_INDEX_FILE='))
  )
}

/** Null: it has ended, or is another user's. */
function directoryOf(env: Env, pid: number): string | null {
  try {
    return env.files.readlinkSync(`/proc/${pid}/cwd`)
  } catch (error) {
    if (errno(error) === undefined) throw error
    return null
  }
}
