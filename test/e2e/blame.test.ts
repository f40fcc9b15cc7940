// Which turn wrote a line, and which prompt.
import fs from 'node:fs'
import { expect, test } from 'vitest'
import type { BlamedLine } from '../../src/ops/history/blame.ts'
import { startDaemon } from '../support/daemon.ts'
import { Scratch } from '../support/scratch.ts'
import { removeObject } from '../support/store-surgery.ts'

test('each line has its turn and prompt; what was there before, or came by hand, has none', () => {
  const scratch = new Scratch().init({ 'a.txt': 'old\n' })
  scratch.turn('Add a second line', () => scratch.write({ 'a.txt': 'old\nsecond\n' }))
  scratch.write({ 'a.txt': 'old\nsecond\nby hand\n' })
  scratch.turn('And a fourth', () => scratch.write({ 'a.txt': 'old\nsecond\nby hand\nfourth\n' }))
  expect(scratch.ckpt('blame', 'a.txt').lines).toEqual([
    { line: 1, text: 'old', turn: null, session: null, prompt: null },
    { line: 2, text: 'second', turn: 1, session: 's', prompt: 'Add a second line' },
    { line: 3, text: 'by hand', turn: null, session: null, prompt: null },
    { line: 4, text: 'fourth', turn: 2, session: 's', prompt: 'And a fourth' },
  ])
  expect(scratch.tryCkpt('blame', 'nowhere.txt')).toMatchObject({ code: 3, document: { error: { code: 'NOT_FOUND' } } })
})

test('a directory is said to be one, on disk or recorded', () => {
  const scratch = new Scratch().init({ 'src/a.txt': 'one\n' })
  scratch.turn('work', () => scratch.write({ 'src/a.txt': 'two\n' }))
  for (const gone of [false, true]) {
    if (gone) scratch.remove('src/a.txt')
    const { error } = scratch.tryCkpt('blame', 'src').document
    expect(error.message).toBe('src is a directory: blame is of one file. Nothing was changed.')
  }
})

test('a name that looks like an option comes after --', () => {
  const scratch = new Scratch().init()
  scratch.turn('Make it', () => scratch.write({ '--json': 'one\n' }))
  const { code, stdout } = scratch.run(['blame', '--json', '--', '--json'])
  expect([code, JSON.parse(stdout).lines]).toMatchObject([0, [{ text: 'one', turn: 1 }]])
  expect(scratch.run(['blame', '--', '--json']).stdout).toMatch(/^1 +Make it +1 +one\n$/)
  expect(scratch.run(['blame', '--', '--json', 'a.txt'])).toMatchObject({ code: 2 })
  expect(scratch.run(['status', '--', 'a.txt'])).toMatchObject({ code: 2 })
})

test('steps count for their turn; undone turns do not count', () => {
  const scratch = new Scratch().init({ 'a.txt': 'old\n' })
  scratch.ckpt('mark', 'prompt', '--session', 's', '--text', 'By steps')
  scratch.write({ 'a.txt': 'old\nstep\n' })
  scratch.ckpt('mark', 'step', '--session', 's', '--tool', 'edit')
  scratch.ckpt('mark', 'stop', '--session', 's')
  scratch.turn('Undone', () => scratch.write({ 'a.txt': 'old\nstep\nundone\n' }))
  scratch.ckpt('undo')
  expect(scratch.ckpt('blame', 'a.txt').lines).toMatchObject([
    { turn: null },
    { text: 'step', turn: 1, prompt: 'By steps' },
  ])
})

/** Each line names who wrote it: a session and its turn, or nobody. */
const whose = (scratch: Scratch, file: string, ...more: string[]) =>
  scratch
    .ckpt('blame', file, ...more)
    .lines.map(({ text, session, turn }: BlamedLine) => [text, turn && `${session} ${turn}`])

test("while two sessions and a person are at work, a turn has its own steps' lines", () => {
  const scratch = new Scratch().init({ 'a.txt': 'old\n' })
  const lines = ['old']
  const add = (line: string) => scratch.write({ 'a.txt': `${lines.push(line) && lines.join('\n')}\n` })
  const step = (session: string, line: string) => {
    scratch.ckpt('mark', 'step', '--session', session, '--start', '--tool', 'edit', '--call-id', line)
    add(line)
    scratch.ckpt('mark', 'step', '--session', session, '--tool', 'edit', '--call-id', line)
  }
  for (const session of ['a', 'b']) scratch.ckpt('mark', 'prompt', '--session', session, '--text', `Ask ${session}`)
  step('a', 'by a')
  add('by hand')
  step('b', 'by b')
  step('a', 'a again')
  const expected = [
    ['old', null],
    ['by a', 'a 1'],
    ['by hand', null],
    ['by b', 'b 1'],
    ['a again', 'a 1'],
  ]
  expect(whose(scratch, 'a.txt', '--session', 'a')).toEqual(expected)
  scratch.ckpt('mark', 'stop', '--session', 'a')
  step('b', 'b again')
  expect(whose(scratch, 'a.txt', '--session', 'b')).toEqual([...expected, ['b again', 'b 1']])
  const rows = scratch.run(['blame', 'a.txt', '--session', 'b']).stdout.split('\n')
  expect(rows[1]).toMatch(/^1 +a +Ask a +2 +by a$/)
})

