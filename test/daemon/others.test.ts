// A daemon beside other processes that write, prune and forget in the same store.
import { expect, test } from 'vitest'
import { Held } from '../../src/daemon/held.ts'
import { closeContext, openContext } from '../../src/ops/worktree/context.ts'
import { startDaemon } from '../support/daemon.ts'
import { envOf } from '../support/in-process.ts'
import { clientOf } from '../support/protocol.ts'
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

test.each([
  ['prune', ['prune', '--keep', '1']],
  ['forget', ['forget', 'd/e/c.txt']],
])('after a %s of its own the daemon stores again what went', async (name, argv) => {
  const scratch = new Scratch().init({ 'a.txt': 'one\n', 'd/e/b.txt': 'b\n' })
  startDaemon(scratch)
  const passing = () => scratch.write({ 'd/e/b.txt': 'comes and goes\n', 'd/e/c.txt': 'c\n' })
  scratch.turn('first', passing)
  scratch.turn('second', () => scratch.remove('d/e/c.txt'))
  scratch.turn('third', () => scratch.write({ 'd/e/b.txt': 'b\n', 'a.txt': 'two\n' }))
  const daemon = await clientOf(scratch)
  expect(await daemon.command(argv)).toMatchObject({ code: 0 })
  if (name === 'prune') expect((await daemon.snapshots.cleanup({ keep: 1 })).removed).toHaveLength(0)
  scratch.turn('fourth', passing)
  expect(scratch.ckpt('verify').problems).toEqual([])
})

test.each([
  ['prune', ['prune', '--keep', '1']],
  ['forget', ['forget', 'd/key.txt']],
])('what a daemon looked at and has not written down yet rests on nothing that a %s took', async (_, argv) => {
  const scratch = new Scratch().init({ 'a.txt': 'one\n', 'd/b.txt': 'b\n', 'd/key.txt': 'secret\n' })
  scratch.turn('first', () => scratch.write({ 'a.txt': 'two\n' }))
  scratch.ckpt('forget', 'a.txt') // no scan has anything to go on from
  const context = await openContext(envOf(scratch), scratch.root, { create: true })
  const held = new Held(context)
  try {
    if (argv[0] === 'prune') scratch.write({ 'd/b.txt': 'comes and goes\n' })
    await held.scan('look')
    context.store.objects.flush()
    scratch.write({ 'c.txt': 'c\n' })
    await held.scan('look again')
    scratch.ckpt(...argv)
  } finally {
    await held.stop()
    closeContext(context)
  }
  scratch.turn('second', () => scratch.write({ 'a.txt': 'three\n' }))
  expect(scratch.ckpt('verify').problems).toEqual([])
})
