/**
 * Putting one state on disk, guarded: the new content is written elsewhere, the path is looked at once more right before
 * the rename, and the old inode after it.
 */
import type { Stats } from 'node:fs'
import { parentOf } from '../core/paths.ts'
import { type Env, errno } from '../env.ts'
import { isLinkless } from '../git/whole-file.ts'
import type { ApplyEntry, ApplyInput, ApplyResult } from './apply-entry.ts'
import { dropAside, isStillSaved, moveWhereNothingIs, remove, temporaryPath, verifyAside, withdraw } from './aside.ts'
import { behindSymlink, fingerprint, isSameButCtime, isStats, look, native, withoutCtime } from './disk.ts'
import { ApplyConflict, CHANGED, MOVED_AWAY, writeFresh, writeLink } from './fresh.ts'
import { openAbove } from './opening.ts'

/** Whether lstat says what it said when the plan was made. */
export function isAsExpected(
  stats: ReturnType<typeof look>,
  expected: string | null,
  unlinked: ReadonlySet<number>,
): boolean {
  if (stats !== null && !isStats(stats)) return false
  if (stats === null || stats.isDirectory()) return expected === null
  const print = fingerprint(stats)
  if (print === expected) return true
  return unlinked.has(stats.ino) && expected !== null && withoutCtime(print) === withoutCtime(expected)
}

/** S_ISGID. */
const SET_GROUP_ID = 0o2000

export interface One {
  entry: ApplyEntry
  number: number
  result: ApplyResult
  before: Stats | null
}

/** New content that is written: once it is on disk, it goes to its place. */
export interface Begun extends One {
  /** Never rejects. */
  onDisk: ReturnType<typeof writeFresh>
  bytes: number
  fresh: string | Buffer
  /** Whether it lies beside its target. */
  beside: boolean
}

/**
 * Puts the state after on disk, in one step as others see it; of a file the new content alone, beside its place. The result
 * is what is still to be placed. @throws ApplyConflict
 */
export async function begin(env: Env, input: ApplyInput, one: One): Promise<Begun | null> {
  const { beside } = one.result
  try {
    return await beginAt(env, input, one)
  } catch (error) {
    return orBeside(env, input, { ...one, beside, error })
  }
}

/** Puts what was begun in its place, or begins once more where that is on another file system. @throws ApplyConflict */
export async function place(env: Env, input: ApplyInput, begun: Begun): Promise<Begun | null> {
  const { result, before } = begun
  try {
    const start = env.monotonic()
    const notOnDisk = await begun.onDisk
    result.syncMs += env.monotonic() - start
    if (notOnDisk) throw notOnDisk.failed
    openAbove(env, { root: input.root, path: begun.entry.path }, result.opened) // somebody may have closed it meanwhile
    putInPlace(env, input, begun)
    if (before && before.nlink > 1) result.unlinked.add(before.ino)
    return null
  } catch (error) {
    return orBeside(env, input, { ...begun, error })
  }
}

/** After a failure where nothing was moved, or it is back; only what was to be is written. */
async function orBeside(
  env: Env,
  input: ApplyInput,
  { error, beside, ...one }: One & { beside: boolean; error: unknown },
): Promise<Begun | null> {
  const { path } = one.entry
  const code = errno(error) ?? ''
  const isElsewhere = code === 'EXDEV' && !beside
  const isTaken = TAKEN_AWAY.has(code)
  if (!isElsewhere && !isTaken && !(error instanceof ApplyConflict)) throw error
  remove(env, temporaryPath(env, input, { path, suffix: `${one.number}.new`, beside }))
  if (!isElsewhere) throw isTaken ? new ApplyConflict(path, CHANGED) : error
  one.result.beside = true
  return begin(env, input, one)
}

/** What a call fails with that finds something else at a path, or above it, than the look right before it. */
const TAKEN_AWAY: ReadonlySet<string> = new Set(['ENOENT', 'ENOTDIR', 'ELOOP', 'EEXIST', 'EISDIR'])

async function beginAt(env: Env, input: ApplyInput, one: One): Promise<Begun | null> {
  const { entry, number, result, before } = one
  const { root } = input
  const { beside } = result
  const { path, pre, post } = entry
  const at = native(root, path)
  openAbove(env, { root, path }, result.opened)
  if (path.endsWith('/')) {
    putDirectory(env, input, { entry, result })
    return null
  }
  if (post.kind === 'absent') {
    if (before === null) return null
    const old = temporaryPath(env, input, { path, suffix: `${number}.old`, beside })
    if (before.nlink > 1) result.unlinked.add(before.ino)
    const directory = directoryOf(env, root, path)
    env.files.renameSync(at, old)
    verifyAside(env, input, { old, at, path, pre, before, directory, put: null })
    return null
  }
  if (post.kind !== 'present') return null
  if (
    pre.kind === 'present' &&
    pre.type === 'file' &&
    post.type === 'file' &&
    pre.oid === post.oid &&
    before?.nlink === 1
  ) {
    directoryOf(env, root, path)
    env.files.chmodSync(at, post.mode)
    return null
  }
  makeParents(env, input, { path, made: result.made })
  const bytes = await input.store.objects.get(post.oid, 'blob')
  if (post.type === 'link' && before === null) {
    putLink(env, input, { path, bytes })
    return null
  }
  const fresh = temporaryPath(env, input, { path, suffix: `${number}.new`, beside })
  const begun = { ...one, beside, fresh, bytes: bytes.length }
  if (post.type === 'link') {
    writeLink(env, fresh, { bytes, owner: before, path })
    return { ...begun, onDisk: Promise.resolve(null) }
  }
  const group = before ? null : groupGivenIn(env, root, parentOf(path))
  return { ...begun, onDisk: writeFresh(env, fresh, { bytes, mode: post.mode, owner: before, group, path }) }
}

