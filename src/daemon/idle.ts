/**
 * What a daemon does while nobody calls: abandoned turns past their grace go, the oldest where the store holds too much,
 * and loose objects and linked packs become one pack. It runs as a process of its own at the lowest priority; a call ends it
 * at once, which a prune survives.
 */

import type { Env } from '../env.ts'
import { namesIfThere } from '../env.ts'
import { packFiles } from '../git/packs.ts'
import { AGAIN, beginPruning, type Pruning, sinceLast, wasInVain } from '../ops/prune/by-itself.ts'

export interface IdleOptions {
  /** The worktree. */
  root: string
  /** The store's git directory. */
  gitDir: string
  /** Whether the store holds more bytes than it may. */
  isOver: () => boolean
  log: (message: string, details?: object) => void
}

/** Milliseconds without a call before it begins. */
export const QUIET_BEFORE = 60_000
/** The same where the store holds too much: a tenth more, and snapshots leave out what is new. */
const QUIET_OVER = 5000
/** Milliseconds between two that are not for the number of objects. */
const EVERY = 86_400_000
/** Loose objects, and packs, from which on packing is worth it; git's own gc.auto is 6700 and 50. */
const LOOSE = 3000
const PACKS = 20

export class IdleWork {
  readonly #env: Env
  readonly #options: IdleOptions
  #pruning: Pruning | null = null

  constructor(env: Env, options: IdleOptions) {
    this.#env = env
    this.#options = options
  }

  get running(): boolean {
    return this.#pruning !== null
  }

  /** Begins it if it is due. `quiet`: milliseconds since the last call. `busy`: git is in the middle of something. */
  consider({ quiet, busy }: { quiet: number; busy: boolean }): void {
    if (this.#pruning || busy || quiet < QUIET_OVER || !this.#due(quiet)) return
    this.#pruning = beginPruning(this.#env, this.#options)
    this.#pruning.ended.then((how) => {
      this.#pruning = null
      this.#options.log('idle work', how)
    })
  }

  /** Ends it, and waits until it is gone: it holds the store's lock. */
  async interrupt(): Promise<void> {
    await this.#pruning?.interrupt()
  }

  #due(quiet: number): boolean {
    const { files } = this.#env
    const { gitDir, isOver } = this.#options
    const since = sinceLast(this.#env, gitDir)
    // What cannot become less is not tried for ever.
    if (!wasInVain(this.#env, gitDir) && isOver()) return true
    if (quiet < QUIET_BEFORE) return false
    if (since >= EVERY) return true
    // One of 256 directories stands for all, as for git gc --auto.
    const loose = namesIfThere(files, `${gitDir}/objects/17`).length * 256
    const packs = packFiles(files, gitDir).filter((name) => name.endsWith('.pack')).length
    return since >= AGAIN && (loose >= LOOSE || packs >= PACKS)
  }
}
