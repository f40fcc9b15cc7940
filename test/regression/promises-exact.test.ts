/** Promises 3 and 4: byte exact, and only what changed is touched. */
import fs from 'node:fs'
import { expect, test } from 'vitest'
import { isRoot, Scratch } from '../support/scratch.ts'

/** Undo and redo of one turn, compared path by path; also by another checkpoint-free look at the disk. */
function thereAndBack(scratch: Scratch, work: () => void): void {
  const before = scratch.manifest()
  scratch.turn('work', work)
  const after = scratch.manifest()
  expect(after).not.toEqual(before)
  scratch.ckpt('undo')
  expect(scratch.manifest()).toEqual(before)
  scratch.ckpt('redo')
  expect(scratch.manifest()).toEqual(after)
  scratch.ckpt('undo')
  expect(scratch.manifest()).toEqual(before)
  expect(scratch.ckpt('verify').problems).toEqual([])
}

test('promise 3: permission modes of files and directories come back, all twelve bits', () => {
  const modes = [0o600, 0o644, 0o664, 0o755, 0o700, 0o444, 0o500, 0o4755, 0o2755, 0o666, 0o777]
  const scratch = new Scratch().init(Object.fromEntries(modes.map((mode) => [`m${mode.toString(8)}`, 'x\n'])))
  for (const mode of modes) fs.chmodSync(scratch.at(`m${mode.toString(8)}`), mode)
  scratch.write({ 'private/f': 'f\n', 'sticky/f': 'f\n' })
  fs.chmodSync(scratch.at('private'), 0o700)
  fs.chmodSync(scratch.at('sticky'), 0o1777)
  thereAndBack(scratch, () => {
    scratch.write({ m600: 'changed too\n', m4755: 'changed\n' })
    for (const mode of modes) fs.chmodSync(scratch.at(`m${mode.toString(8)}`), mode ^ 0o311)
    scratch.remove('private', 'm755', 'm2755')
    fs.chmodSync(scratch.at('sticky'), 0o750)
  })
})

test('promise 3: symlinks come back with their target, dangling, absolute, or no UTF-8', () => {
  const scratch = new Scratch().init({ 'a.txt': 'one\n', 'dir/f': 'f\n' })
  const targets = ['nowhere', '/etc/passwd', 'dir', '../home', 'a.txt', 'x'.repeat(300)]
  for (const [i, target] of targets.entries()) fs.symlinkSync(target, scratch.at(`link${i}`))
  fs.symlinkSync(Buffer.from([0xff, 0xfe, 0x0a]), scratch.at('odd'))
  thereAndBack(scratch, () => {
    for (const i of targets.keys()) {
      scratch.remove(`link${i}`)
      if (i % 3 === 0) fs.symlinkSync('other', scratch.at(`link${i}`))
      if (i % 3 === 1) scratch.write({ [`link${i}`]: 'a file now\n' })
    }
    scratch.remove('odd', 'a.txt')
    fs.symlinkSync('dir', scratch.at('a.txt'))
  })
  expect(fs.readFileSync('/etc/passwd', 'utf8')).not.toContain('a file now')
})

test('promise 3: directories that were empty come back, and those that a turn made go', () => {
  const scratch = new Scratch().init()
  for (const directory of ['empty', 'deep/er/empty', 'kept/empty'])
    fs.mkdirSync(scratch.at(directory), { recursive: true })
  fs.chmodSync(scratch.at('deep/er/empty'), 0o711)
  scratch.write({ 'kept/f': 'f\n', 'full/f': 'f\n' })
  thereAndBack(scratch, () => {
    scratch.remove('empty', 'deep', 'full/f')
    fs.mkdirSync(scratch.at('made/by/turn'), { recursive: true })
    scratch.write({ 'made2/x/f': 'f\n', 'kept/empty/f': 'f\n' })
  })
})

test('promise 3: files become directories and directories become files, and back', () => {
  const scratch = new Scratch().init({ file: 'f\n', 'dir/a': 'a\n', 'dir/sub/b': 'b\n', 'dir2/x': 'x\n' })
  fs.mkdirSync(scratch.at('hollow'))
  thereAndBack(scratch, () => {
    scratch.remove('file', 'dir', 'dir2', 'hollow')
    scratch.write({ 'file/inside': 'i\n', dir: 'now a file\n', hollow: 'now a file\n' })
    fs.symlinkSync('file', scratch.at('dir2'))
  })
})

