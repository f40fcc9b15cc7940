/** The coverage list of a snapshot: what its tree leaves out, and why. */
import type { Beside, Uncovered } from '../core/beside.ts'
import type { Oid } from '../core/ids.ts'
import { barePath, directoryKey, parentOf, type RelativePath } from '../core/paths.ts'
import { fingerprint, isStats, look, permissions } from './disk.ts'
import type { Listing } from './listing.ts'
import { defaultModes, type Scan } from './scan.ts'
import type { Taken } from './take.ts'
import type { WalkResult } from './walk.ts'
import { isOurs } from './worktree.ts'

interface CoverageInput {
  listed: Listing
  walk: WalkResult
  taken: Taken
  notHere: RelativePath[]
  /** Directories that were not entered and may hold what is captured. */
  passedBy: readonly RelativePath[]
  /** The snapshot's tree. */
  tree: Oid
}

const PRINTED_IGNORED = 5000

export async function coverage(scan: Scan, input: CoverageInput): Promise<Beside> {
  const { env, worktree, store, cache, hint } = scan
  const { listed, walk, taken, notHere, tree } = input
  const { root } = worktree
  const defaults = cache?.defaults ?? defaultModes(env)
  const modes = new Map(taken.modes)
  for (const [directory, mode] of await directoryModes(scan, input))
    if (mode !== defaults.directory) modes.set(directoryKey(directory), mode)
  const printOf = (path: string) => {
    const stats = look(env, root, path)
    return isStats(stats) ? fingerprint(stats) : ''
  }
  const uncovered: Uncovered[] = [
    ...taken.uncovered,
    ...listed.nested
      .filter((path) => !isOurs(worktree, path))
      .map((path): Uncovered => {
        const print = `${printOf(path)} ${printOf(`${path}/.git`)}` // its own entries, and its repository's
        return { path: directoryKey(path), reason: 'nested-repo', print }
      }),
    ...walk.dotGit.map((path): Uncovered => ({ path, reason: 'nested-repo', print: printOf(path) })),
    ...walk.specials.map(({ path, print }): Uncovered => ({ path, reason: 'special', print })),
    ...walk.unreadable.map((path): Uncovered => ({ path, reason: 'unreadable' })),
    ...walk.unrepresentable.map((path): Uncovered => ({ path, reason: 'unrepresentable', print: printOf(path) })),
    ...notHere.map((path): Uncovered => ({ path, reason: 'not-here' })),
    ...(walk.cut ? [{ path: '' as RelativePath, reason: 'budget' } as const] : []),
  ]
  const once = new Map(uncovered.map((entry) => [entry.path, entry]))
  const ignored = new Map(taken.excluded)
  const included = new Set(listed.included)
  const trusted = listed.narrow?.only ? cache?.listing.prints : undefined
  let printed = 0
  for (const path of listed.ignored) {
    // A watcher reports a file that changes; what is below an ignored directory nobody watches.
    const known = trusted && !path.endsWith('/') && !hint?.paths.has(path) ? trusted.get(path) : undefined
    if (known === undefined || taken.edits.has(path)) {
      if (isOurs(worktree, barePath(path)) || included.has(path)) continue
      // Ignored, but in the user's index: covered all the same.
      if (!path.endsWith('/') && (await store.trees.lookup(tree, path)) !== null) continue
    }
    ignored.set(path, printed++ < PRINTED_IGNORED ? (known ?? printOf(path)) : '')
  }
  return { defaults, modes, emptyDirectories: new Set(walk.empty), uncovered: [...once.values()], ignored }
}

/** Modes of directories, all that are other than the default: those walked, and those not entered that hold what is captured. */
async function directoryModes(
  { env, worktree, store, isReal }: Scan,
  { walk, passedBy, tree }: CoverageInput,
): Promise<Map<string, number>> {
  const modes = new Map<string, number>()
  for (const [directory, entry] of walk.directories.remarkable()) if (directory !== '') modes.set(directory, entry.mode)
  for (const top of passedBy) {
    const entry = await store.trees.lookup(tree, top)
    if (entry?.mode !== '40000') continue
    for (const directory of [top, ...(await store.trees.directories(entry.oid, `${top}/`))]) {
      const stats = isReal(parentOf(directory)) ? look(env, worktree.root, directory) : null
      if (isStats(stats) && stats.isDirectory()) modes.set(directory, permissions(stats))
    }
  }
  return modes
}
