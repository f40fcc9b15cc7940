/**
 * A model on loopback for real clients: Anthropic's Messages and OpenAI's Chat Completions, streamed. It does what the
 * last prompt tells it, one tool call a round, and then says `done`. It keeps nothing: the conversation it is sent says
 * how far it is.
 */
import http from 'node:http'
import type { AddressInfo } from 'node:net'
import path from 'node:path'
import { onTestFinished } from 'vitest'

export type Deed =
  | { read: string }
  | { write: string; content: string }
  | { edit: string; old: string; new: string }
  | { bash: string }
  /** Words before the call, in the same message. */
  | { say: string; and: Deed }
  /** Milliseconds until the answer begins. */
  | { wait: number }

/** A prompt that says what is to be done for it. */
export const prompt = (words: string, ...deeds: Deed[]): string => `${words}\n<do>${JSON.stringify(deeds)}</do>`

export interface Model {
  url: string
  /** Of each request that did something: the first lines of the prompts that the client sent along, oldest first. */
  heard: string[][]
}

interface Call {
  id: string
  name: string
  input: Record<string, unknown>
  words?: string
}

/** What a request says, whatever its form: prompts, calls and results in order, and the names of the tools. */
interface Talk {
  items: ({ prompt: string } | 'call' | 'result')[]
  tools: string[]
}

