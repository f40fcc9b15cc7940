/** Results as the JSON of the contract. Pure. */
import type { Beside, Uncovered } from '../core/beside.ts'
import { uncoveredChanges } from '../core/beside.ts'
import type { BoundaryHead } from '../core/boundary.ts'
import type { Checkpoint } from '../core/checkpoint.ts'
import type { TurnNumber } from '../core/ids.ts'
import type { MarkResult } from '../core/marker.ts'
import { type RelativePath, showPath } from '../core/paths.ts'
import type { ToldAction } from '../core/plan.ts'
import { endOf, hiddenTurns, messageIdOf, type Timeline, visibleTurns } from '../core/timeline.ts'
import type { FileDiff } from '../git/diff.ts'
import type { ChangeResult } from '../ops/change/change.ts'
import type { DiffResult } from '../ops/history/diff.ts'
import type { SessionView, ShowResult, TurnView } from '../ops/history/history.ts'

import type {
  BoundaryInfo,
  ChangeInfo,
  CheckpointInfo,
  DiffInfo,
  FileActionInfo,
  FileDiffInfo,
  MarkInfo,
  SessionInfo,
  ShowInfo,
  TurnInfo,
  UncoveredPath,
} from './shapes.ts'

/** The worktree itself is `.`. */
export const uncoveredJson = ({ path, reason }: Pick<Uncovered, 'path' | 'reason'>): UncoveredPath => ({
  ...showPath(path === '' ? '.' : path),
  reason,
})

export function checkpointJson(
  checkpoint: Checkpoint,
  { beside, since, durable }: { beside: Beside | null; since: Beside | null; durable: boolean },
): CheckpointInfo {
  const changed = since && beside ? uncoveredChanges(since, beside).filter((entry) => entry.reason === 'ignored') : []
  const uncovered = [...(beside?.uncovered ?? []), ...changed]
  return {
    id: checkpoint.id,
    kind: checkpoint.kind,
    turn: checkpoint.turn ?? null,
    step: checkpoint.step === undefined ? null : `${checkpoint.turn}.${checkpoint.step}`,
    session: checkpoint.session,
    time: checkpoint.time,
    tree: checkpoint.tree,
    durable,
    degraded: checkpoint.degraded ?? false,
    uncovered: uncovered.map(uncoveredJson),
    ignoredCount: beside?.ignored.size ?? 0,
    ...(checkpoint.late ? { late: true } : {}),
    head: checkpoint.head ?? null,
    branch: checkpoint.branch ?? null,
  }
}

export function markJson(result: MarkResult, durable: boolean): MarkInfo {
  const { checkpoint, beside, since, turn, ms, mode, barrier, abandoned, warnings } = result
  return {
    checkpoint: checkpoint ? checkpointJson(checkpoint, { beside, since, durable }) : null,
    turn,
    ms: round(ms),
    mode,
    barrier,
    abandoned,
    warnings,
  }
}

const round = (ms: number) => Math.round(ms * 100) / 100

export function turnJson(view: TurnView, worktree: string): TurnInfo {
  const { turn } = view
  const end = turn.after && endOf(turn)
  return {
    n: turn.number,
    id: turn.id,
    messageId: messageIdOf(turn),
    prompt: view.description,
    agent: turn.before.agent ?? null,
    session: turn.session,
    worktree,
    status: turn.status,
    hidden: turn.hidden,
    abandoned: turn.abandoned,
    startedAt: turn.before.time,
    endedAt: end?.time ?? null,
    before: turn.before.id,
    after: end?.id ?? null,
    steps: turn.steps.map((step) => ({
      n: `${turn.number}.${step.number}`,
      id: (step.end ?? step.start)!.id,
      tool: step.end?.tool ?? step.start?.tool ?? null,
      paths: (view.stepPaths.get(step.number) ?? []).map((path) => showPath(path).path),
      messageId: step.end?.messageId ?? step.start?.messageId ?? null,
      hidden: turn.hidden || (turn.hiddenFromStep !== null && step.number >= turn.hiddenFromStep),
    })),
    stat: view.stat,
    unclaimed: view.unclaimed.map((path) => showPath(path).path),
    ...(turn.before.promptKind ? { kind: turn.before.promptKind } : {}),
    ...(turn.after?.inferred ? { endInferred: true } : {}),
  }
}

