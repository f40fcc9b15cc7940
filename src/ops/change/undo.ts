/** Undo: what the last turns (or steps) did is taken back, guarded path by path, and stays hidden behind a boundary until the session goes on. */
import type { BoundaryRecord, UndoneUnit } from '../../core/boundary.ts'
import type { TurnNumber } from '../../core/ids.ts'
import { pathToText } from '../../core/paths.ts'
import type { ConflictMode } from '../../core/plan.ts'
import { inBackground, messageIdOf, runningTurn, type Timeline, type Turn } from '../../core/timeline.ts'
import type { HeadState } from '../../git/head.ts'
import { sessionRef, type WorktreeRefs } from '../../git/history.ts'
import type { RefEdit } from '../../git/refs.ts'
import { promptReader } from '../../git/side-refs.ts'
import { refuseAmbiguous } from '../history/resolve.ts'
import { ChangeReader } from '../history/turn-changes.ts'
import { promptEdits, tellingLost } from '../record/prompts.ts'
import { Recorder, type Snapshot, takeSnapshot, whileOrAfter, whileScanning } from '../record/record.ts'
import { closeInterrupted } from '../record/scene.ts'
import { locked } from '../recovery/locked.ts'
import { markerAfter } from '../worktree/boundary-marker.ts'
import { type Context, headOf, refuseWhileBusy, uncancelled } from '../worktree/context.ts'
import { refuseAmidHooks } from '../worktree/hooks-at-work.ts'
import { chooseSession, loadTimeline, readRefs } from '../worktree/sessions.ts'
import { headWarnings, refuseOtherBranch } from './along-with-head.ts'
import { clearStaleBoundary, commitBoundary, hiddenBy, refuseWhilePending } from './boundary.ts'
import type { Asked, ChangeResult, Scanned } from './change.ts'
import { conclude } from './conclude.ts'
import { carryOut, type Operation } from './operation.ts'
import { prepare } from './prepare.ts'
import { refuseInBackground, refuseRunning } from './refuse.ts'
import {
  nothingRecorded,
  type Selection,
  type SelectionOptions,
  select,
  sessionOf,
  targetCheckpoint,
} from './selection.ts'
import { unitsOf } from './undo-units.ts'

export interface UndoOptions extends SelectionOptions {
  session?: string
  mode: ConflictMode
  unclaimed?: boolean
  interrupt?: boolean
  dryRun?: boolean
  /** Worktree paths (bytes); none: all. */
  paths?: readonly string[]
}

/** @throws CkptError NOTHING_TO_UNDO, CONFLICT, TURN_RUNNING, BOUNDARY_PENDING, GIT_BUSY, LOCKED, DAMAGED */
export async function undo(context: Context, options: UndoOptions, asked: Asked): Promise<ChangeResult> {
  await refuseAmbiguous(context, { session: options.session, id: options.only ?? options.to })
  return locked(context, { command: 'undo' }, () => {
    const reading = readRefs(context)
    return whileScanning(context, { refs: reading, publish: false }, (scanning) =>
      undoScanned(context, options, { asked, reading, scanning }),
    )
  })
}

/** Where an undo starts from. */
interface Start {
  context: Context
  timeline: Timeline
  recorder: Recorder
  /** What the store has. */
  found: WorktreeRefs
  /** The same, with the end of the turn that is closed first. */
  refs: WorktreeRefs
  closing: Closing | null
  /** Agents go on in the background. */
  atWork: boolean
  /** A boundary that led nowhere was cleared: the scan that is under way does not know of that. */
  cleared: boolean
}

type Starting = Scanned & { head: HeadState; alone: boolean }

