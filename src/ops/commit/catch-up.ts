/** A `ckpt commit` that was cut short, and the next checkpoint. */
import type { Context } from '../worktree/context.ts'
import { isNoted } from './note.ts'

/** Finishes one that was cut short, beside what a command is for. The caller holds the worktree's lock. */
export async function catchUpCommit(context: Context): Promise<void> {
  if (!isNoted(context)) return
  const { finishCommit } = await import('./under-way.ts')
  context.warnings.push(...(await finishCommit(context, { isBeside: true })))
}
