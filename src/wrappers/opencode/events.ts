/** OpenCode's events as ckpt's: whatever it tells of a session, the session is read again, and the difference is told. */
import { setTimeout as pause } from 'node:timers/promises'
import { describePrompt } from '../../core/checkpoint.ts'
import { CkptError } from '../../core/errors.ts'
import { isHidden, isStepHidden, type OwnSession, type OwnTurn } from '../../core/own-session.ts'
import { pathFromText, showPath } from '../../core/paths.ts'
import { tell } from '../../core/tell.ts'
import type { CkptEvent } from '../../daemon/protocol.ts'
import { ownBoundaryJson, ownSessionJson } from '../../results/own-session.ts'
import { isBinary, type Server, type ServerEvent, type ServerFileDiff } from './http.ts'

export interface FollowOptions {
  /** What it throws is an uncaught exception of the process, as with an EventTarget; the next event is told all the same. */
  listener: (event: CkptEvent) => void
  /** Sessions whose state is known from the beginning; of others, what happened before their first event is not told. */
  sessions?: readonly string[] | undefined
  /** The connection broke, and is being made again; or a session could not be read. */
  onError?: ((error: unknown) => void) | undefined
  /** What the events call the worktree; `@main` unless told. */
  worktree?: string | undefined
}

export interface Follower {
  close: () => void
}

/** Milliseconds until a broken connection is made again. */
const AGAIN = 500

/** Milliseconds until the server says that it tells its events. */
const GREETING = 30_000

type ReadSession = (session: string) => Promise<OwnSession>

/** Resolves when the server tells its events. @throws CkptError INTERNAL, NOT_FOUND */
export async function follow(server: Server, read: ReadSession, options: FollowOptions): Promise<Follower> {
  const end = new AbortController()
  const followed = new Followed(read, options, end.signal)
  await followed.begin(server)
  try {
    await listen(server, { signal: end.signal, followed, onError: options.onError })
  } catch (error) {
    end.abort()
    throw error
  }
  return { close: () => end.abort() }
}

/** The sessions of a server as they were last read. */
class Followed {
  readonly #read: ReadSession
  readonly #options: FollowOptions
  readonly #signal: AbortSignal
  readonly #since = new Date().toISOString()
  readonly #known = new Map<string, OwnSession>()
  /** Of those that are not known: in which something was undone when the listening began. */
  #undone: ReadonlySet<string> = new Set()
  readonly #subagents = new Set<string>()
  readonly #waiting = new Set<string>()
  #working: Promise<void> = Promise.resolve()

  constructor(read: ReadSession, options: FollowOptions, signal: AbortSignal) {
    this.#read = read
    this.#options = options
    this.#signal = signal
  }

  async begin(server: Server): Promise<void> {
    for (const session of this.#options.sessions ?? []) this.#known.set(session, await this.#read(session))
    // A server that lists none is asked for none.
    const listed = (await server.sessions().catch(() => null)) ?? []
    this.#undone = new Set(listed.flatMap(({ id, revert }) => (revert ? [id] : [])))
  }

  hear({ type, properties = {} }: ServerEvent): void {
    const session = sessionOf(properties)
    if (session === null) return
    if (type === 'session.deleted') this.#work(async () => this.#gone(session))
    else if (type === 'session.diff') {
      const told = Array.isArray(properties.diff) ? (properties.diff as ServerFileDiff[]) : []
      const files = told.map(diffJson)
      this.#work(async () => {
        if (this.#known.has(session) || (await this.#readOwn(session)))
          this.#say({ type: 'session.diff', session, files, total: files.length })
      })
    } else if (/^(session|message)\./.test(type) && type !== 'message.part.delta') this.#look(session)
  }

  /** What was missed while there was no connection. */
  catchUp(): void {
    for (const session of this.#known.keys()) this.#look(session)
  }

  #look(session: string): void {
    if (this.#waiting.has(session)) return
    this.#waiting.add(session)
    this.#work(async () => {
      this.#waiting.delete(session)
      const after = await this.#readOwn(session)
      if (after === null) return
      const first = { since: this.#since, undone: this.#undone.has(session) }
      const before = this.#known.get(session) ?? earlier(after, first)
      this.#known.set(session, after)
      this.#tell(before, after)
    })
  }

  /** A session was deleted: nothing is left of it. */
  #gone(session: string): void {
    const before = this.#known.get(session)
    this.#known.delete(session)
    if (before) this.#tell(before, { ...before, state: 'idle', turns: [], boundary: null, diff: '' })
  }

  #tell(before: OwnSession, after: OwnSession): void {
    for (const event of changesOf(before, after, this.#options.worktree ?? '@main')) this.#say(event)
  }

  /** Null: a subagent's, or deleted meanwhile. */
  async #readOwn(session: string): Promise<OwnSession | null> {
    if (this.#subagents.has(session)) return null
    try {
      const own = await this.#read(session)
      if (own.parent === null) return own
      this.#subagents.add(session)
    } catch (error) {
      if (!(error instanceof CkptError) || error.code !== 'NOT_FOUND') throw error
      this.#gone(session)
    }
    return null
  }

  /** One after the other; nothing after the end. */
  #work(job: () => Promise<void>): void {
    this.#working = this.#working.then(async () => {
      try {
        if (!this.#signal.aborted) await job()
      } catch (error) {
        if (!this.#signal.aborted) tell(this.#options.onError ?? (() => undefined), error)
      }
    })
  }

  #say(event: CkptEvent): void {
    if (!this.#signal.aborted) tell(this.#options.listener, event)
  }
}

