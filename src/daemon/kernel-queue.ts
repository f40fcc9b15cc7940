/**
 * The queue in which the kernel keeps events until they are read: one for all watches of this process (inotify(7)). What
 * comes on top of it is lost, and Node does not say so: who needs every event counts those of all watches.
 */
import { type FSWatcher, type WatchListener, watch } from 'node:fs'
import type { Env } from '../env.ts'
import { readText } from '../ops/worktree/processes.ts'

/** Events, where the system does not say: max_queued_events. */
const ROOM = 16384

export class KernelQueue {
  /** So much of it came in one go that events may have been lost. */
  onBurst: () => void = () => undefined
  readonly #most: number
  #drained = 0
  #counting = false

  /** `room`: events that it keeps. */
  constructor(room: number) {
    this.#most = room / 4
  }

  static of(env: Env): KernelQueue {
    return new KernelQueue(Number(readText(env, '/proc/sys/fs/inotify/max_queued_events')) || ROOM)
  }

  /** Watches a path; each event is counted before it is told. */
  watch(path: string, listener: WatchListener<string>): FSWatcher {
    return watch(path, (event, name) => {
      this.count()
      listener(event, name)
    })
  }

  /** One event was read, of whatever watch. */
  count(): void {
    this.#drained++
    if (!this.#counting) {
      this.#counting = true
      setImmediate(() => {
        this.#counting = false
        this.#drained = 0
      })
    }
    if (this.#drained > this.#most) this.onBurst()
  }
}
