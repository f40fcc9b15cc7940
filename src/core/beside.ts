/**
 * What a git tree cannot say about a snapshot, kept in an object beside it: permission modes that differ from the
 * defaults, empty directories, and the coverage list. One JSON document; equal documents share one object.
 */
import { isDeepStrictEqual } from 'node:util'
import { CkptError } from './errors.ts'
import { ancestorsOf, barePath, isWithin, type RelativePath } from './paths.ts'
import { isMode } from './state.ts'

export type UncoveredReason =
  | 'ignored'
  | 'too-large'
  | 'nested-repo'
  | 'special'
  | 'unreadable'
  | 'unrepresentable'
  | 'not-here'
  | 'budget'

export interface Uncovered {
  path: RelativePath
  reason: UncoveredReason
  /** What lstat said (size, mtime, ctime, inode, mode), to tell whether a turn changed it; absent when unknown. */
  print?: string
}

export interface DefaultModes {
  file: number
  exec: number
  directory: number
}

export interface Beside {
  defaults: DefaultModes
  /** Permission modes other than the defaults; directories with a trailing slash. */
  modes: Map<RelativePath, number>
  emptyDirectories: Set<RelativePath>
  /** Left out, without the ignored ones. */
  uncovered: Uncovered[]
  /** Ignored files and directories (those with a trailing slash), as git collapses them. */
  ignored: Map<RelativePath, string>
}

interface StoredBeside {
  version: 1
  defaults: [number, number, number]
  modes: [string, number][]
  empty: string[]
  uncovered: [string, UncoveredReason, string | null][]
  ignored: [string, string][]
}

export function emptyBeside(defaults: DefaultModes): Beside {
  return { defaults, modes: new Map(), emptyDirectories: new Set(), uncovered: [], ignored: new Map() }
}

const byText = (a: string, b: string) => (a < b ? -1 : a > b ? 1 : 0)

export function formatBeside(beside: Beside): Buffer {
  const { defaults } = beside
  const stored: StoredBeside = {
    version: 1,
    defaults: [defaults.file, defaults.exec, defaults.directory],
    modes: [...beside.modes].sort((a, b) => byText(a[0], b[0])),
    empty: [...beside.emptyDirectories].sort(byText),
    uncovered: beside.uncovered
      .map(({ path, reason, print }): StoredBeside['uncovered'][number] => [path, reason, print ?? null])
      .sort((a, b) => byText(a[0], b[0])),
    ignored: [...beside.ignored].sort((a, b) => byText(a[0], b[0])),
  }
  return Buffer.from(`${JSON.stringify(stored)}\n`, 'utf8')
}

/** @throws CkptError DAMAGED */
export function parseBeside(bytes: Buffer): Beside {
  let stored: StoredBeside
  try {
    stored = JSON.parse(bytes.toString('utf8')) as StoredBeside
    if (stored.version !== 1) throw new Error(`version ${String(stored.version)}`)
    const [file, exec, directory] = stored.defaults
    if (![file, exec, directory, ...stored.modes.map(([, mode]) => mode)].every(isMode)) throw new Error('a mode')
    return {
      defaults: { file, exec, directory },
      modes: new Map(stored.modes as [RelativePath, number][]),
      emptyDirectories: new Set(stored.empty as RelativePath[]),
      uncovered: stored.uncovered.map(([path, reason, print]) => ({
        path: path as RelativePath,
        reason,
        ...(print === null ? {} : { print }),
      })),
      ignored: new Map(stored.ignored as [RelativePath, string][]),
    }
  } catch (cause) {
    throw new CkptError('DAMAGED', "A checkpoint's coverage list cannot be read. Nothing was changed.", {
      hints: ['ckpt verify'],
      cause,
    })
  }
}

const sameEntries = <K, V>(a: ReadonlyMap<K, V>, b: ReadonlyMap<K, V>): boolean =>
  a === b || (a.size === b.size && [...a].every(([key, value]) => b.get(key) === value))

export const sameDefaults = ({ defaults: a }: Beside, { defaults: b }: Beside): boolean =>
  a.file === b.file && a.exec === b.exec && a.directory === b.directory

/** The deadline passed before all was looked at: what the snapshot lacks may have been there. */
export const isCutShort = ({ uncovered }: Beside): boolean =>
  uncovered.some(({ path, reason }) => path === '' && reason === 'budget')

/** What is said of such a snapshot. */
export const CUT_SHORT = 'may lack some of what was there: the deadline passed before all was looked at.'

/** Whether both say the same in the same order; false costs a comparison of their texts. */
export function sameBeside(a: Beside, b: Beside): boolean {
  return (
    sameDefaults(a, b) &&
    sameEntries(a.modes, b.modes) &&
    a.emptyDirectories.size === b.emptyDirectories.size &&
    [...a.emptyDirectories].every((path) => b.emptyDirectories.has(path)) &&
    a.uncovered.length === b.uncovered.length &&
    a.uncovered.every(({ path, reason, print }, i) => {
      const other = b.uncovered[i]!
      return path === other.path && reason === other.reason && print === other.print
    }) &&
    sameEntries(a.ignored, b.ignored)
  )
}

