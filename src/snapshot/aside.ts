/**
 * What lies beside the worktree while states are put on disk: new content before it is moved in (`.new`), and the old
 * inode of each path after it was moved out (`.old`). An old inode goes only when the store has its bytes.
 */
import type { Stats } from 'node:fs'
import path from 'node:path'
import type { Oid } from '../core/ids.ts'
import { parentOf } from '../core/paths.ts'
import type { PathState } from '../core/state.ts'
import { type Env, errno, type Files, lstatIfThere } from '../env.ts'
import type { Store } from '../git/store.ts'
import { isLinkless } from '../git/whole-file.ts'
import type { ApplyInput } from './apply-entry.ts'
import { behindSymlink, isSameButCtime, isStats, look, native } from './disk.ts'
import { ApplyConflict, CHANGED, MOVED_AWAY } from './fresh.ts'
import { isReserved, reservedName } from './worktree.ts'

/** Where a temporary file lies: in our own directory, or beside its target where that is told, or on another file system. */
export function temporaryPath(
  env: Env,
  { root, store, nonce }: Pick<ApplyInput, 'root' | 'store' | 'nonce'>,
  { path, suffix, beside }: { path: string; suffix: string; beside: boolean },
): string | Buffer {
  if (beside) return native(root, besidePath(path, nonce, suffix))
  const own = `${store.worktreeDir}/tmp`
  env.files.mkdirSync(own, { recursive: true, mode: 0o700 })
  const directory = look(env, root, parentOf(path))
  if (!isStats(directory) || directory.dev === env.files.lstatSync(own).dev) return `${own}/${nonce}-${suffix}`
  return native(root, besidePath(path, nonce, suffix))
}

export function besidePath(path: string, nonce: string, suffix: string): string {
  const parent = parentOf(path)
  return `${parent === '' ? '' : `${parent}/`}${reservedName(nonce, suffix)}`
}

export interface Aside {
  old: string | Buffer
  at: string | Buffer
  path: string
  /** What the store has of it. */
  pre: PathState
  /** What lstat said of the path, and of its directory, when we looked. */
  before: Stats
  directory: Stats
  /** What was put there, with what the store has of it; null: nothing was. */
  put: { stats: Stats; state: PathState } | null
}

/**
 * The old inode must be what was there when we looked, in a directory of the worktree; if it was written to meanwhile, or
 * the directory moved away with a link left in its place, it is put back. @throws ApplyConflict
 */
export function verifyAside(env: Env, { root, store }: Pick<ApplyInput, 'root' | 'store'>, aside: Aside): void {
  const { old, path, before } = aside
  const isLinked = behindSymlink(env, root, path)
  if (!isLinked && (dropAside(env, old, before) || dropSaved(env, store, aside))) return
  const isBegun = !isBack(env, { root, store }, aside)
  const name = isBegun ? wentAlong(env, old) : null
  const reason = name !== null || isLinked ? MOVED_AWAY : CHANGED
  throw new ApplyConflict(path, name === null ? reason : `${reason}; what it held went along as ${name}`, { isBegun })
}

/** The name of one that lay beside its path, and is there no more: it is wherever their directory went. */
function wentAlong({ files }: Env, old: string | Buffer): string | null {
  const name = path.basename(old.toString())
  return isReserved(name) && lstatIfThere(files, old) === null ? name : null
}

/**
 * Back by its name, if that leads to where it was, and nobody has put or written something else there since; else the sweep
 * finds it, and what was put elsewhere goes.
 */
function isBack(
  env: Env,
  { root, store }: Pick<ApplyInput, 'root' | 'store'>,
  { old, at, path, directory, put }: Aside,
): boolean {
  const { files } = env
  try {
    if (isSameInode(files.statSync(native(root, parentOf(path))), directory)) {
      if (put === null) moveWhereNothingIs(env, old, at)
      else if (isStill(env, store, { at, before: put.stats, states: [put.state] })) files.renameSync(old, at)
      else return false
      return true
    }
  } catch (error) {
    if (errno(error) === undefined) throw error
  }
  if (put) withdraw(env, at, put.stats)
  return false
}

