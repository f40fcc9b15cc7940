/** Starting, asking and stopping the daemon from outside. */
import type { ChildProcess } from 'node:child_process'
import { constants } from 'node:fs'
import { setTimeout as pause } from 'node:timers/promises'
import { CkptError } from '../core/errors.ts'
import { type Env, errno, killIfThere, statIfThere } from '../env.ts'
import { ageOf } from '../git/file-clock.ts'
import { makeDirectories, readIfThere, removeIfThere } from '../git/whole-file.ts'
import type { Context } from '../ops/worktree/context.ts'
import { isHeld, readHolder } from '../ops/worktree/lock.ts'
import { isRunning, ownIdentity } from '../ops/worktree/processes.ts'
import { nodeProgram } from '../programs.ts'
import type { PruneInfo } from '../results/shapes.ts'
import { callDaemon } from './call.ts'
import { askedFile, type DaemonInfo, infoFile, isAlive, lockFile, readInfo } from './place.ts'
import type { CkptEvent, DaemonState } from './protocol.ts'

/** Milliseconds for a daemon to stand: it scans and watches everything first. */
const START = 120_000
/** Milliseconds for an answer; and for one of a daemon that would else be taken to hang: a snapshot may keep it busy. */
const ANSWER = 2000
const SURELY = 15_000

export const logFile = (worktreeDir: string): string => `${worktreeDir}/daemon/log`

export interface DaemonStatus {
  running: boolean
  pid: number | null
  watching: boolean
  state: DaemonState | null
  /** Why it is of no use any more. */
  over: string | null
  /** Why it cannot be asked from here (errno); it may be well. */
  barred: string | null
}

const NONE: DaemonStatus = { running: false, pid: null, watching: false, state: null, over: null, barred: null }

export async function daemonStatus(
  env: Env,
  worktreeDir: string,
  { timeout = ANSWER }: { timeout?: number } = {},
): Promise<DaemonStatus> {
  const info = readInfo(env, worktreeDir)
  if (!info || !isAlive(env, info)) return NONE
  const answer = await callDaemon<DaemonState>(env, info, { method: 'state', params: {}, timeout })
  // A daemon that hangs is there, and no client waits for it.
  const state = answer?.result ?? null
  return {
    running: true,
    pid: info.pid,
    watching: state?.watching ?? false,
    state,
    over: answer?.error?.message ?? null,
    barred: answer?.barred ?? null,
  }
}

export interface Program {
  /** What starts it, and what that is told first. */
  command: readonly [file: string, ...args: string[]]
  /** One of another version makes place; null: whichever runs is as good. */
  version: string | null
}

/** The program whose first file this is. */
export const byNode = (env: Env, file: string): Program['command'] => [nodeProgram(env), file]

/** Starts one in the background, if none runs. @throws CkptError INTERNAL when it does not come up */
export async function startDaemon(
  context: Context,
  { command, version }: Program,
): Promise<{ started: boolean; info: DaemonInfo }> {
  const { env, store, worktree } = context
  const { worktreeDir } = store
  const before = readInfo(env, worktreeDir)
  const running = await daemonStatus(env, worktreeDir, { timeout: SURELY })
  const known = readInfo(env, worktreeDir)
  const isOurs = running.state !== null && (version === null || running.state.version === version)
  if ((isOurs || running.barred !== null) && known) return { started: false, info: known }
  // Of another version, or one that hangs or is to end; another one that was started meanwhile stays.
  if (running.running && running.pid === known?.pid) await stopDaemon(env, worktreeDir)
  // What would keep it even from its log.
  makeDirectories(env, `${worktreeDir}/daemon`)
  env.files.accessSync(`${worktreeDir}/daemon`, constants.W_OK)
  const child = spawnDaemon(env, worktree.root, command)
  let ended: number | null = null
  child.on('exit', (code) => {
    ended = code ?? 1
  })
  child.on('error', () => {
    ended = 1
  })
  const end = env.monotonic() + START
  while (env.monotonic() < end) {
    const info = readInfo(env, worktreeDir)
    if (info && isAlive(env, info) && info.pid !== before?.pid) return { started: info.pid === child.pid, info }
    // Somebody may have started another one at the same time, which is about to stand; not one in another container.
    if (ended !== null && !isHeldHere(env, lockFile(worktreeDir))) break
    await env.progress('starting the daemon')
    await pause(50)
  }
  throw new CkptError(
    'INTERNAL',
    `The daemon did not come up${why(env, worktreeDir, child)}. Every other command works without it.`,
    {
      hints: ['ckpt daemon logs', 'ckpt doctor'],
    },
  )
}

function isHeldHere(env: Env, lock: string): boolean {
  const holder = readHolder(env, lock)
  return holder !== null && holder !== 'unreadable' && isRunning(env, holder.pid, holder.started)
}

