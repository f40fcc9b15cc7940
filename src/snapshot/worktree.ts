/** What a snapshot needs to know of the worktree it is taken of. */
import ignore from 'ignore'
import { barePath, pathToText } from '../core/paths.ts'
import type { Repository } from '../git/repository.ts'

export interface SnapshotLimits {
  /** gitignore syntax. */
  include: readonly string[]
  exclude: readonly string[]
  /** Bytes; an untracked file above it is left out by name. */
  maxFileSize: number
  /** New bytes in one snapshot. */
  maxBytes: number
  /** Milliseconds. */
  deadline: number
}

export interface Worktree {
  /** Absolute path of the top directory, symlinks resolved. */
  root: string
  /** Null: a plain directory. */
  repository: Repository | null
  /** Our own and git's directories that lie in the worktree under another name than `.git` (no trailing slash). */
  ours: readonly string[]
  /** The user's own ignore files outside the worktree, those that count more last. git is asked once somebody asks. */
  ignoreFiles: () => Promise<readonly string[]>
  /** Its file system takes several spellings for one name (spelling.ts). */
  folds: boolean
}

/** The name of a file that lies beside its target while it is put in place on another file system than the store's. */
export const reservedName = (nonce: string, suffix: string): string => `.ckpt-${nonce}-${suffix}`

const RESERVED = /(^|\/)\.ckpt-[0-9a-f]{12}-\d+\.(new|old)$/

export const isReserved = (path: string): boolean => path.includes('.ckpt-') && RESERVED.test(path)

/** Whether a path is ours, or lies in a directory of ours or of git's: never part of a snapshot. */
export function isOurs(worktree: Worktree, path: string): boolean {
  if (isReserved(path)) return true
  return worktree.ours.some((own) => path === own || path.startsWith(`${own}/`))
}

/** What `snapshot.exclude` says of a path (gitignore(5)). */
export function excluder(limits: SnapshotLimits): (path: string) => boolean {
  if (limits.exclude.length === 0) return () => false
  const rules = ignore({ ignorecase: false }).add([...limits.exclude])
  return (path) => rules.ignores(pathToText(barePath(path)))
}
