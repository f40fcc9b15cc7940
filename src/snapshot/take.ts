/** Paths into the tree: looked at, checked against the limits, read and hashed. */
import type { Stats } from 'node:fs'
import type { DefaultModes, Uncovered } from '../core/beside.ts'
import type { Oid } from '../core/ids.ts'
import { isRepresentable, parentOf, type RelativePath } from '../core/paths.ts'
import type { TreeEntry } from '../core/tree-object.ts'
import type { FileEntry } from '../git/trees.ts'
import type { HotEntry } from './cache.ts'
import { fingerprint, isStats, LARGEST, look, onlyNames, permissions, readPath } from './disk.ts'
import { isLinked } from './linked.ts'
import { defaultModes, type Scan } from './scan.ts'
import type { Seed } from './seed.ts'
import { bigAndTracked } from './user-index.ts'
import type { WalkResult } from './walk.ts'
import { isOurs } from './worktree.ts'

export interface Taken {
  edits: Map<string, FileEntry | null>
  hot: Map<RelativePath, HotEntry>
  modes: Map<RelativePath, number>
  linked: Map<RelativePath, string>
  /** Paths that could not be taken though they may be there. */
  dropped: RelativePath[]
  /** Paths where nothing is now. */
  absent: RelativePath[]
  uncovered: Uncovered[]
  excluded: Map<RelativePath, string>
  /** Seeds that were used. */
  seeds: Map<RelativePath, Seed>
}

export interface TakeInput {
  known: Set<RelativePath>
  fresh: Set<RelativePath>
  seeds: Map<RelativePath, Seed>
  base: Oid
  /** All files of the base tree, where they are at hand. */
  unvouched: ReadonlyMap<string, FileEntry> | null
  walk: WalkResult
}

export async function takePaths(scan: Scan, { known, fresh, seeds, base, unvouched, walk }: TakeInput): Promise<Taken> {
  const { env, worktree } = scan
  const big = await bigAndTracked(
    scan,
    [...known, ...fresh].filter((path) => !seeds.has(path)),
  )
  const taking = new Taking(scan, { base, unvouched, unreadable: walk.unreadable, big })
  let done = 0
  const all = known.size + fresh.size
  for (const path of [...known, ...[...fresh].sort()]) {
    if (++done % 500 === 0) await env.progress(`snapshot: ${done} of ${all} paths`)
    const seed = seeds.get(path)
    if (isOurs(worktree, path)) await taking.drop(path, null)
    else if (seed && !scan.excluded(path)) await taking.vouchedFor(path, seed)
    else await taking.lookAt(path)
  }
  return taking.taken
}

type Given = Pick<TakeInput, 'base' | 'unvouched'> & Pick<WalkResult, 'unreadable'> & { big: ReadonlySet<RelativePath> }

/** One path after the other is taken, as long as the limits allow. */
class Taking {
  readonly taken: Taken
  #bytes = 0
  readonly #scan: Scan
  readonly #given: Given
  readonly #defaults: DefaultModes

  constructor(scan: Scan, given: Given) {
    this.#scan = scan
    this.#given = given
    this.#defaults = scan.cache?.defaults ?? defaultModes(scan.env)
    this.taken = {
      edits: new Map(),
      hot: new Map(),
      modes: new Map([...(scan.cache?.modes ?? [])].filter(([path]) => !path.endsWith('/'))),
      linked: new Map(scan.cache?.linked),
      dropped: [],
      absent: [],
      uncovered: [],
      excluded: new Map(),
      seeds: new Map(),
    }
  }

  /** What the user's index vouches for is not read. */
  async vouchedFor(path: RelativePath, seed: Seed): Promise<void> {
    await this.#take(path, seed.oid, seed.stats)
    this.taken.seeds.set(path, seed)
  }