/** @throws CkptError NOTHING_TO_UNDO, TURN_RUNNING, BOUNDARY_PENDING */
async function startFrom(
  given: Context,
  options: UndoOptions,
  { head, alone, reading, scanning }: Starting,
): Promise<Start> {
  let context = given
  let found = await reading
  const choosing = async () =>
    chooseSession(found, options.session ?? (await sessionOf(context, found, options.only ?? options.to)))
  const session = await choosing().catch(async (error: unknown) => {
    if (alone) await refuseWhilePending(context, found)
    throw error
  })
  if (session === null) throw nothingRecorded('NOTHING_TO_UNDO')
  let timeline = await loadTimeline(context, found, { session })
  const cleared = (await clearStaleBoundary(context, found, timeline)) !== null
  if (cleared) {
    found = await readRefs(context)
    timeline = await loadTimeline(context, found, { session })
    context = uncancelled(context)
  }
  const recorder = new Recorder(context, found, head)
  const atWork = !timeline.boundary && inBackground(timeline) > 0
  const closing = await closeRunning(context, { refs: found, timeline, recorder, options, scanning })
  const refs = closing?.refs ?? found
  if (closing) timeline = await loadTimeline(context, refs, { session })
  if (alone) await refuseWhilePending(context, refs)
  return { context, timeline, recorder, found, refs, closing, atWork, cleared }
}

async function undoScanned(
  given: Context,
  options: UndoOptions,
  { asked, reading, scanning }: Scanned & { asked: Asked },
): Promise<ChangeResult> {
  const { mode } = options
  const head = await headOf(given)
  refuseWhileBusy(given, head)
  refuseAmidHooks(given)
  const alone = options.only !== undefined || (options.paths?.length ?? 0) > 0
  const start = await startFrom(given, options, { head, alone, reading, scanning })
  const { context, timeline, recorder, found, refs, closing, cleared } = start
  const { store } = context
  const { session } = timeline
  const { reader, selection, units, ...said } = await whileOrAfter(scanning, async () => {
    const reader = new ChangeReader(context, refs, timeline)
    const selection = await select(context, { timeline, options, reader })
    await refuseOtherBranch(context, selection, { head, mode })
    return { reader, selection, ...(await unitsOf(reader, selection, options)) }
  })
  const warnings = [...context.warnings, ...said.warnings, ...(await headWarnings(context, selection))]
  const snapshot = await (cleared ? takeSnapshot(context, refs, { publish: false }) : scanning)
  const { oldest, newest } = endsOf(selection)
  const target = await reader.view(targetCheckpoint(selection))
  const left = await reader.view(newest.checkpoints.at(-1)!)
  const prepared = await prepare(context, snapshot, { units, mode, targetBeside: left.beside, target, left })
  const prompts = await promptReader(store, refs.notes, tellingLost({ warnings }))
  const record = alone ? null : nextRecord(timeline, selection, marked(prepared.plan.units, options))
  const hidden = record ? hiddenBy(timeline, record) : []
  const told = {
    session,
    turns: [...selection.turns, ...(selection.cut ? [selection.cut.turn] : [])]
      .map((turn) => turn.number)
      .sort((a, b) => a - b),
    boundary: record ? { record, hidden } : null,
    restoredPrompt: await prompts(oldest.before.id),
    warnings,
    messageId: messageIdOf(oldest),
    agent: timeline.agent,
  }
  warnings.push(...goingOn(options.dryRun ? 'is still running: it would be' : 'was', start))
  return conclude(
    context,
    { verb: 'undo', op: 'undo', options, mode, refs: found, prepared, told, asked },
    async () => {
      // No boundary to set and no file to write: a turn of its own would be empty.
      if (alone && prepared.actions.every(({ action }) => action === 'skip')) {
        if (closing) await store.moveRefs([...(await recorder.keepEdits()), closing.edit])
        return null
      }
      return carryOut(context, {
        op: 'undo',
        session,
        snapshot,
        prepared,
        recorder,
        parent: timeline.tip?.id ?? null,
        target,
        ...(alone ? { asTurn: { turn: timeline.nextTurn } } : {}),
        oldMarker: markerAfter(refs, session, timeline.boundaryCheckpoint),
        edits: record
          ? boundaryEdits(start, { record, hidden })
          : turnEdits(start, { text: describeAlone(selection, options), warnings }),
      })
    },
  )
}

/** The oldest and the newest turn that are undone. */
function endsOf({ turns, cut }: Selection): { oldest: Turn; newest: Turn } {
  return { oldest: cut?.turn ?? turns.at(-1)!, newest: turns[0] ?? cut!.turn }
}

