/**
 * Claude Code's own record of a conversation: a line of JSON for each message, appended only, a tree by `parentUuid`. What a
 * line lacks is passed over. Pure.
 */
import * as z from 'zod/mini'
import { parseSessionId } from '../core/ids.ts'
import type { SaidPrompt } from './agent.ts'
import { markerId } from './payload.ts'

const id = z.string().check(z.minLength(1), z.maxLength(1024))
const lineSchema = z.looseObject({
  type: z.string(),
  uuid: id,
  parentUuid: z.optional(z.nullable(z.string())),
  promptId: z.optional(id),
  sessionId: z.optional(id),
  cwd: z.optional(z.string()),
  timestamp: z.optional(z.string()),
  isSidechain: z.optional(z.boolean()),
  isMeta: z.optional(z.boolean()),
  message: z.optional(z.looseObject({ content: z.optional(z.unknown()), stop_reason: z.optional(z.unknown()) })),
})
type Line = z.output<typeof lineSchema>

/** Text that Claude Code puts into a conversation by itself: commands of its own, and what they printed. */
const ITS_OWN = /^\s*(<(command|local-command|bash)-|Caveat: )/
const INTERRUPTED = /^\[Request interrupted by user/

function parseLine(text: string): Line | null {
  let value: unknown
  try {
    value = JSON.parse(text)
  } catch {
    return null // a tail begins in the middle of a line, and the last one may not be whole yet
  }
  const parsed = lineSchema.safeParse(value)
  return parsed.success && parsed.data.isSidechain !== true ? parsed.data : null
}

const blocksOf = (line: Line): readonly { type?: unknown; text?: unknown }[] => {
  const content = line.message?.content
  if (typeof content === 'string') return [{ type: 'text', text: content }]
  return Array.isArray(content) ? content.filter((block) => typeof block === 'object' && block !== null) : []
}

const textOf = (line: Line): string =>
  blocksOf(line)
    .flatMap(({ type, text }) => (type === 'text' && typeof text === 'string' ? [text] : []))
    .join('\n')

/** A person's words, and not a tool's result, nor the client's own. */
function isPrompt(line: Line): boolean {
  if (line.type !== 'user' || line.isMeta === true || line.promptId === undefined || line.sessionId === undefined)
    return false
  const text = textOf(line)
  const isResult = blocksOf(line).some(({ type }) => type === 'tool_result')
  return !isResult && text !== '' && !ITS_OWN.test(text) && !INTERRUPTED.test(text)
}

/** The prompts of a transcript, in its order. */
export function readClaudeTranscript(transcript: string): SaidPrompt[] {
  const parents = new Map<string, string | null>()
  const prompts = new Map<string, SaidPrompt>()
  const turns = new Map<string, SaidPrompt>()
  /** The prompt that a line was said in answer to. */
  const above = (uuid: string | null | undefined): SaidPrompt | null => {
    for (let at = uuid ?? null, depth = 0; at !== null && depth < 1_000_000; depth++) {
      const prompt = prompts.get(at)
      if (prompt) return prompt
      at = parents.get(at) ?? null
    }
    return null
  }
  for (const text of transcript.split('\n')) {
    const line = text === '' ? null : parseLine(text)
    if (!line) continue
    parents.set(line.uuid, line.parentUuid ?? null)
    const parent = above(line.parentUuid)
    if (isPrompt(line) && !turns.has(line.promptId!)) {
      const prompt: SaidPrompt = {
        session: parseSessionId(line.sessionId!),
        marker: markerId('claude', line.promptId)!,
        ids: [line.uuid, line.promptId!],
        messageId: line.uuid,
        parent: parent?.messageId ?? null,
        text: textOf(line),
        time: line.timestamp ?? null,
        cwd: line.cwd ?? null,
        end: null,
      }
      prompts.set(line.uuid, prompt)
      turns.set(line.promptId!, prompt)
    } else if (parent && line.type === 'assistant') {
      const { stop_reason } = line.message ?? {}
      parent.end = stop_reason === 'end_turn' || stop_reason === 'stop_sequence' ? 'completed' : null
    } else if (parent && line.type === 'user' && INTERRUPTED.test(textOf(line))) parent.end = 'interrupted'
  }
  return [...prompts.values()]
}
