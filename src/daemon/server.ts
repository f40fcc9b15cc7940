/** The daemon of one worktree: holds it open, watches it, and answers calls, one piece of work at a time. */
import { createServer, type Server, type Socket } from 'node:net'
import { tmpdir } from 'node:os'
import type { Logger } from 'pino'
import { ErrorCodes, ResponseError } from 'vscode-jsonrpc/node'
import type { Backends } from '../backends/backends.ts'
import { CkptError } from '../core/errors.ts'
import { type Env, inputOf, telling } from '../env.ts'
import { removeIfThere, writeFileWhole } from '../git/whole-file.ts'
import { type Context, closeContext, openContext } from '../ops/context.ts'
import { lockedBy, readHolder, startOf, withLock } from '../ops/lock.ts'
import { AutoTurns } from './auto-turns.ts'
import { ROUTED } from './client.ts'
import { collector } from './collector.ts'
import { type Client, checkParams, serveClient } from './connection.ts'
import { Events } from './events.ts'
import { Held } from './held.ts'
import { type HookCall, HookDoor } from './hook-door.ts'
import { IdleWork } from './idle.ts'
import { type DaemonInfo, infoFile } from './place.ts'
import * as protocol from './protocol.ts'
import * as schema from './protocol-schema.ts'
import { socketPath } from './socket-path.ts'

export interface DaemonOptions {
  cwd: string
  version: string
  /** Runs a command line in this process; given in, for the daemon lies below the command line. */
  runCli: (argv: readonly string[], env: Env) => Promise<number>
  /** The same for an agent's hook, which gives what the agent is to see. */
  runHook: (env: Env, call: HookCall & { arrived: number }) => Promise<string | null>
  backends: Backends
  log: Logger
  /** Milliseconds without a call. */
  idleStop: number
  onReady?: (daemon: Daemon) => void
  onChange?: (path: string) => void
}

