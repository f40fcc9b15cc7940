/** How the four kinds of clients speak to a model: what is in a request, and what a reply looks like. */
import type { Json } from './scratch.ts'

export interface Call {
  id: string
  name: string
  args: Json
  /** A tool that takes text instead of JSON. */
  input?: string
}

export interface Reply {
  text: string
  calls: Call[]
}

/** What was said so far: user texts, calls, results. */
type Said = { kind: 'user'; text: string } | { kind: 'call' } | { kind: 'result' }

export interface Dialect {
  matches: RegExp
  said: (body: Json) => Said[]
  tools: (body: Json) => string[]
  /** Events of the stream; `named`: each with its type as the event's name. */
  events: (reply: Reply, body: Json) => Json[]
  whole: (reply: Reply, body: Json) => Json
  named?: boolean
  end?: string
}

const user = (text: string): Said => ({ kind: 'user', text })
const joined = (content: Json): string =>
  typeof content === 'string' ? content : (content ?? []).map((part: Json) => part.text ?? '').join('\n')
const usage = { input_tokens: 100, output_tokens: 10 }
let count = 0

const anthropic: Dialect = {
  matches: /\/messages(\?|$)/,
  named: true,
  said: ({ messages }) =>
    messages.flatMap(({ role, content }: Json) =>
      (typeof content === 'string' ? [{ type: 'text', text: content }] : content).flatMap((part: Json): Said[] => {
        if (part.type === 'tool_use') return [{ kind: 'call' }]
        if (part.type === 'tool_result') return [{ kind: 'result' }]
        return role === 'user' && part.text ? [user(part.text)] : []
      }),
    ),
  tools: ({ tools = [] }) => tools.map((tool: Json) => tool.name),
  whole: ({ text, calls }, { model }) => ({
    id: `msg_${++count}`,
    type: 'message',
    role: 'assistant',
    model,
    content: [
      ...(text ? [{ type: 'text', text }] : []),
      ...calls.map(({ id, name, args }) => ({ type: 'tool_use', id: `toolu_${id}`, name, input: args })),
    ],
    stop_reason: calls.length > 0 ? 'tool_use' : 'end_turn',
    stop_sequence: null,
    usage,
  }),
  events: (reply, body) => {
    const message = anthropic.whole(reply, body)
    const blocks = message.content.flatMap((block: Json, index: number) => [
      {
        type: 'content_block_start',
        index,
        content_block: block.type === 'text' ? { type: 'text', text: '' } : { ...block, input: {} },
      },
      {
        type: 'content_block_delta',
        index,
        delta:
          block.type === 'text'
            ? { type: 'text_delta', text: block.text }
            : { type: 'input_json_delta', partial_json: JSON.stringify(block.input) },
      },
      { type: 'content_block_stop', index },
    ])
    return [
      { type: 'message_start', message: { ...message, content: [], stop_reason: null } },
      ...blocks,
      { type: 'message_delta', delta: { stop_reason: message.stop_reason, stop_sequence: null }, usage },
      { type: 'message_stop' },
    ]
  },
}

const responses: Dialect = {
  matches: /\/responses(\?|$)/,
  named: true,
  said: ({ input }) =>
    typeof input === 'string'
      ? [user(input)]
      : input.flatMap((item: Json): Said[] => {
          if (/_call$/.test(item.type)) return [{ kind: 'call' }]
          if (/_call_output$/.test(item.type)) return [{ kind: 'result' }]
          return item.role === 'user' ? [user(joined(item.content))] : []
        }),
  tools: ({ tools = [], input }) =>
    [
      ...tools,
      ...(typeof input === 'string'
        ? []
        : input.flatMap((item: Json) => item.tools?.flatMap((one: Json) => one.tools ?? one) ?? [])),
    ].map((tool: Json) => tool.name ?? tool.type),
  whole: ({ text, calls }, { model }) => {
    const id = `resp_${++count}`
    const message = { type: 'message', id: `msg_${id}`, role: 'assistant', status: 'completed' }
    return {
      id,
      object: 'response',
      created_at: 0,
      model,
      status: 'completed',
      output: [
        ...(text ? [{ ...message, content: [{ type: 'output_text', text, annotations: [] }] }] : []),
        ...calls.map(({ id: call, name, args, input }) =>
          input === undefined
            ? { type: 'function_call', id: `fc_${call}_${count}`, call_id: call, name, arguments: JSON.stringify(args) }
            : { type: 'custom_tool_call', id: `ctc_${call}_${count}`, call_id: call, name, input, status: 'completed' },
        ),
      ],
      usage: {
        ...usage,
        total_tokens: 110,
        input_tokens_details: { cached_tokens: 0 },
        output_tokens_details: { reasoning_tokens: 0 },
      },
    }
  },
  events: (reply, body) => {
    const response = responses.whole(reply, body)
    const items = response.output.flatMap((item: Json, output_index: number) => [
      { type: 'response.output_item.added', output_index, item },
      ...(item.type === 'message'
        ? [
            {
              type: 'response.output_text.delta',
              output_index,
              item_id: item.id,
              content_index: 0,
              delta: item.content[0].text,
            },
          ]
        : []),
      { type: 'response.output_item.done', output_index, item },
    ])
    return [
      { type: 'response.created', response: { ...response, status: 'in_progress', output: [] } },
      ...items,
      { type: 'response.completed', response },
    ]
  },
}

