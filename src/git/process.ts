/** Starting git: one place that decides which variables a child sees. */
import type { ChildProcess } from 'node:child_process'
import { CkptError } from '../core/errors.ts'
import { type Env, errno } from '../env.ts'
import { gitFailure, lackedRoom, notStarted } from './failure.ts'
import { endedBy, type GitResult } from './result.ts'

export interface GitCall {
  args: readonly string[]
  cwd?: string
  /** Added to the scrubbed environment; these may be GIT_* variables, for they are ours. */
  vars?: Readonly<Record<string, string>>
  input?: Buffer | string
  /** Given what it prints, piece by piece: that is not kept then. */
  onOutput?: (chunk: Buffer) => void
  /** Configuration for this call, over everything else. */
  config?: readonly ConfigValue[]
  signal?: AbortSignal | undefined
  /**
   * Told of the process before git begins; where this throws, or is never called since its caller was killed, git never
   * does. For what goes on by itself when only we are killed.
   */
  begun?: (pid: number) => void
  /** Hears of the process that git is. */
  started?: (git: ChildProcess) => void
  /** For `push` and `pull` alone: the user's own ssh and credential helper may run, as their own configuration says. */
  transport?: boolean
}

export type ConfigValue = readonly [key: string, value: string]

/** Configuration that holds for every call, whatever repository it is for. See gitconfig(5) through GIT_CONFIG_COUNT in git(1). */
const overrides: readonly ConfigValue[] = [
  ['core.hooksPath', '/dev/null'], // nobody else's code runs: reference-transaction and post-index-change fire from plumbing
  ['core.fsmonitor', 'false'], // a repository's fsmonitor is a command that status and diff start
  ['core.untrackedCache', 'false'], // would be written into an index we only read
  ['core.splitIndex', 'false'],
  ['core.autocrlf', 'false'], // bytes on disk, never converted
  ['core.safecrlf', 'false'],
  ['core.protectNTFS', 'false'], // on Linux `git~1` is a name like any other
  ['core.protectHFS', 'false'],
  ['core.quotePath', 'false'],
  ['core.pager', 'cat'],
  ['core.askPass', ''],
  ['credential.helper', ''],
  ['diff.external', ''],
  ['gc.auto', '0'], // our own pruning decides what goes
  ['maintenance.auto', 'false'],
  ['core.fsync', 'none'], // what must be on disk is synced by ourselves, once
  ['core.commitGraph', 'false'],
  ['pack.writeReverseIndex', 'false'], // nothing lies beside a pack but its index
  ['log.showSignature', 'false'],
  ['protocol.allow', 'never'], // nothing is ever fetched
]

/** What a transport is allowed in spite of the list above; a URL that names a program (`ext::`) stays forbidden. */
const allowedForTransport = new Set(['core.askPass', 'credential.helper'])
const transports: readonly ConfigValue[] = [
  ...['file', 'git', 'http', 'https', 'ssh'].map((name) => [`protocol.${name}.allow`, 'always'] as const),
  ['push.gpgSign', 'false'],
  ['push.followTags', 'false'], // nothing but the refs that are named
  ['push.recurseSubmodules', 'no'],
  ['fetch.recurseSubmodules', 'no'],
  ['fetch.prune', 'false'],
  ['fetch.unpackLimit', '1'], // always a pack: it is moved into the store whole
]
/** The user's own words on how to reach another machine. */
const transportVariables = /^GIT_(SSH|SSH_COMMAND|SSH_VARIANT|ASKPASS|PROXY_COMMAND|SSL_\w+|HTTP_\w+)$/

function transportEnvironment(env: Env): Record<string, string> {
  const own = Object.entries(env.vars).filter(([key, value]) => value !== undefined && transportVariables.test(key))
  return { ...(Object.fromEntries(own) as Record<string, string>), GIT_TERMINAL_PROMPT: env.stdin.isTTY ? '1' : '0' }
}

/** Where the user's own configuration lies, if not where git looks by itself (git(1)). The store's calls set them otherwise. */
const CONFIGURATION_FILES = ['GIT_CONFIG_GLOBAL', 'GIT_CONFIG_SYSTEM', 'GIT_CONFIG_NOSYSTEM'] as const

/** Variables a git child may see: the caller's own, less every GIT_* one but those. */
export function scrubbed(vars: Env['vars']): Record<string, string> {
  const kept: Record<string, string> = {}
  for (const [key, value] of Object.entries(vars)) {
    const isOurs = !key.startsWith('GIT_') || CONFIGURATION_FILES.some((name) => name === key)
    if (value !== undefined && isOurs) kept[key] = value
  }
  return kept
}

/** Characters; a system takes a megabyte or two, the environment included (execve(2), ARG_MAX). */
const MOST_ARGUMENTS = 100_000

/** Arguments of which there may be any number, in pieces that a command line takes. */
export function argumentPieces(args: readonly string[]): string[][] {
  const pieces: string[][] = []
  let room = 0
  for (const arg of args) {
    room -= arg.length + 1
    if (room < 0 || pieces.length === 0) {
      pieces.push([])
      room = MOST_ARGUMENTS - arg.length
    }
    pieces.at(-1)!.push(arg)
  }
  return pieces
}

/** Variables for a call that sees the objects in other directories too. */
export const withObjectsOf = (directories: readonly string[]): Record<string, string> => ({
  GIT_ALTERNATE_OBJECT_DIRECTORIES: directories.map((one) => `"${one.replace(/["\\]/g, '\\$&')}"`).join(':'),
})

