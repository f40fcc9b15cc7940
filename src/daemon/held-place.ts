/** Which worktree a daemon holds, and with which store: others may come to their places while it runs. */
import type { Config } from '../config/defaults.ts'
import { type Env, lstatIfThere } from '../env.ts'
import type { Context } from '../ops/worktree/context.ts'
import { placeStore } from '../ops/worktree/place.ts'
import { fingerprint, mountsWithin } from '../snapshot/disk.ts'
import { HeldDirectory } from './held-directory.ts'
import { sameSettings } from './hook-place.ts'

type Placed = Pick<Context, 'env' | 'worktree' | 'repository' | 'place' | 'store'>

export class HeldPlace {
  readonly #context: Placed
  readonly #root: HeldDirectory
  readonly #own: HeldDirectory
  /** The repository's. */
  readonly #gitDirs: HeldDirectory[]
  /** See {@link gitsAround}. */
  readonly #gits: string
  /** See {@link mounts}. */
  readonly #mounts: string
  #isElsewhere = false

  constructor(context: Placed) {
    const { env, worktree, store } = context
    const { gitDir, commonDir } = context.repository ?? {}
    const gitDirs = new Set([gitDir, commonDir].filter((one) => one !== undefined))
    this.#context = context
    this.#root = new HeldDirectory(env, worktree.root)
    this.#own = new HeldDirectory(env, store.worktreeDir)
    this.#gitDirs = [...gitDirs].map((one) => new HeldDirectory(env, one))
    this.#gits = gitsAround(context)
    this.#mounts = mounts(context)
  }

  close(): void {
    for (const one of [this.#root, this.#own, ...this.#gitDirs]) one.close()
  }

  get isRootThere(): boolean {
    return this.#root.isThere
  }

  /** No event tells that a directory lies under another one now, or not any more: what is watched is the one that was there. */
  get isMountedAsBefore(): boolean {
    return mounts(this.#context) === this.#mounts
  }

  get isStoreThere(): boolean {
    const { env, store } = this.#context
    return this.#own.isThere && env.files.existsSync(`${store.gitDir}/HEAD`)
  }

  /** Why it is not this worktree, or not its store, any more, in words; null: both are where they were, and no others in their place. */
  get whyGone(): string | null {
    if (!this.isRootThere || !this.isStoreThere) return 'The worktree or its store is not where it was'
    if (this.#gitDirs.some(({ isThere }) => !isThere) || gitsAround(this.#context) !== this.#gits)
      return 'The worktree has another git directory than it had, or none'
    return this.#isElsewhere ? 'The configuration names another store' : null
  }

  /**
   * Whether the store is the one that the configuration of now names. `env`: a client's, who speaks for himself only where his
   * configuration lies elsewhere than ours.
   */
  isStoreOf(env: Env, config: Config): boolean {
    const { repository, worktree, place } = this.#context
    const now = placeStore(env, { root: worktree.root, repository }, { config, outcome: '' })
    const isOurs = now.directory === place.directory
    if (sameSettings(env, this.#context.env)) this.#isElsewhere = !isOurs
    return isOurs
  }
}

/** What makes it the worktree of a repository: of a plain directory, what could above it. */
function gitsAround({ env, worktree: { root }, repository }: Placed): string {
  const above = repository ? [root] : [root, ...root.split('/').map((_, i, parts) => parts.slice(0, i).join('/'))]
  return above
    .map((at) => lstatIfThere(env.files, `${at}/.git`))
    .map((stats) => (stats ? `${stats.dev} ${stats.ino} ${stats.isDirectory() || fingerprint(stats)}` : ''))
    .join('\n')
}

/** What is mounted in the worktree. */
const mounts = ({ env, worktree }: Placed): string => JSON.stringify([...mountsWithin(env, worktree.root)])
