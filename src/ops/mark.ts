/** Markers: what an agent (or its adapter) tells ckpt, made a checkpoint. */
import type { Beside } from '../core/beside.ts'
import type { Checkpoint, CheckpointMeta, PromptKind, TurnStatus } from '../core/checkpoint.ts'
import { CkptError } from '../core/errors.ts'
import { MANUAL_SESSION, type Oid, type SessionId, type TurnNumber } from '../core/ids.ts'
import { react, sessionState } from '../core/machine.ts'
import { hiddenTurns, lastVisible, runningTurn, type Step, type Timeline, type Turn } from '../core/timeline.ts'
import { readCheckpoint, sessionRef, type WorktreeRefs } from '../git/history.ts'
import type { RefEdit } from '../git/refs.ts'
import { type HeadState, hasUncommittedChanges } from '../git/repository.ts'
import { addPrompt } from '../git/side-refs.ts'
import { markerAfter } from './boundary-marker.ts'
import { type Context, headOf, locked } from './context.ts'
import { removeJournal, writeJournal, writeMarker } from './journal.ts'
import { besideOf, Recorder, type Snapshot, takeSnapshot } from './record.ts'
import { loadTimeline, readRefs } from './sessions.ts'

interface MarkerBase {
  session: SessionId
  /** Made by the client; a retry carries it again. */
  marker?: string
  messageId?: string
}

export interface PromptMarker extends MarkerBase {
  event: 'prompt'
  kind?: PromptKind
  parent?: string
  agent?: string
  text?: string
}

export interface StepMarker extends MarkerBase {
  event: 'step'
  start?: boolean
  tool?: string
  /** Worktree paths, latin1 bytes. */
  paths?: string[]
  callId?: string
}

export interface StopMarker extends MarkerBase {
  event: 'stop'
  status?: Exclude<TurnStatus, 'running'>
}

export type Marker = PromptMarker | StepMarker | StopMarker

export interface MarkResult {
  /** Null: checkpoints are switched off. */
  checkpoint: Checkpoint | null
  /** Coverage of the checkpoint, and of the turn's `before` when it ends one. */
  beside: Beside | null
  since: Beside | null
  turn: TurnNumber | null
  ms: number
  mode: 'fast' | 'scan'
  barrier: 'ok' | 'timeout' | 'none'
  abandoned: TurnNumber[]
  warnings: string[]
}

interface Scene {
  context: Context
  refs: WorktreeRefs
  timeline: Timeline
  head: HeadState
  snapshot: Snapshot
  recorder: Recorder
}

/**
 * Records a marker. Returns when its checkpoint would survive a kill of this process.
 * @throws CkptError NOT_FOUND (a step or stop in a session without any turn), LOCKED, DAMAGED
 */
