/** One marker each, once its place in the session is known. */
import type { Checkpoint, CheckpointMeta } from '../../core/checkpoint.ts'
import type { Oid, TurnNumber } from '../../core/ids.ts'
import type { Marker, MarkResult, PromptMarker, StepMarker, StopMarker } from '../../core/marker.ts'
import { hiddenTurns, runningTurn, type Step, type Turn } from '../../core/timeline.ts'
import { sessionRef } from '../../git/history.ts'
import type { RefEdit } from '../../git/refs.ts'
import { promptEdits } from './prompts.ts'
import type { Recorder } from './record.ts'
import { abandonHidden, closeInterrupted, moveAll, type Scene } from './scene.ts'

type Done = Pick<MarkResult, 'turn' | 'abandoned'> & { checkpoint: Checkpoint; cleared?: boolean }

export async function markPrompt(scene: Scene, marker: PromptMarker, dirty: boolean): Promise<Done> {
  const { context, timeline, snapshot, recorder, refs } = scene
  const { store } = context
  const { session } = marker
  const edits: RefEdit[] = []
  const abandoned = hiddenTurns(timeline).map((turn) => turn.number)
  let parent: Oid | null = timeline.tip?.id ?? null
  if (timeline.boundary) {
    const gone = abandonHidden(scene)
    parent = gone.parent
    edits.push(...gone.edits)
  } else {
    const running = runningTurn(timeline)
    if (running) parent = closeInterrupted(scene, running, marker.closes).id
  }
  const checkpoint = recorder.commit(snapshot, parent ? [parent] : [], {
    kind: 'before',
    session,
    turn: timeline.nextTurn,
    ...common(scene, marker),
    ...(marker.agent === undefined ? {} : { agent: marker.agent }),
    ...(marker.kind === undefined || marker.kind === 'prompt' ? {} : { promptKind: marker.kind }),
    ...(marker.parent === undefined ? {} : { parentSession: marker.parent }),
    ...(dirty ? { dirty } : {}),
  })
  const all: RefEdit[] = [...(await recorder.keepEdits())]
  if (marker.text !== undefined)
    all.push(
      ...(await promptEdits(context, refs, {
        before: checkpoint.id,
        text: marker.text,
        seconds: Math.floor(Date.parse(checkpoint.time) / 1000),
      })),
    )
  all.push(...edits, {
    ref: sessionRef(store, session, 'live'),
    from: refs.sessions.get(session)?.live?.id ?? null,
    to: checkpoint.id,
  })
  await moveAll(scene, all, edits.length > 0)
  return { checkpoint, turn: timeline.nextTurn, abandoned, cleared: timeline.boundary !== null }
}

function common({ timeline: { tip } }: Scene, marker: Marker): Partial<CheckpointMeta> {
  return {
    ...(marker.messageId === undefined ? {} : { messageId: marker.messageId }),
    ...(marker.marker === undefined ? {} : { marker: marker.marker }),
    ...(marker.late ? { late: true } : {}),
    ...(marker.imported ? { imported: tip?.imported ?? tip?.seq ?? 0 } : {}),
  }
}

async function append(scene: Scene, meta: Omit<Parameters<Recorder['commit']>[2], 'session'>): Promise<Checkpoint> {
  const { context, refs, timeline, snapshot, recorder } = scene
  const { session, tip } = timeline
  const checkpoint = recorder.commit(snapshot, tip ? [tip.id] : [], { ...meta, session })
  const live = {
    ref: sessionRef(context.store, session, 'live'),
    from: refs.sessions.get(session)?.live?.id ?? null,
    to: checkpoint.id,
  }
  await context.store.moveRefs([...(await recorder.keepEdits()), live])
  return checkpoint
}

export async function markStep(scene: Scene, marker: StepMarker): Promise<Done> {
  const turn = scene.timeline.turns.at(-1)!
  const open = marker.start ? undefined : openStep(turn, marker)
  const step = open?.number ?? Math.max(0, ...turn.steps.map((one) => one.number)) + 1
  const checkpoint = await append(scene, {
    kind: 'step',
    turn: turn.number,
    step,
    ...(marker.start ? { start: true } : {}),
    ...common(scene, marker),
    ...stepDetails(marker),
  })
  return { checkpoint, turn: turn.number, abandoned: [] }
}

/**
 * The start marker that a step's end belongs to: by its call id; without one, of the same tool, the newest with one of its
 * paths, else the newest. Of a call that was refused no end may come: what came before the next one is not its work.
 */
function openStep(turn: Turn, { callId, tool, paths = [] }: StepMarker): Step | undefined {
  const open = turn.steps.filter((one) => one.start !== null && one.end === null)
  if (callId !== undefined) return open.findLast((one) => one.start?.callId === callId)
  const same = open.filter(
    ({ start }) =>
      start?.callId === undefined && (tool === undefined || start?.tool === undefined || start.tool === tool),
  )
  return same.findLast(({ start }) => start?.paths?.some((path) => paths.includes(path))) ?? same.at(-1)
}

function stepDetails(marker: StepMarker): Partial<CheckpointMeta> {
  return {
    ...(marker.tool === undefined ? {} : { tool: marker.tool }),
    ...(marker.callId === undefined ? {} : { callId: marker.callId }),
    ...(marker.paths && marker.paths.length > 0 ? { paths: marker.paths } : {}),
  }
}

export async function markStop(scene: Scene, marker: StopMarker): Promise<Done> {
  const turn = scene.timeline.turns.at(-1)!
  const checkpoint = await append(scene, {
    kind: 'after',
    turn: turn.number,
    status: marker.status ?? 'completed',
    // What changed between the end and now is nobody's: as with an end that was never reported.
    ...(marker.late ? { inferred: true } : {}),
    ...(marker.background ? { background: marker.background } : {}),
    ...(marker.parent === undefined ? {} : { parentSession: marker.parent }),
    ...common(scene, marker),
  })
  return { checkpoint, turn: turn.number, abandoned: [] }
}

/** After the turn ended, or while its session's boundary is pending: recorded, but nobody's. */
export async function markLate(scene: Scene, marker: Marker, other: TurnNumber | null): Promise<Done> {
  const { context, timeline, refs, snapshot, recorder } = scene
  const last = timeline.turns.at(-1)
  const turn = other ?? last?.number ?? null
  const isNamed = other !== null || (marker.event === 'stop' && last?.before.marker === marker.turn)
  const meta = {
    kind: marker.event === 'stop' ? ('after' as const) : ('step' as const),
    ...(turn === null ? {} : { turn }),
    ...(marker.event === 'stop' && marker.turn !== undefined && isNamed && marker.status
      ? { status: marker.status }
      : {}),
    ...(marker.event === 'stop' && marker.background ? { background: marker.background } : {}),
    ...common(scene, marker),
    late: true,
    ...(marker.event === 'step' ? { ...(marker.start ? { start: true } : {}), ...stepDetails(marker) } : {}),
  }
  if (!timeline.boundary) return { checkpoint: await append(scene, meta), turn, abandoned: [] }
  const parent = timeline.boundaryCheckpoint!.id
  const checkpoint = recorder.commit(snapshot, [parent], { ...meta, session: timeline.session })
  const ref = sessionRef(context.store, timeline.session, `late/${refs.lastSeq + 1}`)
  await context.store.moveRefs([...(await recorder.keepEdits()), { ref, from: null, to: checkpoint.id }])
  return { checkpoint, turn, abandoned: [] }
}
