/** Files that end in a checksum of all that comes before it: packs and what goes with them (gitformat-pack(5)). */
import { createHash } from 'node:crypto'
import type { HashName } from '../core/ids.ts'
import { errno, type Files } from '../env.ts'

const CHUNK = 1 << 20

/** The checksum at the end of a file, and as many bytes before it, where there are so many (an empty pack has fewer). */
export interface End {
  before: Buffer
  sum: Buffer
}

export interface Sums {
  hash: HashName
  oidBytes: number
}

/** Null: it is not the checksum of what comes before it. */
export function endOf(files: Files, path: string, sums: Sums): End | null {
  const read = readSummed(files, path, sums)
  return read?.isWhole ? read.end : null
}

/** Whether a pack and its index are there, with the bytes that they were written with. `path`: without a suffix. */
export const isWholePack = (files: Files, path: string, sums: Sums): boolean =>
  ['idx', 'pack'].every((suffix) => summedIfThere(files, `${path}.${suffix}`, sums)?.isWhole)

/**
 * What of a pack lost its bytes so that git can read nothing of it: it looks whether the pack ends as its index says, which
 * is there. An index can be made anew of a pack that is whole. `path`: without a suffix. Null: git can read it.
 */
export function unreadablePart(files: Files, path: string, sums: Sums): 'pack' | 'index' | null {
  const pack = summedIfThere(files, `${path}.pack`, sums)
  const index = summedIfThere(files, `${path}.idx`, sums)
  if (pack?.isWhole) return index?.isWhole ? null : 'index'
  return !pack || !index?.isWhole || !index.end.before.equals(pack.end.sum) ? 'pack' : null
}

/** Null: too short for a checksum. */
function readSummed(
  files: Files,
  path: string,
  { hash, oidBytes: width }: Sums,
): { end: End; isWhole: boolean } | null {
  const fd = files.openSync(path, 'r')
  try {
    const { size } = files.fstatSync(fd)
    if (size < width) return null
    const end = Buffer.alloc(Math.min(size, width * 2))
    files.readSync(fd, end, 0, end.length, size - end.length)
    const found = { before: end.subarray(0, -width), sum: end.subarray(-width) }
    const sum = createHash(hash)
    const chunk = Buffer.alloc(CHUNK)
    for (let at = 0; at < size - width; ) {
      const read = files.readSync(fd, chunk, 0, Math.min(CHUNK, size - width - at), at)
      if (read === 0) return { end: found, isWhole: false }
      sum.update(chunk.subarray(0, read))
      at += read
    }
    return { end: found, isWhole: sum.digest().equals(found.sum) }
  } finally {
    files.closeSync(fd)
  }
}

function summedIfThere(files: Files, path: string, sums: Sums): ReturnType<typeof readSummed> {
  try {
    return readSummed(files, path, sums)
  } catch (error) {
    if (errno(error) === 'ENOENT') return null
    throw error
  }
}
