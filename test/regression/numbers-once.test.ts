// A turn's number is its own for ever: what was said of it (a commit, a note of yours) is never true of another turn.
import fs from 'node:fs'
import { expect, test } from 'vitest'
import { type Json, Scratch } from '../support/scratch.ts'

function pruneAtOnce(scratch: Scratch): void {
  scratch.write({ '../home/.config/ckpt/.checkpointrc': JSON.stringify({ prune: { grace: '0s' } }) })
  scratch.ckpt('prune')
}

const numbers = (scratch: Scratch) => scratch.ckpt('list', '--session', 's').turns.map(({ n }: Json) => n)

test('a turn that was undone and pruned leaves its number unused, and the next one is committed', () => {
  const scratch = new Scratch().init()
  scratch.git('config', 'user.name', 'n')
  scratch.git('config', 'user.email', 'e')
  for (const n of [1, 2, 3]) scratch.turn(`${n}`, () => scratch.write({ 'a.txt': `${n}\n` }))
  scratch.ckpt('commit', '-m', 'three turns')
  scratch.ckpt('undo')
  scratch.ckpt('accept')
  pruneAtOnce(scratch)
  scratch.turn('four', () => scratch.write({ 'new.txt': 'n\n' }))
  expect(numbers(scratch)).toEqual([4, 2, 1])
  expect(scratch.ckpt('commit', '-m', 'the fourth')).toMatchObject({ turns: [4], files: [{ path: 'new.txt' }] })
})

test('so does a session of which nothing is left, whatever it is called', () => {
  const scratch = new Scratch().init()
  const session = 'ü /"x"'
  scratch.turn('one', () => scratch.write({ 'a.txt': '1\n' }), session)
  scratch.turn('two', () => scratch.write({ 'a.txt': '2\n' }), session)
  scratch.ckpt('undo', '--turns', '2', '--session', session)
  scratch.ckpt('accept', '--session', session)
  pruneAtOnce(scratch)
  expect(scratch.ckpt('mark', 'prompt', '--session', session).turn).toBe(3)
  fs.appendFileSync(scratch.at('.git/ckpt/worktrees/@main/numbers'), 'no line of ours\n')
  expect(scratch.ckpt('mark', 'prompt', '--session', session).turn).toBe(4)
})
