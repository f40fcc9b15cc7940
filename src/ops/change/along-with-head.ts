/** What HEAD did while the turns were made that an undo takes back. */
import { CkptError } from '../../core/errors.ts'
import { quoted } from '../../core/hint-words.ts'
import { printable } from '../../core/paths.ts'
import type { ConflictMode } from '../../core/plan.ts'
import { endOf } from '../../core/timeline.ts'
import type { HeadState } from '../../git/head.ts'
import { commitsBetween } from '../../git/repository.ts'
import type { Context } from '../worktree/context.ts'
import type { Selection } from './selection.ts'

/** @throws CkptError CONFLICT when a turn was made on another branch than the one checked out */
export function refuseOtherBranch({ turns, cut }: Selection, head: HeadState, mode: ConflictMode): void {
  if (mode === 'force' || head.branch === null) return
  for (const turn of [...turns, ...(cut ? [cut.turn] : [])]) {
    const made = endOf(turn).branch
    if (made === undefined || made === head.branch) continue
    throw new CkptError(
      'CONFLICT',
      `Turn ${turn.number} was made on branch ${printable(made)}, but ${printable(head.branch)} is checked out. Nothing was changed.`,
      {
        hints: [`git switch ${quoted(printable(made))}`, 'ckpt undo … --force'],
      },
    )
  }
}

/** Commits that were made within the turns, which stay. */
export async function headWarnings({ env, repository }: Context, { turns, cut }: Selection): Promise<string[]> {
  const all = [...turns, ...(cut ? [cut.turn] : [])]
  const [from, to] = [all.at(-1)?.before.head, all[0] && endOf(all[0]).head]
  if (!repository || !to || from === to) return []
  if (!from)
    return [`HEAD moved during these turns: the first commit was made (${to.slice(0, 7)}). Undo leaves commits alone.`]
  const commits = await commitsBetween(env, repository, { from, to })
  const named =
    commits.length > 0 ? `: ${commits.map(printable).join('; ')}` : ` (${from.slice(0, 7)} → ${to.slice(0, 7)})`
  return [`HEAD moved during these turns${named}. Undo leaves commits alone.`]
}
