/**
 * Verify, a range of the user's commits: which of them recorded turns account for. A commit that was made while a turn was
 * at work is that turn's. One that was made between turns is covered if every file it changed has, in it, the very bytes
 * that a turn before it made, and that the last of them left: then nothing in it came from elsewhere. What `ckpt commit` made
 * of turns it wrote down.
 */
import { text } from 'node:stream/consumers'
import { type Checkpoint, isOutside } from '../../core/checkpoint.ts'
import { CkptError } from '../../core/errors.ts'
import { isOid, type Oid } from '../../core/ids.ts'
import { shown } from '../../core/paths.ts'
import { runGit, tryGit } from '../../git/process.ts'
import type { Repository } from '../../git/repository.ts'
import { commitsOfTurns } from '../committed/origins.ts'
import type { Context } from '../worktree/context.ts'
import { ChangedFiles } from './changed-files.ts'

const SHALLOW = 'git fetch --unshallow   (in CI, where history is cut)'

export interface CommitCoverage {
  id: Oid
  subject: string
  covered: boolean
  session: string | null
  turn: number | null
  /** The checkpoint that shows it, or why none does. */
  why: string
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
  const told = chains.map((chain) => chain.filter(isNews))
  const known = new Map(told.flat().map((one) => [one.id, one]))
  const inOrder = [...known.values()].sort(inTime)
  const heads = await commitsUnder(context, repository, { commits, checkpoints: inOrder })
  const makers = await makersOf(context, repository, { chains: told, heads })
  const byCkpt = commitsOfTurns(context)
  const covered: CommitCoverage[] = []
  for (const { id, parents, subject } of commits) {
    // What HEAD had already when it was recorded is no turn's that came later.
    const before = inOrder.filter((one) => !isHeldBy(one, { id, heads }))
    const isCut = parents.length === 0 && (await namesParent(context, repository, id))
    const took = (byCkpt.get(id) ?? []).flatMap((one) => known.get(one) ?? []).at(-1)
    const maker = makers.get(id)
    const found = took
      ? by(took, 'made by ckpt commit')
      : maker && isWork(maker.after)
        ? by(maker.after, 'made in the turn')
        : await coverOne(context, repository, { id, isCut, inOrder: before, maker })
    covered.push({ id, subject, ...found })
  }
  return covered
}

/** Told of when it happened, and no way back of an operation. */
const isNews = (one: Checkpoint) => one.imported === undefined && !(one.kind === 'safety' && !one.result)

/** A worktree numbers its own; between worktrees there are the times. */
const inTime = (a: Checkpoint, b: Checkpoint) => (a.time < b.time ? -1 : a.time > b.time ? 1 : a.seq - b.seq)

type Heads = ReadonlyMap<Oid, ReadonlySet<Oid>>

/** A branch without a commit holds none. */
const isHeldBy = ({ head }: Checkpoint, { id, heads }: { id: Oid; heads: Heads }): boolean =>
  head !== undefined && heads.get(head)?.has(id) === true

