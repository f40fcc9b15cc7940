/** Carrying out a plan: safety checkpoint, journal, files, refs. Shared by undo, redo, restore and what is built on them. */

import { type Beside, formatBeside, uncoveredDirectories, uncoveredPaths } from '../../core/beside.ts'
import type { Checkpoint } from '../../core/checkpoint.ts'
import type { Oid, SessionId, TurnNumber } from '../../core/ids.ts'
import { lostContent } from '../../core/lost-content.ts'
import { ancestorsOf, directoryKey, type RelativePath } from '../../core/paths.ts'
import type { FileAction } from '../../core/plan.ts'
import type { PathState } from '../../core/state.ts'
import { errno } from '../../env.ts'
import type { RefEdit } from '../../git/refs.ts'
import { type FileEntry, fileEntry } from '../../git/trees.ts'
import { applyEntries, asStopped } from '../../snapshot/apply.ts'
import type { ApplyEntry } from '../../snapshot/apply-entry.ts'
import { directoryAbove, needsOpening, permissions } from '../../snapshot/disk.ts'
import type { SnapshotView } from '../../snapshot/view.ts'
import { publishCache, type Recorder, type Snapshot } from '../record/record.ts'
import { backOut } from '../recovery/back-out.ts'
import { diskHolds, inRepository, mendObjects } from '../store/mend-objects.ts'
import { writeMarker } from '../worktree/boundary-marker.ts'
import type { Context } from '../worktree/context.ts'
import { journalEntries, notYet, removeJournal, writeJournal } from '../worktree/journal.ts'
import { tellingAbsent } from './absent.ts'
import type { Prepared } from './prepare.ts'

export interface Operation {
  op: 'undo' | 'redo' | 'restore' | 'switch'
  session: SessionId
  snapshot: Snapshot
  prepared: Prepared
  recorder: Recorder
  /** Parent of the safety checkpoint. */
  parent: Oid | null
  /** Instead of a safety checkpoint and its result: a turn of its own. */
  asTurn?: { turn: TurnNumber }
  /** What the git hooks read now, should the operation be taken back. */
  oldMarker: string | null
  /** What the worktree is to look like: decides which emptied directories may go. */
  target: SnapshotView
  /** Makes the refs' edits once the safety checkpoint and the result are known. */
  edits: (
    safety: Checkpoint,
    commitResult: (meta?: Partial<Parameters<Recorder['commit']>[2]>) => Checkpoint,
  ) => Promise<{ refs: RefEdit[]; marker: string | null }>
}

export interface Carried {
  safety: Checkpoint
  syncMs: number
}

/**
 * Reads from the store all that an operation rests on. What is damaged there, and whole on disk or in the user's
 * repository, is written once more.
 * @throws CkptError DAMAGED that names the files whose content is nowhere
 */
async function prove(context: Context, entries: readonly ApplyEntry[]): Promise<void> {
  const { objects } = context.store
  const damaged = await objects.damaged(statesOids(entries))
  if (damaged.size === 0) return
  const before = entries.map(({ path, pre }) => [path, pre] as const)
  await mendObjects(context, damaged, before)
  await objects.syncFresh()
  const lost = await objects.damaged(damaged)
  if (lost.size > 0) throw lostContent(pathsWith(entries, lost))
}

/** Paths for which {@link carryOut} would refuse a plan: the store has lost their content. Nothing is written. */
export async function lostPaths(context: Context, { actions }: Prepared): Promise<string[]> {
  const entries = journalEntries(actions)
  const lost = await context.store.objects.damaged(statesOids(entries))
  for (const { path, pre } of entries)
    if (pre.kind === 'present' && lost.has(pre.oid) && diskHolds(context, path, pre.oid)) lost.delete(pre.oid)
  for await (const { oid } of inRepository(context, [...lost])) lost.delete(oid)
  return pathsWith(entries, lost)
}

function pathsWith(entries: readonly ApplyEntry[], oids: ReadonlySet<Oid>): string[] {
  const needs = (state: PathState) => state.kind === 'present' && oids.has(state.oid)
  return entries.filter(({ pre, post }) => needs(pre) || needs(post)).map(({ path }) => path)
}

