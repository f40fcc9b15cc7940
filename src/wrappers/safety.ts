/** Before a backend writes files in its own way, ckpt records the worktree: whatever is lost can be fetched from there. */

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
