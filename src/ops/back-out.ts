/** An operation that stopped in the middle of writing. */
import type { Checkpoint } from '../core/checkpoint.ts'
import { CkptError } from '../core/errors.ts'
import type { SessionId } from '../core/ids.ts'
import { pathToText, printable } from '../core/paths.ts'
import { errno } from '../env.ts'
import { sessionRef } from '../git/history.ts'
import { type ApplyInput, orderEntries, Stopped, takeBack } from '../snapshot/apply.ts'
import { sweepTemporary } from '../snapshot/aside.ts'
import { ApplyConflict } from '../snapshot/fresh.ts'
import type { Context } from './context.ts'
import { removeJournal, writeMarker } from './journal.ts'

export interface HalfDone {
  op: string
  session: SessionId
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
  { op, session, oldMarker, input, safety }: HalfDone,
  { reason, path, result }: Stopped,
): Promise<unknown> {
  const { env, store } = context
  const code = errno(reason)
  const at = path === null ? '' : ` at ${printable(pathToText(path))}`
  let kept: string[]
  let left: string[]
  try {
    // What is half-written may be what the disk lacks the room for.
    kept = await sweepTemporary(env, input, orderEntries(input.entries))
    left = await takeBack(env, input, result)
    writeMarker(env, store, oldMarker)
  } catch (error) {
    const why = errno(error instanceof Stopped ? error.reason : error)
    if (why === undefined) throw error
    return new CkptError(
      'INTERNAL',
      `Writing failed${at} (${code ?? why}), and what had been written cannot be taken back now (${why}). Nothing is lost: the next command finishes this ${op}, and checkpoint ${safety.id.slice(0, 10)} holds the files as they were.`,
      { cause: reason, hints: [why === 'ENOSPC' ? 'free some disk space, then: ckpt status' : 'ckpt status'] },
    )
  }
  if (left.length > 0) {
    // What they held before is nowhere else.
    const ref = sessionRef(store, session, `safety/${safety.seq}`)
    await store.moveRefs([{ ref, from: null, to: safety.id }], { durable: true })
    const names = left.map((one) => printable(pathToText(one))).join(', ')
    kept.push(
      `Written to meanwhile, and left as they are now: ${names} (before: checkpoint ${safety.id.slice(0, 10)}).`,
    )
  }
  removeJournal(env, store)
  const back = ['What had been written was taken back.', ...kept].join(' ')
  if (reason instanceof ApplyConflict)
    return new CkptError('CONFLICT', `${op} refused: ${printable(pathToText(reason.path))} ${reason.reason}. ${back}`, {
      paths: [reason.path],
      hints: [`ckpt ${op}   (once nothing writes there)`],
    })
  if (code === undefined) return reason
  return new CkptError('INTERNAL', `Writing failed${at} (${code}). ${back}`, {
    cause: reason,
    hints: [code === 'ENOSPC' ? 'free some disk space, then run the command again' : `look at it, then: ckpt ${op}`],
  })
}
