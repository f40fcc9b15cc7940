// Directories that hold ignored files and nothing else, which git names as one: what comes into them, or in their place.
import { execFileSync } from 'node:child_process'
import fs from 'node:fs'
import { expect, test } from 'vitest'
import { Scratch } from '../support/scratch.ts'

const start = () => {
  const scratch = new Scratch().init({ '.gitignore': '*.log\n' })
  scratch.write({ 'logs/x.log': 'ignored\n' })
  scratch.ckpt('snapshot')
  return scratch
}

test('promise 10: a file in the place of an ignored directory is captured, and so is what happens to it', () => {
  const scratch = start()
  scratch.remove('logs')
  scratch.write({ logs: 'a file now\n' })
  scratch.turn('edit', () => scratch.write({ logs: 'edited\n' }))
  scratch.ckpt('undo')
  expect(scratch.read('logs')).toBe('a file now\n')
})

test('promise 11: once something else is in such a directory, what it lacks is absent, not unknown', () => {
  const scratch = start()
  scratch.write({ 'logs/kept.txt': 'kept\n' })
  scratch.turn('add', () => scratch.write({ 'logs/new.txt': 'new\n' }))
  scratch.ckpt('undo')
  expect([scratch.exists('logs/new.txt'), scratch.exists('logs/kept.txt')]).toEqual([false, true])
  expect(scratch.read('logs/x.log')).toBe('ignored\n')
})

test("promise 11: a file of the user's index that a rule ignores stays covered when it goes and comes back", () => {
  const scratch = start()
  scratch.write({ 'tracked.log': 'one\n' })
  scratch.git('add', '-f', 'tracked.log')
  scratch.turn('remove', () => scratch.remove('tracked.log'))
  scratch.turn('make again', () => scratch.write({ 'tracked.log': 'two\n' }))
  scratch.ckpt('undo')
  expect(scratch.exists('tracked.log')).toBe(false)
  scratch.ckpt('undo')
  expect(scratch.read('tracked.log')).toBe('one\n')
  scratch.ckpt('redo', '--all')
  expect(scratch.read('tracked.log')).toBe('two\n')
})

for (const place of ['a file', 'a link'])
  test(`promise 11: what is tracked in an ignored directory is captured again once ${place} that took its place is gone`, () => {
    const scratch = new Scratch().init({ 'd/a.txt': 'one\n', 'd/e/b.txt': 'one\n', 'f/c.txt': 'one\n' })
    scratch.write({ '.git/info/exclude': '*\n' })
    const before = scratch.manifest()
    scratch.ckpt('snapshot')
    scratch.turn('in its place', () => {
      scratch.remove('d')
      if (place === 'a file') scratch.write({ d: 'a file\n' })
      else fs.symlinkSync('f', scratch.at('d'))
    })
    scratch.remove('d')
    scratch.git('checkout', '-q', '--', 'd')
    scratch.turn('remove', () => scratch.remove('d'))
    scratch.ckpt('undo')
    expect(scratch.manifest()).toEqual(before)
  })

test('an empty directory that a rule ignores since is in the way of no redo', () => {
  for (const nested of [false, true]) {
    const scratch = new Scratch().init()
    fs.mkdirSync(scratch.at(nested ? 'place/inner' : 'place'), { recursive: true })
    const before = scratch.manifest()
    scratch.turn('a file in its place', () => {
      scratch.remove('place')
      scratch.write({ place: 'a file\n' })
    })
    const after = scratch.manifest()
    scratch.write({ '.git/info/exclude': 'place/\n' })
    for (let round = 0; round < 2; round++) {
      scratch.ckpt('undo')
      expect(scratch.manifest()).toEqual(before)
      scratch.ckpt('redo')
      expect(scratch.manifest()).toEqual(after)
    }
  }
})

test('an empty directory that a rule ignores, and that came since, makes room for a file and comes back', () => {
  const scratch = new Scratch().init({ 'a.txt': 'one\n', '.gitignore': 'place/\n' })
  scratch.turn('remove', () => scratch.remove('a.txt'))
  scratch.write({ '.git/info/exclude': 'a.txt/\n' })
  fs.mkdirSync(scratch.at('a.txt'), { mode: 0o750 })
  fs.chmodSync(scratch.at('a.txt'), 0o750)
  const before = scratch.manifest()
  scratch.ckpt('undo')
  expect(scratch.read('a.txt')).toBe('one\n')
  scratch.ckpt('redo')
  expect(scratch.manifest()).toEqual(before)
  // One that holds something is in the way still, and force does not take it.
  fs.mkdirSync(scratch.at('a.txt/inner'))
  const held = scratch.manifest()
  for (const more of [[], ['--force']]) expect(scratch.tryCkpt('undo', ...more).code).toBe(4)
  expect(scratch.manifest()).toEqual(held)
})

