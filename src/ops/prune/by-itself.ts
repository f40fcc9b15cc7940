/** Pruning that nobody asked for: a process of its own, at the lowest priority, which may be killed at any moment. */
import type { ChildProcess } from 'node:child_process'
import { setTimeout as pause } from 'node:timers/promises'
import { type Env, errno, killIfThere, statIfThere } from '../../env.ts'
import { appendTo } from '../../git/whole-file.ts'
import { isOver } from '../store/size.ts'
import type { Context } from '../worktree/context.ts'

/** Milliseconds before what could not be mended the last time is tried again. */
export const AGAIN = 600_000
/** Milliseconds that a marker waits for it at most, and below which it is not worth a try. */
const PATIENCE = { most: 5000, least: 1000 }

/** Its time is when it was last begun. */
const stamp = (gitDir: string) => `${gitDir}/../idle`
const WITHIN = 'within the limit\n'

type Last = Pick<Env, 'files' | 'now'>

/** Milliseconds since it was last begun, or until then: a clock that was ahead once does not put it off until it is that late. */
export function sinceLast({ files, now }: Last, gitDir: string): number {
  const last = statIfThere(files, stamp(gitDir))
  return last ? Math.abs(now() - last.mtimeMs) : Number.POSITIVE_INFINITY
}

/** Whether what takes the store within its limit was tried just now, and was killed or came to nothing. */
export const wasInVain = (env: Last, gitDir: string): boolean =>
  sinceLast(env, gitDir) < AGAIN && !env.files.readFileSync(stamp(gitDir), 'latin1').endsWith(WITHIN)

/** It came within its limit: when it is over that again, it need not wait. */
export function noteWithin(env: Env, gitDir: string): void {
  const last = statIfThere(env.files, stamp(gitDir))
  if (!last) return
  appendTo(env, stamp(gitDir), { text: WITHIN })
  env.files.utimesSync(stamp(gitDir), last.atime, last.mtime)
}

export interface Pruning {
  /** What it said, and how it ended. */
  ended: Promise<object>
  /** Ends it, and waits until it is gone: it holds the store's lock. */
  interrupt: () => Promise<void>
}

/** `root`: the worktree. `gitDir`: the store's git directory. */
export function beginPruning(env: Env, { root, gitDir }: { root: string; gitDir: string }): Pruning {
  const { program, vars, spawn, now, files } = env
  files.writeFileSync(stamp(gitDir), `${new Date(now()).toISOString()}\n`, { mode: 0o600 })
  const child = spawn('nice', ['-n', '19', process.execPath, program, 'prune', '--idle', '--json'], {
    cwd: root,
    env: vars as NodeJS.ProcessEnv,
    detached: true, // a group of its own: its gits end with it
    stdio: ['ignore', 'pipe', 'ignore'],
  })
  const ended = endOf(child)
  const interrupt = async () => {
    const runs = child.exitCode === null && child.signalCode === null
    if (runs && child.pid !== undefined) killIfThere(env, -child.pid, 'SIGKILL')
    await ended
  }
  return { ended, interrupt }
}

function endOf(child: ChildProcess): Promise<object> {
  let said = ''
  child.stdout?.on('data', (chunk: Buffer) => {
    said += chunk.toString('utf8')
  })
  return new Promise((resolve) => {
    child.on('error', (error) => resolve({ error: error.message }))
    child.on('close', (code, signal) => resolve({ code, signal, said: said.slice(0, 2000) }))
  })
}

/**
 * After a marker, where no daemon does it in quiet times, or those did not come: the oldest go when the store is over its
 * limit of bytes. What takes longer than `left` milliseconds, or a few seconds, is left for another try. The caller holds no
 * lock; the marker never fails for it.
 */
export async function makeRoom(context: Context, left: number): Promise<void> {
  const { env, live, store, worktree } = context
  const wait = Math.min(PATIENCE.most, left)
  if (wait < PATIENCE.least || !isOver(context, { pressing: live !== undefined })) return
  if (wasInVain(env, store.gitDir)) return
  try {
    const pruning = beginPruning(env, { root: worktree.root, gitDir: store.gitDir })
    const enough = new AbortController()
    const signal = AbortSignal.any([enough.signal, ...(env.signal ? [env.signal] : [])])
    await Promise.race([pruning.ended, pause(wait, undefined, { signal }).catch(() => undefined)])
    enough.abort()
    await pruning.interrupt()
  } catch (error) {
    if (errno(error) === undefined) throw error
  }
}
