/**
 * Turns of one session, commits of it, commits by hand and amended ones, in any order: after a commit of the session HEAD
 * holds what is on disk, for nobody else changed anything.
 */
import fs from 'node:fs'
import fc from 'fast-check'
import { expect, test } from 'vitest'
import type { SessionId } from '../../src/core/ids.ts'
import { type Env, realEnv } from '../../src/env.ts'
import { commit } from '../../src/ops/commit/commit.ts'
import { mark } from '../../src/ops/mark.ts'
import { type Context, closeContext, openContext } from '../../src/ops/worktree/context.ts'
import { Scratch } from '../support/scratch.ts'
import { RUNS } from '../support/seed.ts'

const session = 's' as SessionId

const edits = fc.array(
  fc.record({ path: fc.constantFrom('a', 'b', 'd/c'), body: fc.constantFrom('0\n', '1\n', '2\n', null) }),
  { minLength: 1, maxLength: 3 },
)
const move = fc.oneof(
  { weight: 4, arbitrary: fc.record({ kind: fc.constant('turn' as const), edits }) },
  {
    weight: 3,
    arbitrary: fc.record({ kind: fc.constantFrom('commit' as const, 'by hand' as const, 'amend' as const) }),
  },
)

test('after a commit of the only session at work HEAD is what is on disk', { timeout: 3_600_000 }, async () => {
  await fc.assert(
    fc.asyncProperty(fc.array(move, { minLength: 3, maxLength: 14 }), async (moves) => {
      const scratch = new Scratch().init({ a: '0\n' })
      for (const [key, value] of [
        ['user.name', 'c'],
        ['user.email', 'c@example.com'],
      ] as const)
        scratch.git('config', key, value)
      const env: Env = { ...realEnv(), cwd: scratch.root, home: scratch.home, vars: scratch.vars }
      const open = async <T>(work: (context: Context) => Promise<T>): Promise<T> => {
        const context = await openContext(env, scratch.root, { create: true })
        return work(context).finally(() => closeContext(context))
      }
      const say = (event: 'prompt' | 'stop') =>
        open((context) => mark(context, { event, session } as never, env.monotonic()))
      const commitAll = async () => {
        await open((context) => commit(context, { session, message: 'c', quiet: true }))
        expect(scratch.git('status', '--porcelain')).toBe('')
      }
      for (const one of moves) {
        if (one.kind === 'turn') {
          await say('prompt')
          for (const { path, body } of one.edits) {
            if (body === null) fs.rmSync(scratch.at(path), { force: true })
            else scratch.write({ [path]: body })
          }
          await say('stop')
        } else if (one.kind === 'by hand') {
          scratch.git('add', '-A')
          scratch.git('commit', '-q', '--allow-empty', '-m', 'by hand')
        } else if (one.kind === 'amend') scratch.git('commit', '-q', '--amend', '--allow-empty', '-m', 'reworded')
        else if (moves.slice(0, moves.indexOf(one)).some(({ kind }) => kind === 'turn')) await commitAll()
      }
      if (moves.some(({ kind }) => kind === 'turn')) await commitAll()
    }),
    { numRuns: RUNS },
  )
})
