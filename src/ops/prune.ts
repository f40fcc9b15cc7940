/**
 * Prune: turns that are past their time go, and with them what only they needed. What stays keeps its ids: the history is
 * cut with git's own `shallow` file. Each step can be killed; the next prune goes on from there.
 */
import type { Checkpoint } from '../core/checkpoint.ts'
import { CkptError, reasonOf, unlessDamaged } from '../core/errors.ts'
import { MANUAL_SESSION, type Oid, type SessionId } from '../core/ids.ts'
import { type PrunedTurns, planPrune, removableTurns } from '../core/prune-plan.ts'
import { lastOf, runningTurn, turnsOf } from '../core/timeline.ts'
import { errno } from '../env.ts'
import { abandonedAt, learnSessions, readChain, type WorktreeRefs } from '../git/history.ts'
import type { RefEdit } from '../git/refs.ts'
import { recordedObjects } from '../git/side-refs.ts'
import type { Store } from '../git/store.ts'
import type { FileEntry } from '../git/trees.ts'
import { sweepUnsynced } from '../git/unsynced.ts'
import { loadCache } from '../snapshot/cache.ts'
import { bytesOf } from './history/status.ts'
import { lockedStore } from './recovery/locked.ts'
import { settleUnfinished } from './recovery/unfinished.ts'
import { refuseStrayed } from './store/strayed.ts'
import { damagedPackFiles } from './store/verify-objects.ts'
import type { Context } from './worktree/context.ts'
import { sweepHalfMade } from './worktree/half-made.ts'
import { rememberHighest } from './worktree/numbers.ts'
import { loadTimeline } from './worktree/sessions.ts'
import { allWorktrees } from './worktree/worktrees.ts'

export interface PruneOptions {
  dryRun: boolean
  keep?: number
  /** Milliseconds. */
  olderThan?: number
  maxBytes?: number
}

export interface PruneResult {
  dryRun: boolean
  removed: { session: SessionId; turn: number; worktree: string }[]
  /** Checkpoints by hand that went. */
  byHand: { checkpoint: Oid; worktree: string }[]
  bytesFreed: number
  kept: number
  warnings: string[]
}

/** Safety checkpoints live this long, and as long as what they guard. Milliseconds. */
const SAFETY_AGE = 7 * 86_400_000

type Gone = RefEdit & { from: Oid; to: null }

interface WorktreePlan {
  context: Context
  refs: WorktreeRefs
  sessions: PrunedTurns[]
  /** Checkpoints by hand, oldest first, and how many of them go: never the newest. */
  byHand: { all: readonly Checkpoint[]; gone: number }
  /** Abandoned branches past their grace; what a younger one shares with them stays with that one. */
  overdue: ReadonlySet<string>
}

/** @throws CkptError LOCKED, DAMAGED */
export async function prune(context: Context, options: PruneOptions): Promise<PruneResult> {
  return lockedStore(context, { command: 'prune' }, async () => {
    await settleUnfinished(context, options)
    refuseDamagedPacks(context)
    await refuseStrayed(context)
    const plans = await planAll(context, options)
    const { place, env } = context
    if (!options.dryRun) sweepHalfMade(env, place.directory)
    const before = bytesOf(env, place.directory)
    const removed = plans.flatMap(({ context: one, sessions }) =>
      sessions.flatMap(({ timeline, visible, abandoned }) =>
        [...visible, ...abandoned].map((turn) => ({
          session: timeline.session,
          turn: turn.number,
          worktree: one.place.worktreeId,
        })),
      ),
    )
    const byHand = plans.flatMap((plan) =>
      goneByHand(plan).map(({ id }) => ({ checkpoint: id, worktree: plan.context.place.worktreeId })),
    )
    const kept = plans.reduce(
      (sum, plan) =>
        sum +
        plan.sessions.reduce(
          (n, one) =>
            n + one.timeline.turns.length + one.timeline.abandoned.length - one.visible.length - one.abandoned.length,
          0,
        ),
      0,
    )
    if (options.dryRun) {
      const bytesFreed = await estimate(context, plans)
      return { dryRun: true, removed, byHand, bytesFreed, kept, warnings: context.warnings }
    }
    await env.progress('pruning: choosing')
    await cut(context, plans)
    await env.progress('pruning: packing')
    await collect(context).catch((cause: unknown) => {
      throw removed.length + byHand.length === 0 ? cause : notPacked({ removed, byHand }, cause)
    })
    const after = bytesOf(env, place.directory)
    const most = options.maxBytes ?? context.config.store.maxBytes
    if (after > most)
      context.warnings.push('The store is still over its limit of bytes: what is left is held by what stays.')
    return {
      dryRun: false,
      removed,
      byHand,
      bytesFreed: Math.max(0, before - after),
      kept,
      warnings: context.warnings,
    }
  })
}

