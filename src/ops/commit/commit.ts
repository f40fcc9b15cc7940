/** Commit: one clean commit, in the user's repository, of what a session's visible turns changed and nothing else. */
import { setTimeout as pause } from 'node:timers/promises'
import { refuseCancelled } from '../../core/cancel.ts'
import { CkptError, reasonOf } from '../../core/errors.ts'
import type { Oid, SessionId, TurnNumber } from '../../core/ids.ts'
import { printable } from '../../core/paths.ts'
import { type Turn, visibleTurns } from '../../core/timeline.ts'
import { errno } from '../../env.ts'
import { PLAIN_PATCH } from '../../git/diff.ts'
import type { Repository } from '../../git/repository.ts'
import { runUsersGit, tryUsersGit } from '../../git/users-git.ts'
import { removeDrafts } from '../../git/whole-file.ts'
import { refuseWhilePending } from '../change/boundary.ts'
import { type Compared, compare } from '../committed/compared.ts'
import { indexInfo, readMarkedPaths } from '../committed/entries.ts'
import {
  dropNote,
  follow,
  gitLeft,
  isUnderWay,
  justMade,
  leaveNote,
  noteCommit,
  noted,
  noteGit,
  notFollowed,
  turnsIn,
} from '../committed/under-way.ts'
import { setMarks, untilIndexIsFree } from '../committed/users-index.ts'
import { refuseAmbiguous } from '../history/resolve.ts'
import { locked } from '../recovery/locked.ts'
import { type Context, headOf } from '../worktree/context.ts'
import { presentIds } from '../worktree/replaced.ts'
import { loadTimeline, readRefs } from '../worktree/sessions.ts'
import { passOn, SIGNALS } from '../worktree/signals.ts'
import { commitMessage } from './message.ts'
import { type Planned, plan } from './plan.ts'
import { stillStagedOf } from './settled.ts'
import { bytesOnDisk, refusedByGit, whatGitSaid } from './stopped.ts'

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
  /** Worktree paths (bytes), as the commit changes them. */
  files: string[]
  warnings: string[]
  /** Why nothing of the session's turns can be committed; null: one is visible, or was committed. */
  none: string | null
}

/** @throws CkptError BOUNDARY_PENDING, TURN_RUNNING, LOCKED, GIT_BUSY, CONFLICT, BAD_ROOT, NOT_FOUND */
export async function commit(context: Context, options: CommitOptions): Promise<CommitResult> {
  const { repository, worktree, warnings } = context
  if (!repository) {
    throw new CkptError('BAD_ROOT', `${worktree.root} is a plain directory. Nothing was committed.`, {
      hints: ['git init'],
    })
  }
  const planned = await planAlone(context, options)
  if (planned.entries.size === 0) {
    warnings.push(...(await stillStagedOf(context, planned)))
    const { session, none } = planned
    return { session, commit: null, message: null, turns: [], files: [], warnings, none }
  }
  const { session } = planned
  const { made, message, compared } = await undisturbed(context, async (cancellable) => {
    const done = await commitNoted(cancellable, repository, { planned, options })
    const compared = await compare(context, { ...planned, head: done.parent }, done.made)
    await settle(context, planned, { made: done.made, compared })
    return { ...done, compared }
  })
  const gone = await undoneMeanwhile(context, planned).catch(passedOver)
  warnings.push(...((await stillStagedOf(context, planned).catch(passedOver)) ?? []))
  const back = planned.head === null ? 'git update-ref -d HEAD' : `git reset --soft ${made.slice(0, 10)}^`
  if (gone && gone.length > 0)
    warnings.push(
      `Turn ${gone.join(', ')} was undone while git was at work, and is in the commit: ${back} takes the commit back.`,
    )
  return {
    session,
    commit: made,
    message: await asCommitted(context, made, message),
    turns: turnsIn(planned).map((turn) => turn.number),
    files: compared.changed.sort(),
    warnings,
    none: null,
  }
}

/** Milliseconds for another `ckpt commit` to be done: the person's hooks take their time. */
const PATIENCE = 30_000

/** A plan that is noted, where it has anything: from then on no other commit begins. @throws CkptError LOCKED */
async function planAlone(context: Context, options: CommitOptions): Promise<Planned> {
  const { env } = context
  await refuseAmbiguous(context, options)
  const end = env.monotonic() + PATIENCE
  for (;;) {
    const planned = await locked(context, { command: 'commit' }, async () => {
      if (isUnderWay(context)) return null
      const planned = await plan(context, options)
      if (planned.entries.size > 0) noteCommit(context, planned)
      return planned
    })
    if (planned) return planned
    if (env.monotonic() >= end) {
      const git = gitLeft(context)
      const who = git === null ? 'Another ckpt commit' : `A git that a killed ckpt commit started, process ${git},`
      throw new CkptError('LOCKED', `${who} is at work in this worktree. Nothing was committed.`, {
        hints: ['ckpt commit   (once that one is done)'],
      })
    }
    await env.progress('waiting for another ckpt commit')
    await pause(100)
  }
}

