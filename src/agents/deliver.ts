/** From what was heard to markers that are recorded, or wait in a file. */
import { CkptError } from '../core/errors.ts'
import type { SessionId } from '../core/ids.ts'
import type { Marker, MarkResult, StepMarker, StopMarker } from '../core/marker.ts'
import { printable } from '../core/paths.ts'
import { type Env, statIfThere } from '../env.ts'
import { commonDirOf } from '../git/repository.ts'
import { BEHIND } from '../ops/commit/commit.ts'
import { type Undone, undoneIn } from '../ops/history/undone.ts'
import { leftBehind } from '../ops/hook/handed.ts'
import { logHookError } from '../ops/hook/log.ts'
import { mark } from '../ops/mark.ts'
import { type Context, closeContext, type HeldWorktree, openContext } from '../ops/worktree/context.ts'
import { BEGUN_ANEW } from '../ops/worktree/gone.ts'
import { leaveMarker, waitingMarkers } from '../ops/worktree/marker-files.ts'
import { isAtWork, readRefs } from '../ops/worktree/sessions.ts'
import { liesWithin, worktreePath } from '../ops/worktree/worktree-path.ts'
import { runningElsewhere } from '../ops/worktree/worktrees.ts'
import type { Agent, Heard } from './agent.ts'
import { forkedFrom, readNotes, remember, rootOf } from './notes.ts'
import { undoneLine } from './tell-undone.ts'
import { linesWith } from './transcript.ts'
import { endedBy, isCallOpen, withClosed } from './turn-ends.ts'

export interface Delivery {
  agent: Agent
  heard: Heard
  /** Milliseconds of the monotonic clock: when the payload arrived, and when its markers have to be recorded. */
  arrived: number
  deadline: number
  /** The worktrees' own directories in the store that this was delivered to: of two places in one worktree one counts. */
  reached?: Set<string>
  /** Told what is opened, so that whoever waits can leave what was not recorded. */
  progress: Progress
  /** Made by the client: markers without an id of the agent's own carry it. */
  id?: string
  /** It waited in a file: what it tells of is long past. */
  late?: boolean
  /** See the marker's. */
  handedAt?: string
  /** Carries out what another client left behind. */
  takeUp?: (file: string) => Promise<void>
  recorded?: (context: Context, result: MarkResult) => void
}

export interface Progress {
  /** While it is open. */
  context: Context | null
  /** The worktree's own directory in the store, once it is known. */
  directory: string | null
  /** Not recorded yet, in order; each with its id. */
  open: Marker[]
  /** What the agent is to be told. */
  told?: string
}

/** What a retry would not mend: nothing waits for it. */
export const isFinal = (error: unknown): boolean => error instanceof CkptError && FINAL.has(error.code)
const FINAL = new Set(['BAD_MARKER', 'NOT_FOUND', 'BAD_ROOT', 'NOT_INITIALIZED', 'CONFIG', 'USAGE'])

