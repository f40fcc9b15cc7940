/**
 * The outside world: file system, processes, clock, random numbers, streams. It is passed in as the first parameter and
 * never reached for, so that a test can give another one (and make its Nth call fail).
 */
import type { ChildProcess, SpawnOptions } from 'node:child_process'
import type fs from 'node:fs'
import type { PathLike, Stats } from 'node:fs'
import type { Readable } from 'node:stream'
import { currentDirectory, homeOfUser } from './own-process.ts'

/** The synchronous calls of node:fs that ckpt uses. */
export type Files = Pick<
  typeof fs,
  | 'accessSync'
  | 'chmodSync'
  | 'closeSync'
  | 'copyFileSync'
  | 'existsSync'
  | 'fchownSync'
  | 'fstatSync'
  | 'fsyncSync'
  | 'lchownSync'
  | 'linkSync'
  | 'lstatSync'
  | 'mkdirSync'
  | 'openSync'
  | 'readFileSync'
  | 'readSync'
  | 'readdirSync'
  | 'readlinkSync'
  | 'realpathSync'
  | 'renameSync'
  | 'rmdirSync'
  | 'statSync'
  | 'statfsSync'
  | 'symlinkSync'
  | 'unlinkSync'
  | 'utimesSync'
  | 'writeFileSync'
  | 'writeSync'
>

/** Standard input. */
export interface Input {
  readonly isTTY: boolean
  /** Reads what there is by now: how many bytes, 0 at the end, null: nothing yet. Never waits. */
  readNow: (buffer: Buffer) => number | null
  /** For who talks to a person. */
  readonly stream: Readable
}

export interface Env {
  files: Files
  /** Waits for what comes on a fifo; gives how many bytes of the buffer it filled. A stream would take longer to load. */
  read: (fd: number, buffer: Buffer) => Promise<number>
  /** Waits until what was written to an open file is on disk, while other work goes on (fsync(2)). */
  sync: (fd: number) => Promise<void>
  /** `umask`: of the child, where it is not to have ours. */
  spawn: (command: string, args: readonly string[], options: SpawnOptions & { umask?: number }) => ChildProcess
  vars: Readonly<Record<string, string | undefined>>
  cwd: string
  home: string
  /** Milliseconds since 1970, UTC. */
  now: () => number
  /** Milliseconds of a clock that never jumps. */
  monotonic: () => number
  /** Seconds since the machine started. */
  uptime: () => number
  /** `bytes` random bytes as hex. */
  random: (bytes: number) => string
  pid: number
  /** Absolute path of the running program's first file. */
  program: string
  uid: number
  /** That this process is in: what it may give a file to. */
  groups: () => readonly number[]
  umask: number
  /** The one that the user gave us: for a command of his, where we took another one. */
  givenUmask: number
  platform: NodeJS.Platform
  hostname: string
  stdin: Input
  stdout: NodeJS.WritableStream & { isTTY?: boolean; columns?: number; rows?: number }
  stderr: NodeJS.WritableStream & { isTTY?: boolean; columns?: number }
  /** Says on a terminal what takes long, nothing on a pipe; and lets others have their turn, which in the daemon wait. */
  progress: (what: string) => Promise<void>
  /** Cancels what this is passed to, until it begins to write. */
  signal?: AbortSignal
  /** In the daemon: the worktree that it holds open; only ops/worktree/context.ts looks inside. */
  held?: object
  /** In the daemon: hears of what a command refused. */
  refused?: (error: Error) => void
  /** Sends a signal; 0 asks whether the process is there. */
  kill: (pid: number, signal: NodeJS.Signals | 0) => void
  /** Ends the process at once, whatever is still going on in it. */
  exit: (code: number) => void
  /** Calls back on a signal to this process; the result stops listening. */
  onSignal: (signal: NodeJS.Signals, listener: () => void) => () => void
  /** Calls back when this process is about to end because nothing caught an error. */
  onCrash: (listener: (error: Error) => void) => void
}

