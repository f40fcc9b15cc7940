/** A stand-in for the Claude Agent SDK, for what does not depend on its agent: it streams, shows prompts, calls hooks, resumes and forks. */
import { randomUUID } from 'node:crypto'
import type {
  AgentMessage,
  AgentQuery,
  AgentSdk,
  KnownOptions,
  UserMessage,
} from '../../src/wrappers/claude-agent-sdk/sdk.ts'

type Rewind = (how: { dryRun?: boolean }) => string[]

export interface MadeUpSdk extends AgentSdk {
  /** The options of each query. */
  queries: KnownOptions[]
  /** How often it was asked to interrupt. */
  interrupted: number
}

/**
 * `work` is what the agent does for a prompt; it says nothing more until that is done. `rewind` is what it does to go back
 * before one, and gives the files. `start` is what it does before it takes a prompt up: an interrupt meanwhile ends it.
 */
export function madeUpSdk(
  work: (prompt: string) => unknown,
  rewind: Rewind = () => [],
  start: (prompt: string) => unknown = () => undefined,
): MadeUpSdk {
  const sdk: MadeUpSdk = {
    queries: [],
    interrupted: 0,
    query: ({ prompt, options = {} }) => {
      const given = options as KnownOptions
      sdk.queries.push(given)
      const session = (given.forkSession ? undefined : given.resume) ?? given.sessionId ?? randomUUID()
      const said = new Said()
      const hook = async (event: string, more: object) => {
        const input = { hook_event_name: event, session_id: session, cwd: given.cwd, ...more }
        for (const { hooks } of given.hooks?.[event] ?? []) for (const one of hooks) await one(input)
      }
      const say = (message: object) =>
        said.push({ session_id: session, uuid: randomUUID(), ...message } as AgentMessage)
      let isStarting = false
      const answer = async () => {
        for await (const message of prompt as AsyncIterable<UserMessage>) {
          if (said.isClosed) break
          const text = String(message.message.content)
          isStarting = true
          await start(text)
          isStarting = false
          if (said.isClosed) break
          say({ type: 'system', subtype: 'init' })
          await hook('UserPromptSubmit', { prompt: text })
          say(message)
          await work(text)
          say({ type: 'assistant', parent_tool_use_id: null, message: { role: 'assistant', content: [] } })
          await hook('Stop', {})
          say({ type: 'result', subtype: 'success', result: 'done' })
        }
        said.close()
      }
      void answer()
      given.abortController?.signal.addEventListener('abort', () => said.close())
      const query: Partial<AgentQuery> = {
        [Symbol.asyncIterator]: () => query as AgentQuery,
        next: () => said.next(),
        return: async () => {
          said.close()
          return { done: true, value: undefined }
        },
        close: () => said.close(),
        interrupt: async () => {
          sdk.interrupted++
          if (said.isClosed) throw new Error('Query closed before response received')
          if (isStarting) said.close()
        },
        rewindFiles: async (_, how = {}) => {
          if (said.isClosed) throw new Error('Query closed before response received')
          return { canRewind: true, filesChanged: rewind(how) }
        },
      }
      return query as AgentQuery
    },
  }
  return sdk
}

/** Messages that wait for who reads them, or the other way round. */
class Said {
  isClosed = false
  readonly #messages: AgentMessage[] = []
  #wake: () => void = () => undefined

  push(message: AgentMessage): void {
    if (!this.isClosed) this.#messages.push(message)
    this.#wake()
  }

  close(): void {
    this.isClosed = true
    this.#wake()
  }

  async next(): Promise<IteratorResult<AgentMessage, void>> {
    for (;;) {
      const value = this.#messages.shift()
      if (value) return { done: false, value }
      if (this.isClosed) return { done: true, value: undefined }
      await new Promise<void>((resolve) => {
        this.#wake = resolve
      })
    }
  }
}
