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
  /** Of a query that is over, and not taken up by then as far as was told. */
  readonly #left = new Set<string>()
  #newest: { id: string; isTaken: boolean } | null = null
  #open = false

  /** A turn runs, or is about to. */
  get running(): boolean {
    return this.#open || this.#waiting.size > 0
  }

  /** No turn runs, but prompts wait. */
  get onlyWaiting(): boolean {
    return !this.#open && this.#waiting.size > 0
  }

  /** The newest one, where no turn runs yet: it is on its way. */
  get onItsWay(): string | null {
    return this.onlyWaiting ? (this.#newest?.id ?? null) : null
  }

  /** Whether the agent took up the newest one, also once its query is over. */
  hasTaken(id: string): boolean {
    return this.#newest?.id === id && this.#newest.isTaken
  }

  #take(id: string): void {
    if (this.#newest?.id === id) this.#newest.isTaken = true
  }

  /** What comes of a query that is over shows a prompt of it. True: it was taken up after all. */
  takeUpLate(id: string): boolean {
    this.#take(id)
    return this.#left.delete(id)
  }

  isSent(id: string): boolean {
    return this.#sent.has(id)
  }

  send(id: string, text: string): void {
    this.#waiting.add(id)
    this.#unheard.add(id)
    this.#sent.set(id, text)
    this.#left.clear()
    this.#newest = { id, isTaken: false }
  }

  /** The agent shows a prompt. True: a turn begins with it. One that it shows again has had its own. */
  takeUp(id: string): boolean {
    if (this.#taken.has(id)) return false
    this.#taken.add(id)
    this.#take(id)
    this.#waiting.delete(id)
    const begins = !this.#open
    this.#open = true
    return begins
  }

  /** A hook is told of a prompt by its text: which it is; null: none that was sent here. */
  heard(text: string): string | null {
    const found = [...this.#unheard].find((id) => this.#sent.get(id) === text) ?? null
    if (found !== null) this.#unheard.delete(found)
    if (found !== null) this.#take(found)
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
    for (const id of this.#waiting) this.#left.add(id)
    this.#waiting.clear()
    this.#taken.clear()
    this.#unheard.clear()
    this.#sent.clear()
  }
}
