/** Whether a `ckpt commit` is under way, or was cut short: a file apart, for every marker asks. */
import type { Context } from './context.ts'

export const noteFile = ({ store }: Pick<Context, 'store'>): string => `${store.worktreeDir}/commit.json`

export const isNoted = (context: Pick<Context, 'env' | 'store'>): boolean =>
  context.env.files.existsSync(noteFile(context))
