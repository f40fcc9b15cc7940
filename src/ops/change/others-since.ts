/** What goes back with a restore though other sessions did it: a plan does not say whose a file is. */
import type { Checkpoint } from '../../core/checkpoint.ts'
import { isDamage } from '../../core/errors.ts'
import { printable, shortList } from '../../core/paths.ts'
import { type FileAction, isHeld } from '../../core/plan.ts'
import { lastOf, visibleTurns } from '../../core/timeline.ts'
import type { SessionRefs, WorktreeRefs } from '../../git/history.ts'
import { ChangeReader } from '../history/turn-changes.ts'
import type { Context } from '../worktree/context.ts'
import { loadTimeline } from '../worktree/sessions.ts'

/** A line for each other session of which a visible turn changed since the checkpoint what the plan touches. */
export async function othersSince(
  context: Context,
  refs: WorktreeRefs,
  { checkpoint, actions }: { checkpoint: Checkpoint; actions: readonly FileAction[] },
): Promise<string[]> {
  const touched = new Set(actions.filter((one) => !isHeld(one)).map(({ path }) => path))
  if (touched.size === 0) return []
  // One that came from elsewhere has no place in this worktree's order: all that is here came since.
  const since = refs.sessions.has(checkpoint.session) ? checkpoint.seq : 0
  const lines: string[] = []
  for (const one of refs.sessions.values()) {
    if (one.session === checkpoint.session || !one.live || one.live.seq <= since) continue
    const session = printable(one.session)
    try {
      const theirs = await changedSince(context, refs, { one, since })
      const paths = [...theirs.keys()].filter((path) => touched.has(path)).sort()
      if (paths.length === 0) continue
      const turns = [...new Set(paths.flatMap((path) => theirs.get(path)!))].sort((a, b) => a - b)
      const which = turns.length === 1 ? `turn ${turns[0]}` : `turns ${turns[0]} to ${turns.at(-1)}`
      lines.push(`With it goes back what session ${session} did since, in ${which}: ${shortList(paths)}.`)
    } catch (error) {
      if (!isDamage(error)) throw error
      lines.push(
        `What session ${session} did since cannot be read, and may go back with it (ckpt verify says what is lost).`,
      )
    }
  }
  return lines
}

/** Each path that a session's visible turns changed after a place in the order, with the first and the last of the turns that did. */
async function changedSince(
  context: Context,
  refs: WorktreeRefs,
  { one: { session }, since }: { one: SessionRefs; since: number },
): Promise<Map<string, [first: number, last: number]>> {
  const timeline = await loadTimeline(context, refs, { session })
  const reader = new ChangeReader(context, refs, timeline)
  const found = new Map<string, [first: number, last: number]>()
  for (const turn of visibleTurns(timeline)) {
    if (lastOf(turn).seq <= since) continue
    const { parts } = await reader.changesLeft({ turn, step: null })
    for (const { path, seq, unclaimed } of parts)
      if (seq > since && !unclaimed) found.set(path, [found.get(path)?.[0] ?? turn.number, turn.number])
  }
  return found
}
