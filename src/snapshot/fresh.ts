/** New files and symlinks, made elsewhere and complete before they are put in their place. */
import type { Stats } from 'node:fs'
import { pathToText } from '../core/paths.ts'
import { type Env, errno } from '../env.ts'
import { syncBeside, withDrafts } from '../git/whole-file.ts'

/** A path is neither as planned nor as it should become. */
export class ApplyConflict extends Error {
  readonly path: string
  /** Goes on after the path. */
  readonly reason: string
  /** Whether the path may have been changed by us, and not given back. */
  readonly isBegun: boolean
  constructor(path: string, reason: string, { isBegun = false } = {}) {
    super(`${pathToText(path)}: ${reason}`)
    this.path = path
    this.reason = reason
    this.isBegun = isBegun
  }
}

/** Reasons of a conflict. */
export const CHANGED = 'changed at this very moment'
export const MOVED_AWAY = 'is in a directory that was moved or replaced at this very moment'

interface Fresh {
  bytes: Buffer
  mode: number
  owner: Stats | null
  /** Where nothing is replaced: the group that the directory gives to what is made in it. */
  group?: number | null
  path: string
}

/** Writes a whole new file. The result: on disk, or why not; it is closed then. */
export function writeFresh(
  env: Env,
  at: string | Buffer,
  { bytes, mode, owner, group = null, path }: Fresh,
): Promise<{ failed: unknown } | null> {
  const { files } = env
  const fd = files.openSync(at, 'wx', 0o600)
  try {
    withDrafts(env, [at], () => {
      files.writeFileSync(fd, bytes)
      keepOwner(env, at, { owner, path })
      if (group !== null) giveGroup(env, at, group)
      files.chmodSync(at, mode) // after chown, which clears some bits
    })
  } catch (error) {
    files.closeSync(fd)
    throw error
  }
  return onDisk(env, fd)
}

/** Never rejects: who wrote it looks later. To close it may be what fails (close(2): a shared disk, a quota). */
async function onDisk(env: Env, fd: number): Promise<{ failed: unknown } | null> {
  let found: { failed: unknown } | null = null
  try {
    await syncBeside(env, fd)
  } catch (error) {
    found = { failed: error }
  }
  try {
    env.files.closeSync(fd)
  } catch (error) {
    found ??= { failed: error }
  }
  return found
}

export function writeLink(env: Env, at: string | Buffer, { bytes, owner, path }: Omit<Fresh, 'mode'>): void {
  env.files.symlinkSync(bytes, at)
  keepOwner(env, at, { owner, path })
}

/** Made elsewhere, it has not had it by itself. Where we may not give it, it keeps ours. */
function giveGroup({ files }: Env, at: string | Buffer, group: number): void {
  const own = files.lstatSync(at)
  if (own.gid === group) return
  try {
    files.lchownSync(at, own.uid, group)
  } catch (error) {
    if (errno(error) !== 'EPERM') throw error
  }
}

/** The owner of what is replaced, for what replaces it. @throws ApplyConflict */
function keepOwner(env: Env, at: string | Buffer, { owner, path }: Pick<Fresh, 'owner' | 'path'>): void {
  const { files } = env
  const own = files.lstatSync(at)
  if (!owner || (owner.uid === own.uid && owner.gid === own.gid)) return
  try {
    files.lchownSync(at, owner.uid, owner.gid)
  } catch (error) {
    if (errno(error) !== 'EPERM') throw error
    throw new ApplyConflict(path, 'belongs to somebody else, and its owner cannot be kept')
  }
}
