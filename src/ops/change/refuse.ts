/** A plan with conflicts is refused whole, with the ways out that work. */
import { CkptError } from '../../core/errors.ts'
import { reasonedList } from '../../core/paths.ts'
import { canBeMarked, type FileAction, isInTheWay, isUnkept } from '../../core/plan.ts'

/** @throws CkptError CONFLICT when any path conflicts: then nothing at all is written */
export function refuseConflicts(actions: readonly FileAction[], verb: string, detail: Record<string, unknown>): void {
  const conflicts = actions.filter((action) => action.action === 'conflict')
  if (conflicts.length === 0) return
  const isTurns = verb === 'undo' || verb === 'redo'
  throw new CkptError('CONFLICT', `Refused, nothing was written by ${verb}: ${reasonedList(conflicts)}.`, {
    paths: conflicts.map((action) => action.path),
    hints: [
      `ckpt ${verb} … --dry-run   (the whole plan)`,
      ...(isTurns ? [`ckpt ${verb} … --skip-conflicts   (leaves these paths as they are)`] : []),
      ...(conflicts.some(isInTheWay)
        ? [
            conflicts.some(isUnkept)
              ? `ckpt ${verb} … --force   (only once what is there was moved aside)`
              : `ckpt ${verb} …   (again, once what is in the way was moved aside)`,
          ]
        : [
            ...(isTurns && conflicts.every(canBeMarked) ? [`ckpt ${verb} … --merge   (writes conflict markers)`] : []),
            `ckpt ${verb} … --force   (takes the other state; a safety checkpoint keeps yours)`,
          ]),
    ],
    detail,
  })
}
