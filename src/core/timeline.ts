/**
 * Sessions, turns and steps, read from a session's checkpoints. Pure: the checkpoints come in, the timeline comes out.
 *
 * ```
 * before(1) ─ step ─ step ─ after(1) ─ before(2) ─ … ─ after(2)      live
 *                              └────── boundary after `undo`: 2 is hidden
 *                           after(1) ─ before(3) ─ …                 going on: 2 is abandoned
 * ```
 */
import type { BoundaryRecord } from './boundary.ts'
import { type Checkpoint, isOutside, type TurnStatus, turnId } from './checkpoint.ts'
import type { SessionId, TurnNumber } from './ids.ts'

export interface Step {
  /** Its place in the turn, from 1. */
  number: number
  start: Checkpoint | null
  end: Checkpoint | null
}

export interface Turn {
  id: string
  number: TurnNumber
  session: SessionId
  before: Checkpoint
  /** Its end; of a turn that the agent went on with after that, the end of its last step. */
  after: Checkpoint | null
  /** Finished and open steps, in the order of their numbers. */
  steps: Step[]
  /** Of a turn that was cut: steps that were undone, and had begun before the last one that stayed ended. */
  undone: Step[]
  /** Every checkpoint of the turn in the order of the chain, `before` first. */
  checkpoints: Checkpoint[]
  status: TurnStatus
  /** Something late of another turn came while it ran. */
  disturbed: boolean
  hidden: boolean
  /** Steps at or after the boundary, when it lies inside this turn. */
  hiddenFromStep: number | null
  /** The one of these since whose beginning what came outside of steps is undone as well. */
  takenFromStep: number | null
  abandoned: boolean
}

export interface Timeline {
  session: SessionId
  agent: string | null
  parent: string | null
  /** Newest checkpoint of the live chain, hidden ones included. */
  tip: Checkpoint | null
  /** Oldest first: visible, then hidden. */
  turns: Turn[]
  abandoned: Turn[]
  /** Of turns that were cut: as they were before that, with the steps that were undone. */
  uncut: Turn[]
  /** Branches that were abandoned, read or not. */
  branches: number
  /** Of the live chain, what came after its turn ended. */
  outside: Checkpoint[]
  boundary: BoundaryRecord | null
  /** What the last undo of a pending boundary left on disk. */
  boundaryCheckpoint: Checkpoint | null
  nextTurn: TurnNumber
}

export interface TimelineInput {
  session: SessionId
  /** The live chain, oldest first. */
  live: readonly Checkpoint[]
  /** Chains of abandoned tips, each oldest first; what they share with the live chain may be in them. */
  abandoned: readonly (readonly Checkpoint[])[]
  boundary: { record: BoundaryRecord; checkpoint: Checkpoint } | null
}

function takenFrom({ turn, units }: BoundaryRecord): number | null {
  const steps = units.flatMap((unit) => (unit.turn === turn && unit.unclaimed && unit.step !== null ? [unit.step] : []))
  return steps.length > 0 ? Math.min(...steps) : null
}

export function readTimeline(input: TimelineInput): Timeline {
  const turns = turnsOf(input.live)
  const seen = new Set(turns.map((turn) => turn.id))
  const cut = new Set(turns.filter(({ after }) => after?.cut).map(({ id }) => id))
  const [abandoned, uncut]: [Turn[], Turn[]] = [[], []]
  for (const chain of input.abandoned) {
    for (const turn of turnsOf([...keptBefore(turns, chain), ...chain])) {
      if (cut.has(turn.id) && !turn.after?.cut) uncut.push({ ...turn, abandoned: true })
      if (seen.has(turn.id)) continue
      seen.add(turn.id)
      abandoned.push({ ...turn, abandoned: true })
    }
  }
  const record = input.boundary?.record ?? null
  const known = record === null || turns.some((turn) => turn.number === record.turn)
  if (record && known) {
    for (const turn of turns) {
      if (turn.number > record.turn || (turn.number === record.turn && record.step === null)) turn.hidden = true
      else if (turn.number === record.turn) {
        turn.hiddenFromStep = record.step
        turn.takenFromStep = takenFrom(record)
      }
    }
  }
  const last = input.live.at(-1) ?? null
  const highest = Math.max(0, ...turns.map((t) => t.number), ...abandoned.map((t) => t.number))
  return {
    session: input.session,
    agent: turns.findLast(({ before }) => before.agent && before.op === undefined)?.before.agent ?? null, // not of our own turns
    parent: input.live.find((one) => one.parentSession !== undefined)?.parentSession ?? null,
    tip: last,
    turns,
    abandoned,
    uncut,
    branches: input.abandoned.length,
    outside: input.live.filter(isOutside),
    boundary: record,
    boundaryCheckpoint: input.boundary?.checkpoint ?? null,
    nextTurn: (highest + 1) as TurnNumber,
  }
}

