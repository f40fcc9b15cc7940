// A store outside of the git directory: the same one before and after `.git` is there, from every directory of the worktree.
import { execFileSync, spawnSync } from 'node:child_process'
import fs from 'node:fs'
import os from 'node:os'
import path from 'node:path'
import { expect, test } from 'vitest'
import { Scratch } from '../support/scratch.ts'

/** The user's own file puts stores into a directory. */
function apart(): { scratch: Scratch; stores: () => string[] } {
  const scratch = new Scratch()
  const location = path.join(scratch.base, 'stores')
  scratch.write({ '../home/.config/ckpt/.checkpointrc': JSON.stringify({ store: { location } }) })
  return { scratch, stores: () => fs.readdirSync(location) }
}

const numbers = (scratch: Scratch, cwd = scratch.root) =>
  JSON.parse(scratch.run(['list', '--json'], { cwd }).stdout).turns.map(({ n }: { n: number }) => n)

for (const format of ['sha1', 'sha256'])
  test(`what was recorded (${format}) is there after .git was deleted, and after git init`, () => {
    const { scratch, stores } = apart()
    scratch.git('init', '-q', '-b', 'main', `--object-format=${format}`)
    scratch.write({ 'a.txt': 'one\n', 'sub/b.txt': 'b\n' })
    scratch.git('add', '-A')
    scratch.git('commit', '-q', '-m', 'first')
    scratch.turn('one', () => scratch.write({ 'a.txt': 'two\n' }))
    scratch.turn('two', () => scratch.write({ 'sub/b.txt': 'c\n' }))
    const made = stores()
    scratch.remove('.git')
    expect(numbers(scratch)).toEqual([2, 1])
    expect(numbers(scratch, scratch.at('sub'))).toEqual([2, 1])
    expect(scratch.ckpt('init')).toMatchObject({ created: false })
    scratch.ckpt('undo')
    expect(scratch.read('sub/b.txt')).toBe('b\n')
    scratch.ckpt('restore', '1:before', '--force')
    expect(scratch.read('a.txt')).toBe('one\n')
    scratch.turn('three', () => scratch.write({ 'a.txt': 'three\n' }))
    expect(scratch.ckpt('verify').problems).toEqual([])
    if (format === 'sha1') {
      scratch.git('init', '-q', '-b', 'main')
      expect(numbers(scratch)).toEqual([3, 1])
    }
    expect(stores()).toEqual(made)
  })

test('a plain directory whose store is away is one without a store, and is told where it was', () => {
  const { scratch, stores } = apart()
  scratch.write({ 'a.txt': 'a\n' })
  scratch.ckpt('init')
  scratch.turn('one', () => scratch.write({ 'a.txt': 'b\n' }))
  const name = stores().find((one) => one !== 'owners')
  const location = path.join(scratch.base, 'stores')
  fs.renameSync(location, `${location}.away`)
  for (const command of [['list'], ['undo'], ['mark', 'prompt', '--session', 's']]) {
    const { code, document } = scratch.tryCkpt(...command)
    expect([code, document.error.code, document.error.message]).toEqual([
      9,
      'NOT_INITIALIZED',
      expect.stringContaining(`were in ${location}/${name}, which is not there. Nothing was`),
    ])
  }
  fs.renameSync(`${location}.away`, location)
  expect(numbers(scratch)).toEqual([1])
})

test('a plain directory is found from below, and keeps its store when it becomes a repository', () => {
  const { scratch, stores } = apart()
  scratch.write({ 'sub/b.txt': 'b\n' })
  const sub = scratch.at('sub')
  // Nothing is made, and nothing found, where nobody asked for it.
  expect(scratch.run(['list'], { cwd: sub }).code).toBe(9)
  scratch.ckpt('init')
  const made = stores()
  scratch.turn('one', () => scratch.write({ 'sub/b.txt': 'c\n' }))
  expect(numbers(scratch, sub)).toEqual([1])
  expect(JSON.parse(scratch.run(['init', '--json'], { cwd: sub }).stdout).created).toBe(false)
  scratch.git('init', '-q', '-b', 'main')
  expect(numbers(scratch, sub)).toEqual([1])
  scratch.ckpt('undo')
  expect(scratch.read('sub/b.txt')).toBe('b\n')
  expect(stores()).toEqual(made)
})