/** The edits that set the boundary. */
function boundaryEdits(
  { context, timeline, recorder, refs, closing }: Start,
  { record, hidden }: { record: BoundaryRecord; hidden: TurnNumber[] },
): Operation['edits'] {
  const { store } = context
  const { session } = timeline
  return async (safety, commitResult) => {
    if (!timeline.boundary) record.baseline = safety.id
    const done = commitBoundary(context, { record, hidden, recorder, commitResult })
    return {
      refs: [
        ...(closing ? [closing.edit] : []),
        { ref: sessionRef(store, session, `safety/${refs.lastSeq + 1}`), from: null, to: done.id },
        { ref: sessionRef(store, session, 'boundary'), from: timeline.boundaryCheckpoint?.id ?? null, to: done.id },
      ],
      marker: markerAfter(refs, session, done),
    }
  }
}

/** The edits of an undo of some turns or paths alone: a turn of its own, at the session's end. */
function turnEdits(
  { context, timeline, found, refs }: Start,
  { text, warnings }: { text: string; warnings: string[] },
): Operation['edits'] {
  const { store } = context
  const { session } = timeline
  return async (safety, commitResult) => {
    const { id } = commitResult()
    const live = { ref: sessionRef(store, session, 'live'), from: found.sessions.get(session)!.live!.id, to: id }
    const seconds = Math.floor(Date.parse(safety.time) / 1000)
    const note = await promptEdits({ store, warnings }, refs, { before: safety.id, text, seconds })
    return { refs: [...note, live], marker: markerAfter(refs, session, timeline.boundaryCheckpoint) }
  }
}

/** What is to be told of agents that may go on writing. */
function goingOn(state: string, { closing, atWork }: Start): string[] {
  if (closing) return [`Turn ${closing.turn} ${state} closed as interrupted; its agent may go on writing.`]
  return atWork ? ['Agents that were at work in the background may go on writing.'] : []
}

/** The prompt, so to say, of the turn that an undo of some turns or paths alone is. */
function describeAlone({ turns, cut }: Selection, { paths = [] }: UndoOptions): string {
  const which = [...turns.map(({ number }) => number), ...(cut ? [`${cut.turn.number}.${cut.step}`] : [])]
  return `Undo of turn ${which.join(', ')}${paths.length > 0 ? `: ${paths.map(pathToText).join(', ')}` : ''}`
}

/** The end of a turn that still runs, which is moved to with what undo does itself. */
interface Closing {
  turn: TurnNumber
  edit: RefEdit
  /** As if it were moved to. */
  refs: WorktreeRefs
}

/** Null: no turn runs. @throws CkptError TURN_RUNNING unless it is to be closed */
async function closeRunning(
  context: Context,
  {
    refs,
    timeline,
    recorder,
    options,
    scanning,
  }: {
    refs: WorktreeRefs
    timeline: Timeline
    recorder: Recorder
    options: UndoOptions
    scanning: Promise<Snapshot>
  },
): Promise<Closing | null> {
  const running = timeline.boundary ? null : runningTurn(timeline)
  if (!running) {
    if (!timeline.boundary && !options.interrupt) refuseInBackground(timeline)
    return null
  }
  const { session } = timeline
  if (!options.interrupt)
    refuseRunning(context, timeline, { more: ['ckpt undo … --interrupt   (closes the turn as interrupted)'] })
  const after = closeInterrupted({ timeline, snapshot: await scanning, recorder }, running)
  const own = refs.sessions.get(session)!
  return {
    turn: running.number,
    edit: { ref: sessionRef(context.store, session, 'live'), from: timeline.tip!.id, to: after.id },
    refs: { ...refs, sessions: new Map(refs.sessions).set(session, { ...own, live: after }), lastSeq: after.seq },
  }
}

const marked = (units: readonly UndoneUnit[], { unclaimed }: UndoOptions): UndoneUnit[] =>
  units.map((unit) => (unclaimed && unit.step !== null ? { ...unit, unclaimed } : unit))

/** The boundary's record after this undo. */
function nextRecord(timeline: Timeline, { turns, cut }: Selection, units: readonly UndoneUnit[]): BoundaryRecord {
  const first = cut?.turn ?? turns.at(-1)!
  return {
    session: timeline.session,
    turn: first.number,
    step: cut?.step ?? null,
    messageId: messageIdOf(first),
    units: [...(timeline.boundary?.units ?? []), ...units],
    baseline: timeline.boundary?.baseline ?? first.before.id,
  }
}
