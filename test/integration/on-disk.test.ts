/** What an undo or redo puts in its place is on disk first; files wait for that together, for one after the other takes far longer. */
import fs from 'node:fs'
import { setTimeout } from 'node:timers/promises'
import { expect, test } from 'vitest'
import type { Env, Files } from '../../src/env.ts'
import { answer, envOf } from '../support/in-process.ts'
import { Scratch } from '../support/scratch.ts'

/** The outside world with a slow disk; `most`: what lay beside the worktree at once. */
function watched(scratch: Scratch): { env: Env; placed: string[]; most: { files: number; bytes: number } } {
  const real = envOf(scratch)
  const beside = scratch.at('.git/ckpt/worktrees/@main/tmp')
  const onDisk = new Set<number>()
  const placed: string[] = []
  const most = { files: 0, bytes: 0 }
  const sync: Env['sync'] = async (fd) => {
    const { ino } = fs.fstatSync(fd)
    const names = fs.existsSync(beside) ? fs.readdirSync(beside).filter((name) => name.endsWith('.new')) : []
    const sizes = names.map((name) => fs.statSync(`${beside}/${name}`).size)
    most.files = Math.max(most.files, sizes.length)
    most.bytes = Math.max(most.bytes, sum(sizes))
    await setTimeout(5)
    await real.sync(fd)
    onDisk.add(ino)
  }
  const moves = (call: 'linkSync' | 'renameSync') => (from: fs.PathLike, to: fs.PathLike) => {
    if (String(from).endsWith('.new')) {
      expect(onDisk, String(to)).toContain(fs.lstatSync(from).ino)
      placed.push(String(to))
    }
    fs[call](from, to)
  }
  const files: Files = { ...real.files, linkSync: moves('linkSync'), renameSync: moves('renameSync') }
  return { env: { ...real, files, sync }, placed, most }
}

const sum = (numbers: readonly number[]): number => numbers.reduce((all, one) => all + one, 0)

const contents = (count: number, { bytes, salt }: { bytes: number; salt: string }): Record<string, string> =>
  Object.fromEntries(Array.from({ length: count }, (_, i) => [`d${i % 3}/${i}.txt`, `${i} `.padEnd(bytes, `${salt}.`)]))

test.each(['undo', 'redo'])('%s: many small files, some of them new', async (command) => {
  const before = contents(40, { bytes: 50, salt: 'one' })
  const scratch = new Scratch().init(before)
  const first = scratch.manifest()
  const after = Object.entries(contents(60, { bytes: 50, salt: 'two' }))
  scratch.turn('all', () => {
    scratch.remove(...Object.keys(before).slice(30))
    scratch.write(Object.fromEntries(after.filter((_, i) => i < 30 || i >= 40)))
  })
  const last = scratch.manifest()
  if (command === 'redo') scratch.ckpt('undo')
  const { env, placed, most } = watched(scratch)
  const { code } = await answer(env, command)
  expect([code, scratch.manifest()]).toEqual([0, command === 'undo' ? first : last])
  expect(placed).toHaveLength(command === 'undo' ? 40 : 50)
  expect(most.files).toBe(17) // with the one that is written meanwhile
  expect(fs.readdirSync(scratch.at('.git/ckpt/worktrees/@main/tmp'))).toEqual([])
})

test('of large ones no more wait than a disk has room for beside the rest', async () => {
  const MIB = 1024 * 1024
  const scratch = new Scratch().init(contents(6, { bytes: 6 * MIB, salt: 'one' }))
  scratch.turn('all', () => scratch.write(contents(6, { bytes: 6 * MIB, salt: 'two' })))
  const { env, placed, most } = watched(scratch)
  const { code } = await answer(env, 'undo')
  expect([code, placed.length]).toEqual([0, 6])
  expect(most).toEqual({ files: 3, bytes: 18 * MIB })
})
