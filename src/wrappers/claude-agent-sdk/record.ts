/** What is kept of a session on disk: its checkpoints, and what is undone of it. One small file a session. */

import { describePrompt } from '../../core/checkpoint.ts'
import { CkptError } from '../../core/errors.ts'
import { quotedPath } from '../../core/hint-words.ts'
import type { SessionId } from '../../core/ids.ts'
import type { OwnSession, OwnTurn } from '../../core/own-session.ts'
import { readIfThere, writeFileWhole } from '../../git/whole-file.ts'
import type { Context } from '../../ops/worktree/context.ts'

/** A prompt that can be gone back to before. */
export interface ClaudeCheckpoint {
  /** The user message's uuid: what `rewindFiles` takes. */
  id: string
  /** ISO 8601 in UTC. */
  timestamp: string
  /** The first line of the prompt, at most 80 characters. */
  description: string
  sessionId: string
}

export interface Kept extends ClaudeCheckpoint {
  /** Its place in the session, from 1. */
  number: number
  text: string
  /** The last message before it: from there the conversation goes on when it is taken out. Null: it is the first. */
  anchor: string | null
  status: OwnTurn['status']
}

export interface Summary {
  files: number
  insertions: number
  deletions: number
}

export interface SessionRecord {
  version: 1
  session: SessionId
  /** The session that it was forked from. */
  parent: string | null
  /** Newest first. */
  checkpoints: Kept[]
  /** Of those and of older ones, newest first: ckpt's own undo reaches all turns. */
  anchors: Pick<Kept, 'id' | 'anchor'>[]
  /** The first prompt that is undone; null: nothing is. */
  undone: string | null
  summary: Summary | null
  /** The last message that the agent sent. */
  last: string | null
}

/** Prompts that are kept of a session, unless the configuration says another number. */
const KEEP = 10
/** Prompts whose place in the conversation is kept: some 100 bytes each. */
const ANCHORS = 1000

export const emptyRecord = (session: SessionId, parent: string | null): SessionRecord => ({
  version: 1,
  session,
  parent,
  checkpoints: [],
  anchors: [],
  undone: null,
  summary: null,
  last: null,
})

const directoryOf = ({ store }: Context) => `${store.worktreeDir}/claude-agent-sdk`

/** Session ids are UUIDs; whatever else comes stays one file name. */
const fileOf = (context: Context, session: SessionId) =>
  `${directoryOf(context)}/${Buffer.from(session).toString('base64url').slice(0, 200)}.json`

/** Null: nothing was ever kept of it. @throws CkptError DAMAGED */
export function readRecord(context: Context, session: SessionId): SessionRecord | null {
  const file = fileOf(context, session)
  const bytes = readIfThere(context.env, file)
  if (bytes === null) return null
  try {
    const record = JSON.parse(bytes.toString('utf8')) as SessionRecord
    if (record.version !== 1 || !Array.isArray(record.checkpoints)) throw new Error(`version ${String(record.version)}`)
    return { ...record, anchors: record.anchors ?? record.checkpoints }
  } catch (cause) {
    throw new CkptError('DAMAGED', `${file} cannot be read. Nothing was changed.`, {
      hints: [`rm ${quotedPath(file)}   (the session's checkpoints are then read from its transcript)`],
      cause,
    })
  }
}

export function writeRecord(context: Context, record: SessionRecord): void {
  context.env.files.mkdirSync(directoryOf(context), { recursive: true, mode: 0o700 })
  writeFileWhole(context.env, fileOf(context, record.session), { content: `${JSON.stringify(record)}\n` })
}

/** With one more prompt, the oldest ones gone. The same prompt again changes nothing. */
export function withPrompt(
  record: SessionRecord,
  { id, text, time, keep }: { id: string; text: string; time: string; keep: number },
): SessionRecord {
  if (record.checkpoints.some((one) => one.id === id)) return record
  const kept: Kept = {
    id,
    timestamp: time,
    description: describePrompt(text, time),
    sessionId: record.session,
    number: (record.checkpoints[0]?.number ?? 0) + 1,
    text,
    anchor: record.last,
    status: 'running',
  }
  return {
    ...record,
    checkpoints: [kept, ...record.checkpoints].slice(0, keep || KEEP),
    anchors: [{ id, anchor: record.last }, ...record.anchors].slice(0, ANCHORS),
  }
}

/** The prompts that the SDK's own undo took back, oldest first. */
export function undoneOf({ anchors, undone }: SessionRecord): string[] {
  if (undone === null) return []
  const first = anchors.findIndex(({ id }) => id === undone)
  const since = first < 0 ? anchors : anchors.slice(0, first) // what is older than all of them is before all of them
  return [undone, ...since.map(({ id }) => id).reverse()]
}

/** Without the prompts that are undone. */
export const visibleIn = ({ checkpoints }: SessionRecord, undone: readonly string[]): Kept[] =>
  checkpoints.filter(({ id }) => !undone.includes(id))

/** Without what is undone: the conversation went on elsewhere. */
export const withoutUndone = (record: SessionRecord, undone: readonly string[]): SessionRecord => ({
  ...record,
  checkpoints: visibleIn(record, undone),
  anchors: record.anchors.filter(({ id }) => !undone.includes(id)),
  undone: null,
  summary: null,
})

export const withStatus = (record: SessionRecord, status: OwnTurn['status']): SessionRecord => ({
  ...record,
  checkpoints: record.checkpoints.map((one) => (one.status === 'running' ? { ...one, status } : one)),
})

export const checkpointOf = ({ id, timestamp, description, sessionId }: Kept): ClaudeCheckpoint => ({
  id,
  timestamp,
  description,
  sessionId,
})

export function ownSession(record: SessionRecord, running: boolean): OwnSession {
  const turns = record.checkpoints
    .map(({ id, number, text, status, timestamp }): OwnTurn => {
      const real = status === 'running' && !running ? 'interrupted' : status
      return { number, messageId: id, text, status: real, startedAt: timestamp, endedAt: null, steps: [] }
    })
    .reverse()
  const first = turns.find(({ messageId }) => messageId === record.undone)
  return {
    session: record.session,
    agent: 'claude',
    parent: record.parent,
    state: running ? 'running' : 'idle',
    turns,
    boundary: first ? { turn: first.number, step: null, messageId: first.messageId, partId: null } : null,
    diff: '',
  }
}
