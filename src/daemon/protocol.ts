/** What goes over the daemon's socket: JSON-RPC 2.0 in vscode-jsonrpc's framing. The methods beside these are those of src/calls/. */
import type * as Shapes from '../results/shapes.ts'

/** Raised when a client of the old one would misunderstand the new one. */
export const PROTOCOL = 1

/** JSON-RPC error codes of our own (the standard's are -32700 and -32600 to -32603). */
export const UNAUTHORIZED = -32001
export const WRONG_PROTOCOL = -32002
/** A refusal of ckpt: `data` is its code, message, hints and paths, and what JSON gives beside an error. */
export const REFUSED = -32010

/** Bytes of one message; a larger one ends the connection. */
export const MAX_MESSAGE = 16 * 2 ** 20
/** The same for the first one on a connection, from somebody who may be a stranger. */
export const MAX_FIRST = 4 * 2 ** 20

export interface Hello {
  /** From the daemon's info file, which only its owner can read. */
  token: string
  /** The protocol that the client speaks. */
  protocol: number
  /** Who asks, for the log. */
  client?: string | undefined
}

export interface Welcome {
  protocol: number
  /** Of the program. */
  version: string
  pid: number
  root: string
}

/** A command line, to be run where it was typed. */
export interface CliCall {
  token: string
  argv: string[]
  cwd: string
  vars: Record<string, string>
  /** Standard input, in base64. */
  input?: string | undefined
  terminal: boolean
  columns: number
  /** What takes long is told of in notifications `progress`. */
  progress?: boolean | undefined
}

export interface CliAnswer {
  code: number
  stdout: string
  stderr: string
}

/** The parameters of the notification `progress`: a few words, to be shown until the next ones, or the answer. */
export interface ProgressMessage {
  what: string
}

export interface DaemonState {
  pid: number
  root: string
  version: string
  since: string
  watching: boolean
  watched: number
  why: string | null
  misses: number
  calls: number
}

/** Where a client is in the order of events. */
export interface Position {
  /** Another one after the daemon was started again: numbers then begin anew. */
  epoch: string
  /** The last event that was seen. */
  seq: number
}

export interface SubscribeRequest {
  /** Go on after this one; without it, from now on. */
  after?: Position | undefined
}

export interface Subscribed {
  epoch: string
  /** The next event that will be sent is a later one than this. */
  seq: number
  /** Nothing was missed since `after`. False: the events in between are gone, and what is shown has to be read again. */
  resumed: boolean
}

/** A checkpoint, without its coverage. */
export interface CheckpointSummary {
  id: string
  kind: Shapes.CheckpointInfo['kind']
  turn: number | null
  step: string | null
  time: string
  degraded: boolean
  late: boolean
}

/** A turn as it starts, or comes back. */
export interface TurnSummary {
  n: number
  id: string
  messageId: string | null
  /** The first line of the prompt, at most 80 characters. */
  prompt: string
  agent: string | null
  status: Shapes.TurnInfo['status']
  startedAt: string
}

/** What happened. `session` is the session's id. */
export type CkptEvent =
  | { type: 'session.updated'; session: string; info: Shapes.SessionInfo }
  /**
   * What the session's visible turns changed, told a moment after they last did; at most 1,000 files of `total`. None, where
   * somebody reads late and a newer one follows.
   */
  | { type: 'session.diff'; session: string; files: Shapes.FileDiffInfo[]; total: number }
  | { type: 'turn.added'; session: string; turn: TurnSummary }
  /** `undone`: redo brings it back. `left`: the session went on elsewhere, or it was pruned. */
  | { type: 'turn.removed'; session: string; turn: number; id: string; why: 'undone' | 'left' }
  /** One step of a turn that stays was undone. */
  | { type: 'step.removed'; session: string; step: string; id: string }
  | { type: 'checkpoint.created'; session: string; checkpoint: CheckpointSummary }
  | { type: 'boundary.changed'; session: string; boundary: Shapes.BoundaryInfo | null }
  /** Something that was asked of the daemon was refused, and nothing was written. */
  | { type: 'conflict'; session: string | null; command: string; message: string; paths: string[] }
  | { type: 'prune.done'; removed: Shapes.PruneInfo['removed']; bytesFreed: number; kept: number }

export type EventType = CkptEvent['type']

/** The parameters of the notification `event`. */
export interface EventMessage extends Position {
  /** When it was told; ISO 8601 in UTC. */
  time: string
  event: CkptEvent
}
