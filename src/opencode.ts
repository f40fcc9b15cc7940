/** `ckpt/opencode`: undo and redo of OpenCode sessions, through a running server. */
export type { Backend } from './backends/backend.ts'
export type { Follower, FollowOptions } from './wrappers/opencode/events.ts'
export { OpenCode, type OpenCodeOptions, openCode } from './wrappers/opencode/opencode.ts'
