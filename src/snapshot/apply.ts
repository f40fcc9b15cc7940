/**
 * Putting states on disk, one path after the other, each guarded: the new content is written elsewhere, the path is
 * looked at once more right before the rename, and the old inode after it.
 */
import type { Stats } from 'node:fs'
import { parentOf } from '../core/paths.ts'
import { type PathState, sameState } from '../core/state.ts'
import { type Env, errno } from '../env.ts'
import type { Store } from '../git/store.ts'
import { dropAside, remove, temporaryPath, verifyAside } from './aside.ts'
import {
  behindSymlink,
  directoryAbove,
  fingerprint,
  isSameButCtime,
  isStats,
  look,
  native,
  needsOpening,
  observe,
  permissions,
  withoutCtime,
} from './disk.ts'
import { ApplyConflict, writeFresh, writeLink } from './fresh.ts'

export interface ApplyEntry {
  path: string
  pre: PathState
  post: PathState
}

export interface ApplyInput {
  root: string
  store: Store
  nonce: string
  entries: readonly ApplyEntry[]
  /** Deepest first. */
  removable: readonly string[]
  directoryMode: number
  /**
   * What lstat said of each path when the plan was made (null: nothing there). Without it (recovery) each path is read
   * and compared with the two states.
   */
  expected?: ReadonlyMap<string, string | null>
}

export interface ApplyResult {
  done: ApplyEntry[]
  /** Recovery only: paths that hold neither state, left as they are. */
  left: string[]
  /** Milliseconds spent waiting for the disk. */
  syncMs: number
  /** Inodes that had other names: ours took one away, so their ctime is no sign of a change. */
  unlinked: Set<number>
  /** Directories that were made for the files in them, outermost first. */
  made: string[]
  /** Directories of our own that were opened to write into them: the modes they had, and get back at the end. */
  opened: Map<string, number>
  /** Our own directory is on another mount, even where it is one file system: temporary files lie beside their targets. */
  beside: boolean
}

/** Carrying out stopped in the middle: why, at which path, and what was done until then. */
export class Stopped extends Error {
  readonly reason: unknown
  readonly path: string | null
  readonly result: ApplyResult
  constructor(reason: unknown, path: string | null, result: ApplyResult) {
    super('stopped', { cause: reason })
    this.reason = reason
    this.path = path
    this.result = result
  }
}

const nothingDone = (): ApplyResult => ({
  done: [],
  left: [],
  syncMs: 0,
  unlinked: new Set(),
  made: [],
  opened: new Map(),
  beside: false,
})

/** What failed before anything was done has nothing to take back. */
export const asStopped = (error: unknown): Stopped =>
  error instanceof Stopped ? error : new Stopped(error, null, nothingDone())

/** The order in which entries can be carried out: what goes first makes room for what comes. */
export function orderEntries(entries: readonly ApplyEntry[]): ApplyEntry[] {
  const down = (a: ApplyEntry, b: ApplyEntry) => (a.path < b.path ? 1 : -1)
  const up = (a: ApplyEntry, b: ApplyEntry) => (a.path < b.path ? -1 : 1)
  const isDirectory = (entry: ApplyEntry) => entry.path.endsWith('/')
  const goes = entries.filter((entry) => entry.post.kind === 'absent')
  const comes = entries.filter((entry) => entry.post.kind !== 'absent')
  return [
    ...goes.filter((entry) => !isDirectory(entry)).sort(down),
    ...goes.filter(isDirectory).sort(down),
    ...comes.filter((entry) => isDirectory(entry) && entry.pre.kind !== 'directory').sort(up),
    ...comes.filter((entry) => !isDirectory(entry)).sort(up),
    ...comes.filter((entry) => isDirectory(entry) && entry.pre.kind === 'directory').sort(down),
  ]
}

/**
 * Carries out entries. With `expected`, the first path that is not as planned ends it; in recovery such paths are left and
 * listed.
 * @throws Stopped
 */
export async function applyEntries(env: Env, input: ApplyInput): Promise<ApplyResult> {
  const result: ApplyResult = nothingDone()
  const ordered = orderEntries(input.entries)
  let removed = false
  let at: string | null = null
  const removeDirectories = () => {
    if (removed) return
    removed = true
    for (const directory of input.removable) {
      openAbove(env, input.root, directory, result)
      removeIfEmpty(env, input.root, directory)
    }
  }
  try {
    for (const [number, entry] of ordered.entries()) {
      at = entry.path
      if (number % 100 === 99) await env.progress(`writing: ${number + 1} of ${ordered.length} paths`)
      if (entry.post.kind !== 'absent') removeDirectories()
      // What nobody planned for now may have been closed since.
      if (!input.expected) openAbove(env, input.root, entry.path, result)
      const { state, before } = check(env, input, { entry, unlinked: result.unlinked })
      if (state === 'post') {
        // Opened, it may have the mode that it is to get.
        if (result.opened.delete(entry.path.slice(0, -1))) result.done.push(entry)
        continue
      }
      if (state === 'other') {
        if (input.expected) throw new ApplyConflict(entry.path, 'changed at this very moment')
        result.left.push(entry.path)
        continue
      }
      if (await applied(env, input, { entry, number, result, before })) result.done.push(entry)
      else result.left.push(entry.path)
    }
    removeDirectories()
    return result
  } catch (error) {
    throw new Stopped(error, at, result)
  } finally {
    closeOpened(env, input.root, result)
  }
}

