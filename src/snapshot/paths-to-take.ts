/** Which paths a scan has to look at: what git listed, and what nothing vouches for any more. */
import type { Oid } from '../core/ids.ts'
import type { RelativePath } from '../core/paths.ts'
import type { FileEntry } from '../git/trees.ts'
import { look } from './disk.ts'
import type { checkHot } from './known.ts'
import type { Listing } from './listing.ts'
import { cameBack } from './returning.ts'
import type { Scan } from './scan.ts'
import type { UserIndex } from './user-index.ts'

export interface ListedPaths {
  listed: Listing
  hot: ReturnType<typeof checkHot>
  base: Oid
  unvouched: ReadonlyMap<RelativePath, FileEntry> | null
  user: UserIndex
  /** Directories that cannot be read, each with a slash at its end. */
  unreadable: readonly string[]
  /** Other paths may be excluded than at the last scan. */
  excludes: boolean
  /** The rules that the last scan's listing was made by, where they still hold. */
  vouched: string | null
}

/** What was captured before (`known`), and what was not (`fresh`): a budget takes the latter last. */
export async function pathsToTake(
  scan: Scan,
  { listed, hot, base, unvouched, user, unreadable, excludes, vouched }: ListedPaths,
): Promise<{ known: Set<RelativePath>; fresh: Set<RelativePath> }> {
  const { worktree, cache, store } = scan
  const { trees } = store
  const known = new Set<RelativePath>([...hot.doubtful, ...(cache?.recheck ?? [])])
  const vanished = new Set(cache?.vanished)
  for (const path of listed.changed) {
    if (vanished.has(path)) continue // whether it is back is asked below
    if (listed.narrow?.only) hot.kept.delete(path)
    if (!hot.kept.has(path)) known.add(path)
  }
  for (const path of user.paths) {
    const was = cache && !hot.kept.has(path) ? await trees.lookup(base, path) : null
    // A directory that was in its place does not vouch for the file.
    const covered = cache !== null && (hot.kept.has(path) || (was !== null && was.mode !== '40000'))
    if (!covered) known.add(path)
  }
  // With a cache: for some of it, with other rules, or below what cannot be read.
  if (unvouched !== null) for (const path of unvouched.keys()) known.add(path)
  else if (unreadable.length > 0 || excludes) {
    for (const path of (await trees.files(base)).keys()) {
      if (scan.excluded(path) || unreadable.some((directory) => path.startsWith(directory))) known.add(path)
    }
  }
  if (worktree.folds) for (const path of await misspelt(scan, { listed, base })) known.add(path)
  const fresh = new Set<RelativePath>()
  for (const path of [
    ...listed.untracked,
    ...listed.included,
    ...(await cameBack(scan, { nested: listed.nested, rules: vouched })),
  ]) {
    if (!known.has(path) && !hot.kept.has(path)) fresh.add(path)
  }
  return { known, fresh }
}

/**
 * Files of the tree that are there in another spelling: git takes those for unchanged. In a narrow listing they are in
 * directories that were read for it.
 */
async function misspelt(
  { env, worktree, store: { trees } }: Scan,
  { listed, base }: { listed: Listing; base: Oid },
): Promise<RelativePath[]> {
  if (!listed.narrow) {
    const files = [...(await trees.files(base)).keys()] as RelativePath[]
    return files.filter((path) => look(env, worktree.root, path) === null)
  }
  const found: RelativePath[] = []
  for (const directory of listed.narrow.visited.keys()) {
    const at = directory === '' ? '' : `${directory}/`
    for (const [name, { mode, oid }] of (await trees.directory(base, directory)) ?? []) {
      if (look(env, worktree.root, `${at}${name}`) !== null) continue
      if (mode !== '40000') found.push(`${at}${name}` as RelativePath)
      else for (const path of (await trees.files(oid, `${at}${name}/`)).keys()) found.push(path as RelativePath)
    }
  }
  return found
}