test('promise 3: bytes are never converted, whatever attributes and settings ask for', () => {
  const scratch = new Scratch()
  scratch.git('init', '-q', '-b', 'main')
  for (const [key, value] of [
    ['core.autocrlf', 'true'],
    ['core.eol', 'crlf'],
    ['core.symlinks', 'false'],
    ['core.fileMode', 'false'],
    ['core.ignoreCase', 'true'],
    ['core.precomposeUnicode', 'true'],
    ['filter.swap.clean', 'tr a-z b-za'],
    ['filter.swap.smudge', 'tr b-za a-z'],
    ['filter.swap.required', 'true'],
  ] as const)
    scratch.git('config', key, value)
  const lines = ['* text=auto', '*.swap filter=swap', '*.id ident', '*.u16 working-tree-encoding=UTF-16LE eol=crlf']
  scratch.write({
    '.gitattributes': `${lines.join('\n')}\n`,
    'unix.txt': 'a\nb\n',
    'dos.txt': 'a\r\nb\r\n',
    'mixed.txt': 'a\r\nb\nc\r',
    'secret.swap': 'abcxyz\n',
    'v.id': '$Id$\n',
    'v2.id': '$Id: 0123456789012345678901234567890123456789 $\n',
    'enc.u16': Buffer.from('hello\r\n', 'utf16le'),
    'no-newline': 'x',
    empty: '',
    'nul.bin': Buffer.from([0, 13, 10, 0, 255, 26]),
  })
  scratch.git('add', '-A')
  scratch.git('commit', '-qm', 'converted by git')
  scratch.git('checkout', '-q', '--', '.')
  fs.chmodSync(scratch.at('unix.txt'), 0o755)
  thereAndBack(scratch, () => {
    for (const name of Object.keys(scratch.manifest())) scratch.write({ [name]: `$Id$ new\r\n${name}\n\n` })
  })
})

const LARGE_AS_POINTER = `${'x'.repeat(127)}\n`

for (const [what, prepare, given] of [
  [
    'a filter whose attribute is gone, though it keeps the size',
    (at) => {
      at.git('config', 'filter.swap.clean', 'tr a-z b-za')
      at.git('config', 'filter.swap.smudge', 'sleep 0.4; tr b-za a-z')
      at.write({ '.git/info/attributes': '*.txt filter=swap\n' })
      at.git('add', '--renormalize', '.')
      at.git('commit', '-qm', 'filtered')
      at.remove('a.txt', 'b.txt', 'c.txt', 'd.txt')
      at.git('checkout', '-q', '.')
      at.remove('.git/info/attributes')
    },
    'one\n',
  ],
  [
    "a filter of the user's own, in all repositories, whose attribute is gone",
    (at) => {
      const config = `${at.home}/.gitconfig`
      at.git('config', '--file', config, 'filter.swap.clean', 'tr a-z b-za')
      at.git('config', '--file', config, 'filter.swap.smudge', 'sleep 0.4; tr b-za a-z')
      at.git('config', '--file', config, 'core.attributesFile', `${at.home}/attributes`)
      fs.writeFileSync(`${at.home}/attributes`, '*.txt filter=swap\n')
      at.git('add', '--renormalize', '.')
      at.git('commit', '-qm', 'filtered')
      at.remove('a.txt', 'b.txt', 'c.txt', 'd.txt')
      at.git('checkout', '-q', '.')
      fs.rmSync(`${at.home}/attributes`)
    },
    'one\n',
  ],
  [
    'Git LFS, of a file that is as large as its pointer',
    (at) => {
      const config = `${at.home}/.gitconfig`
      const pointer = `version https://git-lfs.github.com/spec/v1\noid sha256:${'0'.repeat(64)}\nsize 128\n`
      fs.writeFileSync(`${at.home}/pointer`, pointer)
      fs.writeFileSync(`${at.home}/content`, LARGE_AS_POINTER)
      at.git('config', '--file', config, 'filter.lfs.clean', `cat >/dev/null; cat ${at.home}/pointer`)
      at.git('config', '--file', config, 'filter.lfs.smudge', `cat >/dev/null; sleep 1.1; cat ${at.home}/content`)
      at.write({ '.git/info/attributes': '[ad].txt filter=lfs\n', 'a.txt': LARGE_AS_POINTER })
      at.git('add', '-A')
      at.git('commit', '-qm', 'large')
      at.remove('a.txt', 'd.txt')
      at.git('checkout', '-q', '.')
      at.remove('.git/info/attributes')
    },
    LARGE_AS_POINTER,
  ],
  [
    'a replaced object',
    (at) => {
      at.write({ 'new.txt': 'new\n' })
      at.git('replace', at.git('rev-parse', ':a.txt').trim(), at.git('hash-object', '-w', 'new.txt').trim())
      at.remove('a.txt', 'd.txt', 'new.txt')
      at.write({ '.git/info/attributes': 'd.txt filter=slow\n' })
      at.git('-c', 'filter.slow.smudge=sleep 1.1; cat', 'checkout', '-q', '.')
      at.remove('.git/info/attributes')
    },
    'new\n',
  ],
] satisfies [string, (at: Scratch) => void, string][])
  test(`promise 3: what git once put on disk through ${what}, is captured as it is`, () => {
    const scratch = new Scratch().init(
      Object.fromEntries(['a', 'b', 'c', 'd'].map((name) => [`${name}.txt`, name === 'a' ? 'one\n' : `${name}\n`])),
    )
    prepare(scratch) // takes a second: the index vouches for what was there before the second in which it was written
    expect([scratch.read('a.txt'), scratch.git('diff', '--stat', '--', 'a.txt')]).toEqual([given, ''])
    thereAndBack(scratch, () => scratch.remove('a.txt'))
  })

