/** What an agent sends on standard input: one JSON document, mostly in one piece. */
import type { Env } from '../env.ts'

/** Milliseconds for an agent to send its payload. */
const PATIENCE = 5000

/** All of standard input, or what came of it in time. A payload that is whole is not waited on for its end: an agent may keep it open. */
export function readInput(stdin: Env['stdin']): Promise<Buffer> {
  const chunks: Buffer[] = []
  return new Promise((resolve) => {
    const done = () => {
      clearTimeout(timer)
      stdin.pause() // or it would keep us
      resolve(Buffer.concat(chunks))
    }
    const timer = setTimeout(done, PATIENCE)
    if (stdin.isTTY) return done()
    stdin.on('data', (chunk: Buffer) => {
      chunks.push(Buffer.from(chunk))
      // Of a long one the pieces would be looked through again and again. A stream that is paused at once goes on reading.
      if (chunks.length === 1 && isWhole(chunks[0]!)) setImmediate(done)
    })
    stdin.on('end', done)
    stdin.on('error', done)
  })
}

function isWhole(payload: Buffer): boolean {
  const text = payload.toString('utf8').trimEnd()
  if (!text.endsWith('}')) return false
  try {
    JSON.parse(text)
    return true
  } catch {
    return false
  }
}
