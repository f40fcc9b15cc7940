/**
 * A watch on each directory below a root, through any coming and going of them. A directory is watched first and read then,
 * and what an event names is looked at before the next event is: once the barrier has passed, the watches stand.
 */
import { type FSWatcher, lstatSync, readdirSync, type Stats } from 'node:fs'
import path from 'node:path'
import { errno } from '../env.ts'
import { isLinked } from '../snapshot/linked.ts'
import type { KernelQueue } from './kernel-queue.ts'

/** Directories that are watched in one go, before others have their turn. */
const SLICE = 256

/** Milliseconds of silence after which a watch that nobody needs any more is closed. */
const SILENCE = 1000

const OUT_OF_REACH = new Set(['ENOENT', 'ENOTDIR', 'EACCES', 'EPERM', 'ELOOP', 'ENAMETOOLONG'])

export interface DirectoryWatcherInput {
  root: string
  /** Directories (absolute) that are not watched, nor what is below them. */
  skip: (directory: string) => boolean
  /** Something happened to a name in a directory (absolute); null: the kernel did not say which. */
  onEvent: (directory: string, name: string | null) => void
  queue: KernelQueue
  /** A directory (absolute) is watched from now on: what is in it may have come unseen. */
  onNew: (directory: string) => void
  /** A directory (absolute) is not watched any more. */
  onGone: (directory: string) => void
  /** A file of several names changed by one of them: by which others nobody tells. */
  onLinked: () => void
  /** The root is not at its path: what is looked for by name is not found, though it may be there. */
  onAway: () => void
  onError: (error: unknown) => void
}

interface Watched {
  directory: string
  watcher: FSWatcher
  /** Which directory it is, whatever its name. */
  inode: string
  /** Names of the directories in it that are watched. */
  children: Set<string>
  /** By which it tells of its own end: two watches of one directory are one to the kernel, and have the first one's name. */
  ownNames: Set<string>
  /** It left its name, and nothing was heard of it for a while. */
  silent: boolean
}

/** Null: it is no directory. */
const inodeOf = (stats: Stats | null) => (stats?.isDirectory() ? `${stats.dev} ${stats.ino}` : null)

export class DirectoryWatcher {
  readonly #input: DirectoryWatcherInput
  readonly #watched = new Map<string, Watched>()
  /** The name under which a directory is watched. */
  readonly #names = new Map<string, string>()
  /**
   * Directories that left their names, by inode. To close a watch drops what is queued for it; who counts events to know
   * that the kernel had room for all would not see those.
   */
  readonly #left = new Map<string, Watched[]>()
  #timer: NodeJS.Timeout | null = null
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

  /** Sets each watch anew: events that told of directories may be lost. Resolves when every directory that was there is watched. */
  renew(): Promise<void> {
    for (const [directory, { inode }] of [...this.#watched])
      if (this.#inodeAt(directory) !== inode) this.#forget(directory)
    const { root } = this.#input
    for (const directory of this.#watched.keys()) if (directory !== root) this.#waiting.push(directory)
    return this.add(root)
  }

  close(): void {
    this.#closed = true
    this.#waiting = []
    if (this.#timer) clearTimeout(this.#timer)
    for (const { watcher } of [...this.#watched.values(), ...[...this.#left.values()].flat()]) watcher.close()
    this.#watched.clear()
    this.#left.clear()
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
    if (before === null) {
      if (this.#isAway) this.#input.onAway()
      return
    }
    const name = this.#names.get(before)
    if (name !== undefined && name !== directory && this.#inodeAt(name) !== before) this.#forget(name)
    let one: Watched | null = null
    const watcher = this.#reach(() =>
      this.#input.queue.watch(directory, (event, name) => one && this.#heard(one, event, name)),
    )
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
    const names = [known, ...(this.#left.get(after) ?? [])].flatMap((same) => [...(same?.ownNames ?? [])])
    const ownNames = new Set([path.basename(directory), ...names])
    one = { directory, watcher, inode: after, children, ownNames, silent: false }
    this.#watched.set(directory, one)
    this.#names.set(after, directory)
    this.#watched.get(path.dirname(directory))?.children.add(path.basename(directory))
    this.#input.onNew(directory)
    for (const entry of this.#reach(() => readdirSync(directory, { withFileTypes: true })) ?? [])
      if (entry.isDirectory() && !children.has(entry.name)) this.#waiting.push(`${directory}/${entry.name}`)
  }

  #heard(one: Watched, event: string, name: string | null): void {
    const { directory, ownNames } = one
    if (this.#watched.get(directory) !== one) {
      one.silent = false
      return
    }
    this.#input.onEvent(directory, name)
    if (name === null) return
    // A watch tells of its own end by its own name, and does so before the directory above tells of a new one.
    if (event === 'rename' && ownNames.has(name)) this.#lookAgain(directory, { anew: true })
    this.#lookAgain(`${directory}/${name}`, { wasWritten: event === 'change' })
  }

  #lookAgain(directory: string, { anew = false, wasWritten = false } = {}): void {
    const known = this.#watched.get(directory)
    const stats = this.#reach(() => lstatSync(directory))
    const there = inodeOf(stats)
    if (stats === null && this.#isAway) this.#input.onAway()
    if (wasWritten && stats && isLinked(stats)) this.#input.onLinked()
    if (known && known.inode !== there) this.#forget(directory)
    else if (known && !anew) return
    if (there !== null) void this.add(directory)
  }

  #forget(directory: string): void {
    const known = this.#watched.get(directory)
    if (!known) return
    for (const name of known.children) this.#forget(`${directory}/${name}`)
    this.#watched.delete(directory)
    this.#left.set(known.inode, [...(this.#left.get(known.inode) ?? []), known])
    this.#closeSoon()
    if (this.#names.get(known.inode) === directory) this.#names.delete(known.inode)
    this.#watched.get(path.dirname(directory))?.children.delete(path.basename(directory))
    this.#input.onGone(directory)
  }

  /** Closes the watches of directories that left their names, once they are silent. */
  #closeSoon(): void {
    this.#timer ??= setTimeout(() => {
      // What was queued until now is heard first.
      setImmediate(() => {
        this.#timer = null
        for (const [inode, left] of this.#left) {
          const staying = left.filter(({ silent }) => !silent)
          for (const one of left) {
            if (one.silent) one.watcher.close()
            one.silent = true
          }
          if (staying.length > 0) this.#left.set(inode, staying)
          else this.#left.delete(inode)
        }
        if (this.#left.size > 0 && !this.#closed) this.#closeSoon()
      })
    }, SILENCE).unref()
  }

  get #isAway(): boolean {
    const { root } = this.#input
    const known = this.#watched.get(root)
    return known !== undefined && this.#inodeAt(root) !== known.inode
  }

  /** Null: no directory is there. */
  #inodeAt(directory: string): string | null {
    return inodeOf(this.#reach(() => lstatSync(directory)))
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
