/** What an agent, or its adapter, tells of its work, and what recording it gave. */
import type { Beside } from './beside.ts'
import type { Checkpoint, PromptKind, TurnStatus } from './checkpoint.ts'
import type { SessionId, TurnNumber } from './ids.ts'

interface MarkerBase {
  session: SessionId
  /** Made by the client; a retry carries it again. */
  marker?: string
  messageId?: string
  /** It waited in a file while the lock was held: its snapshot is younger than it. */
  late?: boolean
  /** It is taken from the agent's own record, a while after it happened. */
  imported?: boolean
  /** When its client handed it over, if that was a while ago; ISO 8601, UTC. A turn that began since goes before. */
  handedAt?: string
}

export interface PromptMarker extends MarkerBase {
  event: 'prompt'
  kind?: PromptKind
  parent?: string
  agent?: string
  text?: string
  /** The message id of the turn that this prompt closes, where nothing told of its end. */
  closes?: string
  /** Nobody's words: the agent hears of a task that it runs in the background, and goes on with its last turn. */
  notice?: boolean
}

export interface StepMarker extends MarkerBase {
  event: 'step'
  start?: boolean
  tool?: string
  /** Worktree paths, latin1 bytes. */
  paths?: string[]
  callId?: string
  /** A subagent's: of its turn also after that ended. */
  subagent?: boolean
  /** The beginning of `marker`, of an agent without ids of its own: a step that says the same, and after which nothing changed, is this one. */
  echo?: string
  /** The `marker` of its turn's prompt, where the client knows it: it is of no other; a start after an unheard prompt opens that turn. */
  turn?: string
}

export interface StopMarker extends MarkerBase {
  event: 'stop'
  status?: Exclude<TurnStatus, 'running'>
  /** The `marker` of its turn's prompt, where the client knows it: it ends no other, and says how that ended even late. */
  turn?: string
  /** Says that no turn runs any more (a session's end): nothing where none does. */
  onlyRunning?: boolean
  /** How many agents work on in the background, where the client knows. */
  background?: number
  /** The session that this one was forked from, where only the end of a turn tells. */
  parent?: string
}

export type Marker = PromptMarker | StepMarker | StopMarker

export interface MarkResult {
  /** Null: checkpoints are switched off, or it came to nothing. */
  checkpoint: Checkpoint | null
  /** It came to nothing, for a turn began after it was handed over. */
  overtaken?: boolean
  /** Coverage of the checkpoint, and of the turn's `before` when it ends one. */
  beside: Beside | null
  since: Beside | null
  turn: TurnNumber | null
  ms: number
  mode: 'fast' | 'scan'
  barrier: 'ok' | 'timeout' | 'none'
  abandoned: TurnNumber[]
  /** A prompt cleared the boundary, also where a step was undone and no turn is abandoned. */
  cleared: boolean
  /** Directories of the worktree that the scan looked through; 0 where none was needed. */
  directories: number
  warnings: string[]
}
