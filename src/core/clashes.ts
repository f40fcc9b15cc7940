/** Files and directories in the place of what a plan brings, and what cannot be changed or kept: what it has to leave undone. */
import { ancestorsOf, barePath } from './paths.ts'
import { type ConflictMode, type FileAction, isHeld, type Plan } from './plan.ts'
import { ABSENT, type PathState, sameContent, sameState, type Transition } from './state.ts'

/** What a plan needs to know of the disk around its paths. */
export interface Surroundings {
  /** Files on disk (covered) below a directory. */
  filesBelow: (directory: string) => readonly string[]
  /** Something uncovered at or below a directory, that does not leave. */
  uncoveredBelow: (directory: string, leaving: Pick<ReadonlySet<string>, 'has'>) => boolean
  /** The file or symlink on disk at a path, if there is one. */
  isFileOnDisk: (path: string) => boolean
  /** Whether the snapshot has that file. */
  isCovered: (path: string) => boolean
  /** The file on disk is somebody else's, or of a group of others: what replaces it could not be given to them. */
  isForeign: (path: string, change: { onlyMode: boolean }) => boolean
  /** What is written there becomes, or stays, root's in a directory of somebody else. */
  isMadeForRoot: (path: string) => boolean
  /** Why nothing can be put there or taken away, or a directory not be given another mode; null: it can. */
  closedBy: (path: string, change: { onlyMode: boolean }) => Closed | null
  /** Something is mounted there: it stays. */
  isMountPoint: (path: string) => boolean
  /** One for all paths that the file system takes for the same; null: it takes each for itself. */
  folded: ((path: string) => string) | null
  /** What is on disk in another spelling of a path, which itself is not there: a file, or all that is in a directory. */
  spelledOtherwise: (path: string) => readonly string[]
}

/**
 * What force takes away so that a path can come: the files in a directory that is in its place, the file in the place of its
 * directory. Nothing for an empty directory, which is worth no file, nor where something is not covered, or is of the plan.
 */
export function inTheWayOf(
  actions: readonly FileAction[],
  around: Surroundings,
  isPlanned: (path: string) => boolean,
): Map<string, string[]> {
  const { leaving, arriving } = moving(actions)
  const found = new Map<string, string[]>()
  for (const { path } of arriving) {
    if (path.endsWith('/') || around.uncoveredBelow(path, leaving)) continue
    const above = ancestorsOf(path).filter(around.isFileOnDisk)
    const stays = [...around.filesBelow(path), ...above].filter((one) => !leaving.has(one))
    if (stays.length > 0 && above.every(around.isCovered) && !stays.some(isPlanned)) found.set(path, stays)
  }
  return found
}

/** The paths that go, and those where something comes. */
function moving(actions: readonly FileAction[]) {
  const done = actions.filter((action) => !isHeld(action))
  return {
    leaving: new Set(done.filter(({ post }) => post.kind === 'absent').map(({ path }) => path)),
    arriving: done.filter(({ pre, post }) => post.kind !== 'absent' && pre.kind !== post.kind),
  }
}

/**
 * Clashes of files and directories: a file where a directory holds something that the plan does not remove, a path below
 * something that is a file and stays; files whose owner would change, and what this user cannot change. They are conflicts
 * even by force, which has taken away before what it can ({@link inTheWayOf}).
 */
export function findClashes(actions: readonly FileAction[], around: Surroundings, mode: ConflictMode): FileAction[] {
  const clashes = unchangeable(actions, around)
  // What is held back neither leaves nor comes: others may want its room.
  for (let known = -1; known < clashes.size; ) {
    known = clashes.size
    const rest = actions.filter((action) => !isHeld(action) && !clashes.has(action.path))
    for (const [path, reason] of withoutRoom(rest, around)) clashes.set(path, reason)
    const { folded } = around
    if (!folded) continue
    // What stays away under one spelling does not go under the other.
    const held = new Set([...clashes.keys()].map(folded))
    for (const { path, post } of rest)
      if (post.kind === 'absent' && !clashes.has(path) && held.has(folded(path))) clashes.set(path, IN_THE_WAY.spelling)
  }
  return actions.map((action) => {
    const reason = clashes.get(action.path)
    if (reason === undefined) return action
    // Without its files a directory is no loss.
    const skipped = mode === 'skip' || action.path.endsWith('/')
    return { ...action, action: skipped ? 'skip' : 'conflict', reason, post: action.pre }
  })
}

/** Paths that cannot be changed where they are, whatever else is done. */
function unchangeable(actions: readonly FileAction[], around: Surroundings): Map<string, string> {
  const found = new Map<string, string>()
  for (const { path, pre, post } of actions.filter((a) => !isHeld(a))) {
    const onlyMode = sameContent(pre, post) && !isSetGroup(post)
    if (post.kind === 'present' && around.isForeign(path, { onlyMode })) found.set(path, IN_THE_WAY.owner)
    if (sameState(pre, post)) continue
    if (isPrivileged(post) && around.isMadeForRoot(path)) found.set(path, IN_THE_WAY.raised)
    const stays = onlyMode || (pre.kind === 'directory' && post.kind === 'directory')
    const closed = around.closedBy(path, { onlyMode: stays })
    if (!stays && around.isMountPoint(path)) found.set(path, IN_THE_WAY.mounted)
    else if (closed) found.set(path, CLOSED[closed])
  }
  return found
}

