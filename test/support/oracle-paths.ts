/** One path at a time, for the oracle: what a tree says of it, and what taking one change back makes of it. */
import { isIgnored, type Node, sameNode, type Tree } from './tree.ts'

/** Unknown: no snapshot covers the path. */
export type State = Node | undefined | 'unknown'

export interface Change {
  path: string
  from: State
  to: State
  step: number | null
  ambiguous: boolean
}

/** The oracle cannot say: a file was where only ignored files are now. */
export class Murky extends Error {}

export const sameState = (a: State, b: State) => (a === 'unknown' || b === 'unknown' ? false : sameNode(a, b))
export const isFilePath = (path: string) => !path.endsWith('/')

export function coveredFiles(tree: Tree): Tree {
  return new Map([...tree].filter(([path]) => isFilePath(path) && !isIgnored(path)))
}

/** Whether a directory holds ignored files and nothing else: then all of it is ignored. */
export function isMurky(tree: Tree, directory: string): boolean {
  const files = [...tree.keys()].filter((path) => isFilePath(path) && path.startsWith(directory))
  return files.length > 0 && files.every(isIgnored)
}

export function stateOf(tree: Tree, path: string): State {
  const found = tree.get(path)
  if (found) return found
  for (let at = path; at !== ''; at = at.includes('/') ? at.slice(0, at.lastIndexOf('/')) : '') {
    if (tree.has(`${at}/`) && isMurky(tree, `${at}/`)) return 'unknown'
  }
  return undefined
}

export function sameTree(a: Tree, b: Tree): boolean {
  const covered = (tree: Tree) => [...tree].filter(([path]) => !isIgnored(path))
  const [one, two] = [covered(a), covered(b)]
  return one.length === two.length && one.every(([path, node]) => sameNode(node, b.get(path)))
}

/** A path's changes joined where one begins in the state the last one left. */
export function join(changes: readonly Change[]): Change[] {
  const joined: Change[] = []
  for (const change of changes) {
    const last = joined.findLast((one) => one.path === change.path)
    const goesOn = last && (sameState(last.to, change.from) || (last.to === 'unknown' && change.from === 'unknown'))
    // How far back such a path goes depends on what is on disk then.
    if (goesOn && last.from === 'unknown' && change.from !== 'unknown') throw new Murky()
    if (!goesOn) joined.push({ ...change })
    else {
      last.to = change.to
      last.ambiguous ||= change.ambiguous
    }
  }
  return joined.filter(({ from, to }) => !sameState(from, to) && !(from === 'unknown' && to === 'unknown'))
}

/** Why a file cannot come to a path: what stays above or below it. Empty directories below: perhaps. */
export function inTheWay(path: string, files: Tree, disk: Tree): string | null {
  for (let at = path.lastIndexOf('/'); at > 0; at = path.lastIndexOf('/', at - 1)) {
    const above = path.slice(0, at)
    if (files.has(above) || (isIgnored(above) && disk.has(above))) return `${above} is file and directory`
  }
  const below = [...disk.keys()].filter((one) => one.startsWith(`${path}/`) && one !== `${path}/`)
  if (below.some((one) => isFilePath(one) && (isIgnored(one) || files.has(one)))) return `${path} is file and directory`
  const empty = below.some((one) => !isFilePath(one) && !below.some((other) => other !== one && other.startsWith(one)))
  return empty ? 'perhaps' : null
}

/** The files that force deletes for one that comes; null: something there is not covered. */
export function goingByForce(path: string, files: Tree, disk: Tree): string[] | null {
  const above: string[] = []
  for (let at = path.lastIndexOf('/'); at > 0; at = path.lastIndexOf('/', at - 1)) above.push(path.slice(0, at))
  const going = [...disk.keys()].filter(
    (one) =>
      isFilePath(one) && (above.includes(one) || one.startsWith(`${path}/`)) && (isIgnored(one) || files.has(one)),
  )
  return going.some(isIgnored) ? null : going
}

export type Verdict = { kind: 'post'; post: Node | undefined } | { kind: 'leave' } | { kind: 'conflict'; why: string }

export function takeBack({ from, to, ambiguous }: Change, ours: Node | undefined): Verdict {
  if (from === 'unknown') return { kind: 'leave' }
  if (sameNode(ours, from)) return { kind: 'post', post: from }
  if (to === 'unknown') throw new Murky()
  if (ambiguous) return { kind: 'conflict', why: 'two sessions' }
  if (sameNode(ours, to)) return { kind: 'post', post: from }
  if (from?.type === 'file' && to?.type === 'file' && ours?.type === 'file') {
    const mode = merged(to.mode, ours.mode, from.mode)
    const body = mergedBody(to.body, ours.body, from.body)
    if (mode !== null && body !== null) return { kind: 'post', post: { type: 'file', mode, body } }
  }
  return { kind: 'conflict', why: 'changed since' }
}

export function merged<T>(base: T, ours: T, theirs: T): T | null {
  if (ours === base || ours === theirs) return theirs
  return base === theirs ? ours : null
}

export function mergedBody(base: string, ours: string, theirs: string): string | null {
  const simple = merged(base, ours, theirs)
  if (simple !== null) return simple
  const split = [base, ours, theirs].map((text) => text.split('\n'))
  if (!split.every((rows) => rows.length === 10 && rows[0]!.startsWith('slot'))) return null
  const rows = split[0]!.map((row, i) => merged(row, split[1]![i]!, split[2]![i]!))
  return rows.includes(null) ? null : rows.join('\n')
}
