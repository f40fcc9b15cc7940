/**
 * The listing without git's whole walk. What is untracked or ignored in a directory can only have changed if the
 * directory changed, or an ignore rule did: so only names that are new in changed directories are asked about. Whatever
 * does not fit falls back to the full listing.
 */
import type { Stats } from 'node:fs'
import { splitNul } from '../core/beside.ts'
import { directoryKey, type RelativePath } from '../core/paths.ts'
import { errno } from '../env.ts'
import { gitFailure, tryGit } from '../git/process.ts'
import type { SnapshotCache } from './cache.ts'
import { fingerprint, isStats, look, native } from './disk.ts'
import { changedPaths, type Listing, listUntracked } from './listing.ts'
import type { Scan } from './scan.ts'
import { unchanged } from './walk.ts'
import { isOurs } from './worktree.ts'

/** More changed directories than this, and git's own walk is as fast. */
const FEW_DIRECTORIES = 400

/** Fingerprint of every ignore rule: the user's files, and each .gitignore that is known. */
export function ignoreRules(
  { env, worktree, limits }: Scan,
  directories: ReadonlyMap<string, { rules: boolean }>,
): string {
  const print = (path: string) => {
    const stats = look(env, worktree.root, path)
    return isStats(stats) ? fingerprint(stats) : 'none'
  }
  const outside = worktree.ignoreFiles.map((file) => {
    const stats = look(env, file.slice(0, file.lastIndexOf('/')), file.slice(file.lastIndexOf('/') + 1))
    return `${file} ${isStats(stats) ? fingerprint(stats) : 'none'}`
  })
  const inside: string[] = []
  for (const [directory, entry] of directories) {
    if (entry.rules) inside.push(print(directory === '' ? '.gitignore' : `${directory}/.gitignore`))
  }
  return JSON.stringify([limits.include, limits.exclude, limits.maxFileSize, outside, inside.sort().join(' ')])
}

/** What the known directories are like now. */
interface Look {
  stats: Map<string, Stats>
  changed: string[]
}

function lookAtDirectories({ env, worktree }: Scan, cache: SnapshotCache): Look | null {
  const stats = new Map<string, Stats>()
  const changed: string[] = []
  for (const [directory, entry] of cache.directories) {
    const now = look(env, worktree.root, directory)
    if (now === null) continue // its parent changed too
    if (!isStats(now)) return null
    stats.set(directory, now)
    if (!now.isDirectory()) continue
    // A directory with a .git of its own may become a repository without changing itself.
    const odd = directory !== '' && entry.unrepresentable.length > 0
    if (odd || !unchanged(entry, now)) changed.push(directory)
    if (changed.length > FEW_DIRECTORIES) return null
  }
  return { stats, changed }
}

/** Null: a full listing is needed. */
export async function narrowListing(scan: Scan, signal: AbortSignal): Promise<Listing | null> {
  const { env, cache, store, limits } = scan
  if (!cache || limits.include.length > 0) return null
  const tracked = changedPaths(env, { ...scan, index: cache.index, signal })
  tracked.catch(() => undefined)
  const looked = lookAtDirectories(scan, cache)
  if (!looked || ignoreRules(scan, cache.directories) !== cache.listing.rules) return null
  const names = new Map<RelativePath, 'file' | 'directory'>()
  const present = new Set<string>()
  for (const directory of looked.changed) {
    const at = directory === '' ? '' : `${directory}/`
    let hasRules = false
    for (const entry of readNames(scan, directory) ?? []) {
      const path = `${at}${entry.name}` as RelativePath
      present.add(path)
      if (entry.name === '.gitignore' && !entry.isDirectory()) hasRules = true
      if (/^\.git$/i.test(entry.name) || isOurs(scan.worktree, path)) continue
      if (entry.isDirectory()) {
        if (!cache.directories.has(path)) names.set(path, 'directory')
      } else {
        // A file of the tree stays covered; a directory of the tree that is a file now is a new name.
        const known = await store.trees.lookup(cache.tree, path)
        if (!known || known.mode === '40000') names.set(path, 'file')
      }
    }
    if (hasRules !== cache.directories.get(directory)?.rules) return null
  }
  const gone = (path: string) => {
    const bare = path.endsWith('/') ? path.slice(0, -1) : path
    return look(env, scan.worktree.root, bare) === null
  }
  const nested = cache.listing.nested.filter((path) => !gone(path))
  const ignored = new Set(cache.listing.ignored.filter((path) => !gone(path)))
  for (const path of [...nested, ...[...ignored].map((one) => one.replace(/\/$/, ''))])
    names.delete(path as RelativePath)
  const asked = await askIgnored(scan, names, signal)
  if (asked === null) return null
  const untracked: RelativePath[] = []
  const fresh: RelativePath[] = []
  for (const [path, kind] of names) {
    const key = kind === 'directory' ? directoryKey(path) : path
    if (asked.has(key)) ignored.add(key)
    else if (kind === 'file') untracked.push(path)
    else fresh.push(path)
  }
  if (fresh.length > 0) {
    const below = await listUntracked(env, { ...scan, index: cache.index, signal, only: fresh })
    if (below === null) return null
    untracked.push(...below.untracked)
    nested.push(...below.nested)
    for (const path of below.ignored) ignored.add(path)
  }
  return {
    changed: await tracked,
    untracked,
    nested: [...new Set(nested)],
    ignored: [...ignored],
    included: [],
    stats: looked.stats,
  }
}

function readNames({ env, worktree }: Scan, directory: string) {
  try {
    return env.files.readdirSync(native(worktree.root, directory), { withFileTypes: true, encoding: 'latin1' })
  } catch (error) {
    const code = errno(error)
    if (code === 'ENOENT' || code === 'ENOTDIR' || code === 'EACCES' || code === 'EPERM') return null // the walk names it
    throw error
  }
}

/** Which of these names a rule ignores: git-check-ignore(1). Null: the signal came first. */
export async function askIgnored(
  { env, worktree, store, limits }: Scan,
  names: ReadonlyMap<RelativePath, 'file' | 'directory'>,
  signal: AbortSignal,
): Promise<Set<RelativePath> | null> {
  if (names.size === 0) return new Set()
  const { root, repository } = worktree
  const input = Buffer.from(
    [...names].map(([path, kind]) => `./${kind === 'directory' ? directoryKey(path) : path}\0`).join(''),
    'latin1',
  )
  const args = ['check-ignore', '--no-index', '-z', '--stdin']
  // Names are taken as pathspecs, and literal ones are not supported here: `./` keeps a leading colon from meaning anything.
  const vars = { GIT_LITERAL_PATHSPECS: '0', ...(repository ? {} : { ...store.vars, GIT_WORK_TREE: root }) }
  const result = await tryGit(env, { args, cwd: root, vars, input, signal })
  if (signal.aborted) return null
  if (result.code > 1) throw gitFailure(args, result) // 1: none of them is ignored
  const found = new Set(splitNul(result.stdout).map((path) => path.slice(2) as RelativePath))
  // The configuration's own patterns are not in any file that git reads.
  if (limits.exclude.length > 0) {
    const { excluder } = await import('./worktree.ts')
    const excluded = excluder(limits)
    for (const [path, kind] of names) if (excluded(path)) found.add(kind === 'directory' ? directoryKey(path) : path)
  }
  return found
}
