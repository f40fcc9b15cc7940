// Two sessions at work at once, and the turns of one were pruned: what they did is not taken for the other one's.
import { expect, test } from 'vitest'
import { Scratch } from '../support/scratch.ts'

const REASON = 'something that was pruned since may have changed it at the same time'

/** One long turn of `long`, in which `short` has three turns, of which prune leaves the last. */
function workBeside(scratch: Scratch): void {
  scratch.ckpt('mark', 'prompt', '--session', 'long')
  for (const n of [1, 2, 3]) scratch.turn(`${n}`, () => scratch.write({ [`short-${n}.txt`]: `${n}\n` }), 'short')
}

function endAndPrune(scratch: Scratch): void {
  scratch.ckpt('mark', 'stop', '--session', 'long')
  const { removed } = scratch.ckpt('prune', '--keep', '1')
  expect(removed.map(({ session, turn }: { session: string; turn: number }) => [session, turn])).toEqual([
    ['short', 1],
    ['short', 2],
  ])
}

test('an undo leaves what somebody else may have made, names it, and takes the rest when told to', () => {
  const scratch = new Scratch().init()
  workBeside(scratch)
  scratch.write({ 'long.txt': 'mine\n' })
  endAndPrune(scratch)
  const refused = scratch.tryCkpt('undo', '--session', 'long')
  expect(refused.code).toBe(4)
  expect(refused.document.error.paths).toEqual(['short-1.txt', 'short-2.txt', 'short-3.txt'])
  const { files } = scratch.ckpt('undo', '--session', 'long', '--skip-conflicts')
  expect(files).toContainEqual({ path: 'long.txt', action: 'delete' })
  expect(files).toContainEqual({ path: 'short-1.txt', action: 'skip', reason: REASON })
  expect([1, 2, 3].map((n) => scratch.read(`short-${n}.txt`))).toEqual(['1\n', '2\n', '3\n'])
  expect(scratch.exists('long.txt')).toBe(false)
})

test('what a step declared is its own all the same', () => {
  const scratch = new Scratch().init()
  workBeside(scratch)
  scratch.write({ 'long.txt': 'mine\n' })
  scratch.ckpt('mark', 'step', '--session', 'long', '--path', 'long.txt')
  endAndPrune(scratch)
  const { files } = scratch.ckpt('undo', '--session', 'long')
  expect(files).toEqual([{ path: 'long.txt', action: 'delete' }])
  expect(scratch.exists('short-1.txt')).toBe(true)
})

test('what no step was seen to do is not taken with --unclaimed either', () => {
  const scratch = new Scratch().init()
  scratch.ckpt('mark', 'prompt', '--session', 'long')
  scratch.write({ 'long.txt': 'mine\n' })
  scratch.ckpt('mark', 'step', '--session', 'long')
  for (const n of [1, 2, 3]) scratch.turn(`${n}`, () => scratch.write({ [`short-${n}.txt`]: `${n}\n` }), 'short')
  endAndPrune(scratch)
  const { code, document } = scratch.tryCkpt('undo', '--session', 'long', '--unclaimed')
  expect([code, document.error.paths]).toEqual([4, ['short-1.txt', 'short-2.txt']])
})

test('it is not committed as the session’s, and blame gives its lines to nobody', () => {
  const scratch = new Scratch().init()
  workBeside(scratch)
  endAndPrune(scratch)
  const refused = scratch.tryCkpt('commit', '--session', 'long', '-m', 'work')
  expect(refused.code).toBe(4)
  expect(refused.document.error.message).toContain(`short-1.txt (${REASON})`)
  const { lines } = scratch.ckpt('blame', 'short-1.txt', '--session', 'long')
  expect(lines).toEqual([{ line: 1, text: '1', turn: null, session: null, prompt: null }])
})
