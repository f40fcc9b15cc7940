/**
 * What turns made and left of paths, in each worktree of the store. A path is looked at where it changed and not at each
 * checkpoint, so that a turn may have any number of steps.
 */
import { type Checkpoint, isOutside } from '../../core/checkpoint.ts'
import type { Oid } from '../../core/ids.ts'
import { barePath, isWithin, shown } from '../../core/paths.ts'
import { besideOf } from '../record/record.ts'
import type { Context } from '../worktree/context.ts'
import type { ChangedFiles } from './changed-files.ts'
import { Lineage } from './lineage.ts'
import { type Run, readRuns } from './path-runs.ts'

export interface Verdict {
  covered: boolean
  session: string | null
  turn: number | null
  /** The checkpoint that shows it, or why none does. */
  why: string
}

/** A worktree numbers its own; between worktrees there are the times. */
export const inTime = (a: Checkpoint, b: Checkpoint) => (a.time < b.time ? -1 : a.time > b.time ? 1 : a.seq - b.seq)

/** A turn at work: what lies before this checkpoint is the turn's own. Where one that was cut goes on is no work of its. */
export const isWork = (one: Checkpoint) =>
  (one.kind === 'step' || (one.kind === 'after' && !one.cut)) && !isOutside(one)

export const by = ({ session, turn }: Checkpoint, why: string): Verdict => ({
  covered: true,
  session,
  turn: turn ?? null,
  why,
})

export const none = (why: string): Verdict => ({ covered: false, session: null, turn: null, why })

/** The checkpoints of one worktree, in its order. */
interface Row {
  checkpoints: readonly Checkpoint[]
  /** For each checkpoint the place where its turn began; undefined: it is not there. */
  begins: readonly (number | undefined)[]
  /** For each checkpoint whether a turn was at work before it: its own, or one that goes on after it. */
  atWork: readonly boolean[]
  runs: ReadonlyMap<string, readonly Run[]>
}

/** A row as it was before a commit. */
interface Past extends Row {
  /** For each place the last one up to it where a turn was at work; -1: none was. */
  last: readonly number[]
  /** Of each path the runs in which a turn was at work and it is as in the commit. */
  held: ReadonlyMap<string, readonly Run[]>
}

type Span = Pick<Run, 'from' | 'to'>

export class TurnsWork {
  readonly #context: Context
  readonly #rows: readonly Row[]
  readonly #lineage: Lineage

  private constructor(context: Context, rows: readonly Row[]) {
    this.#context = context
    this.#rows = rows
    this.#lineage = new Lineage(context)
  }

  /** `chains`: the checkpoints of each worktree, in its order. */
  static async read(
    context: Context,
    chains: readonly (readonly Checkpoint[])[],
    paths: ReadonlySet<string>,
  ): Promise<TurnsWork> {
    const { store } = context
    const rows: Row[] = []
    for (const checkpoints of chains) {
      const trees = checkpoints.map(({ tree }) => tree)
      const begins = beginsOf(checkpoints)
      const atWork = workBefore(checkpoints, begins)
      rows.push({ checkpoints, begins, atWork, runs: await readRuns(store.trees, trees, paths) })
    }
    return new TurnsWork(context, rows)
  }

