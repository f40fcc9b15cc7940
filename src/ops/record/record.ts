/** Taking a snapshot and making it a checkpoint. The caller holds the worktree's lock. */
import { type Beside, parseBeside } from '../../core/beside.ts'
import { refuseCancelled } from '../../core/cancel.ts'
import type { Checkpoint, CheckpointMeta } from '../../core/checkpoint.ts'
import { isDamage, unlessDamaged } from '../../core/errors.ts'
import type { Oid } from '../../core/ids.ts'
import type { HeadState } from '../../git/head.ts'
import { readCheckpoint, type WorktreeRefs, writeCheckpoint } from '../../git/history.ts'
import type { RefEdit } from '../../git/refs.ts'
import { keepObjects } from '../../git/side-refs.ts'
import type { Store } from '../../git/store.ts'
import { loadCache, type SnapshotCache, saveCache } from '../../snapshot/cache.ts'
import { type Captured, capture } from '../../snapshot/capture.ts'
import { SnapshotView } from '../../snapshot/view.ts'
import { roomIn } from '../store/size.ts'
import { type Context, headOf } from '../worktree/context.ts'
import { hooksAtWork } from '../worktree/hooks-at-work.ts'
import { readReplaced } from '../worktree/replaced.ts'

export interface Snapshot extends Captured {
  view: SnapshotView
  barrier: 'ok' | 'timeout' | 'none'
  /** What the scan would have gone on from is missing in the store: it began anew, and wrote what it found again. */
  anew: boolean
  /** Something is not in it because the store, or its disk, has no room left. */
  noRoom: boolean
  /** Hooks of git's were at work meanwhile. */
  amidHooks: boolean
}

export interface SnapshotOptions {
  /** Milliseconds left for it; the configuration's deadline unless told. */
  deadline?: number
  /** False: nothing is remembered for the next scan (a command that writes nothing). */
  publish?: boolean
  /** Every file is read, and written again: what the store has of it may be damaged. */
  anew?: boolean
}

/** Scans the worktree. @throws CkptError when git or the store fails */
export async function takeSnapshot(
  context: Context,
  refs: WorktreeRefs | Promise<WorktreeRefs>,
  options: SnapshotOptions = {},
): Promise<Snapshot> {
  const { env, store, worktree, config } = context
  const { deadline = config.snapshot.deadline, publish = true } = options
  // They may fail before they are awaited here, or never be: until then that must not end the process.
  if (refs instanceof Promise) refs.catch(() => undefined)
  const isAmidHooks = hooksAtWork(context) !== null
  const watched = (await context.live?.barrier()) ?? { hint: null, barrier: 'none' as const }
  const loaded = context.live ? context.live.cache() : loadCache(env, store)
  const cache = loaded && (await isReadable(store, loaded.tree)) ? loaded : null
  const room = roomIn(context)
  const maxBytes = Math.min(config.snapshot.maxBytes, room)
  const limits = { ...config.snapshot, maxBytes, deadline: Math.max(1, deadline) }
  const last = cache ? null : ((await newestCheckpoint(context, await refs))?.tree ?? null)
  const nothing = { worktree, store, limits, cache: null, lastTree: null, headTree: null, anew: true }
  let anew = options.anew || (last !== null && !(await isReadable(store, last)))
  const fromNothing = () => store.objects.distrusting(() => capture(env, nothing))
  const goingOn = async () =>
    capture(env, {
      ...nothing,
      anew: false,
      apart: cache === null && readReplaced(env, store).size > 0,
      cache,
      lastTree: last,
      headTree: cache ? null : (await headOf(context)).tree,
      ...(watched.hint ? { hint: watched.hint, rules: context.live?.rules } : {}),
    })
  const captured = await (anew ? fromNothing() : goingOn()).catch((error: unknown) => {
    if (anew || !isDamage(error)) throw error
    anew = true
    return fromNothing()
  })
  refuseCancelled(env.signal)
  if (publish && captured.cache) publishCache(context, captured.cache, captured.mode)
  const noRoom = room === maxBytes && captured.beside.uncovered.some(({ reason }) => reason === 'budget')
  return {
    ...captured,
    anew,
    noRoom,
    amidHooks: isAmidHooks || hooksAtWork(context) !== null,
    barrier: watched.barrier,
    view: new SnapshotView(store, captured.tree, captured.beside),
  }
}

