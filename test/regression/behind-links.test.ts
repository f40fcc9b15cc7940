// What lies behind a symlink that took the place of a directory is not in the worktree: not read, not written, not made.
import fs from 'node:fs'
import { expect, test } from 'vitest'
import { killedAt } from '../support/amid.ts'
import { startDaemon } from '../support/daemon.ts'
import { Scratch } from '../support/scratch.ts'

/** Moves a directory out of the worktree, and leaves a link to it. */
function linkAway(scratch: Scratch, name: string): string {
  const outside = `${scratch.base}/outside`
  fs.renameSync(scratch.at(name), outside)
  fs.symlinkSync('../outside', scratch.at(name))
  return outside
}

test('a killed undo is finished, and nothing is written or made behind a link that came meanwhile', () => {
  const scratch = new Scratch().init({ 'd/m/f.txt': 'one\n', 'd/e/deep/g.txt': 'one\n', 'd/k.txt': 'one\n' })
  for (const name of ['d/n', 'd/e/empty']) fs.mkdirSync(scratch.at(name))
  scratch.turn('work', () => {
    fs.chmodSync(scratch.at('d/m'), 0o700)
    fs.rmdirSync(scratch.at('d/n'))
    fs.rmdirSync(scratch.at('d/e/empty'))
    scratch.remove('d/m/f.txt')
    scratch.write({ 'd/e/deep/g.txt': 'two\n', 'd/e/deep/h.txt': 'two\n', 'd/k.txt': 'two\n' })
  })
  // The journal of an undo that was killed before its first write.
  killedAt(scratch, ['renameSync', 'journal.json'], 'undo')
  const outside = linkAway(scratch, 'd')
  const before = scratch.manifest(outside)
  const { warnings } = scratch.ckpt('list')
  expect(warnings.join()).toMatch(/finished, but for/)
  expect(scratch.manifest(outside)).toEqual(before)
  expect(scratch.ckpt('verify').problems).toEqual([])
})

test('with a daemon and without, a checkpoint has nothing of what lies behind a link', () => {
  for (const daemon of [false, true]) {
    const scratch = new Scratch().init({ 'd/m/f.txt': 'one\n', 'd/e/g.txt': 'one\n' })
    if (daemon) startDaemon(scratch)
    const before = scratch.manifest()
    scratch.ckpt('mark', 'prompt', '--session', 's')
    const outside = linkAway(scratch, 'd')
    fs.chmodSync(`${outside}/m`, 0o700)
    fs.mkdirSync(`${outside}/e/empty`)
    const { checkpoint } = scratch.ckpt('mark', 'stop', '--session', 's')
    expect([checkpoint.degraded, checkpoint.uncovered]).toEqual([false, []])
    expect(scratch.ckpt('verify', '--worktree').problems).toEqual([])
    const there = scratch.manifest(outside)
    const after = scratch.manifest()
    scratch.ckpt('undo')
    expect(scratch.manifest()).toEqual(before)
    scratch.ckpt('redo')
    expect(scratch.manifest()).toEqual(after)
    expect(scratch.manifest(outside)).toEqual(there)
  }
})

test('a link to itself degrades nothing', () => {
  for (const daemon of [false, true]) {
    const scratch = new Scratch().init({ 'd/m/f.txt': 'one\n' })
    if (daemon) startDaemon(scratch)
    scratch.ckpt('mark', 'prompt', '--session', 's')
    scratch.remove('d')
    fs.symlinkSync('d', scratch.at('d'))
    expect(scratch.ckpt('mark', 'stop', '--session', 's').checkpoint.degraded).toBe(false)
    scratch.ckpt('undo')
    expect(scratch.read('d/m/f.txt')).toBe('one\n')
  }
})

test('directories that hold only directories come back with their modes, whatever is around them', () => {
  const scratch = new Scratch().init()
  fs.mkdirSync(scratch.at('g/k/l'), { recursive: true })
  fs.chmodSync(scratch.at('g'), 0o2755) // what is made below gets that bit
  const before = scratch.manifest()
  scratch.turn('remove', () => scratch.remove('g/k'))
  const after = scratch.manifest()
  scratch.ckpt('undo')
  expect(scratch.manifest()).toEqual(before)
  scratch.ckpt('redo')
  expect(scratch.manifest()).toEqual(after)
})

test.each(['a link', 'a file'])(
  'a tracked directory that a rule ignores goes for %s, comes back and goes again',
  (what) => {
    const scratch = new Scratch().init({ 'd/f.txt': 'f\n', 'd/deep/g.txt': 'g\n', 'a.txt': 'a\n' })
    scratch.write({ '.git/info/exclude': 'd/\n' })
    const before = scratch.manifest()
    scratch.turn('work', () => {
      scratch.remove('d')
      if (what === 'a file') scratch.write({ d: 'd\n' })
      else fs.symlinkSync('a.txt', scratch.at('d'))
    })
    const after = scratch.manifest()
    scratch.ckpt('undo')
    expect(scratch.manifest()).toEqual(before)
    // What is in it and was never captured keeps its place.
    scratch.write({ 'd/deep/mine.log': 'mine\n' })
    for (const mode of [[], ['--force']])
      expect(scratch.tryCkpt('redo', ...mode)).toMatchObject({ code: 4, document: { error: { paths: ['d'] } } })
    scratch.remove('d/deep/mine.log')
    fs.mkdirSync(scratch.at('d/empty'))
    expect(scratch.tryCkpt('redo').code).toBe(4)
    fs.rmdirSync(scratch.at('d/empty'))
    scratch.ckpt('redo')
    expect(scratch.manifest()).toEqual(after)
    scratch.ckpt('undo')
    expect(scratch.manifest()).toEqual(before)
  },
)
