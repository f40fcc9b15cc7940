/** Which turn an end is of, where the agent names another one, or none. */
import type { SessionId } from '../core/ids.ts'
import type { Marker, MarkResult } from '../core/marker.ts'
import { runningTurn } from '../core/timeline.ts'
import type { Context } from '../ops/worktree/context.ts'
import { loadTimeline, readRefs } from '../ops/worktree/sessions.ts'
import type { Agent, Heard } from './agent.ts'
import { linesWith } from './transcript.ts'

/** The agent's own id of the turn that an end was recorded for: after a notice that is not the one the end was told with. */
export async function endedBy(
  context: Context,
  session: SessionId,
  result: MarkResult | null,
): Promise<string | undefined> {
  if (!result?.turn) return undefined
  const timeline = await loadTimeline(context, await readRefs(context), { session, recent: true })
  return timeline.turns.find(({ number }) => number === result.turn)?.before.marker
}

/**
 * A prompt, or a session's end, that comes while a turn runs: nothing told of that one's end, nor of the id that a rewind to
 * it takes.
 */
export async function withClosed(
  context: Context,
  { agent: { messageIdIn }, heard: { transcript } }: { agent: Agent; heard: Heard },
  markers: readonly Marker[],
): Promise<Marker[]> {
  const done: Marker[] = []
  for (const marker of markers) {
    const closes = marker.event === 'prompt' ? !marker.notice : marker.event === 'stop' && marker.turn === undefined
    const turn = closes && transcript && messageIdIn ? await runningIn(context, marker.session) : undefined
    const id = turn && messageIdIn!(linesWith(context.env, transcript!.path, turn), turn)
    done.push(!id ? marker : marker.event === 'prompt' ? { ...marker, closes: id } : { ...marker, messageId: id })
  }
  return done
}

/** Whether a call of the turn that runs in a session has begun, and not ended. */
export async function isCallOpen(context: Context, session: SessionId, callId: string): Promise<boolean> {
  const timeline = await loadTimeline(context, await readRefs(context), { session, recent: true })
  return Boolean(runningTurn(timeline)?.steps.some(({ start, end }) => start?.callId === callId && end === null))
}

/** The agent's own id of the turn that runs in a session. */
async function runningIn(context: Context, session: SessionId): Promise<string | undefined> {
  const timeline = await loadTimeline(context, await readRefs(context), { session, recent: true })
  const { marker } = (timeline.boundary ? null : runningTurn(timeline))?.before ?? {}
  return marker?.slice(marker.indexOf(':') + 1)
}