/** What a branch shares with a turn that was cut, where it was read from there on. */
function keptBefore(turns: readonly Turn[], [first]: readonly Checkpoint[]): Checkpoint[] {
  for (const { after, checkpoints } of first ? turns : []) {
    const at = after?.cut ? checkpoints.findIndex(({ id }) => id === first!.parents[0]) : -1
    if (at >= 0) return checkpoints.slice(0, at + 1)
  }
  return []
}

/** The turns of one chain, oldest first. A chain cut by pruning may begin in the middle of a turn: that turn is left out. */
export function turnsOf(chain: readonly Checkpoint[]): Turn[] {
  const turns: Turn[] = []
  let turn: Turn | null = null
  let steps = new Map<number, Step>() // of that turn, by their numbers: there may be thousands
  let ended: TurnStatus | null = null // how that turn ended, for as long as it has
  let again = new Set<number>() // its steps that began after that and have not ended
  let late: Checkpoint[] = [] // of its steps that came after that
  for (const checkpoint of chain) {
    if (checkpoint.kind === 'before') {
      steps = new Map()
      ended = null
      again = new Set()
      late = []
      turn = {
        id: turnId(checkpoint.id),
        number: checkpoint.turn!,
        session: checkpoint.session,
        before: checkpoint,
        after: null,
        steps: [],
        undone: [],
        checkpoints: [checkpoint],
        status: 'running',
        disturbed: false,
        hidden: false,
        hiddenFromStep: null,
        takenFromStep: null,
        abandoned: false,
      }
      turns.push(turn)
    } else if (isOutside(checkpoint)) {
      // Outside change. But the agent's own word on how a turn ended counts, whoever had closed it before that came.
      if (turn?.after === null && checkpoint.turn !== turn.number) turn.disturbed = true
      const named = turns.findLast(({ number }) => number === checkpoint.turn)
      if (named?.status === 'interrupted' && checkpoint.status) named.status = checkpoint.status
      if (named === turn && ended !== null && checkpoint.kind === 'step') late.push(checkpoint)
    } else if (!turn || checkpoint.turn !== turn.number) {
      // of a turn whose beginning was pruned
    } else if (checkpoint.kind === 'step') {
      turn.checkpoints.push(checkpoint)
      const number = checkpoint.step!
      let step = steps.get(number)
      if (!step) {
        step = { number, start: null, end: null }
        steps.set(number, step)
        turn.steps.push(step)
      }
      if (checkpoint.start) step.start = checkpoint
      else step.end = checkpoint
      if (ended === null) continue
      // A subagent goes on with it: until its calls have ended the turn runs, and then it ends with them.
      if (checkpoint.start) again.add(number)
      else again.delete(number)
      turn.after = again.size === 0 ? checkpoint : null
      turn.status = again.size === 0 ? ended : 'running'
    } else if (checkpoint.kind === 'after') {
      // The turn ended once more: its agent had gone on with it, and what was late is its work.
      if (ended !== null) takeIn(turn, late)
      late = []
      turn.checkpoints.push(checkpoint)
      turn.after = checkpoint
      turn.status = checkpoint.status ?? 'completed'
      if (checkpoint.cut) cutOff(turn, checkpoint)
      ended = turn.status
      again = new Set()
    }
  }
  return turns
}

