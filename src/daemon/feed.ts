/**
 * Makes events of what the store's refs say, whoever moved them: a marker that came through the daemon, or another process.
 * Nothing is done before the first subscriber, and nothing of it in the time of a marker.
 */
import type { FSWatcher } from 'node:fs'
import type { Checkpoint } from '../core/checkpoint.ts'
import type { Oid, SessionId, TurnNumber } from '../core/ids.ts'
import { endOf, readTimeline, type Timeline, visibleTurns } from '../core/timeline.ts'
import { diffTrees } from '../git/diff.ts'
import { readChain, readCheckpoint, type SessionRefs, type WorktreeRefs } from '../git/history.ts'
import { promptReader } from '../git/side-refs.ts'
import type { Context } from '../ops/worktree/context.ts'
import { readBoundary, readRefs } from '../ops/worktree/sessions.ts'
import { fileDiffJson } from '../results/json.ts'
import { addedTurns, changesBetween, checkpointSummary, turnSummary } from './changes.ts'
import type { EventLog } from './event-log.ts'
import type { KernelQueue } from './kernel-queue.ts'
import type { CkptEvent } from './protocol.ts'

interface Known {
  live: Oid | null
  boundary: Oid | null
  /** Results of undo and redo, and late checkpoints. */
  others: ReadonlySet<string>
  chain: Checkpoint[]
  /** Checkpoints that were told, also those that are on no branch any more. */
  told: Set<string>
  timeline: Timeline
}

/** Milliseconds of rest before a session's differences are told. */
const REST = 250
/** Milliseconds between somebody's move of refs and the look at it. */
const SOON = 10
/** Looks that wait; beyond that those in the middle are passed over, and what they saw is told by the next one. */
const WAITING = 64
const MOST_FILES = 1000

export type Failed = (error: unknown) => void

export class Feed {
  readonly #context: Context
  readonly #log: EventLog
  readonly #queue: KernelQueue
  readonly #failed: Failed
  #sessions: Map<SessionId, Known> | null = null
  #starting: Promise<void> | null = null
  #waiting: WorktreeRefs[] = []
  #working: Promise<void> = Promise.resolve()
  #watcher: FSWatcher | null = null
  #restless = new Set<SessionId>()
  #timer: NodeJS.Timeout | null = null
  #soon: NodeJS.Timeout | null = null

  constructor(context: Context, { log, queue, failed }: { log: EventLog; queue: KernelQueue; failed: Failed }) {
    this.#context = context
    this.#log = log
    this.#queue = queue
    this.#failed = failed
  }

