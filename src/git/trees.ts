/** Trees of the store: looked up, compared and edited path by path, without an index. */
import { MovedMeanwhile } from '../core/errors.ts'
import type { Oid } from '../core/ids.ts'
import { isText, type RelativePath, shown } from '../core/paths.ts'
import type { PathState } from '../core/state.ts'
import { formatTree, type PlacedEntry, parseTree, type TreeEntry, type TreeMode } from '../core/tree-object.ts'
import type { ObjectStore } from './objects.ts'

export interface FileEntry {
  mode: Exclude<TreeMode, '40000'>
  oid: Oid
}

/** What a tree holds for a file or link: of its permissions only whether its owner may run it. */
export function fileEntry({ type, mode, oid }: Extract<PathState, { kind: 'present' }>): FileEntry {
  return { mode: type === 'link' ? '120000' : (mode & 0o100) === 0 ? '100644' : '100755', oid }
}

/** Null removes the path. */
export type TreeEdits = ReadonlyMap<string, FileEntry | null>

export interface TreeChange {
  path: RelativePath
  from: FileEntry | null
  to: FileEntry | null
}

/** Rows of trees that are remembered, some fifty megabytes: a directory of thousands of files is a new tree with each turn. */
const MOST_ROWS = 250_000
/** So many are remembered all the same: one with more rows than that is not to be read again for each path in it. */
const FEWEST = 8

export class Trees {
  readonly #objects: ObjectStore
  /** The one that was asked for last is the last. */
  readonly #cache = new Map<Oid, CachedTree>()
  #rows = 0
  /** So many at most; where all of a larger worktree was asked for, that is to be there the next time. */
  #most = MOST_ROWS
  readonly empty: Oid

  constructor(objects: ObjectStore) {
    this.#objects = objects
    this.empty = objects.oidOf('tree', Buffer.alloc(0))
    this.forget()
  }

  /** What was read may be gone from the store. */
  forget(): void {
    this.#cache.clear()
    this.#rows = 0
    this.#learn(this.empty, Buffer.alloc(0))
  }

  /** @throws CkptError DAMAGED when the tree is missing: a tree that cannot be read proves nothing. */
  async entries(oid: Oid): Promise<ReadonlyMap<string, TreeEntry>> {
    return (await this.#read(oid)).entries
  }

  async #read(oid: Oid): Promise<CachedTree> {
    const known = this.#cache.get(oid)
    if (!known) return this.#learn(oid, await this.#objects.get(oid, 'tree'))
    this.#keep(oid, known)
    return known
  }

