// What is staged of a turn stays staged when the turn is undone: git's index is the user's. So it is said, for the next commit would take it.
import { execFileSync } from 'node:child_process'
import fs from 'node:fs'
import { expect, test } from 'vitest'
import { type Json, Scratch } from '../support/scratch.ts'

const about = (document: Json): string[] => document.warnings.filter((line: string) => line.includes('staged'))

const committed = () => new Scratch().init({ 'a.txt': 'one\n', 'b.txt': 'one\n', 'c.txt': 'one\n' })

test('what an agent staged and an undo took back is named, with what takes it out; a redo has nothing to say', () => {
  const scratch = committed()
  scratch.turn('work', () => {
    scratch.write({ 'a.txt': 'two\n', 'new file.txt': 'two\n' })
    scratch.remove('b.txt')
    fs.chmodSync(scratch.at('c.txt'), 0o755)
    scratch.git('add', '-A')
  })
  const index = scratch.git('ls-files', '-s')
  expect(about(scratch.ckpt('undo', '--dry-run'))).toEqual([])
  expect(about(scratch.ckpt('undo'))).toEqual([
    "What is staged stays as it was before this undo, and git commit would take it: a.txt, b.txt, c.txt, new file.txt. git restore --staged :/a.txt :/b.txt :/c.txt ':/new file.txt'   (takes it out of the index)",
  ])
  expect(scratch.git('ls-files', '-s')).toBe(index)
  expect(about(scratch.ckpt('redo'))).toEqual([])
  const [line = ''] = about(scratch.ckpt('undo'))
  // From any directory in there.
  fs.mkdirSync(scratch.at('below'))
  execFileSync('sh', ['-c', /git restore .*(?= {3}\()/.exec(line)![0]], {
    cwd: scratch.at('below'),
    env: scratch.vars,
  })
  expect(scratch.git('status', '--porcelain')).toBe('')
})

test('of many there is the command that shows them', () => {
  const scratch = committed()
  const names = Array.from({ length: 7 }, (_, i) => `n${i}`)
  scratch.turn('work', () => {
    scratch.write(Object.fromEntries(names.map((name) => [name, 'two\n'])))
    scratch.git('add', '-A')
  })
  expect(about(scratch.ckpt('undo'))).toEqual([
    'What is staged stays as it was before this undo, and git commit would take it: n0, n1, n2, n3, n4 and 2 more. git diff --cached   (shows it)',
  ])
})

test('what the person staged before, and what nobody staged, is nothing to tell of', () => {
  const scratch = committed()
  scratch.write({ 'a.txt': 'mine\n', 'b.txt': 'mine\n' })
  scratch.git('add', '-A')
  scratch.write({ 'b.txt': 'mine, and more\n' })
  scratch.turn('work', () => {
    scratch.write({ 'a.txt': 'mine\ntwo\n', 'b.txt': 'mine, and more\ntwo\n', 'c.txt': 'two\n' })
  })
  expect(about(scratch.ckpt('undo'))).toEqual([])
  expect(scratch.git('status', '--porcelain')).toBe('M  a.txt\nMM b.txt\n')
})

test('before the first commit git has another command for it', () => {
  const scratch = new Scratch().init({})
  scratch.write({ 'a.txt': 'mine\n' })
  scratch.git('add', '-A')
  scratch.turn('work', () => {
    scratch.write({ 'a.txt': 'one\n' })
    scratch.git('add', '-A')
  })
  const [line] = about(scratch.ckpt('undo'))
  expect(line).toContain('a.txt. git rm --cached -f :/a.txt   (')
  scratch.git('rm', '-q', '--cached', '-f', ':/a.txt')
  expect(scratch.git('status', '--porcelain')).toBe('?? a.txt\n')
})

test('a restore says it of what is staged as the file was', () => {
  const scratch = committed()
  scratch.turn('one', () => scratch.write({ 'a.txt': 'two\n' }))
  scratch.turn('two', () => {
    scratch.write({ 'a.txt': 'three\n' })
    scratch.git('add', '-A')
  })
  expect(about(scratch.ckpt('restore', '1:after', '--', 'a.txt'))[0]).toMatch(/before this restore.*: a\.txt\. /)
})

test('a name is taken as it is, and one that cannot be typed is in no command', () => {
  const scratch = new Scratch().init({ 'app/[i]/p': '1\n', 'app/i/p': '1\n' })
  scratch.turn('work', () => {
    scratch.write({ 'app/[i]/p': '2\n' })
    scratch.git('add', '-A')
  })
  scratch.write({ 'app/i/p': 'mine\n' })
  scratch.git('add', '-A')
  const [line = ''] = about(scratch.ckpt('undo'))
  const { 0: command } = /git restore .*(?= {3}\()/.exec(line)!
  execFileSync('sh', ['-c', command], { cwd: scratch.at('app'), env: scratch.vars })
  expect(scratch.git('status', '--porcelain')).toBe('M  app/i/p\n')
  scratch.turn('more', () => {
    scratch.write({ 'new\nline': '1\n' })
    scratch.git('add', '-A')
  })
  expect(about(scratch.ckpt('undo'))).toEqual([expect.stringContaining('git diff --cached')])
})
