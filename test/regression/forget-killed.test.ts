// A forget that is killed, or fails, between any two of its steps: nobody's turns are lost, and run again it ends what it began.
import fs from 'node:fs'
import { expect, test } from 'vitest'
import { killedAt } from '../support/amid.ts'
import { Scratch } from '../support/scratch.ts'
import { inStore, looseFile } from '../support/store-surgery.ts'

const proof = (scratch: Scratch, text: string): boolean => {
  const path = `${scratch.base}/secret`
  fs.writeFileSync(path, text)
  const oid = scratch.git('hash-object', path).trim()
  return inStore(scratch, 'cat-file', '--batch-all-objects', '--batch-check').includes(oid)
}

test('killed once the history is cut anew: the old one reads as before, and a second run ends it', () => {
  const scratch = new Scratch().init({ 'a.txt': 'one\n', 'secret.txt': 'SECRET\n' })
  for (const text of ['1', '2', '3']) scratch.turn(text, () => scratch.write({ 'a.txt': `${text}\n` }))
  scratch.ckpt('prune', '--keep', '1')
  killedAt(scratch, ['renameSync', 'store.git/shallow'], 'forget', 'secret.txt')
  expect(scratch.ckpt('list').turns).toHaveLength(1)
  expect(scratch.ckpt('verify').problems).toEqual([])
  scratch.remove('secret.txt')
  scratch.ckpt('forget', 'secret.txt')
  expect(proof(scratch, 'SECRET\n')).toBe(false)
  expect(scratch.ckpt('verify').problems).toEqual([])
  scratch.ckpt('undo')
  expect(scratch.read('a.txt')).toBe('2\n')
})

test('killed while something is undone: the git hooks refuse commits as before', () => {
  const scratch = new Scratch().init({ 'a.txt': 'one\n', 'secret.txt': 'SECRET\n' })
  scratch.turn('work', () => scratch.write({ 'a.txt': 'two\n' }))
  scratch.ckpt('undo')
  const boundary = scratch.read('.git/ckpt/worktrees/@main/boundary')
  killedAt(scratch, ['renameSync', 'journal.json'], 'forget', 'secret.txt')
  scratch.ckpt('status')
  expect(scratch.read('.git/ckpt/worktrees/@main/boundary')).toBe(boundary)
  expect(scratch.ckpt('verify').problems).toEqual([])
})

test('killed before its refs moved, and another worktree goes on: its turns stay, and a second run ends it', () => {
  const scratch = new Scratch().init({ 'a.txt': 'one\n', 'secret.txt': 'SECRET\n' })
  scratch.git('worktree', 'add', '-q', '../other')
  const cwd = `${scratch.base}/other`
  const there = (...args: string[]) => JSON.parse(scratch.run([...args, '--json'], { cwd }).stdout)
  const turn = (text: string) => {
    there('mark', 'prompt', '--session', 'b', '--text', text)
    fs.writeFileSync(`${cwd}/a.txt`, `${text}\n`)
    there('mark', 'stop', '--session', 'b')
  }
  scratch.turn('here', () => scratch.write({ 'a.txt': 'here\n' }))
  turn('first')
  killedAt(scratch, ['renameSync', 'journal.json'], 'forget', 'secret.txt')
  turn('second')
  const { warnings } = scratch.ckpt('undo')
  expect(warnings.join('\n')).toMatch(/^Worktrees that went on .*other-.*\n.*ckpt forget secret\.txt$/)
  for (const path of [scratch.at('secret.txt'), `${cwd}/secret.txt`]) fs.rmSync(path)
  expect(there('list').turns.map(({ prompt }: { prompt: string }) => prompt)).toEqual(['second', 'first'])
  expect(scratch.ckpt('verify').problems).toEqual([])
  scratch.ckpt('forget', 'secret.txt')
  expect(proof(scratch, 'SECRET\n')).toBe(false)
  expect(there('verify').problems).toEqual([])
  there('undo')
  expect(fs.readFileSync(`${cwd}/a.txt`, 'utf8')).toBe('first\n')
})

test('killed before the old contents went, or unable to remove them: it says so, and goes on from there', () => {
  const scratch = new Scratch().init({ 'a.txt': 'one\n' })
  scratch.turn('secret', () => scratch.write({ 'secret.txt': 'SECRET\n', 'other.txt': 'other\n' }))
  scratch.remove('secret.txt')
  scratch.turn('more', () => scratch.write({ 'a.txt': 'two\n' }))
  killedAt(scratch, ['unlinkSync', 'journal.json'], 'forget', 'secret.txt')
  expect(proof(scratch, 'SECRET\n')).toBe(true)
  const told = scratch.tryCkpt('doctor')
  const finding = told.document.findings.find((one: { name: string }) => one.name === 'forget')
  expect([told.code, finding]).toEqual([
    7,
    {
      name: 'forget',
      ok: false,
      detail: 'forgetting secret.txt was cut short: it may be in the store still',
      mend: 'ckpt forget secret.txt   (again, until it says that it is done)',
    },
  ])
  const other = looseFile(scratch, inStore(scratch, 'rev-parse', 'refs/ckpt/@main/s/live:other.txt').trim())
  fs.renameSync(other, `${other}.away`)
  const { code, document } = scratch.tryCkpt('forget', 'secret.txt')
  expect([code, document.error.code]).toEqual([7, 'DAMAGED'])
  expect(document.error.message).toMatch(
    /^No checkpoint holds secret\.txt any more, but its content is still in the store: /,
  )
  fs.renameSync(`${other}.away`, other)
  const note = scratch.at('.git/ckpt/forgetting.json')
  const whole = fs.readFileSync(note)
  fs.writeFileSync(note, whole.subarray(0, 20))
  scratch.ckpt('forget', 'secret.txt') // what was to go cannot be read, but all that nothing reaches goes
  expect([proof(scratch, 'SECRET\n'), fs.existsSync(note)]).toEqual([false, false])
  expect(scratch.tryCkpt('forget', 'secret.txt').code).toBe(3)
  expect(scratch.ckpt('verify').problems).toEqual([])
  expect(scratch.ckpt('doctor').findings.map((one: { name: string }) => one.name)).not.toContain('forget')
})

test('a commit says what it came from after a forget, too', () => {
  const scratch = new Scratch().init()
  scratch.git('config', 'user.name', 'A U Thor')
  scratch.git('config', 'user.email', 'author@example.com')
  scratch.turn('work', () => scratch.write({ 'a.txt': 'two\n', 'secret.txt': 'SECRET\n' }))
  scratch.ckpt('commit')
  scratch.ckpt('forget', 'secret.txt')
  const { checkpoints } = scratch.ckpt('show', 'HEAD').commit
  expect(checkpoints.map(({ turn }: { turn: number }) => turn)).toEqual([1])
})
