/**
 * One call to the daemon by hand: the framing is a header and a body, and whoever waits for a marker should not wait for
 * a library to load. Null: there is no daemon, and the caller does the work itself.
 */
import { type Env, errno } from '../env.ts'
import type { DaemonInfo } from './place.ts'

/** Milliseconds after which an answer is not expected at once, and it is worth looking what the daemon does. */
const SOON = 500
/** Milliseconds to connect, which the kernel does at once even for a daemon that hangs. */
const CONNECT = 2000

export interface Answer<T> {
  result?: T
  error?: { code: number; message: string }
  /** The call went out and nothing came back: whether it was carried out is not known. */
  lost?: true
}

/**
 * `timeout`: milliseconds to wait for the answer; who is `patient` waits as long as the daemon works, and only so long
 * once it does nothing. Where that cannot be seen (no proc(5)), `timeout` is all.
 */
export function callDaemon<T>(
  env: Env,
  info: DaemonInfo,
  { method, params, timeout, patient = false }: { method: string; params: object; timeout: number; patient?: boolean },
): Promise<Answer<T> | null> {
  return new Promise((resolve, reject) => {
    const socket = process.getBuiltinModule('node:net').connect(info.socket) // an agent's hook needs none
    const chunks: Buffer[] = []
    let connected = false
    const timer = setTimeout(() => done(null), CONNECT)
    const gone = () => done(connected ? { lost: true } : null)
    let used: number | null = null
    const begun = setTimeout(() => {
      used = cpuOf(env, info.pid)
    }, SOON)
    const late = setInterval(() => {
      const now = cpuOf(env, info.pid)
      if (!patient || !connected || now === null || now === used) gone()
      used = now
    }, timeout)
    const done = (answer: Answer<T> | null) => {
      clearTimeout(timer)
      clearTimeout(begun)
      clearInterval(late)
      socket.destroy()
      resolve(answer)
    }
    socket.on('connect', () => {
      connected = true
      clearTimeout(timer)
      const body = JSON.stringify({ jsonrpc: '2.0', id: 1, method, params: { ...params, token: info.token } })
      socket.write(`Content-Length: ${Buffer.byteLength(body)}\r\n\r\n${body}`)
    })
    socket.on('data', (chunk: Buffer) => {
      chunks.push(chunk)
      const answer = readAnswer<T>(Buffer.concat(chunks))
      if (answer) done(answer)
    })
    socket.on('error', (error) => {
      const code = errno(error)
      if (!connected || code === 'ECONNRESET' || code === 'EPIPE') gone()
      else reject(error)
    })
    socket.on('close', gone)
    if (info.pid === env.pid) done(null)
  })
}

/** CPU that a process and its children have used, in ticks; null: it is not there, is stopped, or nobody can say. */
function cpuOf(env: Env, pid: number): number | null {
  try {
    const fields = env.files
      .readFileSync(`/proc/${pid}/stat`, 'latin1')
      .replace(/^.*\) /s, '')
      .split(' ')
    const [state] = fields
    return state === 'T' || state === 't' || state === 'Z'
      ? null
      : fields.slice(11, 15).reduce((sum, one) => sum + Number(one), 0)
  } catch {
    return null
  }
}

function readAnswer<T>(bytes: Buffer): Answer<T> | null {
  let at = 0
  for (;;) {
    const end = bytes.indexOf('\r\n\r\n', at)
    if (end < 0) return null
    const length = Number(/content-length: (\d+)/i.exec(bytes.toString('latin1', at, end))?.[1] ?? Number.NaN)
    if (Number.isNaN(length)) return { error: { code: -32700, message: 'the daemon answered in no known form' } }
    if (bytes.length < end + 4 + length) return null
    const message = JSON.parse(bytes.toString('utf8', end + 4, end + 4 + length)) as Answer<T> & { id?: number }
    if (message.id === 1) return message
    at = end + 4 + length // a notification
  }
}
