/**
 * One call to the daemon by hand: the framing is a header and a body, and whoever waits for a marker should not wait for
 * a library to load. Null: there is no daemon, and the caller does the work itself.
 */
import { type Env, errno } from '../env.ts'
import type { DaemonInfo } from './place.ts'
import { PROTOCOL, type ProgressMessage } from './protocol.ts'

/** Milliseconds to connect, which the kernel does at once even for a daemon that hangs. */
const CONNECT = 2000
/** Milliseconds between two looks at what the daemon does. */
const LOOK = 2000
/** Milliseconds until the first look, which the second is compared with. */
const FIRST_LOOK = 500
/** Milliseconds to be welcomed by one that is busy; one that does nothing meanwhile hangs. */
const WELCOME = 15_000

export interface Answer<T> {
  result?: T
  error?: { code: number; message: string }
  /** The call went out and nothing came back: whether it was carried out is not known. */
  lost?: true
  /** Errno: the system lets us reach nobody there, as in a sandbox. The daemon may be well. */
  barred?: string
}

export interface DaemonCall {
  method: string
  params: object
  /** Milliseconds to wait for the answer. */
  timeout: number
  /**
   * As long as the daemon works, and only `timeout` once it does nothing. Where that cannot be seen (no proc(5)), `timeout` is
   * all. The call goes out once the daemon has answered a greeting: one that hangs is given nothing that it could do later.
   */
  patient?: boolean
  /** Hears of what takes long. */
  tell?: ((what: string) => void) | undefined
}

/** The environment's signal cancels the call. */
export function callDaemon<T>(
  env: Env,
  info: DaemonInfo,
  { method, params, timeout, patient = false, tell }: DaemonCall,
): Promise<Answer<T> | null> {
  return new Promise((resolve, reject) => {
    const socket = process.getBuiltinModule('node:net').connect(info.socket) // an agent's hook needs none
    const messages = reader()
    let [connected, sent] = [false, false]
    // Of a process that was busy itself the clock runs out before what came meanwhile is seen.
    const timer = setTimeout(() => setImmediate(() => connected || done(null)), CONNECT)
    const gone = () => done(sent ? { lost: true } : null)
    let [work, since, idle]: [Work, number, number] = [null, 0, 0]
    const look = () => {
      const now = workOf(env, info.pid)
      const isStopped = now === 'stopped' && work === 'stopped'
      idle = now === null || now === work ? idle + LOOK : 0
      work = now
      since += LOOK
      if (!connected) return
      if (!sent ? now === 'stopped' || idle > 0 || since >= WELCOME : isStopped || idle >= timeout) gone()
    }
    const begun = setTimeout(() => {
      work = workOf(env, info.pid)
    }, FIRST_LOOK)
    const late = setInterval(patient ? look : () => setImmediate(gone), patient ? LOOK : timeout)
    const done = (answer: Answer<T> | null) => {
      clearTimeout(timer)
      clearTimeout(begun)
      clearInterval(late)
      env.signal?.removeEventListener('abort', cancel)
      socket.destroy()
      resolve(answer)
    }
    const send = (message: object) => {
      const body = JSON.stringify({ jsonrpc: '2.0', ...message })
      socket.write(`Content-Length: ${Buffer.byteLength(body)}\r\n\r\n${body}`)
    }
    const ask = () => {
      sent = true
      send({ id: 1, method, params: { ...params, token: info.token } })
      if (env.signal?.aborted) cancel()
      env.signal?.addEventListener('abort', cancel)
    }
    const cancel = () => send({ method: '$/cancelRequest', params: { id: 1 } })
    socket.on('connect', () => {
      connected = true
      clearTimeout(timer)
      if (patient) send({ id: 0, method: 'hello', params: { token: info.token, protocol: PROTOCOL } })
      else ask()
    })
    socket.on('data', (chunk: Buffer) => {
      for (const message of messages(chunk)) {
        if (message === null) done({ error: { code: -32700, message: 'the daemon answered in no known form' } })
        else if (message.id === 1) done(message as Answer<T>)
        else if (message.id === 0) {
          if ('error' in message) done(null)
          else ask()
        } else if (message.method === 'progress') tell?.((message.params as ProgressMessage).what)
      }
    })
    socket.on('error', (error) => {
      const code = errno(error)
      if (!connected && isBarred(env, info, code)) done({ barred: code! })
      else if (!connected || code === 'ECONNRESET' || code === 'EPIPE') gone()
      else reject(error)
    })
    socket.on('close', gone)
    if (info.pid === env.pid) done(null)
  })
}

/** What a program may not use here, or what lies in another place of the same name: a temporary directory of its own, for one. */
function isBarred(env: Env, { pid }: DaemonInfo, code: string | undefined): boolean {
  if (code === 'EPERM' || code === 'EACCES' || code === 'EAFNOSUPPORT') return true
  const [ours, its] = [mountsOf(env, 'self'), mountsOf(env, pid)]
  return code === 'ENOENT' && ours !== null && its !== null && ours !== its
}

/** Of one that is out of our sight it is none of ours. Null: nobody can say (namespaces(7)). */
function mountsOf(env: Env, pid: number | 'self'): string | null {
  try {
    return env.files.readlinkSync(`/proc/${pid}/ns/mnt`)
  } catch (error) {
    return errno(error) === 'EACCES' ? 'unseen' : null
  }
}

/** CPU that a process and its children have used, in ticks; null: nobody can say. */
type Work = number | 'stopped' | null

export function workOf(env: Env, pid: number): Work {
  try {
    const fields = env.files
      .readFileSync(`/proc/${pid}/stat`, 'latin1')
      .replace(/^.*\) /s, '')
      .split(' ')
    const [state] = fields
    return state === 'T' || state === 't' || state === 'Z'
      ? 'stopped'
      : fields.slice(11, 15).reduce((sum, one) => sum + Number(one), 0)
  } catch {
    return null
  }
}

interface Message {
  id?: number
  method?: string
  params?: unknown
}

function parsed(text: string): Message | null {
  try {
    return JSON.parse(text)
  } catch {
    return null
  }
}

/** The messages that are whole with this chunk; null: that is none. */
function reader(): (chunk: Buffer) => Generator<Message | null> {
  let chunks: Buffer[] = []
  return function* (chunk) {
    chunks.push(chunk)
    let rest = Buffer.concat(chunks)
    for (let end = rest.indexOf('\r\n\r\n'); end >= 0; end = rest.indexOf('\r\n\r\n')) {
      const length = Number(/content-length: (\d+)/i.exec(rest.toString('latin1', 0, end))?.[1] ?? Number.NaN)
      if (Number.isNaN(length)) {
        yield null
        return
      }
      const next = end + 4 + length
      if (rest.length < next) break
      yield parsed(rest.toString('utf8', end + 4, next))
      rest = rest.subarray(next)
    }
    chunks = [rest]
  }
}
