/** Every agent that is known. Each is loaded when it is asked for. */
import type { Agent } from './agent.ts'

const agents: Record<string, () => Promise<Agent>> = {
  claude: async () => (await import('./claude.ts')).claude,
  codex: async () => (await import('./codex.ts')).codex,
  opencode: async () => (await import('./opencode.ts')).opencode,
  gemini: async () => (await import('./gemini.ts')).gemini,
  cursor: async () => (await import('./cursor.ts')).cursor,
}

/** Those that keep a record of their conversations which can be read ({@link Agent.transcripts}). */
export const TRANSCRIBED: readonly string[] = ['claude']

export const AGENT_NAMES: readonly string[] = Object.keys(agents)

/** Null: nobody of that name. */
export async function findAgent(name: string): Promise<Agent | null> {
  return Object.hasOwn(agents, name) ? agents[name]!() : null
}
