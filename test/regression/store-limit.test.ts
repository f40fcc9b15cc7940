// store.maxBytes: over it the oldest go by themselves, then checkpoints are degraded; and a disk is never filled.
import { randomBytes } from 'node:crypto'
import fs from 'node:fs'
import { expect, test } from 'vitest'
import type { Env } from '../../src/env.ts'
import { startDaemon } from '../support/daemon.ts'
import { answer, envOf } from '../support/in-process.ts'
import { type Json, Scratch } from '../support/scratch.ts'

const KIB = 1024
const LIMIT = 600 * KIB

function limited(scratch: Scratch, maxBytes = LIMIT): Scratch {
  fs.mkdirSync(`${scratch.home}/.config/ckpt`, { recursive: true })
  fs.writeFileSync(`${scratch.home}/.config/ckpt/.checkpointrc`, JSON.stringify({ store: { maxBytes } }))
  return scratch
}

const bytes = (scratch: Scratch): number => scratch.ckpt('status').store.bytes

const budget = (checkpoint: Json) =>
  checkpoint.uncovered.filter(({ reason }: Json) => reason === 'budget').map(({ path }: Json) => path)

test.each([
  ['without a daemon', { daemon: false, count: 10, size: 100 * KIB }],
  ['with one that has no quiet times', { daemon: true, count: 30, size: 24 * KIB }],
])(
  'the oldest turns go when it is over its limit, and no checkpoint is degraded for it: %s',
  (_, { daemon, count, size }) => {
    const scratch = limited(new Scratch().init())
    if (daemon) startDaemon(scratch)
    const contents = Array.from({ length: count }, () => randomBytes(size))
    for (const [n, content] of contents.entries()) {
      scratch.turn(`${n}`, () => scratch.write({ 'big.bin': content }))
      expect(bytes(scratch)).toBeLessThanOrEqual(LIMIT * 1.1 + 32 * KIB)
    }
    const { turns } = scratch.ckpt('list')
    expect(turns.length).toBeGreaterThan(2)
    expect(turns.length).toBeLessThan((LIMIT * 1.1) / size)
    expect(turns[0].n).toBe(count)
    for (const { before, after } of turns)
      for (const id of [before, after]) expect(scratch.ckpt('show', id).checkpoint.degraded).toBe(false)
    scratch.ckpt('undo', '--turns', '2')
    expect(fs.readFileSync(scratch.at('big.bin'))).toEqual(contents.at(-3))
    expect(scratch.run(['verify']).code).toBe(0)
  },
)

test('what is larger than the room that is left makes the oldest go, and is captured; status says that they went', () => {
  const scratch = limited(new Scratch().init())
  for (let n = 1; n <= 4; n++) {
    scratch.turn(`${n}`, () => scratch.write({ 'big.bin': randomBytes(180 * KIB) }))
    const { checkpoint } = scratch.ckpt('show', `${n}:after`)
    expect([n, checkpoint.degraded, budget(checkpoint)]).toEqual([n, false, []])
  }
  const { turns } = scratch.ckpt('list')
  expect(turns.length).toBeLessThan(4)
  expect(scratch.ckpt('status').warnings.join()).toContain(`(600.0 KiB): ${4 - turns.length} turn`)
  expect(scratch.run(['status']).stderr).toContain('The oldest went since')
})

test('a clock that was ahead when it was last tried puts it off no longer than one that was right', () => {
  const scratch = limited(new Scratch().init())
  scratch.ckpt('snapshot')
  const later = Date.UTC(2099, 0, 1) / 1000
  fs.writeFileSync(scratch.at('.git/ckpt/idle'), 'then\n')
  fs.utimesSync(scratch.at('.git/ckpt/idle'), later, later)
  for (let n = 0; n < 9; n++) scratch.turn(`${n}`, () => scratch.write({ 'big.bin': randomBytes(100 * KIB) }))
  expect(bytes(scratch)).toBeLessThanOrEqual(LIMIT * 1.1)
  expect(scratch.ckpt('show', '9').turn.after).toBeTruthy()
  expect(scratch.ckpt('snapshot').checkpoint.degraded).toBe(false)
})

