import { createRequire } from 'node:module'
import { dirname } from 'node:path'
import { setImmediate } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import pino from 'pino'
import type { Agent } from '../../agents/agent.ts'
import { agentIn, hook } from '../../agents/hook.ts'
import { findAgent, TRANSCRIBED } from '../../agents/registry.ts'
import { TranscriptWatch } from '../../agents/transcript-watch.ts'
import { VERSION } from '../../core/version.ts'
import { logFile } from '../../daemon/life.ts'
import { type Daemon, runDaemon } from '../../daemon/server.ts'
import { type Env, errno, statIfThere } from '../../env.ts'
import { makeDirectories } from '../../git/whole-file.ts'
import { type Context, closeContext, openContext } from '../../ops/worktree/context.ts'
import { flag } from '../arguments.ts'
import type { Command } from '../command.ts'
import type { View } from '../live-view.ts'
import { NOT_STARTED } from './daemon.ts'

/** Bytes at which the log begins anew; one older one is kept. */
const LOG_SIZE = 2 ** 20

function openLog(env: Env, path: string): pino.Logger {
  const stats = statIfThere(env.files, path)
  if (stats && stats.size > LOG_SIZE) env.files.renameSync(path, `${path}.1`)
  makeDirectories(env, dirname(path))
  return pino({ base: { pid: env.pid } }, pino.destination({ dest: path, sync: true, mode: 0o600 }))
}

/** Who keeps a record that is read. */
function watches(
  env: Env,
  { daemon, agents, log }: { daemon: Daemon; agents: readonly (Agent | null)[]; log: pino.Logger },
): TranscriptWatch[] {
  const { held } = daemon
  return agents.flatMap((agent) => {
    const { transcripts } = agent ?? {}
    if (!agent || !transcripts) return []
    const inTurn = (work: (context: Context) => Promise<void>) =>
      daemon.enqueue(async () => {
        const context = await held.context(env)
        if (context?.config.watch.transcripts && context.config.enableFileCheckpointing) await work(context)
      })
    const say = (message: string, details: object = {}) => log.info(details, message)
    const onEvent = () => held.queue.count()
    return [new TranscriptWatch(env, { agent: { ...agent, transcripts }, root: held.root, inTurn, onEvent, log: say })]
  })
}

/** What lies beside this file, one after the other: who asks meanwhile does not wait for all of them. */
async function loadRest(env: Env): Promise<void> {
  const load = createRequire(import.meta.url)
  const parts = dirname(fileURLToPath(import.meta.url))
  for (const name of env.files.readdirSync(parts).filter((one) => one.endsWith('.cjs'))) {
    load(`./${name}`)
    await setImmediate()
  }
}

/** Who reads what one in the foreground says: with the terminal, or with the program that it is piped to, it ends. */
class Reader {
  readonly #env: Env
  readonly #deaf: () => void
  #isGone = false
  #isHungUp = false
  #stop: () => void = () => undefined

  constructor(env: Env) {
    this.#env = env
    // Without a terminal (nohup) a hangup is none of its business.
    const isAttended = env.stdin.isTTY || env.stdout.isTTY
    this.#deaf = isAttended ? env.onSignal('SIGHUP', () => this.#gone(true)) : () => undefined
    env.stdout.on('error', (error) => this.#gone(errno(error) === 'EIO'))
  }

  #gone(isHungUp: boolean): void {
    this.#isGone = true
    this.#isHungUp ||= isHungUp
    this.#stop()
  }

  onGone(stop: () => void): void {
    this.#stop = stop
    if (this.#isGone) stop()
  }

  /** Ends with the hangup's own status: Node, which gives back the terminal's settings when it exits, aborts where that is gone. */
  end(): void {
    this.#deaf()
    if (this.#isHungUp) this.#env.kill(this.#env.pid, 'SIGHUP')
  }
}

const command: Command = async ({ env, args, cwd, colors, backends }) => {
  if (env.vars.CKPT_DISABLED === '1') return { json: {}, text: NOT_STARTED }
  const context = await openContext(env, cwd, { create: true, forgiving: true })
  const { worktreeDir } = context.store
  const { idleStop } = context.config.watch
  closeContext(context)
  const background = flag(args, 'background')
  const log = openLog(env, logFile(worktreeDir))
  env.onCrash((error) => log.fatal({ stack: error.stack }, `ended by a failure: ${error.message}`))
  const { loadFor, runProgram } = await import('../program.ts')
  const { startView } = background || args.json ? { startView: null } : await import('../live-view.ts')
  const agents = await Promise.all(TRANSCRIBED.map(findAgent))
  const reader = background ? null : new Reader(env)
  let view: View | null = null
  let transcripts: TranscriptWatch[] = []
  let stands = false
  const daemonEnv: Env = {
    ...env,
    // Once it stands the screen is the view's, whatever others ask of it.
    progress: (what) => (stands ? setImmediate() : env.progress(what)),
  }
  const why = await runDaemon(daemonEnv, {
    cwd,
    version: VERSION,
    backends,
    program: {
      cli: { load: loadFor, run: (argv, at) => runProgram(argv, at, backends) },
      hook: {
        load: (name) => findAgent(agentIn(name)),
        run: (at, { agent: name, event, file: handed, arrived }) =>
          hook(at, { name, event, handed, arrived, isRetried: true }),
      },
    },
    loadRest: () => loadRest(env),
    log,
    // A person who looks on keeps it alive.
    idleStop: background ? idleStop : Number.POSITIVE_INFINITY,
    onReady: (daemon: Daemon) => {
      stands = true
      // Who says so a second time, when all is done, does not make it a failure.
      env.onSignal('SIGTERM', () => undefined)
      view = startView?.(daemonEnv, { daemon, colors, backends, log }) ?? null
      reader?.onGone(() => daemon.stop())
      transcripts = watches(env, { daemon, agents, log })
      for (const one of transcripts)
        one.start().catch((error: unknown) => log.warn({ error: String(error) }, 'transcripts'))
    },
    onChange: (path) => view?.changed(path),
  })
    .catch((error: unknown) => {
      log.error(error instanceof Error ? error.message : String(error)) // in the background nobody sees it otherwise
      throw error
    })
    .finally(async () => {
      view?.end()
      await Promise.all(transcripts.map((one) => one.stop()))
      reader?.end()
    })
  return { json: {}, text: why === null ? '' : `${why}: watching has ended.` }
}

export default command