/** Everything is saved and synced before the first file is touched. @throws CkptError CONFLICT when something moved meanwhile */
export async function carryOut(context: Context, operation: Operation): Promise<Carried> {
  const { env, store, worktree } = context
  const { root } = worktree
  const { prepared, recorder, op, session } = operation
  const planned = journalEntries(prepared.actions)
  const removable = await removableDirectories(operation, planned)
  const entries = [...planned, ...closedDirectories(context, planned, removable)]
  await env.progress('saving what is there')
  const snapshot = await tellingAbsent(context, operation.snapshot, prepared.actions)
  const saved = await saveTree(context, snapshot, prepared.forced)
  const parents = operation.parent ? [operation.parent] : []
  const turn = operation.asTurn
  const safety = recorder.commit(
    saved,
    parents,
    turn ? { kind: 'before', session, op, agent: 'ckpt', ...turn } : { kind: 'safety', session, op },
  )
  const after = await resultTree(context, snapshot, { actions: prepared.actions, removable })
  const { refs, marker } = await operation.edits(safety, (meta = {}) => {
    const kind = turn
      ? ({ kind: 'after', status: 'completed', ...turn } as const)
      : ({ kind: 'safety', result: true } as const)
    return recorder.commit(after, [safety.id], { session, op, ...kind, ...meta })
  })
  const all = [...(await recorder.keepEdits()), ...refs]
  const start = env.monotonic()
  await store.objects.syncFresh(statesOids(entries))
  let syncMs = env.monotonic() - start
  await prove(context, entries)
  const nonce = env.random(6)
  const journal = {
    version: 1 as const,
    op,
    nonce,
    session,
    time: recorder.time,
    entries,
    removable,
    directoryMode: snapshot.beside.defaults.directory,
    refs: all,
    head: recorder.head,
    marker,
  }
  await writeJournal(env, store, journal)
  const { directoryMode } = journal
  const input = { root, store, nonce, entries, removable, directoryMode, expected: prepared.expected }
  try {
    if (marker !== null) writeMarker(env, store, marker)
    syncMs += (await applyEntries(env, input)).syncMs
  } catch (error) {
    const { oldMarker } = operation
    throw await backOut(context, { op, oldMarker, input, safety }, asStopped(error))
  }
  try {
    await store.moveRefs(all, { durable: true })
    writeMarker(env, store, marker)
    removeJournal(env, store)
  } catch (error) {
    throw notYet(`The files are as this ${op} leaves them, but it could not be recorded`, error)
  }
  remember(context, snapshot, entries)
  return { safety, syncMs }
}

/** What was written is looked at again by the next scan, whatever the ignore rules say then. */
function remember(context: Context, { cache, mode }: Snapshot, entries: readonly ApplyEntry[]): void {
  if (!cache) return
  const touched = entries.map((entry) => entry.path as RelativePath).filter((path) => !path.endsWith('/'))
  try {
    publishCache(context, { ...cache, recheck: [...new Set([...cache.recheck, ...touched])] }, mode)
  } catch (error) {
    if (errno(error) === undefined) throw error // else it is done all the same: a scan that knows less takes longer
  }
}

/** Directories that are opened to write into them: who is killed then leaves it to the next command to close them. */
function closedDirectories(
  { env, worktree }: Context,
  entries: readonly ApplyEntry[],
  removable: readonly string[],
): ApplyEntry[] {
  const paths = [...entries.map(({ path }) => path), ...removable]
  const known = new Set([...paths, ...removable.map((directory) => `${directory}/`)])
  const found = new Map<string, ApplyEntry>()
  for (const path of paths) {
    const above = directoryAbove(env, worktree.root, path)
    if (!above || above.at === '' || known.has(`${above.at}/`) || !needsOpening(env, above.stats)) continue
    const state: PathState = { kind: 'directory', mode: permissions(above.stats) }
    found.set(above.at, { path: `${above.at}/`, pre: state, post: state })
  }
  return [...found.values()]
}

function* statesOids(entries: readonly { pre: PathState; post: PathState }[]): Generator<Oid> {
  for (const { pre, post } of entries) {
    if (pre.kind === 'present') yield pre.oid
    if (post.kind === 'present') yield post.oid
  }
}

/** The snapshot with the paths that it does not cover but that are about to change. */
async function saveTree({ store }: Context, snapshot: Snapshot, forced: ReadonlyMap<string, PathState>) {
  if (forced.size === 0) return snapshot
  const edits = new Map<string, FileEntry>()
  const beside: Beside = { ...snapshot.beside, modes: new Map(snapshot.beside.modes) }
  for (const [path, state] of forced) setState({ edits, beside }, path, state)
  const tree = await store.trees.edit(snapshot.tree, edits)
  return { ...snapshot, tree, beside, besideOid: store.objects.write('blob', formatBeside(beside)) }
}

