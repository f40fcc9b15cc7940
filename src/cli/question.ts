/** A question to whoever is at the terminal. */
import { createInterface } from 'node:readline'
import type { Env } from '../env.ts'
import { settingRawWhereThere } from '../library/raw-mode.ts'
import { endIfHungUp } from './terminal.ts'

/** Asked on standard error. The end of what is typed is a no; Ctrl-C ends the process as it does at any other time. */
export async function askYesNo(env: Env, question: string): Promise<boolean> {
  const { stream: input } = env.stdin
  if (input.readableEnded || input.destroyed) return false
  const asBefore = settingRawWhereThere(input as NodeJS.ReadStream)
  return new Promise((resolve) => {
    const asking = createInterface({ input, output: env.stderr })
    let answer: string | null = null
    let interrupted = false
    asking.once('SIGINT', () => {
      interrupted = true
      asking.close()
    })
    asking.once('close', () => {
      asBefore()
      if (answer === null) env.stderr.write('\n')
      if (interrupted) env.kill(env.pid, 'SIGINT')
      else if (answer === null) endIfHungUp(env)
      resolve(answer !== null && /^y(es)?$/i.test(answer.trim()))
    })
    asking.question(`${question} [y/N] `, (line) => {
      answer = line
      asking.close()
    })
  })
}