/** Configuration that comes after every file's, as variables (git-config(1), GIT_CONFIG_COUNT). */
export function configVariables(config: readonly ConfigValue[]): Record<string, string> {
  const pairs = config.flatMap(([key, value], i) => [
    [`GIT_CONFIG_KEY_${i}`, key],
    [`GIT_CONFIG_VALUE_${i}`, value],
  ])
  return { GIT_CONFIG_COUNT: String(config.length), ...Object.fromEntries(pairs) }
}

/** Of the calls that add nothing of their own, which are nearly all. */
const overridden = configVariables(overrides)

function configurationFor({ transport, config = [] }: GitCall): Record<string, string> {
  if (transport) {
    const always = overrides.filter(([key]) => !allowedForTransport.has(key))
    return configVariables([...always, ...transports, ...config])
  }
  return config.length > 0 ? configVariables([...overrides, ...config]) : overridden
}

function environmentFor(env: Env, call: GitCall): Record<string, string> {
  return {
    ...scrubbed(env.vars),
    ...configurationFor(call),
    GIT_OPTIONAL_LOCKS: '0', // a person's rebase may hold index.lock: never compete for it
    GIT_NO_LAZY_FETCH: '1', // what is not here is uncovered
    GIT_NO_REPLACE_OBJECTS: '1', // refs/replace must not change what an id means,
    GIT_GRAFT_FILE: '/dev/null/none', // nor info/grafts whose child a commit is; of one that is there git complains
    GIT_LITERAL_PATHSPECS: '1',
    GIT_TERMINAL_PROMPT: '0',
    GIT_ATTR_NOSYSTEM: '1',
    LC_ALL: 'C',
    ...(call.transport ? transportEnvironment(env) : {}),
    ...call.vars,
  }
}

/** A shell that becomes git once it is told a line; where there is none it ends. */
export const WHEN_TOLD = ['-c', 'read -r told && exec git "$@"', 'git']

/** Less the functions that it would take for its own commands. */
export const forShell = (vars: Record<string, string>): Record<string, string> =>
  Object.fromEntries(Object.entries(vars).filter(([key]) => !key.startsWith('BASH_FUNC_')))

/** Starts git with pipes on its three streams. */
export function startGit(env: Env, call: GitCall): ChildProcess {
  const [program, args] = call.begun ? ['sh', [...WHEN_TOLD, ...call.args]] : ['git', call.args]
  const vars = environmentFor(env, call)
  const child = env.spawn(program, args, {
    cwd: call.cwd ?? env.cwd,
    env: call.begun ? forShell(vars) : vars,
    stdio: ['pipe', 'pipe', 'pipe'],
    ...(call.signal ? { signal: call.signal, killSignal: 'SIGKILL' } : {}),
  })
  child.stdin?.on('error', () => undefined) // a child that ended early says so by its exit code
  if (call.begun && child.pid !== undefined) {
    try {
      call.begun(child.pid)
    } catch (error) {
      child.stdin?.destroy()
      throw error
    }
    child.stdin?.write('told\n')
  }
  return child
}

/**
 * Runs git to its end, or to the call's signal. A non-zero exit code is a result, not an error: 128 where a signal ended it.
 * @throws CkptError INTERNAL if git cannot be started.
 */
export function tryGit(env: Env, call: GitCall): Promise<GitResult> {
  return new Promise((resolve, reject) => {
    const child = startGit(env, call)
    call.started?.(child)
    const out: Buffer[] = []
    const err: Buffer[] = []
    child.stdout?.on('data', call.onOutput ?? ((chunk: Buffer) => out.push(chunk)))
    child.stderr?.on('data', (chunk: Buffer) => err.push(chunk))
    child.on('error', (cause) => {
      if (cause.name === 'AbortError') return // its end follows
      const isGone = errno(cause) === 'ENOENT' && call.cwd !== undefined && !env.files.existsSync(call.cwd)
      reject(
        isGone
          ? new CkptError('BAD_ROOT', `${call.cwd} is not there any more. Nothing was changed.`, { cause })
          : notStarted(cause),
      )
    })
    let unsaid: Error | null = null
    child.stdin?.on('error', (error) => {
      const code = errno(error)
      if (code !== 'EPIPE' && code !== 'ECONNRESET') unsaid = error // else it ended early, and says why by its exit code
    })
    child.on('close', (code, signal) => {
      if (unsaid && code === 0) {
        // It has done well what it was told, which is not all.
        const message = `git could not be told what to do: ${unsaid.message}. Nothing was changed.`
        reject(new CkptError('INTERNAL', message, { hints: ['ckpt doctor'], cause: unsaid }))
        return
      }
      const stderr = Buffer.concat(err).toString('utf8')
      const noRoom = code !== 0 && lackedRoom(env, call.vars?.GIT_DIR ?? call.cwd ?? env.cwd, stderr)
      resolve({ code: code ?? 128, stdout: Buffer.concat(out), stderr, ...endedBy(signal), noRoom })
    })
    child.stdin?.end(call.input ?? '')
  })
}

/** Runs git and returns its output. @throws CkptError DAMAGED or INTERNAL on a non-zero exit code: a failure is never an answer. */
export async function runGit(env: Env, call: GitCall): Promise<Buffer> {
  const result = await tryGit(env, call)
  if (result.code !== 0) throw gitFailure(call.args, result, { store: call.vars?.GIT_DIR !== undefined })
  return result.stdout
}

/** git's answer to a question that some have none to: its exit code is 1 then. @throws CkptError like `runGit` on any other. */
export async function askGit(env: Env, call: GitCall, none = 1): Promise<Buffer | null> {
  const asked = await tryGit(env, call)
  if (asked.code === 0) return asked.stdout
  if (asked.code === none) return null
  throw gitFailure(call.args, asked, { store: false })
}
