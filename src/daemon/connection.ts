/**
 * One client of the daemon. What it sends is believed in nothing: a message that is too large or is none ends the
 * connection, a wrong parameter is an error, and who does not read his answers is not read from.
 */
import type { Socket } from 'node:net'
import {
  createMessageConnection,
  ErrorCodes,
  type Message,
  type MessageConnection,
  type RequestMessage,
  ResponseError,
  type ResponseMessage,
  type SocketMessageReader,
  SocketMessageWriter,
} from 'vscode-jsonrpc/node'
import type * as z from 'zod'
import { handedOn, messageReader } from './message-reader.ts'
import { MAX_FIRST, MAX_MESSAGE } from './protocol.ts'

/** Milliseconds until a client has to have shown the token, and within which a message that was begun has to come. */
const PATIENCE = 10_000
/** Requests under way; then nothing more is read until some are answered. */
const BUSY = 256
/** Milliseconds for the last answers to go out. */
const LAST = 1000

export interface Client {
  connection: MessageConnection
  /** It has shown the token. */
  known: boolean
  /** Ends it with the next answer. */
  end: () => void
  /** Ends it when all that was asked is answered; within a moment at the latest. */
  finish: () => Promise<void>
}

export interface Asked {
  method: string
  params: unknown
  signal: AbortSignal
}

export interface Handler {
  /** @throws ResponseError */
  call: (client: Client, asked: Asked) => Promise<unknown>
  closed: (client: Client) => void
  log: (message: string, details: object) => void
}

export function serveClient(socket: Socket, { call, closed, log }: Handler): Client {
  const reader = messageReader(socket)
  const writer = new SocketMessageWriter(socket)
  let [unread, busy] = [0, 0]
  let [ending, finishing] = [false, false]
  /** We did not read on since the last look: a message that is not whole yet is our doing. */
  let held = false
  /** Ids of requests without an answer: of two with one id vscode-jsonrpc would carry out one, and 1 is "1" to it. */
  const asked = new Set<string>()
  /** A request counts until its answer was handed to the kernel: who does not read is not read from. */
  const count = (by: number) => {
    busy += by
    if (busy >= BUSY) {
      held = true
      socket.pause()
    } else if (socket.isPaused()) socket.resume()
  }
  const drop = (why: string) => {
    log('a connection was closed', { why })
    socket.destroy()
  }
  /** One answer without an id, as the standard wants it, and the end. */
  const reject = (code: number, message: string) => {
    log('a connection was closed', { why: message })
    const body = JSON.stringify({ jsonrpc: '2.0', id: null, error: { code, message } })
    socket.end(`Content-Length: ${Buffer.byteLength(body)}\r\n\r\n${body}`, () => socket.destroy())
  }
  /** Ends it with the answer to the last of what was asked. */
  const endOnceAnswered = () => {
    finishing = true
    if (busy === 0) socket.end()
  }
  socket.on('data', (chunk: Buffer) => {
    unread += chunk.length
    const most = client.known ? MAX_MESSAGE : MAX_FIRST
    if (unread > most) drop(`more than ${most} bytes without a message`)
  })
  const checked = Object.assign(Object.create(reader) as SocketMessageReader, {
    listen: (callback: (message: Message) => void) =>
      reader.listen((message) => {
        unread = 0
        if (!isMessage(message)) return reject(ErrorCodes.InvalidRequest, 'That is no JSON-RPC message.')
        if (isRequest(message)) {
          const id = String(message.id)
          if (asked.has(id)) return reject(ErrorCodes.InvalidRequest, 'A request of that id is not answered yet.')
          asked.add(id)
          count(1)
        }
        callback(message)
      }),
  })
  const counting = Object.assign(Object.create(writer) as SocketMessageWriter, {
    write: (message: Message) => {
      if (isAnswer(message)) asked.delete(String(message.id))
      return writer.write(message).finally(() => {
        if (!isAnswer(message)) return
        count(-1)
        if (ending || (finishing && busy === 0)) socket.end()
      })
    },
  })
  const connection = createMessageConnection(checked, counting)
  const end = () => {
    ending = true
  }
  const finish = () =>
    new Promise<void>((resolve) => {
      const late = setTimeout(() => socket.destroy(), LAST)
      socket.once('close', () => {
        clearTimeout(late)
        resolve()
      })
      if (socket.closed) resolve()
      endOnceAnswered()
    })
  const client: Client = { connection, known: false, end, finish }
  const stranger = setTimeout(() => client.known || drop('no token was shown'), PATIENCE)
  connection.onRequest((method, params, cancelled) => {
    const abort = new AbortController()
    const listening = cancelled.onCancellationRequested(() => abort.abort())
    // Cancelled while it waited: that is told by no event.
    if (cancelled.isCancellationRequested) abort.abort()
    return call(client, { method, params, signal: abort.signal }).finally(() => listening.dispose())
  })
  reader.onError((error) => reject(ErrorCodes.ParseError, unreadable(error)))
  reader.onPartialMessage(() => {
    if (!held && !finishing) drop('a message was begun and not ended')
    held = socket.isPaused()
  })
  connection.onError(([error]) => log('connection', { error: String(error) }))
  socket.on('end', () => handedOn(reader).then(endOnceAnswered)) // it asks no more, and may still read, as `nc -N` does
  socket.on('close', () => {
    clearTimeout(stranger)
    connection.dispose()
    closed(client)
  })
  connection.listen()
  return client
}

/** What the reader says of it, unless it was at a loss itself. */
const unreadable = (error: Error): string =>
  error instanceof TypeError || error instanceof RangeError
    ? 'That cannot be read as a message.'
    : error.message.split('\n')[0]!.slice(0, 200)

const isRequest = (message: Message): message is RequestMessage => 'method' in message && 'id' in message
const isAnswer = (message: Message): message is ResponseMessage => !('method' in message) && 'id' in message

/** A request, a notification, or an answer: vscode-jsonrpc passes over what is none. */
function isMessage(message: unknown): message is Message {
  if (typeof message !== 'object' || message === null || Array.isArray(message)) return false
  const { jsonrpc, id, method, params, result, error } = message as Record<string, unknown>
  if (jsonrpc !== '2.0') return false
  if (id !== undefined && typeof id !== 'string' && typeof id !== 'number') return false
  if (method === undefined) return id !== undefined && (result !== undefined || error !== undefined)
  const cancels = method !== '$/cancelRequest' || (typeof params === 'object' && params !== null && 'id' in params)
  return (
    typeof method === 'string' && (params === undefined || (typeof params === 'object' && params !== null)) && cancels
  )
}

/** @throws ResponseError InvalidParams, naming what is wrong */
export function checkParams<T>(method: string, takes: z.ZodType<T>, params: unknown): T {
  const checked = takes.safeParse(params ?? {})
  if (checked.success) return checked.data
  const [issue] = checked.error.issues
  const where = issue?.path.length ? `${issue.path.join('.')}: ` : ''
  throw new ResponseError(ErrorCodes.InvalidParams, `${method}: ${where}${issue?.message ?? 'wrong parameters'}`)
}