async function commitNoted(
  context: Context,
  repository: Repository,
  { planned, options }: { planned: Planned; options: CommitOptions },
): Promise<{ made: Oid; parent: Oid | null; message: string }> {
  try {
    await untilIndexIsFree(context, repository)
    return await commitEntries(context, planned, options)
  } catch (error) {
    // Where even that cannot be asked, the next command asks again.
    const isNone = await noted(context).then(
      (found) => found === null,
      (failure: unknown) => {
        passedOver(failure)
        return false
      },
    )
    if (isNone) dropNote(context)
    else leaveNote(context)
    if (error instanceof CkptError && error.warnings.length === 0) error.warnings = [...context.warnings]
    throw error
  }
}

/**
 * Until git begins a signal cancels, and this process ends of it. While git commits it ends git, and its hooks; what
 * follows the commit, if it was made, is done all the same.
 */
async function undisturbed<T>(context: Context, work: (cancellable: Context) => Promise<T>): Promise<T> {
  const { env } = context
  const cancel = new AbortController()
  const heard: NodeJS.Signals[] = []
  const deaf = SIGNALS.map((signal) =>
    env.onSignal(signal, () => {
      heard.push(signal)
      cancel.abort()
    }),
  )
  const hear = () => {
    for (const off of deaf.splice(0)) off()
  }
  try {
    return await work({ ...context, env: { ...env, signal: cancel.signal } })
  } catch (error) {
    hear()
    if (heard[0]) env.kill(env.pid, heard[0]) // nothing was committed; a git that the signal ended may have failed first
    throw error
  } finally {
    hear()
  }
}

/** Turns that are in the commit, or are to be, and not visible as they were planned: undone in part at least, pruned or rewritten. */
async function overtaken(context: Context, planned: Planned): Promise<TurnNumber[]> {
  const { whole } = await turnsNow(context, planned)
  return turnsIn(planned)
    .filter(({ checkpoint }) => !whole.has(checkpoint))
    .map(({ number }) => number)
}

/** Of them those that were undone, in part at least: what was pruned was not, nor what has another id since a `ckpt forget`. */
async function undoneMeanwhile(context: Context, planned: Planned): Promise<TurnNumber[]> {
  const { whole, known } = await turnsNow(context, planned)
  const now = presentIds(context.env, context.store)
  const isUndone = (id: Oid) => known.has(id) && !whole.has(id)
  return turnsIn(planned)
    .filter(({ checkpoint }) => isUndone(now(checkpoint)))
    .map(({ number }) => number)
}

/** Checkpoints of the session's turns: of all, and of those of which nothing is undone. */
async function turnsNow(context: Context, { session }: Planned): Promise<{ known: Set<Oid>; whole: Set<Oid> }> {
  const refs = await readRefs(context)
  if (!refs.sessions.has(session)) return { known: new Set(), whole: new Set() }
  const timeline = await loadTimeline(context, refs, { session, abandoned: true })
  const idsOf = (turns: readonly Turn[]) => new Set(turns.flatMap(({ checkpoints }) => checkpoints.map(({ id }) => id)))
  return {
    known: idsOf([...timeline.turns, ...timeline.abandoned]),
    whole: idsOf(visibleTurns(timeline).filter(({ hiddenFromStep }) => hiddenFromStep === null)),
  }
}

/** Making the message takes its time, and the lock is not held. @throws CkptError CONFLICT, BOUNDARY_PENDING, CANCELLED */
async function refuseOvertaken(context: Context, planned: Planned): Promise<void> {
  const hints = ['ckpt commit']
  if ((await headOf(context)).head !== planned.head)
    throw new CkptError('CONFLICT', 'HEAD moved meanwhile. Nothing was committed.', { hints })
  await refuseWhilePending(context, await readRefs(context))
  const gone = await overtaken(context, planned)
  if (gone.length > 0)
    throw new CkptError(
      'CONFLICT',
      `Turn ${gone.join(', ')} was undone, pruned or rewritten meanwhile. Nothing was committed.`,
      { hints },
    )
  refuseCancelled(context.env.signal)
}

