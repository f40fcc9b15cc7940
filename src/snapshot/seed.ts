/**
 * The first snapshot of a clean checkout: what the user's index vouches for is taken over path by path, its objects
 * hard-linked into the store, instead of being read and hashed again.
 */
import type { Stats } from 'node:fs'
import type { Oid } from '../core/ids.ts'
import type { RelativePath } from '../core/paths.ts'
import { type Env, errno } from '../env.ts'
import { makePacksDirectory } from '../git/packs.ts'
import { runGit, tryGit, withObjectsOf } from '../git/process.ts'
import { objectDirectories, type Repository } from '../git/repository.ts'
import type { Store } from '../git/store.ts'
import { movePack, noteUnsynced } from '../git/unsynced-packs.ts'
import { isLinkless, readIfThere } from '../git/whole-file.ts'
import { isStats, look, onlyNames, readPath } from './disk.ts'
import { type IndexEntry, parseIndex } from './index-file.ts'

export interface Seed {
  oid: Oid
  stats: Stats
}

/** Paths whose content on disk is a blob that the store now has. Every doubt leaves a path out: it is then hashed. */
export async function seedFromUserIndex(
  env: Env,
  {
    root,
    repository,
    store,
    realParent,
    excluded,
    linked,
    vain,
  }: {
    root: string
    repository: Repository
    store: Store
    realParent: (path: string) => boolean
    excluded: (path: string) => boolean
    /** Null: no contents are taken over, and those that are here already are vouched for. */
    linked: ReturnType<typeof linkObjects> | null
    /** Aborted: what is not done yet is not needed. */
    vain: AbortSignal
  },
): Promise<Map<RelativePath, Seed>> {
  await new Promise(setImmediate) // git's listing starts first
  const written = look(env, repository.gitDir, 'index')
  const bytes = readIfThere(env, `${repository.gitDir}/index`)
  if (!isStats(written) || bytes === null) return new Map()
  const rows = parseIndex(bytes, store.place.hash, { unsummed: true })
  if (rows.length === 0) return new Map()
  // git works on these while the files are looked at.
  const doubting = maybeConvertedBefore(env, repository)
  const converting = convertedPaths(env, root, rows)
  const sizing = Promise.resolve(linked).then(() => sizesIn(store, [...new Set(rows.map(({ oid }) => oid))]))
  const all = Promise.all([converting, sizing, doubting])
  all.catch(() => undefined) // awaited below
  const indexSeconds = Math.floor(written.mtimeMs / 1000)
  const candidates = new Map<RelativePath, Seed>()
  for (const [number, one] of rows.entries()) {
    if (number % 2000 === 0) await new Promise(setImmediate)
    if (vain.aborted) break
    const stats = look(env, root, one.path)
    if (isStats(stats) && isAtRest(one, stats, indexSeconds) && realParent(one.path) && !excluded(one.path))
      candidates.set(one.path, { oid: one.oid, stats })
  }
  const [converted, sizes, isDoubtful] = await all
  // The blob of a file that is gone, edited or excluded has no place in the store: nothing of ours would name it.
  if (linked)
    await takeObjects(env, store, {
      linked: await linked,
      wanted: [...candidates.values()].map(({ oid }) => oid),
      sizes,
      vain,
    })
  let looked = 0
  for (const [path, { oid, stats }] of candidates) {
    if (vain.aborted) break
    const doubtful = isDoubtful(stats.size)
    if (doubtful && ++looked % 500 === 0) await new Promise(setImmediate)
    if (sizes.get(oid) !== stats.size || converted.has(path) || (doubtful && !holds(env, { root, store, path, oid })))
      candidates.delete(path)
  }
  return vain.aborted ? new Map() : candidates
}

