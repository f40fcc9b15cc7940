/**
 * Claude Code's own record of a conversation: a line of JSON for each message, appended only, a tree by `parentUuid`. What is
 * no such line is passed over. Pure.
 */
import * as z from 'zod/mini'
import { parseSessionId } from '../core/ids.ts'
import type { SaidPrompt, TranscriptReader } from './agent.ts'
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
  isCompactSummary: z.optional(z.boolean()),
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
  if (line.type !== 'user' || line.promptId === undefined || line.sessionId === undefined) return false
  if (line.isMeta === true || line.isCompactSummary === true) return false
  const text = textOf(line)
  const isResult = blocksOf(line).some(({ type }) => type === 'tool_result')
  return !isResult && text !== '' && !ITS_OWN.test(text) && !INTERRUPTED.test(text)
}

/** Reads a transcript as it grows. */
export class ClaudeTranscript implements TranscriptReader {
  /** In the order of the transcript. */
  readonly prompts: SaidPrompt[] = []
  /** For each line the one above it, or one further up. */
  readonly #up = new Map<string, string | null>()
  readonly #byLine = new Map<string, SaidPrompt>()
  readonly #turns = new Set<string>()
  #rest = ''

  add(text: string): void {
    const lines = (this.#rest + text).split('\n')
    this.#rest = lines.pop()!
    for (const one of lines) {
      const line = one === '' ? null : parseLine(one)
      if (line) this.#take(line)
    }
  }

  #take(line: Line): void {
    const { uuid, parentUuid = null, promptId } = line
    const top = this.#top(parentUuid)
    this.#up.set(uuid, top === uuid ? null : top)
    const parent = top === null ? null : (this.#byLine.get(top) ?? null)
    if (isPrompt(line) && !this.#turns.has(promptId!)) {
      const prompt = promptOf(line, parent)
      this.prompts.push(prompt)
      this.#byLine.set(uuid, prompt)
      this.#turns.add(promptId!)
    } else if (parent && line.type === 'assistant') {
      const { stop_reason } = line.message ?? {}
      parent.end = stop_reason === 'end_turn' || stop_reason === 'stop_sequence' ? 'completed' : null
    } else if (parent && line.type === 'user' && INTERRUPTED.test(textOf(line))) parent.end = 'interrupted'
  }

  /**
   * From a line up: the prompt that it was said in answer to, or a line that was not read (yet); null: neither. The lines
   * passed on the way lead there at once from then on: a turn is not walked for each of its lines.
   */
  #top(from: string | null): string | null {
    const passed: string[] = []
    let at = from
    while (at !== null && !this.#byLine.has(at)) {
      const up = this.#up.get(at)
      if (up === undefined) break
      passed.push(at)
      at = up
    }
    for (const one of passed) this.#up.set(one, at)
    return at
  }
}

function promptOf(line: Line, parent: SaidPrompt | null): SaidPrompt {
  const { uuid, promptId, sessionId, timestamp = null, cwd = null } = line
  return {
    session: parseSessionId(sessionId!),
    marker: markerId('claude', promptId)!,
    ids: [uuid, promptId!],
    messageId: uuid,
    parent: parent?.messageId ?? null,
    text: textOf(line),
    time: timestamp,
    cwd,
    end: null,
  }
}
