/** What is remembered of conversations between two payloads: which began here, and whose child one is. */
import * as z from 'zod/mini'
import type { SessionId } from '../core/ids.ts'
import type { Env } from '../env.ts'
import { readIfThere, writeFileWhole } from '../git/store.ts'

const noteSchema = z.object({
  agent: z.string(),
  session: z.string(),
  /** startup, resume, fork, clear, child, …; `forked`: a conversation that was taken for a fork, or went on itself. */
  source: z.string(),
  parent: z.optional(z.string()),
})
export type Note = z.output<typeof noteSchema>

const fileSchema = z.object({ version: z.literal(1), notes: z.array(noteSchema) })

/** Older ones go. */
const MOST = 200

const fileOf = (directory: string) => `${directory}/agents.json`

export function readNotes(env: Env, directory: string): Note[] {
  const bytes = readIfThere(env, fileOf(directory))
  if (bytes === null) return []
  let value: unknown
  try {
    value = JSON.parse(bytes.toString('utf8'))
  } catch {
    return [] // only hints: without them a fork has no parent
  }
  const parsed = fileSchema.safeParse(value)
  return parsed.success ? parsed.data.notes : []
}

/** The newest note is the last. */
export function remember(env: Env, directory: string, note: Note): void {
  const others = readNotes(env, directory).filter((one) => one.agent !== note.agent || one.session !== note.session)
  const notes = [...others, note].slice(-MOST)
  writeFileWhole(env, fileOf(directory), `${JSON.stringify({ version: 1, notes })}\n`)
}

/** The session whose turn a subagent's work belongs to; null: it is nobody's child. */
export function rootOf(notes: readonly Note[], agent: string, session: SessionId): SessionId | null {
  let at: string = session
  for (let depth = 0; depth < 20; depth++) {
    const note = notes.find((one) => one.agent === agent && one.session === at)
    if (note?.source !== 'child' || note.parent === undefined) break
    at = note.parent
  }
  return at === session ? null : (at as SessionId)
}

/**
 * The conversation that a first prompt's session was forked from: the last one that was taken up again and said nothing
 * since. Null where the session began itself, or is known.
 */
export function forkedFrom(notes: readonly Note[], agent: string, session: SessionId): string | null {
  const own = notes.filter((one) => one.agent === agent)
  if (own.some((one) => one.session === session)) return null
  const last = own.findLast((one) => one.source === 'resume' || one.source === 'fork')
  return last?.session ?? null
}