/** Paths in deeds are relative to `root`. Closed when the test is. */
export async function startModel(root: string): Promise<Model> {
  const heard: string[][] = []
  const server = http.createServer(async (request, response) => {
    const chunks: Buffer[] = []
    for await (const chunk of request) chunks.push(chunk as Buffer)
    const body = JSON.parse(Buffer.concat(chunks).toString() || '{}')
    const messages = /\/messages(\?|$)/.test(request.url ?? '')
    const chat = /\/chat\/completions/.test(request.url ?? '')
    if (request.method !== 'POST' || (!messages && !chat)) return json(response, { input_tokens: 1, data: [] })
    const talk = messages ? fromMessages(body) : fromChat(body)
    let found: ReturnType<typeof next>
    try {
      found = next(talk, root)
    } catch (error) {
      response.writeHead(400).end(String(error))
      return
    }
    const { call, wait } = found
    const prompts = talk.items.flatMap((item) => (typeof item === 'object' ? [item.prompt.split('\n')[0]!] : []))
    if (talk.tools.length > 0) heard.push(prompts)
    await new Promise((resolve) => setTimeout(resolve, wait))
    if (messages) asMessage(response, body, call)
    else asChat(response, body, call)
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  onTestFinished(() => {
    server.closeAllConnections()
    server.close()
  })
  return { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`, heard }
}

let calls = 0

function next({ items, tools }: Talk, root: string): { call: Call | null; wait: number } {
  const at = items.findLastIndex((item) => typeof item === 'object' && item.prompt.includes('<do>'))
  const asked = items[at]
  if (typeof asked !== 'object' || tools.length === 0) return { call: null, wait: 0 }
  const deeds = JSON.parse(/<do>([\s\S]*?)<\/do>/.exec(asked.prompt)![1]!) as Deed[]
  const done = items.slice(at).filter((item) => item === 'call').length
  const left = deeds.filter((deed) => !('wait' in deed)).slice(done)
  const wait = deeds.find((deed) => 'wait' in deed)?.wait ?? 0
  return { call: left[0] ? toCall(left[0], tools, root) : null, wait: left[0] ? 0 : wait }
}

function toCall(deed: Deed, tools: string[], root: string): Call {
  const named = (name: string) => tools.find((tool) => tool.toLowerCase() === name)!
  const claude = tools.includes('Write')
  const file = (name: string) => ({ [claude ? 'file_path' : 'filePath']: path.resolve(root, name) })
  const id = `call_${Date.now().toString(36)}_${++calls}`
  if ('read' in deed) return { id, name: named('read'), input: file(deed.read) }
  if ('write' in deed) return { id, name: named('write'), input: { ...file(deed.write), content: deed.content } }
  if ('edit' in deed) {
    const [from, to] = claude ? ['old_string', 'new_string'] : ['oldString', 'newString']
    return { id, name: named('edit'), input: { ...file(deed.edit), [from]: deed.old, [to]: deed.new } }
  }
  if ('bash' in deed) return { id, name: named('bash'), input: { command: deed.bash, description: 'as told' } }
  if ('say' in deed) return { ...toCall(deed.and, tools, root), words: deed.say }
  throw new Error('waiting is no call')
}

const textOf = (content: any): string =>
  typeof content === 'string' ? content : (content ?? []).map((part: any) => part.text ?? '').join('\n')

function fromMessages(body: any): Talk {
  const items = body.messages.flatMap(({ role, content }: any): Talk['items'] => {
    const parts = typeof content === 'string' ? [{ type: 'text', text: content }] : content
    return parts.flatMap((part: any): Talk['items'] => {
      if (part.type === 'tool_use') return ['call']
      if (part.type === 'tool_result') return ['result']
      return role === 'user' && part.text && !part.text.startsWith('<system-reminder>') ? [{ prompt: part.text }] : []
    })
  })
  return { items, tools: (body.tools ?? []).map((tool: any) => tool.name) }
}

function fromChat(body: any): Talk {
  const items = body.messages.flatMap(({ role, content, tool_calls }: any): Talk['items'] => {
    if (tool_calls?.length) return tool_calls.map(() => 'call')
    if (role === 'tool') return ['result']
    return role === 'user' ? [{ prompt: textOf(content) }] : []
  })
  return { items, tools: (body.tools ?? []).map((tool: any) => tool.function?.name) }
}

function json(response: http.ServerResponse, value: unknown): void {
  response.writeHead(200, { 'content-type': 'application/json' }).end(JSON.stringify(value))
}

function stream(response: http.ServerResponse): (value: any) => void {
  response.writeHead(200, { 'content-type': 'text/event-stream', 'cache-control': 'no-cache' })
  return (value) => response.write(`${value.type ? `event: ${value.type}\n` : ''}data: ${JSON.stringify(value)}\n\n`)
}

function asMessage(response: http.ServerResponse, body: any, call: Call | null): void {
  const { words = call ? '' : 'done', ...use } = call ?? {}
  const text = words === '' ? [] : [{ type: 'text', text: words }]
  const content: any[] = call ? [...text, { type: 'tool_use', ...use }] : text
  const stop_reason = call ? 'tool_use' : 'end_turn'
  const usage = { input_tokens: 10, output_tokens: 5 }
  const head = {
    id: `msg_${++calls}`,
    type: 'message',
    role: 'assistant',
    model: body.model,
    stop_sequence: null,
    usage,
  }
  if (!body.stream) {
    json(response, { ...head, content, stop_reason })
    return
  }
  const send = stream(response)
  send({ type: 'message_start', message: { ...head, content: [], stop_reason: null } })
  for (const [index, block] of content.entries()) {
    const isCall = block.type === 'tool_use'
    send({
      type: 'content_block_start',
      index,
      content_block: isCall ? { ...block, input: {} } : { ...block, text: '' },
    })
    const delta = isCall
      ? { type: 'input_json_delta', partial_json: JSON.stringify(block.input) }
      : { type: 'text_delta', text: block.text }
    send({ type: 'content_block_delta', index, delta })
    send({ type: 'content_block_stop', index })
  }
  send({ type: 'message_delta', delta: { stop_reason, stop_sequence: null }, usage })
  send({ type: 'message_stop' })
  response.end()
}

function asChat(response: http.ServerResponse, body: any, call: Call | null): void {
  const { words = call ? null : 'done' } = call ?? {}
  const use = call && { name: call.name, arguments: JSON.stringify(call.input) }
  const tool_calls = call ? [{ index: 0, id: call.id, type: 'function', function: use }] : undefined
  const message = { role: 'assistant', content: words, ...(tool_calls ? { tool_calls } : {}) }
  const finish_reason = call ? 'tool_calls' : 'stop'
  const base = { id: `chat_${++calls}`, created: 0, model: body.model }
  const usage = { prompt_tokens: 10, completion_tokens: 5, total_tokens: 15 }
  if (!body.stream) {
    json(response, { ...base, object: 'chat.completion', choices: [{ index: 0, message, finish_reason }], usage })
    return
  }
  const send = stream(response)
  const chunk = (delta: unknown, finish: string | null) =>
    send({ ...base, object: 'chat.completion.chunk', choices: [{ index: 0, delta, finish_reason: finish }] })
  chunk(message, null)
  chunk({}, finish_reason)
  send({ ...base, object: 'chat.completion.chunk', choices: [], usage })
  response.end('data: [DONE]\n\n')
}
