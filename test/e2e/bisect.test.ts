// The first turn that makes a command fail, found without touching the worktree.
import { expect, test } from 'vitest'
import { Scratch } from '../support/scratch.ts'

test('it names the turn, runs few times, and leaves the worktree as it is', () => {
  const scratch = new Scratch().init({ 'n.txt': '0\n', '.gitignore': 'deps/\n', 'deps/tool': 'x\n' })
  for (let i = 1; i <= 9; i++) scratch.turn(`Set it to ${i}`, () => scratch.write({ 'n.txt': `${i}\n` }))
  scratch.write({ 'mine.txt': 'mine\n' })
  const before = scratch.manifest()
  const found = scratch.ckpt('bisect', '--', 'sh', '-c', 'test -f deps/tool && test "$(cat n.txt)" -lt 6')
  expect(found).toMatchObject({ turn: 6, session: 's', prompt: 'Set it to 6' })
  expect(found.runs).toBeLessThanOrEqual(6)
  expect(scratch.manifest()).toEqual(before)
})

test('one that never fails, one that failed before, one that is no program', () => {
  const scratch = new Scratch().init()
  scratch.turn('first', () => scratch.write({ 'a.txt': 'two\n' }))
  expect(scratch.tryCkpt('bisect', '--', 'true').code).toBe(3)
  expect(scratch.tryCkpt('bisect', '--', 'false').code).toBe(3)
  expect(scratch.tryCkpt('bisect', '--', 'no-such-program').code).toBe(2)
  expect(scratch.tryCkpt('bisect').code).toBe(2)
})
