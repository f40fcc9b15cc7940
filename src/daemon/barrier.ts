/**
 * The barrier: a cookie appears and its event is awaited; all events before it have then been seen, for inotify keeps their
 * order. It appears under a name that was never there before, so that no other event can be taken for it; its file is one
 * that was used before, for that is cheaper than to make one.
 */
import type { FSWatcher } from 'node:fs'
import { type Env, errno } from '../env.ts'
import { removeIfThere } from '../git/whole-file.ts'
import type { KernelQueue } from './kernel-queue.ts'

export class Barrier {
  readonly #env: Env
  readonly #directory: string
  readonly #queue: KernelQueue
  #watcher: FSWatcher | null = null
  /** By the names of their cookies. */
  readonly #waiting = new Map<string, () => void>()
  /** Cookies that nobody waits for. */
  #used: string[] = []

  constructor(env: Env, { directory, queue }: { directory: string; queue: KernelQueue }) {
    this.#env = env
    this.#directory = directory
    this.#queue = queue
  }

  /** May be called again. */
  start(): void {
    this.stop()
    this.#used = []
    const { files } = this.#env
    files.mkdirSync(this.#directory, { recursive: true, mode: 0o700 })
    for (const name of files.readdirSync(this.#directory)) removeIfThere(this.#env, `${this.#directory}/${name}`)
    this.#watcher = this.#queue.watch(this.#directory, (_event, name) => {
      if (name !== null) this.#waiting.get(name)?.()
    })
    this.#watcher.on('error', () => this.stop())
  }

  stop(): void {
    this.#watcher?.close()
    this.#watcher = null
  }

  /** False when the event did not come within `timeout` milliseconds, or no cookie can be shown: then a scan decides. */
  async wait(timeout: number): Promise<boolean> {
    if (!this.#watcher) return false
    const name = `cookie-${this.#env.random(6)}`
    return new Promise((resolve, reject) => {
      const done = (passed: boolean) => {
        clearTimeout(timer)
        this.#waiting.delete(name)
        this.#used.push(name)
        resolve(passed)
      }
      const timer = setTimeout(() => done(false), timeout)
      this.#waiting.set(name, () => done(true))
      try {
        this.#show(name)
      } catch (error) {
        if (errno(error) === undefined) reject(error)
        done(false)
        if (errno(error) === 'ENOENT') this.start() // somebody removed the directory
      }
    })
  }

  #show(name: string): void {
    const { files } = this.#env
    const path = `${this.#directory}/${name}`
    const used = this.#used.pop()
    try {
      if (used !== undefined) {
        files.renameSync(`${this.#directory}/${used}`, path)
        return
      }
    } catch (error) {
      if (errno(error) !== 'ENOENT') throw error // somebody removed it
    }
    files.writeFileSync(path, '', { mode: 0o600 })
  }
}
