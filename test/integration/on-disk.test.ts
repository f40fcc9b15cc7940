/** What an undo or redo puts in its place is on disk first; files wait for that together, for one after the other takes far longer. */
import fs from 'node:fs'
import { setTimeout } from 'node:timers/promises'
import { expect, test } from 'vitest'
import type { Env, Files } from '../../src/env.ts'
import { amid } from '../support/amid.ts'
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

const OWN = '.git/ckpt/worktrees/@main'

/** Forty files that a turn changed. */
function forty(): { scratch: Scratch; first: Record<string, string>; last: Record<string, string> } {
  const scratch = new Scratch().init(contents(40, { bytes: 50, salt: 'one' }))
  const first = scratch.manifest()
  scratch.turn('all', () => scratch.write(contents(40, { bytes: 50, salt: 'two' })))
  return { scratch, first, last: scratch.manifest() }
}

const besideIn = (scratch: Scratch) => fs.readdirSync(scratch.at(`${OWN}/tmp`)).filter((name) => name.endsWith('.new'))

test.each([1, 17, 40])('promise 8: a file that cannot be closed (%i of 40): taken back, and told', async (nth) => {
  const { scratch, last } = forty()
  const env = envOf(scratch)
  const fresh = new Set<number>()
  let closed = 0
  const files: Files = {
    ...env.files,
    openSync: (at, ...more) => {
      const fd = fs.openSync(at, ...more)
      if (String(at).endsWith('.new')) fresh.add(fd)
      return fd
    },
    closeSync: (fd) => {
      fs.closeSync(fd)
      if (fresh.delete(fd) && ++closed === nth) throw Object.assign(new Error('EIO: close'), { code: 'EIO' })
    },
  }
  const { code, document } = await answer({ ...env, files }, 'undo')
  expect([code, document.error.message]).toEqual([
    1,
    expect.stringMatching(/^Writing failed at .* \(EIO\)\. .*taken back/),
  ])
  expect([scratch.manifest(), besideIn(scratch)]).toEqual([last, []])
  scratch.ckpt('undo')
})

/** No more than so many new files have room beside the others. */
function tight(scratch: Scratch, code: 'ENOSPC' | 'EMFILE', room: number): Env {
  const env = envOf(scratch)
  const refuse = () => {
    if (besideIn(scratch).length > room) throw Object.assign(new Error(code), { code })
  }
  const fresh = new Set<number>()
  const files: Files = {
    ...env.files,
    openSync: (at, ...more) => {
      const fd = fs.openSync(at, ...more)
      if (!String(at).endsWith('.new')) return fd
      fresh.add(fd)
      if (code === 'EMFILE') {
        try {
          refuse()
        } catch (error) {
          fs.closeSync(fd)
          fs.unlinkSync(at)
          throw error
        }
      }
      return fd
    },
    writeFileSync: (file, ...more) => {
      if (code === 'ENOSPC' && typeof file === 'number' && fresh.has(file)) refuse()
      fs.writeFileSync(file, ...more)
    },
    closeSync: (fd) => {
      fresh.delete(fd)
      fs.closeSync(fd)
    },
  }
  return { ...env, files }
}

test.each(['ENOSPC', 'EMFILE'] as const)(
  'where there is room for one only, one after the other is put in its place: %s',
  async (code) => {
    const { scratch, first, last } = forty()
    for (const [room, command, after] of [
      [1, 'undo', first],
      [5, 'redo', last],
    ] as const) {
      const { code: ended } = await answer(tight(scratch, code, room), command)
      expect([ended, scratch.manifest(), besideIn(scratch)]).toEqual([0, after, []])
    }
    const { code: ended, document } = await answer(tight(scratch, code, 0), 'undo')
    expect([ended, scratch.manifest(), besideIn(scratch)]).toEqual([1, last, []])
    expect(document.error.hints.join()).toMatch(code === 'EMFILE' ? /^ulimit -n/ : /^free some disk space/)
  },
)

