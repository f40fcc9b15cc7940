/** One line on a terminal for what takes longer than a second; it goes when the work is done. Nothing on a pipe. */
import { type Env, telling } from '../env.ts'
import type { Arguments } from './command.ts'
import { movesItsCursor } from './streams.ts'

export interface ProgressLine {
  show: (what: string) => void
  clear: () => void
}

/** Standard error is looked at when there is something to show: to open it takes its time. */
export function progressLine(env: Env): ProgressLine {
  let shown = false
  return {
    show: (what) => {
      if (!env.stderr.isTTY || !movesItsCursor(env)) return
      shown = true
      const width = (env.stderr.columns ?? 80) - 1
      env.stderr.write(`\r\x1b[2K${`ckpt: ${what} …`.slice(0, width)}`)
    },
    clear: () => {
      if (shown) env.stderr.write('\r\x1b[2K')
      shown = false
    },
  }
}

/** In the daemon there is no terminal, and what is told goes to the client's. */
export function showProgress(env: Env, args: Arguments): { env: Env; clear: () => void } {
  if (!env.stderr.isTTY || args.quiet || args.json) return { env, clear: () => undefined }
  const { show, clear } = progressLine(env)
  return { env: telling(env, show), clear }
}
