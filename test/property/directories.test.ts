/**
 * Turns whose steps fill, empty, make and remove the same few directories: undone and redone in whatever portions, the
 * worktree is what it was then, empty directories included. Promise 3.
 */
import { execFileSync } from 'node:child_process'
import fs from 'node:fs'
import fc from 'fast-check'
import { expect, test } from 'vitest'
import type { SessionId } from '../../src/core/ids.ts'
import { type Env, realEnv } from '../../src/env.ts'
import { redo } from '../../src/ops/change/redo.ts'
import { undo } from '../../src/ops/change/undo.ts'
import { mark } from '../../src/ops/mark.ts'
import { verify } from '../../src/ops/verify/verify.ts'
import { type Context, closeContext, openContext } from '../../src/ops/worktree/context.ts'
import { Scratch } from '../support/scratch.ts'
import { RUNS } from '../support/seed.ts'
import { applyEdit, type Edit, readTree } from '../support/tree.ts'

const edit = fc
  .record({
    kind: fc.constantFrom('write', 'write', 'mkdir', 'remove', 'remove'),
    path: fc.constantFrom('d', 'd', 'd/x', 'd/x', 'd/e', 'd/e/z', 'e', 'e/x'),
    directoryMode: fc.constantFrom(0o755, 0o755, 0o755, 0o700),
  })
  .map(({ kind, path, directoryMode }): Edit => {
    if (kind === 'write') return { kind, path, body: `${path}\n`, mode: 0o644, inPlace: false }
    return kind === 'mkdir' ? { kind, path, mode: directoryMode } : { kind: 'remove', path }
  })
const edits = fc.array(edit, { minLength: 1, maxLength: 3 })
/** One part: a turn without steps. */
const turns = fc.array(fc.array(edits, { minLength: 1, maxLength: 3 }), { minLength: 1, maxLength: 4 })
const moves = fc.array(
  fc.oneof(
    fc.record({ go: fc.constantFrom('back', 'back', 'forth'), turns: fc.integer({ min: 1, max: 4 }) }),
    fc.constant({ go: 'step' }),
  ),
  { minLength: 1, maxLength: 8 },
)

const session = 's' as SessionId

/** What each directory and file is, by path. */
const look = (root: string) =>
  Object.fromEntries(
    [...readTree(root).tree].map(([path, { type, mode, body }]) => [path, `${type} ${mode.toString(8)} ${body}`]),
  )
type Tree = ReturnType<typeof look>
const same = (a: Tree, b: Tree) => JSON.stringify(a) === JSON.stringify(b)

class Story {
  readonly #env: Env
  readonly #root: string
  /** Of each turn: as it was before, and after each of its steps. */
  readonly #turns: Tree[][] = []
  readonly #stepped: boolean[] = []
  /** How many turns are there, and of the last of them, how many steps: null, all. */
  #visible = 0
  #steps: number | null = null

  constructor(scratch: Scratch, root: string) {
    this.#root = root
    this.#env = { ...realEnv(), cwd: root, home: scratch.home, vars: scratch.vars }
  }

  async open<T>(work: (context: Context) => Promise<T>): Promise<T> {
    const context = await openContext(this.#env, this.#root, { create: true })
    try {
      return await work(context)
    } finally {
      closeContext(context)
    }
  }

  async #mark(event: 'prompt' | 'step' | 'stop', start = false): Promise<void> {
    const arrived = this.#env.monotonic()
    await this.open((context) =>
      mark(
        context,
        { event, session, ...(event === 'prompt' ? { text: 'x' } : {}), ...(start ? { start } : {}) } as never,
        arrived,
      ),
    )
  }

  async turn(parts: readonly Edit[][]): Promise<void> {
    const states = [look(this.#root)]
    await this.#mark('prompt')
    for (const part of parts) {
      if (parts.length > 1) await this.#mark('step', true)
      for (const one of part) applyEdit(this.#root, one)
      if (parts.length > 1) await this.#mark('step')
      states.push(look(this.#root))
    }
    await this.#mark('stop')
    this.#turns.push(states)
    this.#stepped.push(parts.length > 1)
    this.#visible++
  }

  async back(count: number): Promise<void> {
    const first = Math.max(0, this.#visible - count)
    if (this.#visible === 0) return
    await this.open((context) => undo(context, { session, mode: 'refuse', turns: count }, this.#now))
    this.#visible = first
    this.#steps = null
    this.#is(this.#turns[first]![0]!)
  }

  async step(): Promise<void> {
    const at = this.#visible - 1
    if (at < 0 || !this.#stepped[at]) return
    const states = this.#turns[at]!
    let last = this.#steps ?? states.length - 1
    while (last > 0 && same(states[last]!, states[last - 1]!)) last--
    if (last === 0) return
    await this.open((context) => undo(context, { session, mode: 'refuse', step: true }, this.#now))
    this.#steps = last - 1
    this.#is(states[last - 1]!)
  }

  async forth(count: number): Promise<void> {
    const next = this.#steps === null ? this.#visible : this.#visible - 1
    if (next === this.#turns.length) return
    await this.open((context) => redo(context, { session, mode: 'refuse', turns: count }, this.#now))
    this.#visible = Math.min(this.#turns.length, next + count)
    this.#steps = null
    this.#is(this.#turns[this.#visible - 1]!.at(-1)!)
  }

  get #now() {
    return { arrived: this.#env.monotonic() }
  }

  #is(wanted: Tree): void {
    expect(look(this.#root)).toEqual(wanted)
  }
}

test('empty directories are as they were, however many steps and turns go back at once', {
  timeout: RUNS * 20_000,
}, async () => {
  const scratch = new Scratch().init({ 'base.txt': 'b\n' })
  let run = 0
  await fc.assert(
    fc.asyncProperty(edits, turns, moves, async (first, all, portions) => {
      const root = `${scratch.base}/run-${++run}`
      execFileSync('cp', ['-a', scratch.root, root])
      const story = new Story(scratch, root)
      for (const one of first) applyEdit(root, one)
      for (const parts of all) await story.turn(parts)
      for (const move of portions) {
        if (!('turns' in move)) await story.step()
        else if (move.go === 'back') await story.back(move.turns)
        else await story.forth(move.turns)
      }
      const { problems } = await story.open((context) => verify(context))
      expect(problems).toEqual([])
      fs.rmSync(root, { recursive: true })
    }),
    { numRuns: RUNS, endOnFailure: Boolean(process.env.CKPT_PROPERTY_QUICK) },
  )
})
