/** A scan, full or of what changed: disk → tree, with the coverage list. git lists, we look, read and hash; the tree is edited in this process. */
import type { Beside } from '../core/beside.ts'
import { formatBeside, sameBeside } from '../core/beside.ts'
import { onAbort } from '../core/cancel.ts'
import { MovedMeanwhile } from '../core/errors.ts'
import type { Oid } from '../core/ids.ts'
import { isWithin, parentOf, type RelativePath } from '../core/paths.ts'
import type { Env } from '../env.ts'
import { fileClock } from '../git/file-clock.ts'
import type { SnapshotCache } from './cache.ts'
import { compactIndex } from './compact.ts'
import { coverage } from './coverage.ts'
import { Directories, type DirectoryEntry } from './directories.ts'
import { isStats, look } from './disk.ts'
import { rulesOf } from './ignored.ts'
import { checkHot, type Known, whatIsKnown } from './known.ts'
import { lookAtLinked } from './linked.ts'
import { fullListing, type Listing } from './listing.ts'
import { lookAtDirectories, wasMoved } from './moved.ts'
import { hintedListing, ignoreRules, narrowListing, outsideRules } from './narrow.ts'
import { pathsToTake } from './paths-to-take.ts'
import { coveredWhenBack } from './returning.ts'
import { type CaptureInput, defaultModes, type FirstLook, type Scan } from './scan.ts'
import { nobodyNeedWatch, stopsFor } from './stops.ts'
import { type Taken, takePaths } from './take.ts'
import { readUserIndex } from './user-index.ts'
import { type WalkResult, walkDirectories } from './walk.ts'
import { excluder } from './worktree.ts'

export interface Captured {
  tree: Oid
  beside: Beside
  besideOid: Oid
  degraded: boolean
  /** `fast`: only what a watcher named was looked at. */
  mode: 'fast' | 'scan'
  /** Null: nothing could be listed in time, so there is nothing to remember. */
  cache: SnapshotCache | null
}

/** Uncovered entries whose absence from the tree is a failure, not a rule. */
const DEGRADING = new Set(['unreadable', 'budget', 'unrepresentable'])

/** So often it is looked at again where directories and files change places all the while. */
const ATTEMPTS = 5

/** So often where what was seen may not have been there at once. */
const STEADY_ATTEMPTS = 3

/** @throws CkptError when git or the store fails; one odd path never does. */
export async function capture(env: Env, input: CaptureInput): Promise<Captured> {
  const end = env.monotonic() + input.limits.deadline
  const { hint: _, rules: __, ...unhinted } = input
  const ignoreFiles = await input.worktree.ignoreFiles()
  for (let attempt = 1; ; attempt++) {
    const began = env.monotonic()
    // A first snapshot has all to read, and a worktree in which things move all the while is to have its snapshots too.
    const isPatient = () => input.cache !== null && attempt < STEADY_ATTEMPTS && 2 * env.monotonic() - began < end
    try {
      return await captureOnce(env, attempt === 1 ? input : unhinted, { ignoreFiles, end, isPatient })
    } catch (error) {
      if (!(error instanceof MovedMeanwhile) || attempt === ATTEMPTS) throw error
    }
  }
}

interface Attempt {
  ignoreFiles: readonly string[]
  /** Of the monotonic clock. */
  end: number
  /** There is time to look again, if what was seen does not go together. */
  isPatient: () => boolean
}

async function captureOnce(env: Env, input: CaptureInput, { ignoreFiles, end, isPatient }: Attempt): Promise<Captured> {
  const { worktree, store, limits } = input
  const scan: Scan = {
    ...input,
    env,
    ignoreFiles,
    seen: fileClock(env, store.worktreeDir),
    late: () => env.monotonic() > end || env.signal?.aborted === true,
    excluded: excluder(limits),
    isReal: realDirectories(env, worktree.root),
    firstLook: firstLook(env, input),
    linked: lookAtLinked(env, input),
  }
  const timer = new AbortController()
  const timeout = setTimeout(() => timer.abort(), Math.max(1, end - env.monotonic()))
  const unheed = onAbort(env.signal, () => timer.abort())
  try {
    const listing = listWorktree(scan, timer.signal)
    listing.catch(() => undefined) // awaited below; a failure before that must not end the process
    if (!scan.hint) scan.firstLook()
    const hot = checkHot(scan)
    const vain = new AbortController()
    const known = whatIsKnown(scan, vain.signal)
    known.catch(() => undefined) // likewise
    const listed = await listing
    if (listed === null) {
      vain.abort()
      await known
      return nothingListed(scan)
    }
    // A watcher names a directory that went, not what was in it: its word counts only where the listing rests on it too.
    const { hint, ...unhinted } = scan
    const checked = hint && !listed.narrow?.only ? checkHot(unhinted) : hot
    return await captureListed(scan, { listed, hot: checked, known, isPatient })
  } finally {
    clearTimeout(timeout)
    unheed()
  }
}

