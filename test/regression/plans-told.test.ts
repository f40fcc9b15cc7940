// What is said of a plan, and once left out, or said wrongly, what it was.
import { expect, test } from 'vitest'
import { Scratch } from '../support/scratch.ts'

const rows = (stdout: string) => stdout.split('\n').filter((line) => line.startsWith('  '))

test('however long a plan is, each path that conflicts or stays is shown', () => {
  const scratch = new Scratch().init()
  const names = Array.from({ length: 30 }, (_, n) => `f${String(n).padStart(2, '0')}`)
  scratch.turn('one', () => scratch.write(Object.fromEntries(names.map((name) => [name, 'one\n']))))
  scratch.write({ f27: 'mine\n', f28: 'mine\n' })
  const why = 'changed since: it would be deleted'
  const said = (action: string) => [
    ...names.slice(0, 18).map((name) => expect.stringMatching(`^  delete +${name} *$`)),
    ...['f27', 'f28'].map((name) => expect.stringMatching(`^  ${action} +${name} +${why}$`)),
    '  … and 10 more (--json lists all)',
  ]
  expect(rows(scratch.run(['undo', '--dry-run']).stdout)).toEqual(said('conflict'))
  expect(rows(scratch.run(['undo', '--skip-conflicts']).stdout)).toEqual(said('skip'))
})

test('of a plan that conflicts everywhere nothing is left out', () => {
  const scratch = new Scratch().init()
  const all = (content: string) => Object.fromEntries(Array.from({ length: 22 }, (_, n) => [`f${n}`, content]))
  scratch.turn('one', () => scratch.write({ ...all('one\n'), g: 'one\n' }))
  scratch.write(all('mine\n'))
  const said = rows(scratch.run(['undo', '--dry-run']).stdout)
  expect(said.filter((line) => line.startsWith('  conflict'))).toHaveLength(22)
  expect(said.at(-1)).toBe('  … and 1 more (--json lists all)')
})

test('a line that is proposed for a running turn, or for conflicts, asks for what was asked for', () => {
  const scratch = new Scratch().init({ 'a.txt': 'one\n' })
  const hints = (...args: string[]) => scratch.tryCkpt(...args).document.error.hints
  scratch.ckpt('mark', 'prompt', '--session', 's')
  scratch.write({ 'a.txt': 'two\n' })
  expect(hints('undo', '--dry-run')[1]).toMatch(/^ckpt undo --dry-run --interrupt {3}\(/)
  expect(hints('undo', '--merge')[1]).toMatch(/^ckpt undo --merge --interrupt {3}\(/)
  scratch.ckpt('mark', 'stop', '--session', 's')
  scratch.remove('a.txt')
  expect(hints('undo', '--to', '1', '--merge')).toEqual([
    'ckpt undo --to 1 --merge --dry-run   (the whole plan)',
    expect.stringMatching(/^ckpt undo --to 1 --skip-conflicts {3}/),
    expect.stringMatching(/^ckpt undo --to 1 --force {3}/),
  ])
})

test('what is gone back to is named as what it is', () => {
  const scratch = new Scratch().init()
  const mark = (...args: string[]) => scratch.ckpt('mark', ...args, '--session', 's').checkpoint.id as string
  mark('prompt')
  const start = mark('step', '--start', '--call-id', 'c')
  scratch.write({ 'a.txt': 'two\n' })
  mark('step', '--call-id', 'c')
  scratch.write({ 'a.txt': 'three\n' })
  const end = mark('stop')
  const { checkpoint } = scratch.ckpt('snapshot')
  const said = (...args: string[]) => scratch.run(args).stdout.split(':')[0]
  const { safety } = scratch.ckpt('restore', '1.1')
  for (const [id, name] of [
    ['1', 'turn 1'],
    ['1:after', 'turn 1'],
    [end, 'turn 1'],
    ['1:before', 'the start of turn 1'],
    ['1.1', 'step 1.1'],
    [start, 'the start of step 1.1'],
    [safety, `safety checkpoint ${safety.slice(0, 10)}`],
    [checkpoint.id, `checkpoint ${checkpoint.id.slice(0, 10)}`],
  ]) {
    expect(said('restore', id, '--dry-run')).toBe(`Would restore ${name}`)
    expect(said('restore', id)).toBe(`Restored from ${name}`)
  }
  expect(said('switch', '1:before')).toBe('Switched to the start of turn 1')
})

test('an undo of some paths says of them alone what it cannot bring back', () => {
  const scratch = new Scratch().init({ '.gitignore': 'build/\n', 'a.txt': 'one\n' })
  scratch.turn('one', () => scratch.write({ 'a.txt': 'two\n', 'build/x': 'x\n' }))
  const warnings = (...paths: string[]) => scratch.ckpt('undo', '--dry-run', '--', ...paths).warnings
  const told = ['Turn 1 also changed what checkpoints do not cover, and that cannot be undone: build/.']
  expect(warnings('a.txt')).toEqual([])
  for (const paths of [[], ['a.txt', 'build'], ['a.txt', 'build/x'], ['.']]) expect(warnings(...paths)).toEqual(told)
})