test('what a session found when it began is of the sessions before it', () => {
  const scratch = new Scratch().init({ 'a.txt': 'old\n', 'b.txt': 'b\n' })
  scratch.turn('One', () => scratch.write({ 'a.txt': 'old\none\n' }), 'first')
  scratch.write({ 'a.txt': 'by hand\nold\none\n' })
  scratch.turn('Elsewhere', () => scratch.write({ 'b.txt': 'b\nc\n' }), 'second')
  scratch.turn('Two', () => scratch.write({ 'a.txt': 'by hand\nold\ntwo\none\n' }), 'third')
  scratch.turn('Undone', () => scratch.write({ 'a.txt': 'all new\n' }), 'third')
  scratch.ckpt('undo', '--session', 'third')
  scratch.turn('Three', () => scratch.write({ 'a.txt': 'by hand\nold\ntwo\none\nthree\n' }), 'fourth')
  expect(whose(scratch, 'a.txt', '--session', 'fourth')).toEqual([
    ['by hand', null],
    ['old', null],
    ['two', 'third 1'],
    ['one', 'first 1'],
    ['three', 'fourth 1'],
  ])
  expect(whose(scratch, 'b.txt', '--session', 'fourth')).toEqual([
    ['b', null],
    ['c', 'second 1'],
  ])
})

for (const daemon of [false, true])
  test(`the file is as it is on disk now${daemon ? ', with the daemon' : ''}`, () => {
    const scratch = new Scratch().init({ 'a.txt': 'old\n' })
    if (daemon) startDaemon(scratch)
    scratch.turn('Add', () => scratch.write({ 'a.txt': 'old\nsecond\nthird\n' }))
    scratch.write({ 'a.txt': 'old\nthird\nby hand\n' })
    expect(scratch.ckpt('blame', 'a.txt').lines).toEqual([
      { line: 1, text: 'old', turn: null, session: null, prompt: null },
      { line: 2, text: 'third', turn: 1, session: 's', prompt: 'Add' },
      { line: 3, text: 'by hand', turn: null, session: null, prompt: null },
    ])
    expect(scratch.run(['blame', 'a.txt']).stdout.split('\n')[2]).toMatch(/^- +3 +by hand$/)
    scratch.turn('Go on', () => scratch.write({ 'a.txt': 'old\nthird\nby hand\nfourth\n' }))
    scratch.ckpt('undo')
    expect(whose(scratch, 'a.txt')).toEqual([
      ['old', null],
      ['third', 's 1'],
      ['by hand', null],
    ])
  })

test('ends of lines, bytes that are no text, and symlinks are compared as they are', () => {
  const scratch = new Scratch().init({ 'a.txt': 'old\n' })
  const latin = (text: string) => Buffer.from(text, 'latin1')
  scratch.turn('Make them', () => {
    scratch.write({ crlf: 'a\r\nb\r\n', open: 'a\nb', latin: latin('\xe9\n\xe8\n'), binary: latin('\0\xff\n\x01\n') })
    scratch.write({ empty: '', blank: 'a\n\n' })
    fs.symlinkSync('a.txt', scratch.at('link'))
  })
  scratch.write({ crlf: 'a\r\nb\n', open: 'a\nb\nc', latin: latin('\xe8\n\xe9\n\xea'), binary: latin('\0\xff\n') })
  scratch.write({ empty: '\n', blank: 'a\n\n\n' })
  expect(whose(scratch, 'crlf')).toEqual([
    ['a\r', 's 1'],
    ['b', null],
  ])
  expect(whose(scratch, 'open')).toEqual([
    ['a', 's 1'],
    ['b', 's 1'],
    ['c', null],
  ])
  const turns = (file: string) => whose(scratch, file).map(([, turn]: [string, string | null]) => turn)
  expect(turns('latin').filter(Boolean)).toHaveLength(1)
  expect(turns('latin').at(-1)).toBe(null)
  expect(whose(scratch, 'binary')).toEqual([['\0\ufffd', 's 1']])
  expect(whose(scratch, 'empty')).toEqual([['', null]])
  expect(whose(scratch, 'blank')).toEqual([
    ['a', 's 1'],
    ['', 's 1'],
    ['', null],
  ])
  expect(whose(scratch, 'link')).toEqual([['a.txt', 's 1']])
  scratch.remove('link')
  fs.symlinkSync('crlf', scratch.at('link'))
  expect(whose(scratch, 'link')).toEqual([['crlf', null]])
  scratch.write({ empty: '' })
  expect(whose(scratch, 'empty')).toEqual([])
})

