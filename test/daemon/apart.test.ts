// The daemon of a worktree whose store lies apart from it: found by whoever looks, and never taken for another one's.
import fs from 'node:fs'
import path from 'node:path'
import { expect, onTestFinished, test } from 'vitest'
import { alive } from '../support/daemon.ts'
import { until } from '../support/protocol.ts'
import { type Json, Scratch } from '../support/scratch.ts'

/** What commands print that were started somewhere. */
function inside(scratch: Scratch, cwd: string): (...args: string[]) => Json {
  return (...args) => {
    const { code, stdout } = scratch.run([...args, '--json'], { cwd })
    expect([args, code]).toEqual([args, 0])
    return JSON.parse(stdout)
  }
}

function start(ckpt: (...args: string[]) => Json): number {
  const { pid } = ckpt('daemon', 'start') as { pid: number }
  onTestFinished(() => {
    ckpt('daemon', 'stop')
  })
  return pid
}

const FAST = { mode: 'fast', barrier: 'ok' }
const numbers = ({ turns }: Json): number[] => turns.map(({ n }: Json) => n)

/** Every link that leads to a store, and where. */
function links(scratch: Scratch): Record<string, string> {
  const top = `${scratch.home}/state/ckpt/by-path`
  const found = fs.existsSync(top) ? (fs.readdirSync(top, { recursive: true }) as string[]) : []
  const those = found.filter((name) => fs.lstatSync(`${top}/${name}`).isSymbolicLink()).sort()
  return Object.fromEntries(
    those.map((name) => [`/${path.dirname(name)}`, path.relative(scratch.base, fs.readlinkSync(`${top}/${name}`))]),
  )
}

test('in a plain directory commands go through it, from its top and from below', () => {
  const scratch = new Scratch()
  const ckpt = inside(scratch, scratch.root)
  scratch.write({ 'a.txt': 'one\n', 'sub/b.txt': 'b\n' })
  ckpt('init')
  start(ckpt)
  const below = inside(scratch, scratch.at('sub'))
  expect(ckpt('mark', 'prompt', '--session', 's')).toMatchObject(FAST)
  scratch.write({ 'a.txt': 'two\n' })
  expect(below('mark', 'stop', '--session', 's')).toMatchObject(FAST)
  expect(below('undo').files).toMatchObject([{ path: 'a.txt', action: 'write' }])
  expect(scratch.read('a.txt')).toBe('one\n')
  ckpt('redo')
  expect(scratch.read('a.txt')).toBe('two\n')
  expect([ckpt('verify').problems, ckpt('daemon', 'status').state.misses]).toEqual([[], 0])
})

test('a plain directory in another one has its own store, with the daemon of the outer one at work', () => {
  const scratch = new Scratch()
  scratch.write({ 'a.txt': 'one\n', 'sub/b.txt': 'b\n', 'sub/deep/c.txt': 'c\n' })
  const outer = inside(scratch, scratch.root)
  outer('init')
  const outerPid = start(outer)
  const deep = inside(scratch, scratch.at('sub/deep'))
  deep('mark', 'prompt', '--session', 's')
  fs.mkdirSync(`${scratch.home}/state/ckpt`, { recursive: true })
  const inner = inside(scratch, scratch.at('sub'))
  // From outside: in a directory of one that has a store `init` finds that.
  fs.renameSync(scratch.at('sub'), `${scratch.base}/sub`)
  inside(scratch, `${scratch.base}/sub`)('init')
  fs.renameSync(`${scratch.base}/sub`, scratch.at('sub'))
  inner('mark', 'prompt', '--session', 'inner')
  // By whatever way the outer daemon was asked.
  fs.rmSync(`${scratch.home}/state/ckpt/by-path${scratch.root}/sub`, { recursive: true })
  deep('mark', 'stop', '--session', 'inner')
  expect(inner('list', '--all-sessions').turns).toMatchObject([{ session: 'inner', status: 'completed' }])
  expect(outer('list', '--all-sessions').turns).toMatchObject([{ session: 's', status: 'running' }])
  expect(alive(outerPid)).toBe(true)
})

test('a plain directory that becomes a repository amid a turn: what it ignores is ignored at once, and the daemon ends', async () => {
  const scratch = new Scratch()
  const ckpt = inside(scratch, scratch.root)
  scratch.write({ 'a.txt': 'one\n' })
  ckpt('init')
  const pid = start(ckpt)
  ckpt('mark', 'prompt', '--session', 's')
  scratch.git('init', '-q', '-b', 'main')
  scratch.write({ '.gitignore': 'out\n', out: 'made\n', 'a.txt': 'two\n' })
  expect(ckpt('mark', 'stop', '--session', 's').checkpoint).toMatchObject({ ignoredCount: 1 })
  await until(() => !alive(pid))
  expect(ckpt('daemon', 'start')).toMatchObject({ started: true })
  expect(ckpt('mark', 'prompt', '--session', 's')).toMatchObject(FAST)
  expect(numbers(ckpt('list'))).toEqual([2, 1])
})

