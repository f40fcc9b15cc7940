// Where the history ends is said in one file, and refs lead there: a prune that does not come to its end leaves both as they fit.
import fs from 'node:fs'
import { expect, test } from 'vitest'
import type { Env } from '../../src/env.ts'
import { killedAt } from '../support/amid.ts'
import { answer, envOf } from '../support/in-process.ts'
import { type Json, Scratch } from '../support/scratch.ts'

const DAY = 86_400_000

/** A history that was cut once, and a branch that forks from it and is past its grace. */
function cutOnce(): Scratch {
  const scratch = new Scratch().init()
  fs.mkdirSync(`${scratch.home}/.config/ckpt`, { recursive: true })
  fs.writeFileSync(`${scratch.home}/.config/ckpt/.checkpointrc`, 'prune:\n  grace: 0\n')
  const turn = (n: number) => scratch.turn(`turn ${n}`, () => scratch.write({ 'a.txt': `${n}\n` }))
  for (let n = 1; n <= 5; n++) turn(n)
  scratch.ckpt('prune', '--keep', '3')
  scratch.ckpt('undo')
  for (let n = 6; n <= 8; n++) turn(n)
  return scratch
}

const isWhole = (scratch: Scratch): void => {
  const { problems } = scratch.ckpt('verify')
  expect(problems).toEqual([])
  scratch.git('--git-dir=.git/ckpt/store.git', 'rev-list', '--objects', '--quiet', '--all')
}

test('killed once it has said where the history will end, before any ref is gone', () => {
  const scratch = cutOnce()
  killedAt(scratch, ['renameSync', 'store.git/shallow'], 'prune', '--keep', '1')
  isWhole(scratch)
  scratch.ckpt('prune', '--keep', '1')
  isWhole(scratch)
  expect(scratch.ckpt('list', '--abandoned').turns.map(({ n }: Json) => n)).toEqual([8])
})

test('where the refs cannot be moved nothing goes', async () => {
  const scratch = cutOnce()
  const env = envOf(scratch)
  const before = scratch.ckpt('list', '--abandoned').turns
  const spawn: Env['spawn'] = (program, args, options) =>
    env.spawn(args.includes('update-ref') ? 'false' : program, args, options)
  const { document } = await answer({ ...env, spawn }, 'prune', '--keep', '1')
  expect(document.ok).toBe(false)
  expect(scratch.ckpt('list', '--abandoned').turns).toEqual(before)
  isWhole(scratch)
})

test('a turn that two abandoned branches have stays as long as the younger one', async () => {
  const scratch = new Scratch().init()
  const env = envOf(scratch)
  let now = env.now()
  const ckpt = async (...args: string[]): Promise<Json> => {
    now += 1000
    const { code, document } = await answer({ ...env, now: () => now }, ...args)
    expect([args, code]).toEqual([args, 0])
    return document
  }
  const turn = async (n: number) => {
    await ckpt('mark', 'prompt', '--session', 's', '--text', `turn ${n}`)
    scratch.write({ 'a.txt': `${n}\n` })
    await ckpt('mark', 'stop', '--session', 's')
  }
  // The older branch has the name that is sorted behind the younger one's (9-…, 13-…).
  for (let n = 1; n <= 2; n++) await turn(n)
  await ckpt('undo')
  await turn(3)
  await ckpt('switch', '2') // 3 is abandoned
  now += 5 * DAY
  await ckpt('undo', '--to', '1')
  await turn(4) // 1 and 2 are: 1 came before 3, too
  const turns = async () => (await ckpt('list', '--abandoned')).turns.map(({ n }: Json) => n).sort()
  expect(await turns()).toEqual([1, 2, 3, 4])
  now += 3 * DAY
  await ckpt('prune')
  expect(await turns()).toEqual([1, 2, 4])
  now += 5 * DAY
  await ckpt('prune')
  expect(await turns()).toEqual([4])
})