const numbered = (count: number, word: string) => (count === 0 ? [] : [`${count} ${word}${count === 1 ? '' : 's'}`])

/** "3 turns", "1 turn and 2 checkpoints by hand". */
export const removedWords = ({ removed, byHand }: Pick<PruneResult, 'removed' | 'byHand'>): string =>
  [...numbered(removed.length, 'turn'), ...numbered(byHand.length, 'checkpoint').map((n) => `${n} by hand`)].join(
    ' and ',
  )

function notPacked(gone: Pick<PruneResult, 'removed' | 'byHand'>, cause: unknown): CkptError {
  const what = `${removedWords(gone)} ${gone.removed.length + gone.byHand.length === 1 ? 'was' : 'were'}`
  return new CkptError(
    cause instanceof CkptError ? cause.code : 'INTERNAL',
    `${what} removed, but the space is not free yet: ${reasonOf(cause)} The next prune goes on from there.`,
    { cause, hints: ['ckpt verify', 'ckpt prune'] },
  )
}

/** To pack anew drops the old packs, and with one that is damaged what can be read of it still. @throws CkptError DAMAGED */
export function refuseDamagedPacks(context: Context): void {
  const bad = damagedPackFiles(context)
  if (bad.length === 0) return
  throw new CkptError(
    'DAMAGED',
    `The store's ${bad.join(', ')} cannot be relied on: missing, or not the bytes it was written with. Nothing was removed.`,
    { hints: ['ckpt doctor --fix   (makes the index of a whole pack anew)', 'ckpt verify   (names what is lost)'] },
  )
}

/** Every worktree of the store, each with what goes from its sessions. */
async function planAll(context: Context, options: PruneOptions): Promise<WorktreePlan[]> {
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
      const timeline = await loadTimeline(one, refs, session, { abandoned: true })
      sessions.push(planPrune({ timeline, abandonedAt: await abandonedTimes(one, refs, session) }, limits))
    }
    const abandoned = [...refs.sessions.values()].flatMap((session) => session.abandoned)
    const overdue = new Set(
      abandoned.map(({ ref }) => ref).filter((ref) => limits.now - abandonedAt(ref) >= limits.grace),
    )
    plans.push({ context: one, refs, sessions, byHand: { all: await madeByHand(one, refs), gone: 0 }, overdue })
  }
  await overBytes(context, plans, options.maxBytes ?? config.store.maxBytes)
  return plans
}

/** Of a session that somebody gave that name, and has turns, the turns go. */
async function madeByHand({ store }: Context, refs: WorktreeRefs): Promise<Checkpoint[]> {
  const tip = refs.sessions.get(MANUAL_SESSION)?.live
  const chain = tip ? await readChain(store, tip.id) : []
  return chain.every(({ kind }) => kind === 'manual') ? chain : []
}

const goneByHand = ({ byHand: { all, gone } }: WorktreePlan): readonly Checkpoint[] => all.slice(0, gone)

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

