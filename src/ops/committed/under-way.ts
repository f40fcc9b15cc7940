/**
 * A `ckpt commit` that is under way: a kill may come when git has made the commit, and until the user's index follows it
 * their next commit takes it back. So what is to follow is written down first.
 */

import { CkptError, reasonOf } from '../../core/errors.ts'
import { quotedPathspec } from '../../core/hint-words.ts'
import type { Oid } from '../../core/ids.ts'
import { shortList } from '../../core/paths.ts'
import { type Env, errno } from '../../env.ts'
import { runGit, tryGit } from '../../git/process.ts'
import { removeIfThere, writeFileWhole } from '../../git/whole-file.ts'
import { isNoted, noteFile } from '../worktree/commit-note.ts'
import { type Context, headOf } from '../worktree/context.ts'
import { removeLeftovers } from '../worktree/leftovers.ts'
import { isRunning, startOf } from '../worktree/processes.ts'
import { CommitBlobs } from './blobs.ts'
import { rememberCommit } from './commits-file.ts'
import { type Compared, changedPaths, compare, toldOf } from './compared.ts'
import { readHeadEntries, readIndexEntries, sameEntry } from './entries.ts'
import { type AtWork, type Following, type Note, readNote, rewriteNote } from './note-file.ts'
import { recordOrigin } from './origins.ts'
import { rememberRefused } from './refused-file.ts'
import { forgetStopped } from './stopped-file.ts'
import { type Marked, refreshIndex, untilIndexIsFree } from './users-index.ts'

/** Those that something in the commit is of. */
export const turnsIn = ({ turns }: Pick<Following, 'turns'>) => turns.filter(({ isIn }) => isIn !== false)

/** Milliseconds for which one of another container, whose processes are not seen from here, may still make the commit. */
const STILL = 600_000

const NOBODY = 0

export function noteCommit(context: Context, following: Following): void {
  const { env } = context
  const { entries, before, passed, session, head, turns, open, taken, message, tree } = following
  const paths = [...entries].map(([path, entry]): Note['paths'][number] => {
    return [path, before.get(path) ?? null, entry, passed.get(path) ?? []]
  })
  const who = { pid: env.pid, started: startOf(env, env.pid), time: env.now() }
  writeFileWhole(env, noteFile(context), {
    content: JSON.stringify({
      ...who,
      ...(tree === undefined ? {} : { tree }), // hooks/gate-refuse.sh reads it, and others
      ...{ session, head, turns, open, taken, paths },
      ...(message === undefined ? {} : { message }),
    } satisfies Note),
  })
}

/** That this git is about to make the commit. */
export function noteGit(context: Context, pid: number): void {
  rewriteNote(context, { git: { pid, started: startOf(context.env, pid) } })
}

export const dropNote = (context: Context): void => removeIfThere(context.env, noteFile(context))

/** For the next command, though this process may live on. */
export function leaveNote(context: Context): void {
  try {
    rewriteNote(context, { pid: NOBODY })
  } catch (error) {
    if (errno(error) === undefined) throw error // then it is left once this process has ended
  }
}

interface OnTop {
  made: Oid
  parent: Oid | null
}

/** What HEAD has beyond `head`, the oldest first. @throws CkptError where git fails */
async function commitsBeyond(context: Context, head: Oid | null): Promise<OnTop[]> {
  const now = (await headOf(context)).head
  if (now === null || now === head) return []
  const args = ['rev-list', '--first-parent', '--reverse', '--parents', head === null ? now : `${head}..${now}`]
  const rows = (await runGit(context.env, { args, cwd: context.worktree.root })).toString('latin1').trim().split('\n')
  return rows.filter(Boolean).map((row) => {
    const [made, parent = null] = row.split(' ')
    return { made: made as Oid, parent: parent as Oid | null }
  })
}

/** Of what HEAD has beyond `head` the commit that was made on it: others may have come after it. @throws CkptError where git fails */
async function firstOn(context: Context, head: Oid | null): Promise<Oid | null> {
  const [first] = await commitsBeyond(context, head)
  return first?.parent === head ? first.made : null
}

/**
 * The commit that git has just made on `head`, as HEAD has it: a hook after it may have moved it onto others (a rebase), which
 * may be called the same, and have made more. @throws CkptError where git fails
 */
export async function justMade(
  context: Context,
  { head, entries }: Pick<Following, 'head' | 'entries'>,
  message: string,
): Promise<OnTop | null> {
  const beyond = await commitsBeyond(context, head)
  const first = beyond[0]?.parent === head ? beyond[0] : null
  if (beyond.length === 1) return first
  const holds = async ({ made, parent }: OnTop) => {
    const changed = new Set(await changedPaths(context, parent, made))
    return [...entries.keys()].every((path) => changed.has(path))
  }
  const named: OnTop[] = []
  for (const one of beyond.slice(-NEAR)) if (await isNamed(context, one.made, { message })) named.push(one)
  for (const one of [...named, ...(first ? [first] : [])]) if (await holds(one)) return one
  return named.at(-1) ?? first
}

