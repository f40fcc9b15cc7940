/** Restore: files of any checkpoint, brought back over what is there, guarded by the worktree's newest checkpoint. */
import { type Beside, CUT_SHORT, isCutShort, uncoveredAt, uncoveredBetween } from '../../core/beside.ts'
import { type Checkpoint, isOutside } from '../../core/checkpoint.ts'
import { CkptError } from '../../core/errors.ts'
import { quoted, sessionOption } from '../../core/hint-words.ts'
import { MANUAL_SESSION, parsePlace, type SessionId } from '../../core/ids.ts'
import { barePath, isWithin, printable, reasonedList, shortList } from '../../core/paths.ts'
import type { ConflictMode, FileAction } from '../../core/plan.ts'
import type { Transition } from '../../core/state.ts'
import { endOf, type Timeline, type Turn } from '../../core/timeline.ts'
import { abandonedRef, readChain, type SessionRefs, sessionRef, type WorktreeRefs } from '../../git/history.ts'
import type { RefEdit } from '../../git/refs.ts'
import { type SnapshotView, transitionsBetween, viewOf } from '../../snapshot/view.ts'
import { refuseAmbiguous, resolvePlace } from '../history/resolve.ts'
import { newestCheckpoint, Recorder, takeSnapshot } from '../record/record.ts'
import { locked } from '../recovery/locked.ts'
import { markerAfter } from '../worktree/boundary-marker.ts'
import { type Context, headOf, refuseWhileBusy } from '../worktree/context.ts'
import { refuseAmidHooks } from '../worktree/hooks-at-work.ts'
import { chooseSession, loadTimeline, readRefs } from '../worktree/sessions.ts'
import { boundaryPending, hiddenBy } from './boundary.ts'
import type { Asked, ChangeResult } from './change.ts'
import { conclude } from './conclude.ts'
import { carryOut } from './operation.ts'
import { othersSince } from './others-since.ts'
import { prepare } from './prepare.ts'
import { refuseRunning } from './refuse.ts'

export interface RestoreOptions {
  id: string
  session?: string
  /** Deletes what the checkpoint provably does not have. */
  exact?: boolean
  force?: boolean
  dryRun?: boolean
  /** All of it unless told; an empty list is nothing. */
  paths?: readonly string[]
  /** `ckpt switch`: the session goes on from there. */
  move?: boolean
}

/** @throws CkptError USAGE, NOT_FOUND, CONFLICT, GIT_BUSY, LOCKED, TURN_RUNNING, DAMAGED */
export async function restore(context: Context, options: RestoreOptions, asked: Asked): Promise<ChangeResult> {
  parsePlace(options.id) // no id at all: said before what else is in the way
  await refuseAmbiguous(context, options)
  return locked(context, { command: 'restore' }, () => restoreLocked(context, options, asked))
}

