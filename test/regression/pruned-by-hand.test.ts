// Checkpoints by hand count for the limit of bytes: they go with the turns, oldest first, and no turn goes in their place.
import { randomBytes } from 'node:crypto'
import { expect, test } from 'vitest'
import { type Json, Scratch } from '../support/scratch.ts'

const SIZE = 200_000

function snapshots(scratch: Scratch, count: number): string[] {
  return Array.from({ length: count }, (_, n) => {
    scratch.write({ 'big.bin': randomBytes(SIZE) })
    return scratch.ckpt('snapshot', '-m', `by hand ${n}`).checkpoint.id
  })
}

const inStore = (scratch: Scratch, id: string) => scratch.run(['show', id]).code === 0

test('the oldest go, the newest stays, and the store is within its limit', () => {
  const scratch = new Scratch().init()
  const ids = snapshots(scratch, 6)
  const limit = ['prune', '--max-bytes', '800KiB'] as const
  const planned = scratch.ckpt(...limit, '--dry-run')
  const { removed, byHand, bytesFreed, warnings } = scratch.ckpt(...limit)
  expect([removed, warnings]).toEqual([[], []])
  const gone = byHand.map(({ checkpoint }: Json) => checkpoint)
  expect(planned.byHand).toEqual(byHand)
  expect(gone.length).toBeGreaterThan(1)
  expect(gone).toEqual(ids.slice(0, gone.length))
  expect(bytesFreed).toBeGreaterThan(gone.length * SIZE)
  expect(ids.map((id) => inStore(scratch, id))).toEqual(ids.map((id) => !gone.includes(id)))
  expect(scratch.ckpt('prune', '--max-bytes', '1KiB').byHand.map(({ checkpoint }: Json) => checkpoint)).toEqual(
    ids.slice(gone.length, -1),
  )
  expect(inStore(scratch, ids.at(-1)!)).toBe(true)
  expect(scratch.run(['verify']).code).toBe(0)
})

test('turns that are younger stay', () => {
  const scratch = new Scratch().init()
  snapshots(scratch, 5)
  for (const n of [1, 2, 3]) scratch.turn(`${n}`, () => scratch.write({ 'a.txt': `${n}\n` }))
  const { removed, byHand } = scratch.ckpt('prune', '--max-bytes', '800KiB')
  expect(removed).toEqual([])
  expect(byHand.length).toBeGreaterThan(0)
  scratch.ckpt('undo', '--turns', '3')
  expect(scratch.read('a.txt')).toBe('one\n')
})

test('a session of turns with that name keeps to the rules for turns; other limits take no checkpoint by hand', () => {
  const scratch = new Scratch().init()
  const [id] = snapshots(scratch, 2)
  scratch.turn('one', () => scratch.write({ 'a.txt': '1\n' }))
  scratch.turn('two', () => scratch.write({ 'a.txt': '2\n' }))
  expect(scratch.ckpt('prune', '--keep', '1', '--older-than', '0s')).toMatchObject({ byHand: [], kept: 1 })
  expect(inStore(scratch, id!)).toBe(true)
  scratch.turn('named so', () => scratch.write({ 'b.txt': '1\n' }), 'manual')
  expect(scratch.ckpt('prune', '--max-bytes', '1KiB').byHand).toEqual([])
})

test('one that was made amid a turn that stays does too: an undo of that turn takes all that it did', () => {
  const scratch = new Scratch().init()
  const [first] = snapshots(scratch, 1)
  scratch.ckpt('mark', 'prompt', '--session', 's')
  scratch.write({ 'a.txt': '1\n' })
  const [amid, last] = snapshots(scratch, 2)
  scratch.write({ 'b.txt': '1\n' })
  scratch.ckpt('mark', 'stop', '--session', 's')
  const { byHand } = scratch.ckpt('prune', '--max-bytes', '1KiB')
  expect(byHand.map(({ checkpoint }: Json) => checkpoint)).toEqual([first])
  expect([amid, last].map((id) => inStore(scratch, id!))).toEqual([true, true])
  scratch.ckpt('undo')
  expect([scratch.read('a.txt'), scratch.exists('b.txt')]).toEqual(['one\n', false])
})
