/**
 * A watch on each directory below a root, through any coming and going of them. A directory is watched first and read then,
 * and what an event names is looked at before the next event is: once the barrier has passed, the watches stand.
 */
import { type FSWatcher, lstatSync, readdirSync, watch } from 'node:fs'
import path from 'node:path'
import { errno } from '../env.ts'

/** Directories that are watched in one go, before others have their turn. */
const SLICE = 256

const OUT_OF_REACH = new Set(['ENOENT', 'ENOTDIR', 'EACCES', 'EPERM', 'ELOOP', 'ENAMETOOLONG'])

export interface DirectoryWatcherInput {
  root: string
  /** Directories (absolute) that are not watched, nor what is below them. */
  skip: (directory: string) => boolean
  /** Something happened to a name in a directory (absolute); null: the kernel did not say which. */
  onEvent: (directory: string, name: string | null) => void
  /** A directory (absolute) is watched from now on: what is in it may have come unseen. */
  onNew: (directory: string) => void
  /** A directory (absolute) is not watched any more. */
  onGone: (directory: string) => void
  onError: (error: unknown) => void
}

interface Watched {
  watcher: FSWatcher
  /** Which directory it is, whatever its name. */
  inode: string
  /** Names of the directories in it that are watched. */
  children: Set<string>
}

export class DirectoryWatcher {
  readonly #input: DirectoryWatcherInput
  readonly #watched = new Map<string, Watched>()
  /** The name under which a directory is watched. */
  readonly #names = new Map<string, string>()
  #waiting: string[] = []
  /** What is called when nothing waits any more; null: nobody is at work. */
  #working: (() => void)[] | null = null
  #closed = false

  constructor(input: DirectoryWatcherInput) {
    this.#input = input
  }

  /** Watches a directory (absolute) and all below it. Resolves when every directory that was there is watched. */
  add(directory: string): Promise<void> {
    this.#waiting.push(directory)
    return new Promise((resolve) => {
      if (this.#working) this.#working.push(resolve)
      else {
        this.#working = [resolve]
        this.#work()
      }
    })
  }

  close(): void {
    this.#closed = true
    this.#waiting = []
    for (const { watcher } of this.#watched.values()) watcher.close()
    this.#watched.clear()
  }

  /** Directories that are watched. */
  get count(): number {
    return this.#watched.size
  }

  /** Whether no directory waits for its watch. */
  get settled(): boolean {
    return this.#working === null
  }

  #work(): void {
    for (let n = 0; n < SLICE && this.#waiting.length > 0; n++) this.#watch(this.#waiting.pop()!)
    if (this.#waiting.length > 0) {
      setImmediate(() => this.#work())
      return
    }
    const done = this.#working ?? []
    this.#working = null
    for (const resolve of done) resolve()
  }

  #watch(directory: string): void {
    if (this.#closed || this.#input.skip(directory)) return
    const before = this.#inodeAt(directory)
    if (before === null) return
    // Two watches of one directory would be one to the kernel, and tell of its end by the name that it had first.
    const name = this.#names.get(before)
    if (name !== undefined && name !== directory && this.#inodeAt(name) !== before) this.#forget(name)
    const watcher = this.#reach(() => watch(directory, (event, name) => this.#heard(directory, event, name)))
    if (!watcher) return
    watcher.on('error', (error) => this.#input.onError(error))
    const after = this.#inodeAt(directory)
    if (after !== before) {
      watcher.close()
      if (after !== null) this.#waiting.push(directory)
      return
    }
    const known = this.#watched.get(directory)
    known?.watcher.close() // after the new one stands
    const children = known?.children ?? new Set()
    this.#watched.set(directory, { watcher, inode: after, children })
    this.#names.set(after, directory)
    this.#watched.get(path.dirname(directory))?.children.add(path.basename(directory))
    this.#input.onNew(directory)
    for (const one of this.#reach(() => readdirSync(directory, { withFileTypes: true })) ?? [])
      if (one.isDirectory() && !children.has(one.name)) this.#waiting.push(`${directory}/${one.name}`)
  }

  #heard(directory: string, event: string, name: string | null): void {
    this.#input.onEvent(directory, name)
    if (name === null) return
    // A watch tells of its own end by its own name, and does so before the directory above tells of a new one.
    if (event === 'rename' && name === path.basename(directory)) this.#lookAgain(directory, { anew: true })
    this.#lookAgain(`${directory}/${name}`)
  }

  #lookAgain(directory: string, { anew = false } = {}): void {
    const known = this.#watched.get(directory)
    const there = this.#inodeAt(directory)
    if (known && known.inode !== there) this.#forget(directory)
    else if (known && !anew) return
    if (there !== null) void this.add(directory)
  }

  #forget(directory: string): void {
    const known = this.#watched.get(directory)
    if (!known) return
    for (const name of known.children) this.#forget(`${directory}/${name}`)
    known.watcher.close()
    this.#watched.delete(directory)
    if (this.#names.get(known.inode) === directory) this.#names.delete(known.inode)
    this.#watched.get(path.dirname(directory))?.children.delete(path.basename(directory))
    this.#input.onGone(directory)
  }

  /** Null: no directory is there. */
  #inodeAt(directory: string): string | null {
    const stats = this.#reach(() => lstatSync(directory))
    return stats?.isDirectory() ? `${stats.dev} ${stats.ino}` : null
  }

  /** Null: it went meanwhile or may not be read, or the failure was said. */
  #reach<T>(look: () => T): T | null {
    try {
      return look()
    } catch (error) {
      if (!OUT_OF_REACH.has(errno(error) ?? '')) this.#input.onError(error)
      return null
    }
  }
}