/** Gives ourselves permission to change what the nearest directory above a path holds, if it is ours. */
function openAbove(env: Env, root: string, path: string, { opened }: ApplyResult): void {
  const above = directoryAbove(env, root, path)
  if (!above || !needsOpening(env, above.stats)) return
  opened.set(above.at, permissions(above.stats))
  env.files.chmodSync(native(root, above.at), permissions(above.stats) | 0o700)
}

/** Back to their modes, but for those that have another one by now. */
function closeOpened(env: Env, root: string, { opened }: ApplyResult): void {
  for (const [directory, mode] of [...opened].reverse()) {
    const stats = behindSymlink(env, root, directory) ? null : look(env, root, directory)
    if (isStats(stats) && stats.isDirectory() && permissions(stats) === (mode | 0o700))
      env.files.chmodSync(native(root, directory), mode)
  }
}

/** False, in recovery only: something else is in the way, and stays. */
async function applied(env: Env, input: ApplyInput, one: One): Promise<boolean> {
  try {
    await applyOne(env, input, one)
    return true
  } catch (error) {
    if (input.expected || !(error instanceof ApplyConflict)) throw error
    return false
  }
}

/**
 * Brings back what was there before. What was written to since is left; its paths are the result.
 * @throws Stopped
 */
export async function takeBack(env: Env, input: ApplyInput, { done, made }: ApplyResult): Promise<string[]> {
  const { expected: _, ...rest } = input
  const entries = done.map(({ path, pre, post }) => ({ path, pre: post, post: pre }))
  return (await applyEntries(env, { ...rest, entries, removable: made.toReversed() })).left
}

/** `before` is what lstat said before the path was compared: what it still has to say when the path is replaced. */
function check(
  env: Env,
  { root, store, expected }: ApplyInput,
  { entry, unlinked }: { entry: ApplyEntry; unlinked: ReadonlySet<number> },
): { state: 'pre' | 'post' | 'other'; before: Stats | null } {
  const isDirectory = entry.path.endsWith('/')
  const stats = isDirectory || behindSymlink(env, root, entry.path) ? null : look(env, root, entry.path)
  const before = isStats(stats) && !stats.isDirectory() ? stats : null
  if (expected && !isDirectory)
    return { state: isAsExpected(stats, expected.get(entry.path) ?? null, unlinked) ? 'pre' : 'other', before }
  const now = observe(env, root, entry.path, store.objects)
  if (sameState(now, entry.post)) return { state: 'post', before }
  if (sameState(now, entry.pre)) return { state: 'pre', before }
  if (isDirectory) return { state: isSoft(now, entry) ? 'pre' : 'other', before }
  // A directory where a file is to come is empty by now, or the rename will say so.
  const makesRoom = now.kind === 'unknown' && now.reason === 'directory' && entry.pre.kind === 'absent'
  return { state: makesRoom ? 'pre' : 'other', before }
}

/** Directories are made or emptied by the files in them, and opened for these; a mode that somebody gave one stays. */
function isSoft(now: PathState, { pre, post }: ApplyEntry): boolean {
  if (now.kind !== 'directory' || pre.kind !== 'directory' || post.kind !== 'directory') return now.kind !== 'unknown'
  return [pre, post].some(({ mode }) => now.mode === (mode | 0o700))
}

function isAsExpected(stats: ReturnType<typeof look>, expected: string | null, unlinked: ReadonlySet<number>): boolean {
  if (stats !== null && !isStats(stats)) return false
  if (stats === null || stats.isDirectory()) return expected === null
  const print = fingerprint(stats)
  if (print === expected) return true
  return unlinked.has(stats.ino) && expected !== null && withoutCtime(print) === withoutCtime(expected)
}

interface One {
  entry: ApplyEntry
  number: number
  result: ApplyResult
  before: Stats | null
}

async function applyOne(env: Env, input: ApplyInput, one: One): Promise<void> {
  try {
    await applyFrom(env, input, one)
  } catch (error) {
    if (errno(error) !== 'EXDEV' || one.result.beside) throw error
    // Nothing was moved; only what was to be is written.
    remove(env, temporaryPath(env, input, one.entry.path, { suffix: `${one.number}.new`, beside: false }))
    one.result.beside = true
    await applyFrom(env, input, one)
  }
}

