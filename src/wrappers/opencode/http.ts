/** OpenCode's server over HTTP: https://opencode.ai/docs/server. Only the fields that are used. */
import * as z from 'zod/mini'
import { refuseCancelled } from '../../core/cancel.ts'
import { CkptError } from '../../core/errors.ts'

export interface ServerSession {
  id: string
  parentID?: string
  revert?: { messageID: string; partID?: string; diff?: string }
}

interface ServerPart {
  id: string
  type: string
  text?: string
  synthetic?: boolean
  ignored?: boolean
  tool?: string
  callID?: string
  /** Of a `patch`: what a step of the model's changed, absolute. */
  files?: string[]
}

export interface ServerMessage {
  info: {
    id: string
    role: 'user' | 'assistant'
    time: { created: number; completed?: number }
    error?: { name: string }
  }
  parts: ServerPart[]
}

/** One file of what a turn did. */
export interface ServerFileDiff {
  file?: string
  patch?: string
  additions: number
  deletions: number
  status?: 'added' | 'deleted' | 'modified'
}

/** One without lines has a patch all the same: its head. Measured with 1.18.33. */
export const isBinary = ({ patch }: ServerFileDiff): boolean => patch === ''

export interface ServerEvent {
  type: string
  properties: Record<string, unknown>
}

/** Without these an answer is no OpenCode server's. */
const id = z.string()
const time = z.number().check(z.gte(0), z.lte(8.64e15)) // what a Date holds
const sessionShape = z.looseObject({ id, revert: z.nullish(z.looseObject({ diff: z.optional(z.string()) })) })
const messageShape = z.looseObject({
  info: z.looseObject({
    id,
    role: z.string(),
    time: z.looseObject({ created: time, completed: z.nullish(time) }),
  }),
  parts: z.array(z.looseObject({ type: z.string() })),
})
const statusShape = z.record(z.string(), z.looseObject({ type: z.string() }))
const diffShape = z.looseObject({ file: z.optional(z.string()), patch: z.optional(z.string()) })
const eventShape = z.looseObject({ type: z.string(), properties: z.optional(z.looseObject({})) })

export interface ServerPlace {
  /** Where it listens: `http://127.0.0.1:4096`. */
  url: string
  /** The worktree, absolute or from where this process is: which of the server's projects is meant. */
  directory: string
  /** Beside the usual ones, for a server with a password. */
  headers?: Readonly<Record<string, string>> | undefined
}

/** Milliseconds for an answer; a revert of many files takes its time. */
const ANSWER = { GET: 30_000, POST: 120_000 }

export class Server {
  readonly #place: ServerPlace
  readonly #signal: AbortSignal | undefined

  /** The signal cancels what is asked, and nothing that changes something. */
  constructor(place: ServerPlace, signal?: AbortSignal) {
    this.#place = place
    this.#signal = signal
  }

  session(id: string): Promise<ServerSession> {
    return this.#get(`/session/${part(id)}`, sessionShape)
  }

  messages(id: string): Promise<ServerMessage[]> {
    return this.#get(`/session/${part(id)}/message`, z.array(messageShape))
  }

  /** What is not in the answer is idle. */
  async isBusy(id: string): Promise<boolean> {
    const all = await this.#get<Record<string, { type: string }>>('/session/status', statusShape)
    return (all[id]?.type ?? 'idle') !== 'idle'
  }

  abort(id: string): Promise<unknown> {
    return this.#post(`/session/${part(id)}/abort`)
  }

  revert(id: string, to: { messageID: string; partID?: string }): Promise<unknown> {
    return this.#post(`/session/${part(id)}/revert`, to)
  }

  unrevert(id: string): Promise<unknown> {
    return this.#post(`/session/${part(id)}/unrevert`)
  }

  diff(id: string, messageID: string): Promise<ServerFileDiff[]> {
    return this.#get(`/session/${part(id)}/diff`, z.array(diffShape), { messageID })
  }

  /** Those of the directory that it lists, without what was said in them. */
  sessions(): Promise<ServerSession[]> {
    return this.#get('/session', z.array(sessionShape))
  }

