/**
 * Markers that somebody left as files are taken up as soon as they are there: the checkpoint of each is the worktree of that
 * moment. What the kernel does not tell of is seen at the next `look`.
 */
import type { FSWatcher } from 'node:fs'
import { CkptError } from '../core/errors.ts'
import type { Env } from '../env.ts'
import type { Store } from '../git/store.ts'
import { markersDirectory, waitingMarkers } from '../ops/worktree/marker-files.ts'
import type { KernelQueue } from './kernel-queue.ts'

interface LeftMarkersOptions {
  store: Pick<Store, 'worktreeDir'>
  queue: KernelQueue
  /** @throws CkptError LOCKED when somebody else is at work: then it is tried again */
  takeUp: () => Promise<unknown>
  log: (message: string, details?: object) => void
}

/** Milliseconds from an event to the look at it, for one that comes seldom comes alone. */
const SOON = 5
/** Milliseconds until a lock that somebody held is tried again. */
const AGAIN = 200

export class LeftMarkers {
  readonly #env: Env
  readonly #options: LeftMarkersOptions
  #watcher: FSWatcher | null = null
  #timer: NodeJS.Timeout | null = null
  #isWorking = false
  #hasEnded = false
  /** Names that stayed though they were tried: nobody tries them again until there are others. */
  #stayed = ''

  constructor(env: Env, options: LeftMarkersOptions) {
    this.#env = env
    this.#options = options
  }

  start(): void {
    const { store, queue, log } = this.#options
    const directory = markersDirectory(store)
    this.#env.files.mkdirSync(directory, { recursive: true, mode: 0o700 })
    const failed = (error: unknown) => log('markers that are left are seen late', { error: String(error) })
    try {
      this.#watcher = queue.watch(directory, () => this.look())
      this.#watcher.on('error', failed)
    } catch (error) {
      failed(error) // no watch to be had
    }
    this.look()
  }

  stop(): void {
    this.#hasEnded = true
    this.#watcher?.close()
    if (this.#timer) clearTimeout(this.#timer)
  }

  look(after = SOON): void {
    if (this.#timer || this.#hasEnded) return
    this.#timer = setTimeout(() => {
      this.#timer = null
      void this.#work()
    }, after)
    this.#timer.unref()
  }

  async #work(): Promise<void> {
    if (this.#isWorking) return this.look(AGAIN)
    this.#isWorking = true
    try {
      const names = this.#names()
      if (names === '' || names === this.#stayed) return
      await this.#options.takeUp()
      this.#stayed = this.#names()
      if (this.#stayed !== '' && this.#stayed !== names) this.look() // some came meanwhile
    } catch (error) {
      if (error instanceof CkptError && error.code === 'LOCKED') this.look(AGAIN)
      else this.#options.log('markers that are left', { error: String(error) })
    } finally {
      this.#isWorking = false
    }
  }

  #names(): string {
    return waitingMarkers(this.#env, this.#options.store).join('/')
  }
}
