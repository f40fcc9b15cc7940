/**
 * Verify, a range of the user's commits: which of them recorded turns account for. A commit that was made while a turn was
 * at work is that turn's. One that was made between turns is covered if every file it changed has, in it, the very bytes
 * that a turn before it made, and that the last of them left, or of a merge those that git makes of its parents: then nothing
 * in it came from elsewhere. What `ckpt commit` made of turns it wrote down, and what a hook put into it beside that.
 */
import { text } from 'node:stream/consumers'
import { type Checkpoint, isOutside } from '../../core/checkpoint.ts'
import { CkptError } from '../../core/errors.ts'
import { isOid, type Oid } from '../../core/ids.ts'
import { shown } from '../../core/paths.ts'
import type { Env } from '../../env.ts'
import { FETCHING } from '../../git/failure.ts'
import { runGit, tryGit } from '../../git/process.ts'
import { isPartialClone, isShallow, type Repository } from '../../git/repository.ts'
import type { Context } from '../worktree/context.ts'
import { type Made, MadeByCkpt } from './carried.ts'
import { type ChangedFiles, changedFilesReader } from './changed-files.ts'
import { droppedPaths, mergedPaths } from './merged.ts'
import { by, inTime, isWork, none, TurnsWork, type Verdict } from './turns-work.ts'

/** What brings the history that a CI cut. */
const uncut = async ({ env }: Context, { root }: Repository): Promise<string[]> =>
  (await isShallow(env, root)) ? ['git fetch --unshallow   (the history here is cut)'] : []

export interface CommitCoverage extends Verdict {
  id: Oid
  subject: string
}

/** `chains`: the checkpoints of each worktree. Oldest first. @throws CkptError USAGE, NOT_FOUND */
export async function coverCommits(
  context: Context,
  range: string,
  chains: readonly Checkpoint[][],
): Promise<CommitCoverage[]> {
  const { repository } = context
  if (!repository) throw new CkptError('USAGE', 'This is a plain directory: it has no commits. Nothing was changed.')
  const commits = await commitsOf(context, repository, range)
  const told = chains.map((chain) => chain.filter(isNews).sort((a, b) => a.seq - b.seq))
  const known = new Map(told.flat().map((one) => [one.id, one]))
  const inOrder = [...known.values()].sort(inTime)
  const heads = await commitsUnder(context, repository, { commits, checkpoints: inOrder })
  const placed = placesIn(told)
  const before = (one: Checkpoint) => placed.get(one.id)?.chain[placed.get(one.id)!.at - 1]
  const byCkpt = new MadeByCkpt(context, repository)
  const changedBy = await changedFilesReader(context, repository)
  const lookAt = async ({ id, parents }: Commit): Promise<Verdict | Look> => {
    let made = byCkpt.itself(id)
    if (made?.beyond.length === 0) return plannedBy(made, { id, known })
    const isHeld = (one: Checkpoint) => isHeldBy(one, { id, heads })
    const maker = makerOf(inOrder, { before, isHeld, heads })
    const own = maker && madeAmid(placed.get(maker.after.id)!)
    if (own) return by(own, 'made in the turn')
    made ??= await byCkpt.carried(id, () => changedBy(id))
    const planned = made && plannedBy(made, { id, known })
    if (planned && made?.beyond.length === 0) return planned
    // What HEAD had already when it was recorded is no turn's that came later.
    const isBefore = (one: Checkpoint) => !isHeld(one) && (!maker || one.time <= maker.before.time)
    if (!inOrder.some((one) => isWork(one) && isBefore(one))) return none('no turn was recorded before it')
    if (parents.length === 0 && (await namesParent(context, repository, id)))
      return none('its parent is not here: git fetch --unshallow')
    const more = await droppedPaths(context, repository, { id, parents })
    const changed = await changedBy(id, { among: made?.beyond, more })
    const merged = await mergedPaths(context, repository, { parents, changed })
    const paths = changed.paths.filter((path) => !merged.paths.has(path))
    if (paths.length === 0) return planned ?? (parents.length > 1 ? MERGED : EMPTY)
    return { changed, paths, parents, unread: merged.unread, isBefore, planned }
  }
  const looks: (Verdict | Look)[] = []
  for (const commit of commits)
    looks.push(await lookAt(commit).catch((error: unknown) => ifUnfetched(context.env, repository, error)))
  const open = looks.filter((look) => 'changed' in look)
  const paths = new Set(open.flatMap((look) => look.paths))
  const work = await TurnsWork.read(context, open.length > 0 ? told : [], paths)
  const covered: CommitCoverage[] = []
  for (const [i, { id, subject }] of commits.entries()) {
    const look = looks[i]!
    covered.push({ id, subject, ...('changed' in look ? await heldAgainst(work, look) : look) })
  }
  return covered
}

