/** In the user's git: no lock of it is taken, and nothing of ours is seen in it. */
import fs from 'node:fs'
import { setTimeout as sleep } from 'node:timers/promises'
import { expect, test } from 'vitest'
import { Scratch } from '../support/scratch.ts'

test("row 28: no command takes the user's index.lock, though the index wants to be refreshed", async () => {
  const scratch = new Scratch().init({ 'a.txt': 'one\n', 'b.txt': 'b\n' })
  const events = new Set<string>()
  const watcher = fs.watch(scratch.at('.git'), (_event, name) => events.add(String(name)))
  const stale = () => fs.utimesSync(scratch.at('b.txt'), new Date(), new Date(Date.now() - 1e6 * Math.random()))
  const commands = [
    ['mark', 'prompt', '--session', 's'],
    ['mark', 'step', '--session', 's'],
    ['mark', 'stop', '--session', 's'],
    ['snapshot'],
    ['status'],
    ['list'],
    ['diff'],
    ['show', '1'],
    ['undo'],
    ['redo'],
    ['verify'],
    ['doctor'],
  ]
  for (const args of commands) {
    stale()
    scratch.ckpt(...args)
  }
  await sleep(50)
  watcher.close()
  expect([...events].filter((name) => name !== 'ckpt')).toEqual([])
})

test("row 28: while a rebase holds index.lock, markers and reading commands go on, and leave the rebase's files alone", () => {
  const scratch = new Scratch().init()
  scratch.turn('work', () => scratch.write({ 'a.txt': 'two\n' }))
  scratch.git('commit', '-qam', 'second')
  scratch.git('checkout', '-q', '-b', 'side', 'HEAD~1')
  scratch.write({ 'a.txt': 'side\n' })
  scratch.git('commit', '-qam', 'side')
  expect(() => scratch.git('rebase', 'main')).toThrow()
  scratch.write({ '.git/index.lock': '' })
  const state = scratch.gitState()
  for (const args of [['mark', 'prompt', '--session', 's'], ['mark', 'stop', '--session', 's'], ['status'], ['list']])
    scratch.ckpt(...args)
  const refused = scratch.tryCkpt('undo')
  expect([refused.code, refused.document.error.code]).toEqual([8, 'GIT_BUSY'])
  expect(scratch.ckpt('status').git.busy).toBe('rebase')
  expect(scratch.gitState()).toEqual(state)
  scratch.remove('.git/index.lock')
  scratch.git('rebase', '--abort')
  expect(scratch.read('a.txt')).toBe('side\n')
})

test("row 30: nothing of ours is in the user's log, refs, stash, bundles or mirrors", () => {
  const scratch = new Scratch().init()
  const mirror = `${scratch.base}/mirror.git`
  scratch.git('init', '-q', '--bare', mirror)
  const seen = () => ({
    log: scratch.git('log', '--all', '--format=%H %s'),
    refs: scratch.git('for-each-ref'),
    stash: scratch.git('stash', 'list'),
    reflog: scratch.git('reflog', 'show', '--all'),
    objects: scratch.git('rev-list', '--objects', '--all'),
    status: scratch.git('status', '--porcelain'),
    worktrees: scratch.git('worktree', 'list'),
    unreachable: scratch.git('fsck', '--unreachable', '--no-reflogs'),
  })
  const before = seen()
  scratch.turn('first', () => scratch.write({ 'a.txt': 'two\n' }))
  scratch.turn('second', () => scratch.write({ 'a.txt': 'three\n' }))
  scratch.ckpt('snapshot')
  scratch.ckpt('undo', '--turns', '2')
  expect(seen()).toEqual(before)
  scratch.git('push', '-q', '--mirror', mirror)
  expect(scratch.git('--git-dir', mirror, 'for-each-ref', '--format=%(refname)').trim()).toBe('refs/heads/main')
  scratch.git('bundle', 'create', `${scratch.base}/all.bundle`, '--all')
  expect(scratch.git('bundle', 'list-heads', `${scratch.base}/all.bundle`)).not.toContain('ckpt')
  scratch.git('clone', '-q', scratch.root, `${scratch.base}/clone`)
  expect(fs.existsSync(`${scratch.base}/clone/.git/ckpt`)).toBe(false)
})
