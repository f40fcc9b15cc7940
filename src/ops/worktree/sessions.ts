/** Sessions of the worktree as timelines, and what was going on around a turn. */
import { type BoundaryRecord, parseRecord } from '../../core/boundary.ts'
import { type Checkpoint, isOutside } from '../../core/checkpoint.ts'
import { CkptError } from '../../core/errors.ts'
import type { SessionId } from '../../core/ids.ts'
import { inBackground, readTimeline, runningTurn, type Timeline, type Turn, turnsOf } from '../../core/timeline.ts'
import {
  latestSession,
  readChain,
  readChainUntil,
  readCheckpoint,
  readWorktreeRefs,
  type SessionRefs,
  type WorktreeRefs,
} from '../../git/history.ts'
import type { Store } from '../../git/store.ts'
import type { Context } from './context.ts'
import { highestPruned } from './numbers.ts'

const NO_REFS: WorktreeRefs = { sessions: new Map(), lastSeq: 0, meta: null, notes: null }

export async function readRefs(context: Context): Promise<WorktreeRefs> {
  return context.exists ? readWorktreeRefs(context.store) : NO_REFS
}

/**
 * The session a person means: exactly, else by a unique prefix; the one of the newest turn marker unless told.
 * @throws CkptError NOT_FOUND, USAGE
 */
export function chooseSession(refs: WorktreeRefs, wanted: string | undefined): SessionId | null {
  if (wanted !== undefined && refs.sessions.has(wanted as SessionId)) return wanted as SessionId
  if (wanted === undefined || wanted === 'latest') return latestSession(refs)
  const found = [...refs.sessions.keys()].filter((id) => id.startsWith(wanted))
  if (found.length === 1) return found[0]!
  if (found.length > 1) {
    throw new CkptError(
      'USAGE',
      `${JSON.stringify(wanted)} could be any of ${found.length} sessions. Nothing was changed.`,
      {
        hints: ['ckpt list --sessions'],
      },
    )
  }
  throw new CkptError(
    'NOT_FOUND',
    `There is no session ${JSON.stringify(wanted)} in this worktree. Nothing was changed.`,
    {
      hints: ['ckpt list --sessions'],
    },
  )
}

/** With no session named, the one whose boundary is pending is meant before the newest. @throws CkptError NOT_FOUND, USAGE */
export function choosePending(refs: WorktreeRefs, wanted: string | undefined): SessionId | null {
  const pending = [...refs.sessions.values()].filter((one) => one.boundary !== null)
  return wanted === undefined && pending.length === 1 ? pending[0]!.session : chooseSession(refs, wanted)
}

export interface TimelineOptions {
  /** Read only as far back as the last turn. */
  recent?: boolean
  /** Read only as far back as so many visible turns. */
  visible?: number
  /** Read abandoned turns too. */
  abandoned?: boolean
}

export async function loadTimeline(
  context: Context,
  refs: WorktreeRefs,
  { session, ...options }: TimelineOptions & { session: SessionId },
): Promise<Timeline> {
  const { store } = context
  const one = refs.sessions.get(session)
  const used = context.exists ? highestPruned(context, session) : 0
  if (!one) return withNumbersFrom(readTimeline({ session, live: [], abandoned: [], boundary: null }), used)
  const boundary = one.boundary ? await readBoundary(context, one.boundary) : null
  const first = boundary?.record.turn ?? Number.POSITIVE_INFINITY
  const wanted = options.recent ? 1 : options.visible
  const begins = (one: Checkpoint) => one.kind === 'before' && one.turn! < first
  const enough = (chain: Checkpoint[]) => chain.filter(begins).length > (wanted ?? 0)
  const live = !one.live
    ? []
    : wanted === undefined
      ? await readChain(store, one.live.id)
      : await readChainUntil(store, one.live.id, enough)
  const abandoned: Checkpoint[][] = []
  for (const { tip } of one.abandoned) {
    abandoned.push(options.abandoned ? await readChain(store, tip.id, one.live ? { not: [one.live.id] } : {}) : [])
  }
  const timeline = readTimeline({ session, live, abandoned, boundary })
  const last = one.abandoned.at(-1)
  if (timeline.turns.length === 0 && last) timeline.agent ??= await agentOf(store, last.tip)
  return withNumbersFrom(timeline, Math.max(used, ...one.abandoned.map(({ tip }) => tip.turn ?? 0)))
}

