/** The full scan: disk → tree, with the coverage list. git lists, we look, read and hash; the tree is edited in this process. */
import type { Stats } from 'node:fs'
import type { Beside, DefaultModes, Uncovered } from '../core/beside.ts'
import { formatBeside } from '../core/beside.ts'
import type { Oid } from '../core/ids.ts'
import { ancestorsOf, directoryKey, isRepresentable, parentOf, type RelativePath } from '../core/paths.ts'
import type { Env } from '../env.ts'
import type { Store } from '../git/store.ts'
import type { FileEntry } from '../git/trees.ts'
import type { HotEntry, SnapshotCache } from './cache.ts'
import { compactIndex, readIndex } from './compact.ts'
import { fingerprint, isStats, look, permissions, readPath } from './disk.ts'
import { type Listing, listWorktree, skippedPaths, userIndexPaths } from './listing.ts'
import { type Seed, seedFromUserIndex } from './seed.ts'
import { atRest, walkDirectories } from './walk.ts'
import { excluder, isOurs, type SnapshotLimits, type Worktree } from './worktree.ts'

export interface CaptureInput {
  worktree: Worktree
  store: Store
  limits: SnapshotLimits
  cache: SnapshotCache | null
  /** Tree of the newest checkpoint: what was captured stays captured, even when the cache is lost. */
  lastTree: Oid | null
  /** The user's HEAD tree, to start from at a first snapshot. */
  headTree: Oid | null
  /** Told now and then how many of how many paths are done. */
  progress?: (done: number, all: number) => void
}

export interface Captured {
  tree: Oid
  beside: Beside
  besideOid: Oid
  degraded: boolean
  /** Null: nothing could be listed in time, so there is nothing to remember. */
  cache: SnapshotCache | null
}

interface Scan extends CaptureInput {
  env: Env
  seen: number
  late: () => boolean
  excluded: (path: string) => boolean
  isReal: (directory: string) => boolean
}

/** Uncovered entries whose absence from the tree is a failure, not a rule. */
const DEGRADING = new Set(['unreadable', 'budget', 'unrepresentable'])

/** @throws CkptError when git or the store fails; one odd path never does. */
export async function capture(env: Env, input: CaptureInput): Promise<Captured> {
  const { worktree, store, limits } = input
  const end = env.monotonic() + limits.deadline
  const scan: Scan = {
    ...input,
    env,
    seen: fileSystemClock(env, store),
    late: () => env.monotonic() > end,
    excluded: excluder(limits),
    isReal: realDirectories(env, worktree.root),
  }
  const timer = new AbortController()
  const timeout = setTimeout(() => timer.abort(), limits.deadline)
  try {
    const listing = listWorktree(env, {
      worktree,
      store,
      index: input.cache?.index ?? null,
      limits,
      signal: timer.signal,
    })
    listing.catch(() => undefined) // awaited below; a failure before that must not end the process
    const hot = checkHot(scan)
    const listed = await listing
    if (listed === null) return nothingListed(scan)
    return await captureListed(scan, listed, hot)
  } finally {
    clearTimeout(timeout)
  }
}

