// What refs were last moved to is written down at each marker: that costs what moves, however many refs there are. And when it is on the disk.
import fs from 'node:fs'
import path from 'node:path'
import { expect, onTestFinished, test } from 'vitest'
import type { Oid } from '../../src/core/ids.ts'
import { type Env, realEnv } from '../../src/env.ts'
import type { RefEdit, RefTip } from '../../src/git/refs.ts'
import { Store } from '../../src/git/store.ts'
import { noteMoves, readTips } from '../../src/git/tips.ts'
import { writeFileWhole } from '../../src/git/whole-file.ts'
import { Scratch } from '../support/scratch.ts'

const oid = (n: number) => n.toString(16).padStart(40, '0') as Oid

test('with hundreds of refs the file is added to, not written again with each move; all of them stay known', () => {
  const directory = new Scratch().base
  const real = realEnv()
  let written = 0
  const renameSync: typeof fs.renameSync = (from, to) => {
    written++
    real.files.renameSync(from, to)
  }
  const env = { ...real, files: { ...real.files, renameSync } }
  const move = (edits: RefEdit[]) => noteMoves(env, directory, { edits, sync: false })()
  const ref = (n: number) => `refs/ckpt/@main/session-${n}/live`
  move(Array.from({ length: 500 }, (_, n) => ({ ref: ref(n), from: null, to: oid(n + 1) })))
  const file = `${directory}/worktrees/@main/tips`
  written = 0
  let last = 1
  for (let i = 0; i < 300; i++) {
    const next = 10_000 + i
    move([{ ref: ref(0), from: oid(last), to: oid(next) }])
    last = next
    // Whatever was folded meanwhile, only the newest value of a ref is believed.
    expect([...readTips(env, directory, '@main')!.refs.get(ref(0))!]).toEqual([oid(last)])
  }
  expect(written).toBeLessThan(5)
  expect(fs.statSync(file).size).toBeLessThan(500_000)
  const { refs, overtaken } = readTips(env, directory, '@main')!
  expect(overtaken).toEqual([])
  expect(refs.size).toBe(500)
  expect([...refs.get(ref(0))!, ...refs.get(ref(499))!]).toEqual([oid(last), oid(500)])
})

test.each([false, true])(
  'a move of refs is on the disk when it returns, or when a daemon has its quiet moment (daemon: %s)',
  async (lives) => {
    const scratch = new Scratch().init()
    scratch.ckpt('snapshot')
    const directory = scratch.at('.git/ckpt')
    const real = realEnv()
    const opened = new Map<number, string>()
    const synced = new Set<string>()
    const files = {
      ...real.files,
      openSync: ((path, ...more) => {
        const fd = real.files.openSync(path, ...more)
        opened.set(fd, String(path).slice(directory.length + 1))
        return fd
      }) as typeof fs.openSync,
      fsyncSync: (fd: number) => {
        synced.add(opened.get(fd) ?? '')
        real.files.fsyncSync(fd)
      },
    }
    const sync: Env['sync'] = async (fd) => {
      synced.add(opened.get(fd) ?? '')
      await real.sync(fd)
    }
    const store = Store.open({ ...real, files, sync }, { directory, worktreeId: '@main', hash: 'sha1' })
    onTestFinished(() => store.close())
    if (lives) store.remember()
    const ref = 'refs/ckpt/@main/s/live'
    const [{ oid: to }] = (await store.refs('refs/ckpt/@main/manual')) as [RefTip]
    const blob = store.objects.write('blob', Buffer.from('written with it'))
    const loose = store.objects.loosePath(blob).slice(directory.length + 1)
    await store.moveRefs([{ ref, from: null, to }])
    // git syncs the ref itself where it is told to.
    const all = [loose, path.dirname(loose), 'worktrees/@main/tips', ...(lives ? [`store.git/${ref}`] : [])]
    expect(all.filter((file) => synced.has(file))).toEqual(lives ? [] : all)
    await store.syncInSteps(async () => undefined)
    expect(all.filter((file) => !synced.has(file))).toEqual([])
    if (!lives) return
    // A ref that git moves only when the quiet moment is over is synced in the next one.
    synced.clear()
    const moving = store.moveRefs([
      { ref, from: to, to: null },
      { ref: `${ref}2`, from: null, to },
    ])
    await store.syncInSteps(async () => undefined)
    await moving
    await store.syncInSteps(async () => undefined)
    expect(synced).toContain(`store.git/${ref}2`)
    // What is written and moved while others are served is synced before the ref that names it.
    store.objects.write('blob', Buffer.from('one more'))
    let isServed = false
    await store.syncInSteps(async () => {
      if (isServed) return
      isServed = true
      for (let n = 0; n < 20; n++) store.objects.write('blob', Buffer.from(`packed ${n}`))
      await store.moveRefs([{ ref, from: null, to }])
    })
    expect(isServed).toBe(true)
    expect(fs.readdirSync(`${directory}/store.git/unsynced`)).toEqual([])
  },
)

test.each([
  ['EINVAL', true],
  ['EIO', false],
])('where a sync fails with %s the file is written: %s', (code, isWritten) => {
  const { base } = new Scratch()
  const real = realEnv()
  const fsyncSync = () => {
    throw Object.assign(new Error(code), { code })
  }
  const write = () =>
    writeFileWhole({ ...real, files: { ...real.files, fsyncSync } }, `${base}/whole`, { content: 'content' })
  if (isWritten) write()
  else expect(write).toThrow(code)
  expect(fs.readdirSync(base).filter((name) => name.startsWith('whole'))).toEqual(isWritten ? ['whole'] : [])
})
