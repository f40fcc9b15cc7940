/** Files that are written whole or not at all, and read whole or not there; and those that grow by lines. */
import { isUtf8 } from 'node:buffer'
import { constants, type Stats } from 'node:fs'
import { CkptError } from '../core/errors.ts'
import { type Env, errno, statIfThere } from '../env.ts'

/** Removes what nobody needs any more. That some of it could not go fails nothing, and is not said: it is swept later. */
export function removeDrafts(env: Env, drafts: readonly (string | Buffer)[]): void {
  for (const draft of drafts) {
    try {
      removeIfThere(env, draft)
    } catch (error) {
      if (errno(error) === undefined) throw error
    }
  }
}

/** Work on drafts: where it fails, what is half written goes, for a full disk is full of that. */
export function withDrafts<T>(env: Env, drafts: readonly (string | Buffer)[], work: () => T): T {
  try {
    return work()
  } catch (error) {
    removeDrafts(env, drafts)
    throw error
  }
}

interface WholeFile {
  content: string | Buffer
  sync?: boolean
  mode?: number
  /** Whose the file is that is replaced: root leaves it to them. */
  owner?: Pick<Stats, 'uid' | 'gid'> | null | undefined
}

/**
 * Writes a file whole or not at all, also where the power fails: a temporary file beside it, synced, and renamed over it.
 * `sync: false`: what can be made anew, or done without. `mode`: 0600 unless told, whatever the umask.
 */
export const writeFileWhole = (env: Env, path: string, whole: WholeFile): void => draftFile(env, path, whole).place()

export interface Draft {
  /** Renames it to the file's name; the directory is synced. */
  place: () => void
  remove: () => void
}

/** The first half of that: the temporary file, whole and synced, for who has several to write before any is in its place. */
export function draftFile(env: Env, path: string, whole: WholeFile): Draft {
  const { files } = env
  const { content, sync = true, mode = 0o600, owner } = whole
  const temporary = `${path}.${env.random(6)}.tmp`
  withDrafts(env, [temporary], () => {
    const fd = files.openSync(temporary, 'wx', 0o600)
    try {
      files.writeFileSync(fd, content)
      if (owner) giveTo(env, fd, owner)
      if (mode !== 0o600) files.chmodSync(temporary, mode)
      if (sync) syncOpen(env, fd)
    } finally {
      files.closeSync(fd)
    }
  })
  return {
    place: () => {
      withDrafts(env, [temporary], () => files.renameSync(temporary, path))
      if (sync) syncDirectory(env, path.slice(0, path.lastIndexOf('/')))
    },
    remove: () => removeDrafts(env, [temporary]),
  }
}

/** Where we may not, it is ours. By its descriptor: nothing else can be at its name, where others may put something. */
function giveTo({ files }: Env, fd: number, { uid, gid }: Pick<Stats, 'uid' | 'gid'>): void {
  const own = files.fstatSync(fd)
  if (own.uid === uid && own.gid === gid) return
  try {
    files.fchownSync(fd, uid, gid)
  } catch (error) {
    if (errno(error) === undefined) throw error
  }
}

/** Moves a file, synced, over what is there, also to another file system; a symlink there stays, and what it names is replaced. */
export function moveFile(env: Env, from: string, to: string): void {
  const { files } = env
  const target = statIfThere(files, to) ? files.realpathSync(to) : to
  syncIfThere(env, from)
  try {
    files.renameSync(from, target)
    return
  } catch (error) {
    if (errno(error) !== 'EXDEV') throw error
  }
  const temporary = `${target}.${env.random(6)}.tmp`
  withDrafts(env, [temporary], () => {
    files.copyFileSync(from, temporary)
    syncIfThere(env, temporary)
    files.renameSync(temporary, target)
  })
  files.unlinkSync(from)
}

/** Adds to the end of a file in one write: what two processes add at once is both there. Mode 0600. */
export function appendTo(env: Env, path: string, { text, sync = false }: { text: string; sync?: boolean }): void {
  const { files } = env
  const fd = files.openSync(path, 'a', 0o600)
  try {
    files.writeSync(fd, text)
    if (sync) syncOpen(env, fd)
  } finally {
    files.closeSync(fd)
  }
}

export function syncDirectory(env: Env, path: string): void {
  syncNow(env, env.files.openSync(path, 'r'))
}

/** False: no such file. */
export function syncIfThere(env: Env, path: string): boolean {
  const fd = openIfThere(env, path)
  if (fd !== null) syncNow(env, fd)
  return fd !== null
}

/** So many files wait for the disk together: it takes them in one go. */
export const TOGETHER = 16

