/** The calls of src/calls/ as methods of the protocol. */
import { ErrorCodes, ResponseError } from 'vscode-jsonrpc/node'
import { callHere } from '../calls/call.ts'
import type { MethodName } from '../calls/methods.ts'
import type { Scope } from '../calls/scope.ts'
import { methods } from '../calls/table.ts'
import type { CkptError } from '../core/errors.ts'
import { besideError, errorJson, toCkptError } from '../results/errors.ts'
import type { PruneInfo } from '../results/shapes.ts'
import { checkParams } from './connection.ts'
import { type CkptEvent, REFUSED } from './protocol.ts'

export interface Around {
  /** Runs what writes, one at a time. */
  inTurn: <T>(work: () => Promise<T>) => Promise<T>
  pruned: (event: CkptEvent & { type: 'prune.done' }) => void
}

/** They take the store's lock, or wait for it, and are long: beside the markers, like another process. */
const ASIDE: ReadonlySet<string> = new Set(['snapshots.cleanup', 'sessions.setBackend'])

/** @throws ResponseError MethodNotFound, InvalidParams, or REFUSED with the error as JSON */
export async function runMethod(
  scope: Scope,
  { method, params, held }: { method: string; params: unknown; held: object },
  { inTurn, pruned }: Around,
): Promise<unknown> {
  if (!Object.hasOwn(methods, method))
    throw new ResponseError(ErrorCodes.MethodNotFound, `There is no method ${method}.`)
  const name = method as MethodName
  const request = checkParams<unknown>(name, methods[name].takes, params)
  try {
    if (methods[name].reads || ASIDE.has(name)) {
      const result = await callHere(scope, name, request)
      if (name === 'snapshots.cleanup') tell(result as PruneInfo, pruned)
      return result
    }
    return await inTurn(() => callHere({ ...scope, env: { ...scope.env, held } }, name, request))
  } catch (error) {
    const known = toCkptError(error)
    scope.env.refused?.(known)
    throw refusal(known)
  }
}

/** A refusal as the protocol tells it. */
export function refusal(error: CkptError): ResponseError<unknown> {
  const data = { ...errorJson(error), exitCode: error.exitCode, ...besideError(error) }
  return new ResponseError(REFUSED, error.message, data)
}

function tell({ dryRun, removed, bytesFreed, kept }: PruneInfo, pruned: Around['pruned']): void {
  if (!dryRun) pruned({ type: 'prune.done', removed, bytesFreed, kept })
}
