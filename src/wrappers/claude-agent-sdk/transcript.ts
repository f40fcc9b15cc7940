/** A session's prompts from its transcript, which is only ever read: for a session that was never seen here. */
import * as z from 'zod/mini'
import type { SessionId } from '../../core/ids.ts'
import { type Env, errno, statIfThere } from '../../env.ts'
import type { Context } from '../../ops/worktree/context.ts'
import { emptyRecord, type SessionRecord, withPrompt, withStatus } from './record.ts'
import { promptOf } from './sdk.ts'

const rowSchema = z.looseObject({
  type: z.string(),
  uuid: z.string(),
  parentUuid: z.nullable(z.string()),
  timestamp: z.optional(z.string()),
  isSidechain: z.optional(z.boolean()),
  message: z.optional(z.unknown()),
})
/** What the agent writes where it begins to keep copies for a prompt: no other message can be gone back to. */
const snapshotSchema = z.looseObject({ type: z.literal('file-history-snapshot'), messageId: z.string() })
type Row = z.output<typeof rowSchema>

/** Null: there is no transcript. */
export function recordFromTranscript(context: Context, session: SessionId, keep: number): SessionRecord | null {
  const text = readTranscript(context.env, session)
  if (text === null) return null
  let record = emptyRecord(session, null)
  const { branch, kept } = readRows(text)
  for (const row of branch) {
    if (row.type !== 'user' && row.type !== 'assistant') continue
    const prompt = kept.has(row.uuid) ? promptOf({ type: row.type, uuid: row.uuid, message: row.message }) : null
    if (!prompt) record = { ...record, last: row.uuid }
    else record = withPrompt(record, { ...prompt, time: row.timestamp ?? new Date(0).toISOString(), keep })
  }
  return withStatus(record, 'completed')
}

/** From the newest message back to the first, for a transcript is a tree; oldest first. And which prompts have copies. */
function readRows(text: string): { branch: Row[]; kept: ReadonlySet<string> } {
  const rows = new Map<string, Row>()
  const kept = new Set<string>()
  let tip: Row | undefined
  for (const line of text.split('\n')) {
    const value = parsed(line)
    const snapshot = snapshotSchema.safeParse(value)
    if (snapshot.success) kept.add(snapshot.data.messageId)
    const row = rowSchema.safeParse(value)
    if (!row.success || row.data.isSidechain) continue
    rows.set(row.data.uuid, row.data)
    tip = row.data
  }
  const branch: Row[] = []
  for (let at = tip; at && branch.length <= rows.size; at = rows.get(at.parentUuid ?? '')) branch.push(at)
  return { branch: branch.reverse(), kept }
}

function parsed(line: string): unknown {
  try {
    return JSON.parse(line)
  } catch {
    return null // a line that is being written
  }
}

/** `<config>/projects/<the directory with dashes>/<session>.jsonl`; the session's name alone says which. */
function readTranscript({ files, vars, home }: Env, session: SessionId): string | null {
  if (!/^[\w-]+$/.test(session)) return null
  const projects = `${vars.CLAUDE_CONFIG_DIR || `${home}/.claude`}/projects`
  for (const name of listed({ files }, projects)) {
    const file = `${projects}/${name}/${session}.jsonl`
    if (statIfThere(files, file)?.isFile()) return files.readFileSync(file, 'utf8')
  }
  return null
}

function listed({ files }: Pick<Env, 'files'>, directory: string): string[] {
  try {
    return files.readdirSync(directory)
  } catch (error) {
    if (errno(error) === 'ENOENT' || errno(error) === 'ENOTDIR') return []
    throw error
  }
}