test('a place inside the worktree is refused, with what to change', () => {
  const { scratch } = apart()
  scratch.write({ '../home/.config/ckpt/.checkpointrc': JSON.stringify({ store: { location: scratch.at('stores') } }) })
  scratch.git('init', '-q', '-b', 'main')
  expect(scratch.tryCkpt('snapshot').document.error).toMatchObject({
    code: 'BAD_ROOT',
    hints: [`set store.location to a directory outside of ${scratch.root}`],
  })
  expect(scratch.exists('stores')).toBe(false)
})

test('a file of the user that is invalid is said, wherever the command was started', () => {
  const { scratch } = apart()
  scratch.write({ '../home/.config/ckpt/.checkpointrc': '{"store":{"location":"here"}}', 'sub/b.txt': 'b\n' })
  for (const cwd of [scratch.root, scratch.at('sub')])
    expect(JSON.parse(scratch.run(['list', '--json'], { cwd }).stdout).error.code).toBe('CONFIG')
})

test('a store from before is named until the new one is made, and by status for as long as it is there', () => {
  const scratch = new Scratch().init()
  scratch.turn('one', () => scratch.write({ 'a.txt': 'two\n' }))
  const config = '../home/.config/ckpt/.checkpointrc'
  scratch.write({ [config]: JSON.stringify({ store: { location: path.join(scratch.base, 'stores') } }) })
  const told = [
    `Earlier checkpoints of this repository are in ${scratch.at('.git/ckpt')}, and store.location names another place: with "git" there they are seen again.`,
  ]
  for (const command of ['list', 'status', 'list']) expect(scratch.ckpt(command).warnings).toEqual(told)
  expect(scratch.ckpt('mark', 'prompt', '--session', 's').warnings).toContain(told[0])
  expect(scratch.ckpt('mark', 'stop', '--session', 's').warnings).toEqual([])
  expect(scratch.ckpt('list').warnings).toEqual([])
  expect(scratch.ckpt('status').warnings).toEqual(told)
  scratch.remove(config)
  expect(scratch.ckpt('status').warnings).toEqual([])
  scratch.ckpt('undo')
  expect(scratch.read('a.txt')).toBe('one\n')
})

/** Whether the file system says when a directory was made (statx(2)). */
function tellsBirth(): boolean {
  const made = fs.mkdtempSync(path.join(os.tmpdir(), 'ckpt-born-'))
  const { birthtimeNs } = fs.statSync(made, { bigint: true })
  fs.rmdirSync(made)
  return birthtimeNs > 0n
}
const testMoves = test.skipIf(!tellsBirth())

/** Moves the worktree to another name beside it. */
function moved(scratch: Scratch, name: string): string {
  const to = path.join(scratch.base, name)
  fs.renameSync(scratch.root, to)
  return to
}

const run = (scratch: Scratch, cwd: string, ...args: string[]) => {
  const { code, stdout } = scratch.run([...args, '--json'], { cwd })
  return { code, document: JSON.parse(stdout) }
}

testMoves('a plain directory that is moved keeps its store, and another one in its place has none of it', () => {
  const scratch = new Scratch()
  scratch.write({ 'sub/b.txt': 'b\n' })
  scratch.ckpt('init')
  scratch.turn('one', () => scratch.write({ 'sub/b.txt': 'c\n' }))
  scratch.turn('two', () => scratch.write({ 'sub/b.txt': 'd\n' }))
  const to = moved(scratch, 'elsewhere')
  expect(numbers(scratch, path.join(to, 'sub'))).toEqual([2, 1])
  expect(run(scratch, to, 'verify').document.problems).toEqual([])
  expect(run(scratch, to, 'undo').code).toBe(0)
  expect(fs.readFileSync(path.join(to, 'sub/b.txt'), 'utf8')).toBe('c\n')
  // Whoever writes says where the directory is now.
  scratch.write({ 'sub/b.txt': 'b\n' })
  expect(scratch.tryCkpt('list').code).toBe(9)
  expect(scratch.ckpt('init').created).toBe(true)
  scratch.turn('other', () => scratch.write({ 'sub/b.txt': 'other\n' }))
  expect([numbers(scratch), numbers(scratch, to)]).toEqual([[1], [1]])
  expect(run(scratch, to, 'redo').document.turns).toEqual([2])
  scratch.ckpt('undo')
  expect([scratch.read('sub/b.txt'), fs.readFileSync(path.join(to, 'sub/b.txt'), 'utf8')]).toEqual(['b\n', 'd\n'])
  // It becomes a repository, and is moved once more.
  scratch.git('-C', to, 'init', '-q', '-b', 'main')
  fs.renameSync(to, `${to}-again`)
  expect(numbers(scratch, `${to}-again`)).toEqual([2, 1])
})

