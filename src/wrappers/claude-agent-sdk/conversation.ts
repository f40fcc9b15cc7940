/** Where a conversation stands: its session, what is undone of it, what runs, and what has been said. */
import { EventEmitter } from 'node:events'
import { ckptBackend } from '../../backends/ckpt.ts'
import { parseSessionId, type SessionId } from '../../core/ids.ts'
import type { OwnTurn } from '../../core/own-session.ts'
import { tell } from '../../core/tell.ts'
import { messageIdOf } from '../../core/timeline.ts'
import type { Env } from '../../env.ts'
import { mark } from '../../ops/mark.ts'
import { setSessionBackend } from '../../ops/session-backends.ts'
import { type Context, closeContext, openContext } from '../../ops/worktree/context.ts'
import { loadTimeline, readRefs } from '../../ops/worktree/sessions.ts'
import { toCkptError } from '../../results/errors.ts'
import { QueryLife } from './life.ts'
import { Prompts } from './prompts.ts'
import {
  type ClaudeCheckpoint,
  checkpointOf,
  emptyRecord,
  readRecord,
  type SessionRecord,
  undoneOf,
  withoutUndone,
  withPrompt,
  withStatus,
  writeRecord,
} from './record.ts'
import { type AgentMessage, promptOf, type UserMessage } from './sdk.ts'
import { recordFromTranscript } from './transcript.ts'
import { Unprompted } from './unprompted.ts'

export const NAME = 'claude-agent-sdk'

export interface ClaudeAgentEvents {
  /** A session that goes on from no other. */
  'session.started': [{ session: string }]
  /** The conversation goes on in a session of its own, from before what was undone. */
  'session.forked': [{ old: string; new: string }]
  'checkpoint.created': [ClaudeCheckpoint]
  /** `messageId`: the first prompt that is undone; null: nothing is (any more). */
  'boundary.changed': [{ session: string; messageId: string | null }]
  /** Something went wrong that does not stop the agent. */
  warning: [string]
}

const VARIABLE = 'CLAUDE_CODE_ENABLE_SDK_FILE_CHECKPOINTING'

/** Milliseconds until what the agent does not take up is given up. */
const PATIENCE = 5000

/** How the next prompt is sent. */
export interface Plan {
  /** The session that goes on; null: a new one begins. */
  resume: SessionId | null
  /** It goes on as a fork from this message. */
  anchor: string | null
  /** The first prompt that is undone, and is left with the next one. */
  undone: string | null
  /** Where it stands in the conversation is not known: what came before it is left, too. */
  lost: boolean
}

export class Conversation {
  readonly env: Env
  readonly root: string
  readonly events = new EventEmitter<ClaudeAgentEvents>()
  /** ckpt records checkpoints of its own. */
  readonly recorded: boolean
  session: SessionId | null = null
  readonly life = new QueryLife(() => this.running)
  /** What was said, as the SDK sent it; an undo does not cut it, the next prompt after it does. */
  messages: AgentMessage[] = []
  #last: string | null = null
  #parent: SessionId | null = null
  readonly #prompts = new Prompts()
  readonly #unprompted = new Unprompted()
  #continues = false
  #stopHeard = true
  #asked = false
  #patience: NodeJS.Timeout | undefined
  #serial: Promise<unknown> = Promise.resolve()
  /** Hooks that are being heard. */
  readonly #hearing = new Set<Promise<unknown>>()
  #leaving: Promise<void> = Promise.resolve()

  constructor(env: Env, { root, recorded }: { root: string; recorded: boolean }) {
    this.env = env
    this.root = root
    this.recorded = recorded
  }

  get running(): boolean {
    return this.#prompts.running || this.#unprompted.running
  }

  /** The prompt that is on its way to the agent, while no turn runs. */
  get onItsWay(): string | null {
    return this.#prompts.onItsWay
  }

  hasTaken(prompt: string): boolean {
    return this.#prompts.hasTaken(prompt)
  }

