/** Accept: what is undone stays undone, and what it hid is abandoned. */
import type { BoundaryRecord } from '../../core/boundary.ts'
import type { SessionId, TurnNumber } from '../../core/ids.ts'
import { hiddenTurns } from '../../core/timeline.ts'
import { sessionRef } from '../../git/history.ts'
import { refuseAmbiguous } from '../history/resolve.ts'
import { Recorder, takeSnapshot } from '../record/record.ts'
import { abandonHidden, moveAll } from '../record/scene.ts'
import { locked } from '../recovery/locked.ts'
import { type Context, headOf } from '../worktree/context.ts'
import { choosePending, loadTimeline, readRefs } from '../worktree/sessions.ts'
import { clearStaleBoundary } from './boundary.ts'

export interface AcceptResult {
  session: SessionId | null
  abandoned: TurnNumber[]
  /** What was undone, where it began amid a turn: that one ends there now. */
  cut?: BoundaryRecord
  warnings: string[]
}

/** Keeps the undone state: the boundary is cleared, hidden turns become abandoned. Nothing to do is no error. */
export async function accept(context: Context, wanted: string | undefined): Promise<AcceptResult> {
  await refuseAmbiguous(context, { session: wanted })
  return locked(context, { command: 'accept' }, async () => {
    const refs = await readRefs(context)
    const session = choosePending(refs, wanted)
    const { warnings } = context
    if (session === null || !refs.sessions.get(session)?.boundary) return { session, abandoned: [], warnings }
    const timeline = await loadTimeline(context, refs, { session })
    if ((await clearStaleBoundary(context, refs, timeline)) !== null) return { session, abandoned: [], warnings }
    const head = await headOf(context)
    const cut = timeline.turns.some((turn) => turn.hiddenFromStep !== null)
    const at = timeline.boundaryCheckpoint!
    // Only a turn that is cut needs a checkpoint from which its session goes on.
    const snapshot = cut ? await takeSnapshot(context, refs) : { tree: at.tree, besideOid: at.beside, degraded: false }
    const recorder = new Recorder(context, refs, head)
    const scene = { context, refs, timeline, recorder, snapshot }
    const { edits, parent } = abandonHidden(scene)
    const live = {
      ref: sessionRef(context.store, session, 'live'),
      from: refs.sessions.get(session)?.live?.id ?? null,
      to: parent,
    }
    await moveAll(scene, [...(await recorder.keepEdits()), ...edits, live], true)
    const abandoned = hiddenTurns(timeline).map((turn) => turn.number)
    return { session, abandoned, ...(cut ? { cut: timeline.boundary! } : {}), warnings }
  })
}
