// What the system refused, told as what it was about: the store, or something else.
import { expect, test } from 'vitest'
import { toCkptError } from '../../src/results/errors.ts'

const refused = (path: string) =>
  toCkptError(Object.assign(new Error(`EPERM: operation not permitted, open '${path}'`), { code: 'EPERM', path }))
    .message

test.each([
  '/w/.git/ckpt/worktrees/@main/lock.0123.tmp',
  '/stores/.git-7ee452c82a02895f/lock.6b07.0.tmp',
  '/stores/.git-7ee452c82a02895f-12-345/store.git/refs/ckpt/x',
  '/stores/plain-7ee452c82a02895f/bytes',
])('%s is of a store', (path) => {
  expect(refused(path)).toMatch(/^The store cannot be written/)
})

test.each(['/src/foo-1a2b3c4d5e6f7a8b/.claude/settings.json.1.tmp', '/target/build/x-1a2b3c4d5e6f7a8b/out'])(
  '%s is of none',
  (path) => {
    expect(refused(path)).toMatch(/^Not permitted/)
  },
)
