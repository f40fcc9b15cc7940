/**
 * Claude Code's own record of a conversation: a line of JSON for each message, appended only, a tree by `parentUuid`. What is
 * no such line is passed over. Pure.
 */
import * as z from 'zod/mini'
import { isSessionId, parseSessionId, type SessionId } from '../core/ids.ts'
import type { SaidPrompt, TranscriptReader } from './agent.ts'
import { markerId } from './payload.ts'

const id = z.string().check(z.minLength(1), z.maxLength(1024))
const session = z.string().check(z.refine(isSessionId))
const lineSchema = z.looseObject({
  type: z.string(),
  uuid: id,
  parentUuid: z.optional(z.nullable(z.string())),
  promptId: z.optional(id),
  sessionId: z.optional(session),
  cwd: z.optional(z.string()),
  timestamp: z.optional(z.string()),
  isSidechain: z.optional(z.boolean()),
  isMeta: z.optional(z.boolean()),
  isCompactSummary: z.optional(z.boolean()),
  isApiErrorMessage: z.optional(z.boolean()),
  turnOrigin: z.catch(z.optional(z.string()), undefined),
  turnPosition: z.catch(z.optional(z.looseObject({ turnIndex: z.number() })), undefined),
  message: z.optional(
    z.looseObject({
      content: z.optional(z.unknown()),
      stop_reason: z.optional(z.unknown()),
      model: z.optional(z.unknown()),
    }),
  ),
})
type Line = z.output<typeof lineSchema>

