/** A command that the daemon carries out, with somebody before it: what it does is shown here, and Ctrl-C reaches it. */
import { isOn, ownWords } from '../core/own-words.ts'
import { VERSION } from '../core/version.ts'
import { ROUTED, type Routed, throughDaemon } from '../daemon/client.ts'
import type { Env } from '../env.ts'
import { progressLine } from './progress.ts'

/** Milliseconds within which a call is cancelled, if it can be. */
const AT_ONCE = 500
const SIGNALS = ['SIGINT', 'SIGTERM', 'SIGHUP'] as const

/**
 * A signal cancels the call, until it begins to write; then its end is waited for, and a second signal leaves it to the
 * daemon. `told`: the signal, of which this process is to end once all is said.
 */
export async function attended(
  env: Env,
  argv: readonly string[],
): Promise<{ routed: Routed; told: NodeJS.Signals | null }> {
  // A marker is to be recorded even where whoever brought it is told to go.
  if (!ROUTED.has(argv[0] ?? '') || argv[0] === 'mark')
    return { routed: await throughDaemon(env, argv, { version: VERSION }), told: null }
  const own = ownWords(argv)
  const quiet = isOn(own, 'quiet')
  const line = progressLine(env)
  const cancel = new AbortController()
  let told: NodeJS.Signals | null = null
  let late: NodeJS.Timeout | undefined
  const deaf: (() => void)[] = []
  const hear = (signal: NodeJS.Signals) => {
    told = signal
    for (const off of deaf.splice(0)) off()
    cancel.abort()
    if (quiet) return
    late = setTimeout(() => {
      line.clear()
      const next = signal === 'SIGINT' ? 'Ctrl-C once more' : 'Another signal'
      env.stderr.write(
        `ckpt: It is cancelled as soon as it can be; what is being written ends first. ${next} leaves it to the daemon.\n`,
      )
    }, AT_ONCE)
  }
  for (const signal of SIGNALS) deaf.push(env.onSignal(signal, () => hear(signal)))
  try {
    const tell = quiet || isOn(own, 'json') ? {} : { tell: line.show }
    const routed = await throughDaemon({ ...env, signal: cancel.signal }, argv, { version: VERSION, ...tell })
    return { routed, told }
  } finally {
    clearTimeout(late)
    for (const off of deaf) off()
    line.clear()
  }
}
