/** Where what lay on disk at a path came from: from turns at work, change by change, or from elsewhere. */
import type { Checkpoint } from '../../core/checkpoint.ts'
import type { Oid } from '../../core/ids.ts'
import { isAncestor } from '../committed/commits-file.ts'
import { type Entry, readHeadEntries } from '../committed/entries.ts'
import type { Context } from '../worktree/context.ts'
import type { ChangedFiles } from './changed-files.ts'
import type { Run } from './path-runs.ts'

/** One path through the checkpoints of one worktree. */
interface Course {
  path: string
  checkpoints: readonly Checkpoint[]
  runs: readonly Run[]
  isWork: (one: Checkpoint) => boolean
}

/** A commit that was made between turns. */
interface Rest {
  changed: ChangedFiles
  parents: readonly Oid[]
}

export class Lineage {
  readonly #context: Context
  readonly #entries = new Map<Oid, Promise<ReadonlyMap<string, Entry>>>()
  readonly #ancestors = new Map<string, Promise<boolean>>()

  constructor(context: Context) {
    this.#context = context
  }

  /**
   * Whether turns alone, one after the other, made what a path holds in a run of what a commit rests on: of what its parents
   * have, or of what was committed below them when it lay on disk. What comes back (by redo, by git) is as it was.
   */
  async isOfTurns(rest: Rest, course: Course, run: Run): Promise<boolean> {
    const { path, checkpoints, runs, isWork } = course
    for (let at = runs.indexOf(run); ; at--) {
      const { entry } = runs[at]!
      at = runs.findIndex((one) => rest.changed.isSame(one.entry, entry))
      if (await isAmong(rest, entry, rest.changed.entriesBefore(path))) return true
      if (at > 0 && isWork(checkpoints[runs[at]!.from]!)) continue
      return this.#wasCommitted(rest, course, runs[at]!)
    }
  }

  /** Whether HEAD had it at a checkpoint, and is below the commit. */
  async #wasCommitted(rest: Rest, { path, checkpoints }: Course, { from, to, entry }: Run): Promise<boolean> {
    const heads = new Set(checkpoints.slice(from, to + 1).flatMap(({ head }) => head ?? []))
    for (const head of heads) {
      if (!(await this.#isBelow(head, rest.parents))) continue
      if (await isAmong(rest, entry, [(await this.#entriesOf(head)).get(path) ?? null])) return true
    }
    return heads.size === 0 && entry === null // before the first commit
  }

  async #isBelow(head: Oid, parents: readonly Oid[]): Promise<boolean> {
    for (const parent of parents) {
      const key = `${head} ${parent}`
      const known = this.#ancestors.get(key) ?? isAncestor(this.#context, head, parent)
      this.#ancestors.set(key, known)
      if (await known) return true
    }
    return false
  }

  #entriesOf(head: Oid): Promise<ReadonlyMap<string, Entry>> {
    const known = this.#entries.get(head) ?? readHeadEntries(this.#context, head)
    this.#entries.set(head, known)
    return known
  }
}

async function isAmong({ changed }: Rest, entry: Entry, wanted: readonly Entry[]): Promise<boolean> {
  for (const one of wanted) if (await changed.isCommittedAs(entry, one)) return true
  return false
}
