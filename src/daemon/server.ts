/** The daemon of one worktree: holds it open, watches it, and answers calls, one piece of work at a time. */
import { createServer, type Server, type Socket } from 'node:net'
import { tmpdir } from 'node:os'
import { PassThrough } from 'node:stream'
import type { Logger } from 'pino'
import {
  createMessageConnection,
  type MessageConnection,
  ResponseError,
  SocketMessageReader,
  SocketMessageWriter,
} from 'vscode-jsonrpc/node'
import { CkptError } from '../core/errors.ts'
import { type Env, errno } from '../env.ts'
import { writeFileWhole } from '../git/store.ts'
import { type Context, closeContext, openContext } from '../ops/context.ts'
import { lockedBy, readHolder, startOf, withLock } from '../ops/lock.ts'
import { AutoTurns } from './auto-turns.ts'
import { Held } from './held.ts'
import { IdleWork } from './idle.ts'
import { type DaemonInfo, infoFile, socketPath } from './place.ts'
import {
  type CliAnswer,
  type CliCall,
  changed,
  cliRequest,
  type DaemonState,
  helloRequest,
  stateRequest,
  stopRequest,
} from './protocol.ts'

export interface DaemonOptions {
  cwd: string
  version: string
  /** Runs a command line in this process; given in, for the daemon lies below the command line. */
  runCli: (argv: readonly string[], env: Env) => Promise<number>
  log: Logger
  /** Milliseconds without a call. */
  idleStop: number
  onReady?: (daemon: Daemon) => void
  onChange?: (path: string) => void
}

const UNAUTHORIZED = -32001
/** Milliseconds between two looks whether the worktree is still there. */
const HEARTBEAT = 5000

/** Runs until it is stopped. @throws CkptError LOCKED when one runs already */
export async function runDaemon(env: Env, options: DaemonOptions): Promise<void> {
  const context = await openContext(env, options.cwd, { create: true, forgiving: true })
  const directory = `${context.store.worktreeDir}/daemon`
  env.files.mkdirSync(directory, { recursive: true, mode: 0o700 })
  const lock = `${directory}/lock`
  try {
    await withLock(env, lock, { command: 'daemon', wait: 0 }, () => new Daemon(context, options).run())
  } catch (error) {
    if (!(error instanceof CkptError && error.code === 'LOCKED')) throw error
    throw new CkptError(
      'LOCKED',
      `A daemon is at work here already: ${lockedBy(readHolder(env, lock))}. No second one was started.`,
      {
        hints: ['ckpt daemon status', 'ckpt daemon stop'],
      },
    )
  } finally {
    closeContext(context)
  }
}

export class Daemon {
  readonly held: Held
  readonly #context: Context
  readonly #options: DaemonOptions
  readonly #env: Env
  readonly #token: string
  readonly #since: string
  readonly #connections = new Set<MessageConnection>()
  #queue: Promise<unknown> = Promise.resolve()
  #calls = 0
  #lastCall: number
  readonly #idle: IdleWork
  readonly #auto: AutoTurns
  #end: (() => void) | null = null

