/** What is known of the worktree's directories. */

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

/** Thousands, of which a scan has something to say of few: those are at hand, so that no scan goes through all. */
export class Directories implements Iterable<[string, DirectoryEntry]> {
  readonly #entries: Map<string, DirectoryEntry>
  readonly #remarkable: Set<string>
  /** The permission mode that needs no word. */
  readonly #plain: number

  constructor(plain: number, from?: Directories) {
    this.#plain = plain
    this.#entries = new Map(from ? from.#entries : [])
    this.#remarkable = new Set(from ? from.#remarkable : [])
  }

  get size(): number {
    return this.#entries.size
  }

  get(directory: string): DirectoryEntry | undefined {
    return this.#entries.get(directory)
  }

  has(directory: string): boolean {
    return this.#entries.has(directory)
  }

  set(directory: string, entry: DirectoryEntry): void {
    this.#entries.set(directory, entry)
    const { seen, mode, empty, specials, unrepresentable } = entry
    const hasWord = mode !== this.#plain || empty || specials.length > 0 || unrepresentable.length > 0
    if (hasWord || seen === 0) this.#remarkable.add(directory)
    else this.#remarkable.delete(directory)
  }

  /** A directory with all that is known below it. */
  remove(directory: string): void {
    for (const one of this.#entries.keys()) {
      if (one !== directory && !one.startsWith(`${directory}/`)) continue
      this.#entries.delete(one)
      this.#remarkable.delete(one)
    }
  }

  [Symbol.iterator](): IterableIterator<[string, DirectoryEntry]> {
    return this.#entries.entries()
  }

  keys(): IterableIterator<string> {
    return this.#entries.keys()
  }

  /** Those with another mode than the plain one, that are empty, to be read again, or hold what git does not name. */
  *remarkable(): IterableIterator<[string, DirectoryEntry]> {
    for (const directory of this.#remarkable) yield [directory, this.#entries.get(directory)!]
  }
}
