/** The messages of a connection, for both of its ends. */
import type { Socket } from 'node:net'
import { SocketMessageReader } from 'vscode-jsonrpc/node'

/**
 * Without the socket there is nothing to wait for: vscode-jsonrpc goes on looking for the rest of a message that was begun,
 * every 10 s for ever, and a process in which it does so does not end.
 */
export function messageReader(socket: Socket): SocketMessageReader {
  const reader = new SocketMessageReader(socket)
  // biome-ignore lint/complexity/useLiteralKeys: private; its only other way out is the rest of the message
  socket.once('close', () => reader['clearPartialMessageTimer']())
  return reader
}