test('promise 3: a hard link is broken, never written through', () => {
  const scratch = new Scratch().init({ 'a.txt': 'one\n', 'b.txt': 'one\n' })
  const outside = `${scratch.base}/outside.txt`
  scratch.turn('work', () => {
    scratch.write({ 'a.txt': 'two\n' })
    fs.linkSync(scratch.at('a.txt'), outside)
    scratch.remove('b.txt')
    fs.linkSync(outside, scratch.at('b.txt'))
    fs.chmodSync(outside, 0o600)
  })
  scratch.ckpt('undo')
  expect([scratch.read('a.txt'), scratch.read('b.txt')]).toEqual(['one\n', 'one\n'])
  expect(fs.readFileSync(outside, 'utf8')).toBe('two\n')
  expect(fs.lstatSync(outside).nlink).toBe(1)
  // A mode alone: the other name must keep its own.
  fs.linkSync(scratch.at('a.txt'), `${scratch.base}/other.txt`)
  scratch.ckpt('accept')
  scratch.turn('mode', () => fs.chmodSync(scratch.at('a.txt'), 0o755))
  scratch.ckpt('undo')
  expect(fs.lstatSync(scratch.at('a.txt')).mode & 0o777).toBe(0o644)
  expect(fs.lstatSync(`${scratch.base}/other.txt`).mode & 0o777).toBe(0o755)
})

test.skipIf(!isRoot)('promise 3: the owner is kept', () => {
  const scratch = new Scratch().init({ 'a.txt': 'one\n', 'b.txt': 'one\n' })
  fs.chownSync(scratch.at('a.txt'), 4321, 4322)
  fs.symlinkSync('a.txt', scratch.at('link'))
  scratch.turn('work', () => {
    scratch.write({ 'a.txt': 'two\n' })
    scratch.remove('link')
    fs.symlinkSync('b.txt', scratch.at('link'))
    fs.lchownSync(scratch.at('link'), 4321, 4322)
  })
  scratch.ckpt('undo')
  const { uid, gid } = fs.lstatSync(scratch.at('a.txt'))
  expect([scratch.read('a.txt'), uid, gid]).toEqual(['one\n', 4321, 4322])
  const link = fs.lstatSync(scratch.at('link'))
  expect([fs.readlinkSync(scratch.at('link')), link.uid, link.gid]).toEqual(['a.txt', 4321, 4322])
})

test.skipIf(!isRoot)('promise 3: an owner that cannot be kept is a conflict', () => {
  const scratch = new Scratch().init({ 'a.txt': 'one\n', 'b.txt': 'one\n' })
  const uid = scratch.handOver()
  const as = (...args: string[]) => scratch.run([...args, '--json'], { uid })
  as('mark', 'prompt', '--session', 's')
  scratch.write({ 'a.txt': 'two\n', 'b.txt': 'two\n' })
  fs.chownSync(scratch.at('b.txt'), 0, 0)
  expect(as('mark', 'stop', '--session', 's').code).toBe(0)
  const disk = scratch.manifest()
  const { code, stdout } = as('undo')
  expect([code, JSON.parse(stdout).error.paths]).toEqual([4, ['b.txt']])
  expect(scratch.manifest()).toEqual(disk)
  expect(as('undo', '--skip-conflicts').code).toBe(0)
  expect([scratch.read('a.txt'), scratch.read('b.txt')]).toEqual(['one\n', 'two\n'])
})