  /** Whatever is at work, agents in the background too. */
  async interrupt(): Promise<void> {
    const { live } = this.life
    await live?.interrupt()
    for (const task of this.#unprompted.tasks) await live?.stopTask?.(task)
  }

  async within<T>(work: (context: Context) => Promise<T>): Promise<T> {
    const context = await openContext(this.env, this.root, { create: true, forgiving: true })
    return work(context).finally(() => closeContext(context))
  }

  /** What cannot be read or recorded does not stop the agent. */
  #orWarn<T>(work: (context: Context) => Promise<T>): Promise<T | undefined> {
    return this.within(work).catch((error: unknown) => {
      this.warn(toCkptError(error))
      return undefined
    })
  }

  /** To the listeners; whether there is any. */
  tell<E extends keyof ClaudeAgentEvents>(event: E, ...given: ClaudeAgentEvents[E]): boolean {
    const listeners = this.events.listeners(event) as ((...given: ClaudeAgentEvents[E]) => void)[]
    for (const listener of listeners) tell(listener, ...given)
    return listeners.length > 0
  }

  /** To the listeners, or where there are none as a warning of the process. */
  warn(error: unknown): void {
    const message = error instanceof Error ? error.message : String(error)
    if (!this.tell('warning', message)) process.emitWarning(message, 'CkptWarning')
  }

  /** What is kept of a session; of one that was never seen, what its transcript says. */
  async recordOf(context: Context, session: SessionId): Promise<SessionRecord> {
    const kept = readRecord(context, session)
    if (kept) return kept
    const keep = context.config.checkpointKeepCount
    return recordFromTranscript(context, session, keep) ?? emptyRecord(session, null)
  }

  /** ckpt's own checkpoints are the session's turns. */
  async isRecorded(context: Context, session: SessionId): Promise<boolean> {
    return Boolean((await readRefs(context)).sessions.get(session)?.live)
  }

  /** The prompts of a session that are undone, oldest first. */
  async undoneIn(context: Context, session: SessionId): Promise<string[]> {
    const refs = await readRefs(context)
    const own = refs.sessions.get(session)
    if (!own?.live) return undoneOf(await this.recordOf(context, session))
    if (!own.boundary) return []
    const { boundary, turns } = await loadTimeline(context, refs, { session })
    if (!boundary || boundary.step !== null) return []
    return turns.flatMap((turn) => (turn.hidden ? (messageIdOf(turn) ?? []) : []))
  }

  /** A session that the caller names, or the one of another process. */
  async adopt(session: string): Promise<void> {
    if (session === this.session) return
    await this.#become(parseSessionId(session), { known: true })
  }

  /** The SDK goes on with a session of its own choice: what it was before is in its transcript. */
  continues(): void {
    this.#continues = this.session === null
  }

