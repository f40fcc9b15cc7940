/** `ckpt hook`: never fails the agent, never says a word to it, never blocks it past the deadline. */
import { basename, dirname } from 'node:path'
import { CkptError } from '../core/errors.ts'
import type { MarkResult } from '../core/marker.ts'
import { type Env, errno, lstatIfThere } from '../env.ts'
import { isHanded, keepHanded, readHanded, removeHanded } from '../ops/hook/handed.ts'
import { readInput } from '../ops/hook/input.ts'
import { logHookError, stateLog, writeHookErrorSomewhere } from '../ops/hook/log.ts'
import type { Context } from '../ops/worktree/context.ts'
import { closeContext, openContext } from '../ops/worktree/context.ts'
import type { Agent } from './agent.ts'
import { type Delivery, deliver, isFinal, leaveOpen, type Progress } from './deliver.ts'
import { AGENT_NAMES, findAgent } from './registry.ts'
import { Interrupted, within } from './within.ts'

export interface HookOptions {
  name: string
  /** An event's name, or the payload itself where the agent gives it as an argument. */
  event: string | undefined
  /** Milliseconds of the monotonic clock. */
  arrived: number
  /** A file that a client handed over, instead of standard input. It is removed. */
  handed?: string | undefined
  /** The file was left behind: what it tells of is long past. */
  late?: boolean
  /** Its client does it itself where we cannot. */
  isRetried?: boolean
  /** The deadline passed, and something hangs; with what the agent waits for. */
  gaveUp?: (answer: string | null) => void
  /** Told of each marker that is recorded. */
  recorded?: (context: Context, result: MarkResult) => void
}

/** Parts of the time-out that is installed: when a capture has to be done, and when we are gone whatever happens. */
const DEADLINE = 0.8
const LAST_MOMENT = 0.9
/** Milliseconds after which a payload that was handed over may have been overtaken. */
const SLOW = 1000

class Unheard extends Error {}

/** Returns what the agent waits for on standard output. @throws Unheard where its client does it again */
export async function hook(env: Env, options: HookOptions): Promise<string | null> {
  if (options.handed === undefined) return (await hear(env, options)).answer
  const file = withoutLinks(env, options.handed)
  if (!isHanded(file)) {
    const error = new CkptError('USAGE', `${file} was not handed over by a hook: it is not read. Nothing was recorded.`)
    logHookError(env, await logPlace(env, { directory: null }), { where: options.name, error })
    return null
  }
  const handed = readHanded(env, file)
  if (handed === null) {
    const isThere = lstatIfThere(env.files, file) !== null
    removeHanded(env, file)
    if (isThere) await logError(env, { where: options.name, error: cutOff(), directory: null })
    return null
  }
  const { id, agent: name, event, cwd, project, payload, time } = handed
  // Its client was blocked so long, or is gone: others may have said more meanwhile.
  const handedAt = env.now() - time > SLOW ? new Date(time).toISOString() : undefined
  const vars = { ...env.vars, CLAUDE_PROJECT_DIR: project }
  const heard = await hear({ ...env, cwd, vars }, { ...options, name, event, id, given: payload, handedAt })
  if (heard.unheard === 'failed' && options.isRetried) throw new Unheard('It was not recorded: its client is to try.')
  // Once: what the next hook cannot open either stays closed, and each later one would try.
  const isKept = heard.unheard !== undefined && !options.late && keepHanded(env, handed, file)
  if (!isKept) removeHanded(env, file)
  return heard.answer
}

const cutOff = () =>
  new CkptError(
    'BAD_MARKER',
    'What a hook handed over ends before it says anything: the hook was killed, or the disk was full. It is not recorded.',
  )

/** A client may have come by the link of a store that lies apart (src/ops/worktree/by-path.ts). */
function withoutLinks(env: Env, file: string): string {
  try {
    return `${env.files.realpathSync(dirname(file))}/${basename(file)}`
  } catch (error) {
    if (errno(error) === undefined) throw error
    return file // it is gone
  }
}

interface Hearing {
  /** What the agent waits for. */
  answer: string | null
  /** No worktree could be opened, for a reason that may pass: nothing of it is recorded, and no marker waits. */
  unheard?: 'failed' | 'hangs'
}

/** `codex-notify` is Codex, with its payload on the command line. */
export const agentIn = (name: string): string => name.replace(/-notify$/, '')

