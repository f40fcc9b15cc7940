/** What one path is: on disk, in a snapshot, in a plan. */
import type { Oid } from './ids.ts'

type FileType = 'file' | 'link'

export type PathState =
  | { kind: 'absent' }
  /** A file or symlink; `mode` is its permission bits (a symlink's are 0o777 and mean nothing). */
  | { kind: 'present'; type: FileType; oid: Oid; mode: number }
  /** A directory: under its key with a trailing slash. */
  | { kind: 'directory'; mode: number }
  /** The snapshot does not cover it: it may or may not be there. */
  | { kind: 'unknown'; reason: string }

/** Whether a number is one of permission bits: chmod(2). */
export const isMode = (mode: unknown): boolean => Number.isInteger(mode) && Number(mode) >= 0 && Number(mode) <= 0o7777

export const ABSENT: PathState = { kind: 'absent' }

export function sameState(a: PathState, b: PathState): boolean {
  if (a.kind === 'present' && b.kind === 'present') {
    return a.type === b.type && a.oid === b.oid && (a.type === 'link' || a.mode === b.mode)
  }
  if (a.kind === 'directory' && b.kind === 'directory') return a.mode === b.mode
  return a.kind === 'absent' && b.kind === 'absent'
}

/** The same bytes and type; permission modes may differ. */
export function sameContent(a: PathState, b: PathState): boolean {
  return a.kind === 'present' && b.kind === 'present' && a.type === b.type && a.oid === b.oid
}

/** One change of one path between two instants. */
export interface Transition {
  path: string
  from: PathState
  to: PathState
  /** Of a directory that came with what is below it, or went with that: told only where nothing below tells it. */
  implied?: true
}