/** Commits that hooks may make on top of one, and local ones below it that a rebase moves along: more are not looked at. */
const NEAR = 50

/**
 * `compared`: the commit with what was planned; null: it is not known as ours. `isSure`: false: a person may have made it, so that nobody is told whose it is.
 * The caller holds the worktree's lock. @throws CkptError GIT_BUSY, INTERNAL
 */
export async function follow(
  context: Context,
  following: Following & { blobs: CommitBlobs },
  {
    made,
    patience,
    compared,
    isSure = true,
    within = null,
  }: { made: Oid; patience?: number; compared: Compared | null; isSure?: boolean; within?: ReadonlySet<string> | null },
): Promise<void> {
  const { session, turns, open, taken } = following
  if (compared) {
    const { leftOut, beyond } = compared
    rememberCommit(context, session, { commit: made, turns, taken, leftOut: [...leftOut, ...open] })
    rememberRefused(context, session, new Map())
    forgetStopped(context, session)
    if (isSure)
      recordOrigin(context, made, { checkpoints: turnsIn(following).map(({ checkpoint }) => checkpoint), beyond })
    context.warnings.push(...toldOf(compared, made))
  }
  await untilIndexIsFree(context, context.repository!, patience)
  const keepMarks = (marked: readonly Marked[]) => rewriteNote(context, { marked })
  const head = (await headOf(context)).head ?? made // a hook may have committed more
  await refreshIndex(context, { ...following, within, marked: readNote(context)?.marked ?? [], keepMarks }, head)
  dropNote(context)
  removeLeftovers(context)
}

/** What to say where a commit stands and {@link follow} failed. */
export function notFollowed(made: Oid, error: unknown): string {
  if (!(error instanceof CkptError) && errno(error) === undefined) throw error
  return `The commit ${made.slice(0, 10)} was made, but your index still holds the state before it: ${reasonOf(error)} The next command of ckpt mends it: ckpt status`
}

/** Whether there is one that its own process will not finish. */
export const isCutShort = (context: Context): boolean => isNoted(context) && !isAlive(context, readNote(context))

/** Whether there is one whose process is at work: what it has in `tmp/` is its own, though it does not hold the lock. */
export const isUnderWay = (context: Context): boolean => isNoted(context) && isAlive(context, readNote(context))

const isAlive = ({ env }: Context, note: Note | null): boolean =>
  note !== null && (isThere(env, note) || (note.git !== undefined && isThere(env, note.git)))

const isThere = (env: Env, { pid, started }: AtWork): boolean => pid !== NOBODY && isRunning(env, pid, started)

/** The process id of the git that a killed one started, and that is at work still; null: there is none. */
export function gitLeft(context: Context): number | null {
  const note = readNote(context)
  return note?.git && !isThere(context.env, note) && isThere(context.env, note.git) ? note.git.pid : null
}

/** One that was made and cut short before the user's index followed it; null: there is none. */
export async function notFollowedYet(context: Context): Promise<Oid | null> {
  if (!isCutShort(context)) return null
  return (await madeAfter(context, readNote(context)))?.made ?? null
}

/** The commit that may be the one that is noted, and whether it surely is: a git that failed may have made it, or somebody another one meanwhile. */
export async function noted(context: Context): Promise<{ made: Oid; isSure: boolean } | null> {
  const found = await madeAfter(context, readNote(context))
  return found?.isOurs ? found : null
}

/**
 * The commit that was made on what that one was to be made on, if it changes any of the same paths: HEAD, or one behind it, if
 * it is ours. `isSure`: it holds all that was planned. `isOurs`: or it has the same message: a hook may have changed its
 * files, or a person, who made it.
 */
async function madeAfter(
  context: Context,
  note: Note | null,
): Promise<{ made: Oid; isOurs: boolean; isSure: boolean } | null> {
  const made = note && context.repository ? await madeOn(context, note.head) : null
  if (!note || made === null) return null
  const found = await ofNote(context, note, made)
  return found && (found.isOurs || (await headOf(context)).head === made) ? found : null
}

/** What was made on a commit, which may be there no more. */
async function madeOn(context: Context, head: Oid | null): Promise<Oid | null> {
  if (head !== null) {
    const args = ['cat-file', '-e', head]
    if ((await tryGit(context.env, { args, cwd: context.worktree.root })).code !== 0) return null
  }
  return firstOn(context, head)
}

