/** What HEAD did while the turns were made that an undo takes back. */
import { CkptError } from '../../core/errors.ts'
import { quoted } from '../../core/hint-words.ts'
import { printable } from '../../core/paths.ts'
import type { ConflictMode } from '../../core/plan.ts'
import { endOf } from '../../core/timeline.ts'
import type { HeadState } from '../../git/head.ts'
import { tryGit } from '../../git/process.ts'
import { commitsBetween } from '../../git/repository.ts'
import type { Context } from '../worktree/context.ts'
import type { Selection } from './selection.ts'

/** @throws CkptError CONFLICT when a turn was made on another branch than the one checked out */
export async function refuseOtherBranch(
  context: Context,
  { turns, cut }: Selection,
  { head: { branch }, mode }: { head: HeadState; mode: ConflictMode },
): Promise<void> {
  if (mode === 'force' || branch === null) return
  for (const turn of [...turns, ...(cut ? [cut.turn] : [])]) {
    const made = endOf(turn).branch
    if (made === undefined || made === branch) continue
    const there = await whereIs(context, made)
    const which = there === 'gone' ? ', which is there no more,' : there === 'free' ? ',' : `, which ${there} has,`
    throw new CkptError(
      'CONFLICT',
      `Turn ${turn.number} was made on branch ${printable(made)}${which} but ${printable(branch)} is checked out. Nothing was changed.`,
      {
        hints: [...(there === 'free' ? [`git switch ${quoted(printable(made))}`] : []), 'ckpt undo … --force'],
      },
    )
  }
}

/** Whether a branch can be checked out here, as far as git says: else it is gone, or another worktree has it: the result. */
async function whereIs({ env, worktree }: Context, branch: string): Promise<string> {
  const ref = `refs/heads/${branch}`
  const args = ['for-each-ref', '--format=%(refname)%00%(worktreepath)', ref]
  const { code, stdout } = await tryGit(env, { args, cwd: worktree.root })
  if (code !== 0) return 'free'
  const rows = stdout.toString('utf8').split('\n')
  const row = rows.map((line) => line.split('\0')).find(([name]) => name === ref)
  if (!row) return 'gone'
  return row[1] ? `the worktree ${printable(row[1])}` : 'free'
}

/** Commits that were made within the turns, which stay. */
export async function headWarnings({ env, repository }: Context, { turns, cut }: Selection): Promise<string[]> {
  const all = [...turns, ...(cut ? [cut.turn] : [])]
  const [from, to] = [all.at(-1)?.before.head, all[0] && endOf(all[0]).head]
  if (!repository || !to || from === to) return []
  if (!from) {
    const isFirst = all.at(-1)?.before.branch === endOf(all[0]!).branch
    const how = isFirst ? `: the first commit was made (${to.slice(0, 7)})` : ` (no commit → ${to.slice(0, 7)})`
    return [`HEAD moved during these turns${how}. Undo leaves commits alone.`]
  }
  const commits = await commitsBetween(env, repository, { from, to })
  const named =
    commits.length > 0 ? `: ${commits.map(printable).join('; ')}` : ` (${from.slice(0, 7)} → ${to.slice(0, 7)})`
  return [`HEAD moved during these turns${named}. Undo leaves commits alone.`]
}
