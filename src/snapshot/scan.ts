/** What every part of one scan shares. */
import type { Stats } from 'node:fs'
import type { DefaultModes } from '../core/beside.ts'
import type { Oid } from '../core/ids.ts'
import type { Env } from '../env.ts'
import type { KeptProcess } from '../git/line-process.ts'
import type { Store } from '../git/store.ts'
import type { SnapshotCache } from './cache.ts'
import type { Linked } from './linked.ts'
import type { SnapshotLimits, Worktree } from './worktree.ts'

/** Paths that a watcher saw change: what they are now, and whether they still are, the scan finds out. */
export interface Hint {
  paths: ReadonlySet<string>
  /** Directories to be read whole: new ones, renamed ones. */
  subtrees: ReadonlySet<string>
}

export interface CaptureInput {
  worktree: Worktree
  store: Store
  limits: SnapshotLimits
  cache: SnapshotCache | null
  /** Tree of the newest checkpoint: what was captured stays captured, even when the cache is lost. */
  lastTree: Oid | null
  /** The user's HEAD tree, to start from at a first snapshot. */
  headTree: Oid | null
  /** The store is damaged: every file is read, whatever vouches for it. */
  anew?: boolean
  /** No contents are taken over from the user's repository: it may have what was forgotten. */
  apart?: boolean
  /** What may have changed since the cache was made, when a watcher vouches for the rest. */
  hint?: Hint | undefined
  /** The git that has read the ignore rules, where one stays. */
  rules?: KeptProcess | undefined
}

/** What lstat says of directories. */
export interface FirstLook {
  /** Of those that are there. */
  stats: Map<string, Stats>
  /** One of them cannot be looked at. */
  failed: boolean
}

export interface Scan extends CaptureInput {
  env: Env
  /** As the worktree names them. */
  ignoreFiles: readonly string[]
  seen: number
  late: () => boolean
  excluded: (path: string) => boolean
  isReal: (directory: string) => boolean
  /** What the known directories are like: looked at once, before anything else that this scan looks at. */
  firstLook: () => FirstLook
  /** The same of the known files of several names. */
  linked: Linked
}

export function defaultModes(env: Env): DefaultModes {
  return { file: 0o666 & ~env.umask, exec: 0o777 & ~env.umask, directory: 0o777 & ~env.umask }
}
