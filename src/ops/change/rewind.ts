/** Rewind: from a turn that a person picked to what can be done about it, each as the plan of a dry run. */
import { turnsToRedo } from '../../core/boundary.ts'
import { CkptError } from '../../core/errors.ts'
import type { Turn } from '../../core/timeline.ts'
import type { Context } from '../worktree/context.ts'
import { loadTimeline, readRefs } from '../worktree/sessions.ts'
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

/** What undoes and redoes the session. */
export interface Undoing {
  undo: (context: Context, options: UndoOptions, how: { arrived: number }) => Promise<ChangeResult>
  redo: (context: Context, options: RedoOptions, how: { arrived: number }) => Promise<ChangeResult>
}

/**
 * Nothing is changed. Undo goes back to before the turn, redo and restore to how it left the files; one that is undone in part
 * goes either way. What the session cannot do is no way.
 */
export async function waysTo(
  context: Context,
  { session, number, hidden, hiddenFromStep }: Turn,
  by: Undoing,
): Promise<Way[]> {
  const how = { arrived: context.env.monotonic() }
  const dry = { session, mode: 'refuse', dryRun: true } as const
  const ways: Way[] = []
  const offer = async (verb: WayVerb, plan: Promise<ChangeResult>) => {
    ways.push({ verb, plan: await planned(plan) })
  }
  if (!hidden) await offer('undo', by.undo(context, { ...dry, to: String(number) }, how))
  if (hidden || hiddenFromStep !== null) {
    const { boundary } = await loadTimeline(context, await readRefs(context), { session })
    const turns = boundary ? turnsToRedo(boundary, number) : 0
    if (turns > 0) await offer('redo', by.redo(context, { ...dry, turns }, how))
  }
  await offer('restore', restore(context, { session, id: String(number), exact: true, dryRun: true }, how))
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