  constructor(context: Context, options: DaemonOptions) {
    this.#context = context
    this.#options = options
    this.#env = context.env
    this.#token = context.env.random(24)
    this.#since = new Date(context.env.now()).toISOString()
    this.#lastCall = context.env.monotonic()
    this.held = new Held(context)
    this.held.log = (message, details) => options.log.info(details ?? {}, message)
    const { env, store, worktree } = context
    const log = (message: string, details?: object) => options.log.info(details ?? {}, message)
    this.#idle = new IdleWork(env, { root: worktree.root, gitDir: store.gitDir, log })
    this.#auto = new AutoTurns(() => this.held.context(env), log)
    this.held.onChange = (path) => {
      options.onChange?.(path)
      this.#auto.changed((work) => this.enqueue(() => this.#autoTurn(work)))
      // Its other end may be gone already; the connection is then closed, and that is all.
      for (const connection of this.#connections)
        connection
          .sendNotification(changed, { path: Buffer.from(path, 'latin1').toString('utf8') })
          .catch(() => undefined)
    }
  }

  async run(): Promise<void> {
    const env = this.#env
    const { worktreeDir } = this.#context.store
    await this.held.start()
    const socket = socketPath(env, worktreeDir, tmpdir())
    removeIfThere(env, socket)
    const server = createServer((one) => this.#serve(one))
    await listen(server, socket)
    env.files.chmodSync(socket, 0o600)
    const info: DaemonInfo = {
      pid: env.pid,
      started: startOf(env, env.pid),
      socket,
      token: this.#token,
      version: this.#options.version,
      root: this.#context.worktree.root,
      since: this.#since,
    }
    // Before anybody is told that it is there: who is told may send a signal at once.
    const ended = this.#untilTold()
    try {
      writeFileWhole(env, infoFile(worktreeDir), `${JSON.stringify(info)}\n`)
      this.#options.log.info({ root: info.root, socket, ...this.held.state }, 'watching')
      this.#options.onReady?.(this)
      this.enqueue(() => this.#auto.record()).catch((error: unknown) =>
        this.#options.log.warn({ error: String(error) }, 'auto turns'),
      )
      await ended
    } finally {
      this.stop()
    }
    removeIfThere(env, infoFile(worktreeDir))
    server.close()
    this.#auto.stop()
    await this.#idle.interrupt()
    await this.#queue.catch(() => undefined)
    for (const connection of this.#connections) connection.dispose()
    await this.held.stop().catch((error: unknown) => this.#options.log.warn({ error: String(error) }, 'stopping'))
    removeIfThere(env, socket)
    this.#options.log.info({}, 'stopped')
  }

  stop(): void {
    this.#end?.()
  }

  /** Until `stop`, or a signal. */
  #untilTold(): Promise<void> {
    const env = this.#env
    return new Promise((resolve) => {
      const beat = setInterval(() => this.#heartbeat(), HEARTBEAT)
      const end = () => {
        clearInterval(beat)
        for (const off of stops) off()
        resolve()
      }
      const stops = [env.onSignal('SIGTERM', end), env.onSignal('SIGINT', end), env.onSignal('SIGHUP', () => undefined)]
      this.#end = end
    })
  }

  /** Stops by itself when the worktree went away, or nobody called for long. */
  #heartbeat(): void {
    const { files, monotonic } = this.#env
    const there =
      files.existsSync(this.#context.worktree.root) && files.existsSync(`${this.#context.store.gitDir}/HEAD`)
    const quiet = monotonic() - this.#lastCall
    if (!there || quiet > this.#options.idleStop) {
      this.stop()
      return
    }
    this.held.head().then(
      ({ busy }) => this.#idle.consider({ quiet, busy: busy !== null }),
      (error: unknown) => this.#options.log.warn({ error: String(error) }, 'idle'),
    )
  }

  /** Who makes turns keeps it alive. */
  async #autoTurn(work: () => Promise<boolean>): Promise<void> {
    await this.#idle.interrupt()
    if (await work()) this.#lastCall = this.#env.monotonic()
  }

  state(): DaemonState {
    const { watching, why, misses } = this.held.state
    const { version } = this.#options
    return {
      pid: this.#env.pid,
      root: this.held.root,
      version,
      since: this.#since,
      watching,
      watched: this.held.watched,
      why,
      misses,
      calls: this.#calls,
    }
  }

  #serve(socket: Socket): void {
    const connection = createMessageConnection(new SocketMessageReader(socket), new SocketMessageWriter(socket))
    this.#connections.add(connection)
    connection.onClose(() => this.#connections.delete(connection))
    connection.onError(([error]) => this.#options.log.warn({ error: String(error) }, 'connection'))
    const allowed = (token: unknown) => {
      if (token !== this.#token) throw new ResponseError(UNAUTHORIZED, 'That is not the token of this daemon.')
      this.#lastCall = this.#env.monotonic()
      this.#calls++
    }
    connection.onRequest(helloRequest, ({ token }) => {
      allowed(token)
      return { version: this.#options.version, pid: this.#env.pid, root: this.held.root }
    })
    connection.onRequest(cliRequest, (call) => {
      allowed(call.token)
      return this.enqueue(() => this.#cli(call))
    })
    connection.onRequest(stateRequest, ({ token }) => {
      allowed(token)
      return this.state()
    })
    connection.onRequest(stopRequest, ({ token }) => {
      allowed(token)
      setImmediate(() => this.stop())
      return null
    })
    connection.listen()
  }

  /** One at a time, in the order of arrival. */
  enqueue<T>(work: () => Promise<T>): Promise<T> {
    const next = this.#queue.then(work, work)
    this.#queue = next.catch(() => undefined)
    return next
  }

  /** A command line with the caller's directory and variables, and with the worktree that is held open. */
  async #cli({ argv, cwd, vars, terminal, columns }: CliCall): Promise<CliAnswer> {
    await this.#idle.interrupt()
    const out = collector(terminal, columns)
    const err = collector(terminal, columns)
    const code = await this.#options.runCli(argv, {
      ...this.#env,
      cwd,
      vars,
      held: this.held,
      stdout: out.stream,
      stderr: err.stream,
      onSignal: () => () => undefined,
    })
    return { code, stdout: out.text(), stderr: err.text() }
  }
}

function collector(isTTY: boolean, columns: number) {
  const chunks: Buffer[] = []
  const stream = Object.assign(new PassThrough(), { isTTY, columns })
  stream.write = (chunk: unknown) => {
    chunks.push(Buffer.from(String(chunk)))
    return true
  }
  return { stream, text: () => Buffer.concat(chunks).toString('utf8') }
}

function listen(server: Server, path: string): Promise<void> {
  return new Promise((resolve, reject) => {
    server.once('error', reject)
    server.listen(path, () => resolve())
  })
}

function removeIfThere(env: Env, path: string): void {
  try {
    env.files.unlinkSync(path)
  } catch (error) {
    if (errno(error) !== 'ENOENT') throw error
  }
}
