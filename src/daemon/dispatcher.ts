/** What clients and hooks ask of the daemon: who may ask, what is done at once, and what waits for its turn. */
import type { Socket } from 'node:net'
import type { Logger } from 'pino'
import { ErrorCodes, ResponseError } from 'vscode-jsonrpc/node'
import type { Backends } from '../backends/backends.ts'
import { CkptError } from '../core/errors.ts'
import { commandFirst, ownWords } from '../core/own-words.ts'
import { type Env, inputOf, telling } from '../env.ts'
import { isOfLimits } from '../git/denied.ts'
import { toCkptError } from '../results/errors.ts'
import { ROUTED } from './client.ts'
import { collector } from './collector.ts'
import { type Asked, type Client, checkParams, serveClient } from './connection.ts'
import type { Events } from './events.ts'
import type { Held } from './held.ts'
import type { HookCall } from './hook-door.ts'
import type { IdleWork } from './idle.ts'
import * as protocol from './protocol.ts'
import * as schema from './protocol-schema.ts'

/** Given in, for the daemon lies below the command line. `load` fails where the program's files are gone, and does nothing else. */
interface Program {
  /** Command lines, in this process. */
  cli: {
    load: (argv: readonly string[]) => Promise<unknown>
    run: (argv: readonly string[], env: Env) => Promise<number>
  }
  /** Agents' hooks; gives what the agent is to see. */
  hook: {
    load: (agent: string) => Promise<unknown>
    run: (env: Env, call: HookCall & { arrived: number }) => Promise<string | null>
  }
}

export interface DispatcherOptions {
  version: string
  program: Program
  backends: Backends
  log: Logger
}

/** What a daemon gives to those who ask it. */
interface Parts {
  held: Held
  events: Events
  idle: IdleWork
  /** One piece of work at a time, in the order of arrival. */
  enqueue: <T>(work: () => Promise<T>) => Promise<T>
  /** The same for a marker, before which a turn of nobody's may be due. */
  enqueueMarker: <T>(work: () => Promise<T>) => Promise<T>
  stop: () => void
  /** Why it can do nothing more for anybody; null: it can. */
  whyOver: () => string | null
}

/** They belong to a terminal, or stay. */
const NOT_HERE = new Set(['watch', 'daemon', 'run', 'bisect', 'rewind'])
/** Done again by who asked they are one all the same, or do no harm. */
const DONE_AGAIN = new Set(['mark', 'snapshot'])
/** Commands and methods that tell of a turn, or make a checkpoint. */
const MARKERS = new Set(['mark', 'snapshot', 'hook', 'snapshots.track'])
/** They may be the first on a connection. */
const WITH_TOKEN = new Set(['hello', 'cli', 'state', 'stop', 'notice'])
/** Connections at once; a client that gets none does its work itself. */
const MOST_CLIENTS = 256

export class Dispatcher {
  readonly token: string
  readonly since: string
  readonly #env: Env
  readonly #daemon: Parts
  readonly #options: DispatcherOptions
  readonly #clients = new Set<Client>()
  #calls = 0
  #lastCall: number

  constructor(env: Env, daemon: Parts, options: DispatcherOptions) {
    this.token = env.random(24)
    this.since = new Date(env.now()).toISOString()
    this.#env = env
    this.#daemon = daemon
    this.#options = options
    this.#lastCall = env.monotonic()
  }

  /** Milliseconds since somebody called, or made a turn. */
  get quiet(): number {
    return this.#env.monotonic() - this.#lastCall
  }

  heard(): void {
    this.#lastCall = this.#env.monotonic()
  }

