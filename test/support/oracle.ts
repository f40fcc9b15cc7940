/**
 * What every undo and redo must leave, said by a plain array of whole-tree states: one for each checkpoint, read from the
 * disk by the test itself. It knows nothing of stores, trees or plans.
 */
import {
  type Change,
  coveredFiles,
  goingByForce,
  inTheWay,
  isFilePath,
  join,
  Murky,
  type State,
  sameState,
  sameTree,
  stateOf,
  takeBack,
} from './oracle-paths.ts'
import { isIgnored, type Tree } from './tree.ts'

export type Mode = 'refuse' | 'force' | 'skip'

/** The whole tree at one checkpoint. */
interface Entry {
  tree: Tree
  session: string
  /** A step's end or a turn's end: cuts the windows of others. */
  ends: boolean
  /** What an undo or redo left: the change from the entry before is nobody's. */
  nobodys: boolean
}

interface Step {
  start: number | null
  end: number | null
  declared: string[]
}

export interface Turn {
  number: number
  session: string
  before: number
  after: number | null
  steps: Step[]
  /** Indices of its checkpoints. */
  at: number[]
  abandoned: boolean
  /** Where it really ends, when it goes on without its later steps. */
  end: number | null
}

/** A piece of time, by indices of entries, that a turn or step claims. */
interface Window {
  step: number | null
  from: number
  to: number
  /** As far back what it declared may be its own. */
  reach: number
  declared: string[]
  weight: number
}

interface Unit {
  turn: number
  step: number | null
  changes: { path: string; from: State; to: State }[]
  /** The trees before and after its undo, if nothing else was undone with it. */
  exact: { before: Tree; after: Tree } | null
}

interface Session {
  turns: Turn[]
  boundary: { turn: number; step: number | null; units: Unit[] } | null
}

export type Selector = { turns: number } | { step: true } | { to: number } | { toStep: [number, number] }

export type Expectation =
  | { kind: 'error'; code: string }
  /** Nothing may be written. */
  | { kind: 'conflict'; why: string }
  /** `exact`: directories, too, are as in this tree. `perhaps`: an empty directory in the way may also make it a conflict. */
  | { kind: 'done'; files: Tree; exact: Tree | null; perhaps: boolean; commit: (result: Tree) => void }

export class Oracle {
  readonly entries: Entry[] = []
  readonly sessions = new Map<string, Session>()

