/** What a unified diff says of files: which, what happens to each, and how many lines. Pure. */
import { parsePatch, type StructuredPatch } from 'diff'
import type { ToldAction } from '../core/plan.ts'
import { toldPath } from './own-change.ts'

interface Changed {
  path: string
  /** The patch itself, to tell whether it changed. */
  text: string
  status: 'added' | 'modified' | 'deleted'
  isBinary: boolean
  insertions: number
  deletions: number
}

/** @throws nothing: what cannot be read is no change */
export function changedIn(diff: string): Changed[] {
  // A line of a file has a sign before it: where one begins like this, git begins with another file.
  return diff.split(/^(?=diff --git )/m).flatMap((section) => parsed(section).flatMap((one) => changeOf(one, section)))
}

function parsed(section: string): StructuredPatch[] {
  try {
    return parsePatch(section)
  } catch {
    return []
  }
}

function changeOf(patch: StructuredPatch, section: string): Changed[] {
  const { hunks, isCreate, isDelete, isBinary = false, oldMode, newMode } = patch
  const [from, to] = [named(patch.oldFileName), named(patch.newFileName)]
  const path = to ?? from
  if (path === null) return []
  const lines = hunks.flatMap((hunk) => hunk.lines)
  const status = isCreate || from === null ? 'added' : isDelete || to === null ? 'deleted' : 'modified'
  // Empty and binary files have no hunks, and both their names: what they hold is told by the objects.
  const objects = hunks.length > 0 ? null : /^index .*$/m.exec(section)?.[0]
  return [
    {
      path,
      text: JSON.stringify([status, oldMode, newMode, objects, hunks]),
      status,
      isBinary,
      insertions: lines.filter((line) => line.startsWith('+')).length,
      deletions: lines.filter((line) => line.startsWith('-')).length,
    },
  ]
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
