/** The result of an undo or redo that a backend carried out itself. */
import type { SessionId, TurnNumber } from '../core/ids.ts'
import { hiddenOwnTurns, type OwnSession } from '../core/own-session.ts'
import { pathFromText } from '../core/paths.ts'
import type { ToldAction } from '../core/plan.ts'
import type { ChangeResult } from '../ops/change/change.ts'
import type { Context } from '../ops/worktree/context.ts'

export interface OwnChange {
  before: OwnSession
  after: OwnSession
  dryRun: boolean
  files: readonly ToldAction[]
  summary?: { files: number; insertions: number; deletions: number }
  restoredPrompt: string | null
  messageId: string | null
  safety: string | null
  arrived: number
}

export function ownChange({ env, warnings }: Context, change: OwnChange): ChangeResult {
  const { before, after, dryRun, files, summary, restoredPrompt, messageId, safety, arrived } = change
  const [was, is] = [new Set(numbers(before)), new Set(numbers(after))]
  const moved = [...is].filter((n) => !was.has(n)).concat([...was].filter((n) => !is.has(n)))
  const cut = [before.boundary, after.boundary].flatMap((one) => (one?.step == null ? [] : [one.turn as TurnNumber]))
  return {
    session: after.session,
    dryRun,
    turns: [...new Set([...moved, ...cut])].sort((a, b) => a - b),
    boundary: headOf(after),
    restoredPrompt,
    files: [...files],
    ...(summary ? { summary } : {}),
    safety,
    ms: env.monotonic() - arrived,
    syncMs: 0,
    warnings,
    messageId,
  }
}

const numbers = (own: OwnSession) => hiddenOwnTurns(own).map(({ number }) => number as TurnNumber)

function headOf(own: OwnSession): ChangeResult['boundary'] {
  if (!own.boundary) return null
  const { turn, step, messageId } = own.boundary
  const session: SessionId = own.session
  return { record: { session, turn: turn as TurnNumber, step, messageId, baseline: null }, hidden: numbers(own) }
}

export const toldPath = (path: string): string => pathFromText(path)
