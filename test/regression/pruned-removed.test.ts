// Linked worktrees come and go, one for a task: what scans of those that were removed went on from is not kept, and no
// turn goes to make room for it.
import fs from 'node:fs'
import { expect, test } from 'vitest'
import { type Json, Scratch } from '../support/scratch.ts'

const FILES = 600

/** A turn here, and one in each of three linked worktrees, which are removed. */
function withRemoved(): { scratch: Scratch; directories: string[] } {
  const files = Array.from({ length: FILES }, (_, n) => [`lib/file-${n}.txt`, `${n}\n`])
  const scratch = new Scratch().init(Object.fromEntries(files))
  for (const n of [1, 2]) scratch.turn(`${n}`, () => scratch.write({ 'a.txt': `${n}\n` }))
  for (const name of ['one', 'two', 'three']) {
    const linked = `${scratch.base}/${name}`
    scratch.git('worktree', 'add', '-q', linked)
    const there = (...args: string[]) => scratch.ckpt(...args, '--cwd', linked)
    there('mark', 'prompt', '--session', name)
    fs.writeFileSync(`${linked}/${name}.txt`, `${name}\n`)
    there('mark', 'stop', '--session', name)
    scratch.git('worktree', 'remove', '--force', linked)
  }
  const worktrees = scratch.at('.git/ckpt/worktrees')
  const directories = fs.readdirSync(worktrees).filter((name) => name !== '@main')
  return { scratch, directories: directories.map((name) => `${worktrees}/${name}`) }
}

const turnsOf = (scratch: Scratch) => scratch.ckpt('list', '--all-worktrees', '--all-sessions').turns as Json[]

test('what scans went on from goes with the next prune, and no turn', () => {
  const { scratch, directories } = withRemoved()
  const names = () => directories.map((directory) => fs.readdirSync(directory))
  expect(names().every((all) => all.includes('cache.json'))).toBe(true)
  const before = turnsOf(scratch)
  scratch.ckpt('prune')
  for (const all of names()) expect(all.filter((name) => /^(cache|index)/.test(name))).toEqual([])
  expect(turnsOf(scratch)).toEqual(before)
  expect(scratch.run(['verify']).code).toBe(0)
  const { id } = before.find(({ session }) => session === 'two')!
  expect(scratch.ckpt('diff', id).files).toMatchObject([{ path: 'two.txt' }])
})

test('no turn goes to make room for it, as a dry run says', () => {
  const { scratch } = withRemoved()
  const dry = scratch.ckpt('prune', '--dry-run')
  expect(dry.bytesFreed).toBeGreaterThan(3 * FILES * 100)
  // As it is once it is packed, less half of what one of the three remembers.
  const packed = fs.mkdtempSync(`${scratch.base}/copy-`)
  fs.cpSync(scratch.root, packed, { recursive: true })
  const limit =
    scratch.ckpt('prune', '--cwd', packed) && scratch.ckpt('status', '--cwd', packed).store.bytes + FILES * 50
  expect(scratch.ckpt('prune', '--max-bytes', `${limit}`, '--dry-run').removed).toEqual([])
  expect(scratch.ckpt('prune', '--max-bytes', `${limit}`)).toMatchObject({ removed: [], warnings: [] })
})

test('one that is there keeps what it remembers, also where its directory cannot be reached', () => {
  const { scratch } = withRemoved()
  const linked = `${scratch.base}/linked`
  scratch.git('worktree', 'add', '-q', linked)
  scratch.ckpt('snapshot', '--cwd', linked)
  const worktrees = scratch.at('.git/ckpt/worktrees')
  const id = fs.readdirSync(worktrees).find((name) => name.startsWith('linked-'))!
  fs.renameSync(linked, `${linked}.unplugged`)
  scratch.ckpt('prune')
  expect(fs.readdirSync(`${worktrees}/${id}`)).toContain('cache.json')
})
