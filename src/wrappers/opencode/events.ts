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

/** Resolves when the server tells its events. */
export async function follow(
  server: Server,
  read: (session: string) => Promise<OwnSession>,
  { listener, sessions = [], onError = () => undefined, worktree = '@main' }: FollowOptions,
): Promise<Follower> {
  const end = new AbortController()
  const since = new Date().toISOString()
  const known = new Map<string, OwnSession>()
  let working: Promise<void> = Promise.resolve()
  const waiting = new Set<string>()
  const look = (session: string) => {
    if (waiting.has(session)) return
    waiting.add(session)
    working = working.then(async () => {
      waiting.delete(session)
      if (end.signal.aborted) return
      try {
        const after = await read(session)
        if (after.parent !== null) return // a subagent's
        const before = known.get(session) ?? earlier(after, since)
        known.set(session, after)
        for (const event of changesOf(before, after, worktree)) tell(listener, event)
      } catch (error) {
        tell(onError, error)
      }
    })
  }
  const hear = ({ type, properties }: ServerEvent) => {
    const session = sessionOf(properties)
    if (session === null) return
    if (type === 'session.deleted') known.delete(session)
    else if (type === 'session.diff') {
      const files = ((properties.diff ?? []) as ServerFileDiff[]).map(diffJson)
      working = working.then(() => tell(listener, { type: 'session.diff', session, files, total: files.length }))
    } else if (/^(session|message)\./.test(type) && type !== 'message.part.delta') look(session)
  }
  for (const session of sessions) known.set(session, await read(session))
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
            ready()
            // What was missed while the connection was broken.
            if (connected) for (const session of known.keys()) look(session)
            connected = true
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
  try {
    await begun
  } catch (error) {
    end.abort()
    throw error
  }
  return { close: () => end.abort() }
}

function sessionOf({ sessionID, info, part }: Record<string, unknown>): string | null {
  const of = (value: unknown, key: string) => (value as Record<string, unknown> | undefined)?.[key]
  const found = sessionID ?? of(part, 'sessionID') ?? of(info, 'sessionID') ?? of(info, 'id')
  return typeof found === 'string' ? found : null
}

/** A session that is seen for the first time, as it was when the listening began. */
const earlier = (own: OwnSession, since: string): OwnSession => ({
  ...own,
  boundary: null,
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
