/** The same functions through the worktree's daemon, and the events of what happens there. */
import { connect, type Socket } from 'node:net'
import { dirname } from 'node:path'
import { createMessageConnection, type MessageConnection, SocketMessageWriter } from 'vscode-jsonrpc/node'
import { onAbort, refuseCancelled } from '../core/cancel.ts'
import { CkptError } from '../core/errors.ts'
import { tell } from '../core/tell.ts'
import { byNode, type Program, startDaemon } from '../daemon/life.ts'
import { messageReader } from '../daemon/message-reader.ts'
import { type DaemonInfo, isAlive, readInfo } from '../daemon/place.ts'
import {
  type CliAnswer,
  type EventMessage,
  type Position,
  PROTOCOL,
  type Subscribed,
  type SubscribeRequest,
  type Welcome,
} from '../daemon/protocol.ts'
import { type Env, errno } from '../env.ts'
import { closeContext, openContext } from '../ops/worktree/context.ts'
import { programInPath } from '../programs.ts'
import { toCkptError } from '../results/errors.ts'
import { type Caller, type CallOptions, WorktreeFunctions } from './facade.ts'
import { ask, FIRST_ANSWER, type Link, refusal, unreached } from './link.ts'
import { checkedOptions, isFunction, isOptions, isSignal, isSwitch, isText, isVars } from './options.ts'
import { absolute, libraryEnv, type OpenWorktreeOptions } from './worktree.ts'

