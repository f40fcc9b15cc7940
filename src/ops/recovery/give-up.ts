/**
 * A killed operation that is not gone on with: git went elsewhere since, by somebody's doing. What was asked for is of another
 * branch then, or would be mixed into a merge, as it would where it were begun now.
 */
import type { Checkpoint } from '../../core/checkpoint.ts'
import { withArticle } from '../../core/hint-words.ts'
import { printable } from '../../core/paths.ts'
import { sameState } from '../../core/state.ts'
import { metaRef, readCheckpoint } from '../../git/history.ts'
import { applyEntries, orderEntries, Stopped } from '../../snapshot/apply.ts'
import type { ApplyEntry } from '../../snapshot/apply-entry.ts'
import { type ObjectWriter, observe } from '../../snapshot/disk.ts'
import { sweepTemporary } from '../../snapshot/sweep.ts'
import { type Context, headOf } from '../worktree/context.ts'
import { type Journal, removeJournal } from '../worktree/journal.ts'
import { keepSafety, markPending, rescueSafety, safetyOf } from './rescue.ts'

/** What git did since; null: it is where it was. */
export async function wentElsewhere(context: Context, { head: then }: Journal): Promise<string | null> {
  if (then === undefined || !context.repository) return null // of a version that did not write it down
  const now = await headOf(context)
  if (now.busy !== null) return `git is in the middle of ${withArticle(now.busy)} since`
  if (now.branch !== then.branch)
    return `${now.branch === null ? 'no branch' : `branch ${printable(now.branch)}`} is checked out since`
  return now.branch === null && now.head !== then.head ? 'another commit is checked out since' : null
}

/** Refs are moved when all files are written; what is kept beside is kept by a giving up that was killed, too. */
export async function isRecorded({ store }: Context, { refs }: Journal): Promise<boolean> {
  const now = new Map((await store.refs('refs/')).map(({ ref, oid }) => [ref, oid]))
  const own = refs.filter(({ ref }) => ref !== metaRef(store))
  return own.some(({ ref, from, to }) => from !== undefined && to !== from && (now.get(ref) ?? null) === to)
}

/** What is not as the operation leaves it. */
export function toWrite({ env, store, worktree: { root } }: Context, { entries }: Journal): ApplyEntry[] {
  const unwritten: ObjectWriter = { write: (type, bytes) => store.objects.oidOf(type, bytes) }
  return entries.filter((entry) => {
    const { path, post } = entry
    return !isOpened(entry) && !sameState(observe(env, { root, path }, unwritten), post)
  })
}

/** A directory that is opened to be written into, and closed again. */
const isOpened = ({ pre, post }: ApplyEntry): boolean => pre.kind === 'directory' && sameState(pre, post)

/** Without a file written: what lies beside goes, or back, and what was opened is closed. Returns what to tell the person. */
export async function tidy({ env, store, worktree }: Context, journal: Journal): Promise<string[]> {
  const { nonce, entries, directoryMode } = journal
  const place = { root: worktree.root, store, nonce }
  const kept = await sweepTemporary(env, place, orderEntries(entries))
  const opened = entries.filter(isOpened)
  await applyEntries(env, { ...place, entries: opened, removable: [], directoryMode }).catch((error: unknown) => {
    if (!(error instanceof Stopped)) throw error // who may not close them may not be held up by it
  })
  return [...new Set(kept)]
}

/** The files stay as they are, and the operation was none. Returns what to tell the person. The caller holds the lock. */
export async function giveUp(context: Context, journal: Journal, why: string): Promise<string[]> {
  const { env, store } = context
  const { op, session, entries } = journal
  const kept = await tidy(context, journal)
  const open = toWrite(context, journal).length
  const all = entries.filter((entry) => !isOpened(entry)).length
  const safety = await keepBefore(context, journal)
  await markPending(context)
  removeJournal(env, store)
  const before = safety ? `; as they were before it: ckpt restore ${safety.id.slice(0, 10)} --exact` : ''
  return [
    `A killed ${op} of session ${printable(session)} was given up, for ${why}: of its ${all} paths ${all - open} are as it leaves them, and the others as they are${before}.`,
    ...kept,
  ]
}

/** Gives the state before the operation a ref. Null: there is none. */
async function keepBefore(context: Context, { refs }: Journal): Promise<Checkpoint | null> {
  const { store } = context
  const id = await safetyOf(store, refs)
  if (id === null || !(await store.objects.read(id))) return rescueSafety(context) // what led to it is lost
  const safety = await readCheckpoint(store, id)
  await keepSafety(context, safety)
  return safety
}
