/** Markers: what an agent (or its adapter) tells ckpt, made a checkpoint. */
import type { Marker, MarkResult, PromptMarker, StopMarker } from '../core/marker.ts'
import { makeRoom } from './prune/by-itself.ts'
import { whileScanning } from './record/record.ts'
import { recordMarker, switchedOff } from './record/record-marker.ts'
import { locked } from './recovery/locked.ts'
import type { Context } from './worktree/context.ts'
import { readRefs } from './worktree/sessions.ts'

/**
 * Records a marker. Returns when its checkpoint would survive a kill of this process.
 * @throws CkptError NOT_FOUND (a step or stop in a session without any turn), LOCKED, DAMAGED
 */
export function mark(context: Context, marker: Marker, arrived: number): Promise<MarkResult> {
  return marked(context, [marker], arrived)
}

/** A turn of which no more is known than that it was: what is there now is at both its ends. Its beginning's result. */
export function markOver(
  context: Context,
  ends: readonly [PromptMarker, StopMarker],
  arrived: number,
): Promise<MarkResult> {
  return marked(context, ends, arrived)
}

/** One snapshot for all. The first one's result; where that made no turn the others are left. */
async function marked(
  context: Context,
  [marker, ...others]: readonly [Marker, ...Marker[]],
  arrived: number,
): Promise<MarkResult> {
  const { env, config } = context
  const passed = () => env.monotonic() - arrived
  if (!config.enableFileCheckpointing) return switchedOff(context, arrived)
  const { deadline } = config.snapshot
  // What waits for other sessions gets half of the time: the other half is for this one's snapshot.
  const sessions = [
    marker.session,
    ...(marker.event === 'prompt' && marker.parent !== undefined ? [marker.parent] : []),
  ]
  const first = { until: arrived + deadline / 2, sessions }
  const result = await locked(context, { command: `mark ${marker.event}`, wait: deadline, first }, async () => {
    const reading = readRefs(context)
    // The scan takes longest: it runs while the timeline is read, and is thrown away for a marker that came before.
    return whileScanning(context, { refs: reading, deadline: deadline - passed() }, async (scanning) => {
      const first = await recordMarker(context, marker, { arrived, reading, scanning })
      if (first.turn === null) return first
      for (const one of others) await recordMarker(context, one, { arrived, reading: readRefs(context), scanning })
      return first
    })
  })
  await makeRoom(context, deadline - passed())
  return result
}