export interface ConnectOptions extends Pick<OpenWorktreeOptions, 'session' | 'vars' | 'signal'> {
  /** Starts a daemon if none of this version of ckpt runs (one of another version ends for it, and who talks to that one connects anew): the program of this package, or where the library is bundled into a file of yours, the `ckpt` in PATH. */
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

/** Of {@link DaemonClient.command}. */
export interface CommandOptions {
  cwd?: string | undefined
  vars?: Readonly<Record<string, string | undefined>> | undefined
}

interface Subscription {
  hear: (message: EventMessage) => void
  behind: (at: Position) => void
}

const textsOf = (vars: Env['vars']): Record<string, string> =>
  Object.fromEntries(Object.entries(vars).filter((one): one is [string, string] => one[1] !== undefined))

const OPTIONS = { session: isText, start: isSwitch, client: isText, vars: isVars, signal: isSignal }

/** Milliseconds to connect, which the kernel does. */
const CONNECT = 2000

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
  /** The one that hears: what belongs to another one is passed over. */
  #subscription: Subscription | null = null
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
    this.#vars = textsOf(vars)
  }

  /**
   * Hears of everything that happens in the worktree from now on, or from `after` on, in its order. One subscription for a
   * connection: another one takes its place. A subscriber that does not keep up is told so by the daemon; the client then
   * resumes by itself, and calls `onGap` where events are lost. What a listener throws is an uncaught exception of the
   * process, as with an EventTarget; the subscription goes on.
   * @throws CkptError USAGE, INTERNAL when the connection ended
   */
  async subscribe(listener: (message: EventMessage) => void, options: SubscribeOptions = {}): Promise<Subscribed> {
    const { after, onGap } = checkedOptions(options, { after: isOptions, onGap: isFunction })
    refuseNoFunction(listener, 'listener')
    // Each follows the one before it. What does not was on its way to the subscription whose place this one takes.
    let next: number | null = null
    const early: EventMessage[] = []
    const hear = (message: EventMessage) => {
      if (!isOurs()) return
      if (next === null) early.push(message)
      else if (message.seq === next) {
        next++
        tell(listener, message)
      }
    }
    const begin = async (from: Position | undefined) => {
      next = null
      const answer = await ask<Subscribed>(this.#link, 'subscribe', {
        params: (from ? { after: { epoch: from.epoch, seq: from.seq } } : {}) satisfies SubscribeRequest,
      })
      next = answer.seq + 1
      for (const message of early.splice(0)) hear(message)
      return answer
    }
    const gap = ({ resumed, epoch, seq }: Subscribed) => {
      if (!resumed && onGap && isOurs()) tell(onGap, { epoch, seq })
    }
    const behind = (at: Position) => {
      if (isOurs()) begin(at).then(gap, () => undefined) // a connection that ended is told by onClose
    }
    const own: Subscription = { hear, behind }
    const isOurs = () => this.#subscription === own
    const before = this.#subscription
    this.#listen(own)
    try {
      const answer = await begin(after)
      if (after) gap(answer)
      return answer
    } catch (error) {
      // The one before it goes on, with what came meanwhile.
      if (isOurs()) {
        this.#subscription = before
        for (const message of early) before?.hear(message)
      }
      throw error
    }
  }

  #listen(subscription: Subscription): void {
    const { connection } = this.#link
    try {
      if (this.#subscription === null) {
        connection.onNotification('event', (message: EventMessage) => this.#subscription?.hear(message))
        connection.onNotification('behind', (at: Position) => this.#subscription?.behind(at))
      }
    } catch (error) {
      throw refusal('subscribe', error)
    }
    this.#subscription = subscription
  }

  /** Ends the subscription; the connection stays. @throws CkptError INTERNAL where that has ended */
  async unsubscribe(): Promise<void> {
    this.#subscription = null
    await ask(this.#link, 'unsubscribe', { params: {} })
  }

  /**
   * Any command line of `ckpt`, with what it prints and its exit code: for what has no function here. Commands that belong
   * to a terminal (`watch`, `run`, `bisect`, `rewind`, `daemon`) are refused. `vars`: all environment variables that it is to
   * see; those of this connection unless told. `cwd`: where it runs; the root of the worktree unless told.
   * @throws CkptError USAGE, CANCELLED, INTERNAL
   */
  async command(argv: readonly string[], options: CommandOptions & CallOptions = {}): Promise<CliAnswer> {
    const { cwd = this.root, vars, signal } = checkedOptions(options, { cwd: isText, vars: isVars, signal: isSignal })
    const seen = vars ? textsOf(vars) : this.#vars
    const params = { token: this.#link.token, argv, cwd, vars: seen, terminal: false, columns: 80 }
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
  const find = () => orCancelled(findDaemon(env, absolute(env, directory), start), signal)
  let found = await find()
  const socket = await open(found.socket).catch(async (error: unknown) => {
    if (!start) throw error
    found = await find() // one that ended in this very moment is there no more
    return open(found.socket)
  })
  const { token, pid } = found
  const connection = createMessageConnection(messageReader(socket), new SocketMessageWriter(socket))
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

/** Of the package that this is part of; in a program's bundle, which has no package, what a shell finds. @throws CkptError NOT_FOUND */
function findProgram(env: Env): Program {
  // An import would tell bundlers more than is meant; a CommonJS bundle has no URL.
  const own = process.getBuiltinModule('node:module').createRequire(import.meta.url ?? __filename)
  try {
    const { version } = own('ckpt/package.json') as { version: string }
    return { command: byNode(env, `${dirname(own.resolve('ckpt/package.json'))}/bin/ckpt.js`), version }
  } catch (error) {
    if (errno(error) !== 'MODULE_NOT_FOUND') throw error
  }
  const found = programInPath(env, 'ckpt')
  if (found !== null) return { command: [found], version: null }
  throw new CkptError(
    'NOT_FOUND',
    'No daemon was started: the program `ckpt` is not in PATH, nor a package beside this.',
    {
      hints: ['npm install -g ckpt'],
    },
  )
}

async function findDaemon(env: Env, cwd: string, start: boolean): Promise<DaemonInfo> {
  const context = await openContext(env, cwd, { forgiving: true, ...(start ? { create: true } : { reading: true }) })
  try {
    if (start) return (await startDaemon(context, findProgram(env))).info
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
      clearTimeout(timer)
      socket.destroy()
      reject(unreached(cause))
    }
    let isConnected = false
    const late = () => isConnected || fail(new Error('it did not answer'))
    // Of a process that was busy itself the clock runs out before what came meanwhile is seen.
    const timer = setTimeout(() => setImmediate(late), CONNECT)
    socket.once('error', fail)
    socket.once('connect', () => {
      isConnected = true
      clearTimeout(timer)
      socket.off('error', fail)
      socket.on('error', () => socket.destroy())
      resolve(socket)
    })
  })
}

// Not for TypeScript alone.
function refuseNoFunction(given: unknown, what: string): void {
  if (typeof given !== 'function') throw new CkptError('USAGE', `The ${what} is to be a function. Nothing was changed.`)
}
