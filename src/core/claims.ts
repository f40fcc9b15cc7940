/**
 * What belongs to a turn. All checkpoints of a worktree, whoever asked for them, cut its time into segments; a turn's
 * windows say which segments are its own:
 *
 * ```
 * seq      4        5      6        7      8
 * mine   before ─ start ─────────  step ─ after      window (5, 7]
 * theirs                 step                        window (…, 6]: the segment (5, 6] is claimed twice
 * ```
 *
 * A turn without steps owns its whole time. A declared path beats an undeclared window; where no start marker says when a
 * step began, its declared paths reach back to its session's last checkpoint, behind another's end. What is still claimed
 * twice is ambiguous; what nobody claims inside a turn is unclaimed. Places in the order are taken one after the other, so that
 * one that is missing was pruned: somebody else may have been at work there, and only a declared path is one's own. So it is
 * beside a checkpoint that was taken amid hooks of git's: what they had put away for that time came back.
 */
import { type Checkpoint, isOutside } from './checkpoint.ts'
import type { TurnNumber } from './ids.ts'
import { ancestorsOf, barePath, directoryKey, isWithin } from './paths.ts'
import { sameState, type Transition } from './state.ts'
import { lastOf, type Turn } from './timeline.ts'

export interface Window {
  session: string
  turnId: string
  turn: TurnNumber
  /** Null: the whole turn. */
  step: number | null
  /** Sequence numbers: what changed after `from` and up to `to`. */
  from: number
  to: number
  /** Up to `from`: as far back the step may have begun, which only its declared paths tell. */
  reach: number
  declared: readonly string[]
  /** The end never came, or the beginning came late: only declared paths are claimed, and none once the agent's next call has begun. */
  open: boolean
  detours: readonly Detour[]
}

/** From the checkpoint that a `switch` brought a turn back to, until that was done: what lies between is on another branch. */
interface Detour {
  from: number
  to: number
}

export interface Segment {
  from: Checkpoint
  to: Checkpoint
  /** Checkpoints between the two were pruned. */
  cut: boolean
}

/** Whether some of the places between two checkpoints belong to none that is still there. `all` in order. */
export function isCut(from: Checkpoint, to: Checkpoint, all: readonly Checkpoint[]): boolean {
  return all.filter(({ seq }) => seq > from.seq && seq < to.seq).length < to.seq - from.seq - 1
}

function detoursOf({ session, before, checkpoints }: Turn, all: readonly Checkpoint[]): Detour[] {
  const switched = all.filter((c) => c.op === 'switch' && c.result && c.session === session && c.seq > before.seq)
  return switched.map(({ seq: to }) => ({ from: checkpoints.findLast(({ seq }) => seq < to)!.seq, to }))
}

const isAside = (detours: readonly Detour[], { from, to }: Pick<Segment, 'from' | 'to'>): boolean =>
  detours.some((one) => one.from <= from.seq && to.seq <= one.to)

/**
 * The windows of one turn. `all` are the checkpoints of every session around it, in order. `asRival`: to another session a
 * call whose end never came goes on to the turn's end, for it may have been at work beside those that began after it.
 */
export function windowsOf(turn: Turn, all: readonly Checkpoint[], { asRival = false } = {}): Window[] {
  const base = { session: turn.session, turnId: turn.id, turn: turn.number, detours: detoursOf(turn, all) }
  const end = workUntil(turn)
  const steps = [...turn.steps, ...turn.undone]
  if (steps.length === 0) {
    const from = turn.before.seq
    return [{ ...base, step: null, from, to: end, reach: from, declared: [], open: false }]
  }
  return steps.map((step): Window => {
    const declared = [...(step.start?.paths ?? []), ...(step.end?.paths ?? [])]
    if (!step.end) {
      const from = step.start!.seq
      const begun = { ...base, step: step.number, from, reach: from, declared }
      if (endsLater(turn, step.start!, all)) return { ...begun, to: end, open: false }
      const next = steps.flatMap(({ start }) => (!asRival && start && start.seq > from ? [start.seq] : []))
      return { ...begun, to: Math.min(end, ...next), open: true }
    }
    const ended = step.end.seq
    const done = { ...base, step: step.number, to: ended, declared }
    if (step.start) return { ...done, from: step.start.seq, reach: step.start.seq, open: false }
    const own = turn.checkpoints.filter((c) => c.seq < ended).at(-1)!.seq
    const others = all
      .filter(
        (c) => c.session !== turn.session && c.seq < ended && ((c.kind === 'step' && !c.start) || c.kind === 'after'),
      )
      .map((c) => c.seq)
    // Its beginning came late, so that it was none: when it began is not known.
    const open = beganLate(turn, step.end, all)
    return { ...done, from: Math.max(own, ...others), reach: own, open }
  })
}

