/** Where a worktree's daemon can be reached: a file in the worktree's own directory says it, a socket takes the calls. */
import { type Env, errno, statIfThere } from '../env.ts'
import { removeIfThere } from '../git/whole-file.ts'
import { isUnseen, readHolder } from '../ops/worktree/lock.ts'
import { isRunning } from '../ops/worktree/processes.ts'

export interface DaemonInfo {
  pid: number
  /** Start of the process in clock ticks: its number is used again. */
  started: string
  socket: string
  /** Node cannot see a peer's user: who can read this file may call. */
  token: string
  version: string
  root: string
  since: string
  /** Which directory it lies in (device and inode): a copy of the store, made while the daemon ran, has a copy of this. */
  at?: string
}

/** Held by the daemon from before it stands until it ends. */
export const lockFile = (worktreeDir: string): string => `${worktreeDir}/daemon/lock`

export const infoFile = (worktreeDir: string): string => `${worktreeDir}/daemon/info.json`

/** Its time says when one was last asked for that nobody waits for; it goes where that one ended because nobody called. */
export const askedFile = (worktreeDir: string): string => `${worktreeDir}/daemon/asked`

/** What the worktree's daemon says of itself; null when there is none, or what lies there came with a copy. */
export function readInfo(env: Env, worktreeDir: string): DaemonInfo | null {
  const info = infoThere(env, worktreeDir)
  return info && isCopied(env, worktreeDir, info) ? null : info
}

const isCopied = (env: Env, worktreeDir: string, { at }: DaemonInfo): boolean =>
  at !== undefined && at !== whereIs(env, worktreeDir)

/** For {@link DaemonInfo.at}. */
export function whereIs(env: Env, worktreeDir: string): string {
  const stats = statIfThere(env.files, worktreeDir)
  return stats ? `${stats.dev} ${stats.ino}` : 'gone'
}

/**
 * What a daemon of the original left in a copy: its lock names a process that is at work, but not here. One whose holder
 * cannot be seen stays: what it calls this directory, in a container for one, need not be what we do.
 */
export function dropCopied(env: Env, worktreeDir: string): void {
  const info = infoThere(env, worktreeDir)
  const lock = lockFile(worktreeDir)
  const holder = readHolder(env, lock)
  if (!info || !isCopied(env, worktreeDir, info) || isUnseen(env, holder)) return
  if (holder !== null && holder !== 'unreadable' && holder.pid === info.pid) removeIfThere(env, lock)
  removeIfThere(env, infoFile(worktreeDir))
}

function infoThere(env: Env, worktreeDir: string): DaemonInfo | null {
  try {
    const info = JSON.parse(env.files.readFileSync(infoFile(worktreeDir), 'utf8')) as DaemonInfo
    return typeof info.pid === 'number' && typeof info.socket === 'string' ? info : null
  } catch (error) {
    const code = errno(error)
    if (code === 'ENOENT' || code === 'ENOTDIR' || error instanceof SyntaxError) return null
    throw error
  }
}

export const isAlive = (env: Env, info: DaemonInfo): boolean => isRunning(env, info.pid, info.started)