  async drop(path: RelativePath, entry: Omit<Uncovered, 'path'> | null): Promise<void> {
    const { taken } = this
    taken.modes.delete(path)
    taken.linked.delete(path)
    await this.#set(path, null)
    if (entry === null) return
    taken.dropped.push(path)
    // One word for a directory that cannot be read, not one for each file in it.
    if (!this.#given.unreadable.some((directory) => path.startsWith(directory)))
      taken.uncovered.push({ path, ...entry })
  }

  async lookAt(path: RelativePath): Promise<void> {
    const { taken } = this
    const scan = this.#scan
    const { env, worktree, limits } = scan
    const stats = scan.isReal(parentOf(path)) ? look(env, worktree.root, path) : null
    if (stats === null || (isStats(stats) && stats.isDirectory())) {
      taken.absent.push(path)
      await this.drop(path, null)
    } else if (!isStats(stats)) {
      await this.drop(path, { reason: 'unreadable' })
    } else if (scan.excluded(path)) {
      taken.excluded.set(path, fingerprint(stats))
      taken.dropped.push(path)
      await this.drop(path, null)
    } else if (!isRepresentable(path)) {
      await this.drop(path, { reason: 'unrepresentable', print: fingerprint(stats) })
    } else if (
      stats.isFile() &&
      (stats.size > LARGEST || (stats.size > limits.maxFileSize && !this.#given.big.has(path)))
    ) {
      await this.drop(path, { reason: 'too-large', print: fingerprint(stats) })
    } else if (scan.late() || (this.#isOver(stats) && (await this.#captured(path)) === null)) {
      await this.drop(path, { reason: 'budget', print: fingerprint(stats) })
    } else await this.#read(path, stats)
  }

  async #read(path: RelativePath, stats: Stats): Promise<void> {
    const { env, worktree, store, anew, seen } = this.#scan
    const { objects } = store
    // What was captured before costs no more bytes, whatever the budget: it only has to be known again.
    const over = this.#isOver(stats)
    const reading = readPath(env, { root: worktree.root, path }, over ? onlyNames(objects) : objects)
    if (reading.kind === 'unreadable') return this.drop(path, { reason: 'unreadable', print: fingerprint(stats) })
    if (reading.kind !== 'read') return this.drop(path, null)
    if (over && (anew || !(await objects.has(reading.oid)))) {
      return this.drop(path, { reason: 'budget', print: fingerprint(stats) })
    }
    const { oid, type, stats: read } = reading
    const isNew = !over && (anew || (await this.#captured(path))?.oid !== oid)
    if (isNew) this.#bytes += read.size
    await this.#take(path, oid, read)
    const { size, mtimeMs, ctimeMs, ino } = read
    this.taken.hot.set(path, { oid, type, size, mtimeMs, ctimeMs, ino, mode: permissions(read), seen })
  }

  #take(path: RelativePath, oid: Oid, stats: Stats): Promise<void> | void {
    const { modes, linked } = this.taken
    if (isLinked(stats)) linked.set(path, fingerprint(stats))
    else linked.delete(path)
    const mode = permissions(stats)
    const link = stats.isSymbolicLink()
    const plain = mode & 0o100 ? this.#defaults.exec : this.#defaults.file
    if (link || mode === plain) modes.delete(path)
    else modes.set(path, mode)
    return this.#set(path, { mode: link ? '120000' : mode & 0o100 ? '100755' : '100644', oid })
  }

  #set(path: RelativePath, entry: FileEntry | null): Promise<void> | void {
    const { base, unvouched } = this.#given
    const from = (was: Pick<TreeEntry, 'mode' | 'oid'> | null) => {
      if (entry === null ? was !== null && was.mode !== '40000' : was?.oid !== entry.oid || was.mode !== entry.mode) {
        this.taken.edits.set(path, entry)
      }
    }
    return unvouched ? from(unvouched.get(path) ?? null) : this.#scan.store.trees.lookup(base, path).then(from)
  }

  #isOver(stats: Stats): boolean {
    return stats.isFile() && this.#bytes + stats.size > this.#scan.limits.maxBytes
  }

  /** What was captured of a path before. */
  async #captured(path: RelativePath): Promise<Pick<TreeEntry, 'oid'> | null> {
    const { base, unvouched } = this.#given
    const { store, cache, lastTree } = this.#scan
    if (cache === null && lastTree === null) return null
    return unvouched ? (unvouched.get(path) ?? null) : store.trees.lookup(base, path)
  }
}
