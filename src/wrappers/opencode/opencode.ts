/**
 * OpenCode's own undo, through its running server. Nothing is kept here: each call asks the server, so that what its own
 * client did is seen as well.
 */
import { setTimeout as pause } from 'node:timers/promises'
import type { Backend, How } from '../../backends/backend.ts'
import { withCapabilities } from '../../core/capabilities.ts'
import { CkptError } from '../../core/errors.ts'
import type { SessionId } from '../../core/ids.ts'
import {
  type OwnSession,
  type OwnStep,
  type OwnTurn,
  placeAfterRedo,
  placeToUndo,
  visibleOwnTurns,
} from '../../core/own-session.ts'
import { pathToText, printable, shown } from '../../core/paths.ts'
import type { ToldAction } from '../../core/plan.ts'
import { areTexts, checkedOptions, isFunction, isText, isVars } from '../../library/options.ts'
import { absolute, libraryEnv, openWorktree } from '../../library/worktree.ts'
import type { ChangeResult } from '../../ops/change/change.ts'
import type { RedoOptions } from '../../ops/change/redo.ts'
import type { UndoOptions } from '../../ops/change/undo.ts'
import type { DiffResult } from '../../ops/history/diff.ts'
import { type Context, uncancelled } from '../../ops/worktree/context.ts'
import { ownChange, toldPath } from '../own-change.ts'
import { actionsBetween } from '../patch.ts'
import { maybeChanged, saveFirst } from '../safety.ts'
import { type Follower, type FollowOptions, follow } from './events.ts'
import { isBinary, Server, type ServerFileDiff, type ServerPlace } from './http.ts'
import { changedOnTheWay, ownSession } from './own.ts'

const CAN = withCapabilities([
  'supportsUndo',
  'supportsRedo',
  'supportsStepUndo',
  'supportsDiff',
  'supportsReconnect',
  'supportsCommands',
  'supportsPermissionRequests',
  'supportsQuestionPrompts',
  'supportsModelSelection',
  'supportsPartialStreaming',
])

/** Milliseconds for a session to come to rest after it was aborted, and between two looks. */
const REST = 10_000
const LOOK = 50
/** Milliseconds for the diff of a turn that has just ended. */
const SUMMARY = 2000

export interface OpenCodeOptions extends ServerPlace {
  /** Environment variables; those of the process unless told. */
  vars?: Readonly<Record<string, string | undefined>> | undefined
}

const isAddress = (value: unknown) =>
  typeof value === 'string' && /^https?:/i.test(value) && URL.canParse(value)
    ? null
    : 'an address: http://127.0.0.1:4096'
const OPTIONS = { url: isAddress, directory: isText, headers: isVars, vars: isVars }
const FOLLOW = { listener: isFunction, sessions: areTexts, onError: isFunction, worktree: isText }

/** One worktree on one OpenCode server. */
export class OpenCode {
  /** For `openWorktree({ backends })`. */
  readonly backend: Backend
  readonly #options: OpenCodeOptions
  readonly #server: Server

