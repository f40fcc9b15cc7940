/**
 * Events in their order, the last so many of them. Each subscriber reads at its own pace: one write is under way for it at a
 * time, so one that does not read holds up nobody and keeps nothing in memory. When what it wants next is gone it is told so,
 * and has to resume.
 */
import type { CkptEvent, EventMessage, Position, Subscribed, SubscribeRequest } from './protocol.ts'

export interface Sink {
  /** Resolves when the message was handed to the kernel. */
  send: (message: EventMessage) => Promise<void>
  behind: (at: Position) => Promise<void>
}

interface Subscriber {
  sink: Sink
  /** The last one that was sent. */
  seq: number
  sending: boolean
  ended: boolean
}

/** Events that are kept for those who come back. */
const KEPT = 10_000
/** Files that the kept `session.diff` are to name, some megabytes: beyond that only a session's newest names them. */
const FILES = 20_000

export interface EventLogOptions {
  epoch: string
  now: () => number
  kept?: number
  files?: number
}

export class EventLog {
  readonly epoch: string
  readonly #now: () => number
  readonly #kept: number
  readonly #mostFiles: number
  readonly #events: EventMessage[] = []
  readonly #subscribers = new Set<Subscriber>()
  #seq = 0
  /** Sessions of the `session.diff` that name files, by their place, oldest first; how many files those are. */
  readonly #diffs = new Map<number, string>()
  readonly #newest = new Map<string, number>()
  #files = 0

  constructor({ epoch, now, kept = KEPT, files = FILES }: EventLogOptions) {
    this.epoch = epoch
    this.#now = now
    this.#kept = kept
    this.#mostFiles = files
  }

  append(event: CkptEvent): void {
    const time = new Date(this.#now()).toISOString()
    this.#events.push({ epoch: this.epoch, seq: ++this.#seq, time, event })
    if (event.type === 'session.diff') this.#weigh(event)
    if (this.#events.length > this.#kept * 2)
      for (const one of this.#events.splice(0, this.#events.length - this.#kept)) this.#forgetFiles(one)
    for (const one of this.#subscribers) void this.#pump(one)
  }

  /** A newer one says all that an older one of its session did, and whoever reads that gets to this one. */
  #weigh({ session, files }: CkptEvent & { type: 'session.diff' }): void {
    this.#diffs.set(this.#seq, session)
    this.#newest.set(session, this.#seq)
    this.#files += files.length
    for (const [seq, of] of this.#diffs) {
      if (this.#files <= this.#mostFiles) return
      const at = seq - this.#oldest
      const one = this.#events[at]
      if (this.#newest.get(of) === seq || one?.event.type !== 'session.diff') continue
      this.#forgetFiles(one)
      this.#events[at] = { ...one, event: { ...one.event, files: [] } }
    }
  }

  #forgetFiles({ seq, event }: EventMessage): void {
    if (event.type !== 'session.diff' || !this.#diffs.delete(seq)) return
    this.#files -= event.files.length
    if (this.#newest.get(event.session) === seq) this.#newest.delete(event.session)
  }

  /** Events come from the next turn of the loop on, after the answer. */
  subscribe({ after }: SubscribeRequest, sink: Sink): { answer: Subscribed; end: () => void } {
    const there =
      after !== undefined && after.epoch === this.epoch && after.seq <= this.#seq && after.seq >= this.#oldest - 1
    const seq = there ? after.seq : this.#seq
    const one: Subscriber = { sink, seq, sending: false, ended: false }
    const start = setImmediate(() => {
      this.#subscribers.add(one)
      void this.#pump(one)
    })
    const end = () => {
      clearImmediate(start)
      one.ended = true
      this.#subscribers.delete(one)
    }
    return { answer: { epoch: this.epoch, seq, resumed: there }, end }
  }

  get #oldest(): number {
    return this.#seq - this.#events.length + 1
  }

  async #pump(one: Subscriber): Promise<void> {
    if (one.sending) return
    one.sending = true
    try {
      while (!one.ended && one.seq < this.#seq) {
        const next = this.#events[one.seq + 1 - this.#oldest]
        if (!next) {
          one.ended = true
          this.#subscribers.delete(one)
          await one.sink.behind({ epoch: this.epoch, seq: one.seq })
          return
        }
        await one.sink.send(next)
        one.seq = next.seq
      }
    } catch {
      one.ended = true // its connection is gone
      this.#subscribers.delete(one)
    } finally {
      one.sending = false
    }
  }
}
