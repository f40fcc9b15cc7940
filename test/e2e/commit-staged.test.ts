// What a person has staged stays staged beside `ckpt commit`, also where it is what a turn left on disk on its way.
import { execFileSync } from 'node:child_process'
import fs from 'node:fs'
import { expect, test } from 'vitest'
import { amid } from '../support/amid.ts'
import { Scratch } from '../support/scratch.ts'
import { removeObject } from '../support/store-surgery.ts'

const LINES = Array.from({ length: 20 }, (_, i) => `${i + 1}\n`)
/** The lines 1 to 20, but for some. */
const text = (changes: Record<number, string> = {}) =>
  LINES.map((line, i) => (changes[i + 1] === undefined ? line : `${changes[i + 1]}\n`)).join('')

function place(): Scratch {
  const scratch = new Scratch().init({ 'a.txt': text() })
  scratch.git('config', 'user.name', 'A U Thor')
  scratch.git('config', 'user.email', 'author@example.com')
  return scratch
}
const staged = (scratch: Scratch) => scratch.git('show', ':a.txt')
const committed = (scratch: Scratch) => scratch.git('show', 'HEAD:a.txt')
const write = (scratch: Scratch, changes: Record<number, string>) => scratch.write({ 'a.txt': text(changes) })
const turn = (scratch: Scratch, changes: Record<number, string>) => scratch.turn('work', () => write(scratch, changes))

test('staged before the session, whose turns come back to it on their way', () => {
  const scratch = place()
  write(scratch, { 2: 'mine' })
  scratch.git('add', 'a.txt')
  turn(scratch, { 2: 'mine', 15: 'tried' })
  turn(scratch, { 2: 'mine' })
  turn(scratch, { 2: 'mine', 15: 'agent' })
  write(scratch, { 2: 'other', 15: 'agent' })
  expect(scratch.ckpt('commit').warnings).toEqual([])
  expect(committed(scratch)).toBe(text({ 15: 'agent' }))
  expect(staged(scratch)).toBe(text({ 2: 'mine', 15: 'agent' }))
  expect(scratch.git('status', '--porcelain')).toBe('MM a.txt\n')
})

test('committed, taken back with `git reset --soft`, and committed anew', () => {
  const scratch = place()
  write(scratch, { 2: 'mine' })
  scratch.git('add', 'a.txt')
  turn(scratch, { 2: 'mine', 15: 'agent' })
  scratch.ckpt('commit')
  expect(scratch.git('status', '--porcelain')).toBe('M  a.txt\n')
  scratch.git('reset', '--soft', 'HEAD^')
  scratch.ckpt('commit', '-m', 'better')
  expect([committed(scratch), staged(scratch)]).toEqual([text({ 15: 'agent' }), text({ 2: 'mine', 15: 'agent' })])
})

test('staged after the turn, with what the turn did', () => {
  const scratch = place()
  write(scratch, { 2: 'mine' })
  turn(scratch, { 2: 'mine', 15: 'agent' })
  scratch.git('add', 'a.txt')
  write(scratch, { 2: 'other', 15: 'agent' })
  scratch.ckpt('commit')
  expect([committed(scratch), staged(scratch)]).toEqual([text({ 15: 'agent' }), text({ 2: 'mine', 15: 'agent' })])
})

test('staged between two turns: the second one’s part is in the index too, and what the first tried is not', () => {
  const scratch = place()
  write(scratch, { 2: 'mine' })
  turn(scratch, { 2: 'mine', 10: 'kept', 15: 'tried' })
  scratch.git('add', 'a.txt')
  write(scratch, { 2: 'other', 10: 'kept', 15: 'tried' })
  turn(scratch, { 2: 'other', 10: 'kept', 18: 'agent' })
  scratch.ckpt('commit')
  expect(committed(scratch)).toBe(text({ 10: 'kept', 18: 'agent' }))
  expect(staged(scratch)).toBe(text({ 2: 'mine', 10: 'kept', 18: 'agent' }))
})

