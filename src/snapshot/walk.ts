/**
 * The directories of the worktree. git's own walk names no sockets, no fifos, no empty directories and no modes: this
 * one does, and reads again only the directories whose stat changed.
 */
import { constants, type Dirent, type Stats } from 'node:fs'
import { parentOf, type RelativePath } from '../core/paths.ts'
import { type Env, errno } from '../env.ts'
import { Directories, type DirectoryEntry } from './directories.ts'
import { entriesIn, fingerprint, isStats, look, native, permissions } from './disk.ts'

interface Walk {
  directories: Directories
  unreadable: RelativePath[]
  /** Directories that were not known, or others under a known name. */
  fresh: string[]
  /** The deadline passed before every directory was seen. */
  cut: boolean
}

/** What the directories hold that git's walk does not name. */
export interface WalkResult extends Walk {
  empty: RelativePath[]
  specials: { path: RelativePath; print: string }[]
  unrepresentable: RelativePath[]
  /** `.git` inside a directory that git does not take for a repository of its own. */
  dotGit: RelativePath[]
}

export interface WalkInput {
  root: string
  known: Directories
  /** The permission mode of a directory that needs no word. */
  plain: number
  /** Directories (no trailing slash) not to enter: ignored, repositories of their own, ours. */
  stop: (directory: string) => boolean
  /** The file system's clock when this scan began, milliseconds. */
  seen: number
  late: () => boolean
  /** What lstat has just said of known directories. */
  stats?: ReadonlyMap<string, Stats>
  /** Only these directories and what is new below them; all others are as they are known. */
  only?: ReadonlySet<string>
  /** Directories that this scan has read already. */
  visited?: ReadonlyMap<string, Visited>
}

/** One directory as it is now; null when there is none. */
export type Visited = { entry: DirectoryEntry; children: readonly Dirent[] } | 'unreadable' | null

/** An entry read less than this before its directory changed may be older than the change: clocks tick in steps. */
export function atRest(entry: { ctimeMs: number; seen: number }): boolean {
  const coarse = entry.ctimeMs % 1000 === 0 // a file system that keeps whole seconds
  return entry.ctimeMs < entry.seen - (coarse ? 2000 : 50)
}

/** Whether a directory is as it was when it was read. */
export function unchanged(entry: DirectoryEntry, stats: Stats): boolean {
  return entry.ctimeMs === stats.ctimeMs && entry.mtimeMs === stats.mtimeMs && entry.ino === stats.ino && atRest(entry)
}

/** In any spelling that some file system takes for it. */
export const isDotGit = (name: string): boolean => name.length === 4 && name.toLowerCase() === '.git'

export function walkDirectories(env: Env, input: WalkInput): WalkResult {
  return summarize(env, input.root, input.only ? walkOnly(env, input, input.only) : walkAll(env, input, ['']))
}

function walkAll(env: Env, input: WalkInput, roots: readonly string[]): Walk {
  const { stop, late, plain } = input
  const found: Walk = { directories: new Directories(plain), unreadable: [], fresh: [], cut: false }
  const pending = [...roots]
  for (let directory = pending.pop(); directory !== undefined; directory = pending.pop()) {
    if (late()) {
      found.cut = true
      break
    }
    const entry = revisit(env, input, directory)
    if (entry === 'unreadable') found.unreadable.push(`${directory}/` as RelativePath)
    if (entry === null) found.directories.doubt(parentOf(directory)) // which told of it: it may be back by now
    if (entry === null || entry === 'unreadable') continue
    found.directories.set(directory, entry)
    if (input.known.get(directory)?.ino !== entry.ino) found.fresh.push(directory)
    const at = directory === '' ? '' : `${directory}/`
    for (const name of entry.directories) if (!stop(`${at}${name}`)) pending.push(`${at}${name}`)
  }
  return found
}

