/**
 * The directories of the worktree. git's own walk names no sockets, no fifos, no empty directories and no modes: this
 * one does, and reads again only the directories whose stat changed.
 */
import { constants, type Stats } from 'node:fs'
import type { RelativePath } from '../core/paths.ts'
import { type Env, errno } from '../env.ts'
import type { DirectoryEntry } from './cache.ts'
import { fingerprint, isStats, look, native, permissions } from './disk.ts'

export interface WalkResult {
  directories: Map<string, DirectoryEntry>
  empty: RelativePath[]
  specials: { path: RelativePath; print: string }[]
  unreadable: RelativePath[]
  unrepresentable: RelativePath[]
  /** `.git` inside a directory that git does not take for a repository of its own. */
  dotGit: RelativePath[]
  /** The deadline passed before every directory was seen. */
  cut: boolean
}

export interface WalkInput {
  root: string
  known: ReadonlyMap<string, DirectoryEntry>
  /** Directories (no trailing slash) not to enter: ignored, repositories of their own, ours. */
  stop: (directory: string) => boolean
  /** The file system's clock when this scan began, milliseconds. */
  seen: number
  late: () => boolean
  /** What lstat has just said of known directories. */
  stats?: ReadonlyMap<string, Stats>
}

/** An entry read less than this before its directory changed may be older than the change: clocks tick in steps. */
export function atRest(entry: { ctimeMs: number; seen: number }): boolean {
  const coarse = entry.ctimeMs % 1000 === 0 // a file system that keeps whole seconds
  return entry.ctimeMs < entry.seen - (coarse ? 2000 : 50)
}

/** Whether a directory is as it was when it was read. */
export function unchanged(entry: DirectoryEntry, stats: Stats): boolean {
  return entry.ctimeMs === stats.ctimeMs && entry.mtimeMs === stats.mtimeMs && entry.ino === stats.ino && atRest(entry)
}

export function walkDirectories(env: Env, input: WalkInput): WalkResult {
  const { root, known, stop, seen, late } = input
  const found: WalkResult = {
    directories: new Map(),
    empty: [],
    specials: [],
    unreadable: [],
    unrepresentable: [],
    dotGit: [],
    cut: false,
  }
  const pending = ['']
  for (let directory = pending.pop(); directory !== undefined; directory = pending.pop()) {
    if (late()) {
      found.cut = true
      break
    }
    const stats = input.stats?.get(directory) ?? look(env, root, directory)
    if (stats === null) continue // removed since its parent was read
    if (!isStats(stats)) {
      found.unreadable.push(`${directory}/` as RelativePath)
      continue
    }
    if (!stats.isDirectory()) continue
    const old = known.get(directory)
    const same = old !== undefined && unchanged(old, stats)
    const entry = same
      ? old
      : readDirectory(env, root, directory, {
          mtimeMs: stats.mtimeMs,
          ctimeMs: stats.ctimeMs,
          ino: stats.ino,
          mode: permissions(stats),
          seen,
        })
    if (entry === null) {
      found.unreadable.push(`${directory}/` as RelativePath)
      continue
    }
    found.directories.set(directory, entry)
    const at = directory === '' ? '' : `${directory}/`
    if (entry.empty && directory !== '') found.empty.push(directory as RelativePath)
    for (const name of entry.specials) {
      const path = `${at}${name}` as RelativePath
      const special = look(env, root, path)
      if (isStats(special)) found.specials.push({ path, print: fingerprint(special) })
    }
    for (const name of entry.unrepresentable) {
      if (name === '.git') {
        if (directory !== '') found.dotGit.push(`${at}${name}` as RelativePath)
      } else found.unrepresentable.push(`${at}${name}` as RelativePath)
    }
    for (const name of entry.directories) {
      const child = `${at}${name}`
      if (!stop(child)) pending.push(child)
    }
  }
  return found
}

function readDirectory(
  env: Env,
  root: string,
  directory: string,
  stat: Pick<DirectoryEntry, 'mtimeMs' | 'ctimeMs' | 'ino' | 'mode' | 'seen'>,
): DirectoryEntry | null {
  const at = native(root, directory)
  const entry: DirectoryEntry = {
    ...stat,
    directories: [],
    specials: [],
    unrepresentable: [],
    empty: true,
    rules: false,
  }
  try {
    env.files.accessSync(at, constants.R_OK | constants.X_OK)
    // Names as latin1: one character a byte.
    for (const child of env.files.readdirSync(at, { withFileTypes: true, encoding: 'latin1' })) {
      entry.empty = false
      if (/^\.git$/i.test(child.name)) entry.unrepresentable.push(child.name)
      else if (child.isDirectory()) entry.directories.push(child.name)
      else if (child.name === '.gitignore') entry.rules = true
      else if (!child.isFile() && !child.isSymbolicLink()) entry.specials.push(child.name)
    }
  } catch (error) {
    const code = errno(error)
    if (code === 'ENOENT' || code === 'ENOTDIR') return { ...entry, empty: false }
    return null
  }
  return entry
}
