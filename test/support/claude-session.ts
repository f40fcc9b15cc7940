/** A session of Claude Code as its hooks tell of it, hand-written. */
import { expect } from 'vitest'
import { hook } from './agents.ts'
import type { Json, Scratch } from './scratch.ts'

/** Claude Code's payloads for one session. */
export function claude(scratch: Scratch, session = 's', more: { vars?: Record<string, string> } = {}) {
  const say = async (hook_event_name: string, fields: Json = {}) => {
    const ran = await hook(scratch, 'claude', {
      payload: { session_id: session, cwd: scratch.root, hook_event_name, ...fields },
      ...more,
    })
    expect(ran).toEqual({ code: 0, stdout: '', stderr: '' })
  }
  return {
    say,
    prompt: (prompt_id: string, fields: Json = {}) =>
      say('UserPromptSubmit', { prompt_id, prompt: `do ${prompt_id}`, ...fields }),
    stop: (prompt_id: string) => say('Stop', { prompt_id }),
    write: async (prompt_id: string, name: string, fields: Json = {}) => {
      const call = {
        prompt_id,
        tool_name: 'Write',
        tool_use_id: `${prompt_id}-${name}`,
        tool_input: { file_path: scratch.at(name) },
      }
      await say('PreToolUse', { ...call, ...fields })
      scratch.write({ [name]: `${name} of ${prompt_id}\n` })
      await say('PostToolUse', { ...call, ...fields })
    },
  }
}

/** Number, status and how many steps of each turn, oldest first. */
export const turnsOf = (scratch: Scratch, ...args: string[]): [number, string, number][] =>
  scratch
    .ckpt('list', ...args)
    .turns.toReversed()
    .map((turn: Json) => [turn.n, turn.status, turn.steps.length])