  /** From now on events are made. Where that failed, the next one who asks tries again. */
  start(): Promise<void> {
    this.#starting ??= this.#begin().catch((error: unknown) => {
      this.stop()
      throw error
    })
    return this.#starting
  }

  async #begin(): Promise<void> {
    // Written after every move of refs, whoever makes it.
    this.#watcher = this.#queue.watch(this.#context.place.directory, (_event, name) => {
      if (name === 'generation') this.#lookSoon()
    })
    this.#watcher.on('error', (error) => {
      this.stop()
      this.#failed(error)
    })
    const refs = await readRefs(this.#context)
    const sessions = new Map<SessionId, Known>()
    for (const one of refs.sessions.values()) {
      const known = await this.#read(one, null)
      for (const id of [...known.chain.map((checkpoint) => checkpoint.id), ...known.others]) known.told.add(id)
      sessions.set(one.session, known)
    }
    this.#sessions = sessions
    await this.look()
  }

  /** The next one who asks starts it again. */
  stop(): void {
    this.#starting = null
    this.#watcher?.close()
    this.#watcher = null
    if (this.#timer) clearTimeout(this.#timer)
    if (this.#soon) clearTimeout(this.#soon)
    this.#soon = null
  }

  /** Sees where the refs are now; what comes of it is worked out by and by. */
  async look(): Promise<void> {
    if (!this.#sessions) return
    try {
      const refs = await readRefs(this.#context)
      this.#waiting.push(refs)
      if (this.#waiting.length > WAITING) this.#waiting.splice(1, 1)
      this.#working = this.#working.then(() => this.#next())
    } catch (error) {
      this.#failed(error)
    }
  }

  /** Several writes of one move are one look. */
  #lookSoon(): void {
    this.#soon ??= setTimeout(() => {
      this.#soon = null
      void this.look()
    }, SOON)
  }

  /** After a prune: chains are shorter, though their tips are where they were. */
  forgetChains(): void {
    for (const one of this.#sessions?.values() ?? []) Object.assign(one, { chain: [], live: null })
    void this.look()
  }

  async #next(): Promise<void> {
    const refs = this.#waiting.shift()
    if (!refs || !this.#sessions) return
    try {
      await this.#compare(this.#sessions, refs)
    } catch (error) {
      this.#failed(error)
    }
  }

  async #compare(sessions: Map<SessionId, Known>, refs: WorktreeRefs): Promise<void> {
    const changed: { before: Known | null; after: Known }[] = []
    for (const one of refs.sessions.values()) {
      const before = sessions.get(one.session) ?? null
      if (before && !hasMoved(before, one)) continue
      const after = await this.#read(one, before)
      sessions.set(one.session, after)
      changed.push({ before, after })
    }
    for (const [session, before] of sessions) {
      if (refs.sessions.has(session)) continue
      sessions.delete(session)
      const gone = { session, live: null, boundary: null, abandoned: [], others: [] }
      changed.push({ before, after: await this.#read(gone, null) })
    }
    if (changed.length === 0) return
    const worktree = this.#context.place.worktreeId
    const rest: CkptEvent[] = []
    for (const { before, after } of changed) {
      const numbers = new Set(addedTurns(before?.timeline ?? null, after.timeline).map(({ number }) => number))
      // After a forget turns have other ids: the one that had the number goes before the one that has it.
      for (const event of changesBetween(before?.timeline ?? null, after.timeline, worktree)) {
        if (event.type === 'turn.removed' && numbers.has(event.turn as TurnNumber)) this.#log.append(event)
        else rest.push(event)
      }
      this.#restless.add(after.timeline.session)
    }
    await this.#tellNew(changed, refs)
    for (const event of rest) this.#log.append(event)
    this.#tellDifferencesAtRest()
  }

  /** New checkpoints in the worktree's order, each turn right after the checkpoint that it begins with. */
  async #tellNew(changed: readonly { before: Known | null; after: Known }[], refs: WorktreeRefs): Promise<void> {
    const prompts = await promptReader(this.#context.store, refs.notes)
    const fresh: Checkpoint[] = []
    const turns = changed.flatMap(({ before, after }) => addedTurns(before?.timeline ?? null, after.timeline))
    for (const { after } of changed) {
      fresh.push(...after.chain.filter(({ id }) => !after.told.has(id)))
      for (const id of after.others)
        if (!after.told.has(id)) fresh.push(await readCheckpoint(this.#context.store, id as Oid))
      for (const { id } of fresh) after.told.add(id)
    }
    for (const checkpoint of fresh.sort((a, b) => a.seq - b.seq)) {
      const { session } = checkpoint
      this.#log.append({ type: 'checkpoint.created', session, checkpoint: checkpointSummary(checkpoint) })
      const begun = turns.findIndex(({ before }) => before.id === checkpoint.id)
      if (begun >= 0) await this.#tellTurn(turns.splice(begun, 1)[0]!, prompts)
    }
    for (const turn of turns) await this.#tellTurn(turn, prompts)
  }

  async #tellTurn(turn: Timeline['turns'][number], prompts: Awaited<ReturnType<typeof promptReader>>): Promise<void> {
    const summary = turnSummary(turn, await prompts(turn.before.id))
    this.#log.append({ type: 'turn.added', session: turn.session, turn: summary })
  }

  async #read(one: SessionRefs, before: Known | null): Promise<Known> {
    const chain = one.live ? await this.#chainTo(one.live.id, before?.chain ?? []) : []
    const boundary = one.boundary ? await readBoundary(this.#context, one.boundary) : null
    const timeline = readTimeline({ session: one.session, live: chain, abandoned: [], boundary })
    const others = new Set(one.others.map(({ tip }) => tip.id))
    return {
      live: one.live?.id ?? null,
      boundary: one.boundary?.id ?? null,
      others,
      chain,
      told: before?.told ?? new Set(),
      timeline,
    }
  }

  /** What is known, and what came since; read whole when the tip does not go on from what is known. */
  async #chainTo(tip: Oid, known: readonly Checkpoint[]): Promise<Checkpoint[]> {
    const { store } = this.#context
    const at = new Map(known.map((one, i) => [one.id, i]))
    const since: Checkpoint[] = []
    for (let id: Oid | undefined = tip; id !== undefined && since.length < WAITING; id = since[0]?.parents[0]) {
      const place = at.get(id)
      if (place !== undefined) return [...known.slice(0, place + 1), ...since]
      since.unshift(await readCheckpoint(store, id))
    }
    return since.length < WAITING ? since : readChain(store, tip)
  }

  #tellDifferencesAtRest(): void {
    if (this.#timer) clearTimeout(this.#timer)
    this.#timer = setTimeout(() => {
      const sessions = [...this.#restless]
      this.#restless = new Set()
      this.#working = this.#working.then(() => this.#tellDifferences(sessions)).catch(this.#failed)
    }, REST)
    this.#timer.unref()
  }

  async #tellDifferences(sessions: readonly SessionId[]): Promise<void> {
    for (const session of sessions) {
      const timeline = this.#sessions?.get(session)?.timeline
      const turns = timeline ? visibleTurns(timeline) : []
      const [first, last] = [turns[0], turns.at(-1)]
      const end = last && endOf(last)
      const found =
        first && end ? (await diffTrees(this.#context.store, { from: first.before.tree, to: end.tree })).files : []
      const files = found.slice(0, MOST_FILES).map(fileDiffJson)
      this.#log.append({ type: 'session.diff', session, files, total: found.length })
    }
  }
}

function hasMoved(known: Known, { live, boundary, others }: SessionRefs): boolean {
  return (
    known.live !== (live?.id ?? null) ||
    known.boundary !== (boundary?.id ?? null) ||
    known.others.size !== others.length ||
    others.some(({ tip }) => !known.others.has(tip.id))
  )
}
