// Which turn wrote a line, and which prompt.
import { expect, test } from 'vitest'
import type { BlamedLine } from '../../src/ops/history/blame.ts'
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

test('a name that looks like an option comes after --', () => {
  const scratch = new Scratch().init()
  scratch.turn('Make it', () => scratch.write({ '--json': 'one\n' }))
  const { code, stdout } = scratch.run(['blame', '--json', '--', '--json'])
  expect([code, JSON.parse(stdout).lines]).toMatchObject([0, [{ text: 'one', turn: 1 }]])
  expect(scratch.run(['blame', '--', '--json']).stdout).toMatch(/^1 +Make it +1 +one\n$/)
  expect(scratch.run(['blame', '--', '--json', 'a.txt'])).toMatchObject({ code: 2 })
  expect(scratch.run(['status', '--', 'a.txt'])).toMatchObject({ code: 2 })
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

/** Each line names who wrote it: a session and its turn, or nobody. */
const whose = (scratch: Scratch, file: string, ...more: string[]) =>
  scratch
    .ckpt('blame', file, ...more)
    .lines.map(({ text, session, turn }: BlamedLine) => [text, turn && `${session} ${turn}`])

test("while two sessions and a person are at work, a turn has its own steps' lines", () => {
  const scratch = new Scratch().init({ 'a.txt': 'old\n' })
  const lines = ['old']
  const add = (line: string) => scratch.write({ 'a.txt': `${lines.push(line) && lines.join('\n')}\n` })
  const step = (session: string, line: string) => {
    scratch.ckpt('mark', 'step', '--session', session, '--start', '--tool', 'edit', '--call-id', line)
    add(line)
    scratch.ckpt('mark', 'step', '--session', session, '--tool', 'edit', '--call-id', line)
  }
  for (const session of ['a', 'b']) scratch.ckpt('mark', 'prompt', '--session', session, '--text', `Ask ${session}`)
  step('a', 'by a')
  add('by hand')
  step('b', 'by b')
  step('a', 'a again')
  const expected = [
    ['old', null],
    ['by a', 'a 1'],
    ['by hand', null],
    ['by b', 'b 1'],
    ['a again', 'a 1'],
  ]
  expect(whose(scratch, 'a.txt', '--session', 'a')).toEqual(expected)
  scratch.ckpt('mark', 'stop', '--session', 'a')
  step('b', 'b again')
  expect(whose(scratch, 'a.txt', '--session', 'b')).toEqual([...expected, ['b again', 'b 1']])
  const rows = scratch.run(['blame', 'a.txt', '--session', 'b']).stdout.split('\n')
  expect(rows[1]).toMatch(/^1 +a +Ask a +2 +by a$/)
})

test('what a session found when it began is of the sessions before it', () => {
  const scratch = new Scratch().init({ 'a.txt': 'old\n', 'b.txt': 'b\n' })
  scratch.turn('One', () => scratch.write({ 'a.txt': 'old\none\n' }), 'first')
  scratch.write({ 'a.txt': 'by hand\nold\none\n' })
  scratch.turn('Elsewhere', () => scratch.write({ 'b.txt': 'b\nc\n' }), 'second')
  scratch.turn('Two', () => scratch.write({ 'a.txt': 'by hand\nold\ntwo\none\n' }), 'third')
  scratch.turn('Undone', () => scratch.write({ 'a.txt': 'all new\n' }), 'third')
  scratch.ckpt('undo', '--session', 'third')
  scratch.turn('Three', () => scratch.write({ 'a.txt': 'by hand\nold\ntwo\none\nthree\n' }), 'fourth')
  expect(whose(scratch, 'a.txt', '--session', 'fourth')).toEqual([
    ['by hand', null],
    ['old', null],
    ['two', 'third 1'],
    ['one', 'first 1'],
    ['three', 'fourth 1'],
  ])
  expect(whose(scratch, 'b.txt', '--session', 'fourth')).toEqual([
    ['b', null],
    ['c', 'second 1'],
  ])
})
