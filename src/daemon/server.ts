/** The daemon of one worktree, from its start to its end: holds it open, watches it, and does one piece of work at a time. */
import { createServer, type Server } from 'node:net'
import { tmpdir } from 'node:os'
import { resolve } from 'node:path'
import { CkptError } from '../core/errors.ts'
import { type Env, errno } from '../env.ts'
import { makeDirectories, removeIfThere, writeFileWhole } from '../git/whole-file.ts'
import { locked } from '../ops/recovery/locked.ts'
import { isOver } from '../ops/store/size.ts'
import { type Context, closeContext, openContext } from '../ops/worktree/context.ts'
import { BREAK_IT, isUnseen, lockedBy, readHolder, whileSeen, withLock } from '../ops/worktree/lock.ts'
import { startOf } from '../ops/worktree/processes.ts'
import { AutoTurns } from './auto-turns.ts'
import { Dispatcher, type DispatcherOptions } from './dispatcher.ts'
import { Events } from './events.ts'
import { Held } from './held.ts'
import { HeldDirectory } from './held-directory.ts'
import { HookDoor } from './hook-door.ts'
import { IdleWork } from './idle.ts'
import { LeftMarkers } from './left-markers.ts'
import { askedFile, type DaemonInfo, dropCopied, infoFile, lockFile, readInfo, whereIs } from './place.ts'
import type { DaemonState } from './protocol.ts'
import { socketPath } from './socket-path.ts'

export interface DaemonOptions extends DispatcherOptions {
  cwd: string
  /** Milliseconds without a call. */
  idleStop: number
  /** What was not loaded yet: the files may be another version's by the time they are needed. */
  loadRest: () => Promise<void>
  onReady?: (daemon: Daemon) => void
  onChange?: (path: string) => void
}

/** Milliseconds between two looks whether the worktree is still there. */
const HEARTBEAT = 5000

/** Milliseconds without a call before the rest of the program is loaded. */
const QUIET = 1000

