/**
 * A git that is at work on a commit, and whose hooks look at what is to be committed: what is not, they may have put away for
 * that time, as pre-commit and lint-staged do with changes that are not staged. As proc(5) shows it; elsewhere none is seen.
 */
import { CkptError } from '../../core/errors.ts'
import { type Env, errno, lstatIfThere } from '../../env.ts'
import { ageByOurs } from '../../git/file-clock.ts'
import type { Repository } from '../../git/repository.ts'
import { isNoted } from './commit-note.ts'
import type { Context, LiveScan } from './context.ts'
import { allProcesses, type Process, readText } from './processes.ts'

/** Milliseconds since git's index was written, after which nobody is looked for: to put files away writes it. */
const RECENT = 3_600_000

/** In the daemon: the index as it was written when nobody was at work last. */
const atRest = new WeakMap<LiveScan, string>()

/** Its process id; null: there is none. One among whose hooks this process is does not count. */
export function commitAtWork(context: Context): number | null {
  const { env, repository, worktree, live } = context
  if (!repository) return null
  // `ckpt commit` and `git commit PATH` have git write another index than the one that is looked at.
  const isAside = isNoted(context) || env.files.existsSync(`${repository.gitDir}/index.lock`)
  const written = indexAsWritten(env, repository)
  if (!isAside && (written === null || (live && atRest.get(live) === written))) return null
  const all = allProcesses(env)
  const above = ancestors(all, env.pid)
  const found = all.find(
    ({ pid, name }) =>
      name === 'git' &&
      !above.has(pid) &&
      directoryOf(env, pid) === worktree.root &&
      all.some((one) => one.parent === pid && one.state !== 'Z' && isBeforeCommit(env, one)),
  )
  if (live && !found && !isAside && written !== null) atRest.set(live, written)
  return found?.pid ?? null
}

/** @throws CkptError GIT_BUSY */
export function refuseAmidCommit(context: Context): void {
  const git = commitAtWork(context)
  if (git === null) return
  throw new CkptError(
    'GIT_BUSY',
    `git is at work on a commit (process ${git}), and its hooks may have put changes of files away until they are through. Nothing was changed.`,
    { hints: [`ps -fp ${git}   (once it is through, the same again)`] },
  )
}

/** Null: not lately. */
function indexAsWritten(env: Env, { gitDir }: Repository): string | null {
  const stats = lstatIfThere(env.files, `${gitDir}/index`)
  return stats && ageByOurs(env, stats) < RECENT ? `${stats.ino} ${stats.size} ${stats.mtimeMs}` : null
}

function ancestors(all: readonly Process[], pid: number): Set<number> {
  const parents = new Map(all.map((one) => [one.pid, one.parent]))
  const found = new Set<number>()
  for (let at = parents.get(pid); at !== undefined && !found.has(at); at = parents.get(at)) found.add(at)
  return found
}

/** Whether git has told it an index (githooks(5)), as it tells hooks before a commit, hooks after it and editors; not what is told a message, too. */
function isBeforeCommit(env: Env, { pid }: Process): boolean {
  const [vars, args] = [readText(env, `/proc/${pid}/environ`), readText(env, `/proc/${pid}/cmdline`)]
  const isTold = vars.split('\0').some((one) => one.startsWith('GIT_INDEX_FILE='))
  return isTold && !args.split('\0').some((one) => /_EDITMSG$|_MSG$|\bpost-/.test(one))
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