test('what a turn staged of its own, and the next one took back, is not staged after the commit', () => {
  const scratch = place()
  turn(scratch, { 10: 'kept', 15: 'tried' })
  scratch.git('add', 'a.txt')
  turn(scratch, { 10: 'kept' })
  scratch.ckpt('commit')
  expect([committed(scratch), staged(scratch)]).toEqual([text({ 10: 'kept' }), text({ 10: 'kept' })])
  expect(scratch.git('status', '--porcelain')).toBe('')
})

test.each<[string, boolean]>([
  ['as the next turn found it', false],
  ['and changed once more before the next turn', true],
])('a turn’s change staged with an edit, %s: what the next turn takes back is not staged any more', (_, isChanged) => {
  const scratch = place()
  turn(scratch, { 2: 'tried' })
  write(scratch, { 2: 'tried', 15: 'mine' })
  scratch.git('add', 'a.txt')
  const more: Record<number, string> = isChanged ? { 18: 'later' } : {}
  write(scratch, { 2: 'tried', 15: 'mine', ...more })
  turn(scratch, { 8: 'agent', 15: 'mine', ...more })
  expect(scratch.ckpt('commit').warnings).toEqual([])
  expect([committed(scratch), staged(scratch)]).toEqual([text({ 8: 'agent' }), text({ 8: 'agent', 15: 'mine' })])
})

test('what a person staged without a part of a turn’s stays without it', () => {
  const scratch = place()
  turn(scratch, { 2: 'agent', 12: 'unwanted' })
  write(scratch, { 2: 'agent' })
  scratch.git('add', 'a.txt')
  turn(scratch, { 2: 'agent', 8: 'more' })
  scratch.ckpt('commit')
  expect(committed(scratch)).toBe(text({ 2: 'agent', 8: 'more', 12: 'unwanted' }))
  expect(staged(scratch)).toBe(text({ 2: 'agent', 8: 'more' }))
})

const THREE = { 2: 'agent', 10: 'agent', 18: 'agent' }

test.each<[string, Record<number, string>]>([
  ['one of three', { 2: 'agent' }],
  ['two of three', { 2: 'agent', 18: 'agent' }],
  ['two of three, and of one’s own', { 2: 'agent', 18: 'agent', 6: 'mine' }],
])('a part of what a turn did that was chosen (%s) does not take the rest out of the commit', (_, chosen) => {
  const scratch = place()
  turn(scratch, THREE)
  write(scratch, chosen)
  scratch.git('add', 'a.txt')
  write(scratch, { ...THREE, ...chosen })
  expect(scratch.ckpt('commit').warnings).toEqual([])
  expect([committed(scratch), staged(scratch)]).toEqual([text(THREE), text({ ...THREE, ...chosen })])
})

test.each<[string, Record<number, string>]>([
  ['as it was', {}],
  ['with a line of one’s own', { 6: 'mine' }],
])(
  'a part that was chosen, and in which a later turn went on, does not take the rest out of the commit: %s',
  (_, mine) => {
    const scratch = place()
    const long = 'agent a\nagent b\nagent c\nagent d'
    turn(scratch, { 2: long, 18: 'agent' })
    write(scratch, { 2: long, ...mine })
    scratch.git('add', 'a.txt')
    write(scratch, { 2: long, 18: 'agent', ...mine })
    const now = { 2: long.replace(' b', ' B'), 18: 'agent' }
    turn(scratch, { ...now, ...mine })
    expect(scratch.ckpt('commit').warnings).toEqual([])
    expect([committed(scratch), staged(scratch)]).toEqual([text(now), text({ ...now, ...mine })])
  },
)