/** The file is as the index says, and was so already when the index was written. */
function isAtRest({ mode, ctimeMs, mtimeMs, ino, size }: IndexEntry, stats: Stats, indexSeconds: number): boolean {
  const isOfType =
    mode === '120000' ? stats.isSymbolicLink() : stats.isFile() && (mode === '100755') === ((stats.mode & 0o100) !== 0)
  return (
    isOfType &&
    size === stats.size % 2 ** 32 &&
    ino === stats.ino % 2 ** 32 &&
    isSameTime(mtimeMs, stats.mtimeMs) &&
    Math.floor(ctimeMs / 1000) === Math.floor(stats.ctimeMs / 1000) &&
    Math.floor(ctimeMs / 1000) < indexSeconds && // else it is racy
    Math.floor(mtimeMs / 1000) < indexSeconds
  )
}

/** A git that was built without them writes zeros for nanoseconds. */
const isSameTime = (index: number, disk: number) =>
  Math.floor(index / 1000) === Math.floor(disk / 1000) && (index % 1000 === 0 || Math.abs(index - disk) < 0.01)

/** Paths whose bytes in git are not those on disk: gitattributes(5) filter, ident, working-tree-encoding. */
async function convertedPaths(env: Env, root: string, rows: readonly IndexEntry[]): Promise<Set<RelativePath>> {
  const out = await runGit(env, {
    args: ['check-attr', '-z', '--stdin', 'filter', 'ident', 'working-tree-encoding'],
    cwd: root,
    vars: { GIT_ATTR_NOSYSTEM: '0' }, // those of the system have converted what the user's git put there
    input: Buffer.from(`${rows.map(({ path }) => path).join('\0')}\0`, 'latin1'),
  })
  const converted = new Set<RelativePath>()
  // Hundreds of thousands of triples, nearly all of which say nothing.
  for (const [, path] of out.toString('latin1').matchAll(triple))
    if (path !== undefined) converted.add(path as RelativePath)
  return converted
}

/** Bytes: of such a size are the pointers that git-lfs keeps in the place of files. */
const isSizeOfPointer = (size: number) => size >= 100 && size < 200

/**
 * Whether files of a size may have other bytes than the blobs that the index names, though no attribute says so now: git
 * believes the times of what it once put there through a filter, or in the place of a replaced object (git-replace(1)).
 * Git LFS, which many have in their own configuration for all repositories, keeps no size but a pointer's.
 */
async function maybeConvertedBefore(env: Env, { root }: Repository): Promise<(size: number) => boolean> {
  const [filters, replaced] = await Promise.all([
    tryGit(env, { args: ['config', '--show-scope', '--name-only', '--get-regexp', '^filter\\.'], cwd: root }),
    runGit(env, { args: ['for-each-ref', '--count=1', '--format=%(objectname)', 'refs/replace'], cwd: root }),
  ])
  const unsaid = filters.code > 1 // 1: there are none (git-config(1))
  const rows = filters.stdout.toString('latin1').split('\n').filter(Boolean)
  const isEverybodys = (row: string) => /^(global|system)\tfilter\.lfs\.[a-z]+$/.test(row)
  if (unsaid || replaced.length > 0 || !rows.every(isEverybodys)) return () => true
  return rows.length > 0 ? isSizeOfPointer : () => false
}

/** Whether a file has the content of a blob; nothing is written for it. */
function holds(env: Env, { root, store, path, oid }: { root: string; store: Store; path: string; oid: Oid }): boolean {
  const reading = readPath(env, { root, path }, onlyNames(store.objects))
  return reading.kind === 'read' && reading.oid === oid
}

/** One of gitcheckattr's triples; the group takes part only when the attribute is set. */
const triple = /[^\0]*\0[^\0]*\0(?:unspecified|unset)\0|([^\0]*)\0[^\0]*\0[^\0]*\0/gy

interface Linked {
  /** The user's object directories. */
  directories: string[]
  /** Linking is possible here. */
  possible: boolean
}

/** Hard-links the user's packs into the store. */
export async function linkObjects(env: Env, repository: Repository, store: Store): Promise<Linked> {
  const directories = await objectDirectories(env, repository)
  return { directories, possible: directories.map((directory) => linkPacks(env, directory, store)).every(Boolean) }
}

