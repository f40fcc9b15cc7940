/** Differences: between checkpoints, with the worktree, and what is not committed. */
import { type Beside, CUT_SHORT, emptyBeside, isCutShort, uncoveredBetween } from '../../core/beside.ts'
import type { Checkpoint } from '../../core/checkpoint.ts'
import { CkptError, FIRST_TURN } from '../../core/errors.ts'
import { sessionOption } from '../../core/hint-words.ts'
import { isOid, type Oid } from '../../core/ids.ts'
import { noneVisibleIn } from '../../core/none-visible.ts'
import { patchedTexts, patchSections } from '../../core/patch.ts'
import { barePath, isWithin, type RelativePath, reasonedList } from '../../core/paths.ts'
import { endOf, type Turn, visibleTurns } from '../../core/timeline.ts'
import { diffTrees, diffWorktree, type FileDiff } from '../../git/diff.ts'
import { readCheckpoint, type WorktreeRefs } from '../../git/history.ts'
import type { Repository } from '../../git/repository.ts'
import { SnapshotView, transitionsBetween, viewOf } from '../../snapshot/view.ts'
import { besideOf, takeSnapshot } from '../record/record.ts'
import type { Context } from '../worktree/context.ts'
import { chooseSession, loadTimeline, readRefs } from '../worktree/sessions.ts'
import type { WorktreeView } from '../worktree/worktrees.ts'
import { type Resolved, resolveId } from './resolve.ts'

export interface DiffResult {
  from: Oid | string
  to: Oid | string
  files: FileDiff[]
  patch: string
  /** Of a whole session: its checkpoints from `from` to `to`, oldest first, and what each covers. */
  checkpoints?: { checkpoint: Checkpoint; beside: Beside }[]
  warnings: string[]
}

/** A changed text file with both its contents. */
export interface ChangedText {
  file: FileDiff
  before: string
  after: string
}

/** For a diff by words. */
export async function changedTexts(context: Context, options: DiffOptions): Promise<ChangedText[]> {
  const { store } = context
  const refs = await readRefs(context)
  const [from, to] = await diffSides(context, refs, options)
  const [a, b] = [await sideView(context, refs, from), await sideView(context, refs, to)]
  const { files } = await diffSnapshots(context, { from: a.view, to: b.view }, options.paths ?? [])
  const text = async (view: View, path: string) => {
    const state = await view.state(path)
    return state.kind === 'present' ? (await store.objects.get(state.oid, 'blob')).toString('utf8') : ''
  }
  const texts: ChangedText[] = []
  for (const file of files) {
    if (file.binary || file.path.endsWith('/')) continue
    texts.push({ file, before: await text(a.view, file.oldPath ?? file.path), after: await text(b.view, file.path) })
  }
  return texts
}

/** What the user has not committed: git's own diff of their repository, with nobody's programs run. */
export async function diffUncommitted(context: Context, paths: readonly string[]): Promise<DiffResult> {
  const changes = await diffWorktree(context.env, repositoryOf(context), { paths })
  return { from: 'HEAD', to: 'worktree', ...changes, warnings: context.warnings }
}

/** What is not committed, for a diff by words: as git compares it, which may be other than the bytes on disk (gitattributes(5), `eol`). */
export async function uncommittedTexts(context: Context, paths: readonly string[]): Promise<ChangedText[]> {
  const { files, patch } = await diffWorktree(context.env, repositoryOf(context), { paths, whole: true })
  const sections = patchSections(patch, files)
  return files.flatMap((file, i) => (file.binary ? [] : { file, ...patchedTexts(sections[i]!) }))
}

function repositoryOf({ repository }: Context): Repository {
  if (repository) return repository
  throw new CkptError('USAGE', 'This is a plain directory: there is nothing to commit to. Nothing was changed.', {
    hints: ['ckpt diff worktree'],
  })
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
  const { files, patch } = await diffSnapshots(context, { from: a.view, to: b.view }, options.paths ?? [])
  const isSession = options.session !== undefined && options.a === undefined
  const checkpoints = isSession ? { checkpoints: await sessionCheckpoints(context, refs, options.session!) } : {}
  const warnings = [...context.warnings, ...cutShort([a, b]), ...notCompared(a.view, b.view, options.paths)]
  return { from: a.name, to: b.name, files, patch, ...checkpoints, warnings }
}

/** What is to be said where a turn of this worktree has no end yet: its last checkpoint stands for it. */
export const soFar = ({ number, session, status }: Turn): string[] =>
  status === 'running'
    ? [
        `Turn ${number} is running: this is as far as its last checkpoint. All of it: ckpt diff ${number}:before worktree ${sessionOption(session)}`,
      ]
    : []

/** Whether what was found is of this worktree. */
export const isHere = ({ place }: Context, at: WorktreeView | undefined): boolean =>
  at === undefined || at.context.place.worktreeId === place.worktreeId

