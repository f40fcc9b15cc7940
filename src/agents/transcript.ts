/** An agent's own record of a conversation: only read, and only its end. */
import { type Env, errno, statIfThere } from '../env.ts'

/** Bytes. */
const TAIL = 8 * 2 ** 20

/** The lines of a transcript's end in which these words are, oldest first: of some megabytes only those are made text. */
export function linesWith(env: Env, path: string, words: string): string[] {
  const bytes = readFrom(env, path, null)
  const lines: string[] = []
  for (let at = bytes.indexOf(words); at !== -1; ) {
    const end = bytes.indexOf(0x0a, at)
    const next = end === -1 ? bytes.length : end
    lines.push(bytes.toString('utf8', bytes.lastIndexOf(0x0a, at) + 1, next))
    at = bytes.indexOf(words, next)
  }
  return lines
}

/** What a file holds from a place on (null: its end); empty where there is none. It is only read. */
export function readFrom({ files }: Env, path: string, from: number | null): Buffer {
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
    const { size } = files.fstatSync(fd)
    const start = from ?? Math.max(0, size - TAIL)
    const bytes = Buffer.alloc(Math.max(0, Math.min(size - start, TAIL)))
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
