/** A worktree held open: what the last scan knew stays in memory, and the watcher says what changed since. */
import type { Config } from '../config/defaults.ts'
import { pathFromText, type RelativePath } from '../core/paths.ts'
import { type Env, lstatIfThere } from '../env.ts'
import type { HeadState } from '../git/head.ts'
import { KeptProcess } from '../git/line-process.ts'
import { ignoreFiles } from '../git/repository.ts'
import { takeSnapshot } from '../ops/record/record.ts'
import { locked } from '../ops/recovery/locked.ts'
import { type Context, type HeldWorktree, headOf, type LiveScan } from '../ops/worktree/context.ts'
import { silentFileSystem } from '../ops/worktree/file-systems.ts'
import { readRefs } from '../ops/worktree/sessions.ts'
import { loadCache, type SnapshotCache, saveCache } from '../snapshot/cache.ts'
import { fingerprint } from '../snapshot/disk.ts'
import { asSpelled } from '../snapshot/spelling.ts'
import { Barrier } from './barrier.ts'
import { configPrint } from './config-print.ts'
import { HeldPlace } from './held-place.ts'
import { KernelQueue } from './kernel-queue.ts'
import { limitOf, Watcher } from './watcher.ts'

/** Milliseconds that a barrier may take before a scan decides instead. */
const BARRIER_TIMEOUT = 500
/** Milliseconds of quiet before what is only in memory is written, and before a sweep. */
const QUIET = 1500
/** Milliseconds for which the HEAD that a call began with is the one that its marker records. */
const ONE_CALL = 50

export interface HeldState {
  watching: boolean
  /** Why the next snapshot is a scan; null: it is fast. */
  why: string | null
  misses: number
  lastMode: 'fast' | 'scan' | null
  /** Milliseconds that the last snapshot took. */
  lastMs: number
}

export class Held implements LiveScan, HeldWorktree {
  #context: Context
  #configPrint = ''
  #configWarnings: readonly string[] = []
  readonly #env: Env
  readonly #place: HeldPlace
  readonly #watcher: Watcher
  readonly #barrier: Barrier
  #cache: SnapshotCache | null = null
  /** What {@link #print} said when ours and the cache's file were the same. */
  #onDisk: string | null = null
  #dirty = false
  #looked = false
  /** How much the events of the last look named. */
  #seen = 0
  /** Directories that the watcher passed over, and what they were last compared with. */
  readonly #skipped = new Set<RelativePath>()
  #compared: ReadonlySet<RelativePath> | null = null
  #timer: NodeJS.Timeout | null = null
  #fastOff: string | null = null
  #swept = true
  /** When the snapshot that is under way began. */
  #began = 0
  /** See {@link LiveScan}. */
  readonly rules = new KeptProcess()
  /** The last question for HEAD; `taken`: a call rests on it, and the next one asks again. */
  #asked: { at: number; head: Promise<HeadState>; taken: boolean } | null = null
  /** Every watch of this process is to count its events there. */
  readonly queue: KernelQueue
  state: HeldState = { watching: false, why: 'just started', misses: 0, lastMode: null, lastMs: 0 }
  log: (message: string, details?: object) => void = () => undefined
  onChange: (path: string) => void = () => undefined
  /** Waits until nobody's work is under way. */
  others: () => Promise<unknown> = async () => undefined

