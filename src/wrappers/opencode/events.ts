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

/** Resolves when the server tells its events. @throws CkptError INTERNAL, NOT_FOUND */
export async function follow(
  server: Server,
  read: (session: string) => Promise<OwnSession>,
  { listener, sessions = [], onError = () => undefined, worktree = '@main' }: FollowOptions,
): Promise<Follower> {
  const end = new AbortController()
  const since = new Date().toISOString()
  const known = new Map<string, OwnSession>()
  for (const session of sessions) known.set(session, await read(session))
  // Of the others: whether something was undone in them by then. A server that lists none is asked for none.
  const listed = (await server.sessions().catch(() => null)) ?? []
  const undone = new Set(listed.flatMap(({ id, revert }) => (revert ? [id] : [])))
  const subagents = new Set<string>()
  let working: Promise<void> = Promise.resolve()
  const work = (job: () => Promise<void>) => {
    working = working.then(async () => {
      try {
        if (!end.signal.aborted) await job()
      } catch (error) {
        if (!end.signal.aborted) tell(onError, error)
      }
    })
  }
  const say = (event: CkptEvent) => {
    if (!end.signal.aborted) tell(listener, event)
  }
  /** Null: a subagent's, or deleted meanwhile. */
  const readOwn = async (session: string): Promise<OwnSession | null> => {
    if (subagents.has(session)) return null
    try {
      const own = await read(session)
      if (own.parent === null) return own
      subagents.add(session)
    } catch (error) {
      if (!(error instanceof CkptError) || error.code !== 'NOT_FOUND') throw error
      known.delete(session)
    }
    return null
  }
  const waiting = new Set<string>()
  const look = (session: string) => {
    if (waiting.has(session)) return
    waiting.add(session)
    work(async () => {
      waiting.delete(session)
      const after = await readOwn(session)
      if (after === null) return
      const before = known.get(session) ?? earlier(after, { since, undone: undone.has(session) })
      known.set(session, after)
      for (const event of changesOf(before, after, worktree)) say(event)
    })
  }
  const hear = ({ type, properties }: ServerEvent) => {
    const session = sessionOf(properties)
    if (session === null) return
    if (type === 'session.deleted') known.delete(session)
    else if (type === 'session.diff') {
      const files = ((properties.diff ?? []) as ServerFileDiff[]).map(diffJson)
      work(async () => {
        if (known.has(session) || (await readOwn(session)))
          say({ type: 'session.diff', session, files, total: files.length })
      })
    } else if (/^(session|message)\./.test(type) && type !== 'message.part.delta') look(session)
  }
  let ready: () => void
  let failed: (error: unknown) => void
  const begun = new Promise<void>((resolve, reject) => {
    ready = resolve
    failed = reject
  })
  const listen = async () => {
    let connected = false
    while (!end.signal.aborted) {
      try {
        for await (const event of server.events(end.signal)) {
          if (event.type === 'server.connected') {
            connected = true
            ready()
            // What was missed while there was no connection.
            for (const session of known.keys()) look(session)
          } else hear(event)
        }
        if (!connected && !end.signal.aborted)
          throw new CkptError(
            'INTERNAL',
            'What answers as an OpenCode server tells no events: they ended before they began.',
          )
      } catch (error) {
        if (end.signal.aborted) return
        if (!connected) return failed(error)
        tell(onError, error)
      }
      // Who only follows ends with this, and not with the first break.
      await pause(AGAIN, undefined, { signal: end.signal }).catch(() => undefined)
    }
  }
  void listen()
  const timer = setTimeout(
    () => failed(new CkptError('INTERNAL', "OpenCode's server does not begin to tell its events.")),
    GREETING,
  )
  try {
    await begun
  } catch (error) {
    end.abort()
    throw error
  } finally {
    clearTimeout(timer)
  }
  return { close: () => end.abort() }
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
