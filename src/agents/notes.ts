/** What is remembered of conversations between two payloads: which began here, and whose child one is. */
import * as z from 'zod/mini'
import type { SessionId } from '../core/ids.ts'
import { type Env, lstatIfThere } from '../env.ts'
import { appendTo, readIfThere, writeFileWhole } from '../git/whole-file.ts'

const noteSchema = z.object({
  agent: z.string(),
  session: z.string(),
  /**
   * startup, resume, fork, clear, child, …; `forked`: a fork whose parent is known; `fork of another`: one that prompted
   * before anything told of its parent; `went on`: one that prompted again, or was forked.
   */
  source: z.string(),
  parent: z.optional(z.string()),
})
export type Note = z.output<typeof noteSchema>

/** Bytes: then older ones go, and so many are kept. */
const FULL = 64 * 2 ** 10
const MOST = 200

/** One a line, the newest last: what two hooks remember at once is both there. */
const fileOf = (directory: string) => `${directory}/agents.jsonl`

/** What was read last, of a file that is only added to: a daemon asks at each hook. */
let last: { file: string; text: string; notes: Map<string, Note> } | null = null

export function readNotes(env: Env, directory: string): Note[] {
  const file = fileOf(directory)
  const text = readIfThere(env, file)?.toString('utf8') ?? ''
  const known = last?.file === file && text.startsWith(last.text) ? last : null
  const notes = new Map(known?.notes)
  for (const line of text.slice(known?.text.length).split('\n')) {
    const note = parseNote(line)
    if (!note) continue
    const key = JSON.stringify([note.agent, note.session])
    notes.delete(key)
    notes.set(key, note)
  }
  // A line that was cut short may yet become whole.
  if (text === '' || text.endsWith('\n')) last = { file, text, notes }
  return [...notes.values()]
}

/** Null for what is no note: they are only hints, and without them a fork has no parent. */
function parseNote(line: string): Note | null {
  try {
    return noteSchema.safeParse(JSON.parse(line)).data ?? null
  } catch {
    return null
  }
}

/** The newest note is the last; of each conversation it is the one that counts. */
export function remember(env: Env, directory: string, note: Note): void {
  const file = fileOf(directory)
  const lineOf = (one: Note) => `${JSON.stringify(one)}\n`
  if ((lstatIfThere(env.files, file)?.size ?? 0) > FULL)
    writeFileWhole(env, file, { content: readNotes(env, directory).slice(-MOST).map(lineOf).join(''), sync: false })
  // A line that was cut short is not to take this one with it.
  appendTo(env, file, { text: `\n${lineOf(note)}` })
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