  /** @throws CkptError USAGE */
  constructor(given: OpenCodeOptions) {
    const options = checkedOptions(given, OPTIONS)
    if (options.url === undefined || options.directory === undefined)
      throw new CkptError(
        'USAGE',
        'Which server, and for which directory? url and directory say so. Nothing was changed.',
      )
    this.#options = { ...options, directory: absolute(libraryEnv(options.vars), options.directory) }
    this.#server = new Server(this.#options)
    this.backend = {
      name: 'opencode',
      capabilities: () => CAN,
      read: (context, session) => readFrom(this.#asked(context), session),
      undo: (...given) => this.#undo(...given),
      redo: (...given) => this.#redo(...given),
      diff: (context, session, turn) => diffOf(this.#asked(context), session, turn),
    }
  }

  /** From now on undo and redo of this session go through the server; kept with the worktree. */
  async attach(session: string): Promise<void> {
    const { directory, vars } = this.#options
    const worktree = await openWorktree(directory, { vars })
    await worktree.sessions.setBackend(session, this.backend.name)
  }

  /**
   * Hears of what happens in the directory's sessions as ckpt's own events, whoever did it. To be closed.
   * @throws CkptError USAGE, INTERNAL (the server does not answer), NOT_FOUND (it has no such session)
   */
  async subscribe(given: FollowOptions): Promise<Follower> {
    const options = checkedOptions(given, FOLLOW)
    if (options.listener === undefined)
      throw new CkptError('USAGE', 'Who listens? `listener` is told of the events. Nothing was changed.')
    return follow(this.#server, (session) => readFrom(this.#server, session as SessionId), options)
  }

  /** The server, for what the call's signal cancels. */
  #asked({ env }: Context): Server {
    return new Server(this.#options, env.signal)
  }

  async #undo(given: Context, options: UndoOptions, { arrived }: How): Promise<ChangeResult> {
    const { context, before, place } = await this.#resting(given, options, async (own, server) => {
      const found = placeToUndo(own, options)
      if (found.step && found.step.number > 1) await refuseWider(server, own.session, found.step)
      return found
    })
    const { turn, step } = place
    const boundary = {
      turn: turn.number,
      step: step?.number ?? null,
      messageId: turn.messageId,
      partId: step?.id ?? null,
    }
    const told = { before, messageId: turn.messageId, restoredPrompt: turn.text, arrived }
    if (options.dryRun) {
      context.warnings.push('OpenCode does not say beforehand which files a revert would change.')
      const after = { ...before, boundary }
      return ownChange(context, { ...told, after, dryRun: true, files: [], safety: null })
    }
    const safety = await saveFirst(context, `before OpenCode's undo of turn ${turn.number}`)
    const to = step ? { messageID: step.messageId, partID: step.id } : { messageID: turn.messageId }
    const after = await this.#after(before.session, safety, () => this.#server.revert(before.session, to))
    if (!after.boundary)
      throw maybeChanged(`OpenCode shows nothing undone in session ${printable(before.session)}.`, 'OpenCode', safety)
    return ownChange(context, { ...told, ...changeOf(context, before, after), after, safety })
  }

