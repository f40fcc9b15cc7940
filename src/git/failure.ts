/** What it means that a git failed: damage, a full disk, a limit of this process, somebody who ended it, or no git at all. */
import { CkptError } from '../core/errors.ts'
import { FILE_LIMIT, OPEN_LIMIT } from '../core/hint-words.ts'
import { type Env, errno } from '../env.ts'
import type { GitResult } from './result.ts'

/** What to look at where the system lets nobody start another process or thread (setrlimit(2), RLIMIT_NPROC; cgroups). */
const MORE_PROCESSES = 'ulimit -u   (how many processes you may have; end some, then run the command again)'

const MORE_MEMORY = 'ulimit -v   (how much memory a program may have; end what takes it, then run the command again)'

const MORE_TIME = 'ulimit -t   (for how many seconds a program may be at work)'

/** Of a git that could not be started; `outcome`: what was not done. */
export function notStarted(cause: Error, outcome = 'Nothing was changed.'): CkptError {
  const code = errno(cause)
  if (code === 'ENOENT')
    return new CkptError('INTERNAL', `git is not installed, or not in PATH. ${outcome}`, {
      hints: ['install git, or put its directory in PATH'],
      cause,
    })
  const hints: Partial<Record<string, readonly string[]>> = {
    EAGAIN: [MORE_PROCESSES],
    ENOMEM: [MORE_MEMORY],
    EMFILE: OPEN_LIMIT,
    ENFILE: OPEN_LIMIT,
  }
  return new CkptError('INTERNAL', `git could not be run: ${cause.message}. ${outcome}`, {
    hints: hints[code ?? ''] ?? [],
    cause,
  })
}

/** What git says of files of a repository that it cannot read (packed-refs, shallow, config, packs), and of refs to nothing. */
const UNREADABLE =
  /(unexpected|unterminated) line in|bad shallow line|bad (boolean |numeric )?config|missing object [0-9a-f]+ for refs|pack-[0-9a-f]+\.(pack|idx)/

/** What it says of a repository that is of another kind than it knows (gitrepository-layout(5)). */
const NEWER = /Expected git repo version|unknown repository extensions? found|unknown repository hash/

/** What it says of an index that it cannot read. */
const BAD_INDEX =
  /index file (smaller than expected|corrupt)|bad (signature 0x|index version)|bad index file sha1|corrupt index file/
const NEW_INDEX =
  'rm "$(git rev-parse --git-dir)/index" && git reset   (git makes its index anew: nothing is staged then)'

const FULL = /no space left on device|disk quota exceeded|out of diskspace/i

