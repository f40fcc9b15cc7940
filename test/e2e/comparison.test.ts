/**
 * Our column of the table in README.md, line by line, on one page each: files, commands, what is on disk afterwards.
 * Rows on kills, gc and coverage are shown by the tests of promises 7, 8 and 11.
 */
import fs from 'node:fs'
import { expect, test } from 'vitest'
import { Scratch } from '../support/scratch.ts'

const lines = (...changed: [number, string][]) =>
  Array.from({ length: 9 }, (_, i) => changed.find(([at]) => at === i)?.[1] ?? `line ${i}`).join('\n')

/** A turn of two steps, each of which changes a file of its own. */
function turnWithSteps(scratch: Scratch): void {
  scratch.ckpt('mark', 'prompt', '--session', 's', '--text', 'two steps')
  scratch.write({ 'a.txt': 'step 1\n' })
  scratch.ckpt('mark', 'step', '--session', 's', '--tool', 'edit')
  scratch.write({ 'b.txt': 'step 2\n' })
  scratch.ckpt('mark', 'step', '--session', 's', '--tool', 'write')
  scratch.ckpt('mark', 'stop', '--session', 's')
}

test('takes back: a turn, a step, a path, several turns', () => {
  const scratch = new Scratch().init({ 'a.txt': 'one\n', 'c.txt': 'one\n' })
  scratch.turn('first', () => scratch.write({ 'a.txt': 'two\n', 'c.txt': 'two\n' }))
  turnWithSteps(scratch)

  scratch.ckpt('undo', '--step')
  expect([scratch.read('a.txt'), fs.existsSync(scratch.at('b.txt'))]).toEqual(['step 1\n', false])
  scratch.ckpt('redo', '--all')

  scratch.ckpt('undo')
  expect([scratch.read('a.txt'), fs.existsSync(scratch.at('b.txt'))]).toEqual(['two\n', false])
  scratch.ckpt('redo')

  scratch.ckpt('undo', '--only', '1', '--', 'c.txt')
  expect([scratch.read('a.txt'), scratch.read('c.txt')]).toEqual(['step 1\n', 'one\n'])

  expect(scratch.ckpt('undo', '--to', '1').turns).toEqual([1, 2, 3])
  expect([scratch.read('a.txt'), scratch.read('c.txt')]).toEqual(['one\n', 'one\n'])
})

test('brings forward again: a turn, or all', () => {
  const scratch = new Scratch().init()
  for (const text of ['two', 'three', 'four']) scratch.turn(text, () => scratch.write({ 'a.txt': `${text}\n` }))
  scratch.ckpt('undo', '--turns', '3')
  expect(scratch.read('a.txt')).toBe('one\n')
  expect(scratch.ckpt('redo').turns).toEqual([1])
  expect(scratch.read('a.txt')).toBe('two\n')
  expect(scratch.ckpt('redo', '--all').boundary).toBe(null)
  expect(scratch.read('a.txt')).toBe('four\n')
})

test('records every byte, by shell or tool: one turn is one command of a shell', () => {
  const scratch = new Scratch().init({ 'a.txt': 'one\n', 'gone.bin': Buffer.from([0, 255, 13, 10]) })
  const before = scratch.manifest()
  scratch.ckpt('run', '--', 'sh', '-c', 'rm gone.bin; mv a.txt b.txt; mkdir -p d/e; chmod 600 b.txt; ln -s b.txt link')
  const after = scratch.manifest()
  expect(after).not.toEqual(before)
  scratch.ckpt('undo')
  expect(scratch.manifest()).toEqual(before)
  scratch.ckpt('redo')
  expect(scratch.manifest()).toEqual(after)
})

test('guards edits of your own: merged where they are elsewhere in the file, else nothing is written', () => {
  const scratch = new Scratch().init({ 'a.txt': lines(), 'b.txt': 'one\n' })
  scratch.turn('work', () => scratch.write({ 'a.txt': lines([1, 'turn']), 'b.txt': 'two\n' }))
  scratch.write({ 'a.txt': lines([1, 'turn'], [7, 'mine']) })
  scratch.ckpt('undo')
  expect(scratch.read('a.txt')).toBe(lines([7, 'mine']))
  scratch.ckpt('redo')

  scratch.write({ 'a.txt': lines([1, 'mine']) })
  const refused = scratch.tryCkpt('undo')
  expect([refused.code, refused.document.error.paths]).toEqual([4, ['a.txt']])
  expect([scratch.read('a.txt'), scratch.read('b.txt')]).toEqual([lines([1, 'mine']), 'two\n'])
})

test('one turn alone: later ones, and your own edits, are kept', () => {
  const scratch = new Scratch().init({ 'a.txt': lines() })
  scratch.turn('first', () => scratch.write({ 'a.txt': lines([1, 'first']), 'new.txt': 'first\n' }))
  scratch.turn('second', () => scratch.write({ 'a.txt': lines([1, 'first'], [4, 'second']) }))
  scratch.write({ 'a.txt': lines([1, 'first'], [4, 'second'], [7, 'mine']) })
  scratch.ckpt('undo', '--only', '1')
  expect(scratch.read('a.txt')).toBe(lines([4, 'second'], [7, 'mine']))
  expect(fs.existsSync(scratch.at('new.txt'))).toBe(false)
  expect(scratch.ckpt('list').turns.map((turn: { n: number }) => turn.n)).toEqual([3, 2, 1])
})

test('two agents in one worktree: each takes back its own, and what both claim is refused, not guessed', () => {
  const scratch = new Scratch().init()
  for (const session of ['x', 'y']) scratch.ckpt('mark', 'prompt', '--session', session)
  scratch.write({ 'x.txt': 'x\n' })
  scratch.ckpt('mark', 'step', '--session', 'x', '--path', 'x.txt')
  scratch.write({ 'y.txt': 'y\n' })
  scratch.ckpt('mark', 'step', '--session', 'y', '--path', 'y.txt')
  for (const session of ['x', 'y']) scratch.ckpt('mark', 'stop', '--session', session)
  expect(scratch.ckpt('undo', '--session', 'x').files.map((file: { path: string }) => file.path)).toEqual(['x.txt'])
  expect([fs.existsSync(scratch.at('x.txt')), scratch.read('y.txt')]).toEqual([false, 'y\n'])

  for (const session of ['p', 'q']) scratch.ckpt('mark', 'prompt', '--session', session)
  scratch.write({ 'both.txt': 'whose?\n' })
  for (const session of ['p', 'q']) scratch.ckpt('mark', 'stop', '--session', session)
  expect(scratch.tryCkpt('undo', '--session', 'p').code).toBe(4)
  expect(scratch.read('both.txt')).toBe('whose?\n')
})

test('works with any, several, none: markers, a command, a checkpoint by hand', () => {
  const scratch = new Scratch().init()
  scratch.turn('an agent', () => scratch.write({ 'a.txt': 'two\n' }))
  scratch.ckpt('run', '--', 'sh', '-c', 'echo three > a.txt')
  const { checkpoint } = scratch.ckpt('snapshot', '-m', 'by hand')
  scratch.ckpt('run', '--', 'sh', '-c', 'echo spoiled > a.txt')
  const ids = scratch.ckpt('list', '--sessions').sessions.map((session: { id: string }) => session.id)
  expect(ids.toSorted()).toEqual(['manual', 'run', 's'])
  scratch.ckpt('restore', checkpoint.id, '--', 'a.txt')
  expect(scratch.read('a.txt')).toBe('three\n')
})
