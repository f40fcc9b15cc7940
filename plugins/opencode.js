// ckpt plugin for OpenCode: tells ckpt when a turn and a tool call begin and end. Put here by `ckpt agent install opencode`.
import { spawn } from 'node:child_process'

const PROGRAM = 'ckpt-hook'
// Milliseconds. ckpt itself is gone after 22.5 s.
const PATIENCE = 25_000
const HEARD = new Set(['session.created', 'session.idle', 'session.error'])

// Never fails and never blocks OpenCode for longer than that; a ckpt that is not there is nothing.
const run = (event, payload, cwd) =>
  new Promise((resolve) => {
    // Detached: `opencode run` ends with the turn, the marker of its end must not end with it.
    const child = spawn(PROGRAM, ['opencode', event], {
      cwd,
      detached: true,
      stdio: ['pipe', 'ignore', 'ignore'],
    })
    const timer = setTimeout(resolve, PATIENCE)
    const done = () => {
      clearTimeout(timer)
      resolve()
    }
    child.on('error', done)
    child.on('close', done)
    child.stdin.on('error', () => undefined) // gone before it read: `close` says so
    child.stdin.end(JSON.stringify(payload))
    child.unref()
  })

// Which paths a call is about; what it writes there is nobody's business.
const hints = (args) => {
  const { filePath, patchText } = args ?? {}
  return { filePath, patchText }
}

export const CkptPlugin = async ({ directory }) => {
  // Tool calls run at the same time, markers one after another.
  let queue = null
  const send = (event, payload) => {
    const start = () => run(event, { hook_event_name: event, directory, ...payload }, directory)
    const mine = (queue ? queue.then(start) : start()).finally(() => {
      if (queue === mine) queue = null
    })
    queue = mine
    return mine
  }
  return {
    'chat.message': ({ sessionID }, { message, parts }) =>
      send('chat.message', {
        input: { sessionID: sessionID ?? message?.sessionID },
        output: { message: { id: message?.id }, parts: (parts ?? []).filter(({ type }) => type === 'text') },
      }),
    'tool.execute.before': ({ tool, sessionID, callID }, output) =>
      send('tool.execute.before', { input: { tool, sessionID, callID }, output: { args: hints(output?.args) } }),
    'tool.execute.after': ({ tool, sessionID, callID, args }) =>
      send('tool.execute.after', { input: { tool, sessionID, callID, args: hints(args) } }),
    event: async ({ event: { type, properties } }) => {
      if (!HEARD.has(type)) return
      const { sessionID, info, error } = properties ?? {}
      await send(type, {
        properties: {
          sessionID: sessionID ?? info?.id,
          ...(info ? { info: { id: info.id, parentID: info.parentID, directory: info.directory } } : {}),
          ...(error ? { error: { name: error.name } } : {}),
        },
      })
    },
  }
}
