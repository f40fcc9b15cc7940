/** Signals that come while a git is at work that speaks for the user: to their hooks, or to another machine. */
import type { ChildProcess } from 'node:child_process'
import { type Env, errno } from '../../env.ts'
import { groupBelow } from './processes.ts'

export const SIGNALS = ['SIGINT', 'SIGTERM', 'SIGHUP'] as const

/** Milliseconds for git to end of a signal by itself: a terminal sends it to all, and a hook need not hear it twice. */
const BY_ITSELF = 100

function tell(env: Env, pid: number, signal: NodeJS.Signals): void {
  try {
    env.kill(pid, signal)
  } catch (error) {
    if (errno(error) === undefined) throw error // it has ended, or is another user's
  }
}

/** One that came to this process alone is passed on to git, and to what it runs, which git itself leaves at work. `told`: hears of each. */
export function passOn(env: Env, git: ChildProcess, told?: (signal: NodeJS.Signals) => void): void {
  let timer: NodeJS.Timeout | undefined
  let isPassedOn = false
  const pass = (signal: NodeJS.Signals) => {
    if (git.pid === undefined) return
    isPassedOn = true
    const below = groupBelow(env, git.pid)
    git.kill(signal) // first, for a hook may end well of it
    for (const pid of below) tell(env, pid, signal)
  }
  const deaf = SIGNALS.map((signal) =>
    env.onSignal(signal, () => {
      told?.(signal)
      clearTimeout(timer)
      timer = setTimeout(() => pass(signal), BY_ITSELF)
    }),
  )
  const done = () => {
    clearTimeout(timer)
    for (const off of deaf.splice(0)) off()
  }
  git.on('error', done)
  git.on('exit', () => {
    done()
    if (isPassedOn) for (const pipe of [git.stdout, git.stderr]) pipe?.destroy() // a hook that goes on may hold them
  })
}
