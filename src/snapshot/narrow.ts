/**
 * The listing without git's whole walk. What is untracked or ignored in a directory can only have changed if the
 * directory changed, or an ignore rule did: so only names that are new in changed directories are asked about. Whatever
 * does not fit falls back to the full listing.
 */
import { createHash } from 'node:crypto'
import type { Stats } from 'node:fs'
import { ancestorsOf, barePath, directoryKey, isText, isWithin, parentOf, type RelativePath } from '../core/paths.ts'
import { statIfThere } from '../env.ts'
import { argumentPieces } from '../git/process.ts'
import type { SnapshotCache } from './cache.ts'
import { type Directories, isUnwatchable } from './directories.ts'
import { fingerprint, isStats, look } from './disk.ts'
import { askIgnored, rulesOf } from './ignored.ts'
import { isAsKnown, isLinked } from './linked.ts'
import { changedPaths, type Listing, listUntracked, readableIgnoreFiles } from './listing.ts'
import { lookAtDirectories } from './moved.ts'
import { mayBeRepository } from './nested.ts'
import type { Scan } from './scan.ts'
import { atRest, isDotGit, unchanged, type Visited, visit } from './walk.ts'
import { isOurs } from './worktree.ts'

/** More changed directories than this, and git's own walk is as fast. */
const FEW_DIRECTORIES = 400

/**
 * Fingerprint of the ignore rules inside: each .gitignore that is known, with where it is, for a rename leaves the file as
 * it was. One that changed while we listed never compares equal.
 */
export function ignoreRules(scan: Scan, directories: Directories): string {
  const { env, worktree } = scan
  const inside: string[] = []
  for (const [directory, entry] of directories) {
    if (!entry.rules) continue
    const stats = look(env, worktree.root, directory === '' ? '.gitignore' : `${directory}/.gitignore`)
    inside.push(`${directory} ${ruleFile(scan, isStats(stats) ? stats : null)}`)
  }
  return inside.sort().join(' ')
}

/** The same of the configuration, and of the user's files outside the worktree: no watcher tells of their changes. */
export function outsideRules(scan: Scan): string {
  const { env, ignoreFiles, limits } = scan
  const files = readableIgnoreFiles(env, ignoreFiles).map(
    (file) => `${file} ${ruleFile(scan, statIfThere(env.files, file))}`,
  )
  const said = JSON.stringify([limits.include, limits.exclude, limits.maxFileSize, files])
  return createHash('sha1').update(said).digest('hex') // the cache keeps bytes, and these are text
}

function ruleFile({ env, seen }: Scan, stats: Stats | null): string {
  if (stats === null) return 'none'
  return atRest({ ctimeMs: stats.ctimeMs, seen }) ? fingerprint(stats) : env.random(8)
}

/**
 * Whether a directory may have become a repository of its own, or ceased to be one: one with a `.git` can do so without
 * changing itself, and git is then asked again for all of it.
 */
function mayNest({ env, worktree }: Scan, cache: SnapshotCache): boolean {
  for (const [directory, entry] of cache.directories.remarkable()) {
    if (directory !== '' && entry.unrepresentable.includes('.git')) return true
  }
  return cache.listing.nested.some(
    (path) => look(env, worktree.root, path) !== null && !mayBeRepository({ env, worktree }, path),
  )
}

/** Not where a directory could not be read: it is none of the known ones, so nobody would look at it again. */
const isNarrowable = (scan: Scan, cache: SnapshotCache): boolean =>
  scan.limits.include.length === 0 && !cache.listing.unreadable && !mayNest(scan, cache)

/** The known directories that have to be read. Null: too many. */
function changedDirectories({ directories }: SnapshotCache, stats: ReadonlyMap<string, Stats>): string[] | null {
  const changed: string[] = []
  for (const [directory, entry] of directories) {
    const now = stats.get(directory)
    if (!now?.isDirectory() || unchanged(entry, now)) continue // where nothing is, its parent changed too
    changed.push(directory)
    if (changed.length > FEW_DIRECTORIES) return null
  }
  return changed
}

/** Null: a full listing is needed. */
export async function narrowListing(scan: Scan, signal: AbortSignal): Promise<Listing | null> {
  const { env, cache } = scan
  if (!cache || !isNarrowable(scan, cache)) return null
  const tracked = changedPaths(env, { ...scan, index: cache.index, signal })
  tracked.catch(() => undefined)
  const { stats, failed } = scan.firstLook()
  const changed = failed ? null : changedDirectories(cache, stats)
  if (!changed || outsideRules(scan) !== cache.listing.outside) return null
  if (ignoreRules(scan, cache.directories) !== cache.listing.rules) return null
  const news = await newNames(scan, cache, { directories: changed, stats, signal })
  return news && { ...news.listing, changed: await tracked, stats, narrow: news.found }
}

