/** Putting states on disk, one path after the other, in an order in which each finds its room. */
import type { Stats } from 'node:fs'
import { type PathState, sameState } from '../core/state.ts'
import type { Env } from '../env.ts'
import type { ApplyEntry, ApplyInput, ApplyResult } from './apply-entry.ts'
import { behindSymlink, isStats, look, observe } from './disk.ts'
import { ApplyConflict } from './fresh.ts'
import { closeOpened, openAbove } from './opening.ts'
import { isAsExpected, type One, putOne, removeIfEmpty } from './put.ts'

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
  const numbers = new Map(orderEntries(input.whole ?? input.entries).map(({ path }, number) => [path, number]))
  let removed = false
  let at: string | null = null
  let stopped: Stopped | null = null
  const removeDirectories = () => {
    if (removed) return
    removed = true
    for (const directory of input.removable) {
      openAbove(env, { root: input.root, path: directory }, result.opened)
      removeIfEmpty(env, input.root, directory)
    }
  }
  try {
    for (const [index, entry] of ordered.entries()) {
      at = entry.path
      if (index % 100 === 99) await env.progress(`writing: ${index + 1} of ${ordered.length} paths`)
      if (entry.post.kind !== 'absent') removeDirectories()
      // What nobody planned for now may have been closed since.
      if (!input.expected) openAbove(env, { root: input.root, path: entry.path }, result.opened)
      const { state, before } = check(env, input, { entry, unlinked: result.unlinked })
      if (state === 'post') {
        // Opened, it may have the mode that it is to get.
        if (entry.path.endsWith('/') && result.opened.delete(entry.path.slice(0, -1))) result.done.push(entry)
        continue
      }
      if (state === 'other') {
        if (input.expected) throw new ApplyConflict(entry.path, 'changed at this very moment')
        result.left.push(entry.path)
        continue
      }
      const number = numbers.get(entry.path)!
      if (await applied(env, input, { entry, number, result, before })) result.done.push(entry)
      else result.left.push(entry.path)
    }
    removeDirectories()
  } catch (error) {
    stopped = new Stopped(error, at, result)
  }
  const failed = closeOpened(env, input.root, result.opened)
  if (failed) stopped ??= new Stopped(failed.reason, failed.path, result)
  if (stopped) throw stopped
  return result
}

/** False, in recovery only: something else is in the way, and stays. */
async function applied(env: Env, input: ApplyInput, one: One): Promise<boolean> {
  try {
    await putOne(env, input, one)
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