test('a repository in the directory above makes it no worktree of its own any more', async () => {
  const scratch = new Scratch()
  scratch.write({ 'sub/a.txt': 'one\n' })
  const sub = inside(scratch, scratch.at('sub'))
  sub('init')
  const pid = start(sub)
  sub('mark', 'prompt', '--session', 's')
  scratch.git('init', '-q', '-b', 'main')
  sub('mark', 'prompt', '--session', 's')
  expect(sub('status').root).toBe(scratch.root)
  expect(numbers(inside(scratch, scratch.root)('list'))).toEqual([1])
  await until(() => !alive(pid))
})

test('a repository whose store lies apart is fast, loses its .git amid a turn, and goes on as a plain directory', async () => {
  const scratch = new Scratch().init({ 'a.txt': 'one\n', '.gitignore': 'out\n', out: 'made\n' })
  scratch.write({
    '../home/.config/ckpt/.checkpointrc': JSON.stringify({ store: { location: `${scratch.base}/stores` } }),
  })
  const ckpt = inside(scratch, scratch.root)
  const pid = start(ckpt)
  expect(ckpt('mark', 'prompt', '--session', 's')).toMatchObject(FAST)
  scratch.write({ 'a.txt': 'two\n' })
  scratch.remove('.git')
  ckpt('mark', 'stop', '--session', 's')
  await until(() => !alive(pid))
  expect(ckpt('undo').turns).toEqual([1])
  expect([scratch.read('a.txt'), scratch.read('out')]).toEqual(['one\n', 'made\n'])
  start(ckpt)
  expect(ckpt('mark', 'prompt', '--session', 's')).toMatchObject(FAST)
  expect(ckpt('verify').problems).toEqual([])
})

test('the link that leads there goes along with a directory that is moved, and goes where the store is in the git directory', () => {
  const scratch = new Scratch()
  const ckpt = inside(scratch, scratch.root)
  scratch.write({ 'a.txt': 'one\n' })
  ckpt('init')
  const store = path.relative(scratch.base, ckpt('init').store.path)
  expect(links(scratch)).toEqual({ [scratch.root]: `${store}/worktrees/@main` })
  const to = `${scratch.base}/elsewhere`
  fs.renameSync(scratch.root, to)
  const there = inside(scratch, to)
  there('mark', 'prompt', '--session', 's')
  expect(links(scratch)).toEqual({ [to]: `${store}/worktrees/@main` })
  fs.mkdirSync(scratch.root)
  scratch.init()
  const location = `${scratch.base}/stores`
  scratch.write({ '../home/.config/ckpt/.checkpointrc': JSON.stringify({ store: { location } }) })
  ckpt('mark', 'prompt', '--session', 's')
  expect(links(scratch)[scratch.root]).toMatch(/^stores\//)
  scratch.remove('../home/.config/ckpt/.checkpointrc')
  ckpt('mark', 'prompt', '--session', 's')
  expect(Object.keys(links(scratch))).toEqual([to])
})

test('where no link can be written commands do their own work', () => {
  const scratch = new Scratch()
  const ckpt = inside(scratch, scratch.root)
  scratch.write({ '../home/state/ckpt/by-path': 'in the way\n' })
  ckpt('init')
  start(ckpt)
  expect(ckpt('mark', 'prompt', '--session', 's').checkpoint.kind).toBe('before')
  expect(numbers(ckpt('list'))).toEqual([1])
})

test('another repository in the place of the one it held, whose store lies apart: what is recorded is of that one', async () => {
  const scratch = new Scratch().init({ 'a.txt': 'one\n' })
  const location = `${scratch.base}/stores`
  scratch.write({ '../home/.config/ckpt/.checkpointrc': JSON.stringify({ store: { location } }) })
  const ckpt = inside(scratch, scratch.root)
  const pid = start(ckpt)
  ckpt('mark', 'prompt', '--session', 's')
  scratch.remove('.git')
  scratch.init({ 'a.txt': 'two\n' }) // mostly with the very inode number
  const { checkpoint } = ckpt('mark', 'stop', '--session', 's')
  expect(checkpoint.head).toBe(scratch.git('rev-parse', 'HEAD').trim())
  await until(() => !alive(pid))
})
