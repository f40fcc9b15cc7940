/** Ids: what names a turn or a checkpoint serves wherever one is asked for. */
import { expect, test } from 'vitest'
import { type Json, Scratch } from '../support/scratch.ts'

function twoSessions() {
  const scratch = new Scratch().init({ 'a.txt': '1\n' })
  scratch.turn('one', () => scratch.write({ 'a.txt': '2\n' }))
  const byHand = scratch.ckpt('snapshot').checkpoint.id as string
  scratch.turn('two', () => scratch.write({ 'a.txt': '3\n', 'two.txt': '' }))
  const [two] = scratch.ckpt('list').turns
  scratch.turn('other', () => scratch.write({ 'b.txt': '1\n' }), 'other')
  return { scratch, byHand, two }
}
const plan = (scratch: Scratch, ...args: string[]): Json => {
  const { session, turns } = scratch.ckpt('undo', '--dry-run', ...args)
  return [session, turns]
}

test('undo goes back to a checkpoint that was made by hand, before an undo, or by another session: what came after it', () => {
  const { scratch, byHand, two } = twoSessions()
  expect(plan(scratch, '--session', 's', '--to', byHand)).toEqual(['s', [2]])
  expect(plan(scratch, '--session', 's', '--to', byHand.slice(0, 12))).toEqual(['s', [2]])
  expect(plan(scratch, '--session', 'other', '--to', two.before)).toEqual(['other', [1]])
  const { safety } = scratch.ckpt('undo', '--session', 's', '--to', byHand)
  expect(scratch.exists('two.txt')).toBe(false)
  scratch.ckpt('redo', '--session', 's')
  scratch.turn('three', () => scratch.write({ 'c.txt': '1\n' }))
  expect(plan(scratch, '--to', safety)).toEqual(['s', [3]])
  const last = scratch.ckpt('snapshot').checkpoint.id
  expect(scratch.tryCkpt('undo', '--to', last).document.error.message).toContain('Nothing came after')
})

test('in the middle of a turn the steps that began after it go; where none did, nothing does', () => {
  const scratch = new Scratch().init()
  scratch.ckpt('mark', 'prompt', '--session', 's')
  const ids: string[] = []
  for (const name of ['1', '2']) {
    scratch.write({ [name]: name })
    scratch.ckpt('mark', 'step', '--session', 's')
    ids.push(scratch.ckpt('snapshot').checkpoint.id)
  }
  scratch.ckpt('mark', 'stop', '--session', 's')
  scratch.ckpt('undo', '--to', ids[0]!)
  expect([scratch.exists('1'), scratch.exists('2')]).toEqual([true, false])
  scratch.ckpt('redo')
  const { error } = scratch.tryCkpt('undo', '--to', ids[1]!).document
  expect([error.code, error.message]).toEqual(['NOT_FOUND', expect.stringContaining('in the middle of turn 1')])
})

test('an id that names one turn of all sessions needs no session', () => {
  const { scratch, two } = twoSessions()
  expect(plan(scratch, '--only', two.id)).toEqual(['s', [2]])
  expect(plan(scratch, '--to', two.before)).toEqual(['s', [2]])
  expect(plan(scratch, '--only', '01', '--session', 's')).toEqual(['s', [1]])
  expect(scratch.tryCkpt('undo', '--only', two.id, '--session', 'other').document.error.code).toBe('NOT_FOUND')
  const { error } = scratch.tryCkpt('switch', two.after, '--session', 'other').document
  expect([error.code, error.message]).toEqual(['NOT_FOUND', expect.stringContaining('is of session s')])
})

test('`worktree` is no place to go back to, whatever else stands in the way', () => {
  const { scratch } = twoSessions()
  scratch.ckpt('mark', 'prompt', '--session', 's')
  for (const line of [['undo', '--to'], ['undo', '--only'], ['restore'], ['switch']])
    expect(scratch.tryCkpt(...line, 'worktree').document.error.code).toBe('USAGE')
})

test('what is still undone is told with each answer: after a redo of a part, and of a restore beside it', () => {
  const { scratch } = twoSessions()
  scratch.ckpt('undo', '--session', 's', '--to', '1')
  const { boundary, restoredPrompt } = scratch.ckpt('redo', '--session', 's')
  expect([boundary.turn, restoredPrompt]).toEqual([2, 'two'])
  const restored = scratch.ckpt('restore', '2:after', '--session', 's', '--', 'two.txt')
  expect(restored.boundary).toEqual(scratch.ckpt('status').boundary)
  expect(scratch.ckpt('redo', '--session', 's').boundary).toBe(null)
})

test('what is told of an undone turn makes its session the latest, as of any other', () => {
  const scratch = new Scratch().init()
  scratch.turn('one', () => scratch.write({ 'a.txt': 'two\n' }), 's')
  scratch.turn('two', () => scratch.write({ 'b.txt': 'two\n' }), 'z')
  scratch.ckpt('undo', '--session', 's')
  expect(scratch.ckpt('list').session).toBe('z')
  expect(scratch.ckpt('mark', 'stop', '--session', 's').checkpoint).toMatchObject({ late: true })
  expect(scratch.ckpt('list').session).toBe('s')
  expect(scratch.ckpt('redo').turns).toEqual([1])
})

test('where all turns are undone, undo names the way back; a session called latest is meant by its name', () => {
  const scratch = new Scratch().init()
  scratch.turn('one', () => scratch.write({ 'a.txt': 'two\n' }), 'latest')
  scratch.turn('one', () => scratch.write({ 'b.txt': 'two\n' }), 's')
  expect(scratch.ckpt('list', '--session', 'latest').session).toBe('latest')
  scratch.ckpt('undo', '--session', 's')
  expect(scratch.tryCkpt('undo', '--session', 's').document.error).toMatchObject({
    message: 'All turns of session s are undone. Nothing was changed.',
    hints: ['ckpt redo --session s', 'ckpt list --session s', 'ckpt list --sessions'],
  })
})

test('--only takes a turn: of a step it is said what takes that back', () => {
  const scratch = new Scratch().init()
  scratch.ckpt('mark', 'prompt', '--session', 's')
  for (const text of ['two\n', 'three\n']) {
    scratch.write({ 'a.txt': text })
    scratch.ckpt('mark', 'step', '--session', 's')
  }
  scratch.ckpt('mark', 'stop', '--session', 's')
  const { code, document } = scratch.tryCkpt('undo', '--only', '1.2')
  expect([code, document.error.code, document.error.hints[0]]).toEqual([
    2,
    'USAGE',
    'ckpt undo --to 1.2   (that step, and what came after it)',
  ])
  expect(scratch.run(['undo', '--to', '1.2']).code).toBe(0)
})