test('what a later turn removed is not in the index any more, where an earlier state of it was staged', () => {
  const scratch = place()
  turn(scratch, { 2: 'agent' })
  scratch.git('add', 'a.txt')
  scratch.turn('goes', () => scratch.remove('a.txt'))
  expect(scratch.ckpt('commit').warnings).toEqual([])
  expect(scratch.git('status', '--porcelain')).toBe('')
  // And made anew after that.
  turn(scratch, { 2: 'agent' })
  scratch.git('add', 'a.txt')
  scratch.turn('goes', () => scratch.remove('a.txt'))
  turn(scratch, { 4: 'anew' })
  expect(scratch.ckpt('commit').warnings).toEqual([])
  expect([committed(scratch), scratch.git('status', '--porcelain')]).toEqual([text({ 4: 'anew' }), ''])
})

test('a mode that was not chosen is not taken out of the commit', () => {
  const scratch = place()
  scratch.turn('work', () => {
    write(scratch, { 2: 'agent' })
    fs.chmodSync(scratch.at('a.txt'), 0o755)
  })
  scratch.git('add', 'a.txt')
  scratch.git('update-index', '--chmod=-x', 'a.txt')
  turn(scratch, { 2: 'more' })
  expect(scratch.ckpt('commit').warnings).toEqual([])
  expect(scratch.git('status', '--porcelain')).toBe('')
})

test('what a person took out of what a turn did, and staged so, stays out', () => {
  const scratch = place()
  turn(scratch, THREE)
  write(scratch, { 2: 'agent', 18: 'agent' })
  scratch.git('add', 'a.txt')
  scratch.ckpt('commit')
  expect([committed(scratch), staged(scratch)]).toEqual([text(THREE), text({ 2: 'agent', 18: 'agent' })])
})

test('of a new file a part that was chosen does not take the rest out of the commit', () => {
  const scratch = place()
  const whole = LINES.slice(0, 10).join('')
  scratch.write({ 'new.txt': LINES.slice(0, 7).join('') })
  scratch.git('add', 'new.txt')
  scratch.remove('new.txt')
  const chosen = scratch.git('ls-files', '-s', 'new.txt').split(' ')[1]!
  scratch.git('rm', '-q', '--cached', 'new.txt')
  scratch.turn('work', () => scratch.write({ 'new.txt': whole }))
  scratch.git('update-index', '--add', '--cacheinfo', `100644,${chosen},new.txt`)
  expect(scratch.ckpt('commit').warnings).toEqual([])
  expect(scratch.git('show', ':new.txt')).toBe(whole)
  expect(scratch.git('status', '--porcelain')).toBe('')
})

test('a new file of a turn’s, staged with an edit: the next turn’s part comes to it', () => {
  const scratch = place()
  scratch.turn('new', () => scratch.write({ new: text({ 2: 'agent' }) }))
  scratch.write({ new: text({ 2: 'agent', 15: 'mine' }) })
  scratch.git('add', 'new')
  scratch.turn('more', () => scratch.write({ new: text({ 2: 'agent', 8: 'more', 15: 'mine' }) }))
  expect(scratch.ckpt('commit').warnings).toEqual([])
  expect(scratch.git('show', 'HEAD:new')).toBe(text({ 2: 'agent', 8: 'more' }))
  expect(scratch.git('show', ':new')).toBe(text({ 2: 'agent', 8: 'more', 15: 'mine' }))
})

test('a mode that a turn gave: what was staged of the text stays', () => {
  const scratch = place()
  write(scratch, { 2: 'mine' })
  scratch.turn('work', () => fs.chmodSync(scratch.at('a.txt'), 0o755))
  scratch.git('add', 'a.txt')
  scratch.ckpt('commit')
  expect([committed(scratch), staged(scratch)]).toEqual([text(), text({ 2: 'mine' })])
  expect(scratch.git('ls-files', '-s')).toMatch(/^100755 /)
})

