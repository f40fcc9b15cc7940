/** The events of one daemon: who makes them, and who hears of them. */
import { CkptError } from '../core/errors.ts'
import type { Context } from '../ops/worktree/context.ts'
import { errorJson } from '../results/errors.ts'
import type { Client } from './connection.ts'
import { EventLog } from './event-log.ts'
import { type Failed, Feed } from './feed.ts'
import type { KernelQueue } from './kernel-queue.ts'
import type { CkptEvent, Subscribed, SubscribeRequest } from './protocol.ts'

export class Events {
  readonly #log: EventLog
  readonly #feed: Feed
  readonly #subscriptions = new Map<Client, () => void>()

  constructor(context: Context, { queue, failed }: { queue: KernelQueue; failed: Failed }) {
    this.#log = new EventLog({ epoch: context.env.random(8), now: context.env.now })
    this.#feed = new Feed(context, { log: this.#log, queue, failed })
  }

  stop(): void {
    this.#feed.stop()
  }

  /** After each piece of work. */
  look(): Promise<void> {
    return this.#feed.look()
  }

  async subscribe(client: Client, request: SubscribeRequest): Promise<Subscribed> {
    await this.#feed.start()
    this.unsubscribe(client)
    const { connection } = client
    const { answer, end } = this.#log.subscribe(request, {
      send: (message) => connection.sendNotification('event', message),
      behind: (at) => connection.sendNotification('behind', at),
    })
    this.#subscriptions.set(client, end)
    return answer
  }

  unsubscribe(client: Client): void {
    this.#subscriptions.get(client)?.()
    this.#subscriptions.delete(client)
  }

  pruned(event: CkptEvent & { type: 'prune.done' }): void {
    this.#log.append(event)
    this.#feed.forgetChains()
  }

  /** Who carries out a command tells this what was refused. */
  refused(command: string): (error: Error) => void {
    return (error) => {
      if (!(error instanceof CkptError && error.code === 'CONFLICT')) return
      const { message, paths } = errorJson(error)
      const { session = null } = (error.detail ?? {}) as { session?: string }
      this.#log.append({ type: 'conflict', session, command, message, paths: paths ?? [] })
    }
  }
}