test('lines keep their turn where the file was renamed from a name that git writes in quotes', () => {
  const scratch = new Scratch().init()
  const lines = 'one\ntwo\nthree\nfour\n'
  const names = ['say "hi".txt', 'back\\slash', 'tab\tand\nline', 'ü "ü"']
  scratch.turn('Make them', () =>
    scratch.write(Object.fromEntries(names.map((name) => [name, `${name.length}\n${lines}`]))),
  )
  scratch.turn('Rename them', () => {
    for (const [i, name] of names.entries()) fs.renameSync(scratch.at(name), scratch.at(`now${i}.txt`))
  })
  for (const i of names.keys())
    expect(whose(scratch, `now${i}.txt`).map(([, who]: unknown[]) => who)).toEqual(Array(5).fill('s 1'))
})

test('a file that is gone is told as it was; one that is new, or came from elsewhere, as it is', () => {
  const scratch = new Scratch().init({ '.gitignore': 'ignored\n' })
  scratch.turn('Make it', () => scratch.write({ 'a.txt': 'one\ntwo\nthree\nfour\n' }))
  fs.renameSync(scratch.at('a.txt'), scratch.at('b.txt'))
  scratch.write({ 'b.txt': 'one\ntwo\nthree\nfour\nfive\n', 'new.txt': 'mine\n', ignored: 'x\n' })
  const gone = scratch.ckpt('blame', 'a.txt')
  expect(gone.lines).toMatchObject(['one', 'two', 'three', 'four'].map((text) => ({ text, turn: 1 })))
  expect(gone.warnings).toEqual([
    'a.txt is not there any more: this is how the newest checkpoint of the session has it.',
  ])
  expect(whose(scratch, 'b.txt')).toEqual([
    ...['one', 'two', 'three', 'four'].map((text) => [text, 's 1']),
    ['five', null],
  ])
  expect(whose(scratch, 'new.txt')).toEqual([['mine', null]])
  // What no checkpoint covers is nobody's to tell.
  for (const name of ['ignored', 'nowhere'])
    expect(scratch.tryCkpt('blame', name)).toMatchObject({ code: 3, document: { error: { code: 'NOT_FOUND' } } })
  fs.mkdirSync(scratch.at('a.txt'))
  expect(scratch.ckpt('blame', 'a.txt').lines).toHaveLength(4)
})

test("what another session wrote since is that one's, and not written by hand", () => {
  const scratch = new Scratch().init({ 'a.txt': 'old\n' })
  scratch.turn('First', () => scratch.write({ 'a.txt': 'old\nfirst\n' }), 'first')
  scratch.turn('Second', () => scratch.write({ 'a.txt': 'old\nfirst\nsecond\n', 'b.txt': 'b\n' }), 'second')
  scratch.write({ 'a.txt': 'by hand\nold\nfirst\nsecond\n' })
  expect(whose(scratch, 'a.txt', '--session', 'first')).toEqual([
    ['by hand', null],
    ['old', null],
    ['first', 'first 1'],
    ['second', 'second 1'],
  ])
  expect(whose(scratch, 'b.txt', '--session', 'first')).toEqual([['b', 'second 1']])
})

test('eight thousand lines: of a half written anew by hand the other one is kept, of an order turned round what is around it', () => {
  const scratch = new Scratch().init()
  const file = (lines: readonly string[]) => lines.map((line) => `${line}\n`).join('')
  const lines = Array.from({ length: 8000 }, (_, i) => `line ${i}`)
  const ofTurn = () => {
    const { lines: told }: { lines: BlamedLine[] } = scratch.ckpt('blame', 'long')
    return told.flatMap(({ turn, line }) => (turn === 1 ? [line - 1] : []))
  }
  scratch.turn('Make it', () => scratch.write({ long: file(lines) }))
  scratch.write({ long: file(['by hand', ...lines.slice(0, 3000), ...lines.slice(3001)]) })
  expect(ofTurn()).toEqual([...lines.keys()].slice(1))
  scratch.write({ long: file(lines.map((line, i) => (i % 2 ? `not ${line}` : line))) })
  expect(ofTurn()).toEqual([...lines.keys()].filter((i) => i % 2 === 0))
  scratch.write({ long: file([...lines.slice(0, 100), ...lines.slice(100, -100).reverse(), ...lines.slice(-100)]) })
  expect(ofTurn()).toEqual([...lines.keys()].filter((i) => i < 100 || i >= 7900))
})

test('a content that the store lost is damage, as it is for every command', () => {
  const scratch = new Scratch().init({ 'a.txt': 'old\n' })
  scratch.turn('one', () => scratch.write({ 'a.txt': 'one\n' }))
  scratch.turn('two', () => scratch.write({ 'a.txt': 'one\ntwo\n' }))
  removeObject(scratch, `${scratch.ckpt('show', '1:after').checkpoint.id}:a.txt`)
  const { code, document } = scratch.tryCkpt('blame', 'a.txt')
  expect([code, document.error]).toMatchObject([7, { code: 'DAMAGED', hints: ['ckpt verify'] }])
})
