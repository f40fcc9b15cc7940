// What is forgotten stays so, though the user's own repository has it.
import fs from 'node:fs'
import { expect, test } from 'vitest'
import { startDaemon } from '../support/daemon.ts'
import { type Json, Scratch } from '../support/scratch.ts'
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

test('what no checkpoint holds goes, too: of a linked pack what was purged from the history since, of a refused marker what it saw', () => {
  const scratch = withSecret()
  scratch.git('rm', '-q', 'key.pem')
  scratch.git('commit', '-qm', 'gone')
  scratch.git('gc', '-q')
  scratch.turn('links the pack', () => scratch.write({ 'a.txt': 'two\n' }))
  expect(holds(scratch)).toBe(true)
  const forgotten = () => scratch.tryCkpt('forget', 'key.pem')
  expect(forgotten()).toMatchObject({ code: 3, document: { error: { code: 'NOT_FOUND' } } })
  expect(holds(scratch)).toBe(false)
  scratch.write({ 'key.pem': `${SECRET}\n` })
  expect(scratch.tryCkpt('mark', 'step', '--session', 'nobody').code).toBe(3)
  scratch.remove('key.pem')
  expect(forgotten().document.error.message).toContain('gone from the store')
  expect(holds(scratch)).toBe(false)
  expect(scratch.ckpt('undo').turns).toEqual([1])
  expect(scratch.ckpt('verify').problems).toEqual([])
})

test('a lock that a killed git left of the list of cuts holds up no prune and no forget', () => {
  const scratch = withSecret()
  for (const text of ['two', 'three']) scratch.turn(text, () => scratch.write({ 'a.txt': `${text}\n` }))
  scratch.ckpt('prune', '--keep', '1')
  const lock = scratch.at('.git/ckpt/store.git/shallow.lock')
  for (const args of [
    ['prune', '--keep', '1'],
    ['forget', 'key.pem'],
  ]) {
    fs.writeFileSync(lock, '')
    scratch.ckpt(...args)
    expect(fs.existsSync(lock)).toBe(false)
  }
  expect(holds(scratch)).toBe(false)
})

test('a damaged list of the ids that forget changed is named by doctor, and mended: the others resolve as before', () => {
  const scratch = withSecret()
  scratch.ckpt('snapshot')
  for (const text of ['two', 'three']) scratch.turn(text, () => scratch.write({ 'a.txt': `${text}\n` }))
  scratch.ckpt('forget', 'key.pem')
  const list = scratch.at('.git/ckpt/replaced')
  const whole = fs.readFileSync(list)
  fs.writeFileSync(list, whole.subarray(0, whole.length - 30))
  expect(scratch.tryCkpt('verify').code).toBe(7)
  const finding = (document: Json) => document.findings.find((one: Json) => one.name === 'replaced')
  expect(finding(scratch.tryCkpt('doctor').document)).toMatchObject({
    ok: false,
    mend: expect.stringContaining('--fix'),
  })
  expect(finding(scratch.ckpt('doctor', '--fix'))).toMatchObject({ ok: true, fixed: true })
  expect([scratch.ckpt('verify').problems, finding(scratch.ckpt('doctor'))]).toEqual([[], undefined])
  const [old, now] = whole.toString().split(/\s/)
  expect(scratch.ckpt('show', old!).checkpoint.id).toBe(now)
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

test('what is on disk still is not read again by a daemon that nobody calls', async () => {
  const scratch = new Scratch().init({ 'a.txt': 'one\n' })
  startDaemon(scratch)
  scratch.turn('work', () => scratch.write({ 'key.pem': `${SECRET}\n` }))
  expect(holds(scratch)).toBe(true)
  scratch.ckpt('forget', 'key.pem')
  // Longer than the daemon waits with what it does while nobody calls.
  await new Promise((resolve) => setTimeout(resolve, 2500))
  expect(holds(scratch)).toBe(false)
})

test('what only a scan read, and a prune kept for the next one, goes', () => {
  const scratch = withSecret()
  scratch.turn('work', () => scratch.write({ 'a.txt': 'one and a half\n' }))
  scratch.ckpt('forget', 'key.pem')
  scratch.ckpt('daemon', 'start') // it reads all there is, for the first snapshot
  scratch.ckpt('daemon', 'stop')
  scratch.remove('key.pem')
  scratch.ckpt('prune')
  expect(holds(scratch)).toBe(true)
  expect(scratch.tryCkpt('forget', 'key.pem').code).toBe(3)
  expect(holds(scratch)).toBe(false)
  scratch.turn('goes on', () => scratch.write({ 'a.txt': 'two\n' }))
  expect(scratch.ckpt('verify').problems).toEqual([])
})
