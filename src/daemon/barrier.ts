/** The barrier: a cookie is written and its event awaited; all events before it have then been seen, for inotify keeps their order. */
import { type FSWatcher, watch } from 'node:fs'
import type { Env } from '../env.ts'

export class Barrier {
  readonly #env: Env
  readonly #directory: string
  #watcher: FSWatcher | null = null
  readonly #waiting = new Map<string, () => void>()

  constructor(env: Env, directory: string) {
    this.#env = env
    this.#directory = directory
  }

  start(): void {
    this.#env.files.mkdirSync(this.#directory, { recursive: true, mode: 0o700 })
    this.#watcher = watch(this.#directory, (_event, name) => {
      const seen = name === null ? undefined : this.#waiting.get(name)
      if (name !== null) this.#waiting.delete(name)
      seen?.()
    })
    this.#watcher.on('error', () => this.stop()) // the directory went: the barrier then times out, and a scan decides
  }

  stop(): void {
    this.#watcher?.close()
    this.#watcher = null
  }

  /** False when the event did not come within `timeout` milliseconds. */
  async wait(timeout: number): Promise<boolean> {
    if (!this.#watcher) return false
    const name = `cookie-${this.#env.random(6)}`
    const path = `${this.#directory}/${name}`
    return new Promise((resolve) => {
      const timer = setTimeout(() => {
        this.#waiting.delete(name)
        resolve(false)
      }, timeout)
      this.#waiting.set(name, () => {
        clearTimeout(timer)
        resolve(true)
      })
      this.#env.files.writeFileSync(path, '', { mode: 0o600 })
      this.#env.files.unlinkSync(path)
    })
  }
}
