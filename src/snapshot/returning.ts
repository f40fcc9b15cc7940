/** Paths that went, and that no listing names when they are back. */
import type { Oid } from '../core/ids.ts'
import { barePath, isWithin, parentOf, type RelativePath } from '../core/paths.ts'
import { behindSymlink, isStats, look } from './disk.ts'
import { askIgnored } from './ignored.ts'
import type { Scan } from './scan.ts'
import { trackedAmong, type UserIndex } from './user-index.ts'

/**
 * Paths that are not there now and are covered all the same when they come back, though a rule ignores them: they were
 * captured, or are in the user's index. No listing would name them.
 */
export async function coveredWhenBack(
  scan: Scan,
  { absent, base, user, rules }: { absent: readonly RelativePath[]; base: Oid; user: UserIndex; rules: string | null },
): Promise<RelativePath[]> {
  const recheck = new Set(scan.cache?.recheck)
  const tracked = new Set(user.paths)
  const notHere = user.notHere.map(barePath)
  const gone = new Map<RelativePath, 'file'>()
  const behind: RelativePath[] = []
  for (const path of absent) {
    const sparse = notHere.some((directory) => isWithin(path, directory))
    const was = recheck.has(path) || (tracked.has(path) && !sparse)
    if (!was && (await scan.store.trees.lookup(base, path)) === null) continue
    // A file or a link is in the place of its directory: of what is behind a link git refuses to say whether it is ignored.
    if (behindSymlink(scan.env, scan.worktree.root, path)) behind.push(path)
    else gone.set(path, 'file')
  }
  return [...behind, ...((await askIgnored(scan, { names: gone, rules }, new AbortController().signal)) ?? [])]
}

/**
 * Paths that left the tree and are there again: covered like new names, though the private index hides them from git's
 * listing of those. It may call them unchanged, too: a directory that was moved away and back has the same files in it.
 */
export async function cameBack(
  scan: Scan,
  { nested, rules }: { nested: readonly RelativePath[]; rules: string | null },
): Promise<RelativePath[]> {
  const { env, worktree, cache } = scan
  const back = new Map<RelativePath, 'file'>()
  for (const path of cache?.vanished ?? []) {
    const stats = scan.isReal(parentOf(path)) ? look(env, worktree.root, path) : null
    if (!isStats(stats) || !(stats.isFile() || stats.isSymbolicLink())) continue
    if (!nested.some((directory) => isWithin(path, directory))) back.set(path, 'file')
  }
  const ignored = (await askIgnored(scan, { names: back, rules }, new AbortController().signal)) ?? new Set()
  const tracked = worktree.repository ? await trackedAmong(env, worktree.root, [...ignored]) : new Set()
  return [...back.keys()].filter((path) => !ignored.has(path) || tracked.has(path))
}
