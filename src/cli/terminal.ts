/** The terminal while questions are asked on it: it is given back when this process is stopped, or ended by a signal. */
import { type Env, errno } from '../env.ts'
import { setRaw, settingRawBy } from '../library/raw-mode.ts'

/** Signals that end a process which does not heed them. */
const ENDING = ['SIGINT', 'SIGTERM', 'SIGHUP', 'SIGQUIT'] as const

/** Milliseconds between two looks. */
const LOOK = 100

/** Whether the terminal is ours: in the background whoever changes its modes is stopped for it (tcsetattr(3)). True where nothing tells. */
function isInFront({ files }: Env): boolean {
  try {
    const fields = files
      .readFileSync('/proc/self/stat', 'latin1')
      .replace(/^.*\) /s, '')
      .split(' ')
    const [, , group, , , front] = fields // proc(5)
    return front === '-1' || front === group
  } catch (error) {
    if (errno(error) === undefined) throw error
    return true
  }
}

/** Until the result is called. */
export function heedSignals(env: Env): () => void {
  const keys = env.stdin.stream as NodeJS.ReadStream
  const giveBack = () => {
    setRaw(keys, false)
    env.stderr.write('\x1b[?25h') // the cursor
  }
  const heeded: (() => void)[] = [onlyInFront(env, keys)]
  const release = () => {
    for (const off of heeded.splice(0)) off()
  }
  let stop: () => void = () => undefined
  const stopped = () => {
    stop()
    giveBack()
    env.kill(env.pid, 'SIGTSTP') // goes on behind this; at once, and without a signal, where nobody could let it go on
    stop = env.onSignal('SIGTSTP', stopped)
    // Not before what was sent meanwhile is heard: that may be the end.
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

/**
 * Ends of the hangup where the terminal of the keys is gone: Node, which gives back its settings when it exits, aborts then.
 * Its signal may come behind the end of the keys.
 */
export function endIfHungUp(env: Env): void {
  if (!env.stdin.isTTY) env.kill(env.pid, 'SIGHUP')
}

/**
 * Until the result is called the terminal is made raw, by whomever (`readline` does it by itself on SIGCONT), only once it is
 * ours: in the background a process is stopped for it, and hears of no end.
 */
export function onlyInFront(env: Env, keys: NodeJS.ReadStream): () => void {
  let timer: NodeJS.Timeout | undefined
  const asBefore = settingRawBy(keys, (isRaw, own) => {
    clearTimeout(timer)
    if (!isRaw || isInFront(env)) own(isRaw)
    else timer = setTimeout(() => setRaw(keys, true), LOOK)
  })
  return () => {
    clearTimeout(timer)
    asBefore()
  }
}
