/** Apply: exactly the plan that a dry run gave, or a refusal because something moved. */
import type { Context } from './context.ts'
import { type RedoOptions, redo } from './redo.ts'
import { type RestoreOptions, restore } from './restore.ts'
import { readToken } from './token.ts'
import { type ChangeResult, type UndoOptions, undo } from './undo.ts'

export interface Applied {
  verb: 'undo' | 'redo' | 'restore' | 'switch'
  result: ChangeResult
}

/** @throws CkptError USAGE (no token), CONFLICT (stale), and what the operation itself throws */
export async function apply(context: Context, token: string, arrived: number): Promise<Applied> {
  const { op, options, hash } = readToken(token)
  const how = { arrived, expected: hash }
  const wanted = { ...options, dryRun: false }
  switch (op) {
    case 'undo':
      return { verb: op, result: await undo(context, wanted as UndoOptions, how) }
    case 'redo':
      return { verb: op, result: await redo(context, wanted as RedoOptions, how) }
    case 'restore':
      return {
        verb: (wanted as RestoreOptions).move ? 'switch' : op,
        result: await restore(context, wanted as RestoreOptions, how),
      }
  }
}
