// A killed undo, and somebody who goes on with git before the next command: what was asked for is not carried out elsewhere.
import fs from 'node:fs'
import { expect, test } from 'vitest'
import { amid, killedAt } from '../support/amid.ts'
import { Scratch } from '../support/scratch.ts'
import { removeObject } from '../support/store-surgery.ts'

const NAMES = ['1', '2', '3', '4']
const all = (scratch: Scratch) => NAMES.map((name) => scratch.read(name))
const given = (content: string) => Object.fromEntries(NAMES.map((name) => [name, content]))
const MERGE = (scratch: Scratch) => `${scratch.root}/.git/MERGE_HEAD`

/** A turn that is committed, and an undo of it that was killed once it had written the first two files. */
function killed(...args: string[]): Scratch {
  const scratch = new Scratch().init(given('one\n'))
  for (const key of ['user.name', 'user.email']) scratch.git('config', key, 'n')
  scratch.git('branch', 'other')
  scratch.turn('all', () => scratch.write(given('two\n')))
  scratch.git('commit', '-qam', 'turn')
  fs.mkdirSync(scratch.at('empty')) // so that something new is to be kept beside the safety checkpoint
  killedAt(scratch, ['renameSync', '/2'], 'undo', ...args)
  expect(all(scratch)).toEqual(['one\n', 'one\n', 'two\n', 'two\n'])
  return scratch
}

const GIVEN_UP = /^A killed undo of session s was given up, for .* since: of its 4 paths/

test('amid a merge nothing is written: the undo is given up, its turn is there, and can be undone once that is over', () => {
  const scratch = killed()
  fs.writeFileSync(MERGE(scratch), scratch.git('rev-parse', 'other'))
  const { warnings, turns } = scratch.ckpt('list')
  expect(warnings).toEqual([
    expect.stringMatching(/ for git is in the middle of a merge since: of its 4 paths 2 are as it leaves them, /),
  ])
  expect(turns).toMatchObject([{ n: 1, hidden: false }])
  expect(all(scratch)).toEqual(['one\n', 'one\n', 'two\n', 'two\n'])
  expect(fs.existsSync(scratch.at('.git/ckpt/worktrees/@main/boundary'))).toBe(false)
  fs.rmSync(MERGE(scratch))
  const before = /ckpt restore (\w+) --exact/.exec(warnings[0])![1]!
  expect(scratch.ckpt('verify').problems).toEqual([])
  scratch.ckpt('undo')
  expect(all(scratch)).toEqual(NAMES.map(() => 'one\n'))
  scratch.ckpt('redo')
  scratch.ckpt('restore', before, '--exact', '--force')
  expect(all(scratch)).toEqual(NAMES.map(() => 'two\n'))
})

test('on another branch it is given up, by an agent’s marker too, which is recorded', () => {
  const scratch = killed()
  scratch.git('checkout', '-qf', 'other')
  scratch.write({ '1': 'mine\n' })
  const { warnings, turn } = scratch.ckpt('mark', 'prompt', '--session', 'new')
  expect([turn, warnings[0]]).toEqual([1, expect.stringMatching(GIVEN_UP)])
  expect(warnings[0]).toContain('branch other is checked out since')
  expect(all(scratch)).toEqual(['mine\n', 'one\n', 'one\n', 'one\n'])
})

test('where all is written already, or HEAD is where it was, it is finished', () => {
  const scratch = killed()
  scratch.git('checkout', '-qf', 'other')
  expect(scratch.ckpt('status').warnings).toEqual(['A killed undo was finished.'])
  const onSame = killed()
  onSame.git('commit', '-qam', 'half of it')
  expect(onSame.ckpt('status').warnings).toEqual(['A killed undo was finished.'])
  expect(all(onSame)).toEqual(NAMES.map(() => 'one\n'))
})

test('where it is recorded already, what is there now came later, and stays', () => {
  const scratch = new Scratch().init(given('one\n'))
  for (const key of ['user.name', 'user.email']) scratch.git('config', key, 'n')
  scratch.turn('all', () => scratch.write(given('two\n')))
  scratch.git('commit', '-qam', 'turn')
  const vars = amid(scratch, [{ call: 'unlinkSync', on: 'journal\\.json$', when: 'before', kill: true }])
  expect(scratch.runApart(['undo'], { vars }).code).toBe(128)
  scratch.git('checkout', '-qf', '-b', 'another')
  expect(all(scratch)).toEqual(NAMES.map(() => 'two\n'))
  expect(scratch.ckpt('status').warnings[0]).toBe('A killed undo was finished.')
  expect(all(scratch)).toEqual(NAMES.map(() => 'two\n'))
  expect(scratch.ckpt('list', '--hidden').turns).toMatchObject([{ n: 1, hidden: true }])
  expect(scratch.ckpt('verify').problems).toEqual([])
})

test('directories alone are not made or removed elsewhere either', () => {
  const scratch = new Scratch().init()
  scratch.git('branch', 'other')
  scratch.turn('all', () => ['d1', 'd2', 'd3'].map((name) => fs.mkdirSync(scratch.at(name))))
  killedAt(scratch, ['renameSync', 'journal.json'], 'undo')
  scratch.git('checkout', '-q', 'other')
  expect(scratch.ckpt('list').warnings[0]).toMatch(/ was given up, .* of its 3 paths 0 /)
  expect(['d1', 'd2', 'd3'].map((name) => scratch.exists(name))).toEqual([true, true, true])
})

test('what the store has lost of it holds up nobody where it is given up', () => {
  const scratch = killed()
  removeObject(scratch, scratch.git('hash-object', '1').trim())
  scratch.git('checkout', '-qf', 'other')
  scratch.write(given('mine\n'))
  const { warnings, turn } = scratch.ckpt('mark', 'prompt', '--session', 'new')
  expect([turn, warnings[0]]).toEqual([1, expect.stringMatching(GIVEN_UP)])
  expect(all(scratch)).toEqual(NAMES.map(() => 'mine\n'))
})

test('a killed undo of one turn alone is given up the same way; killed again meanwhile, by the next command', () => {
  const scratch = killed('--only', '1')
  fs.writeFileSync(MERGE(scratch), scratch.git('rev-parse', 'other'))
  const vars = amid(scratch, [{ call: 'unlinkSync', on: 'journal\\.json$', when: 'before', kill: true }])
  expect(scratch.runApart(['list'], { vars }).code).toBe(128)
  const { warnings, turns } = scratch.ckpt('list')
  expect([turns.length, warnings[0]]).toEqual([1, expect.stringMatching(GIVEN_UP)])
  fs.rmSync(MERGE(scratch))
  expect(scratch.ckpt('verify').problems).toEqual([])
  scratch.ckpt('restore', /ckpt restore (\w+) --exact/.exec(warnings[0])![1]!, '--exact', '--force')
  expect(all(scratch)).toEqual(NAMES.map(() => 'two\n'))
})
