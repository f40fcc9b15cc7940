/** The public library: undo and redo of what agents do in a worktree, on the same engine as the command line. */
export type { Backend, How } from './backends/backend.ts'
export type * from './calls/requests.ts'
export { CAPABILITIES, type Capabilities, type Capability, withCapabilities } from './core/capabilities.ts'
export { CkptError, type ErrorCode, EXIT_CODES } from './core/errors.ts'
export type { OwnSession, OwnStep, OwnTurn } from './core/own-session.ts'
export type {
  CheckpointSummary,
  CkptEvent,
  CliAnswer,
  CliCall,
  DaemonState,
  EventMessage,
  EventType,
  Hello,
  Position,
  ProgressMessage,
  Subscribed,
  SubscribeRequest,
  TurnSummary,
  Welcome,
} from './daemon/protocol.ts'
export {
  type CommandOptions,
  type ConnectOptions,
  connectDaemon,
  DaemonClient,
  type SubscribeOptions,
} from './library/client.ts'
export { type KeyStream, onDoubleEscape } from './library/double-escape.ts'
export {
  type CallOptions,
  type Options,
  Sessions,
  Snapshots,
  WorktreeFunctions,
} from './library/facade.ts'
export { type RewindMenuOptions, type RewindOutcome, rewindMenu } from './library/rewind-menu.ts'
export { type OpenWorktreeOptions, openWorktree, Worktree } from './library/worktree.ts'
export type * from './results/shapes.ts'
