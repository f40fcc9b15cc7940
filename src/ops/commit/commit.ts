/** Commit: one clean commit, in the user's repository, of what a session's visible turns changed and nothing else. */

import type { ClaimedTransition } from '../../core/claims.ts'
import { CkptError, FIRST_TURN } from '../../core/errors.ts'
import { sessionOption } from '../../core/hint-words.ts'
import type { Oid, SessionId, TurnNumber } from '../../core/ids.ts'
import { printable, reasonedList, shortList } from '../../core/paths.ts'
import type { PathState } from '../../core/state.ts'
import { type Turn, visibleTurns } from '../../core/timeline.ts'
import { PLAIN_PATCH } from '../../git/diff.ts'
import { tryGit } from '../../git/process.ts'
import type { Repository } from '../../git/repository.ts'
import { promptReader } from '../../git/side-refs.ts'
import { runUsersGit, tryUsersGit } from '../../git/users-git.ts'
import { removeDrafts } from '../../git/whole-file.ts'
import { behindSymlink } from '../../snapshot/disk.ts'
import { refuseWhilePending } from '../change/boundary.ts'
import { refuseRunning } from '../change/refuse.ts'
import { CommitBlobs } from '../committed/blobs.ts'
import { lastCommit } from '../committed/commits-file.ts'
import { type Entry, indexInfo, readHeadEntries, readIndexEntries, readMarkedPaths } from '../committed/entries.ts'
import { isNoted } from '../committed/note.ts'
import {
  dropNote,
  type Following,
  finishCommit,
  follow,
  isUnderWay,
  leaveNote,
  madeOn,
  noteCommit,
  notFollowed,
} from '../committed/under-way.ts'
import { setMarks, untilIndexIsFree } from '../committed/users-index.ts'
import { ChangeReader } from '../history/turn-changes.ts'
import { locked } from '../recovery/locked.ts'
import { type Context, headOf, refuseWhileBusy } from '../worktree/context.ts'
import { chooseSession, loadTimeline, readRefs } from '../worktree/sessions.ts'
import { commitMessage } from './message.ts'
import { settledPaths, uncoveredAndUncommitted, undoneSince } from './settled.ts'
import { foldChanges } from './tree.ts'

/** Set for a commit that nobody waits for: what goes wrong is written to the hook log. */
export const BEHIND = 'CKPT_COMMIT_BEHIND'

export interface CommitOptions {
  session?: string
  message?: string
  /** What git and its hooks print goes nowhere but into an error. */
  quiet?: boolean
}

export interface CommitResult {
  session: SessionId | null
  /** Null: there was nothing to commit. */
  commit: Oid | null
  message: string | null
  turns: TurnNumber[]
  /** Worktree paths (bytes). */
  files: string[]
  warnings: string[]
}

/** What is known before git commits: the lock is not held while the user's hooks run, for they may call ckpt. */
interface Planned extends Following {
  prompts: { number: number; prompt: string | null }[]
  blobs: CommitBlobs
}

/** @throws CkptError BOUNDARY_PENDING, TURN_RUNNING, GIT_BUSY, CONFLICT, BAD_ROOT, NOT_FOUND */
export async function commit(context: Context, options: CommitOptions): Promise<CommitResult> {
  const { repository, worktree, warnings } = context
  if (!repository) {
    throw new CkptError('BAD_ROOT', `${worktree.root} is a plain directory. Nothing was committed.`, {
      hints: ['git init'],
    })
  }
  const planned = await planAlone(context, options)
  if (planned.entries.size === 0) {
    return { session: planned.session, commit: null, message: null, turns: [], files: [], warnings }
  }
  const { session, turns, entries } = planned
  const { made, message } = await undisturbed(context, async () => {
    const done = await commitNoted(context, repository, { planned, options })
    await settle(context, planned, done.made)
    return done
  })
  return {
    session,
    commit: made,
    message,
    turns: turns.map((turn) => turn.number),
    files: [...entries.keys()].sort(),
    warnings,
  }
}

/** Milliseconds for another `ckpt commit` to be done: the person's hooks take their time. */
const PATIENCE = 30_000