/** They belong to a terminal, or stay. */
const NOT_HERE = new Set(['watch', 'daemon', 'run', 'bisect', 'rewind'])
/** They may be the first on a connection. */
const WITH_TOKEN = new Set(['hello', 'cli', 'state', 'stop', 'notice'])
/** Connections at once; a client that gets none does its work itself. */
const MOST_CLIENTS = 256
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
  /** After each piece of work. */
  onWorked: () => void = () => undefined
  readonly #context: Context
  readonly #options: DaemonOptions
  readonly #env: Env
  readonly #token: string
  readonly #since: string
  readonly #clients = new Set<Client>()
  readonly #events: Events
  #queue: Promise<unknown> = Promise.resolve()
  #calls = 0
  #lastCall: number
  readonly #idle: IdleWork
  readonly #auto: AutoTurns
  readonly #door: HookDoor
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
    this.#events = new Events(context, (error) => options.log.warn({ error: String(error) }, 'events'))
    const { env, store, worktree } = context
    const log = (message: string, details?: object) => options.log.info(details ?? {}, message)
    this.#idle = new IdleWork(env, { root: worktree.root, gitDir: store.gitDir, log })
    this.#auto = new AutoTurns(() => this.held.context(env), log)
    this.#door = new HookDoor(env, { worktreeDir: store.worktreeDir, carryOut: (call) => this.#hook(call), log })
    this.held.others = () => this.#queue
    this.held.onChange = (path) => {
      options.onChange?.(path)
      this.#auto.changed((work) => this.enqueue(() => this.#autoTurn(work)))
    }
  }

  async run(): Promise<void> {
    await import('./methods.ts') // now: the files may be another version's by the time they are needed
    const socket = socketPath(this.#env, this.#context.store.worktreeDir, tmpdir())
    const server = createServer((one) => this.#serve(one))
    let deaf = () => {}
    try {
      await this.#open(server, socket)
      // Before anybody is told that it is there: who is told may send a signal at once.
      const told = this.#untilTold()
      deaf = told.deaf
      this.#tell(socket)
      await told.ended
    } finally {
      await this.#close(server, socket)
      deaf()
    }
  }

  async #open(server: Server, socket: string): Promise<void> {
    await this.held.start()
    removeIfThere(this.#env, socket)
    await listen(server, socket)
    this.#env.files.chmodSync(socket, 0o600)
    await this.#door.open()
  }

  #tell(socket: string): void {
    const env = this.#env
    const { log, version, onReady } = this.#options
    const info: DaemonInfo = {
      pid: env.pid,
      started: startOf(env, env.pid),
      socket,
      token: this.#token,
      version,
      root: this.#context.worktree.root,
      since: this.#since,
    }
    writeFileWhole(env, infoFile(this.#context.store.worktreeDir), `${JSON.stringify(info)}\n`)
    log.info({ root: info.root, socket, ...this.held.state }, 'watching')
    onReady?.(this)
    this.enqueue(() => this.#auto.record()).catch((error: unknown) => log.warn({ error: String(error) }, 'auto turns'))
  }

  /** All that was opened, also when only a part of it was: what stays open keeps the process. A failure hides no other. */
  async #close(server: Server, socket: string): Promise<void> {
    const { log } = this.#options
    const parts = [
      () => this.stop(),
      () => removeIfThere(this.#env, infoFile(this.#context.store.worktreeDir)),
      () => this.#door.close(),
      () => server.close(),
      () => this.#auto.stop(),
      () => this.#idle.interrupt(),
      () => this.#queue.catch(() => undefined),
      () => this.#events.stop(),
      () => Promise.all([...this.#clients].map((client) => client.finish())),
      () => this.held.stop(),
      () => removeIfThere(this.#env, socket),
    ]
    for (const part of parts) {
      try {
        await part()
      } catch (error) {
        log.warn({ error: String(error) }, 'stopping')
      }
    }
    log.info({}, 'stopped')
  }

  stop(): void {
    this.#end?.()
  }

  /** Until `stop`, or a signal. Until it is `deaf`, another SIGTERM does not cut short what is done then. */
  #untilTold(): { ended: Promise<void>; deaf: () => void } {
    const env = this.#env
    let resolve = () => {}
    const ended = new Promise<void>((settle) => {
      resolve = settle
    })
    const beat = setInterval(() => this.#heartbeat(), HEARTBEAT)
    const end = () => {
      clearInterval(beat)
      impatient() // who asks a second time on a terminal does not want to wait
      resolve()
    }
    const impatient = env.onSignal('SIGINT', end)
    const patient = [env.onSignal('SIGTERM', end), env.onSignal('SIGHUP', () => undefined)]
    this.#end = end
    return {
      ended,
      deaf: () => {
        for (const off of patient) off()
      },
    }
  }

  /** Stops by itself when the worktree went away, or nobody called for long. */
  #heartbeat(): void {
    const { files, monotonic } = this.#env
    const there =
      files.existsSync(this.#context.worktree.root) && files.existsSync(`${this.#context.store.gitDir}/HEAD`)
    const quiet = monotonic() - this.#lastCall
    this.#door.announce()
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

  state(): protocol.DaemonState {
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
    if (this.#clients.size >= MOST_CLIENTS) {
      socket.destroy()
      return
    }
    const client = serveClient(socket, {
      call: (one, method, params, signal) => this.#call(one, { method, params, signal }),
      closed: (one) => {
        this.#clients.delete(one)
        this.#events.unsubscribe(one)
      },
      log: (message, details) => this.#options.log.warn(details, message),
    })
    this.#clients.add(client)
  }

  /** @throws ResponseError */
  async #call(client: Client, { method, params, signal }: Asked): Promise<unknown> {
    this.#authorize(client, method, params)
    switch (method) {
      case 'hello':
        return this.#hello(client, checkParams(method, schema.helloRequest, params))
      case 'cli':
        return this.#cli(client, checkParams(method, schema.cliRequest, params), signal)
      case 'state':
        return this.state()
      case 'stop':
        setImmediate(() => this.stop())
        return null
      case 'notice':
        this.#events.pruned(checkParams(method, schema.noticeRequest, params).event)
        return null
      case 'subscribe':
        return this.#events.subscribe(client, checkParams(method, schema.subscribeRequest, params))
      case 'unsubscribe':
        checkParams(method, schema.nothing, params)
        this.#events.unsubscribe(client)
        return null
    }
    return this.#method({ method, params, signal })
  }

  /** The token counts for the rest of the connection. @throws ResponseError */
  #authorize(client: Client, method: string, params: unknown): void {
    const token = WITH_TOKEN.has(method) ? (params as { token?: unknown } | undefined)?.token : undefined
    if (token === undefined ? !client.known : token !== this.#token) {
      client.end()
      throw new ResponseError(protocol.UNAUTHORIZED, 'That is not the token of this daemon.')
    }
    client.known = true
    this.#lastCall = this.#env.monotonic()
    this.#calls++
  }

  #hello(client: Client, { protocol: spoken }: protocol.Hello): protocol.Welcome {
    const { version } = this.#options
    if (spoken !== protocol.PROTOCOL) {
      client.end()
      const message = `This daemon speaks protocol ${protocol.PROTOCOL}, not ${spoken}.`
      throw new ResponseError(protocol.WRONG_PROTOCOL, message, { protocol: protocol.PROTOCOL, version })
    }
    return { protocol: protocol.PROTOCOL, version, pid: this.#env.pid, root: this.held.root }
  }

  /** What only reads does it like another process would, beside the markers; what writes waits for its turn. */
  async #method({ method, params, signal }: Asked): Promise<unknown> {
    const { runMethod } = await import('./methods.ts')
    await this.#idle.interrupt()
    const { backends } = this.#options
    const env = { ...this.#env, cwd: this.held.root, signal, refused: this.#events.refused(method) }
    return runMethod(
      { env, backends, cwd: this.held.root, arrived: env.monotonic() },
      { method, params, held: this.held },
      { inTurn: (work) => this.enqueue(work), pruned: (event) => this.#events.pruned(event) },
    )
  }

  /** One at a time, in the order of arrival. What it moved is seen before the next one begins. */
  enqueue<T>(work: () => Promise<T>): Promise<T> {
    const next = this.#queue.then(work, work)
    this.#queue = next
      .catch(() => undefined)
      .then(() => {
        this.onWorked()
        return this.#events.look()
      })
    return next
  }

  /** What a hook handed over at the door. */
  async #hook(call: HookCall): Promise<string> {
    const arrived = this.#env.monotonic()
    this.#lastCall = arrived
    this.#calls++
    this.held.begin()
    await this.#idle.interrupt()
    const { root } = this.held
    const env: Env = { ...this.#env, cwd: root, held: this.held, refused: this.#events.refused('hook') }
    return (await this.enqueue(() => this.#options.runHook(env, { ...call, arrived }))) ?? ''
  }

  /** A command line with the caller's directory and variables, and with the worktree that is held open. */
  async #cli(client: Client, call: protocol.CliCall, signal: AbortSignal): Promise<protocol.CliAnswer> {
    const { argv, cwd, vars, input, terminal, columns } = call
    const named = commandIn(argv)
    if (NOT_HERE.has(named)) throw new ResponseError(ErrorCodes.InvalidParams, `cli: \`${named}\` wants a terminal`)
    const [command] = argv
    const refused = this.#events.refused(command!)
    let cancelled: CkptError | null = null
    this.held.begin()
    await this.#idle.interrupt()
    const out = collector(terminal, columns)
    const err = collector(false, columns)
    const tell = (what: string) => tellProgress(client, { what })
    const env: Env = {
      ...(call.progress ? telling(this.#env, tell) : this.#env),
      cwd,
      vars,
      stdin: inputOf(Buffer.from(input ?? '', 'base64')),
      stdout: out.stream,
      stderr: err.stream,
      signal,
      refused: (error) => {
        if (error instanceof CkptError && error.code === 'CANCELLED') cancelled = error
        refused(error)
      },
      onSignal: () => () => undefined,
      exit: () => undefined, // a hook that gives up leaves us here
    }
    const code = await (ROUTED.has(command!)
      ? this.enqueue(() => this.#options.runCli(argv, { ...env, held: this.held }))
      : this.#options.runCli(argv.includes('--no-daemon') ? argv : [command!, '--no-daemon', ...argv.slice(1)], env))
    if (cancelled) throw (await import('./methods.ts')).refusal(cancelled) // like any other call
    return { code, stdout: out.text(), stderr: err.text() }
  }
}

/** Nobody waits for who does not read, or is gone. */
function tellProgress({ connection }: Client, message: protocol.ProgressMessage): void {
  connection.sendNotification('progress', message).catch(() => undefined)
}

/** The first word of a command line that is no option, nor an option's value. */
function commandIn(argv: readonly string[]): string {
  const takesValue = (word: string | undefined) => word === '--cwd' || word === '--session'
  return argv.find((word, i) => !word.startsWith('-') && !takesValue(argv[i - 1])) ?? ''
}

interface Asked {
  method: string
  params: unknown
  signal: AbortSignal
}

function listen(server: Server, path: string): Promise<void> {
  return new Promise((resolve, reject) => {
    server.once('error', reject)
    server.listen(path, () => resolve())
  })
}
