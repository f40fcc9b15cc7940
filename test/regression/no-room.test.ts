// Where nothing can be written: a file system that is full, or mounted for reading only.
import { spawn } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import fs from 'node:fs'
import { expect, test } from 'vitest'
import type { Env } from '../../src/env.ts'
import { gitFailure } from '../../src/git/process.ts'
import { answer, envOf } from '../support/in-process.ts'
import { type Json, Scratch } from '../support/scratch.ts'

test('on a full disk prune drops what nothing needs first, and so makes the room that it needs to pack', async () => {
  const scratch = new Scratch().init()
  for (const n of [1, 2, 3]) scratch.turn(`${n}`, () => scratch.write({ 'big.bin': randomBytes(100_000) }))
  const objects = scratch.at('.git/ckpt/store.git/objects')
  const used = () =>
    fs
      .readdirSync(objects, { recursive: true, withFileTypes: true })
      .reduce((sum, one) => sum + (one.isFile() ? fs.statSync(`${one.parentPath}/${one.name}`).size : 0), 0)
  const before = used()
  const env = envOf(scratch)
  const full = ['-c', 'echo "fatal: write error. Out of diskspace" >&2; exit 128']
  const { code, document } = await answer(
    {
      ...env,
      spawn: ((command: string, args: string[], options: object) =>
        args.includes('repack') && used() > before - 100_000
          ? spawn('sh', full, options)
          : spawn(command, args, options)) as Env['spawn'],
    },
    'prune',
    '--keep',
    '1',
  )
  expect(code).toBe(0)
  expect(document.removed.map(({ turn }: Json) => turn)).toEqual([1, 2])
  expect(used()).toBeLessThan(before - 100_000)
  expect(scratch.run(['verify']).code).toBe(0)
})

test('a git that had no room says so, and what to do', () => {
  for (const said of [
    'fatal: write error: No space left on device',
    "fatal: sha1 file 'x' write error. Out of diskspace",
    'error: cannot write: Disk quota exceeded',
  ]) {
    const { code, message, hints } = gitFailure(['bundle'], { code: 128, stdout: Buffer.alloc(0), stderr: `${said}\n` })
    expect([code, message, hints]).toEqual([
      'INTERNAL',
      `The disk is full: git bundle could not write (${said}).`,
      ['free some space, then run the command again'],
    ])
  }
})

test('read-only: the message names what could not be written, not what could not be cleaned up after that', async () => {
  const scratch = new Scratch().init()
  scratch.turn('one', () => scratch.write({ 'a.txt': 'two\n' }))
  const refused = (call: string) => (path: fs.PathLike) => {
    throw Object.assign(new Error(`EROFS: read-only file system, ${call} '${path}'`), { code: 'EROFS' })
  }
  const env = envOf(scratch)
  const files = {
    ...env.files,
    writeFileSync: refused('open'),
    unlinkSync: refused('unlink'),
  } as unknown as Env['files']
  const { code, document } = await answer({ ...env, files }, 'undo')
  expect([code, document.error.code]).toEqual([1, 'INTERNAL'])
  expect(document.error.message).toMatch(
    /^The store cannot be written \(EROFS: .*, open '.*\/lock\.[^']*'\)\. Your files/,
  )
})