test('a commit that was killed once the index followed it: the next command leaves the index so', () => {
  const scratch = place()
  write(scratch, { 2: 'mine' })
  scratch.git('add', 'a.txt')
  turn(scratch, { 2: 'mine', 15: 'agent' })
  const note = '/commit\\.json$'
  const vars = amid(scratch, [{ call: 'unlinkSync', on: note, when: 'before', kill: true }])
  expect(scratch.runApart(['commit'], { vars }).code).toBe(128)
  expect(scratch.git('status', '--porcelain')).toBe('M  a.txt\n')
  expect(scratch.ckpt('status').warnings.join()).toContain('A commit that was cut short is finished')
  expect([committed(scratch), staged(scratch)]).toEqual([text({ 15: 'agent' }), text({ 2: 'mine', 15: 'agent' })])
})

test('a path with a conflict in the index is left as it is there, and said so', () => {
  const scratch = place()
  scratch.turn('new', () => scratch.write({ new: 'agent\n' }))
  const oid = scratch.git('hash-object', '-w', 'a.txt').trim()
  const input = [2, 3].map((stage) => `100644 ${oid} ${stage}\tnew\n`).join('')
  execFileSync('git', ['update-index', '--index-info'], { cwd: scratch.root, env: scratch.vars, input })
  const { warnings } = scratch.ckpt('commit')
  expect(warnings.join()).toContain('new is committed, and not in your index: it has a conflict there')
  expect(scratch.git('ls-files', '-u').split('\n')).toHaveLength(3)
})

test('a submodule that a person staged in the place of a committed file stays, and is said', () => {
  const scratch = place()
  turn(scratch, { 15: 'agent' })
  const id = '1'.repeat(40) // of no commit that is here, as a submodule's
  scratch.git('update-index', '--cacheinfo', `160000,${id},a.txt`)
  expect(scratch.ckpt('commit').warnings.join()).toContain('a.txt stays staged as it was')
  expect(committed(scratch)).toBe(text({ 15: 'agent' }))
  expect(scratch.git('ls-files', '-s')).toBe(`160000 ${id} 0\ta.txt\n`)
})

test.each<[string, (scratch: Scratch) => void]>([
  ['a later turn', (scratch) => turn(scratch, {})],
  ['the turn itself', () => {}],
])('what a turn staged, and %s took back wholly, stays staged, and is told with its way out', (who, later) => {
  const scratch = place()
  scratch.turn('work', () => {
    write(scratch, { 2: 'tried' })
    scratch.write({ 'b.txt': 'b\n' })
    scratch.ckpt('mark', 'step', '--session', 's')
    scratch.git('add', 'a.txt')
    if (who === 'the turn itself') write(scratch, {})
    scratch.ckpt('mark', 'step', '--session', 's')
  })
  later(scratch)
  const { files, warnings } = scratch.ckpt('commit')
  expect(files).toHaveLength(1)
  const told =
    'Taken back since, and still staged, so that git commit would take it: a.txt. git restore --staged :/a.txt   (takes it out of the index)'
  expect(warnings).toEqual([told])
  expect(scratch.ckpt('commit')).toMatchObject({ commit: null, warnings: [told] })
  expect(staged(scratch)).toBe(text({ 2: 'tried' }))
  execFileSync('sh', ['-c', 'git restore --staged :/a.txt'], { cwd: scratch.root })
  expect(scratch.git('status', '--porcelain')).toBe('')
  expect(scratch.ckpt('commit').warnings).toEqual([])
})

test('where what an earlier turn did cannot be read any more, a commit of the later ones says nothing of it', () => {
  const scratch = place()
  turn(scratch, { 2: 'first' })
  scratch.ckpt('commit')
  const { before } = scratch.ckpt('show', '1').turn
  turn(scratch, { 2: 'first', 12: 'second' })
  scratch.write({ 'mine.txt': 'mine\n' })
  scratch.git('add', 'mine.txt')
  removeObject(scratch, `${before}^{tree}`)
  expect(scratch.ckpt('commit')).toMatchObject({ files: [{ path: 'a.txt' }], warnings: [] })
})
