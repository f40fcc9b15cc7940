/** One call, checked and carried out in this process. */
import { refuseCancelled } from '../core/cancel.ts'
import { toCkptError } from '../results/errors.ts'
import { checkRequest, type Method, type MethodName, type Methods } from './methods.ts'
import type { Scope } from './scope.ts'

/** @throws CkptError, whatever went wrong */
export async function callHere<M extends MethodName>(
  scope: Scope,
  name: M,
  request: unknown,
): Promise<Methods[M]['gives']> {
  const { signal } = scope.env
  try {
    refuseCancelled(signal)
    const method: Method<M> = (await import('./table.ts')).methods[name]
    const checked = checkRequest(name, method.takes, request)
    const result = await method.run(scope, checked)
    if (method.reads) refuseCancelled(signal)
    return result
  } catch (error) {
    throw toCkptError(error)
  }
}
