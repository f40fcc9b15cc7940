/** A worktree opened in this process, on the same engine as the command line. */
import { AsyncLocalStorage } from 'node:async_hooks'
import { resolve } from 'node:path'
import type { Backend } from '../backends/backend.ts'
import { Backends } from '../backends/backends.ts'
import { callHere } from '../calls/call.ts'
import type { MethodName } from '../calls/methods.ts'
import { onAbort, refuseCancelled } from '../core/cancel.ts'
import { CkptError } from '../core/errors.ts'
import { showPath } from '../core/paths.ts'
import { tellPruned } from '../daemon/life.ts'
import { type Env, homeIn, realEnv } from '../env.ts'
import { closeContext, openContext } from '../ops/worktree/context.ts'
import { besideError, toCkptError } from '../results/errors.ts'
import type { PruneInfo } from '../results/shapes.ts'
import { type Caller, type CallOptions, WorktreeFunctions } from './facade.ts'
import { areBackends, checkedOptions, isSignal, isSwitch, isText, isVars } from './options.ts'

export interface OpenWorktreeOptions extends CallOptions {
  /**
   * The session that is meant where a call names none; the one of the newest turn marker unless told. Only markers take it
   * exactly: elsewhere a prefix that one session has stands for it, so sessions of your own want ids of which none begins
   * another (a UUID).
   */
  session?: string | undefined
  /** Makes the store of a plain directory (`ckpt init`). A git worktree needs no init. */
  init?: boolean | undefined
  /** Backends beside the default one, by their names. */
  backends?: readonly Backend[] | undefined
  /** Environment variables; those of the process unless told. */
  vars?: Readonly<Record<string, string | undefined>> | undefined
}

const OPTIONS = { session: isText, init: isSwitch, backends: areBackends, vars: isVars, signal: isSignal }

/**
 * A worktree opened in this process. Nothing is held open between calls, and nothing has to be closed. Calls that write
 * are carried out in the order in which they were made, awaited or not.
 */
export class Worktree extends WorktreeFunctions {}

/**
 * Opens the worktree that a directory lies in. Nothing is written until something is recorded.
 * @throws CkptError BAD_ROOT, NOT_INITIALIZED (a plain directory without a store), CONFIG, CANCELLED, USAGE
 */
export async function openWorktree(directory: string, options: OpenWorktreeOptions = {}): Promise<Worktree> {
  try {
    const { session, init = false, vars, signal, backends: given } = checkedOptions(options, OPTIONS)
    const env = libraryEnv(vars)
    const backends = new Backends(given ?? [])
    refuseCancelled(signal)
    const opening = { forgiving: true, ...(init ? { init } : { reading: true }) }
    const context = await openContext(env, absolute(env, directory), opening)
    const { root } = context.worktree
    const { worktreeDir } = context.store
    closeContext(context)
    const inOrder = queue()
    const call: Caller = (name, request, callOptions) => {
      const scope = { env: cancellable(env, callOptions), cwd: root, backends, arrived: env.monotonic() }
      const carriedOut = async () => {
        const result = await callHere(scope, name, request)
        if (name === 'snapshots.cleanup') await tellPruned(env, worktreeDir, result as PruneInfo)
        return result
      }
      return inOrder(name, callOptions, carriedOut).catch((error: unknown) => {
        throw shown(toCkptError(error))
      })
    }
    return new Worktree(root, call, session)
  } catch (error) {
    throw shown(toCkptError(error))
  }
}

/**
 * Runs each call that writes after those that were made before it, whoever awaits them; at once those that read, and those
 * that a backend makes while it carries one out.
 */
function queue() {
  let last: Promise<unknown> = Promise.resolve()
  const within = new AsyncLocalStorage<true>()
  return <T>(name: MethodName, { signal }: CallOptions, work: () => Promise<T>): Promise<T> => {
    if (within.getStore()) return work()
    const before = last
    const writes = import('../calls/table.ts').then(({ methods }) => !methods[name].reads)
    const done = within.run(true, async () => {
      if (await writes) await unlessAborted(before, signal)
      return work()
    })
    const ended = () => Promise.allSettled([before, done]).then(() => undefined)
    last = writes.then((isWrite) => (isWrite ? ended() : before), ended)
    return done
  }
}

/** Until it is done, or nobody wants to wait any more. */
function unlessAborted(before: Promise<unknown>, signal: AbortSignal | undefined): Promise<void> {
  return new Promise((resolve) => {
    if (signal?.aborted) return resolve()
    const done = () => {
      unheed()
      resolve()
    }
    const unheed = onAbort(signal, done)
    before.then(done)
  })
}

// Not for TypeScript alone.
export function absolute(env: Env, directory: string): string {
  if (typeof directory === 'string') return resolve(env.cwd, directory)
  throw new CkptError('USAGE', 'Which directory? It is given as a string. Nothing was changed.')
}

export function libraryEnv(vars: OpenWorktreeOptions['vars']): Env {
  const env = realEnv()
  return vars ? { ...env, vars, home: homeIn(vars) ?? env.home } : env
}

const cancellable = (env: Env, { signal }: CallOptions): Env => (signal === undefined ? env : { ...env, signal })

/** Outside, paths are text, and a refused plan is what JSON gives. */
function shown(error: CkptError): CkptError {
  const { files } = besideError(error)
  if (error.paths.length === 0 && !files) return error
  return new CkptError(error.code, error.message, {
    hints: error.hints,
    warnings: error.warnings,
    paths: error.paths.map((path) => showPath(path).path),
    cause: error,
    ...(files ? { detail: { files } } : {}),
  })
}
