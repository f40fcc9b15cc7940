/** git as the user would run it, in the user's repository: their configuration, filters, hooks and signing. For `ckpt commit` alone. */
import type { ChildProcess } from 'node:child_process'
import type { Writable } from 'node:stream'
import { setTimeout as pause } from 'node:timers/promises'
import { CkptError } from '../core/errors.ts'
import type { Env } from '../env.ts'
import { fullDisk, lackedRoom, notStarted } from './failure.ts'
import { forShell, WHEN_TOLD } from './process.ts'

export interface UsersCall {
  args: readonly string[]
  cwd: string
  vars?: Readonly<Record<string, string>>
  input?: Buffer | string
  /** One more argument, of bytes that need not be UTF-8: Node has only text for them. */
  last?: Buffer
  /** What it prints is for the person (a hook's words): it goes to standard error as it comes. */
  shown?: boolean
  /** Hears of the process that git will be: where this throws, or its caller is killed before, git never begins. Not with `last`. */
  begun?: (git: ChildProcess) => void
}

/**
 * Variables that would lead git to another repository, index or object store (git(1)), of which a hook of git's sets some, or
 * say how paths are meant: ours are names, and some commands refuse the others.
 */
const ELSEWHERE =
  /^GIT_(DIR|WORK_TREE|INDEX_FILE|COMMON_DIR|OBJECT_DIRECTORY|ALTERNATE_OBJECT_DIRECTORIES|NAMESPACE|PREFIX|\w+_PATHSPECS)$/

/** A shell that becomes git with one more argument, which it reads; an x keeps the line ends at its end. */
const WITH_LAST = ['-c', `last=$(cat <&3 && echo x) && exec git "$@" "\${last%x}" 3<&-`, 'git']

/** Milliseconds for the signal that ended git to come to this process too: a terminal sends it to both, in no order. */
const HEARD_WITHIN = 500

export interface UsersResult {
  code: number
  stdout: Buffer
  stderr: string
}

/** Runs it to its end. A non-zero exit code is a result, 128 where a signal ended it. @throws CkptError INTERNAL if git cannot be started */
export function tryUsersGit(env: Env, call: UsersCall): Promise<UsersResult> {
  const vars: Record<string, string> = {}
  for (const [key, value] of Object.entries(env.vars))
    if (value !== undefined && !ELSEWHERE.test(key)) vars[key] = value
  return new Promise((resolve, reject) => {
    const shell = call.last ? WITH_LAST : call.begun ? WHEN_TOLD : null
    const child = env.spawn(shell ? 'sh' : 'git', [...(shell ?? []), ...call.args], {
      cwd: call.cwd,
      env: { ...(call.begun ? forShell(vars) : vars), ...call.vars },
      stdio: ['pipe', call.shown ? 2 : 'pipe', call.shown ? 2 : 'pipe', ...(call.last ? (['pipe'] as const) : [])],
    })
    if (call.last) (child.stdio[3] as Writable | null)?.on('error', () => undefined).end(call.last)
    const out: Buffer[] = []
    const err: Buffer[] = []
    child.stdout?.on('data', (chunk: Buffer) => out.push(chunk))
    child.stderr?.on('data', (chunk: Buffer) => err.push(chunk))
    child.stdin?.on('error', () => undefined) // a child that ended early says so by its exit code
    child.on('error', (cause) => reject(notStarted(cause, 'Nothing was committed.')))
    let failed: { error: unknown } | null = null
    child.on('close', async (code, signal) => {
      if (failed) {
        reject(failed.error)
        return
      }
      if (signal && env.signal) await pause(HEARD_WITHIN, null, { signal: env.signal }).catch(() => null)
      resolve({ code: code ?? 128, stdout: Buffer.concat(out), stderr: Buffer.concat(err).toString('utf8') })
    })
    try {
      call.begun?.(child)
    } catch (error) {
      failed = { error }
      child.stdin?.destroy()
      return
    }
    if (call.begun) child.stdin?.write('told\n')
    child.stdin?.end(call.input ?? '')
  })
}

/** Its output. @throws CkptError INTERNAL on a non-zero exit code */
export async function runUsersGit(env: Env, call: UsersCall): Promise<Buffer> {
  return done(env, call, await tryUsersGit(env, call)).stdout
}

/** What a call gave. @throws CkptError INTERNAL on a non-zero exit code */
export function done(env: Env, call: UsersCall, result: UsersResult): UsersResult {
  const { code, stderr } = result
  if (code === 0) return result
  const noRoom = lackedRoom(env, call.cwd, stderr)
  const full = fullDisk(call.args, { stderr, noRoom }, 'Nothing was committed.')
  if (full) throw full
  const said = stderr.trim().split('\n').slice(0, 3).join(' ').slice(0, 500)
  throw new CkptError(
    'INTERNAL',
    `git ${call.args[0]} failed (exit ${code}): ${said || 'no message'}. Nothing was committed.`,
    { hints: ['git status'] },
  )
}