function plannedBy({ commit, turns }: Made, { id, known }: { id: Oid; known: ReadonlyMap<Oid, Checkpoint> }): Verdict {
  const as = commit === id ? '' : `, as ${commit.slice(0, 10)}`
  const took = turns.flatMap((one) => known.get(one) ?? []).at(-1)
  if (took) return by(took, `made by ckpt commit${as}`)
  return { covered: true, session: null, turn: null, why: `made by ckpt commit${as}; its turns were pruned since` }
}

async function heldAgainst(work: TurnsWork, look: Look): Promise<Verdict> {
  const found = await work.covers(look.changed, look)
  if (found.covered && look.planned) return look.planned
  if (found.covered || look.unread === null) return found
  return none(`${shown(look.unread)} cannot be merged again: its contents are not here`)
}

/** A partial clone may lack the trees that say what a commit changed (`git clone --filter=tree:0`). */
async function ifUnfetched(env: Env, { root }: Repository, error: unknown): Promise<Verdict> {
  const hints = error instanceof CkptError ? error.hints : []
  // A newer git says no more than that it cannot read them.
  const isUntold = async () => hints.some((hint) => hint.startsWith('git fsck')) && (await isPartialClone(env, root))
  if (!hints.includes(FETCHING) && !(await isUntold())) throw error
  return none('what it changed is not here: git fetch --refetch --no-filter')
}

/** Nobody's, and yet nothing in them came from elsewhere. */
const EMPTY: Verdict = { covered: true, session: null, turn: null, why: 'changes no file' }
const MERGED: Verdict = { covered: true, session: null, turn: null, why: 'merged from its parents without a conflict' }

/** Of a commit that was made between turns: it is held against what they made and left. */
interface Look {
  changed: ChangedFiles
  /** Those that it does not have from its parents. */
  paths: readonly string[]
  parents: readonly Oid[]
  /** Of a merge: one that may be from its parents. */
  unread: string | null
  /** Whether a checkpoint tells of the time before the commit. */
  isBefore: (one: Checkpoint) => boolean
  /** Of one that `ckpt commit` made: these paths are what a hook put into it beside the plan. */
  planned: Verdict | null
}

/** Told of when it happened, and no way back of an operation. */
const isNews = (one: Checkpoint) => one.imported === undefined && !(one.kind === 'safety' && !one.result)

/** For each head that checkpoints have: the commits of the range that it holds; null: it cannot be walked any more. */
type Heads = ReadonlyMap<Oid, ReadonlySet<Oid> | null>

/** A branch without a commit holds none. */
const isHeldBy = ({ head }: Checkpoint, { id, heads }: { id: Oid; heads: Heads }): boolean =>
  head !== undefined && heads.get(head)?.has(id) === true

