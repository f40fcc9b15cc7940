// Who looks at a store while others are at work in it, in another worktree too, takes nothing for damage that is only half done.
import fs from 'node:fs'
import { expect, test } from 'vitest'
import { doctor } from '../../src/ops/doctor/doctor.ts'
import { steadily } from '../../src/ops/store/steadily.ts'
import { verify } from '../../src/ops/verify/verify.ts'
import { closeContext, openContext } from '../../src/ops/worktree/context.ts'
import { withLock } from '../../src/ops/worktree/lock.ts'
import { killedAt } from '../support/amid.ts'
import { envOf } from '../support/in-process.ts'
import { Scratch } from '../support/scratch.ts'
import { inStore } from '../support/store-surgery.ts'

/** Two worktrees with a turn in each; the second one's directory in the store. */
async function two() {
  const scratch = new Scratch().init()
  scratch.turn('here', () => scratch.write({ 'a.txt': 'two\n' }))
  scratch.git('worktree', 'add', '-q', '../other')
  const there = ['--cwd', `${scratch.base}/other`, '--session', 't']
  scratch.ckpt('mark', 'prompt', ...there)
  scratch.write({ '../other/a.txt': 'three\n' })
  scratch.ckpt('mark', 'stop', ...there)
  const store = scratch.at('.git/ckpt/worktrees')
  const directory = `${store}/${fs.readdirSync(store).find((name) => name.startsWith('other-'))}`
  return { scratch, directory, context: await openContext(envOf(scratch), scratch.root, { reading: true }) }
}

/** Somebody is at work for a moment, and takes back what it did. Comes back when that has begun. */
async function atWork(directory: string, done: () => void): Promise<{ ended: Promise<void> }> {
  let ended = Promise.resolve()
  await new Promise<void>((begun) => {
    ended = withLock(envOf(new Scratch()), { path: `${directory}/lock`, command: 'undo', wait: 0 }, async () => {
      begun()
      await new Promise((resolve) => setTimeout(resolve, 300))
      done()
    })
  })
  return { ended }
}

const problems = async (context: Parameters<typeof verify>[0]) => (await verify(context)).problems
const findings = async (context: Parameters<typeof doctor>[0]) =>
  (await doctor(context, { fix: false, breakLock: false })).flatMap(({ name, ok, advice }) =>
    ok || advice ? [] : name,
  )

test('an operation under way in another worktree is none that was cut short', async () => {
  const { directory, context } = await two()
  const journal = `${directory}/journal.json`
  fs.writeFileSync(journal, '{}')
  expect(await problems(context)).toEqual([expect.stringMatching(/^unfinished: .*was cut short/)])
  const working = await atWork(directory, () => fs.rmSync(journal))
  expect(await problems(context)).toEqual([])
  await working.ended
  closeContext(context)
})

test('a ref that another worktree is about to move is not astray', async () => {
  const { scratch, directory, context } = await two()
  const ref = inStore(scratch, 'for-each-ref', '--format=%(refname)').match(/refs\/ckpt\/other-\S*\/t\/live/)![0]
  const tip = inStore(scratch, 'rev-parse', ref)
  const move = (to: string) => inStore(scratch, 'update-ref', ref, to)
  move(`${tip}^`)
  expect(await problems(context)).toEqual([expect.stringMatching(/^refs: /)])
  expect(await findings(context)).toEqual(['refs'])
  const working = await atWork(directory, () => move(tip))
  expect(await problems(context)).toEqual([])
  await working.ended
  move(`${tip}^`)
  const again = await atWork(directory, () => move(tip))
  expect(await findings(context)).toEqual([])
  await again.ended
  closeContext(context)
})

test('what was read while somebody was at work is read again, though that has ended by now; what stays is believed', async () => {
  const { context } = await two()
  const seen: boolean[] = []
  const look = (states: boolean[]) => async () => {
    seen.push(states.shift()!)
    return seen.at(-1)!
  }
  const fine = (found: boolean) => found
  expect(await steadily(context, look([false, true]), fine)).toBe(true)
  expect(await steadily(context, look([false, false, true]), fine)).toBe(false)
  expect(await steadily(context, look([true, false]), fine)).toBe(true)
  expect(seen).toHaveLength(5)
  closeContext(context)
})

test('status calls what is under way in its own worktree at work, and not killed', async () => {
  const scratch = new Scratch().init()
  scratch.turn('here', () => scratch.write({ 'a.txt': 'two\n' }))
  killedAt(scratch, ['renameSync', 'journal.json'], 'undo')
  const lock = scratch.at('.git/ckpt/worktrees/@main/lock')
  const said = await withLock(envOf(scratch), { path: lock, command: 'undo', wait: 0 }, async () => ({
    json: scratch.ckpt('status'),
    text: scratch.run(['status']),
  }))
  expect(said.json.unfinished).toBe(false)
  expect(said.json.warnings).toEqual(['An operation is at work here: what is shown may be half of it.'])
  expect(`${said.text.stdout}${said.text.stderr}`).not.toMatch(/killed|unfinished/)
  expect(scratch.ckpt('status').warnings).toEqual(['A killed undo was finished.'])
})
