/** What a unified diff says of files: which, what happens to each, and how many lines. Pure. */
import { parsePatch, type StructuredPatch } from 'diff'
import type { ToldAction } from '../core/plan.ts'
import { toldPath } from './own-change.ts'

interface Changed {
  path: string
  /** The patch itself, to tell whether it changed. */
  text: string
  status: 'added' | 'modified' | 'deleted'
  insertions: number
  deletions: number
}

/** @throws nothing: what cannot be read is no change */
export function changedIn(diff: string): Changed[] {
  let patches: StructuredPatch[]
  try {
    patches = parsePatch(diff)
  } catch {
    return []
  }
  return patches.flatMap((patch): Changed[] => {
    const [from, to] = [named(patch.oldFileName), named(patch.newFileName)]
    const path = to ?? from
    if (path === null) return []
    const lines = patch.hunks.flatMap((hunk) => hunk.lines)
    return [
      {
        path,
        text: JSON.stringify(patch.hunks),
        status: from === null ? 'added' : to === null ? 'deleted' : 'modified',
        insertions: lines.filter((line) => line.startsWith('+')).length,
        deletions: lines.filter((line) => line.startsWith('-')).length,
      },
    ]
  })
}

function named(name: string | undefined): string | null {
  if (name === undefined || name === '/dev/null') return null
  return name.replace(/^[ab]\//, '')
}

/** What was done to files between two diffs from the same state. */
export function actionsBetween(before: string, after: string) {
  const [was, is] = [changedIn(before), changedIn(after)]
  const files: ToldAction[] = []
  for (const { path, text, status } of is) {
    if (was.some((one) => one.path === path && one.text === text)) continue
    files.push({ path: toldPath(path), action: status === 'deleted' ? 'delete' : 'write' })
  }
  for (const { path, status } of was) {
    if (is.some((one) => one.path === path)) continue
    files.push({ path: toldPath(path), action: status === 'added' ? 'delete' : 'write' })
  }
  return files.sort((a, b) => (a.path < b.path ? -1 : 1))
}

/** Of a diff as a whole. */
export function countsIn(diff: string): { files: number; insertions: number; deletions: number } {
  const changed = changedIn(diff)
  const sum = (of: (one: Changed) => number) => changed.reduce((total, one) => total + of(one), 0)
  return { files: changed.length, insertions: sum((one) => one.insertions), deletions: sum((one) => one.deletions) }
}