async function commitsUnder(
  { env }: Context,
  { root }: Repository,
  { commits, checkpoints }: { commits: readonly Commit[]; checkpoints: readonly Checkpoint[] },
): Promise<Heads> {
  const ids = new Set(commits.map(({ id }) => id))
  const below = commits.flatMap(({ parents }) => parents.filter((id) => !ids.has(id)))
  const heads = [...new Set(checkpoints.flatMap((one) => one.head ?? []))]
  const limits = [...new Set(below.map((id) => `^${id}`))]
  const input = heads.map((head) => `${head}\n`).join('')
  const found = await runGit(env, { args: ['cat-file', '--batch-check=%(objectname)'], cwd: root, input })
  const here = found.toString('latin1').split('\n').filter(isOid)
  const walk = async (from: readonly Oid[]) => {
    const args = ['rev-list', '--parents', '--stdin']
    const { code, stdout } = await tryGit(env, { args, cwd: root, input: [...from, ...limits, ''].join('\n') })
    return code === 0 ? stdout.toString('latin1').split('\n') : null
  }
  // In one process, for there may be as many heads as checkpoints; but git ends at the first that has lost its past.
  const all = here.length === 0 ? [] : await walk(here)
  const each = all === null ? await Promise.all(here.map((head) => walk([head]))) : []
  const rows = all ?? each.flatMap((one) => one ?? [])
  const walked = new Set(here.filter((_, i) => all !== null || each[i] !== null))
  const parents = new Map(rows.map((row) => row.split(' ') as Oid[]).map(([id, ...others]) => [id!, others] as const))
  return new Map(heads.map((head) => [head, walked.has(head) ? heldBy(head, { parents, ids }) : null]))
}

function heldBy(head: Oid, { parents, ids }: { parents: ReadonlyMap<Oid, Oid[]>; ids: ReadonlySet<Oid> }): Set<Oid> {
  const seen = new Set<Oid>([head])
  for (const id of seen) for (const parent of parents.get(id) ?? []) seen.add(parent)
  return new Set([...seen].filter((id) => ids.has(id) && parents.has(id)))
}

interface Commit {
  id: Oid
  parents: Oid[]
  subject: string
}

/** Those that standard input names, one a line: git log would take a line for less, or for more, than one commit. */
async function namedCommits(context: Context, repository: Repository): Promise<Oid[]> {
  const { env } = context
  const names = (await text(env.stdin.stream)).split('\n').map((line) => line.trim())
  const rows = names.filter((name) => name !== '')
  if (rows.length === 0) return []
  const input = rows.map((name) => `${name}^{commit}\n`).join('')
  const found = await runGit(env, { args: ['cat-file', '--batch-check=%(objectname)'], cwd: repository.root, input })
  const ids = found.toString('latin1').split('\n')
  const named = rows.map((_, i) => ids[i] ?? '')
  const missing = named.findIndex((id) => !isOid(id))
  if (missing < 0) return named as Oid[]
  const message = `${JSON.stringify(rows[missing])} on standard input is no commit here. Nothing was changed.`
  const hints = ['git rev-list RANGE | ckpt verify --ref - --covered', ...(await uncut(context, repository))]
  throw new CkptError('NOT_FOUND', message, { hints })
}

/** `-`: those that standard input names. */
async function commitsOf(context: Context, repository: Repository, range: string): Promise<Commit[]> {
  const { env } = context
  const named = range === '-' ? await namedCommits(context, repository) : null
  if (named?.length === 0) return [] // git would take HEAD
  // Without `..` it is one commit, as for git show.
  const only = named ? ['--no-walk=unsorted', '--stdin'] : range.includes('..') ? [] : ['-1']
  const args = [
    'log',
    '--no-show-signature',
    '--reverse',
    '-z',
    '--format=%H %P%x01%s',
    ...only,
    ...(named ? [] : ['--end-of-options', range, '--']),
  ]
  const input = named ? { input: `${named.join('\n')}\n` } : {}
  const result = await tryGit(env, { args, cwd: repository.root, ...input })
  const isRange = result.code === 0 && (named !== null || (await namesCommits(context, repository, range)))
  if (!isRange) {
    const why = result.code === 0 ? 'it names no commit' : (result.stderr.trim().split('\n')[0] ?? '')
    throw new CkptError(
      'NOT_FOUND',
      `${JSON.stringify(range)} is no range of commits here (${why}). Nothing was changed.`,
      { hints: ['git branch --all   (what there is)', ...(await uncut(context, repository))] },
    )
  }
  return result.stdout
    .toString('utf8')
    .split('\0')
    .flatMap((row) => {
      const end = row.indexOf('\x01')
      const [id = '', ...parents] = row.slice(0, Math.max(0, end)).trim().split(' ')
      return isOid(id) ? [{ id, parents: parents as Oid[], subject: row.slice(end + 1) }] : []
    })
}

