/**
 * The lock of a worktree: one file, written whole and then linked into place, so that nobody reads an empty one. It names
 * its holder so exactly that another process can prove it dead, or cannot, and then leaves the lock alone.
 */
import { dirname } from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import { refuseCancelled } from '../../core/cancel.ts'
import { CkptError } from '../../core/errors.ts'
import { type Env, errno, statIfThere } from '../../env.ts'
import { linkOrCopy, readIfThere, removeIfThere, withDrafts } from '../../git/whole-file.ts'
import { type Identity, isFromBefore, isRunning, ownIdentity, processStat, startOf } from './processes.ts'
import { type Sign, signState, sweepSigns, withSign } from './sign-of-life.ts'

export interface Holder extends Identity {
  nonce: string
  command: string
  since: string
  /** In a container: what others see there that it lives. */
  sign?: Sign
  /** Where the lock was read. */
  directory?: string
  /** A git that the holder started, and that goes on when only the holder is killed: until it has ended the lock is held. */
  git?: { pid: number; started: string }
  /** The power failed before its bytes were on the disk. */
  torn?: true
}

export type HolderState = 'alive' | 'dead' | 'unknown'

/** Whether the process that holds a lock is there, or a git that it started. `dead` only with proof. */
export function holderState(env: Env, holder: Holder): HolderState {
  return isGitLeft(env, holder) ? 'alive' : stateOf(env, holder)
}

/** Whether the holder is dead, and a git that it started goes on. */
function isGitLeft(env: Env, holder: Holder): boolean {
  const { git, boot, namespace } = holder
  const own = ownIdentity(env)
  if (!git || boot !== own.boot || namespace !== own.namespace || stateOf(env, holder) !== 'dead') return false
  return isRunning(env, git.pid, git.started)
}

function stateOf(env: Env, holder: Holder): HolderState {
  if (holder.torn) return 'dead'
  const own = ownIdentity(env)
  // A boot id is of one running system, whatever that is called by now (random(4)).
  const isOurs = holder.machine === own.machine || (own.boot !== '' && holder.boot === own.boot)
  if (isOurs && holder.boot !== '' && own.boot !== '' && holder.boot !== own.boot) return 'dead'
  if (!isOurs || holder.namespace !== own.namespace) return stateInContainer(env, holder)
  if (own.boot !== '') {
    const stat = processStat(env, holder.pid)
    if (stat === null || stat.started !== holder.started || stat.state === 'Z' || stat.state === 'X') return 'dead'
    return 'alive'
  }
  try {
    env.kill(holder.pid, 0)
    return 'alive'
  } catch (error) {
    return errno(error) === 'ESRCH' ? 'dead' : 'unknown'
  }
}

/** Of a process in another pid namespace of the same running system. */
function stateInContainer(env: Env, { boot, sign, directory, git }: Holder): HolderState {
  if (!sign || directory === undefined || boot === '' || boot !== ownIdentity(env).boot) return 'unknown'
  const state = signState(env, directory, sign)
  return state === 'dead' && git ? 'unknown' : state // nothing tells whether that git has ended
}

/** Null: no lock. `unreadable`: something else lies there. */
export function readHolder(env: Env, path: string): Holder | 'unreadable' | null {
  const bytes = readIfThere(env, path)
  if (bytes === null) return null
  if (bytes.every((byte) => byte === 0)) return tornHolder(env, path) ?? 'unreadable'
  try {
    const holder = JSON.parse(bytes.toString('utf8')) as Partial<Holder>
    if (typeof holder.nonce === 'string' && typeof holder.pid === 'number' && typeof holder.machine === 'string')
      return { ...(holder as Holder), directory: dirname(path) }
    return 'unreadable'
  } catch {
    return 'unreadable' // not ours to judge: doctor can remove it
  }
}

/**
 * A lock is not synced: a power cut may leave its name without its bytes. Whose it was ended with the system, if that was
 * before this one started.
 */
function tornHolder(env: Env, path: string): Holder | null {
  const written = statIfThere(env.files, path)?.mtimeMs
  if (written === undefined || !isFromBefore(env, written)) return null
  return { ...ownIdentity(env), nonce: 'torn', pid: 0, command: '', since: '', torn: true }
}

/** Whether nothing tells if the holder is there. */
export const isUnseen = (env: Env, holder: Holder | 'unreadable' | null): boolean =>
  holder === 'unreadable' || (holder !== null && holderState(env, holder) === 'unknown')

/** What to do about a lock whose holder cannot be seen. */
export const BREAK_IT = ['if that process is surely gone: ckpt doctor --break-lock']

/** Whether somebody who is not provably dead holds a lock. */
export function isHeld(env: Env, path: string): boolean {
  const holder = readHolder(env, path)
  return holder !== null && (holder === 'unreadable' || holderState(env, holder) !== 'dead')
}

/** Milliseconds: somebody who is at work in this worktree is given so long to end. */
const PATIENCE = 5000

/** Whether a lock is held by somebody who is there. */
export function isAtWork(env: Env, path: string): boolean {
  const holder = readHolder(env, path)
  return holder !== null && holder !== 'unreadable' && holderState(env, holder) === 'alive'
}

/** For who only looks: until each lock is free, or held by somebody who is not at work, or the time is over. */
export async function whileAtWork(env: Env, paths: readonly string[]): Promise<void> {
  const end = env.monotonic() + PATIENCE
  for (const path of paths) while (isAtWork(env, path) && env.monotonic() < end) await pause(50)
}

