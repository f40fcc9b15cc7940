/** Reading commands: turns, sessions, single checkpoints, differences. */
import type { Beside, Uncovered } from '../core/beside.ts'
import { uncoveredChanges } from '../core/beside.ts'
import { type Checkpoint, describePrompt } from '../core/checkpoint.ts'
import { CkptError, FIRST_TURN } from '../core/errors.ts'
import type { Oid, SessionId } from '../core/ids.ts'
import { isWithin, type RelativePath } from '../core/paths.ts'
import { runningTurn, type Timeline, type Turn } from '../core/timeline.ts'
import { diffTrees, diffWorktree, type FileDiff, type Stat, statTrees } from '../git/diff.ts'
import { learnSessions, readCheckpoint, type WorktreeRefs } from '../git/history.ts'
import { promptReader } from '../git/side-refs.ts'
import { transitionsBetween, viewOf } from '../snapshot/view.ts'
import type { Context } from './context.ts'
import { journalExists } from './journal.ts'
import { besideOf, takeSnapshot } from './record.ts'
import { type Resolved, resolveId } from './resolve.ts'
import { chooseSession, loadTimeline, readRefs, type TimelineOptions } from './sessions.ts'
import { ChangeReader } from './turn-changes.ts'
import { allWorktrees } from './worktrees.ts'

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

export interface ListResult {
  session: SessionId | null
  timeline: Timeline | null
  turns: TurnView[]
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
  if (session === null) return { session, timeline: null, turns: [], warnings: context.warnings }
  const timeline = await loadTimeline(context, refs, session, timelineOptions(options))
  const shown = shownTurns(timeline, options).slice(0, options.limit)
  return {
    session,
    timeline,
    turns: await viewTurns(context, refs, [{ timeline, turns: shown }]),
    warnings: context.warnings,
  }
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
  const prompts = await promptReader(context.store, refs.notes)
  const pairs = all.map((turn) => [turn.before.tree, (turn.after ?? turn.checkpoints.at(-1)!).tree] as const)
  const stats = await statTrees(context.store, pairs)
  const statOf = new Map(all.map((turn, i) => [turn, stats[i]!]))
  const views: TurnView[] = []
  for (const { timeline, turns } of chosen) {
    const reader = new ChangeReader(context, refs, timeline)
    const withSteps = turns.filter((turn) => turn.steps.length > 0)
    if (withSteps.length > 0) await reader.activitySince(Math.min(...withSteps.map((turn) => turn.before.seq)))
    for (const turn of turns) {
      const text = await prompts(turn.before.id)
      const description = describePrompt(text, turn.before.time)
      views.push({ turn, description, text, stat: statOf.get(turn) ?? null, ...(await stepsOf(reader, turn)) })
    }
  }
  return views
}

/** Which paths each step of a turn changed, and which nobody's step did. */
async function stepsOf(reader: ChangeReader, turn: Turn): Promise<Pick<TurnView, 'stepPaths' | 'unclaimed'>> {
  if (turn.steps.length === 0) return { stepPaths: new Map(), unclaimed: [] }
  const changes = await reader.changesOf(turn)
  const pathsOf = (parts: readonly { path: string }[]) => [...new Set(parts.map(({ path }) => path))]
  return {
    stepPaths: new Map(turn.steps.map(({ number }) => [number, pathsOf(ChangeReader.ofStep(changes, number))])),
    unclaimed: pathsOf(changes.unclaimed),
  }
}