  /** `isBefore`: whether a checkpoint tells of the time before the commit. */
  async covers(
    changed: ChangedFiles,
    {
      paths,
      parents,
      isBefore,
    }: { paths: readonly string[]; parents: readonly Oid[]; isBefore: (one: Checkpoint) => boolean },
  ): Promise<Verdict> {
    const past: Past[] = []
    for (const one of this.#rows) {
      const held = new Map<string, readonly Run[]>()
      const row = { ...one, last: lastWork(one, isBefore), held }
      for (const path of paths) held.set(path, await this.#heldRuns(row, changed, path))
      past.push(row)
    }
    const ends = past.flatMap((row) => lastTogether(row, paths) ?? [])
    const [end] = ends.sort((a, b) => inTime(b, a))
    if (!end) {
      const foreign = paths.find((path) => past.every((row) => row.held.get(path)!.length === 0))
      return none(
        foreign === undefined
          ? 'no turn left all its files as they are in it'
          : `${shown(foreign)} is not what a turn left`,
      )
    }
    // The newest: those before it are made by fewer turns still.
    const until = (one: Checkpoint) => isBefore(one) && inTime(one, end) <= 0
    const made = past.map((row) => madeIn(row, until))
    const unmade = paths.find((path) => !made.some((isMade) => isMade(changed, path)))
    if (unmade !== undefined) return none(`${shown(unmade)} is as a turn left it, and none is known to have made it so`)
    for (const path of paths)
      if (!(await this.#isOfTurns(past, { changed, parents }, path)))
        return none(
          this.#isShallow()
            ? `${shown(path)} came from what is not here: git fetch --unshallow`
            : `${shown(path)} has in it what no turn made: it was there, uncommitted, before one`,
        )
    return by(end, 'holds what the turn left')
  }

  #isShallow(): boolean {
    const { env, repository } = this.#context
    return repository !== null && env.files.existsSync(`${repository.commonDir}/shallow`)
  }

  /** Whether nothing of what the commit has at a path lay there when a turn began, and was not committed. */
  async #isOfTurns(
    past: readonly Past[],
    rest: { changed: ChangedFiles; parents: readonly Oid[] },
    path: string,
  ): Promise<boolean> {
    for (const { checkpoints, atWork, runs, held } of past) {
      const course = { path, checkpoints, atWork, runs: runs.get(path)! }
      for (const run of held.get(path)!) if (await this.#lineage.isOfTurns(rest, course, run)) return true
    }
    return false
  }

  async #heldRuns(row: Past, changed: ChangedFiles, path: string): Promise<Run[]> {
    const found: Run[] = []
    for (const run of row.runs.get(path)!) {
      const at = placeIn(row, run)
      if (at < 0 || !(await changed.isAs(path, run.entry))) continue
      if (run.entry !== null || (await this.#isAbsent(row.checkpoints[at]!, path))) found.push(run)
    }
    return found
  }

  /** What a snapshot did not cover is unknown: it may be there. */
  async #isAbsent(checkpoint: Checkpoint, path: string): Promise<boolean> {
    const { uncovered } = await besideOf(this.#context, checkpoint)
    return !uncovered.some((one) => isWithin(path, barePath(one.path)))
  }
}

/** A turn that was abandoned may have the number of one that came after it. */
function beginsOf(checkpoints: readonly Checkpoint[]): (number | undefined)[] {
  const begun = new Map<string, number>()
  return checkpoints.map(({ kind, session, turn }, at) => {
    if (kind === 'before') begun.set(`${turn} ${session}`, at)
    return begun.get(`${turn} ${session}`)
  })
}

/** One that is not told to have ended may have been over long before it was closed: it counts up to its last step. */
function workBefore(checkpoints: readonly Checkpoint[], begins: Row['begins']): boolean[] {
  const changes = checkpoints.map(() => 0)
  for (const [at, one] of checkpoints.entries()) {
    const begin = isWork(one) && !one.inferred ? begins[at] : undefined
    if (begin === undefined || begin === at) continue
    changes[begin + 1]! += 1
    if (at + 1 < changes.length) changes[at + 1]! -= 1
  }
  let open = 0
  return checkpoints.map((one, at) => {
    open += changes[at]!
    return open > 0 || isWork(one)
  })
}

function lastWork({ checkpoints }: Row, isBefore: (one: Checkpoint) => boolean): number[] {
  let last = -1
  return checkpoints.map((one, at) => {
    if (isWork(one) && isBefore(one)) last = at
    return last
  })
}

/** The last place in a span where a turn was at work; -1: none was. */
const placeIn = ({ last }: Past, { from, to }: Span): number => (last[to]! >= from ? last[to]! : -1)

/** The last checkpoint of a turn at work that has all the paths as in the commit. */
function lastTogether(row: Past, paths: readonly string[]): Checkpoint | undefined {
  let spans: Span[] = [{ from: 0, to: row.checkpoints.length - 1 }]
  for (const path of paths) spans = inBoth(spans, row.held.get(path)!)
  const span = spans.findLast((one) => placeIn(row, one) >= 0)
  return span && row.checkpoints[placeIn(row, span)]
}

/** Both in order, none over another. */
function inBoth(some: readonly Span[], others: readonly Span[]): Span[] {
  const found: Span[] = []
  for (let i = 0, j = 0; i < some.length && j < others.length; ) {
    const [a, b] = [some[i]!, others[j]!]
    const [from, to] = [Math.max(a.from, b.from), Math.min(a.to, b.to)]
    if (from <= to) found.push({ from, to })
    if (a.to < b.to) i++
    else j++
  }
  return found
}

/** Whether a turn in a row made a path as the commit has it: it was another when the turn began. */
function madeIn(row: Past, isBefore: (one: Checkpoint) => boolean) {
  const { checkpoints, begins, held } = row
  const starts = checkpoints.map((one, at) => {
    const begin = isWork(one) && isBefore(one) ? begins[at] : undefined
    return begin !== undefined && isBefore(checkpoints[begin]!) ? begin : Number.POSITIVE_INFINITY
  })
  // From each place on, where the turn began that began first: behind it no other can have made what is there.
  const first = [...starts]
  for (let at = first.length - 2; at >= 0; at--) first[at] = Math.min(first[at]!, first[at + 1]!)
  return (changed: ChangedFiles, path: string): boolean => {
    const runs = row.runs.get(path)!
    for (const { from, to, entry } of held.get(path)!) {
      for (let at = from, seen = -1; at <= to && first[at]! < from; at++) {
        const start = starts[at]!
        if (start >= from || start === seen) continue
        if (!changed.isSame(runAt(runs, start).entry, entry)) return true
        seen = start
      }
    }
    return false
  }
}

function runAt(runs: readonly Run[], place: number): Run {
  let [low, high] = [0, runs.length - 1]
  while (low < high) {
    const middle = (low + high + 1) >> 1
    if (runs[middle]!.from <= place) low = middle
    else high = middle - 1
  }
  return runs[low]!
}
