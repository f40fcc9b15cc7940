/**
 * Prune: turns that are past their time go, and with them what only they needed. What stays keeps its ids: the history is
 * cut with git's own `shallow` file. Each step can be killed; the next prune goes on from there.
 */
import { CkptError, reasonOf } from '../core/errors.ts'
import type { Oid, SessionId } from '../core/ids.ts'
import { isOutOfRoom } from '../git/denied.ts'
import { noteWithin } from './prune/by-itself.ts'
import { collect, refuseDamagedPacks } from './prune/collect.ts'
import { cut } from './prune/cut.ts'
import { estimate, goneByHand, type PruneOptions, planAll } from './prune/plan.ts'
import { bytesLeftBehind, sweepRemoved } from './prune/removed.ts'
import { leaveShared } from './prune/shared.ts'
import { lockedStore } from './recovery/locked.ts'
import { settleUnfinished } from './recovery/unfinished.ts'
import { bytesOf, count } from './store/size.ts'
import { releaseSpare } from './store/spare.ts'
import { refuseStrayed } from './store/strayed.ts'
import { countedWords, noteWent } from './store/went.ts'
import type { Context } from './worktree/context.ts'
import { sweepHalfMade } from './worktree/half-made.ts'

export interface PruneResult {
  dryRun: boolean
  removed: { session: SessionId; turn: number; worktree: string }[]
  /** Checkpoints by hand that went. */
  byHand: { checkpoint: Oid; worktree: string }[]
  bytesFreed: number
  kept: number
  warnings: string[]
}

/** On a full disk what is kept for that is given free first. @throws CkptError LOCKED, DAMAGED */
export async function prune(context: Context, options: PruneOptions): Promise<PruneResult> {
  const gone: Gone = { removed: [], byHand: [] }
  const attempt = () => pruneOnce(context, { options, gone })
  return attempt().catch((error: unknown) => {
    const isHelped = !options.dryRun && isOutOfRoom(error) && releaseSpare(context.env, context.place.directory)
    if (!isHelped) throw error
    return attempt()
  })
}

type Gone = Pick<PruneResult, 'removed' | 'byHand'>

/** `gone`: what earlier attempts removed, and this one. */
async function pruneOnce(
  context: Context,
  { options, gone }: { options: PruneOptions; gone: Gone },
): Promise<PruneResult> {
  return lockedStore(context, { command: 'prune' }, async () => {
    await settleUnfinished(context, options)
    refuseDamagedPacks(context)
    await refuseStrayed(context)
    const { place, env } = context
    const before = bytesOf(env, place.directory)
    if (!options.dryRun) {
      sweepHalfMade(env, place.directory)
      sweepRemoved(context)
    }
    const plans = await planAll(context, options)
    const shared = await leaveShared(plans)
    if (shared.turns + shared.byHand > 0)
      context.warnings.push(
        `Past its time, and kept: ${countedWords(shared)}. What was pulled or imported beside the own history goes on from there.`,
      )
    const removed = plans.flatMap(({ context: one, sessions }) =>
      sessions.flatMap(({ timeline, visible, abandoned }) =>
        [...visible, ...abandoned].map((turn) => ({
          session: timeline.session,
          turn: turn.number,
          worktree: one.place.worktreeId,
        })),
      ),
    )
    const byHand = plans.flatMap((plan) =>
      goneByHand(plan).map(({ id }) => ({ checkpoint: id, worktree: plan.context.place.worktreeId })),
    )
    const kept = plans.reduce(
      (sum, plan) =>
        sum +
        plan.sessions.reduce(
          (n, one) =>
            n + one.timeline.turns.length + one.timeline.abandoned.length - one.visible.length - one.abandoned.length,
          0,
        ),
      0,
    )
    if (options.dryRun) {
      const bytesFreed = bytesLeftBehind(context) + (await estimate(context, plans))
      return { dryRun: true, removed, byHand, bytesFreed, kept, warnings: context.warnings }
    }
    await env.progress('pruning: choosing')
    await cut(context, plans)
    gone.removed.push(...removed)
    gone.byHand.push(...byHand)
    if (options.downTo !== undefined) {
      const turns = plans.flatMap(({ sessions }) => sessions.flatMap(({ visible }) => visible)).length
      noteWent(env, context.store.gitDir, { turns, byHand: byHand.length })
    }
    await env.progress('pruning: packing')
    await collect(context).catch((cause: unknown) => {
      throw gone.removed.length + gone.byHand.length === 0 ? cause : notPacked(gone, cause)
    })
    const most = options.maxBytes ?? context.config.store.maxBytes
    const after = count(context, most)
    if (after <= most) noteWithin(env, context.store.gitDir)
    else context.warnings.push('The store is still over its limit of bytes: what is left is held by what stays.')
    return {
      dryRun: false,
      ...gone,
      bytesFreed: Math.max(0, before - after),
      kept,
      warnings: context.warnings,
    }
  })
}

export const removedWords = ({ removed, byHand }: Gone): string =>
  countedWords({ turns: removed.length, byHand: byHand.length })

function notPacked(gone: Gone, cause: unknown): CkptError {
  const what = `${removedWords(gone)} ${gone.removed.length + gone.byHand.length === 1 ? 'was' : 'were'}`
  return new CkptError(
    cause instanceof CkptError ? cause.code : 'INTERNAL',
    `${what} removed, but the space is not free yet: ${reasonOf(cause)} The next prune goes on from there.`,
    { cause, hints: ['ckpt verify', 'ckpt prune'] },
  )
}