/** Brings those blobs of the user's repository into the store that are not here. `sizes`: of those that are; others are added. */
async function takeObjects(
  env: Env,
  store: Store,
  {
    linked: { directories, possible },
    wanted,
    sizes,
    vain,
  }: { linked: Linked; wanted: Iterable<Oid>; sizes: Map<Oid, number>; vain: AbortSignal },
): Promise<void> {
  const missing = [...new Set(wanted)].filter((oid) => !sizes.has(oid))
  const left: Oid[] = possible ? [] : missing
  for (const [number, oid] of possible ? missing.entries() : []) {
    if (number % 500 === 0) await new Promise(setImmediate)
    if (vain.aborted) return
    if (!linkLoose(env, store, { directories, oid })) left.push(oid)
  }
  if (missing.length === 0 || vain.aborted) return
  if (left.length > 0) await copyObjects(env, { store, directories, oids: left })
  for (const [oid, size] of await sizesIn(store, missing)) sizes.set(oid, size)
}

async function sizesIn(
  store: Store,
  oids: readonly Oid[],
  vars: Record<string, string> = {},
): Promise<Map<Oid, number>> {
  const out = await store.git(['cat-file', '--batch-check=%(objectname) %(objecttype) %(objectsize)'], {
    input: `${oids.join('\n')}\n`,
    vars,
  })
  const sizes = new Map<Oid, number>()
  for (const line of out.toString('latin1').split('\n')) {
    const [oid, type, size] = line.split(' ')
    if (type === 'blob') sizes.set(oid as Oid, Number(size))
  }
  return sizes
}

/** False when linking is not possible here: another file system, another owner. */
function linkPacks(env: Env, directory: string, store: Store): boolean {
  const { files } = env
  const packs = `${directory}/pack`
  if (!files.existsSync(packs)) return true
  const names = new Set(files.readdirSync(packs))
  makePacksDirectory(files, store.gitDir)
  for (const name of names) {
    const base = /^(pack-[0-9a-f]+)\.pack$/.exec(name)?.[1]
    if (!base || !names.has(`${base}.idx`)) continue
    noteUnsynced(files, store.gitDir, { pack: base, index: `${packs}/${base}.idx` })
    // The index last: a pack is used once its index is there.
    for (const suffix of ['.pack', '.idx']) {
      if (!link(env, `${packs}/${base}${suffix}`, `${store.gitDir}/objects/pack/${base}${suffix}`)) return false
    }
  }
  return true
}

function linkLoose(
  env: Env,
  store: Store,
  { directories, oid }: { directories: readonly string[]; oid: Oid },
): boolean {
  const target = store.objects.loosePath(oid)
  for (const directory of directories) {
    const source = `${directory}/${oid.slice(0, 2)}/${oid.slice(2)}`
    if (!env.files.existsSync(source)) continue
    env.files.mkdirSync(target.slice(0, target.lastIndexOf('/')), { recursive: true, mode: 0o700 })
    if (link(env, source, target)) return true
  }
  return false
}

function link(env: Env, from: string, to: string): boolean {
  try {
    env.files.linkSync(from, to)
    return true
  } catch (error) {
    const code = errno(error)
    if (code === 'EEXIST') return true
    if (isLinkless(error) || code === 'EXDEV' || code === 'EACCES' || code === 'ENOENT') return false
    throw error
  }
}

/** Copies objects into a pack of the store. The user's objects are seen through the store's own configuration: nothing is fetched. */
async function copyObjects(
  env: Env,
  { store, directories, oids }: { store: Store; directories: readonly string[]; oids: readonly Oid[] },
): Promise<void> {
  const vars = withObjectsOf(directories)
  const here = [...(await sizesIn(store, oids, vars)).keys()]
  if (here.length === 0) return
  const own = `${store.worktreeDir}/tmp`
  env.files.mkdirSync(own, { recursive: true, mode: 0o700 })
  const drafts = `${own}/${env.random(6)}`
  const out = await store.git(['pack-objects', '-q', drafts], { input: `${here.join('\n')}\n`, vars })
  for (const sum of out.toString('latin1').trim().split('\n')) {
    const from = `${drafts}-${sum}`
    for (const suffix of ['.pack', '.idx']) store.objects.grown += env.files.statSync(`${from}${suffix}`).size
    movePack(env, store.gitDir, { from, pack: `pack-${sum}` })
  }
}
