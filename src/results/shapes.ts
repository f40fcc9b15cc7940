/**
 * What the command line's JSON, the library and the protocol give back. Times are ISO 8601 in UTC. Paths are relative to
 * the worktree's root and `/`-separated; where a path is not UTF-8, `pathBase64` beside it holds its bytes.
 */
import type { Capabilities } from '../core/capabilities.ts'
import type { ErrorCode } from '../core/errors.ts'

/** A path; `pathBase64` is there where its bytes are not UTF-8. */
export interface PathInfo {
  path: string
  pathBase64?: string | undefined
}

/** Why a path is not in a checkpoint. */
export type UncoveredReason =
  | 'ignored'
  | 'too-large'
  | 'nested-repo'
  | 'special'
  | 'unreadable'
  | 'unrepresentable'
  | 'not-here'
  | 'budget'

/** A path that a checkpoint leaves out. */
export interface UncoveredPath extends PathInfo {
  reason: UncoveredReason
}

/** One recorded state of the worktree. */
export interface CheckpointInfo {
  /** A git object id (40 or 64 hex digits); a unique prefix of at least 4 digits serves wherever an id is asked for. */
  id: string
  kind: 'before' | 'step' | 'after' | 'manual' | 'safety'
  turn: number | null
  /** `3.2`: the second step of turn 3. */
  step: string | null
  session: string
  time: string
  /** The git tree with the files' bytes. */
  tree: string
  /** It survives the user's own gc. */
  durable: boolean
  /** Something could not be captured: `uncovered` says what. */
  degraded: boolean
  /** Ignored paths are not listed one by one: only those that the turn changed or removed. */
  uncovered: UncoveredPath[]
  /** How many ignored paths there were. */
  ignoredCount: number
  /** It came after its turn had ended: outside change. */
  late?: true | undefined
  /** The commit that was checked out. */
  head: string | null
  branch: string | null
}

/** One tool call of a turn. */
export interface StepInfo {
  /** `3.2` */
  n: string
  /** Its checkpoint; its part, in a session that a backend keeps without checkpoints. */
  id: string
  tool: string | null
  /** What it changed. */
  paths: string[]
  messageId: string | null
  /** Undone, not deleted. */
  hidden: boolean
}

/** Lines and files that changed. */
export interface StatInfo {
  files: number
  insertions: number
  deletions: number
}

/** One prompt and what was done for it. */
export interface TurnInfo {
  /** Its number in the session, from 1; never used twice. */
  n: number
  /** `t` and 12 hex digits (the message's id, in a session that a backend keeps): an id of its own, wherever a turn is asked for. */
  id: string
  messageId: string | null
  /** The prompt's beginning on one line, at most 80 characters. */
  prompt: string
  agent: string | null
  session: string
  worktree: string
  status: 'running' | 'completed' | 'interrupted' | 'failed'
  /** Undone, not deleted: redo brings it back. */
  hidden: boolean
  /** The session went on without it. */
  abandoned: boolean
  startedAt: string
  endedAt: string | null
  /** The checkpoints at its two ends; null in a session that a backend keeps without them. */
  before: string | null
  after: string | null
  steps: StepInfo[]
  /** Null: the store lacks what is needed to tell. */
  stat: StatInfo | null
  /** What changed during the turn outside its steps. */
  unclaimed: string[]
  kind?: 'prompt' | 'command' | 'shell' | 'compaction' | undefined
  /** Its end was not reported at its time, but late or not at all: what it left is taken to be the state of then, or before the next prompt. */
  endInferred?: true | undefined
}

/** From where on a session is undone. */
export interface BoundaryInfo {
  session: string
  /** The first turn that is undone, wholly or from `step` on. */
  turn: number
  step: string | null
  messageId: string | null
  /** Numbers of the turns that are hidden. */
  hiddenTurns: number[]
  /** The checkpoint of the state before the first undo; null in a session that a backend keeps without checkpoints. */
  baseline: string | null
}

/** One conversation of one agent in one worktree. */
export interface SessionInfo {
  /** The agent's own id, exactly. */
  id: string
  agent: string | null
  /** The session that it was forked from. */
  parent: string | null
  worktree: string
  state: 'running' | 'idle'
  /** How many turns are visible. */
  turns: number
  boundary: BoundaryInfo | null
}

/** A session, and all that a front end needs to show what is undone in it. */
export interface SessionDetails extends SessionInfo {
  /** The message of the first hidden turn; null: nothing is undone, or the agent named no message. */
  revertMessageID: string | null
  /** The first hidden part (step) of that message, by its message or call id, else `3.2`; null: the whole turn is hidden. */
  revertPartID: string | null
  /** What undoing changed, as a unified diff; empty when nothing is undone. */
  revertDiff: string
  /** Oldest first. */
  hiddenTurns: TurnInfo[]
  /** The whole text of the first hidden prompt, to be put back into an input field. */
  restoredPrompt: string | null
}

