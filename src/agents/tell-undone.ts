/** The one line for an agent whose work was taken back. Pure. */
import { shown } from '../core/paths.ts'
import type { Undone } from '../ops/history/undone.ts'

/** Names that are told, and characters of each: they are somebody else's words in the model's context. */
const MOST = 20
const LONGEST = 200

export function undoneLine({ turn, step, paths }: Undone): string {
  const names = paths.slice(0, MOST).map((path) => JSON.stringify(shown(path).slice(0, LONGEST)))
  const more = paths.length > MOST ? ` and ${paths.length - MOST} more` : ''
  const from = step === null ? `turn ${turn}` : `step ${turn}.${step}`
  return `ckpt: the user took back what was done from ${from} on. These files are again as they were before it, and what you remember of them is stale, so read them again: ${names.join(', ')}${more}.`
}

/** As Claude Code's hooks say it, and those of the agents that took them over. */
export const contextFor =
  (event: string) =>
  (line: string): string =>
    JSON.stringify({ hookSpecificOutput: { hookEventName: event, additionalContext: line } })
