/** Rewind: from a turn that a person picked to what can be done about it, each as the plan of a dry run. */
import { CkptError } from '../../core/errors.ts'
import type { SessionId, TurnNumber } from '../../core/ids.ts'
import type { Context } from '../worktree/context.ts'
import type { ChangeResult } from './change.ts'
import type { RedoOptions } from './redo.ts'
import { restore } from './restore.ts'
import type { UndoOptions } from './undo.ts'

export type WayVerb = 'undo' | 'redo' | 'restore'

/** One way to go; a plan with its token, or why it cannot be gone. */
export interface Way {
  verb: WayVerb
  plan: ChangeResult | CkptError
}

export interface Picked {
  session: SessionId
  number: TurnNumber
  /** Undone turns up to it, itself included; 0: it is not undone. */
  undone: number
}

/** What undoes and redoes the session. */
export interface Undoing {
  undo: (context: Context, options: UndoOptions, how: { arrived: number }) => Promise<ChangeResult>
  redo: (context: Context, options: RedoOptions, how: { arrived: number }) => Promise<ChangeResult>
}

/**
 * Nothing is changed. Undo goes back to before the turn, redo and restore to how it left the files. What the session cannot
 * do is no way.
 */
export async function waysTo(context: Context, { session, number, undone }: Picked, by: Undoing): Promise<Way[]> {
  const how = { arrived: context.env.monotonic() }
  const dry = { session, mode: 'refuse', dryRun: true } as const
  const first: Way =
    undone > 0
      ? { verb: 'redo', plan: await planned(by.redo(context, { ...dry, turns: undone }, how)) }
      : { verb: 'undo', plan: await planned(by.undo(context, { ...dry, to: String(number) }, how)) }
  const files = restore(context, { session, id: String(number), exact: true, dryRun: true }, how)
  const ways: Way[] = [first, { verb: 'restore', plan: await planned(files) }]
  return ways.filter(({ plan }) => !(plan instanceof CkptError && plan.code === 'UNSUPPORTED'))
}

async function planned(plan: Promise<ChangeResult>): Promise<ChangeResult | CkptError> {
  try {
    return await plan
  } catch (error) {
    // A damaged store is told at once; that this way is closed may leave the other one.
    if (error instanceof CkptError && error.code !== 'DAMAGED' && error.code !== 'LOCKED') return error
    throw error
  }
}