/** The message that the commit has: a hook may have changed it. */
async function asCommitted({ env, worktree }: Context, made: Oid, message: string): Promise<string> {
  const args = ['show', '-s', '--no-show-signature', '--format=%B', '--encoding=UTF-8', made]
  const said = await tryUsersGit(env, { args, cwd: worktree.root }).catch(passedOver)
  const told = said?.stdout.toString('utf8').trim()
  return said?.code !== 0 || told === message.trim() ? message : `${told}\n`
}

/** The commit stands, and this was only to be said of it. */
function passedOver(error: unknown): null {
  if (!(error instanceof CkptError) && errno(error) === undefined) throw error
  return null
}

/** What follows a commit. It stands by now, so that what fails here is a warning. */
async function settle(context: Context, planned: Planned, done: { made: Oid; compared: Compared }): Promise<void> {
  try {
    await locked(context, { command: 'commit' }, () => follow(context, planned, done))
  } catch (error) {
    context.warnings.push(notFollowed(done.made, error))
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
    if (!(error instanceof CkptError) && errno(error) === undefined) throw error
    return [`No commit was made (commit.auto): ${error instanceof CkptError ? error.message : reasonOf(error)}`]
  }
}

/** The message is what the file says: UTF-8, and no line of it a comment. */
const COMMIT = ['-c', 'i18n.commitEncoding=UTF-8', 'commit', '-q', '--cleanup=whitespace', '-F']

/** The user's own `git commit`, with their hooks and signing, on an index of its own that holds HEAD and these paths. */
async function commitEntries(
  context: Context,
  planned: Planned,
  options: CommitOptions,
): Promise<{ made: Oid; parent: Oid | null; message: string }> {
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
    const asPlanned = { GIT_INDEX_FILE: `${index}.planned` } // what hooks add goes into the other
    env.files.copyFileSync(index, asPlanned.GIT_INDEX_FILE)
    const onDisk = await bytesOnDisk(context, planned, asPlanned)
    const patch = () => runUsersGit(env, { args: ['diff', '--cached', ...PLAIN_PATCH], cwd, vars })
    const message = options.message ?? (await commitMessage(context, { session, turns: prompts, patch }))
    env.files.writeFileSync(file, message, { mode: 0o600, flag: 'wx' })
    const written = await tryUsersGit(env, { args: ['write-tree', '--missing-ok'], cwd, vars })
    const tree = written.code === 0 ? (written.stdout.toString('latin1').trim() as Oid) : undefined
    noteCommit(context, { ...planned, message, tree })
    await refuseOvertaken(context, planned)
    const shown = !options.quiet
    const { code, stderr } = await tryUsersGit(env, {
      args: [...COMMIT, file],
      cwd,
      vars,
      shown,
      begun: (git) => {
        if (git.pid !== undefined) noteGit(context, git.pid)
        passOn(env, git)
      },
    })
    // It stands, where a hook after it was cut short.
    const found = code === 0 ? null : await noted(context)
    const onTop = code === 0 ? await justMade(context, planned, message).catch(unseen) : null
    const made = onTop?.made ?? (found?.isSure ? found.made : null)
    if (made === null && code === 0)
      throw new CkptError(
        'INTERNAL',
        'git made the commit, and HEAD has it no more (a hook can do that). Your index and your files were left as they are.',
        { hints: ['git reflog   (what HEAD was)', 'git status'] },
      )
    if (made === null) {
      refuseCancelled(env.signal)
      await refuseWhilePending(context, await readRefs(context)) // as the gate did
      if ((await headOf(context)).head !== head)
        throw new CkptError(
          'CONFLICT',
          `HEAD moved meanwhile, and git refused the commit (exit ${code}). Nothing was committed; your index and your files are as they were.${whatGitSaid(stderr, shown)}`,
          { hints: ['git log -1   (what HEAD is now)', 'ckpt commit'] },
        )
      throw await refusedByGit(context, planned, { code, stderr, isShown: shown, vars: asPlanned, before: onDisk })
    }
    return { made, parent: onTop ? onTop.parent : head, message }
  } finally {
    removeDrafts(env, [index, `${index}.lock`, `${index}.planned`, file])
  }
}

/** git made the commit, and a look at it fails (too many processes, no room): that is for the next command. @throws CkptError INTERNAL */
function unseen(cause: unknown): never {
  throw new CkptError(
    'INTERNAL',
    `git made the commit, and then could not be asked for it: ${reasonOf(cause)} The next command finishes this one: your index follows the commit then.`,
    { cause, hints: ['git log -1   (the commit)', 'ckpt status'] },
  )
}
