/** What the operations on one session's timeline share: the state they found, and the moves that more than one of them makes. */
import type { Checkpoint } from '../../core/checkpoint.ts'
import type { Oid } from '../../core/ids.ts'
import { lastVisible, type Timeline, type Turn } from '../../core/timeline.ts'
import { abandonedRef, sessionRef, type WorktreeRefs } from '../../git/history.ts'
import type { RefEdit } from '../../git/refs.ts'
import { markerAfter, writeMarker } from '../worktree/boundary-marker.ts'
import type { Context } from '../worktree/context.ts'
import { notYet, refsJournal, removeJournal, writeJournal } from '../worktree/journal.ts'
import type { Recordable, Recorder } from './record.ts'

export interface Scene {
  context: Context
  refs: WorktreeRefs
  timeline: Timeline
  recorder: Recorder
  /** What the checkpoints made here hold. */
  snapshot: Recordable
}

/** A transaction over several refs is not atomic under a kill: where half of it would be a lie, it is journaled. */
export async function moveAll(
  { context, refs, timeline }: Pick<Scene, 'context' | 'refs' | 'timeline'>,
  edits: RefEdit[],
  journaled: boolean,
): Promise<void> {
  const { env, store } = context
  if (!journaled) {
    await store.moveRefs(edits)
    return
  }
  const marker = markerAfter(refs, timeline.session, null)
  await writeJournal(env, store, refsJournal(env, { op: 'refs', session: timeline.session, refs: edits, marker }))
  await store.moveRefs(edits).catch((error: unknown) => {
    throw notYet('This could not be recorded in full', error)
  })
  writeMarker(env, store, marker)
  removeJournal(env, store)
}

/** The edits that turn hidden turns into abandoned ones, and where the session goes on. */
export function abandonHidden(scene: Scene): {
  edits: RefEdit[]
  parent: Oid | null
} {
  const { context, refs, timeline, recorder, snapshot } = scene
  const { store } = context
  const { session } = timeline
  const own = refs.sessions.get(session)!
  let parent = lastVisible(timeline)
  const cut = timeline.turns.find((turn) => turn.hiddenFromStep !== null)
  if (cut && parent) {
    // The turn ends with the last step that it kept; its session goes on from what is here now, whoever did that.
    parent = recorder.commit(snapshot, [parent.id], {
      kind: 'after',
      session,
      turn: cut.number,
      step: cut.hiddenFromStep!,
      status: cut.status === 'running' ? 'interrupted' : cut.status,
      cut: true,
    })
  }
  const edits: RefEdit[] = [{ ref: sessionRef(store, session, 'boundary'), from: own.boundary!.id, to: null }]
  if (own.live)
    edits.push({
      ref: abandonedRef(store, { session, abandoned: own.abandoned }, { seq: refs.lastSeq + 1, time: recorder.time }),
      from: null,
      to: own.live.id,
    })
  return { edits, parent: parent?.id ?? null }
}

/** The running turn ends here, though nobody said so; or it had ended, and a subagent was at work in it. */
export function closeInterrupted(
  { timeline, snapshot, recorder }: Pick<Scene, 'timeline' | 'snapshot' | 'recorder'>,
  running: Turn,
  messageId?: string,
): Checkpoint {
  const ended = running.checkpoints.findLast(({ kind }) => kind === 'after')
  return recorder.commit(snapshot, [timeline.tip!.id], {
    kind: 'after',
    session: timeline.session,
    turn: running.number,
    status: ended?.status ?? 'interrupted',
    ...(messageId === undefined ? {} : { messageId }),
    inferred: true,
  })
}