test('where nothing may go, new content is left out by name; what was captured stays covered, and is undone', () => {
  const scratch = limited(new Scratch().init(), 300 * KIB)
  scratch.ckpt('mark', 'prompt', '--session', 's')
  scratch.write({ 'a.txt': 'two\n' })
  for (let n = 0; n < 8; n++) scratch.write({ [`new${n}.bin`]: randomBytes(50 * KIB) })
  const { checkpoint, warnings } = scratch.ckpt('mark', 'stop', '--session', 's')
  expect(checkpoint.degraded).toBe(true)
  const left = budget(checkpoint)
  expect(left.length).toBeGreaterThan(0)
  expect(left.length).toBeLessThan(8)
  expect(warnings).toContainEqual(expect.stringMatching(/^New content was left out: .*store\.maxBytes/))
  expect(bytes(scratch)).toBeLessThanOrEqual(300 * KIB * 1.1 + 32 * KIB)
  // The scan's memory is gone: what the store has is known again by its bytes, not left out.
  fs.rmSync(scratch.at('.git/ckpt/worktrees/@main/cache.json'))
  const again = scratch.ckpt('snapshot').checkpoint
  expect(budget(again)).toEqual(left)
  expect(scratch.ckpt('diff', checkpoint.id, again.id).files).toEqual([])
  const news = Array.from({ length: 8 }, (_, n) => `new${n}.bin`)
  scratch.ckpt('undo')
  expect(scratch.read('a.txt')).toBe('one\n')
  expect(news.filter((name) => scratch.exists(name))).toEqual(left) // what is not in a checkpoint is not deleted
  scratch.ckpt('redo')
  expect(news.every((name) => scratch.exists(name))).toBe(true)
})

test('once there is room again, what was left out is captured', () => {
  const scratch = limited(new Scratch().init(), 200 * KIB)
  for (let n = 0; n < 8; n++) scratch.write({ [`new${n}.bin`]: randomBytes(50 * KIB) })
  expect(budget(scratch.ckpt('snapshot').checkpoint).length).toBeGreaterThan(0)
  limited(scratch, 4000 * KIB)
  expect(scratch.ckpt('snapshot').checkpoint).toMatchObject({ degraded: false, uncovered: [] })
})

test('on a disk that is nearly full only small edits are captured, and the marker is recorded all the same', async () => {
  const scratch = new Scratch().init()
  scratch.ckpt('mark', 'prompt', '--session', 's')
  scratch.write({ 'a.txt': 'two\n', 'new.bin': randomBytes(50 * KIB) })
  const statfsSync = () => ({ bsize: 4096, blocks: 1e9, bavail: 100 })
  const env = envOf(scratch)
  const files = { ...env.files, statfsSync } as unknown as Env['files']
  const { code, document } = await answer({ ...env, files }, 'mark', 'stop', '--session', 's')
  expect([code, document.checkpoint.degraded, budget(document.checkpoint)]).toEqual([0, true, ['new.bin']])
  expect(document.warnings).toContainEqual(expect.stringMatching(/disk is nearly full/))
})

test('where no turn that goes makes room, none goes', () => {
  const scratch = new Scratch().init()
  for (let n = 1; n <= 6; n++) scratch.turn(`${n}`, () => scratch.write({ [`${n}.bin`]: randomBytes(105 * KIB) }))
  limited(scratch) // not before: what was captured of them would depend on what was pruned in time
  scratch.ckpt('prune')
  expect(scratch.ckpt('list').turns).toHaveLength(6)
  scratch.remove('1.bin', '2.bin', '3.bin', '4.bin', '5.bin')
  scratch.turn('away', () => scratch.write({ 'a.txt': 'two\n' }))
  scratch.ckpt('prune')
  expect(scratch.ckpt('list').turns.length).toBeLessThan(7)
  expect(scratch.ckpt('status').store.bytes).toBeLessThan(LIMIT)
})

test('whatever lies where the size is noted, markers are recorded', () => {
  const scratch = new Scratch().init()
  scratch.ckpt('snapshot')
  const noted = scratch.at('.git/ckpt/bytes')
  fs.rmSync(noted)
  fs.mkdirSync(noted)
  scratch.turn('work', () => scratch.write({ 'a.txt': 'two\n' }))
  scratch.ckpt('undo')
  expect(scratch.read('a.txt')).toBe('one\n')
})
