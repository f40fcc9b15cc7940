/**
 * What undoes and redoes a session. The default is ckpt itself; an agent with an undo of its own can be another. A backend
 * says what it can by capabilities, and leaves out the functions it has no use for: asking for those is UNSUPPORTED.
 * Turns, what is undone, and what a turn did are read from the backend where it keeps them itself, else from ckpt's own
 * checkpoints. Checkpoints, restore and switch always go by ckpt's own.
 */
import type { Capabilities } from '../core/capabilities.ts'
import type { SessionId } from '../core/ids.ts'
import type { OwnSession } from '../core/own-session.ts'
import type { AcceptResult } from '../ops/change/accept.ts'
import type { ChangeResult } from '../ops/change/change.ts'
import type { RedoOptions } from '../ops/change/redo.ts'
import type { UndoOptions } from '../ops/change/undo.ts'
import type { DiffResult } from '../ops/history/diff.ts'
import type { Context } from '../ops/worktree/context.ts'

export interface How {
  /** Milliseconds of the monotonic clock when the call came. */
  arrived: number
  /** The fingerprint of a dry run's plan: any other plan is refused. */
  expected?: string
}

export interface Backend {
  /** What `ckpt capabilities` calls it, and what a session's record says. */
  readonly name: string
  /** What it can do in a session; null: in one that it does not know. */
  capabilities: (session: SessionId | null, context: Context) => Capabilities | Promise<Capabilities>
  /** The session as it keeps it itself; null: ckpt's own checkpoints are its turns. */
  read?: (context: Context, session: SessionId) => Promise<OwnSession | null>
  /** What a turn of a session that it keeps itself did, by its number; the last visible one unless told. */
  diff?: (context: Context, session: SessionId, turn: number | null) => Promise<DiffResult>
  /** Takes turns back: one boundary, hidden turns, files as they were. */
  undo?: (context: Context, options: UndoOptions, how: How) => Promise<ChangeResult>
  /** The exact inverse of the last undo. */
  redo?: (context: Context, options: RedoOptions, how: How) => Promise<ChangeResult>
  /** Keeps the undone state: the boundary is cleared. */
  accept?: (context: Context, session: string | undefined) => Promise<AcceptResult>
}