/** Whether a directory and all above it are directories, not symlinks; remembered for one scan. */
function realDirectories(env: Env, root: string): (directory: string) => boolean {
  const known = new Map<string, boolean>([['', true]])
  const isReal = (directory: string): boolean => {
    const cached = known.get(directory)
    if (cached !== undefined) return cached
    let real = isReal(parentOf(directory))
    if (real) {
      const stats = look(env, root, directory)
      // What cannot be looked at is not called gone: the path itself will say so.
      real = stats !== null && (!isStats(stats) || stats.isDirectory())
    }
    known.set(directory, real)
    return real
  }
  return isReal
}

function firstLook(env: Env, { worktree, cache }: CaptureInput): Scan['firstLook'] {
  let looked: FirstLook | null = null
  return () => {
    looked ??= lookAtDirectories(env, worktree.root, cache?.directories.keys() ?? [])
    return looked
  }
}

/** The deadline passed before anything was listed: a checkpoint that claims nothing, never an older tree. */
function nothingListed({ env, store, cache }: Scan): Captured {
  const beside: Beside = {
    defaults: cache?.defaults ?? defaultModes(env),
    modes: new Map(),
    emptyDirectories: new Set(),
    uncovered: [{ path: '' as RelativePath, reason: 'budget' }],
    ignored: new Map(),
  }
  return {
    tree: store.objects.write('tree', Buffer.alloc(0)),
    beside,
    besideOid: store.objects.write('blob', formatBeside(beside)),
    degraded: true,
    mode: 'scan',
    cache: null,
  }
}

/** The narrowest listing that is enough. Null: the signal came first. */
async function listWorktree(scan: Scan, signal: AbortSignal): Promise<Listing | null> {
  const narrow = (scan.hint && (await hintedListing(scan, signal))) || (await narrowListing(scan, signal))
  if (signal.aborted) return null
  if (narrow) return narrow
  const { stats } = scan.firstLook()
  const full = await fullListing(scan.env, { ...scan, index: scan.cache?.index ?? null, signal })
  return full && { ...full, stats }
}

async function walkListed(scan: Scan, listed: Listing, stops: readonly RelativePath[]): Promise<WalkResult> {
  const { env, worktree, cache } = scan
  const stop = new Set<string>([...stops, ...listed.nested, ...worktree.ours])
  const plain = (cache?.defaults ?? defaultModes(env)).directory
  const known = cache?.directories ?? new Directories(plain)
  const { narrow } = listed
  // A directory that came after the listing was made waits for the next one: nobody asked what is ignored below it.
  const unasked = (directory: string) =>
    narrow !== undefined && !known.has(directory) && !narrow.fresh.some((fresh) => isWithin(directory, fresh))
  const walk = walkDirectories(env, {
    root: worktree.root,
    known,
    plain,
    stop: (directory) => stop.has(directory) || unasked(directory),
    seen: scan.seen,
    late: scan.late,
    ...(narrow ? { stats: listed.stats, visited: narrow.visited } : {}),
    ...(narrow?.only ? { only: narrow.only } : {}),
  })
  // What is read here for the first time, or lies where another one did, may have come between the listing and the walk,
  // with all that it holds, none of which shows that it moved: the next scan reads it again. So it does with what had
  // changed, if git listed it: it may not have been there just then.
  const doubtful = narrow
    ? walk.fresh
    : [...walk.directories].flatMap(([at, entry]) => (isSettled(entry, known.get(at)) ? [] : [at]))
  for (const directory of doubtful) walk.directories.doubt(directory)
  return walk
}

/** As it was known, or doubted, and the same directory still. */
const isSettled = (entry: DirectoryEntry, was: DirectoryEntry | undefined): boolean =>
  entry === was || (was?.seen === 0 && was.ino === entry.ino)

/** What git listed last time and now does not, beside what is covered. */
function notListed({ ignored, nested }: Listing, cache: SnapshotCache | null): RelativePath[] {
  if (!cache) return []
  const now = new Set([...ignored, ...nested])
  return [...cache.listing.ignored, ...cache.listing.nested].filter((path) => !now.has(path))
}

interface Found {
  listed: Listing
  hot: ReturnType<typeof checkHot>
  known: Promise<Known>
  isPatient: Attempt['isPatient']
}

