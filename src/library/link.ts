/** One request over a connection to a daemon: sent, cancelled, given up, and refused in the words of the same function without one. */
import { types } from 'node:util'
import {
  CancellationTokenSource,
  ConnectionError,
  ErrorCodes,
  type MessageConnection,
  ResponseError,
} from 'vscode-jsonrpc/node'
import { onAbort, refuseCancelled } from '../core/cancel.ts'
import { CkptError, type ErrorCode } from '../core/errors.ts'
import { workOf } from '../daemon/call.ts'
import { MAX_MESSAGE, REFUSED } from '../daemon/protocol.ts'
import { realEnv } from '../env.ts'
import type { ErrorInfo, FileActionInfo } from '../results/shapes.ts'
import type { CallOptions } from './facade.ts'

/** Milliseconds for the first answer of a daemon that may be busy, and until one that was stopped is given up. */
export const FIRST_ANSWER = 10_000
/** Bytes of a message around its parameters, at most. */
const ENVELOPE = 1024

const lost = (cause: unknown) =>
  new CkptError('INTERNAL', 'The connection to the daemon ended. What was under way may or may not have been done.', {
    hints: ['ckpt daemon status', 'ckpt list'],
    cause,
  })

/** It may go on yet, and the connection with it. */
const silent = (cause: unknown) =>
  new CkptError('INTERNAL', 'The daemon does not answer. What was under way may or may not have been done.', {
    hints: ['ckpt daemon status', 'ckpt daemon stop', 'ckpt list'],
    cause,
  })

/** Given up for want of an answer. */
class Silence extends Error {}

/** Said where nothing but the greeting was sent. */
export const unreached = (cause: unknown) =>
  new CkptError('INTERNAL', 'The daemon does not answer. Nothing was asked of it.', {
    hints: ['ckpt daemon status', 'ckpt daemon stop'],
    cause,
  })

/** Said before anything is sent. */
const ended = (cause: unknown) =>
  new CkptError('INTERNAL', 'The connection to the daemon has ended. Nothing was asked of it.', {
    hints: ['ckpt daemon status'],
    cause,
  })

export interface Link {
  connection: MessageConnection
  token: string
  /** The daemon's. */
  pid: number
}

/** Milliseconds between two looks at a daemon that has not answered. */
const LOOK = 2000

/** Calls back when a process was stopped (SIGSTOP) for as long as nobody waits. Returns what ends the watch. */
function whenStopped(pid: number, listener: () => void): () => void {
  const env = realEnv()
  let stopped = 0
  const timer = setInterval(() => {
    stopped = workOf(env, pid) === 'stopped' ? stopped + LOOK : 0
    if (stopped >= FIRST_ANSWER) listener()
  }, LOOK)
  return () => clearInterval(timer)
}

/** Calls a method of the daemon. @throws CkptError as the same function without a daemon */
export async function ask<T>(
  { connection, token, pid }: Link,
  method: string,
  { params, signal }: { params: object } & CallOptions,
): Promise<T> {
  refuseCancelled(signal)
  refuseUnsendable(method, params)
  const source = new CancellationTokenSource()
  let cancel = () => {}
  let unwatch = () => {}
  let silence: NodeJS.Timeout | undefined
  const answer = new Promise<T>((resolve, reject) => {
    cancel = () => {
      source.cancel()
      // What has begun to write goes on to its end, however long; one that hangs does not even say how it is.
      silence = setTimeout(() => reject(new Silence('it does not answer')), FIRST_ANSWER)
      const heard = () => clearTimeout(silence)
      const asked = async () => connection.sendRequest('state', { token }) // it throws where the connection has ended
      asked().then(heard, heard)
    }
    unwatch = whenStopped(pid, () => reject(new Silence('it was stopped')))
    connection.sendRequest<T>(method, params, source.token).then(resolve, reject)
  })
  const unheed = onAbort(signal, cancel)
  try {
    return await answer
  } catch (error) {
    throw refusal(method, error)
  } finally {
    clearTimeout(silence)
    unwatch()
    unheed()
    source.dispose()
  }
}

/** A message that cannot be written, or is too long to be read, would end the connection of everybody who shares it. */
function refuseUnsendable(method: string, params: object): void {
  const refuse = (why: string, cause?: unknown) =>
    new CkptError(method === 'mark' ? 'BAD_MARKER' : 'USAGE', `${method} ${why}. Nothing was changed.`, { cause })
  let text: string
  try {
    text = JSON.stringify(params, asItIs)
  } catch (error) {
    throw refuse('was called with what is no JSON', error)
  }
  if (Buffer.byteLength(text) > MAX_MESSAGE - ENVELOPE)
    throw refuse(`takes at most ${MAX_MESSAGE / 2 ** 20} MiB through the daemon`)
}

/** A replacer that fails where JSON would say something else, or nothing: more would be asked for than was meant. */
function asItIs(this: unknown, key: string, value: unknown): unknown {
  const given = (this as Record<string, unknown>)[key]
  const isLost =
    value !== given || // a date, a buffer
    typeof given === 'function' ||
    typeof given === 'symbol' ||
    (typeof given === 'number' && !Number.isFinite(given)) ||
    [types.isMap, types.isSet, types.isRegExp, types.isPromise, ArrayBuffer.isView].some((is) => is(given))
  if (isLost) throw new TypeError(`${key} is no value of JSON`)
  return value
}

/** A daemon's answer as the error that the same function throws without a daemon. */
export function refusal(method: string, error: unknown): CkptError {
  if (error instanceof ConnectionError) return ended(error)
  const gone = method === 'hello' ? unreached : error instanceof Silence ? silent : lost
  if (!(error instanceof ResponseError)) return gone(error)
  const { code, message, data } = error as ResponseError<unknown>
  if (code === ErrorCodes.PendingResponseRejected || code === ErrorCodes.MessageWriteError) return gone(error)
  if (code === REFUSED) {
    const {
      code: word,
      paths,
      hints,
      files,
      warnings,
    } = data as ErrorInfo & {
      files?: FileActionInfo[]
      warnings?: string[]
    }
    return new CkptError(word as ErrorCode, message, {
      ...(paths ? { paths } : {}),
      ...(hints ? { hints } : {}),
      ...(warnings ? { warnings } : {}),
      ...(files ? { detail: { files } } : {}),
      cause: error,
    })
  }
  if (code === ErrorCodes.InvalidParams) {
    return new CkptError(method === 'mark' ? 'BAD_MARKER' : 'USAGE', `${message}. Nothing was changed.`, {
      cause: error,
    })
  }
  const isOld = code === ErrorCodes.MethodNotFound || (method === 'hello' && data !== undefined)
  if (isOld)
    return new CkptError('UNSUPPORTED', message, { hints: ['ckpt daemon stop', 'ckpt daemon start'], cause: error })
  return new CkptError('INTERNAL', message, { cause: error })
}
