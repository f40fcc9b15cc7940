/**
 * What the known directories are like when a scan begins, and whether they still are when it ends: files that are moved
 * while it looks may be in none of the places it looks at.
 */
import type { Stats } from 'node:fs'
import { ancestorsOf, type RelativePath } from '../core/paths.ts'
import type { Env } from '../env.ts'
import { isStats, look } from './disk.ts'
import type { FirstLook, Scan } from './scan.ts'
import type { Taken } from './take.ts'
import type { WalkResult } from './walk.ts'

export function lookAtDirectories(env: Env, root: string, directories: Iterable<string>): FirstLook {
  const found: FirstLook = { stats: new Map(), failed: false }
  for (const directory of directories) {
    const now = look(env, root, directory)
    if (isStats(now)) found.stats.set(directory, now)
    else if (now !== null) found.failed = true
  }
  return found
}

interface Seen {
  /** The known directories before anything else was looked at; where a watcher vouches for the rest, those it named. */
  first: ReadonlyMap<string, Stats>
  walk: WalkResult
  taken: Taken
  /** What was listed before and is no longer. */
  gone: readonly RelativePath[]
}

/**
 * A directory changes when a name comes into it or leaves it. So nothing was moved if, after the last look, each is as
 * it was at the first one: all of them, where something came or went.
 */
export function wasMoved({ env, worktree }: Scan, { first, walk, taken, gone }: Seen): boolean {
  const isOther = (directory: string) => {
    const then = first.get(directory) ?? walk.directories.get(directory)
    if (then === undefined) return false
    const now = look(env, worktree.root, directory)
    return !isStats(now) || now.ino !== then.ino || now.ctimeMs !== then.ctimeMs || now.mtimeMs !== then.mtimeMs
  }
  const cameOrWent = walk.fresh.length > 0 || taken.absent.length > 0 || gone.length > 0
  const directories = cameOrWent
    ? [...first.keys(), ...walk.fresh]
    : ['', ...[...taken.hot.keys()].flatMap((path) => ancestorsOf(path))]
  return [...new Set(directories)].some(isOther)
}
