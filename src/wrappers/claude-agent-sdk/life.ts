/** How long the SDK's query is held open: through its input it is asked to interrupt and to rewind, until the caller goes on. */
import { CkptError } from '../../core/errors.ts'
import type { AgentQuery } from './sdk.ts'

/** Milliseconds that the end of a query is waited for. */
const END = 5000

export class QueryLife {
  /** The query that can be asked; null when idle. */
  live: AgentQuery | null = null
  readonly #isRunning: () => boolean
  /** The caller's query that goes on with the conversation. */
  #holder: object | null = null
  #atRest: (() => void)[] = []
  #asking = 0
  #due = false
  #ending: Promise<void> | null = null
  #isOver: () => void = () => undefined

  constructor(isRunning: () => boolean) {
    this.#isRunning = isRunning
  }

  /** A query of the caller's goes on with the conversation, and no other one any more. @throws CkptError TURN_RUNNING */
  take(run: object): void {
    if (this.#isRunning())
      throw new CkptError('TURN_RUNNING', 'Another query of this agent is at work. No prompt was sent.', {
        hints: ['read it to its end, or close it: query.close()'],
      })
    this.#holder = run
  }

  isHeldBy(run: object): boolean {
    return this.#holder === run
  }

  /** Resolves when every prompt that was sent has its result, and the caller has seen it. From then on there is no query. */
  settled(query: AgentQuery): Promise<void> {
    return new Promise((resolve) => {
      this.#atRest.push(() => {
        if (this.live === query) this.live = null
        this.#ending = new Promise((done) => {
          this.#isOver = done
        })
        resolve()
      })
      this.goOn()
    })
  }

  /** The caller has seen a message, and wants the next one. */
  goOn(): void {
    if (this.#isRunning()) return
    if (this.#asking > 0) this.#due = true
    else for (const release of this.#atRest.splice(0)) release()
  }

  /** The live query stays until it has answered. */
  async asking<T>(ask: (query: AgentQuery) => Promise<T>, query: AgentQuery): Promise<T> {
    this.#asking++
    try {
      return await ask(query)
    } finally {
      this.#asking--
      if (this.#due) {
        this.#due = false
        this.goOn()
      }
    }
  }

  /** The query is gone, in whatever way. */
  over(): void {
    this.live = null
    this.#holder = null
    this.goOn()
    this.#isOver()
    this.#ending = null
  }

  /** A query whose prompts have ended is gone when it has written down what it knows; who does not read its end is not waited for. */
  async ended(): Promise<void> {
    if (!this.#ending) return
    let timer: NodeJS.Timeout | undefined
    const enough = new Promise<void>((resolve) => {
      timer = setTimeout(resolve, END)
    })
    await Promise.race([this.#ending, enough])
    clearTimeout(timer)
  }
}
