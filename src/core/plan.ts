/**
 * What an undo, redo or restore will do, as a value: a pure function of what is to be taken back and of what is on disk.
 * For each path: base = what the turn left, ours = the disk, theirs = what was there before.
 */
import { type Rival, toldRival } from './claims.ts'
import type { Oid, TurnNumber } from './ids.ts'
import { ancestorsOf, directoryKey } from './paths.ts'
import { type PathState, sameContent, sameState, type Transition } from './state.ts'

export type ConflictMode = 'refuse' | 'merge' | 'force' | 'skip'

export interface PlanUnit {
  turn: TurnNumber
  step: number | null
  /** Oldest first. The plan goes from `to` back to `from`. */
  changes: readonly (Transition & { ambiguousWith?: Rival })[]
}

export interface MergeRequest {
  base: Oid
  ours: Oid
  theirs: Oid
}

/** `clean`: no overlap. `conflict`: `oid` holds the text with markers. `binary`: cannot be merged. */
export type MergeResult = { kind: 'clean'; oid: Oid } | { kind: 'conflict'; oid: Oid } | { kind: 'binary' }

export const mergeKey = ({ base, ours, theirs }: MergeRequest): string => `${base} ${ours} ${theirs}`

export interface PlanInput {
  /** In the order in which they are taken back: newest first. */
  units: readonly PlanUnit[]
  disk: ReadonlyMap<string, PathState>
  mode: ConflictMode
  /** False: a path that was changed since is a conflict, never merged (restore). */
  mergeable?: boolean
  merges: ReadonlyMap<string, MergeResult>
  /** Whether the disk's uncovered path is still what the snapshot saw of it (`print` equal). */
  unchangedUncovered: (path: string, to: PathState) => boolean
}

/** What is told of a path. */
export interface ToldAction {
  path: string
  action: 'write' | 'delete' | 'mode' | 'link' | 'merge' | 'skip' | 'conflict'
  reason?: string
}

export interface FileAction extends ToldAction {
  /** On disk now, and after. */
  pre: PathState
  post: PathState
}

export interface Plan {
  actions: FileAction[]
  /** What each unit does, for the record that redo inverts. */
  units: { turn: TurnNumber; step: number | null; changes: Transition[] }[]
  /** Text merges that the fold still needs: run them and plan again. */
  needed: MergeRequest[]
}

interface Verdict {
  post: PathState
  conflict?: string
  skip?: string
  merged?: boolean
  /** The merge left conflict markers. */
  marked?: boolean
  /** Nothing may be written here, whatever the mode. */
  hard?: boolean
  /** Why it stays if nothing below goes with it. */
  alone?: string
}

type FileState = Extract<PathState, { kind: 'present' }>

const isFile = (state: PathState): state is FileState => state.kind === 'present' && state.type === 'file'

/** What is known of a path once some of its changes were settled. */
type Note = Pick<Verdict, 'conflict' | 'skip' | 'merged' | 'marked'> & { ends?: string }

