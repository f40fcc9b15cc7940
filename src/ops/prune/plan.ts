/** What goes and what stays, of each worktree of the store. Nothing is written. */
import type { Checkpoint } from '../../core/checkpoint.ts'
import { unlessDamaged } from '../../core/errors.ts'
import { MANUAL_SESSION, type Oid, type SessionId } from '../../core/ids.ts'
import { type PrunedTurns, planPrune, removableTurns } from '../../core/prune-plan.ts'
import { lastOf, runningTurn, turnsOf } from '../../core/timeline.ts'
import { abandonedAt, learnSessions, readChain, type WorktreeRefs } from '../../git/history.ts'
import type { RefEdit } from '../../git/refs.ts'
import type { Store } from '../../git/store.ts'
import { bytesOf } from '../store/size.ts'
import type { Context } from '../worktree/context.ts'
import { loadTimeline } from '../worktree/sessions.ts'
import { allWorktrees } from '../worktree/worktrees.ts'
import { bytesLeftBehind } from './removed.ts'

export interface PruneOptions {
  dryRun: boolean
  keep?: number
  /** Milliseconds. */
  olderThan?: number
  maxBytes?: number
  /** Over that limit, down to this share of it. */
  downTo?: number
}

/** Safety checkpoints live this long, and as long as what they guard. Milliseconds. */
const SAFETY_AGE = 7 * 86_400_000

type Gone = RefEdit & { from: Oid; to: null }

export interface WorktreePlan {
  context: Context
  refs: WorktreeRefs
  sessions: PrunedTurns[]
  /** Checkpoints by hand, oldest first, and how many of them go: never the newest. */
  byHand: { all: readonly Checkpoint[]; gone: number }
  /** Abandoned branches past their grace; what a younger one shares with them stays with that one. */
  overdue: ReadonlySet<string>
}

/** Every worktree of the store, each with what goes from its sessions. */
export async function planAll(context: Context, options: PruneOptions): Promise<WorktreePlan[]> {
  const { env, config } = context
  const limits = {
    now: env.now(),
    keep: options.keep ?? config.checkpointKeepCount,
    olderThan: options.olderThan ?? config.prune.olderThan,
    grace: config.prune.grace,
  }
  const plans: WorktreePlan[] = []
  for (const { context: one, refs } of await allWorktrees(context)) {
    await learnSessions(one.store, refs)
    const sessions: PrunedTurns[] = []
    for (const session of refs.sessions.keys()) {
      const timeline = await loadTimeline(one, refs, { session, abandoned: true })
      sessions.push(planPrune({ timeline, abandonedAt: await abandonedTimes(one, refs, session) }, limits))
    }
    const abandoned = [...refs.sessions.values()].flatMap((session) => session.abandoned)
    const overdue = new Set(
      abandoned.map(({ ref }) => ref).filter((ref) => limits.now - abandonedAt(ref) >= limits.grace),
    )
    plans.push({ context: one, refs, sessions, byHand: { all: await madeByHand(one, refs), gone: 0 }, overdue })
  }
  const isAsked = options.maxBytes !== undefined
  await overBytes(context, plans, { downTo: 1, maxBytes: config.store.maxBytes, ...options, isAsked })
  return plans
}

/** Of a session that somebody gave that name, and has turns, the turns go. */
async function madeByHand({ store }: Context, refs: WorktreeRefs): Promise<Checkpoint[]> {
  const tip = refs.sessions.get(MANUAL_SESSION)?.live
  const chain = tip ? await readChain(store, tip.id) : []
  return chain.every(({ kind }) => kind === 'manual') ? chain : []
}

export const goneByHand = ({ byHand: { all, gone } }: WorktreePlan): readonly Checkpoint[] => all.slice(0, gone)

async function abandonedTimes(
  { store }: Context,
  refs: WorktreeRefs,
  session: SessionId,
): Promise<Map<string, number>> {
  const times = new Map<string, number>()
  const one = refs.sessions.get(session)!
  for (const { ref, tip } of one.abandoned) {
    const chain = await readChain(store, tip.id, one.live ? { not: [one.live.id] } : {})
    for (const turn of turnsOf(chain)) times.set(turn.id, Math.max(times.get(turn.id) ?? 0, abandonedAt(ref)))
  }
  return times
}

/** A part of the limit. */
const NOTHING_TO_SPEAK_OF = 0.01

