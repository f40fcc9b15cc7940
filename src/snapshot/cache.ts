/**
 * What the last scan knew, so that the next one looks only at what changed: a private git index for the paths that have
 * come to rest (cold), and this file for the rest (hot) and for directories. Both are published by one rename of this
 * file, under the worktree's lock. Losing it costs time, never truth.
 */
import { createHash } from 'node:crypto'
import type { Beside, DefaultModes } from '../core/beside.ts'
import type { Oid } from '../core/ids.ts'
import type { RelativePath } from '../core/paths.ts'
import type { Env } from '../env.ts'
import type { Store } from '../git/store.ts'
import { readIfThere, removeIfThere, writeFileWhole } from '../git/whole-file.ts'
import { Directories } from './directories.ts'
import type { Linked } from './linked.ts'

/** A path as it was when it was read. */
export interface HotEntry {
  oid: Oid
  type: 'file' | 'link'
  size: number
  mtimeMs: number
  ctimeMs: number
  ino: number
  mode: number
  /** The file system's clock when the scan began that read it. */
  seen: number
}

export interface SnapshotCache {
  tree: Oid
  defaults: DefaultModes
  /** File name of the private index in the worktree's directory; null: none yet. */
  index: string | null
  /** Paths that the private index lacks or has differently: this is what counts for them. */
  hot: Map<RelativePath, HotEntry>
  /** Paths that the last scan could not take; they are looked at again even if nothing says that they changed. */
  recheck: RelativePath[]
  /** Paths that left the tree and that the private index may still have: a listing against it does not name them when they come back. */
  vanished: RelativePath[]
  modes: Map<RelativePath, number>
  linked: Linked
  directories: Directories
  /** The user's index when its paths were last compared with ours; see user-index.ts. */
  userIndex: { print: string; names: string; notHere: RelativePath[] } | null
  /** What git last said of what is not in the tree, and the ignore rules it said it by; see narrow.ts. */
  listing: {
    ignored: RelativePath[]
    nested: RelativePath[]
    rules: string
    /** Those of the configuration and outside the worktree, of which no watcher tells. */
    outside: string
    /** Ignored directories that are so themselves: nothing below them can be covered. */
    stops: RelativePath[]
    /** Of the ignored directories and nested repositories, those with nothing covered below: nobody need watch them. */
    unwatched: ReadonlySet<RelativePath>
    unreadable: boolean
    /** Fingerprints of ignored files, as they were last looked at. */
    prints: ReadonlyMap<RelativePath, string>
  }
  /** What was said beside the tree, and the object that says it; null: this cache was read from its file. */
  said: { beside: Beside; oid: Oid } | null
}

interface StoredCache {
  version: 6
  tree: string
  defaults: [number, number, number]
  index: string | null
  hot: [string, string, number, number, number, number, number, number, number][]
  recheck: string[]
  vanished: string[]
  modes: [string, number][]
  linked: [string, string][]
  directories: [string, number, number, number, number, number, string[], string[], string[], boolean, boolean][]
  userIndex: SnapshotCache['userIndex']
  listing: Omit<SnapshotCache['listing'], 'prints' | 'unwatched'> & { prints: [string, string][]; unwatched: string[] }
}

const fileOf = (store: Store) => `${store.worktreeDir}/cache.json`

/** Every file of a worktree's directory that scans go on from, the one first that names the others. */
export function cacheFiles({ files }: Pick<Env, 'files'>, directory: string): string[] {
  const names = files.readdirSync(directory).filter((name) => name === 'cache.json' || name.startsWith('index-'))
  return names.sort().map((name) => `${directory}/${name}`)
}

/** Null when there is none or it cannot be trusted. */
export function loadCache(env: Env, store: Store): SnapshotCache | null {
  const bytes = readIfThere(env, fileOf(store))
  if (!bytes) return null
  const newline = bytes.indexOf(10)
  const body = bytes.subarray(newline + 1)
  if (createHash('sha1').update(body).digest('hex') !== bytes.toString('latin1', 0, newline)) return null
  const stored = JSON.parse(body.toString('latin1')) as StoredCache
  if (stored.version !== 6) return null
  if (stored.index !== null && !env.files.existsSync(`${store.worktreeDir}/${stored.index}`)) return null
  const hot: SnapshotCache['hot'] = new Map()
  for (const [path, oid, link, size, mtimeMs, ctimeMs, ino, mode, seen] of stored.hot) {
    const type = link === 1 ? 'link' : 'file'
    hot.set(path as RelativePath, { oid: oid as Oid, type, size, mtimeMs, ctimeMs, ino, mode, seen })
  }
  const [file, exec, directory] = stored.defaults
  const directories = new Directories(directory)
  for (const [
    path,
    mtimeMs,
    ctimeMs,
    ino,
    mode,
    seen,
    inside,
    specials,
    unrepresentable,
    empty,
    rules,
  ] of stored.directories)
    directories.set(path, {
      mtimeMs,
      ctimeMs,
      ino,
      mode,
      seen,
      directories: inside,
      specials,
      unrepresentable,
      empty,
      rules,
    })
  return {
    tree: stored.tree as Oid,
    defaults: { file, exec, directory },
    index: stored.index,
    hot,
    recheck: stored.recheck as RelativePath[],
    vanished: stored.vanished as RelativePath[],
    modes: new Map(stored.modes as [RelativePath, number][]),
    linked: new Map(stored.linked as [RelativePath, string][]),
    directories,
    userIndex: stored.userIndex,
    listing: {
      ...stored.listing,
      unwatched: new Set(stored.listing.unwatched as RelativePath[]),
      prints: new Map(stored.listing.prints as [RelativePath, string][]),
    },
    said: null,
  }
}

/** Publishes a cache; the index it no longer names is removed. The caller holds the worktree's lock. */
export function saveCache(env: Env, store: Store, cache: SnapshotCache): void {
  store.objects.flush() // it names them
  const stored: StoredCache = {
    version: 6,
    tree: cache.tree,
    defaults: [cache.defaults.file, cache.defaults.exec, cache.defaults.directory],
    index: cache.index,
    hot: [...cache.hot].map(([path, e]) => [
      path,
      e.oid,
      e.type === 'link' ? 1 : 0,
      e.size,
      e.mtimeMs,
      e.ctimeMs,
      e.ino,
      e.mode,
      e.seen,
    ]),
    recheck: cache.recheck,
    vanished: cache.vanished,
    modes: [...cache.modes],
    linked: [...cache.linked],
    directories: [...cache.directories].map(([path, d]) => [
      path,
      d.mtimeMs,
      d.ctimeMs,
      d.ino,
      d.mode,
      d.seen,
      d.directories,
      d.specials,
      d.unrepresentable,
      d.empty,
      d.rules,
    ]),
    userIndex: cache.userIndex,
    listing: { ...cache.listing, unwatched: [...cache.listing.unwatched], prints: [...cache.listing.prints] },
  }
  const body = Buffer.from(JSON.stringify(stored), 'latin1')
  const sum = createHash('sha1').update(body).digest('hex')
  writeFileWhole(env, fileOf(store), { content: Buffer.concat([Buffer.from(`${sum}\n`), body]), sync: false })
  for (const name of env.files.readdirSync(store.worktreeDir)) {
    if (/^index-[0-9a-f]+$/.test(name) && name !== cache.index) removeIfThere(env, `${store.worktreeDir}/${name}`)
  }
}
