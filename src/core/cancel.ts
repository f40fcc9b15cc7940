/** Cancelling a call: possible until it begins to write, and then no more. */
import { CkptError } from './errors.ts'
import { tell } from './tell.ts'

/** @throws CkptError CANCELLED, its cause the signal's reason */
export function refuseCancelled(signal: AbortSignal | undefined): void {
  if (signal?.aborted) throw new CkptError('CANCELLED', 'Cancelled. Nothing was changed.', { cause: signal.reason })
}

/** Who listens to a signal, and the one listener that it knows of. */
const heeded = new WeakMap<AbortSignal, { listeners: Set<() => void>; heed: () => void }>()

/**
 * Calls back when a signal aborts; the result stops that. However many calls one signal is for, it has one listener of
 * ours: at the eleventh Node would warn of a leak.
 */
export function onAbort(signal: AbortSignal | undefined, listener: () => void): () => void {
  if (!signal) return () => undefined
  const listeners = heeded.get(signal)?.listeners ?? new Set()
  if (listeners.size === 0) {
    const heed = () => {
      for (const one of [...listeners]) tell(one)
    }
    heeded.set(signal, { listeners, heed })
    signal.addEventListener('abort', heed)
  }
  const own = () => listener()
  listeners.add(own)
  return () => {
    if (!listeners.delete(own) || listeners.size > 0) return
    signal.removeEventListener('abort', heeded.get(signal)!.heed)
    heeded.delete(signal)
  }
}