/** A plan that is noted, where it has anything: from then on no other commit begins. @throws CkptError LOCKED */
async function planAlone(context: Context, options: CommitOptions): Promise<Planned> {
  const { env } = context
  const end = env.monotonic() + PATIENCE
  for (;;) {
    const planned = await locked(context, { command: 'commit' }, async () => {
      if (isUnderWay(context)) return null
      const planned = await plan(context, options)
      if (planned.entries.size > 0) noteCommit(context, planned)
      return planned
    })
    if (planned) return planned
    if (env.monotonic() >= end)
      throw new CkptError('LOCKED', 'Another ckpt commit is at work in this worktree. Nothing was committed.', {
        hints: ['ckpt commit   (once that one is done)'],
      })
    await env.progress('waiting for another ckpt commit')
    await new Promise((resolve) => setTimeout(resolve, 100))
  }
}

async function commitNoted(
  context: Context,
  repository: Repository,
  { planned, options }: { planned: Planned; options: CommitOptions },
): Promise<{ made: Oid; message: string }> {
  try {
    await untilIndexIsFree(context, repository)
    return await commitEntries(context, planned, options)
  } catch (error) {
    if ((await madeOn(context, planned.head)) === null) dropNote(context)
    throw error
  }
}

/** A signal while git commits ends what git does, and its hooks; what follows the commit, if it was made, is done all the same. */
async function undisturbed<T>({ env }: Context, work: () => Promise<T>): Promise<T> {
  const deaf = (['SIGINT', 'SIGTERM', 'SIGHUP'] as const).map((signal) => env.onSignal(signal, () => undefined))
  try {
    return await work()
  } finally {
    for (const off of deaf) off()
  }
}

/** What follows a commit. It stands by now, so that what fails here is a warning. */
async function settle(context: Context, planned: Planned, made: Oid): Promise<void> {
  try {
    await locked(context, { command: 'commit' }, () => follow(context, planned, made))
  } catch (error) {
    context.warnings.push(notFollowed(made, error))
    leaveNote(context)
  }
}

/**
 * With `commit.auto`: the commit that ends a run or an agent's session. Whatever stands in its way is a warning, and the
 * work stays as it is.
 */
export async function commitAutomatically(context: Context, session: SessionId): Promise<string[]> {
  try {
    const { commit: made, message, warnings } = await commit(context, { session, quiet: true })
    const first = made === null ? [] : [`Committed ${made.slice(0, 10)}: ${printable(message!.split('\n')[0]!)}`]
    return [...first, ...warnings.filter((one) => !context.warnings.includes(one))]
  } catch (error) {
    if (!(error instanceof CkptError)) throw error
    return [`No commit was made (commit.auto): ${error.message}`]
  }
}

async function plan(context: Context, options: CommitOptions): Promise<Planned> {
  const { store } = context
  if (isNoted(context)) context.warnings.push(...(await finishCommit(context)))
  const head = await headOf(context)
  refuseWhileBusy(head)
  const refs = await readRefs(context)
  let session: SessionId | null
  try {
    session = chooseSession(refs, options.session)
  } catch (error) {
    if (error instanceof CkptError && error.code === 'NOT_FOUND') await refuseWhilePending(context, refs) // which comes first
    throw error
  }
  if (session === null) {
    throw new CkptError('NOT_FOUND', 'There is no turn in this worktree yet. Nothing was committed.', {
      hints: FIRST_TURN,
    })
  }
  const timeline = await loadTimeline(context, refs, session)
  refuseRunning(timeline, { outcome: 'Nothing was committed.' })
  await refuseWhilePending(context, refs)
  const last = await lastCommit(context, session, head.head)
  const reader = new ChangeReader(context, refs, timeline)
  const before = await readHeadEntries(context, head.head)
  const visible = visibleTurns(timeline)
  const since = last ? visible.filter(({ number }) => !last.turns.includes(number)) : visible
  let turns = last?.isInHead ? since : visible
  let folded = await foldTurns(context, { turns, reader, head: head.head, before })
  if (folded.conflicts.size > 0 && last && !last.isInHead) {
    const newer = await foldTurns(context, { turns: since, reader, head: head.head, before })
    if (newer.conflicts.size === 0) {
      ;[turns, folded] = [since, newer]
      context.warnings.push(
        `Commit ${last.commit.slice(0, 10)} is no part of HEAD any more: what turns up to ${Math.max(...last.turns)} did is taken to be there as you have changed it.`,
      )
    }
  }
  const { entries, conflicts, blobs } = folded
  context.warnings.push(...folded.warnings)
  if (last?.isInHead) context.warnings.push(...(await undoneSince(context, { refs, session, last, before })))
  if (conflicts.size > 0 && head.head !== null) {
    // Chosen by hand, as the refusal says: there is nothing left to choose.
    const settled = await settledPaths(context, [...conflicts.keys()], before)
    for (const path of settled) {
      conflicts.delete(path)
      entries.delete(path)
    }
    if (settled.length > 0) context.warnings.push(`Left as you have committed it: ${shortList(settled)}.`)
  }
  if (conflicts.size > 0) {
    const shown = reasonedList([...conflicts].map(([path, reason]) => ({ path, reason })))
    throw new CkptError('CONFLICT', `Refused, nothing was committed: ${shown}.`, {
      paths: [...conflicts.keys()],
      hints: ['git add -p && git commit   (choose by hand)', `ckpt diff ${sessionOption(session)}`],
    })
  }
  const prompts = await promptReader(store, refs.notes)
  const told = await Promise.all(
    turns.map(async ({ number, before }) => ({ number, prompt: await prompts(before.id) })),
  )
  await blobs.publish(entries.values())
  return {
    session,
    head: head.head,
    turns: turns.map(({ number, after, checkpoints }) => ({ number, checkpoint: (after ?? checkpoints.at(-1)!).id })),
    prompts: told,
    entries,
    before,
    blobs,
  }
}

