// What a fast or narrow look missed once: rules that git reads elsewhere than we looked, and what nobody watched.
import fs from 'node:fs'
import path from 'node:path'
import { expect, test } from 'vitest'
import { startDaemon } from '../support/daemon.ts'
import { treeByGit } from '../support/judge.ts'
import { Scratch } from '../support/scratch.ts'

/** A marker's tree against what git itself makes of the worktree. */
function expectRight(scratch: Scratch, what: string, cwd = scratch.root): void {
  const { checkpoint } = scratch.ckpt('mark', 'step', '--session', 's', '--cwd', cwd)
  const tracked = scratch
    .git('ls-files', '-z')
    .split('\0')
    .filter((name) => name !== '' && scratch.exists(name))
  const only = ['.', ...(scratch.exists('other/.git') ? [':(exclude)other'] : [])]
  expect(checkpoint.tree, what).toBe(treeByGit(scratch, { tracked, only }))
}

interface Case {
  before?: (at: Scratch) => void
  /** Each is followed by a marker. */
  steps: ((at: Scratch) => void)[]
}

const configDirectory = (at: Scratch) => path.join(at.home, '.config/git')

const CASES: Record<string, Case> = {
  'a new directory whose own rules keep only some of it': {
    steps: [
      (at) => at.write({ 'data/.gitignore': '*\n!.gitignore\n!*.md\n', 'data/notes.md': 'mine\n', 'data/x': 'x' }),
    ],
  },
  'a directory that ignores itself, until its rules go': {
    before: (at) => at.write({ 'sub/.gitignore': '*\n', 'sub/x': '1\n' }),
    steps: [(at) => at.remove('sub/.gitignore'), (at) => at.write({ 'sub/x': '2\n' })],
  },
  'a tracked file in an ignored directory': {
    before: (at) => {
      at.write({ 'build/f': 'one\n', 'build/k/g': 'one\n', '.gitignore': 'build/\n' })
      at.git('add', '-f', 'build', '.gitignore')
      at.git('commit', '-q', '-m', 'tracked')
    },
    steps: [(at) => at.write({ 'build/f': 'two\n' }), (at) => at.write({ 'build/k/g': 'two\n' })],
  },
  'a tracked file that was a directory meanwhile, and is ignored when it is a file again': {
    before: (at) => {
      at.write({ 'b.txt': 'one\n' })
      at.git('add', 'b.txt')
    },
    steps: [
      (at) => {
        at.remove('b.txt')
        at.write({ 'b.txt/in': 'a directory\n' })
      },
      (at) => {
        at.remove('b.txt')
        at.write({ 'b.txt': 'two\n', '.gitignore': '*.txt\n' })
      },
    ],
  },
  'an ignored directory that is not ignored any more': {
    before: (at) => at.write({ 'build/f': 'one\n', '.gitignore': 'build/\n' }),
    steps: [
      (at) => at.write({ '.gitignore': '' }),
      (at) => at.write({ 'build/f': 'two\n', 'build/k/n': 'new\n' }),
      (at) => at.write({ 'build/k/n': 'newer\n' }),
    ],
  },
  'an ignored directory that is added to the index': {
    before: (at) => at.write({ 'build/f': 'one\n', '.gitignore': 'build/\n' }),
    steps: [(at) => void at.git('add', '-f', 'build'), (at) => at.write({ 'build/f': 'two\n' })],
  },
  'a repository that is one no more': {
    before: (at) => {
      at.write({ 'other/f': 'one\n', 'other/d/g': 'one\n' })
      at.git('init', '-q', 'other')
    },
    steps: [(at) => at.remove('other/.git'), (at) => at.write({ 'other/f': 'two\n', 'other/d/g': 'two\n' })],
  },
  'info/exclude': {
    before: (at) => at.write({ '.git/info/exclude': '*.log\n', 'x.log': '1\n' }),
    steps: [(at) => at.write({ '.git/info/exclude': '' })],
  },
  'core.excludesFile that is set no more': {
    before: (at) => {
      fs.writeFileSync(path.join(at.base, 'rules'), '*.log\n')
      at.git('config', 'core.excludesFile', path.join(at.base, 'rules'))
      at.write({ 'x.log': '1\n' })
    },
    steps: [(at) => void at.git('config', '--unset', 'core.excludesFile')],
  },
  "the user's own ignore file comes, by a link, and goes": {
    before: (at) => {
      fs.mkdirSync(configDirectory(at), { recursive: true })
      fs.writeFileSync(path.join(at.base, 'rules'), '*.log\n')
    },
    steps: [
      (at) => {
        fs.symlinkSync(path.join(at.base, 'rules'), path.join(configDirectory(at), 'ignore'))
        at.write({ 'x.log': '1\n' })
      },
      (at) => fs.writeFileSync(path.join(at.base, 'rules'), ''),
    ],
  },
  'two names of one file': {
    before: (at) => {
      at.write({ 'd/one': '1\n' })
      fs.linkSync(at.at('d/one'), at.at('two'))
    },
    steps: [(at) => fs.appendFileSync(at.at('two'), 'more\n')],
  },
}