/** Over the limit of bytes the oldest go too, turns of any session and checkpoints by hand, until what is left should fit. */
async function overBytes(
  context: Context,
  plans: WorktreePlan[],
  { maxBytes, downTo, isAsked }: Required<Pick<PruneOptions, 'maxBytes' | 'downTo'>> & { isAsked: boolean },
): Promise<void> {
  const { env, place } = context
  const now = bytesOf(env, place.directory) - bytesLeftBehind(context)
  if (now - (await estimate(context, plans)) <= maxBytes) return
  const fits = await fitting(context, maxBytes * downTo)
  if (fits(await estimate(context, plans))) return
  const unlimited = plans.flatMap(({ sessions }) => sessions.map(({ visible }) => ({ visible, count: visible.length })))
  const oldest = takeOldestFirst(plans)
  const only = (most: number) => {
    for (const { visible, count } of unlimited) visible.length = count
    for (const { byHand } of plans) byHand.gone = 0
    for (const take of oldest.slice(0, most)) take()
  }
  only(oldest.length)
  const all = await estimate(context, plans)
  // Where not even all of them make it fit, the newest state is what is too large: only what frees something goes, unless
  // somebody asked for it.
  const isEnough = isAsked || fits(all) ? fits : (gone: number) => gone >= all - maxBytes * NOTHING_TO_SPEAK_OF
  // An estimate reads the whole history: a few have to do for any number of turns.
  let [least, most] = [0, oldest.length]
  while (least < most) {
    const half = (least + most) >> 1
    only(half)
    if (isEnough(await estimate(context, plans))) most = half
    else least = half + 1
  }
  only(most)
}

/**
 * Whether the store would be within a limit without what takes so many bytes of it now. Loose objects take many times what
 * they do in the pack that they are about to become: no turn has to go for that.
 */
async function fitting(context: Context, maxBytes: number): Promise<(gone: number) => boolean> {
  const { env, place, store } = context
  const objects = `${store.gitDir}/objects`
  const besides = bytesOf(env, place.directory) - bytesLeftBehind(context) - bytesOf(env, objects)
  const all = ['--all', '--objects', '--disk-usage']
  const now = await unlessDamaged(async () => Number((await store.git(['rev-list', ...all])).toString('latin1')), 0)
  const packed = await unlessDamaged(() => packedSize(store), bytesOf(env, objects))
  return (gone) => besides + packed * (now > 0 ? Math.max(0, 1 - gone / now) : 1) <= maxBytes
}

/** What refs reach, as the pack and its index that a prune makes of it; in bytes. One thread: the same each time. */
async function packedSize(store: Store): Promise<number> {
  let bytes = 0
  let objects = 0
  const onOutput = (chunk: Buffer) => {
    if (bytes === 0) objects = chunk.readUInt32BE(8)
    bytes += chunk.length
  }
  await store.git(['pack-objects', '--revs', '--all', '--stdout', '--threads=1', '-q'], { onOutput })
  // gitformat-pack(5): a fan-out, then a name, a checksum and an offset for each, and two sums.
  return bytes + 8 + 1024 + objects * (store.objects.oidBytes + 8) + 2 * store.objects.oidBytes
}

/** Takes all that may go, in that order: whether a checkpoint by hand may depends on the turns that went before it. */
function takeOldestFirst(plans: readonly WorktreePlan[]): (() => void)[] {
  const taken: (() => void)[] = []
  const removable = new Map(plans.flatMap(({ sessions }) => sessions).map((one) => [one, removableTurns(one.timeline)]))
  for (;;) {
    const candidates: { time: string; take: () => void }[] = []
    for (const worktree of plans) {
      const { sessions, byHand } = worktree
      for (const session of sessions) {
        const { visible } = session
        const turn = removable.get(session)![visible.length]
        if (turn) candidates.push({ time: turn.before.time, take: () => visible.push(turn) })
      }
      const next = byHand.all.slice(0, -1)[byHand.gone]
      if (next && !isAmidTurn(worktree, next)) candidates.push({ time: next.time, take: () => byHand.gone++ })
    }
    const [oldest] = candidates.sort((a, b) => (a.time < b.time ? -1 : 1))
    if (!oldest) return taken
    oldest.take()
    taken.push(oldest.take)
  }
}

/**
 * Without it nobody could tell whether it was another session's work that is missing amid that turn, which stays. A turn
 * that runs goes on, unless its agent never says another word.
 */
function isAmidTurn(
  { sessions }: Pick<WorktreePlan, 'sessions'>,
  { seq }: Checkpoint,
  { running = true } = {},
): boolean {
  return sessions.some(({ timeline, visible, abandoned }) => {
    const gone = new Set([...visible, ...abandoned])
    const open = running ? runningTurn(timeline) : null
    return [...timeline.turns, ...timeline.abandoned].some(
      (turn) => !gone.has(turn) && turn.before.seq < seq && (turn === open || seq < lastOf(turn).seq),
    )
  })
}

