// What is forgotten stays so, though the user's own repository has it.
import { expect, test } from 'vitest'
import { Scratch } from '../support/scratch.ts'
import { inStore } from '../support/store-surgery.ts'

const SECRET = 'the-words-of-a-secret'
const holds = (scratch: Scratch) => inStore(scratch, 'cat-file', '--batch', '--batch-all-objects').includes(SECRET)
const withSecret = () => new Scratch().init({ 'a.txt': 'one\n', 'key.pem': `${SECRET}\n` })

test.each(['loose', 'packed'])('%s, and excluded from then on, or removed', (how) => {
  for (const keep of [true, false]) {
    const scratch = withSecret()
    if (how === 'packed') scratch.git('gc', '-q')
    scratch.ckpt('snapshot')
    expect(holds(scratch)).toBe(true)
    if (keep) scratch.write({ '../home/.config/ckpt/.checkpointrc': '{"snapshot":{"exclude":["key.pem"]}}' })
    else scratch.remove('key.pem')
    scratch.ckpt('forget', 'key.pem')
    scratch.turn('after', () => scratch.write({ 'a.txt': 'two\n' }))
    expect(holds(scratch)).toBe(false)
    scratch.ckpt('undo')
    expect([scratch.read('a.txt'), scratch.exists('key.pem')]).toEqual(['one\n', keep])
    expect(scratch.ckpt('verify').problems).toEqual([])
  }
})

test('what no checkpoint would hold never comes in', () => {
  const scratch = withSecret()
  scratch.remove('key.pem') // from the disk, not from the index
  scratch.ckpt('snapshot')
  expect(holds(scratch)).toBe(false)
})

test('what turns did to it is told as not covered, by undo too, and nothing by which it could be known', () => {
  const scratch = new Scratch().init({ 'a.txt': 'one\n' })
  scratch.turn('makes it', () => scratch.write({ 'a.txt': 'two\n', 'key.pem': `${SECRET}\n` }))
  scratch.turn('leaves it', () => scratch.write({ 'a.txt': 'three\n' }))
  scratch.turn('changes it', () => scratch.write({ 'key.pem': 'another\n' }))
  scratch.ckpt('forget', 'key.pem')
  const left = [1, 2, 3].map((n) => scratch.ckpt('show', String(n)).uncovered)
  const it = { path: 'key.pem', reason: 'not-here' }
  expect(left).toEqual([[it], [], [it]])
  scratch.write({ 'a.txt': 'two\n' })
  scratch.ckpt('forget', 'a.txt') // the prints of the other one stay
  expect([1, 2, 3].map((n) => scratch.ckpt('show', String(n)).uncovered)).toEqual([
    [{ path: 'a.txt', reason: 'not-here' }, it],
    [{ path: 'a.txt', reason: 'not-here' }],
    [it],
  ])
  expect(scratch.ckpt('undo', '--turns', '3').warnings.join()).toMatch(/do not cover, .*key\.pem/)
  expect(scratch.read('key.pem')).toBe('another\n')
  expect(scratch.ckpt('verify').problems).toEqual([])
})