for (const held of [false, true]) {
  test.each(Object.entries(CASES))(`%s: the snapshot is what is there${held ? ', with the daemon' : ''}`, (_, one) => {
    const scratch = new Scratch().init()
    one.before?.(scratch)
    if (held) startDaemon(scratch)
    scratch.ckpt('mark', 'prompt', '--session', 's')
    expectRight(scratch, 'before')
    for (const [i, step] of one.steps.entries()) {
      step(scratch)
      expectRight(scratch, `step ${i + 1}`)
      expectRight(scratch, `step ${i + 1}, again`)
    }
  })
}

test.each([
  ['the daemon', true],
  ['no daemon', false],
])('with %s, a tracked file that went, and that a rule ignores since, is captured when it is back', (_, daemon) => {
  const scratch = new Scratch().init({ 'a.txt': 'one\n', 'dist/x.js': 'one\n', 'dist/y.js': 'one\n' })
  if (daemon) startDaemon(scratch)
  scratch.turn('remove', () => scratch.remove('dist'))
  scratch.turn('ignore', () => scratch.write({ '.gitignore': 'dist/\n' }))
  scratch.turn('build', () => scratch.write({ 'dist/x.js': 'two\n', 'dist/new.js': 'ignored\n' }))
  expect(scratch.ckpt('diff').files.map(({ path: name }: { path: string }) => name)).toEqual(['dist/x.js'])
  scratch.ckpt('undo')
  expect([scratch.exists('dist/x.js'), scratch.exists('dist/new.js')]).toEqual([false, true])
})

test('what happens in a directory that was removed and made anew is seen, also a while later', async () => {
  const scratch = new Scratch().init({ 'a.txt': 'one\n', 'd/b.txt': 'one\n', 'd/e/c.txt': 'one\n' })
  startDaemon(scratch)
  scratch.ckpt('mark', 'prompt', '--session', 's')
  scratch.remove('d')
  scratch.write({ 'd/b.txt': 'two\n', 'd/e/c.txt': 'two\n' })
  expectRight(scratch, 'made anew')
  await new Promise((resolve) => setTimeout(resolve, 2500))
  expectRight(scratch, 'at rest')
  scratch.write({ 'd/b.txt': 'three\n', 'd/new': 'new\n', 'd/e/new': 'new\n' })
  expectRight(scratch, 'edited')
  expect(scratch.ckpt('daemon', 'status').state).toMatchObject({ misses: 0, why: null })
})

test('in the place of a directory comes another one: its own rules count', () => {
  const scratch = new Scratch().init()
  for (const [directory, rule] of Object.entries({ a: '*.log', c: '*.txt' }))
    scratch.write({
      [`${directory}/.gitignore`]: `${rule}\n`,
      [`${directory}/x.log`]: 'one\n',
      [`${directory}/x.txt`]: 'one\n',
    })
  startDaemon(scratch)
  scratch.turn('write', () => scratch.write({ 'a/y': 'one\n' }))
  scratch.turn('move', () => {
    fs.renameSync(scratch.at('a'), scratch.at('b'))
    fs.renameSync(scratch.at('c'), scratch.at('a'))
  })
  scratch.turn('edit', () => scratch.write({ 'a/x.log': 'two\n' }))
  expect(scratch.ckpt('diff').files.map(({ path: name }: { path: string }) => name)).toEqual(['a/x.log'])
  scratch.ckpt('undo')
  expect(scratch.read('a/x.log')).toBe('one\n')
})