async function restoreLocked(context: Context, options: RestoreOptions, asked: Asked): Promise<ChangeResult> {
  const { store } = context
  const head = await headOf(context)
  refuseWhileBusy(context, head)
  refuseAmidHooks(context)
  const refs = await readRefs(context)
  const { checkpoint, isTurn, tip } = await placeAtRest(context, refs, options)
  const { session } = checkpoint
  const branch = options.move ? await branchMove(context, refs, { checkpoint, tip, wanted: options.session }) : null
  const pending = options.move ? null : await pendingIn(context, refs, session)
  const target = await viewOf(store, checkpoint)
  const newest = await newestCheckpoint(context, refs)
  const snapshot = await takeSnapshot(context, refs, { publish: false })
  const known = newest ? await viewOf(store, newest) : null
  const changes = await changesFrom(context, options, { target, known, now: snapshot.view })
  if (options.paths?.length && changes.every(({ from }) => from.kind === 'unknown'))
    await requirePaths(options, target, { now: snapshot.beside, changes })
  const mode: ConflictMode = options.force ? 'force' : 'refuse'
  const units = [{ turn: 0 as never, step: null, changes }]
  const targetBeside = known?.beside ?? null
  const prepared = await prepare(context, snapshot, { units, mode, mergeable: false, targetBeside, target })
  const named = new Set<string>(prepared.actions.map(({ path }) => path))
  const left = deletes(options)
    ? notCapturedNow(target.beside, snapshot.beside).filter((path) => inScope(options, path) && !named.has(path))
    : []
  const warnings = [...context.warnings]
  if (deletes(options) && isCutShort(snapshot.beside) && !isCutShort(target.beside))
    warnings.push(`What is known of the files now ${CUT_SHORT} What it lacks stays as it is.`)
  if (left.length > 0) warnings.push(`Left as they are, for they are not captured now: ${shortList(left)}.`)
  const { actions } = prepared
  warnings.push(...heldNowhere(options, { target: target.beside, now: snapshot.beside, actions }))
  warnings.push(...(await othersSince(context, refs, { checkpoint, actions })))
  const told = {
    session,
    turns: checkpoint.turn === undefined ? [] : [checkpoint.turn],
    ...(isTurn ? {} : { checkpoint }),
    boundary: pending,
    restoredPrompt: null,
    warnings,
    messageId: checkpoint.messageId ?? null,
  }
  const verb = options.move ? 'switch' : 'restore'
  return conclude(context, { verb, op: 'restore', options, mode, refs, prepared, told, asked }, () => {
    const recorder = new Recorder(context, refs, head)
    const seq = refs.lastSeq + 1
    const owner = refs.sessions.has(session) ? session : MANUAL_SESSION
    const oldMarker = markerAfter(refs, owner, refs.sessions.get(owner)?.boundary ?? null)
    return carryOut(context, {
      op: verb,
      session: owner,
      snapshot,
      prepared,
      recorder,
      parent: refs.sessions.get(owner)?.live?.id ?? null,
      target,
      oldMarker,
      edits: async (_safety, commitResult) => ({
        refs: [
          { ref: sessionRef(store, owner, `safety/${seq}`), from: null, to: commitResult().id },
          ...(branch ? branch(seq, recorder.time) : []),
        ],
        marker: oldMarker,
      }),
    })
  })
}

/** The checkpoint that is meant, of a session that no turn runs in. @throws CkptError NOT_FOUND, TURN_RUNNING */
async function placeAtRest(
  context: Context,
  refs: WorktreeRefs,
  options: RestoreOptions,
): Promise<{ checkpoint: Checkpoint; isTurn: boolean; tip: Checkpoint }> {
  const { resolved, timeline } = await resolvePlace(context, refs, options).catch(async (error: unknown) => {
    if (error instanceof CkptError && error.code === 'NOT_FOUND') {
      await refuseAtWork(context, refs, options.session)
      if (options.move) await refusePendingIn(context, refs, options.session)
    }
    throw error
  })
  const turn = resolved.kind === 'turn' ? resolved.turn : turnEndedAt(options, timeline)
  const checkpoint = resolved.kind === 'turn' ? endOf(resolved.turn) : resolved.checkpoint
  await refuseAtWork(context, refs, checkpoint.session)
  const isTurn = turn !== null || (checkpoint.kind === 'after' && !isOutside(checkpoint))
  // A turn that was cut ends with the last step it kept, and is over where its session went on from.
  return { checkpoint, isTurn, tip: turn?.after?.cut ? turn.after : checkpoint }
}

/** The turn whose `after` is asked for. */
function turnEndedAt({ id }: RestoreOptions, timeline: Timeline | null): Turn | null {
  const place = parsePlace(id)
  if (place.kind !== 'edge' || place.edge !== 'after' || !timeline) return null
  return [...timeline.turns, ...timeline.abandoned].find(({ number }) => number === place.turn) ?? null
}

const deletes = ({ exact, move }: RestoreOptions): boolean => Boolean(exact || move)