interface Listening {
  signal: AbortSignal
  followed: Followed
  onError: FollowOptions['onError']
}

/** Resolves when the server greets, and goes on until the signal: a connection that breaks is made again. */
async function listen(server: Server, { signal, followed, onError = () => undefined }: Listening): Promise<void> {
  const greeted = new AbortController()
  const keepOn = async () => {
    while (!signal.aborted) {
      try {
        for await (const event of server.events(signal)) {
          if (event.type !== 'server.connected') followed.hear(event)
          else {
            greeted.abort()
            followed.catchUp()
          }
        }
        if (!greeted.signal.aborted && !signal.aborted)
          throw new CkptError(
            'INTERNAL',
            'What answers as an OpenCode server tells no events: they ended before they began.',
          )
      } catch (error) {
        if (signal.aborted) return
        if (!greeted.signal.aborted) throw error
        tell(onError, error)
      }
      // Who only follows ends with this, and not with the first break.
      await pause(AGAIN, undefined, { signal }).catch(() => undefined)
    }
  }
  await new Promise<void>((resolve, reject) => {
    const timer = setTimeout(
      () => reject(new CkptError('INTERNAL', "OpenCode's server does not begin to tell its events.")),
      GREETING,
    )
    greeted.signal.addEventListener('abort', () => {
      clearTimeout(timer)
      resolve()
    })
    keepOn().catch((error: unknown) => {
      clearTimeout(timer)
      reject(error)
    })
  })
}

function sessionOf({ sessionID, info, part }: Record<string, unknown>): string | null {
  const of = (value: unknown, key: string) => (value as Record<string, unknown> | undefined)?.[key]
  const found = sessionID ?? of(part, 'sessionID') ?? of(info, 'sessionID') ?? of(info, 'id')
  return typeof found === 'string' ? found : null
}

/** A session that is seen for the first time, as it was when the listening began; `undone`: something was, by then. */
const earlier = (own: OwnSession, { since, undone }: { since: string; undone: boolean }): OwnSession => ({
  ...own,
  boundary: undone ? own.boundary : null,
  turns: own.turns.filter((turn) => turn.startedAt < since),
})

/** From two looks at a session to the events in between. Pure. */
function changesOf(before: OwnSession, after: OwnSession, worktree: string): CkptEvent[] {
  const { session } = after
  const events: CkptEvent[] = []
  const was = new Map(before.turns.map((turn) => [turn.messageId, turn]))
  const is = new Map(after.turns.map((turn) => [turn.messageId, turn]))
  for (const turn of [...before.turns].reverse()) {
    const now = is.get(turn.messageId)
    const removed = (why: 'undone' | 'left') =>
      events.push({ type: 'turn.removed', session, turn: turn.number, id: turn.messageId, why })
    if (!now) removed('left')
    else if (isHidden(after, now) && !isHidden(before, turn)) removed('undone')
    else if (!isHidden(after, now))
      for (const step of [...turn.steps].reverse()) {
        if (isStepHidden(after, now, step) && !isStepHidden(before, turn, step))
          events.push({ type: 'step.removed', session, step: `${turn.number}.${step.number}`, id: step.id })
      }
  }
  for (const turn of after.turns) {
    const earlier = was.get(turn.messageId)
    if (isHidden(after, turn) || (earlier && !isHidden(before, earlier))) continue
    events.push({ type: 'turn.added', session, turn: summaryOf(after, turn) })
  }
  const boundary = ownBoundaryJson(after)
  if (!same(ownBoundaryJson(before), boundary)) events.push({ type: 'boundary.changed', session, boundary })
  const info = ownSessionJson(after, worktree)
  if (!same(ownSessionJson(before, worktree), info)) events.push({ type: 'session.updated', session, info })
  return events
}

const same = (a: unknown, b: unknown) => JSON.stringify(a) === JSON.stringify(b)

function summaryOf(own: OwnSession, turn: OwnTurn) {
  return {
    n: turn.number,
    id: turn.messageId,
    messageId: turn.messageId,
    prompt: describePrompt(turn.text, turn.startedAt),
    agent: own.agent,
    status: turn.status,
    startedAt: turn.startedAt,
  }
}

function diffJson(diff: ServerFileDiff) {
  const { file = '', additions, deletions, status = 'modified' } = diff
  return { ...showPath(pathFromText(file)), status, insertions: additions, deletions, binary: isBinary(diff) }
}
