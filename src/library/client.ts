/** The same functions through the worktree's daemon, and the events of what happens there. */
import { createRequire } from 'node:module'
import { connect, type Socket } from 'node:net'
import { dirname } from 'node:path'
import {
  CancellationTokenSource,
  ConnectionError,
  createMessageConnection,
  ErrorCodes,
  type MessageConnection,
  ResponseError,
  SocketMessageReader,
  SocketMessageWriter,
} from 'vscode-jsonrpc/node'
import { onAbort, refuseCancelled } from '../core/cancel.ts'
import { CkptError, type ErrorCode } from '../core/errors.ts'
import { tell } from '../core/tell.ts'
import { workOf } from '../daemon/call.ts'
import { startDaemon } from '../daemon/life.ts'
import { type DaemonInfo, isAlive, readInfo } from '../daemon/place.ts'
import {
  type CliAnswer,
  type EventMessage,
  MAX_MESSAGE,
  type Position,
  PROTOCOL,
  REFUSED,
  type Subscribed,
  type SubscribeRequest,
  type Welcome,
} from '../daemon/protocol.ts'
import { type Env, realEnv } from '../env.ts'
import { closeContext, openContext } from '../ops/worktree/context.ts'
import { toCkptError } from '../results/errors.ts'
import type { ErrorInfo, FileActionInfo } from '../results/shapes.ts'
import { type Caller, type CallOptions, optionsOf, WorktreeFunctions } from './facade.ts'
import { checkedOptions, isSignal, isSwitch, isText, isVars } from './options.ts'
import { absolute, libraryEnv, type OpenWorktreeOptions } from './worktree.ts'

export interface ConnectOptions extends Pick<OpenWorktreeOptions, 'session' | 'vars' | 'signal'> {
  /** Starts a daemon if none runs. */
  start?: boolean | undefined
  /** Who asks, for the daemon's log. */
  client?: string | undefined
}

export interface SubscribeOptions {
  /** Go on after this event, which an earlier connection saw. */
  after?: Position | undefined
  /** Events were missed: what is shown has to be read again. Later events follow. */
  onGap?: ((at: Position) => void) | undefined
}

const OPTIONS = { session: isText, start: isSwitch, client: isText, vars: isVars, signal: isSignal }

/** Milliseconds to connect, which the kernel does, and for the first answer of a daemon that may be busy. */
const CONNECT = 2000
const FIRST_ANSWER = 10_000
/** Bytes of a message around its parameters, at most. */
const ENVELOPE = 1024

/**
 * A connection to the daemon of a worktree: the functions of `Worktree`, carried out there, and its events. To be closed.
 * A call whose connection ends, or whose daemon was stopped (SIGSTOP) for 10 s, is rejected with INTERNAL; whether it was
 * carried out is then to be seen in the timeline (a marker with a `marker` id of its own can simply be sent again).
 */
export class DaemonClient extends WorktreeFunctions {
  /** What the daemon said of itself. */
  readonly daemon: Welcome
  readonly #link: Link
  readonly #socket: Socket
  readonly #vars: Record<string, string>
  /** Counts subscriptions and their ends: what belongs to an earlier one is passed over. */
  #subscription = 0
  /** @internal */
  constructor(parts: {
    connection: MessageConnection
    socket: Socket
    token: string
    daemon: Welcome
    session: string | undefined
    vars: Env['vars']
  }) {
    const { connection, socket, token, daemon, session, vars } = parts
    const link = { connection, token, pid: daemon.pid }
    const call: Caller = (name, request, options) => ask(link, name, { params: request, ...options })
    super(daemon.root, call, session)
    this.daemon = daemon
    this.#link = link
    this.#socket = socket
    const told = Object.entries(vars).filter((one): one is [string, string] => one[1] !== undefined)
    this.#vars = Object.fromEntries(told)
  }

