/**
 * What changes in a worktree, as the kernel reports it: chokidar on directories only, whose raw events name the files.
 * It may be wrong; what it says is only a hint, and every doubt (a burst, a closed watch, an error) is said.
 */
import { pathToText } from '../core/paths.ts'
import { type Env, errno } from '../env.ts'
import type { Hint } from '../snapshot/scan.ts'
import type { DirectoryWatcher } from './directory-watcher.ts'

/** A quarter of inotify's default queue (inotify(7), max_queued_events): beyond it events may have been lost unseen. */
const BURST = 4096
/** Milliseconds that a new directory is read whole, whatever events say: its watch may not stand yet. */
const SETTLING = 2000

export interface WatcherInput {
  root: string
  /** Directories (absolute) that are not watched. */
  skip: (path: string) => boolean
  onChange?: (path: string) => void
}

export class Watcher {
  readonly #env: Env
  readonly #input: WatcherInput
  #watcher: DirectoryWatcher | null = null
  #paths = new Set<string>()
  /** Told by `look`, not settled yet. */
  readonly #inFlight = new Set<string>()
  #lookedAt = { time: 0, doubts: 0 }
  #doubts = 0
  /** New directories, and when they were first seen. */
  #fresh = new Map<string, number>()
  /** Why what was seen since the last capture cannot be all; null: nothing speaks against it. */
  #doubt: string | null = 'just started'
  /** Directories that are watched from some time on: since when nothing was read for their watches, and the reads until then. */
  readonly #followed = new Map<string, { since: number; reads: number }>()
  #drained = 0
  #counting = false
  failure: string | null = null

  constructor(env: Env, input: WatcherInput) {
    this.#env = env
    this.#input = input
  }

  /** Resolves when every directory that was there is watched. */
  async start(): Promise<void> {
    const { DirectoryWatcher } = await import('./directory-watcher.ts')
    const { root, skip } = this.#input
    const watcher = new DirectoryWatcher({
      ignored: (path, stats) => (stats !== undefined && !stats.isDirectory()) || skip(path),
      ignoreInitial: true,
      followSymlinks: false,
      persistent: true,
      atomic: false,
      ignorePermissionErrors: true,
    })
    this.#watcher = watcher
    watcher.add(root)
    watcher.on('raw', (event, name, details) => this.#raw(event, name, details as { watchedPath?: string }))
    watcher.on('addDir', (path) => {
      const at = this.#relative(path)
      if (at !== null && at !== '') this.#fresh.set(at, this.#env.monotonic())
    })
    watcher.on('unlinkDir', (path) => {
      const at = this.#relative(path)
      if (at === null || at === '') return
      this.#paths.add(at)
      // Events of a watch that closes during a burst are dropped (measured): then nothing vouches for the rest.
      if (this.#drained > 64) this.distrust('a watch closed during a burst')
    })
    watcher.on('error', (error) => {
      const code = errno(error)
      this.failure =
        code === 'ENOSPC' ? 'the limit of watches is reached: raise fs.inotify.max_user_watches' : String(error)
      this.distrust(this.failure)
    })
    await new Promise<void>((resolve) => watcher.once('ready', () => resolve()))
    this.#fresh.clear()
  }

  async stop(): Promise<void> {
    await this.#watcher?.close()
    this.#watcher = null
  }

  /** Watches a directory (bytes, relative) that was passed over; it is read whole until its watches stand. */
  follow(directory: string): void {
    if (!this.#watcher) return
    this.#watcher.add(`${this.#input.root}/${pathToText(directory)}`)
    this.#followed.set(directory, { since: this.#env.monotonic(), reads: this.#watcher.readings })
  }

  #relative(path: string): string | null {
    const { root } = this.#input
    if (path === root) return ''
    return path.startsWith(`${root}/`) ? Buffer.from(path.slice(root.length + 1), 'utf8').toString('latin1') : null
  }

  #raw(event: string, name: unknown, { watchedPath }: { watchedPath?: string }): void {
    this.#drained++
    if (!this.#counting) {
      this.#counting = true
      setImmediate(() => {
        this.#counting = false
        this.#drained = 0
      })
    }
    if (this.#drained > BURST) this.distrust('more changes at once than the kernel reports for sure')
    const directory = watchedPath === undefined ? null : this.#relative(watchedPath)
    if (directory === null || typeof name !== 'string') {
      this.distrust('an event without a name')
      return
    }
    // Node decodes names as UTF-8: one with other bytes names its directory only.
    if (name.includes('\ufffd')) this.#fresh.set(directory, this.#env.monotonic())
    const bytes = Buffer.from(name, 'utf8').toString('latin1')
    const path = directory === '' ? bytes : `${directory}/${bytes}`
    // Another directory under this name, perhaps: until it is watched, events inside may be told of the one that was here.
    if (event === 'rename' && this.#watcher?.watches(`${watchedPath}/${name}`))
      this.#fresh.set(path, this.#env.monotonic())
    this.#paths.add(path)
    this.#input.onChange?.(path)
  }

  /** What changed since the last {@link settle}; the hint is null when that cannot be told, and `why` says why. */
  look(): { hint: Hint | null; why: string | null } {
    for (const path of this.#paths) this.#inFlight.add(path)
    this.#paths = new Set()
    this.#lookedAt = { time: this.#env.monotonic(), doubts: this.#doubts }
    const hint = {
      paths: new Set(this.#inFlight),
      subtrees: new Set([...this.#fresh.keys(), ...this.#followed.keys()]),
    }
    return { hint: this.#doubt === null ? hint : null, why: this.#doubt }
  }

  /** A capture used what `look` gave: only what came after it is still to be told. `whole`: it looked at everything. */
  settle(whole: boolean): void {
    const { time, doubts } = this.#lookedAt
    this.#inFlight.clear()
    for (const [path, since] of this.#fresh) if (time - since > SETTLING) this.#fresh.delete(path)
    const reads = this.#watcher?.readings ?? 0
    for (const [path, last] of this.#followed) {
      if (last.reads !== reads) this.#followed.set(path, { since: time, reads })
      else if (time - last.since > SETTLING) this.#followed.delete(path)
    }
    if (whole && this.failure === null && doubts === this.#doubts) this.#doubt = null
  }

  /** Nothing is vouched for until the next full scan. */
  distrust(why: string): void {
    this.#doubt = this.failure ?? why
    this.#doubts++
  }

  /** Directories that are watched. */
  get watched(): number {
    return Object.keys(this.#watcher?.getWatched() ?? {}).length
  }

  /** Why the next snapshot has to be a scan; null: it need not. */
  get doubt(): string | null {
    return this.#doubt
  }

  get pending(): number {
    return this.#paths.size
  }
}