/** Removes what was put somewhere, if it is still there as it was put. */
export function withdraw({ files }: Env, at: string | Buffer, put: Stats): void {
  try {
    if (isSameButCtime(files.lstatSync(at), put)) files.unlinkSync(at)
  } catch (error) {
    if (errno(error) === undefined) throw error
  }
}

export const isSameInode = (a: Stats, b: Stats): boolean => a.ino === b.ino && a.dev === b.dev

/** Removes an old inode that is as it was when we looked; its content is in the store. False: it is not, or it is gone. */
export function dropAside({ files }: Env, old: string | Buffer, before: Stats): boolean {
  try {
    const isAsItWas = isSameButCtime(files.lstatSync(old), before)
    if (isAsItWas) files.unlinkSync(old)
    return isAsItWas
  } catch (error) {
    if (isOutOfReach(error)) return false
    throw error
  }
}

/** The same where its number is another by now: of what the store has. */
function dropSaved(env: Env, store: Store, { old, before, pre }: Aside): boolean {
  const isStill = isStillSaved(env, store, { at: old, before, pre })
  if (isStill) env.files.unlinkSync(old)
  return isStill
}

/**
 * Whether what lies there is what it was, though not by its number: some file systems give each name one of its own (sshfs
 * and others in FUSE), others a new one with the first change (a lower layer of overlayfs). What it holds decides.
 */
export function isStillSaved(
  { files }: Env,
  store: Store,
  { at, before, pre }: { at: string | Buffer; before: Stats; pre: PathState },
): boolean {
  try {
    const stats = files.lstatSync(at)
    return (
      pre.kind === 'present' &&
      isSameButCtime({ ...stats, ino: before.ino }, before) &&
      oidAt(files, store, { at, stats }) === pre.oid &&
      isSameButCtime(files.lstatSync(at), stats)
    )
  } catch (error) {
    if (isOutOfReach(error)) return false
    throw error
  }
}

/** Whether what lies there is as it was when we looked: by its number, or by what the store has. @throws where nothing is there */
export function isStill(
  env: Env,
  store: Store,
  { at, before, states }: { at: string | Buffer; before: Stats; states: readonly PathState[] },
): boolean {
  if (isSameButCtime(env.files.lstatSync(at), before)) return true
  return states.some((pre) => isStillSaved(env, store, { at, before, pre }))
}

export function oidAt(files: Files, { objects }: Store, { at, stats }: { at: string | Buffer; stats: Stats }): Oid {
  const bytes = stats.isSymbolicLink() ? files.readlinkSync(at, { encoding: 'buffer' }) : files.readFileSync(at)
  return objects.oidOf('blob', bytes)
}

const OUT_OF_REACH: ReadonlySet<string> = new Set(['ENOENT', 'ENOTDIR', 'EACCES', 'ELOOP', 'ENAMETOOLONG'])

/** Nothing is there, or can be, or its directory is closed: one odd path holds up nothing else. */
export const isOutOfReach = (error: unknown): boolean => OUT_OF_REACH.has(errno(error) ?? '')

/** Moves a file to where nothing is: a link fails if something came meanwhile, a rename would not. @throws EEXIST */
export function moveWhereNothingIs(env: Env, from: string | Buffer, at: string | Buffer): void {
  const { files } = env
  try {
    // Of a symlink some systems (macOS) link what it leads to.
    if (files.lstatSync(from).isSymbolicLink()) files.symlinkSync(files.readlinkSync(from, { encoding: 'buffer' }), at)
    else files.linkSync(from, at)
  } catch (error) {
    if (!isLinkless(error)) throw error
    // The look right before is all there is.
    if (lstatIfThere(files, at))
      throw Object.assign(new Error('something is there', { cause: error }), { code: 'EEXIST' })
    files.renameSync(from, at)
    return
  }
  remove(env, from) // which somebody may have done
}

export function remove(env: Env, at: string | Buffer): void {
  try {
    env.files.unlinkSync(at)
  } catch (error) {
    const code = errno(error)
    // A directory there is a running command's own.
    if (!isOutOfReach(error) && code !== 'EISDIR' && code !== 'EPERM') throw error
  }
}