async function hear(
  env: Env,
  options: HookOptions & { id?: string; given?: Buffer; handedAt?: string | undefined },
): Promise<Hearing> {
  const { name, event, arrived, id = env.random(12), given, late, recorded, handedAt } = options
  let payload: Buffer | undefined
  let agent: Agent | null = null
  let where = name
  try {
    if (env.vars.CKPT_DISABLED === '1') return { answer: (await findAgent(name))?.answer?.(event) ?? null }
    agent = await findAgent(agentIn(name))
    const notified = agentIn(name) !== name
    if (event !== undefined && !notified) where = `${name} ${event.slice(0, 80)}`
    if (!agent) {
      throw new CkptError('USAGE', `There is no agent ${JSON.stringify(name)}: ${AGENT_NAMES.join(', ')} are known.`, {
        hints: ['ckpt agent status'],
      })
    }
    payload = given ?? (notified ? Buffer.from(event ?? '') : await readInput(env))
    const value = parse(payload)
    const named = eventIn(value) ?? event
    where = named === undefined ? name : `${name} ${named}`
    const heard = agent.hear(value, { event: notified ? 'notify' : event, vars: env.vars })
    const whole = payload
    payload = undefined // understood: what goes wrong from here is not the payload's fault
    const patience = agent.timeout(named)
    const takeUp = async (file: string) => {
      await hook(env, { name, event, arrived, handed: file, late: true })
    }
    const delivery = {
      ...{ agent, arrived, deadline: arrived + patience * DEADLINE, reached: new Set<string>() },
      id,
      ...(handedAt === undefined ? {} : { handedAt }),
      ...(recorded ? { recorded } : {}),
      ...(late ? { late } : { takeUp }),
    }
    const times = { where, lastMoment: arrived + patience * LAST_MOMENT }
    const places = heard.elsewhere?.length ? [heard.cwd, ...heard.elsewhere] : null
    const each = places
      ? places.map((cwd = env.cwd) => deliverInTime({ ...env, cwd }, { ...delivery, heard: { ...heard, cwd } }, times))
      : [deliverInTime(env, { ...delivery, heard }, times)]
    const ends = await Promise.all(each) // none waits for one that hangs
    const unheard = ends.find((end) => end.isUnheard)
    if (unheard && given === undefined) {
      const words = { agent: name, event: notified ? undefined : event, project: env.vars.CLAUDE_PROJECT_DIR }
      keepHanded(env, { ...words, id, cwd: env.cwd, payload: whole })
    }
    const answer = agent.answer?.(event) ?? null
    if (ends.some(({ hangs }) => hangs)) options.gaveUp?.(answer)
    const told = ends.find((end) => end.told !== undefined)?.told
    return {
      answer: told !== undefined && agent.inform ? agent.inform(told) : answer,
      ...(unheard ? { unheard: unheard.hangs ? 'hangs' : 'failed' } : {}),
    }
  } catch (error) {
    await logError(env, { where, error, directory: null, ...(payload ? { payload } : {}) })
    return { answer: agent?.answer?.(event) ?? null }
  }
}

interface End {
  /** What the agent is to be told. */
  told?: string
  hangs: boolean
  /** See {@link Hearing}. */
  isUnheard: boolean
}

/** To one place. What goes wrong there is in its log. */
async function deliverInTime(
  env: Env,
  delivery: Omit<Delivery, 'progress'>,
  { where, lastMoment }: { where: string; lastMoment: number },
): Promise<End> {
  const progress: Progress = { context: null, directory: null, open: [] }
  let hangs = false
  let isUnheard = false
  try {
    await within(deliver(env, { ...delivery, progress }), lastMoment - env.monotonic())
  } catch (error) {
    hangs = error instanceof Interrupted
    isUnheard = progress.directory === null && progress.open.length > 0 && !isFinal(error)
    await logError(env, { where, error, directory: progress.directory }, () => {
      if (hangs) leaveOpen(env, delivery.agent, progress)
    })
  }
  return { hangs, isUnheard, ...(progress.told === undefined ? {} : { told: progress.told }) }
}

interface Failure {
  where: string
  error: unknown
  /** The worktree's, where it is known. */
  directory: string | null
  payload?: Buffer
}

/** `first`: what is to be done before it, and may go wrong like it. */
async function logError(env: Env, { directory, ...failure }: Failure, first = () => {}): Promise<void> {
  const places = [await logPlace(env, { directory }), stateLog(env)]
  const errors = [failure.error]
  try {
    first()
  } catch (before) {
    errors.unshift(before)
  }
  try {
    for (const error of errors) writeHookErrorSomewhere(env, places, { ...failure, error })
  } catch (second) {
    // Nothing is left to write to: the agent's own log may keep it.
    env.stderr.write(`ckpt hook: ${String(failure.error)}; and it could not be logged: ${String(second)}\n`)
  }
}

/** @throws CkptError BAD_MARKER */
function parse(payload: Buffer): unknown {
  try {
    return JSON.parse(payload.toString('utf8').replace(/^\uFEFF/, ''))
  } catch (cause) {
    const why = payload.length === 0 ? 'empty' : 'no JSON'
    throw new CkptError('BAD_MARKER', `The payload is not understood: it is ${why}.`, { cause })
  }
}

function eventIn(value: unknown): string | undefined {
  const event = typeof value === 'object' && value !== null && 'hook_event_name' in value ? value.hook_event_name : null
  return typeof event === 'string' ? event.slice(0, 80) : undefined
}

/** The log of the worktree where one is known, else the one that all share. */
async function logPlace(env: Env, { directory }: Pick<Progress, 'directory'>): Promise<string> {
  if (directory) return directory
  try {
    const here = await openContext(env, env.cwd, { forgiving: true })
    closeContext(here)
    const { worktreeDir } = here.store
    return env.files.existsSync(worktreeDir) ? worktreeDir : stateLog(env)
  } catch {
    return stateLog(env) // perhaps for the very reason that is to be logged
  }
}
