/** An agent's own record of a conversation: only read; its end, or as it grows. */
import type { Stats } from 'node:fs'
import { type Env, errno, statIfThere } from '../env.ts'

/** Milliseconds: an agent that wrote nothing for so long is not at work on its last prompt. */
export const AT_REST = 3_600_000

/** Bytes of a record's end; more only where it still speaks of what is looked for, and so many at most. */
const TAIL = 8 * 2 ** 20
const LONGEST_TAIL = 512 * 2 ** 20
/** Bytes that are read at once of a record that is read from its beginning. */
const PIECE = 2 ** 20
/** Bytes: no message is so long, and a string cannot be much longer. */
const LONGEST_LINE = 64 * 2 ** 20

/** The lines of a transcript's end in which these words are, oldest first: of some megabytes only those are made text. */
export function linesWith(env: Env, path: string, words: string): string[] {
  let bytes = readFrom(env, path, { from: null })
  for (let most = TAIL; bytes.length === most && most < LONGEST_TAIL && bytes.subarray(0, TAIL).includes(words); ) {
    most *= 4
    bytes = readFrom(env, path, { from: null, most })
  }
  const lines: string[] = []
  for (let at = bytes.indexOf(words); at !== -1; ) {
    const end = bytes.indexOf(0x0a, at)
    const next = end === -1 ? bytes.length : end
    lines.push(bytes.toString('utf8', bytes.lastIndexOf(0x0a, at) + 1, next))
    at = bytes.indexOf(words, next)
  }
  return lines
}

/** Reads a file in pieces, and further when it has grown. A piece may end in the middle of a line, or of a character. */
export class GrowingFile {
  readonly #env: Env
  readonly #path: string
  #at: number
  #inode: number | null = null
  /** The beginning of a line, in pieces. */
  #begun: Buffer[] = []
  #length = 0

  constructor(env: Env, path: string, from = 0) {
    this.#env = env
    this.#path = path
    this.#at = from
  }

  /** The lines that the next piece ends, which may be none; null: that was all, so far. */
  next(): string | null {
    const piece = readFrom(this.#env, this.#path, { from: (stats) => this.#from(stats), most: PIECE })
    if (piece.length === 0) return null
    this.#at += piece.length
    const end = piece.lastIndexOf(0x0a) + 1
    let lines = ''
    if (end > 0) {
      lines = Buffer.concat([...this.#begun, piece.subarray(0, end)]).toString('utf8')
      this.#begin()
    }
    this.#begun.push(piece.subarray(end))
    this.#length += piece.length - end
    if (this.#length > LONGEST_LINE) this.#begin() // its end will be no line that anybody understands
    return lines
  }

  /** A file that is shorter than what was read of it, or another one in its place, is read from its beginning. */
  #from({ ino, size }: Stats): number {
    if (size < this.#at || (this.#inode !== null && ino !== this.#inode)) {
      this.#at = 0
      this.#begin()
    }
    this.#inode = ino
    return this.#at
  }

  #begin(): void {
    this.#begun = []
    this.#length = 0
  }

  /** What is there of a line without an end. */
  rest(): string {
    return Buffer.concat(this.#begun).toString('utf8')
  }
}

/** What a file holds from a place on (null: its end), at most so many bytes; empty where there is none. It is only read. */
function readFrom(
  { files }: Env,
  path: string,
  { from, most = TAIL }: { from: ((stats: Stats) => number) | null; most?: number },
): Buffer {
  const nothing = Buffer.alloc(0)
  if (!path.startsWith('/') || path.includes('\0')) return nothing
  let fd: number
  try {
    if (!statIfThere(files, path)?.isFile()) return nothing // a pipe would wait for ever
    fd = files.openSync(path, 'r')
  } catch (error) {
    const code = errno(error)
    if (code === 'ENOENT' || code === 'ENOTDIR' || code === 'EACCES' || code === 'ELOOP' || code === 'ENAMETOOLONG')
      return nothing
    throw error
  }
  try {
    const stats = files.fstatSync(fd)
    const { size } = stats
    const start = from ? from(stats) : Math.max(0, size - most)
    const bytes = Buffer.alloc(Math.max(0, Math.min(size - start, most)))
    let read = 0
    while (read < bytes.length) {
      const count = files.readSync(fd, bytes, read, bytes.length - read, start + read)
      if (count === 0) break
      read += count
    }
    return bytes.subarray(0, read)
  } finally {
    files.closeSync(fd)
  }
}