/** For each head that checkpoints have: the commits of the range that it holds. A head that cannot be walked any more holds none. */
async function commitsUnder(
  { env }: Context,
  { root }: Repository,
  { commits, checkpoints }: { commits: readonly Commit[]; checkpoints: readonly Checkpoint[] },
): Promise<Map<Oid, Set<Oid>>> {
  const ids = new Set(commits.map(({ id }) => id))
  const below = commits.flatMap(({ parents }) => parents.filter((id) => !ids.has(id)))
  const heads = [...new Set(checkpoints.flatMap((one) => one.head ?? []))]
  const limits = [...new Set(below.map((id) => `^${id}`))]
  const walk = async (from: readonly Oid[]) => {
    const args = ['rev-list', '--parents', '--ignore-missing', '--stdin']
    const { code, stdout } = await tryGit(env, { args, cwd: root, input: [...from, ...limits, ''].join('\n') })
    return code === 0 ? stdout.toString('latin1').split('\n') : null
  }
  // In one process, for there may be as many heads as checkpoints; but git ends at the first that has lost its past.
  const rows = (await walk(heads)) ?? (await Promise.all(heads.map((head) => walk([head])))).flatMap((one) => one ?? [])
  const parents = new Map(rows.map((row) => row.split(' ') as Oid[]).map(([id, ...others]) => [id!, others] as const))
  return new Map(heads.map((head) => [head, heldBy(head, { parents, ids })]))
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
async function namedCommits({ env }: Context, { root }: Repository): Promise<Oid[]> {
  const names = (await text(env.stdin.stream)).split('\n').map((line) => line.trim())
  const rows = names.filter((name) => name !== '')
  if (rows.length === 0) return []
  const input = rows.map((name) => `${name}^{commit}\n`).join('')
  const found = await runGit(env, { args: ['cat-file', '--batch-check=%(objectname)'], cwd: root, input })
  const ids = found.toString('latin1').split('\n')
  return rows.map((name, i) => {
    const id = ids[i] ?? ''
    if (isOid(id)) return id
    throw new CkptError(
      'NOT_FOUND',
      `${JSON.stringify(name)} on standard input is no commit here. Nothing was changed.`,
      {
        hints: ['git rev-list RANGE | ckpt verify --ref - --covered', SHALLOW],
      },
    )
  })
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
  if (result.code !== 0) {
    throw new CkptError(
      'NOT_FOUND',
      `${JSON.stringify(range)} is no range of commits here (${result.stderr.trim().split('\n')[0] ?? ''}). Nothing was changed.`,
      { hints: ['git branch --all   (what there is)', SHALLOW] },
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

/** Of a commit without parents here: whether a shallow clone ends with it. What it changed cannot be told then. */
async function namesParent({ env }: Context, { root }: Repository, id: Oid): Promise<boolean> {
  const commit = (await runGit(env, { args: ['cat-file', 'commit', id], cwd: root })).toString('latin1')
  return /^parent /m.test(commit.slice(0, commit.indexOf('\n\n')))
}

/** The two checkpoints between which HEAD moved over a commit. */
interface Maker {
  before: Checkpoint
  after: Checkpoint
}

/** For each commit that HEAD moved over between two neighbouring checkpoints of one worktree, and first had then: those two. */
async function makersOf(
  { env }: Context,
  { root }: Repository,
  { chains, heads }: { chains: readonly Checkpoint[][]; heads: Heads },
): Promise<Map<Oid, Maker>> {
  const makers = new Map<Oid, Maker>()
  const all = chains.flat()
  for (const chain of chains) {
    const inOrder = chain.toSorted((a, b) => a.seq - b.seq)
    for (const [i, after] of inOrder.entries()) {
      const before = inOrder[i - 1]
      if (!before || !after.head || before.head === after.head) continue
      const args = ['rev-list', after.head, ...(before.head ? [`^${before.head}`] : []), '--']
      const result = await tryGit(env, { args, cwd: root })
      if (result.code !== 0) continue // a head that is not here any more tells nothing
      for (const id of result.stdout.toString('latin1').split('\n')) {
        if (!isOid(id) || makers.has(id)) continue
        if (all.some((one) => one.time <= before.time && isHeldBy(one, { id, heads }))) continue
        makers.set(id, { before, after })
      }
    }
  }
  return makers
}

type Verdict = Omit<CommitCoverage, 'id' | 'subject'>

/** Of a commit that was made between turns. */
async function coverOne(
  context: Context,
  repository: Repository,
  { id, isCut, inOrder, maker }: { id: Oid; isCut: boolean; inOrder: readonly Checkpoint[]; maker: Maker | undefined },
): Promise<Verdict> {
  const none = (why: string): Verdict => ({ covered: false, session: null, turn: null, why })
  // Newest first: a commit mostly holds what the last turns left.
  const ended = inOrder.filter((one) => isWork(one) && (!maker || one.time <= maker.before.time)).reverse()
  if (ended.length === 0) return none('no turn was recorded before it')
  if (isCut) return none('its parent is not here: git fetch --unshallow')
  const changed = await ChangedFiles.of(context, repository, id)
  let foreign = ''
  for (const [i, one] of ended.slice(0, MOST).entries()) {
    const other = await firstForeign(one, changed)
    foreign ||= other ?? ''
    if (other !== null) continue
    const unmade = await firstUnmade(changed, { inOrder, ended: ended.slice(i) })
    // Those before this one are made by fewer turns still.
    return unmade === null ? by(one, 'holds what the turn left') : none(`${shown(unmade)} is not what a turn left`)
  }
  return none(`${shown(foreign)} is not what a turn left`)
}

/** So many checkpoints are looked at for one commit. */
const MOST = 50

/** The first changed path that was there as it is when each turn began: no turn made it so. */
async function firstUnmade(
  changed: ChangedFiles,
  { inOrder, ended }: { inOrder: readonly Checkpoint[]; ended: readonly Checkpoint[] },
): Promise<string | null> {
  const open = new Set(changed.paths)
  const turnOf = ({ session, turn }: Checkpoint) => `${turn} ${session}`
  const begins = new Map(inOrder.flatMap((one) => (one.kind === 'before' ? [[turnOf(one), one]] : [])))
  for (const after of ended.slice(0, MOST * 4)) {
    if (open.size === 0) break
    const before = begins.get(turnOf(after))
    if (!before) continue
    for (const path of open)
      if ((await changed.isAsIn(after.tree, path)) && !(await changed.isAsIn(before.tree, path))) open.delete(path)
  }
  const [path] = open
  return path ?? null
}

/** The first changed path that a checkpoint has otherwise; null: it has them all. */
async function firstForeign({ tree }: Checkpoint, changed: ChangedFiles): Promise<string | null> {
  for (const path of changed.paths) if (!(await changed.isAsIn(tree, path))) return path
  return null
}

/** A turn at work: what lies before this checkpoint is the turn's own. */
const isWork = (one: Checkpoint) => (one.kind === 'step' || one.kind === 'after') && !isOutside(one)

const by = ({ session, turn }: Checkpoint, why: string): Verdict => ({
  covered: true,
  session,
  turn: turn ?? null,
  why,
})