/** Folds all units, newest first, into one plan. */
export function planChanges(input: PlanInput): Plan {
  const current = new Map(input.disk)
  const needed = new Map<string, MergeRequest>()
  const noted = new Map<string, Note>()
  const alone = new Map<string, string>()
  const units: Plan['units'] = []
  for (const unit of input.units) {
    const changes: Transition[] = []
    for (const change of [...unit.changes].reverse()) {
      const note = noted.get(change.path)
      if (note?.conflict || note?.skip || note?.ends) continue
      const ours = current.get(change.path) ?? { kind: 'unknown', reason: 'not looked at' }
      const verdict = settle(change, ours, { input, needed })
      if (verdict.conflict && !(input.mode === 'force' && !verdict.hard)) {
        noted.set(change.path, input.mode === 'skip' ? { skip: verdict.conflict } : { conflict: verdict.conflict })
        continue
      }
      if (verdict.skip) {
        noted.set(change.path, { ...note, ends: verdict.skip })
        continue
      }
      const post = verdict.conflict ? change.from : verdict.post
      if (verdict.alone !== undefined) alone.set(change.path, verdict.alone)
      // What is merged once more may be clean then: the markers are in it still.
      if (verdict.merged) noted.set(change.path, { merged: true, marked: verdict.marked || note?.marked || false })
      if (sameState(ours, post)) continue
      changes.push({ path: change.path, from: ours, to: post, ...(change.implied ? { implied: true } : {}) })
      current.set(change.path, post)
    }
    units.push({ turn: unit.turn, step: unit.step, changes })
  }
  const isLeft = (path: string) => noted.get(path)?.conflict !== undefined || noted.get(path)?.skip !== undefined
  const arriving = [...current].flatMap(([path, { kind }]) =>
    input.disk.get(path)?.kind === 'absent' && (kind === 'present' || kind === 'directory') && !isLeft(path)
      ? [path]
      : [],
  )
  for (const directory of new Set(arriving.flatMap(ancestorsOf))) keepFor(directoryKey(directory), { current, units })
  const going = [...current].filter(([path, { kind }]) => kind === 'absent' && input.disk.get(path)?.kind === 'present')
  const withFiles = new Set(going.flatMap(([path]) => ancestorsOf(path)))
  for (const [path, why] of input.mode === 'force' ? [] : alone) {
    if (withFiles.has(path.slice(0, -1))) continue
    keepFor(path, { current, units })
    noted.set(path, { skip: why })
  }
  const actions: FileAction[] = []
  const touched = new Set(input.units.flatMap((unit) => unit.changes.map((change) => change.path)))
  for (const path of [...touched].sort()) {
    const pre = input.disk.get(path) ?? { kind: 'unknown', reason: 'not looked at' }
    const post = current.get(path) ?? pre
    const note = noted.get(path)
    if (note?.conflict) actions.push({ path, action: 'conflict', reason: note.conflict, pre, post: pre })
    else if (note?.skip) actions.push({ path, action: 'skip', reason: note.skip, pre, post })
    // The turns that were taken back already have brought it as far as this; what is unknown before that deletes nothing.
    else if (note?.ends && (post.kind === 'absent' || post.kind === 'unknown' || sameState(pre, post)))
      actions.push({ path, action: 'skip', reason: note.ends, pre, post })
    else if (!sameState(pre, post)) {
      const reasons = [...(note?.marked ? [MARKED] : []), ...(note?.ends ? [`no further back: ${note.ends}`] : [])]
      const told = reasons.length > 0 ? { reason: reasons.join('; ') } : {}
      actions.push({ path, action: note?.merged ? 'merge' : actionOf(pre, post), pre, post, ...told })
    }
  }
  return { actions, units, needed: [...needed.values()] }
}

/** A directory that would go last of all stays as it was before that. */
function keepFor(path: string, { current, units }: { current: Map<string, PathState>; units: Plan['units'] }): void {
  if (current.get(path)?.kind !== 'absent') return
  for (const { changes } of units.toReversed()) {
    const at = changes.findLastIndex((change) => change.path === path)
    if (at < 0) continue
    const [{ from }] = changes.splice(at, 1) as [Transition]
    current.set(path, from)
    return
  }
}

function actionOf(pre: PathState, post: PathState): FileAction['action'] {
  if (post.kind === 'absent') return 'delete'
  if (post.kind === 'present' && post.type === 'link') return 'link'
  if (sameContent(pre, post)) return 'mode'
  if (pre.kind === 'directory' && post.kind === 'directory') return 'mode'
  return 'write'
}

/** One change taken back on one path. */
function settle(
  change: PlanUnit['changes'][number],
  ours: PathState,
  { input, needed }: { input: PlanInput; needed: Map<string, MergeRequest> },
): Verdict {
  const { path, from: theirs, to: base } = change
  const post = theirs
  if (theirs.kind === 'unknown') {
    const where = input.mergeable === false ? 'is not held by that checkpoint' : 'was not captured before the turn'
    return { post: ours, skip: `${where} (${theirs.reason})` }
  }
  if (sameState(ours, theirs)) return { post }
  if (path.endsWith('/')) return settleDirectory(change, ours, input)
  if (base.kind === 'unknown') {
    if (ours.kind === 'unknown') return { post, hard: true, conflict: `cannot be saved first (${ours.reason})` }
    if (input.unchangedUncovered(path, base)) return { post }
    // Gone from an ignored directory, which is listed as one: nothing is there that could be lost.
    if (ours.kind === 'absent' && base.reason === 'ignored') return { post }
    // Left out by a sparse checkout: the turn did nothing to its content.
    if (base.reason === 'not-here' && input.mergeable !== false && input.mode !== 'force')
      return { post: ours, skip: 'was only not here after the turn' }
    return { post, conflict: `was not captured after the turn (${base.reason})` }
  }
  if (ours.kind === 'unknown')
    return { post: ours, hard: true, conflict: `on disk now and cannot be saved (${ours.reason})` }
  if (change.ambiguousWith !== undefined) {
    return { post, conflict: toldRival(change.ambiguousWith) }
  }
  if (sameState(ours, base)) return { post }
  if (input.mergeable === false) return { post, conflict: 'changed since the newest checkpoint' }
  if (isFile(base) && isFile(ours) && isFile(theirs)) return settleFile({ base, ours, theirs }, input, needed)
  if (ours.kind === 'absent') return { post, conflict: 'deleted since' }
  if (base.kind === 'absent') return { post, conflict: MADE_AGAIN }
  if (theirs.kind === 'absent') return { post, conflict: 'changed since: it would be deleted' }
  return { post, conflict: 'its type changed since' }
}

