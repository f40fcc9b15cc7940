/**
 * Turns without an adapter (`watch.autoTurn`): changes followed by quiet become a turn of session `auto`, so that any
 * agent, script or person is covered. While a turn of another session runs, what changes is that one's.
 */
import type { Checkpoint } from '../core/checkpoint.ts'
import { CkptError, unlessDamaged } from '../core/errors.ts'
import { parseSessionId } from '../core/ids.ts'
import { runningTurn, wentOn } from '../core/timeline.ts'
import type { WorktreeRefs } from '../git/history.ts'
import { besideOf, newestCheckpoint, type Snapshot, takeSnapshot } from '../ops/record/record.ts'
import { recordMarker } from '../ops/record/record-marker.ts'
import { locked } from '../ops/recovery/locked.ts'
import type { Context } from '../ops/worktree/context.ts'
import { hooksAtWork } from '../ops/worktree/hooks-at-work.ts'
import { loadTimeline, readRefs } from '../ops/worktree/sessions.ts'
import { SnapshotView } from '../snapshot/view.ts'

const SESSION = parseSessionId('auto')
/** Who says so of its turns: others may call a session like that. */
const AGENT = 'watch'
/** Milliseconds without a change. */
const QUIET = 2000
/** Milliseconds without a word from an agent that went on with its turn after the end. */
const GONE_ON = 600_000

type Enqueue = (work: () => Promise<boolean>) => Promise<unknown>

export class AutoTurns {
  readonly #open: () => Promise<Context | null>
  readonly #log: (message: string, details?: object) => void
  /** The state that the next turn begins with, the place in the worktree's order when it was seen, and the store's generation. */
  #base: { snapshot: Snapshot; seq: number; generation: string } | null = null
  #timer: NodeJS.Timeout | null = null
  #enqueue: Enqueue | null = null

  /** `open`: the worktree as the daemon holds it, with the configuration of now; null: it is another's by now. */
  constructor(open: () => Promise<Context | null>, log: (message: string, details?: object) => void) {
    this.#open = open
    this.#log = log
  }

  /** Something changed; `enqueue` runs work when nothing else does. */
  changed(enqueue: Enqueue): void {
    this.#enqueue = enqueue
    if (this.#timer) clearTimeout(this.#timer)
    this.#timer = setTimeout(() => {
      this.#timer = null
      enqueue(() => this.record()).catch((error: unknown) => this.#log('no turn was made', { error: String(error) }))
    }, QUIET)
    this.#timer.unref()
  }

  /** Somebody else's marker comes before the quiet does: what changed until now is in a turn of its own before that. */
  async beforehand(): Promise<void> {
    try {
      const context = await this.#open()
      if (context && !(await isOthers(context, await readRefs(context)))) await this.record({ wait: 0 })
    } catch (error) {
      if (error instanceof CkptError && error.code === 'LOCKED') return // who calls has other work than to wait for this
      this.#log('no turn was made beforehand', { error: String(error) })
    }
  }

  stop(): void {
    this.#enqueue = null
    if (this.#timer) clearTimeout(this.#timer)
  }

  /** Makes a turn of what changed since the last time; the first call only looks. False: there was none to make. `wait`: milliseconds. */
  async record({ wait = 2000 } = {}): Promise<boolean> {
    const context = await this.#open()
    if (!context) return false
    const { config, env, live } = context
    if (!config.watch.autoTurn || !config.enableFileCheckpointing) return false
    if (((await live?.head())?.busy ?? null) !== null) return false
    if (hooksAtWork(context) !== null) {
      if (this.#enqueue) this.changed(this.#enqueue) // nothing need change when they are through
      return false
    }
    return locked(context, { command: 'auto turn', wait }, async () => {
      const refs = await readRefs(context)
      const snapshot = await takeSnapshot(context, refs)
      const base = await this.#baseOf(context, refs)
      this.#base = { snapshot, seq: refs.lastSeq, generation: context.store.generation }
      if (base === null || (await isOthers(context, refs))) return false
      if (base.tree === snapshot.tree && base.besideOid === snapshot.besideOid) return false
      const arrived = env.monotonic()
      const as = (one: Snapshot, reading: WorktreeRefs) => ({
        arrived,
        reading: Promise.resolve(reading),
        scanning: Promise.resolve(one),
      })
      await recordMarker(context, { event: 'prompt', session: SESSION, agent: AGENT }, as(base, refs))
      await recordMarker(context, { event: 'stop', session: SESSION }, as(snapshot, await readRefs(context)))
      this.#base = { snapshot, seq: (await readRefs(context)).lastSeq, generation: context.store.generation }
      return true
    })
  }

  /** What somebody recorded since is known already: a turn, an undo. */
  async #baseOf(context: Context, refs: WorktreeRefs): Promise<Snapshot | null> {
    if (this.#base === null) return null
    const { snapshot, seq, generation } = this.#base
    if (seq === refs.lastSeq)
      return generation === context.store.generation || (await isWhole(context, snapshot)) ? snapshot : null
    const newest = await newestCheckpoint(context, refs)
    return newest && newest.seq === refs.lastSeq ? snapshotOf(context, newest) : null
  }
}

/** No ref may lead to what was only looked at: a prune drops it. */
async function isWhole({ store }: Context, { tree, besideOid }: Snapshot): Promise<boolean> {
  const read = await store.tryGit(['rev-list', '--objects', '--quiet', tree])
  return read.code === 0 && unlessDamaged(() => store.objects.has(besideOid), false)
}

async function snapshotOf(
  context: Context,
  { tree, beside: besideOid, degraded, amidHooks }: Checkpoint,
): Promise<Snapshot> {
  const beside = await besideOf(context, { beside: besideOid } as Checkpoint)
  const view = new SnapshotView(context.store, tree, beside)
  return {
    tree,
    beside,
    besideOid,
    degraded: degraded ?? false,
    amidHooks: amidHooks ?? false,
    mode: 'scan',
    cache: null,
    barrier: 'none',
    anew: false,
    noRoom: false,
    view,
  }
}

/** A turn of somebody else's is at work, or an agent went on with one after its end. */
async function isOthers(context: Context, refs: WorktreeRefs): Promise<boolean> {
  for (const session of refs.sessions.keys()) {
    const timeline = await loadTimeline(context, refs, { session, recent: true })
    const last = timeline.turns.at(-1)
    if (!last || timeline.boundary || (session === SESSION && last.before.agent === AGENT)) continue
    if (runningTurn(timeline)) return true
    // Such an agent need not say that it is through.
    const told = timeline.outside.at(-1)
    if (told && wentOn(timeline, last) && context.env.now() - Date.parse(told.time) < GONE_ON) return true
  }
  return false
}
