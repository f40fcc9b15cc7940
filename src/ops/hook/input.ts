/** What an agent sends on standard input: one JSON document, mostly in one piece. */
import { setTimeout as pause } from 'node:timers/promises'
import type { Env } from '../../env.ts'

/** Milliseconds for an agent to send its payload, and between two looks. */
const PATIENCE = 5000
const LOOK = 2
/** Bytes; what is longer is none. */
const MOST = 64 * 2 ** 20

/** All of standard input, or what came of it in time. A payload that is whole is not waited on for its end: an agent may keep it open. */
export async function readInput({ stdin, monotonic }: Pick<Env, 'stdin' | 'monotonic'>): Promise<Buffer> {
  const chunks: Buffer[] = []
  if (stdin.isTTY) return Buffer.alloc(0)
  const begun = monotonic()
  let size = 0
  while (size < MOST && monotonic() - begun < PATIENCE) {
    const buffer = Buffer.allocUnsafe(65_536)
    const length = stdin.readNow(buffer)
    if (length === 0) break
    if (length === null) {
      await pause(LOOK)
      continue
    }
    chunks.push(buffer.subarray(0, length))
    size += length
    // Of a long one the pieces would be looked through again and again.
    if (chunks.length === 1 && isWhole(chunks[0]!)) break
  }
  return Buffer.concat(chunks)
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