/** What a marker or `track` recorded. */
export interface MarkInfo {
  /** Null: checkpoints are switched off here, or there was nothing to record. */
  checkpoint: CheckpointInfo | null
  turn: number | null
  /** Milliseconds from the marker's arrival to its acknowledgement. */
  ms: number
  /** `fast`: only what the watcher named was looked at. */
  mode: 'fast' | 'scan'
  barrier: 'ok' | 'timeout' | 'none'
  /** Hidden turns that were left for good, for the session went on without them. */
  abandoned: number[]
  warnings: string[]
}

/** What a plan does, or would do, to one path. */
export interface FileActionInfo extends PathInfo {
  action: 'write' | 'delete' | 'mode' | 'link' | 'merge' | 'skip' | 'conflict'
  reason?: string | undefined
}

/** What undo, redo, restore, apply and switch did, or would do. */
export interface ChangeInfo {
  session: string
  dryRun: boolean
  turns: number[]
  /** Null: nothing is hidden (any more). */
  boundary: BoundaryInfo | null
  /** The whole text of the first undone prompt. */
  restoredPrompt: string | null
  /** What to rewind in the conversation. */
  messageId: string | null
  /** Whose conversation it is. */
  agent?: string | null | undefined
  files: FileActionInfo[]
  /** Lines and files, from a backend that counts them. */
  summary?: StatInfo | undefined
  /** The checkpoint with what was there before; null: nothing was recorded. */
  safety: string | null
  /** With `dryRun`: `apply` carries out exactly this plan, or refuses. */
  token?: string | undefined
  /** Milliseconds. */
  ms: number
  /** Milliseconds of those spent on syncing to disk. */
  syncMs: number
  warnings: string[]
}

/** One changed file. */
export interface FileDiffInfo extends PathInfo {
  /** Of a rename. */
  oldPath?: string | undefined
  /** The bytes of `oldPath` where they are not UTF-8. */
  oldPathBase64?: string | undefined
  status: 'added' | 'modified' | 'deleted' | 'renamed' | 'type' | 'mode'
  insertions: number
  deletions: number
  binary: boolean
}

/** What lies between two states. */
export interface DiffInfo {
  /** A checkpoint's id, or `worktree`. */
  from: string
  to: string
  files: FileDiffInfo[]
  /** Unified, as git writes it, to be read: bytes that are not UTF-8 are U+FFFD there, and binary files are only named. */
  patch: string
  /** Of a whole session: those of its visible turns, oldest first. */
  checkpoints?: CheckpointInfo[] | undefined
  warnings: string[]
}

/** A changed text file with both its contents; empty where it is not there. */
export interface FileContents extends FileDiffInfo {
  before: string
  after: string
}

/** What lies between two states, with whole contents; binary files are listed without. */
export interface FullDiffInfo {
  from: string
  to: string
  files: FileContents[]
  warnings: string[]
}

/** The paths that changed since a checkpoint. */
export interface PatchInfo {
  /** The checkpoint. */
  from: string
  files: PathInfo[]
}

/** What `cleanup` removed. */
export interface PruneInfo {
  dryRun: boolean
  removed: { session: string; turn: number; worktree: string }[]
  /** Checkpoints by hand that went. */
  byHand: { checkpoint: string; worktree: string }[]
  bytesFreed: number
  /** How many turns are left. */
  kept: number
  warnings: string[]
}

/** What was left for good. */
export interface AcceptInfo {
  session: string | null
  /** Numbers of the turns that were hidden, and are abandoned now. */
  abandoned: number[]
  warnings: string[]
}

/** One turn or checkpoint, whole. */
export interface ShowInfo {
  /** Of a turn; `text` is the whole prompt. */
  turn?: (TurnInfo & { text: string | null }) | undefined
  /** Of a checkpoint. */
  checkpoint?: CheckpointInfo | null | undefined
  files: FileDiffInfo[]
  /** Of a turn: uncovered paths that it changed or removed. */
  uncovered?: UncoveredPath[] | undefined
  /** Of a checkpoint. */
  prompt?: string | null | undefined
  warnings: string[]
}

/** Turns, newest first. */
export interface TurnList {
  session: string | null
  turns: TurnInfo[]
  boundary: BoundaryInfo | null
  warnings: string[]
}

/** What a session can do. */
export interface CapabilitiesInfo {
  session: string | null
  backend: string
  capabilities: Capabilities
  /**
   * False: checkpoints are switched off here. By the configuration: markers and `snapshot` record nothing. By `CKPT_DISABLED`: hooks and
   * wrappers do nothing, and what a marker or `snapshot` asks for is recorded all the same.
   */
  enabled: boolean
}

/** An error as JSON. */
export interface ErrorInfo {
  code: ErrorCode
  /** What is wrong, and what was left untouched. */
  message: string
  paths?: string[] | undefined
  /** What to do next, mostly commands. `…` in one stands for the arguments of the call. */
  hints?: string[] | undefined
}
