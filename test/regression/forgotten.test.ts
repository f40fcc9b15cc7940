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
