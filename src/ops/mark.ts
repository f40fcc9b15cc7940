/** Markers: what an agent (or its adapter) tells ckpt, made a checkpoint. */
import type { Marker, MarkResult } from '../core/marker.ts'
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
export async function mark(context: Context, marker: Marker, arrived: number): Promise<MarkResult> {
  const { env, config } = context
  const passed = () => env.monotonic() - arrived
  if (!config.enableFileCheckpointing) return switchedOff(context, arrived)
  const { deadline } = config.snapshot
  const result = await locked(context, { command: `mark ${marker.event}`, wait: deadline }, async () => {
    const reading = readRefs(context)
    // The scan takes longest: it runs while the timeline is read, and is thrown away for a marker that came before.
    return whileScanning(context, { refs: reading, deadline: deadline - passed() }, (scanning) =>
      recordMarker(context, marker, { arrived, reading, scanning }),
    )
  })
  await makeRoom(context, deadline - passed())
  return result
}
