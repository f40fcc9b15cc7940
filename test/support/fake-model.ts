/**
 * A model that says what a scenario tells it to: Anthropic Messages, OpenAI Responses and Chat Completions, Gemini
 * generateContent, all streaming, on loopback. It keeps nothing: the last user text with `[turn N]` or `[sub N]` names the
 * script, and the rounds of tool calls since then are the place in it.
 */
import http from 'node:http'
import type { AddressInfo } from 'node:net'
import { setTimeout } from 'node:timers/promises'
import { type Call, DIALECTS, type Dialect, gemini } from './dialects.ts'
import type { Json } from './scratch.ts'

/** What the model does, in no agent's words. */
export type Op =
  | { op: 'write'; path: string; content: string }
  | { op: 'edit'; path: string; old: string; new: string }
  | { op: 'read'; path: string }
  | { op: 'bash'; command: string }
  | { op: 'agent'; prompt: string }
  | { op: 'text'; text: string }
  | { op: 'error'; status: number }

/** Several at once are parallel calls. */
export type Round = Op | Op[]

export interface Script {
  turns: Round[][]
  subs?: Round[][]
}

/** The tool of the client that does this. */
function toCall(op: Op, tools: readonly string[], root: string): Omit<Call, 'id'> {
  const has = (name: string) => tools.includes(name)
  const at = 'path' in op ? `${root}/${op.path}` : ''
  const first = (...choices: [string, Json][]) => {
    const [name, args] = choices.find(([one]) => has(one)) ?? []
    return name === undefined ? null : { name, args }
  }
  const shell = (command: string) =>
    first(
      ['Bash', { command, description: 'scripted' }],
      ['bash', { command, description: 'scripted' }],
      ['run_shell_command', { command, description: 'scripted' }],
      ['exec_command', { cmd: command }],
      ['shell_command', { command }],
    ) ?? { name: 'shell', args: { command: ['bash', '-lc', command] } }
  const patch = (body: string) => {
    const input = `*** Begin Patch\n${body}*** End Patch\n`
    return has('apply_patch') ? { name: 'apply_patch', args: {}, input } : shell(`apply_patch <<'PATCH'\n${input}PATCH`)
  }
  const lines = (sign: string, text: string) =>
    text
      .replace(/\n$/, '')
      .split('\n')
      .map((line) => `${sign}${line}\n`)
      .join('')
  switch (op.op) {
    case 'bash':
      return shell(op.command)
    case 'read':
      return (
        first(['Read', { file_path: at }], ['read', { filePath: at }], ['read_file', { file_path: at }]) ??
        shell(`cat ${op.path}`)
      )
    case 'write': {
      const { content } = op
      return (
        first(
          ['Write', { file_path: at, content }],
          ['write', { filePath: at, content }],
          ['write_file', { file_path: at, content }],
        ) ?? patch(`*** Add File: ${op.path}\n${lines('+', content)}`)
      )
    }
    case 'edit':
      return (
        first(
          ['Edit', { file_path: at, old_string: op.old, new_string: op.new }],
          ['edit', { filePath: at, oldString: op.old, newString: op.new }],
          ['replace', { file_path: at, instruction: 'scripted', old_string: op.old, new_string: op.new }],
        ) ?? patch(`*** Update File: ${op.path}\n@@\n${lines('-', op.old)}${lines('+', op.new)}`)
      )
    case 'agent': {
      const { prompt } = op
      const args = { description: 'scripted', prompt }
      return (
        first(
          ['Agent', { ...args, subagent_type: 'general-purpose' }],
          ['Task', { ...args, subagent_type: 'general-purpose' }],
          ['task', { ...args, subagent_type: 'general' }],
        ) ?? shell('true # no subagents')
      )
    }
    default:
      throw new Error(`${op.op} is no tool`)
  }
}