/** @throws CkptError, and whatever goes wrong; the markers then wait where they can. */
export async function deliver(env: Env, delivery: Delivery): Promise<void> {
  const { agent, heard, progress, arrived, deadline, takeUp } = delivery
  const id = delivery.id ?? env.random(12)
  const { markers, started } = heard
  if (markers.length === 0 && !started) return
  progress.open = markers.map((one, i) => ({
    ...one,
    marker: one.marker ?? `${(one.event === 'step' && one.echo) || agent.name}:${id}:${i}`,
    ...(delivery.late ? { late: true } : {}),
    ...(delivery.handedAt === undefined ? {} : { handedAt: delivery.handedAt }),
  }))
  const context = await open(env, await placeOf(env, heard), markers)
  if (!context) return
  const { worktreeDir } = context.store
  if (delivery.reached?.has(worktreeDir)) return closeContext(context)
  delivery.reached?.add(worktreeDir)
  progress.context = context
  progress.directory = worktreeDir
  try {
    await refuseElsewhere(context, heard)
    const { snapshot } = context.config
    const limited = { ...snapshot, deadline: Math.max(1, Math.min(snapshot.deadline, deadline - arrived)) }
    const bounded = { ...context, config: { ...context.config, snapshot: limited } }
    if (takeUp) for (const file of leftBehind(env, worktreeDir)) await takeUp(file)
    progress.open = await withClosed(context, { agent, heard }, complete(context, { agent, heard }, progress.open))
    while (progress.open[0]) {
      const undone = await undoneBefore(context, agent, progress.open[0])
      // A session that ends has mostly ended its turn before: then there is nothing to look at.
      const over = heard.ended !== undefined && !(await mayRun(context, heard.ended))
      const result = over ? null : await record(bounded, progress.open[0], arrived)
      if (result) delivery.recorded?.(context, result)
      if (!result || progress.open[0].event === 'stop') await recordAtHome(bounded, delivery, progress.open[0])
      if (progress.open[0].event === 'stop') await endElsewhere(bounded, delivery, { marker: progress.open[0], result })
      if (progress.open[0].event === 'step')
        await endCallElsewhere(bounded, delivery, { marker: progress.open[0], result })
      progress.open = progress.open.slice(1)
      if (undone && result?.cleared) progress.told = undoneLine(undone)
    }
    if (heard.ended !== undefined && context.config.commit.auto && context.repository)
      commitBehind(context, heard.ended)
  } catch (error) {
    if (!isFinal(error)) leaveOpen(env, agent, progress)
    // A lock that was held is nothing that went wrong.
    if (!(error instanceof CkptError && error.code === 'LOCKED')) throw error
  } finally {
    progress.context = null
    closeContext(context)
  }
}

/**
 * Starts the commit that ends a session (`commit.auto`), and does not wait for it: agents cut such hooks short, and the
 * user's own git hooks may take their time. What goes wrong is in the hook log.
 */
function commitBehind({ env, worktree }: Context, session: SessionId): void {
  const child = env.spawn(process.execPath, [env.program, 'commit', `--session=${session}`, '--quiet'], {
    cwd: worktree.root,
    env: { ...env.vars, [BEHIND]: '1' } as NodeJS.ProcessEnv,
    detached: true,
    stdio: 'ignore',
  })
  child.on('error', () => undefined) // node is there: it runs us
  child.unref()
}

/** Leaves what is not recorded for the next command that can write. */
export function leaveOpen(env: Env, agent: Agent, { context, open }: Progress): void {
  if (!context) return
  for (const [i, marker] of open.entries()) {
    const time = new Date(env.now() + i).toISOString() // their order is their names'
    leaveMarker(env, context.store, {
      version: 1,
      id: marker.marker!,
      client: `${agent.name} ${env.pid}`,
      time,
      marker,
    })
  }
}

/** Null: nothing is recorded there, or nothing is to be. */
async function open(env: Env, cwd: string, markers: readonly Marker[] = []): Promise<Context | null> {
  const begins = markers.some(({ event }) => event === 'prompt')
  try {
    const create = markers.length > 0 ? { create: 'unless-off' as const, present: !begins } : {}
    const context = await openContext(env, cwd, { forgiving: true, ...create })
    const isRecorded = env.files.existsSync(context.store.worktreeDir) // the store may be another worktree's only
    // Nobody sees a hook's warnings.
    const anew = context.warnings.find((one) => one.endsWith(BEGUN_ANEW))
    if (anew)
      logHookError(env, context.store.worktreeDir, { where: 'store.location', error: new CkptError('DAMAGED', anew) })
    if (isRecorded && context.config.enableFileCheckpointing) return context
    closeContext(context)
    return null
  } catch (error) {
    if (!(error instanceof CkptError)) throw error
    // An agent at work in `/` or in a home directory: like any directory that nobody asked to be recorded.
    const nobodyAsked = error.code === 'BAD_ROOT' && (await commonDirOf(env, cwd)) === null
    if (error.code === 'NOT_INITIALIZED' || nobodyAsked) return null
    throw error
  }
}

/** Whether a session has a turn to end, one of a marker that waits included. */
async function mayRun(context: Context, session: SessionId): Promise<boolean> {
  return waitingMarkers(context.env, context.store).length > 0 || isAtWork(context, session)
}

/** What the agent does not know yet of an undo, where the person wants it told. */
async function undoneBefore(context: Context, agent: Agent, marker: Marker): Promise<Undone | null> {
  if (marker.event !== 'prompt' || !agent.inform || !context.config.agents.tellUndone) return null
  return undoneIn(context, marker.session)
}

