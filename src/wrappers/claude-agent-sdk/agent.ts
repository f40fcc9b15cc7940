/**
 * One conversation with the Claude Agent SDK, and its undo. The SDK keeps copies of the files that its tools change, and
 * puts them back; the conversation itself is never cut: after an undo it goes on as a fork from before what was undone.
 */
import type { Backend } from '../../backends/backend.ts'
import { CkptError } from '../../core/errors.ts'
import { nothingToRedo, nothingToUndo } from '../../core/own-session.ts'
import { checkedOptions } from '../../library/options.ts'
import { libraryEnv, openWorktree, type Worktree } from '../../library/worktree.ts'
import type { ChangeInfo } from '../../results/shapes.ts'
import { countsIn } from '../patch.ts'
import { claudeBackend } from './backend.ts'
import { type ClaudeAgentEvents, Conversation } from './conversation.ts'
import { AGENT, checkedQuery, REDO, refuseOtherConversation, UNDO } from './given.ts'
import { interruptTurn } from './interrupt.ts'
import { type ClaudeCheckpoint, checkpointOf, type Summary, visibleIn } from './record.ts'
import { resumed } from './resumed.ts'
import { optionsFor, runQuery } from './run.ts'
import type { AgentMessage, AgentSdk, GivenTo, KnownOptions, OptionsOf, QueryOf } from './sdk.ts'

export interface ClaudeAgentOptions<S extends AgentSdk> {
  /** `import * as sdk from '@anthropic-ai/claude-agent-sdk'`; loaded by that name unless told. */
  sdk?: S | undefined
  /** Of every query; those of a single one win. Which session is `session`'s to say, and not `resume`'s. */
  options?: OptionsOf<S> | undefined
  /** A session to go on with; a new one unless told. */
  session?: string | undefined
  /** ckpt records checkpoints of its own beside the SDK's: shell edits and deletions are then undone too, and redo works. */
  checkpoints?: boolean | undefined
  /** Makes the store of a plain directory (`ckpt init`). */
  init?: boolean | undefined
  /** Environment variables; those of the process unless told. */
  vars?: Readonly<Record<string, string | undefined>> | undefined
}

/** What an undo did. */
export interface ClaudeUndo {
  /** The first prompt that is undone. */
  revertMessageID: string
  /** Its whole text, to be put back into an input field. */
  restoredPrompt: string | null
  summary: Summary
  /** The same as `Worktree.sessions.undo` gives it. */
  change: ChangeInfo
}

export interface ClaudeUndoOptions {
  /** How many prompts; 1 unless told. */
  turns?: number | undefined
  /** Back to before this prompt: its id, or its number. */
  to?: string | undefined
  /** Ends a turn that is at work first. */
  interrupt?: boolean | undefined
  dryRun?: boolean | undefined
}

export class ClaudeAgent<S extends AgentSdk = AgentSdk> {
  /** For `openWorktree({ backends })`. */
  readonly backend: Backend
  readonly #sdk: S
  readonly #options: KnownOptions
  readonly #conversation: Conversation
  readonly #worktree: Worktree

  /** @internal */
  constructor(parts: {
    sdk: S
    options: KnownOptions
    conversation: Conversation
    backend: Backend
    worktree: Worktree
  }) {
    this.#sdk = parts.sdk
    this.#options = parts.options
    this.#conversation = parts.conversation
    this.backend = parts.backend
    this.#worktree = parts.worktree
  }

  /** The session that goes on; null: there was no prompt yet. */
  get sessionId(): string | null {
    return this.#conversation.session
  }

  /** What was said in this process, as the SDK sent it. An undo does not cut it; the next prompt after one does. */
  get messages(): readonly AgentMessage[] {
    return this.#conversation.messages
  }

  /**
   * The SDK's own `query()`, in the conversation of this object: it goes on with its session unless `resume` names another.
   * After an undo the next prompt opens a fork (or, where the very first prompt was undone, a fresh session). While another
   * query is at work the stream throws CkptError TURN_RUNNING, and nothing is sent.
   * @throws CkptError USAGE (no prompt; `forkSession`, `resumeSessionAt`, `sessionId` of another session)
   */
  query(given: GivenTo<S>): QueryOf<S> {
    const { prompt, options } = checkedQuery(given, this.sessionId)
    return runQuery(this.#conversation, this.#sdk, { prompt, options: { ...this.#options, ...options } })
  }

  /** The SDK's query that is live; null when idle. */
  getQueryInstance(): QueryOf<S> | null {
    return this.#conversation.life.live as QueryOf<S> | null
  }

  /** The prompts that can be gone back to before, newest first; those that are undone are not among them. */
  async checkpoints(): Promise<ClaudeCheckpoint[]> {
    const session = this.#conversation.session
    if (session === null) return []
    return this.#conversation.within(async (context) => {
      const record = await this.#conversation.recordOf(context, session)
      return visibleIn(record, await this.#conversation.undoneIn(context, session)).map(checkpointOf)
    })
  }

