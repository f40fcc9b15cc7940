/** Before a backend writes files in its own way, ckpt records the worktree: whatever is lost can be fetched from there. */
import { CkptError, reasonOf } from '../core/errors.ts'
import { snapshotNow } from '../ops/snapshot-now.ts'
import type { Context } from '../ops/worktree/context.ts'

/** Null: checkpoints are switched off here. */
export async function saveFirst(context: Context, what: string): Promise<string | null> {
  const { config, env } = context
  if (!config.enableFileCheckpointing || env.vars.CKPT_DISABLED === '1') return null
  const { checkpoint, warnings } = await snapshotNow(context, what, env.monotonic())
  for (const warning of warnings) if (!context.warnings.includes(warning)) context.warnings.push(warning)
  return checkpoint?.id ?? null
}

/**
 * What a backend's own undo or redo threw once it had begun. Nobody knows what it did by then, and edits that nobody recorded
 * may be gone: the way back is named.
 */
export function maybeChanged(error: unknown, who: string, safety: string | null): CkptError {
  const hints = error instanceof CkptError ? error.hints : []
  // The others of its kind say that nothing was changed.
  const code = error instanceof CkptError && error.code === 'TURN_RUNNING' ? error.code : 'INTERNAL'
  const id = safety?.slice(0, 10)
  const saved = id === undefined ? '' : ` They are as they were in checkpoint ${id}.`
  return new CkptError(code, `${reasonOf(error)} ${who} may have changed files by then.${saved}`, {
    hints: [...(id === undefined ? [] : [`ckpt restore ${id} --exact --force`]), ...hints],
    cause: error,
  })
}