/** @param givenUmask where the program has taken another one since it began */
export function realEnv(givenUmask: number = process.umask()): Env {
  // An import would copy all of its names.
  const files = process.getBuiltinModule('node:fs')
  return {
    files,
    read: (fd, buffer) =>
      new Promise((resolve, reject) => {
        files.read(fd, buffer, 0, buffer.length, null, (error, length) => (error ? reject(error) : resolve(length)))
      }),
    sync: (fd) =>
      new Promise((resolve, reject) => {
        files.fsync(fd, (error) => (error ? reject(error) : resolve()))
      }),
    // Loaded when they are needed: who only asks the daemon needs neither.
    spawn: (command, args, { umask, ...options }) =>
      withUmask(umask, () => process.getBuiltinModule('node:child_process').spawn(command, [...args], options)),
    vars: process.env,
    cwd: currentDirectory(),
    home: homeIn(process.env) ?? homeOfUser(),
    now: () => Date.now(),
    // performance.now() would load a module for it.
    monotonic: () => Number(process.hrtime.bigint()) / 1e6,
    uptime: () => process.getBuiltinModule('node:os').uptime(),
    random: (bytes) => process.getBuiltinModule('node:crypto').randomBytes(bytes).toString('hex'),
    pid: process.pid,
    program: process.argv[1] ?? '',
    uid: process.getuid?.() ?? -1,
    groups: () => process.getgroups?.() ?? [],
    umask: process.umask(),
    givenUmask,
    platform: process.platform,
    get hostname() {
      return process.getBuiltinModule('node:os').hostname()
    },
    stdin: standardInput(files),
    // Node makes each of them when it is first asked for, which takes its time.
    get stdout() {
      return process.stdout
    },
    get stderr() {
      return process.stderr
    },
    progress: () => new Promise(setImmediate),
    kill: (pid, signal) => {
      process.kill(pid, signal)
    },
    exit: (code) => process.exit(code),
    onSignal: (signal, listener) => {
      process.on(signal, listener)
      return () => process.off(signal, listener)
    },
    onCrash: (listener) => {
      process.on('uncaughtExceptionMonitor', listener)
    },
  }
}

/** A child has the umask that its parent has when it is made; a thread may ask for ours, not set it. */
function withUmask<T>(umask: number | undefined, work: () => T): T {
  if (umask === undefined || umask === process.umask()) return work()
  const own = process.umask(umask)
  try {
    return work()
  } finally {
    process.umask(own)
  }
}

/** Milliseconds before anything is told of what takes long, and between two tellings. */
const PATIENCE = 1000
const STEP = 100

/** With somebody who hears of what takes long, from now on. */
export function telling(env: Env, tell: (what: string) => void): Env {
  const start = env.monotonic()
  let last = start
  const progress = (what: string) => {
    const now = env.monotonic()
    if (now - start >= PATIENCE && now - last >= STEP) {
      last = now
      tell(what)
    }
    return env.progress(what)
  }
  return { ...env, progress }
}

function standardInput(files: Files): Input {
  let readNow: Input['readNow'] | null = null
  return {
    get isTTY() {
      return files.fstatSync(0).isCharacterDevice() && process.getBuiltinModule('node:tty').isatty(0)
    },
    readNow: (buffer) => {
      readNow ??= makeNonBlocking(files, 0) ? (into) => readAtOnce(files, 0, into) : inputOf(process.stdin).readNow
      return readNow(buffer)
    },
    get stream() {
      return process.stdin
    },
  }
}

/**
 * Node's stream of a socket or pipe takes a quarter of the time that Node takes to start, and an agent waits for that. Nothing
 * else of Node's is public that reads one without waiting: the handle under that stream is asked for, and the stream is used
 * where a Node does not give it. False: the stream is needed.
 */
function makeNonBlocking(files: Files, fd: number): boolean {
  const stats = files.fstatSync(fd)
  if (!stats.isFIFO() && !stats.isSocket()) return stats.isFile()
  const { noDeprecation } = process
  try {
    process.noDeprecation = true // it would be said on standard error, to the agent
    const { Pipe, constants } = (process as unknown as { binding: (name: string) => PipeWrap }).binding('pipe_wrap')
    return !new Pipe(constants.SOCKET).open(fd)
  } catch {
    return false
  } finally {
    process.noDeprecation = noDeprecation ?? false
  }
}

