/** Sessions that a backend keeps itself, as the JSON of the contract. Pure. */
import { describePrompt } from '../core/checkpoint.ts'
import {
  hiddenOwnTurns,
  isHidden,
  isStepHidden,
  type OwnSession,
  type OwnTurn,
  visibleOwnTurns,
} from '../core/own-session.ts'
import type { BoundaryInfo, SessionDetails, SessionInfo, TurnInfo, TurnList } from './shapes.ts'

function ownTurnJson(own: OwnSession, turn: OwnTurn, worktree: string): TurnInfo {
  return {
    n: turn.number,
    id: turn.messageId,
    messageId: turn.messageId,
    prompt: describePrompt(turn.text, turn.startedAt),
    agent: own.agent,
    session: own.session,
    worktree,
    status: turn.status,
    hidden: isHidden(own, turn),
    abandoned: false,
    startedAt: turn.startedAt,
    endedAt: turn.endedAt,
    before: null,
    after: null,
    steps: turn.steps.map((step) => ({
      n: `${turn.number}.${step.number}`,
      id: step.id,
      tool: step.tool,
      paths: [],
      messageId: step.messageId,
      hidden: isStepHidden(own, turn, step),
    })),
    stat: null,
    unclaimed: [],
  }
}

export function ownBoundaryJson(own: OwnSession): BoundaryInfo | null {
  const { boundary } = own
  if (!boundary) return null
  return {
    session: own.session,
    turn: boundary.turn,
    step: boundary.step === null ? null : `${boundary.turn}.${boundary.step}`,
    messageId: boundary.messageId,
    hiddenTurns: hiddenOwnTurns(own).map(({ number }) => number),
    baseline: null,
  }
}

/** Newest first. */
export function ownTurnsJson(
  own: OwnSession,
  { worktree, hidden = false, limit }: { worktree: string; hidden?: boolean; limit?: number },
): Pick<TurnList, 'session' | 'turns' | 'boundary'> {
  const shown = (hidden ? [...own.turns] : visibleOwnTurns(own)).reverse().slice(0, limit)
  return {
    session: own.session,
    turns: shown.map((turn) => ownTurnJson(own, turn, worktree)),
    boundary: ownBoundaryJson(own),
  }
}

export function ownSessionJson(own: OwnSession, worktree: string): SessionInfo {
  return {
    id: own.session,
    agent: own.agent,
    parent: own.parent,
    worktree,
    state: own.state,
    turns: visibleOwnTurns(own).length,
    boundary: ownBoundaryJson(own),
  }
}

export function ownDetailsJson(own: OwnSession, worktree: string): SessionDetails {
  const first = own.turns.find(({ number }) => number === own.boundary?.turn)
  return {
    ...ownSessionJson(own, worktree),
    revertMessageID: own.boundary?.messageId ?? null,
    revertPartID: own.boundary?.partId ?? null,
    revertDiff: own.diff,
    hiddenTurns: hiddenOwnTurns(own).map((turn) => ownTurnJson(own, turn, worktree)),
    restoredPrompt: first?.text ?? null,
  }
}