const chat: Dialect = {
  matches: /\/chat\/completions/,
  said: ({ messages }) =>
    messages.flatMap((message: Json): Said[] => {
      if (message.tool_calls?.length) return [{ kind: 'call' }]
      if (message.role === 'tool') return [{ kind: 'result' }]
      return message.role === 'user' ? [user(joined(message.content))] : []
    }),
  tools: ({ tools = [] }) => tools.map((tool: Json) => tool.function?.name),
  whole: (reply, { model }) => {
    const message = chatMessage(reply)
    const finish_reason = reply.calls.length > 0 ? 'tool_calls' : 'stop'
    return {
      ...chatHead(model),
      object: 'chat.completion',
      choices: [{ index: 0, message, finish_reason }],
      usage: chatUsage,
    }
  },
  events: (reply, { model }) => {
    const head = { ...chatHead(model), object: 'chat.completion.chunk' }
    const chunk = (delta: Json, finish_reason: string | null) => ({
      ...head,
      choices: [{ index: 0, delta, finish_reason }],
    })
    return [
      chunk(chatMessage(reply), null),
      chunk({}, reply.calls.length > 0 ? 'tool_calls' : 'stop'),
      { ...head, choices: [], usage: chatUsage },
    ]
  },
  end: 'data: [DONE]\n\n',
}

const chatUsage = { prompt_tokens: 100, completion_tokens: 10, total_tokens: 110 }
const chatHead = (model: string) => ({ id: `chatcmpl_${++count}`, created: 0, model })
function chatMessage({ text, calls }: Reply): Json {
  const tool_calls = calls.map(({ id, name, args, input }, index) => ({
    index,
    id,
    type: 'function',
    function: { name, arguments: JSON.stringify(input === undefined ? args : { patchText: input }) },
  }))
  return { role: 'assistant', content: text || null, ...(tool_calls.length > 0 ? { tool_calls } : {}) }
}

export const gemini: Dialect = {
  matches: /:(stream)?[gG]enerateContent/,
  said: ({ contents }) =>
    contents.flatMap(({ role, parts = [] }: Json) =>
      parts.flatMap((part: Json): Said[] => {
        if (part.functionCall) return [{ kind: 'call' }]
        if (part.functionResponse) return [{ kind: 'result' }]
        return role === 'user' && part.text ? [user(part.text)] : []
      }),
    ),
  tools: ({ tools = [] }) =>
    tools.flatMap((tool: Json) => (tool.functionDeclarations ?? []).map((one: Json) => one.name)),
  whole: ({ text, calls }) => ({
    candidates: [
      {
        index: 0,
        content: {
          role: 'model',
          parts: [...(text ? [{ text }] : []), ...calls.map(({ name, args }) => ({ functionCall: { name, args } }))],
        },
        finishReason: 'STOP',
      },
    ],
    usageMetadata: { promptTokenCount: 100, candidatesTokenCount: 10, totalTokenCount: 110 },
    modelVersion: 'fake',
  }),
  events: (reply, body) => [gemini.whole(reply, body)],
}

export const DIALECTS = [anthropic, responses, chat, gemini]