function settleFile(
  { base, ours, theirs }: { base: FileState; ours: FileState; theirs: FileState },
  input: PlanInput,
  needed: Map<string, MergeRequest>,
): Verdict {
  const mode =
    ours.mode === base.mode ? theirs.mode : base.mode === theirs.mode || ours.mode === theirs.mode ? ours.mode : null
  if (mode === null) return { post: theirs, conflict: MODE_CHANGED }
  const file = (oid: Oid): PathState => ({ kind: 'present', type: 'file', oid, mode })
  if (ours.oid === base.oid) return { post: file(theirs.oid) }
  if (base.oid === theirs.oid || ours.oid === theirs.oid) return { post: file(ours.oid) }
  const request = { base: base.oid, ours: ours.oid, theirs: theirs.oid }
  const result = input.merges.get(mergeKey(request))
  if (!result) {
    needed.set(mergeKey(request), request)
    return { post: ours }
  }
  if (result.kind === 'clean') return { post: file(result.oid), merged: true }
  if (result.kind === 'conflict' && input.mode === 'merge')
    return { post: file(result.oid), merged: true, marked: true }
  return {
    post: theirs,
    conflict: result.kind === 'binary' ? 'changed since, and not text' : SAME_LINES,
  }
}

/**
 * A directory that is not empty stays. So does one that is not as the turn left it (another mode, or made anew), or that
 * somebody else may have changed at the same time, and that is told: it holds up no undo. Restore, which guards each path,
 * refuses; force takes the other state. One that came or went with what is below it keeps the mode that it has.
 */
function settleDirectory(
  { from: theirs, to: base, implied, ambiguousWith }: PlanUnit['changes'][number],
  ours: PathState,
  input: PlanInput,
): Verdict {
  const refuses = input.mergeable === false || input.mode === 'force'
  const stays = (why: string): Verdict => ({ post: ours, [refuses ? 'conflict' : 'skip']: why })
  const isRivals = ambiguousWith !== undefined && input.mode !== 'force'
  if (implied && (isRivals || ours.kind === theirs.kind)) return { post: ours }
  if (ours.kind === 'unknown') return { post: ours, skip: `cannot be looked at now (${ours.reason})` }
  if (ambiguousWith !== undefined) return stays(toldRival(ambiguousWith))
  if (ours.kind !== 'directory') return { post: ours.kind === 'absent' ? theirs : ours }
  if (base.kind === 'unknown' || sameState(ours, base)) return { post: theirs }
  if (base.kind !== 'directory') return stays(MADE_AGAIN)
  if (theirs.kind === 'directory' || input.mergeable === false) return stays(MODE_CHANGED)
  return { post: theirs, alone: MODE_CHANGED }
}

export const isHeld = (action: FileAction) => action.action === 'conflict' || action.action === 'skip'

const MARKED = 'conflict markers'
const SAME_LINES = 'changed since in the same lines'
const MODE_CHANGED = 'its permission mode changed since'
const MADE_AGAIN = 'made again since'

/** Whether conflict markers can show it. */
export const canBeMarked = ({ reason }: FileAction): boolean => reason === SAME_LINES

/** Whether its merge leaves conflict markers. */
export const isMarked = ({ action, reason }: ToldAction): boolean =>
  action === 'merge' && (reason?.startsWith(MARKED) ?? false)