/** `path`: a directory's may be its key. */
const inScope = ({ paths }: RestoreOptions, path: string): boolean =>
  !paths || paths.some((scope) => isWithin(barePath(path), scope))

/**
 * What is asked for: from the target's states to what the disk should hold, which is what the newest checkpoint says;
 * anything else was changed since.
 */
async function changesFrom(
  { store }: Context,
  options: RestoreOptions,
  { target, known, now }: { target: SnapshotView; known: SnapshotView | null; now: SnapshotView },
): Promise<Transition[]> {
  const changes: Transition[] = []
  const found = await transitionsBetween(store, target, now)
  if (deletes(options)) found.push(...(await overBudget(target, now)))
  for (const change of found) {
    if (!inScope(options, change.path) || (change.from.kind === 'absent' && !deletes(options))) continue
    changes.push({ ...change, to: known ? await known.state(change.path) : change.to })
  }
  return changes
}

/** What is there, costs more than this snapshot may, and is to go: it is read when it is saved. */
async function overBudget(target: SnapshotView, { beside }: SnapshotView): Promise<Transition[]> {
  const found: Transition[] = []
  for (const { path, reason } of beside.uncovered) {
    if (reason !== 'budget' || path === '') continue
    const from = await target.state(path)
    if (from.kind === 'absent') found.push({ path, from, to: { kind: 'unknown', reason } })
  }
  return found
}

/** What cannot come back, and what only the safety checkpoint has once it is gone. */
function heldNowhere(
  { paths }: RestoreOptions,
  { target, now, actions }: { target: Beside; now: Beside; actions: readonly FileAction[] },
): string[] {
  const listed = new Set([...target.uncovered.map(({ path }) => path), ...target.ignored.keys()])
  const lacking = uncoveredBetween(now, target, paths).filter(({ path }) => listed.has(path))
  const costly = new Set<string>(now.uncovered.flatMap(({ path, reason }) => (reason === 'budget' ? path : [])))
  const last = actions.filter(({ action, path }) => action === 'delete' && costly.has(path))
  return [
    ...(lacking.length > 0
      ? [`Not brought back, for that checkpoint does not hold them: ${reasonedList(lacking)}.`]
      : []),
    ...(last.length > 0
      ? [`Held by the safety checkpoint alone once they are gone: ${shortList(last.map(({ path }) => path))}.`]
      : []),
  ]
}

/** What is there and is not captured now, though the checkpoint captured whatever was there. */
function notCapturedNow(then: Beside, now: Beside): string[] {
  const listed = now.uncovered.filter(({ reason }) => reason !== 'not-here' && reason !== 'budget')
  const there = [...listed.map(({ path }) => path), ...now.ignored.keys()]
  return there.filter((path) => uncoveredAt(then, path) === null)
}

/** What is undone in a session, and stays so. */
async function pendingIn(context: Context, refs: WorktreeRefs, session: SessionId): Promise<ChangeResult['boundary']> {
  if (!refs.sessions.get(session)?.boundary) return null
  const timeline = await loadTimeline(context, refs, { session })
  const record = timeline.boundary
  return record && { record, hidden: hiddenBy(timeline, record) }
}