interface Folded {
  entries: Map<string, Entry>
  conflicts: Map<string, string>
  blobs: CommitBlobs
  warnings: string[]
}

/** What turns did, on top of HEAD. */
async function foldTurns(
  given: Context,
  {
    turns,
    reader,
    head,
    before,
  }: { turns: readonly Turn[]; reader: ChangeReader; head: Oid | null; before: Map<string, Entry> },
): Promise<Folded> {
  const warnings: string[] = []
  const context = { ...given, warnings }
  const read = await Promise.all(turns.map((turn) => reader.changesOf(turn)))
  const bases = [...new Set(turns.map((turn) => turn.before.head ?? null))]
  const sinceBase = new Map<Oid | null, CommittedSince>()
  for (const base of bases) sinceBase.set(base, await committedSince(context, base, head))
  const bySince = new Map<ClaimedTransition, CommittedSince>()
  const changes: ClaimedTransition[] = []
  for (const [i, one] of read.entries()) {
    if (one.unclaimed.length > 0)
      warnings.push(
        `Turn ${one.turn.number} also saw changes outside its steps, which are not committed: ${shortList(one.unclaimed.map(({ path }) => path))}.`,
      )
    const committed = sinceBase.get(turns[i]!.before.head ?? null)!
    for (const change of one.claimed) bySince.set(change, committed)
    changes.push(...one.claimed)
  }
  const left = new Map(changes.filter(({ path }) => !path.endsWith('/')).map(({ path, to }) => [path, to]))
  const kept = new Set(await withoutIgnored(context, left, before))
  const missed = await uncoveredAndUncommitted(context, { turns: read, captured: left })
  if (missed.length > 0) warnings.push(`Not captured, and left out of the commit: ${reasonedList(missed)}.`)
  const blobs = await CommitBlobs.open(context, { paths: [...kept], head: before })
  const folded = await foldChanges({
    changes: changes.filter(({ path }) => kept.has(path)),
    head: before,
    blobs,
    committed: (change, to) => bySince.get(change)!(change.path, to),
  })
  return { ...folded, blobs, warnings }
}

/**
 * Captured though ignored (`snapshot.include`, for `.env` and the like): not for a commit, unless it is in one already.
 * `left`: what the session left at each path.
 */
async function withoutIgnored(
  context: Context,
  left: ReadonlyMap<string, PathState>,
  committed: ReadonlyMap<string, Entry>,
): Promise<string[]> {
  const { env, worktree } = context
  const paths = [...left.keys()]
  const staged = await readIndexEntries(context)
  const inQuestion = paths.filter((path) => !committed.has(path) && !staged.has(path)) // tracked paths are never ignored
  const [behind, asked] = [new Set<string>(), [] as string[]]
  for (const path of inQuestion) {
    if (behindSymlink(env, worktree.root, path))
      behind.add(path) // git refuses to say
    else asked.push(path)
  }
  const ignored = await ignoredAmong(context, asked)
  if (ignored.size > 0) context.warnings.push(`Ignored by git, and left out of the commit: ${shortList([...ignored])}.`)
  const missed = [...behind].filter((path) => left.get(path)?.kind !== 'absent')
  if (missed.length > 0)
    context.warnings.push(`Behind a symlink now, and left out of the commit: ${shortList(missed)}.`)
  return paths.filter((path) => !ignored.has(path) && !behind.has(path))
}