/** With a watcher's word for all the rest, only what it names is looked at. Null: a wider listing is needed. */
export async function hintedListing(scan: Scan, signal: AbortSignal): Promise<Listing | null> {
  const { env, cache, hint, worktree, store } = scan
  if (!cache || !hint || !isNarrowable(scan, cache)) return null
  if (hint.subtrees.has('') || outsideRules(scan) !== cache.listing.outside) return null
  if (!isAsKnown(cache.linked, scan.linked)) return null
  const named = [...hint.paths, ...hint.subtrees].flatMap((path) => ['', path, ...ancestorsOf(path)])
  const known = [...new Set(named)].filter((one) => cache.directories.has(one))
  const { stats: first } = lookAtDirectories(env, worktree.root, known)
  const directories = new Set<string>()
  const subtrees = new Set(hint.subtrees)
  const changed = new Set<RelativePath>()
  const left = new Set<string>()
  const below = async (path: string) => {
    const entry = await store.trees.lookup(cache.tree, path)
    if (entry?.mode === '40000')
      for (const file of (await store.trees.files(entry.oid, `${path}/`)).keys()) changed.add(file)
  }
  // What is covered in a directory that is walked no more is told of by its watch, if one can be had.
  for (const directory of [...cache.listing.stops, ...cache.listing.nested]) {
    if (cache.listing.unwatched.has(directory)) continue
    if (isUnwatchable(directory)) {
      await below(directory)
      continue
    }
    const entry = await store.trees.lookup(cache.tree, directory)
    if (entry?.mode === '40000')
      for (const odd of await store.trees.oddDirectories(entry.oid)) await below(`${directory}/${odd}`)
  }
  for (const [directory, entry] of cache.directories.remarkable()) {
    if (entry.seen === 0) directories.add(directory)
    if (!isUnwatchable(directory)) continue
    if (entry.rules) return null // whether they changed nobody says
    subtrees.add(directory)
  }
  for (const path of [...hint.paths, ...subtrees]) {
    if (path === '.gitignore' || path.endsWith('/.gitignore')) return null
    // What was covered is looked at; what was not comes in by its directory, if no rule keeps it out.
    const covered = await store.trees.lookup(cache.tree, path)
    if (covered && covered.mode !== '40000') changed.add(path as RelativePath)
    let above = parentOf(path)
    while (above !== '' && !cache.directories.has(above)) above = parentOf(above)
    directories.add(above)
    const stats = look(env, worktree.root, path)
    // Its other names have changed too, and nobody tells of them: also where it has left them meanwhile.
    if (cache.linked.has(path as RelativePath) || (isStats(stats) && isLinked(stats))) return null
    const old = cache.directories.get(path)
    const isSame = isStats(stats) && old?.ino === stats.ino && old.seen !== 0
    if (isSame && stats.isDirectory() && !subtrees.has(path)) directories.add(path)
    else if (isStats(stats) && stats.isDirectory()) {
      // New, or another one under the same name: all that is known below it is in doubt.
      await below(path)
      for (const [one, { rules }] of cache.directories) {
        if (!isWithin(one, path)) continue
        if (rules) return null // nobody names a .gitignore that came with its directory
        directories.add(one)
      }
    } else {
      await below(path)
      if (old) left.add(path)
    }
  }
  // What was not covered in a directory that is there no more went with it, and nobody names that.
  if (left.size > 0)
    for (const path of [...cache.listing.ignored, ...cache.listing.nested, ...cache.listing.stops])
      if (ancestorsOf(barePath(path)).some((above) => left.has(above))) directories.add(parentOf(path))
  if (directories.size > FEW_DIRECTORIES) return null
  const news = await newNames(scan, cache, { directories: [...directories], stats: first, signal, only: true })
  return (
    news && {
      ...news.listing,
      changed: [...changed],
      stats: first,
      narrow: { ...news.found, only: directories },
    }
  )
}

interface News {
  listing: Omit<Listing, 'changed' | 'narrow' | 'stats'>
  found: {
    /** New directories that no rule ignores. */
    fresh: RelativePath[]
    /** The directories that were read for it. */
    visited: Map<string, Visited>
    gone: RelativePath[]
  }
}

interface NewNamesInput {
  directories: readonly string[]
  /** What lstat has just said of them. */
  stats?: ReadonlyMap<string, Stats>
  signal: AbortSignal
  only?: boolean
}

