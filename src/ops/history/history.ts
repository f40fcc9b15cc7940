/** Reading commands: turns, sessions, single checkpoints. */
import type { Beside, Uncovered } from '../../core/beside.ts'
import { isCountedByTrees, uncoveredChanges } from '../../core/beside.ts'
import { type Checkpoint, describePrompt } from '../../core/checkpoint.ts'
import { CkptError, isDamage } from '../../core/errors.ts'
import type { SessionId } from '../../core/ids.ts'
import type { RelativePath } from '../../core/paths.ts'
import { endOf, runningTurn, type Timeline, type Turn } from '../../core/timeline.ts'
import { diffTrees, type FileDiff, type Stat, statTrees } from '../../git/diff.ts'
import { learnSessions, readChain, readCheckpoint, type WorktreeRefs } from '../../git/history.ts'
import { promptReader } from '../../git/side-refs.ts'
import { tellingLost } from '../record/prompts.ts'
import { besideOf } from '../record/record.ts'
import type { Context } from '../worktree/context.ts'
import { chooseSession, loadTimeline, readRefs, type TimelineOptions } from '../worktree/sessions.ts'
import { allWorktrees } from '../worktree/worktrees.ts'
import { diffViews, isHere, soFar } from './diff.ts'
import { type Resolved, resolveId } from './resolve.ts'
import { ChangeReader } from './turn-changes.ts'

/** A turn with what a person wants to see of it. */
export interface TurnView {
  turn: Turn
  description: string
  text: string | null
  /** Null: the store lacks a tree that it needs. */
  stat: Stat | null
  stepPaths: Map<number, string[]>
  unclaimed: string[]
}

/** A checkpoint by hand, with what it was called. */
export interface ByHand {
  checkpoint: Checkpoint
  message: string | null
}

export interface ListResult {
  session: SessionId | null
  timeline: Timeline | null
  turns: TurnView[]
  /** Of session `manual`, which has no turns. */
  byHand: ByHand[]
  warnings: string[]
}

export interface ListOptions {
  session?: string
  hidden?: boolean
  abandoned?: boolean
  limit?: number
}

/** A short list reads a short piece of history; abandoned turns may lie anywhere in it. */
function timelineOptions({ abandoned = false, limit }: ListOptions): TimelineOptions {
  return { abandoned, ...(limit === undefined || abandoned ? {} : { visible: limit }) }
}

/** Newest first. */
export async function listTurns(context: Context, options: ListOptions): Promise<ListResult> {
  const refs = await readRefs(context)
  const session = chooseSession(refs, options.session)
  if (session === null) return { session, timeline: null, turns: [], byHand: [], warnings: context.warnings }
  const timeline = await loadTimeline(context, refs, { session, ...timelineOptions(options) })
  const shown = shownTurns(timeline, options).slice(0, options.limit)
  return {
    session,
    timeline,
    turns: await viewTurns(context, refs, [{ timeline, turns: shown }]),
    byHand: session === 'manual' ? await takenByHand(context, refs, options.limit) : [],
    warnings: context.warnings,
  }
}

/** Newest first. */
async function takenByHand(context: Context, refs: WorktreeRefs, limit?: number): Promise<ByHand[]> {
  const { store } = context
  const tip = refs.sessions.get('manual' as SessionId)?.live
  if (!tip) return []
  const chain = await readChain(store, tip.id, limit === undefined ? {} : { limit })
  const prompts = await promptReader(store, refs.notes, tellingLost(context))
  const own = chain.filter(({ kind }) => kind === 'manual').reverse()
  return Promise.all(own.map(async (checkpoint) => ({ checkpoint, message: await prompts(checkpoint.id) })))
}

/** Turns of one session. */
export interface Chosen {
  timeline: Timeline
  turns: readonly Turn[]
}

/** What a person wants to see of them, in the order given; git counts the lines of all of them at once. */
export async function viewTurns(context: Context, refs: WorktreeRefs, chosen: readonly Chosen[]): Promise<TurnView[]> {
  const all = chosen.flatMap(({ turns }) => turns)
  if (all.length === 0) return []
  const unless = passingOver(context)
  const prompts = await promptReader(context.store, refs.notes, tellingLost(context))
  const stats = await statTurns(context, all, unless)
  const statOf = new Map(all.map((turn, i) => [turn, stats[i]!]))
  const views: TurnView[] = []
  for (const { timeline, turns } of chosen) {
    const reader = new ChangeReader(context, refs, timeline)
    const withSteps = turns.filter((turn) => turn.steps.length > 0)
    if (withSteps.length > 0) await reader.activitySince(Math.min(...withSteps.map((turn) => turn.before.seq)))
    for (const turn of turns) {
      const text = await prompts(turn.before.id)
      const description = describePrompt(text, turn.before.time)
      const steps = await unless(() => stepsOf(reader, turn), { stepPaths: new Map(), unclaimed: [] })
      views.push({ turn, description, text, stat: statOf.get(turn) ?? null, ...steps })
    }
  }
  return views
}

