/** Finishing what a killed command left: forward, from its journal, and only where the disk holds one of its two states. */

import { CkptError } from '../../core/errors.ts'
import { quotedName } from '../../core/hint-words.ts'
import { printable, shown } from '../../core/paths.ts'
import { type Env, errno } from '../../env.ts'
import type { RefEdit } from '../../git/refs.ts'
import type { Store } from '../../git/store.ts'
import { worktreeOf } from '../../git/tips.ts'
import { removeIfThere } from '../../git/whole-file.ts'
import { applyEntries, orderEntries, Stopped } from '../../snapshot/apply.ts'
import type { ApplyInput, ApplyResult } from '../../snapshot/apply-entry.ts'
import { sweepTemporary } from '../../snapshot/sweep.ts'
import { readForgetting } from '../store/forgetting.ts'
import { writeMarker } from '../worktree/boundary-marker.ts'
import type { Context } from '../worktree/context.ts'
import { type Journal, readJournal, removeJournal } from '../worktree/journal.ts'
import { giveUp, isRecorded, tidy, toWrite, wentElsewhere } from './give-up.ts'
import { safetyOf } from './rescue.ts'
import { unwrittenHints } from './unwritten.ts'

/** Returns what to tell the person. The caller holds the worktree's lock. @throws CkptError DAMAGED */
export async function recover(context: Context): Promise<string[]> {
  const { env, store, worktree } = context
  const journal = leftBehind(context)
  if (journal === null) return []
  const warnings: string[] = []
  const elsewhere = journal.entries.length > 0 ? await wentElsewhere(context, journal) : null
  const isWritten = elsewhere !== null && (await isRecorded(context, journal))
  if (elsewhere !== null && !isWritten && toWrite(context, journal).length > 0)
    return giveUp(context, journal, elsewhere)
  await requireContents(store, journal)
  if (isWritten) {
    // What is there now came later.
    warnings.push(`A killed ${journal.op} was finished.`, ...(await tidy(context, journal)))
  } else if (journal.entries.length > 0) {
    const { root } = worktree
    const { entries, removable, directoryMode, nonce } = journal
    const sweep = () => sweepTemporary(env, { root, store, nonce }, orderEntries(entries))
    // Before: half-written files of the killed one bear the very names that this run gives.
    const kept = await sweep()
    const result = await goOn(env, journal, { root, store, nonce, entries, removable, directoryMode })
    if (result.left.length > 0) {
      kept.push(...(await sweep()))
      const paths = result.left.map((path) => shown(path)).join(', ')
      warnings.push(
        `A killed ${journal.op} was finished, but for what changed since or is out of reach (left as it is): ${paths}.`,
      )
    } else warnings.push(`A killed ${journal.op} was finished.`)
    warnings.push(...new Set(kept))
  }
  return [...warnings, ...(await finishRefs(context, journal))]
}

/**
 * The rest of an operation in a worktree that was removed: its files are nowhere. Returns what to tell the person. The
 * caller holds that worktree's lock. @throws CkptError DAMAGED
 */
export async function recoverRemoved(context: Context): Promise<string[]> {
  const journal = leftBehind(context)
  if (journal === null) return []
  await requireContents(context.store, journal)
  const name = printable(context.place.worktreeId)
  return [
    `The ${journal.op} that was cut short in worktree ${name}, which was removed since, is recorded as done.`,
    ...(await finishRefs(context, journal)),
  ]
}

/** The journal of a killed command, with nothing of its git in the way. @throws CkptError DAMAGED */
function leftBehind(context: Context): Journal | null {
  const journal = readJournal(context.env, context.store)
  if (journal) clearRefLocks(context)
  return journal
}