test('redo leaves an ignored directory in which something came since', () => {
  const scratch = new Scratch().init()
  fs.mkdirSync(scratch.at('place/inner'), { recursive: true })
  scratch.turn('a file in its place', () => {
    scratch.remove('place')
    scratch.write({ place: 'a file\n' })
  })
  scratch.write({ '.git/info/exclude': 'place/\n' })
  scratch.ckpt('undo')
  scratch.write({ 'place/inner/kept.txt': 'kept\n' })
  const held = scratch.manifest()
  for (const more of [[], ['--force']]) expect(scratch.tryCkpt('redo', ...more).code).toBe(4)
  expect(scratch.manifest()).toEqual(held)
})

test('what an undo of some paths brought into an ignored directory goes with the undo of that', () => {
  for (const kept of [null, 'place/kept.txt', 'place/inner/kept.txt']) {
    const scratch = new Scratch().init()
    scratch.write({ 'place/inner/x.txt': 'x\n', 'place/y.txt': 'y\n' })
    scratch.turn('remove', () => scratch.remove('place/inner/x.txt', 'place/y.txt'))
    scratch.write({ '.git/info/exclude': 'place/\n', ...(kept ? { [kept]: 'kept\n' } : {}) })
    const before = scratch.manifest()
    scratch.ckpt('undo', '--', 'place/inner/x.txt')
    const after = scratch.manifest()
    expect(scratch.read('place/inner/x.txt')).toBe('x\n')
    const told = scratch.ckpt('list').turns[0]
    expect([told.stat.files, scratch.ckpt('show', '2').turn.uncovered ?? []]).toEqual([1, []])
    expect(scratch.ckpt('undo').files).toMatchObject([{ path: 'place/inner/x.txt', action: 'delete' }])
    expect(scratch.manifest()).toEqual(before)
    scratch.ckpt('redo')
    expect(scratch.manifest()).toEqual(after)
    expect(scratch.ckpt('verify').problems).toEqual([])
  }
})

test('what an undo of some paths brought in the place of an ignored empty directory goes with the undo of that', () => {
  const scratch = new Scratch().init({ 'a.txt': 'one\n', 'b.txt': 'one\n' })
  scratch.turn('remove', () => scratch.remove('a.txt', 'b.txt'))
  scratch.write({ '.git/info/exclude': 'a.txt/\n' })
  fs.mkdirSync(scratch.at('a.txt'))
  const before = scratch.manifest()
  scratch.ckpt('undo', '--', 'a.txt')
  expect(scratch.read('a.txt')).toBe('one\n')
  scratch.ckpt('undo')
  expect(scratch.manifest()).toEqual(before)
})

test.each([
  ['an ignored directory', 'echo n/ >.gitignore', ''],
  ['a repository of its own', '', 'git init -q n'],
])('a directory in the place of a file, in %s: it is found while planning', (_, work, later) => {
  const scratch = new Scratch().init({ 'z.txt': '1\n', 'n/x': 'x\n', 'n/y': 'y\n' })
  const sh = (script: string) => execFileSync('sh', ['-c', script], { cwd: scratch.root })
  scratch.turn('turn', () => sh(`echo 2 >z.txt; rm -r n\n${work}`))
  sh(`mkdir -p n/x n/y; echo precious >n/x/k\n${later}`)
  const stamp = () => fs.statSync(scratch.at('z.txt')).mtimeMs
  const was = stamp()
  for (const more of [[], ['--merge'], ['--force']]) {
    const { code, document } = scratch.tryCkpt('undo', ...more)
    expect([more, code, document.error.paths]).toEqual([more, 4, ['n/x']])
    expect(document.error.message).toContain('a directory with what is not captured is in its place')
  }
  expect(scratch.tryCkpt('restore', '1:before', '--exact', '--force').code).toBe(4)
  expect(stamp()).toBe(was)
  const planned = scratch.ckpt('undo', '--skip-conflicts', '--dry-run').files
  expect(planned).toContainEqual(expect.objectContaining({ path: 'n/x', action: 'skip' }))
  expect(scratch.ckpt('undo', '--skip-conflicts').files).toEqual(planned)
  expect([scratch.read('z.txt'), scratch.read('n/x/k'), scratch.read('n/y')]).toEqual(['1\n', 'precious\n', 'y\n'])
  scratch.ckpt('redo')
  expect([scratch.read('z.txt'), scratch.read('n/x/k')]).toEqual(['2\n', 'precious\n'])
  expect(fs.readdirSync(scratch.at('n/y'))).toEqual([])
})
