/** The revert boundary: set, refused while it is pending, cleared when its turn is gone. */
import { type BoundaryRecord, formatRecord, lostTurn, recordObjects } from '../../core/boundary.ts'
import { CkptError } from '../../core/errors.ts'
import { pendingHints } from '../../core/hint-words.ts'
import type { TurnNumber } from '../../core/ids.ts'
import { printable } from '../../core/paths.ts'
import type { Timeline } from '../../core/timeline.ts'
import { sessionRef, type WorktreeRefs } from '../../git/history.ts'
import type { Recorder } from '../record/record.ts'
import { markerAfter, writeMarker } from '../worktree/boundary-marker.ts'
import type { Context } from '../worktree/context.ts'
import { loadTimeline } from '../worktree/sessions.ts'

export function hiddenBy(timeline: Timeline, record: Pick<BoundaryRecord, 'turn' | 'step'>): TurnNumber[] {
  return timeline.turns
    .map((turn) => turn.number)
    .filter((number) => number > record.turn || (number === record.turn && record.step === null))
}

/** Writes a boundary's record and the checkpoint that carries it. */
export function commitBoundary(
  { store }: Context,
  {
    record,
    hidden,
    recorder,
    commitResult,
  }: {
    record: BoundaryRecord
    hidden: TurnNumber[]
    recorder: Recorder
    commitResult: (meta?: Partial<Parameters<Recorder['commit']>[2]>) => ReturnType<Recorder['commit']>
  },
) {
  const oid = store.objects.write('blob', formatRecord(record))
  recorder.keep([oid, ...recordObjects(record)])
  return commitResult({
    record: oid,
    turn: record.turn,
    ...(record.step === null ? {} : { step: record.step }),
    hidden: hidden.join(','),
  })
}

/** Whichever session's it is: they share the worktree. @throws CkptError BOUNDARY_PENDING */
export async function refuseWhilePending(context: Context, refs: WorktreeRefs): Promise<void> {
  const pending = [...refs.sessions.values()].find((one) => one.boundary)
  if (pending) throw boundaryPending(await loadTimeline(context, refs, { session: pending.session }))
}

export function boundaryPending(timeline: Timeline): CkptError {
  const { turn, step } = timeline.boundary!
  return new CkptError(
    'BOUNDARY_PENDING',
    `Session ${printable(timeline.session)} has undone turns pending (from turn ${step === null ? turn : `${turn}.${step}`}). Nothing was changed.`,
    { hints: pendingHints(timeline.session) },
  )
}

/** A turn of its boundary that is no longer there: it means nothing then. */
export const staleTurn = ({ boundary, turns }: Timeline): TurnNumber | null =>
  boundary && lostTurn(boundary, new Set(turns.map(({ number }) => number)))

/** Null: its boundary, if there is one, hides what is there; else the turn that is not. */
export async function clearStaleBoundary(
  context: Context,
  refs: WorktreeRefs,
  timeline: Timeline,
): Promise<TurnNumber | null> {
  const { boundaryCheckpoint } = timeline
  const turn = staleTurn(timeline)
  if (!boundaryCheckpoint || turn === null) return null
  const { store, env } = context
  await store.moveRefs([
    { ref: sessionRef(store, timeline.session, 'boundary'), from: boundaryCheckpoint.id, to: null },
  ])
  writeMarker(env, store, markerAfter(refs, timeline.session, null))
  context.warnings.push(`The revert boundary pointed at turn ${turn}, which is no longer there: it was cleared.`)
  return turn
}