interface PipeWrap {
  Pipe: new (type: number) => { open: (fd: number) => number | undefined }
  constants: { SOCKET: number }
}

function readAtOnce(files: Files, fd: number, buffer: Buffer): number | null {
  try {
    return files.readSync(fd, buffer)
  } catch (error) {
    return errno(error) === 'EAGAIN' ? null : 0 // a reset connection has ended
  }
}

/** Bytes, or what a stream gives, as standard input. */
export function inputOf(given: Buffer | Stream): Input {
  const stream = Buffer.isBuffer(given) ? null : given
  let rest = Buffer.isBuffer(given) ? given : Buffer.alloc(0)
  let ended = stream === null
  const end = () => {
    ended = true
  }
  stream?.on('end', end).on('error', end).on('close', end)
  stream?.unref?.() // who waits for it has a clock
  return {
    isTTY: Boolean(stream?.isTTY),
    readNow: (buffer) => {
      if (rest.length === 0) rest = Buffer.from(stream?.read() ?? '')
      const length = rest.copy(buffer)
      rest = rest.subarray(length)
      return length > 0 || ended ? length : null
    },
    get stream() {
      return stream ?? process.getBuiltinModule('node:stream').Readable.from([given])
    },
  }
}

type Stream = Readable & { isTTY?: boolean; unref?: () => unknown }

/** Null: none is named, or by a relative path, which would be another place in each directory. */
export function homeIn({ HOME = '' }: Env['vars']): string | null {
  return HOME.startsWith('/') ? HOME : null
}

/** Where what is only needed for a moment lies: where TMPDIR says, if something can be made there. */
export function temporaryDirectory({ vars, files }: Pick<Env, 'vars' | 'files'>): string {
  const given = vars.TMPDIR ?? ''
  try {
    if (given.startsWith('/')) files.accessSync(given, 3) // W_OK and X_OK: access(2)
    return given.startsWith('/') ? given : '/tmp'
  } catch (error) {
    if (errno(error) === undefined) throw error
    return '/tmp'
  }
}

/** What Node calls an error that it has no name for: one of a quota, of a file whose server has lost it. */
const NAMELESS = /^Unknown system error -(\d+)/

/** The error code (`ENOENT`, …) of a failed system call. */
export function errno(error: unknown): string | undefined {
  if (!(error instanceof Error && 'code' in error && typeof error.code === 'string')) return undefined
  const number = NAMELESS.exec(error.code)?.[1]
  if (number === undefined) return error.code
  const { errno: names } = process.getBuiltinModule('node:os').constants
  return Object.entries(names).find(([, value]) => value === Number(number))?.[0] ?? `E${number}`
}

/** What lstat says; null: nothing is there, for no such name is, or a file or a circle of links is where a directory above it would be. */
export function lstatIfThere({ lstatSync }: Pick<Files, 'lstatSync'>, path: PathLike): Stats | null {
  return ifThere(() => lstatSync(path, { throwIfNoEntry: false }))
}

/** The same of what a link leads to. */
export function statIfThere({ statSync }: Pick<Files, 'statSync'>, path: PathLike): Stats | null {
  return ifThere(() => statSync(path, { throwIfNoEntry: false }))
}

function ifThere(ask: () => Stats | undefined): Stats | null {
  try {
    return ask() ?? null
  } catch (error) {
    const code = errno(error)
    if (code === 'ENOTDIR' || code === 'ELOOP') return null
    throw error
  }
}

/** Names in a directory; none where it is not there. */
export function namesIfThere({ readdirSync }: Pick<Files, 'readdirSync'>, directory: string): string[] {
  try {
    return readdirSync(directory)
  } catch (error) {
    if (errno(error) === 'ENOENT') return []
    throw error
  }
}

/** Sends a signal; false: that process, or group of them, is not there any more. */
export function killIfThere({ kill }: Pick<Env, 'kill'>, pid: number, signal: NodeJS.Signals): boolean {
  try {
    kill(pid, signal)
    return true
  } catch (error) {
    if (errno(error) !== 'ESRCH') throw error
    return false
  }
}