/** Turns of every session, and of every worktree if asked: newest first. */
export async function listAllTurns(
  context: Context,
  options: ListOptions & { worktrees: boolean },
): Promise<(TurnView & { worktree: string })[]> {
  const views = options.worktrees ? await allWorktrees(context) : [{ context, refs: await readRefs(context) }]
  const newestFirst = (a: { turn: Turn }, b: { turn: Turn }) => (a.turn.before.time < b.turn.before.time ? 1 : -1)
  const shown: { context: Context; refs: WorktreeRefs; sessions: Chosen[] }[] = []
  for (const { context: one, refs } of views) {
    await learnSessions(one.store, refs)
    const sessions: Chosen[] = []
    for (const session of refs.sessions.keys()) {
      const timeline = await loadTimeline(one, refs, session, timelineOptions(options))
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

export async function listSessions(context: Context, { worktrees = false } = {}): Promise<SessionView[]> {
  const all = worktrees ? await allWorktrees(context) : [{ context, refs: await readRefs(context) }]
  const views: SessionView[] = []
  for (const { context: one, refs } of all) {
    await learnSessions(one.store, refs)
    const newest = (session: SessionId) => refs.sessions.get(session)?.live?.seq ?? 0
    for (const session of [...refs.sessions.keys()].sort((a, b) => newest(b) - newest(a))) {
      const timeline = await loadTimeline(one, refs, session)
      const state = runningTurn(timeline) && !timeline.boundary ? 'running' : 'idle'
      views.push({ timeline, worktree: one.place.worktreeId, state })
    }
  }
  return views
}

export interface ShowResult {
  turn: TurnView | null
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
  const { resolved, timeline } = await resolveId(context, refs, { id, session })
  if (resolved.kind === 'worktree')
    throw new CkptError('USAGE', '`show` wants a turn or a checkpoint, not the worktree. Nothing was changed.', {
      hints: ['ckpt diff worktree'],
    })
  const { store, warnings } = context
  if (resolved.kind === 'turn' && timeline) {
    const [turn] = await viewTurns(context, refs, [{ timeline, turns: [resolved.turn] }])
    const end = resolved.turn.after ?? resolved.turn.checkpoints.at(-1)!
    const [from, to] = [await besideOf(context, resolved.turn.before), await besideOf(context, end)]
    const files = (await diffViews(context, resolved.turn.before, end, [])).files
    return {
      turn: turn!,
      checkpoint: end,
      beside: to,
      files,
      uncovered: uncoveredChanges(from, to),
      prompt: turn!.text,
      warnings,
    }
  }
  const checkpoint = (resolved as Extract<Resolved, { checkpoint: Checkpoint }>).checkpoint
  const parent = checkpoint.parents[0]
  const from = parent ? await readCheckpoint(store, parent) : null
  const files = from
    ? (await diffViews(context, from, checkpoint, [])).files
    : (await diffTrees(store, store.trees.empty, checkpoint.tree)).files
  const beside = await besideOf(context, checkpoint)
  const uncovered = from ? uncoveredChanges(await besideOf(context, from), beside) : []
  const prompt = await (await promptReader(store, refs.notes))(checkpoint.id)
  return { turn: null, checkpoint, beside, files, uncovered, prompt, warnings }
}

export interface DiffResult {
  from: Oid | string
  to: Oid | string
  files: FileDiff[]
  patch: string
  warnings: string[]
}

/** The contents of changed text files, for a diff by words. */
export async function changedTexts(
  context: Context,
  options: DiffOptions,
): Promise<{ file: FileDiff; before: string; after: string }[]> {
  const { store } = context
  const refs = await readRefs(context)
  const [from, to] = await diffSides(context, refs, options)
  const [a, b] = [await sideView(context, refs, from), await sideView(context, refs, to)]
  const { files } = await diffSnapshots(context, a.view, b.view, options.paths ?? [])
  const text = async (view: View, path: string) => {
    const state = await view.state(path)
    return state.kind === 'present' ? (await store.objects.get(state.oid, 'blob')).toString('utf8') : ''
  }
  const texts: { file: FileDiff; before: string; after: string }[] = []
  for (const file of files) {
    if (file.binary || file.path.endsWith('/')) continue
    texts.push({ file, before: await text(a.view, file.oldPath ?? file.path), after: await text(b.view, file.path) })
  }
  return texts
}

/** What the user has not committed: git's own diff of their repository, with nobody's programs run. */
export async function diffUncommitted(context: Context, paths: readonly string[]): Promise<DiffResult> {
  const { env, repository } = context
  if (!repository)
    throw new CkptError('USAGE', 'This is a plain directory: there is nothing to commit to.', {
      hints: ['ckpt diff worktree'],
    })
  return { from: 'HEAD', to: 'worktree', ...(await diffWorktree(env, repository, paths)), warnings: context.warnings }
}

export interface DiffOptions {
  a?: string
  b?: string
  session?: string
  paths?: readonly string[]
}

type Side = { kind: 'checkpoint'; checkpoint: Checkpoint } | { kind: 'worktree' } | { kind: 'nothing' }

/** @throws CkptError NOT_FOUND */
export async function diff(context: Context, options: DiffOptions): Promise<DiffResult> {
  const refs = await readRefs(context)
  const [from, to] = await diffSides(context, refs, options)
  const [a, b] = [await sideView(context, refs, from), await sideView(context, refs, to)]
  const { files, patch } = await diffSnapshots(context, a.view, b.view, options.paths ?? [])
  return { from: a.name, to: b.name, files, patch, warnings: context.warnings }
}

async function diffSides(context: Context, refs: WorktreeRefs, { a, b, session }: DiffOptions): Promise<[Side, Side]> {
  const side = async (id: string): Promise<Resolved> => (await resolveId(context, refs, { id, session })).resolved
  const end = (turn: Turn): Side => ({ kind: 'checkpoint', checkpoint: turn.after ?? turn.checkpoints.at(-1)! })
  const single = (resolved: Resolved): Side =>
    resolved.kind === 'worktree'
      ? resolved
      : resolved.kind === 'turn'
        ? end(resolved.turn)
        : { kind: 'checkpoint', checkpoint: resolved.checkpoint }
  if (a !== undefined && b !== undefined) return [single(await side(a)), single(await side(b))]
  if (a !== undefined) {
    const resolved = await side(a)
    if (resolved.kind === 'turn') return [{ kind: 'checkpoint', checkpoint: resolved.turn.before }, end(resolved.turn)]
    if (resolved.kind === 'worktree') {
      const chosen = chooseSession(refs, session)
      const timeline = chosen ? await loadTimeline(context, refs, chosen, { recent: true }) : null
      if (!timeline?.tip)
        throw new CkptError('NOT_FOUND', 'There is no checkpoint yet to compare the worktree with.', {
          hints: ['ckpt snapshot'],
        })
      return [{ kind: 'checkpoint', checkpoint: timeline.boundaryCheckpoint ?? timeline.tip }, resolved]
    }
    const { checkpoint } = resolved
    const parent = resolved.kind === 'step' ? stepStart(resolved) : checkpoint.parents[0]
    return [
      parent ? { kind: 'checkpoint', checkpoint: await readCheckpoint(context.store, parent) } : { kind: 'nothing' },
      { kind: 'checkpoint', checkpoint },
    ]
  }
  const chosen = chooseSession(refs, session)
  if (chosen === null) throw new CkptError('NOT_FOUND', 'There is no turn yet. Nothing to show.', { hints: FIRST_TURN })
  const timeline = await loadTimeline(context, refs, chosen)
  const visible = timeline.turns.filter((turn) => !turn.hidden)
  const last = visible.at(-1)
  if (!last)
    throw new CkptError('NOT_FOUND', 'Every turn is undone. Nothing to show.', { hints: ['ckpt list --hidden'] })
  const first = session === undefined ? last : visible[0]!
  return [{ kind: 'checkpoint', checkpoint: first.before }, end(last)]
}

/** The checkpoint that a step's window begins with. */
function stepStart({ turn, step }: { turn: Turn; step: number }): Oid {
  const one = turn.steps.find((candidate) => candidate.number === step)!
  if (one.start) return one.start.id
  const at = turn.checkpoints.findIndex((checkpoint) => checkpoint.id === one.end?.id)
  return turn.checkpoints[Math.max(0, at - 1)]!.id
}

async function sideView(context: Context, refs: WorktreeRefs, side: Side) {
  const { store } = context
  if (side.kind === 'checkpoint') return { name: side.checkpoint.id, view: await viewOf(store, side.checkpoint) }
  if (side.kind === 'worktree')
    return { name: 'worktree', view: (await takeSnapshot(context, refs, { publish: false })).view }
  const { SnapshotView } = await import('../snapshot/view.ts')
  const { emptyBeside } = await import('../core/beside.ts')
  return {
    name: store.trees.empty,
    view: new SnapshotView(store, store.trees.empty, emptyBeside({ file: 0o644, exec: 0o755, directory: 0o755 })),
  }
}

async function diffViews(context: Context, from: Checkpoint, to: Checkpoint, paths: readonly string[]) {
  const { store } = context
  return diffSnapshots(context, await viewOf(store, from), await viewOf(store, to), paths)
}

type View = Awaited<ReturnType<typeof viewOf>>

/** git's differences, and those that a tree does not show: permission modes, empty directories. */
async function diffSnapshots(
  { store }: Context,
  a: View,
  b: View,
  paths: readonly string[],
): Promise<{ files: FileDiff[]; patch: string }> {
  const { files, patch } = await withoutUnknown(await diffTrees(store, a.tree, b.tree, paths), a, b)
  const seen = new Set<string>(files.flatMap((file) => [file.path, ...(file.oldPath ? [file.oldPath] : [])]))
  for (const { path, from, to } of await transitionsBetween(store, a, b)) {
    const bare = path.endsWith('/') ? path.slice(0, -1) : path
    if (seen.has(path) || (paths.length > 0 && !paths.some((scope) => isWithin(bare, scope)))) continue
    const status = from.kind === 'absent' ? 'added' : to.kind === 'absent' ? 'deleted' : 'mode'
    if (from.kind === 'unknown' || to.kind === 'unknown') continue
    files.push({ path: path as RelativePath, status, insertions: 0, deletions: 0, binary: false })
  }
  return { files, patch }
}

/** What only one of the trees has is not gone, nor new, where the other snapshot could not read it. */
async function withoutUnknown(diff: { files: FileDiff[]; patch: string }, a: View, b: View) {
  const isKnown = async ({ status, path }: FileDiff): Promise<boolean> => {
    const view = status === 'deleted' ? b : status === 'added' ? a : null
    return view === null || (await view.state(path)).kind !== 'unknown'
  }
  const kept = await Promise.all(diff.files.map(isKnown))
  if (!kept.includes(false)) return diff
  const sections = diff.patch.split(/^(?=diff --git )/m) // one for each file, in the same order
  return {
    files: diff.files.filter((_, i) => kept[i]),
    patch: sections.length === kept.length ? sections.filter((_, i) => kept[i]).join('') : diff.patch,
  }
}

/** Whether a killed command left something for the next one that can write. */
export function unfinished(context: Context): boolean {
  return context.exists && journalExists(context.env, context.store)
}
