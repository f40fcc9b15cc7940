/** What a caller asks for: the parameters of the library's functions and of the protocol's methods. */

/** Whose session; the one of the newest turn marker in the worktree unless told. */
export interface SessionRequest {
  /** The agent's own session id, a prefix that only it has, or `latest`. */
  session?: string | undefined
}

/** What happens where files differ from what the turn left. `refuse` (CONFLICT) unless told. */
export type ConflictChoice =
  /** Nothing at all is written. */
  | 'refuse'
  /** Conflict markers are written where both sides changed the same lines. */
  | 'merge'
  /** The other state is taken; the safety checkpoint keeps what was there. */
  | 'force'
  /** Those paths are left as they are. */
  | 'skip'

export interface TrackRequest {
  /** What to call the checkpoint. */
  message?: string | undefined
}

export interface PatchRequest extends SessionRequest {
  /** A turn (`3`), a step (`3.2`), `3:before`, `3:after`, or a checkpoint. */
  from: string
}

export interface RestoreRequest extends SessionRequest {
  /** A turn (`3`), a step (`3.2`), `3:before`, `3:after`, or a checkpoint. */
  id: string
  /** Also deletes what the checkpoint provably does not have. */
  exact?: boolean | undefined
  /** Over changes since the worktree's newest checkpoint too. */
  force?: boolean | undefined
  /** Files and directories; all unless told. */
  paths?: string[] | undefined
  /** Only plans. */
  dryRun?: boolean | undefined
}

export interface RevertPatchRequest extends SessionRequest {
  /** What `patch` gave. */
  patch: { from: string; files: { path: string; pathBase64?: string | undefined }[] }
  /** Over changes since the worktree's newest checkpoint too. */
  force?: boolean | undefined
  dryRun?: boolean | undefined
}

/**
 * Without `from`: with a `session`, of the request or of the worktree, all that it did, with its checkpoints; without one what
 * the last turn did. With `from` alone: what that turn or checkpoint did.
 */
export interface DiffRequest extends SessionRequest {
  from?: string | undefined
  /** A checkpoint or turn, or `worktree`. */
  to?: string | undefined
  paths?: string[] | undefined
}

export interface CleanupRequest {
  /** Visible turns to keep in each session. */
  keep?: number | undefined
  /** Milliseconds: older visible turns go. */
  olderThan?: number | undefined
  /** Bytes: the oldest turns go until the store is no larger. */
  maxBytes?: number | undefined
  dryRun?: boolean | undefined
}

/** At most one of `turns`, `to`, `step` and `only`. */
export interface UndoRequest extends SessionRequest {
  /** How many turns; 1 unless told. */
  turns?: number | undefined
  /** Back to before this turn or step, or to this checkpoint. */
  to?: string | undefined
  /** Only the last step that changed something. */
  step?: boolean | undefined
  /** This turn alone; later ones stay, and there is no boundary. */
  only?: string | undefined
  /** Only these; there is no boundary then. */
  paths?: string[] | undefined
  conflicts?: ConflictChoice | undefined
  /** Also what changed during the turn outside its steps. */
  unclaimed?: boolean | undefined
  /** Closes a running turn as interrupted first. */
  interrupt?: boolean | undefined
  dryRun?: boolean | undefined
}

/** At most one of `turns` and `all`. */
export interface RedoRequest extends SessionRequest {
  /** How many turns; 1 unless told. */
  turns?: number | undefined
  all?: boolean | undefined
  conflicts?: ConflictChoice | undefined
  dryRun?: boolean | undefined
}

export interface RevertRequest extends SessionRequest {
  /** The agent's message id of a turn, or a turn's id or number. */
  messageId: string
  /** A step of that turn, by the agent's message or call id, or by its number. */
  partId?: string | undefined
  conflicts?: ConflictChoice | undefined
  unclaimed?: boolean | undefined
  interrupt?: boolean | undefined
  dryRun?: boolean | undefined
}

export interface UnrevertRequest extends SessionRequest {
  conflicts?: ConflictChoice | undefined
  dryRun?: boolean | undefined
}

export interface TurnsRequest extends SessionRequest {
  /** Undone turns too. */
  hidden?: boolean | undefined
  /** Abandoned turns too. */
  abandoned?: boolean | undefined
  limit?: number | undefined
}

export interface ShowRequest extends SessionRequest {
  /** A turn (`3`), a step (`3.2`), `3:before`, `3:after`, or a checkpoint. */
  id: string
}

export interface SwitchRequest extends ShowRequest {
  /** Over changes since the worktree's newest checkpoint too. */
  force?: boolean | undefined
  dryRun?: boolean | undefined
}

export interface ApplyRequest {
  /** From a dry run. */
  token: string
}

export interface SetBackendRequest {
  /** Exactly. */
  session: string
  /** A backend's name; null: the default one. */
  backend: string | null
}

interface MarkerRequest {
  /** The agent's own session id, exactly. */
  session: string
  /** The same id again is the same marker. */
  messageId?: string | undefined
  /** Made by the client; a retry carries it again. */
  marker?: string | undefined
}

/** A turn starts. */
export interface PromptMark extends MarkerRequest {
  event: 'prompt'
  kind?: 'prompt' | 'command' | 'shell' | 'compaction' | undefined
  /** The session that this one was forked from. */
  parent?: string | undefined
  /** Who works. */
  agent?: string | undefined
  text?: string | undefined
}

/** A tool call is about to begin, or is done. */
export interface StepMark extends MarkerRequest {
  event: 'step'
  start?: boolean | undefined
  tool?: string | undefined
  /** What the tool changes, relative to the worktree's root. */
  paths?: string[] | undefined
  callId?: string | undefined
}

/** A turn ends. */
export interface StopMark extends MarkerRequest {
  event: 'stop'
  status?: 'completed' | 'interrupted' | 'failed' | undefined
}

export type MarkRequest = PromptMark | StepMark | StopMark
