// A turn that makes more new directories, with longer names, than a command line takes (execve(2), ARG_MAX).
import fs from 'node:fs'
import { expect, test } from 'vitest'
import { openWorktree } from '../../src/library/worktree.ts'
import { Scratch } from '../support/scratch.ts'

test('they are recorded and undone, and a program sees what was undone', async () => {
  const scratch = new Scratch().init()
  const deep = Array.from({ length: 5 }, () => 'd'.repeat(250)).join('/')
  scratch.write({ [`${deep}/there.txt`]: 'there\n' })
  const changed = (command: string) => (scratch.ckpt(command).files as unknown[]).length
  scratch.ckpt('mark', 'prompt', '--session', 's')
  const made = Array.from({ length: 1700 }, (_, n) => `${deep}/new-${n}/f.txt`)
  expect(made.join(' ').length).toBeGreaterThan(2 * 1024 * 1024)
  scratch.write(Object.fromEntries(made.map((path) => [path, 'new\n'])))
  scratch.ckpt('mark', 'stop', '--session', 's')
  expect(changed('undo')).toBe(1700)
  expect(fs.readdirSync(scratch.at(deep))).toEqual(['there.txt'])
  const worktree = await openWorktree(scratch.root, { vars: scratch.vars })
  const { revertDiff } = await worktree.sessions.getSessionInfo('s')
  expect(revertDiff?.match(/^-new$/gm)?.length).toBe(1700)
})