  #push(session: string, tree: Tree, { ends = false, nobodys = false } = {}): number {
    this.entries.push({ tree, session, ends, nobodys })
    return this.entries.length - 1
  }

  #session(name: string): Session {
    let session = this.sessions.get(name)
    if (!session) {
      session = { turns: [], boundary: null }
      this.sessions.set(name, session)
    }
    return session
  }

  live(name: string): Turn[] {
    return this.sessions.get(name)?.turns.filter((turn) => !turn.abandoned) ?? []
  }

  visible(name: string): Turn[] {
    const boundary = this.sessions.get(name)?.boundary
    return this.live(name).filter(
      (turn) => !boundary || turn.number < boundary.turn || (turn.number === boundary.turn && boundary.step !== null),
    )
  }

  running(name: string): Turn | null {
    const last = this.live(name).at(-1)
    return last && last.after === null ? last : null
  }

  #abandon(name: string, tree: Tree): void {
    const session = this.#session(name)
    const { boundary } = session
    if (!boundary) return
    for (const turn of this.live(name)) {
      if (turn.number > boundary.turn || (turn.number === boundary.turn && boundary.step === null))
        turn.abandoned = true
      else if (turn.number === boundary.turn) {
        const from = boundary.step! - 1
        const gone = turn.steps.splice(from)
        const lost = new Set(gone.flatMap((step) => [step.start, step.end]))
        turn.at = turn.at.filter(
          (at) => at !== turn.after && !lost.has(at) && !gone.some((s) => at > (s.start ?? s.end!)),
        )
        turn.end = turn.at.at(-1)!
        turn.after = this.#push(name, tree, { ends: true })
        turn.at.push(turn.after)
      }
    }
    session.boundary = null
  }

  prompt(name: string, tree: Tree): void {
    const session = this.#session(name)
    if (session.boundary) this.#abandon(name, tree)
    const running = this.running(name)
    if (running) this.#end(running, tree)
    const before = this.#push(name, tree)
    const number = Math.max(0, ...session.turns.map((turn) => turn.number)) + 1
    session.turns.push({
      number,
      session: name,
      before,
      after: null,
      steps: [],
      at: [before],
      abandoned: false,
      end: null,
    })
  }

  #end(turn: Turn, tree: Tree): void {
    turn.after = this.#push(turn.session, tree, { ends: true })
    turn.at.push(turn.after)
  }

  /** False: the session has no turn. */
  marker(
    name: string,
    event: 'step-start' | 'step' | 'stop',
    { tree, declared = [] }: { tree: Tree; declared?: string[] },
  ): boolean {
    const session = this.sessions.get(name)
    if (!session || (this.live(name).length === 0 && !session.boundary)) return false
    const turn = session.boundary ? null : this.running(name)
    if (!turn) {
      this.#push(name, tree, { ends: true })
      return true
    }
    if (event === 'stop') {
      this.#end(turn, tree)
      return true
    }
    const at = this.#push(name, tree, { ends: event === 'step' })
    turn.at.push(at)
    const opened = event === 'step' ? turn.steps.filter((step) => step.start !== null && step.end === null) : []
    const open = opened.findLast((step) => step.declared.some((path) => declared.includes(path))) ?? opened.at(-1)
    if (open) {
      open.end = at
      open.declared.push(...declared)
    } else
      turn.steps.push(
        event === 'step' ? { start: null, end: at, declared } : { start: at, end: null, declared: [...declared] },
      )
    return true
  }

  #windows(turn: Turn): Window[] {
    const until = turn.after ?? Number.POSITIVE_INFINITY
    if (turn.steps.length === 0)
      return [{ step: null, from: turn.before, to: until, reach: turn.before, declared: [], weight: 1 }]
    return turn.steps.map(({ start, end, declared }, i) => {
      if (end === null) return { step: i + 1, from: start!, to: until, reach: start!, declared, weight: 0 }
      if (start !== null) return { step: i + 1, from: start, to: end, reach: start, declared, weight: 1 }
      const own = turn.at.filter((at) => at < end).at(-1)!
      const others = this.entries.flatMap((entry, at) =>
        at < end && entry.ends && entry.session !== turn.session ? [at] : [],
      )
      return { step: i + 1, from: Math.max(own, ...others), to: end, reach: own, declared, weight: 1 }
    })
  }

  /** What a turn changed and may take back, oldest first. */
  #changes(turn: Turn): Change[] {
    const changes: Change[] = []
    const foreign = [...this.sessions]
      .filter(([name]) => name !== turn.session)
      .flatMap(([, { turns }]) => turns.flatMap((other) => this.#windows(other)))
    const own = this.#windows(turn)
    for (let i = turn.before + 1; i <= (turn.end ?? turn.at.at(-1)!); i++) {
      if (this.entries[i]!.nobodys) continue
      const [from, to] = [this.entries[i - 1]!.tree, this.entries[i]!.tree]
      for (const path of new Set([...from.keys(), ...to.keys()])) {
        if (!isFilePath(path) || isIgnored(path)) continue
        const [was, is] = [stateOf(from, path), stateOf(to, path)]
        if (sameState(was, is) || (was === 'unknown' && is === 'unknown')) continue
        const best = (windows: readonly Window[]) => {
          let found: { weight: number; step: number | null; to: number } | null = null
          for (const window of windows) {
            if (window.reach > i - 1 || i > window.to) continue
            const declared = window.declared.some((d) => path === d || path.startsWith(`${d}/`))
            const isInside = window.from <= i - 1
            const weight = declared ? (isInside ? 3 : 2) : isInside ? window.weight : 0
            if (weight > (found?.weight ?? 0) || (found && weight === found.weight && window.to < found.to))
              found = { weight, step: window.step, to: window.to }
          }
          return found
        }
        const [mine, theirs] = [best(own), best(foreign)]
        if (!mine || (theirs && theirs.weight > mine.weight)) continue
        changes.push({ path, from: was, to: is, step: mine.step, ambiguous: theirs?.weight === mine.weight })
      }
    }
    return changes
  }

  undo(name: string, selector: Selector, { mode, disk }: { mode: Mode; disk: Tree }): Expectation {
    const session = this.sessions.get(name)
    if (!session) return { kind: 'error', code: 'NOT_FOUND' }
    if (!session.boundary && this.running(name)) return { kind: 'error', code: 'TURN_RUNNING' }
    const visible = this.visible(name)
    const { boundary } = session
    if (visible.length === 0) return { kind: 'error', code: 'NOTHING_TO_UNDO' }
    const hiddenFrom = (turn: Turn) =>
      boundary?.turn === turn.number && boundary.step !== null ? boundary.step : Number.POSITIVE_INFINITY
    const seen = (turn: Turn) =>
      this.#changes(turn).filter(
        (c) => hiddenFrom(turn) === Number.POSITIVE_INFINITY || (c.step !== null && c.step < hiddenFrom(turn)),
      )
    let whole: Turn[] = []
    let cut: { turn: Turn; step: number } | null = null
    if ('turns' in selector) whole = visible.slice(-selector.turns).reverse()
    else if ('to' in selector) {
      if (!visible.some((turn) => turn.number === selector.to)) return { kind: 'error', code: 'NOT_FOUND' }
      whole = visible.filter((turn) => turn.number >= selector.to).reverse()
    } else if ('toStep' in selector) {
      const [number, step] = selector.toStep
      const turn = visible.find((one) => one.number === number)
      if (!turn || step > turn.steps.length || step >= hiddenFrom(turn)) return { kind: 'error', code: 'NOT_FOUND' }
      whole = visible.filter((one) => one.number > number).reverse()
      cut = { turn, step }
    } else {
      const turn = visible.at(-1)!
      const changing = new Set<number>()
      for (let step = 1; step <= turn.steps.length && step < hiddenFrom(turn); step++)
        if (join(seen(turn).filter((change) => change.step === step)).length > 0 || this.#directories(turn, step))
          changing.add(step)
      if (changing.size === 0) return { kind: 'error', code: 'NOTHING_TO_UNDO' }
      cut = { turn, step: Math.max(...changing) }
    }
    const plan = whole.map((turn) => ({ turn: turn.number, step: null as number | null, changes: join(seen(turn)) }))
    if (cut) {
      const { turn, step } = cut
      plan.push({ turn: turn.number, step, changes: join(seen(turn).filter((c) => c.step !== null && c.step >= step)) })
    }
    const exact = cut ? null : this.#exactBefore(whole, hiddenFrom, disk)
    return this.#carryOut(plan, { mode, disk, exact }, (units, result) => {
      const before = disk
      this.#push(name, disk)
      this.#push(name, result, { nobodys: true })
      const first = cut?.turn ?? whole.at(-1)!
      const alone = units.length === 1 ? { before, after: result } : null
      session.boundary = {
        turn: first.number,
        step: cut?.step ?? null,
        units: [...(boundary?.units ?? []), ...units.map((unit) => ({ ...unit, exact: alone }))],
      }
    })
  }

  /** Whether a step did something to directories alone; the files oracle does not follow those. */
  #directories(turn: Turn, step: number): boolean {
    const end = turn.steps[step - 1]!.end ?? turn.end ?? turn.at.at(-1)!
    const from = this.#windows(turn)[step - 1]!.from
    const dirs = (tree: Tree) =>
      [...tree]
        .filter(([path]) => !isFilePath(path))
        .map(([path, node]) => `${path} ${node.mode}`)
        .join('\0')
    for (let i = from + 1; i <= end; i++)
      if (dirs(this.entries[i - 1]!.tree) !== dirs(this.entries[i]!.tree)) throw new Murky()
    return false
  }

  /** The tree that an undo must give back to the last bit: nobody else did anything meanwhile. */
  #exactBefore(whole: Turn[], hiddenFrom: (turn: Turn) => number, disk: Tree): Tree | null {
    let now = disk
    for (const turn of whole) {
      if (turn.steps.length > 0 || hiddenFrom(turn) !== Number.POSITIVE_INFINITY || turn.end !== null) return null
      if (!sameTree(now, this.entries[turn.after!]!.tree)) return null
      for (let i = turn.before + 1; i <= turn.after!; i++) if (this.entries[i]!.nobodys) return null
      now = this.entries[turn.before]!.tree
    }
    return now
  }

  redo(name: string, turns: number, { mode, disk }: { mode: Mode; disk: Tree }): Expectation {
    const session = this.sessions.get(name)
    if (!session) return { kind: 'error', code: 'NOT_FOUND' }
    if (!session.boundary) return { kind: 'error', code: this.running(name) ? 'TURN_RUNNING' : 'NOTHING_TO_REDO' }
    const left = [...session.boundary.units]
    const back: Unit[] = []
    const numbers = new Set<number>()
    for (let unit = left.at(-1); unit; unit = left.at(-1)) {
      if (!numbers.has(unit.turn) && numbers.size === turns) break
      numbers.add(unit.turn)
      back.push(left.pop()!)
    }
    const alone = back.length === 1 ? back[0]!.exact : null
    const exact = alone && sameTree(alone.after, disk) ? alone.before : null
    const plan = back.map((unit) => ({
      ...unit,
      changes: unit.changes.map((c) => ({ ...c, step: null, ambiguous: false })),
    }))
    return this.#carryOut(plan, { mode, disk, exact }, (_units, result) => {
      this.#push(name, disk)
      this.#push(name, result, { nobodys: true })
      const last = left.at(-1)
      session.boundary = last ? { turn: last.turn, step: last.step, units: left } : null
    })
  }

  accept(name: string, disk: Tree): void {
    if (this.sessions.get(name)?.boundary) this.#abandon(name, disk)
  }

  /** One after the other, each path by itself, on a copy of the disk's tree. */
  #carryOut(
    plan: { turn: number; step: number | null; changes: Change[] }[],
    { mode, disk, exact }: { mode: Mode; disk: Tree; exact: Tree | null },
    record: (units: Unit[], result: Tree) => void,
  ): Expectation {
    const now = new Map<string, State>()
    const held = new Set<string>()
    const units: Unit[] = []
    for (const { turn, step, changes } of plan) {
      const unit: Unit = { turn, step, changes: [], exact: null }
      for (const change of [...changes].reverse()) {
        const { path } = change
        if (held.has(path)) continue
        // Looked at right then: what no snapshot covers is there, or it is not.
        const seen = now.has(path) ? now.get(path) : stateOf(disk, path)
        const ours = seen === 'unknown' ? undefined : seen
        const verdict = takeBack(change, ours)
        if (verdict.kind === 'leave') held.add(path)
        else if (verdict.kind === 'conflict' && mode === 'refuse')
          return { kind: 'conflict', why: `${path}: ${verdict.why}` }
        else if (verdict.kind === 'conflict' && mode === 'skip') held.add(path)
        else {
          const post = verdict.kind === 'conflict' ? change.from : verdict.post
          if (!sameState(ours, post)) unit.changes.push({ path, from: ours, to: post })
          now.set(path, post)
        }
      }
      units.push(unit)
    }
    // A path that is left is left altogether.
    for (const path of held) now.delete(path)
    for (const unit of units) unit.changes = unit.changes.filter((change) => !held.has(change.path))
    const files = coveredFiles(disk)
    for (const [path, state] of now) {
      if (state === undefined || state === 'unknown') files.delete(path)
      else files.set(path, state)
    }
    let perhaps = false
    if (exact === null && mode !== 'refuse' && held.size > 0) perhaps = true
    const arriving = [...now.keys()].filter((path) => files.has(path) && !disk.has(path))
    const ways = new Map(arriving.map((path) => [path, inTheWay(path, files, disk)]))
    const cleared = new Map<string, string[]>()
    for (const [path, way] of ways) {
      if (way === 'perhaps' && exact === null) {
        if (mode === 'skip') throw new Murky()
        perhaps = true
      } else if (way !== 'perhaps' && way !== null) {
        if (mode === 'force') {
          const going = goingByForce(path, files, disk)
          if (!going || going.some((one) => now.has(one) || held.has(one))) return { kind: 'conflict', why: way }
          cleared.set(path, going)
          continue
        }
        if (mode !== 'skip') return { kind: 'conflict', why: way }
        files.delete(path)
        held.add(path)
        for (const unit of units) unit.changes = unit.changes.filter((change) => change.path !== path)
      }
    }
    for (const unit of units)
      unit.changes = unit.changes.flatMap((change) => {
        const first = (cleared.get(change.path) ?? []).filter((one) => files.delete(one))
        return [...first.map((path) => ({ path, from: disk.get(path), to: undefined })), change]
      })
    // Others at work at the same time: some of the change is theirs, and stays.
    const whole =
      exact !== null && held.size === 0 && (this.sessions.size === 1 || sameTree(files, coveredFiles(exact)))
        ? exact
        : null
    return { kind: 'done', files, exact: whole, perhaps, commit: (result) => record(units, result) }
  }
}
