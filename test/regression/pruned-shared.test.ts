// Two places of a store that share their beginnings (checkpoints that went out come back): what goes from one of them is
// not cut from under the other.
import { randomBytes } from 'node:crypto'
import { expect, test } from 'vitest'
import { type Json, Scratch } from '../support/scratch.ts'

const turnsOf = (scratch: Scratch): string[] =>
  scratch.ckpt('list', '--all-sessions', '--all-worktrees').turns.map((one: Json) => `${one.worktree} ${one.n}`)

/** The newest turns in the worktree itself, and what an older bundle of it held beside them. */
function twice(): { scratch: Scratch; place: string } {
  const scratch = new Scratch().init()
  const turn = (n: number) => scratch.turn(`turn ${n}`, () => scratch.write({ 'a.bin': randomBytes(20_000) }))
  for (let n = 1; n <= 5; n++) turn(n)
  scratch.ckpt('export', `${scratch.base}/b.bundle`)
  scratch.ckpt('prune', '--keep', '2')
  for (let n = 6; n <= 7; n++) turn(n)
  const { worktrees } = scratch.ckpt('import', `${scratch.base}/b.bundle`)
  return { scratch, place: worktrees[0].worktree }
}

test.each([
  ['--keep', '3'],
  ['--max-bytes', '190kB'],
  ['--max-bytes', '1B'],
])('what stays of a history that two places have stays whole, as a dry run says: %s %s', (...limit) => {
  const { scratch, place } = twice()
  const before = turnsOf(scratch)
  expect(before).toContain(`${place} 3`)
  const dry = scratch.ckpt('prune', ...limit, '--dry-run')
  const { removed, kept } = scratch.ckpt('prune', ...limit)
  expect(removed).toEqual(dry.removed)
  const gone = new Set(removed.map(({ worktree, turn }: Json) => `${worktree} ${turn}`))
  const after = turnsOf(scratch)
  expect(after.sort()).toEqual(before.filter((one) => !gone.has(one)).sort())
  expect(after).toHaveLength(kept)
  expect(scratch.run(['verify']).code).toBe(0)
})

test('what is undone in one of them can be redone, though the other one cuts its own newer history', () => {
  const scratch = new Scratch().init()
  const turn = (n: number) => scratch.turn(`turn ${n}`, () => scratch.write({ 'a.txt': `${n}\n` }))
  for (let n = 1; n <= 4; n++) turn(n)
  scratch.ckpt('undo', '--turns', '3')
  scratch.ckpt('export', `${scratch.base}/b.bundle`)
  scratch.ckpt('redo', '--all')
  for (let n = 5; n <= 8; n++) turn(n)
  scratch.ckpt('prune', '--keep', '6')
  const [{ worktree }] = scratch.ckpt('import', `${scratch.base}/b.bundle`).worktrees
  const there = () => turnsOf(scratch).filter((one) => one.startsWith(`${worktree} `))
  const session = () => {
    const { sessions } = scratch.ckpt('list', '--sessions', '--all-worktrees')
    return sessions.find((one: Json) => one.worktree === worktree)
  }
  expect(session().boundary.hiddenTurns).toEqual([2, 3, 4])
  const before = there()
  const { warnings } = scratch.ckpt('prune', '--keep', '5')
  expect(warnings.join()).toMatch(/^Past its time, and kept: \d turns?\. What was pulled or imported beside/)
  expect(there()).toEqual(before)
  expect(session()).toMatchObject({ boundary: { hiddenTurns: [2, 3, 4] } })
  expect(scratch.run(['verify']).code).toBe(0)
})
