/** What lies around the paths of a plan: files below and above them, what no snapshot covers, and other spellings. */
import { maybeUncovered, uncoveredDirectories } from '../../core/beside.ts'
import type { Surroundings } from '../../core/clashes.ts'
import { ancestorsOf, barePath, directoryKey, foldedPath } from '../../core/paths.ts'
import type { FileAction } from '../../core/plan.ts'
import { errno } from '../../env.ts'
import {
  behindSymlink,
  closedBy,
  directoryAbove,
  entriesIn,
  isStats,
  look,
  mountsWithin,
  native,
} from '../../snapshot/disk.ts'
import { otherSpelling } from '../../snapshot/spelling.ts'
import type { Snapshot } from '../record/record.ts'
import type { Context } from '../worktree/context.ts'

/** What the snapshot and the disk say of the paths of these actions, above, below and beside them. */
export async function surroundings(
  context: Context,
  snapshot: Snapshot,
  actions: readonly FileAction[],
): Promise<Omit<Surroundings, 'isForeign'>> {
  const { store } = context
  const { root } = context.worktree
  const mounted = mountsWithin(context.env, root)
  const { view } = snapshot
  const below = new Map<string, string[]>()
  const files = new Map<string, { covered: boolean }>()
  const seen = new Set<string>()
  const mayHold = maybeUncovered(view.beside)
  const emptyBelow = new Map<string, string[]>()
  for (const directory of view.beside.emptyDirectories)
    for (const at of ancestorsOf(directory)) {
      const known = emptyBelow.get(at)
      if (known) known.push(`${directory}/`)
      else emptyBelow.set(at, [`${directory}/`])
    }
  for (const { path, post } of actions) {
    if (post.kind === 'absent' && !path.endsWith('/')) continue
    const bare = barePath(path)
    const entry = await store.trees.lookup(view.tree, bare)
    const inside = entry?.mode === '40000' ? [...(await store.trees.files(entry.oid, `${bare}/`)).keys()] : []
    below.set(bare, [...inside, ...(emptyBelow.get(bare) ?? [])])
    for (const at of [bare, ...ancestorsOf(bare)]) {
      // What lies above has the same directories above it.
      if (at !== bare && seen.has(at)) break
      if (at !== bare) seen.add(at)
      const found = await store.trees.lookup(view.tree, at)
      const isSelf = at === bare && !path.endsWith('/')
      if (found ? found.mode !== '40000' : !isSelf && isUncoveredFile(context, at))
        files.set(at, { covered: found !== null })
    }
  }
  const others = new Map<string, readonly string[]>()
  if (context.worktree.folds) {
    for (const { path, post } of actions) {
      if (post.kind === 'absent') continue
      const bare = barePath(path)
      for (const one of [bare, ...ancestorsOf(bare)]) {
        if (!others.has(one)) others.set(one, await spelledOtherwise(context, snapshot, one))
      }
    }
  }
  return {
    folded: context.worktree.folds ? foldedPath : null,
    spelledOtherwise: (path: string) => others.get(path) ?? [],
    filesBelow: (directory: string) => below.get(directory) ?? [],
    uncoveredBelow: (directory: string, leaving: Pick<ReadonlySet<string>, 'has'>) => {
      if (!mayHold(directory) || !isDirectory(context, directory) || isEmpty(context, directory)) return false
      const known = new Set(below.get(directory))
      return !holdsOnly(context, directory, { has: (path) => known.has(path) || leaving.has(path) })
    },
    isFileOnDisk: (path: string) => files.has(path),
    isCovered: (path: string) => files.get(path)?.covered ?? false,
    isMadeForRoot: (path: string) => {
      if (context.env.uid !== 0 || directoryAbove(context.env, root, path)?.stats.uid === 0) return false
      const stats = look(context.env, root, path)
      return !isStats(stats) || stats.isDirectory() || stats.uid === 0 // else it stays that user's
    },
    closedBy: (path: string, change: { onlyMode: boolean }) => closedBy(context.env, { root, path }, change),
    isMountPoint: (path: string) => mounted.has(barePath(path)),
  }
}

/**
 * Whether all that is in a directory is known, files and empty directories, or goes: one that a rule ignores counts as
 * uncovered, though what is in it may have been captured, file by file.
 */
function holdsOnly(
  given: Pick<Context, 'env' | 'worktree'>,
  directory: string,
  known: Pick<ReadonlySet<string>, 'has'>,
): boolean {
  const at = native(given.worktree.root, directory)
  try {
    const children = entriesIn(given.env, at)
    if (children.length === 0) return known.has(directoryKey(directory))
    return children.every((child) => {
      const path = `${directory}/${child.name}`
      return child.isDirectory() ? holdsOnly(given, path, known) : known.has(path)
    })
  } catch (error) {
    if (errno(error) === undefined) throw error
    return false
  }
}

function isDirectory({ env, worktree }: Pick<Context, 'env' | 'worktree'>, path: string): boolean {
  const stats = behindSymlink(env, worktree.root, path) ? null : look(env, worktree.root, path)
  return isStats(stats) && stats.isDirectory()
}

/** A directory with nothing in it; a rule may ignore it all the same. */
export function isEmpty({ env, worktree }: Pick<Context, 'env' | 'worktree'>, directory: string): boolean {
  try {
    return (
      !behindSymlink(env, worktree.root, directory) &&
      env.files.readdirSync(native(worktree.root, directory)).length === 0
    )
  } catch (error) {
    if (errno(error) === undefined) throw error
    return false
  }
}

/** What is in the place of a path by another spelling, and has to go before it can come. */
async function spelledOtherwise({ env, store, worktree }: Context, { view }: Snapshot, path: string) {
  const other = otherSpelling(env, worktree.root, path)
  if (other === null) return []
  const entry = await store.trees.lookup(view.tree, other)
  if (entry?.mode !== '40000') {
    const stats = look(env, worktree.root, other)
    return [isStats(stats) && stats.isDirectory() ? directoryKey(other) : other] // what is not covered does not go
  }
  const uncovered = uncoveredDirectories(view.beside).has(other) ? [directoryKey(other)] : []
  return [...(await store.trees.files(entry.oid, `${other}/`)).keys(), ...uncovered]
}

/** What no tree tells of (an ignored file, one that is too large) may be in the place of a directory. */
function isUncoveredFile({ env, worktree }: Context, path: string): boolean {
  const stats = behindSymlink(env, worktree.root, path) ? null : look(env, worktree.root, path)
  return isStats(stats) && !stats.isDirectory()
}
