/** What is to be put on disk, and what came of it. */
import type { PathState } from '../core/state.ts'
import type { Store } from '../git/store.ts'
import type { Opened } from './opening.ts'

export interface ApplyEntry {
  path: string
  pre: PathState
  post: PathState
}

export interface ApplyInput {
  root: string
  store: Store
  nonce: string
  entries: readonly ApplyEntry[]
  /**
   * All entries of the operation, as its journal has them, where `entries` are only some or turned round: by its place
   * there each path's temporary files have their number, whoever looks for them later.
   */
  whole?: readonly ApplyEntry[]
  /** Deepest first. */
  removable: readonly string[]
  directoryMode: number
  /**
   * What lstat said of each path when the plan was made (null: nothing there). Without it (recovery) each path is read
   * and compared with the two states.
   */
  expected?: ReadonlyMap<string, string | null>
}

export interface ApplyResult {
  done: ApplyEntry[]
  /** Recovery only: paths that hold neither state, left as they are. */
  left: string[]
  /** Milliseconds spent waiting for the disk. */
  syncMs: number
  /** Inodes that had other names: ours took one away, so their ctime is no sign of a change. */
  unlinked: Set<number>
  /** Directories that were made for the files in them, outermost first. */
  made: string[]
  /** Directories of our own that were opened to write into them: the modes they had, and get back at the end. */
  opened: Opened
  /** Our own directory is on another mount, even where it is one file system: temporary files lie beside their targets. */
  beside: boolean
}