test('promise 3: a file in the index of the user is captured at any size', () => {
  const scratch = new Scratch().init({ 'big.bin': Buffer.alloc(12 * 2 ** 20, 'a') })
  const { checkpoint } = scratch.ckpt('snapshot')
  expect(checkpoint.uncovered).toEqual([])
  thereAndBack(scratch, () => fs.appendFileSync(scratch.at('big.bin'), 'more'))
})

test('promise 4: a path outside the plan keeps its inode and times, files and directories alike', () => {
  const files = Object.fromEntries(['a/1', 'a/2', 'b/1', 'b/c/1', 'top'].map((name) => [name, `${name}\n`]))
  const scratch = new Scratch().init({ ...files, 'a/changed': 'one\n' })
  scratch.write({ '.gitignore': 'ignored\n', ignored: 'x\n', untracked: 'x\n' })
  const untouched = [...Object.keys(files), '.gitignore', 'ignored', 'untracked', 'b', 'b/c']
  const stats = () =>
    untouched.map((name) => {
      const { ino, mtimeMs, ctimeMs, atimeMs } = fs.lstatSync(scratch.at(name))
      return { name, ino, mtimeMs, ctimeMs, atimeMs: fs.lstatSync(scratch.at(name)).isDirectory() ? 0 : atimeMs }
    })
  scratch.turn('work', () => scratch.write({ 'a/changed': 'two\n', 'a/new': 'new\n' }))
  const before = stats()
  scratch.ckpt('undo')
  scratch.ckpt('redo')
  scratch.ckpt('restore', '1:before')
  expect(stats()).toEqual(before)
})

test('promise 4: a run from a subdirectory means the same as one from the root', () => {
  const scratch = new Scratch().init({ 'sub/dir/a.txt': 'one\n', 'a.txt': 'one\n' })
  const inSub = (...args: string[]) => {
    const ran = scratch.run([...args], { cwd: scratch.at('sub/dir') })
    expect([args, ran.code, ran.stderr]).toEqual([args, 0, ''])
    return ran.stdout
  }
  inSub('mark', 'prompt', '--session', 's')
  scratch.write({ 'sub/dir/a.txt': 'two\n', 'a.txt': 'two\n', 'other/b.txt': 'two\n' })
  inSub('mark', 'stop', '--session', 's')
  expect(inSub('list')).toBe(scratch.run(['list']).stdout)
  expect(inSub('diff')).toBe(scratch.run(['diff']).stdout)
  expect(JSON.parse(inSub('status', '--json')).root).toBe(scratch.root)
  inSub('undo')
  expect([scratch.read('a.txt'), scratch.read('sub/dir/a.txt')]).toEqual(['one\n', 'one\n'])
  expect(scratch.exists('other')).toBe(false)
  inSub('redo')
  // Paths after `--` are relative to where the command runs.
  inSub('undo', '--', 'a.txt')
  expect([scratch.read('a.txt'), scratch.read('sub/dir/a.txt')]).toEqual(['two\n', 'one\n'])
  inSub('undo', '--only', '1', '--', '../../a.txt')
  expect(scratch.read('a.txt')).toBe('one\n')
})

test('promise 4: another worktree of the repository is never touched', () => {
  const scratch = new Scratch().init()
  const other = `${scratch.base}/other`
  scratch.git('worktree', 'add', '-q', '-b', 'other', other)
  const manifest = scratch.manifest(other)
  const state = fs.readdirSync(scratch.at('.git/worktrees/other')).sort()
  scratch.turn('work', () => scratch.write({ 'a.txt': 'two\n', 'b.txt': 'b\n' }))
  scratch.ckpt('undo')
  scratch.ckpt('redo')
  expect(scratch.manifest(other)).toEqual(manifest)
  expect(fs.readdirSync(scratch.at('.git/worktrees/other')).sort()).toEqual(state)
  const there = JSON.parse(scratch.run(['list', '--json'], { cwd: other }).stdout)
  expect(there.turns).toEqual([])
  expect(scratch.run(['undo'], { cwd: other }).code).toBe(3)
})
