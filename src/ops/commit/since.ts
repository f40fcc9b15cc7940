/** What became of a worktree's paths in git, between HEAD when a checkpoint was taken and HEAD now. */
import type { Oid } from '../../core/ids.ts'
import { splitNul } from '../../core/paths.ts'
import { WITH_SUBMODULES } from '../../git/diff.ts'
import { machineFailure } from '../../git/failure.ts'
import { tryGit } from '../../git/process.ts'
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
  for (const { path, entry, time } of from === head ? [] : await readChanges(context, from, head)) {
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
  const made = new Set((await readChanges(context, from, to)).map(({ path, entry }) => entryKey(path, entry)))
  return (path, entry) => made.has(entryKey(path, entry))
}

/**
 * Commits that `ckpt commit` made and that are not in HEAD, but on another branch here, by the last checkpoints of the turns
 * in them: no checkpoint need have had them in HEAD. One that is on a remote alone was taken back here.
 */
export async function commitsApart(
  context: Context,
  head: Oid | null,
): Promise<{ of: ReadonlyMap<Oid, readonly Oid[]>; laterOf: (commit: Oid) => Promise<Later> }> {
  const made = commitsOfTurns(context)
  const input = [...(head === null ? [] : [`^${head}`]), ...made.keys(), ''].join('\n')
  const { env, worktree } = context
  const ask = (args: string[], more = {}) => tryGit(env, { args, cwd: worktree.root, ...more })
  const found = made.size === 0 ? null : await ask(['rev-list', '--ignore-missing', '--stdin'], { input })
  const beyond = new Set(found?.code === 0 ? found.stdout.toString('latin1').split('\n') : [])
  const of = new Map<Oid, Oid[]>()
  for (const [commit, { turns }] of made)
    if (beyond.has(commit)) for (const one of turns) of.set(one, [...(of.get(one) ?? []), commit as Oid])
  return { of, laterOf }

  async function laterOf(commit: Oid): Promise<Later> {
    const onBranch = await ask(['for-each-ref', '--count=1', `--contains=${commit}`, 'refs/heads'])
    const shown = ['--root', '-r', '-z', '--name-only', '--no-commit-id', '--no-renames', WITH_SUBMODULES]
    const changed = new Set<string>(splitNul((await ask(['diff-tree', ...shown, commit])).stdout))
    return { isElsewhere: onBranch.code === 0 && onBranch.stdout.length > 0, made: (path) => changed.has(path) }
  }
}

/** One that no branch holds goes in time. A git that was not let do its work says nothing of that. */
async function isCommit({ env, worktree }: Context, id: Oid): Promise<boolean> {
  const args = ['cat-file', '-e', `${id}^{commit}`]
  const result = await tryGit(env, { args, cwd: worktree.root })
  const denied = result.code === 0 ? null : machineFailure(args, result)
  if (denied) throw denied
  return result.code === 0
}

/** git tells its times by the second; in milliseconds. */
const SECOND = 1000

const entryKey = (path: string, entry: Entry) => `${entry ? `${entry.mode} ${entry.oid}` : ''}\0${path}`

/** A path that a commit changed. */
interface Change {
  path: string
  /** What it made of it. */
  entry: Entry
  /** Of the commit: milliseconds since 1970, UTC. */
  time: number
}

/** Nothing where git cannot say. */
async function readChanges({ env, worktree }: Context, from: Oid | null, head: Oid | null): Promise<Change[]> {
  if (head === null) return []
  const shown = ['--format=%x01%ct', '--root', '--raw', '--no-abbrev', '--no-renames', '-m', '-z']
  const args = ['log', '--no-show-signature', ...shown, from === null ? head : `${from}..${head}`]
  const { code, stdout } = await tryGit(env, { args, cwd: worktree.root })
  const fields = code === 0 ? stdout.toString('latin1').split('\0') : []
  const found: Change[] = []
  let time = 0
  for (let i = 0; i < fields.length; i++) {
    if (fields[i]!.startsWith('\x01')) time = Number(fields[i]!.slice(1)) * SECOND
    const [, mode, oid] = /^\n?:\d+ (\d+) [0-9a-f]+ ([0-9a-f]+) [A-Z]/.exec(fields[i]!) ?? []
    if (mode === undefined) continue
    const entry = mode === '000000' ? null : { mode: mode as '100644', oid: oid as Oid }
    found.push({ path: fields[++i]!, entry, time })
  }
  return found
}

/** Whether a commit is part of any branch, here or of a remote, or of a tag. */
async function isOnBranch({ env, worktree }: Context, commit: Oid | null): Promise<boolean> {
  if (commit === null) return false
  const args = ['for-each-ref', '--count=1', `--contains=${commit}`, 'refs/heads', 'refs/remotes', 'refs/tags']
  const { code, stdout } = await tryGit(env, { args, cwd: worktree.root })
  return code === 0 && stdout.length > 0
}
