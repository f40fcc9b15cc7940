/** The end that undo, redo, restore and switch have in common: the plan is told with its token, or refused, or carried out. */
import { shortList } from '../../core/paths.ts'
import { type ConflictMode, isMarked, type ToldAction } from '../../core/plan.ts'
import type { WorktreeRefs } from '../../git/history.ts'
import type { Context } from '../worktree/context.ts'
import type { Asked, ChangeResult } from './change.ts'
import { type Carried, lostPaths } from './operation.ts'
import type { Prepared } from './prepare.ts'
import { refuseConflicts } from './refuse.ts'
import { stillStaged } from './still-staged.ts'
import { makeToken, planHash, staleToken, type Token } from './token.ts'

/** A change that is planned and not decided on yet. */
export interface Proposal {
  /** What the user calls it. */
  verb: string
  op: Token['op']
  options: { dryRun?: boolean }
  mode: ConflictMode
  /** What the plan rests on. */
  refs: WorktreeRefs
  prepared: Prepared
  asked: Asked
  /** What is told of it, whatever becomes of it. */
  told: Omit<ChangeResult, 'dryRun' | 'files' | 'safety' | 'token' | 'ms' | 'syncMs'>
}

/**
 * `carry` does it; null: there was nothing to write.
 * @throws CkptError CONFLICT, also when the plan is not the expected one any more; then nothing was written
 */
export async function conclude(
  context: Context,
  { verb, op, options, mode, refs, prepared, told, asked: { arrived, expected } }: Proposal,
  carry: () => Promise<Carried | null>,
): Promise<ChangeResult> {
  const { env } = context
  const { session } = told
  const files = prepared.actions
  const result = (more: Partial<ChangeResult>): ChangeResult => ({
    ...told,
    dryRun: options.dryRun ?? false,
    files,
    warnings: [...told.warnings, ...markedWarnings(files, options)],
    safety: null,
    ms: env.monotonic() - arrived,
    syncMs: 0,
    ...more,
  })
  const hash = planHash(refs, session, files)
  if (options.dryRun) {
    const lost = await lostPaths(context, prepared)
    const planned = result({ token: makeToken({ op, options, hash }), isLost: lost.length > 0 })
    if (planned.isLost)
      planned.warnings.push(`It would be refused: the store has lost the content of ${shortList(lost)}.`)
    return planned
  }
  if (expected !== undefined && expected !== hash) throw staleToken()
  refuseConflicts(files, { verb, mode }, { files, session })
  // It reads the index alone, which no operation writes.
  const staged = stillStaged(context, op, files)
  const carried = await carry().finally(() => staged)
  told.warnings.push(...(await staged))
  return result(carried ? { safety: carried.safety.id, syncMs: carried.syncMs } : {})
}

function markedWarnings(files: readonly ToldAction[], { dryRun }: Proposal['options']): string[] {
  const marked = files.filter(isMarked).map(({ path }) => path)
  if (marked.length === 0) return []
  return [
    dryRun
      ? `Conflict markers would be written into ${shortList(marked)}.`
      : `Conflict markers were written into ${shortList(marked)}: both sides changed the same lines.`,
  ]
}