/** Calls may go on at once: what stays of the chain then holds some of the steps that were undone. */
function cutOff(turn: Turn, { step = Number.POSITIVE_INFINITY }: Checkpoint): void {
  turn.undone = turn.steps.filter(({ number }) => number >= step)
  turn.steps = turn.steps.filter(({ number }) => number < step)
}

/** Calls that began after a turn's end become its steps. An end alone says not since when. */
function takeIn(turn: Turn, late: readonly Checkpoint[]): void {
  let number = Math.max(0, ...turn.steps.map((step) => step.number))
  for (const checkpoint of late) {
    const isOpen = ({ start, end }: Step) => start && !end && start.callId === checkpoint.callId
    const open = checkpoint.start ? undefined : turn.steps.find(isOpen)
    if (!checkpoint.start && !open) continue
    const one = { ...checkpoint, step: open?.number ?? ++number }
    turn.checkpoints.push(one)
    if (open) open.end = one
    else turn.steps.push({ number, start: one, end: null })
  }
}

/** The last checkpoint of a turn before a step of it, whose number is given: what goes back to before that step keeps it. */
export const lastBefore = ({ checkpoints }: Turn, number: number): Checkpoint =>
  checkpoints.findLast(({ kind, step }) => kind === 'before' || (kind === 'step' && step! < number))!

/** Where a step of a turn begins, as far as it is known. */
export const beginningOf = (turn: Turn, number: number): Checkpoint =>
  turn.steps.find((step) => step.number === number)?.start ?? lastBefore(turn, number)

/** The end of what a turn did, or while it runs its newest checkpoint: of one that was cut in its middle, the last step it kept. */
export const lastOf = ({ after, checkpoints }: Pick<Turn, 'after' | 'checkpoints'>): Checkpoint =>
  checkpoints.at(after?.cut ? -2 : -1)!

/**
 * What a turn is shown by: the same. But where a cut one holds what was undone, too, it is the checkpoint where its session
 * goes on, which was taken whenever that was.
 */
export const endOf = (turn: Pick<Turn, 'after' | 'checkpoints' | 'undone'>): Checkpoint =>
  (turn.undone.length > 0 && turn.after) || lastOf(turn)

/** Whether a turn's agent went on with it after its end, as far as late markers say. */
export function wentOn({ outside }: Timeline, { number, after }: Turn): boolean {
  return after !== null && outside.some((one) => one.start && one.turn === number && one.seq > after.seq)
}

/** The id that the agent's own rewind takes: some agents only know it when the turn ends. */
export function messageIdOf({
  before,
  after,
  checkpoints,
}: Pick<Turn, 'before' | 'after' | 'checkpoints'>): string | null {
  const end = after && checkpoints.findLast(({ kind, messageId }) => kind === 'after' && messageId !== undefined)
  return end?.messageId ?? before.messageId ?? null
}

/** How many agents were at work in the background when the session's agent was last heard to rest. */
export function inBackground({ turns, outside }: Timeline): number {
  const ends = [...(turns.at(-1)?.checkpoints ?? []), ...outside].filter(({ kind }) => kind === 'after')
  return ends.sort((a, b) => a.seq - b.seq).at(-1)?.background ?? 0
}

/** The running turn of a session, if its last turn has not ended. */
export function runningTurn(timeline: Timeline): Turn | null {
  const last = timeline.turns.at(-1)
  return last && last.after === null ? last : null
}

export function visibleTurns(timeline: Timeline): Turn[] {
  return timeline.turns.filter((turn) => !turn.hidden)
}

export function hiddenTurns(timeline: Timeline): Turn[] {
  return timeline.turns.filter((turn) => turn.hidden)
}

/** Where the timeline goes on after the boundary: the last checkpoint that is still visible. Null: nothing is. */
export function lastVisible(timeline: Timeline): Checkpoint | null {
  const visible = visibleTurns(timeline)
  const turn = visible.at(-1)
  if (!turn) return null
  const from = turn.hiddenFromStep
  return from === null ? turn.checkpoints.at(-1)! : lastBefore(turn, from)
}