  /**
   * Hears of everything that happens in the worktree from now on, or from `after` on, in its order. One subscription for a
   * connection: another one takes its place. A subscriber that does not keep up is told so by the daemon; the client then
   * resumes by itself, and calls `onGap` where events are lost. What a listener throws is an uncaught exception of the
   * process, as with an EventTarget; the subscription goes on.
   * @throws CkptError USAGE, INTERNAL when the connection ended
   */
  async subscribe(listener: (message: EventMessage) => void, options: SubscribeOptions = {}): Promise<Subscribed> {
    const { after, onGap } = optionsOf(options)
    refuseNoFunction(listener, 'listener')
    if (onGap !== undefined) refuseNoFunction(onGap, 'onGap')
    const begin = (from: Position | undefined) =>
      ask<Subscribed>(this.#link, 'subscribe', {
        params: (from ? { after: { epoch: from.epoch, seq: from.seq } } : {}) satisfies SubscribeRequest,
      })
    const gap = ({ resumed, epoch, seq }: Subscribed) => {
      if (!resumed && onGap && isOurs()) tell(onGap, { epoch, seq })
    }
    const own = ++this.#subscription
    const isOurs = () => this.#subscription === own
    const behind = (at: Position) => {
      if (isOurs()) begin(at).then(gap, () => undefined) // a connection that ended is told by onClose
    }
    try {
      this.#link.connection.onNotification('event', (message: EventMessage) => {
        if (isOurs()) tell(listener, message)
      })
      this.#link.connection.onNotification('behind', behind)
    } catch (error) {
      throw refusal('subscribe', error)
    }
    const answer = await begin(after)
    if (after) gap(answer)
    return answer
  }

  /** Ends the subscription; the connection stays. */
  async unsubscribe(): Promise<void> {
    this.#subscription++
    await ask(this.#link, 'unsubscribe', { params: {} })
  }

  /**
   * Any command line of `ckpt`, with what it prints and its exit code: for what has no function here. Commands that belong
   * to a terminal (`watch`, `run`, `bisect`, `rewind`, `daemon`) are refused. `vars`: all environment variables that it is to
   * see; those of this connection unless told.
   * @throws CkptError USAGE, CANCELLED, INTERNAL
   */
  async command(
    argv: readonly string[],
    options: { cwd?: string; vars?: Record<string, string> } & CallOptions = {},
  ): Promise<CliAnswer> {
    const { cwd = this.root, vars = this.#vars, signal } = optionsOf(options)
    const params = { token: this.#link.token, argv, cwd, vars, terminal: false, columns: 80 }
    return ask<CliAnswer>(this.#link, 'cli', { params, signal })
  }

  /** Calls back when the connection ends, whoever ended it, or has ended. @throws CkptError USAGE */
  onClose(listener: () => void): void {
    refuseNoFunction(listener, 'listener')
    if (this.#socket.closed) queueMicrotask(listener)
    else this.#socket.once('close', listener)
  }

  /** Ends the connection; the daemon stays. One that nobody calls ends after `watch.idleStop`, connections or not. */
  close(): void {
    this.#link.connection.dispose()
    this.#socket.destroy()
  }
}

/**
 * Connects to the daemon of the worktree that a directory lies in.
 * @throws CkptError NOT_FOUND (none runs, and `start` was not asked for), UNSUPPORTED (it speaks another protocol),
 * BAD_ROOT, NOT_INITIALIZED, CONFIG, CANCELLED, USAGE, INTERNAL
 */
export async function connectDaemon(directory: string, options: ConnectOptions = {}): Promise<DaemonClient> {
  try {
    return await connected(directory, checkedOptions(options, OPTIONS))
  } catch (error) {
    throw toCkptError(error)
  }
}

async function connected(
  directory: string,
  { session, start = false, vars, signal, client = 'library' }: ConnectOptions,
): Promise<DaemonClient> {
  const env = libraryEnv(vars)
  refuseCancelled(signal)
  const found = findDaemon(env, absolute(env, directory), start)
  const { token, socket: path, pid } = await orCancelled(found, signal)
  const socket = await open(path)
  const connection = createMessageConnection(new SocketMessageReader(socket), new SocketMessageWriter(socket))
  connection.onError(() => socket.destroy())
  socket.on('close', () => connection.dispose())
  connection.listen()
  const params = { token, protocol: PROTOCOL, client }
  const end = () => socket.destroy()
  const late = setTimeout(end, FIRST_ANSWER) // it hangs
  const unheed = onAbort(signal, end) // nothing is asked of it yet
  try {
    const daemon = await ask<Welcome>({ connection, token, pid }, 'hello', { params })
    return new DaemonClient({ connection, socket, token, daemon, session, vars: env.vars })
  } catch (error) {
    socket.destroy()
    refuseCancelled(signal)
    throw error
  } finally {
    clearTimeout(late)
    unheed()
  }
}

/** One that is being started comes up all the same. @throws CkptError CANCELLED */
async function orCancelled<T>(work: Promise<T>, signal: AbortSignal | undefined): Promise<T> {
  let unheed = () => {}
  const cancelled = new Promise<void>((resolve) => {
    unheed = onAbort(signal, resolve)
  })
  try {
    await Promise.race([work, cancelled])
    refuseCancelled(signal)
    return await work
  } finally {
    unheed()
  }
}

async function findDaemon(env: Env, cwd: string, start: boolean): Promise<DaemonInfo> {
  const context = await openContext(env, cwd, { forgiving: true, ...(start ? { create: true } : { reading: true }) })
  try {
    if (start) {
      const home = dirname(createRequire(import.meta.url).resolve('ckpt/package.json'))
      const { version } = createRequire(import.meta.url)('ckpt/package.json') as { version: string }
      return (await startDaemon(context, { program: `${home}/bin/ckpt.js`, version })).info
    }
    const info = readInfo(env, context.store.worktreeDir)
    if (info && isAlive(env, info)) return info
    throw new CkptError('NOT_FOUND', 'No daemon runs in this worktree.', { hints: ['ckpt daemon start'] })
  } finally {
    closeContext(context)
  }
}

function open(path: string): Promise<Socket> {
  return new Promise((resolve, reject) => {
    const socket = connect(path)
    const fail = (cause: unknown) => {
      socket.destroy()
      reject(unreached(cause))
    }
    const timer = setTimeout(() => fail(new Error('it did not answer')), CONNECT)
    socket.once('error', fail)
    socket.once('connect', () => {
      clearTimeout(timer)
      socket.off('error', fail)
      socket.on('error', () => socket.destroy())
      resolve(socket)
    })
  })
}

const lost = (cause: unknown) =>
  new CkptError('INTERNAL', 'The connection to the daemon ended. What was under way may or may not have been done.', {
    hints: ['ckpt daemon status', 'ckpt list'],
    cause,
  })

/** Said where nothing but the greeting was sent. */
const unreached = (cause: unknown) =>
  new CkptError('INTERNAL', 'The daemon does not answer. Nothing was asked of it.', {
    hints: ['ckpt daemon status', 'ckpt daemon stop'],
    cause,
  })

/** Said before anything is sent. */
const ended = (cause: unknown) =>
  new CkptError('INTERNAL', 'The connection to the daemon has ended. Nothing was asked of it.', {
    hints: ['ckpt daemon status'],
    cause,
  })

interface Link {
  connection: MessageConnection
  token: string
  /** The daemon's. */
  pid: number
}

/** Milliseconds between two looks at a daemon that has not answered. */
const LOOK = 2000

/** Calls back when a process was stopped (SIGSTOP) for as long as nobody waits. Returns what ends the watch. */
function whenStopped(pid: number, listener: () => void): () => void {
  const env = realEnv()
  let stopped = 0
  const timer = setInterval(() => {
    stopped = workOf(env, pid) === 'stopped' ? stopped + LOOK : 0
    if (stopped >= FIRST_ANSWER) listener()
  }, LOOK)
  return () => clearInterval(timer)
}

async function ask<T>(
  { connection, token, pid }: Link,
  method: string,
  { params, signal }: { params: object } & CallOptions,
): Promise<T> {
  refuseCancelled(signal)
  refuseUnsendable(method, params)
  const source = new CancellationTokenSource()
  let cancel = () => {}
  let unwatch = () => {}
  let silence: NodeJS.Timeout | undefined
  const answer = new Promise<T>((resolve, reject) => {
    cancel = () => {
      source.cancel()
      // What has begun to write goes on to its end, however long; one that hangs does not even say how it is.
      silence = setTimeout(() => reject(new Error('it does not answer')), FIRST_ANSWER)
      const heard = () => clearTimeout(silence)
      const asked = async () => connection.sendRequest('state', { token }) // it throws where the connection has ended
      asked().then(heard, heard)
    }
    unwatch = whenStopped(pid, () => reject(new Error('it was stopped')))
    connection.sendRequest<T>(method, params, source.token).then(resolve, reject)
  })
  const unheed = onAbort(signal, cancel)
  try {
    return await answer
  } catch (error) {
    throw refusal(method, error)
  } finally {
    clearTimeout(silence)
    unwatch()
    unheed()
    source.dispose()
  }
}

// Not for TypeScript alone.
function refuseNoFunction(given: unknown, what: string): void {
  if (typeof given !== 'function') throw new CkptError('USAGE', `The ${what} is to be a function. Nothing was changed.`)
}

/** A message that cannot be written, or is too long to be read, would end the connection of everybody who shares it. */
function refuseUnsendable(method: string, params: object): void {
  const refuse = (why: string, cause?: unknown) =>
    new CkptError(method === 'mark' ? 'BAD_MARKER' : 'USAGE', `${method} ${why}. Nothing was changed.`, { cause })
  let text: string
  try {
    text = JSON.stringify(params)
  } catch (error) {
    throw refuse('was called with what is no JSON', error)
  }
  if (Buffer.byteLength(text) > MAX_MESSAGE - ENVELOPE)
    throw refuse(`takes at most ${MAX_MESSAGE / 2 ** 20} MiB through the daemon`)
}

/** A daemon's answer as the error that the same function throws without a daemon. */
function refusal(method: string, error: unknown): CkptError {
  if (error instanceof ConnectionError) return ended(error)
  const gone = method === 'hello' ? unreached : lost
  if (!(error instanceof ResponseError)) return gone(error)
  const { code, message, data } = error as ResponseError<unknown>
  if (code === ErrorCodes.PendingResponseRejected || code === ErrorCodes.MessageWriteError) return gone(error)
  if (code === REFUSED) {
    const {
      code: word,
      paths,
      hints,
      files,
      warnings,
    } = data as ErrorInfo & {
      files?: FileActionInfo[]
      warnings?: string[]
    }
    return new CkptError(word as ErrorCode, message, {
      ...(paths ? { paths } : {}),
      ...(hints ? { hints } : {}),
      ...(warnings ? { warnings } : {}),
      ...(files ? { detail: { files } } : {}),
      cause: error,
    })
  }
  if (code === ErrorCodes.InvalidParams) {
    return new CkptError(method === 'mark' ? 'BAD_MARKER' : 'USAGE', `${message}. Nothing was changed.`, {
      cause: error,
    })
  }
  const isOld = code === ErrorCodes.MethodNotFound || (method === 'hello' && data !== undefined)
  if (isOld)
    return new CkptError('UNSUPPORTED', message, { hints: ['ckpt daemon stop', 'ckpt daemon start'], cause: error })
  return new CkptError('INTERNAL', message, { cause: error })
}
