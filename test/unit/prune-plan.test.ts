// Which turns go. Turn n ended on day n; now is day 10.
import { expect, test } from 'vitest'
import type { Checkpoint } from '../../src/core/checkpoint.ts'
import { type PruneLimits, planPrune } from '../../src/core/prune-plan.ts'
import type { Timeline, Turn } from '../../src/core/timeline.ts'

const DAY = 86_400_000
const checkpoint = (day: number): Checkpoint => ({ time: new Date(day * DAY).toISOString() }) as Checkpoint

function turn(number: number, more: Partial<Turn> = {}): Turn {
  const after = checkpoint(number)
  return {
    id: `t${number}`,
    number: number as Turn['number'],
    session: 's' as Turn['session'],
    before: checkpoint(number),
    after,
    steps: [],
    checkpoints: [after],
    status: 'completed',
    disturbed: false,
    hidden: false,
    hiddenFromStep: null,
    takenFromStep: null,
    undone: [],
    abandoned: false,
    ...more,
  }
}

function plan(turns: Turn[], limits: Partial<PruneLimits>, abandoned: [Turn, number][] = []): number[] {
  const timeline = { turns, abandoned: abandoned.map(([one]) => one) } as unknown as Timeline
  const abandonedAt = new Map(abandoned.map(([one, day]) => [one.id, day * DAY]))
  const all = { now: 10 * DAY, keep: 0, olderThan: null, grace: 7 * DAY, ...limits }
  const gone = planPrune({ timeline, abandonedAt }, all)
  return [...gone.visible, ...gone.abandoned].map((one) => one.number)
}

const five = () => [1, 2, 3, 4, 5].map((number) => turn(number))

test('without limits nothing visible goes', () => {
  expect(plan(five(), {})).toEqual([])
})

test('over the count the oldest go; the newest never', () => {
  expect(plan(five(), { keep: 3 })).toEqual([1, 2])
  expect(plan(five(), { keep: 1 })).toEqual([1, 2, 3, 4])
  expect(plan([turn(1)], { keep: 1, olderThan: 0 })).toEqual([])
})

test('older than an age, measured from the end; the newest stays at any age', () => {
  expect(plan(five(), { olderThan: 8 * DAY })).toEqual([1, 2])
  expect(plan(five(), { olderThan: 0 })).toEqual([1, 2, 3, 4])
  expect(plan(five(), { olderThan: 8 * DAY, keep: 1 })).toEqual([1, 2, 3, 4])
})

test('what a pending redo needs stays: the undone turns, and the last visible one', () => {
  const turns = five()
  for (const one of turns.slice(3)) one.hidden = true
  expect(plan(turns, { keep: 1, olderThan: 0 })).toEqual([1, 2])
  for (const one of turns) one.hidden = true
  expect(plan(turns, { keep: 1, olderThan: 0 })).toEqual([])
})

test('a turn that is undone from a step on, and one that runs, stay', () => {
  const cut = five()
  cut[4]!.hiddenFromStep = 2
  expect(plan(cut, { keep: 1 })).toEqual([1, 2, 3, 4])
  const running = [...five(), turn(6, { after: null, status: 'running' })]
  expect(plan(running, { keep: 1 })).toEqual([1, 2, 3, 4, 5])
})

test('abandoned turns go after their grace, counted from when they were abandoned', () => {
  const abandoned: [Turn, number][] = [
    [turn(6, { abandoned: true }), 3],
    [turn(7, { abandoned: true }), 4],
  ]
  expect(plan(five(), {}, abandoned)).toEqual([6])
  expect(plan(five(), { grace: 0 }, abandoned)).toEqual([6, 7])
  expect(plan(five(), { grace: 8 * DAY, keep: 4 }, abandoned)).toEqual([1])
})
