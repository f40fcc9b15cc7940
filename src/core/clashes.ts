/** Files and directories in the place of what a plan brings, and what cannot be changed or kept: what it has to leave undone. */
import { ancestorsOf } from './paths.ts'
import { type ConflictMode, type FileAction, isHeld, type Plan } from './plan.ts'
import { ABSENT, type PathState, sameState, type Transition } from './state.ts'

/** What a plan needs to know of the disk around its paths. */
export interface Surroundings {
  /** Files on disk (covered) below a directory. */
  filesBelow: (directory: string) => readonly string[]
  /** Something uncovered at or below a directory. */
  uncoveredBelow: (directory: string) => boolean
  /** The file or symlink on disk at a path, if there is one. */
  isFileOnDisk: (path: string) => boolean
  /** The file on disk is somebody else's: what replaces it could not be given to them. */
  isForeign: (path: string) => boolean
  /** Its directory, or itself, cannot be changed by this user. */
  isClosed: (path: string) => boolean
  /** One for all paths that the file system takes for the same; null: it takes each for itself. */
  folded: ((path: string) => string) | null
  /** What is on disk in another spelling of a path, which itself is not there: a file, or all that is in a directory. */
  spelledOtherwise: (path: string) => readonly string[]
}

/**
 * Clashes of files and directories: a file where a directory holds something that the plan does not remove, a path below
 * something that is a file and stays; files whose owner would change, and what this user cannot change. They are conflicts even by force.
 */
export function findClashes(actions: readonly FileAction[], around: Surroundings, mode: ConflictMode): FileAction[] {
  const leaving = new Set(actions.filter((a) => a.post.kind === 'absent' && !isHeld(a)).map((a) => a.path))
  const arriving = actions.filter((a) => !isHeld(a) && a.post.kind !== 'absent' && a.pre.kind !== a.post.kind)
  const clashes = new Map<string, string>()
  for (const { path, post } of actions.filter((a) => !isHeld(a)))
    if (post.kind === 'present' && around.isForeign(path)) clashes.set(path, IN_THE_WAY.owner)
  for (const { path, pre, post } of actions.filter((a) => !isHeld(a)))
    if (!sameState(pre, post) && around.isClosed(path)) clashes.set(path, IN_THE_WAY.closed)
  // A directory goes when it is empty, and something in it stays.
  for (const { path, pre, post } of actions.filter((a) => !isHeld(a) && a.path.endsWith('/'))) {
    if (pre.kind !== 'directory' || post.kind !== 'absent') continue
    const bare = path.slice(0, -1)
    if (around.uncoveredBelow(bare) || around.filesBelow(bare).some((below) => !leaving.has(below)))
      clashes.set(path, STAYS)
  }
  const files = new Set(arriving.filter((a) => !a.path.endsWith('/')).map((a) => a.path))
  for (const { path } of arriving) {
    const bare = path.endsWith('/') ? path.slice(0, -1) : path
    if (path.endsWith('/')) {
      if (around.isFileOnDisk(bare) && !leaving.has(bare)) clashes.set(path, IN_THE_WAY.file)
    } else {
      const stays = around.filesBelow(bare).find((below) => !leaving.has(below))
      if (stays !== undefined || around.uncoveredBelow(bare)) clashes.set(path, IN_THE_WAY.directory)
    }
    for (const above of ancestorsOf(bare)) {
      if (files.has(above)) clashes.set(path, IN_THE_WAY.both)
      else if (around.isFileOnDisk(above) && !leaving.has(above)) clashes.set(path, IN_THE_WAY.above)
    }
  }
  const { folded } = around
  if (folded) {
    const spelled = new Map<string, string>()
    for (const { path } of arriving) {
      const bare = path.endsWith('/') ? path.slice(0, -1) : path
      for (const one of [bare, ...ancestorsOf(bare)]) {
        const first = spelled.get(folded(one)) ?? one
        spelled.set(folded(one), first)
        if (first !== one || around.spelledOtherwise(one).some((other) => !leaving.has(other)))
          clashes.set(path, IN_THE_WAY.spelling)
      }
    }
    // What stays away under one spelling does not go under the other.
    const held = new Set([...clashes.keys()].map(folded))
    for (const path of leaving) if (!clashes.has(path) && held.has(folded(path))) clashes.set(path, IN_THE_WAY.spelling)
  }
  return actions.map((action) => {
    const reason = clashes.get(action.path)
    if (reason === undefined) return action
    // Without its files a directory is no loss.
    const skipped = mode === 'skip' || action.path.endsWith('/')
    return { ...action, action: skipped ? 'skip' : 'conflict', reason, post: action.pre }
  })
}

const STAYS = 'something in it stays'

/** Conflicts that no mode but `skip` gets over: something else is where a path has to come, or it cannot be saved first. */
const IN_THE_WAY = {
  owner: 'its owner cannot be kept',
  closed: 'it cannot be changed here: permission denied',
  file: 'a file is in its place',
  directory: 'a directory with other files is in its place',
  both: 'a file takes the place of its directory',
  above: 'a file is in the place of its directory',
  spelling: 'this file system takes its name for another one, spelled otherwise',
} as const

export const isInTheWay = (action: FileAction): boolean =>
  isUnkept(action) || (Object.values(IN_THE_WAY) as (string | undefined)[]).includes(action.reason)

/** Of these, what could not be kept: where it was moved aside the path is changed still, and wants force. */
export const isUnkept = ({ pre, reason }: FileAction): boolean => pre.kind === 'unknown' || reason === IN_THE_WAY.owner

/**
 * An empty directory in whose place a file comes goes first, and is in the record: redo brings it back. Also one that would
 * be left because nobody knows whether it was there before: the file was.
 */
export function makeRoom(
  { actions, units }: Pick<Plan, 'actions' | 'units'>,
  emptyDirectory: (path: string) => PathState | null,
): Pick<Plan, 'actions' | 'units'> {
  const known = new Set(actions.filter(({ action }) => action !== 'skip').map(({ path }) => path))
  const room = new Map<string, Transition>()
  for (const action of actions) {
    if (isHeld(action) || action.pre.kind !== 'absent' || action.post.kind !== 'present') continue
    const from = known.has(`${action.path}/`) ? null : emptyDirectory(action.path)
    if (from) room.set(action.path, { path: `${action.path}/`, from, to: ABSENT })
  }
  const gone = [...room.values()].map(({ path, from, to }) => ({
    path,
    action: 'delete' as const,
    pre: from,
    post: to,
  }))
  const going = new Set(gone.map(({ path }) => path))
  const withRoom = (change: Transition): Transition[] => {
    const first = room.get(change.path)
    room.delete(change.path)
    return first ? [first, change] : [change]
  }
  return {
    actions: [...actions.filter(({ path }) => !going.has(path)), ...gone],
    units: units.map((unit) => ({ ...unit, changes: unit.changes.flatMap(withRoom) })),
  }
}