/** What it said last in the log, where another one may write, too. */
function why(env: Env, worktreeDir: string, { pid }: ChildProcess): string {
  const lines = readIfThere(env, logFile(worktreeDir))?.toString('utf8').split('\n') ?? []
  const last = lines.findLast((line) => line.includes(`"pid":${pid},`)) ?? ''
  const said = /"msg":("(?:[^"\\]|\\.)*")/.exec(last)?.[1]
  return said === undefined ? '' : `: ${(JSON.parse(said) as string).replace(/\.$/, '')}`
}

function spawnDaemon(env: Env, root: string, [file, ...args]: Program['command']): ChildProcess {
  const child = env.spawn(file, [...args, 'watch', '--background'], {
    cwd: root,
    // The Node that runs an editor's extension is the editor, unless it is told (Electron, ELECTRON_RUN_AS_NODE).
    env: { ...env.vars, ...(process.versions.electron ? { ELECTRON_RUN_AS_NODE: '1' } : {}) } as NodeJS.ProcessEnv,
    detached: true,
    stdio: 'ignore',
  })
  child.unref()
  return child
}

/** Directories from which on a scan costs more than a daemon. */
const LARGE = 250
/** Milliseconds before one that did not come up is tried again. */
const AGAIN = 600_000

/**
 * Starts one and does not wait for it (`watch.start`), after a marker that had to look through a large worktree.
 * `directories`: how many those were. `anyway`: a client asks that starts no Node where a daemon answers; then the size
 * does not matter.
 */
export function startOnDemand(
  { env, store, worktree, config, live }: Context,
  directories: number,
  { anyway = false } = {},
): void {
  if (live || config.watch.start !== 'on-demand' || env.vars.CKPT_DISABLED === '1') return
  if (directories < LARGE && !anyway) return
  const { files } = env
  const info = readInfo(env, store.worktreeDir)
  if (info && isAlive(env, info)) return
  const lock = lockFile(store.worktreeDir)
  if (isHeld(env, lock) && !isHeldHere(env, lock)) return // another container's: ours would not come up
  const asked = askedFile(store.worktreeDir)
  // One ends where its worktree is moved, its program replaced, or the system started anew: that is another's to be asked for.
  const whose = [worktree.root, statIfThere(files, env.program)?.ino, ownIdentity(env).boot].join('\n')
  const before = statIfThere(files, asked)
  if (before && ageOf(env, store.worktreeDir, before) < AGAIN && readIfThere(env, asked)?.toString('utf8') === whose)
    return
  files.mkdirSync(`${store.worktreeDir}/daemon`, { recursive: true, mode: 0o700 })
  files.writeFileSync(asked, whose, { mode: 0o600 })
  spawnDaemon(env, worktree.root, byNode(env, env.program)).on('error', () => undefined)
}

/** Milliseconds for a daemon that was told to stop to finish what it does. */
const LAST_WORK = 10_000
/** Milliseconds for the kernel to take one away that was killed. */
const KILLED = 2000

/** `null`: none ran. */
export async function stopDaemon(env: Env, worktreeDir: string): Promise<'ended' | 'killed' | null> {
  const info = readInfo(env, worktreeDir)
  if (!info) return null
  if (!isAlive(env, info)) {
    removeIfThere(env, infoFile(worktreeDir))
    return null
  }
  const answer = await callDaemon<null>(env, info, { method: 'stop', params: {}, timeout: 2000 })
  // Where nothing tells when a process started (no proc(5)), its number may be another's by now: nobody listens there then.
  if (answer === null && info.started === '') {
    removeIfThere(env, infoFile(worktreeDir))
    return null
  }
  if (!answer || answer.lost || answer.barred) signalDaemon(env, info.pid, 'SIGTERM')
  const isGone = async (patience: number) => {
    const end = env.monotonic() + patience
    while (isAlive(env, info) && env.monotonic() < end) await pause(20)
    return !isAlive(env, info)
  }
  if (await isGone(LAST_WORK)) return 'ended'
  const killed = signalDaemon(env, info.pid, 'SIGKILL')
  await isGone(KILLED)
  removeIfThere(env, infoFile(worktreeDir))
  return killed ? 'killed' : 'ended'
}

/** @throws CkptError INTERNAL for one that is another user's (kill(2), EPERM) */
function signalDaemon(env: Env, pid: number, signal: NodeJS.Signals): boolean {
  try {
    return killIfThere(env, pid, signal)
  } catch (cause) {
    if (errno(cause) !== 'EPERM') throw cause
    throw new CkptError('INTERNAL', `The daemon (process ${pid}) is another user's. It was not stopped.`, {
      hints: [`sudo kill ${pid}`],
      cause,
    })
  }
}

/** Tells the daemon, if one runs, what was pruned without it: its subscribers want to know. */
export async function tellPruned(
  env: Env,
  worktreeDir: string,
  { dryRun, removed, bytesFreed, kept }: Pick<PruneInfo, 'dryRun' | 'removed' | 'bytesFreed' | 'kept'>,
): Promise<void> {
  const info = dryRun ? null : readInfo(env, worktreeDir)
  if (!info || !isAlive(env, info)) return
  const event: CkptEvent = { type: 'prune.done', removed, bytesFreed, kept }
  await callDaemon(env, info, { method: 'notice', params: { event }, timeout: 1000 })
}
