/** What an operation that did not end left of its temporary files. */
import type { Stats } from 'node:fs'
import path from 'node:path'
import type { Oid } from '../core/ids.ts'
import { shown } from '../core/paths.ts'
import { sameContent, sameState } from '../core/state.ts'
import { type Env, errno, namesIfThere } from '../env.ts'
import { syncIfThere } from '../git/whole-file.ts'
import type { ApplyEntry, ApplyInput } from './apply-entry.ts'
import { besidePath, isOutOfReach, isSameInode, isStill, moveWhereNothingIs, oidAt, remove } from './aside.ts'
import { behindSymlink, isStats, look, native, observe } from './disk.ts'
import { closeOpened, type Opened, openAbove } from './opening.ts'

type Sweep = Pick<ApplyInput, 'root' | 'store' | 'nonce'>

/**
 * Removes what an operation that did not end left of its temporary files. An old inode that was written to while it was
 * on its way out holds somebody's only copy: it goes back to its place or, where something else is by now, to a file
 * that is named.
 * @param ordered the operation's entries in the order in which they were carried out
 * @returns a sentence for each such file
 */
export async function sweepTemporary(env: Env, sweep: Sweep, ordered: readonly ApplyEntry[]): Promise<string[]> {
  const { root, store, nonce } = sweep
  const own = `${store.worktreeDir}/tmp`
  const opened: Opened = new Map()
  const said: (string | null)[] = []
  const seen = new Set<string>()
  try {
    for (const [number, entry] of ordered.entries()) {
      const [old, half] = ['old', 'new'].map((suffix) => besidePath(entry.path, nonce, `${number}.${suffix}`))
      const inOwn = `${own}/${nonce}-${number}.old`
      seen.add(inOwn)
      const olds = [
        { old: inOwn, name: inOwn, entry },
        { old: native(root, old!), name: shown(old!), entry },
      ].filter((one) => mayBeThere(env, one.old))
      const isHalf = mayBeThere(env, native(root, half!))
      if (isHalf || olds.length > 0) openAbove(env, { root, path: entry.path }, opened)
      for (const one of olds) said.push(await settled(env, sweep, one))
      if (isHalf) remove(env, native(root, half!))
    }
    for (const file of namesIfThere(env.files, own)) {
      const at = `${own}/${file}`
      if (seen.has(at)) continue
      if (file.endsWith('.old')) said.push(await settled(env, sweep, { old: at, name: at, entry: null }))
      else if (file.startsWith(`${nonce}-`)) remove(env, at) // what others have there is theirs
    }
  } finally {
    closeOpened(env, root, opened)
  }
  return said.filter((word) => word !== null)
}

/** True too where its directory is closed. */
function mayBeThere({ files }: Env, at: string | Buffer): boolean {
  try {
    files.lstatSync(at)
    return true
  } catch (error) {
    if (!isOutOfReach(error)) throw error
    return errno(error) === 'EACCES'
  }
}

interface Spared {
  old: string | Buffer
  entry: ApplyEntry | null
  /** A free place, for a person to look into. */
  spare: string
}

interface Old {
  old: string | Buffer
  /** As people are told. */
  name: string
  entry: ApplyEntry | null
}

/** What waiting helps against: the next command tries again. */
const PASSES: ReadonlySet<string> = new Set(['EIO', 'EROFS', 'ENOSPC', 'EDQUOT', 'EMFILE', 'ENFILE', 'ENOMEM'])

/** One that cannot be taken away holds up nothing else: it is named. */
async function settled(env: Env, sweep: Sweep, one: Old): Promise<string | null> {
  try {
    return await settle(env, sweep, one)
  } catch (error) {
    const code = errno(error)
    if (code === undefined || PASSES.has(code)) throw error
    const whose = one.entry ? `What was at ${shown(one.entry.path)}` : 'What was at a path'
    return `${whose} lies in ${one.name}, which cannot be taken away (${code}).`
  }
}

/** What to do with one old inode; null: it is gone, and nothing with it. */
async function settle(env: Env, sweep: Sweep, one: Old): Promise<string | null> {
  const { files } = env
  const { root, store } = sweep
  const { old, entry } = one
  let stats: Stats
  try {
    stats = files.lstatSync(old)
  } catch (error) {
    if (errno(error) !== 'EACCES' && isOutOfReach(error)) return null
    if (errno(error) === 'EACCES' && !liesElsewhere(env, sweep)) return null
    throw error
  }
  const now = entry ? look(env, root, entry.path) : null
  if (isStats(now) && isSameInode(now, stats)) {
    files.unlinkSync(old) // its name in the worktree is still there
    return null
  }
  if (await isSaved({ files, store }, one, stats)) {
    files.unlinkSync(old)
    return null
  }
  const kept = `${store.worktreeDir}/kept`
  const spare = `${kept}/${env.random(6)}`
  const back = entry && putBack(env, sweep, { old, entry, spare })
  if (back === 'whole') return `${shown(entry!.path)} was written to at that very moment; it holds that now.`
  files.mkdirSync(kept, { recursive: true, mode: 0o700 })
  const to = back === 'spare' ? spare : setAside(env, sweep, { old, entry, spare })
  return `What was written to ${entry ? shown(entry.path) : 'a file'} at that very moment is in ${to}.`
}