  #learn(oid: Oid, bytes: Buffer): CachedTree {
    const entries = new Map(parseTree(bytes, this.#objects.oidBytes).map((entry) => [entry.name, entry]))
    const tree = { bytes, entries }
    this.#keep(oid, tree)
    return tree
  }

  #keep(oid: Oid, tree: CachedTree): void {
    const rows = ({ entries }: CachedTree) => entries.size + 1
    const known = this.#cache.get(oid)
    if (known && this.#cache.delete(oid)) this.#rows -= rows(known)
    this.#cache.set(oid, tree)
    this.#rows += rows(tree)
    if (this.#rows <= this.#most) return
    for (const [oldest, one] of this.#cache) {
      if (this.#rows <= this.#most || this.#cache.size <= FEWEST) return
      this.#cache.delete(oldest)
      this.#rows -= rows(one)
    }
  }

  /** What a directory holds; null: the tree has no such directory. */
  async directory(tree: Oid, path: string): Promise<ReadonlyMap<string, TreeEntry> | null> {
    if (path === '') return this.entries(tree)
    const entry = await this.lookup(tree, path)
    return entry?.mode === '40000' ? this.entries(entry.oid) : null
  }

  /** What lies at a path: a file, a directory (its tree), or nothing. */
  async lookup(tree: Oid, path: string): Promise<TreeEntry | null> {
    let at = tree
    const parts = path.split('/')
    for (const [i, part] of parts.entries()) {
      const entry = (await this.entries(at)).get(part)
      if (!entry) return null
      if (i === parts.length - 1) return entry
      if (entry.mode !== '40000') return null
      at = entry.oid
    }
    return null
  }

  /** Every file below a tree. */
  async files(tree: Oid, prefix = ''): Promise<Map<RelativePath, FileEntry>> {
    const found = new Map<RelativePath, FileEntry>()
    // A directory's subdirectories are asked for together: one after the other, each would cost a round trip.
    const walk = async (oid: Oid, at: string): Promise<() => void> => {
      const entries = [...(await this.entries(oid)).values()]
      const below = await Promise.all(
        entries.map((entry) => (entry.mode === '40000' ? walk(entry.oid, `${at}${entry.name}/`) : null)),
      )
      return () => {
        for (const [i, { mode, oid, name }] of entries.entries()) {
          if (mode === '40000') below[i]!()
          else found.set(`${at}${name}` as RelativePath, { mode, oid })
        }
      }
    }
    const collect = await walk(tree, prefix)
    collect()
    this.#most = Math.max(this.#most, 2 * found.size)
    return found
  }

  /** Every directory below a tree. */
  async directories(tree: Oid, prefix = ''): Promise<RelativePath[]> {
    const found: RelativePath[] = []
    const walk = async (oid: Oid, at: string) => {
      for (const { mode, oid: below, name } of (await this.entries(oid)).values()) {
        if (mode !== '40000') continue
        found.push(`${at}${name}` as RelativePath)
        await walk(below, `${at}${name}/`)
      }
    }
    await walk(tree, prefix)
    return found
  }

  /** The topmost directories below a tree whose names are not UTF-8; each tree is looked through once. */
  async oddDirectories(tree: Oid): Promise<readonly RelativePath[]> {
    const cached = await this.#read(tree)
    cached.odd ??= await this.#oddIn(cached)
    return cached.odd
  }

  async #oddIn({ entries }: CachedTree): Promise<RelativePath[]> {
    const found: RelativePath[] = []
    for (const { mode, oid, name } of entries.values()) {
      if (mode !== '40000') continue
      if (!isText(name)) found.push(name as RelativePath)
      else for (const below of await this.oddDirectories(oid)) found.push(`${name}/${below}` as RelativePath)
    }
    return found
  }

  /** Paths that differ between two trees, in path order. */
  async compare(a: Oid, b: Oid): Promise<TreeChange[]> {
    const changes: TreeChange[] = []
    const all = async (oid: Oid, at: string, side: 'from' | 'to') => {
      for (const [path, entry] of await this.files(oid, at)) {
        changes.push(side === 'from' ? { path, from: entry, to: null } : { path, from: null, to: entry })
      }
    }
    const walk = async (left: Oid, right: Oid, at: string): Promise<void> => {
      if (left === right) return
      const [one, two] = [await this.entries(left), await this.entries(right)]
      for (const name of new Set([...one.keys(), ...two.keys()])) {
        const [from, to] = [one.get(name), two.get(name)]
        if (from && to && from.oid === to.oid && from.mode === to.mode) continue
        const path = `${at}${name}`
        const [fromTree, toTree] = [from?.mode === '40000', to?.mode === '40000']
        if (fromTree && toTree) {
          await walk(from!.oid, to!.oid, `${path}/`)
          continue
        }
        if (fromTree) await all(from!.oid, `${path}/`, 'from')
        if (toTree) await all(to!.oid, `${path}/`, 'to')
        const [fromFile, toFile] = [fileOf(from), fileOf(to)]
        if (fromFile || toFile) changes.push({ path: path as RelativePath, from: fromFile, to: toFile })
      }
    }
    await walk(a, b, '')
    return changes.sort((x, y) => (x.path < y.path ? -1 : x.path > y.path ? 1 : 0))
  }

  /** A new tree with some paths set or removed; directories that lose their last file go. Writes only trees that changed. */
  async edit(tree: Oid, edits: TreeEdits): Promise<Oid> {
    if (edits.size === 0) return tree
    const root: EditNode = { files: new Map(), directories: new Map() }
    for (const [path, entry] of edits) {
      const parts = path.split('/')
      const name = parts.pop()!
      let node = root
      for (const part of parts) {
        let next = node.directories.get(part)
        if (!next) {
          next = { files: new Map(), directories: new Map() }
          node.directories.set(part, next)
        }
        node = next
      }
      node.files.set(name, entry)
    }
    return (await this.#apply(tree, root)) ?? this.#objects.write('tree', Buffer.alloc(0))
  }

  /** A new tree without what lies at a path, file or directory; directories that lose their last file go. */
  async without(tree: Oid, path: string): Promise<Oid> {
    return (await this.#without(tree, path.split('/'))) ?? this.#objects.write('tree', Buffer.alloc(0))
  }

  async #without(tree: Oid, [name, ...below]: readonly string[]): Promise<Oid | null> {
    const entries = new Map<string, TreeEntry>(await this.entries(tree))
    const entry = entries.get(name!)
    if (!entry) return tree
    const child = below.length > 0 && entry.mode === '40000' ? await this.#without(entry.oid, below) : null
    if (child === entry.oid || (below.length > 0 && entry.mode !== '40000')) return tree
    if (child) entries.set(name!, { ...entry, oid: child })
    else entries.delete(name!)
    return entries.size === 0 ? null : this.#objects.write('tree', formatTree([...entries.values()]))
  }

  async #apply(tree: Oid | null, node: EditNode): Promise<Oid | null> {
    const old = tree === null ? null : await this.#read(tree)
    const entries = new Map<string, TreeEntry>(old?.entries)
    // Removals first, so that a file that became a directory (or the reverse) leaves room for it.
    for (const [name, file] of node.files) {
      if (file === null && entries.get(name)?.mode !== '40000') entries.delete(name)
    }
    for (const [name, below] of node.directories) {
      const was = entries.get(name)
      const child = await this.#apply(was?.mode === '40000' ? was.oid : null, below)
      if (child !== null) entries.set(name, { mode: '40000', name, oid: child })
      else if (was?.mode === '40000') entries.delete(name)
    }
    for (const [name, file] of node.files) {
      if (file === null) continue
      if (entries.get(name)?.mode === '40000') {
        throw new MovedMeanwhile(`${shown(name)} is a file and a directory at once.`)
      }
      entries.set(name, { mode: file.mode, name, oid: file.oid })
    }
    if (entries.size === 0) return null
    const same = old && patched(old, entries, [...node.files.keys(), ...node.directories.keys()])
    const bytes = same?.bytes ?? formatTree([...entries.values()])
    const oid = this.#objects.write('tree', bytes)
    if (same) this.#keep(oid, same)
    else this.#learn(oid, bytes)
    return oid
  }
}

interface CachedTree {
  bytes: Buffer
  entries: ReadonlyMap<string, PlacedEntry>
  /** Once somebody asked. */
  odd?: readonly RelativePath[]
}

/** The same tree with other ids, where nothing else changed: most of a marker's trees. Null: it is to be written anew. */
function patched(old: CachedTree, entries: Map<string, TreeEntry>, names: readonly string[]): CachedTree | null {
  if (old.entries.size !== entries.size) return null
  const bytes = Buffer.from(old.bytes)
  const placed = entries as Map<string, PlacedEntry>
  for (const name of names) {
    const [was, is] = [old.entries.get(name), entries.get(name)]
    if (was?.mode !== is?.mode) return null
    if (!was || !is || was === is) continue
    bytes.write(is.oid, was.at, 'hex')
    placed.set(name, { ...is, at: was.at })
  }
  return { bytes, entries: placed }
}

interface EditNode {
  files: Map<string, FileEntry | null>
  directories: Map<string, EditNode>
}

function fileOf(entry: TreeEntry | undefined): FileEntry | null {
  return entry && entry.mode !== '40000' ? { mode: entry.mode, oid: entry.oid } : null
}