type PassingOver = <T>(work: () => Promise<T>, otherwise: T) => Promise<T>

/** What is damaged is passed over, which is said once: the other turns are told all the same. */
export function passingOver({ warnings }: Context): PassingOver {
  let said = false
  return async (work, otherwise) => {
    try {
      return await work()
    } catch (error) {
      if (!isDamage(error)) throw error
      if (!said) warnings.push('The store lacks some of what is to be told here: ckpt doctor')
      said = true
      return otherwise
    }
  }
}

/** Counts as `diff` of the turn gives them. Trees are counted all at once; they do not tell what lies beside them. */
async function statTurns(context: Context, turns: readonly Turn[], unless: PassingOver): Promise<(Stat | null)[]> {
  const stats = await statTrees(
    context.store,
    turns.map((turn) => [turn.before.tree, endOf(turn).tree]),
  )
  for (const [i, turn] of turns.entries()) stats[i] = await unless(() => statBeside(context, turn, stats[i]!), null)
  return stats
}

/** @throws CkptError DAMAGED where the trees could not be counted, or what lies beside them cannot be read */
async function statBeside(context: Context, turn: Turn, stat: Stat | null): Promise<Stat> {
  const end = endOf(turn)
  if (stat === null)
    throw new CkptError('DAMAGED', `The store lacks a part of turn ${turn.number}. Nothing was changed.`)
  if (turn.before.beside === end.beside) return stat
  if (isCountedByTrees(await besideOf(context, turn.before), await besideOf(context, end))) return stat
  const { files } = await diffViews(context, turn.before, end)
  return {
    files: files.length,
    insertions: files.reduce((sum, file) => sum + file.insertions, 0),
    deletions: files.reduce((sum, file) => sum + file.deletions, 0),
  }
}

/** Which paths each step of a turn changed, and which nobody's step did. */
async function stepsOf(reader: ChangeReader, turn: Turn): Promise<Pick<TurnView, 'stepPaths' | 'unclaimed'>> {
  if (turn.steps.length === 0 && !turn.disturbed) return { stepPaths: new Map(), unclaimed: [] }
  const changes = await reader.changesOf(turn)
  const pathsOf = (parts: readonly { path: string }[]) => [...new Set(parts.map(({ path }) => path))]
  return {
    stepPaths: new Map(turn.steps.map(({ number }) => [number, pathsOf(ChangeReader.ofStep(changes, number))])),
    unclaimed: pathsOf(changes.unclaimed),
  }
}

/** Turns of every session or of one, and of every worktree if asked: newest first. @throws CkptError NOT_FOUND, USAGE */
export async function listAllTurns(
  context: Context,
  options: ListOptions & { worktrees: boolean },
): Promise<(TurnView & { worktree: string })[]> {
  const views = options.worktrees ? await allWorktrees(context) : [{ context, refs: await readRefs(context) }]
  const only = namedAmong(views, options.session)
  const newestFirst = (a: { turn: Turn }, b: { turn: Turn }) => (a.turn.before.time < b.turn.before.time ? 1 : -1)
  const shown: { context: Context; refs: WorktreeRefs; sessions: Chosen[] }[] = []
  for (const { context: one, refs } of views) {
    await learnSessions(one.store, refs)
    const sessions: Chosen[] = []
    for (const session of refs.sessions.keys()) {
      if (only !== null && session !== only) continue
      const timeline = await loadTimeline(one, refs, { session, ...timelineOptions(options) })
      sessions.push({ timeline, turns: shownTurns(timeline, options) })
    }
    shown.push({ context: one, refs, sessions })
  }
  const all = shown.flatMap(({ sessions }) => sessions.flatMap(({ turns }) => turns.map((turn) => ({ turn }))))
  const wanted = new Set(
    all
      .sort(newestFirst)
      .slice(0, options.limit)
      .map(({ turn }) => turn),
  )
  const found: (TurnView & { worktree: string })[] = []
  for (const { context: one, refs, sessions } of shown) {
    const chosen = sessions.map(({ timeline, turns }) => ({
      timeline,
      turns: turns.filter((turn) => wanted.has(turn)),
    }))
    const worktree = one.place.worktreeId
    found.push(...(await viewTurns(one, refs, chosen)).map((view) => ({ ...view, worktree })))
  }
  return found.sort(newestFirst)
}

