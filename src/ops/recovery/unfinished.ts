/** Operations that were cut short in worktrees of the store: what they need is known only to their journals. */
import { CkptError } from '../../core/errors.ts'
import { quotedPath } from '../../core/hint-words.ts'
import { printable } from '../../core/paths.ts'
import { worktreeNames } from '../../git/frame.ts'
import type { Context } from '../worktree/context.ts'
import { journalExists } from '../worktree/journal.ts'
import { isAtWork } from '../worktree/lock.ts'
import { linkedWorktrees, pruningCommand, rootOfWorktree } from '../worktree/place.ts'
import { isRemoved } from '../worktree/worktrees.ts'
import { recoverRemoved } from './recover.ts'

export interface Unfinished {
  /** Reads the store's part of that worktree. */
  context: Context
  /** The worktree is no more: nobody comes who could finish it there. */
  removed: boolean
  /** git knows the worktree, and it is not where git says: deleted, moved, or out of reach. */
  missing: boolean
  /** The commands that help, each with what it does; several where it is not known what became of the worktree. */
  ways: string[]
}

/** This worktree's own included. */
export function unfinishedOperations(context: Context): Unfinished[] {
  const { env, place, store } = context
  return worktreeNames(env, place)
    .map((worktreeId) => ({ ...context, place: { ...place, worktreeId }, store: store.of(worktreeId) }))
    .filter((one) => journalExists(env, one.store))
    .map((one) => ({ context: one, ...whereabouts(context, one.place.worktreeId) }))
}

/** Whether a killed command left something for the next one that can write. What a living one has there is not left. */
export const isLeftOver = ({ env, store }: Context): boolean =>
  !isAtWork(env, `${store.worktreeDir}/lock`) && journalExists(env, store)

function whereabouts(context: Context, id: string): Omit<Unfinished, 'context'> {
  const { env, repository } = context
  const found = { removed: isRemoved(context, id), missing: false }
  if (found.removed) return { ...found, ways: ['ckpt doctor --fix'] }
  const root = repository ? rootOfWorktree(env, repository, id) : null
  if (root !== null) return { ...found, ways: [`ckpt status --cwd ${quotedPath(root)}   (finishes it)`] }
  const linked = repository ? linkedWorktrees(env, repository).get(id) : undefined
  if (linked === undefined) return { ...found, ways: ['ckpt status   (in that worktree: it finishes it)'] }
  const ways = [
    `${pruningCommand(env, linked)}   (if it was deleted; then this again)`,
    'git worktree repair PATH   (if it was moved there; then: ckpt status --cwd PATH)',
  ]
  return { ...found, missing: true, ways }
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
      `An operation in worktree ${printable(open.context.place.worktreeId)} was cut short and is not finished yet${open.missing ? ', and that worktree is not where git says' : ''}. Nothing was changed.`,
      { hints: open.ways },
    )
  if (dryRun) return
  for (const { context: one } of all) context.warnings.push(...(await recoverRemoved(one)))
}
