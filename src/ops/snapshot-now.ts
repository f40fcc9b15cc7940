/** A checkpoint by hand. */
import { MANUAL_SESSION } from '../core/ids.ts'
import type { MarkResult } from '../core/marker.ts'
import { sessionRef } from '../git/history.ts'
import { makeRoom } from './prune/by-itself.ts'
import { promptEdits } from './record/prompts.ts'
import { Recorder, takeSnapshot } from './record/record.ts'
import { snapshotWarnings, switchedOff } from './record/record-marker.ts'
import { locked } from './recovery/locked.ts'
import { type Context, headOf } from './worktree/context.ts'
import { readRefs } from './worktree/sessions.ts'

/** A checkpoint by hand, in session `manual`; none where checkpoints are switched off. */
export async function snapshotNow(context: Context, text: string | undefined, arrived: number): Promise<MarkResult> {
  const { env, config, store } = context
  if (!config.enableFileCheckpointing) return switchedOff(context, arrived)
  const result = await locked(context, { command: 'snapshot' }, async () => {
    const [refs, head] = await Promise.all([readRefs(context), headOf(context)])
    const snapshot = await takeSnapshot(context, refs, { deadline: config.snapshot.deadline })
    const recorder = new Recorder(context, refs, head)
    const tip = refs.sessions.get(MANUAL_SESSION)?.live ?? null
    const checkpoint = recorder.commit(snapshot, tip ? [tip.id] : [], { kind: 'manual', session: MANUAL_SESSION })
    const edits = await recorder.keepEdits()
    if (text !== undefined)
      edits.push(
        ...(await promptEdits(context, refs, {
          before: checkpoint.id,
          text: text,
          seconds: Math.floor(Date.parse(checkpoint.time) / 1000),
        })),
      )
    await store.moveRefs([
      ...edits,
      { ref: sessionRef(store, MANUAL_SESSION, 'live'), from: tip?.id ?? null, to: checkpoint.id },
    ])
    return {
      checkpoint,
      beside: snapshot.beside,
      since: null,
      turn: null,
      ms: env.monotonic() - arrived,
      mode: snapshot.mode,
      barrier: snapshot.barrier,
      abandoned: [],
      cleared: false,
      directories: 0,
      warnings: [...context.warnings, ...snapshotWarnings(snapshot)],
    }
  })
  await makeRoom(context, config.snapshot.deadline)
  return result
}
