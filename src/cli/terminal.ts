/** The terminal while questions are asked on it: it is given back when this process is stopped, or ended by a signal. */
import type { Env } from '../env.ts'

/** Signals that end a process which does not heed them. */
const ENDING = ['SIGINT', 'SIGTERM', 'SIGHUP', 'SIGQUIT'] as const

/** Raw, or as it was. A terminal that is gone tells that in its own way (SIGHUP), and is no failure of who only asks it back. */
export function setRaw(keys: NodeJS.ReadStream, isRaw: boolean): void {
  const hush = () => undefined
  keys.on('error', hush) // it emits one, rather than to throw it
  keys.setRawMode?.(isRaw)
  keys.off('error', hush)
}

/** Until the result is called. */
export function heedSignals(env: Env): () => void {
  const keys = env.stdin.stream as NodeJS.ReadStream
  const giveBack = () => {
    setRaw(keys, false)
    env.stderr.write('\x1b[?25h') // the cursor
  }
  const heeded: (() => void)[] = []
  const release = () => {
    for (const off of heeded.splice(0)) off()
  }
  let stop: () => void = () => undefined
  const stopped = () => {
    stop()
    giveBack()
    env.kill(env.pid, 'SIGTSTP') // goes on behind this; at once, and without a signal, where nobody could let it go on
    stop = env.onSignal('SIGTSTP', stopped)
    // Not before what was sent meanwhile is heard: who is in the background, and is to end, would be stopped for it (tcsetattr(3)).
    setImmediate(() => setImmediate(() => heeded.length > 0 && setRaw(keys, true)))
  }
  stop = env.onSignal('SIGTSTP', stopped)
  const end = (signal: NodeJS.Signals) => () => {
    release()
    giveBack()
    env.kill(env.pid, signal)
  }
  heeded.push(() => stop(), ...ENDING.map((signal) => env.onSignal(signal, end(signal))))
  return release
}
