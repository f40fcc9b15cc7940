// ckpt plugin for OpenCode: tells ckpt when a turn and a tool call begin and end. Put here by `ckpt agent install opencode`.
import { spawn } from 'node:child_process'
import { randomUUID } from 'node:crypto'

const PROGRAM = 'ckpt-hook'
// Milliseconds. ckpt itself is gone after 22.5 s.
const PATIENCE = 25_000
const HEARD = new Set(['session.created', 'session.idle', 'session.error'])

const inTime = (begin) =>
  new Promise((resolve) => {
    const timer = setTimeout(resolve, PATIENCE)
    begin(() => {
      clearTimeout(timer)
      resolve()
    })
  })

// Never fails and never blocks OpenCode for longer than that; a ckpt that is not there is nothing.
const run = (event, payload, cwd) =>
  inTime((done) => {
    try {
      // Detached: `opencode run` ends with the turn, the marker of its end must not end with it.
      const child = spawn(PROGRAM, ['opencode', event], {
        cwd,
        detached: true,
        stdio: ['pipe', 'ignore', 'ignore'],
      })
      child.on('error', done)
      child.on('close', done)
      // Not there where nothing could be opened for it; gone before it read: `close` says so.
      child.stdin?.on('error', () => undefined)
      child.stdin?.end(JSON.stringify(payload))
      child.unref()
    } catch {
      done() // some failures are thrown
    }
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
    return inTime((done) => mine.then(done)) // behind others, too
  }
  // Sessions at work: whether a turn runs, and prompts that were given meanwhile. OpenCode goes on with the call that runs,
  // and answers them after it: each is a turn from then on.
  const sessions = new Map()
  const prompted = (session) => {
    const known = sessions.get(session) ?? { running: false, waiting: [] }
    sessions.set(session, known)
    return known
  }
  // All at once: the calls of that turn queue behind.
  const takenUp = async (session, by) => {
    const known = sessions.get(session)
    let last
    while (known?.waiting.length > 0 && known.waiting[0].output.message.id <= by) {
      if (known.running) send('session.idle', { properties: { sessionID: session } })
      known.running = true
      last = send('chat.message', known.waiting.shift())
    }
    await last
  }
  const rested = (session) => {
    const known = sessions.get(session)
    if (!known) return
    known.running = false
    if (known.waiting.length === 0) sessions.delete(session)
    for (const call of calls.values()) if (call.sessionID === session) calls.delete(keyOf(call))
  }

  // Calls that run, each with an id that is its own: some models give the same ones with each message, in every session. Of
  // the end of one that fails only the bus tells.
  const calls = new Map()
  const keyOf = ({ sessionID, callID }) => `${sessionID} ${callID}`
  const taken = (one) => {
    const call = calls.get(keyOf(one))
    calls.delete(keyOf(one))
    return call
  }
  const failed = async (part) => {
    const call = part.type === 'tool' && part.state?.status === 'error' ? taken(part) : undefined
    if (call) await send('tool.execute.after', { input: call })
  }

  return {
    'chat.message': async ({ sessionID }, { message, parts }) => {
      const session = sessionID ?? message?.sessionID
      const payload = {
        input: { sessionID: session },
        output: { message: { id: message?.id }, parts: (parts ?? []).filter(({ type }) => type === 'text') },
      }
      const known = prompted(session)
      if (known.running && message?.id) {
        known.waiting.push(payload)
        return
      }
      known.running = true
      known.waiting = [] // never answered: they are of this turn
      await send('chat.message', payload)
    },
    'tool.execute.before': ({ tool, sessionID, callID }, output) => {
      const input = { tool, sessionID, callID, call: randomUUID() }
      const args = hints(output?.args)
      calls.set(keyOf(input), { ...input, args })
      return send('tool.execute.before', { input, output: { args } })
    },
    'tool.execute.after': ({ tool, sessionID, callID, args }) => {
      const { call } = taken({ sessionID, callID }) ?? {}
      return send('tool.execute.after', { input: { tool, sessionID, callID, call, args: hints(args) } })
    },
    event: async ({ event: { type, properties } }) => {
      const { sessionID, info, error, part } = properties ?? {}
      if (type === 'message.part.updated' && part) return failed(part)
      if (type === 'message.updated' && info?.role === 'assistant' && info.parentID)
        return takenUp(info.sessionID, info.parentID)
      if (!HEARD.has(type)) return
      // It makes its context smaller, and goes on with the turn; or it is of no session.
      if (type === 'session.error' && (error?.name === 'ContextOverflowError' || !sessionID)) return
      if (type !== 'session.created') rested(sessionID)
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
