/** What a transcript says of a turn that is recorded already, or is not. */
import type { Oid, SessionId } from '../core/ids.ts'
import { messageIdOf, type Timeline, type Turn } from '../core/timeline.ts'
import { learnSessions } from '../git/history.ts'
import { promptReader } from '../git/side-refs.ts'
import { promptEdits } from './record/prompts.ts'
import { locked } from './recovery/locked.ts'
import type { Context } from './worktree/context.ts'
import { loadTimeline, readRefs } from './worktree/sessions.ts'

const known = new WeakMap<Timeline, ReadonlyMap<string, Turn>>()

/** All turns by each of the ids that they are known by, hidden and abandoned ones included; the first with an id has it. */
function turnsById(timeline: Timeline): ReadonlyMap<string, Turn> {
  const found = known.get(timeline)
  if (found) return found
  const { turns, abandoned, outside } = timeline
  const byId = new Map<string, Turn>()
  const add = (id: string | null | undefined, turn: Turn | undefined) => {
    if (typeof id === 'string' && turn && !byId.has(id)) byId.set(id, turn)
  }
  for (const turn of [...turns, ...abandoned])
    for (const id of [turn.before.marker, turn.before.messageId, messageIdOf(turn)]) add(id, turn)
  for (const notice of outside)
    add(
      notice.marker,
      turns.find(({ number }) => number === notice.turn),
    )
  known.set(timeline, byId)
  return byId
}

/** The turn that is known by one of these ids, hidden and abandoned ones included. */
export function turnKnownBy(timeline: Timeline, ids: readonly string[]): Turn | null {
  const byId = turnsById(timeline)
  for (const id of ids) if (byId.has(id)) return byId.get(id)!
  return null
}

/** Milliseconds between what a hook and a transcript tell of one prompt. */
const NEAR = 60_000

/** The turn that a hook without ids told of (older versions of an agent): the same words, about the same time. */
export async function turnWithoutId(
  context: Context,
  { turns, abandoned }: Timeline,
  { text, time }: { text: string; time: string | null },
): Promise<Turn | null> {
  if (time === null) return null
  const said = Date.parse(time)
  const near = [...turns, ...abandoned].filter(
    ({ before }) => before.messageId === undefined && Math.abs(Date.parse(before.time) - said) < NEAR,
  )
  if (near.length === 0) return null
  const prompts = await promptsNow(context)
  for (const turn of near) if ((await prompts(turn.before.id)) === text) return turn
  return null
}

/** The same in any session of the worktree but one: what a fork took along with it. */
export async function turnElsewhere(
  context: Context,
  { but, ids }: { but: SessionId; ids: readonly string[] },
): Promise<Turn | null> {
  const refs = await readRefs(context)
  await learnSessions(context.store, refs)
  for (const session of refs.sessions.keys()) {
    if (session === but) continue
    const turn = turnKnownBy(await loadTimeline(context, refs, { session, abandoned: true }), ids)
    if (turn) return turn
  }
  return null
}

/** The whole timeline of a session, as it is now. */
export async function timelineOf(context: Context, session: SessionId): Promise<Timeline> {
  return loadTimeline(context, await readRefs(context), { session, abandoned: true })
}

/** The texts of prompts, by their checkpoints, as they are now. */
export async function promptsNow(context: Context): Promise<(before: Oid) => Promise<string | null>> {
  return promptReader(context.store, (await readRefs(context)).notes)
}

/** Attaches the text of a prompt to a turn that was opened without one. Returns false when it has one, or cannot be given one. */
export function notePrompt(context: Context, { before, text }: { before: Oid; text: string }): Promise<boolean> {
  const { store, env } = context
  return locked(context, { command: 'prompt' }, async () => {
    const refs = await readRefs(context)
    if ((await (await promptReader(store, refs.notes))(before)) !== null) return false
    const edits = await promptEdits(context, refs, { before, text, seconds: Math.floor(env.now() / 1000) })
    if (edits.length > 0) await store.moveRefs(edits)
    return edits.length > 0
  })
}
