/** Ends the turn that is at work, for an undo. */
import { setTimeout as pause } from 'node:timers/promises'
import { CkptError } from '../../core/errors.ts'
import { nothingToUndo } from '../../core/own-session.ts'
import { printable } from '../../core/paths.ts'
import type { Conversation } from './conversation.ts'

/** Milliseconds for a turn to end after it was interrupted, and between two looks. */
const REST = 10_000
const LOOK = 20

/** What a query says that is over. */
export const GONE = /clos|abort|terminat|exited|no conversation/i

/**
 * What `look` refuses is refused while nothing was changed. @throws CkptError TURN_RUNNING unless that is asked for,
 * NOTHING_TO_UNDO where the agent never took up what was on its way to it: what came before that stays
 */
export async function interruptTurn(
  conversation: Conversation,
  { interrupt, dryRun }: { interrupt?: boolean | undefined; dryRun?: boolean | undefined },
  look: () => Promise<unknown>,
): Promise<void> {
  const { session } = conversation
  const what = session === null ? 'The first prompt' : `Session ${printable(session)}`
  if (!interrupt || dryRun)
    throw new CkptError('TURN_RUNNING', `${what} is at work. Nothing was changed.`, {
      hints: ['ckpt undo … --interrupt   (closes the turn as interrupted)'],
    })
  const sent = conversation.onItsWay
  await look().catch((error: unknown) => {
    if (sent === null || !(error instanceof CkptError && error.code === 'NOTHING_TO_UNDO')) throw error
  })
  await conversation.interrupt().catch((error: Error) => {
    if (!GONE.test(error.message)) throw error
    return conversation.over()
  })
  for (let waited = 0; conversation.running && waited < REST; waited += LOOK) await pause(LOOK)
  if (conversation.running)
    throw new CkptError('TURN_RUNNING', `${what} was interrupted and goes on all the same. Nothing was changed.`)
  if (sent !== null && !conversation.hasTaken(sent))
    throw nothingToUndo('What was sent last was ended before the agent took it up; what came before it stays.')
}
