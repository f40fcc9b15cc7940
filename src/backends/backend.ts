/**
 * What undoes and redoes a session. The default is ckpt itself; an agent with an undo of its own can be another. A backend
 * says what it can by capabilities, and leaves out the functions it has no use for: asking for those is UNSUPPORTED.
 * Reading (turns, diffs, checkpoints), restore and switch go by ckpt's own checkpoints, whatever the backend is.
 */
import type { Capabilities } from '../core/capabilities.ts'
import type { SessionId } from '../core/ids.ts'
import type { Context } from '../ops/context.ts'
import type { AcceptResult, RedoOptions } from '../ops/redo.ts'
import type { ChangeResult, UndoOptions } from '../ops/undo.ts'

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
  capabilities: (session: SessionId | null) => Capabilities
  /** Takes turns back: one boundary, hidden turns, files as they were. */
  undo?: (context: Context, options: UndoOptions, how: How) => Promise<ChangeResult>
  /** The exact inverse of the last undo. */
  redo?: (context: Context, options: RedoOptions, how: How) => Promise<ChangeResult>
  /** Keeps the undone state: the boundary is cleared. */
  accept?: (context: Context, session: string | undefined) => Promise<AcceptResult>
}