test('where it cannot be kept whose a store is, everything else works', () => {
  const scratch = new Scratch()
  scratch.write({ 'b.txt': 'b\n', '../home/state/ckpt/owners': 'a file in the way' })
  expect(scratch.ckpt('init').created).toBe(true)
  scratch.turn('one', () => scratch.write({ 'b.txt': 'c\n' }))
  scratch.ckpt('undo')
  expect(scratch.read('b.txt')).toBe('b\n')
})

testMoves('a repository that is moved keeps a store that lies elsewhere, and the gate sees its boundary', () => {
  const { scratch, stores } = apart()
  scratch.init()
  scratch.ckpt('init', '--hooks')
  scratch.turn('one', () => scratch.write({ 'a.txt': 'two\n' }))
  scratch.ckpt('undo')
  const made = stores()
  const to = moved(scratch, 'elsewhere')
  fs.writeFileSync(path.join(to, 'new.txt'), 'new\n')
  const git = (...args: string[]) => spawnSync('git', args, { cwd: to, env: scratch.vars })
  const commit = () => git('-c', 'user.name=u', '-c', 'user.email=u@example.com', 'commit', '-qm', 'y').status
  git('add', 'new.txt')
  expect(commit()).toBe(1)
  expect(
    run(scratch, to, 'hooks', 'status').document.hooks.map((hook: { fires: boolean }) => hook.fires),
  ).not.toContain(false)
  expect(run(scratch, to, 'redo').document.boundary).toBe(null)
  expect(commit()).toBe(0)
  expect(stores()).toEqual(made)
})

testMoves(
  'a plain directory that was copied and removed is no longer known: the store of one with its name is told of',
  () => {
    const scratch = new Scratch()
    scratch.write({ 'b.txt': 'b\n' })
    scratch.ckpt('init')
    scratch.turn('one', () => scratch.write({ 'b.txt': 'c\n' }))
    const to = path.join(scratch.base, 'other disk', path.basename(scratch.root))
    fs.cpSync(scratch.root, to, { recursive: true })
    const hints = () => run(scratch, to, 'list').document.error.hints
    expect(hints()[0]).toContain('ckpt init') // that one is still there
    fs.rmSync(scratch.root, { recursive: true })
    const [command, about] = hints()[0].split('   ')
    expect(about).toContain(scratch.root)
    execFileSync('sh', ['-c', command])
    expect(numbers(scratch, to)).toEqual([1])
    expect(run(scratch, to, 'undo').code).toBe(0)
    expect(fs.readFileSync(path.join(to, 'b.txt'), 'utf8')).toBe('b\n')
  },
)

testMoves(
  'a repository that was moved, and whose .git was deleted then, has its store still, and after git init',
  () => {
    const { scratch, stores } = apart()
    scratch.init()
    scratch.turn('one', () => scratch.write({ 'a.txt': 'two\n' }))
    const [made, to] = [stores(), moved(scratch, 'elsewhere')]
    expect(run(scratch, to, 'snapshot').code).toBe(0)
    fs.rmSync(path.join(to, '.git'), { recursive: true })
    expect(numbers(scratch, to)).toEqual([1])
    expect(run(scratch, to, 'undo').code).toBe(0)
    expect(fs.readFileSync(path.join(to, 'a.txt'), 'utf8')).toBe('one\n')
    execFileSync('git', ['init', '-q', '-b', 'main'], { cwd: to, env: scratch.vars })
    expect(run(scratch, to, 'redo')).toMatchObject({ code: 0, document: { warnings: [] } })
    expect(numbers(scratch, to)).toEqual([1])
    expect(stores()).toEqual(made)
  },
)