  /** Lets every client have the answers to what it asked. */
  async finish(): Promise<void> {
    await Promise.all([...this.#clients].map((client) => client.finish()))
  }

  state(): protocol.DaemonState {
    const { watching, why, misses } = this.#daemon.held.state
    const { version } = this.#options
    return {
      pid: this.#env.pid,
      root: this.#daemon.held.root,
      version,
      since: this.since,
      watching,
      watched: this.#daemon.held.watched,
      why,
      misses,
      calls: this.#calls,
    }
  }

  serve(socket: Socket): void {
    if (this.#clients.size >= MOST_CLIENTS) {
      socket.destroy()
      return
    }
    const client = serveClient(socket, {
      call: (one, asked) => this.#call(one, asked),
      closed: (one) => {
        this.#clients.delete(one)
        this.#daemon.events.unsubscribe(one)
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
        this.#refuseWhenOver()
        return this.state()
      case 'stop':
        setImmediate(() => this.#daemon.stop())
        return null
      case 'notice':
        this.#daemon.events.pruned(checkParams(method, schema.noticeRequest, params).event)
        return null
      case 'subscribe':
        return this.#subscribe(client, checkParams(method, schema.subscribeRequest, params))
      case 'unsubscribe':
        checkParams(method, schema.nothing, params)
        this.#daemon.events.unsubscribe(client)
        return null
    }
    return this.#method({ method, params, signal })
  }

  /** The token counts for the rest of the connection. @throws ResponseError */
  #authorize(client: Client, method: string, params: unknown): void {
    const token = WITH_TOKEN.has(method) ? (params as { token?: unknown } | undefined)?.token : undefined
    if (token === undefined ? !client.known : token !== this.token) {
      client.end()
      const said =
        token === undefined
          ? 'The first request is hello, with the token of this daemon.'
          : 'That is not the token of this daemon.'
      throw new ResponseError(protocol.UNAUTHORIZED, said)
    }
    client.known = true
    this.heard()
    this.#calls++
  }

  #hello(client: Client, { protocol: spoken }: protocol.Hello): protocol.Welcome {
    const { version } = this.#options
    if (spoken !== protocol.PROTOCOL) {
      client.end()
      const message = `This daemon speaks protocol ${protocol.PROTOCOL}, not ${spoken}.`
      throw new ResponseError(protocol.WRONG_PROTOCOL, message, { protocol: protocol.PROTOCOL, version })
    }
    return { protocol: protocol.PROTOCOL, version, pid: this.#env.pid, root: this.#daemon.held.root }
  }

  /**
   * The git directory may have moved (`git init --separate-git-dir`), and what is known of us with it; the worktree may be
   * another one, or the program; or we were told to stop. Who asked does the work itself. @throws ResponseError
   */
  #refuseWhenOver(): void {
    const why = this.#daemon.whyOver()
    if (why !== null) this.#end(why)
  }

  /** Not all of it is loaded when it starts. @throws ResponseError */
  #loaded<T>(loading: Promise<T>): Promise<T> {
    return loading.catch((error: unknown) => {
      this.#options.log.warn({ error: String(error) }, 'loading')
      return this.#end('Its program is not where it was')
    })
  }

  /** @throws ResponseError */
  #end(why: string): never {
    setImmediate(() => this.#daemon.stop())
    throw new ResponseError(ErrorCodes.InternalError, `${why}: this daemon ends. Nothing was done.`)
  }

  /** @throws ResponseError */
  async #subscribe(client: Client, request: protocol.SubscribeRequest): Promise<protocol.Subscribed> {
    this.#refuseWhenOver()
    try {
      return await this.#daemon.events.subscribe(client, request)
    } catch (error) {
      throw (await this.#loaded(import('./methods.ts'))).refusal(toCkptError(error))
    }
  }

  /** What only reads does it like another process would, beside the markers; what writes waits for its turn. */
  async #method({ method, params, signal }: Asked): Promise<unknown> {
    this.#refuseWhenOver()
    const { runMethod } = await this.#loaded(import('./methods.ts'))
    await this.#daemon.idle.interrupt()
    const { backends } = this.#options
    const env = { ...this.#env, cwd: this.#daemon.held.root, signal, refused: this.#daemon.events.refused(method) }
    return runMethod(
      { env, backends, cwd: this.#daemon.held.root, arrived: env.monotonic() },
      { method, params, held: this.#daemon.held },
      { inTurn: (work) => this.#enqueue(method, work), pruned: (event) => this.#daemon.events.pruned(event) },
    )
  }

  /** What a hook handed over at the door. */
  async hook(call: HookCall): Promise<string> {
    const arrived = this.#env.monotonic()
    this.#refuseWhenOver()
    this.heard()
    this.#calls++
    this.#daemon.held.begin()
    const { hook } = this.#options.program
    await this.#loaded(hook.load(call.agent))
    await this.#daemon.idle.interrupt()
    const { root } = this.#daemon.held
    const env: Env = { ...this.#env, cwd: root, held: this.#daemon.held, refused: this.#daemon.events.refused('hook') }
    return (await this.#enqueue('hook', () => hook.run(env, { ...call, arrived }))) ?? ''
  }

  #enqueue<T>(named: string, work: () => Promise<T>): Promise<T> {
    return MARKERS.has(named) ? this.#daemon.enqueueMarker(work) : this.#daemon.enqueue(work)
  }

  /** A command line with the caller's directory and variables, and with the worktree that is held open. */
  async #cli(client: Client, call: protocol.CliCall, signal: AbortSignal): Promise<protocol.CliAnswer> {
    const { argv, cwd, vars, input, terminal, columns } = call
    const named = commandIn(argv)
    if (NOT_HERE.has(named)) throw new ResponseError(ErrorCodes.InvalidParams, `cli: \`${named}\` wants a terminal`)
    this.#refuseWhenOver()
    const refused = this.#daemon.events.refused(named)
    let cancelled: CkptError | null = null
    let isShort = false
    this.#daemon.held.begin()
    const { cli } = this.#options.program
    await this.#loaded(cli.load(argv))
    await this.#daemon.idle.interrupt()
    const out = collector(terminal, columns)
    const err = collector(false, columns)
    const tell = (what: string) => void tellProgress(client, { what })
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
        isShort = DONE_AGAIN.has(named) && isOfLimits(error)
        if (!isShort) refused(error)
      },
      onSignal: () => () => undefined,
      exit: () => undefined, // a hook that gives up leaves us here
    }
    const after = argv.indexOf(named) + 1
    const alone = argv.includes('--no-daemon') ? argv : argv.toSpliced(after, 0, '--no-daemon')
    const code = await (ROUTED.has(named)
      ? this.#enqueue(named, () => cli.run(argv, { ...env, held: this.#daemon.held }))
      : cli.run(alone, env))
    if (cancelled) throw (await import('./methods.ts')).refusal(cancelled) // like any other call
    if (isShort) throw new ResponseError(ErrorCodes.InternalError, 'This daemon may not have what that takes.')
    return { code, stdout: out.text(), stderr: err.text() }
  }
}

/** Nobody waits for who does not read; of who is gone the call itself throws, and the work goes on all the same. */
async function tellProgress({ connection }: Client, message: protocol.ProgressMessage): Promise<void> {
  try {
    await connection.sendNotification('progress', message)
  } catch {
    // gone
  }
}

/** A command line's command. Behind an option of its own, which may take a value, it is the first word that is one's name. */
function commandIn(argv: readonly string[]): string {
  const [first = '', ...others] = ownWords(commandFirst(argv))
  return first.startsWith('-') ? (others.find((word) => NOT_HERE.has(word) || ROUTED.has(word)) ?? '') : first
}
