/** The functions of a worktree, whoever carries the calls out: this process, or the worktree's daemon. */
import type { MethodName, Methods } from '../calls/methods.ts'
import type * as Requests from '../calls/requests.ts'
import { CkptError } from '../core/errors.ts'
import type * as Shapes from '../results/shapes.ts'

/** What every function takes beside its own options, but for a subscription, which `unsubscribe` ends, and the rewind menu, which a person leaves. */
export interface CallOptions {
  /**
   * Cancels the call until it begins to write; then it goes on to its end, for half of it would be worse. A cancelled call
   * is rejected with CkptError CANCELLED, and has changed nothing. One to a daemon that hangs is rejected with INTERNAL ten
   * seconds after it was cancelled: what it was about may or may not be done.
   */
  signal?: AbortSignal | undefined
}

/** Options of a function, without what it takes by place. */
export type Options<T, Placed extends keyof T = never> = Omit<T, Placed> & CallOptions

export type Caller = <M extends MethodName>(
  name: M,
  request: Methods[M]['takes'],
  options: CallOptions,
) => Promise<Methods[M]['gives']>

/** `placed`: what the function takes by place. */
type Ask = <M extends MethodName, P extends keyof Methods[M]['takes'] = never>(
  name: M,
  options: Omit<Methods[M]['takes'], P> & CallOptions,
  placed?: Pick<Methods[M]['takes'], P>,
) => Promise<Methods[M]['gives']>

/** Where no session is named, this one is meant. */
function asker(call: Caller, session: string | undefined): Ask {
  return async (name, options, placed) => {
    const { signal, ...given } = optionsOf<CallOptions>(options)
    const request = taken({ ...given, ...placed }) as Methods[typeof name]['takes']
    return call(name, session === undefined ? request : withSession(name, request, session), { signal })
  }
}

/** As it is now: what a list is changed to after the call is none of it. What cannot be copied is refused where it is looked at. */
function taken<T>(request: T): T {
  try {
    return structuredClone(request)
  } catch {
    return request
  }
}

/** @internal What plain JavaScript gives may be anything; null is as good as none. @throws CkptError USAGE */
export function optionsOf<T extends object>(given: T): T {
  if (typeof given !== 'object' || Array.isArray(given))
    throw new CkptError('USAGE', 'Options are given as one object. Nothing was changed.')
  const options = given ?? {}
  const { signal } = options as CallOptions
  if (signal !== undefined && typeof signal?.addEventListener !== 'function')
    throw new CkptError('USAGE', 'A signal is an AbortSignal. Nothing was changed.')
  return options
}

const SESSIONLESS: readonly MethodName[] = ['snapshots.track', 'snapshots.cleanup', 'sessions.list', 'apply']

function withSession<T extends object>(name: MethodName, request: T, session: string): T {
  const named = 'session' in request && request.session !== undefined
  return named || SESSIONLESS.includes(name) ? request : { ...request, session }
}

/**
 * Recorded states of the worktree, with or without an agent. Ids are checkpoints (a prefix of at least 4 hex digits
 * serves), turns (`3`), steps (`3.2`), or `3:before` and `3:after`. Paths are relative to the worktree's root.
 */
export class Snapshots {
  readonly #ask: Ask
  /** @internal */
  constructor(ask: Ask) {
    this.#ask = ask
  }

  /**
   * Records the worktree as it is now, in session `manual`: `ckpt snapshot`.
   * @throws CkptError LOCKED, DAMAGED, CANCELLED
   */
  track(options: Options<Requests.TrackRequest> = {}): Promise<Shapes.MarkInfo> {
    return this.#ask('snapshots.track', options)
  }

  /**
   * The paths that differ now from a checkpoint: `ckpt diff FROM worktree --name-only`. `revert` puts them back.
   * @throws CkptError NOT_FOUND, USAGE
   */
  patch(from: string, options: Options<Requests.PatchRequest, 'from'> = {}): Promise<Shapes.PatchInfo> {
    return this.#ask('snapshots.patch', options, { from })
  }