  async #redo(given: Context, options: RedoOptions, { arrived }: How): Promise<ChangeResult> {
    const resting = await this.#resting(given, options, async (own) => placeAfterRedo(own, options))
    const { context, before, place: next } = resting
    const told = { before, messageId: null, restoredPrompt: null, arrived }
    if (options.dryRun) {
      context.warnings.push('OpenCode does not say beforehand which files a revert would change.')
      const boundary = next && { turn: next.number, step: null, messageId: next.messageId, partId: null }
      const after = { ...before, boundary }
      return ownChange(context, { ...told, after, dryRun: true, files: [], safety: null })
    }
    const safety = await saveFirst(context, "before OpenCode's redo")
    const after = await this.#after(before.session, safety, () =>
      next ? this.#server.revert(before.session, { messageID: next.messageId }) : this.#server.unrevert(before.session),
    )
    return ownChange(context, { ...told, ...changeOf(context, before, after), after, safety })
  }

  /** The session once the server has changed files. */
  async #after(session: SessionId, safety: string | null, change: () => Promise<unknown>): Promise<OwnSession> {
    try {
      await change()
      return await readFrom(this.#server, session)
    } catch (error) {
      throw maybeChanged(error, 'OpenCode', safety)
    }
  }

  /**
   * The session at rest, and the place in it that is meant. A busy one is aborted first, for the server reverts none that is
   * at work; what is refused is refused before that, so that nothing was changed. From there on nothing is cancelled.
   */
  async #resting<T>(
    context: Context,
    { session: wanted, dryRun = false }: { session?: string; dryRun?: boolean },
    placeIn: (own: OwnSession, server: Server) => Promise<T>,
  ): Promise<{ context: Context; before: OwnSession; place: T }> {
    const session = wanted as SessionId
    const asked = this.#asked(context)
    let before = await readFrom(asked, session)
    const place = await placeIn(before, asked)
    if (before.state === 'idle' || dryRun) return { context, before, place }
    await this.#server.abort(session)
    for (let waited = 0; waited < REST; waited += LOOK) {
      await pause(LOOK)
      before = await readFrom(this.#server, session)
      // The turn may have gone on until the abort.
      if (before.state === 'idle')
        return { context: uncancelled(context), before, place: await placeIn(before, this.#server) }
    }
    throw new CkptError(
      'TURN_RUNNING',
      `Session ${printable(session)} was told to stop, and goes on all the same. No file was changed.`,
    )
  }
}

async function readFrom(server: Server, session: SessionId): Promise<OwnSession> {
  const [found, messages, busy] = await Promise.all([
    server.session(session),
    server.messages(session),
    server.isBusy(session),
  ])
  return ownSession(found, messages, { busy })
}

/**
 * The server takes a part for the whole turn where nothing but it would be left out of its message. Measured with 1.18.33.
 * @throws CkptError UNSUPPORTED
 */
async function refuseWider(server: Server, session: SessionId, { id, messageId, number }: OwnStep): Promise<void> {
  const message = (await server.messages(session)).find(({ info }) => info.id === messageId)
  const at = message?.parts.findIndex((part) => part.id === id)
  if (message?.parts.slice(0, at).some(({ type }) => type === 'text' || type === 'tool')) return
  throw new CkptError(
    'UNSUPPORTED',
    `Step ${number} is the first part of its message, and OpenCode would undo the whole turn for it. Nothing was changed.`,
    { hints: ['ckpt undo'] },
  )
}

async function diffOf(server: Server, session: SessionId, wanted: number | null): Promise<DiffResult> {
  const own = await readFrom(server, session)
  const turn = wanted === null ? visibleOwnTurns(own).at(-1) : own.turns.find(({ number }) => number === wanted)
  if (!turn)
    throw new CkptError(
      'NOT_FOUND',
      `Session ${printable(session)} has no turn${wanted === null ? '' : ` ${wanted}`}.`,
      {
        hints: ['ckpt list'],
      },
    )
  const found = await wholeDiff(server, session, turn)
  return {
    from: `${turn.number}:before`,
    to: `${turn.number}:after`,
    files: found.map((file) => ({
      path: toldPath(file.file ?? ''),
      status: file.status ?? 'modified',
      insertions: file.additions,
      deletions: file.deletions,
      binary: isBinary(file),
    })) as DiffResult['files'],
    patch: found.map(({ patch = '' }) => patch).join(''),
    warnings: [],
  }
}

/** The server works it out anew after each of the model's steps, in its own time. */
async function wholeDiff(
  server: Server,
  session: SessionId,
  { messageId, endedAt }: OwnTurn,
): Promise<ServerFileDiff[]> {
  const changed = changedOnTheWay(await server.messages(session), messageId)
  const until = Math.min(endedAt === null ? Infinity : Date.parse(endedAt), Date.now()) + SUMMARY
  for (;;) {
    const found = await server.diff(session, messageId)
    const isWhole = changed.every((path) => found.some(({ file }) => file !== undefined && path.endsWith(`/${file}`)))
    // What came and went again is in no diff: a turn that ended a while ago is not waited for.
    if (isWhole || Date.now() >= until) return found
    await pause(LOOK)
  }
}

/** Both diffs are against the state before the first undo. */
function changeOf({ env, worktree, warnings }: Context, before: OwnSession, after: OwnSession) {
  const [was, is] = [before.boundary ? before.diff : '', after.boundary ? after.diff : '']
  const files = actionsBetween(was, is).map((one): ToldAction => {
    const isLeft = one.action === 'delete' && env.files.existsSync(`${worktree.root}/${pathToText(one.path)}`)
    return isLeft ? { path: one.path, action: 'skip', reason: 'OpenCode left it' } : one
  })
  const left = files.filter(({ action }) => action === 'skip').map(({ path }) => shown(path))
  // Measured with 1.18.33: its unrevert writes files back, and deletes none.
  if (left.length > 0) warnings.push(`OpenCode did not delete again: ${left.join(', ')}.`)
  return { dryRun: false, files }
}

/** The undo of a running OpenCode server, for one worktree. @throws CkptError USAGE */
export function openCode(options: OpenCodeOptions): OpenCode {
  return new OpenCode(options)
}
