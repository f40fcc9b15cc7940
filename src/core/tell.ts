/**
 * Calls somebody else's listener. What it throws is an uncaught exception of the process, as with an EventTarget: it ends
 * neither what it was told of nor what it is told next, and is not lost.
 */
export function tell<A extends readonly unknown[]>(listener: (...given: A) => unknown, ...given: A): void {
  try {
    listener(...given)
  } catch (error) {
    queueMicrotask(() => {
      throw error
    })
  }
}
