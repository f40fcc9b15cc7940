/** What a turn changed, told apart from what others changed while it ran. */
import { type UncoveredReason, uncoveredChanges } from '../../core/beside.ts'
import type { Checkpoint } from '../../core/checkpoint.ts'
import {
  type ClaimedTransition,
  claimOf,
  impliedDirectories,
  joinTransitions,
  type Segment,
  segmentsOf,
  turnsDuring,
  windowsAlong,
  windowsOf,
  withoutTold,
} from '../../core/claims.ts'
import type { Oid } from '../../core/ids.ts'
import type { RelativePath } from '../../core/paths.ts'
import type { Transition } from '../../core/state.ts'
import { beginningOf, lastBefore, lastOf, type Timeline, type Turn } from '../../core/timeline.ts'
import type { WorktreeRefs } from '../../git/history.ts'
import { type SnapshotView, transitionsBetween, viewOf } from '../../snapshot/view.ts'
import type { Context } from '../worktree/context.ts'
import { type Activity, readActivity } from '../worktree/sessions.ts'

/** `seq`: the place in the order of the checkpoint that shows it first. `head`: what HEAD was there; null: nothing yet, or no git. */
export type Part = ClaimedTransition & { seq: number; head: Oid | null }

export interface TurnChanges {
  turn: Turn
  /** The turn's own, oldest first per path. */
  claimed: ClaimedTransition[]
  /** Changed while the turn ran, outside every step's window. */
  unclaimed: ClaimedTransition[]
  /** Both, one by one in the order of time: a path that two steps changed is in it twice. */
  parts: Part[]
  /** Uncovered paths that the turn made, changed or removed. */
  uncovered: { path: RelativePath; reason: UncoveredReason }[]
}

/** Reads the changes of turns, remembering snapshots that several of them share. */
export class ChangeReader {
  readonly #context: Context
  readonly #refs: WorktreeRefs
  readonly #timeline: Timeline
  readonly #views = new Map<string, Promise<SnapshotView>>()
  #activity: { since: number; read: Promise<Activity> } | null = null

  constructor(context: Context, refs: WorktreeRefs, timeline: Timeline) {
    this.#context = context
    this.#refs = refs
    this.#timeline = timeline
  }

  view(checkpoint: Checkpoint): Promise<SnapshotView> {
    let view = this.#views.get(checkpoint.id)
    if (!view) {
      view = viewOf(this.#context.store, checkpoint)
      this.#views.set(checkpoint.id, view)
    }
    return view
  }

  /** What went on since a sequence number; read once for the oldest turn that is asked for. */
  activitySince(since: number): Promise<Activity> {
    if (!this.#activity || this.#activity.since > since) {
      this.#activity = { since, read: readActivity(this.#context, this.#refs, { timeline: this.#timeline, since }) }
    }
    return this.#activity.read
  }

  /** @throws CkptError DAMAGED when an object that proves it is missing */
  async changesOf(turn: Turn): Promise<TurnChanges> {
    const activity = await this.activitySince(turn.before.seq)
    const end = lastOf(turn)
    const mine = windowsAlong(windowsOf(turn, activity.checkpoints))
    const meanwhile = turnsDuring(activity.foreignTurns, turn.before.seq, end.seq)
    const theirs = windowsAlong(meanwhile.flatMap((other) => windowsOf(other, activity.checkpoints, { asRival: true })))
    const parts: Part[] = []
    for (const segment of segmentsOf(turn, activity.checkpoints, end.seq)) {
      const found: ClaimedTransition[] = []
      const near = { mine: mine(segment), theirs: theirs(segment) }
      for (const change of await this.#between(segment.from, segment.to)) {
        const claim = claimOf(change.path, segment, near)
        if ('step' in claim && turn.undone.some(({ number }) => number === claim.step)) continue
        if (claim.kind === 'mine') found.push({ ...change, step: claim.step })
        else if (claim.kind === 'ambiguous') found.push({ ...change, step: claim.step, ambiguousWith: claim.with })
        else if (claim.kind === 'unclaimed') {
          const rival = claim.with === undefined ? {} : { ambiguousWith: claim.with }
          found.push({ ...change, step: null, unclaimed: true, ...rival })
        }
      }
      // One by one: a call takes some 100,000 arguments, and a turn may change more paths.
      for (const part of [...found, ...(await this.#impliedBy(found, segment))])
        parts.push({ ...part, seq: segment.to.seq, head: segment.to.head ?? null })
    }
    return this.#joined(turn, parts, turn.before)
  }

  /** What is not undone yet of a turn: all of it, or what its steps from one on changed and what came outside of them since. */
  async changesLeft({ turn, step: first }: { turn: Turn; step: number | null }): Promise<TurnChanges> {
    const all = await this.changesOf(turn)
    if (first === null && turn.hiddenFromStep === null) return all
    const begun = first === null ? turn.before : beginningOf(turn, first)
    const kept = first === null ? turn.before : lastBefore(turn, first)
    const taken = turn.takenFromStep === null ? Number.POSITIVE_INFINITY : beginningOf(turn, turn.takenFromStep).seq
    const undone = turn.hiddenFromStep ?? Number.POSITIVE_INFINITY
    const left = all.parts.filter(({ step, unclaimed, seq }) =>
      unclaimed ? seq > begun.seq && seq <= taken : step !== null && step >= (first ?? step) && step < undone,
    )
    return this.#joined(turn, left, begun.seq < kept.seq ? begun : kept)
  }

  /** `since`: from where on uncovered paths are compared. */
  async #joined(turn: Turn, parts: Part[], since: Checkpoint): Promise<TurnChanges> {
    const [from, to] = [await this.view(since), await this.view(lastOf(turn))]
    return {
      turn,
      claimed: withoutTold(joinTransitions(parts.filter((part) => !part.unclaimed))),
      unclaimed: withoutTold(joinTransitions(parts.filter((part) => part.unclaimed))),
      parts,
      uncovered: uncoveredChanges(from.beside, to.beside),
    }
  }

  async #between(from: Checkpoint, to: Checkpoint): Promise<Transition[]> {
    if (from.tree === to.tree && from.beside === to.beside) return []
    return transitionsBetween(this.#context.store, await this.view(from), await this.view(to))
  }

  async #impliedBy(changes: readonly ClaimedTransition[], { from, to }: Segment): Promise<ClaimedTransition[]> {
    if (changes.length === 0) return []
    const [a, b] = [await this.view(from), await this.view(to)]
    return impliedDirectories(changes, async (path) => ({ from: await a.state(path), to: await b.state(path) }))
  }

  /** The changes of one step alone; not joined with those of others. */
  static ofStep(changes: TurnChanges, step: number): ClaimedTransition[] {
    return withoutTold(joinTransitions(changes.parts.filter((part) => !part.unclaimed && part.step === step)))
  }
}