/** The names in some known directories that the cache does not know. Null: a full listing is needed. */
async function readAgain(
  scan: Scan,
  cache: SnapshotCache,
  { directories, stats }: Pick<NewNamesInput, 'directories' | 'stats'>,
): Promise<{ names: Map<RelativePath, 'file' | 'directory'>; visited: Map<string, Visited> } | null> {
  const { env, store, worktree } = scan
  const { root } = worktree
  const names = new Map<RelativePath, 'file' | 'directory'>()
  const visited = new Map<string, Visited>()
  for (const directory of directories) {
    const at = directory === '' ? '' : `${directory}/`
    let hasRules = false
    const looked = stats?.get(directory) ?? look(env, root, directory)
    const known = cache.directories.get(directory)
    if (!scan.isReal(parentOf(directory))) {
      visited.set(directory, null) // what a link leads to has its own name, or none here
      continue
    }
    if (known && isStats(looked) && unchanged(known, looked)) {
      visited.set(directory, { entry: known, children: [] }) // only what is in its files changed
      continue
    }
    const now = visit(env, { root, seen: scan.seen }, { directory, stats: looked })
    visited.set(directory, now)
    if (now === null || now === 'unreadable') continue // the walk says so
    const before = await store.trees.directory(cache.tree, directory)
    for (const entry of now.children) {
      const path = `${at}${entry.name}` as RelativePath
      if (entry.name === '.gitignore' && !entry.isDirectory()) hasRules = true
      if (entry.name === '.git' && directory !== '') return null // a repository of its own may begin here
      if (isDotGit(entry.name) || isOurs(worktree, path)) continue
      if (entry.isDirectory()) {
        if (!cache.directories.has(path)) names.set(path, 'directory')
      } else {
        // A file of the tree stays covered; a directory of the tree that is a file now is a new name.
        const was = before?.get(entry.name)
        if (!was || was.mode === '40000') names.set(path, 'file')
      }
    }
    if (hasRules !== known?.rules) return null
  }
  return { names, visited }
}

/** What came into some known directories since the cache was made. Null: a full listing is needed. */
async function newNames(
  scan: Scan,
  cache: SnapshotCache,
  { directories, stats, signal, only = false }: NewNamesInput,
): Promise<News | null> {
  const { env } = scan
  const { ignored: wasIgnored, nested: wasNested, stops: wereStops } = cache.listing
  if (only && directories.length === 0) {
    const listing = { untracked: [], nested: wasNested, ignored: wasIgnored, stops: wereStops, included: [] }
    return { listing, found: { fresh: [], visited: new Map(), gone: [] } }
  }
  const read = await readAgain(scan, cache, { directories, ...(stats && { stats }) })
  if (read === null) return null
  const { names, visited } = read
  // Where nothing changed nothing went: a watcher's word for the rest makes looking at each needless.
  const touched = only ? new Set(directories) : null
  const gone: RelativePath[] = []
  const isGone = (path: RelativePath) => {
    if (touched !== null && !touched.has(parentOf(path))) return false
    const now = look(env, scan.worktree.root, path)
    // A file in the place of an ignored directory is a new name, and the other way round.
    const isOther = now === null || (isStats(now) && now.isDirectory() !== path.endsWith('/'))
    if (isOther) gone.push(path)
    return isOther
  }
  let nested = wasNested.filter((path) => !isGone(directoryKey(path)))
  const ignored = new Set(wasIgnored.filter((path) => !isGone(path)))
  const stops = new Set(wereStops.filter((path) => !isGone(directoryKey(path))))
  for (const path of [...nested, ...[...ignored].map(barePath)]) {
    names.delete(path as RelativePath)
  }
  const rules = only ? rulesOf(cache) : null
  const asked = await askIgnored(scan, { names, rules }, signal)
  if (asked === null) return null
  let untracked: RelativePath[] = []
  const fresh: RelativePath[] = []
  for (const [path, kind] of names) {
    const key = kind === 'directory' ? directoryKey(path) : path
    if (asked.has(key)) {
      ignored.add(key)
      if (kind === 'directory') stops.add(path)
    } else if (kind === 'file') untracked.push(path)
    else fresh.push(path)
    // Git names a directory that holds ignored files only as one; with something else in it each is named alone.
    if (!asked.has(key) && ancestorsOf(path).some((above) => ignored.has(directoryKey(above)))) return null
  }
  // Git is told their names as arguments.
  if (!fresh.every(isText) || argumentPieces(fresh).length > 1) return null
  if (fresh.length > 0) {
    const below = await listUntracked(env, { ...scan, index: cache.index, signal, only: fresh })
    if (below === null) return null
    // Not as arguments: a call takes some 100,000, and a directory of that many files is nothing odd.
    untracked = untracked.concat(below.untracked)
    nested = nested.concat(below.nested)
    const directoriesBelow = new Map<RelativePath, 'directory'>()
    for (const path of below.ignored) {
      ignored.add(path)
      if (path.endsWith('/')) directoriesBelow.set(path.slice(0, -1) as RelativePath, 'directory')
    }
    for (const path of (await askIgnored(scan, { names: directoriesBelow, rules }, signal)) ?? [])
      stops.add(path.slice(0, -1) as RelativePath)
  }
  const listing = { untracked, nested: [...new Set(nested)], ignored: [...ignored], stops: [...stops], included: [] }
  return { listing, found: { fresh, visited, gone } }
}