/** Paths for which something else would have to go that stays. */
function withoutRoom(actions: readonly FileAction[], around: Surroundings): Map<string, string> {
  const { leaving, arriving } = moving(actions)
  const clashes = new Map<string, string>()
  // A directory goes when it is empty, and something in it stays.
  for (const { path, pre, post } of actions.filter((a) => a.path.endsWith('/'))) {
    if (pre.kind !== 'directory' || post.kind !== 'absent') continue
    const bare = path.slice(0, -1)
    if (around.uncoveredBelow(bare, leaving) || around.filesBelow(bare).some((below) => !leaving.has(below)))
      clashes.set(path, STAYS)
  }
  const files = new Set(arriving.filter((a) => !a.path.endsWith('/')).map((a) => a.path))
  for (const { path } of arriving) {
    const bare = barePath(path)
    if (path.endsWith('/')) {
      if (around.isFileOnDisk(bare) && !leaving.has(bare)) clashes.set(path, BLOCKED.file)
    } else {
      if (around.uncoveredBelow(bare, leaving)) clashes.set(path, IN_THE_WAY.uncovered)
      else if (around.filesBelow(bare).some((below) => !leaving.has(below))) clashes.set(path, BLOCKED.directory)
    }
    for (const above of ancestorsOf(bare)) {
      if (files.has(above)) clashes.set(path, IN_THE_WAY.both)
      else if (around.isFileOnDisk(above) && !leaving.has(above))
        clashes.set(path, around.isCovered(above) ? BLOCKED.above : IN_THE_WAY.left)
    }
  }
  const { folded } = around
  if (folded) {
    const spelled = new Map<string, string>()
    for (const { path } of arriving) {
      const bare = barePath(path)
      for (const one of [bare, ...ancestorsOf(bare)]) {
        const first = spelled.get(folded(one)) ?? one
        spelled.set(folded(one), first)
        if (first !== one || around.spelledOtherwise(one).some((other) => !leaving.has(other)))
          clashes.set(path, IN_THE_WAY.spelling)
      }
    }
  }
  return clashes
}

/** Whoever is not in a file's group cannot give it this bit (chmod(2)). */
const isSetGroup = (state: PathState): boolean => state.kind === 'present' && (state.mode & 0o2000) !== 0

/** Run with the rights of its owner or group (S_ISUID, S_ISGID). */
const isPrivileged = (state: PathState): boolean =>
  state.kind === 'present' && state.type === 'file' && (state.mode & 0o6000) !== 0

const STAYS = 'something in it stays'

/** Why what is there cannot be changed, or nothing put there. */
export type Closed = keyof typeof CLOSED

const CLOSED = {
  permission: 'it cannot be changed here: permission denied',
  'read-only': 'it cannot be changed here: the file system is read-only',
} as const

/** Conflicts that no mode but `skip` gets over: something else is where a path has to come, or it cannot be saved first. */
const IN_THE_WAY = {
  owner: 'its owner cannot be kept',
  raised: 'it would run with the rights of root, to whom it did not belong, it may be',
  ...CLOSED,
  mounted: 'something is mounted there',
  uncovered: 'a directory with what is not captured is in its place',
  left: 'a file that is not captured is in the place of its directory',
  both: 'a file takes the place of its directory',
  spelling: 'this file system takes its name for another one, spelled otherwise',
} as const

/** Conflicts that force gets over where it deletes what is there, if that can be saved first. */
const BLOCKED = {
  file: 'a file is in its place',
  directory: 'a directory with other files is in its place',
  above: 'a file is in the place of its directory',
} as const

const isOneOf = (reasons: Record<string, string>, { reason }: FileAction) =>
  (Object.values(reasons) as (string | undefined)[]).includes(reason)

/** `byForce`: whether force can still get over it. */
export const isInTheWay = (action: FileAction, byForce: boolean): boolean =>
  isUnkept(action) || isOneOf(IN_THE_WAY, action) || (!byForce && isOneOf(BLOCKED, action))

/** Whether nothing is in the way but that it may not be changed. */
export const isNotAllowed = (action: FileAction): boolean => isOneOf(CLOSED, action)

/** Whether only another user than root gets over it. */
export const isNotForRoot = ({ reason }: FileAction): boolean => reason === IN_THE_WAY.raised

/** Of these, what could not be kept: where it was moved aside the path is changed still, and wants force. */
export const isUnkept = ({ pre, reason }: FileAction): boolean => pre.kind === 'unknown' || reason === IN_THE_WAY.owner

/**
 * What goes before a file comes is in the record: redo brings it back. Of itself an empty directory in its place goes, also
 * one that would be left because nobody knows whether it was there before: the file was.
 */
export function makeRoom(
  { actions, units }: Pick<Plan, 'actions' | 'units'>,
  {
    emptyDirectory,
    cleared,
  }: {
    emptyDirectory: (path: string) => PathState | null
    /** What force takes away for a path. */
    cleared: (path: string) => readonly Transition[]
  },
): Pick<Plan, 'actions' | 'units'> {
  const known = new Set(actions.filter(({ action }) => action !== 'skip').map(({ path }) => path))
  const room = new Map<string, Transition[]>()
  const gone = new Map<string, FileAction>()
  for (const action of actions) {
    const { path } = action
    if (isHeld(action) || action.pre.kind !== 'absent' || action.post.kind !== 'present') continue
    const from = known.has(`${path}/`) ? null : emptyDirectory(path)
    const first = [...cleared(path), ...(from ? [{ path: `${path}/`, from, to: ABSENT }] : [])]
    room.set(path, first)
    for (const { path, from: pre, to: post } of first) gone.set(path, { path, action: 'delete', pre, post })
  }
  const made = new Set<string>()
  const withRoom = (change: Transition): Transition[] => {
    const first = (room.get(change.path) ?? []).filter(({ path }) => !made.has(path))
    for (const { path } of first) made.add(path)
    return [...first, change]
  }
  return {
    actions: [...actions.filter(({ path }) => !gone.has(path)), ...gone.values()],
    units: units.map((unit) => ({ ...unit, changes: unit.changes.flatMap(withRoom) })),
  }
}
