/** Questions of the prompts library, which never settles them once no more keys come. */
import type { Readable } from 'node:stream'
import { settingRawWhereThere } from './raw-mode.ts'

/**
 * `ask` is given the signal that nobody is there any more: the keys have ended, or Ctrl-D said so. Null: not answered.
 * A process that was stopped and goes on (Ctrl-Z, `fg`) asks again: the library draws nothing by itself then, and hears nothing.
 */
export async function answered<T>(
  keys: NodeJS.ReadableStream,
  ask: (signal: AbortSignal) => Promise<T>,
): Promise<Exclude<T, symbol> | null> {
  const { isCancel } = await import('@clack/prompts')
  for (;;) {
    const { readableEnded, destroyed } = keys as Partial<Readable>
    if (readableEnded || destroyed) return null
    const gone = new AbortController()
    let isStopped = false
    const end = () => gone.abort()
    const onKey = (_: string, { ctrl, name }: { ctrl?: boolean; name?: string }) => {
      if (ctrl && name === 'd') end()
    }
    // Behind Node's readline, which lets go of the keys then.
    const onResume = () =>
      setImmediate(() => {
        isStopped = true
        end()
      })
    keys.once('end', end).once('close', end).on('keypress', onKey)
    process.once('SIGCONT', onResume)
    const asBefore = settingRawWhereThere(keys as NodeJS.ReadStream)
    try {
      const value = await ask(gone.signal)
      if (!isCancel(value)) return value as Exclude<T, symbol>
      if (!isStopped) return null
    } finally {
      asBefore()
      keys.off('end', end).off('close', end).off('keypress', onKey)
      process.off('SIGCONT', onResume)
    }
  }
}