export async function mark(context: Context, marker: Marker, arrived: number): Promise<MarkResult> {
  const { env, config } = context
  const base = { mode: 'scan', barrier: 'none', beside: null, since: null } as const
  const passed = () => env.monotonic() - arrived
  if (!config.enableFileCheckpointing) {
    const warnings = [
      ...context.warnings,
      'Checkpoints are switched off here (enableFileCheckpointing): nothing was recorded.',
    ]
    return { ...base, checkpoint: null, turn: null, ms: passed(), abandoned: [], warnings }
  }
  const { deadline } = config.snapshot
  return locked(context, { command: `mark ${marker.event}`, wait: deadline }, async () => {
    // The scan takes longest: it runs while the timeline is read, and is thrown away for a marker that came before.
    const reading = readRefs(context)
    const scanning = takeSnapshot(context, reading, { deadline: deadline - passed() })
    scanning.catch(() => undefined)
    const [refs, head] = await Promise.all([reading, headOf(context)])
    const pending = Boolean(refs.sessions.get(marker.session)?.boundary)
    const timeline = await loadTimeline(context, refs, marker.session, { recent: !pending })
    const repeated = await findRepeated(context, timeline, marker)
    if (repeated) {
      await scanning
      const beside = await besideOf(context, repeated)
      const warnings = [...context.warnings, 'This marker was recorded before: nothing was added.']
      return {
        ...base,
        checkpoint: repeated,
        beside,
        turn: repeated.turn ?? null,
        ms: passed(),
        abandoned: [],
        warnings,
      }
    }
    const first = marker.event === 'prompt' && !refs.sessions.get(marker.session)
    const event = marker.event === 'step' && marker.start ? 'step-start' : marker.event
    const state = sessionState({ turns: timeline.turns.length, running: runningTurn(timeline) !== null, pending })
    const { actions } = react(state, event)
    if (actions.includes('refuse-not-found')) {
      await scanning
      throw new CkptError(
        'NOT_FOUND',
        `Session ${JSON.stringify(marker.session)} has no turn yet. Nothing was recorded.`,
        {
          hints: [`ckpt mark prompt --session ${marker.session}`],
        },
      )
    }
    const [snapshot, dirty] = await Promise.all([
      scanning,
      first && context.repository ? hasUncommittedChanges(env, context.repository) : false,
    ])
    const scene: Scene = { context, refs, timeline, head, snapshot, recorder: new Recorder(context, refs, head) }
    const done = await (actions.includes('late')
      ? markLate(scene, marker)
      : marker.event === 'prompt'
        ? markPrompt(scene, marker, dirty)
        : marker.event === 'step'
          ? markStep(scene, marker)
          : markStop(scene, marker))
    const warnings = [...context.warnings, ...degradedWarning(snapshot)]
    if (dirty) warnings.push('uncommitted changes from before this session')
    const before = marker.event === 'stop' && !done.checkpoint.late ? runningTurn(timeline)?.before : undefined
    return {
      ...base,
      ...done,
      beside: snapshot.beside,
      since: before ? await besideOf(context, before) : null,
      ms: passed(),
      warnings,
    }
  })
}

export function degradedWarning(snapshot: Pick<Snapshot, 'degraded' | 'beside'>): string[] {
  if (!snapshot.degraded) return []
  const reasons = new Set(snapshot.beside.uncovered.map((entry) => entry.reason))
  return [`The checkpoint is degraded: some paths could not be captured (${[...reasons].join(', ')}).`]
}

type Done = Pick<MarkResult, 'turn' | 'abandoned'> & { checkpoint: Checkpoint }

async function markPrompt(scene: Scene, marker: PromptMarker, dirty: boolean): Promise<Done> {
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
    if (running) parent = closeInterrupted(scene, running).id
  }
  const checkpoint = recorder.commit(snapshot, parent ? [parent] : [], {
    kind: 'before',
    session,
    turn: timeline.nextTurn,
    ...common(marker),
    ...(marker.agent === undefined ? {} : { agent: marker.agent }),
    ...(marker.kind === undefined || marker.kind === 'prompt' ? {} : { promptKind: marker.kind }),
    ...(marker.parent === undefined ? {} : { parentSession: marker.parent }),
    ...(dirty ? { dirty } : {}),
  })
  const all: RefEdit[] = [...(await recorder.keepEdits())]
  if (marker.text !== undefined)
    all.push(
      await addPrompt(store, refs.notes, {
        before: checkpoint.id,
        text: marker.text,
        seconds: Math.floor(Date.parse(checkpoint.time) / 1000),
      }),
    )
  all.push(...edits, {
    ref: sessionRef(store, session, 'live'),
    from: refs.sessions.get(session)?.live?.id ?? null,
    to: checkpoint.id,
  })
  await moveAll(scene, all, edits.length > 0)
  return { checkpoint, turn: timeline.nextTurn, abandoned }
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
  writeJournal(env, store, {
    version: 1,
    op: 'refs',
    nonce: env.random(6),
    session: timeline.session,
    time: new Date(env.now()).toISOString(),
    entries: [],
    removable: [],
    directoryMode: 0,
    refs: edits,
    marker,
  })
  await store.moveRefs(edits)
  writeMarker(env, store, marker)
  removeJournal(env, store)
}