async function ignoredAmong(context: Context, paths: readonly string[]): Promise<Set<string>> {
  if (paths.length === 0) return new Set()
  const { code, stdout } = await tryUsersGit(context.env, {
    // With the index git dies of a path below a submodule.
    args: ['check-ignore', '--no-index', '-z', '--stdin'],
    cwd: context.worktree.root,
    input: Buffer.from(paths.map((path) => `./${path}\0`).join(''), 'latin1'),
  })
  if (code > 1) throw new CkptError('INTERNAL', 'git check-ignore failed. Nothing was committed.')
  const answers = stdout.toString('latin1').split('\0').filter(Boolean)
  return new Set(answers.map((path) => path.replace(/^\.\//, '')))
}

type CommittedSince = (path: string, entry: Entry) => boolean

/** What the commits since a turn made of each path: a person may have committed the turn's work by hand. */
async function committedSince({ env, worktree }: Context, from: Oid | null, to: Oid | null): Promise<CommittedSince> {
  const seen = new Set<string>()
  if (from !== null && to !== null && from !== to) {
    const { code, stdout } = await tryGit(env, {
      args: ['log', '--format=', '--raw', '--no-abbrev', '--no-renames', '-m', '-z', `${from}..${to}`],
      cwd: worktree.root,
    })
    const fields = code === 0 ? stdout.toString('latin1').split('\0') : []
    for (let i = 0; i + 1 < fields.length; i++) {
      const [, mode, oid] = /^\n?:\d+ (\d+) [0-9a-f]+ ([0-9a-f]+) [A-Z]/.exec(fields[i]!) ?? []
      if (mode !== undefined) seen.add(`${mode} ${oid}\0${fields[++i]}`)
    }
  }
  return (path, entry) =>
    seen.has(entry ? `${entry.mode} ${entry.oid}\0${path}` : `000000 ${'0'.repeat(to?.length ?? 40)}\0${path}`)
}

/** The user's own `git commit`, with their hooks and signing, on an index of its own that holds HEAD and these paths. */
async function commitEntries(
  context: Context,
  planned: Planned,
  options: CommitOptions,
): Promise<{ made: Oid; message: string }> {
  const { env, store, worktree } = context
  const { head, entries, before, session, prompts } = planned
  const cwd = worktree.root
  const index = `${store.worktreeDir}/tmp/commit-index-${env.random(6)}`
  const file = `${index}.message`
  const vars = { GIT_INDEX_FILE: index }
  try {
    await runUsersGit(env, { args: ['read-tree', head ?? '--empty'], cwd, vars })
    await runUsersGit(env, {
      args: ['update-index', '-z', '--index-info'],
      cwd,
      vars,
      input: indexInfo(entries, head),
    })
    // Else what a sparse checkout leaves out is deleted, to git and to the hooks, and a partial clone fetches it.
    const isMeant = (path: string) => before.has(path) && !entries.has(path)
    await setMarks(context, await readMarkedPaths(context), { isMeant, vars })
    await tryUsersGit(env, { args: ['update-index', '-q', '--refresh'], cwd, vars })
    const patch = () => runUsersGit(env, { args: ['diff', '--cached', ...PLAIN_PATCH], cwd, vars })
    const message = options.message ?? (await commitMessage(context, { session, turns: prompts, patch }))
    env.files.writeFileSync(file, message, { mode: 0o600, flag: 'wx' })
    if ((await headOf(context)).head !== head) {
      throw new CkptError('CONFLICT', 'HEAD moved meanwhile. Nothing was committed.', { hints: ['ckpt commit'] })
    }
    const shown = !options.quiet
    const { code, stderr } = await tryUsersGit(env, { args: ['commit', '-q', '-F', file], cwd, vars, shown })
    const made = code === 0 ? (await headOf(context)).head : await madeOn(context, head) // a hook after it was cut short
    if (made === null)
      throw new CkptError(
        'INTERNAL',
        `git refused the commit (exit ${code}): a hook, signing, or a missing name. Nothing was committed; your index and your files are as they were.${shown ? '' : ` It said: ${printable(stderr.trim().slice(0, 500))}`}`,
        { hints: ['ckpt commit   (once what git said is mended)'] },
      )
    return { made, message }
  } finally {
    removeDrafts(env, [index, `${index}.lock`, file])
  }
}
