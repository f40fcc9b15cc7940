// One session's name in two worktrees of a repository (`ckpt run` is always `run`): each has an order of its own.
import { expect, test } from 'vitest'
import { type Json, Scratch } from '../support/scratch.ts'

test('switch goes to no checkpoint of another worktree, whatever its session is called; restore takes its files', () => {
  const scratch = new Scratch().init()
  const other = scratch.at('../other')
  scratch.git('worktree', 'add', '-q', other)
  const there = (...args: string[]): Json => JSON.parse(scratch.run([...args, '--json'], { cwd: other }).stdout)
  scratch.turn('here', () => scratch.write({ 'a.txt': 'here\n' }))
  for (const n of [1, 2]) {
    there('mark', 'prompt', '--session', 's')
    scratch.write({ '../other/a.txt': `there ${n}\n` })
    there('mark', 'stop', '--session', 's')
  }
  const [last] = there('list').turns
  const before = scratch.ckpt('list').turns
  for (const id of [last.after, last.before, last.id]) {
    const { code, document } = scratch.tryCkpt('switch', id, '--force')
    expect([code, document.error.code, document.error.message]).toEqual([
      3,
      'NOT_FOUND',
      'That checkpoint is of another worktree. Nothing was changed.',
    ])
  }
  expect(scratch.ckpt('list').turns).toEqual(before)
  expect(scratch.read('a.txt')).toBe('here\n')
  scratch.ckpt('restore', last.after, '--force')
  expect(scratch.read('a.txt')).toBe('there 2\n')
  scratch.ckpt('switch', '1', '--force')
  expect(scratch.read('a.txt')).toBe('here\n')
})
