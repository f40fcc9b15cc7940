/** Run: a command as one turn. */
import type { ChildProcess } from 'node:child_process'
import { constants } from 'node:os'
import { CkptError, reasonOf } from '../core/errors.ts'
import { sessionOption } from '../core/hint-words.ts'
import { parseSessionId, type SessionId } from '../core/ids.ts'
import type { MarkResult } from '../core/marker.ts'
import { printable } from '../core/paths.ts'
import { type Env, errno } from '../env.ts'
import { makeDirectories } from '../git/whole-file.ts'
import { isNowhere } from '../programs.ts'
import { commitAutomatically } from './commit/commit.ts'
import { mark } from './mark.ts'
import { type Context, closeContext, openContext } from './worktree/context.ts'
import { takeAtOnce, whileSeen } from './worktree/lock.ts'

export interface RunOptions {
  /** Without one: `run`, or while another command runs in that, `run-2`, and so on. */
  session?: SessionId
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
  // No turn of a mistyped command: its prompt would end what an undo has hidden, and the next undo would take back nothing.
  if (!options.checkpoints || isNowhere(env, options.command[0]!, options.cwd))
    return { exitCode: statusOf(await runChild(env, options)), before: null, after: null }
  const arrived = env.monotonic()
  const context = await openContext(env, options.cwd, { create: 'unless-off', forgiving: true })
  const inSession = (session: SessionId) => runTurn(context, session, { ...options, arrived })
  try {
    const { session } = options
    if (session === undefined && context.config.enableFileCheckpointing) return await inFreeSession(context, inSession)
    return await inSession(session ?? DEFAULT_SESSION)
  } finally {
    closeContext(context)
  }
}

async function runTurn(
  context: Context,
  session: SessionId,
  options: RunOptions & { arrived: number },
): Promise<RunResult> {
  const { env, worktree } = context
  const { text, command, commit, arrived } = options
  const turn = `run:${env.random(8)}`
  const marker = { session, marker: turn, text: text ?? command.join(' '), agent: 'run', kind: 'shell' } as const
  const before = await mark(context, { event: 'prompt', ...marker }, arrived)
  if (options.session === undefined && session !== DEFAULT_SESSION)
    before.warnings.push(`Another \`ckpt run\` is at work in this worktree: this one is session ${session}.`)
  closeContext(context) // it may be long until it is needed again, and much may have happened by then
  // A second Ctrl-C, or a terminal that closes once the command has ended, does not keep its end from being recorded.
  const deaf = (['SIGINT', 'SIGTERM', 'SIGHUP'] as const).map((signal) => env.onSignal(signal, () => undefined))
  try {
    const ended = await runChild(env, options)
    // The command may have removed the directory that it began in.
    const after = before.checkpoint ? await endSaid(env, worktree.root, { session, turn, before, ended, commit }) : null
    return { exitCode: statusOf(ended), before, after }
  } finally {
    for (const off of deaf) off()
  }
}

/** The command has ended as it has: what keeps its end from being recorded is a warning. */
async function endSaid(env: Env, root: string, given: AtEnd): Promise<MarkResult | null> {
  try {
    return await end(env, root, given)
  } catch (error) {
    if (!(error instanceof CkptError) && errno(error) === undefined) throw error
    const { before, session } = given
    before.warnings.push(
      `The end of turn ${before.turn} was not recorded, and it counts as running: ${reasonOf(error)} In its worktree: ckpt mark stop ${sessionOption(session)}`,
    )
    return null
  }
}

const DEFAULT_SESSION = 'run' as SessionId

/** The first of `run`, `run-2`, … that no command runs in: taken while `work` goes on. */
async function inFreeSession<T>({ env, store }: Context, work: (session: SessionId) => Promise<T>): Promise<T> {
  const directory = `${store.worktreeDir}/runs`
  makeDirectories(env, directory)
  return whileSeen(env, directory, async (sign) => {
    for (let n = 1; ; n++) {
      const session = n === 1 ? DEFAULT_SESSION : parseSessionId(`${DEFAULT_SESSION}-${n}`)
      const release = takeAtOnce(env, `${directory}/${session}`, { command: 'run', sign })
      if (!release) continue
      try {
        return await work(session)
      } finally {
        release()
      }
    }
  })
}

interface AtEnd {
  session: SessionId
  /** The marker of its prompt: the end is of that turn and of no other. */
  turn: string
  before: MarkResult
  ended: Ended
  commit: boolean
}

async function end(env: Env, root: string, { session, turn, before, ended, commit }: AtEnd): Promise<MarkResult> {
  const arrived = env.monotonic()
  const status = ended.signal ? 'interrupted' : ended.code === 0 ? 'completed' : 'failed'
  const context = await openContext(env, root, { create: 'unless-off', forgiving: true })
  try {
    const stop = { event: 'stop', session, turn, marker: `${turn}:stop`, status } as const
    const marked = await mark(context, stop, arrived)
    const { checkpoint, warnings } = marked
    if (checkpoint?.late)
      warnings.push(
        `Turn ${before.turn} of session ${session} was ended while the command ran, by another prompt or an undo there: what the command did since is not in it.`,
      )
    else if (checkpoint && context.repository && commit && context.config.commit.auto)
      warnings.push(...(await commitAutomatically(context, session)))
    return marked
  } finally {
    closeContext(context)
  }
}

interface Ended {
  code: number
  signal: NodeJS.Signals | null
}

const statusOf = ({ code, signal }: Ended): number => (signal ? 128 + (constants.signals[signal] ?? 0) : code)

function runChild(env: Env, { command, cwd, json }: RunOptions): Promise<Ended> {
  const failed = (error: unknown) => {
    const why = error instanceof Error ? error.message : String(error)
    env.stderr.write(`ckpt: ${printable(command[0]!)} could not be started: ${why}\n`)
    return { code: errno(error) === 'ENOENT' ? 127 : 126, signal: null }
  }
  return new Promise((resolve) => {
    let child: ChildProcess | null = null
    let early: NodeJS.Signals | null = null
    const passOn = (signal: NodeJS.Signals) => () => {
      if (child) child.kill(signal)
      else early = signal
    }
    // A terminal sends Ctrl-C to both of us: we stay, to record what the command left. From before it is there.
    const stop = [
      env.onSignal('SIGINT', () => undefined),
      env.onSignal('SIGQUIT', () => undefined),
      env.onSignal('SIGTERM', passOn('SIGTERM')),
      env.onSignal('SIGHUP', passOn('SIGHUP')),
    ]
    const done = (result: Ended) => {
      for (const off of stop) off()
      resolve(result)
    }
    try {
      child = env.spawn(command[0]!, command.slice(1), {
        cwd,
        env: env.vars as NodeJS.ProcessEnv,
        stdio: ['inherit', json ? 2 : 'inherit', 'inherit'],
        umask: env.givenUmask,
      })
    } catch (error) {
      return done(failed(error)) // some failures Node throws
    }
    if (early) child.kill(early)
    child.on('error', (error) => {
      if (child?.pid === undefined) done(failed(error)) // else a signal that may not be sent to it: it goes on
    })
    child.on('close', (code, signal) => done({ code: code ?? 0, signal }))
  })
}
