/** What a plan found absent where the snapshot cannot say so: below a directory that a rule ignores, and that it names as one. */
import type { Dirent } from 'node:fs'
import { type Beside, formatBeside, uncoveredAt } from '../../core/beside.ts'
import { directoryKey, type RelativePath } from '../../core/paths.ts'
import { type FileAction, isHeld } from '../../core/plan.ts'
import { errno } from '../../env.ts'
import { behindSymlink, entriesIn, fingerprint, isStats, look, native, permissions } from '../../snapshot/disk.ts'
import type { Snapshot } from '../record/record.ts'
import type { Context } from '../worktree/context.ts'

/** A directory with more names than these stays one that nothing is known of. */
const MOST_NAMES = 5000

/**
 * The snapshot with such a directory named by what is in it, so that a path which comes there is one that was absent: who
 * takes this operation back removes it. What is not looked into stays uncovered.
 */
export async function tellingAbsent(
  context: Context,
  snapshot: Snapshot,
  actions: readonly FileAction[],
): Promise<Snapshot> {
  const beside: Beside = {
    ...snapshot.beside,
    ignored: new Map(snapshot.beside.ignored),
    emptyDirectories: new Set(snapshot.beside.emptyDirectories),
    modes: new Map(snapshot.beside.modes),
  }
  let isOther = false
  for (const { path } of actions.filter((one) => one.pre.kind === 'absent' && !isHeld(one))) {
    for (let at = uncoveredAt(beside, path); at?.reason === 'ignored'; at = uncoveredAt(beside, path)) {
      if (at.path.endsWith('/') && !(await nameEach(context, snapshot, { beside, directory: at.path }))) break
      if (!at.path.endsWith('/')) beside.ignored.delete(at.path)
      isOther = true
    }
  }
  if (!isOther) return snapshot
  return { ...snapshot, beside, besideOid: context.store.objects.write('blob', formatBeside(beside)) }
}

/** False: it cannot be looked into. */
async function nameEach(
  { env, store, worktree }: Context,
  { tree }: Snapshot,
  { beside, directory }: { beside: Beside; directory: RelativePath },
): Promise<boolean> {
  const { root } = worktree
  const bare = directory.slice(0, -1) as RelativePath
  const stats = behindSymlink(env, root, bare) ? null : look(env, root, bare)
  if (!isStats(stats) || !stats.isDirectory()) return false
  let names: Dirent[]
  try {
    names = entriesIn(env, native(root, bare))
  } catch (error) {
    if (errno(error) === undefined) throw error
    return false
  }
  if (names.length > MOST_NAMES) return false
  beside.ignored.delete(directory)
  if (names.length === 0) {
    beside.emptyDirectories.add(bare)
    const mode = permissions(stats)
    if (mode !== beside.defaults.directory) beside.modes.set(directory, mode)
  } else if ((await store.trees.lookup(tree, bare)) === null) beside.ignored.set(bare, fingerprint(stats)) // itself, and nothing below it
  for (const entry of names) {
    const path = `${bare}/${entry.name}` as RelativePath
    if (!entry.isDirectory() && (await store.trees.lookup(tree, path)) !== null) continue
    const found = look(env, root, path)
    beside.ignored.set(entry.isDirectory() ? directoryKey(path) : path, isStats(found) ? fingerprint(found) : '')
  }
  return true
}
