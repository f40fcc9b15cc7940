/** What is thrown where nobody catches it. */

/** The uncaught exceptions and unhandled rejections of the process while something runs, and until it has come to rest. */
export async function uncaught(work: () => Promise<unknown>): Promise<unknown[]> {
  const met: unknown[] = []
  const hear = (error: unknown) => met.push(error)
  const events = ['uncaughtException', 'unhandledRejection']
  const kept = events.map((event) => process.rawListeners(event))
  for (const event of events) process.removeAllListeners(event).on(event, hear)
  try {
    await work()
    await new Promise((resolve) => setTimeout(resolve, 20))
  } finally {
    events.forEach((event, i) => {
      process.off(event, hear)
      for (const listener of kept[i]!) process.on(event, listener as () => void)
    })
  }
  return met
}
