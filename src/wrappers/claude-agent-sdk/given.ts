/** What a caller gives an agent: plain JavaScript may give anything. */
import { CkptError } from '../../core/errors.ts'
import { printable } from '../../core/paths.ts'
import { type Check, checkedOptions, isCount, isOptions, isSwitch, isText, isVars } from '../../library/options.ts'
import type { KnownOptions, UserMessage } from './sdk.ts'

const isSdk: Check = (value) =>
  typeof (value as { query?: unknown } | null)?.query === 'function'
    ? null
    : "the SDK's module: import * as sdk from '@anthropic-ai/claude-agent-sdk'"
const isPrompt: Check = (value) =>
  typeof value === 'string' || typeof (value as AsyncIterable<unknown> | null)?.[Symbol.asyncIterator] === 'function'
    ? null
    : 'a text, or prompts one by one (an AsyncIterable)'

export const AGENT = {
  sdk: isSdk,
  options: isOptions,
  session: isText,
  checkpoints: isSwitch,
  init: isSwitch,
  vars: isVars,
}
export const UNDO = { turns: isCount, to: isText, interrupt: isSwitch, dryRun: isSwitch }
export const REDO = { turns: isCount, all: isSwitch }

export interface Asked {
  prompt: string | AsyncIterable<UserMessage>
  options: KnownOptions
}

/** What a query is asked with; `session` as below. @throws CkptError USAGE */
export function checkedQuery(given: object, session: string | null): Asked {
  const { prompt, options = {} } = checkedOptions(given as Partial<Asked>, { prompt: isPrompt, options: isOptions })
  if (prompt === undefined) throw new CkptError('USAGE', 'Which prompt? `prompt` says so. Nothing was changed.')
  const { resume } = options
  if (resume !== undefined) checkedOptions({ resume }, { resume: isText })
  refuseOtherConversation(options, resume ?? session)
  return { prompt, options }
}

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
