/** The user's own index: asked for its paths, never written, never copied. */
import { createHash } from 'node:crypto'
import { ancestorsOf, barePath, directoryKey, isText, pathToText, type RelativePath, splitNul } from '../core/paths.ts'
import type { Env } from '../env.ts'
import { runGit } from '../git/process.ts'
import { fingerprint, isStats, look } from './disk.ts'
import type { Scan } from './scan.ts'

export interface UserIndex {
  /** Fingerprint of the index file; null: there is none. */
  print: string | null
  /** Digest of its paths. */
  names: string
  /** Its paths, when they are others than at the last scan: tracked files are covered whatever is ignored. */
  paths: RelativePath[]
  /** Paths of a sparse checkout that are not on disk by intent (git-sparse-checkout(1)), collapsed to directories. */
  notHere: RelativePath[]
}

export async function readUserIndex(scan: Scan): Promise<UserIndex> {
  const { env, worktree, cache } = scan
  const { root, repository } = worktree
  const stats = repository ? look(env, repository.gitDir, 'index') : null
  const print = isStats(stats) ? fingerprint(stats) : null
  if (print === null) return { print, names: '', paths: [], notHere: [] }
  const known = cache?.userIndex
  const isKept = known && !isOneHere(scan, known.notHere)
  if (isKept && known.print === print) return { ...known, paths: [] }
  const out = await runGit(env, { args: ['ls-files', '-t', '-z'], cwd: root })
  const names = createHash('sha1').update(out).digest('hex')
  if (isKept && known.names === names) return { ...known, print, paths: [] }
  const rows = splitNul(out)
  const notHere = new Set<RelativePath>()
  for (const row of rows) {
    if (!row.startsWith('S ') || look(env, root, row.slice(2)) !== null) continue
    const path = row.slice(2) as RelativePath
    // The topmost directory that is not there stands for all below it.
    const top = ancestorsOf(path)
      .filter((directory) => look(env, root, directory) === null)
      .at(-1)
    notHere.add(top === undefined ? path : directoryKey(top))
  }
  return { print, names, paths: rows.map((row) => row.slice(2) as RelativePath), notHere: [...notHere].sort() }
}

/** Whether something has come to one of these places: what is not here is then not all that was. */
function isOneHere({ env, worktree, hint }: Scan, notHere: readonly RelativePath[]): boolean {
  return notHere.some((place) => {
    const path = barePath(place)
    const isAsked =
      !hint || hint.paths.has(path) || [path, ...ancestorsOf(path)].some((directory) => hint.subtrees.has(directory))
    return isAsked && look(env, worktree.root, path) !== null
  })
}

/** Files over the size limit that are in the user's own index: those are taken at any size. */
export async function bigAndTracked(
  { env, worktree, limits }: Scan,
  paths: readonly RelativePath[],
): Promise<Set<RelativePath>> {
  if (!worktree.repository) return new Set()
  const big = paths.filter((path) => {
    const stats = look(env, worktree.root, path)
    return isStats(stats) && stats.isFile() && stats.size > limits.maxFileSize
  })
  return trackedAmong(env, worktree.root, big)
}

/** Which of these paths the user's index has. */
export async function trackedAmong(env: Env, root: string, paths: readonly RelativePath[]): Promise<Set<RelativePath>> {
  if (paths.length === 0) return new Set()
  const nameable = paths.length < 500 && paths.every(isText)
  const args = ['ls-files', '-z', ...(nameable ? ['--', ...paths.map(pathToText)] : [])]
  const tracked = new Set(splitNul(await runGit(env, { args, cwd: root })))
  return new Set(paths.filter((path) => tracked.has(path)))
}
