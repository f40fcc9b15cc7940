/** Handing a command line to the worktree's daemon, if there is one. */
import type { Env } from '../env.ts'
import { callDaemon } from './call.ts'
import { isAlive, quickWorktreeDir, readInfo } from './place.ts'
import type { CliAnswer, CliCall } from './protocol.ts'

/** What the daemon answers faster: everything that takes a snapshot. */
const ROUTED = new Set(['mark', 'snapshot', 'undo', 'redo', 'accept', 'restore', 'switch', 'apply'])
/** Milliseconds; longer than any command waits for a lock and captures. */
const PATIENCE = 60_000

/** Null: no daemon answers, or this is not for it; the caller does the work itself. */
export async function throughDaemon(env: Env, argv: readonly string[], version: string): Promise<CliAnswer | null> {
  const dashes = argv.indexOf('--')
  const own = dashes < 0 ? argv : argv.slice(0, dashes)
  const [command] = own
  if (env.held || env.vars.CKPT_DISABLED === '1' || !ROUTED.has(command ?? '')) return null
  if (
    own.includes('--no-daemon') ||
    own.includes('--help') ||
    own.includes('-h') ||
    own.some((arg) => arg.startsWith('--cwd'))
  )
    return null
  const place = quickWorktreeDir(env, env.cwd)
  const info = place && readInfo(env, place.worktreeDir)
  // One of another version may mean something else by the same words.
  if (!info || info.version !== version || info.root !== place.root || !isAlive(env, info)) return null
  const vars = Object.fromEntries(Object.entries(env.vars).filter(([, value]) => value !== undefined)) as Record<
    string,
    string
  >
  const call: Omit<CliCall, 'token'> = {
    argv: [command!, '--no-daemon', ...argv.slice(1)],
    cwd: env.cwd,
    vars,
    terminal: Boolean(env.stdout.isTTY),
    columns: env.stdout.columns ?? 80,
  }
  const answer = await callDaemon<CliAnswer>(env, info, { method: 'cli', params: call, timeout: PATIENCE })
  return answer?.result ?? null
}
