/** Where what lay on disk at a path came from: from turns at work, change by change, or from elsewhere. */
import { type Beside, uncoveredAt } from '../../core/beside.ts'
import type { Checkpoint } from '../../core/checkpoint.ts'
import type { Oid } from '../../core/ids.ts'
import { isText, pathToText } from '../../core/paths.ts'
import { tryGit } from '../../git/process.ts'
import { readChanges } from '../committed/changes.ts'
import { isAncestor } from '../committed/commits-file.ts'
import { type Entry, readEntries } from '../committed/entries.ts'
import { besideOf } from '../record/record.ts'
import type { Context } from '../worktree/context.ts'
import type { ChangedFiles } from './changed-files.ts'
import type { Run } from './path-runs.ts'

/** One path through the checkpoints of one worktree. */
export interface Course {
  path: string
  checkpoints: readonly Checkpoint[]
  runs: readonly Run[]
  /** For each checkpoint whether a turn was at work before it. */
  atWork: readonly boolean[]
}

/** A commit that was made between turns. */
export interface Rest {
  changed: ChangedFiles
  parents: readonly Oid[]
}

export class Lineage {
  readonly #context: Context
  readonly #entries = new Map<string, Promise<readonly Entry[]>>()
  readonly #ancestors = new Map<string, Promise<boolean>>()
  #last: { oid: Oid; read: Promise<Beside> } | null = null

  constructor(context: Context) {
    this.#context = context
  }

  /**
   * Whether turns alone, one after the other, made what a path holds in a run of what a commit rests on: of what its parents
   * have, or of what was committed below them when it lay on disk. What comes back (by redo, by git) is as it was.
   */
  async isOfTurns(rest: Rest, course: Course, run: Run): Promise<boolean> {
    const { path, runs, atWork } = course
    for (let at = runs.indexOf(run); ; at--) {
      const { entry } = runs[at]!
      at = runs.findIndex((one) => rest.changed.isSame(one.entry, entry))
      if (entry === null && (await this.#isUnknown(course, runs[at]!))) return false
      if (await isAmong(rest, entry, rest.changed.entriesBefore(path))) return true
      if (at === 0 || !atWork[runs[at]!.from]) return this.#wasCommitted(rest, course, runs[at]!)
    }
  }

  /** Whether something may have been there that no snapshot holds. What a sparse checkout leaves out is as git has it. */
  async #isUnknown({ path, checkpoints }: Course, { to }: Run): Promise<boolean> {
    const { beside } = checkpoints[to]!
    // The files of one commit are asked about one after the other, and most of them at one checkpoint.
    if (this.#last?.oid !== beside) this.#last = { oid: beside, read: besideOf(this.#context, { beside }) }
    const left = uncoveredAt(await this.#last.read, path)
    return left !== null && left.reason !== 'not-here'
  }

  /** Whether HEAD had it at a checkpoint, and it is committed below: by that commit, or by what was made of it since. */
  async #wasCommitted(rest: Rest, { path, checkpoints }: Course, { from, to, entry }: Run): Promise<boolean> {
    const heads = new Set(checkpoints.slice(from, to + 1).flatMap(({ head }) => head ?? []))
    for (const head of heads) {
      if (!(await isAmong(rest, entry, await this.#entriesOf(head, path)))) continue
      if (await this.#isBelow(head, rest.parents)) return true
      if (await isAmong(rest, entry, (await Promise.all(rest.parents.map((one) => this.#historyOf(one, path)))).flat()))
        return true
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

  /** What a commit has at a path; nothing where it is gone, or git cannot be asked by such a name. */
  #entriesOf(head: Oid, path: string): Promise<readonly Entry[]> {
    return this.#asked(`${head} ${path}`, async () => {
      const { env, worktree } = this.#context
      const args = ['ls-tree', '-r', '-z', '--full-tree', head, '--', pathToText(path)]
      const result = isText(path) ? await tryGit(env, { args, cwd: worktree.root }) : null
      return result?.code === 0 ? [readEntries(result.stdout).get(path) ?? null] : []
    })
  }

  /** What any commit below one made of a path. */
  #historyOf(commit: Oid, path: string): Promise<readonly Entry[]> {
    return this.#asked(`${commit}.. ${path}`, async () =>
      (await readChanges(this.#context, [commit], path)).map(({ entry }) => entry),
    )
  }

  #asked(key: string, ask: () => Promise<readonly Entry[]>): Promise<readonly Entry[]> {
    const known = this.#entries.get(key) ?? ask()
    this.#entries.set(key, known)
    return known
  }
}

async function isAmong({ changed }: Rest, entry: Entry, wanted: readonly Entry[]): Promise<boolean> {
  for (const one of wanted) if (await changed.isCommittedAs(entry, one)) return true
  return false
}