/** Whether old inodes lie beside their paths, for the store is on another file system. */
function liesElsewhere({ files }: Env, { root, store }: Sweep): boolean {
  return files.lstatSync(root).dev !== files.lstatSync(store.worktreeDir).dev
}

/**
 * Puts an old inode back by its name, unless something that only the worktree holds is there (null). What it takes the
 * place of is looked at once more afterwards: `spare` is that, where it was written to right then.
 */
function putBack(
  env: Env,
  { root, store }: Sweep,
  { old, entry, spare }: Spared & { entry: ApplyEntry },
): 'whole' | 'spare' | null {
  const { files } = env
  const at = native(root, entry.path)
  const before = look(env, root, entry.path)
  if (behindSymlink(env, root, entry.path) || !isOurs(env, { root, store }, entry)) return null
  try {
    if (!isStats(before)) {
      moveWhereNothingIs(env, old, at)
      return 'whole'
    }
    files.mkdirSync(path.dirname(spare), { recursive: true, mode: 0o700 })
    files.linkSync(at, spare)
  } catch (error) {
    if (errno(error) === undefined) throw error
    return null // its directory is gone or closed, or on another mount, or something came
  }
  const isAsItWas = () => isStill(env, store, { at: spare, before, states: [entry.pre, entry.post] })
  try {
    const now = look(env, root, entry.path)
    if (isAsItWas() && isStats(now) && isSameInode(now, before)) {
      files.renameSync(old, at)
      if (!isAsItWas()) return 'spare'
      files.unlinkSync(spare)
      return 'whole'
    }
  } catch (error) {
    if (errno(error) === undefined) throw error
  }
  files.unlinkSync(spare)
  return null
}

/** What is neither a file nor a link took a file's place right before that went aside: nobody has it. */
async function isSaved(
  { files, store }: Pick<Env, 'files'> & Pick<Sweep, 'store'>,
  { old, entry }: Old,
  stats: Stats,
): Promise<boolean> {
  if (!stats.isFile() && !stats.isSymbolicLink()) return false
  let oid: Oid
  try {
    oid = oidAt(files, store, { at: old, stats })
  } catch (error) {
    if (errno(error) === undefined || PASSES.has(errno(error)!)) throw error
    return false // closed, or too large to be read
  }
  if (!entry) return (await store.objects.read(oid)) !== null
  // On its way back it was what the operation had put there.
  return [entry.pre, entry.post].some((state) => state.kind === 'present' && state.oid === oid)
}

/**
 * Also to another file system, or mount. What is no file and no link cannot be copied there: it stays where people see it.
 * Returns where it is.
 */
function setAside(env: Env, { root }: Sweep, { old, entry, spare: to }: Spared): string {
  const { files } = env
  try {
    files.renameSync(old, to)
    return to
  } catch (error) {
    if (errno(error) !== 'EXDEV') throw error
  }
  const stats = files.lstatSync(old)
  if (entry && !stats.isFile() && !stats.isSymbolicLink()) {
    const beside = besideOf(entry.path, env.random(6))
    files.renameSync(old, native(root, beside))
    return shown(beside)
  }
  if (stats.isSymbolicLink()) files.symlinkSync(files.readlinkSync(old, { encoding: 'buffer' }), to)
  else {
    files.copyFileSync(old, to)
    syncIfThere(env, to)
  }
  files.unlinkSync(old)
  return to
}

/** NAME_MAX */
const LONGEST_NAME = 255

/** One character a byte. */
function besideOf(at: string, hex: string): string {
  const name = path.posix.basename(at)
  return `${at.slice(0, at.length - name.length)}${name.slice(0, LONGEST_NAME - hex.length - 1)}~${hex}`
}

/** Nothing that only the worktree holds is at the path. */
function isOurs(env: Env, { root, store }: Pick<Sweep, 'root' | 'store'>, { path, pre, post }: ApplyEntry): boolean {
  const now = observe(env, { root, path }, store.objects)
  return now.kind === 'absent' || sameContent(now, pre) || sameState(now, post)
}
