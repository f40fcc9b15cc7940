/**
 * The first snapshot of a clean checkout: what the user's index vouches for is taken over path by path, its objects
 * hard-linked into the store, instead of being read and hashed again.
 */
import type { Stats } from 'node:fs'
import { splitNul } from '../core/beside.ts'
import type { Oid } from '../core/ids.ts'
import type { RelativePath } from '../core/paths.ts'
import { type Env, errno } from '../env.ts'
import { runGit } from '../git/process.ts'
import { objectDirectories, type Repository } from '../git/repository.ts'
import type { Store } from '../git/store.ts'
import { isStats, look } from './disk.ts'

export interface Seed {
  oid: Oid
  stats: Stats
}

const ASSUME_UNCHANGED = 0x8000
const INTENT_TO_ADD = 0x20000000
const SKIP_WORKTREE = 0x40000000

const row =
  /(?:^|\n)?([0-7]{6}) ([0-9a-f]{40,64}) ([0-3])\t([^\0]*)\0 {2}ctime: (\d+):(\d+)\n {2}mtime: (\d+):(\d+)\n {2}dev: (\d+)\tino: (\d+)\n {2}uid: (\d+)\tgid: (\d+)\n {2}size: (\d+)\tflags: ([0-9a-f]+)\n/gy

/** Paths whose content on disk is a blob that the store now has. Every doubt leaves a path out: it is then hashed. */
export async function seedFromUserIndex(
  env: Env,
  {
    root,
    repository,
    store,
    realParent,
  }: { root: string; repository: Repository; store: Store; realParent: (path: string) => boolean },
): Promise<Map<RelativePath, Seed>> {
  const index = look(env, repository.gitDir, 'index')
  if (!isStats(index)) return new Map()
  const out = await runGit(env, { args: ['ls-files', '-s', '--debug', '-z'], cwd: root })
  const candidates = new Map<RelativePath, Seed>()
  const indexSeconds = Math.floor(index.mtimeMs / 1000)
  for (const match of out.toString('latin1').matchAll(row)) {
    const [, mode, oid, stage, path, ctime, , mtime, mtimeNs, , ino, , , size, flags] = match
    const bits = Number.parseInt(flags!, 16)
    if (stage !== '0' || mode === '160000' || (bits & (ASSUME_UNCHANGED | INTENT_TO_ADD | SKIP_WORKTREE)) !== 0)
      continue
    const stats = look(env, root, path!)
    if (!isStats(stats)) continue
    const type =
      mode === '120000'
        ? stats.isSymbolicLink()
        : stats.isFile() && (mode === '100755') === ((stats.mode & 0o100) !== 0)
    const seconds = Math.floor(stats.mtimeMs / 1000)
    const nanoseconds = Number(mtimeNs)
    const same =
      type &&
      Number(size) === stats.size % 2 ** 32 &&
      Number(ino) === stats.ino % 2 ** 32 &&
      Number(mtime) === seconds &&
      (nanoseconds === 0 || Math.abs(nanoseconds / 1e6 - (stats.mtimeMs - seconds * 1000)) < 0.01) &&
      Number(ctime) === Math.floor(stats.ctimeMs / 1000) &&
      Number(ctime) < indexSeconds && // not racy: it was at rest when the index was written
      seconds < indexSeconds
    if (same && realParent(path!)) candidates.set(path as RelativePath, { oid: oid as Oid, stats })
  }
  if (candidates.size === 0) return candidates
  const [converted] = await Promise.all([
    convertedPaths(env, root, [...candidates.keys()]),
    takeObjects(env, repository, store, candidates),
  ])
  for (const path of converted) candidates.delete(path)
  return candidates
}

/** Paths whose bytes in git are not those on disk: gitattributes(5) filter, ident, working-tree-encoding. */
async function convertedPaths(env: Env, root: string, paths: readonly RelativePath[]): Promise<Set<RelativePath>> {
  const out = await runGit(env, {
    args: ['check-attr', '-z', '--stdin', 'filter', 'ident', 'working-tree-encoding'],
    cwd: root,
    input: Buffer.from(`${paths.join('\0')}\0`, 'latin1'),
  })
  const fields = splitNul(out)
  const converted = new Set<RelativePath>()
  for (let i = 0; i + 2 < fields.length; i += 3) {
    const value = fields[i + 2] as string
    if (value !== 'unspecified' && value !== 'unset') converted.add(fields[i]!)
  }
  return converted
}

/** Brings the candidates' blobs into the store, and drops those whose size is not the file's, or that are not here. */
async function takeObjects(
  env: Env,
  repository: Repository,
  store: Store,
  candidates: Map<RelativePath, Seed>,
): Promise<void> {
  const directories = await objectDirectories(env, repository)
  const linked = directories.map((directory) => linkPacks(env, directory, store)).every(Boolean)
  const wanted = [...new Set([...candidates.values()].map((seed) => seed.oid))]
  let sizes = await sizesIn(store, wanted)
  const missing = wanted.filter((oid) => !sizes.has(oid))
  if (missing.length > 0) {
    const left = linked ? missing.filter((oid) => !linkLoose(env, directories, oid, store)) : missing
    if (left.length > 0) await copyObjects(store, directories, left)
    sizes = new Map([...sizes, ...(await sizesIn(store, missing))])
  }
  for (const [path, { oid, stats }] of candidates) if (sizes.get(oid) !== stats.size) candidates.delete(path)
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
  for (const name of names) {
    const base = /^(pack-[0-9a-f]+)\.pack$/.exec(name)?.[1]
    if (!base || !names.has(`${base}.idx`)) continue
    // The index last: a pack is used once its index is there.
    for (const suffix of ['.pack', '.idx']) {
      if (!link(env, `${packs}/${base}${suffix}`, `${store.gitDir}/objects/pack/${base}${suffix}`)) return false
    }
  }
  return true
}

function linkLoose(env: Env, directories: readonly string[], oid: Oid, store: Store): boolean {
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
    if (code === 'EXDEV' || code === 'EPERM' || code === 'EACCES' || code === 'EMLINK' || code === 'ENOENT')
      return false
    throw error
  }
}

/** Copies objects into a pack of the store. The user's objects are seen through the store's own configuration: nothing is fetched. */
async function copyObjects(store: Store, directories: readonly string[], oids: readonly Oid[]): Promise<void> {
  const vars = {
    GIT_ALTERNATE_OBJECT_DIRECTORIES: directories.map((d) => `"${d.replace(/["\\]/g, '\\$&')}"`).join(':'),
  }
  const here = [...(await sizesIn(store, oids, vars)).keys()]
  if (here.length === 0) return
  await store.git(['pack-objects', '-q', `${store.gitDir}/objects/pack/pack`], { input: `${here.join('\n')}\n`, vars })
}