/** Over the limit of bytes the oldest go too, turns of any session and checkpoints by hand, until what is left should fit. */
async function overBytes(context: Context, plans: WorktreePlan[], maxBytes: number): Promise<void> {
  let over = bytesOf(context.env, context.place.directory) - maxBytes - (await estimate(context, plans))
  while (over > 0) {
    const candidates: { time: string; take: () => void }[] = []
    for (const worktree of plans) {
      const { sessions, byHand } = worktree
      for (const plan of sessions) {
        const turn = removableTurns(plan.timeline)[plan.visible.length]
        if (turn) candidates.push({ time: turn.before.time, take: () => plan.visible.push(turn) })
      }
      const next = byHand.all.slice(0, -1)[byHand.gone]
      if (next && !isAmidTurn(worktree, next)) candidates.push({ time: next.time, take: () => byHand.gone++ })
    }
    const [oldest] = candidates.sort((a, b) => (a.time < b.time ? -1 : 1))
    if (!oldest) return
    const before = await estimate(context, plans)
    oldest.take()
    over -= Math.max(1, (await estimate(context, plans)) - before)
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

/** By session, the highest number of a turn that goes. */
const goneNumbers = (sessions: readonly PrunedTurns[]): Map<SessionId, number> =>
  new Map(
    sessions.flatMap(({ timeline: { session }, abandoned }) => {
      const highest = Math.max(0, ...abandoned.map(({ number }) => number))
      return highest > 0 ? [[session, highest] as const] : []
    }),
  )

async function cut(context: Context, plans: readonly WorktreePlan[]): Promise<void> {
  const { store } = context
  const edits: RefEdit[] = []
  const shallow = new Set<Oid>()
  for (const plan of plans) {
    // A branch whose fork lies in what goes begins where it forked.
    const { kept, gone } = await keptHistory(plan)
    for (const { id, parents } of kept.values()) if (parents.some((parent) => !kept.has(parent))) shallow.add(id)
    for (const id of store.shallow) if (kept.has(id)) shallow.add(id)
    edits.push(...gone, ...(await sideEdits(plan, kept)))
  }
  for (const { context: one, sessions } of plans) rememberHighest(one, goneNumbers(sessions))
  // Where the history was cut before it ends still, until no ref leads there any more.
  store.writeShallow(new Set([...store.shallow, ...shallow]))
  await store.moveRefs(edits, { durable: true })
  store.writeShallow(shallow)
}

/**
 * What stays of one worktree, and the refs that go. What goes from the live chain is not kept alive by a branch that forked
 * from it, and a branch that ends in it (after a `switch` there and back) goes with it.
 */
async function keptHistory(plan: WorktreePlan): Promise<{ kept: Map<Oid, Checkpoint>; gone: Gone[] }> {
  const { tips, gone, starts } = keptOf(plan)
  const kept = await walkKept({ context: plan.context, starts, tips })
  for (const { visible, abandoned } of plan.sessions) {
    for (const turn of [...visible, ...abandoned]) for (const { id } of turn.checkpoints) kept.delete(id)
  }
  for (const { id } of goneByHand(plan)) kept.delete(id)
  for (const { ref, id } of tips) if (ref !== null && !kept.has(id)) gone.push({ ref, from: id, to: null })
  return { kept, gone }
}

/** `@meta` and the prompts, with only what the kept checkpoints need; and the scan's own tree, so that it may go on from it. */
async function sideEdits({ context, refs }: WorktreePlan, kept: ReadonlyMap<Oid, Checkpoint>): Promise<RefEdit[]> {
  const { store, env } = context
  const needed = new Map<string, FileEntry>()
  const add = (oid: Oid) => needed.set(`${oid.slice(0, 2)}/${oid.slice(2)}`, { mode: '100644', oid })
  for (const { beside, record } of kept.values()) {
    add(beside)
    if (!record) continue
    add(record)
    for (const oid of await recordedObjects(store, record)) add(oid)
  }
  const edits: RefEdit[] = []
  const meta = await store.trees.edit(store.trees.empty, needed)
  if (refs.meta && refs.meta !== meta) edits.push({ ref: `${store.refPrefix}@meta`, from: refs.meta, to: meta })
  if (refs.notes) edits.push(...(await keptPrompts(store, refs.notes, kept)))
  const cache = loadCache(env, store)
  if (cache && (await store.objects.read(cache.tree))) edits.push({ ref: `${store.refPrefix}@scan`, to: cache.tree })
  return edits
}

async function keptPrompts(store: Store, tip: Oid, kept: ReadonlyMap<Oid, Checkpoint>): Promise<RefEdit[]> {
  const { promptsTree, writePrompts } = await import('../git/side-refs.ts')
  const tree = await promptsTree(store, tip)
  const notes = new Map<string, FileEntry>()
  for (const [path, entry] of await store.trees.files(tree))
    if (kept.has(path.replace('/', '') as Oid)) notes.set(path, entry)
  const next = writePrompts(store, await store.trees.edit(store.trees.empty, notes), 0)
  return next === tip ? [] : [{ ref: store.notesRef, from: tip, to: next }]
}

/** Packs what is reachable and drops the rest: loose objects, linked packs, what killed processes left. */
export async function collect({ env, store }: Context): Promise<void> {
  const repack = () => {
    sweepLeftovers(env.files, `${store.gitDir}/objects`)
    return store.git(['repack', '-a', '-d', '-q', '--no-write-bitmap-index'])
  }
  const drop = () => store.git(['prune', '--expire=now'])
  await repack().catch(async (cause: unknown) => {
    // On a full disk there is no room for the new pack until what nothing reaches has gone.
    await drop().catch(() => {
      throw cause
    })
    await repack()
  })
  await drop()
  sweepUnsynced(env, store.gitDir)
  store.announce()
}

function sweepLeftovers(files: Context['env']['files'], objects: string): void {
  for (const directory of [objects, `${objects}/pack`]) {
    for (const name of files.readdirSync(directory)) {
      if (!/^(tmp_|\.tmp-)/.test(name)) continue
      try {
        files.unlinkSync(`${directory}/${name}`)
      } catch (error) {
        if (errno(error) !== 'ENOENT') throw error
      }
    }
  }
}

/** Bytes that only the removed checkpoints need, as git counts them on disk. */
async function estimate({ store }: Context, plans: readonly WorktreePlan[]): Promise<number> {
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