/** Syncs files together, those that are there: the result. */
export async function syncFiles(env: Env, paths: readonly string[]): Promise<string[]> {
  const there: string[] = []
  const rest = paths.values()
  const oneAfterTheOther = async () => {
    for (const path of rest) {
      const fd = openIfThere(env, path)
      if (fd === null) continue
      await syncBeside(env, fd).finally(() => env.files.closeSync(fd))
      there.push(path)
    }
  }
  const ended = await Promise.allSettled(Array.from({ length: TOGETHER }, oneAfterTheOther))
  for (const end of ended) if (end.status === 'rejected') throw end.reason
  return there
}

function openIfThere({ files }: Env, path: string): number | null {
  try {
    return files.openSync(path, 'r')
  } catch (error) {
    if (errno(error) === 'ENOENT') return null
    throw error
  }
}

function syncNow(env: Env, fd: number): void {
  try {
    syncOpen(env, fd)
  } finally {
    env.files.closeSync(fd)
  }
}

/** What link(2) fails with where a file system has no hard links (exFAT, many shared folders), or a file no more of them. */
const LINKLESS: ReadonlySet<string> = new Set(['EPERM', 'EMLINK', 'ENOTSUP', 'ENOSYS'])

export const isLinkless = (error: unknown): boolean => LINKLESS.has(errno(error) ?? '')

/**
 * Gives a file another name, if nothing has that: a copy where there are no hard links, which others see before its bytes
 * are there. @throws EEXIST
 */
export function linkOrCopy({ files }: Env, from: string, to: string): void {
  try {
    files.linkSync(from, to)
  } catch (error) {
    if (!isLinkless(error)) throw error
    files.copyFileSync(from, to, constants.COPYFILE_EXCL)
  }
}

/** Where a file system cannot do it (fsync(2): EINVAL, and what drivers of shared folders say), it is done without. */
export function syncOpen({ files }: Env, fd: number): void {
  try {
    files.fsyncSync(fd)
  } catch (error) {
    if (!isSyncless(error)) throw error
  }
}

/** The same, while other work goes on. */
export async function syncBeside({ sync }: Env, fd: number): Promise<void> {
  try {
    await sync(fd)
  } catch (error) {
    if (!isSyncless(error)) throw error
  }
}

const isSyncless = (error: unknown): boolean => ['EINVAL', 'ENOSYS', 'ENOTSUP'].includes(errno(error) ?? '')

/** The file's content, or null when there is none. Any other failure is an error: of one that may not be read, the system's own. */
export function readIfThere(env: Env, path: string): Buffer | null {
  try {
    return env.files.readFileSync(path)
  } catch (error) {
    if (errno(error) === 'ENOENT') return null
    if (errno(error) === 'EACCES') throw error
    throw new CkptError(
      'DAMAGED',
      `${path} cannot be read: ${error instanceof Error ? error.message : String(error)}`,
      {
        hints: ['ckpt doctor'],
        cause: error,
      },
    )
  }
}

/** Removes a directory that holds nothing; one that holds something stays. */
export function removeIfEmpty({ files }: Pick<Env, 'files'>, directory: string): void {
  try {
    files.rmdirSync(directory)
  } catch (error) {
    const code = errno(error)
    if (code !== 'ENOENT' && code !== 'ENOTEMPTY' && code !== 'EEXIST') throw error
  }
}

export function removeIfThere({ files }: Env, path: string | Buffer): void {
  try {
    files.unlinkSync(path)
  } catch (error) {
    const code = errno(error)
    if (code !== 'ENOENT' && code !== 'ENOTDIR') throw error
  }
}

/** With those above it. Node's own way to make them never ends where one cannot be made though what is above it is there: /proc. */
export function makeDirectories(env: Env, path: string): void {
  const { files } = env
  const make = () => {
    try {
      files.mkdirSync(path, { mode: 0o700 })
    } catch (error) {
      if (errno(error) !== 'EEXIST' || !files.statSync(path).isDirectory()) throw error
    }
  }
  try {
    make()
  } catch (error) {
    const parent = path.slice(0, path.lastIndexOf('/'))
    if (errno(error) !== 'ENOENT' || parent === '') throw error
    makeDirectories(env, parent)
    make()
  }
}

/** Removes a directory of ours and all below it, whatever bytes the names are. `last`: the name of a file in it that goes when all else has. */
export function removeTree(env: Env, path: string | Buffer, last?: string): void {
  const isLast = (name: Buffer) => Number(name.toString() === last)
  try {
    const entries = env.files.readdirSync(path, { withFileTypes: true, encoding: 'buffer' })
    for (const entry of entries.toSorted((a, b) => isLast(a.name) - isLast(b.name))) {
      const at = below(path, entry.name)
      if (entry.isDirectory()) removeTree(env, at)
      else env.files.unlinkSync(at)
    }
    env.files.rmdirSync(path)
  } catch (error) {
    if (errno(error) !== 'ENOENT') throw error
  }
}

const below = (path: string | Buffer, name: Buffer): string | Buffer =>
  typeof path === 'string' && isUtf8(name)
    ? `${path}/${name}`
    : Buffer.concat([Buffer.from(path), Buffer.from('/'), name])
