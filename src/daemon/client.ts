/** Handing a command line to the worktree's daemon, if there is one. */
import { quoted } from '../core/hint-words.ts'
import { jsonDocument } from '../core/json-document.ts'
import { isOn, ownWords } from '../core/own-words.ts'
import { type Env, errno } from '../env.ts'
import { quickPlaces } from '../ops/worktree/quick-place.ts'
import type { ErrorInfo } from '../results/shapes.ts'
import { callDaemon } from './call.ts'
import { isAlive, readInfo } from './place.ts'
import { type CliAnswer, type CliCall, REFUSED } from './protocol.ts'

/** What the daemon answers faster: everything that takes a snapshot. */
export const ROUTED: ReadonlySet<string> = new Set([
  'mark',
  'snapshot',
  'undo',
  'redo',
  'accept',
  'restore',
  'switch',
  'apply',
  'hook',
])
/** Milliseconds; longer than any command waits for a lock and captures. */
const PATIENCE = 60_000

/** What the daemon answered, or the command line that the caller is to run itself; `input`: what standard input held, if it was read. */
export type Routed = { answer: CliAnswer } | { run: readonly string[]; input?: Buffer }

export async function throughDaemon(
  env: Env,
  argv: readonly string[],
  { version, tell }: { version: string; tell?: (what: string) => void },
): Promise<Routed> {
  const own = ownWords(argv)
  const [command] = own
  if (env.held || env.vars.CKPT_DISABLED === '1' || !ROUTED.has(command ?? '')) return { run: argv }
  if (
    own.includes('--no-daemon') ||
    own.includes('--help') ||
    own.includes('-h') ||
    own.some((arg) => arg.startsWith('--cwd'))
  )
    return { run: argv }
  const found = findDaemon(env)
  if (!found) return { run: argv }
  const { place, info } = found
  // One of another version may mean something else by the same words.
  if (info.version !== version || info.root !== place.root) return { run: argv }
  const vars = Object.fromEntries(Object.entries(env.vars).filter(([, value]) => value !== undefined)) as Record<
    string,
    string
  >
  // So that a marker whose answer is lost can be sent again, and is one.
  const named = command !== 'mark' || own.some((arg) => arg === '--marker' || arg.startsWith('--marker='))
  const line = named ? argv : [command!, '--marker', `client:${onceOnly(env)}`, ...argv.slice(1)]
  const call: Omit<CliCall, 'token'> = {
    argv: [command!, '--no-daemon', ...line.slice(1)],
    cwd: env.cwd,
    vars,
    terminal: Boolean(env.stdout.isTTY),
    columns: env.stdout.columns ?? 80,
    progress: tell !== undefined,
  }
  // An undo of many files takes as long as it takes.
  const answer = await callDaemon<CliAnswer>(env, info, {
    method: 'cli',
    params: call,
    timeout: PATIENCE,
    patient: true,
    tell,
  })
  if (answer?.result) return { answer: answer.result }
  const json = isOn(own, 'json')
  if (answer?.error?.code === REFUSED && env.signal?.aborted)
    return { answer: failed({ code: 'CANCELLED', message: answer.error.message }, json) }
  return answer?.lost && command !== 'mark' ? { answer: failed(lost(argv), json) } : { run: line }
}

/** Null: there is none; or what is there cannot be looked at, which is for the command itself to say. */
function findDaemon(env: Env) {
  try {
    for (const place of quickPlaces(env, env.cwd)) {
      const info = readInfo(env, place.worktreeDir)
      if (info && isAlive(env, info)) return { place, info }
    }
    return null
  } catch (error) {
    if (errno(error) === undefined) throw error
    return null
  }
}

/** An id that nobody else has: two do not begin at the same time in the same process. The random numbers of crypto take long to load. */
const onceOnly = ({ pid, now, monotonic }: Env) => `${pid}-${now().toString(36)}-${monotonic().toString(36)}`

/** A second undo would be another one: nothing is done again that may have been done. */
const lost = (argv: readonly string[]): Failure => ({
  code: 'INTERNAL',
  message: `The daemon took \`ckpt ${argv[0]}\` and went without an answer: it may have been carried out.`,
  hints: [
    'ckpt status   (finishes what was begun, and says where you are)',
    `ckpt ${alone(argv)}   (only where that shows that it was not)`,
  ],
})

/** The same command line for a shell, without the daemon. */
const alone = (argv: readonly string[]): string => {
  const own = ownWords(argv)
  return [...own, '--no-daemon', ...argv.slice(own.length)].map(quoted).join(' ')
}

/** Exit code 1. */
type Failure = Pick<ErrorInfo, 'message' | 'hints'> & { code: 'CANCELLED' | 'INTERNAL' }

/** What the command itself would print. */
function failed(error: Failure, json: boolean): CliAnswer {
  const { message, hints = [] } = error
  return {
    code: 1,
    stdout: json ? jsonDocument({ ok: false, error }) : '',
    stderr: json ? '' : `ckpt: ${message}\n${hints.map((hint) => `  → ${hint}\n`).join('')}`,
  }
}
