/** What became of a worktree's paths in git, between HEAD when a checkpoint was taken and HEAD now. */
import type { Oid } from '../../core/ids.ts'
import { machineFailure } from '../../git/failure.ts'
import { tryGit } from '../../git/process.ts'
import { type CommittedChange, readChanges, SECOND } from '../committed/changes.ts'
import { isAncestor } from '../committed/commits-file.ts'
import { type Entry, readHeadEntries, sameEntry } from '../committed/entries.ts'
import { commitsOfTurns } from '../committed/origins.ts'
import type { Context } from '../worktree/context.ts'

export interface Since {
  /** Whether what HEAD was is part of HEAD, and whether it is part of that or of another branch. */
  isHere: boolean
  isKept: boolean
  /** Whether HEAD had a content then. */
  had: (path: string, entry: Entry) => boolean
  /** Whether a commit since, that HEAD is made on, made it so: a person may have committed a turn's work by hand. */
  made: (path: string, entry: Entry) => boolean
  /** Whether HEAD has a path otherwise than then, by a commit that was made since `time` (milliseconds since 1970, UTC; by git's own word). */
  isGoneOver: (path: string, time: number) => boolean
}

/** `from`: null: there was no commit. */
export async function readSince(
  context: Context,
  from: Oid | null,
  { head, entries }: { head: Oid | null; entries: ReadonlyMap<string, Entry> },
): Promise<Since> {
  const isHere = from === null || from === head || (head !== null && (await isAncestor(context, from, head)))
  const isThere = from === null || from === head || (await isCommit(context, from))
  const then = from === head ? entries : isThere ? await readHeadEntries(context, from) : null
  const made = new Set<string>()
  const changed = new Map<string, number>()
  for (const { path, entry, time } of from === head ? [] : await readBetween(context, from, head)) {
    made.add(entryKey(path, entry))
    changed.set(path, Math.max(time, changed.get(path) ?? 0))
  }
  const had = (path: string, entry: Entry) => then !== null && sameEntry(then.get(path) ?? null, entry)
  return {
    isHere,
    isKept: isHere || (await isOnBranch(context, from)),
    had,
    made: (path, entry) => made.has(entryKey(path, entry)),
    isGoneOver: (path, time) =>
      then !== null && !had(path, entries.get(path) ?? null) && (changed.get(path) ?? 0) > time - SECOND,
  }
}

/** What a turn did at a path, where git is asked about it. */
export interface About {
  /** Of HEAD where a checkpoint shows it, and when the turn began. */
  since: Since
  begun: Since
  /** Of what HEAD was later in the turn. */
  later: readonly Later[]
  /** Of what `ckpt commit` made of the turn on another branch. */
  apart: readonly Later[]
  /** Of HEAD at the checkpoint before the one that shows it, and of the commits between the two; null: there are none. */
  amid: { since: Since; made: Later['made'] } | null
}

export interface Later {
  /** Whether it is on a branch that is not part of HEAD. */
  isElsewhere: boolean
  /** Whether a commit between the two made it so. */
  made: (path: string, entry: Entry) => boolean
}

/** Whether what HEAD was is on a branch that is not part of HEAD. */
export const isElsewhere = ({ isKept, isHere }: Since): boolean => isKept && !isHere

/**
 * Where a content is committed that a turn left. `elsewhere`: on a branch that is not part of HEAD. What was committed before
 * it, and is in HEAD no more, is not; nor what the turn only went back to, where HEAD has what it went back from (`applies`).
 */
export function committedAt(
  { since, begun, later, apart }: About,
  { path, to, applies }: { path: string; to: Entry; applies: boolean },
): 'here' | 'elsewhere' | null {
  if (since.made(path, to)) return 'here'
  if (since.isHere && since.had(path, to)) return applies && begun.had(path, to) ? null : 'here'
  if (isElsewhere(since) && since.had(path, to)) return 'elsewhere'
  return [...later, ...apart].some((one) => one.isElsewhere && one.made(path, to)) ? 'elsewhere' : null
}

/**
 * Whether what is committed (`ours`) was made by a commit between two checkpoints of the turn, where the first one found what
 * HEAD had (`from`): the turn went on from that commit, and what it left is on top of it.
 */
export const wentOnFrom = (
  { amid }: About,
  { path, from, ours }: { path: string; from: Entry; ours: Entry },
): boolean => amid?.since.had(path, from) === true && amid.made(path, ours)

/** What commits between two made of a path. */
export async function readMade(context: Context, from: Oid | null, to: Oid): Promise<Later['made']> {
  const made = new Set((await readBetween(context, from, to)).map(({ path, entry }) => entryKey(path, entry)))
  return (path, entry) => made.has(entryKey(path, entry))
}

/** Commits that `ckpt commit` made and that are not in HEAD, by the last checkpoints of the turns in them: no checkpoint need have had them in HEAD. */
export async function commitsApart(context: Context, head: Oid | null): Promise<ReadonlyMap<Oid, readonly Oid[]>> {
  const { env, worktree } = context
  const made = commitsOfTurns(context)
  const apart = new Map<Oid, Oid[]>()
  if (made.size === 0) return apart
  const input = [...(head === null ? [] : [`^${head}`]), ...made.keys(), ''].join('\n')
  const args = ['rev-list', '--ignore-missing', '--stdin']
  const { code, stdout } = await tryGit(env, { args, cwd: worktree.root, input })
  const beyond = new Set(code === 0 ? stdout.toString('latin1').split('\n') : [])
  for (const [commit, { turns }] of made)
    if (beyond.has(commit)) for (const one of turns) apart.set(one, [...(apart.get(one) ?? []), commit as Oid])
  return apart
}

/** What such a commit took in. One that is on a remote alone was taken back here. */
export async function readApart(context: Context, commit: Oid): Promise<Later> {
  const paths = new Set((await readChanges(context, ['-1', commit])).map(({ path }) => path))
  return { isElsewhere: await isOnBranch(context, commit, ['refs/heads']), made: (path) => paths.has(path) }
}

const readBetween = async (context: Context, from: Oid | null, to: Oid | null): Promise<CommittedChange[]> =>
  to === null ? [] : readChanges(context, [from === null ? to : `${from}..${to}`])

/** One that no branch holds goes in time. A git that was not let do its work says nothing of that. */
async function isCommit({ env, worktree }: Context, id: Oid): Promise<boolean> {
  const args = ['cat-file', '-e', `${id}^{commit}`]
  const result = await tryGit(env, { args, cwd: worktree.root })
  const denied = result.code === 0 ? null : machineFailure(args, result)
  if (denied) throw denied
  return result.code === 0
}

const entryKey = (path: string, entry: Entry) => `${entry ? `${entry.mode} ${entry.oid}` : ''}\0${path}`

/** Whether a commit is part of any branch, here or of a remote, or of a tag. */
async function isOnBranch(
  { env, worktree }: Context,
  commit: Oid | null,
  among = ['refs/heads', 'refs/remotes', 'refs/tags'],
): Promise<boolean> {
  if (commit === null) return false
  const args = ['for-each-ref', '--count=1', `--contains=${commit}`, ...among]
  const { code, stdout } = await tryGit(env, { args, cwd: worktree.root })
  return code === 0 && stdout.length > 0
}
