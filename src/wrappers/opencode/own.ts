/** An OpenCode session as one that its backend keeps: prompts are turns, tool calls are steps. Pure. */
import type { SessionId } from '../../core/ids.ts'
import type { OwnBoundary, OwnSession, OwnStep, OwnTurn } from '../../core/own-session.ts'
import type { ServerMessage, ServerSession } from './http.ts'

export function ownSession(
  session: ServerSession,
  messages: readonly ServerMessage[],
  { busy }: { busy: boolean },
): OwnSession {
  const groups = turnsOf(messages)
  const turns = groups.map((group, i) => ownTurn(group, i + 1, busy && i === groups.length - 1))
  return {
    session: session.id as SessionId,
    agent: 'opencode',
    parent: session.parentID ?? null,
    state: busy ? 'running' : 'idle',
    turns,
    boundary: session.revert ? boundaryOf(session.revert, groups) : null,
    diff: session.revert?.diff ?? '',
  }
}

/** A prompt, and the messages that answer it. */
type Group = [ServerMessage, ...ServerMessage[]]

function turnsOf(messages: readonly ServerMessage[]): Group[] {
  const groups: Group[] = []
  for (const message of messages) {
    if (message.info.role === 'user') groups.push([message])
    else groups.at(-1)?.push(message)
  }
  return groups
}

function ownTurn([prompt, ...answers]: Group, number: number, running: boolean): OwnTurn {
  const last = answers.at(-1)
  const ended = last?.info.time.completed
  const failed = answers.find(({ info }) => info.error)?.info.error
  const text = prompt.parts
    .filter((part) => part.type === 'text' && !part.synthetic && !part.ignored)
    .map((part) => part.text ?? '')
    .join('\n')
  return {
    number,
    messageId: prompt.info.id,
    text,
    status: running ? 'running' : !failed ? 'completed' : /abort/i.test(failed.name) ? 'interrupted' : 'failed',
    startedAt: new Date(prompt.info.time.created).toISOString(),
    endedAt: running || ended === undefined ? null : new Date(ended).toISOString(),
    steps: toolParts(answers).map(({ part, message }, i): OwnStep => {
      return {
        number: i + 1,
        id: part.id,
        messageId: message.info.id,
        callId: part.callID ?? null,
        tool: part.tool ?? null,
      }
    }),
  }
}

const toolParts = (messages: readonly ServerMessage[]) =>
  messages
    .flatMap((message) => message.parts.map((part) => ({ part, message })))
    .filter(({ part }) => part.type === 'tool')

/** The files that a turn changed on its way, absolute; some of them may be as they were before it. */
export function changedOnTheWay(messages: readonly ServerMessage[], messageId: string): string[] {
  const group = turnsOf(messages).find(([prompt]) => prompt.info.id === messageId) ?? []
  return group.flatMap(({ parts }) => parts.flatMap(({ type, files = [] }) => (type === 'patch' ? files : [])))
}

/** `messageID` is a prompt's, or with a part that of the answer it is in. */
function boundaryOf(
  { messageID, partID }: NonNullable<ServerSession['revert']>,
  groups: readonly Group[],
): OwnBoundary | null {
  const at = groups.findIndex((group) => group.some(({ info }) => info.id === messageID))
  const group = groups[at]
  if (!group) return null
  const boundary = { turn: at + 1, step: null, messageId: messageID, partId: partID ?? null }
  if (partID === undefined) return boundary
  const parts = group.flatMap((message) => message.parts)
  const before = parts.slice(
    0,
    parts.findIndex(({ id }) => id === partID),
  )
  return { ...boundary, step: before.filter(({ type }) => type === 'tool').length + 1 }
}
