/** From a plan's input to what is to be done: the disk's states, the merges, and what lies around the paths. */
import { type Beside, maybeUncovered, uncoveredDirectories } from '../../core/beside.ts'
import { withoutTold } from '../../core/claims.ts'
import { findClashes, inTheWayOf, makeRoom, type Surroundings } from '../../core/clashes.ts'
import { isDamage } from '../../core/errors.ts'
import { ancestorsOf, barePath, directoryKey, isWithin, parentOf, type RelativePath } from '../../core/paths.ts'
import {
  type FileAction,
  isHeld,
  type MergeResult,
  mergeKey,
  type Plan,
  type PlanInput,
  planChanges,
} from '../../core/plan.ts'
import { ABSENT, type PathState, sameState, type Transition } from '../../core/state.ts'
import type { ObjectStore } from '../../git/objects.ts'
import { behindSymlink, closedBy, fingerprint, isStats, look, type ObjectWriter, observe } from '../../snapshot/disk.ts'
import type { SnapshotView } from '../../snapshot/view.ts'
import type { Snapshot } from '../record/record.ts'
import { mendObjects } from '../store/mend-objects.ts'
import { mergeTexts } from '../store/merge-texts.ts'
import type { Context } from '../worktree/context.ts'
import { isEmpty, surroundings } from './surroundings.ts'

/** A plan with what it rests on. */
export interface Prepared {
  plan: Plan
  actions: FileAction[]
  /** What lstat said of each path. */
  expected: Map<string, string | null>
  /** Paths that the plan touches and the snapshot does not have as they are: saved by force. */
  forced: Map<string, PathState>
  /** Directories (their keys) that go with what is below them, without an action of their own. */
  going: ReadonlySet<string>
}

/** What of a file is somebody else's. */
type Foreign = 'owner' | 'group'

/** Gathers the disk's states, runs the merges that are needed, and plans. */
export async function prepare(
  context: Context,
  snapshot: Snapshot,
  input: Omit<PlanInput, 'disk' | 'merges' | 'unchangedUncovered'> & {
    targetBeside: Beside | null
    /** What the worktree is to look like. */
    target: SnapshotView
    /** The plan brings back what turns did. */
    isForward?: boolean
    /** Of a plan that is recorded: what the last of its turns left. */
    left?: SnapshotView
  },
): Promise<Prepared> {
  const { env, store, worktree } = context
  const { root } = worktree
  const expected = new Map<string, string | null>()
  const forced = new Map<string, PathState>()
  const foreign = new Map<string, Foreign>()
  const groups = new Set(env.groups())
  const disk = new Map<string, PathState>()
  const changes = input.units.flatMap((unit) => unit.changes)
  const paths = new Set(changes.map(({ path }) => path))
  const wanted = new Set(changes.filter(({ from }) => from.kind === 'directory').map(({ path }) => path))
  const lookAt = async (path: string): Promise<PathState> => {
    const stats = path.endsWith('/') || behindSymlink(env, root, path) ? null : look(env, root, path)
    expected.set(path, isStats(stats) && !stats.isDirectory() ? fingerprint(stats) : null)
    const known = await snapshot.view.state(path)
    // Read after that look: what the scan saw may have changed since, and what today's rules leave out is saved all the same.
    // A directory that holds only what is not covered is none of the snapshot's, though it is there: it need not be made.
    const state =
      path.endsWith('/') && known.kind === 'absent' && !wanted.has(path)
        ? known
        : observe(env, { root, path }, writingOther(store.objects, known))
    if (isOther(state, known)) forced.set(path, state)
    if (state.kind === 'present' && isStats(stats) && env.uid > 0) {
      if (stats.uid !== env.uid) foreign.set(path, 'owner')
      else if (!groups.has(stats.gid)) foreign.set(path, 'group')
    }
    return state.kind === 'unknown' && state.reason === 'directory' ? ABSENT : state
  }
  let done = 0
  for (const path of paths) {
    if (++done % 500 === 0) await env.progress(`planning: ${done} of ${paths.size} paths`)
    disk.set(path, await lookAt(path))
  }
  const prints = new Map(input.targetBeside?.uncovered.map((entry) => [entry.path as string, entry.print]) ?? [])
  for (const [path, print] of input.targetBeside?.ignored ?? []) prints.set(path, print)
  const merges = new Map<string, MergeResult>()
  const full: PlanInput = {
    ...input,
    disk,
    merges,
    unchangedUncovered: (path) => prints.get(path) !== undefined && prints.get(path) === expected.get(path),
  }
  let plan = planChanges(full)
  while (plan.needed.length > 0) {
    const { needed } = plan
    const merging = () => mergeTexts(context, needed, { isForward: input.isForward ?? false })
    const merged = await merging().catch(async (error: unknown) => {
      if (!isDamage(error)) throw error
      await mendObjects(context, new Set(needed.flatMap((one) => Object.values(one))), disk)
      return merging()
    })
    for (const [i, request] of needed.entries()) merges.set(mergeKey(request), merged[i]!)
    plan = planChanges(full)
  }
  const settled = await settleClashes(context, snapshot, { plan, input, paths, foreign, lookAt })
  const implied = new Set(changes.filter((change) => change.implied).map(({ path }) => path))
  for (const change of changes) if (!change.implied) implied.delete(change.path)
  const { actions, told } = untold(settled.actions, implied)
  const room = { ...settled, actions }
  const going = new Set([...told].flatMap(([path, { kind }]) => (kind === 'absent' ? [path] : [])))
  const whole = withDirectories(room, [
    ...(input.left ? await leavingDirectories(context, snapshot, { ...room, going }) : []),
    ...(await comingDirectories(context, snapshot, { ...input, actions, told })),
  ])
  return { plan: { ...plan, units: whole.units }, actions: whole.actions, expected, forced, going }
}