/** Runs until it is stopped. Returns why it ended by itself, in words; null: it was told to. @throws CkptError LOCKED when one runs already */
export async function runDaemon(env: Env, options: DaemonOptions): Promise<string | null> {
  const context = await openContext(env, options.cwd, { create: true, forgiving: true })
  const { worktreeDir } = context.store
  makeDirectories(env, `${worktreeDir}/daemon`)
  const lock = lockFile(worktreeDir)
  dropCopied(env, worktreeDir)
  try {
    // Whatever it holds later, for a marker for one, needs no sign of its own.
    const run = () => whileSeen(env, worktreeDir, () => new Daemon(context, options).run())
    return await withLock(env, { path: lock, command: 'daemon', wait: 0 }, run)
  } catch (error) {
    if (!(error instanceof CkptError && error.code === 'LOCKED')) throw error
    const holder = readHolder(env, lock)
    throw new CkptError(
      'LOCKED',
      `A daemon is at work here already: ${lockedBy(env, holder)}. No second one was started.`,
      { hints: isUnseen(env, holder) ? BREAK_IT : ['ckpt daemon status', 'ckpt daemon stop'] },
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
  readonly #events: Events
  #queue: Promise<unknown> = Promise.resolve()
  readonly #idle: IdleWork
  readonly #auto: AutoTurns
  readonly #dispatcher: Dispatcher
  readonly #door: HookDoor
  readonly #left: LeftMarkers
  /** What the program was loaded from, and loads more from; null: that is not to be seen. */
  readonly #program: HeldDirectory | null
  /** Whether the Node that runs this is where it says: not in every surrounding. */
  readonly #seesNode: boolean
  #end: (() => void) | null = null
  #isEnding = false
  /** See {@link #whyLost}. */
  #lost: string | null = null
  #isWhole = false
  /** It ends for that alone. */
  #isUncalled = false

  constructor(context: Context, options: DaemonOptions) {
    this.#context = context
    this.#options = options
    this.#env = context.env
    this.held = new Held(context)
    this.held.log = (message, details) => options.log.info(details ?? {}, message)
    this.#events = new Events(context, {
      queue: this.held.queue,
      failed: (error) => options.log.warn({ error: String(error) }, 'events'),
    })
    const { env, store, worktree } = context
    const log = (message: string, details?: object) => options.log.info(details ?? {}, message)
    this.#idle = new IdleWork(env, {
      root: worktree.root,
      gitDir: store.gitDir,
      isOver: () => isOver({ env, place: context.place, config: this.held.config }),
      log,
    })
    this.#auto = new AutoTurns(() => this.held.context(env), log)
    const program = programDirectory(env)
    this.#program = program === null ? null : new HeldDirectory(env, program)
    this.#seesNode = env.files.existsSync(process.execPath)
    const asked = {
      held: this.held,
      whyOver: () => this.whyOver,
      events: this.#events,
      idle: this.#idle,
      enqueue: this.enqueue.bind(this),
      enqueueMarker: this.#enqueueMarker.bind(this),
      stop: this.stop.bind(this),
    }
    this.#dispatcher = new Dispatcher(env, asked, options)
    const carryOut = this.#dispatcher.hook.bind(this.#dispatcher)
    this.#door = new HookDoor(env, { worktreeDir: store.worktreeDir, carryOut, log })
    this.#left = new LeftMarkers(env, { store, queue: this.held.queue, takeUp: () => this.#takeUp(), log })
    this.held.others = () => this.#queue
    this.held.onChange = (path) => {
      options.onChange?.(path)
      this.#auto.changed((work) => this.enqueue(() => this.#autoTurn(work)))
    }
  }

  /** Why it can do nothing more for anybody; null: it can. What it was upgraded to may not be what the rest of it is. */
  get whyOver(): string | null {
    const { whyGone } = this.held
    if (whyGone !== null) return whyGone
    if (this.#program?.isThere === false) return 'Its program was replaced, as an upgrade does'
    if (this.#seesNode && !this.#env.files.existsSync(process.execPath)) return 'The Node that runs it was removed'
    return this.#isEnding ? 'It was told to stop' : null
  }

  /** See {@link runDaemon}. */
  async run(): Promise<string | null> {
    const { store, worktree } = this.#context
    const socket = await socketPath(this.#env, store.worktreeDir, { temporary: tmpdir(), root: worktree.root })
    const server = createServer({ allowHalfOpen: true }, (one) => this.#dispatcher.serve(one))
    let deaf = () => {}
    try {
      await this.#open(server, socket)
      // Before anybody is told that it is there: who is told may send a signal at once.
      const told = this.#untilTold()
      deaf = told.deaf
      this.#tell(socket)
      await told.ended
      return this.whyOver ?? this.#lost
    } finally {
      await this.#close(server)
      deaf()
    }
  }

  async #open(server: Server, socket: string): Promise<void> {
    await this.held.start()
    server.on('error', (error) => this.#options.log.warn({ error: error.message }, 'socket')) // a connection is not to be had
    await listen(server, socket)
    this.#env.files.chmodSync(socket, 0o600)
    await this.#door.open()
    this.#left.start()
  }

  #tell(socket: string): void {
    const env = this.#env
    const { log, version, onReady } = this.#options
    const info: DaemonInfo = {
      pid: env.pid,
      started: startOf(env, env.pid),
      socket,
      token: this.#dispatcher.token,
      version,
      root: this.#context.worktree.root,
      since: this.#dispatcher.since,
      at: whereIs(env, this.#context.store.worktreeDir),
    }
    writeFileWhole(env, infoFile(this.#context.store.worktreeDir), {
      content: `${JSON.stringify(info)}\n`,
      sync: false,
    })
    log.info({ root: info.root, socket, ...this.held.state }, 'watching')
    onReady?.(this)
    this.enqueue(() => this.#auto.record()).catch((error: unknown) => log.warn({ error: String(error) }, 'auto turns'))
  }

  /** All that was opened, also when only a part of it was: what stays open keeps the process. A failure hides no other. */
  async #close(server: Server): Promise<void> {
    const { log } = this.#options
    const { worktreeDir } = this.#context.store
    this.#isEnding = true
    const atRest = () => this.#queue.catch(() => undefined)
    const isAlone = this.#isAlone()
    const parts = [
      () => this.stop(),
      () => isAlone && removeIfThere(this.#env, infoFile(worktreeDir)),
      () => this.#isUncalled && removeIfThere(this.#env, askedFile(worktreeDir)), // the next hook asks for one again
      () => this.#door.close({ leave: !isAlone }),
      () => this.#left.stop(),
      () => server.close(),
      () => this.#auto.stop(),
      () => this.#idle.interrupt(),
      atRest,
      () => this.#dispatcher.finish(),
      atRest, // what was asked in the last moment before
      () => this.#events.stop(),
      () => this.held.stop(),
      () => this.#program?.close(),
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

  /** Another daemon may be at work by now, in another store in the place of ours. False: there is one, or that cannot be told. */
  #isAlone(): boolean {
    try {
      const known = readInfo(this.#env, this.#context.store.worktreeDir)
      return this.held.isStoreThere && (known === null || known.token === this.#dispatcher.token)
    } catch (error) {
      this.#options.log.warn({ error: String(error) }, 'stopping')
      return false
    }
  }

  /** Why nobody can ask it any more; null: who looks for it finds it, or that cannot be told. */
  #whyLost(): string | null {
    const { worktreeDir } = this.#context.store
    try {
      const isTold = readInfo(this.#env, worktreeDir)?.token === this.#dispatcher.token
      return isTold ? null : `${infoFile(worktreeDir)} is gone, or tells of another daemon`
    } catch (error) {
      this.#options.log.warn({ error: String(error) }, 'heartbeat')
      return null
    }
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

  /** Stops by itself when the worktree, its store or the program went away, or nobody called for long. */
  #heartbeat(): void {
    const { quiet } = this.#dispatcher
    this.#lost = this.#whyLost()
    const whyOver = this.whyOver ?? this.#lost
    if (whyOver !== null) this.#options.log.info({}, `${whyOver}: this daemon ends`)
    if (whyOver !== null || quiet > this.#options.idleStop) {
      this.#isUncalled = whyOver === null
      this.stop()
      return
    }
    if (!this.#isWhole && quiet >= QUIET) {
      this.#isWhole = true
      this.#options
        .loadRest()
        .then(() => this.#options.log.info({}, 'all is loaded'))
        .catch((error: unknown) => this.#options.log.warn({ error: String(error) }, 'loading'))
    }
    try {
      this.#door.announce()
      this.#left.look()
    } catch (error) {
      this.#options.log.warn({ error: String(error) }, 'heartbeat') // removed this very moment, or no room
    }
    this.held
      .head()
      .then(({ busy }) => this.#idle.consider({ quiet, busy: busy !== null }))
      .catch((error: unknown) => this.#options.log.warn({ error: String(error) }, 'idle'))
  }

  state(): DaemonState {
    return this.#dispatcher.state()
  }

  /** Who makes turns keeps it alive. */
  async #autoTurn(work: () => Promise<boolean>): Promise<void> {
    await this.#idle.interrupt()
    if (await work()) this.#dispatcher.heard()
  }

  /** Nobody's call waits for a lock that somebody else holds. @throws CkptError LOCKED */
  async #takeUp(): Promise<void> {
    await this.#idle.interrupt()
    await this.enqueue(async () => {
      const context = await this.held.context(this.#env)
      if (!context) return
      await locked(context, { command: 'daemon markers', wait: 0 }, async () => undefined)
    })
    this.#dispatcher.heard()
  }

  #enqueueMarker<T>(work: () => Promise<T>): Promise<T> {
    return this.enqueue(async () => {
      if (this.held.config.watch.autoTurn) await this.#auto.beforehand()
      return work()
    })
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
}

/** The compiled program's; null where it is not there, or is none. */
function programDirectory({ files, program }: Env): string | null {
  try {
    const directory = resolve(files.realpathSync(program), '../../dist')
    return files.statSync(directory).isDirectory() ? directory : null
  } catch (error) {
    if (errno(error) === undefined) throw error
    return null
  }
}

function listen(server: Server, path: string): Promise<void> {
  return new Promise((resolve, reject) => {
    server.once('error', (cause) => {
      const said = `No socket can be made at ${path} (${errno(cause) ?? cause.message}), and a daemon needs one. It was not started.`
      reject(new CkptError('INTERNAL', said, { cause, hints: ['ckpt doctor'] }))
    })
    server.listen(path, () => resolve())
  })
}