  constructor(context: Context) {
    this.#context = context
    this.#env = context.env
    context.store.remember()
    this.queue = KernelQueue.of(context.env)
    const { root } = context.worktree
    this.#place = new HeldPlace(context)
    const ours = new Set(context.worktree.ours.map((path) => `${root}/${path}`))
    this.#watcher = new Watcher({
      root,
      skip: (path) => path === `${root}/.git` || path.endsWith('/.git') || ours.has(path) || this.#passesOver(path),
      onChange: (path) => this.onChange(path),
      queue: this.queue,
    })
    this.#barrier = new Barrier(context.env, {
      directory: `${context.store.worktreeDir}/daemon/cookies`,
      queue: this.queue,
    })
  }

  /** Ignored directories and repositories of their own, with nothing covered below: they are remembered, for that may change. */
  #passesOver(path: string): boolean {
    const at = pathFromText(path.slice(this.root.length + 1))
    const skipped = this.#cache?.listing.unwatched.has(at) ?? false
    if (skipped) this.#skipped.add(at)
    return skipped
  }

  /** What was passed over and may hold something covered by now is watched from here on. */
  #watchMore(): void {
    const unwatched = this.#cache?.listing.unwatched
    if (unwatched === this.#compared || !unwatched) return
    this.#compared = unwatched
    for (const directory of this.#skipped) {
      if (unwatched.has(directory)) continue
      this.#skipped.delete(directory)
      this.#watcher.follow(directory)
    }
  }

  /** Scans once, so that what is ignored is known, and then watches. */
  async start(): Promise<void> {
    await this.scan('start')
    this.#fastOff = whyUnwatchable(this.#context) ?? this.#whyNoBarrier()
    if (this.#fastOff !== null) {
      this.state.why = this.#fastOff
      return
    }
    await this.#watcher.start()
    this.state.watching = this.#watcher.failure === null
    this.#watcher.distrust('watching just began')
    await this.scan('watching')
  }

  /** Starts it; null: it stands. */
  #whyNoBarrier(): string | null {
    try {
      this.#barrier.start()
      return null
    } catch (error) {
      const limit = limitOf(error)
      if (limit === null) throw error
      return limit
    }
  }

  async stop(): Promise<void> {
    if (this.#timer) clearTimeout(this.#timer)
    try {
      await this.#flush(async () => undefined)
    } finally {
      this.#barrier.stop()
      this.rules.close()
      this.#watcher.stop()
      this.#place.close()
    }
  }

  /** A snapshot for nobody: it brings the cache up to date. */
  scan(why: string): Promise<void> {
    return locked(this.#context, { command: `daemon ${why}` }, async () => {
      await takeSnapshot({ ...this.#context, live: this }, readRefs(this.#context))
    })
  }

  // HeldWorktree

  /** The context with the configuration of now. Null: that names another store. */
  async context(env: Env): Promise<Context | null> {
    const { repository, worktree, head } = this.#context
    const begun = this.#recent()
    const asked = begun && !begun.taken ? begun.head : this.begin()
    this.#asked!.taken = true
    const files = configPrint(env, worktree.root, repository)
    const print = `${(await asked).head} ${files}`
    if (print !== this.#configPrint) {
      const { loadConfig } = await import('../config/load.ts')
      const loaded = await loadConfig(env, { root: worktree.root, head, forgiving: true })
      if (!this.#place.isStoreOf(env, loaded.config)) return null
      const ignored = repository ? await ignoreFiles(env, repository) : []
      this.#context = {
        ...this.#context,
        config: loaded.config,
        worktree: { ...worktree, ignoreFiles: async () => ignored },
      }
      this.#configWarnings = loaded.warnings
      this.#configPrint = print
      this.rules.close() // git's own configuration is part of them
    }
    return { ...this.#context, env: asSpelled(env, worktree), warnings: [...this.#configWarnings], live: this }
  }

  get watched(): number {
    return this.#watcher.watched
  }

  get root(): string {
    return this.#context.worktree.root
  }

  /** See {@link HeldPlace.whyGone}. */
  get whyGone(): string | null {
    return this.#place.whyGone
  }

  get isStoreThere(): boolean {
    return this.#place.isStoreThere
  }

  /** As it was at the last call. */
  get config(): Config {
    return this.#context.config
  }

  // LiveScan

  async barrier(): Promise<Awaited<ReturnType<LiveScan['barrier']>>> {
    this.#began = this.#env.monotonic()
    if (this.#fastOff === null && !this.#place.isMountedAsBefore)
      this.#scanFromNowOn('something was mounted in the worktree, or unmounted, since the daemon started')
    // Of a directory above that was renamed, or of one that somebody keeps open, no event says that it was replaced.
    if (this.#fastOff !== null || !this.state.watching || !this.#place.isRootThere) {
      this.#looked = false
      return { hint: null, barrier: 'none' }
    }
    const ok = await this.#barrier.wait(BARRIER_TIMEOUT)
    if (!ok) this.#watcher.distrust('the barrier timed out')
    const { hint, seen } = this.#watcher.look()
    this.#looked = true
    this.#seen = seen
    return { hint: this.#sameOnDisk() ? hint : null, barrier: ok ? 'ok' : 'timeout' }
  }

  head(): Promise<HeadState> {
    return headOf({ head: this.#context.head })
  }

  headOfCall(): Promise<HeadState> {
    return this.#recent()?.head ?? this.head()
  }

  #recent() {
    const asked = this.#asked
    return asked && this.#env.monotonic() - asked.at < ONE_CALL ? asked : null
  }

  #scanFromNowOn(why: string): void {
    this.#fastOff = `${why}: every snapshot is a scan now`
    this.state.why = this.#fastOff
    this.log(this.#fastOff)
  }

  /** A call arrived: git is asked while it is being read. */
  begin(): Promise<HeadState> {
    const head = this.head()
    head.catch(() => undefined) // whoever needs it awaits it
    this.#asked = { at: this.#env.monotonic(), head, taken: false }
    return head
  }

  cache(): SnapshotCache | null {
    if (!this.#sameOnDisk()) {
      // Somebody else wrote: what they knew counts, and nothing vouches for what happened in between.
      this.#cache = loadCache(this.#env, this.#context.store)
      this.#onDisk = this.#print()
      this.#dirty = false
      this.#watchMore()
    }
    return this.#cache
  }

  keep(cache: SnapshotCache, mode: 'fast' | 'scan'): void {
    this.#cache = cache
    this.#watchMore()
    this.#dirty = true
    this.state.lastMode = mode
    this.state.lastMs = this.#env.monotonic() - this.#began
    if (this.#looked) this.#watcher.settle(mode === 'scan')
    this.state.why = this.#fastOff ?? this.#watcher.doubt
    this.#swept = mode === 'scan'
    this.#later()
  }

  /** Of the cache's file, which may not be there, and of the last time that objects went: ours names some that no ref does. */
  #print(): string {
    const { store } = this.#context
    const stats = lstatIfThere(this.#env.files, `${store.worktreeDir}/cache.json`)
    return `${stats ? fingerprint(stats) : 'none'} ${store.removal}`
  }

  #sameOnDisk(): boolean {
    return this.#cache !== null && this.#print() === this.#onDisk
  }

  #later(): void {
    if (this.#timer) clearTimeout(this.#timer)
    this.#timer = setTimeout(() => {
      this.#timer = null
      this.#idle().catch((error: unknown) => this.log('idle work failed', { error: String(error) }))
    }, QUIET)
    this.#timer.unref()
  }

  async #idle(): Promise<void> {
    await this.#sweep()
    await this.#flush(this.others)
  }

  /** What is only in memory goes to disk, for those who come without the daemon; and what is written is synced, while nobody waits. */
  async #flush(others: () => Promise<unknown>): Promise<void> {
    if (!this.#dirty || !this.#cache) return
    await locked(this.#context, { command: 'daemon flush', wait: 2000 }, async () => {
      if (!this.#dirty || !this.#cache || !this.#sameOnDisk()) return
      saveCache(this.#env, this.#context.store, this.#cache)
      this.#onDisk = this.#print()
      this.#dirty = false
    })
    await this.#context.store.syncInSteps(others)
  }

  /** Looks for what the events missed; a miss turns the fast path off. */
  async #sweep(): Promise<void> {
    if (this.#swept || this.#fastOff !== null || this.#watcher.pending) return
    if (!this.#sameOnDisk()) {
      this.state.why = 'somebody else wrote to the store since the last one'
      return
    }
    const before = this.#cache?.tree
    const { busy } = await this.head()
    if (busy !== null) return
    await locked(this.#context, { command: 'daemon sweep', wait: 2000 }, async () => {
      // Nor where somebody else was at work since: the next snapshot is a scan then, and what was forgotten stays so until it.
      if (this.#cache?.tree !== before || this.#watcher.pending || !this.#sameOnDisk()) return
      const isSure = this.#watcher.doubt === null
      this.#watcher.distrust('sweep')
      const snapshot = await takeSnapshot({ ...this.#context, live: this }, readRefs(this.#context))
      const late = await this.#barrier.wait(BARRIER_TIMEOUT)
      const quiet = isSure && late && !this.#watcher.pending && this.#seen === 0
      if (snapshot.tree !== before && quiet) {
        this.state.misses++
        this.#scanFromNowOn('a change was not reported by the kernel')
      }
    })
  }
}

/** Why no watcher can tell what changes there; null: one can. */
function whyUnwatchable({ env, worktree: { root, folds } }: Context): string | null {
  // What an event names may be spelled otherwise.
  if (folds) return 'its file system takes several spellings for one name'
  const silent = silentFileSystem(env, root)
  return silent && `${silent} does not report every change`
}
