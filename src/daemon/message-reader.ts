/** The messages of a connection, for both of its ends. */
import type { Socket } from 'node:net'
import { SocketMessageReader } from 'vscode-jsonrpc/node'

/** No public call ends that timer, dispose() neither; a name in brackets reaches what is private, and is checked. */
const PRIVATE = 'clearPartialMessageTimer'
/** Nor does one tell what it has yet to hand on. */
const WAITING = 'readSemaphore'

/**
 * Without the socket there is nothing to wait for: vscode-jsonrpc goes on looking for the rest of a message that was begun,
 * every 10 s for ever, and a process in which it does so does not end.
 */
export function messageReader(socket: Socket): SocketMessageReader {
  const reader = new SocketMessageReader(socket)
  socket.once('close', () => reader[PRIVATE]())
  return reader
}

/** When what has come so far was handed on, message by message: vscode-jsonrpc does so later than it comes. */
export const handedOn = (reader: SocketMessageReader): Promise<void> => reader[WAITING].lock(() => undefined)
