// Which turn wrote a line, and which prompt.
import { expect, test } from 'vitest'
import { Scratch } from '../support/scratch.ts'

test('each line has its turn and prompt; what was there before, or came by hand, has none', () => {
  const scratch = new Scratch().init({ 'a.txt': 'old\n' })
  scratch.turn('Add a second line', () => scratch.write({ 'a.txt': 'old\nsecond\n' }))
  scratch.write({ 'a.txt': 'old\nsecond\nby hand\n' })
  scratch.turn('And a fourth', () => scratch.write({ 'a.txt': 'old\nsecond\nby hand\nfourth\n' }))
  expect(scratch.ckpt('blame', 'a.txt').lines).toEqual([
    { line: 1, text: 'old', turn: null, session: null, prompt: null },
    { line: 2, text: 'second', turn: 1, session: 's', prompt: 'Add a second line' },
    { line: 3, text: 'by hand', turn: null, session: null, prompt: null },
    { line: 4, text: 'fourth', turn: 2, session: 's', prompt: 'And a fourth' },
  ])
  expect(scratch.tryCkpt('blame', 'nowhere.txt')).toMatchObject({ code: 3, document: { error: { code: 'NOT_FOUND' } } })
})

test('steps count for their turn; undone turns do not count', () => {
  const scratch = new Scratch().init({ 'a.txt': 'old\n' })
  scratch.ckpt('mark', 'prompt', '--session', 's', '--text', 'By steps')
  scratch.write({ 'a.txt': 'old\nstep\n' })
  scratch.ckpt('mark', 'step', '--session', 's', '--tool', 'edit')
  scratch.ckpt('mark', 'stop', '--session', 's')
  scratch.turn('Undone', () => scratch.write({ 'a.txt': 'old\nstep\nundone\n' }))
  scratch.ckpt('undo')
  expect(scratch.ckpt('blame', 'a.txt').lines).toMatchObject([
    { turn: null },
    { text: 'step', turn: 1, prompt: 'By steps' },
  ])
})