function setState(
  { edits, beside }: { edits: Map<string, FileEntry | null>; beside: Beside },
  path: string,
  state: PathState,
): void {
  const key = path as RelativePath
  if (path.endsWith('/')) {
    if (state.kind !== 'directory') return // it may stay, with what else is in it
    if (state.mode !== beside.defaults.directory) beside.modes.set(key, state.mode)
    else beside.modes.delete(key)
    return
  }
  beside.modes.delete(key)
  if (state.kind !== 'present') {
    edits.set(path, null)
    return
  }
  const entry = fileEntry(state)
  edits.set(path, entry)
  if (state.type === 'file' && state.mode !== (entry.mode === '100755' ? beside.defaults.exec : beside.defaults.file))
    beside.modes.set(key, state.mode)
}

/**
 * Directories that the deletions may leave empty and that came with what goes, or in whose place a file comes; by restore,
 * those that the target provably does not have. Deepest first.
 */
async function removableDirectories(
  { target, op, prepared: { going } }: Operation,
  entries: readonly { path: string; post: PathState }[],
): Promise<string[]> {
  const found: string[] = []
  const arriving = new Set(entries.filter(({ post }) => post.kind === 'present').map(({ path }) => path))
  const makesRoom = (directory: string) => [directory, ...ancestorsOf(directory)].some((at) => arriving.has(at))
  // One that goes by the plan is only empty when those below it have gone.
  const leaving = new Set(
    entries.filter(({ path, post }) => path.endsWith('/') && post.kind === 'absent').map(({ path }) => path),
  )
  const left = new Set(entries.flatMap(({ path, post }) => (post.kind === 'absent' ? ancestorsOf(path) : [])))
  for (const directory of left)
    if (
      makesRoom(directory) ||
      leaving.has(directoryKey(directory)) ||
      going.has(directoryKey(directory)) ||
      ((op === 'restore' || op === 'switch') && (await target.hadDirectory(directory)) === false)
    )
      found.push(directory)
  return found.sort((a, b) => (a < b ? 1 : -1))
}

/** What a snapshot taken right after would hold, without taking one. */
async function resultTree(
  { store }: Context,
  snapshot: Snapshot,
  { actions, removable }: { actions: readonly FileAction[]; removable: readonly string[] },
) {
  const edits = new Map<string, FileEntry | null>()
  const beside: Beside = {
    ...snapshot.beside,
    modes: new Map(snapshot.beside.modes),
    emptyDirectories: new Set(snapshot.beside.emptyDirectories),
  }
  const done = new Set<string>()
  const gone = new Set(removable)
  for (const { path, action, post } of actions) {
    if (action === 'conflict' || action === 'skip') continue
    done.add(path)
    setState({ edits, beside }, path, post)
    if (path.endsWith('/')) {
      const bare = path.slice(0, -1) as RelativePath
      if (post.kind === 'absent') gone.add(bare)
      else if (post.kind === 'directory') beside.emptyDirectories.add(bare)
    }
  }
  beside.uncovered = beside.uncovered.filter((entry) => !done.has(entry.path))
  const tree = await store.trees.edit(snapshot.tree, edits)
  for (const { path, post } of actions) {
    const above = ancestorsOf(path)
    if (post.kind !== 'absent') for (const directory of above) beside.emptyDirectories.delete(directory as RelativePath)
    else for (const directory of above) beside.emptyDirectories.add(directory as RelativePath)
  }
  const holding = new Set<string>([...uncoveredPaths(beside), ...uncoveredDirectories(beside)])
  for (const one of beside.emptyDirectories) if (!gone.has(one)) for (const at of ancestorsOf(one)) holding.add(at)
  const holds = async (directory: string) =>
    holding.has(directory) || (await store.trees.lookup(tree, directory)) !== null
  for (const directory of beside.emptyDirectories)
    if (gone.has(directory) || (await holds(directory))) beside.emptyDirectories.delete(directory)
  for (const directory of gone) if (!(await holds(directory))) beside.modes.delete(directoryKey(directory))
  return { tree, besideOid: store.objects.write('blob', formatBeside(beside)), degraded: snapshot.degraded }
}