test('what a killed undo left is finished where there is room for one only; where there is none, nothing more is taken up', async () => {
  const { scratch, first } = forty()
  const vars = amid(scratch, [{ call: 'renameSync', on: '/d1/', nth: 4, when: 'after', kill: true }])
  expect(scratch.runApart(['undo'], { vars }).code).toBe(128)
  const { document } = await answer(tight(scratch, 'ENOSPC', 0), 'status')
  expect(document.warnings.join()).toContain('cannot be finished now: writing failed')
  expect(besideIn(scratch)).toEqual([])
  await answer(tight(scratch, 'ENOSPC', 1), 'status')
  expect([scratch.manifest(), besideIn(scratch)]).toEqual([first, []])
  expect(scratch.ckpt('verify').problems).toEqual([])
})

test('an undo that could not be written down for sure is none, and nobody goes on with it', async () => {
  const { scratch, last } = forty()
  const env = envOf(scratch)
  const isDirectory = (fd: number) => fs.fstatSync(fd).ino === fs.statSync(scratch.at(OWN)).ino
  const failing = (isGone: boolean): Env => ({
    ...env,
    files: {
      ...env.files,
      fsyncSync: (fd) => {
        if (isDirectory(fd)) throw Object.assign(new Error('EIO: fsync'), { code: 'EIO' })
        fs.fsyncSync(fd)
      },
      unlinkSync: (at) => {
        if (isGone && String(at).endsWith('/journal.json'))
          throw Object.assign(new Error('EIO: unlink'), { code: 'EIO' })
        fs.unlinkSync(at)
      },
    },
  })
  const { code, document } = await answer(failing(false), 'undo')
  expect([code, document.error.message]).toEqual([1, expect.stringContaining('Your files were not touched')])
  scratch.ckpt('mark', 'prompt', '--session', 's', '--text', 'on')
  scratch.ckpt('mark', 'stop', '--session', 's')
  expect([scratch.manifest(), scratch.ckpt('list').turns.length]).toEqual([last, 2])
  const { document: half } = await answer(failing(true), 'undo', '--turns', '2')
  expect(half.error.message).toContain('is written down, and nothing of it is done yet')
  expect(scratch.ckpt('status').warnings.join()).toContain('A killed undo was finished.')
})

test('a directory that somebody closes while what comes into it waits is opened for that, and closed as they had it', () => {
  const scratch = new Scratch().init({ 'd/f': 'one\n' })
  scratch.turn('work', () => scratch.write({ 'd/f': 'two\n' }))
  const uid = scratch.handOver()
  const vars = amid(scratch, [{ call: 'chmodSync', on: '\\.new$', when: 'after', run: 'chmod 555 d' }])
  expect(scratch.runApart(['undo'], { vars, uid }).code).toBe(0)
  expect([scratch.read('d/f'), fs.statSync(scratch.at('d')).mode & 0o777]).toEqual(['one\n', 0o555])
  fs.chmodSync(scratch.at('d'), 0o755)
})

test('that the end of an undo is not on disk for sure does not make it none: it is told as done', async () => {
  const { scratch, first } = forty()
  const env = envOf(scratch)
  const own = fs.statSync(scratch.at(OWN)).ino
  let gone = false
  const files: Files = {
    ...env.files,
    unlinkSync: (at) => {
      fs.unlinkSync(at)
      if (String(at).endsWith('/journal.json')) gone = true
    },
    fsyncSync: (fd) => {
      if (gone && fs.fstatSync(fd).ino === own) throw Object.assign(new Error('EIO: fsync'), { code: 'EIO' })
      fs.fsyncSync(fd)
    },
  }
  const { code, document } = await answer({ ...env, files }, 'undo')
  expect([code, document.turns, scratch.manifest()]).toEqual([0, [1], first])
  scratch.ckpt('redo')
  gone = false
  const vars = amid(scratch, [{ call: 'renameSync', on: '/d1/', nth: 4, when: 'after', kill: true }])
  expect(scratch.runApart(['undo'], { vars }).code).toBe(128)
  const { document: finished } = await answer({ ...env, files }, 'status')
  expect(finished.warnings).toEqual(['A killed undo was finished.'])
})