/** Why a snapshot cannot say whether a path that its tree lacks was there: the uncovered entry at or above it. */
export function uncoveredAt(beside: Beside, path: string): Uncovered | null {
  const bare = barePath(path)
  for (const entry of beside.uncovered) {
    const scope = barePath(entry.path)
    if (isWithin(bare, scope)) return entry
  }
  if (beside.ignored.size === 0) return null
  const print = beside.ignored.get(bare as RelativePath)
  if (print !== undefined) return { path: bare as RelativePath, reason: 'ignored', print }
  for (let at = bare.length; at > 0; at = bare.lastIndexOf('/', at - 1)) {
    const above = `${bare.slice(0, at)}/` as RelativePath
    const found = beside.ignored.get(above)
    if (found !== undefined) return { path: above, reason: 'ignored', print: found }
  }
  return null
}

/** What the coverage list names on disk, ignored paths included: not what a sparse checkout leaves out, which is not there. */
export const uncoveredPaths = ({ uncovered, ignored }: Beside): RelativePath[] => [
  ...uncovered.filter(({ reason }) => reason !== 'not-here').map(({ path }) => path),
  ...ignored.keys(),
]

/** Directories that hold something uncovered, or are uncovered themselves: none of them must be taken for empty. */
export function uncoveredDirectories(beside: Beside): Set<string> {
  const found = new Set<string>()
  for (const path of uncoveredPaths(beside)) {
    for (const at of ancestorsOf(path)) found.add(at)
    if (path.endsWith('/')) found.add(path.slice(0, -1))
  }
  return found
}

/** Whether a directory holds something uncovered, is uncovered itself, or lies in one that is: what is in it no snapshot tells. */
export function maybeUncovered(beside: Beside): (directory: string) => boolean {
  const holding = uncoveredDirectories(beside)
  const whole = new Set(uncoveredPaths(beside).flatMap((path) => (path.endsWith('/') ? [path.slice(0, -1)] : [])))
  return (directory) => holding.has(directory) || ancestorsOf(directory).some((above) => whole.has(above))
}

/** Uncovered paths that differ between two snapshots: made, changed or removed in between; `''` where that cannot be told. */
export function uncoveredChanges(from: Beside, to: Beside): { path: RelativePath; reason: UncoveredReason }[] {
  const all = (beside: Beside) => {
    const rows = new Map<RelativePath, { reason: UncoveredReason; print: string | undefined }>()
    for (const { path, reason, print } of beside.uncovered) rows.set(path, { reason, print })
    for (const [path, print] of beside.ignored) rows.set(path, { reason: 'ignored', print })
    return rows
  }
  const [before, after] = [all(from), all(to)]
  const changed: { path: RelativePath; reason: UncoveredReason }[] = []
  for (const [path, { reason, print }] of after) {
    const old = before.get(path)
    if (!old || old.print !== print || (path === '' && reason === 'budget')) changed.push({ path, reason })
  }
  for (const [path, { reason }] of before) if (!after.has(path)) changed.push({ path, reason })
  return changed.sort((a, b) => byText(a.path, b.path))
}

const isListed = ({ uncovered }: Beside, path: string): boolean => uncovered.some((one) => one.path === path)

/**
 * What no tree tells of two snapshots, and differs in them or may: each path that is not covered and is not surely the same
 * in both. What is ignored, and a directory that looks the same, count where one of `paths` is it or lies in it. Not what a
 * sparse checkout leaves out, nor a fifo or a socket that is in both: to use one changes its times.
 */
export function uncoveredBetween(
  from: Beside,
  to: Beside,
  paths: readonly string[] = [],
): { path: RelativePath; reason: UncoveredReason }[] {
  const isIn = (path: string) => paths.some((scope) => isWithin(scope, barePath(path)))
  const isAsked = (path: string) =>
    paths.length === 0 || isIn(path) || paths.some((scope) => isWithin(barePath(path), scope))
  const specials = new Set(from.uncovered.flatMap(({ path, reason }) => (reason === 'special' ? path : [])))
  const changed = uncoveredChanges(from, to).filter(
    ({ reason, path }) =>
      (reason !== 'ignored' || isIn(path)) && !(reason === 'special' && specials.has(path) && isListed(to, path)),
  )
  const named = new Set(changed.map(({ path }) => path))
  // Of what lies in a directory, its own print says nothing.
  const directories = [
    ...to.uncovered,
    ...[...to.ignored.keys()].map((path) => ({ path, reason: 'ignored' as const })),
  ].filter(({ path }) => path.endsWith('/') && !named.has(path) && isIn(path))
  return [...changed, ...directories.map(({ path, reason }) => ({ path, reason }))].filter(
    ({ path, reason }) => path !== '' && reason !== 'not-here' && isAsked(path),
  )
}

/** Whether the trees of two snapshots say all that a diff of the two says: what is ignored is in neither. */
export function isCountedByTrees(from: Beside, to: Beside): boolean {
  // What both left out is in neither tree, however it changed.
  const left = ({ uncovered }: Beside) => new Set(uncovered.map(({ path }) => path))
  return (
    !isCutShort(from) &&
    !isCutShort(to) &&
    sameDefaults(from, to) &&
    isDeepStrictEqual(from.modes, to.modes) &&
    isDeepStrictEqual(from.emptyDirectories, to.emptyDirectories) &&
    isDeepStrictEqual(left(from), left(to))
  )
}