/** The edits that turn hidden turns into abandoned ones, and where the session goes on. */
export function abandonHidden(scene: Pick<Scene, 'context' | 'refs' | 'timeline' | 'recorder' | 'snapshot'>): {
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
    // The turn goes on without its later steps: it ends where the undo left it.
    parent = recorder.commit(snapshot, [parent.id], {
      kind: 'after',
      session,
      turn: cut.number,
      status: cut.status === 'running' ? 'interrupted' : cut.status,
      cut: true,
    })
  }
  const edits: RefEdit[] = [{ ref: sessionRef(store, session, 'boundary'), from: own.boundary!.id, to: null }]
  if (own.live)
    edits.push({ ref: sessionRef(store, session, `abandoned/${refs.lastSeq + 1}`), from: null, to: own.live.id })
  return { edits, parent: parent?.id ?? null }
}

/** The running turn ends here, though nobody said so. */
export function closeInterrupted(
  { timeline, snapshot, recorder }: Pick<Scene, 'timeline' | 'snapshot' | 'recorder'>,
  running: Turn,
): Checkpoint {
  return recorder.commit(snapshot, [timeline.tip!.id], {
    kind: 'after',
    session: timeline.session,
    turn: running.number,
    status: 'interrupted',
    inferred: true,
  })
}