/** Text that Claude Code puts into a conversation by itself: that a command was run, and what its own commands printed. */
const ITS_OWN = /^\s*(<(command|local-command|bash)-|Caveat: )/
const COMMAND = /^\s*<command-(message|name)>/
const INTERRUPTED = /^\[Request interrupted by user/
/** What it tells the model of a subagent or a command in the background that has ended. */
const NOTICE = /^\s*<task-notification>\s*<task-id>/

/** Such a prompt in words; null: it is a person's. */
export function noticeIn(text: string): string | null {
  if (!NOTICE.test(text)) return null
  return /<summary>([\s\S]*?)<\/summary>/.exec(text)?.[1]?.trim() || 'A task in the background has news'
}

function parseJson<T extends z.ZodMiniType>(schema: T, text: string): z.output<T> | null {
  try {
    return schema.safeParse(JSON.parse(text.replace(/^\uFEFF/, ''))).data ?? null // an editor's byte order mark
  } catch {
    return null // a tail begins in the middle of a line, and the last one may not be whole yet
  }
}

function parseLine(text: string): Line | null {
  const line = parseJson(lineSchema, text)
  return line?.isSidechain === true ? null : line
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

/** What Claude Code puts after a turn that died, when its conversation is taken up again. */
const isFiller = ({ message, isApiErrorMessage }: Line): boolean =>
  message?.model === '<synthetic>' && isApiErrorMessage !== true

const isUsers = (line: Line): boolean =>
  line.type === 'user' && line.promptId !== undefined && line.sessionId !== undefined

/** A person's words, also those that were to be said later, and not a tool's result, nor the client's own. */
function isPrompt(line: Line): boolean {
  const isMeta = line.isMeta === true && line.turnOrigin !== 'scheduled'
  if (!isUsers(line) || isMeta || line.isCompactSummary === true) return false
  const text = textOf(line)
  const isResult = blocksOf(line).some(({ type }) => type === 'tool_result')
  return !isResult && text !== '' && !ITS_OWN.test(text)
}

/** What a person typed for the line that a command left. */
function commandText(text: string): string {
  const within = (tag: string) => new RegExp(`<${tag}>([\\s\\S]*?)</${tag}>`).exec(text)?.[1]?.trim() ?? ''
  return `/${within('command-name').replace(/^\//, '')} ${within('command-args')}`.trim()
}

const copySchema = z.looseObject({
  sessionId: session,
  forkedFrom: z.catch(z.optional(z.looseObject({ sessionId: session })), undefined),
  requestSessionId: z.catch(z.optional(session), undefined),
})

/** What stands in the lines that a fork takes along. */
export const COPIED = ['"forkedFrom":', '"requestSessionId":'] as const

/** The session that a conversation was forked from, of such lines in their order: the last one is its parent's. */
export function forkedFromIn(lines: readonly string[]): SessionId | null {
  let found: SessionId | null = null
  for (const line of lines) {
    const { sessionId, forkedFrom, requestSessionId } = parseJson(copySchema, line) ?? {}
    const from = forkedFrom?.sessionId ?? requestSessionId
    if (from !== undefined && from !== sessionId) found = parseSessionId(from)
  }
  return found
}

/** Reads a transcript as it grows. */
export class ClaudeTranscript implements TranscriptReader {
  /** In the order of the transcript. */
  readonly prompts: SaidPrompt[] = []
  /** For each line the one above it, or one further up. */
  readonly #up = new Map<string, string | null>()
  readonly #byLine = new Map<string, SaidPrompt>()
  /** By prompt id, the prompt and its place: a fork gives its first prompt's id to all that it takes along before that. */
  readonly #turns = new Map<string, { prompt: SaidPrompt; place: number | undefined }>()
  /** A command, and whether it is one for the model is not known yet. */
  #command: Omit<Said, 'text'> | null = null
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
    const { uuid, parentUuid = null } = line
    const top = this.#top(parentUuid)
    this.#up.set(uuid, top === uuid ? null : top)
    const parent = top === null ? null : (this.#byLine.get(top) ?? null)
    if (line.type === 'user' && INTERRUPTED.test(textOf(line))) {
      if (parent) parent.end = 'interrupted'
    } else if (isUsers(line) && !this.#isOfTurn(line)) this.#ask(line, parent)
    else if (parent && line.type === 'assistant' && !isFiller(line)) {
      const { stop_reason } = line.message ?? {}
      parent.end = stop_reason === 'end_turn' || stop_reason === 'stop_sequence' ? 'completed' : null
    }
  }

  /** Whether it only goes on with a turn that was begun under its prompt id. */
  #isOfTurn({ promptId, turnPosition }: Line): boolean {
    const turn = this.#turns.get(promptId!)
    return turn !== undefined && (turnPosition === undefined || turnPosition.turnIndex === turn.place)
  }

  /**
   * A command of the person's own (`.claude/commands`, a skill) is followed by what it tells the model, a command of Claude
   * Code's by what that printed: only the first is a prompt.
   */
  #ask(line: Line, parent: SaidPrompt | null): void {
    const command = this.#command?.line.promptId === line.promptId ? this.#command : null
    const text = textOf(line)
    if (isPrompt(line)) this.#begin({ line, parent, text }, line)
    else if (command && line.isMeta === true && !ITS_OWN.test(text))
      this.#begin({ ...command, text: commandText(textOf(command.line)) }, line)
    else if (line.isMeta !== true && COMMAND.test(text)) this.#command = { line, parent }
    else this.#command = null
  }

  /** `last`: what follows it in the conversation is its. */
  #begin(said: Said, last: Line): void {
    const prompt = promptOf(said)
    this.prompts.push(prompt)
    this.#byLine.set(prompt.messageId, prompt)
    this.#byLine.set(last.uuid, prompt)
    const copy = this.#turns.get(last.promptId!)?.prompt
    if (copy) Object.assign(copy, { marker: markerId('claude', copy.messageId)!, ids: [copy.messageId] })
    this.#turns.set(last.promptId!, { prompt, place: said.line.turnPosition?.turnIndex })
    this.#command = null
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

interface Said {
  line: Line
  parent: SaidPrompt | null
  text: string
}

function promptOf({ line, parent, text }: Said): SaidPrompt {
  const { uuid, promptId, sessionId, timestamp = null, cwd = null } = line
  const notice = noticeIn(text)
  return {
    session: parseSessionId(sessionId!),
    marker: markerId('claude', promptId)!,
    ids: [uuid, promptId!],
    messageId: uuid,
    parent: (parent?.notice ? parent.parent : parent?.messageId) ?? null,
    text: notice ?? text,
    notice: notice !== null,
    time: timestamp,
    cwd,
    end: null,
  }
}
