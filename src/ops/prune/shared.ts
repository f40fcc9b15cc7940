/**
 * Worktrees of a store that share their beginnings: what was sent out comes back, and gets a place of its own beside what
 * went on here. The history of both is cut by one file, `shallow`: nothing is cut off that one of them keeps.
 */
import type { Checkpoint } from '../../core/checkpoint.ts'
import type { Oid } from '../../core/ids.ts'
import { keptHistory, type WorktreePlan } from './plan.ts'

export type Kept = ReadonlyMap<Oid, Checkpoint>

/** Whether a history goes on before a checkpoint. */
export const goesOnBefore = (kept: Kept, id: Oid): boolean =>
  kept.get(id)?.parents.some((parent) => kept.has(parent)) ?? false

/** What goes from one worktree stays where another one keeps it, and what came after it with it: the result. */
export async function leaveShared(plans: readonly WorktreePlan[]): Promise<{ turns: number; byHand: number }> {
  const going = () => ({
    turns: plans.flatMap(({ sessions }) => sessions.flatMap(({ visible }) => visible)).length,
    byHand: plans.reduce((sum, { byHand }) => sum + byHand.gone, 0),
  })
  const before = going()
  if (!mayShare(plans)) return { turns: 0, byHand: 0 }
  const histories = new Map<WorktreePlan, Kept>()
  for (const plan of plans) histories.set(plan, (await keptHistory(plan)).kept)
  for (let again = true; again; ) {
    again = false
    for (const plan of plans) {
      const others = [...histories].flatMap(([other, kept]) => (other === plan ? [] : [kept]))
      if (!leaveTo(plan, others)) continue
      histories.set(plan, (await keptHistory(plan)).kept)
      again = true
    }
  }
  const { turns, byHand } = going()
  return { turns: before.turns - turns, byHand: before.byHand - byHand }
}

/** Nearly never, and not worth reading all histories for. */
function mayShare(plans: readonly WorktreePlan[]): boolean {
  const seen = new Set<Oid>()
  for (const { sessions, byHand } of plans) {
    const own = [...sessions.flatMap(({ timeline }) => timeline.turns.map(({ before }) => before)), ...byHand.all]
    if (own.some(({ id }) => seen.has(id))) return true
    for (const { id } of own) seen.add(id)
  }
  return false
}

/** True: less goes than before. */
function leaveTo({ sessions, byHand }: WorktreePlan, others: readonly Kept[]): boolean {
  let less = false
  const staying = (all: readonly Checkpoint[], going: number): number => {
    const first = all[going]
    const kept = first && going > 0 ? others.find((one) => goesOnBefore(one, first.id)) : undefined
    const from = kept ? all.findIndex(({ id }) => kept.has(id)) : -1
    if (from < 0 || from >= going) return going
    less = true
    return from
  }
  for (const { timeline, visible } of sessions)
    visible.length = staying(
      timeline.turns.map(({ before }) => before),
      visible.length,
    )
  byHand.gone = staying(byHand.all, byHand.gone)
  return less
}