/**
 * Without the directories that come and go with what is below them (`told`: as what), and without those that stay for what
 * else is in them. A record has the former all the same: of two turns that are redone only one may be.
 */
function untold(
  actions: readonly FileAction[],
  implied: ReadonlySet<string>,
): { actions: FileAction[]; told: Map<string, PathState> } {
  const done = actions.filter((action) => !isHeld(action))
  const changes = done.map(({ path, pre: from, post: to }) => ({
    path,
    from,
    to,
    ...(implied.has(path) ? { implied: true as const } : {}),
  }))
  const kept = new Set(withoutTold(changes).map(({ path }) => path))
  return {
    actions: actions.filter((action) => (isHeld(action) ? !implied.has(action.path) : kept.has(action.path))),
    told: new Map(done.flatMap(({ path, post }) => (kept.has(path) ? [] : [[path, post]]))),
  }
}

/** The plan without what clashes with what is on disk, and with what has to go before its paths come. */
async function settleClashes(
  context: Context,
  snapshot: Snapshot,
  {
    plan,
    input,
    paths,
    foreign,
    lookAt,
  }: {
    plan: Plan
    input: Pick<PlanInput, 'mode' | 'mergeable'>
    /** All that the plan has looked at; and of these, what is somebody else's. */
    paths: ReadonlySet<string>
    foreign: ReadonlyMap<string, Foreign>
    lookAt: (path: string) => Promise<PathState>
  },
): Promise<Pick<Plan, 'actions' | 'units'>> {
  const around: Surroundings = {
    ...(await surroundings(context, snapshot, plan.actions)),
    isForeign: (path, { onlyMode }) => foreign.get(path) === 'owner' || (foreign.has(path) && !onlyMode),
  }
  // Restore deletes nothing but what it was asked to.
  const takesAll = input.mode === 'force' && input.mergeable !== false
  const blockers = takesAll ? inTheWayOf(plan.actions, around, (path) => paths.has(path)) : new Map<string, string[]>()
  const cleared = new Map<string, FileAction>()
  for (const path of new Set([...blockers.values()].flat())) {
    const pre = await lookAt(path)
    const isOurs = !foreign.has(path) // redo could not give it back to its owner
    if (isOurs && !around.closedBy(path, { onlyMode: false }) && (pre.kind === 'present' || pre.kind === 'directory'))
      cleared.set(path, { path, action: 'delete', pre, post: ABSENT })
  }
  const found = findClashes([...plan.actions, ...cleared.values()], around, input.mode)
  const actions = found.filter(({ path }) => !cleared.has(path))
  const { beside } = snapshot
  const mayHold = maybeUncovered(beside)
  return makeRoom(
    { actions, units: withoutHeld(plan, actions) },
    {
      emptyDirectory: (path) => {
        if (beside.emptyDirectories.has(path as RelativePath))
          return { kind: 'directory', mode: beside.modes.get(directoryKey(path)) ?? beside.defaults.directory }
        if (!mayHold(path) || !isEmpty(context, path)) return null
        const state = observe(
          context.env,
          { root: context.worktree.root, path: directoryKey(path) },
          context.store.objects,
        )
        return state.kind === 'directory' ? state : null
      },
      cleared: (path) =>
        (blockers.get(path) ?? []).map((one) => ({ path: one, from: cleared.get(one)!.pre, to: ABSENT })),
    },
  )
}

/** Whether the snapshot does not have a path as it is on disk, and it can be saved so. */
function isOther(state: PathState, known: PathState): boolean {
  if (state.kind === 'absent') return known.kind === 'present'
  if (state.kind === 'directory' && known.kind !== 'directory') return false
  return state.kind !== 'unknown' && !sameState(state, known)
}

/**
 * Directories that go with their last file, or to make room for one, and have a mode that new ones do not get. They are part
 * of the plan, and so of its record: who brings the files back gives them that mode.
 */