/** The file system's own idea of now: the time it gives to a file we make. */
function fileSystemClock(env: Env, store: Store): number {
  const probe = `${store.worktreeDir}/clock.${env.random(4)}.tmp`
  env.files.writeFileSync(probe, '', { mode: 0o600 })
  try {
    return env.files.lstatSync(probe).mtimeMs
  } finally {
    env.files.unlinkSync(probe)
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

/** Hot paths that are as they were, and those to be looked at again. */
function checkHot({ env, cache, worktree, isReal }: Scan): {
  kept: Map<RelativePath, HotEntry>
  doubtful: RelativePath[]
} {
  const kept = new Map<RelativePath, HotEntry>()
  const doubtful: RelativePath[] = []
  for (const [path, entry] of cache?.hot ?? []) {
    const stats = isReal(parentOf(path)) ? look(env, worktree.root, path) : null
    if (isStats(stats) && sameStat(entry, stats) && atRest(entry)) kept.set(path, entry)
    else doubtful.push(path)
  }
  return { kept, doubtful }
}

function sameStat(entry: HotEntry, stats: Stats): boolean {
  return (
    entry.size === stats.size &&
    entry.mtimeMs === stats.mtimeMs &&
    entry.ctimeMs === stats.ctimeMs &&
    entry.ino === stats.ino &&
    entry.mode === permissions(stats) &&
    (entry.type === 'link') === stats.isSymbolicLink()
  )
}

function defaultModes(env: Env): DefaultModes {
  return { file: 0o666 & ~env.umask, exec: 0o777 & ~env.umask, directory: 0o777 & ~env.umask }
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
    cache: null,
  }
}

async function captureListed(scan: Scan, listed: Listing, hot: ReturnType<typeof checkHot>): Promise<Captured> {
  const { env, worktree, store, cache, limits } = scan
  const { root, repository } = worktree
  const { trees } = store
  const stop = new Set<string>([...listed.nested, ...worktree.ours])
  for (const path of listed.ignored) if (path.endsWith('/')) stop.add(path.slice(0, -1))
  const walk = walkDirectories(env, {
    root,
    known: cache?.directories ?? new Map(),
    stop: (directory) => stop.has(directory),
    seen: scan.seen,
    late: scan.late,
  })

  // What has to be looked at, known paths first, so that a budget takes the new ones last.
  const known = new Set<RelativePath>([...hot.doubtful, ...(cache?.recheck ?? [])])
  for (const path of listed.changed) if (!hot.kept.has(path)) known.add(path)
  const rules = JSON.stringify([limits.include, limits.exclude, limits.maxFileSize])
  const user = await readUserIndex(scan)
  for (const path of user.paths) if (!hot.kept.has(path)) known.add(path)
  let base = cache?.tree ?? trees.empty
  if (cache === null && scan.lastTree) {
    base = scan.lastTree
    for (const path of (await trees.files(base)).keys()) known.add(path)
  }
  if (walk.unreadable.length > 0 || (cache && cache.rules !== rules)) {
    for (const path of (await trees.files(base)).keys()) {
      if (scan.excluded(path) || walk.unreadable.some((directory) => path.startsWith(directory))) known.add(path)
    }
  }
  if (cache && cache.rules !== rules && limits.exclude.length === 0)
    for (const path of listed.untracked) known.add(path)
  const fresh = new Set<RelativePath>()
  for (const path of [...listed.untracked, ...listed.included]) {
    if (!known.has(path) && !hot.kept.has(path)) fresh.add(path)
  }

  const seeds =
    cache === null && repository
      ? await seedFromUserIndex(env, { root, repository, store, realParent: (path) => scan.isReal(parentOf(path)) })
      : new Map<RelativePath, Seed>()
  if (cache === null && !scan.lastTree && scan.headTree && (await store.objects.read(scan.headTree))?.type === 'tree') {
    base = scan.headTree
    for (const path of (await trees.files(base)).keys()) known.add(path)
  }

  const taken = await takePaths(scan, { known, fresh, seeds, base, walk })
  const beside = coverage(scan, { listed, walk, taken, notHere: user.notHere })
  const tree = await trees.edit(base, taken.edits)
  const next: SnapshotCache = {
    tree,
    defaults: beside.defaults,
    index: cache?.index ?? null,
    hot: new Map([...hot.kept, ...taken.hot]),
    recheck: taken.dropped,
    modes: taken.modes,
    directories: walk.directories,
    userIndex: user.print,
    notHere: user.notHere,
    rules,
  }
  const gone = listed.changed.filter((path) => !next.hot.has(path))
  return {
    tree,
    beside,
    besideOid: store.objects.write('blob', formatBeside(beside)),
    degraded: walk.cut || beside.uncovered.some((entry) => DEGRADING.has(entry.reason)),
    cache: compactIndex(env, store, root, { cache: next, seeds: taken.seeds, gone, seen: scan.seen }),
  }
}

/** Paths of the user's own index, read again only when it changed: tracked files stay covered whatever is ignored. */
async function readUserIndex({
  env,
  worktree,
  store,
  cache,
}: Scan): Promise<{ print: string | null; paths: RelativePath[]; notHere: RelativePath[] }> {
  const { root, repository } = worktree
  if (!repository) return { print: null, paths: [], notHere: [] }
  const stats = look(env, repository.gitDir, 'index')
  const print = isStats(stats) ? fingerprint(stats) : null
  if (print === null) return { print, paths: [], notHere: [] }
  if (cache && cache.userIndex === print) return { print, paths: [], notHere: cache.notHere }
  const [paths, skipped] = await Promise.all([userIndexPaths(env, root), skippedPaths(env, root)])
  const cold = cache ? new Set<string>(readIndex(env, store, cache).map((entry) => entry.path)) : null
  const unknown = cold ? paths.filter((path) => !cache?.hot.has(path) && !cold.has(path)) : paths
  const notHere = new Set<RelativePath>()
  for (const path of skipped) {
    if (look(env, root, path) !== null) continue
    // The topmost directory that is not there stands for all below it.
    const top = ancestorsOf(path)
      .filter((directory) => look(env, root, directory) === null)
      .at(-1)
    notHere.add(top === undefined ? path : directoryKey(top))
  }
  return { print, paths: unknown, notHere: [...notHere].sort() }
}

interface Taken {
  edits: Map<string, FileEntry | null>
  hot: Map<RelativePath, HotEntry>
  modes: Map<RelativePath, number>
  /** Paths that could not be taken though they may be there. */
  dropped: RelativePath[]
  uncovered: Uncovered[]
  excluded: Map<RelativePath, string>
  /** Seeds that were used. */
  seeds: Map<RelativePath, Seed>
}

interface TakeInput {
  known: Set<RelativePath>
  fresh: Set<RelativePath>
  seeds: Map<RelativePath, Seed>
  base: Oid
  walk: ReturnType<typeof walkDirectories>
}

async function takePaths(scan: Scan, { known, fresh, seeds, base, walk }: TakeInput): Promise<Taken> {
  const { env, worktree, store, cache, limits } = scan
  const { root } = worktree
  const defaults = cache?.defaults ?? defaultModes(env)
  const taken: Taken = {
    edits: new Map(),
    hot: new Map(),
    modes: new Map([...(cache?.modes ?? [])].filter(([path]) => !path.endsWith('/'))),
    dropped: [],
    uncovered: [],
    excluded: new Map(),
    seeds: new Map(),
  }
  const set = async (path: RelativePath, entry: FileEntry | null) => {
    const was = await store.trees.lookup(base, path)
    if (entry === null ? was !== null && was.mode !== '40000' : was?.oid !== entry.oid || was.mode !== entry.mode) {
      taken.edits.set(path, entry)
    }
  }
  const take = async (path: RelativePath, oid: Oid, stats: Stats) => {
    const mode = permissions(stats)
    const link = stats.isSymbolicLink()
    const plain = mode & 0o100 ? defaults.exec : defaults.file
    if (link || mode === plain) taken.modes.delete(path)
    else taken.modes.set(path, mode)
    await set(path, { mode: link ? '120000' : mode & 0o100 ? '100755' : '100644', oid })
  }
  const drop = async (path: RelativePath, entry: Omit<Uncovered, 'path'> | null) => {
    taken.modes.delete(path)
    await set(path, null)
    if (entry === null) return
    taken.dropped.push(path)
    // One word for a directory that cannot be read, not one for each file in it.
    if (!walk.unreadable.some((directory) => path.startsWith(directory))) taken.uncovered.push({ path, ...entry })
  }
  let bytes = 0
  const big = await bigAndTracked(scan, [...known, ...fresh])
  let done = 0
  const all = known.size + fresh.size
  for (const path of [...known, ...[...fresh].sort()]) {
    if (++done % 500 === 0) scan.progress?.(done, all)
    const seed = seeds.get(path)
    if (seed && !scan.excluded(path) && !isOurs(worktree, path)) {
      await take(path, seed.oid, seed.stats)
      taken.seeds.set(path, seed)
      continue
    }
    if (isOurs(worktree, path)) {
      await drop(path, null)
      continue
    }
    const stats = scan.isReal(parentOf(path)) ? look(env, root, path) : null
    if (stats === null || (isStats(stats) && stats.isDirectory())) {
      await drop(path, null)
    } else if (!isStats(stats)) {
      await drop(path, { reason: 'unreadable' })
    } else if (scan.excluded(path)) {
      taken.excluded.set(path, fingerprint(stats))
      await drop(path, { reason: 'ignored' })
      taken.uncovered.pop()
    } else if (!isRepresentable(path)) {
      await drop(path, { reason: 'unrepresentable', print: fingerprint(stats) })
    } else if (stats.isFile() && stats.size > limits.maxFileSize && !big.has(path)) {
      await drop(path, { reason: 'too-large', print: fingerprint(stats) })
    } else if (scan.late() || (stats.isFile() && bytes + stats.size > limits.maxBytes)) {
      await drop(path, { reason: 'budget', print: fingerprint(stats) })
    } else {
      const reading = readPath(env, root, path, store.objects)
      if (reading.kind === 'read') {
        bytes += reading.stats.size
        await take(path, reading.oid, reading.stats)
        taken.hot.set(path, {
          oid: reading.oid,
          type: reading.type,
          size: reading.stats.size,
          mtimeMs: reading.stats.mtimeMs,
          ctimeMs: reading.stats.ctimeMs,
          ino: reading.stats.ino,
          mode: permissions(reading.stats),
          seen: scan.seen,
        })
      } else if (reading.kind === 'unreadable') await drop(path, { reason: 'unreadable', print: fingerprint(stats) })
      else await drop(path, null)
    }
  }
  return taken
}

/** Files over the size limit that are in the user's own index: those are taken at any size. */
async function bigAndTracked(
  { env, worktree, limits }: Scan,
  paths: readonly RelativePath[],
): Promise<Set<RelativePath>> {
  if (!worktree.repository) return new Set()
  const big = paths.filter((path) => {
    const stats = look(env, worktree.root, path)
    return isStats(stats) && stats.isFile() && stats.size > limits.maxFileSize
  })
  if (big.length === 0) return new Set()
  const tracked = new Set(await userIndexPaths(env, worktree.root, big.length < 500 ? big : []))
  return new Set(big.filter((path) => tracked.has(path)))
}

interface CoverageInput {
  listed: Listing
  walk: ReturnType<typeof walkDirectories>
  taken: Taken
  notHere: RelativePath[]
}

const PRINTED_IGNORED = 5000

function coverage({ env, worktree, cache }: Scan, { listed, walk, taken, notHere }: CoverageInput): Beside {
  const { root } = worktree
  const defaults = cache?.defaults ?? defaultModes(env)
  const modes = new Map(taken.modes)
  for (const [directory, entry] of walk.directories) {
    if (directory !== '' && entry.mode !== defaults.directory) modes.set(directoryKey(directory), entry.mode)
  }
  const printOf = (path: string) => {
    const stats = look(env, root, path)
    return isStats(stats) ? fingerprint(stats) : ''
  }
  const uncovered: Uncovered[] = [
    ...taken.uncovered,
    ...listed.nested
      .filter((path) => !isOurs(worktree, path))
      .map((path): Uncovered => ({ path: directoryKey(path), reason: 'nested-repo', print: printOf(`${path}/.git`) })),
    ...walk.dotGit.map((path): Uncovered => ({ path, reason: 'nested-repo', print: printOf(path) })),
    ...walk.specials.map(({ path, print }): Uncovered => ({ path, reason: 'special', print })),
    ...walk.unreadable.map((path): Uncovered => ({ path, reason: 'unreadable' })),
    ...walk.unrepresentable.map((path): Uncovered => ({ path, reason: 'unrepresentable', print: printOf(path) })),
    ...notHere.map((path): Uncovered => ({ path, reason: 'not-here' })),
    ...(walk.cut ? [{ path: '' as RelativePath, reason: 'budget' } as const] : []),
  ]
  const once = new Map(uncovered.map((entry) => [entry.path, entry]))
  const ignored = new Map(taken.excluded)
  const included = new Set(listed.included)
  let printed = 0
  for (const path of listed.ignored) {
    if (isOurs(worktree, path.replace(/\/$/, '')) || included.has(path)) continue
    ignored.set(path, printed++ < PRINTED_IGNORED ? printOf(path) : '')
  }
  return { defaults, modes, emptyDirectories: new Set(walk.empty), uncovered: [...once.values()], ignored }
}
