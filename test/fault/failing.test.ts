/**
 * One call that fails, for each call of the file system that an undo, a redo or a commit makes: all is as it was, or as it
 * was to be, or the next command finishes it; and what is said is so.
 */
import { execFileSync } from 'node:child_process'
import fs from 'node:fs'
import { expect, test } from 'vitest'
import { type Env, type Files, realEnv } from '../../src/env.ts'
import { Place, STRIDE } from '../support/fault.ts'
import { answer, envOf } from '../support/in-process.ts'
import { Scratch } from '../support/scratch.ts'

const CALLS = [
  'renameSync',
  'linkSync',
  'unlinkSync',
  'rmdirSync',
  'chmodSync',
  'mkdirSync',
  'symlinkSync',
  'fsyncSync',
  'writeFileSync',
  'sync',
] as const
/** Every one with `npm run test:fault`. */
const STEP = STRIDE === 1 ? 1 : 53

/** The Nth such call fails. (Not one that lets a lock go: its holder, this process, lives on.) */
function failing(
  call: 'sync' | (keyof Files & keyof typeof fs),
  nth: number,
): { env: Partial<Env>; failed: () => boolean } {
  let calls = 0
  const fail = (args: unknown[]) => {
    if (!String(args[0]).endsWith('/lock') && ++calls === nth)
      throw Object.assign(new Error(`EIO: i/o error, ${call} '${String(args[0])}'`), { code: 'EIO' })
  }
  const failed = () => calls >= nth
  if (call === 'sync') {
    const sync: Env['sync'] = async (fd) => {
      fail([fd])
      await realEnv().sync(fd)
    }
    return { env: { sync }, failed }
  }
  const own = (...args: unknown[]) => {
    fail(args)
    return (fs[call] as (...args: unknown[]) => unknown)(...args)
  }
  return { env: { files: { ...fs, [call]: own } }, failed }
}

test.each(['undo', 'redo'])('promise 8: a disk that fails once in the middle of it: %s', async (command) => {
  const scratch = new Scratch().init({ 'changed.txt': 'one\n', 'gone.txt': 'gone\n', 'd/in.txt': 'in\n', m: 'm\n' })
  fs.symlinkSync('m', scratch.at('link'))
  scratch.turn('all of it', () => {
    scratch.remove('gone.txt', 'd', 'link')
    scratch.write({ 'changed.txt': 'two\n', d: 'a file\n', 'new/made.txt': 'made\n' })
    fs.symlinkSync('d', scratch.at('link'))
    fs.chmodSync(scratch.at('m'), 0o600)
  })
  if (command === 'redo') scratch.ckpt('undo')
  const start = new Place(scratch, scratch.root)
  const before = start.manifest
  const finished = start.copy('finished')
  await finished.ckpt(command)
  const after = finished.manifest
  for (const call of CALLS) {
    for (let nth = 1; ; nth += STEP) {
      const place = start.copy('failing')
      const { env, failed } = failing(call, nth)
      const { code, document } = await answer({ ...envOf(scratch), cwd: place.root, ...env }, command)
      if (!failed()) {
        place.remove()
        break
      }
      const said = JSON.stringify([call, nth, code, document.error?.message])
      const now = place.manifest
      if (code === 0) expect(now, said).toEqual(after)
      else if (/taken back\.|not touched/.test(document.error.message)) expect(now, said).toEqual(before)
      await place.ckpt('list')
      if (JSON.stringify(place.manifest) === JSON.stringify(before)) await place.ckpt(command)
      expect(place.manifest, said).toEqual(after)
      expect((await place.try('verify')).document.problems).toEqual([])
      place.remove()
    }
  }
})

test('promise 8: a disk that fails once in the middle of it: commit', async () => {
  const scratch = new Scratch().init({ 'changed.txt': 'one\n', 'gone.txt': 'gone\n', 'd/in.txt': 'in\n' })
  scratch.git('config', 'user.name', 'somebody')
  scratch.git('config', 'user.email', 'somebody@example.com')
  scratch.turn('all of it', () => {
    scratch.remove('gone.txt', 'd')
    scratch.write({ 'changed.txt': 'two\n', d: 'a file\n', 'new/made.txt': 'made\n' })
  })
  scratch.write({ 'staged.txt': 'mine\n' })
  scratch.git('add', 'staged.txt')
  const start = new Place(scratch, scratch.root)
  // As if its process had ended: this one lives on.
  const pid = Number(execFileSync('sh', ['-c', 'echo $$']).toString())
  const argv = ['commit', '-m', 'the turn']
  for (const call of [...CALLS, 'openSync', 'readFileSync', 'readdirSync', 'writeSync'] as const) {
    for (let nth = 1; ; nth += STEP) {
      const place = start.copy('failing')
      const git = (...args: string[]) => execFileSync('git', args, { cwd: place.root, env: scratch.vars }).toString()
      const { env, failed } = failing(call, nth)
      const { code, document } = await answer({ ...envOf(scratch), cwd: place.root, pid, ...env }, ...argv)
      if (!failed()) {
        place.remove()
        break
      }
      const said = JSON.stringify([call, nth, code, document.error?.message ?? document.warnings])
      expect(git('log', '--format=%s'), said).toBe(code === 0 ? 'the turn\nfirst\n' : 'first\n')
      await place.ckpt('status')
      expect(git('diff', '--cached', '--name-only'), said).toBe('staged.txt\n')
      await place.ckpt(...argv)
      expect(git('log', '--format=%s'), said).toBe('the turn\nfirst\n')
      expect(git('status', '--porcelain'), said).toBe('A  staged.txt\n')
      expect(place.manifest, said).toEqual(start.manifest)
      expect((await place.try('verify')).document.problems).toEqual([])
      place.remove()
    }
  }
})
