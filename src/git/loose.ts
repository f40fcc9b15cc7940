/** What the file of a loose object holds: its type and size, a NUL and its content, deflated. */
import { createHash } from 'node:crypto'
import { inflateSync } from 'node:zlib'
import type { HashName, Oid } from '../core/ids.ts'
import { type Env, errno, statIfThere } from '../env.ts'
import type { FoundObject } from './object-reader.ts'

/** Bytes of a small file. */
const SMALL = 16_384
/** Bytes of what is in a small file. */
const MOST_INFLATED = 1 << 20

/** Where an object lies that is a file of its own; `objects`: the directory of all. */
export const loosePath = (objects: string, oid: Oid): string => `${objects}/${oid.slice(0, 2)}/${oid.slice(2)}`

/**
 * A small one is read here, and hashed: to start a git takes as long as the rest of a short command. Null: git is to be
 * asked, which also knows where else it may lie, and what is wrong with it.
 */
export function readSmall(
  { files }: Env,
  objects: string,
  { oid, hash }: { oid: Oid; hash: HashName },
): FoundObject | null {
  const path = loosePath(objects, oid)
  try {
    const stats = statIfThere(files, path)
    if (!stats || stats.size > SMALL) return null
    const file = files.readFileSync(path)
    const inflated = inflate(file, MOST_INFLATED)
    // git does not take one that goes on after its end.
    return inflated?.used === file.length ? parseLoose(inflated.bytes, { oid, hash }) : null
  } catch {
    return null
  }
}

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
