/** A marker made a checkpoint, under a lock that its caller holds. */
import { isDeepStrictEqual } from 'node:util'
import type { Checkpoint } from '../../core/checkpoint.ts'
import { CkptError } from '../../core/errors.ts'
import { sessionOption } from '../../core/hint-words.ts'
import type { TurnNumber } from '../../core/ids.ts'
import { react, type SessionEvent, sessionState } from '../../core/machine.ts'
import type { Marker, MarkResult, StepMarker, StopMarker } from '../../core/marker.ts'
import { inBackground, runningTurn, type Timeline, type Turn, visibleTurns, wentOn } from '../../core/timeline.ts'
import { findByMarker, findPrompt, type WorktreeRefs } from '../../git/history.ts'
import { type Context, headOf } from '../worktree/context.ts'
import { loadTimeline, readRefs } from '../worktree/sessions.ts'
import { announcedElsewhere } from './elsewhere.ts'
import { markLate, markPrompt, markStep, markStop } from './mark-events.ts'
import { besideOf, Recorder, type Snapshot } from './record.ts'
import type { Scene } from './scene.ts'
import { hadUncommittedChanges, unlessUntold } from './uncommitted.ts'

const NOTHING = {
  mode: 'scan',
  barrier: 'none',
  beside: null,
  since: null,
  checkpoint: null,
  turn: null,
  cleared: false,
  directories: 0,
} as const

/** What a marker comes to where checkpoints are switched off. */
export const switchedOff = ({ env, warnings }: Context, arrived: number): MarkResult => ({
  ...NOTHING,
  ms: env.monotonic() - arrived,
  abandoned: [],
  warnings: [...warnings, 'Checkpoints are switched off here (enableFileCheckpointing): nothing was recorded.'],
})

export interface Recording {
  arrived: number
  reading: Promise<WorktreeRefs>
  scanning: Promise<Snapshot>
}

/** Records a marker with a snapshot that is being taken. The caller holds the worktree's lock. @throws CkptError NOT_FOUND */
export async function recordMarker(context: Context, told: Marker, recording: Recording): Promise<MarkResult> {
  const { env } = context
  const { arrived, reading, scanning } = recording
  const passed = () => env.monotonic() - arrived
  const [refs, head] = await Promise.all([reading, context.live?.headOfCall() ?? headOf(context)])
  const { session } = told
  const pending = Boolean(refs.sessions.get(session)?.boundary)
  const timeline = await loadTimeline(context, refs, { session, recent: !pending })
  const given = afterNotice(timeline, asStored(told))
  const repeated =
    findLate(refs, timeline, given) ??
    (await findRepeated(context, timeline, given)) ??
    (await findEchoed(timeline, given, scanning))
  if (repeated) {
    const beside = await besideOf(context, repeated)
    const warnings = [...context.warnings, 'This marker was recorded before: nothing was added.']
    const turn = repeated.turn ?? null
    return { ...NOTHING, checkpoint: repeated, beside, turn, ms: passed(), abandoned: [], warnings }
  }
  const state = sessionState({ turns: timeline.turns.length, running: runningTurn(timeline) !== null, pending })
  const overtaken = isOvertaken(timeline, given)
  if (
    given.event === 'stop' &&
    given.onlyRunning &&
    ((state !== 'running' && !endsBackground(timeline, given)) || overtaken)
  )
    return { ...NOTHING, overtaken, ms: passed(), abandoned: [], warnings: context.warnings }
  const marker =
    (state === 'idle' || state === 'none') && !overtaken ? await openingUnheard(context, timeline, given) : given
  const first = marker.event === 'prompt' && !refs.sessions.get(marker.session)
  const goesOn = marker.event === 'step' && (await isSubagents(context, refs, { timeline, marker }))
  const { actions } = react(state, goesOn ? 'go-on' : eventOf(timeline, marker))
  if (actions.includes('refuse-not-found')) {
    throw new CkptError(
      'NOT_FOUND',
      `Session ${JSON.stringify(marker.session)} has no turn ${timeline.nextTurn > 1 ? 'left that is not abandoned' : 'yet'}. Nothing was recorded.`,
      {
        hints: [`ckpt mark prompt ${sessionOption(marker.session)}`],
      },
    )
  }
  const snapshot = await scanning
  const left = Math.max(1, Math.floor(context.config.snapshot.deadline - passed()))
  const dirty =
    first &&
    (await unlessUntold(context, hadUncommittedChanges(context, { head, snapshot, signal: AbortSignal.timeout(left) })))
  const scene: Scene = { context, refs, timeline, snapshot, recorder: new Recorder(context, refs, head) }
  const other = await otherTurn(context, timeline, marker)
  // A step that waited has no window any more: what it changed is claimed by its declared paths only.
  const late = actions.includes('late') || (marker.event === 'step' && marker.late) || overtaken || other !== null
  const done = await (late
    ? markLate(scene, marker, other)
    : marker.event === 'prompt'
      ? markPrompt(scene, marker, dirty === true)
      : marker.event === 'step'
        ? markStep(scene, marker)
        : markStop(scene, marker))
  const warnings = [...context.warnings, ...snapshotWarnings(snapshot)]
  if (dirty)
    warnings.push(
      'There were uncommitted changes before this session: they are not its work, and no undo of its turns takes them.',
    )
  const before = marker.event === 'stop' && !late ? runningTurn(timeline)?.before : undefined
  const { beside, besideOid, mode, barrier } = snapshot
  const since = !before ? null : before.beside === besideOid ? beside : await besideOf(context, before)
  const directories = mode === 'scan' ? (snapshot.cache?.directories.size ?? 0) : 0
  const result = { ...NOTHING, ...done, beside, since, mode, barrier, directories, ms: passed(), warnings }
  if (marker === given) return result
  // The call that opened a turn begins in it, too: its end may come after the turn's.
  const began = await recordMarker(context, told, { ...recording, reading: readRefs(context) })
  return { ...began, warnings }
}

