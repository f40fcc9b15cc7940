/**
 * Files of several names: what changes one of them changes the others, and a watcher tells of the name that was used alone, if it
 * watches that one. So those that are known are looked at by each snapshot, and one that is new is a reason to look at all.
 */
import type { Stats } from 'node:fs'
import type { RelativePath } from '../core/paths.ts'
import type { Env } from '../env.ts'
import { fingerprint, isStats, look } from './disk.ts'
import type { Worktree } from './worktree.ts'

/** Fingerprints, by path. */
export type Linked = ReadonlyMap<RelativePath, string>

export const isLinked = (stats: Stats): boolean => stats.isFile() && stats.nlink > 1

/** Of those that the last snapshot knew, as they are now; empty: they cannot be looked at. */
export function lookAtLinked(
  env: Env,
  { worktree, cache }: { worktree: Worktree; cache: { linked: Linked } | null },
): Linked {
  const now = new Map<RelativePath, string>()
  for (const path of cache?.linked.keys() ?? []) {
    const stats = look(env, worktree.root, path)
    now.set(path, isStats(stats) ? fingerprint(stats) : '')
  }
  return now
}

export const isAsKnown = (known: Linked, now: Linked): boolean =>
  [...known].every(([path, print]) => now.get(path) === print)
