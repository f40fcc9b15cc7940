/** An operation that stopped in the middle of writing. */

import type { Checkpoint } from '../../core/checkpoint.ts'
import { CkptError, reasonOf } from '../../core/errors.ts'
import { shown } from '../../core/paths.ts'
import { errno } from '../../env.ts'
import { orderEntries, Stopped, takeBack } from '../../snapshot/apply.ts'
import type { ApplyInput } from '../../snapshot/apply-entry.ts'
import { ApplyConflict } from '../../snapshot/fresh.ts'
import { sweepTemporary } from '../../snapshot/sweep.ts'
import { writeMarker } from '../worktree/boundary-marker.ts'
import type { Context } from '../worktree/context.ts'
import { removeJournal } from '../worktree/journal.ts'
import { keepSafety } from './rescue.ts'
import { unwrittenHints } from './unwritten.ts'

export interface HalfDone {
  op: string
  /** What the git hooks read before. */
  oldMarker: string | null
  input: ApplyInput
  safety: Checkpoint
}

/**
 * What stopped in the middle goes back, and the journal with it. Where that fails too the journal stays: the next command
 * that can goes on with it. Returns what to say.
 */
export async function backOut(
  context: Context,
  { op, oldMarker, input, safety }: HalfDone,
  { reason, path, result }: Stopped,
): Promise<unknown> {
  const { env, store } = context
  const code = errno(reason)
  const at = path === null ? '' : ` at ${shown(path)}`
  const before = `checkpoint ${safety.id.slice(0, 10)}`
  let kept: string[]
  try {
    // What is half-written may be what the disk lacks the room for.
    kept = await sweepTemporary(env, input, orderEntries(input.entries))
    // Where it stopped either state may be there, or nothing; unless it stopped before it began there.
    const isUntouched = reason instanceof ApplyConflict && !reason.isBegun
    const amid = isUntouched ? [] : input.entries.filter((entry) => entry.path === path && !result.done.includes(entry))
    const left = await takeBack(env, input, { ...result, done: [...result.done, ...amid] })
    if (left.length > 0) {
      await keepSafety(context, safety) // what they held before is nowhere else
      kept.push(...(await sweepTemporary(env, input, orderEntries(input.entries))))
      const names = left.map((one) => shown(one)).join(', ')
      kept.push(`Changed meanwhile, and left as they are now: ${names} (before: ${before}).`)
    }
    writeMarker(env, store, oldMarker)
  } catch (error) {
    const cause = error instanceof Stopped ? error.reason : error
    const why = errno(cause) ?? (cause instanceof CkptError ? reasonOf(cause) : undefined)
    if (why === undefined) throw cause
    return new CkptError(
      'INTERNAL',
      `Writing failed${at} (${code ?? why}), and what had been written cannot be taken back now (${why}). Nothing is lost: the next command finishes this ${op}, and ${before} holds the files as they were.`,
      { cause: reason, hints: unwrittenHints(why, { afterwards: ': ckpt status', otherwise: 'ckpt status' }) },
    )
  }
  removeJournal(env, store)
  const back = ['What had been written was taken back.', ...new Set(kept)].join(' ')
  if (reason instanceof ApplyConflict)
    return new CkptError('CONFLICT', `${op} refused: ${shown(reason.path)} ${reason.reason}. ${back}`, {
      paths: [reason.path],
      hints: ['run the command again once nothing writes there'],
    })
  if (code === undefined) return reason
  return new CkptError('INTERNAL', `Writing failed${at} (${code}). ${back}`, {
    cause: reason,
    hints: unwrittenHints(code, {
      afterwards: ' run the command again',
      otherwise: 'look at it, then run the command again',
    }),
  })
}