/** What a marker is to its session. */
function eventOf(timeline: Timeline, marker: Marker): SessionEvent {
  if (marker.event === 'prompt') return marker.notice ? 'notice' : 'prompt'
  if (marker.event === 'step' && marker.start) return 'step-start'
  return marker.event === 'stop' && endsAgain(timeline, marker) ? 'stop-again' : marker.event
}

/** What an agent does after a notice is of the turn that the notice came to, as a subagent's work is. */
function afterNotice({ turns, outside }: Timeline, marker: Marker): Marker {
  if (marker.event === 'prompt' || marker.turn === undefined) return marker
  const { number, before } = turns.at(-1) ?? {}
  const noticed = outside.some((one) => one.marker === marker.turn && one.turn === number)
  if (!noticed || before?.marker === undefined) return marker
  return { ...marker, turn: before.marker, ...(marker.event === 'step' ? { subagent: true } : {}) }
}

/**
 * A subagent's call that begins, or ends, after the end of its turn; it may have begun in an earlier one. What was handed over
 * before that end only waited.
 */
async function isSubagents(
  context: Context,
  refs: WorktreeRefs,
  {
    timeline: { session, turns },
    marker: { turn, subagent, start, callId, handedAt, late },
  }: { timeline: Timeline; marker: StepMarker },
): Promise<boolean> {
  const last = turns.at(-1)
  if (!subagent || late || !last?.after || last.before.marker !== turn) return false
  if (handedAt !== undefined && handedAt < last.after.time) return false
  const isOpenIn = ({ steps }: Turn) => steps.some((step) => step.start?.callId === callId && !step.end)
  if (start || isOpenIn(last)) return true
  return callId !== undefined && (await loadTimeline(context, refs, { session })).turns.some(isOpenIn)
}

/** News for a session that rests: what was at work in the background is so no more. */
const endsBackground = (timeline: Timeline, { background }: StopMarker) =>
  background === 0 && inBackground(timeline) > 0

/** The end of a turn that had ended: somebody's hook sent its agent back to work, or a person's own command did. */
function endsAgain(timeline: Timeline, { turn }: StopMarker): boolean {
  const last = timeline.turns.at(-1)
  return turn !== undefined && last?.before.marker === turn && wentOn(timeline, last)
}

/**
 * A tool call that begins in a turn nobody announced here (its prompt's hook was killed, the agent went on by itself, or
 * came from another worktree of the repository) opens that turn: the state before the call is the state before the turn.
 */
async function openingUnheard(context: Context, timeline: Timeline, marker: Marker): Promise<Marker> {
  const { store } = context
  if (marker.event !== 'step' || !marker.start || marker.turn === undefined || marker.late) return marker
  const { session, turn } = marker
  if (timeline.turns.at(-1)?.before.marker === turn) return marker
  if (timeline.turns.length === 0) {
    const announced = await announcedElsewhere(context, session, turn)
    return announced ? { event: 'prompt', session, marker: turn, ...announced } : marker
  }
  const announced = timeline.turns.at(-1)?.before.marker !== undefined
  if (!announced || (await findByMarker(store, turn))) return marker
  const known = timeline.agent === null ? {} : { agent: timeline.agent }
  return { event: 'prompt', session, marker: turn, ...known, ...(await announcedElsewhere(context, session, turn)) }
}

/** With its texts as they come back from UTF-8: a retry has to be known by its ids. */
function asStored<M extends Marker>(marker: M): M {
  const fields = Object.entries(marker)
  return Object.fromEntries(
    fields.map(([name, one]) => [name, typeof one === 'string' ? one.toWellFormed() : one]),
  ) as M
}

/** The turn that a step or an end says it is of, where another one has begun since. */
async function otherTurn({ store }: Context, timeline: Timeline, marker: Marker): Promise<TurnNumber | null> {
  if (marker.event === 'prompt') return null
  if (marker.turn === undefined) return turnOfCall(timeline, marker)
  const last = timeline.turns.at(-1)
  if (!last || last.before.marker === marker.turn) return null
  return (await findByMarker(store, marker.turn))?.turn ?? null
}