/** The edits that make the session go on from `tip`, with a checkpoint's files: where it was becomes an abandoned branch. */
async function branchMove(
  context: Context,
  refs: WorktreeRefs,
  { checkpoint, tip, wanted }: { checkpoint: Checkpoint; tip: Checkpoint; wanted: string | undefined },
): Promise<(seq: number, time: string) => RefEdit[]> {
  const { store } = context
  const { session } = checkpoint
  if (wanted !== undefined && chooseSession(refs, wanted) !== session)
    throw new CkptError('NOT_FOUND', `That checkpoint is of session ${printable(session)}. Nothing was changed.`, {
      hints: [`ckpt switch ${checkpoint.id.slice(0, 10)} ${sessionOption(session)}`],
    })
  const one = refs.sessions.get(session)
  if (!one || checkpoint.kind === 'safety' || checkpoint.kind === 'manual' || isOutside(checkpoint)) {
    throw new CkptError('NOT_FOUND', 'That checkpoint is on no branch of a session. Nothing was changed.', {
      hints: ['ckpt log --graph', `ckpt restore ${checkpoint.id.slice(0, 10)}`],
    })
  }
  const timeline = await loadTimeline(context, refs, { session })
  if (timeline.boundary) throw boundaryPending(timeline)
  if (!(await isOnBranch(context, one, checkpoint))) {
    throw new CkptError('NOT_FOUND', 'That checkpoint is of another worktree. Nothing was changed.', {
      hints: [`ckpt restore ${checkpoint.id.slice(0, 10)}   (its files)`],
    })
  }
  const live = one.live?.id ?? null
  return (seq, time) => {
    if (live === tip.id) return []
    // The branch that is switched to is the live one now; the one that is left is kept.
    const taken = one.abandoned.filter((other) => other.tip.id === tip.id)
    const { abandoned } = one
    return [
      ...(live ? [{ ref: abandonedRef(store, { session, abandoned }, { seq, time }), from: null, to: live }] : []),
      ...taken.map(({ ref }) => ({ ref, from: tip.id, to: null })),
      { ref: sessionRef(store, session, 'live'), from: live, to: tip.id },
    ]
  }
}

/** A session of that name may be in several worktrees, each with an order of its own: two orders are never mixed. */
async function isOnBranch({ store }: Context, one: SessionRefs, { id }: Checkpoint): Promise<boolean> {
  for (const tip of [one.live, ...one.abandoned.map(({ tip }) => tip)])
    if (tip && (await readChain(store, tip.id)).some((other) => other.id === id)) return true
  return false
}

/** The session that is named exactly, or the latest; null: it is not there. */
const sessionMeant = (refs: WorktreeRefs, wanted: string | undefined): SessionId | null =>
  wanted === undefined || refs.sessions.has(wanted as never) ? chooseSession(refs, wanted) : null

/** @throws CkptError TURN_RUNNING */
async function refuseAtWork(context: Context, refs: WorktreeRefs, wanted: string | undefined): Promise<void> {
  const session = sessionMeant(refs, wanted)
  if (session !== null) refuseRunning(context, await loadTimeline(context, refs, { session }))
}

/** @throws CkptError BOUNDARY_PENDING */
async function refusePendingIn(context: Context, refs: WorktreeRefs, wanted: string | undefined): Promise<void> {
  const session = sessionMeant(refs, wanted)
  const timeline = session && (await loadTimeline(context, refs, { session }))
  if (timeline?.boundary) throw boundaryPending(timeline)
}

/** @throws CkptError NOT_FOUND when the target holds none of the paths, and what it left out there is not surely as it was */
async function requirePaths(
  { id, paths = [] }: Pick<RestoreOptions, 'id' | 'paths'>,
  target: SnapshotView,
  { now, changes }: { now: Beside; changes: readonly Transition[] },
): Promise<void> {
  for (const path of paths) {
    if (path === '') return // the worktree itself
    const [file, directory] = [await target.state(path), await target.state(`${path}/`)]
    if (directory.kind === 'directory' || (file.kind !== 'absent' && file.kind !== 'unknown')) return
  }
  const left = paths.flatMap((path) => {
    const at = uncoveredAt(target.beside, path)
    return at ? [{ path: at.path || path, reason: at.reason }] : []
  })
  const changed = uncoveredBetween(now, target.beside, paths)
  if (left.length > 0 && changed.length === 0 && changes.length === 0) return
  const why = left.length > 0 ? `does not hold ${reasonedList(left)}` : 'has none of these paths'
  throw new CkptError('NOT_FOUND', `That checkpoint ${why}. Nothing was changed.`, {
    paths,
    hints: [`ckpt show ${quoted(id)}`],
  })
}