test('what is excluded while the daemon watches counts from the next marker on, and is no missed change', async () => {
  const scratch = new Scratch().init({ 'a.txt': 'one\n', 'd/x': 'one\n', 'd/y': 'one\n' })
  startDaemon(scratch)
  const paths = (...marker: string[]) => scratch.ckpt('mark', ...marker, '--session', 's').checkpoint.ignoredCount
  expect(paths('prompt')).toBe(0)
  scratch.write({ '../home/.config/ckpt/.checkpointrc': JSON.stringify({ snapshot: { exclude: ['x'] } }) })
  expect(paths('step')).toBe(1)
  await new Promise((resolve) => setTimeout(resolve, 2500)) // the sweep came by
  expect(scratch.ckpt('daemon', 'status').state).toMatchObject({ misses: 0, why: null })
})

test('core.excludesFile is meant from the root, wherever the command runs', () => {
  const scratch = new Scratch().init({ 'd/b': '1\n', '.rules': '*.secret\n' })
  scratch.git('config', 'core.excludesFile', '.rules')
  scratch.write({ 'x.secret': 'pw\n' })
  scratch.ckpt('mark', 'prompt', '--session', 's', '--cwd', scratch.at('d'))
  expectRight(scratch, 'from below', scratch.at('d'))
})

test('a directory that holds nothing but empty ones gets its mode back', () => {
  const scratch = new Scratch().init()
  const mode = () => (fs.statSync(scratch.at('e1')).mode & 0o777).toString(8)
  fs.mkdirSync(scratch.at('e1/e2'), { recursive: true })
  fs.chmodSync(scratch.at('e1'), 0o700)
  scratch.turn('remove', () => scratch.remove('e1'))
  scratch.ckpt('undo')
  expect(mode()).toBe('700')
  scratch.turn('open', () => fs.chmodSync(scratch.at('e1'), 0o777))
  scratch.ckpt('undo')
  expect(mode()).toBe('700')
  scratch.ckpt('redo')
  expect(mode()).toBe('777')
})

test('an ignored file in the place of a directory is found while planning, and hinders only what was in it', () => {
  const scratch = new Scratch().init({ a: '1\n', '.gitignore': 'ig\n' })
  scratch.write({ 'ig/f': '1\n' })
  scratch.git('add', '-f', 'ig/f')
  scratch.turn('swap', () => {
    scratch.remove('ig')
    scratch.write({ ig: 'a file\n', a: '2\n' })
  })
  const plan = scratch.ckpt('undo', '--dry-run').files
  expect(plan).toContainEqual(expect.objectContaining({ path: 'ig/f', action: 'conflict' }))
  expect(scratch.run(['undo', '--json']).code).toBe(4)
  expect(scratch.read('a')).toBe('2\n')
  scratch.ckpt('undo', '--skip-conflicts')
  expect([scratch.read('a'), scratch.read('ig')]).toEqual(['1\n', 'a file\n'])
})

test('a large tracked file whose name is not text is taken like any other', () => {
  const scratch = new Scratch().init({ '.checkpointrc': '{"snapshot":{"maxFileSize":"1MiB"}}' })
  fs.writeFileSync(Buffer.from(`${scratch.root}/large\xff`, 'latin1'), Buffer.alloc(2 * 2 ** 20, 'x'))
  scratch.git('add', '-A')
  scratch.git('commit', '-q', '-m', 'large')
  const { checkpoint } = scratch.ckpt('mark', 'prompt', '--session', 's')
  expect(checkpoint.uncovered).toEqual([])
  expect(checkpoint.tree).toBe(treeByGit(scratch))
})