/** Where its client does not know the turn: an earlier one, in which that call began and has not ended. */
function turnOfCall(timeline: Timeline, marker: StepMarker | StopMarker): TurnNumber | null {
  const running = runningTurn(timeline)
  if (!running || marker.event === 'stop' || marker.start || marker.callId === undefined) return null
  const { callId } = marker
  const isOpenIn = ({ steps }: Turn) => steps.some(({ start, end }) => start?.callId === callId && !end)
  if (isOpenIn(running)) return null
  return timeline.turns.findLast((turn) => turn !== running && isOpenIn(turn))?.number ?? null
}

/** What was handed over before the newest turn of its session began, and came through only now: it ends and replaces nothing. */
function isOvertaken({ turns }: Timeline, marker: Marker): boolean {
  const begun = turns.at(-1)?.before
  if (marker.handedAt === undefined || !begun) return false
  const isOfIt = marker.event !== 'prompt' && marker.turn !== undefined && marker.turn === begun.marker
  return !isOfIt && marker.handedAt < begun.time
}

export function snapshotWarnings({
  degraded,
  anew,
  noRoom,
  amidHooks,
  beside,
}: Pick<Snapshot, 'degraded' | 'anew' | 'noRoom' | 'amidHooks' | 'beside'>): string[] {
  const warnings: string[] = []
  if (anew) {
    warnings.push(
      'The store lacks objects of the newest checkpoint: all files were read again. What that lacks: ckpt verify',
    )
  }
  if (degraded) {
    const reasons = new Set(beside.uncovered.map((entry) => entry.reason))
    warnings.push(`The checkpoint is degraded: some paths could not be captured (${[...reasons].join(', ')}).`)
  }
  if (amidHooks) {
    warnings.push(
      "git runs hooks now, which may have put changes away meanwhile: what changes until the next checkpoint, and no agent names, is not taken for a turn's.",
    )
  }
  if (noRoom) {
    warnings.push(
      'New content was left out: the store is at its limit (store.maxBytes), or its disk is nearly full. A larger limit makes room, or ckpt prune --keep N where older turns hold much.',
    )
  }
  return warnings
}

/** The checkpoint that an earlier sending of the same marker made when it was late. */
function findLate(refs: WorktreeRefs, { session, outside }: Timeline, { marker }: Marker): Checkpoint | null {
  if (marker === undefined) return null
  const aside = refs.sessions.get(session)?.others.map(({ tip }) => tip) ?? []
  return [...outside, ...aside].find((one) => one.late && one.marker === marker) ?? null
}

/** The checkpoint that an earlier sending of the same marker made. */
async function findRepeated(context: Context, timeline: Timeline, marker: Marker): Promise<Checkpoint | null> {
  const visible = visibleTurns(timeline)
  if (marker.marker !== undefined && !(marker.event === 'stop' && endsAgain(timeline, marker))) {
    for (const turn of timeline.turns) {
      const same = turn.checkpoints.find((c) => c.marker === marker.marker)
      if (same) return same
    }
  }
  if (marker.event === 'prompt' && marker.messageId !== undefined) {
    const same = visible.find((turn) => turn.before.messageId === marker.messageId)
    if (same) return same.before
    const { tip } = timeline
    const isAllRead = !tip || timeline.turns[0]?.number === 1
    return timeline.boundary || isAllRead ? null : findPrompt(context.store, tip, marker.messageId)
  }
  if (marker.event !== 'step') return null
  const last = visible.at(-1)
  return last ? findStep(last, marker) : null
}

/**
 * What was told of the same call. Its id may be another's, too: some models give the same ones with each message, and a
 * message has several calls. So what begins is only what has begun and not ended, and what ends is another end of that.
 */
function findStep({ checkpoints, steps }: Turn, marker: StepMarker): Checkpoint | null {
  const key = marker.callId !== undefined ? 'callId' : 'messageId'
  if (marker[key] === undefined) return null
  const isSame = (c: Checkpoint) => c[key] === marker[key] && c.tool === marker.tool
  const samePaths = (c: Checkpoint) => isDeepStrictEqual(c.paths ?? [], marker.paths ?? [])
  const told = checkpoints.filter((c) => c.kind === 'step' && Boolean(c.start) === Boolean(marker.start) && isSame(c))
  if (marker.late || marker.handedAt !== undefined) return told[0] ?? null // it waited: what it told of may be over
  // Its end need not name the tool again.
  const open = steps.flatMap(({ start, end }) => (start && !end && start[key] === marker[key] ? [start] : []))
  if (marker.start) return open.find((c) => isSame(c) && samePaths(c)) ?? null
  return open.length > 0 ? null : (told.find((c) => key === 'callId' || samePaths(c)) ?? null)
}

/** The step that a hook which runs twice told of already. Where something changed since, it is another one that says the same. */
async function findEchoed(timeline: Timeline, marker: Marker, scanning: Promise<Snapshot>): Promise<Checkpoint | null> {
  if (marker.event !== 'step' || marker.echo === undefined) return null
  const { turns, tip, boundary } = timeline
  const same = turns.at(-1)?.checkpoints.findLast((one) => one.marker?.startsWith(`${marker.echo}:`))
  if (!same || !tip || boundary) return null
  const { tree, besideOid } = await scanning
  return tree === tip.tree && besideOid === tip.beside ? same : null
}