function boundaryJson(record: BoundaryHead, hidden: readonly TurnNumber[]): BoundaryInfo {
  return {
    session: record.session,
    turn: record.turn,
    step: record.step === null ? null : `${record.turn}.${record.step}`,
    messageId: record.messageId,
    hiddenTurns: [...hidden],
    baseline: record.baseline,
  }
}

export function timelineBoundary(timeline: Timeline): BoundaryInfo | null {
  if (!timeline.boundary) return null
  const hidden = hiddenTurns(timeline).map((turn) => turn.number)
  return boundaryJson(timeline.boundary, hidden)
}

export function sessionJson({ timeline, worktree, state }: SessionView): SessionInfo {
  return {
    id: timeline.session,
    agent: timeline.agent,
    parent: timeline.parent,
    worktree,
    state,
    turns: visibleTurns(timeline).length,
    boundary: timelineBoundary(timeline),
  }
}

export function actionJson({ path, action, reason }: ToldAction): FileActionInfo {
  return { ...showPath(path), action, ...(reason === undefined ? {} : { reason }) }
}

export function changeJson(result: ChangeResult): ChangeInfo {
  const { session, dryRun, turns, boundary, restoredPrompt, files, summary, safety, token, ms, syncMs, warnings } =
    result
  return {
    session,
    dryRun,
    turns,
    boundary: boundary ? boundaryJson(boundary.record, boundary.hidden) : null,
    restoredPrompt,
    messageId: result.messageId,
    ...(result.agent === undefined ? {} : { agent: result.agent }),
    files: files.map(actionJson),
    ...(summary ? { summary } : {}),
    safety,
    ...(token === undefined ? {} : { token }),
    ms: round(ms),
    syncMs: round(syncMs),
    warnings,
  }
}

export function fileDiffJson({ path, oldPath, status, insertions, deletions, binary }: FileDiff): FileDiffInfo {
  return {
    ...showPath(path),
    ...(oldPath === undefined ? {} : oldPathJson(oldPath)),
    status,
    insertions,
    deletions,
    binary,
  }
}

export function diffJson(
  { from, to, files, patch, checkpoints, warnings }: DiffResult,
  { durable }: { durable: boolean },
): DiffInfo {
  const told = checkpoints?.map(({ checkpoint, beside }) =>
    checkpointJson(checkpoint, { beside, since: null, durable }),
  )
  return { from, to, files: files.map(fileDiffJson), patch, ...(told ? { checkpoints: told } : {}), warnings }
}

export function showJson(
  { turn, checkpoint, beside, files, uncovered, prompt, warnings }: ShowResult,
  { durable }: { durable: boolean },
): ShowInfo {
  const changed = uncovered.map(uncoveredJson)
  const differences = files.map(fileDiffJson)
  if (turn)
    return {
      turn: { ...turnJson(turn, turn.worktree), text: turn.text },
      files: differences,
      uncovered: changed,
      warnings,
    }
  const shown = checkpoint ? checkpointJson(checkpoint, { beside, since: null, durable }) : null
  return {
    checkpoint: shown && {
      ...shown,
      uncovered: [...shown.uncovered, ...changed.filter((entry) => entry.reason === 'ignored')],
    },
    files: differences,
    prompt,
    warnings,
  }
}

function oldPathJson(oldPath: RelativePath): Pick<FileDiffInfo, 'oldPath' | 'oldPathBase64'> {
  const { path, pathBase64 } = showPath(oldPath)
  return { oldPath: path, ...(pathBase64 === undefined ? {} : { oldPathBase64: pathBase64 }) }
}
