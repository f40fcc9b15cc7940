/**
 * The outside world: file system, processes, clock, random numbers, streams. It is passed in as the first parameter and
 * never reached for, so that a test can give another one (and make its Nth call fail).
 */
import type { ChildProcess, SpawnOptions } from 'node:child_process'
import fs, { type PathLike, type Stats } from 'node:fs'
import os from 'node:os'

/** The synchronous calls of node:fs that ckpt uses. */
export type Files = Pick<
  typeof fs,
  | 'accessSync'
  | 'chmodSync'
  | 'closeSync'
  | 'copyFileSync'
  | 'existsSync'
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

export interface Env {
  files: Files
  spawn: (command: string, args: readonly string[], options: SpawnOptions) => ChildProcess
  vars: Readonly<Record<string, string | undefined>>
  cwd: string
  home: string
  /** Milliseconds since 1970, UTC. */
  now: () => number
  /** Milliseconds of a clock that never jumps. */
  monotonic: () => number
  /** `bytes` random bytes as hex. */
  random: (bytes: number) => string
  pid: number
  /** Absolute path of the running program's first file. */
  program: string
  uid: number
  umask: number
  platform: NodeJS.Platform
  hostname: string
  stdin: NodeJS.ReadableStream & { isTTY?: boolean; fd?: number }
  stdout: NodeJS.WritableStream & { isTTY?: boolean; columns?: number; rows?: number }
  stderr: NodeJS.WritableStream & { isTTY?: boolean; columns?: number }
  /** Says on a terminal what takes long; nothing on a pipe. */
  progress: (what: string) => void
  /** Cancels what this is passed to, until it begins to write. */
  signal?: AbortSignal
  /** In the daemon: the worktree that it holds open; only ops/context.ts looks inside. */
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

export function realEnv(): Env {
  return {
    files: fs,
    // Loaded when they are needed: who only asks the daemon needs neither.
    spawn: (command, args, options) =>
      process.getBuiltinModule('node:child_process').spawn(command, [...args], options),
    vars: process.env,
    cwd: currentDirectory(),
    home: os.homedir(),
    now: () => Date.now(),
    // performance.now() would load a module for it.
    monotonic: () => Number(process.hrtime.bigint()) / 1e6,
    random: (bytes) => process.getBuiltinModule('node:crypto').randomBytes(bytes).toString('hex'),
    pid: process.pid,
    program: process.argv[1] ?? '',
    uid: process.getuid?.() ?? -1,
    umask: process.umask(),
    platform: process.platform,
    hostname: os.hostname(),
    // Node makes each of them when it is first asked for, which takes its time.
    get stdin() {
      return process.stdin
    },
    get stdout() {
      return process.stdout
    },
    get stderr() {
      return process.stderr
    },
    progress: () => undefined,
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

/** Where this process is; a directory that is there no more by the name that the shell knows, if it knows one. */
function currentDirectory(): string {
  try {
    return process.cwd()
  } catch (error) {
    if (errno(error) !== 'ENOENT') throw error
    return process.env.PWD?.startsWith('/') ? process.env.PWD : '/'
  }
}

/** The error code (`ENOENT`, …) of a failed system call. */
export function errno(error: unknown): string | undefined {
  return error instanceof Error && 'code' in error && typeof error.code === 'string' ? error.code : undefined
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