async function applyFrom(env: Env, input: ApplyInput, { entry, number, result, before }: One): Promise<void> {
  const { root } = input
  const { beside } = result
  const { path, pre, post } = entry
  const at = native(root, path)
  openAbove(env, root, path, result)
  if (path.endsWith('/')) {
    applyDirectory(env, input, entry, result)
    return
  }
  if (post.kind === 'absent') {
    if (before === null) return
    const old = temporaryPath(env, input, path, { suffix: `${number}.old`, beside })
    if (before.nlink > 1) result.unlinked.add(before.ino)
    env.files.renameSync(at, old)
    verifyAside(env, { old, at, path, before })
    return
  }
  if (post.kind !== 'present') return
  if (
    pre.kind === 'present' &&
    pre.type === 'file' &&
    post.type === 'file' &&
    pre.oid === post.oid &&
    before?.nlink === 1
  ) {
    env.files.chmodSync(at, post.mode)
    return
  }
  makeParents(env, input, path, result)
  const fresh = temporaryPath(env, input, path, { suffix: `${number}.new`, beside })
  const bytes = await input.store.objects.get(post.oid, 'blob')
  if (post.type === 'link') writeLink(env, fresh, { bytes, owner: before, path })
  else result.syncMs += writeFresh(env, fresh, { bytes, mode: post.mode, owner: before, path })
  const old = temporaryPath(env, input, path, { suffix: `${number}.old`, beside })
  putInPlace(env, input, { fresh, old, at, path, before })
  if (before && before.nlink > 1) result.unlinked.add(before.ino)
}

function applyDirectory(env: Env, input: ApplyInput, { path, pre, post }: ApplyEntry, result: ApplyResult): void {
  const { root } = input
  const at = native(root, path)
  if (post.kind === 'absent') {
    removeIfEmpty(env, root, path)
    return
  }
  if (post.kind !== 'directory') return
  const bare = path.slice(0, -1)
  makeParents(env, input, bare, result)
  const stats = look(env, root, bare)
  if (stats === null) env.files.mkdirSync(at)
  else if (!isStats(stats) || !stats.isDirectory()) throw new ApplyConflict(path, 'a file is in its place')
  // What comes into a new one needs it open; it gets its mode at the end.
  const open = pre.kind === 'directory' ? post.mode : post.mode | 0o700
  if (open === post.mode) result.opened.delete(bare)
  else result.opened.set(bare, post.mode)
  env.files.chmodSync(at, open)
}

function removeIfEmpty(env: Env, root: string, directory: string): void {
  try {
    if (!behindSymlink(env, root, `${directory}${directory.endsWith('/') ? '' : '/'}x`))
      env.files.rmdirSync(native(root, directory))
  } catch (error) {
    const code = errno(error)
    // Somebody's files are in it, or it is no directory any more: then it stays.
    if (code !== 'ENOTEMPTY' && code !== 'ENOENT' && code !== 'EEXIST' && code !== 'ENOTDIR' && code !== 'EBUSY')
      throw error
  }
}

function makeParents(env: Env, { root, directoryMode }: ApplyInput, path: string, { made }: ApplyResult): void {
  if (behindSymlink(env, root, path))
    throw new ApplyConflict(path, 'a file or a symlink is in the place of its directory')
  const missing: string[] = []
  for (let at = parentOf(path); at !== ''; at = parentOf(at)) {
    const stats = look(env, root, at)
    if (stats !== null && !isStats(stats))
      throw new ApplyConflict(path, `its directory cannot be reached (${stats.failed})`)
    if (stats?.isDirectory()) break
    if (stats !== null) throw new ApplyConflict(path, 'a file or a symlink is in the place of its directory')
    missing.unshift(at)
  }
  for (const directory of missing) {
    const at = native(root, directory)
    env.files.mkdirSync(at)
    made.push(directory)
    env.files.chmodSync(at, directoryMode)
  }
}

interface Placing {
  fresh: string | Buffer
  /** What the old inode is linked to. */
  old: string | Buffer
  at: string | Buffer
  path: string
  before: Stats | null
}

function putInPlace(env: Env, input: ApplyInput, { fresh, old, at, path, before }: Placing): void {
  const { files } = env
  if (!isAsExpected(look(env, input.root, path), before && fingerprint(before), new Set())) {
    files.unlinkSync(fresh)
    throw new ApplyConflict(path, 'changed at this very moment')
  }
  if (before === null) {
    // Nothing is there: a link fails if something came meanwhile, a rename would not.
    try {
      files.linkSync(fresh, at)
      files.unlinkSync(fresh)
    } catch (error) {
      const code = errno(error)
      if (code === 'EEXIST') {
        files.unlinkSync(fresh)
        throw new ApplyConflict(path, 'something else was made there at this very moment')
      }
      if (code !== 'EPERM' && code !== 'EMLINK' && code !== 'ENOTSUP') throw error
      env.files.renameSync(fresh, at)
    }
    return
  }
  let linked = true
  try {
    files.linkSync(at, old)
  } catch (error) {
    const code = errno(error)
    if (code !== 'EPERM' && code !== 'EMLINK' && code !== 'ENOTSUP') throw error
    linked = false // a file system, or an owner, without links: the look right before is all there is
  }
  // Once more, for the link took its time: a file that took its place meanwhile would be replaced unseen.
  const now = look(env, input.root, path)
  if (!isStats(now) || !isSameButCtime(now, before)) {
    files.unlinkSync(fresh)
    if (linked) dropAside(env, old, before)
    throw new ApplyConflict(path, 'changed at this very moment')
  }
  files.renameSync(fresh, at)
  if (linked) verifyAside(env, { old, at, path, before })
}
