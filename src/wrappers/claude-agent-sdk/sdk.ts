/**
 * What is used of @anthropic-ai/claude-agent-sdk, by its shape: the caller's own version of it fits, with its own types,
 * and a program that does not use it needs none.
 */

/** One message of the stream. */
export interface AgentMessage {
  type: string
  subtype?: string
  uuid?: string
  session_id?: string
  parent_tool_use_id?: string | null
  isSynthetic?: boolean
  message?: unknown
  /** Of `result`: the last words. */
  result?: unknown
  /** Of `command_lifecycle`: what became of a prompt. */
  command_uuid?: string
  state?: string
  /** Of `task_notification`: completed, failed or stopped; of `system` it may be null. */
  status?: string | null
  /** Of `background_tasks_changed`: all that run now. */
  tasks?: { task_id: string; task_type?: string }[]
}

export interface RewindResult {
  canRewind: boolean
  error?: string
  filesChanged?: string[]
  insertions?: number
  deletions?: number
  /** Files that were left because of a link. */
  skippedLinks?: number
}

/** A running query. */
export interface AgentQuery extends AsyncGenerator<AgentMessage, void> {
  rewindFiles: (userMessageId: string, options?: { dryRun?: boolean }) => Promise<RewindResult>
  interrupt: () => Promise<unknown>
  stopTask?: (taskId: string) => Promise<unknown>
  close?: () => void
}

/** The module. The caller's own types go through it. */
export interface AgentSdk {
  /** Every version's own has to fit, whatever more it wants to know: a method's parameter is compared either way. */
  query(given: {
    prompt: string | AsyncIterable<object>
    options?: object | undefined
  }): AsyncGenerator<AgentMessage, void> & Pick<AgentQuery, 'interrupt'>
}

export type QueryOf<S extends AgentSdk> = ReturnType<S['query']>
export type GivenTo<S extends AgentSdk> = Parameters<S['query']>[0]
export type OptionsOf<S extends AgentSdk> = NonNullable<GivenTo<S>['options']>

/** The options that are read or set here. */
export interface KnownOptions {
  cwd?: string
  env?: Record<string, string | undefined>
  extraArgs?: Record<string, string | null>
  enableFileCheckpointing?: boolean
  resume?: string
  continue?: boolean
  sessionId?: string
  forkSession?: boolean
  resumeSessionAt?: string
  resumeDropsTurn?: string
  abortController?: AbortController
  hooks?: Record<string, { matcher?: string; hooks: ((input: unknown) => Promise<unknown>)[]; timeout?: number }[]>
}

/** A prompt of a stream of prompts. */
export interface UserMessage {
  type: 'user'
  uuid?: string
  session_id?: string
  parent_tool_use_id: string | null
  message: { role: 'user'; content: unknown }
}

/** Null: it is no prompt, but a tool's result, or the SDK's own. */
export function promptOf(message: AgentMessage): { id: string; text: string } | null {
  if (message.type !== 'user' || message.uuid === undefined || message.isSynthetic) return null
  if (message.parent_tool_use_id) return null
  const { content } = (message.message ?? {}) as { content?: unknown }
  if (typeof content === 'string') return { id: message.uuid, text: content }
  if (!Array.isArray(content)) return null
  const blocks = content as { type?: string; text?: string }[]
  if (blocks.some((block) => block?.type === 'tool_result')) return null
  const text = blocks.flatMap((block) => (block?.type === 'text' ? [block.text ?? ''] : [])).join('\n')
  return { id: message.uuid, text }
}
