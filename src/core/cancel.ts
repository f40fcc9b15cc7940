/** Cancelling a call: possible until it begins to write, and then no more. */
import { CkptError } from './errors.ts'

/** @throws CkptError CANCELLED, its cause the signal's reason */
export function refuseCancelled(signal: AbortSignal | undefined): void {
  if (signal?.aborted) throw new CkptError('CANCELLED', 'Cancelled. Nothing was changed.', { cause: signal.reason })
}