function common(marker: Marker): Partial<CheckpointMeta> {
  return {
    ...(marker.messageId === undefined ? {} : { messageId: marker.messageId }),
    ...(marker.marker === undefined ? {} : { marker: marker.marker }),
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

async function markStep(scene: Scene, marker: StepMarker): Promise<Done> {
  const turn = runningTurn(scene.timeline)!
  const open = marker.start ? undefined : openStep(turn, marker)
  const step = open?.number ?? Math.max(0, ...turn.steps.map((one) => one.number)) + 1
  const checkpoint = await append(scene, {
    kind: 'step',
    turn: turn.number,
    step,
    ...(marker.start ? { start: true } : {}),
    ...common(marker),
    ...stepDetails(marker),
  })
  return { checkpoint, turn: turn.number, abandoned: [] }
}

/** The start marker that a step's end belongs to: by its call id; without one, the oldest open step of the same tool. */
function openStep(turn: Turn, marker: StepMarker): Step | undefined {
  const open = turn.steps.filter((one) => one.start !== null && one.end === null)
  if (marker.callId !== undefined) return open.find((one) => one.start?.callId === marker.callId)
  return open.find(
    (one) =>
      one.start?.callId === undefined &&
      (marker.tool === undefined || one.start?.tool === undefined || one.start.tool === marker.tool),
  )
}

function stepDetails(marker: StepMarker): Partial<CheckpointMeta> {
  return {
    ...(marker.tool === undefined ? {} : { tool: marker.tool }),
    ...(marker.callId === undefined ? {} : { callId: marker.callId }),
    ...(marker.paths && marker.paths.length > 0 ? { paths: marker.paths } : {}),
  }
}

async function markStop(scene: Scene, marker: StopMarker): Promise<Done> {
  const turn = runningTurn(scene.timeline)!
  const checkpoint = await append(scene, {
    kind: 'after',
    turn: turn.number,
    status: marker.status ?? 'completed',
    ...common(marker),
  })
  return { checkpoint, turn: turn.number, abandoned: [] }
}

/** After the turn ended, or while its session's boundary is pending: recorded, but nobody's. */
async function markLate(scene: Scene, marker: Marker): Promise<Done> {
  const { context, timeline, refs, snapshot, recorder } = scene
  const turn = timeline.turns.at(-1)?.number ?? null
  const meta = {
    kind: marker.event === 'stop' ? ('after' as const) : ('step' as const),
    ...(turn === null ? {} : { turn }),
    late: true,
    ...common(marker),
    ...(marker.event === 'step' ? stepDetails(marker) : {}),
  }
  if (!timeline.boundary) return { checkpoint: await append(scene, meta), turn, abandoned: [] }
  const parent = timeline.boundaryCheckpoint!.id
  const checkpoint = recorder.commit(snapshot, [parent], { ...meta, session: timeline.session })
  const ref = sessionRef(context.store, timeline.session, `late/${refs.lastSeq + 1}`)
  await context.store.moveRefs([...(await recorder.keepEdits()), { ref, from: null, to: checkpoint.id }])
  return { checkpoint, turn, abandoned: [] }
}

/** The checkpoint that an earlier sending of the same marker made. */
async function findRepeated(context: Context, timeline: Timeline, marker: Marker): Promise<Checkpoint | null> {
  const visible = timeline.turns.filter((turn) => !turn.hidden)
  const all = timeline.turns.flatMap((turn) => turn.checkpoints)
  if (marker.marker !== undefined) {
    const same = all.find((c) => c.marker === marker.marker)
    if (same) return same
  }
  if (marker.event === 'prompt' && marker.messageId !== undefined) {
    const same = visible.find((turn) => turn.before.messageId === marker.messageId)
    if (same) return same.before
    return timeline.boundary ? null : findOlderPrompt(context, timeline, marker.messageId)
  }
  if (marker.event !== 'step') return null
  const last = visible.at(-1)
  const key = marker.callId !== undefined ? 'callId' : 'messageId'
  if (!last || marker[key] === undefined) return null
  return (
    last.checkpoints.find(
      (c) =>
        c.kind === 'step' &&
        Boolean(c.start) === Boolean(marker.start) &&
        c[key] === marker[key] &&
        c.tool === marker.tool,
    ) ?? null
  )
}

/** A message id that lies further back than the recent turns (git-rev-list(1) --grep). */
async function findOlderPrompt({ store }: Context, timeline: Timeline, messageId: string): Promise<Checkpoint | null> {
  const tip = timeline.tip
  if (!tip || timeline.turns[0]?.number === 1) return null
  const out = await store.git([
    'rev-list',
    '--first-parent',
    '--fixed-strings',
    '--grep=Ckpt-Kind: before',
    '--grep=Ckpt-Message-Id: ',
    '--all-match',
    tip.id,
    '--',
  ])
  for (const id of out.toString('latin1').split('\n')) {
    if (id === '') continue
    const checkpoint = await readCheckpoint(store, id as Oid)
    if (checkpoint.messageId === messageId) return checkpoint
  }
  return null
}

/** A checkpoint by hand, in session `manual`. */
export async function snapshotNow(context: Context, text: string | undefined, arrived: number): Promise<MarkResult> {
  const { env, config, store } = context
  return locked(context, { command: 'snapshot', wait: 30_000 }, async () => {
    const [refs, head] = await Promise.all([readRefs(context), headOf(context)])
    const snapshot = await takeSnapshot(context, refs, { deadline: config.snapshot.deadline })
    const recorder = new Recorder(context, refs, head)
    const tip = refs.sessions.get(MANUAL_SESSION)?.live ?? null
    const checkpoint = recorder.commit(snapshot, tip ? [tip.id] : [], { kind: 'manual', session: MANUAL_SESSION })
    const edits = await recorder.keepEdits()
    if (text !== undefined)
      edits.push(
        await addPrompt(store, refs.notes, {
          before: checkpoint.id,
          text: text,
          seconds: Math.floor(Date.parse(checkpoint.time) / 1000),
        }),
      )
    await store.moveRefs([
      ...edits,
      { ref: sessionRef(store, MANUAL_SESSION, 'live'), from: tip?.id ?? null, to: checkpoint.id },
    ])
    return {
      checkpoint,
      beside: snapshot.beside,
      since: null,
      turn: null,
      ms: env.monotonic() - arrived,
      mode: 'scan',
      barrier: 'none',
      abandoned: [],
      warnings: [...context.warnings, ...degradedWarning(snapshot)],
    }
  })
}
