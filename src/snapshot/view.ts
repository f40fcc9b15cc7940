/** A snapshot as something to ask: what was at a path, and what changed between two of them. */
import {
  type Beside,
  isCutShort,
  parseBeside,
  sameDefaults,
  type UncoveredReason,
  uncoveredAt,
  uncoveredDirectories,
} from '../core/beside.ts'
import type { Checkpoint } from '../core/checkpoint.ts'
import type { Oid } from '../core/ids.ts'
import { ancestorsOf, barePath, isWithin } from '../core/paths.ts'
import { ABSENT, type PathState, sameState, type Transition } from '../core/state.ts'
import type { Store } from '../git/store.ts'
import type { FileEntry } from '../git/trees.ts'

export class SnapshotView {
  readonly tree: Oid
  readonly beside: Beside
  readonly #store: Store
  #bare: ReadonlySet<string> | null = null
  #holding: ReadonlySet<string> | null = null

  constructor(store: Store, tree: Oid, beside: Beside) {
    this.#store = store
    this.tree = tree
    this.beside = beside
  }

  /**
   * What the snapshot says of a path: absent only where the tree was read and covers it.
   * @throws CkptError DAMAGED when a tree is missing
   */
  async state(path: string): Promise<PathState> {
    const { beside } = this
    const bare = barePath(path)
    const entry = await this.#store.trees.lookup(this.tree, bare)
    if (path.endsWith('/')) {
      if (entry?.mode === '40000' || this.#bareDirectories().has(bare)) {
        const mode = beside.modes.get(path as never)
        // A walk that was cut says of a directory only what is other than the default.
        if (mode === undefined && isCutShort(beside)) return { kind: 'unknown', reason: 'budget' }
        return { kind: 'directory', mode: mode ?? beside.defaults.directory }
      }
    } else if (entry && entry.mode !== '40000') return this.fileState(path, { mode: entry.mode, oid: entry.oid })
    if (entry) return ABSENT
    const reason = uncoveredAt(beside, path)?.reason ?? (path.endsWith('/') ? this.#heldBy(bare) : null)
    return reason ? { kind: 'unknown', reason } : ABSENT
  }

  /** What is not captured in a directory that holds nothing else: it was there, and of its mode nothing is known. */
  #heldBy(directory: string): UncoveredReason | null {
    this.#holding ??= uncoveredDirectories(this.beside)
    if (!this.#holding.has(directory)) return null
    const found = this.beside.uncovered.find(({ path, reason }) => reason !== 'not-here' && isWithin(path, directory))
    return found?.reason ?? 'ignored'
  }

  /** Directories that are empty, and those that hold nothing else. */
  #bareDirectories(): ReadonlySet<string> {
    this.#bare ??= new Set([...this.beside.emptyDirectories].flatMap((path) => [path, ...ancestorsOf(path)]))
    return this.#bare
  }

  fileState(path: string, { mode, oid }: FileEntry): PathState {
    if (mode === '120000') return { kind: 'present', type: 'link', oid, mode: 0o777 }
    const { defaults, modes } = this.beside
    const plain = mode === '100755' ? defaults.exec : defaults.file
    return { kind: 'present', type: 'file', oid, mode: modes.get(path as never) ?? plain }
  }

  /** Every path that the snapshot has, directories by their key. */
  async paths(): Promise<Set<string>> {
    const { trees } = this.#store
    const directories = [...(await trees.directories(this.tree)), ...this.#bareDirectories()]
    return new Set([...(await trees.files(this.tree)).keys(), ...directories.map((path) => `${path}/`)])
  }

  /** Whether the snapshot had a directory at a path; null when it does not know. */
  async hadDirectory(path: string): Promise<boolean | null> {
    const state = await this.state(`${path}/`)
    return state.kind === 'directory' ? true : state.kind === 'unknown' ? null : false
  }
}

export async function viewOf(store: Store, checkpoint: Pick<Checkpoint, 'tree' | 'beside'>): Promise<SnapshotView> {
  return new SnapshotView(store, checkpoint.tree, parseBeside(await store.objects.get(checkpoint.beside, 'blob')))
}

/** Paths whose state differs between two snapshots, in path order; directories by their key. */
export async function transitionsBetween(store: Store, a: SnapshotView, b: SnapshotView): Promise<Transition[]> {
  const paths = new Set<string>()
  for (const { path } of await store.trees.compare(a.tree, b.tree)) paths.add(path)
  if (a.beside !== b.beside) {
    for (const [one, two] of [
      [a.beside, b.beside],
      [b.beside, a.beside],
    ] as const) {
      for (const [path, mode] of one.modes) if (two.modes.get(path) !== mode) paths.add(path)
      for (const path of one.emptyDirectories) if (!two.emptyDirectories.has(path)) paths.add(`${path}/`)
    }
    // What has no mode of its own in either may have two all the same.
    if (!sameDefaults(a.beside, b.beside)) {
      const others = await b.paths()
      for (const path of await a.paths()) if (others.has(path)) paths.add(path)
    }
  }
  const changes: Transition[] = []
  for (const path of [...paths].sort()) {
    const [from, to] = [await a.state(path), await b.state(path)]
    if (from.kind === 'unknown' && to.kind === 'unknown') continue
    if (!sameState(from, to)) changes.push({ path, from, to })
  }
  return changes
}
