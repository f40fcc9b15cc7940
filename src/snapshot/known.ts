/** What a scan starts from: the tree of before, and what vouches for it. */
import type { Stats } from 'node:fs'
import type { Oid } from '../core/ids.ts'
import { parentOf, type RelativePath } from '../core/paths.ts'
import type { FileEntry } from '../git/trees.ts'
import type { HotEntry } from './cache.ts'
import { isStats, look, permissions } from './disk.ts'
import type { Scan } from './scan.ts'
import { linkObjects, type Seed, seedFromUserIndex } from './seed.ts'
import { readUserIndex, type UserIndex } from './user-index.ts'
import { atRest } from './walk.ts'

/** Hot paths that are as they were, and those to be looked at again. */
export function checkHot({ env, cache, hint, worktree, isReal }: Scan): {
  kept: Map<RelativePath, HotEntry>
  doubtful: RelativePath[]
} {
  const kept = new Map<RelativePath, HotEntry>()
  const doubtful: RelativePath[] = []
  for (const [path, entry] of cache?.hot ?? []) {
    if (hint && !hint.paths.has(path)) {
      kept.set(path, entry)
      continue
    }
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

/** What the scan starts from, all of it but the disk's listing. */
export interface Known {
  base: Oid
  /** All files of the base tree, when there is no cache that vouches for them. */
  unvouched: ReadonlyMap<RelativePath, FileEntry> | null
  /** What the user's index vouches for when there is no cache. */
  seeds: Map<RelativePath, Seed>
  user: UserIndex
}

/** `vain`: nobody waits for it any more but for its end. */
export async function whatIsKnown(scan: Scan, vain: AbortSignal): Promise<Known> {
  const { env, store, cache, worktree } = scan
  const { root, repository } = worktree
  const user = readUserIndex(scan)
  // The store of what once was a plain directory may have other names for its objects than the repository.
  const isAlike = repository?.hash === store.place.hash
  const asked = cache === null && !scan.anew && isAlike ? repository : null
  const linked = asked && !scan.apart ? linkObjects(env, asked, store) : null
  const seeds =
    asked !== null
      ? seedFromUserIndex(env, {
          ...{ root, repository: asked, store, linked, excluded: scan.excluded, vain },
          realParent: (path) => scan.isReal(parentOf(path)),
        })
      : new Map<RelativePath, Seed>()
  const base = baseTree(scan, linked).then(async (base) => ({
    base,
    unvouched: cache === null ? await store.trees.files(base) : null,
  }))
  // Without an index, and with a tree of before, nobody else waits for the packs.
  const [start, ...rest] = await Promise.all([base, seeds, user, linked])
  return { ...start, seeds: rest[0], user: rest[1] }
}

/** The tree to start from: the last scan's, else the newest checkpoint's, else the user's HEAD if its objects are here. */
async function baseTree({ cache, lastTree, headTree, store }: Scan, linked: Promise<unknown> | null): Promise<Oid> {
  if (cache) return cache.tree
  if (lastTree) return lastTree
  await linked
  if (headTree && (await store.objects.read(headTree))?.type === 'tree') return headTree
  return store.trees.empty
}
