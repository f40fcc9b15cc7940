/**
 * Prompts on their way to the agent: sent, taken up, ended. One that is sent while a turn runs becomes part of that turn:
 * the SDK keeps no copies for it, and has one result for all of them.
 */
export class Prompts {
  /** Not taken up yet. */
  readonly #waiting = new Set<string>()
  /** Every one of this query. */
  readonly #sent = new Map<string, string>()
  readonly #taken = new Set<string>()
  /** Not told to a hook yet. */
  readonly #unheard = new Set<string>()
  #open = false

  /** A turn runs, or is about to. */
  get running(): boolean {
    return this.#open || this.#waiting.size > 0
  }

  /** No turn runs, but prompts wait. */
  get onlyWaiting(): boolean {
    return !this.#open && this.#waiting.size > 0
  }

  isSent(id: string): boolean {
    return this.#sent.has(id)
  }

  send(id: string, text: string): void {
    this.#waiting.add(id)
    this.#unheard.add(id)
    this.#sent.set(id, text)
  }

  /** The agent shows a prompt. True: a turn begins with it. One that it shows again has had its own. */
  takeUp(id: string): boolean {
    if (this.#taken.has(id)) return false
    this.#taken.add(id)
    this.#waiting.delete(id)
    const begins = !this.#open
    this.#open = true
    return begins
  }

  /** A hook is told of a prompt by its text: which it is; null: none that was sent here. */
  heard(text: string): string | null {
    const found = [...this.#unheard].find((id) => this.#sent.get(id) === text) ?? null
    if (found !== null) this.#unheard.delete(found)
    return found
  }

  /** The agent dropped it. */
  drop(id: string): void {
    this.#waiting.delete(id)
  }

  /** A turn has its result. */
  end(): void {
    this.#open = false
  }

  /** Nothing will come of those that wait. */
  giveUp(): void {
    this.#waiting.clear()
  }

  /** The query is over. */
  clear(): void {
    this.#open = false
    this.#waiting.clear()
    this.#taken.clear()
    this.#unheard.clear()
    this.#sent.clear()
  }
}
