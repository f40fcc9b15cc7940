/** Clients of a daemon, and what they saw. */
import fs from 'node:fs'
import { connect, type Socket } from 'node:net'
import { expect, onTestFinished, vi } from 'vitest'
import type { DaemonInfo } from '../../src/daemon/place.ts'
import type { CkptEvent, EventMessage } from '../../src/daemon/protocol.ts'
import { connectDaemon, type DaemonClient } from '../../src/library/client.ts'
import type { Scratch } from './scratch.ts'

export const infoOf = (scratch: Scratch): DaemonInfo =>
  JSON.parse(fs.readFileSync(scratch.at('.git/ckpt/worktrees/@main/daemon/info.json'), 'utf8'))

export async function clientOf(scratch: Scratch, directory = scratch.root): Promise<DaemonClient> {
  const client = await connectDaemon(directory, { vars: scratch.vars })
  onTestFinished(() => client.close())
  return client
}

export async function until(holds: () => boolean, what = '', seconds = 20): Promise<void> {
  const end = performance.now() + seconds * 1000
  while (!holds() && performance.now() < end) await new Promise((resolve) => setTimeout(resolve, 10))
  expect([what, holds()]).toEqual([what, true])
}

/** Comes back when a check no longer throws: that takes its own time on a busy machine. `interval`: milliseconds. */
export const eventually = (check: () => void, { interval = 50 } = {}): Promise<void> =>
  vi.waitFor(check, { timeout: 30_000, interval })

/** The events that a client sees, from when this was called. */
export async function watchEvents(client: DaemonClient): Promise<EventMessage[]> {
  const seen: EventMessage[] = []
  await client.subscribe((message) => seen.push(message))
  return seen
}

export const typesOf = (seen: readonly EventMessage[]) => seen.map(({ event }) => event.type)

export const ofType = <T extends CkptEvent['type']>(seen: readonly EventMessage[], type: T) =>
  seen.map(({ event }) => event).filter((event): event is CkptEvent & { type: T } => event.type === type)

export const frame = (body: string | Buffer): Buffer =>
  Buffer.concat([Buffer.from(`Content-Length: ${Buffer.byteLength(body)}\r\n\r\n`), Buffer.from(body)])

/** A bare connection: what was answered, and whether it was closed. */
export class Bare {
  readonly socket: Socket
  closed = false
  #bytes = Buffer.alloc(0)

  constructor(info: Pick<DaemonInfo, 'socket'>) {
    this.socket = connect(info.socket)
    this.socket.on('error', () => undefined)
    this.socket.on('close', () => {
      this.closed = true
    })
    this.socket.on('data', (chunk: Buffer) => {
      this.#bytes = Buffer.concat([this.#bytes, chunk])
    })
    onTestFinished(() => {
      this.socket.destroy()
    })
  }

  send(bytes: string | Buffer): this {
    this.socket.write(bytes)
    return this
  }

  ask(method: string, params: unknown, id: unknown = 1): this {
    return this.send(frame(JSON.stringify({ jsonrpc: '2.0', id, method, params })))
  }

  /** Messages that came so far. */
  get messages(): {
    id?: unknown
    result?: any
    error?: { code: number; message: string; data?: any }
    method?: string
  }[] {
    const found = []
    for (let at = 0; ; ) {
      const end = this.#bytes.indexOf('\r\n\r\n', at)
      const length = Number(/Content-Length: (\d+)/i.exec(this.#bytes.toString('latin1', at, Math.max(at, end)))?.[1])
      if (end < 0 || this.#bytes.length < end + 4 + length) return found
      found.push(JSON.parse(this.#bytes.toString('utf8', end + 4, end + 4 + length)))
      at = end + 4 + length
    }
  }
}