/** The known directories, with some read again, and what is new below those walked. */
function walkOnly(env: Env, input: WalkInput, only: ReadonlySet<string>): Walk {
  const directories = only.size === 0 ? input.known : new Directories(input.plain, input.known)
  const found: Walk = { directories, unreadable: [], fresh: [], cut: false }
  const fresh: string[] = []
  const gone: string[] = []
  for (const directory of only) {
    const now = visitedOr(input, directory, () =>
      visit(env, input, { directory, stats: look(env, input.root, directory) }),
    )
    if (now === 'unreadable') found.unreadable.push(`${directory}/` as RelativePath)
    if (now === null || now === 'unreadable') {
      found.directories.remove(directory)
      gone.push(directory)
      continue
    }
    const { entry } = now
    found.directories.set(directory, entry)
    if (input.known.get(directory)?.ino !== entry.ino) found.fresh.push(directory)
    const at = directory === '' ? '' : `${directory}/`
    const children = new Set(entry.directories.map((name) => `${at}${name}`))
    for (const name of input.known.get(directory)?.directories ?? []) {
      const child = `${at}${name}`
      if (!children.has(child)) found.directories.remove(child)
    }
    for (const child of children) if (!input.known.has(child) && !input.stop(child)) fresh.push(child)
  }
  const below = walkAll(env, input, fresh)
  for (const [directory, entry] of below.directories) found.directories.set(directory, entry)
  for (const directory of fresh) if (!below.directories.has(directory)) gone.push(directory) // as arguments they may be too many
  for (const directory of gone) found.directories.doubt(parentOf(directory)) // it may be back by now
  const met = [...found.fresh, ...below.fresh]
  return { ...found, fresh: met, unreadable: [...found.unreadable, ...below.unreadable], cut: below.cut }
}

/** One directory as it is: read only if it changed. */
function revisit(env: Env, input: WalkInput, directory: string): DirectoryEntry | 'unreadable' | null {
  const stats = input.stats?.get(directory) ?? look(env, input.root, directory)
  const old = input.known.get(directory)
  if (old !== undefined && isStats(stats) && stats.isDirectory() && unchanged(old, stats)) return old
  const now = visitedOr(input, directory, () => visit(env, input, { directory, stats }))
  return now === null || now === 'unreadable' ? now : now.entry
}

/** Null is an answer too: there is nothing, or only by way of a link. */
function visitedOr({ visited }: WalkInput, directory: string, look: () => Visited): Visited {
  const known = visited?.get(directory)
  return known === undefined ? look() : known
}

/** Reads one directory. */
export function visit(
  env: Env,
  { root, seen }: Pick<WalkInput, 'root' | 'seen'>,
  { directory, stats }: { directory: string; stats: ReturnType<typeof look> },
): Visited {
  if (stats === null) return null // removed since its parent was read
  if (!isStats(stats)) return 'unreadable'
  if (!stats.isDirectory()) return null
  const { mtimeMs, ctimeMs, ino } = stats
  return (
    readDirectory(env, { root, directory }, { mtimeMs, ctimeMs, ino, mode: permissions(stats), seen }) ?? 'unreadable'
  )
}

function summarize(env: Env, root: string, walk: Walk): WalkResult {
  const found: WalkResult = { ...walk, empty: [], specials: [], unrepresentable: [], dotGit: [] }
  for (const [directory, entry] of walk.directories.remarkable()) {
    if (entry.empty && directory !== '') found.empty.push(directory as RelativePath)
    if (entry.specials.length === 0 && entry.unrepresentable.length === 0) continue
    const at = directory === '' ? '' : `${directory}/`
    for (const name of entry.specials) {
      const path = `${at}${name}` as RelativePath
      const special = look(env, root, path)
      if (isStats(special)) found.specials.push({ path, print: fingerprint(special) })
    }
    for (const name of entry.unrepresentable) {
      const path = `${at}${name}` as RelativePath
      if (name !== '.git') found.unrepresentable.push(path)
      else if (directory !== '') found.dotGit.push(path)
    }
  }
  return found
}

function readDirectory(
  env: Env,
  { root, directory }: { root: string; directory: string },
  stat: Pick<DirectoryEntry, 'mtimeMs' | 'ctimeMs' | 'ino' | 'mode' | 'seen'>,
): Exclude<Visited, string> {
  const at = native(root, directory)
  let children: Dirent[] = []
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
    children = entriesIn(env, at)
    for (const child of children) {
      entry.empty = false
      if (isDotGit(child.name)) entry.unrepresentable.push(child.name)
      else if (child.isDirectory()) entry.directories.push(child.name)
      else if (child.name === '.gitignore') entry.rules = true
      else if (!child.isFile() && !child.isSymbolicLink()) entry.specials.push(child.name)
    }
  } catch (error) {
    const code = errno(error)
    if (code === 'ENOENT' || code === 'ENOTDIR') return { entry: { ...entry, empty: false }, children }
    return null
  }
  return { entry, children }
}
