/**
 * A killed operation that is not gone on with: git went elsewhere since, by somebody's doing. What was asked for is of another
 * branch then, or would be mixed into a merge, as it would where it were begun now.
 */
import { withArticle } from '../../core/hint-words.ts'
import { barePath, printable } from '../../core/paths.ts'
import { sameState } from '../../core/state.ts'
import { metaRef, readCheckpoint } from '../../git/history.ts'
import { applyEntries, orderEntries, Stopped } from '../../snapshot/apply.ts'
import type { ApplyEntry } from '../../snapshot/apply-entry.ts'
import { type ObjectWriter, observe } from '../../snapshot/disk.ts'
import { sweepTemporary } from '../../snapshot/sweep.ts'
import { type Context, headOf } from '../worktree/context.ts'
import { type Journal, removeJournal } from '../worktree/journal.ts'
import { keepSafety, markPending, safetyOf } from './rescue.ts'

/** What git did since; null: it is where it was, or what was to be written is written, so that only refs are missing. */
export async function wentElsewhere(context: Context, journal: Journal): Promise<string | null> {
  const { head: then } = journal
  if (then === undefined || !context.repository) return null // of a version that did not write it down
  const now = await headOf(context)
  const why =
    now.busy !== null
      ? `git is in the middle of ${withArticle(now.busy)} since`
      : now.branch !== then.branch
        ? `${now.branch === null ? 'no branch' : `branch ${printable(now.branch)}`} is checked out since`
        : now.branch === null && now.head !== then.head
          ? 'another commit is checked out since'
          : null
  if (why === null || (await isRecorded(context, journal)) || toWrite(context, journal).length === 0) return null
  return why
}

/** Refs are moved when all files are written; what is kept beside is kept by a giving up that was killed, too. */
async function isRecorded({ store }: Context, { refs }: Journal): Promise<boolean> {
  const now = new Map((await store.refs('refs/')).map(({ ref, oid }) => [ref, oid]))
  const own = refs.filter(({ ref }) => ref !== metaRef(store))
  return own.some(({ ref, from, to }) => from !== undefined && to !== from && (now.get(ref) ?? null) === to)
}

/** Files that are not as the operation leaves them. */
function toWrite({ env, store, worktree: { root } }: Context, { entries }: Journal): ApplyEntry[] {
  const unwritten: ObjectWriter = { write: (type, bytes) => store.objects.oidOf(type, bytes) }
  return filesOf(entries).filter(({ path, post }) => !sameState(observe(env, { root, path }, unwritten), post))
}

const filesOf = (entries: readonly ApplyEntry[]) => entries.filter(({ path }) => barePath(path) === path)

/** The files stay as they are, and the operation was none. Returns what to tell the person. The caller holds the lock. */
export async function giveUp(context: Context, journal: Journal, why: string): Promise<string[]> {
  const { env, store, worktree } = context
  const { op, session, nonce, entries, directoryMode } = journal
  const place = { root: worktree.root, store, nonce }
  const kept = await sweepTemporary(env, place, orderEntries(entries))
  // Opened to be written into, and closed again.
  const opened = entries.filter(({ path, pre, post }) => barePath(path) !== path && sameState(pre, post))
  await applyEntries(env, { ...place, entries: opened, removable: [], directoryMode }).catch((error: unknown) => {
    if (!(error instanceof Stopped)) throw error // who may not close them may not be held up by it
  })
  const open = toWrite(context, journal).length
  const files = filesOf(entries).length
  const safety = await safetyOf(store, journal.refs)
  if (safety) await keepSafety(context, await readCheckpoint(store, safety))
  await markPending(context)
  removeJournal(env, store)
  const before = safety ? `; as they were before it: ckpt restore ${safety.slice(0, 10)} --exact` : ''
  return [
    `A killed ${op} of session ${printable(session)} was given up, for ${why}: of its ${files} paths ${files - open} are as it leaves them, and the others as they are${before}.`,
    ...new Set(kept),
  ]
}