/** What the script has next for a conversation; a request that is not about a turn gets a word. */
function next(dialect: Dialect, body: Json, { script, root }: { script: Script; root: string }) {
  const said = dialect.said(body)
  const tools = dialect.tools(body)
  let at = -1
  let named: RegExpMatchArray | undefined
  for (const [i, one] of said.entries()) {
    const found = one.kind === 'user' ? [...one.text.matchAll(/\[(turn|sub) (\d+)\]/g)].at(-1) : undefined
    if (found) [at, named] = [i, found]
  }
  const rounds = named && (named[1] === 'sub' ? script.subs : script.turns)?.[Number(named[2]) - 1]
  const isTitle = said.some((one) => one.kind === 'user' && /^Generate a (concise|title)/.test(one.text))
  if (!named || !rounds || tools.length === 0 || isTitle) return { text: 'ok', calls: [], error: 0 }
  // A word ends the turn, and the script goes on when its client has news of a task in the background.
  const done = said.filter(
    (one, i) =>
      i > at &&
      (one.kind === 'call'
        ? said[i - 1]?.kind !== 'call'
        : one.kind === 'user' && /<task-notification>/.test(one.text)),
  ).length
  const round = rounds[done] ?? { op: 'text', text: '(the script is over)' }
  const ops = Array.isArray(round) ? round : [round]
  const stamp = Date.now().toString(36)
  const calls = ops
    .filter(({ op }) => op !== 'text' && op !== 'error')
    .map((op, i) => ({ id: `call_${named[1]}${named[2]}r${done}c${i}${stamp}`, ...toCall(op, tools, root) }))
  return {
    text: ops.find((op) => op.op === 'text')?.text ?? '',
    calls,
    error: ops.find((op) => op.op === 'error')?.status ?? 0,
  }
}

export interface FakeModel {
  url: string
  /** The bodies of requests for a turn, as they came. */
  asked: string[]
  close: () => void
}

/** `root`: where relative paths of the script lie. `thinks`: milliseconds that it takes for an answer in a turn. */
export function fakeModel(script: Script, root: string, thinks = 0): Promise<FakeModel> {
  const asked: string[] = []
  const server = http.createServer((request, response) => {
    const chunks: Buffer[] = []
    request.on('data', (chunk) => chunks.push(chunk))
    request.on('end', async () => {
      const json = (value: Json, status = 200) =>
        response.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify(value))
      const url = request.url ?? ''
      const dialect = request.method === 'POST' ? DIALECTS.find(({ matches }) => matches.test(url)) : undefined
      if (!dialect) {
        if (/count_?tokens/i.test(url)) return json({ input_tokens: 100, totalTokens: 100 })
        if (/\/models/.test(url)) return json({ object: 'list', data: [], models: [] })
        return json({ error: { message: 'not scripted', type: 'not_found' } }, 404)
      }
      const text = Buffer.concat(chunks).toString('utf8')
      const body = JSON.parse(text || '{}')
      const { error, ...reply } = next(dialect, body, { script, root })
      if (error) return json({ type: 'error', error: { type: 'api_error', message: 'scripted error' } }, error)
      asked.push(text)
      if (thinks) await setTimeout(thinks)
      const streams = dialect === gemini ? url.includes('streamGenerateContent') : body.stream
      if (!streams) return json(dialect.whole(reply, body))
      response.writeHead(200, { 'content-type': 'text/event-stream', 'cache-control': 'no-cache' })
      for (const event of dialect.events(reply, body))
        response.write(`${dialect.named ? `event: ${event.type}\n` : ''}data: ${JSON.stringify(event)}\n\n`)
      return response.end(dialect.end ?? '')
    })
  })
  return new Promise((resolve) => {
    server.listen(0, '127.0.0.1', () => {
      const { port } = server.address() as AddressInfo
      resolve({
        url: `http://127.0.0.1:${port}`,
        asked,
        close: () => {
          server.closeAllConnections()
          server.close()
        },
      })
    })
  })
}
