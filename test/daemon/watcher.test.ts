// What the watcher vouches for, and when it does not.
import fs from 'node:fs'
import path from 'node:path'
import { expect, onTestFinished, test } from 'vitest'
import { KernelQueue } from '../../src/daemon/kernel-queue.ts'
import { Watcher } from '../../src/daemon/watcher.ts'
import { eventually } from '../support/protocol.ts'
import { Scratch } from '../support/scratch.ts'

async function watching({ room = 16384 } = {}) {
  const queue = new KernelQueue(room)
  const { base, root } = new Scratch()
  fs.mkdirSync(path.join(root, 'd'))
  const heard: string[] = []
  const watcher = new Watcher({
    root,
    skip: () => false,
    onChange: (one) => heard.push(one),
    queue,
  })
  onTestFinished(() => watcher.stop())
  await watcher.start()
  watcher.look()
  watcher.settle(true)
  expect(watcher.look().hint).toEqual({ paths: new Set(), subtrees: new Set() })
  /** Resolves when all that happened before was heard. */
  const barrier = async (cookie: string) => {
    fs.writeFileSync(path.join(root, cookie), '')
    await eventually(() => expect(heard).toContain(cookie), { interval: 1 })
  }
  return { base, root, queue, watcher, heard, barrier }
}

test('events of other watches of the process count: where they fill the queue those of the worktree were lost', async () => {
  const { base, root, queue, watcher, barrier } = await watching({ room: 400 })
  const other = path.join(base, 'other')
  fs.mkdirSync(other)
  const also = queue.watch(other, () => undefined)
  onTestFinished(() => also.close())
  fs.writeFileSync(path.join(other, 'few'), '')
  await barrier('one')
  expect(watcher.doubt).toBe(null)
  for (let i = 0; i < 200; i++) fs.writeFileSync(path.join(other, String(i)), '')
  fs.writeFileSync(path.join(root, 'd/file'), 'x')
  await barrier('two')
  expect([watcher.look().hint, watcher.doubt]).toEqual([null, 'more changes at once than the kernel reports for sure'])
})

test('a directory made anew is told whole once, and then by its events', async () => {
  const { root, watcher, barrier } = await watching()
  fs.rmdirSync(path.join(root, 'd'))
  fs.mkdirSync(path.join(root, 'd'))
  await barrier('one')
  expect([...watcher.look().hint!.subtrees]).toEqual(['d'])
  watcher.settle(false)
  fs.writeFileSync(path.join(root, 'd/file'), 'x')
  await barrier('two')
  const { hint } = watcher.look()
  expect([[...hint!.subtrees], [...hint!.paths].sort()]).toEqual([[], ['d/file', 'two']])
})

test('directories that came, and went, while the queue of the kernel was full are watched, each by its own name', async () => {
  const { root, watcher, barrier } = await watching()
  const at = (name: string) => path.join(root, name)
  fs.mkdirSync(at('gone'))
  fs.mkdirSync(at('anew/deep'), { recursive: true })
  await barrier('one')
  watcher.look()
  watcher.settle(true)
  const room = Number(fs.readFileSync('/proc/sys/fs/inotify/max_queued_events', 'utf8'))
  const fd = fs.openSync(at('d/file'), 'a')
  const other = fs.openSync(at('d/other'), 'a')
  for (let i = 0; i < room; i++) fs.writeSync(i % 2 === 0 ? fd : other, 'x') // two of the same in a row are one
  fs.mkdirSync(at('new/deep'), { recursive: true })
  fs.rmdirSync(at('gone'))
  fs.renameSync(at('anew'), at('old'))
  fs.mkdirSync(at('anew/deep'), { recursive: true })
  await eventually(() => expect(watcher.watched).toBe(8)) // the root, d, new, new/deep, anew, anew/deep, old, old/deep
  await eventually(() => expect(watcher.pending && watcher.doubt === null).toBe(false))
  await barrier('two')
  expect([watcher.look().hint, watcher.doubt]).toEqual([null, expect.stringContaining('more changes at once')])
  watcher.settle(true)
  for (const name of ['new/a', 'new/deep/b', 'anew/deep/c', 'old/deep/d']) fs.writeFileSync(at(name), 'x')
  await barrier('three')
  expect([...watcher.look().hint!.paths].sort()).toEqual(['anew/deep/c', 'new/a', 'new/deep/b', 'old/deep/d', 'three'])
})

