/** One line on a terminal for what takes longer than a second; it goes when the work is done. Nothing on a pipe. */
import type { Env } from '../env.ts'
import type { Arguments } from './command.ts'

/** Milliseconds before anything is shown, and between two changes of the line. */
const PATIENCE = 1000
const STEP = 100

export function showProgress(env: Env, args: Arguments): { env: Env; clear: () => void } {
  if (!env.stderr.isTTY || args.quiet || args.json || env.vars.TERM === 'dumb') return { env, clear: () => undefined }
  const start = env.monotonic()
  let last = 0
  const progress = (what: string) => {
    const now = env.monotonic()
    if (now - start < PATIENCE || now - last < STEP) return
    last = now
    const width = (env.stderr.columns ?? 80) - 1
    env.stderr.write(`\r\x1b[2K${`ckpt: ${what} …`.slice(0, width)}`)
  }
  const clear = () => {
    if (last > 0) env.stderr.write('\r\x1b[2K')
  }
  return { env: { ...env, progress }, clear }
}
