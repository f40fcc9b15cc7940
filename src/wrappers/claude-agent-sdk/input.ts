/** The prompts of a query, one by one; one that was taken too early can be put back. */
import type { UserMessage } from './sdk.ts'

export class Input {
  readonly #source: AsyncIterator<UserMessage>
  #back: UserMessage[] = []
  #pending: Promise<IteratorResult<UserMessage>> | null = null

  constructor(prompt: string | AsyncIterable<UserMessage>) {
    this.#source = (typeof prompt === 'string' ? one(prompt) : prompt)[Symbol.asyncIterator]()
  }

  /** Null: there is none any more. */
  async next(): Promise<UserMessage | null> {
    const again = this.#back.shift()
    if (again) return again
    // Who stopped waiting leaves the question open: the next one takes it over.
    this.#pending ??= this.#source.next()
    const { done, value } = await this.#pending
    this.#pending = null
    return done ? null : value
  }

  putBack(message: UserMessage): void {
    this.#back.unshift(message)
  }

  async close(): Promise<void> {
    const closed = Promise.resolve(this.#source.return?.())
    // A generator that waits for its next prompt ends when that comes, which may be never.
    if (this.#pending) closed.catch(() => undefined)
    else await closed
  }
}

async function* one(text: string): AsyncGenerator<UserMessage> {
  yield { type: 'user', parent_tool_use_id: null, message: { role: 'user', content: text } }
}