/** What is to be said of sides that do not hold all: what they lack is no difference. */
const cutShort = (sides: readonly { name: string; view: View }[]): string[] =>
  sides
    .filter(({ view }) => isCutShort(view.beside))
    .map(({ name }) => `${isOid(name) ? `Checkpoint ${name.slice(0, 10)}` : 'This look at the worktree'} ${CUT_SHORT}`)

/** What differs, or may, and is in no tree. */
function notCompared(from: View, to: View, paths?: readonly string[]): string[] {
  const left = uncoveredBetween(from.beside, to.beside, paths)
  return left.length > 0 ? [`Not compared, for checkpoints do not hold it: ${reasonedList(left)}.`] : []
}

async function sessionCheckpoints(context: Context, refs: WorktreeRefs, session: string) {
  const timeline = await loadTimeline(context, refs, { session: chooseSession(refs, session)! })
  const visible = visibleTurns(timeline).flatMap(({ checkpoints }) => checkpoints)
  const besides = new Map<Oid, Beside>() // mostly the same one
  for (const one of visible) if (!besides.has(one.beside)) besides.set(one.beside, await besideOf(context, one))
  return visible.map((checkpoint) => ({ checkpoint, beside: besides.get(checkpoint.beside)! }))
}

async function diffSides(context: Context, refs: WorktreeRefs, { a, b, session }: DiffOptions): Promise<[Side, Side]> {
  const side = async (id: string): Promise<Resolved> => {
    const { resolved, at } = await resolveId(context, refs, { id, session })
    if (resolved.kind === 'turn' && isHere(context, at)) context.warnings.push(...soFar(resolved.turn))
    return resolved
  }
  const end = (turn: Turn): Side => ({ kind: 'checkpoint', checkpoint: endOf(turn) })
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
      const timeline = chosen ? await loadTimeline(context, refs, { session: chosen, recent: true }) : null
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
  const timeline = await loadTimeline(context, refs, { session: chosen })
  const visible = visibleTurns(timeline)
  const last = visible.at(-1)
  if (!last) {
    const [why, hints] = noneVisibleIn(timeline)
    throw new CkptError('NOT_FOUND', `${why} Nothing to show.`, { hints: [...hints, 'ckpt list --sessions'] })
  }
  const first = session === undefined ? last : visible[0]!
  context.warnings.push(...soFar(last))
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
  return {
    name: store.trees.empty,
    view: new SnapshotView(store, store.trees.empty, emptyBeside({ file: 0o644, exec: 0o755, directory: 0o755 })),
  }
}

export async function diffViews(context: Context, from: Checkpoint, to: Checkpoint) {
  const { store } = context
  return diffSnapshots(context, { from: await viewOf(store, from), to: await viewOf(store, to) }, [])
}

type View = Awaited<ReturnType<typeof viewOf>>

/** git's differences, and those that a tree does not show: permission modes, empty directories. */
async function diffSnapshots(
  { store }: Context,
  { from: a, to: b }: { from: View; to: View },
  paths: readonly string[],
): Promise<{ files: FileDiff[]; patch: string }> {
  const told = await diffTrees(store, { from: a.tree, to: b.tree }, { paths })
  // What a snapshot does not know was not moved from there.
  const isGuess = await isAnyUnknown(told.files, b)
  const { files, patch } = await withoutUnknown(
    isGuess ? await diffTrees(store, { from: a.tree, to: b.tree }, { paths, renames: false }) : told,
    a,
    b,
  )
  const seen = new Set<string>(files.flatMap((file) => [file.path, ...(file.oldPath ? [file.oldPath] : [])]))
  for (const { path, from, to } of await transitionsBetween(store, a, b)) {
    const bare = barePath(path)
    if (seen.has(path) || (paths.length > 0 && !paths.some((scope) => isWithin(bare, scope)))) continue
    const status = from.kind === 'absent' ? 'added' : to.kind === 'absent' ? 'deleted' : 'mode'
    if (from.kind === 'unknown' || to.kind === 'unknown') continue
    files.push({ path: path as RelativePath, status, insertions: 0, deletions: 0, binary: false })
  }
  return { files, patch }
}

async function isAnyUnknown(files: readonly FileDiff[], b: View): Promise<boolean> {
  for (const { oldPath } of files) if (oldPath && (await b.state(oldPath)).kind === 'unknown') return true
  return false
}

/** What only one of the trees has is not gone, nor new, where the other snapshot could not read it. */
async function withoutUnknown(diff: { files: FileDiff[]; patch: string }, a: View, b: View) {
  const isKnown = async ({ status, path }: FileDiff): Promise<boolean> => {
    const view = status === 'deleted' ? b : status === 'added' ? a : null
    return view === null || (await view.state(path)).kind !== 'unknown'
  }
  const kept = await Promise.all(diff.files.map(isKnown))
  if (!kept.includes(false)) return diff
  const sections = patchSections(diff.patch, diff.files)
  return {
    files: diff.files.filter((_, i) => kept[i]),
    patch: sections
      .filter((_, i) => kept[i])
      .flat()
      .join(''),
  }
}