  /** Every event of the directory, until it is cancelled or the server goes. */
  async *events(signal: AbortSignal): AsyncGenerator<ServerEvent> {
    const headers = { ...this.#place.headers, accept: 'text/event-stream' }
    const answer = await fetch(this.#address('/event'), { headers, signal }).catch((cause: unknown) => {
      throw signal.aborted ? cause : this.#silent(cause)
    })
    if (!answer.ok || !answer.body) throw this.#failed('/event', answer.status, '')
    const decoder = new TextDecoder()
    let text = ''
    for await (const chunk of answer.body) {
      text += decoder.decode(chunk as Uint8Array, { stream: true })
      // https://html.spec.whatwg.org/multipage/server-sent-events.html: a blank line ends an event.
      const events = text.split(/\r?\n\r?\n/)
      text = events.pop()!
      for (const event of events) {
        const data = event.split(/\r?\n/).flatMap((line) => /^data: ?(.*)$/s.exec(line)?.[1] ?? [])
        if (data.length > 0) yield this.#understood<ServerEvent>('/event', data.join('\n'), eventShape)
      }
    }
  }

  #address(path: string, query: Record<string, string> = {}): URL {
    const address = new URL(`${this.#place.url.replace(/\/$/, '')}${path}`)
    for (const [name, value] of Object.entries({ directory: this.#place.directory, ...query }))
      address.searchParams.set(name, value)
    return address
  }

  async #get<T>(path: string, shape: z.ZodMiniType, query?: Record<string, string>): Promise<T> {
    return this.#understood(path, await this.#ask('GET', path, { query }), shape)
  }

  async #post(path: string, body?: object): Promise<unknown> {
    const text = await this.#ask('POST', path, { body })
    return text === '' ? null : this.#understood(path, text, z.unknown())
  }

  /** @throws CkptError CANCELLED, INTERNAL, NOT_FOUND, TURN_RUNNING */
  async #ask(
    method: 'GET' | 'POST',
    path: string,
    { body, query }: { body?: object | undefined; query?: Record<string, string> | undefined },
  ): Promise<string> {
    const cancel = method === 'GET' ? this.#signal : undefined
    const late = AbortSignal.timeout(ANSWER[method])
    let answer: Response
    let text: string
    try {
      answer = await fetch(this.#address(path, query), {
        method,
        headers: { ...this.#place.headers, ...(body ? { 'content-type': 'application/json' } : {}) },
        signal: cancel ? AbortSignal.any([cancel, late]) : late,
        ...(body ? { body: JSON.stringify(body) } : {}),
      })
      text = await answer.text()
    } catch (cause) {
      refuseCancelled(cancel)
      throw this.#silent(cause)
    }
    if (!answer.ok) throw this.#failed(path, answer.status, text)
    return text
  }

  #silent(cause: unknown): CkptError {
    const message = `OpenCode's server at ${this.#place.url} does not answer.`
    return new CkptError('INTERNAL', message, { hints: ['opencode serve'], cause })
  }

  #understood<T>(path: string, text: string, shape: z.ZodMiniType): T {
    try {
      const answer = JSON.parse(text)
      shape.parse(answer)
      return answer
    } catch (cause) {
      const said = JSON.stringify(text.slice(0, 100))
      const message = `What answers at ${this.#place.url} is no OpenCode server: to ${path} it said ${said}.`
      throw new CkptError('INTERNAL', message, { hints: ['opencode serve'], cause })
    }
  }

  #failed(path: string, status: number, text: string): CkptError {
    const said = `OpenCode's server answered ${path} with ${status}${text === '' ? '' : `: ${text.slice(0, 300)}`}.`
    if (status === 404) return new CkptError('NOT_FOUND', said, { hints: ['ckpt list --sessions'] })
    if (/busy/i.test(text)) return new CkptError('TURN_RUNNING', said)
    return new CkptError('INTERNAL', said)
  }
}

/** An id as a part of a path; `.` and `..` would be none, and are no session's. */
const part = (id: string): string => encodeURIComponent(id).replace(/^\.\.?$/, '-')
