/** What is known of the worktree's directories. */
import { isText } from '../core/paths.ts'

export interface DirectoryEntry {
  mtimeMs: number
  ctimeMs: number
  ino: number
  mode: number
  /** The file system's clock when it was read; 0: it is to be read again. */
  seen: number
  directories: string[]
  specials: string[]
  /** Names that git takes in no tree (`.GIT`), or that make this a repository (`.git`). */
  unrepresentable: string[]
  empty: boolean
  /** It has a .gitignore. */
  rules: boolean
}

/** No watcher can be given these names: bytes that are not UTF-8. */
export const isUnwatchable = (directory: string): boolean => !isText(directory)

/** So many changes are kept beside what they were made to; then they are worked in. */
const FEW = 500

/**
 * Thousands, of which a scan has something to say of few: those are at hand, so that no scan goes through all. A copy shares
 * what it was made from, and keeps its own changes beside it.
 */
export class Directories implements Iterable<[string, DirectoryEntry]> {
  /** Shared with others once it was copied: never written to then. */
  #base: Map<string, DirectoryEntry>
  #shared = false
  /** Null: no longer there. */
  readonly #changes: Map<string, DirectoryEntry | null>
  readonly #remarkable: Set<string>
  /** The permission mode that needs no word. */
  readonly #plain: number

  constructor(plain: number, from?: Directories) {
    this.#plain = plain
    this.#base = from ? from.#base : new Map()
    this.#changes = new Map(from ? from.#changes : [])
    this.#remarkable = new Set(from ? from.#remarkable : [])
    if (!from) return
    from.#shared = true
    this.#shared = true
    if (this.#changes.size > FEW) this.#workIn()
  }

  #workIn(): void {
    this.#base = new Map(this)
    this.#shared = false
    this.#changes.clear()
  }

  get size(): number {
    let size = this.#base.size
    for (const [directory, entry] of this.#changes) {
      if (entry === null) size--
      else if (!this.#base.has(directory)) size++
    }
    return size
  }

  get(directory: string): DirectoryEntry | undefined {
    const changed = this.#changes.get(directory)
    return changed === undefined ? this.#base.get(directory) : (changed ?? undefined)
  }

  has(directory: string): boolean {
    return this.get(directory) !== undefined
  }

  set(directory: string, entry: DirectoryEntry): void {
    if (this.#shared) this.#changes.set(directory, entry)
    else this.#base.set(directory, entry)
    const { seen, mode, empty, specials, unrepresentable } = entry
    const hasWord = mode !== this.#plain || empty || specials.length > 0 || unrepresentable.length > 0
    if (hasWord || seen === 0 || isUnwatchable(directory)) this.#remarkable.add(directory)
    else this.#remarkable.delete(directory)
  }

  /** What is known of it, if anything is, may not be all: the next scan reads it again. */
  doubt(directory: string): void {
    const entry = this.get(directory)
    if (entry && entry.seen !== 0) this.set(directory, { ...entry, seen: 0 })
  }

  /** A directory with all that is known below it. */
  remove(directory: string): void {
    for (const one of this.keys()) {
      if (one !== directory && !one.startsWith(`${directory}/`)) continue
      if (!this.#shared) this.#base.delete(one)
      else if (this.#base.has(one)) this.#changes.set(one, null)
      else this.#changes.delete(one)
      this.#remarkable.delete(one)
    }
  }

  *[Symbol.iterator](): IterableIterator<[string, DirectoryEntry]> {
    for (const [directory, entry] of this.#base) {
      const changed = this.#changes.get(directory)
      if (changed !== null) yield [directory, changed ?? entry]
    }
    for (const [directory, entry] of this.#changes) {
      if (entry !== null && !this.#base.has(directory)) yield [directory, entry]
    }
  }

  *keys(): IterableIterator<string> {
    for (const [directory] of this) yield directory
  }

  /** Those with another mode than the plain one, that are empty, to be read again or unwatchable, or hold what git does not name. */
  *remarkable(): IterableIterator<[string, DirectoryEntry]> {
    for (const directory of this.#remarkable) yield [directory, this.get(directory)!]
  }
}