async function captureListed(scan: Scan, { listed, hot, known: knowing, isPatient }: Found): Promise<Captured> {
  const { env, worktree, store, cache } = scan
  const { root } = worktree
  const { trees } = store
  const stops = await stopsFor(scan, listed)
  const walk = await walkListed(scan, listed, stops)
  // A hinted listing saw no rule change but what came with a directory that is new: they need not be looked at one by one.
  const bringsRules = walk.fresh.some((directory) => walk.directories.get(directory)?.rules)
  const sameRules = cache && listed.narrow?.only && !bringsRules ? cache.listing : null
  const vouched = sameRules && rulesOf({ listing: sameRules })
  const rules = sameRules?.rules ?? ignoreRules(scan, walk.directories)
  const outside = sameRules?.outside ?? outsideRules(scan)
  const otherRules = cache !== null && (cache.listing.rules !== rules || cache.listing.outside !== outside)
  const { base, unvouched, seeds, user: asked } = await knowing
  // What is tracked and was not here while other rules held is covered when it is back, whatever they say of it now.
  const user = otherRules && asked.paths.length === 0 ? await readUserIndex({ ...scan, cache: null }) : asked

  const { unreadable } = walk
  const excludes = otherRules && scan.limits.exclude.length > 0
  const { known, fresh } = await pathsToTake(scan, {
    listed,
    hot,
    base,
    unvouched,
    user,
    unreadable,
    excludes,
    vouched,
  })
  const taken = await takePaths(scan, { known, fresh, seeds, base, unvouched, walk })
  const unlisted = listed.narrow?.gone ?? notListed(listed, cache)
  if (isPatient() && wasMoved(scan, { walk, taken, gone: unlisted, first: listed.stats })) {
    throw new MovedMeanwhile('Files are moved from place to place.')
  }
  // Of another name than the one that is new no event tells.
  if (listed.narrow?.only && [...taken.linked.keys()].some((path) => !cache?.linked.has(path)))
    throw new MovedMeanwhile('A file has other names.')
  const tree = await trees.edit(base, taken.edits)
  const unwatched = await nobodyNeedWatch(scan, { listed, stops, tree, edits: taken.edits })
  const unread = walk.unreadable.map((path) => path.slice(0, -1) as RelativePath)
  const passedBy = [...stops, ...listed.nested, ...unread].filter((directory) => !unwatched.has(directory))
  const said = await say(scan, await coverage(scan, { listed, walk, taken, notHere: user.notHere, passedBy, tree }))
  const { beside } = said
  const left = [...taken.edits].flatMap(([path, entry]) => (entry === null ? [path as RelativePath] : []))
  // What was not there when it was looked for may be back by now, with nothing about its directory that shows it.
  for (const path of [...left, ...taken.absent.filter((one) => fresh.has(one)), ...unlisted])
    walk.directories.doubt(parentOf(path))
  const next: SnapshotCache = {
    tree,
    defaults: beside.defaults,
    index: cache?.index ?? null,
    hot: new Map([...hot.kept, ...taken.hot]),
    recheck: [...taken.dropped, ...(await coveredWhenBack(scan, { absent: taken.absent, base, user, rules: vouched }))],
    vanished: cache?.index ? [...new Set([...cache.vanished, ...left])].filter((path) => !taken.edits.get(path)) : [],
    modes: taken.modes,
    linked: asFirstSeen(scan, taken),
    directories: walk.directories,
    userIndex: user.print === null ? null : { print: user.print, names: user.names, notHere: user.notHere },
    listing: {
      ignored: listed.ignored,
      nested: listed.nested,
      rules,
      outside,
      stops,
      unwatched,
      unreadable: walk.unreadable.length > 0,
      prints: beside.ignored,
    },
    said,
  }
  const degraded = walk.cut || beside.uncovered.some((entry) => DEGRADING.has(entry.reason))
  return {
    tree,
    beside,
    besideOid: said.oid,
    degraded,
    mode: listed.narrow?.only ? 'fast' : 'scan',
    // A walk that was cut knows nothing of the directories it did not reach.
    cache: walk.cut ? null : compactIndex(env, store, { root, cache: next, seeds: taken.seeds, seen: scan.seen }),
  }
}

/** What was not read is as it was before anything was looked at. */
function asFirstSeen(scan: Scan, { linked, hot, seeds }: Taken): SnapshotCache['linked'] {
  const isRead = (path: RelativePath) => hot.has(path) || seeds.has(path)
  return new Map([...linked].map(([path, print]) => [path, isRead(path) ? print : (scan.linked.get(path) ?? print)]))
}

/** What is beside the tree, as an object: the last snapshot's if that says the same. */
async function say({ store, cache }: Scan, beside: Beside): Promise<NonNullable<SnapshotCache['said']>> {
  const last = cache?.said
  if (last && sameBeside(last.beside, beside) && (await store.objects.has(last.oid))) return last
  return { beside, oid: store.objects.write('blob', formatBeside(beside)) }
}
