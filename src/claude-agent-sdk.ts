/** `ckpt/claude-agent-sdk`: undo for conversations with the Claude Agent SDK. */
export type { Backend } from './backends/backend.ts'
export {
  ClaudeAgent,
  type ClaudeAgentOptions,
  type ClaudeUndo,
  type ClaudeUndoOptions,
  openClaudeAgent,
} from './wrappers/claude-agent-sdk/agent.ts'
export type { ClaudeAgentEvents } from './wrappers/claude-agent-sdk/conversation.ts'
export type { ClaudeCheckpoint } from './wrappers/claude-agent-sdk/record.ts'
export type { AgentSdk } from './wrappers/claude-agent-sdk/sdk.ts'