/** The one session that is meant, of whichever worktree; null: none was named. @throws CkptError NOT_FOUND, USAGE */
function namedAmong(views: readonly { refs: WorktreeRefs }[], wanted: string | undefined): SessionId | null {
  if (wanted === undefined) return null
  const sessions = new Map(views.flatMap(({ refs }) => [...refs.sessions]))
  return chooseSession({ sessions, lastSeq: 0, meta: null, notes: null }, wanted)
}

/** Newest first. */
function shownTurns(timeline: Timeline, { hidden, abandoned }: ListOptions): Turn[] {
  return [...timeline.turns.filter((turn) => hidden || !turn.hidden), ...(abandoned ? timeline.abandoned : [])].sort(
    (a, b) => b.number - a.number,
  )
}

export interface SessionView {
  timeline: Timeline
  worktree: string
  state: 'running' | 'idle'
}

export async function listSessions(
  context: Context,
  { worktrees = false, session: wanted, limit }: { worktrees?: boolean; session?: string; limit?: number } = {},
): Promise<SessionView[]> {
  const all = worktrees ? await allWorktrees(context) : [{ context, refs: await readRefs(context) }]
  return viewSessions(all, { only: namedAmong(all, wanted), limit })
}

/** Newest first, of one worktree after the other. `only`: null for all. */
export async function viewSessions(
  all: readonly { context: Context; refs: WorktreeRefs }[],
  { only = null, limit }: { only?: SessionId | null; limit?: number | undefined } = {},
): Promise<SessionView[]> {
  const views: SessionView[] = []
  for (const { context: one, refs } of all) {
    await learnSessions(one.store, refs)
    const newest = (session: SessionId) => refs.sessions.get(session)?.live?.seq ?? 0
    for (const session of [...refs.sessions.keys()].sort((a, b) => newest(b) - newest(a))) {
      if (only !== null && session !== only) continue
      if (views.length === limit) return views
      const timeline = await loadTimeline(one, refs, { session })
      const state = runningTurn(timeline) && !timeline.boundary ? 'running' : 'idle'
      views.push({ timeline, worktree: one.place.worktreeId, state })
    }
  }
  return views
}

export interface ShowResult {
  /** Of whatever worktree of the store. */
  turn: (TurnView & { worktree: string }) | null
  checkpoint: Checkpoint | null
  beside: Beside | null
  files: FileDiff[]
  /** Uncovered paths that the turn changed or removed. */
  uncovered: { path: RelativePath; reason: Uncovered['reason'] }[]
  prompt: string | null
  warnings: string[]
}

export async function show(context: Context, id: string, session: string | undefined): Promise<ShowResult> {
  const refs = await readRefs(context)
  const { resolved, timeline, at } = await resolveId(context, refs, { id, session })
  if (resolved.kind === 'worktree')
    throw new CkptError('USAGE', '`show` wants a turn or a checkpoint, not the worktree. Nothing was changed.', {
      hints: ['ckpt diff worktree'],
    })
  const { store, warnings } = context
  if (resolved.kind === 'turn' && timeline) {
    const there = at ?? { context, refs }
    const [turn] = await viewTurns(there.context, there.refs, [{ timeline, turns: [resolved.turn] }])
    const end = endOf(resolved.turn)
    const [from, to] = [await besideOf(context, resolved.turn.before), await besideOf(context, end)]
    const files = (await diffViews(context, resolved.turn.before, end)).files
    return {
      turn: { ...turn!, worktree: there.context.place.worktreeId },
      checkpoint: end,
      beside: to,
      files,
      uncovered: uncoveredChanges(from, to),
      prompt: turn!.text,
      warnings: [...warnings, ...(isHere(context, at) ? soFar(resolved.turn) : [])],
    }
  }
  const checkpoint = (resolved as Extract<Resolved, { checkpoint: Checkpoint }>).checkpoint
  const parent = checkpoint.parents[0]
  const from = parent ? await readCheckpoint(store, parent) : null
  const files = from
    ? (await diffViews(context, from, checkpoint)).files
    : (await diffTrees(store, { from: store.trees.empty, to: checkpoint.tree })).files
  const beside = await besideOf(context, checkpoint)
  const uncovered = from ? uncoveredChanges(await besideOf(context, from), beside) : []
  const prompt = await (await promptReader(store, refs.notes, tellingLost(context)))(checkpoint.id)
  return { turn: null, checkpoint, beside, files, uncovered, prompt, warnings }
}