/** Takes the lock if it is free or its holder provably dead. Returns how to give it back, or null. */
function tryTake(env: Env, path: string, { own, depth = 0 }: { own: Holder; depth?: number }): (() => void) | null {
  const { files } = env
  const draft = `${path}.${own.nonce}.${depth}.tmp`
  withDrafts(env, [draft], () => files.writeFileSync(draft, `${JSON.stringify(own)}\n`, { mode: 0o600, flag: 'wx' }))
  try {
    try {
      linkOrCopy(env, draft, path)
      return () => giveBack(env, path, own.nonce)
    } catch (error) {
      if (errno(error) !== 'EEXIST') throw error
    }
    const holder = readHolder(env, path)
    if (holder === null || holder === 'unreadable' || holderState(env, holder) !== 'dead' || depth > 3) return null
    // Only one process may replace a dead one's lock: the one that holds the lock named after it.
    const release = tryTake(env, `${path}.dead-${holder.nonce}`, { own, depth: depth + 1 })
    if (!release) return null
    try {
      const again = readHolder(env, path)
      if (again === null || again === 'unreadable' || again.nonce !== holder.nonce) return null
      files.renameSync(draft, path)
      if (holder.sign) drop(env, `${dirname(path)}/${holder.sign.name}`)
      return () => giveBack(env, path, own.nonce)
    } finally {
      release()
    }
  } finally {
    drop(env, draft)
  }
}

/** What cannot be removed is no reason to fail: the lock may be taken by now, and nobody would give it back. */
function drop(env: Env, path: string): void {
  try {
    removeIfThere(env, path)
  } catch (error) {
    if (errno(error) === undefined) throw error
  }
}

/** Milliseconds */
const AGAIN = 1000

/**
 * What was done under a lock is done, also where that cannot be removed: it is taken over once this process has ended, and
 * one that lives on tries again.
 */
function giveBack(env: Env, path: string, nonce: string): void {
  try {
    const holder = readHolder(env, path)
    if (holder !== null && holder !== 'unreadable' && holder.nonce === nonce) env.files.unlinkSync(path)
  } catch (error) {
    if (errno(error) === undefined) throw error
    setTimeout(() => giveBack(env, path, nonce), AGAIN).unref()
  }
}

export function lockedBy(env: Env, holder: Holder | 'unreadable' | null): string {
  if (holder === null) return 'another process'
  if (holder === 'unreadable') return 'a lock file that cannot be read'
  if (holder.torn) return 'a process that a power failure cut short'
  const { pid, command, since, git } = holder
  const left = isGitLeft(env, holder) ? `; it was killed, but not a git that it started, process ${git!.pid}` : ''
  return `process ${pid} (${command}, since ${since}${left})`
}

function lockedOut(env: Env, path: string): CkptError {
  const holder = readHolder(env, path)
  return new CkptError('LOCKED', `The worktree is locked by ${lockedBy(env, holder)}. Nothing was changed.`, {
    hints: isUnseen(env, holder) ? BREAK_IT : ['wait for it, then run the command again'],
  })
}

/** For who only looks. @throws CkptError LOCKED while a lock is held by somebody who is there */
export function refuseAtWork(env: Env, path: string): void {
  if (isAtWork(env, path)) throw lockedOut(env, path)
}

/** Says in our own lock that a git which we started holds it with us. Where that cannot be written, as on a full disk, it is done without. */
export function holdTogether(env: Env, path: string, pid: number): void {
  const holder = readHolder(env, path)
  if (holder === null || holder === 'unreadable' || holder.pid !== env.pid) return
  const draft = `${path}.${holder.nonce}.git.tmp`
  const { directory: _, ...known } = holder
  const next: Holder = { ...known, git: { pid, started: startOf(env, pid) } }
  try {
    withDrafts(env, [draft], () => {
      env.files.writeFileSync(draft, `${JSON.stringify(next)}\n`, { mode: 0o600 })
      env.files.renameSync(draft, path)
    })
  } catch (error) {
    if (errno(error) === undefined) throw error
  }
}

const newHolder = (env: Env, command: string, sign: Sign | null = null): Holder => ({
  ...ownIdentity(env),
  ...(sign ? { sign } : {}),
  nonce: env.random(8),
  command,
  since: new Date(env.now()).toISOString(),
})

/** Says in a file who we are, where nobody else wants to. */
export const writeHolder = (env: Env, path: string, command: string): void =>
  env.files.writeFileSync(path, `${JSON.stringify(newHolder(env, command))}\n`, { mode: 0o600 })

/** Takes the lock without waiting for it. Returns how to give it back; null: somebody else may hold it. */
export const takeAtOnce = (
  env: Env,
  path: string,
  { command, sign = null }: { command: string; sign?: Sign | null },
): (() => void) | null => tryTake(env, path, { own: newHolder(env, command, sign) })

/** Runs `work` while others can see in a directory that we live, in whichever container they are. */
export const whileSeen = <T>(env: Env, directory: string, work: (sign: Sign | null) => Promise<T>): Promise<T> =>
  withSign(env, { directory, namespace: ownIdentity(env).namespace }, work)

/**
 * Runs `work` while holding the lock; waits up to `wait` milliseconds for it.
 * @throws CkptError LOCKED
 */
export const withLock = <T>(
  env: Env,
  { path, command, wait }: { path: string; command: string; wait: number },
  work: () => Promise<T>,
): Promise<T> =>
  whileSeen(env, dirname(path), async (sign) => {
    const own = newHolder(env, command, sign)
    const end = env.monotonic() + wait
    refuseCancelled(env.signal)
    let release = tryTake(env, path, { own })
    for (let least = 5; !release; least = Math.min(60, least * 1.5)) {
      if (env.monotonic() >= end) throw lockedOut(env, path)
      await pause(least * (1 + Number.parseInt(env.random(1), 16) / 256))
      refuseCancelled(env.signal)
      release = tryTake(env, path, { own })
    }
    try {
      if (sign) sweepSigns(env, dirname(path))
      return await work()
    } finally {
      release()
    }
  })