function beganLate({ session, before }: Turn, end: Checkpoint, all: readonly Checkpoint[]): boolean {
  const { callId, seq } = end
  if (callId === undefined) return false
  return all.some(
    (c) => c.late && c.start && c.session === session && c.callId === callId && c.seq > before.seq && c.seq < seq,
  )
}

/** A subagent's call that was going on when the next prompt came: its end is told in that one's turn. */
function endsLater({ session, after }: Turn, { callId }: Checkpoint, all: readonly Checkpoint[]): boolean {
  if (callId === undefined || after === null) return false
  return all.some(
    (c) =>
      c.kind === 'step' && !c.start && !c.late && c.session === session && c.callId === callId && c.seq > after.seq,
  )
}

/** The sequence number with which a turn's work ends. */
export const workUntil = (turn: Turn): number => (turn.after ? lastOf(turn).seq : Number.POSITIVE_INFINITY)

/** The turns that were at work for a part of the time between two sequence numbers. */
export function turnsDuring(turns: readonly Turn[], from: number, to: number): Turn[] {
  return turns.filter((turn) => turn.before.seq < to && workUntil(turn) > from)
}

/**
 * The turn's time, cut at every checkpoint of the worktree. What an undo or redo did in between is nobody's and left out,
 * and so is what the turn had done after the checkpoint that it went on from.
 */
export function segmentsOf(turn: Turn, all: readonly Checkpoint[], until: number): Segment[] {
  const inside = all.filter((c) => c.seq >= turn.before.seq && c.seq <= until).sort((a, b) => a.seq - b.seq)
  const detours = detoursOf(turn, inside)
  const segments: Segment[] = []
  for (let i = 1; i < inside.length; i++) {
    const [from, to] = [inside[i - 1]!, inside[i]!]
    if (isAside(detours, { from, to })) continue
    if (from.seq === to.seq || from.tree === to.tree ? from.beside !== to.beside : true) {
      if (!(to.kind === 'safety' && to.result) && isOpenTo(turn.session, turn.number, to))
        segments.push({ from, to, cut: to.seq - from.seq > 1 })
    }
  }
  return segments
}

/** An undo that is a turn of its own: what it did is of no other. */
const isOpenTo = (session: string, turn: number, { kind, op, ...to }: Checkpoint): boolean =>
  kind !== 'after' || op !== 'undo' || (to.session === session && to.turn === turn)

/** What lies before a late marker of another turn of the session may be that one's: no step says that it is this one's. */
function covers({ session, turn, step, ...window }: Window, { from, to }: Segment): boolean {
  const isOfOther = step === null && isOutside(to) && to.session === session && to.turn !== turn
  if (!isOpenTo(session, turn, to)) return false
  return window.reach <= from.seq && to.seq <= window.to && !isOfOther && !isAside(window.detours, { from, to })
}

/** 0: none; from {@link DECLARED} on the agent has named the path. */
function strength(window: Window, path: string, segment: Segment): number {
  if (!covers(window, segment)) return 0
  const bare = barePath(path)
  const isInside = window.from <= segment.from.seq
  if (window.declared.some((declared) => isWithin(bare, declared))) return isInside ? DECLARED + 1 : DECLARED
  return isInside && !window.open ? 1 : 0
}

const DECLARED = 2

/**
 * Those of the windows, in their order, that may cover a segment: asked about segments in the order of time, for a turn may
 * have thousands of both.
 */
export function windowsAlong(windows: readonly Window[]): (segment: Segment) => Window[] {
  const coming = windows.map((window, place) => ({ window, place })).sort((a, b) => a.window.reach - b.window.reach)
  let near: typeof coming = []
  let next = 0
  return ({ from, to }) => {
    while (next < coming.length && coming[next]!.window.reach <= from.seq) near.push(coming[next++]!)
    near = near.filter(({ window }) => to.seq <= window.to).sort((a, b) => a.place - b.place)
    return near.map(({ window }) => window)
  }
}

/** Who may have changed a path as well. */
export type Rival = { session: string } | 'pruned' | 'hooks'

export type Claim =
  | { kind: 'mine'; step: number | null }
  | { kind: 'ambiguous'; step: number | null; with: Rival }
  | { kind: 'theirs'; window: Window }
  | { kind: 'unclaimed'; with?: Rival }

