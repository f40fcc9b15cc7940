/** Run: a command as one turn. */
import type { ChildProcess } from 'node:child_process'
import { constants } from 'node:os'
import type { SessionId } from '../core/ids.ts'
import { printable } from '../core/paths.ts'
import { type Env, errno } from '../env.ts'
import { commitAutomatically } from './commit.ts'
import { closeContext, openContext } from './context.ts'
import { type MarkResult, mark } from './mark.ts'

export interface RunOptions {
  session: SessionId
  text?: string
  command: readonly string[]
  cwd: string
  checkpoints: boolean
  /** False: no commit at its end, whatever `commit.auto` says. */
  commit: boolean
  /** Its output goes to standard error, for standard output is data. */
  json: boolean
}

export interface RunResult {
  exitCode: number
  before: MarkResult | null
  after: MarkResult | null
}

export async function run(env: Env, options: RunOptions): Promise<RunResult> {
  const { session, command, cwd } = options
  const markNow = async (marker: Parameters<typeof mark>[1]) => {
    const arrived = env.monotonic()
    const context = await openContext(env, cwd, { create: true, forgiving: true })
    try {
      const marked = await mark(context, marker, arrived)
      const ends = marker.event === 'stop' && marked.checkpoint !== null && context.repository !== null
      if (ends && options.commit && context.config.commit.auto)
        marked.warnings.push(...(await commitAutomatically(context, session)))
      return marked
    } finally {
      closeContext(context)
    }
  }
  const text = options.text ?? command.join(' ')
  const before = options.checkpoints
    ? await markNow({ event: 'prompt', session, text, agent: 'run', kind: 'shell' })
    : null
  const ended = await runChild(env, options)
  const status = ended.signal ? 'interrupted' : ended.code === 0 ? 'completed' : 'failed'
  const after = before?.checkpoint ? await markNow({ event: 'stop', session, status }) : null
  const signal = ended.signal ? 128 + (constants.signals[ended.signal] ?? 0) : null
  return { exitCode: signal ?? ended.code, before, after }
}

function runChild(
  env: Env,
  { command, cwd, json }: RunOptions,
): Promise<{ code: number; signal: NodeJS.Signals | null }> {
  const failed = (error: unknown) => {
    const why = error instanceof Error ? error.message : String(error)
    env.stderr.write(`ckpt: ${printable(command[0]!)} could not be started: ${why}\n`)
    return { code: errno(error) === 'ENOENT' ? 127 : 126, signal: null }
  }
  return new Promise((resolve) => {
    let child: ChildProcess
    try {
      child = env.spawn(command[0]!, command.slice(1), {
        cwd,
        env: env.vars as NodeJS.ProcessEnv,
        stdio: ['inherit', json ? 2 : 'inherit', 'inherit'],
      })
    } catch (error) {
      return resolve(failed(error)) // some failures Node throws
    }
    // A terminal sends Ctrl-C to both of us: we stay, to record what the command left.
    const stop = [
      env.onSignal('SIGINT', () => undefined),
      env.onSignal('SIGTERM', () => child.kill('SIGTERM')),
      env.onSignal('SIGHUP', () => child.kill('SIGHUP')),
    ]
    const done = (result: { code: number; signal: NodeJS.Signals | null }) => {
      for (const off of stop) off()
      resolve(result)
    }
    child.on('error', (error) => done(failed(error)))
    child.on('close', (code, signal) => done({ code: code ?? 0, signal }))
  })
}
