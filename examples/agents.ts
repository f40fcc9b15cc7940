// What the chat talks to: a shell whose command lines are the prompts, the Claude Agent SDK, and an OpenCode server.
import { spawnSync } from 'node:child_process'
import { randomUUID } from 'node:crypto'
import { type Backend, openWorktree } from 'ckpt'
import { openClaudeAgent } from 'ckpt/claude-agent-sdk'
import { openCode } from 'ckpt/opencode'

interface Agent {
  backends: Backend[]
  /** Undefined as long as there is none. */
  session: () => string | undefined
  /** Resolves with the last words when the turn is over. */
  send: (prompt: string) => Promise<string>
  close: () => Promise<void>
}

async function shell(directory: string): Promise<Agent> {
  const session = `shell-${randomUUID()}`
  const worktree = await openWorktree(directory)
  return {
    backends: [],
    session: () => session,
    send: async (prompt) => {
      await worktree.mark({ event: 'prompt', session, text: prompt })
      const { stdout, stderr, status } = spawnSync('sh', ['-c', prompt], { cwd: worktree.root, encoding: 'utf8' })
      await worktree.mark({ event: 'stop', session, status: status === 0 ? 'completed' : 'failed' })
      return `${stdout}${stderr}${status === 0 ? '' : `exit ${status}`}`.trim()
    },
    close: async () => undefined,
  }
}

/** `CHAT_SDK`: where the SDK is, if not in this project. `CHAT_CHECKPOINTS=1`: with ckpt's own checkpoints. */
async function claude(directory: string): Promise<Agent> {
  const sdk = await import(process.env.CHAT_SDK ?? '@anthropic-ai/claude-agent-sdk')
  const agent = await openClaudeAgent(directory, {
    sdk,
    options: { permissionMode: 'bypassPermissions', allowDangerouslySkipPermissions: true },
    checkpoints: process.env.CHAT_CHECKPOINTS === '1',
  })
  return {
    backends: [agent.backend],
    session: () => agent.sessionId ?? undefined,
    send: async (prompt) => {
      let said = ''
      for await (const message of agent.query({ prompt })) if (message.type === 'result') said = message.result ?? ''
      return said
    },
    close: async () => undefined,
  }
}

/** `CHAT_OPENCODE`: where `opencode serve` listens. */
async function opencode(directory: string): Promise<Agent> {
  const url = process.env.CHAT_OPENCODE ?? 'http://127.0.0.1:4096'
  const backend = openCode({ url, directory })
  const post = async (path: string, body: object) => {
    const headers = { 'content-type': 'application/json' }
    const where = `${url}${path}?directory=${encodeURIComponent(directory)}`
    return (await fetch(where, { method: 'POST', headers, body: JSON.stringify(body) })).json()
  }
  const session: { id: string } = await post('/session', { title: 'chat' })
  await backend.attach(session.id)
  return {
    backends: [backend.backend],
    session: () => session.id,
    send: async (prompt) => {
      const answer = await post(`/session/${session.id}/message`, { parts: [{ type: 'text', text: prompt }] })
      return answer.parts.map((part: { text?: string }) => part.text ?? '').join('')
    },
    close: async () => undefined,
  }
}

export const agents = { shell, claude, opencode }