/** Whose a path's change in a segment is. */
export function claimOf(
  path: string,
  segment: Segment,
  { mine, theirs }: { mine: readonly Window[]; theirs: readonly Window[] },
): Claim {
  let best: { window: Window; strength: number } | null = null
  for (const window of mine) {
    const own = strength(window, path, segment)
    // Among one's own windows the one that ends first saw the change first.
    if (own > (best?.strength ?? 0) || (best && own === best.strength && window.to < best.window.to))
      best = { window, strength: own }
  }
  let other: { window: Window; strength: number } | null = null
  for (const window of theirs) {
    const foreign = strength(window, path, segment)
    if (foreign > (other?.strength ?? 0)) other = { window, strength: foreign }
  }
  if (!best && !other) return { kind: 'unclaimed', ...(segment.cut ? { with: 'pruned' } : {}) }
  if (other && other.strength > (best?.strength ?? 0)) return { kind: 'theirs', window: other.window }
  const { step } = best!.window
  if (other?.strength === best!.strength) return { kind: 'ambiguous', step, with: { session: other.window.session } }
  if (segment.cut && best!.strength < DECLARED) return { kind: 'ambiguous', step, with: 'pruned' }
  const isAmidHooks = segment.from.amidHooks || segment.to.amidHooks
  if (isAmidHooks && best!.strength < DECLARED) return { kind: 'ambiguous', step, with: 'hooks' }
  return { kind: 'mine', step }
}

/** Why a path that is claimed twice is not taken. */
export function toldRival(rival: Rival): string {
  if (rival === 'pruned') return 'something that was pruned since may have changed it at the same time'
  if (rival === 'hooks') return 'git ran hooks, which may have put it away and back at the same time'
  return `session ${rival.session} was changing it at the same time`
}

export interface ClaimedTransition extends Transition {
  step: number | null
  ambiguousWith?: Rival
  /** Nobody claims it. */
  unclaimed?: true
}

/**
 * Joins a path's changes, oldest first, where one begins in the state the last one left; a path that came back to where
 * it was drops out. Changes of others in between stay in between. A directory is implied where each of its changes was.
 */
export function joinTransitions(changes: readonly ClaimedTransition[]): ClaimedTransition[] {
  const byPath = new Map<string, ClaimedTransition[]>()
  for (const change of changes) {
    const list = byPath.get(change.path)
    const last = list?.at(-1)
    if (!list) byPath.set(change.path, [{ ...change }])
    else if (last && goesOn(last, change)) {
      last.to = change.to
      last.step = change.step
      if (!change.implied) delete last.implied
      if (change.ambiguousWith !== undefined) last.ambiguousWith = change.ambiguousWith
    } else list.push({ ...change })
  }
  return [...byPath.values()].flat().filter(({ from, to }) => !sameState(from, to))
}

/** Not from the first state that is known after an unknown one: what comes later can be taken back as far as that. */
function goesOn(last: Transition, { from }: Transition): boolean {
  if (last.to.kind === 'unknown') return from.kind === 'unknown'
  return last.from.kind !== 'unknown' && sameState(last.to, from)
}

/**
 * The directories that came or went with what changed below them, and in whose place nothing says so itself: these are
 * claimed as what is below them is. `changes` of one segment; `stateOf` says what a directory was at its two ends.
 */
export async function impliedDirectories(
  changes: readonly ClaimedTransition[],
  stateOf: (path: string) => Promise<Pick<Transition, 'from' | 'to'>>,
): Promise<ClaimedTransition[]> {
  const known = new Set(changes.map(({ path }) => path))
  const found = new Map<string, ClaimedTransition | null>()
  for (const change of [...changes].sort((a, b) => certainty(b) - certainty(a))) {
    const { from, to, path: _, ...claim } = change
    if (from.kind !== 'absent' && to.kind !== 'absent') continue
    for (const directory of ancestorsOf(change.path)) {
      const path = directoryKey(directory)
      if (known.has(path) || found.has(path)) continue
      const state = await stateOf(path)
      const isOther = [state.from, state.to].some(({ kind }) => kind === 'absent') && !sameState(state.from, state.to)
      const isKnown = state.from.kind !== 'unknown' && state.to.kind !== 'unknown'
      found.set(path, isOther && isKnown ? { ...claim, path, ...state, implied: true } : null)
    }
  }
  return [...found.values()].filter((one) => one !== null)
}

/** One's own before what is claimed twice before what nobody claims. */
const certainty = ({ unclaimed, ambiguousWith }: ClaimedTransition): number =>
  unclaimed ? 0 : ambiguousWith !== undefined ? 1 : 2

/** Without the directories whose coming or going is told by what else came or went below them. */
export function withoutTold<T extends Transition>(changes: readonly T[]): T[] {
  if (!changes.some(({ implied }) => implied)) return [...changes]
  const above = (end: 'from' | 'to') =>
    new Set(changes.flatMap((change) => (change[end].kind === 'absent' ? ancestorsOf(change.path) : [])))
  const [coming, going] = [above('from'), above('to')]
  return changes.filter(
    ({ path, from, implied }) => !implied || !(from.kind === 'absent' ? coming : going).has(path.slice(0, -1)),
  )
}
