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

export class EventLog {
  readonly epoch: string
  readonly #now: () => number
  readonly #kept: number
  readonly #events: EventMessage[] = []
  readonly #subscribers = new Set<Subscriber>()
  #seq = 0

  constructor({ epoch, now, kept = KEPT }: { epoch: string; now: () => number; kept?: number }) {
    this.epoch = epoch
    this.#now = now
    this.#kept = kept
  }

  append(event: CkptEvent): void {
    const time = new Date(this.#now()).toISOString()
    this.#events.push({ epoch: this.epoch, seq: ++this.#seq, time, event })
    if (this.#events.length > this.#kept * 2) this.#events.splice(0, this.#events.length - this.#kept)
    for (const one of this.#subscribers) void this.#pump(one)
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
