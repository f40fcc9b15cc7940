/** One worktree with its oracle: carries out what a story says, and compares after every act. */

import { expect } from 'vitest'
import { CkptError } from '../../src/core/errors.ts'
import type { SessionId } from '../../src/core/ids.ts'
import { type Env, realEnv } from '../../src/env.ts'
import { accept } from '../../src/ops/change/accept.ts'
import { redo } from '../../src/ops/change/redo.ts'
import { undo } from '../../src/ops/change/undo.ts'
import { listTurns } from '../../src/ops/history/history.ts'
import { mark } from '../../src/ops/mark.ts'
import { type Context, closeContext, openContext } from '../../src/ops/worktree/context.ts'
import { type Expectation, type Mode, Oracle, type Selector } from './oracle.ts'
import { coveredFiles } from './oracle-paths.ts'
import type { Scratch } from './scratch.ts'
import { applyEdit, type Edit, isIgnored, readTree, sameNode, type Tree } from './tree.ts'

export type Act =
  | { kind: 'edit'; edits: Edit[] }
  | { kind: 'prompt'; session: string }
  | { kind: 'marker'; session: string; event: 'step-start' | 'step' | 'stop'; declared: string[] }
  | { kind: 'undo'; session: string; selector: Selector; mode: Mode }
  | { kind: 'redo'; session: string; turns: number; mode: Mode }
  | { kind: 'accept'; session: string }

/** What was met, so that a run that never conflicts, say, is seen to prove little. */
export const met = new Map<string, number>()
export const count = (what: string) => met.set(what, (met.get(what) ?? 0) + 1)

export class World {
  readonly env: Env
  readonly oracle = new Oracle()
  readonly root: string
  constructor(scratch: Scratch, root: string) {
    this.root = root
    this.env = { ...realEnv(), cwd: root, home: scratch.home, vars: scratch.vars }
  }

  async open<T>(work: (context: Context) => Promise<T>): Promise<T> {
    const context = await openContext(this.env, this.root, { create: true })
    try {
      return await work(context)
    } finally {
      closeContext(context)
    }
  }

  get tree(): Tree {
    return readTree(this.root).tree
  }

  /** The session meant; where it has no turn yet, mostly another that has some. */
  known(act: Exclude<Act, { kind: 'edit' }>): string {
    const all = [...this.oracle.sessions.keys()]
    const strange = act.kind === 'prompt' || all.length === 0 || all.includes(act.session) || act.session === 'ü/3'
    return strange ? act.session : all[0]!
  }

  /** A selector's numbers count what is there to choose from, most of the time. */
  chosen(name: string, selector: Selector): Selector {
    const visible = this.oracle.visible(name)
    if ('to' in selector) {
      const turn = visible[selector.to % (visible.length + 1)]
      return turn ? { to: turn.number } : selector
    }
    if (!('toStep' in selector)) return selector
    const [at, step] = selector.toStep
    const stepped = visible.filter((turn) => turn.steps.length > 0)
    const turn = stepped[at % (stepped.length + 1)]
    return turn ? { toStep: [turn.number, (step % turn.steps.length) + 1] } : selector
  }

  async act(act: Act): Promise<void> {
    const { oracle } = this
    if (act.kind === 'edit') {
      for (const one of act.edits) applyEdit(this.root, one)
      return
    }
    const name = this.known(act) as SessionId
    const arrived = this.env.monotonic()
    if (act.kind === 'prompt') {
      await this.open((context) => mark(context, { event: 'prompt', session: name, text: 'x' }, arrived))
      oracle.prompt(name, this.tree)
    } else if (act.kind === 'marker') {
      const { event, declared } = act
      const more = event === 'stop' ? {} : { paths: declared }
      const start = event === 'step-start' ? { start: true } : {}
      const marker = { event: event === 'stop' ? 'stop' : 'step', session: name, ...start, ...more } as const
      const failed = await codeOf(this.open((context) => mark(context, marker, arrived)))
      expect(failed).toBe(oracle.marker(name, event, { tree: this.tree, declared: [...declared] }) ? null : 'NOT_FOUND')
    } else if (act.kind === 'accept') {
      const failed = await codeOf(this.open((context) => accept(context, name)))
      expect(failed).toBe(oracle.sessions.has(name) ? null : 'NOT_FOUND')
      oracle.accept(name, this.tree)
    } else {
      const before = this.tree
      if (act.kind === 'undo') {
        const selector = this.chosen(name, act.selector)
        await this.change({ ...act, selector }, oracle.undo(name, selector, { mode: act.mode, disk: before }))
      } else await this.change(act, oracle.redo(name, act.turns, { mode: act.mode, disk: before }))
    }
    if (act.kind !== 'marker') await this.timeline(name)
  }

