/** Putting states on disk, one path after the other, in an order in which each finds its room. */
import type { Stats } from 'node:fs'
import { type PathState, sameState } from '../core/state.ts'
import type { Env } from '../env.ts'
import { isOfMachine } from '../git/denied.ts'
import { removeDrafts, TOGETHER } from '../git/whole-file.ts'
import type { ApplyEntry, ApplyInput, ApplyResult } from './apply-entry.ts'
import { behindSymlink, isStats, look, observe } from './disk.ts'
import { ApplyConflict, CHANGED } from './fresh.ts'
import { closeOpened, openAbove } from './opening.ts'
import { type Begun, begin, isAsExpected, type One, place, removeIfEmpty } from './put.ts'

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
  const applying = new Applying(env, input)
  const { result } = applying
  let stopped: Stopped | null = null
  try {
    await applying.all()
  } catch (error) {
    stopped = new Stopped(error, applying.at, result)
  }
  await applying.end()
  const failed = closeOpened(env, input.root, result.opened)
  if (failed) stopped ??= new Stopped(failed.reason, failed.path, result)
  if (stopped) throw stopped
  return result
}

/** Bytes that wait for the disk at most, as long as they are not those of one file. */
const MOST_WAITING = 16 * 1024 * 1024

class Applying {
  readonly #env: Env
  readonly #input: ApplyInput
  /** What goes to its place next, first come first. */
  readonly #begun: Begun[] = []
  #hasRemoved = false
  readonly result: ApplyResult = nothingDone()
  /** The path that it is at. */
  at: string | null = null

  constructor(env: Env, input: ApplyInput) {
    this.#env = env
    this.#input = input
  }

  async all(): Promise<void> {
    const { entries, whole = entries } = this.#input
    const ordered = orderEntries(entries)
    const numbers = new Map(orderEntries(whole).map(({ path }, number) => [path, number]))
    for (const [index, entry] of ordered.entries()) {
      if (index % 100 === 99) await this.#env.progress(`writing: ${index + 1} of ${ordered.length} paths`)
      // A directory that is opened for the files in it is closed behind them.
      if (entry.post.kind !== 'present') await this.#placeAllBut(0)
      if (entry.post.kind !== 'absent') this.#removeDirectories()
      await this.#one(entry, numbers.get(entry.path)!)
    }
    await this.#placeAllBut(0)
    this.#removeDirectories()
  }

  /** Where it stopped early: nothing goes on behind our back, and nothing takes up the room that may be missing. */
  async end(): Promise<void> {
    for (const { onDisk, fresh } of this.#begun) {
      await onDisk
      removeDrafts(this.#env, [fresh])
    }
  }

  async #one(entry: ApplyEntry, number: number): Promise<void> {
    const env = this.#env
    const input = this.#input
    const { root, expected } = input
    const { result } = this
    const { path } = entry
    this.at = path
    // What nobody planned for now may have been closed since.
    if (!expected) openAbove(env, { root, path }, result.opened)
    const { state, before } = check(env, input, { entry, unlinked: result.unlinked })
    if (state === 'post') {
      // Opened, it may have the mode that it is to get.
      if (path.endsWith('/') && result.opened.delete(path.slice(0, -1))) result.done.push(entry)
      return
    }
    if (state === 'other') {
      if (expected) throw new ApplyConflict(path, CHANGED)
      result.left.push(path)
      return
    }
    await this.#step(entry, () => this.#begin({ entry, number, result, before }))
    // The other names of an inode are looked at when this one is off it.
    await this.#placeAllBut(before && before.nlink > 1 ? 0 : TOGETHER)
  }

  /** What waits takes up room, and files that may be open: where those are short, it goes to its place first. */
  async #begin(one: One): Promise<Begun | null> {
    try {
      return await begin(this.#env, this.#input, one)
    } catch (error) {
      if (this.#begun.length === 0 || !isOfMachine(error)) throw error
      await this.#placeAllBut(0)
      this.at = one.entry.path
      return begin(this.#env, this.#input, one)
    }
  }

  /** Places what was begun, but for the last few. */
  async #placeAllBut(files: number): Promise<void> {
    const isMuch = () => this.#begun.reduce((sum, { bytes }) => sum + bytes, 0) > MOST_WAITING
    while (this.#begun.length > files || isMuch()) {
      const begun = this.#begun.shift()!
      await this.#step(begun.entry, () => place(this.#env, this.#input, begun))
    }
  }

  async #step(entry: ApplyEntry, take: () => Promise<Begun | null>): Promise<void> {
    this.at = entry.path
    try {
      const begun = await take()
      if (begun) this.#begun.push(begun)
      else this.result.done.push(entry)
    } catch (error) {
      // In recovery only: something else is in the way, and stays.
      if (this.#input.expected || !(error instanceof ApplyConflict)) throw error
      this.result.left.push(entry.path)
    }
  }

  #removeDirectories(): void {
    if (this.#hasRemoved) return
    this.#hasRemoved = true
    const { root, removable } = this.#input
    for (const directory of removable) {
      this.at = directory
      openAbove(this.#env, { root, path: directory }, this.result.opened)
      removeIfEmpty(this.#env, root, directory)
    }
  }
}

/**
 * Brings back what was there before. What was written to since is left; its paths are the result.
 * @throws Stopped
 */
export async function takeBack(env: Env, input: ApplyInput, { done, made }: ApplyResult): Promise<string[]> {
  const { expected: _, ...rest } = input
  const entries = done.map(({ path, pre, post }) => ({ path, pre: post, post: pre }))
  return (await applyEntries(env, { ...rest, entries, whole: input.entries, removable: made.toReversed() })).left
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
  const now = observe(env, { root, path: entry.path }, store.objects)
  if (sameState(now, entry.post)) return { state: 'post', before }
  // What came between the two looks is not looked at yet.
  if (sameState(now, entry.pre)) return { state: now.kind === 'present' && before === null ? 'other' : 'pre', before }
  if (isDirectory) return { state: isSoft(now, entry) ? 'pre' : 'other', before }
  const isTaken = now.kind === 'unknown' && now.reason === 'directory'
  // A directory is no file that is to go.
  if (isTaken && entry.post.kind === 'absent') return { state: 'post', before }
  // A directory where a file is to come is empty by now, or the rename will say so.
  const makesRoom = isTaken && entry.pre.kind === 'absent'
  return { state: makesRoom ? 'pre' : 'other', before }
}

/** Directories are made or emptied by the files in them, and opened for these; a mode that somebody gave one stays. */
function isSoft(now: PathState, { pre, post }: ApplyEntry): boolean {
  if (now.kind !== 'directory' || pre.kind !== 'directory' || post.kind !== 'directory') return now.kind !== 'unknown'
  return [pre, post].some(({ mode }) => now.mode === (mode | 0o700))
}