/** Whether a range is from commits and to at least one: git log says nothing of files and trees (`HEAD:f`), and fails at none. */
async function namesCommits({ env }: Context, { root }: Repository, range: string): Promise<boolean> {
  const args = ['rev-parse', '--revs-only', '--end-of-options', range]
  const rows = (await runGit(env, { args, cwd: root })).toString('latin1').split('\n').filter(Boolean)
  const input = rows.map((row) => `${row.replace('^', '')}^{commit}\n`).join('')
  const found = await runGit(env, { args: ['cat-file', '--batch-check=%(objectname)'], cwd: root, input })
  const ids = found.toString('latin1').split('\n')
  return rows.some((row) => !row.startsWith('^')) && rows.every((_, i) => isOid(ids[i] ?? ''))
}

/** Of a commit without parents here: whether a shallow clone ends with it. What it changed cannot be told then. */
async function namesParent({ env }: Context, { root }: Repository, id: Oid): Promise<boolean> {
  const commit = (await runGit(env, { args: ['cat-file', 'commit', id], cwd: root })).toString('latin1')
  return /^parent /m.test(commit.slice(0, commit.indexOf('\n\n')))
}

/** The first checkpoint that has a commit, and the one before it in its worktree: HEAD moved over it in between. */
interface Maker {
  before: Checkpoint
  after: Checkpoint
}

/** Where a checkpoint is among those of its worktree, in their order. */
interface Place {
  chain: readonly Checkpoint[]
  at: number
}

const placesIn = (chains: readonly Checkpoint[][]): ReadonlyMap<Oid, Place> =>
  new Map(chains.flatMap((chain) => chain.map(({ id }, at) => [id, { chain, at }])))

/**
 * The checkpoint of the turn that was at work when HEAD moved to what this one is the first to show. This one may be of
 * another turn, or of none: then it is the next of a turn that had begun, and of one amid a step rather than of one that is
 * not. Undefined: no turn is known to have been at work.
 */
function madeAmid({ chain, at }: Place): Checkpoint | undefined {
  const here = chain[at]!
  const begun = new Map<string, { turn: Checkpoint['turn']; inStep: boolean }>()
  for (const one of chain.slice(0, at)) {
    if (one.kind === 'before') begun.set(one.session, { turn: one.turn, inStep: false })
    else if (one.kind === 'after' && !isOutside(one)) begun.delete(one.session)
    else if (one.kind === 'step' && begun.has(one.session))
      begun.set(one.session, { turn: one.turn, inStep: one.start === true })
  }
  const isOwn =
    isWork(here) && (!here.start || ![...begun].some(([session, { inStep }]) => inStep && session !== here.session))
  if (isOwn) return here
  const next = [...begun]
    .sort(([, a], [, b]) => Number(b.inStep) - Number(a.inStep))
    .flatMap(([session, { turn }]) => {
      const isNext = (one: Checkpoint) => one.session === session && one.turn === turn && isWork(one) && !one.inferred
      return chain.slice(at + 1).find(isNext) ?? []
    })
  return next[0] ?? (isWork(here) ? here : undefined)
}

/** Undefined: no checkpoint has the commit, or the one before the first that has it tells nothing. */
function makerOf(
  inOrder: readonly Checkpoint[],
  {
    before,
    isHeld,
    heads,
  }: {
    before: (one: Checkpoint) => Checkpoint | undefined
    isHeld: (one: Checkpoint) => boolean
    heads: Heads
  },
): Maker | undefined {
  const after = inOrder.find(isHeld)
  const last = after && before(after)
  return last && (last.head === undefined || heads.get(last.head)) ? { before: last, after } : undefined
}
