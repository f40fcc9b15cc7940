/** An agent's own record of a conversation: only read, and only its end. */
import { type Env, errno } from '../env.ts'

/** Bytes. */
const TAIL = 8 * 2 ** 20

/** The end of a transcript as text; empty where there is none. */
export function readTranscript({ files }: Env, path: string): string {
  if (!path.startsWith('/') || path.includes('\0')) return ''
  let fd: number
  try {
    if (!files.statSync(path, { throwIfNoEntry: false })?.isFile()) return '' // a pipe would wait for ever
    fd = files.openSync(path, 'r')
  } catch (error) {
    const code = errno(error)
    if (code === 'ENOENT' || code === 'ENOTDIR' || code === 'EACCES' || code === 'ELOOP' || code === 'ENAMETOOLONG')
      return ''
    throw error
  }
  try {
    const { size } = files.fstatSync(fd)
    const bytes = Buffer.alloc(Math.min(size, TAIL))
    let read = 0
    while (read < bytes.length) {
      const count = files.readSync(fd, bytes, read, bytes.length - read, size - bytes.length + read)
      if (count === 0) break
      read += count
    }
    return bytes.toString('utf8', 0, read)
  } finally {
    files.closeSync(fd)
  }
}