  /**
   * Puts the paths of a patch back as its checkpoint has them, and deletes those that it provably does not have:
   * `ckpt restore FROM --exact -- PATHS`. What changed since the worktree's newest checkpoint is a CONFLICT unless `force`.
   * @throws CkptError CONFLICT (then nothing was written), NOT_FOUND, GIT_BUSY, LOCKED, CANCELLED
   */
  revert(
    patch: Requests.RevertPatchRequest['patch'],
    options: Options<Requests.RevertPatchRequest, 'patch'> = {},
  ): Promise<Shapes.ChangeInfo> {
    return this.#ask('snapshots.revert', options, { patch: patch && { from: patch.from, files: patch.files } })
  }

  /**
   * Brings files of any checkpoint back: `ckpt restore ID`. Deletes nothing without `exact`.
   * @throws CkptError CONFLICT (then nothing was written), NOT_FOUND, GIT_BUSY, LOCKED, CANCELLED
   */
  restore(id: string, options: Options<Requests.RestoreRequest, 'id'> = {}): Promise<Shapes.ChangeInfo> {
    return this.#ask('snapshots.restore', options, { id })
  }

  /**
   * What lies between two states, as a list and as a unified patch: `ckpt diff FROM TO`. Without ids: what the last turn
   * did, or with a session, also that of `openWorktree`, all that it did, with its checkpoints; with one: what that turn
   * did, or a checkpoint against its parent. `to` may be `worktree`.
   * @throws CkptError NOT_FOUND, USAGE, UNSUPPORTED
   */
  diff(
    from?: string,
    to?: string,
    options: Options<Requests.DiffRequest, 'from' | 'to'> = {},
  ): Promise<Shapes.DiffInfo> {
    return this.#ask('snapshots.diff', options, { from, to })
  }

  /**
   * The same with the whole text of each file before and after, for a viewer of its own; binary files have none.
   * @throws CkptError NOT_FOUND, USAGE, UNSUPPORTED
   */
  diffFull(
    from?: string,
    to?: string,
    options: Options<Requests.DiffRequest, 'from' | 'to'> = {},
  ): Promise<Shapes.FullDiffInfo> {
    return this.#ask('snapshots.diffFull', options, { from, to })
  }

  /**
   * Removes abandoned turns past their grace, then what is over the limits: `ckpt prune`.
   * @throws CkptError USAGE, LOCKED, DAMAGED, CANCELLED
   */
  cleanup(options: Options<Requests.CleanupRequest> = {}): Promise<Shapes.PruneInfo> {
    return this.#ask('snapshots.cleanup', options)
  }
}

/** What is undone in a session, and undo and redo of it. The session is the one of the newest turn marker unless told. */
export class Sessions {
  readonly #ask: Ask
  /** @internal */
  constructor(ask: Ask) {
    this.#ask = ask
  }

