/**
 * Where an agent's hook hands its payload over to the daemon; `bin/ckpt-hook` knows it too.
 *
 * ```
 * daemon/hooks/ready         who answers here, one field a line; only while the daemon listens
 * daemon/hooks/door          a fifo: `<id> <agent> [event]`
 * daemon/hooks/free/<id>     fifos for answers; who makes `<id>.payload` has that one, and with none left makes its own
 * daemon/hooks/<id>.payload  what was handed over, whole when the line is sent
 * daemon/hooks/<id>.answer   a fifo in use, ready before or the client's own: `working` as a sign of life, then `done [answer]`, or `no`
 * ```
 */
import type { Env } from '../env.ts'
import { writeFileWhole } from '../git/whole-file.ts'
import { isRunning, startOf } from '../ops/worktree/processes.ts'

/** Said by `ready`, and by the client: raised when one would misunderstand the other. */
const PROTOCOL = 'ckpt-hooks 3'

/** The daemon's process. */
export interface Answering {
  pid: number
  started: string
}

export const hooksDirectory = (worktreeDir: string): string => `${worktreeDir}/daemon/hooks`
export const readyFile = (directory: string): string => `${directory}/ready`
export const doorFifo = (directory: string): string => `${directory}/door`
/** Made beforehand by the daemon. */
export const freeFifo = (directory: string, id: string): string => `${directory}/free/${id}`
/** One in use, or of the client's own making. */
export const answerFifo = (directory: string, id: string): string => `${directory}/${id}.answer`
export const payloadFile = (directory: string, id: string): string => `${directory}/${id}.payload`

/** Says that this process answers. */
export function announce(env: Env, directory: string): void {
  const fields = [PROTOCOL, String(env.pid), startOf(env, env.pid), ...settingsOf(env)]
  // A line break in one of them would move the others.
  if (!fields.some((field) => field.includes('\n')))
    writeFileWhole(env, readyFile(directory), { content: `${fields.join('\n')}\n`, sync: false })
}

/** Null: nobody answers, or one that would look for the configuration elsewhere than its client, or another user's. */
export function whoAnswers(env: Env, directory: string): Answering | null {
  let ready: string
  try {
    ready = env.files.readFileSync(readyFile(directory), 'utf8')
  } catch {
    return null
  }
  const [protocol, pid, started, ...places] = ready.split('\n')
  if (protocol !== PROTOCOL || settingsOf(env).some((place, i) => place !== places[i])) return null
  const answering = { pid: Number(pid), started: started! }
  return isAnswering(env, answering) ? answering : null
}

export const isAnswering = (env: Env, { pid, started }: Answering): boolean => isRunning(env, pid, started)

/** Whether both look for the configuration, and for stores of plain directories, in the same places. */
export const sameSettings = (one: Env, other: Env): boolean =>
  settingsOf(one).every((place, i) => place === settingsOf(other)[i])

function settingsOf({ home, vars }: Env): string[] {
  const { XDG_CONFIG_HOME = '', XDG_STATE_HOME = '', CKPT_STATE_DIR = '' } = vars
  return [home, XDG_CONFIG_HOME, XDG_STATE_HOME, CKPT_STATE_DIR]
}
