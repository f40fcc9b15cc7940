/** What the file of a loose object holds: its type and size, a NUL and its content, deflated. */
import { createHash } from 'node:crypto'
import { inflateSync } from 'node:zlib'
import type { HashName, Oid } from '../core/ids.ts'
import { errno } from '../env.ts'
import type { FoundObject } from './object-reader.ts'

export interface Inflated {
  bytes: Buffer
  /** Bytes of the file that belong to the stream. */
  used: number
}

/** Null: it is no such stream, or one of more than `most` bytes. */
export function inflate(packed: Buffer, most?: number): Inflated | null {
  try {
    const options = { info: true, ...(most === undefined ? {} : { maxOutputLength: most }) }
    const { buffer, engine } = inflateSync(packed, options) as unknown as {
      buffer: Buffer
      engine: { bytesWritten: number }
    }
    return { bytes: buffer, used: engine.bytesWritten }
  } catch (error) {
    if (errno(error)?.startsWith('Z_') || errno(error) === 'ERR_BUFFER_TOO_LARGE') return null
    throw error
  }
}

/** Null: it is not the object of that name. */
export function parseLoose(whole: Buffer, { oid, hash }: { oid: Oid; hash: HashName }): FoundObject | null {
  const [, type, size] = /^(blob|tree|commit|tag) (\d+)\0/.exec(whole.toString('latin1', 0, 32)) ?? []
  const bytes = whole.subarray(whole.indexOf(0) + 1)
  if (type === undefined || Number(size) !== bytes.length) return null
  return createHash(hash).update(whole).digest('hex') === oid ? { type, bytes } : null
}
