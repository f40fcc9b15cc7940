/** Refs that were moved and not synced yet. */
import type { Env } from '../env.ts'
import type { RefEdit } from './refs.ts'
import { tipsFile, worktreeOf } from './tips.ts'
import { syncDirectory, syncIfThere } from './whole-file.ts'

/** With them goes what is written down of where they were moved to. */
export class UnsyncedRefs {
  readonly #refs = new Set<string>()

  add(edits: readonly RefEdit[]): void {
    for (const { ref } of edits) this.#refs.add(ref)
  }

  /** What they name is to be synced before. `directory`: the store's. */
  sync(env: Env, directory: string): void {
    if (this.#refs.size === 0) return
    const files = [...this.#refs].flatMap((ref) => {
      const worktree = worktreeOf(ref)
      const file = `${directory}/store.git/${ref}`
      return worktree === null ? [file] : [file, tipsFile(directory, worktree)]
    })
    this.#refs.clear()
    const there = [...new Set(files)].filter((file) => syncIfThere(env, file))
    for (const parent of new Set(there.map((file) => file.slice(0, file.lastIndexOf('/'))))) syncDirectory(env, parent)
  }
}
