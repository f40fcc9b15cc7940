/**
 * What changes in a worktree, as the kernel reports it: watches on directories, whose events name the files. It may be
 * wrong; what it says is only a hint, and every doubt (a burst, an event without a name, an error) is said.
 */
import { ancestorsOf, pathToText } from '../core/paths.ts'
import { errno } from '../env.ts'
import type { Hint } from '../snapshot/scan.ts'
import { DirectoryWatcher } from './directory-watcher.ts'
import type { KernelQueue } from './kernel-queue.ts'

/** Changes that are kept by name. */
const MOST_NAMES = 50_000

/** Which of its limits keeps the system from watching, and what raises it (inotify(7)); null: it is something else. */
export function limitOf(error: unknown): string | null {
  if ((error as NodeJS.ErrnoException).syscall !== 'watch') return null
  const code = errno(error)
  if (code === 'ENOSPC') return 'the limit of watches is reached: raise fs.inotify.max_user_watches'
  if (code !== 'EMFILE') return null
  return 'too many programs watch files, or too many files are open: raise fs.inotify.max_user_instances, or ulimit -n'
}

export interface WatcherInput {
  root: string
  /** Directories (absolute) that are not watched. */
  skip: (path: string) => boolean
  onChange?: (path: string) => void
  queue: KernelQueue
}

export class Watcher {
  readonly #input: WatcherInput
  readonly #directories: DirectoryWatcher
  #paths = new Set<string>()
  /** Directories whose watch did not stand all the while: what is in them is to be looked at whole. */
  #fresh = new Set<string>()
  /** Told by `look`, not settled yet. */
  readonly #inFlight = { paths: new Set<string>(), fresh: new Set<string>() }
  /** The doubts there were at the last look. */
  #knownDoubts = 0
  #doubts = 0
  /** Why what was seen since the last capture cannot be all; null: nothing speaks against it. */
  #doubt: string | null = 'just started'
  failure: string | null = null
  #renewing: NodeJS.Immediate | null = null

  constructor(input: WatcherInput) {
    this.#input = input
    this.#directories = new DirectoryWatcher({
      root: input.root,
      skip: input.skip,
      queue: input.queue,
      onEvent: (directory, name) => this.#heard(directory, name),
      onNew: (directory) => this.#begins(this.#relative(directory)),
      onGone: (directory) => this.#ends(this.#relative(directory)),
      onLinked: () => this.distrust('a file of several names was written by one of them'),
      onAway: () => this.#fail('the directory of the worktree was away while it was watched'),
      onError: (error) => this.#fail(limitOf(error) ?? String(error)),
    })
    input.queue.onBurst = () => this.#lost('more changes at once than the kernel reports for sure')
  }

  /** Resolves when every directory that was there is watched; by another runtime none is, for of it nobody knows what it leaves out. */
  async start(): Promise<void> {
    if (process.versions.bun) {
      this.#fail('Bun runs it, whose watches are not known to tell of everything: put a Node into PATH')
      return
    }
    await this.#directories.add(this.#input.root)
    this.#fresh.clear()
  }

  stop(): void {
    this.#directories.close()
  }

  /** Watches a directory (bytes, relative) that was passed over. */
  follow(directory: string): void {
    void this.#directories.add(`${this.#input.root}/${pathToText(directory)}`)
  }

  #relative(path: string): string {
    return Buffer.from(path.slice(this.#input.root.length + 1), 'utf8').toString('latin1')
  }

  #begins(directory: string): void {
    if (!ancestorsOf(directory).some((above) => this.#fresh.has(above))) this.#fresh.add(directory)
    this.#bound()
  }

  #ends(directory: string): void {
    this.#paths.add(directory)
    this.#bound()
    // Nobody watches the directory above it: another one in its place would not be heard of.
    if (directory === '') this.#fail('the directory of the worktree was removed or replaced while it was watched')
  }

  #heard(watched: string, name: string | null): void {
    if (name === null) {
      this.#lost('an event without a name')
      return
    }
    const directory = this.#relative(watched)
    // Node decodes names as UTF-8: one with other bytes names its directory only.
    if (name.includes('\ufffd')) this.#fresh.add(directory)
    const bytes = Buffer.from(name, 'utf8').toString('latin1')
    const path = directory === '' ? bytes : `${directory}/${bytes}`
    this.#paths.add(path)
    this.#bound()
    this.#input.onChange?.(path)
  }

  /** Who takes no snapshot for long is told no names then: one is kept, which says that there is something to tell. */
  #bound(): void {
    if (this.#paths.size + this.#fresh.size <= MOST_NAMES) return
    this.#paths = new Set([...this.#paths].slice(-1))
    this.#fresh = new Set([...this.#fresh].slice(-1))
    this.distrust('more changes than are kept')
  }

  /** What changed since the last {@link settle}; the hint is null when that cannot be told. `seen`: how much the events named. */
  look(): { hint: Hint | null; seen: number } {
    const { paths, fresh } = this.#inFlight
    for (const path of this.#paths) paths.add(path)
    for (const directory of this.#fresh) fresh.add(directory)
    this.#paths = new Set()
    this.#fresh = new Set()
    this.#knownDoubts = this.#doubts
    const hint = { paths: new Set(paths), subtrees: new Set(fresh) }
    // Of a directory that waits for its watch nothing is heard; once it stands, it is fresh.
    const isSure = this.#doubt === null && this.#renewing === null && this.#directories.settled
    return { hint: isSure ? hint : null, seen: paths.size + fresh.size }
  }

  /** A capture used what `look` gave: only what came after it is still to be told. `whole`: it looked at everything. */
  settle(whole: boolean): void {
    this.#inFlight.paths.clear()
    this.#inFlight.fresh.clear()
    if (whole && this.failure === null && this.#knownDoubts === this.#doubts) this.#doubt = null
  }

  /** Nothing is vouched for until the next full scan. */
  distrust(why: string): void {
    this.#doubt = this.failure ?? why
    this.#doubts++
  }

  /** Events may be lost, and with them those of directories that came and went: their watches are set anew, once all that came is read. */
  #lost(why: string): void {
    this.distrust(why)
    this.#renewing ??= setImmediate(() => {
      this.#renewing = null
      // What was not watched until then is in the scan that follows.
      void this.#directories.renew().then(() => this.distrust(why))
    })
  }

  /** Nothing is vouched for any more. */
  #fail(why: string): void {
    this.failure = why
    this.distrust(why)
  }

  /** Directories that are watched. */
  get watched(): number {
    return this.#directories.count
  }

  /** Why the next snapshot has to be a scan; null: it need not. */
  get doubt(): string | null {
    return this.#doubt
  }

  /** Something is still to be told: what events named, or what is in a directory that waits for its watch. */
  get pending(): boolean {
    return this.#paths.size > 0 || this.#renewing !== null || !this.#directories.settled
  }
}
