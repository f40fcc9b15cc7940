/** Ignored directories and repositories of their own: which of them are not looked into, and which nobody need watch. */
import type { Oid } from '../core/ids.ts'
import { ancestorsOf, barePath, type RelativePath } from '../core/paths.ts'
import type { FileEntry } from '../git/trees.ts'
import { askIgnored } from './ignored.ts'
import type { Listing } from './listing.ts'
import type { Scan } from './scan.ts'

/** Ignored directories that are ignored themselves: nothing below them can be covered. */
export async function stopsFor(scan: Scan, listed: Listing): Promise<RelativePath[]> {
  if (listed.stops) return listed.stops
  const directories = new Map<RelativePath, 'directory'>()
  for (const path of listed.ignored) {
    if (path.endsWith('/')) directories.set(path.slice(0, -1) as RelativePath, 'directory')
  }
  // git also collapses a directory that is not ignored itself, but all of whose files are: what comes into it may not be.
  const asked = await askIgnored(scan, { names: directories, rules: null }, new AbortController().signal)
  return [...(asked ?? [])].map(barePath)
}

/** Directories that are not looked into, as long as nothing below them was captured. */
export async function nobodyNeedWatch(
  { cache, store }: Scan,
  found: { listed: Listing; stops: readonly RelativePath[]; tree: Oid; edits: ReadonlyMap<string, FileEntry | null> },
): Promise<ReadonlySet<RelativePath>> {
  const { listed, stops, tree, edits } = found
  if (cache && listed.narrow?.only) {
    const { unwatched } = cache.listing
    const covered = [...edits].flatMap(([path, entry]) => (entry ? (ancestorsOf(path) as RelativePath[]) : []))
    if (!covered.some((directory) => unwatched.has(directory))) return unwatched
    const now = new Set(unwatched)
    for (const directory of covered) now.delete(directory)
    return now
  }
  const all = new Set<RelativePath>()
  for (const directory of [...stops, ...listed.nested])
    if ((await store.trees.lookup(tree, directory))?.mode !== '40000') all.add(directory)
  return all
}