testMoves('one that comes into the old place has none of it, though the .git of the one that was moved is gone', () => {
  const { scratch, stores } = apart()
  scratch.init()
  scratch.turn('one', () => scratch.write({ 'a.txt': 'two\n' }))
  const to = moved(scratch, 'elsewhere')
  expect(run(scratch, to, 'snapshot').code).toBe(0)
  fs.rmSync(path.join(to, '.git'), { recursive: true })
  fs.mkdirSync(scratch.root)
  scratch.init()
  expect(scratch.ckpt('list').turns).toEqual([])
  scratch.turn('another', () => scratch.write({ 'a.txt': 'three\n' }))
  expect(stores().filter((name) => name !== 'owners')).toHaveLength(2)
  expect(run(scratch, to, 'list').document.turns.map(({ prompt }: { prompt: string }) => prompt)).toEqual(['one'])
  expect(scratch.ckpt('list').turns.map(({ prompt }: { prompt: string }) => prompt)).toEqual(['another'])
})

testMoves('two that change places keep each its own, with and without their .git', () => {
  const { scratch } = apart()
  scratch.init()
  scratch.turn('of the first', () => scratch.write({ 'a.txt': 'two\n' }))
  const second = path.join(scratch.base, 'second')
  fs.cpSync(scratch.root, second, { recursive: true })
  expect(run(scratch, second, 'mark', 'prompt', '--session', 's', '--text', 'of the second').code).toBe(0)
  fs.renameSync(second, `${second}-away`)
  fs.renameSync(scratch.root, second)
  fs.renameSync(`${second}-away`, scratch.root)
  const prompts = (at: string) =>
    run(scratch, at, 'list').document.turns.map(({ prompt }: { prompt: string }) => prompt)
  const each = () => [prompts(scratch.root), prompts(second)]
  const expected = [['of the second'], ['of the first']]
  for (const at of [scratch.root, second]) expect(run(scratch, at, 'snapshot').code).toBe(0)
  expect(each()).toEqual(expected)
  fs.rmSync(path.join(second, '.git'), { recursive: true })
  expect(each()).toEqual(expected)
  fs.rmSync(scratch.at('.git'), { recursive: true })
  expect(each()).toEqual(expected)
  for (const at of [scratch.root, second]) execFileSync('git', ['init', '-q'], { cwd: at, env: scratch.vars })
  expect(each()).toEqual(expected)
})

testMoves('so is that of a repository, whether or not it has begun anew', () => {
  const { scratch, stores } = apart()
  scratch.init()
  scratch.turn('one', () => scratch.write({ 'a.txt': 'two\n' }))
  const to = path.join(scratch.base, 'other disk', path.basename(scratch.root))
  fs.cpSync(scratch.root, to, { recursive: true })
  const told = (...args: string[]): string[] => run(scratch, to, ...args).document.warnings
  const commandIn = ([warning]: string[]) => warning!.split('that repository: ')[1]!
  expect(told('list')).toEqual([]) // that one is still there
  fs.rmSync(scratch.root, { recursive: true })
  expect(told('list')).toEqual([expect.stringContaining(`Checkpoints of ${scratch.root}, which is gone, are in `)])
  expect(commandIn(told('list'))).not.toContain('set-aside')
  execFileSync('sh', ['-c', commandIn(told('mark', 'prompt', '--session', 'new'))])
  expect(numbers(scratch, to)).toEqual([1])
  expect(run(scratch, to, 'undo').code).toBe(0)
  expect(fs.readFileSync(path.join(to, 'a.txt'), 'utf8')).toBe('one\n')
  expect(told('list')).toEqual([])
  expect(stores().filter((name) => name.endsWith('-set-aside'))).toHaveLength(1)
})
