/** A worktree opened in this process, on the same engine as the command line. */
import { resolve } from 'node:path'
import type { Backend } from '../backends/backend.ts'
import { Backends } from '../backends/backends.ts'
import { callHere } from '../calls/call.ts'
import { refuseCancelled } from '../core/cancel.ts'
import { CkptError } from '../core/errors.ts'
import { showPath } from '../core/paths.ts'
import { type Env, realEnv } from '../env.ts'
import { closeContext, openContext } from '../ops/context.ts'
import { besideError, toCkptError } from '../results/errors.ts'
import { type Caller, type CallOptions, optionsOf, WorktreeFunctions } from './facade.ts'

export interface OpenWorktreeOptions extends CallOptions {
  /** The session that is meant where a call names none; the one of the newest turn marker unless told. */
  session?: string | undefined
  /** Makes the store of a plain directory (`ckpt init`). A git worktree needs no init. */
  init?: boolean | undefined
  /** Backends beside the default one, by their names. */
  backends?: readonly Backend[] | undefined
  /** Environment variables; those of the process unless told. */
  vars?: Readonly<Record<string, string | undefined>> | undefined
}

/** A worktree opened in this process. Nothing is held open between calls, and nothing has to be closed. */
export class Worktree extends WorktreeFunctions {}

/**
 * Opens the worktree that a directory lies in. Nothing is written until something is recorded.
 * @throws CkptError BAD_ROOT, NOT_INITIALIZED (a plain directory without a store), CONFIG, CANCELLED
 */
export async function openWorktree(directory: string, options: OpenWorktreeOptions = {}): Promise<Worktree> {
  const { session, init = false, vars, signal, backends: given } = optionsOf(options)
  const env = libraryEnv(vars)
  const backends = new Backends(given)
  try {
    refuseCancelled(signal)
    const context = await openContext(env, absolute(env, directory), init ? { init } : { reading: true })
    const { root } = context.worktree
    closeContext(context)
    const call: Caller = (name, request, callOptions) => {
      const scope = { env: cancellable(env, callOptions), cwd: root, backends, arrived: env.monotonic() }
      return callHere(scope, name, request).catch((error: unknown) => {
        throw shown(toCkptError(error))
      })
    }
    return new Worktree(root, call, session)
  } catch (error) {
    throw shown(toCkptError(error))
  }
}

// Not for TypeScript alone.
export function absolute(env: Env, directory: string): string {
  if (typeof directory === 'string') return resolve(env.cwd, directory)
  throw new CkptError('USAGE', 'Which directory? It is given as a string. Nothing was changed.')
}

export function libraryEnv(vars: OpenWorktreeOptions['vars']): Env {
  const env = realEnv()
  return vars === undefined ? env : { ...env, vars, home: vars.HOME ?? env.home }
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
