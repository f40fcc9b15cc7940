/** Silence: nothing is said to be done that was not, and nothing is left out without a word. */
import { execFileSync } from 'node:child_process'
import fs from 'node:fs'
import { expect, test } from 'vitest'
import { Scratch } from '../support/scratch.ts'

test('row 18: undo says what it did, path by path, and is refused when there is nothing to undo', () => {
  const scratch = new Scratch().init()
  const empty = scratch.tryCkpt('undo')
  expect(empty.code).toBe(3)
  expect(empty.document.error.code).toBe('NOTHING_TO_UNDO')
  scratch.turn('work', () => scratch.write({ 'a.txt': 'two\n', 'b.txt': 'new\n' }))
  const { code, stdout } = scratch.run(['undo'])
  expect(code).toBe(0)
  expect(stdout).toMatch(/^Undid turn 1: 2 files\.\n/)
  expect(stdout).toMatch(/write +a\.txt\n/)
  expect(stdout).toMatch(/delete +b\.txt\n/)
  const again = scratch.run(['undo'])
  expect(again.code).toBe(3)
  expect(again.stdout).toBe('')
  expect(again.stderr).toMatch(/Nothing was changed/)
  expect(scratch.run(['redo']).stdout).toMatch(/^Redid turn 1: 2 files\./)
  expect(scratch.tryCkpt('redo')).toMatchObject({ code: 3, document: { error: { code: 'NOTHING_TO_REDO' } } })
})

test('row 18: a refused undo says that nothing was written, and names the paths', () => {
  const scratch = new Scratch().init()
  scratch.turn('work', () => scratch.write({ 'a.txt': 'two\n', 'b.txt': 'new\n' }))
  scratch.write({ 'a.txt': 'hand\n' })
  const { code, stdout, stderr } = scratch.run(['undo'])
  expect(code).toBe(4)
  expect(stdout).toBe('')
  expect(stderr).toMatch(/nothing was written.*a\.txt/i)
  expect(scratch.exists('b.txt')).toBe(true)
  expect(scratch.ckpt('list').turns[0].hidden).toBe(false)
})

test('row 18: an undo of a turn that changed no file says so', () => {
  const scratch = new Scratch().init()
  scratch.turn('only talk', () => undefined)
  const { code, stdout } = scratch.run(['undo'])
  expect(code).toBe(0)
  expect(stdout).toMatch(/Undid turn 1: (nothing|0 files|no file)/)
})

test('row 19: a directory that is no repository is refused with a word and the way out', () => {
  const scratch = new Scratch()
  scratch.write({ 'a.txt': 'one\n' })
  for (const args of [
    ['mark', 'prompt', '--session', 's'],
    ['snapshot'],
    ['undo'],
    ['list'],
    ['status'],
    ['run', '--', 'true'],
  ]) {
    const { code, document } = scratch.tryCkpt(...args)
    expect([args[0], code, document.error.code]).toEqual([args[0], 9, 'NOT_INITIALIZED'])
    expect(document.error.hints.join()).toContain('ckpt init')
  }
  expect(fs.readdirSync(scratch.root)).toEqual(['a.txt'])
})

test('row 20: what is left out is named in the marker, in status and in show, with its reason', () => {
  const scratch = new Scratch().init({ '.gitignore': 'ignored/\n' })
  scratch.write({ 'ignored/x': 'x\n' })
  fs.writeFileSync(scratch.at('huge.bin'), Buffer.alloc(11 * 2 ** 20))
  scratch.git('init', '-q', 'vendor')
  scratch.write({ 'vendor/v.txt': 'v\n' })
  execFileSync('mkfifo', [scratch.at('pipe')])
  const expected = [
    { path: 'huge.bin', reason: 'too-large' },
    { path: 'pipe', reason: 'special' },
    { path: 'vendor/', reason: 'nested-repo' },
  ]
  const byPath = (a: { path: string }, b: { path: string }) => (a.path < b.path ? -1 : 1)
  const { checkpoint } = scratch.ckpt('mark', 'prompt', '--session', 's')
  expect(checkpoint.uncovered.sort(byPath)).toEqual(expected)
  expect(checkpoint.ignoredCount).toBe(1)
  expect(scratch.ckpt('status').uncovered.sort(byPath)).toEqual(expected)
  expect(scratch.ckpt('show', '1:before').checkpoint.uncovered.sort(byPath)).toEqual(expected)
  const { stdout } = scratch.run(['status'])
  for (const { path } of expected) expect(stdout).toContain(path)
})

test('row 20: a left-out file that the turn changed or removed is reported with the turn and by its undo', () => {
  const scratch = new Scratch().init({ '.gitignore': '*.db\n', 'a.txt': 'one\n' })
  scratch.write({ 'x.db': 'data\n', 'gone.db': 'data\n' })
  fs.writeFileSync(scratch.at('huge.bin'), Buffer.alloc(11 * 2 ** 20))
  scratch.turn('change what is not covered', () => {
    scratch.write({ 'x.db': 'other data\n', 'a.txt': 'two\n' })
    scratch.remove('gone.db')
    fs.appendFileSync(scratch.at('huge.bin'), 'more')
  })
  const changed = scratch.ckpt('show', '1').uncovered.map((entry: { path: string }) => entry.path)
  expect(changed.sort()).toEqual(['gone.db', 'huge.bin', 'x.db'])
  const { warnings } = scratch.ckpt('undo')
  for (const path of changed) expect(warnings.join()).toContain(path)
  expect(scratch.read('x.db')).toBe('other data\n')
})