async function record(context: Context, marker: Marker, arrived: number): Promise<MarkResult | null> {
  try {
    return await mark(context, marker, arrived)
  } catch (error) {
    // A step or an end in a session whose first prompt was not heard: nothing to add it to.
    if (error instanceof CkptError && error.code === 'NOT_FOUND' && marker.event !== 'prompt') return null
    throw error
  }
}

/**
 * An agent that went into another worktree in the middle of a turn: the turn that it began in its own ends too, and so does
 * the tool call that led there. What it does in the other one is a turn of that worktree.
 */
async function recordAtHome(
  { env, place, config }: Context,
  { agent, heard, arrived }: Delivery,
  { marker: id }: Marker,
): Promise<void> {
  const told = heard.markers[0]
  if (heard.markers.length !== 1 || !told || told.event === 'prompt' || !heard.project?.startsWith('/')) return
  if (liesWithin(env, heard.cwd ?? env.cwd, heard.project)) return
  const home = await open(env, nearest(env, heard.project))
  if (!home) return
  try {
    if (home.place.worktreeId === place.worktreeId || home.place.directory !== place.directory) return
    const [marker] = complete(home, { agent, heard }, [{ ...told, marker: id! }])
    const limited = { ...home, config: { ...home.config, snapshot: config.snapshot } }
    if (marker) await record(limited, marker.event === 'stop' ? { ...marker, onlyRunning: true } : marker, arrived)
  } finally {
    closeContext(home)
  }
}

/**
 * An agent, or its subagent, that was in another worktree and came back before its turn ended, or its session: the turn
 * that began there ends with it.
 */
async function endElsewhere(
  context: Context,
  { heard, arrived }: Delivery,
  { marker: { turn: told, ...marker }, result }: { marker: StopMarker; result: MarkResult | null },
): Promise<void> {
  if (heard.ended === undefined && told === undefined) return
  // The one that it was recorded for here, where it was: this worktree may have had turns of its own before.
  const turns = heard.ended === undefined ? [await endedBy(context, marker.session, result), told] : [null]
  for (const turn of new Set(turns)) {
    if (turn === undefined) continue
    await whereRunning(context, { session: marker.session, turn }, async (there) => {
      await record(there, { ...marker, ...(turn === null ? {} : { turn }), onlyRunning: true }, arrived)
    })
  }
}

/** The same of a call that led back: it ends where it began. */
async function endCallElsewhere(
  context: Context,
  { agent, heard, arrived }: Delivery,
  { marker: { session, turn, callId, start, marker: id }, result }: { marker: StepMarker; result: MarkResult | null },
): Promise<void> {
  const [told] = heard.markers
  if (start || callId === undefined || turn === undefined || heard.markers.length !== 1 || !told) return
  if (result && !result.checkpoint?.late) return
  await whereRunning(context, { session, turn }, async (there) => {
    if (!(await isCallOpen(there, session, callId))) return
    const [marker] = complete(there, { agent, heard }, [{ ...told, marker: id! }])
    if (marker) await record(there, marker, arrived)
  })
}

/** Each other worktree of the repository in which a session's turn runs; null: whichever. */
async function whereRunning(
  context: Context,
  { session, turn }: { session: SessionId; turn: string | null },
  work: (there: Context) => Promise<void>,
): Promise<void> {
  const { env, place, config } = context
  for (const root of await runningElsewhere(context, session, turn)) {
    const there = await open(env, root)
    if (!there) continue
    try {
      if (there.place.worktreeId === place.worktreeId || there.place.directory !== place.directory) continue
      await work({ ...there, config: { ...there.config, snapshot: config.snapshot } })
    } finally {
      closeContext(there)
    }
  }
}

