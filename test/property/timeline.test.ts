/**
 * Random work of up to three sessions in one worktree, and undo, redo, accept and going on in between, against an oracle
 * that keeps a plain array of whole-tree states. Promises 1, 2, 3, 4 and 11.
 */
import { execFileSync } from 'node:child_process'
import fs from 'node:fs'
import fc from 'fast-check'
import { expect, test } from 'vitest'
import { verify } from '../../src/ops/verify/verify.ts'
import type { Mode, Selector } from '../support/oracle.ts'
import { Murky } from '../support/oracle-paths.ts'
import { Scratch } from '../support/scratch.ts'
import { RUNS } from '../support/seed.ts'
import { edits, lines } from '../support/tree.ts'
import { type Act, count, met, World } from '../support/world.ts'

const session = fc.constantFrom('s', 's', 's', 's', 'T two', 'T two', 'ü/3')
const mode = fc.constantFrom<Mode>('refuse', 'refuse', 'refuse', 'refuse', 'force', 'skip')
const event = fc.constantFrom('step-start' as const, 'step' as const, 'step' as const, 'stop' as const)
const declared = fc.oneof(
  { weight: 3, arbitrary: fc.constant<string[]>([]) },
  {
    weight: 1,
    arbitrary: fc.array(fc.constantFrom('a', 'dir', 'b.txt', '\xff\xfe-bad'), { minLength: 1, maxLength: 2 }),
  },
)
const selector: fc.Arbitrary<Selector> = fc.oneof(
  { weight: 5, arbitrary: fc.integer({ min: 1, max: 3 }).map((turns) => ({ turns })) },
  { weight: 2, arbitrary: fc.constant({ step: true as const }) },
  { weight: 2, arbitrary: fc.integer({ min: 1, max: 4 }).map((to) => ({ to })) },
  {
    weight: 1,
    arbitrary: fc
      .tuple(fc.integer({ min: 1, max: 3 }), fc.integer({ min: 1, max: 3 }))
      .map((toStep) => ({ toStep: toStep as [number, number] })),
  },
)
const edit = edits(5).map((all): Act => ({ kind: 'edit', edits: all }))
const prompt = session.map((one): Act => ({ kind: 'prompt', session: one }))
const undoes = fc.record({ kind: fc.constant('undo' as const), session, selector, mode })
const redoes = fc.record({ kind: fc.constant('redo' as const), session, turns: fc.constantFrom(1, 1, 2, 99), mode })
const marker = fc.record({ kind: fc.constant('marker' as const), session, event, declared })

/** A whole turn of one session; in some of them steps. */
const turn = fc
  .tuple(session, edits(6), fc.array(fc.tuple(edits(3), event, declared), { maxLength: 3 }), fc.boolean())
  .map(([one, work, steps, plain]): Act[] => [
    { kind: 'prompt', session: one },
    { kind: 'edit', edits: work },
    ...(plain
      ? []
      : steps.flatMap(([more, kind, paths]): Act[] => [
          { kind: 'marker', session: one, event: kind === 'stop' ? 'step' : kind, declared: paths },
          { kind: 'edit', edits: more },
        ])),
    { kind: 'marker', session: one, event: 'stop', declared: [] },
  ])
/** There and back, with or without somebody's edits in between. */
const andBack = fc
  .tuple(undoes, fc.option(edits(2)), redoes)
  .map(([undo, between, redo]): Act[] => [
    undo,
    ...(between ? [{ kind: 'edit' as const, edits: between }] : []),
    { ...redo, session: undo.session },
  ])
const single = (arbitrary: fc.Arbitrary<Act>) => arbitrary.map((act) => [act])

const rest = fc
  .array(
    fc.oneof(
      { weight: 6, arbitrary: turn },
      { weight: 4, arbitrary: single(undoes) },
      { weight: 4, arbitrary: andBack },
      { weight: 1, arbitrary: single(redoes) },
      { weight: 2, arbitrary: single(edit) },
      { weight: 2, arbitrary: single(marker) },
      { weight: 1, arbitrary: single(prompt) },
      { weight: 1, arbitrary: single(session.map((one) => ({ kind: 'accept', session: one }))) },
    ),
    { minLength: 2, maxLength: 12, size: 'max' },
  )
  .map((blocks) => blocks.flat())
const story = fc.tuple(turn, rest).map((acts) => acts.flat())

test('every undo and redo leaves what a plain array of states says', { timeout: RUNS * 20_000 }, async () => {
  const scratch = new Scratch()
  fs.writeFileSync(scratch.at('.gitignore'), '*.log\n')
  scratch.init({ 'b.txt': lines([0, 0, 0]), 'dir/x': 'A\n', 'tracked.log': 'B\n' })
  scratch.git('add', '-f', 'tracked.log')
  scratch.git('commit', '-q', '-m', 'second')
  let run = 0
  await fc.assert(
    fc.asyncProperty(story, async (acts) => {
      const root = `${scratch.base}/run-${++run}`
      execFileSync('cp', ['-a', scratch.root, root])
      const world = new World(scratch, root)
      try {
        for (const act of acts) await world.act(act)
        const { problems } = await world.open((context) => verify(context))
        expect(problems).toEqual([])
      } catch (error) {
        if (!(error instanceof Murky)) throw error
        count('murky')
      } finally {
        fs.rmSync(root, { recursive: true })
      }
    }),
    {
      numRuns: RUNS,
      endOnFailure: Boolean(process.env.CKPT_PROPERTY_QUICK),
    },
  )
  if (process.env.CKPT_PROPERTY_RUNS)
    process.stderr.write(
      `${[...met]
        .sort()
        .map(([what, n]) => `${n} × ${what}`)
        .join('\n')}\n`,
    )
})
