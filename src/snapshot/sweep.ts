/** What an operation that did not end left of its temporary files. */
import type { Stats } from 'node:fs'
import { shown } from '../core/paths.ts'
import { sameContent, sameState } from '../core/state.ts'
import { type Env, errno, namesIfThere } from '../env.ts'
import type { ApplyEntry, ApplyInput } from './apply-entry.ts'
import { besidePath, isOutOfReach, isSameInode, oidAt, putWhereNothingIs, remove } from './aside.ts'
import { isSameButCtime, isStats, look, native, observe } from './disk.ts'

type Sweep = Pick<ApplyInput, 'root' | 'store' | 'nonce'>

/**
 * Removes what an operation that did not end left of its temporary files. An old inode that was written to while it was
 * on its way out holds somebody's only copy: it goes back to its place or, where something else is by now, to a file
 * that is named.
 * @param ordered the operation's entries in the order in which they were carried out
 * @returns a sentence for each such file
 */
export async function sweepTemporary(env: Env, sweep: Sweep, ordered: readonly ApplyEntry[]): Promise<string[]> {
  const own = `${sweep.store.worktreeDir}/tmp`
  const said: (string | null)[] = []
  for (const [number, entry] of ordered.entries()) {
    const beside = (suffix: string) => native(sweep.root, besidePath(entry.path, sweep.nonce, `${number}.${suffix}`))
    said.push(await settle(env, sweep, { old: `${own}/${sweep.nonce}-${number}.old`, entry }))
    said.push(await settle(env, sweep, { old: beside('old'), entry }))
    remove(env, beside('new'))
  }
  for (const name of namesIfThere(env.files, own)) {
    if (name.endsWith('.old')) said.push(await settle(env, sweep, { old: `${own}/${name}`, entry: null }))
    else if (name.startsWith(`${sweep.nonce}-`)) remove(env, `${own}/${name}`) // what others have there is theirs
  }
  return said.filter((word) => word !== null)
}

/** What to do with one old inode; null: it is gone, and nothing with it. */
async function settle(
  env: Env,
  { root, store }: Sweep,
  { old, entry }: { old: string | Buffer; entry: ApplyEntry | null },
): Promise<string | null> {
  const { files } = env
  let stats: Stats
  try {
    stats = files.lstatSync(old)
  } catch (error) {
    if (isOutOfReach(error)) return null
    throw error
  }
  const now = entry ? look(env, root, entry.path) : null
  if (isStats(now) && isSameInode(now, stats)) {
    files.unlinkSync(old) // its name in the worktree is still there
    return null
  }
  if (await isSaved({ files, store }, { old, stats, entry })) {
    files.unlinkSync(old)
    return null
  }
  const to = `${keptDirectory(store)}/${env.random(6)}`
  const back = entry && putBack(env, { root, store }, { old, entry, spare: to })
  if (back === 'whole') return `${shown(entry!.path)} was written to at that very moment; it holds that now.`
  if (back === null) {
    files.mkdirSync(keptDirectory(store), { recursive: true, mode: 0o700 })
    moveTo(env, old, to)
  }
  const name = entry ? shown(entry.path) : 'a file'
  return `What was written to ${name} at that very moment is in ${to}.`
}

const keptDirectory = ({ worktreeDir }: Pick<Sweep['store'], 'worktreeDir'>): string => `${worktreeDir}/kept`

/**
 * Puts an old inode back by its name, unless something that only the worktree holds is there (null). What it takes the
 * place of is looked at once more afterwards: `spare` is that, where it was written to right then.
 */
function putBack(
  env: Env,
  { root, store }: Pick<Sweep, 'root' | 'store'>,
  { old, entry, spare }: { old: string | Buffer; entry: ApplyEntry; spare: string },
): 'whole' | 'spare' | null {
  const { files } = env
  const at = native(root, entry.path)
  const before = look(env, root, entry.path)
  if (!isOurs(env, { root, store }, entry)) return null
  try {
    if (!isStats(before)) {
      if (putWhereNothingIs(env, old, at)) files.unlinkSync(old)
      return 'whole'
    }
    files.mkdirSync(keptDirectory(store), { recursive: true, mode: 0o700 })
    files.linkSync(at, spare)
  } catch (error) {
    if (errno(error) === undefined) throw error
    return null // its directory is gone or closed, or on another mount, or something came
  }
  const isAsItWas = () => isSameButCtime(files.lstatSync(spare), before)
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
  { old, stats, entry }: { old: string | Buffer; stats: Stats; entry: ApplyEntry | null },
): Promise<boolean> {
  if (!stats.isFile() && !stats.isSymbolicLink()) return false
  const oid = oidAt(files, store, { at: old, stats })
  if (!entry) return (await store.objects.read(oid)) !== null
  // On its way back it was what the operation had put there.
  return [entry.pre, entry.post].some((state) => state.kind === 'present' && state.oid === oid)
}

/** Also to another file system, or mount. */
function moveTo({ files }: Env, old: string | Buffer, to: string): void {
  try {
    files.renameSync(old, to)
  } catch (error) {
    if (errno(error) !== 'EXDEV') throw error
    if (files.lstatSync(old).isSymbolicLink()) files.symlinkSync(files.readlinkSync(old, { encoding: 'buffer' }), to)
    else files.copyFileSync(old, to)
    files.unlinkSync(old)
  }
}

/** Nothing that only the worktree holds is at the path. */
function isOurs(env: Env, { root, store }: Pick<Sweep, 'root' | 'store'>, { path, pre, post }: ApplyEntry): boolean {
  const now = observe(env, { root, path }, store.objects)
  return now.kind === 'absent' || sameContent(now, pre) || sameState(now, post)
}
