/** Rewind: from a turn that a person picked to what can be done about it, each as the plan of a dry run. */
import { CkptError } from '../core/errors.ts'
import type { SessionId, TurnNumber } from '../core/ids.ts'
import type { Context } from './context.ts'
import { redo } from './redo.ts'
import { restore } from './restore.ts'
import { type ChangeResult, undo } from './undo.ts'

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

/** Nothing is changed. Undo goes back to before the turn, redo and restore to how it left the files. */
export async function waysTo(context: Context, { session, number, undone }: Picked): Promise<Way[]> {
  const how = { arrived: context.env.monotonic() }
  const dry = { session, mode: 'refuse', dryRun: true } as const
  const first: Way =
    undone > 0
      ? { verb: 'redo', plan: await planned(redo(context, { ...dry, turns: undone }, how)) }
      : { verb: 'undo', plan: await planned(undo(context, { ...dry, to: String(number) }, how)) }
  const files = restore(context, { session, id: String(number), exact: true, dryRun: true }, how)
  return [first, { verb: 'restore', plan: await planned(files) }]
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