/** What only the place can say: paths of the worktree, whose child or fork a session is, the id for a rewind. */
function complete(
  context: Context,
  { agent, heard }: Pick<Delivery, 'agent' | 'heard'>,
  markers: readonly Marker[],
): Marker[] {
  const { env, store } = context
  const { started, transcript } = heard
  if (started) remember(env, store.worktreeDir, { agent: agent.name, ...started })
  const notes = agent.children || agent.forks ? readNotes(env, store.worktreeDir) : []
  const done: Marker[] = []
  for (const marker of markers) {
    const root = agent.children ? rootOf(notes, agent.name, marker.session) : null
    // A subagent's own prompts and stops are no turns.
    if (root !== null && marker.event !== 'step') continue
    const session = root ?? marker.session
    if (marker.event === 'step') {
      const from = heard.cwd ?? context.env.cwd
      const paths = (marker.paths ?? []).flatMap(
        (path) => worktreePath(context, path.startsWith('/') ? path : `${from}/${path}`) || [],
      )
      done.push({ ...marker, session, paths })
      continue
    }
    const messageId =
      transcript && agent.messageIdIn
        ? agent.messageIdIn(linesWith(env, transcript.path, transcript.turn), transcript.turn)
        : null
    const known = messageId === null ? marker : { ...marker, messageId }
    const parent = agent.forks ? parentOfFork(context, { agent, heard }, marker) : null
    done.push({ ...known, session, ...(parent === null ? {} : { parent }) } as Marker)
  }
  return done
}

/** The parent of a session that prompts for the first time, as soon as anything tells it; from then on it is known. */
function parentOfFork(
  { env, store }: Context,
  { agent, heard: { transcript } }: Pick<Delivery, 'agent' | 'heard'>,
  { session, event }: Marker,
): string | null {
  const notes = readNotes(env, store.worktreeDir)
  const note = (one: string, source: string) =>
    remember(env, store.worktreeDir, { agent: agent.name, session: one, source })
  const own = notes.find((one) => one.agent === agent.name && one.session === session)?.source
  const isFork = own === 'fork of another' || (own === 'fork' && event === 'prompt')
  const told = isFork && transcript ? forkedFromIn(env, agent, transcript.path) : null
  const parent = told ?? (event === 'prompt' ? forkedFrom(notes, agent.name, session) : null)
  // A conversation that was taken up again and prompts, or was forked, is nobody's parent after that.
  if (parent !== null) {
    if (told === null) note(parent, 'went on')
    note(session, 'forked')
  } else if (event === 'prompt' && own === 'fork') note(session, 'fork of another')
  else if (event === 'prompt' && own === 'resume') note(session, 'went on')
  return parent
}

function forkedFromIn(env: Env, { forkedFromIn }: Agent, path: string): string | null {
  const lines = forkedFromIn?.words.flatMap((words) => linesWith(env, path, words)) ?? []
  return forkedFromIn?.session(lines) ?? null
}

/**
 * Where the agent's worktree is. It follows the agent into another worktree of the same repository, not into another
 * repository that lies inside: what it does there is not seen.
 */
async function placeOf(env: Env, { cwd, project }: Heard): Promise<string> {
  const here = cwd?.startsWith('/') ? nearest(env, cwd) : env.cwd
  if (project === undefined || !project.startsWith('/') || project === here) return here
  const home = nearest(env, project)
  const isRepository = env.files.existsSync(`${home}/.git`)
  if (isRepository && liesWithin(env, here, home)) return here
  if (!isRepository && (env.held as HeldWorktree | undefined)?.root === home) return home // a plain one: git need not be asked
  const [its, ours] = await Promise.all([commonDirOf(env, here), commonDirOf(env, home)])
  return its !== null && its === ours ? here : home
}

/**
 * A directory that is gone may have been another worktree, inside or beside this one: only sessions that this one knows are
 * at work in it. @throws CkptError BAD_ROOT
 */
async function refuseElsewhere(context: Context, { cwd, project, markers }: Heard): Promise<void> {
  const { env } = context
  const home = project ?? cwd
  if (home === undefined || statIfThere(env.files, home)?.isDirectory()) return
  const { sessions } = await readRefs(context)
  const unknown = markers.find(({ session }) => !sessions.has(session))
  if (!unknown) return
  throw new CkptError(
    'BAD_ROOT',
    `${printable(home)} is gone, and session ${printable(unknown.session)} was never at work in ${context.worktree.root}. Nothing was recorded.`,
  )
}

/** The directory itself, or what is left above it when it was removed; where nothing is left, the hook's own directory. */
function nearest({ files, cwd }: Env, path: string): string {
  let at = path
  while (at !== '/' && !statIfThere(files, at)?.isDirectory()) at = at.slice(0, at.lastIndexOf('/')) || '/'
  return at === '/' && path !== '/' ? cwd : at
}