async function ofNote(context: Context, note: Note, made: Oid): ReturnType<typeof madeAfter> {
  const changed = await changedPaths(context, note.head, made)
  if (changed === null) return { made, isOurs: true, isSure: false }
  const there = new Set(changed)
  const isIn = ([path]: Note['paths'][number]) => there.has(path)
  if (!note.paths.some(isIn)) return null
  const isSure = await holdsAll(context, made, note)
  if (note.taken === undefined) return { made, isOurs: note.paths.every(isIn), isSure } // of a version that noted no message
  return { made, isOurs: isSure || (await isNamed(context, made, note)), isSure }
}

/** Whether git, with hooks that change nothing, would have made that commit. */
async function holdsAll(context: Context, made: Oid, { paths, message }: Note): Promise<boolean> {
  if (message === undefined) return false // it had not come to that
  const there = await readHeadEntries(context, made)
  return paths.every(([path, , entry]) => sameEntry(there.get(path) ?? null, entry))
}

/** Whether a commit has the first line of that message; a hook may have added others. */
async function isNamed(
  { env, worktree }: Context,
  made: Oid,
  { message = '' }: Pick<Note, 'message'>,
): Promise<boolean> {
  const [name] = message.trim().split('\n')
  const args = ['show', '-s', '--no-show-signature', '--format=%B', '--encoding=UTF-8', made]
  const { code, stdout } = await tryGit(env, { args, cwd: worktree.root })
  return code === 0 && name !== '' && stdout.toString('utf8').split('\n').includes(name!)
}

/**
 * Finishes one that was killed. Returns what to tell the person. The caller holds the worktree's lock. `isBeside`: for a
 * command that has something else to do, and neither waits for that nor fails by it. @throws CkptError GIT_BUSY, INTERNAL
 */
export async function finishCommit(context: Context, { isBeside = false } = {}): Promise<string[]> {
  const { env } = context
  const note = readNote(context)
  if (isAlive(context, note)) return []
  const found = await madeAfter(context, note)
  if (!note || found === null) {
    const isOver = !note || env.now() - note.time > STILL || (await headOf(context)).head !== note.head
    if (isOver) dropNote(context)
    return []
  }
  const { made, isOurs, isSure } = found
  if (!isOurs && (await isOfTheirIndex(context, note.head, made))) {
    dropNote(context)
    removeLeftovers(context)
    return []
  }
  const entries = new Map(note.paths.map(([path, , entry]) => [path, entry]))
  // An older ckpt noted only what each of them left.
  const passed = new Map(
    note.paths.map(([path, , , passed]) => [path, (passed ?? []).filter((one) => Array.isArray(one))]),
  )
  const before = new Map(note.paths.map(([path, entry]) => [path, entry]))
  let out: string[] = []
  try {
    const blobs = await CommitBlobs.open(context, { paths: [...entries.keys()], head: before })
    const patience = isBeside ? { patience: 0 } : {}
    const compared = isOurs ? await compare(context, { head: note.head, entries }, made) : null
    // What came on top was made with the person's index, or by a hook with its own: only this commit's paths are ours to say.
    const isBehind = (await headOf(context)).head !== made
    const within = isBehind && compared ? new Set(compared.changed) : null
    if (within) out = await takenOut(context, { head: note.head, made, paths: within })
    const { taken = { turns: {} }, open = [] } = note
    await follow(
      context,
      { ...note, entries, before, passed, open, taken, blobs },
      { made, compared, isSure, within, ...patience },
    )
  } catch (error) {
    if (!isBeside) throw error
    return [notFollowed(made, error)]
  }
  return isOurs ? [`A commit that was cut short is finished: your index follows ${made.slice(0, 10)}.`, ...out] : []
}

/** To tell where a later commit has it as it was before: one of the index as that was until now takes it out. */
async function takenOut(
  context: Context,
  { head, made, paths }: { head: Oid | null; made: Oid; paths: ReadonlySet<string> },
): Promise<string[]> {
  const all = [head, made, (await headOf(context)).head]
  const [was, then, now] = await Promise.all(all.map((commit) => readHeadEntries(context, commit)))
  const at = (entries: typeof was, path: string) => entries?.get(path) ?? null
  const out = [...paths].filter(
    (path) => sameEntry(at(was, path), at(now, path)) && !sameEntry(at(was, path), at(then, path)),
  )
  if (out.length === 0) return []
  const id = made.slice(0, 10)
  const words = out.map(quotedPathspec).join(' ')
  return [
    `A later commit took out what ${id} holds of ${shortList(out)}; your files are as they were: git restore --staged --source=${id} -- ${words}   (stages it again, for a commit)`,
  ]
}

/** Whether a commit was made from the person's own index: that has something of it. */
async function isOfTheirIndex(context: Context, head: Oid | null, made: Oid): Promise<boolean> {
  const changed = (await changedPaths(context, head, made)) ?? []
  const [staged, after] = await Promise.all([readIndexEntries(context), readHeadEntries(context, made)])
  return changed.some((path) => sameEntry(staged.get(path) ?? null, after.get(path) ?? null))
}