async function finishRefs({ env, store }: Context, journal: Journal): Promise<string[]> {
  const warnings: string[] = []
  const { edits, overtaken } = await remaining(store, journal.refs)
  if (overtaken.size > 0)
    warnings.push(
      `Worktrees that went on since a ${journal.op} was killed are as they were: ${[...overtaken].map(printable).join(', ')}. Run it again.`,
    )
  await store.moveRefs(edits, { durable: true })
  for (const path of journal.op === 'forget' ? (readForgetting(env, store)?.keys() ?? []) : [])
    warnings.push(`Forgetting was cut short: run it once more. ckpt forget ${quotedName(path)}`)
  writeMarker(env, store, journal.marker)
  removeJournal(env, store)
  return warnings
}

/** @throws CkptError INTERNAL when the disk does not allow it now; the journal stays */
async function goOn(env: Env, { op }: Journal, input: ApplyInput): Promise<ApplyResult> {
  try {
    return await applyEntries(env, input)
  } catch (error) {
    if (!(error instanceof Stopped)) throw error
    const code = errno(error.reason)
    if (code === undefined) throw error.reason
    const at = error.path === null ? '' : ` at ${shown(error.path)}`
    throw new CkptError(
      'INTERNAL',
      `The ${op} that was cut short cannot be finished now: writing failed${at} (${code}). Nothing is lost: it is finished by the next command that can write.`,
      { cause: error, hints: unwrittenHints(code, { afterwards: ': ckpt status', otherwise: 'ckpt status' }) },
    )
  }
}

/** Half of an operation helps nobody: all that it writes is there, or nothing is begun. @throws CkptError DAMAGED */
export async function requireContents(store: Store, { op, session, entries, refs }: Journal): Promise<void> {
  const needed = [
    ...entries.flatMap(({ post }) => (post.kind === 'present' ? [post.oid] : [])),
    ...refs.flatMap(({ to }) => (to === null ? [] : [to])),
  ]
  for (const oid of needed) {
    if (await store.objects.read(oid)) continue
    const safety = await safetyOf(store, refs)
    throw new CkptError(
      'DAMAGED',
      `The ${op} of session ${printable(session)} that was cut short cannot be finished: the store lacks ${oid}. Nothing was changed.`,
      {
        hints: [
          'ckpt doctor --fix   (sets its journal aside)',
          ...(safety
            ? [`ckpt restore ${safety.slice(0, 10)} --exact --force   (then: the files as they were before it)`]
            : []),
        ],
      },
    )
  }
}

/**
 * The edits that were not made yet: a transaction that was killed half-way has made some. Another worktree may have gone
 * on meanwhile: then none of its refs is moved, for what is new there rests on what they hold.
 */
async function remaining(
  store: Store,
  edits: readonly RefEdit[],
): Promise<{ edits: RefEdit[]; overtaken: Set<string> }> {
  const now = new Map((await store.refs('refs/')).map(({ ref, oid }) => [ref, oid]))
  const open = edits.filter(({ ref, to }) => (now.get(ref) ?? null) !== to)
  const others = open.filter(({ ref }) => worktreeOf(ref) !== store.place.worktreeId)
  const wentOn = others.filter(({ ref, from }) => from !== undefined && (now.get(ref) ?? null) !== from)
  const overtaken = new Set(wentOn.map(({ ref }) => worktreeOf(ref) ?? ''))
  return {
    edits: open
      .filter(({ ref }) => !overtaken.has(worktreeOf(ref) ?? ''))
      .map(({ ref, to }) => ({ ref, to, from: now.get(ref) ?? null })),
    overtaken,
  }
}

/** A killed `update-ref` leaves its lock files for ever; under the worktree's lock nobody else writes these refs. */
export function clearRefLocks({ env, store }: Context): void {
  const sweep = (directory: string) => {
    let entries: ReturnType<typeof read>
    const read = () => env.files.readdirSync(directory, { withFileTypes: true })
    try {
      entries = read()
    } catch (error) {
      if (errno(error) === 'ENOENT') return
      throw error
    }
    for (const entry of entries) {
      if (entry.isDirectory()) sweep(`${directory}/${entry.name}`)
      else if (entry.name.endsWith('.lock')) removeIfThere(env, `${directory}/${entry.name}`)
    }
  }
  sweep(`${store.gitDir}/refs/ckpt/${store.place.worktreeId}`)
}