  async change(act: Act & { kind: 'undo' | 'redo' }, expected: Expectation): Promise<void> {
    const before = readTree(this.root)
    const arrived = this.env.monotonic()
    const name = this.known(act)
    const { mode } = act
    const failed = await codeOf(
      this.open(async (context) =>
        act.kind === 'redo'
          ? redo(context, { session: name, turns: act.turns, mode }, { arrived })
          : undo(context, { session: name, mode, ...selected(act.selector) }, { arrived }),
      ),
    )
    const after = readTree(this.root)
    count(`${act.kind} ${failed ?? (expected.kind === 'done' && expected.exact ? 'exact' : 'done')}`)
    if (expected.kind !== 'done') {
      expect([expected, failed, said]).toEqual([
        expected,
        expected.kind === 'conflict' ? 'CONFLICT' : expected.code,
        said,
      ])
    }
    if (failed !== null) {
      if (expected.kind === 'done' && !expected.perhaps) expect(`${act.kind} went well`).toBe(`${failed}: ${said}`)
      // Nothing at all was written.
      expect(shown(after.tree)).toEqual(shown(before.tree))
      expect(after.stamps).toEqual(before.stamps)
      return
    }
    if (expected.kind !== 'done') return
    expect(shown(coveredFiles(after.tree))).toEqual(shown(coveredFiles(expected.files)))
    if (expected.exact)
      expect(shown(withoutMurk(after.tree, expected.exact, before.tree))).toEqual(
        shown(withoutMurk(expected.exact, after.tree, before.tree)),
      )
    for (const [path, node] of before.tree) {
      if (path.endsWith('/')) continue
      if (isIgnored(path)) expect([path, after.tree.get(path)]).toEqual([path, node])
      if (sameNode(node, after.tree.get(path)) && !path.endsWith('/'))
        expect([path, after.stamps.get(path)]).toEqual([path, before.stamps.get(path)])
    }
    expected.commit(after.tree)
  }

  /** What is listed is what the oracle thinks is there. */
  async timeline(name: string): Promise<void> {
    if (!this.oracle.sessions.has(name)) return
    const listed = await this.open((context) => listTurns(context, { session: name }))
    const visible = this.oracle.visible(name)
    expect(listed.turns.map(({ turn }) => turn.number).reverse()).toEqual(visible.map((turn) => turn.number))
  }
}

const selected = (selector: Selector) => {
  if ('toStep' in selector) return { to: selector.toStep.join('.') }
  if ('to' in selector) return { to: String(selector.to) }
  return selector
}

/** What the last refusal said. */
let said = ''

/** Null: it went well. */
async function codeOf(work: Promise<unknown>): Promise<string | null> {
  try {
    await work
    return null
  } catch (error) {
    if (!(error instanceof CkptError) || error.code === 'INTERNAL') throw error
    said = error.message
    return error.code
  }
}

const shown = (tree: Tree) =>
  Object.fromEntries(
    [...tree].sort().map(([path, node]) => [path, `${node.type} ${node.mode.toString(8)} ${node.body.slice(0, 300)}`]),
  )

/** Without ignored files, and without directories that hold some: no snapshot says anything of those. */
function withoutMurk(tree: Tree, ...others: Tree[]): Tree {
  const ignored = [tree, ...others].flatMap((one) => [...one.keys()].filter(isIgnored))
  return new Map(
    [...tree].filter(
      ([path]) => !isIgnored(path) && !(path.endsWith('/') && ignored.some((one) => one.startsWith(path))),
    ),
  )
}