/** Whose agent's the last turn of a branch was. */
async function agentOf(store: Store, tip: Checkpoint): Promise<string | null> {
  const isTold = ({ agent, op }: Checkpoint) => agent !== undefined && op === undefined
  const chain = await readChainUntil(store, tip.id, (chain) => chain.some(isTold))
  return chain.findLast(isTold)?.agent ?? null
}

function withNumbersFrom(timeline: Timeline, used: number): Timeline {
  if (timeline.nextTurn <= used) timeline.nextTurn = (used + 1) as Timeline['nextTurn']
  return timeline
}

/** Whether a session's last turn has not ended, or agents were at work in the background when it did, as its refs are now. */
export async function isAtWork(context: Context, session: SessionId): Promise<boolean> {
  const timeline = await loadTimeline(context, await readRefs(context), { session, recent: true })
  return timeline.boundary === null && (runningTurn(timeline) !== null || inBackground(timeline) > 0)
}

export async function readBoundary(
  { store }: Context,
  tip: Checkpoint,
): Promise<{ record: BoundaryRecord; checkpoint: Checkpoint }> {
  const checkpoint = await readCheckpoint(store, tip.id)
  if (!checkpoint.record)
    throw new CkptError('DAMAGED', 'The revert boundary has no record. Nothing was changed.', {
      hints: ['ckpt verify'],
    })
  return { record: parseRecord(await store.objects.get(checkpoint.record, 'blob')), checkpoint }
}

/** Every checkpoint of the worktree since a sequence number, in order, and the turns of the other sessions around them. */
export interface Activity {
  checkpoints: Checkpoint[]
  foreignTurns: Turn[]
}

export async function readActivity(
  context: Context,
  refs: WorktreeRefs,
  { timeline, since }: { timeline: Timeline; since: number },
): Promise<Activity> {
  const found = new Map<string, Checkpoint>()
  const foreignTurns: Turn[] = []
  const add = (chain: readonly Checkpoint[]) => {
    for (const one of chain) if (one.seq >= since) found.set(one.id, one)
  }
  for (const turn of [...timeline.turns, ...timeline.abandoned]) add(turn.checkpoints)
  for (const one of refs.sessions.values()) {
    for (const chain of await chainsSince(context, one, { since, own: one.session === timeline.session })) {
      add(chain)
      if (one.session !== timeline.session) foreignTurns.push(...turnsOf(chain))
    }
  }
  return { checkpoints: [...found.values()].sort((a, b) => a.seq - b.seq), foreignTurns }
}

/** Whether a session whose newest checkpoint this is may have a turn that runs. */
const mayRun = (newest: Checkpoint) => newest.kind !== 'manual' && (newest.kind !== 'after' || isOutside(newest))

async function chainsSince(
  { store }: Context,
  one: SessionRefs,
  { since, own }: { since: number; own: boolean },
): Promise<Checkpoint[][]> {
  const chains: Checkpoint[][] = []
  const back = (chain: Checkpoint[]) => {
    // As far as the turn that was running at that time.
    const first = chain.findIndex((c) => c.kind === 'before')
    return first >= 0 && chain[first]!.seq < since
  }
  const running = one.live && mayRun(one.live)
  if (one.live && (one.live.seq >= since || (running && !own)))
    chains.push(await readChainUntil(store, one.live.id, back))
  for (const { tip } of one.abandoned) if (tip.seq >= since) chains.push(await readChainUntil(store, tip.id, back))
  for (const { tip } of [...one.others, ...(one.boundary ? [{ tip: one.boundary }] : [])]) {
    if (tip.seq < since) continue
    const checkpoint = await readCheckpoint(store, tip.id)
    // A result's parent is the safety checkpoint made right before it.
    const parent =
      checkpoint.result && checkpoint.parents[0] ? [await readCheckpoint(store, checkpoint.parents[0])] : []
    chains.push([...parent, checkpoint])
  }
  return chains
}
