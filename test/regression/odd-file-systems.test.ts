/**
 * File systems that lack what others have: inode numbers that stay with a file (sshfs and others in FUSE; overlayfs, so in
 * containers), hard links (exFAT, shared folders).
 */
import { createHash } from 'node:crypto'
import fs, { type Stats } from 'node:fs'
import { expect, test } from 'vitest'
import type { Env, Files } from '../../src/env.ts'
import { answer, envOf } from '../support/in-process.ts'
import { type Json, Scratch } from '../support/scratch.ts'

const numberOf = (name: string) => Number.parseInt(createHash('sha256').update(name).digest('hex').slice(0, 12), 16)
const withNumber = (stats: Stats, ino: number): Stats =>
  Object.assign(Object.create(Object.getPrototypeOf(stats)), stats, { ino })
const renumbered = (stats: Stats | undefined, name: string) => stats && withNumber(stats, numberOf(name))

/** Each name has a number of its own, of both a file and its other names. */
const byName = {
  ...fs,
  lstatSync: (at: string | Buffer, options: object) => renumbered(fs.lstatSync(at, options), String(at)),
  statSync: (at: string | Buffer, options: object) => renumbered(fs.statSync(at, options), String(fs.realpathSync(at))),
  fstatSync: (fd: number) => renumbered(fs.fstatSync(fd), fs.readlinkSync(`/proc/self/fd/${fd}`)),
} as unknown as Files

/** A file gets another number when its first change brings it up from a lower layer. */
function layered(): Files {
  const up = new Set<number>()
  const seen = (stats: Stats | undefined) =>
    stats && (up.has(stats.ino) ? withNumber(stats, stats.ino + 2 ** 40) : stats)
  const changing = (call: 'linkSync' | 'renameSync') => (from: string | Buffer, to: string | Buffer) => {
    up.add(fs.lstatSync(from).ino)
    fs[call](from, to)
  }
  return {
    ...fs,
    lstatSync: (at: string | Buffer, options: object) => seen(fs.lstatSync(at, options)),
    statSync: (at: string | Buffer, options: object) => seen(fs.statSync(at, options)),
    fstatSync: (fd: number) => seen(fs.fstatSync(fd)),
    linkSync: changing('linkSync'),
    renameSync: changing('renameSync'),
  } as unknown as Files
}

const linkless = (code: string): Files => ({
  ...fs,
  linkSync: (from, to) => {
    throw Object.assign(new Error(`${code}: link '${from}' -> '${to}'`), { code })
  },
})

/** macOS: of a symlink what it leads to is linked. */
const following = {
  ...fs,
  linkSync: (from: string, to: string) => fs.linkSync(fs.realpathSync(from), to),
} as unknown as Files

function command(env: Env): (...argv: string[]) => Promise<Json> {
  return async (...argv) => {
    const { code, document } = await answer(env, ...argv)
    if (code !== 0) throw new Error(`ckpt ${argv.join(' ')} exited ${code}: ${JSON.stringify(document)}`)
    return document
  }
}

test.each([
  ['that number each name', byName],
  ['of layers', layered()],
  ['without hard links (EPERM)', linkless('EPERM')],
  ['without hard links (ENOSYS)', linkless('ENOSYS')],
  ['that link what a symlink leads to', following],
])('file systems %s: undo and redo', async (_, files) => {
  const scratch = new Scratch().init({ 'changed.txt': 'one\n', 'gone.txt': 'gone\n', 'd/in.txt': 'in\n', m: 'm\n' })
  fs.symlinkSync('m', scratch.at('link'))
  fs.symlinkSync('m', scratch.at('lost'))
  fs.symlinkSync('nowhere', scratch.at('was-link'))
  const ckpt = command({ ...envOf(scratch), files })
  const marked = (event: string, ...more: string[]) => ckpt('mark', event, '--session', 's', ...more)
  await marked('prompt')
  const before = scratch.manifest()
  scratch.remove('gone.txt', 'd', 'link', 'lost', 'was-link')
  scratch.write({ 'changed.txt': 'two\n', d: 'a file\n', 'new/made.txt': 'made\n', 'was-link': '' })
  fs.symlinkSync('d', scratch.at('link'))
  fs.chmodSync(scratch.at('m'), 0o600)
  await marked('stop')
  const after = scratch.manifest()
  await ckpt('undo')
  expect(scratch.manifest()).toEqual(before)
  await ckpt('redo')
  expect(scratch.manifest()).toEqual(after)
  expect((await ckpt('verify', '--worktree')).problems).toEqual([])
})

test('where each name has a number, what somebody writes to the old file amid an undo is kept', async () => {
  const scratch = new Scratch().init()
  scratch.turn('one', () => scratch.write({ 'a.txt': 'two\n' }))
  fs.utimesSync(scratch.at('a.txt'), 1e9, 1e9)
  // Right before ours takes its place, another of the same size and time does.
  const files: Files = {
    ...byName,
    renameSync: (from, to) => {
      if (String(to) === scratch.at('a.txt')) {
        fs.writeFileSync(to, 'own\n')
        fs.utimesSync(to, 1e9, 1e9)
      }
      fs.renameSync(from, to)
    },
  }
  const { code } = await answer({ ...envOf(scratch), files }, 'undo')
  expect([code, scratch.read('a.txt')]).toEqual([4, 'own\n'])
})

test('without hard links one at a time holds the lock, one that was left is taken over, and a worktree has one id', async () => {
  const scratch = new Scratch().init()
  scratch.git('worktree', 'add', '-q', '../linked')
  const linked = `${scratch.base}/linked`
  const id = `${scratch.root}/.git/worktrees/linked/ckpt-worktree-id`
  fs.writeFileSync(id, '') // whoever was to write it was killed before that
  const ckpt = command({ ...envOf(scratch), cwd: linked, files: linkless('EPERM') })
  const made = await Promise.all([1, 2, 3, 4].map((n) => ckpt('snapshot', '-m', `${n}`)))
  expect(new Set(made.map((one) => one.checkpoint.id)).size).toBe(4)
  const own = `${scratch.root}/.git/ckpt/worktrees/linked-${fs.readFileSync(id, 'utf8').trim()}`
  fs.writeFileSync(`${own}/lock`, '')
  fs.utimesSync(`${own}/lock`, 1, 1) // left by a power cut
  await ckpt('snapshot')
  expect(fs.readdirSync(own).filter((name) => name.startsWith('lock'))).toEqual([])
  expect(
    fs.readdirSync(`${scratch.root}/.git/ckpt/worktrees`).filter((name) => name.startsWith('linked-')),
  ).toHaveLength(1)
})