/** The group of what is made in a directory whose set-group-ID bit is set (inode(7)); null: that of whoever makes it. */
function groupGivenIn({ files }: Env, root: string, directory: string): number | null {
  const { mode, gid } = files.lstatSync(native(root, directory))
  return (mode & SET_GROUP_ID) === 0 ? null : gid
}

/** A symlink where nothing is: made there, for it is whole at once, and fails if something came meanwhile. */
function putLink(env: Env, { root }: ApplyInput, { path, bytes }: { path: string; bytes: Buffer }): void {
  const at = native(root, path)
  directoryOf(env, root, path)
  writeLink(env, at, { bytes, owner: null, path })
  if (!behindSymlink(env, root, path)) return
  env.files.unlinkSync(at)
  throw new ApplyConflict(path, MOVED_AWAY)
}

function putDirectory(
  env: Env,
  input: ApplyInput,
  { entry: { path, pre, post }, result }: Pick<One, 'entry' | 'result'>,
): void {
  const { root } = input
  const at = native(root, path)
  if (post.kind === 'absent') {
    removeIfEmpty(env, root, path)
    return
  }
  if (post.kind !== 'directory') return
  const bare = path.slice(0, -1)
  makeParents(env, input, { path: bare, made: result.made })
  const stats = look(env, root, bare)
  if (stats === null) env.files.mkdirSync(at)
  else if (!isStats(stats) || !stats.isDirectory())
    throw new ApplyConflict(path, 'cannot be made: a file is in its place')
  // What comes into a new one needs it open; it gets its mode at the end.
  const open = pre.kind === 'directory' ? post.mode : post.mode | 0o700
  if (open === post.mode) result.opened.delete(bare)
  else result.opened.set(bare, post.mode)
  env.files.chmodSync(at, open)
}

export function removeIfEmpty(env: Env, root: string, directory: string): void {
  try {
    if (!behindSymlink(env, root, `${directory}${directory.endsWith('/') ? '' : '/'}x`))
      env.files.rmdirSync(native(root, directory))
  } catch (error) {
    const code = errno(error)
    // Somebody's files are in it, or it is no directory any more: then it stays.
    if (code !== 'ENOTEMPTY' && code !== 'ENOENT' && code !== 'EEXIST' && code !== 'ENOTDIR' && code !== 'EBUSY')
      throw error
  }
}

function makeParents(
  env: Env,
  { root, directoryMode }: ApplyInput,
  { path, made }: { path: string; made: string[] },
): void {
  if (behindSymlink(env, root, path)) throw new ApplyConflict(path, MOVED_AWAY)
  const missing: string[] = []
  for (let at = parentOf(path); at !== ''; at = parentOf(at)) {
    const stats = look(env, root, at)
    if (stats !== null && !isStats(stats))
      throw new ApplyConflict(path, `is in a directory that cannot be reached (${stats.failed})`)
    if (stats?.isDirectory()) break
    if (stats !== null) throw new ApplyConflict(path, MOVED_AWAY)
    missing.unshift(at)
  }
  for (const directory of missing) {
    const at = native(root, directory)
    env.files.mkdirSync(at)
    if (behindSymlink(env, root, directory)) {
      env.files.rmdirSync(at)
      throw new ApplyConflict(path, MOVED_AWAY)
    }
    made.push(directory)
    env.files.chmodSync(at, directoryMode)
  }
}

/** What lstat says of the directory that a path is in: a real one, of this worktree. @throws ApplyConflict */
function directoryOf(env: Env, root: string, path: string): Stats {
  const stats = behindSymlink(env, root, path) ? null : look(env, root, parentOf(path))
  if (isStats(stats) && stats.isDirectory()) return stats
  throw new ApplyConflict(path, MOVED_AWAY)
}

function putInPlace(env: Env, input: ApplyInput, { fresh, entry, number, before, beside }: Begun): void {
  const { path, pre, post } = entry
  const at = native(input.root, path)
  const old = temporaryPath(env, input, { path, suffix: `${number}.old`, beside })
  const { files } = env
  const { root } = input
  const directory = directoryOf(env, root, path)
  if (!isAsExpected(look(env, root, path), before && fingerprint(before), new Set()))
    throw new ApplyConflict(path, CHANGED)
  const put = files.lstatSync(fresh)
  if (before === null) {
    moveWhereNothingIs(env, fresh, at)
    if (!behindSymlink(env, root, path)) return
    withdraw(env, at, put)
    throw new ApplyConflict(path, MOVED_AWAY)
  }
  // Of a symlink some systems (macOS) link what it leads to. Nobody writes into one, so that there is nothing to look at afterwards.
  let linked = !before.isSymbolicLink()
  try {
    if (linked) files.linkSync(at, old)
  } catch (error) {
    if (!isLinkless(error)) throw error
    linked = false // a file system, or an owner, without links: the look right before is all there is
  }
  // Once more, for the link took its time: a file that took its place meanwhile would be replaced unseen.
  const now = look(env, root, path)
  if (!(isStats(now) && isSameButCtime(now, before)) && !isStillSaved(env, input.store, { at, before, pre })) {
    if (linked) dropAside(env, old, before)
    throw new ApplyConflict(path, CHANGED)
  }
  files.renameSync(fresh, at)
  if (linked) verifyAside(env, input, { old, at, path, pre, before, directory, put: { stats: put, state: post } })
  else if (behindSymlink(env, root, path)) {
    withdraw(env, at, put)
    throw new ApplyConflict(path, MOVED_AWAY, { isBegun: true })
  }
}
