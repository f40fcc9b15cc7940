/** Work whose end is not waited for after a time: a git that hangs must not hold up an agent. */

export class Interrupted extends Error {}

/** The work goes on all the same. @throws Interrupted */
export async function within<T>(work: Promise<T>, ms: number): Promise<T> {
  let timer: NodeJS.Timeout | undefined
  const late = new Promise<never>((_, reject) => {
    timer = setTimeout(() => reject(new Interrupted('The deadline passed before it was recorded.')), Math.max(1, ms))
  })
  try {
    return await Promise.race([work, late])
  } finally {
    clearTimeout(timer)
  }
}
