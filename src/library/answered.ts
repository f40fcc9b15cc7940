/** Questions of the prompts library, which never settles them once no more keys come. */
import type { Readable } from 'node:stream'

/** `ask` is given the signal that nobody is there any more: the keys have ended, or Ctrl-D said so. Null: not answered. */
export async function answered<T>(
  keys: NodeJS.ReadableStream,
  ask: (signal: AbortSignal) => Promise<T>,
): Promise<Exclude<T, symbol> | null> {
  const { readableEnded, destroyed } = keys as Partial<Readable>
  if (readableEnded || destroyed) return null
  const { isCancel } = await import('@clack/prompts')
  const gone = new AbortController()
  const end = () => gone.abort()
  const onKey = (_: string, { ctrl, name }: { ctrl?: boolean; name?: string }) => {
    if (ctrl && name === 'd') end()
  }
  keys.once('end', end).once('close', end).on('keypress', onKey)
  try {
    const value = await ask(gone.signal)
    return isCancel(value) ? null : (value as Exclude<T, symbol>)
  } finally {
    keys.off('end', end).off('close', end).off('keypress', onKey)
  }
}
