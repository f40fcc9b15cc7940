/**
 * Putting one state on disk, guarded: the new content is written elsewhere, the path is looked at once more right before
 * the rename, and the old inode after it.
 */
import type { Stats } from 'node:fs'
import { parentOf } from '../core/paths.ts'
import { type Env, errno } from '../env.ts'
import type { ApplyEntry, ApplyInput, ApplyResult } from './apply-entry.ts'
import { dropAside, remove, temporaryPath, verifyAside } from './aside.ts'
import {
  behindSymlink,
  directoryAbove,
  fingerprint,
  isSameButCtime,
  isStats,
  look,
  native,
  needsOpening,
  permissions,
  withoutCtime,
} from './disk.ts'
import { ApplyConflict, writeFresh, writeLink } from './fresh.ts'

/** Gives ourselves permission to change what the nearest directory above a path holds, if it is ours. */
export function openAbove(env: Env, root: string, path: string, { opened }: ApplyResult): void {
  const above = directoryAbove(env, root, path)
  if (!above || !needsOpening(env, above.stats)) return
  opened.set(above.at, permissions(above.stats))
  env.files.chmodSync(native(root, above.at), permissions(above.stats) | 0o700)
}

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

export interface One {
  entry: ApplyEntry
  number: number
  result: ApplyResult
  before: Stats | null
}

/** Puts the state after on disk, in one step as others see it. @throws ApplyConflict */
export async function putOne(env: Env, input: ApplyInput, one: One): Promise<void> {
  try {
    await putFrom(env, input, one)
  } catch (error) {
    if (errno(error) !== 'EXDEV' || one.result.beside) throw error
    // Nothing was moved; only what was to be is written.
    remove(env, temporaryPath(env, input, one.entry.path, { suffix: `${one.number}.new`, beside: false }))
    one.result.beside = true
    await putFrom(env, input, one)
  }
}

async function putFrom(env: Env, input: ApplyInput, { entry, number, result, before }: One): Promise<void> {
  const { root } = input
  const { beside } = result
  const { path, pre, post } = entry
  const at = native(root, path)
  openAbove(env, root, path, result)
  if (path.endsWith('/')) {
    putDirectory(env, input, entry, result)
    return
  }
  if (post.kind === 'absent') {
    if (before === null) return
    const old = temporaryPath(env, input, path, { suffix: `${number}.old`, beside })
    if (before.nlink > 1) result.unlinked.add(before.ino)
    env.files.renameSync(at, old)
    verifyAside(env, { old, at, path, before })
    return
  }
  if (post.kind !== 'present') return
  if (
    pre.kind === 'present' &&
    pre.type === 'file' &&
    post.type === 'file' &&
    pre.oid === post.oid &&
    before?.nlink === 1
  ) {
    env.files.chmodSync(at, post.mode)
    return
  }
  makeParents(env, input, path, result)
  const fresh = temporaryPath(env, input, path, { suffix: `${number}.new`, beside })
  const bytes = await input.store.objects.get(post.oid, 'blob')
  if (post.type === 'link') writeLink(env, fresh, { bytes, owner: before, path })
  else result.syncMs += writeFresh(env, fresh, { bytes, mode: post.mode, owner: before, path })
  const old = temporaryPath(env, input, path, { suffix: `${number}.old`, beside })
  putInPlace(env, input, { fresh, old, at, path, before })
  if (before && before.nlink > 1) result.unlinked.add(before.ino)
}

function putDirectory(env: Env, input: ApplyInput, { path, pre, post }: ApplyEntry, result: ApplyResult): void {
  const { root } = input
  const at = native(root, path)
  if (post.kind === 'absent') {
    removeIfEmpty(env, root, path)
    return
  }
  if (post.kind !== 'directory') return
  const bare = path.slice(0, -1)
  makeParents(env, input, bare, result)
  const stats = look(env, root, bare)
  if (stats === null) env.files.mkdirSync(at)
  else if (!isStats(stats) || !stats.isDirectory()) throw new ApplyConflict(path, 'a file is in its place')
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

function makeParents(env: Env, { root, directoryMode }: ApplyInput, path: string, { made }: ApplyResult): void {
  if (behindSymlink(env, root, path))
    throw new ApplyConflict(path, 'a file or a symlink is in the place of its directory')
  const missing: string[] = []
  for (let at = parentOf(path); at !== ''; at = parentOf(at)) {
    const stats = look(env, root, at)
    if (stats !== null && !isStats(stats))
      throw new ApplyConflict(path, `its directory cannot be reached (${stats.failed})`)
    if (stats?.isDirectory()) break
    if (stats !== null) throw new ApplyConflict(path, 'a file or a symlink is in the place of its directory')
    missing.unshift(at)
  }
  for (const directory of missing) {
    const at = native(root, directory)
    env.files.mkdirSync(at)
    made.push(directory)
    env.files.chmodSync(at, directoryMode)
  }
}

interface Placing {
  fresh: string | Buffer
  /** What the old inode is linked to. */
  old: string | Buffer
  at: string | Buffer
  path: string
  before: Stats | null
}

function putInPlace(env: Env, input: ApplyInput, { fresh, old, at, path, before }: Placing): void {
  const { files } = env
  if (!isAsExpected(look(env, input.root, path), before && fingerprint(before), new Set())) {
    files.unlinkSync(fresh)
    throw new ApplyConflict(path, 'changed at this very moment')
  }
  if (before === null) {
    // Nothing is there: a link fails if something came meanwhile, a rename would not.
    try {
      files.linkSync(fresh, at)
      files.unlinkSync(fresh)
    } catch (error) {
      const code = errno(error)
      if (code === 'EEXIST') {
        files.unlinkSync(fresh)
        throw new ApplyConflict(path, 'something else was made there at this very moment')
      }
      if (code !== 'EPERM' && code !== 'EMLINK' && code !== 'ENOTSUP') throw error
      env.files.renameSync(fresh, at)
    }
    return
  }
  let linked = true
  try {
    files.linkSync(at, old)
  } catch (error) {
    const code = errno(error)
    if (code !== 'EPERM' && code !== 'EMLINK' && code !== 'ENOTSUP') throw error
    linked = false // a file system, or an owner, without links: the look right before is all there is
  }
  // Once more, for the link took its time: a file that took its place meanwhile would be replaced unseen.
  const now = look(env, input.root, path)
  if (!isStats(now) || !isSameButCtime(now, before)) {
    files.unlinkSync(fresh)
    if (linked) dropAside(env, old, before)
    throw new ApplyConflict(path, 'changed at this very moment')
  }
  files.renameSync(fresh, at)
  if (linked) verifyAside(env, { old, at, path, before })
}
