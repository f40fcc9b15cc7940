/** Redo: the exact inverse of what undo recorded, guarded the same way. */
import type { BoundaryRecord, UndoneUnit } from '../../core/boundary.ts'
import { CkptError } from '../../core/errors.ts'
import { sessionOption } from '../../core/hint-words.ts'
import type { TurnNumber } from '../../core/ids.ts'
import { noneVisibleIn } from '../../core/none-visible.ts'
import { printable } from '../../core/paths.ts'
import type { ConflictMode } from '../../core/plan.ts'
import { endOf, messageIdOf, type Timeline, visibleTurns } from '../../core/timeline.ts'
import { sessionRef, type WorktreeRefs } from '../../git/history.ts'
import { promptReader } from '../../git/side-refs.ts'
import { refuseAmbiguous } from '../history/resolve.ts'
import { ChangeReader } from '../history/turn-changes.ts'
import { tellingLost } from '../record/prompts.ts'
import { Recorder, whileScanning } from '../record/record.ts'
import { locked } from '../recovery/locked.ts'
import { markerAfter } from '../worktree/boundary-marker.ts'
import { type Context, headOf, refuseWhileBusy } from '../worktree/context.ts'
import { refuseAmidHooks } from '../worktree/hooks-at-work.ts'
import { chooseSession, loadTimeline, readRefs } from '../worktree/sessions.ts'
import { clearStaleBoundary, commitBoundary, hiddenBy } from './boundary.ts'
import type { Asked, ChangeResult, Scanned } from './change.ts'
import { conclude } from './conclude.ts'
import { carryOut } from './operation.ts'
import { prepare } from './prepare.ts'
import { refuseRunning } from './refuse.ts'
import { nothingRecorded } from './selection.ts'

export interface RedoOptions {
  session?: string
  turns?: number
  all?: boolean
  mode: ConflictMode
  dryRun?: boolean
}

const nothing = (why: string, hints: readonly string[] = []) =>
  new CkptError('NOTHING_TO_REDO', `${why} Nothing was changed.`, {
    hints: [...hints, 'ckpt list --sessions'],
  })

const MOST_HINTS = 3

/** How to redo in the sessions that have something undone. */
const elsewhere = (refs: WorktreeRefs): string[] =>
  [...refs.sessions.values()]
    .flatMap(({ session, boundary }) => (boundary ? [`ckpt redo ${sessionOption(session)}`] : []))
    .slice(0, MOST_HINTS)

/** Splits a record into what this redo brings back (newest undo first) and what stays undone. */
export function splitUnits(record: BoundaryRecord, turns: number): { back: UndoneUnit[]; left: UndoneUnit[] } {
  const left = [...record.units]
  const back: UndoneUnit[] = []
  const seen = new Set<TurnNumber>()
  for (let unit = left.at(-1); unit; unit = left.at(-1)) {
    if (!seen.has(unit.turn) && seen.size === turns) break
    seen.add(unit.turn)
    back.push(unit)
    left.pop()
  }
  return { back, left }
}

/** @throws CkptError NOTHING_TO_REDO, CONFLICT, TURN_RUNNING, GIT_BUSY, LOCKED, DAMAGED */
export async function redo(context: Context, options: RedoOptions, asked: Asked): Promise<ChangeResult> {
  await refuseAmbiguous(context, options)
  return locked(context, { command: 'redo' }, () => {
    const reading = readRefs(context)
    return whileScanning(context, { refs: reading, publish: false }, (scanning) =>
      redoScanned(context, options, { asked, reading, scanning }),
    )
  })
}

async function redoScanned(
  context: Context,
  options: RedoOptions,
  { asked, reading, scanning }: Scanned & { asked: Asked },
): Promise<ChangeResult> {
  const { store } = context
  const { mode } = options
  const head = await headOf(context)
  refuseWhileBusy(context, head)
  refuseAmidHooks(context)
  const refs = await reading
  const timeline = await undoneIn(context, refs, options.session)
  const { session, boundary: record } = timeline
  const { back, left } = splitUnits(record, options.all ? Number.POSITIVE_INFINITY : (options.turns ?? 1))
  const reader = new ChangeReader(context, refs, timeline)
  const lastBack = back.at(-1)!
  const turn = timeline.turns.find((one) => one.number === lastBack.turn)!
  const target = await reader.view(endOf(turn))
  const snapshot = await scanning
  // A record's change went from `from` to `to`: a plan goes back.
  const units = back.map((unit) => ({ turn: unit.turn, step: unit.step, changes: unit.changes }))
  const prepared = await prepare(context, snapshot, { units, mode, targetBeside: null, target, isForward: true })
  const last = left.at(-1)
  const next: BoundaryRecord | null = last ? { ...record, turn: last.turn, step: last.step, units: left } : null
  const first = timeline.turns.find((one) => one.number === next?.turn)
  if (next) next.messageId = first ? messageIdOf(first) : null
  const hidden = next ? hiddenBy(timeline, next) : []
  const prompts = await promptReader(store, refs.notes, tellingLost(context))
  const told = {
    session,
    turns: [...new Set(back.map((unit) => unit.turn))].sort((a, b) => a - b),
    boundary: next ? { record: next, hidden } : null,
    restoredPrompt: first ? await prompts(first.before.id) : null,
    warnings: context.warnings,
    messageId: null,
  }
  return conclude(context, { verb: 'redo', op: 'redo', options, mode, refs, prepared, told, asked }, () => {
    const recorder = new Recorder(context, refs, head)
    const seq = refs.lastSeq + 1
    const from = timeline.boundaryCheckpoint!.id
    return carryOut(context, {
      op: 'redo',
      session,
      snapshot,
      prepared,
      recorder,
      parent: timeline.tip?.id ?? null,
      target,
      oldMarker: markerAfter(refs, session, timeline.boundaryCheckpoint),
      edits: async (_safety, commitResult) => {
        const done = next ? commitBoundary(context, { record: next, hidden, recorder, commitResult }) : commitResult()
        return {
          refs: [
            { ref: sessionRef(store, session, `safety/${seq}`), from: null, to: done.id },
            { ref: sessionRef(store, session, 'boundary'), from, to: next ? done.id : null },
          ],
          marker: markerAfter(refs, session, next ? done : null),
        }
      },
    })
  })
}

/** The timeline of a session that has something undone. @throws CkptError NOTHING_TO_REDO, TURN_RUNNING, NOT_FOUND */
async function undoneIn(
  context: Context,
  refs: WorktreeRefs,
  wanted: string | undefined,
): Promise<Timeline & { boundary: BoundaryRecord }> {
  const session = chooseSession(refs, wanted)
  if (session === null) throw nothingRecorded('NOTHING_TO_REDO')
  const timeline = await loadTimeline(context, refs, { session })
  refuseRunning(context, timeline)
  if ((await clearStaleBoundary(context, refs, timeline)) !== null)
    throw nothing('The revert boundary pointed at a turn that is no longer there: it was cleared.')
  const { boundary } = timeline
  if (!boundary) {
    const aside = visibleTurns(timeline).length === 0 ? noneVisibleIn(timeline)[1] : []
    throw nothing(`Session ${printable(session)} has nothing undone.`, [...elsewhere(refs), ...aside])
  }
  return { ...timeline, boundary }
}
