/** Moving paths that have come to rest from the hot list into the private index, so that git does the looking. */
import type { Oid } from '../core/ids.ts'
import type { RelativePath } from '../core/paths.ts'
import type { Env } from '../env.ts'
import type { Store } from '../git/store.ts'
import { readIfThere, writeFileWhole } from '../git/whole-file.ts'
import type { SnapshotCache } from './cache.ts'
import { isStats, look } from './disk.ts'
import { entryFromStats, formatIndex, type IndexEntry, parseIndex } from './index-file.ts'
import type { Seed } from './seed.ts'

/** Up to this many hot paths are cheaper to look at than an index is to write. */
const HOT_LIMIT = 2000

export interface CompactInput {
  root: string
  cache: SnapshotCache
  seeds: ReadonlyMap<RelativePath, Seed>
  seen: number
}

/** git compares whole seconds: an entry is safe with it only when its last change lies a whole second before the scan. */
const cold = (ctimeMs: number, seen: number) => Math.floor(ctimeMs / 1000) < Math.floor(seen / 1000) - 1

/** Returns the cache as given, or one with a new index. The old index stays until the cache is saved. */
export function compactIndex(env: Env, store: Store, { root, cache, seeds, seen }: CompactInput): SnapshotCache {
  if (seeds.size === 0 && cache.hot.size + cache.vanished.length <= HOT_LIMIT) return cache
  const entries = new Map(readIndex(env, store, cache).map((entry) => [entry.path, entry]))
  for (const path of cache.vanished) entries.delete(path)
  const hot = new Map(cache.hot)
  for (const [path, entry] of cache.hot) {
    entries.delete(path)
    if (!cold(entry.ctimeMs, seen)) continue
    const stats = look(env, root, path)
    if (!isStats(stats) || stats.ctimeMs !== entry.ctimeMs || stats.ino !== entry.ino || stats.size !== entry.size)
      continue
    entries.set(path, entryFromStats(path, entry.oid, stats))
    hot.delete(path)
  }
  for (const [path, { oid, stats }] of seeds) {
    if (cold(stats.ctimeMs, seen)) entries.set(path, entryFromStats(path, oid, stats))
    else hot.set(path, hotFromSeed(oid, stats, seen))
  }
  const index = `index-${env.random(8)}`
  writeFileWhole(env, `${store.worktreeDir}/${index}`, {
    content: formatIndex([...entries.values()], store.place.hash),
    sync: false,
  })
  return { ...cache, index, hot, vanished: [] }
}

function hotFromSeed(oid: Oid, stats: Seed['stats'], seen: number) {
  const { size, mtimeMs, ctimeMs, ino, mode } = stats
  const type = stats.isSymbolicLink() ? ('link' as const) : ('file' as const)
  return { oid, type, size, mtimeMs, ctimeMs, ino, mode: mode & 0o7777, seen }
}

/** The private index's entries; none when there is no index. @throws CkptError DAMAGED */
function readIndex(env: Env, store: Store, cache: SnapshotCache): IndexEntry[] {
  if (cache.index === null) return []
  const bytes = readIfThere(env, `${store.worktreeDir}/${cache.index}`)
  return bytes === null ? [] : parseIndex(bytes, store.place.hash)
}
