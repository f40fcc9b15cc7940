/** Escape, twice in short time: what opens the rewind menu. */
import { CkptError } from '../core/errors.ts'

/** A terminal's keys, as standard input in raw mode gives them. */
export interface KeyStream {
  on: (event: 'data', listener: (chunk: Buffer | string) => void) => unknown
  off: (event: 'data', listener: (chunk: Buffer | string) => void) => unknown
}

/**
 * Calls back when Escape was pressed twice within so many milliseconds. The stream has to be in raw mode. An arrow key,
 * which begins with the same byte, is no Escape, and any other key in between begins anew. The result stops listening.
 * @throws CkptError USAGE
 */
export function onDoubleEscape(stdin: KeyStream, within: number, listener: () => void): () => void {
  const isStream = typeof stdin?.on === 'function' && typeof stdin.off === 'function'
  if (!isStream || typeof within !== 'number' || !(within > 0) || typeof listener !== 'function')
    throw new CkptError('USAGE', 'onDoubleEscape takes a stream of keys, milliseconds above 0, and a function to call.')
  let last = Number.NEGATIVE_INFINITY
  const hear = (chunk: Buffer | string) => {
    const keys = typeof chunk === 'string' ? chunk : chunk.toString('latin1')
    const now = performance.now()
    // Several may come in one piece.
    const pressed = /^\x1b+$/.test(keys) ? keys.length + (now - last <= within ? 1 : 0) : 0
    last = pressed % 2 === 1 ? now : Number.NEGATIVE_INFINITY
    for (let twice = pressed >> 1; twice > 0; twice--) listener()
  }
  stdin.on('data', hear)
  return () => {
    stdin.off('data', hear)
  }
}
