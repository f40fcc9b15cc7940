/** Paths into the tree: looked at, checked against the limits, read and hashed. */
import type { Stats } from 'node:fs'
import type { Uncovered } from '../core/beside.ts'
import type { Oid } from '../core/ids.ts'
import { isRepresentable, parentOf, type RelativePath } from '../core/paths.ts'
import type { TreeEntry } from '../core/tree-object.ts'
import type { FileEntry } from '../git/trees.ts'
import type { HotEntry } from './cache.ts'
import { fingerprint, isStats, LARGEST, look, onlyNames, permissions, readPath } from './disk.ts'
import { defaultModes, type Scan } from './scan.ts'
import type { Seed } from './seed.ts'
import { bigAndTracked } from './user-index.ts'
import type { WalkResult } from './walk.ts'
import { isOurs } from './worktree.ts'

export interface Taken {
  edits: Map<string, FileEntry | null>
  hot: Map<RelativePath, HotEntry>
  modes: Map<RelativePath, number>
  /** Paths that could not be taken though they may be there. */
  dropped: RelativePath[]
  /** Paths where nothing is now. */
  absent: RelativePath[]
  uncovered: Uncovered[]
  excluded: Map<RelativePath, string>
  /** Seeds that were used. */
  seeds: Map<RelativePath, Seed>
}

export interface TakeInput {
  known: Set<RelativePath>
  fresh: Set<RelativePath>
  seeds: Map<RelativePath, Seed>
  base: Oid
  /** All files of the base tree, where they are at hand. */
  unvouched: ReadonlyMap<string, FileEntry> | null
  walk: WalkResult
}

export async function takePaths(scan: Scan, { known, fresh, seeds, base, unvouched, walk }: TakeInput): Promise<Taken> {
  const { env, worktree, store, cache, limits } = scan
  const { root } = worktree
  const defaults = cache?.defaults ?? defaultModes(env)
  const taken: Taken = {
    edits: new Map(),
    hot: new Map(),
    modes: new Map([...(cache?.modes ?? [])].filter(([path]) => !path.endsWith('/'))),
    dropped: [],
    absent: [],
    uncovered: [],
    excluded: new Map(),
    seeds: new Map(),
  }
  const setFrom = (path: RelativePath, was: Pick<TreeEntry, 'mode' | 'oid'> | null, entry: FileEntry | null) => {
    if (entry === null ? was !== null && was.mode !== '40000' : was?.oid !== entry.oid || was.mode !== entry.mode) {
      taken.edits.set(path, entry)
    }
  }
  const set = (path: RelativePath, entry: FileEntry | null) =>
    unvouched
      ? setFrom(path, unvouched.get(path) ?? null, entry)
      : store.trees.lookup(base, path).then((was) => setFrom(path, was, entry))
  const take = (path: RelativePath, oid: Oid, stats: Stats) => {
    const mode = permissions(stats)
    const link = stats.isSymbolicLink()
    const plain = mode & 0o100 ? defaults.exec : defaults.file
    if (link || mode === plain) taken.modes.delete(path)
    else taken.modes.set(path, mode)
    return set(path, { mode: link ? '120000' : mode & 0o100 ? '100755' : '100644', oid })
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
  const isOver = (stats: Stats) => stats.isFile() && bytes + stats.size > limits.maxBytes
  const wasCaptured = async (path: RelativePath) =>
    (cache !== null || scan.lastTree !== null) &&
    (unvouched ? unvouched.has(path) : (await store.trees.lookup(base, path)) !== null)
  const big = await bigAndTracked(
    scan,
    [...known, ...fresh].filter((path) => !seeds.has(path)),
  )
  let done = 0
  const all = known.size + fresh.size
  for (const path of [...known, ...[...fresh].sort()]) {
    if (++done % 500 === 0) await env.progress(`snapshot: ${done} of ${all} paths`)
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
      taken.absent.push(path)
      await drop(path, null)
    } else if (!isStats(stats)) {
      await drop(path, { reason: 'unreadable' })
    } else if (scan.excluded(path)) {
      taken.excluded.set(path, fingerprint(stats))
      await drop(path, { reason: 'ignored' })
      taken.uncovered.pop()
    } else if (!isRepresentable(path)) {
      await drop(path, { reason: 'unrepresentable', print: fingerprint(stats) })
    } else if (stats.isFile() && (stats.size > LARGEST || (stats.size > limits.maxFileSize && !big.has(path)))) {
      await drop(path, { reason: 'too-large', print: fingerprint(stats) })
    } else if (scan.late() || (isOver(stats) && !(await wasCaptured(path)))) {
      await drop(path, { reason: 'budget', print: fingerprint(stats) })
    } else {
      // What was captured before costs no more bytes, whatever the budget: it only has to be known again.
      const over = isOver(stats)
      const reading = readPath(env, root, path, over ? onlyNames(store.objects) : store.objects)
      if (reading.kind === 'read' && over && (scan.anew || !(await store.objects.has(reading.oid)))) {
        await drop(path, { reason: 'budget', print: fingerprint(stats) })
      } else if (reading.kind === 'read') {
        if (!over) bytes += reading.stats.size
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