  async plan(): Promise<Plan> {
    const session = this.session
    const onwards: Plan = { resume: session, anchor: null, undone: null, lost: false }
    if (session === null) return onwards
    const plan = await this.#orWarn(async (context): Promise<Plan> => {
      const [undone] = await this.undoneIn(context, session)
      if (undone === undefined) return onwards
      const isIt = ({ id }: { id: string }) => id === undone
      const found =
        (await this.recordOf(context, session)).anchors.find(isIt) ??
        recordFromTranscript(context, session, 1)?.anchors.find(isIt)
      // Null: it is the first.
      const anchor = found?.anchor ?? null
      return { resume: anchor === null ? null : session, anchor, undone, lost: !found }
    })
    return plan ?? onwards
  }

  /** A prompt is about to be sent: what was undone is left behind. */
  async begin({ uuid, message }: UserMessage, plan: Plan): Promise<void> {
    const session = this.session
    this.#prompts.send(uuid!, promptOf({ type: 'user', uuid: uuid!, message })?.text ?? '')
    if (session !== null && plan.undone !== null) {
      const { undone } = plan
      await this.#orWarn(async (context) => {
        const left = await this.undoneIn(context, session)
        if (await this.isRecorded(context, session)) await ckptBackend.accept!(context, session)
        writeRecord(context, withoutUndone(await this.recordOf(context, session), left))
      })
      const cut = this.messages.findIndex((one) => one.uuid === undone)
      if (cut >= 0) this.messages.length = cut
      this.#last = plan.anchor
      if (plan.lost)
        this.warn(`Where ${undone} stands in session ${session} is not known any more: a fresh session begins.`)
      this.tell('boundary.changed', { session, messageId: null })
    }
    if (plan.resume === null || plan.anchor !== null) this.#parent = plan.resume
    this.#stopHeard = false
  }

  /** A message of the SDK's. */
  async hear(message: AgentMessage): Promise<void> {
    const { type, subtype, session_id: session, uuid } = message
    clearTimeout(this.#patience)
    if (
      session &&
      session !== this.session &&
      (type === 'result' || subtype === 'init' || type === 'user' || type === 'assistant')
    )
      await this.#become(parseSessionId(session), { known: false })
    // The agent also says what is no prompt as if the person had: that the turn was interrupted.
    const isPrompt = type === 'user' && uuid !== undefined && this.#prompts.isSent(uuid)
    if (isPrompt && this.#prompts.takeUp(uuid)) await this.#capture(uuid, promptOf(message)?.text ?? '')
    if (type === 'user' || type === 'assistant') this.messages.push(message)
    if ((type === 'user' || type === 'assistant') && !isPrompt && uuid && !message.parent_tool_use_id) this.#last = uuid
    if (type === 'command_lifecycle' && !/^(queued|started)$/.test(message.state ?? ''))
      this.#prompts.drop(message.command_uuid ?? '')
    this.#unprompted.hear(message, this.#prompts.running)
    if (type === 'result') {
      this.#prompts.end()
      await this.#turnEnded(subtype === 'success' ? 'completed' : 'failed')
    }
    if (type === 'result' && this.#prompts.onlyWaiting) this.#awaitFor(this.#prompts)
    else if (this.#unprompted.onlyWaiting) this.#awaitFor(this.#unprompted)
  }

  /** A message of a query that is over, and that the caller reads on: the agent may have taken up what was sent last. */
  async hearLate(message: AgentMessage): Promise<void> {
    const { type, session_id: session, uuid } = message
    if (type !== 'user' || uuid === undefined) return
    await this.left()
    if (!this.#prompts.takeUpLate(uuid)) return
    if (session && session !== this.session) await this.#become(parseSessionId(session), { known: false })
    await this.#capture(uuid, promptOf(message)?.text ?? '')
    this.messages.push(message)
    await this.#turnEnded('interrupted')
  }

  /** The agent takes it up at once, or has dropped it without a word. */
  #awaitFor(what: { giveUp: () => void }): void {
    this.#patience = setTimeout(() => {
      what.giveUp()
      this.life.goOn()
    }, PATIENCE)
  }

  /** A hook of the agent's is told: the query that called it is over once that is done. */
  hearing<T>(work: Promise<T>): Promise<T> {
    this.#hearing.add(work)
    return work.finally(() => this.#hearing.delete(work))
  }

  /**
   * The query is over, in whatever way; `run`: if it is that one which goes on with the conversation. One after the other:
   * the second to say so waits for what the first set going.
   */
  over(run?: object): Promise<void> {
    const work = this.#leaving.then(() => (!run || this.life.isHeldBy(run) ? this.#end() : undefined))
    this.#leaving = work.catch(() => undefined)
    return work
  }

  /** Resolves when what was left is over, also what is left meanwhile. */
  async left(): Promise<void> {
    for (let seen: Promise<void> | null = null; seen !== this.#leaving; await seen) seen = this.#leaving
  }

  async #end(): Promise<void> {
    clearTimeout(this.#patience)
    // A prompt that is still being recorded would come behind the next one, in a turn that nobody ends.
    await Promise.allSettled(this.#hearing)
    const wasRunning = this.#prompts.running
    this.#prompts.clear()
    this.#unprompted.clear()
    if (wasRunning) await this.#turnEnded('interrupted')
    this.life.over()
  }

  /** What a hook of the SDK's is told before its prompt is recorded. */
  async promptHeard(given: string, text: string): Promise<{ messageId?: string; parent?: string }> {
    const session = parseSessionId(given)
    if (session !== this.session) await this.#become(session, { known: false })
    const messageId = this.#prompts.heard(text)
    const parent = await this.#orWarn(async (context) => (await this.recordOf(context, session)).parent)
    return { ...(messageId === null ? {} : { messageId }), ...(parent ? { parent } : {}) }
  }

  stopHeard(): void {
    this.#stopHeard = true
  }

  /** One after the other: the stream and the hooks may both be the first to tell of a new session. */
  #become(session: SessionId, { known }: { known: boolean }): Promise<void> {
    const work = this.#serial.then(async () => {
      const old = this.session
      if (session === old) return
      const parent = known ? null : this.#parent
      const isNew = !known && (parent !== null || this.#parent === null)
      const earlier = known || this.#continues
      this.#continues = false
      await this.#orWarn(async (context) => {
        await setSessionBackend(context, session, NAME)
        const kept = readRecord(context, session)
        const fresh = { ...emptyRecord(session, parent), last: parent === null ? null : this.#last }
        const record = kept ?? (earlier ? this.#unsent(await this.recordOf(context, session)) : fresh)
        if (!kept) writeRecord(context, record)
        if (earlier) this.#last = record.last
      })
      this.session = session
      this.#parent = null
      if (known) this.messages = []
      else if (parent !== null) this.tell('session.forked', { old: parent, new: session })
      else if (isNew) this.tell('session.started', { session })
    })
    this.#serial = work.catch(() => undefined)
    return work
  }

  /** A transcript may hold the prompt already that this is about. */
  #unsent(record: SessionRecord): SessionRecord {
    const checkpoints = record.checkpoints.filter(({ id }) => !this.#prompts.isSent(id))
    const first = record.checkpoints[record.checkpoints.length - checkpoints.length - 1]
    const anchors = record.anchors.filter(({ id }) => !this.#prompts.isSent(id))
    return first ? { ...record, checkpoints, anchors, last: first.anchor } : record
  }

  async #capture(id: string, text: string): Promise<void> {
    const session = this.session
    if (session === null) return
    await this.#orWarn(async (context) => {
      const record = { ...(await this.recordOf(context, session)), last: this.#last }
      const keep = context.config.checkpointKeepCount
      const next = withPrompt(record, { id, text, time: new Date(this.env.now()).toISOString(), keep })
      if (next === record) return
      writeRecord(context, next)
      this.tell('checkpoint.created', checkpointOf(next.checkpoints[0]!))
    })
    if (!this.recorded) this.#askOnce(id).catch(() => undefined) // a query that ends meanwhile has nothing to say
  }

  /** The SDK says that it keeps copies to the agent by a variable; one that does not leaves it to the caller. */
  async #askOnce(id: string): Promise<void> {
    const { live } = this.life
    if (this.#asked || !live) return
    this.#asked = true
    const { canRewind, error = '' } = await live.rewindFiles(id, { dryRun: true })
    if (!canRewind && /not enabled/i.test(error))
      this.warn(`The agent keeps no copies of files (${error}). An old SDK wants ${VARIABLE}=true in its environment.`)
  }

  async #turnEnded(status: Exclude<OwnTurn['status'], 'running'>): Promise<void> {
    const session = this.session
    if (session === null) return
    await this.#orWarn(async (context) => {
      const record = await this.recordOf(context, session)
      writeRecord(context, { ...withStatus(record, status), last: this.#last })
      // The agent's own word that it stopped came already, unless it was interrupted or failed.
      if (this.recorded && !this.#stopHeard && !this.#prompts.running && (await this.isRecorded(context, session)))
        await mark(context, { event: 'stop', session, status, onlyRunning: true }, this.env.monotonic())
    })
  }
}
