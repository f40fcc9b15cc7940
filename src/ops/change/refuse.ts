/** What is refused with the ways out that work: a plan with conflicts, as a whole, and what has to wait for a turn's end. */
import { isInTheWay, isNotAllowed, isNotForRoot, isUnkept } from '../../core/clashes.ts'
import { CkptError } from '../../core/errors.ts'
import { sessionOption } from '../../core/hint-words.ts'
import { printable, reasonedList } from '../../core/paths.ts'
import { type ConflictMode, canBeMarked, type FileAction } from '../../core/plan.ts'
import { inBackground, runningTurn, type Timeline } from '../../core/timeline.ts'
import type { Context } from '../worktree/context.ts'

/** @throws CkptError CONFLICT when any path conflicts: then nothing at all is written */
export function refuseConflicts(
  actions: readonly FileAction[],
  { verb, mode }: { verb: string; mode: ConflictMode },
  detail: Record<string, unknown>,
): void {
  const conflicts = actions.filter((action) => action.action === 'conflict')
  if (conflicts.length === 0) return
  const isTurns = verb === 'undo' || verb === 'redo'
  throw new CkptError('CONFLICT', `Refused, nothing was written by ${verb}: ${reasonedList(conflicts)}.`, {
    paths: conflicts.map((action) => action.path),
    hints: [
      `ckpt ${verb} … --dry-run   (the whole plan)`,
      ...(isTurns ? [`ckpt ${verb} … --skip-conflicts   (leaves these paths as they are)`] : []),
      ...(conflicts.some((action) => isInTheWay(action, isTurns && mode !== 'force'))
        ? [
            conflicts.some(isUnkept)
              ? `ckpt ${verb} … --force   (only once what is there was moved aside)`
              : `ckpt ${verb} …   (again, ${againOnce(conflicts)})`,
          ]
        : [
            ...(isTurns && conflicts.every(canBeMarked) ? [`ckpt ${verb} … --merge   (writes conflict markers)`] : []),
            `ckpt ${verb} … --force   (takes the other state; a safety checkpoint keeps yours)`,
          ]),
    ],
    detail,
  })
}

function againOnce(conflicts: readonly FileAction[]): string {
  if (conflicts.every(isNotForRoot)) return 'as the user whose directory it is'
  return `once ${conflicts.every(isNotAllowed) ? 'it can be changed' : 'what is in the way was moved aside'}`
}

/** @throws CkptError TURN_RUNNING while an agent that the last turn started works on */
export function refuseInBackground(timeline: Timeline): void {
  const agents = inBackground(timeline)
  const last = timeline.turns.at(-1)
  if (agents === 0 || !last) return
  const who = agents === 1 ? 'an agent' : `${agents} agents`
  throw new CkptError(
    'TURN_RUNNING',
    `Turn ${last.number} of session ${printable(timeline.session)} ended with ${who} at work in the background, and nothing has told of ${agents === 1 ? 'its' : 'their'} end. Nothing was changed.`,
    { hints: ['ckpt undo … --interrupt   (undoes all the same: what is written afterwards stays)'] },
  )
}

/** @throws CkptError TURN_RUNNING; with a boundary pending none runs. `more`: other ways out than to end it. */
export function refuseRunning(
  { config }: Pick<Context, 'config'>,
  timeline: Timeline,
  { outcome = 'Nothing was changed.', more = [] as string[] } = {},
): void {
  const running = timeline.boundary ? null : runningTurn(timeline)
  if (!running) return
  const { session } = timeline
  // A marker records nothing while checkpoints are switched off.
  const first = config.enableFileCheckpointing ? '' : 'set enableFileCheckpointing to true, then: '
  throw new CkptError(
    'TURN_RUNNING',
    `Turn ${running.number} of session ${printable(session)} is still running. ${outcome}`,
    { hints: [`${first}ckpt mark stop ${sessionOption(session)}`, ...more] },
  )
}