  /**
   * Takes the last prompt back, or more; walks on past those that are undone already. `to` a prompt that is undone together
   * with earlier ones goes forward to it, where there is redo.
   * @throws CkptError USAGE, NOTHING_TO_UNDO (also where what was interrupted had not been taken up by the agent: what came
   * before it stays), CONFLICT (the SDK cannot rewind, or files differ), NOT_FOUND (no query, and
   * none could be resumed), TURN_RUNNING
   */
  async undo(options: ClaudeUndoOptions = {}): Promise<ClaudeUndo> {
    const given = checkedOptions(options, UNDO)
    const { to, turns, ...rest } = given
    const isPrompt = to !== undefined && !/^\d+$/.test(to)
    if (to !== undefined && turns !== undefined)
      throw new CkptError('USAGE', '`to` and `turns` do not go together. Nothing was changed.')
    // A first prompt that is on its way has no session yet.
    if (this.#conversation.session === null && this.#conversation.running)
      await interruptTurn(this.#conversation, given, async () => undefined)
    const session = this.#conversation.session
    if (session === null) throw nothingToUndo('There is no prompt yet.')
    const { sessions } = this.#worktree
    const change = isPrompt
      ? await sessions.revert(to, undefined, { ...rest, session })
      : await sessions.undo({ ...given, session })
    const info = change.dryRun || change.summary ? null : await sessions.getSessionInfo(session)
    return {
      // Where more than that was undone it went forward, and the change is a redo.
      revertMessageID: change.messageId ?? change.boundary?.messageId ?? '',
      restoredPrompt: change.restoredPrompt ?? info?.restoredPrompt ?? null,
      summary: change.summary ?? (info ? countsIn(info.revertDiff) : filesOf(change)),
      change,
    }
  }

  /** What is undone and waits for the next prompt, which leaves it behind; null: nothing. The same after a reconnect. */
  async reverted(): Promise<Omit<ClaudeUndo, 'change'> | null> {
    const session = this.#conversation.session
    if (session === null) return null
    const { revertMessageID, restoredPrompt, revertDiff } = await this.#worktree.sessions.getSessionInfo(session)
    if (revertMessageID === null) return null
    const kept = await this.#conversation.within((context) => this.#conversation.recordOf(context, session))
    return { revertMessageID, restoredPrompt, summary: kept.summary ?? countsIn(revertDiff) }
  }

  /** @throws CkptError UNSUPPORTED without ckpt's own checkpoints, NOTHING_TO_REDO, USAGE */
  async redo(options: { turns?: number | undefined; all?: boolean | undefined } = {}): Promise<ChangeInfo> {
    const given = checkedOptions(options, REDO)
    const session = this.#conversation.session
    if (session === null) throw nothingToRedo('There is no prompt yet.')
    return this.#worktree.sessions.redo({ ...given, session })
  }

  on<E extends keyof ClaudeAgentEvents>(event: E, listener: (...given: ClaudeAgentEvents[E]) => void): this {
    this.#conversation.events.on(event, listener as never)
    return this
  }

  off<E extends keyof ClaudeAgentEvents>(event: E, listener: (...given: ClaudeAgentEvents[E]) => void): this {
    this.#conversation.events.off(event, listener as never)
    return this
  }
}

/**
 * A conversation of the Claude Agent SDK in the worktree that a directory lies in.
 * @throws CkptError BAD_ROOT, NOT_INITIALIZED, CONFIG, USAGE, UNSUPPORTED (the SDK is not installed)
 */
export async function openClaudeAgent<S extends AgentSdk = AgentSdk>(
  directory: string,
  given: ClaudeAgentOptions<S> = {},
): Promise<ClaudeAgent<S>> {
  const { sdk, options, session, checkpoints = false, init = false, vars } = checkedOptions(given, AGENT)
  const own = (options ?? {}) as KnownOptions
  // With every query it would lead back to it, also from a fork.
  if (own.resume !== undefined)
    throw new CkptError(
      'USAGE',
      'options.resume: the session to go on with is given as `session`. Nothing was changed.',
    )
  refuseOtherConversation(own, session ?? null)
  const env = libraryEnv(vars)
  const { root } = await openWorktree(directory, { vars, init })
  const conversation = new Conversation(env, { root, recorded: checkpoints })
  const loaded = sdk ?? ((await loadSdk()) as S)
  const backend = claudeBackend(conversation, async (asked, ask) => {
    if (conversation.session === asked) await conversation.life.ended()
    const { life } = conversation
    if (life.live && conversation.session === asked) return life.asking(ask, life.live)
    return resumed(loaded, { ...optionsFor(conversation, own, null), resume: asked }, ask)
  })
  const worktree = await openWorktree(directory, { vars, backends: [backend] })
  if (session !== undefined) await conversation.adopt(session)
  return new ClaudeAgent({ sdk: loaded, options: own, conversation, backend, worktree })
}

/** Of a dry run of ckpt's own undo: it has no diff. */
const filesOf = ({ files }: ChangeInfo): Summary => ({ files: files.length, insertions: 0, deletions: 0 })

/** An optional peer: a program that does not use it need not have it. */
async function loadSdk(): Promise<AgentSdk> {
  const name: string = '@anthropic-ai/claude-agent-sdk'
  try {
    return (await import(name)) as AgentSdk
  } catch (cause) {
    throw new CkptError('UNSUPPORTED', `${name} is not installed. Nothing was changed.`, {
      hints: [`npm install ${name}`],
      cause,
    })
  }
}