/** Reads while a scan runs. What the store lacks then may be among what the scan writes again. */
export async function whileOrAfter<T>(scanning: Promise<unknown>, read: () => Promise<T>): Promise<T> {
  try {
    return await read()
  } catch (error) {
    if (!isDamage(error)) throw error
    await scanning
    return read()
  }
}

const isReadable = (store: Store, tree: Oid): Promise<boolean> => unlessDamaged(() => store.objects.has(tree), false)

/** Makes a scan's cache the one that the next scan goes on from. */
export function publishCache(context: Context, cache: SnapshotCache, mode: 'fast' | 'scan'): void {
  if (context.live) context.live.keep(cache, mode)
  else saveCache(context.env, context.store, cache)
}

/** The worktree's newest checkpoint, whoever asked for it. */
export async function newestCheckpoint({ store }: Context, refs: WorktreeRefs): Promise<Checkpoint | null> {
  const tips = [...refs.sessions.values()].flatMap((one) => [
    one.live,
    one.boundary,
    ...one.others.map(({ tip }) => tip),
  ])
  const newest = tips.reduce((best, tip) => (tip && tip.seq > (best?.seq ?? 0) ? tip : best), null)
  return newest ? readCheckpoint(store, newest.id) : null
}

/** Runs work while a scan is under way; whatever comes of the work, the scan has ended before this returns. */
export async function whileScanning<T>(
  context: Context,
  { refs, ...options }: SnapshotOptions & { refs: Promise<WorktreeRefs> },
  work: (scanning: Promise<Snapshot>) => Promise<T>,
): Promise<T> {
  const scanning = takeSnapshot(context, refs, options)
  scanning.catch(() => undefined) // whoever awaits it gets the failure
  try {
    return await work(scanning)
  } finally {
    await scanning.catch(() => undefined)
  }
}

export type NewCheckpoint = Omit<
  CheckpointMeta,
  'seq' | 'beside' | 'time' | 'degraded' | 'head' | 'branch' | 'amidHooks'
>

/** What a checkpoint says of its snapshot. */
export type Recordable = Pick<Captured, 'tree' | 'besideOid' | 'degraded'> & Partial<Pick<Snapshot, 'amidHooks'>>

/** Gives each checkpoint of one operation its place in the worktree's order, and collects what their objects need to be kept. */
export class Recorder {
  readonly #context: Context
  readonly #refs: WorktreeRefs
  readonly #head: HeadState
  readonly #keep = new Set<Oid>()
  #seq: number
  readonly time: string

  constructor(context: Context, refs: WorktreeRefs, head: HeadState) {
    this.#context = context
    this.#refs = refs
    this.#head = head
    this.#seq = refs.lastSeq
    this.time = new Date(context.env.now()).toISOString()
  }

  /** Of the user's repository, when this began. */
  get head(): Pick<HeadState, 'head' | 'branch'> {
    return { head: this.#head.head, branch: this.#head.branch }
  }

  commit(snapshot: Recordable, parents: readonly Oid[], meta: NewCheckpoint): Checkpoint {
    this.#keep.add(snapshot.besideOid)
    return writeCheckpoint(
      this.#context.store,
      { tree: snapshot.tree, parents },
      {
        ...meta,
        seq: ++this.#seq,
        beside: snapshot.besideOid,
        time: this.time,
        ...(snapshot.degraded ? { degraded: true } : {}),
        ...(snapshot.amidHooks ? { amidHooks: true } : {}),
        ...(this.#head.head ? { head: this.#head.head } : {}),
        ...(this.#head.branch ? { branch: this.#head.branch } : {}),
      },
    )
  }

  keep(oids: Iterable<Oid>): void {
    for (const oid of oids) this.#keep.add(oid)
  }

  /** The edit that keeps what was written reachable; first in the transaction, so that no ref ever lacks it. */
  async keepEdits(): Promise<RefEdit[]> {
    const edit = await keepObjects(this.#context.store, this.#refs.meta, this.#keep)
    return edit ? [edit] : []
  }
}

export async function besideOf(context: Context, checkpoint: Pick<Checkpoint, 'beside'>): Promise<Beside> {
  return parseBeside(await context.store.objects.get(checkpoint.beside, 'blob'))
}