async function leavingDirectories(
  { env, store, worktree }: Context,
  { tree, beside }: Snapshot,
  { actions, going }: Pick<Plan, 'actions'> & Pick<Prepared, 'going'>,
): Promise<Transition[]> {
  const arriving = new Set(actions.filter((a) => a.post.kind === 'present' && !isHeld(a)).map(({ path }) => path))
  const known = new Set(actions.map(({ path }) => path))
  const leaving = new Set(actions.filter((a) => a.post.kind === 'absent' && !isHeld(a)).map(({ path }) => path))
  const above = new Set([...leaving].flatMap((path) => ancestorsOf(barePath(path))))
  const holding = uncoveredDirectories(beside)
  const found: Transition[] = []
  for (const [path, mode] of beside.modes) {
    const bare = path.slice(0, -1)
    if (!path.endsWith('/') || known.has(path) || !above.has(bare) || holding.has(bare)) continue
    const entry = await store.trees.lookup(tree, bare)
    const inside = entry ? [...(await store.trees.files(entry.oid, path)).keys()] : []
    const empty = [...beside.emptyDirectories].filter((one) => isWithin(one, bare)).map((one) => `${one}/`)
    if (![...inside, ...empty].every((one) => leaving.has(one))) continue
    const makesRoom = [bare, ...ancestorsOf(bare)].some((at) => arriving.has(at))
    if ((!makesRoom && !going.has(path)) || closedBy(env, { root: worktree.root, path }, { onlyMode: false })) continue
    found.push({ path, from: { kind: 'directory', mode }, to: ABSENT })
  }
  return found
}

/**
 * Directories that have to be made for what comes into them, with the mode that they had where new ones do not get it. In a
 * record are also those that its turns left, or may have left, and that are gone: nothing else would say that redo takes
 * them away.
 */
async function comingDirectories(
  { env, worktree }: Context,
  { beside }: Snapshot,
  {
    actions,
    target,
    left,
    told,
  }: Pick<Plan, 'actions'> & { target: SnapshotView; left?: SnapshotView; told: ReadonlyMap<string, PathState> },
): Promise<Transition[]> {
  const known = new Set(actions.map(({ path }) => path))
  const coming = actions.filter((a) => a.post.kind !== 'absent' && !isHeld(a)).map(({ path }) => path)
  const missing = new Map<string, boolean>([['', false]])
  const found: Transition[] = []
  for (const directory of coming.flatMap((path) => ancestorsOf(path).reverse())) {
    if (missing.has(directory)) continue
    const stats = missing.get(parentOf(directory)) ? null : look(env, worktree.root, directory)
    const isMissing = stats === null || (isStats(stats) && !stats.isDirectory())
    missing.set(directory, isMissing)
    const path = directoryKey(directory)
    if (!isMissing || known.has(path)) continue
    const to = told.get(path) ?? (await target.state(path))
    if (to.kind !== 'directory') continue
    if (to.mode !== beside.defaults.directory || (left && (await left.hadDirectory(directory)) !== false))
      found.push({ path, from: ABSENT, to })
  }
  return found
}

/**
 * One that goes belongs to the unit that is brought back first of those with a file in it: the oldest. One that comes, to
 * the one that is brought back last.
 */
function withDirectories({ actions, units }: Pick<Plan, 'actions' | 'units'>, directories: readonly Transition[]) {
  const more = directories.map(({ path, from, to }) => ({
    path,
    action: to.kind === 'absent' ? ('delete' as const) : ('write' as const),
    pre: from,
    post: to,
  }))
  const of = (directory: Transition) => {
    const isGoing = directory.to.kind === 'absent'
    const has = ({ changes }: Plan['units'][number]) =>
      changes.some(({ path, to }) => (to.kind === 'absent') === isGoing && path.startsWith(directory.path))
    return isGoing ? units.findLastIndex(has) : units.findIndex(has)
  }
  const owned = directories.map((directory) => ({ directory, unit: of(directory) }))
  return {
    actions: [...actions, ...more].sort((a, b) => (a.path < b.path ? -1 : 1)),
    units: units.map((unit, i) => ({
      ...unit,
      changes: [...unit.changes, ...owned.filter((one) => one.unit === i).map(({ directory }) => directory)],
    })),
  }
}

/** For a path whose content, if it is this one, the snapshot has written. */
function writingOther(objects: ObjectStore, known: PathState): ObjectWriter {
  if (known.kind !== 'present') return objects
  return {
    write: (type, bytes) => {
      const oid = objects.oidOf(type, bytes)
      return oid === known.oid ? oid : objects.write(type, bytes)
    },
  }
}

/** A unit's record holds only what is really done. */
function withoutHeld(plan: Plan, actions: readonly FileAction[]): Plan['units'] {
  const held = new Set(actions.filter(isHeld).map((a) => a.path))
  return plan.units.map((unit) => ({ ...unit, changes: unit.changes.filter((change) => !held.has(change.path)) }))
}
