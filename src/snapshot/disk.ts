/** One path of the worktree at a time: looked at, read, hashed. Nothing here follows a symlink. */
import type { Dirent, Stats } from 'node:fs'
import { constants } from 'node:fs'
import type { Closed } from '../core/clashes.ts'
import type { Oid } from '../core/ids.ts'
import { barePath, parentOf } from '../core/paths.ts'
import type { PathState } from '../core/state.ts'
import { type Env, errno } from '../env.ts'
import type { ObjectStore } from '../git/objects.ts'

const ascii = /^[\x00-\x7f]*$/

/** A worktree path as the file system wants it: text when it is ASCII, else its exact bytes. */
export function native(root: string, path: string): string | Buffer {
  const bare = barePath(path)
  if (bare === '') return root
  if (ascii.test(bare)) return `${root}/${bare}`
  return Buffer.concat([Buffer.from(`${root}/`, 'utf8'), Buffer.from(bare, 'latin1')])
}

/**
 * What is in a directory; names as latin1, one character a byte. Where a file system does not tell what an entry is
 * (readdir(3), DT_UNKNOWN), Node asks by its name, and by a name of other bytes than its own it asks in vain: then the names
 * are taken as they are.
 */
export function entriesIn({ files }: Pick<Env, 'files'>, at: string | Buffer): Dirent[] {
  try {
    return files.readdirSync(at, { withFileTypes: true, encoding: 'latin1' })
  } catch {
    const found = files.readdirSync(at, { withFileTypes: true, encoding: 'buffer' })
    return found.map((one) => Object.assign(one as unknown as Dirent, { name: one.name.toString('latin1') }))
  }
}

/** What lstat says of a path; null when nothing is there. Any other failure is the error code. */
export function look(env: Env, root: string, path: string): Stats | null | { failed: string } {
  try {
    return env.files.lstatSync(native(root, path))
  } catch (error) {
    const code = errno(error)
    if (code === 'ENOENT' || code === 'ENOTDIR') return null
    return { failed: code ?? 'EIO' }
  }
}

export function isStats(found: Stats | null | { failed: string }): found is Stats {
  return found !== null && !('failed' in found)
}

/** Enough of lstat to see that a path changed. */
export function fingerprint(stats: Stats): string {
  return `${stats.size}-${stats.mtimeMs}-${stats.ctimeMs}-${stats.ino}-${stats.mode.toString(8)}`
}

/** A fingerprint less its third field: the ctime, which losing another name moves (link(2)). */
export const withoutCtime = (print: string): string => print.replace(/-[^-]*(-\d+-[0-7]+)$/, '$1')

type Looks = Pick<Stats, 'ino' | 'size' | 'mtimeMs' | 'mode'>

/** Few steps, for a rename comes next. */
export const isSameButCtime = (a: Looks, b: Looks): boolean =>
  a.ino === b.ino && a.size === b.size && a.mtimeMs === b.mtimeMs && a.mode === b.mode

export const permissions = (stats: Stats): number => stats.mode & 0o7777

export type FileReading =
  | { kind: 'read'; oid: Oid; type: 'file' | 'link'; stats: Stats }
  | { kind: 'absent' }
  | { kind: 'directory'; stats: Stats }
  | { kind: 'special'; stats: Stats }
  | { kind: 'unreadable'; code: string }

const ATTEMPTS = 5

/** Replaced meanwhile: to be looked at again. */
const REPLACED: ReadonlySet<string> = new Set(['ENOENT', 'ENOTDIR', 'ELOOP', 'EINVAL', 'ESTALE'])

/** Not for anything that is odd about the file: the next one would fail as well. */
const NOT_THE_FILES: ReadonlySet<string> = new Set(['EMFILE', 'ENFILE', 'ENOMEM'])

/** Bytes: Node reads no larger file in one piece. */
export const LARGEST = 2 ** 31 - 2

/** Where what was read goes. */
export type ObjectWriter = Pick<ObjectStore, 'write'>

/** Nowhere: only the name that it would have is wanted. */
export const onlyNames = (objects: Pick<ObjectStore, 'oidOf'>): ObjectWriter => ({
  write: (type, bytes) => objects.oidOf(type, bytes),
})

/**
 * Reads a file or symlink and writes it to the store as a blob. A file that changes while it is read is read again; one
 * that does not come to rest is `unreadable` (`EAGAIN`).
 */
export function readPath(env: Env, { root, path }: { root: string; path: string }, objects: ObjectWriter): FileReading {
  const { files } = env
  const at = native(root, path)
  for (let attempt = 0; attempt < ATTEMPTS; attempt++) {
    const stats = look(env, root, path)
    if (stats === null) return { kind: 'absent' }
    if (!isStats(stats)) return { kind: 'unreadable', code: stats.failed }
    if (stats.isDirectory()) return { kind: 'directory', stats }
    let content: { type: 'file' | 'link'; bytes: Buffer; stats: Stats }
    try {
      if (stats.isSymbolicLink()) {
        const bytes = files.readlinkSync(at, { encoding: 'buffer' })
        const again = look(env, root, path)
        if (!isStats(again) || fingerprint(again) !== fingerprint(stats)) continue
        content = { type: 'link', bytes, stats }
      } else {
        if (!stats.isFile()) return { kind: 'special', stats }
        // O_NONBLOCK: a fifo put there since the lstat must not hang us.
        const fd = files.openSync(at, constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK)
        try {
          const opened = files.fstatSync(fd)
          if (!opened.isFile()) continue
          if (opened.size > LARGEST) return { kind: 'unreadable', code: 'EFBIG' }
          const bytes = files.readFileSync(fd)
          const after = files.fstatSync(fd)
          if (fingerprint(after) !== fingerprint(opened) || bytes.length !== after.size) continue
          content = { type: 'file', bytes, stats: after }
        } finally {
          files.closeSync(fd)
        }
      }
    } catch (error) {
      const code = errno(error)
      if (code === undefined || NOT_THE_FILES.has(code)) throw error
      if (REPLACED.has(code)) continue
      return { kind: 'unreadable', code }
    }
    // What fails here is the store's failure, and no word about the file: but for one that nobody may write as large.
    const { type, bytes, stats: read } = content
    try {
      return { kind: 'read', type, oid: objects.write('blob', bytes), stats: read }
    } catch (error) {
      if (errno(error) !== 'EFBIG') throw error
      return { kind: 'unreadable', code: 'EFBIG' }
    }
  }
  return { kind: 'unreadable', code: 'EAGAIN' }
}