/** Where what stays ends. */
interface KeptTip {
  id: Oid
  /** Null: a live chain or a boundary, whose ref stays whatever goes. */
  ref: string | null
  /** So many checkpoints back from there stay; not told: all of them. */
  most?: number
}

/** The refs that stay, for one worktree, and where sessions are cut. */
function keptOf({ context, refs, sessions, byHand, overdue }: WorktreePlan): {
  tips: KeptTip[]
  gone: Gone[]
  starts: Set<Oid>
} {
  const tips: KeptTip[] = []
  const gone: Gone[] = []
  const starts = new Set<Oid>()
  const now = context.env.now()
  if (byHand.gone > 0) starts.add(byHand.all[byHand.gone]!.id)
  for (const one of refs.sessions.values()) {
    const plan = sessions.find(({ timeline }) => timeline.session === one.session)!
    const removed = new Set([...plan.visible, ...plan.abandoned].map((turn) => turn.id))
    for (const tip of [one.live, one.boundary]) if (tip) tips.push({ id: tip.id, ref: null })
    const first = plan.timeline.turns.find((turn) => !removed.has(turn.id))
    if (first && plan.visible.length > 0) starts.add(first.before.id)
    for (const { ref, tip } of one.abandoned) {
      if (overdue.has(ref)) gone.push({ ref, from: tip.id, to: null })
      else tips.push({ id: tip.id, ref })
    }
    for (const { ref, tip } of one.others) {
      const old = now - Date.parse(tip.time) >= SAFETY_AGE && tip.id !== one.boundary?.id
      if (!old) tips.push({ id: tip.id, ref })
      // What was there before goes by its own rules.
      else if (isAmidTurn({ sessions }, tip, { running: false }))
        tips.push({ id: tip.id, ref, most: tip.result ? 2 : 1 })
      else gone.push({ ref, from: tip.id, to: null })
    }
  }
  return { tips, gone, starts }
}

/** The history that stays, as commits: from each tip back to where its session is cut. */
async function walkKept({
  context,
  starts,
  tips,
}: {
  context: Context
  starts: ReadonlySet<Oid>
  tips: readonly KeptTip[]
}): Promise<Map<Oid, Checkpoint>> {
  const kept = new Map<Oid, Checkpoint>()
  for (const { id, most } of tips) {
    const chain = await readChain(context.store, id, most === undefined ? {} : { limit: most })
    for (const checkpoint of chain.reverse()) {
      if (kept.has(checkpoint.id)) break
      kept.set(checkpoint.id, checkpoint)
      if (starts.has(checkpoint.id)) break
    }
  }
  return kept
}

/**
 * What stays of one worktree, and the refs that go. What goes from the live chain is not kept alive by a branch that forked
 * from it, and a branch that ends in it (after a `switch` there and back) goes with it.
 */
export async function keptHistory(plan: WorktreePlan): Promise<{ kept: Map<Oid, Checkpoint>; gone: Gone[] }> {
  const { tips, gone, starts } = keptOf(plan)
  const kept = await walkKept({ context: plan.context, starts, tips })
  for (const { visible, abandoned } of plan.sessions) {
    for (const turn of [...visible, ...abandoned]) for (const { id } of turn.checkpoints) kept.delete(id)
  }
  for (const { id } of goneByHand(plan)) kept.delete(id)
  for (const { ref, id } of tips) if (ref !== null && !kept.has(id)) gone.push({ ref, from: id, to: null })
  return { kept, gone }
}

/** Bytes that only the removed checkpoints need, as git counts them on disk. */
export async function estimate({ store }: Context, plans: readonly WorktreePlan[]): Promise<number> {
  const removed: Oid[] = []
  const kept: Oid[] = []
  for (const plan of plans) {
    const { kept: history, gone } = await keptHistory(plan)
    for (const { visible, abandoned } of plan.sessions)
      removed.push(...[...visible, ...abandoned].flatMap((turn) => turn.checkpoints.map((c) => c.tree)))
    removed.push(...goneByHand(plan).map((c) => c.tree))
    for (const { from } of gone) removed.push(from)
    kept.push(...[...history.values()].map((c) => c.tree))
  }
  if (removed.length === 0) return 0
  const input = `${[...new Set(removed)].join('\n')}\n${[...new Set(kept)].map((oid) => `^${oid}`).join('\n')}\n`
  const args = ['rev-list', '--objects', '--disk-usage', '--stdin']
  // What is lost cannot be counted; the turns that need it go all the same.
  const out = await unlessDamaged(() => store.git(args, { input }), Buffer.from('0'))
  return Number(out.toString('latin1').trim())
}