test.each([
  ['the times of a directory', (root: string) => fs.utimesSync(path.join(root, 'd'), 1, 1)],
  ['a new directory', (root: string) => fs.mkdirSync(path.join(root, 'd/new'))],
])('%s, while a directory above the worktree is away: nothing is vouched for any more', async (_, change) => {
  const { base, root, watcher } = await watching()
  const away = `${base}.away`
  fs.renameSync(base, away)
  change(path.join(away, path.basename(root)))
  await eventually(() => expect(watcher.failure).toMatch(/away while it was watched/))
  fs.renameSync(away, base)
  watcher.look()
  watcher.settle(true)
  expect([watcher.look().hint, watcher.doubt]).toEqual([null, watcher.failure])
})

test.each(['out of the worktree', 'to another name'])(
  'events of a directory that went %s count: where they fill the queue others were lost',
  async (where) => {
    const { base, root, watcher, barrier } = await watching({ room: 400 })
    const to = where === 'to another name' ? path.join(root, 'e') : path.join(base, 'out')
    fs.renameSync(path.join(root, 'd'), to)
    for (let i = 0; i < 200; i++) fs.writeFileSync(path.join(to, `${i}`), '')
    await barrier('cookie')
    expect([watcher.look().hint, watcher.doubt]).toEqual([null, expect.stringContaining('more changes at once')])
    watcher.settle(true)
    await barrier('cookie1') // its watches are set anew by now
    watcher.look()
    watcher.settle(true)
    // A few of them are nothing odd, and after a while they are not heard any more.
    fs.writeFileSync(path.join(to, 'one'), '')
    await barrier('cookie2')
    expect(watcher.look().hint?.paths.has('d/one')).toBe(false)
  },
)

test('while directories wait for their watches nothing is vouched for, and then each of them is told', async () => {
  const { base, root, watcher, barrier } = await watching()
  const outside = path.join(base, 'outside')
  for (let i = 0; i < 3000; i++) fs.mkdirSync(path.join(outside, `d${i % 30}/e${i}`), { recursive: true })
  fs.renameSync(outside, path.join(root, 'moved'))
  await eventually(() => expect(watcher.pending).toBe(true), { interval: 1 })
  expect([watcher.look().hint, watcher.doubt]).toEqual([null, null])
  watcher.settle(true)
  expect(watcher.pending).toBe(true)
  await eventually(() => expect(watcher.watched).toBe(3000 + 30 + 3))
  const fresh = watcher.look().hint!.subtrees
  watcher.settle(true)
  expect(fresh.size).toBeGreaterThan(0)
  fs.writeFileSync(path.join(root, 'moved/d29/e2999/file'), 'x')
  await barrier('cookie')
  expect([...watcher.look().hint!.paths]).toContain('moved/d29/e2999/file')
})

test('where the worktree itself was replaced nothing is vouched for any more', async () => {
  const { base, root, watcher } = await watching()
  fs.renameSync(root, path.join(base, 'away'))
  fs.mkdirSync(root)
  await eventually(() => expect(watcher.failure).toMatch(/removed or replaced/))
  watcher.look()
  watcher.settle(true)
  expect([watcher.look().hint, watcher.doubt]).toEqual([null, watcher.failure])
})

test('names are kept up to a number: with more the next snapshot is a scan', async () => {
  const { root, watcher, barrier } = await watching({ room: 10 ** 9 })
  for (let i = 0; i < 51_000; i++) {
    fs.closeSync(fs.openSync(path.join(root, `t${i}`), 'w'))
    fs.unlinkSync(path.join(root, `t${i}`))
    if (i % 1000 === 0) await new Promise((resolve) => setTimeout(resolve, 1)) // the kernel keeps some 16,000
  }
  await barrier('one')
  expect(watcher.pending).toBe(true)
  expect(watcher.doubt).not.toBeNull()
  const { hint, seen } = watcher.look()
  expect([hint, seen < 50_000, seen > 0]).toEqual([null, true, true])
  watcher.settle(true)
  fs.writeFileSync(path.join(root, 'd/file'), 'x')
  await barrier('two')
  expect([...watcher.look().hint!.paths].sort()).toEqual(['d/file', 'two'])
})
