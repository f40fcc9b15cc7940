// A daemon beside other processes that write, prune and forget in the same store.
import { expect, test } from 'vitest'
import { startDaemon } from '../support/daemon.ts'
import { Scratch } from '../support/scratch.ts'

test('after a prune by another process the daemon undoes, and stores again what went', () => {
  const scratch = new Scratch().init({ 'a.txt': 'one\n', 'd/e/b.txt': 'b\n' })
  startDaemon(scratch)
  const passing = () => scratch.write({ 'd/e/b.txt': 'comes and goes\n', 'd/e/c.txt': 'c comes and goes\n' })
  scratch.turn('first', passing)
  scratch.turn('second', () => scratch.write({ 'd/e/b.txt': 'b\n' }))
  scratch.turn('third', () => scratch.remove('d/e/c.txt'))
  scratch.turn('fourth', () => scratch.write({ 'a.txt': 'two\n' }))
  expect(scratch.ckpt('prune', '--keep', '1').removed).toHaveLength(3)
  scratch.turn('fifth', passing)
  expect(scratch.ckpt('verify').problems).toEqual([])
  scratch.ckpt('undo')
  expect(scratch.read('d/e/b.txt')).toBe('b\n')
  scratch.ckpt('undo')
  expect(scratch.read('a.txt')).toBe('one\n')
  scratch.ckpt('redo', '--all')
  expect(scratch.read('d/e/c.txt')).toBe('c comes and goes\n')
  expect(scratch.ckpt('verify').problems).toEqual([])
})

test('after a file was forgotten by another process, the daemon can take it again', () => {
  const scratch = new Scratch().init({ 'a.txt': 'one\n' })
  startDaemon(scratch)
  scratch.turn('first', () => scratch.write({ 'key.txt': 'secret\n' }))
  scratch.turn('second', () => scratch.remove('key.txt'))
  scratch.ckpt('forget', 'key.txt')
  scratch.turn('third', () => scratch.write({ 'key.txt': 'secret\n' }))
  expect(scratch.ckpt('verify').problems).toEqual([])
  scratch.ckpt('undo')
  scratch.ckpt('redo')
  expect(scratch.read('key.txt')).toBe('secret\n')
})
