/** Status: where this worktree stands, read without changing anything. */

import { bytesText } from '../../config/units.ts'
import type { Uncovered } from '../../core/beside.ts'
import type { Checkpoint } from '../../core/checkpoint.ts'
import type { SessionId } from '../../core/ids.ts'
import type { HeadState } from '../../git/head.ts'
import { latestSession } from '../../git/history.ts'
import { hasUncommittedChanges } from '../../git/repository.ts'
import { type HookError, lastHookError, stateLog } from '../hook/log.ts'
import { besideOf, newestCheckpoint } from '../record/record.ts'
import { unlessUntold } from '../record/uncommitted.ts'
import { isLeftOver } from '../recovery/unfinished.ts'
import { bytesOf } from '../store/size.ts'
import { countedWords, readWent } from '../store/went.ts'
import { type Context, headOf } from '../worktree/context.ts'
import { toldBegunAnew } from '../worktree/gone.ts'
import { toldLeftBehind } from '../worktree/place.ts'
import { readRefs } from '../worktree/sessions.ts'
import { passingOver, type SessionView, viewSessions } from './history.ts'

export interface StatusResult {
  root: string
  gitDir: string | null
  worktree: string
  sessions: SessionView[]
  /** The session that is meant where none is named. */
  latest: SessionId | null
  /** The pending boundary that was touched last. */
  boundary: SessionView | null
  store: { path: string; bytes: number; checkpoints: number }
  durable: boolean
  newest: Checkpoint | null
  uncovered: Uncovered[]
  ignoredCount: number
  /** Null: git cannot tell. */
  dirty: boolean | null
  head: HeadState
  unfinished: boolean
  /** What went wrong last in an agent's hook. */
  lastHookError: HookError | null
  warnings: string[]
}

/** Nobody hears of it from an agent's hooks. */
const SWITCHED_OFF =
  'Checkpoints are switched off here (enableFileCheckpointing): no turn is recorded, and none can be undone later.'

export async function status(context: Context): Promise<StatusResult> {
  const { env, repository, store, place, worktree } = context
  const refs = await readRefs(context)
  const [sessions, head, dirty] = await Promise.all([
    viewSessions([{ context, refs }]),
    headOf(context),
    repository ? unlessUntold(context, hasUncommittedChanges(env, repository)) : false,
  ])
  const newest = context.exists ? await newestCheckpoint(context, refs) : null
  const beside = newest ? await passingOver(context)(() => besideOf(context, newest), null) : null
  const bytes = context.exists ? bytesOf(env, place.directory) : 0
  const { maxBytes } = context.config.store
  if (bytes > maxBytes)
    context.warnings.push(
      `The store holds ${bytesText(bytes)}, more than store.maxBytes (${bytesText(maxBytes)}): ckpt prune removes the oldest turns and checkpoints by hand. A tenth over it large new content is left out.`,
    )
  const went = context.exists ? readWent(env, store.gitDir) : null
  if (went)
    context.warnings.push(
      `The oldest went since ${new Date(went.since).toISOString().slice(0, 10)}, for the store was over store.maxBytes (${bytesText(maxBytes)}): ${countedWords(went)}. With a larger limit more are kept.`,
    )
  if (context.exists) context.warnings.push(...toldLeftBehind(env, context))
  const anew = context.exists ? toldBegunAnew(env, place.directory) : null
  if (anew) context.warnings.push(`${anew} To say that it stays: ckpt init`)
  if (!context.config.enableFileCheckpointing) context.warnings.push(SWITCHED_OFF)
  const pending = sessions
    .filter((view) => view.timeline.boundary !== null)
    .sort((a, b) => (b.timeline.boundaryCheckpoint?.seq ?? 0) - (a.timeline.boundaryCheckpoint?.seq ?? 0))
  return {
    root: worktree.root,
    gitDir: repository?.gitDir ?? null,
    worktree: place.worktreeId,
    sessions,
    latest: latestSession(refs),
    boundary: pending[0] ?? null,
    store: {
      path: place.directory,
      bytes,
      checkpoints: context.exists ? await countCheckpoints(context) : 0,
    },
    durable: context.exists ? store.durable : true,
    newest,
    uncovered: beside?.uncovered ?? [],
    ignoredCount: beside?.ignored.size ?? 0,
    dirty,
    head,
    unfinished: context.exists && isLeftOver(context),
    lastHookError: lastHookError(env, [store.worktreeDir, stateLog(env)], worktree.root),
    warnings: context.warnings,
  }
}

async function countCheckpoints({ store }: Context): Promise<number> {
  const out = await store.git(['rev-list', '--count', '--glob=refs/ckpt'])
  return Number(out.toString('latin1').trim())
}