  /** Every session of the worktree, the newest first: `ckpt list --sessions`. */
  async list(options: CallOptions = {}): Promise<Shapes.SessionInfo[]> {
    return (await this.#ask('sessions.list', options)).sessions
  }

  /**
   * A session and what is undone in it. It is read from the store each time: the same after a reconnect, a restart, or in
   * another process.
   * @throws CkptError NOT_FOUND, USAGE (a prefix that fits several)
   */
  getSessionInfo(session?: string, options: CallOptions = {}): Promise<Shapes.SessionDetails> {
    return this.#ask('sessions.getSessionInfo', options, { session })
  }

  /**
   * Takes turns back, the last visible one unless told; they stay hidden until the session goes on: `ckpt undo`.
   * @throws CkptError NOTHING_TO_UNDO, NOT_FOUND (no such session or id), CONFLICT (then nothing was written), TURN_RUNNING,
   * BOUNDARY_PENDING, UNSUPPORTED, GIT_BUSY, LOCKED, CANCELLED
   */
  undo(options: Options<Requests.UndoRequest> = {}): Promise<Shapes.ChangeInfo> {
    return this.#ask('sessions.undo', options)
  }

  /**
   * Brings undone turns back, one unless told: `ckpt redo`.
   * @throws CkptError NOTHING_TO_REDO, NOT_FOUND (no such session), CONFLICT (then nothing was written), TURN_RUNNING,
   * UNSUPPORTED, GIT_BUSY, LOCKED, CANCELLED
   */
  redo(options: Options<Requests.RedoRequest> = {}): Promise<Shapes.ChangeInfo> {
    return this.#ask('sessions.redo', options)
  }

  /**
   * Back to before a message, or before a part (tool call) of it: `ckpt undo --to`. Where more than that is undone, forward
   * to the message; a part that is undone is NOTHING_TO_UNDO. A message's own id wins over a turn's number that looks like it.
   * @throws CkptError NOT_FOUND, NOTHING_TO_UNDO, and what undo and redo throw
   */
  revert(
    messageId: string,
    partId?: string,
    options: Options<Requests.RevertRequest, 'messageId' | 'partId'> = {},
  ): Promise<Shapes.ChangeInfo> {
    return this.#ask('sessions.revert', options, { messageId, partId })
  }

  /** Brings everything back that is undone: `ckpt redo --all`. @throws CkptError as redo does */
  unrevert(options: Options<Requests.UnrevertRequest> = {}): Promise<Shapes.ChangeInfo> {
    return this.#ask('sessions.unrevert', options)
  }

  /**
   * Keeps the undone state; hidden turns become abandoned: `ckpt accept`. Nothing to do is no error.
   * @throws CkptError NOT_FOUND (no such session), LOCKED, DAMAGED, CANCELLED
   */
  cleanupRevertedHistory(options: Options<Requests.SessionRequest> = {}): Promise<Shapes.AcceptInfo> {
    return this.#ask('sessions.cleanupRevertedHistory', options)
  }

  /** What a session can do: `ckpt capabilities`. An unknown session has what the default backend can. */
  capabilities(session?: string, options: CallOptions = {}): Promise<Shapes.CapabilitiesInfo> {
    return this.#ask('sessions.capabilities', options, { session })
  }

  /**
   * Says whose a session is (null: the default backend's); kept with the worktree. Where nobody has opened a backend of that
   * name it is the default backend's.
   * @throws CkptError BAD_MARKER (no id of a session), USAGE (an empty one, no name of a backend), LOCKED, DAMAGED
   */
  async setBackend(session: string, backend: string | null, options: CallOptions = {}): Promise<void> {
    await this.#ask('sessions.setBackend', options, { session, backend })
  }
}

/** The functions of one worktree. */
export class WorktreeFunctions {
  /** The worktree's top directory, absolute. */
  readonly root: string
  readonly snapshots: Snapshots
  readonly sessions: Sessions
  readonly #ask: Ask

  /** @internal */
  constructor(root: string, call: Caller, session: string | undefined) {
    this.root = root
    this.#ask = asker(call, session)
    this.snapshots = new Snapshots(this.#ask)
    this.sessions = new Sessions(this.#ask)
  }

  /**
   * Records a marker: a turn starts, a step is done, a turn ends: `ckpt mark`. Resolves when the checkpoint would survive a
   * kill of the process.
   * @throws CkptError BAD_MARKER, NOT_FOUND (a step or stop in a session without any turn), LOCKED, DAMAGED, CANCELLED
   */
  mark(marker: Requests.MarkRequest, options: CallOptions = {}): Promise<Shapes.MarkInfo> {
    return this.#ask('mark', options, marker)
  }

  /** Turns, newest first: `ckpt list`. @throws CkptError NOT_FOUND, USAGE */
  turns(options: Options<Requests.TurnsRequest> = {}): Promise<Shapes.TurnList> {
    return this.#ask('turns', options)
  }

  /** One turn or checkpoint, whole: `ckpt show ID`. @throws CkptError NOT_FOUND, USAGE */
  show(id: string, options: Options<Requests.ShowRequest, 'id'> = {}): Promise<Shapes.ShowInfo> {
    return this.#ask('show', options, { id })
  }

  /**
   * Moves the worktree to any branch of a session's tree, abandoned ones included; the session goes on there:
   * `ckpt switch ID`. The whole tree: files that the newest checkpoint has and that branch provably had not go too, whoever
   * made them; a safety checkpoint keeps them.
   * @throws CkptError NOT_FOUND, CONFLICT, BOUNDARY_PENDING, TURN_RUNNING, UNSUPPORTED, GIT_BUSY, LOCKED, CANCELLED
   */
  switchTo(id: string, options: Options<Requests.SwitchRequest, 'id'> = {}): Promise<Shapes.ChangeInfo> {
    return this.#ask('switchTo', options, { id })
  }

  /**
   * Carries out exactly what a dry run planned: `ckpt apply TOKEN`.
   * @throws CkptError CONFLICT (it no longer holds), USAGE (no token), and what undo, redo and restore throw
   */
  apply(token: string, options: CallOptions = {}): Promise<Shapes.ChangeInfo> {
    return this.#ask('apply', options, { token })
  }
}
