/** Operations that were cut short in worktrees of the store: what they need is known only to their journals. */
import { CkptError } from '../../core/errors.ts'
import { printable } from '../../core/paths.ts'
import { worktreeNames } from '../../git/frame.ts'
import type { Context } from '../worktree/context.ts'
import { journalExists } from '../worktree/journal.ts'
import { isRemoved } from '../worktree/worktrees.ts'
import { recoverRemoved } from './recover.ts'

export interface Unfinished {
  /** Reads the store's part of that worktree. */
  context: Context
  /** The worktree is no more: nobody comes who could finish it there. */
  removed: boolean
}

/** This worktree's own included. */
export function unfinishedOperations(context: Context): Unfinished[] {
  const { env, place, store } = context
  return worktreeNames(env, place)
    .map((worktreeId) => ({ ...context, place: { ...place, worktreeId }, store: store.of(worktreeId) }))
    .filter((one) => journalExists(env, one.store))
    .map((one) => ({ context: one, removed: isRemoved(context, one.place.worktreeId) }))
}

/**
 * They are finished first, where their files are; where those were removed, here. The caller holds the store's lock.
 * @throws CkptError LOCKED, DAMAGED
 */
export async function settleUnfinished(context: Context, { dryRun = false } = {}): Promise<void> {
  const all = unfinishedOperations(context)
  const open = all.find(({ removed }) => !removed)
  if (open)
    throw new CkptError(
      'LOCKED',
      `An operation in worktree ${printable(open.context.place.worktreeId)} was cut short and is not finished yet. Nothing was changed.`,
      { hints: ['ckpt status   (in that worktree: it finishes it)'] },
    )
  if (dryRun) return
  for (const { context: one } of all) context.warnings.push(...(await recoverRemoved(one)))
}
