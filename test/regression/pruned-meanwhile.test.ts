// A prune drops what no ref reaches, and an export or push takes no lock: what it makes for its way out is its own.
import { execFileSync } from 'node:child_process'
import { expect, test } from 'vitest'
import type { Env } from '../../src/env.ts'
import { answer, envOf } from '../support/in-process.ts'
import type { Scratch } from '../support/scratch.ts'
import { cloneOf, twoTurns } from '../support/transport.ts'

/** The outside world, in which a prune takes place right before a git of that kind starts. */
function prunedBefore(scratch: Scratch, command: string): Env {
  const env = envOf(scratch)
  const spawn: Env['spawn'] = (program, args, options) => {
    if (args.includes(command)) scratch.ckpt('prune')
    return env.spawn(program, args, options)
  }
  return { ...env, spawn }
}

test.each([
  ['export', 'update-ref'],
  ['export', 'bundle'],
  ['push', 'update-ref'],
  ['push', 'push'],
])('a prune during %s, before git %s: all arrives', async (command, git) => {
  const here = twoTurns()
  const target = `${here.base}/${command}ed`
  if (command === 'push') execFileSync('git', ['init', '-q', '--bare', target], { env: here.vars })
  const { code, document } = await answer(prunedBefore(here, git), command, target)
  expect(document).toMatchObject({ ok: true, sent: true })
  expect(code).toBe(0)
  const there = cloneOf(here)
  there.ckpt(command === 'push' ? 'pull' : 'import', target)
  expect(there.ckpt('list').turns.map(({ n }: { n: number }) => n)).toEqual([2, 1])
  expect(there.ckpt('verify').problems).toEqual([])
})

test('an export leaves nothing in the store', () => {
  const here = twoTurns()
  const loose = () => execFileSync('git', ['--git-dir=.git/ckpt/store.git', 'count-objects'], { cwd: here.root })
  const before = loose().toString()
  here.ckpt('export', `${here.base}/exported`)
  expect(loose().toString()).toBe(before)
})