/** The disk's state of a path, its content in the store. Directories by their key with a trailing slash. */
export function observe(env: Env, { root, path }: { root: string; path: string }, objects: ObjectWriter): PathState {
  if (path.endsWith('/')) {
    const stats = behindSymlink(env, root, path.slice(0, -1)) ? null : look(env, root, path)
    if (stats === null) return { kind: 'absent' }
    if (!isStats(stats)) return { kind: 'unknown', reason: 'unreadable' }
    return stats.isDirectory() ? { kind: 'directory', mode: permissions(stats) } : { kind: 'absent' }
  }
  if (behindSymlink(env, root, path)) return { kind: 'absent' }
  const reading = readPath(env, { root, path }, objects)
  switch (reading.kind) {
    case 'read':
      return { kind: 'present', type: reading.type, oid: reading.oid, mode: permissions(reading.stats) }
    case 'absent':
      return { kind: 'absent' }
    case 'directory':
      return { kind: 'unknown', reason: 'directory' }
    case 'special':
      return { kind: 'unknown', reason: 'special' }
    case 'unreadable':
      return { kind: 'unknown', reason: 'unreadable' }
  }
}

/** The nearest directory of the worktree above a path that is there, and what lstat says of it; not behind a link. */
export function directoryAbove(env: Env, root: string, path: string): { at: string; stats: Stats } | null {
  for (let at = parentOf(path); ; at = parentOf(at)) {
    const stats = look(env, root, at)
    if (isStats(stats) && stats.isDirectory() && !behindSymlink(env, root, `${at}/`)) return { at, stats }
    if (at === '') return null
  }
}

/** Owner's permission to change what a directory holds. */
const OPEN = 0o300

/** Whether its owner has to give themselves permission to change what it holds. */
export const needsOpening = (env: Env, stats: Stats): boolean =>
  env.uid > 0 && stats.uid === env.uid && (stats.mode & OPEN) !== OPEN

/** S_ISVTX: only who owns a file in such a directory, or the directory, takes it away or puts another in its place (inode(7)). */
const STICKY = 0o1000

/**
 * Why nothing can be put at a path or taken away from it, even after a directory of our own is opened, or (`onlyMode`) a
 * directory be given another mode; null: it can.
 */
export function closedBy(
  env: Env,
  { root, path }: { root: string; path: string },
  { onlyMode }: { onlyMode: boolean },
): Closed | null {
  const denied = (at: string, mode: number): string | null => {
    try {
      env.files.accessSync(native(root, at), mode)
      return null
    } catch (error) {
      return errno(error) ?? 'EIO'
    }
  }
  const stats = look(env, root, path)
  // What is immutable may not be written to, whoever asks.
  if (isStats(stats) && !stats.isSymbolicLink() && denied(path, constants.W_OK) === 'EPERM') return 'permission'
  const isTheirs = env.uid > 0 && isStats(stats) && stats.uid !== env.uid
  if (isTheirs && onlyMode && stats.isDirectory()) return 'permission'
  const above = directoryAbove(env, root, path)
  if (above === null) return null
  if (isTheirs && !onlyMode && (above.stats.mode & STICKY) !== 0 && above.stats.uid !== env.uid) return 'permission'
  const code = denied(above.at, constants.W_OK | constants.X_OK)
  if (code === null || (code === 'EACCES' && needsOpening(env, above.stats))) return null
  return code === 'EROFS' ? 'read-only' : 'permission'
}

/** Paths of the worktree on which something is mounted, a file or a directory, and the mounts' numbers (proc(5), mountinfo). Without proc(5): none. */
export function mountsWithin(env: Env, root: string): ReadonlyMap<string, string> {
  const found = new Map<string, string>()
  const within = `${Buffer.from(root, 'utf8').toString('latin1')}/`
  let lines: string[]
  try {
    lines = env.files.readFileSync('/proc/self/mountinfo', 'latin1').split('\n')
  } catch (error) {
    if (errno(error) === undefined) throw error
    return found
  }
  for (const line of lines) {
    const [number, , , , path] = line.split(' ')
    const at = path?.replace(/\\([0-7]{3})/g, (_, octal) => String.fromCharCode(Number.parseInt(octal, 8)))
    if (at?.startsWith(within)) found.set(at.slice(within.length), number!) // the last one lies on the others
  }
  return found
}

/** Whether a directory above a path is not a real directory: then the path itself is not in this worktree. */
export function behindSymlink(env: Env, root: string, path: string): boolean {
  for (let at = path.indexOf('/'); at > 0; at = path.indexOf('/', at + 1)) {
    const stats = look(env, root, path.slice(0, at))
    if (stats === null) return false // nothing there: nothing below either
    if (isStats(stats) && !stats.isDirectory()) return true
  }
  return false
}
