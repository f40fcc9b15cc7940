/** Where the program starts. What the worktree's daemon can do at once it does; all the rest is loaded only if it is needed. */
import type { Backends } from '../backends/backends.ts'
import { commandFirst } from '../core/own-words.ts'
import { throughDoor } from '../daemon/hook-client.ts'
import { type Env, inputOf } from '../env.ts'
import { attended } from './attended.ts'
import { codeOnceSaid, listen } from './streams.ts'

export { realEnv } from '../env.ts'

/** A hook that nobody caught an error in: it is in the log, and the agent goes on. */
export async function hookFailed(env: Env, error: unknown): Promise<void> {
  const { logHookError, stateLog } = await import('../ops/hook/log.ts')
  logHookError(env, stateLog(env), { where: 'ckpt hook', error })
}

/** Runs one command line; the result is the exit code. */
export async function main(given: readonly string[], env: Env, backends?: Backends): Promise<number> {
  const argv = commandFirst(given)
  const { routed, told } =
    argv[0] === 'hook' ? { routed: await throughDoor(env, argv), told: null } : await attended(env, argv)
  if ('answer' in routed) {
    const { answer } = routed
    const isSilent = answer.stdout === '' && answer.stderr === '' // as a hook is: its streams need not be loaded
    const unsaid = isSilent ? null : listen(env)
    if (answer.stdout !== '') env.stdout.write(answer.stdout)
    if (answer.stderr !== '') env.stderr.write(answer.stderr)
    if (told) env.kill(env.pid, told)
    return unsaid ? codeOnceSaid(env, { argv, code: answer.code, unsaid }) : answer.code
  }
  if (told) env.kill(env.pid, told) // before anything was done
  const { runProgram } = await import('./program.ts')
  const at = routed.input ? { ...env, stdin: inputOf(routed.input) } : env
  return runProgram(routed.run, at, backends)
}
