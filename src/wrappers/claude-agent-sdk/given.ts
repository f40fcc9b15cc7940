/** What a caller gives an agent: plain JavaScript may give anything. */
import { CkptError } from '../../core/errors.ts'
import { printable } from '../../core/paths.ts'
import type { KnownOptions } from './sdk.ts'

/** Where a conversation goes on from is the agent's to say: from before what is undone. */
const FORKS = ['forkSession', 'resumeSessionAt', 'resumeDropsTurn'] as const

/** `session`: what the agent goes on with; null: nothing yet. @throws CkptError USAGE */
export function refuseOtherConversation(options: KnownOptions, session: string | null): void {
  const { sessionId } = options
  const fork = FORKS.find((name) => options[name])
  if (fork)
    throw new CkptError('USAGE', `${fork} is set by the agent itself, after an undo. Nothing was changed.`, {
      hints: ["fork with the SDK's own forkSession(), then: openClaudeAgent(directory, { session })"],
    })
  if (sessionId !== undefined && session !== null && sessionId !== session)
    throw new CkptError(
      'USAGE',
      `The agent goes on with session ${printable(session)}: sessionId is for one that has none yet. Nothing was changed.`,
      { hints: ['openClaudeAgent(directory, { options: { sessionId } })'] },
    )
}