/** Not each of git's messages about a write that failed says why: of lock files and configuration it does not. */
const UNWRITTEN = /(could not|couldn't|failed to|unable to) (write|set)\b/i
const NOT_ALLOWED = /permission denied|read-only file system/i

/** So little that git may have failed for want of more, in bytes and in files: its drafts are gone by now. */
const NEARLY_NONE = { bytes: 2 ** 20, files: 16 } as const

/** As statfs(2) says. Some file systems do not count their blocks or their files. */
export function isNearlyFull(env: Env, directory: string): boolean {
  try {
    const { bavail, bsize, blocks, files, ffree } = env.files.statfsSync(directory)
    return (blocks > 0 && bavail * bsize < NEARLY_NONE.bytes) || (files > 0 && ffree < NEARLY_NONE.files)
  } catch {
    return false
  }
}

/** Whether a git that failed had no room in a directory. */
export function lackedRoom(env: Env, directory: string, stderr: string): boolean {
  if (FULL.test(stderr)) return true
  return UNWRITTEN.test(stderr) && !NOT_ALLOWED.test(stderr) && isNearlyFull(env, directory)
}

/** What it says where it could start no process or thread of its own. */
const CROWDED = /(fork|thread|exec)\b.*resource temporarily unavailable$/im

/** The disk was full where git wrote: no file and no repository is to blame for it. Null: it was something else. */
export function fullDisk(
  args: readonly string[],
  { stderr, noRoom }: Pick<GitResult, 'stderr' | 'noRoom'>,
  outcome?: string,
): CkptError | null {
  if (!noRoom && !FULL.test(stderr)) return null
  const said = `The disk is full: git ${commandOf(args)} could not write (${beginning(stderr)}).`
  return new CkptError('INTERNAL', outcome === undefined ? said : `${said} ${outcome}`, {
    hints: ['free some space, then run the command again'],
    cause: Object.assign(new Error(beginning(stderr)), { code: 'ENOSPC' }),
  })
}

/** What the limits of a process deny git, as it says it or what its child died of (setrlimit(2)). */
const DENIED: readonly { says: RegExp; code: string; hints: readonly string[] }[] = [
  { says: CROWDED, code: 'EAGAIN', hints: [MORE_PROCESSES] },
  // At the end of a line, or the beginning: git names paths between.
  { says: /: Too many open files$/m, code: 'EMFILE', hints: OPEN_LIMIT },
  {
    // What asks for so many bytes is a damaged size: no object is so large.
    says: /: (Cannot allocate memory|failed to map segment from shared object)$|^(error|fatal): (Out of memory[,?] \w+ failed(?! \(tried to allocate \d{11})|\w+: out of memory)/m,
    code: 'ENOMEM',
    hints: [MORE_MEMORY, 'ckpt verify   (whether what git had no room for is damaged)'],
  },
  { says: /: File too large$|^error: .* died of signal 25$|^SIGXFSZ$/m, code: 'EFBIG', hints: FILE_LIMIT },
  { says: /^error: .* died of signal 24$|^SIGXCPU$/m, code: 'EAGAIN', hints: [MORE_TIME] },
]

/** A program that git started says so of one: SIGHUP, SIGINT, SIGKILL, SIGTERM. */
const ENDED = /^error: .* (died of signal (?:1|2|9|15))$/m

/** What the limits of this process denied git, or somebody who ended it: nothing that it read is to blame. Null: it was something else. */
function notLet(args: readonly string[], { code, stderr, crash, ended }: GitResult): CkptError | null {
  const said = beginning(stderr)
  const cause = (errno: string) => Object.assign(new Error(said), { code: errno })
  const denied = DENIED.find(({ says }) => says.test(stderr) || says.test(crash ?? ''))
  if (denied) {
    const failed = `git ${commandOf(args)} failed (${crash ?? `exit ${code}`}): ${said || 'no message'}. Nothing was changed.`
    return new CkptError('INTERNAL', failed, { hints: denied.hints, cause: cause(denied.code) })
  }
  const signal = ended ?? ENDED.exec(stderr)?.[1]
  if (!signal) return null
  const by = `git ${commandOf(args)} was ended by somebody (${signal}). Nothing was changed.`
  return new CkptError('INTERNAL', by, { hints: ['run the command again'], cause: cause('EINTR') })
}

/** What the machine did not let git do: see {@link fullDisk}; limits; who ended it. Null: it was something else. */
export const machineFailure = (args: readonly string[], result: GitResult): CkptError | null =>
  notLet(args, result) ?? fullDisk(args, result)

/** It wanted an object that a partial clone has not fetched; for us nothing is fetched. */
export const isUnfetched = ({ stderr }: Pick<GitResult, 'stderr'>): boolean =>
  /from promisor remote|^fatal: transport '.*' not allowed$/m.test(stderr) // git 2.34 says no more than why
export const FETCHING = 'git diff HEAD   (fetches what this partial clone lacks of HEAD)'

const commandOf = (args: readonly string[]): string =>
  args.find((arg, i) => !arg.startsWith('-') && args[i - 1] !== '-c') ?? ''

const beginning = (stderr: string): string => stderr.trim().split('\n').slice(0, 3).join(' ').slice(0, 500)

/** `store`: it is a repository of ours, whose damage `doctor` mends; false: it is the user's. */
export function gitFailure(args: readonly string[], result: GitResult, { store }: { store?: boolean } = {}): CkptError {
  const denied = notLet(args, result)
  if (denied) return denied
  const said = beginning(result.stderr)
  const isTheSystems = /permission denied/i.test(said)
  const isIndex = !store && BAD_INDEX.test(said)
  const damaged =
    !isTheSystems &&
    !isIndex &&
    /corrupt|unable to read (?!current working directory)|could not read [0-9a-f]{40}|cannot read (blob|tree|object)|missing (blob|tree|commit|object)|bad (tree |blob |commit )?object|not a valid object|broken|inflate/i.test(
      said,
    )
  const mendable = store === true && !isTheSystems && (result.crash !== null || UNREADABLE.test(said))
  const full = damaged ? null : fullDisk(args, result)
  if (full) return full
  const hints: [boolean, string][] = [
    [isIndex, NEW_INDEX],
    [!store && isUnfetched(result), FETCHING],
    [store === true && NEWER.test(said), 'ckpt --version   (made by a newer one, or by hand: its config says so)'],
    [mendable, 'ckpt doctor --fix'],
    [damaged && store === false, 'git fsck   (the repository itself is damaged, not what ckpt keeps)'],
    [damaged, 'ckpt verify'],
    [true, 'ckpt doctor'],
  ]
  return new CkptError(
    damaged || mendable ? 'DAMAGED' : 'INTERNAL',
    `git ${commandOf(args)} failed (${result.crash ?? `exit ${result.code}`}): ${said || 'no message'}. Nothing was changed.`,
    { hints: [hints.find(([holds]) => holds)![1]] },
  )
}
