/** Promises 10, 11 and 12: no stale snapshot, honest coverage, bounded. */
import { execFileSync, spawn } from 'node:child_process'
import fs from 'node:fs'
import path from 'node:path'
import { setTimeout } from 'node:timers/promises'
import { expect, onTestFinished, test } from 'vitest'
import { startDaemon } from '../support/daemon.ts'
import { type Json, Scratch } from '../support/scratch.ts'
import { inStore, ownDirectory, storeOf } from '../support/store-surgery.ts'

const MIB = 2 ** 20
const userConfig = (scratch: Scratch, config: unknown) =>
  scratch.write({ '../home/.config/ckpt/.checkpointrc': JSON.stringify(config) })
const rows = (uncovered: Json[]) => uncovered.map(({ path, reason }) => `${reason} ${path}`).sort()

test('promise 10: a path that cannot be read degrades the snapshot and is named; the others are captured as they are now', () => {
  const scratch = new Scratch().init({ 'a.txt': 'one\n', 'locked.txt': 'one\n', 'dir/x.txt': 'one\n' })
  const uid = scratch.handOver()
  const as = (...args: string[]) => {
    const { stdout, code } = scratch.run([...args, '--json'], { uid })
    expect([args, code]).toEqual([args, 0])
    return JSON.parse(stdout)
  }
  as('snapshot')
  scratch.write({ 'a.txt': 'two\n', 'locked.txt': 'two\n', 'dir/x.txt': 'two\n' })
  fs.chmodSync(scratch.at('locked.txt'), 0)
  fs.chmodSync(scratch.at('dir'), 0)
  const { checkpoint, warnings } = as('mark', 'prompt', '--session', 's')
  expect(checkpoint.degraded).toBe(true)
  expect(warnings.join()).toContain('unreadable')
  expect(rows(checkpoint.uncovered)).toEqual(['unreadable dir/', 'unreadable locked.txt'])
  expect(inStore(scratch, 'show', `${checkpoint.id}:a.txt`)).toBe('two')
  expect(inStore(scratch, 'ls-tree', '-r', '--name-only', checkpoint.id)).toBe('a.txt') // no older tree under a new name
  expect(rows(as('status').uncovered)).toEqual(['unreadable dir/', 'unreadable locked.txt'])
  // Readable again: captured again, and nothing that was out of sight meanwhile is undone or deleted.
  fs.chmodSync(scratch.at('locked.txt'), 0o644)
  fs.chmodSync(scratch.at('dir'), 0o755)
  const stop = as('mark', 'stop', '--session', 's')
  expect([stop.checkpoint.degraded, stop.checkpoint.uncovered]).toEqual([false, []])
  expect([as('diff').files, as('show', '1').files]).toEqual([[], []])
  // Out of sight is not gone.
  as('mark', 'prompt', '--session', 's')
  scratch.write({ 'a.txt': 'three\n' })
  fs.chmodSync(scratch.at('locked.txt'), 0)
  fs.chmodSync(scratch.at('dir'), 0)
  as('mark', 'stop', '--session', 's')
  const { files, patch } = as('diff')
  expect(files.map(({ path, status }: Json) => `${status} ${path}`)).toEqual(['modified a.txt'])
  expect(patch.match(/^diff --git .*/gm)).toEqual(['diff --git a/a.txt b/a.txt'])
  expect(patch).toContain('-two\n+three\n')
  fs.chmodSync(scratch.at('locked.txt'), 0o644)
  fs.chmodSync(scratch.at('dir'), 0o755)
  as('undo')
  expect(scratch.read('a.txt')).toBe('two\n')
  as('accept')
  as('undo')
  expect([scratch.read('locked.txt'), scratch.read('dir/x.txt')]).toEqual(['two\n', 'two\n'])
})

test.each(['000', '300', '400', '100'])(
  'promise 10: a directory that could not be read once (mode %s) is covered again as soon as it can be, whatever came into it',
  (mode) => {
    const scratch = new Scratch().init({ 'a.txt': 'one\n', 'q/e/x.txt': 'one\n' })
    fs.mkdirSync(scratch.at('w/e'), { recursive: true })
    const uid = scratch.handOver()
    const as = (...args: string[]) => {
      const { stdout, code } = scratch.run([...args, '--json'], { uid })
      expect([args, code]).toEqual([args, 0])
      return JSON.parse(stdout)
    }
    const shut = (to: number) => {
      for (const directory of ['q', 'w']) fs.chmodSync(scratch.at(directory), to)
    }
    const files = ['q/f', 'q/e/x.txt', 'w/f', 'w/e/f']
    const put = (content: string) => {
      scratch.write(Object.fromEntries(files.map((file) => [file, content])))
      for (const file of files) fs.chownSync(scratch.at(file), uid, uid)
    }
    as('snapshot')
    shut(Number.parseInt(mode, 8))
    expect(as('snapshot').checkpoint.degraded).toBe(true)
    shut(0o755)
    expect(as('snapshot').checkpoint.degraded).toBe(false)
    put('1\n')
    as('mark', 'prompt', '--session', 's')
    expect(as('verify', '--worktree').problems).toEqual([])
    put('2\n')
    as('mark', 'stop', '--session', 's')
    as('undo')
    expect(files.map((file) => scratch.read(file))).toEqual(files.map(() => '1\n'))
  },
)

test('promise 10: an ignore file that cannot be read, or is none, fails no snapshot; it counts again when it can be', () => {
  const scratch = new Scratch().init({ 'a.txt': 'one\n' })
  scratch.write({ '../home/.config/git/ignore': '*.log\n', '.git/info/exclude': '*.tmp\n' })
  const uid = scratch.handOver()
  const covered = (file: string) => {
    scratch.write({ [file]: 'x\n' })
    const { stdout, code } = scratch.run(['snapshot', '--json'], { uid })
    expect([stdout, code]).toEqual([expect.stringContaining('"degraded":false'), 0])
    return inStore(scratch, 'ls-tree', '--name-only', JSON.parse(stdout).checkpoint.id).split('\n').includes(file)
  }
  for (const [i, [shut, type]] of [
    ['.git/info/exclude', 'tmp'],
    ['../home/.config/git/ignore', 'log'],
    ['../home/.config/git', 'log'],
  ].entries()) {
    const { mode } = fs.statSync(scratch.at(shut!))
    fs.chmodSync(scratch.at(shut!), 0)
    expect([shut, covered(`shut${i}.${type}`)]).toEqual([shut, true])
    fs.chmodSync(scratch.at(shut!), mode)
    expect([shut, covered(`open${i}.${type}`)]).toEqual([shut, false])
  }
  scratch.remove('../home/.config/git/ignore')
  fs.mkdirSync(scratch.at('../home/.config/git/ignore'))
  expect(covered('directory.log')).toBe(true)
})

test.each(['without', 'with'])(
  'promise 10: a directory that is moved away, a link left in its place, is captured under its own name (%s the daemon)',
  (daemon) => {
    const scratch = new Scratch().init({ 'p/a/q/z.txt': 'z\n' })
    if (daemon === 'with') startDaemon(scratch)
    scratch.ckpt('snapshot')
    const before = scratch.manifest()
    scratch.turn('move', () => {
      fs.renameSync(scratch.at('p/a'), scratch.at('p/b'))
      fs.symlinkSync('b', scratch.at('p/a'))
      scratch.write({ 'p/b/q/new.txt': 'new\n' })
    })
    expect(scratch.ckpt('verify', '--worktree').problems).toEqual([])
    const after = scratch.manifest()
    scratch.ckpt('undo')
    expect(scratch.manifest()).toEqual(before)
    scratch.ckpt('redo')
    expect(scratch.manifest()).toEqual(after)
  },
)

test('promise 10: a directory that becomes a link while it is looked at is looked at again', () => {
  const scratch = new Scratch().init({ '.gitignore': 'ignored/\n', 'p/y.txt': 'y\n' })
  scratch.write({ 'p/ignored/x.txt': 'x\n' })
  fs.mkdirSync(scratch.at('../bin'))
  const git = execFileSync('which', ['git'], { encoding: 'utf8' }).trim()
  // It changes when git is asked which names are ignored.
  fs.writeFileSync(
    scratch.at('../bin/git'),
    `#!/bin/sh\ncase "$*" in *check-ignore*) [ -h p ] || { mv p moved; ln -s moved p; } ;; esac\nexec ${git} "$@"\n`,
    { mode: 0o755 },
  )
  const vars = { PATH: `${scratch.base}/bin:${process.env.PATH}` }
  const { stdout, code } = scratch.run(['snapshot', '--json'], { vars })
  expect([code, scratch.manifest().p]).toEqual([0, expect.stringContaining('moved')])
  const { checkpoint } = JSON.parse(stdout)
  expect(inStore(scratch, 'ls-tree', '-r', '--name-only', checkpoint.id).split('\n')).toEqual([
    '.gitignore',
    'moved/y.txt',
    'p',
  ])
})

test('promise 10: a file that is written to all the while degrades the snapshot or is in it whole', async () => {
  const scratch = new Scratch().init({ 'a.txt': 'one\n' })
  const script = `const fs=require('fs');let n=0;for(;;){n++;fs.writeFileSync('busy.txt',(String(n%10).repeat(2e6))+'\\n')}`
  const writer = spawn(process.execPath, ['-e', script], { cwd: scratch.root })
  try {
    while (!scratch.exists('busy.txt')) await setTimeout(5)
    for (let i = 0; i < 3; i++) {
      const { checkpoint } = scratch.ckpt('snapshot')
      const listed = rows(checkpoint.uncovered).includes('unreadable busy.txt')
      expect(listed).toBe(checkpoint.degraded)
      expect(inStore(scratch, 'show', `${checkpoint.id}:a.txt`)).toBe('one')
    }
  } finally {
    writer.kill('SIGKILL')
  }
})

test.each([
  ['the daemon', true],
  ['no daemon', false],
])('promise 10: with %s, a directory that was away for one snapshot is in the next one whole', async (_, daemon) => {
  const scratch = new Scratch().init({ 'a.txt': 'one\n', 'd/b.txt': 'one\n', 'd/in/c.txt': 'one\n' })
  // What git's index vouches for, and has been at rest for a while, is not looked at file by file.
  const later = new Date(Date.now() + 5000)
  fs.utimesSync(scratch.at('.git/index'), later, later)
  await setTimeout(2100)
  if (daemon) startDaemon(scratch)
  const files = () => inStore(scratch, 'ls-tree', '-r', '--name-only', scratch.ckpt('snapshot').checkpoint.id)
  const whole = files()
  expect(whole).toBe('a.txt\nd/b.txt\nd/in/c.txt')
  expect(fs.readdirSync(ownDirectory(scratch)).filter((name) => name.startsWith('index-'))).toHaveLength(1)
  fs.renameSync(scratch.at('d'), `${scratch.base}/away`)
  expect(files()).toBe('a.txt')
  fs.renameSync(`${scratch.base}/away`, scratch.at('d'))
  expect(files()).toBe(whole)
  scratch.turn('remove it', () => scratch.remove('d'))
  scratch.turn('make it anew', () => scratch.write({ 'd/b.txt': 'two\n', 'd/in/c.txt': 'two\n' }))
  expect(files()).toBe(whole)
  scratch.turn('remove it again', () => scratch.remove('d'))
  scratch.ckpt('undo')
  expect([scratch.read('d/b.txt'), scratch.read('d/in/c.txt')]).toEqual(['two\n', 'two\n'])
  scratch.ckpt('undo', '--turns', '2')
  expect([scratch.read('d/b.txt'), scratch.read('d/in/c.txt')]).toEqual(['one\n', 'one\n'])
})

test.each([
  ['the daemon', true],
  ['no daemon', false],
])(
  'promise 10: with %s, directories that changed places amid a snapshot are in the next one whole',
  async (_, daemon) => {
    const scratch = new Scratch().init({
      'a/in/one': 'one of a\n',
      'a/in/both': 'a\n',
      'b/in/two': 'two of b\n',
      'b/in/both': 'b\n',
      'b/in/deep/three': 'three\n',
      'c/d/four': 'four\n',
    })
    fs.mkdirSync(scratch.at('../bin'))
    const git = execFileSync('which', ['git'], { encoding: 'utf8' }).trim()
    const armed = path.join(scratch.base, 'armed')
    // Once git has listed what is untracked, and before we look at the directories.
    const swap = `rm '${armed}'; mv a aside; mv b a; mv aside b; mv c/d e`
    fs.writeFileSync(
      scratch.at('../bin/git'),
      `#!/bin/sh\ncase "$*" in *'ls-files -o -z '*) [ -f '${armed}' ] || exec ${git} "$@"; ${git} "$@" || exit; ${swap} ;; *) exec ${git} "$@" ;; esac\n`,
      { mode: 0o755 },
    )
    const vars = { PATH: `${scratch.base}/bin:${process.env.PATH}` }
    const ckpt = (...args: string[]) => JSON.parse(scratch.run([...args, '--json'], { vars }).stdout)
    if (daemon) {
      onTestFinished(() => void scratch.run(['daemon', 'stop']))
      expect(ckpt('daemon', 'start').ok).toBe(true)
    }
    const rest = () => setTimeout(150) // what changed less than 50 ms before a scan is looked at again anyway
    const content = () => inStore(scratch, 'ls-tree', '-r', ckpt('snapshot').checkpoint.id)
    await rest()
    content()
    content() // what is seen for the first time is in doubt for one more
    scratch.write({ '.gitignore': '*.log\n' }) // then all of it is listed
    fs.writeFileSync(armed, '')
    content()
    expect([fs.existsSync(armed), scratch.exists('a/in/two')]).toEqual([false, true])
    await rest()
    scratch.git('add', '-A')
    const whole = scratch.git('ls-tree', '-r', scratch.git('write-tree').trim()).trim()
    scratch.git('reset', '-q')
    expect(content()).toBe(whole)
    scratch.write({ 'new.txt': 'new\n' })
    expect(content()).toContain(scratch.git('hash-object', 'a/in/two').trim())
  },
)

test('promise 10: a lost or damaged private index costs time, never truth', () => {
  const scratch = new Scratch().init({ 'a.txt': 'one\n', 'sub/b.txt': 'one\n' })
  scratch.ckpt('snapshot')
  for (const damage of ['remove', 'cut', 'garbage'] as const) {
    for (const name of fs.readdirSync(ownDirectory(scratch))) {
      const file = path.join(ownDirectory(scratch), name)
      if (!fs.lstatSync(file).isFile() || name === 'lock') continue
      if (damage === 'remove') fs.unlinkSync(file)
      else if (damage === 'cut') fs.truncateSync(file, Math.floor(fs.lstatSync(file).size / 2))
      else fs.writeFileSync(file, 'garbage')
    }
    scratch.write({ 'a.txt': `${damage}\n` })
    const { checkpoint } = scratch.ckpt('snapshot')
    expect(inStore(scratch, 'show', `${checkpoint.id}:a.txt`)).toBe(damage)
    expect(inStore(scratch, 'show', `${checkpoint.id}:sub/b.txt`)).toBe('one')
    expect(checkpoint.degraded).toBe(false)
  }
})

test('promise 11: each reason for leaving a path out is listed by its name', () => {
  const scratch = new Scratch().init({ 'a.txt': 'one\n', '.gitignore': 'ignored.txt\nignored-dir/\n' })
  userConfig(scratch, { snapshot: { maxFileSize: '1KiB', maxBytes: '8KiB', exclude: ['*.skip'] } })
  scratch.write({ 'large.txt': 'x'.repeat(2000), 'ignored.txt': 'x\n', 'ignored-dir/x': 'x\n', 'x.skip': 'x\n' })
  scratch.git('init', '-q', 'nested')
  scratch.write({ 'nested/n.txt': 'n\n', 'sub/.GIT/x': 'x\n' })
  execFileSync('mkfifo', [scratch.at('sub/pipe')])
  const { checkpoint } = scratch.ckpt('snapshot')
  expect(rows(checkpoint.uncovered)).toEqual([
    'nested-repo nested/',
    'special sub/pipe',
    'too-large large.txt',
    'unrepresentable sub/.GIT',
    'unrepresentable sub/.GIT/x',
  ])
  expect(checkpoint.ignoredCount).toBe(3)
  for (let i = 0; i < 12; i++) scratch.write({ [`n${i}.txt`]: String(i).repeat(900).slice(0, 900) })
  const over = scratch.ckpt('snapshot').checkpoint
  const budget = rows(over.uncovered).filter((row) => row.startsWith('budget'))
  expect([over.degraded, budget.length > 0, budget.length < 12]).toEqual([true, true, true])
  expect(rows(scratch.ckpt('status').uncovered)).toEqual(rows(over.uncovered))
})

test('promise 11: what is over the budget goes with restore --exact and switch all the same, guarded and saved', () => {
  const scratch = new Scratch().init({ 'a.txt': 'one\n' })
  userConfig(scratch, { snapshot: { maxBytes: '10KiB' } })
  scratch.turn('one', () => scratch.write({ 'a.txt': 'two\n' }))
  const disk = scratch.manifest()
  const add = () => scratch.write({ extra: 'x'.repeat(20_000), 'dir/extra': 'y'.repeat(20_000), small: 's\n' })
  add()
  const more = scratch.manifest()
  const exact = ['restore', '1:after', '--exact']
  for (const command of [exact, ['switch', '1']]) {
    const { code, document } = scratch.tryCkpt(...command)
    expect([code, document.error.paths]).toEqual([4, ['dir/extra', 'extra', 'small']])
    expect(scratch.manifest()).toEqual(more)
  }
  const part = scratch.ckpt(...exact, '--force', '--', 'dir')
  expect([part.files, part.warnings]).toEqual([
    [{ path: 'dir/extra', action: 'delete' }],
    ['Held by the safety checkpoint alone once they are gone: dir/extra.'],
  ])
  const { safety } = scratch.ckpt(...exact, '--force')
  expect(scratch.manifest()).toEqual(disk)
  scratch.ckpt('restore', safety, '--force')
  expect(scratch.read('extra')).toBe('x'.repeat(20_000))
  // As a turn left it.
  scratch.turn('two', add)
  const there = scratch.ckpt('switch', '1')
  expect(there.warnings).toEqual(['Held by the safety checkpoint alone once they are gone: dir/extra, extra.'])
  expect(scratch.manifest()).toEqual(disk)
  const back = scratch.ckpt('switch', '2')
  expect([back.files, back.warnings]).toEqual([
    [{ path: 'small', action: 'write' }],
    ['Not brought back, for that checkpoint does not hold them: dir/extra (budget), extra (budget).'],
  ])
  scratch.ckpt('restore', there.safety)
  expect(scratch.manifest()).toEqual(more)
})

test('promise 11: --exact says when not all was looked at', () => {
  const scratch = new Scratch().init({ 'a.txt': 'one\n' })
  const { checkpoint } = scratch.ckpt('snapshot')
  scratch.write({ 'new.txt': 'new\n' })
  userConfig(scratch, { snapshot: { deadline: 1 } })
  const said = (...more: string[]) => scratch.ckpt('restore', checkpoint.id, ...more).warnings.join()
  expect([said(), said('--exact')]).toEqual([
    '',
    expect.stringMatching(/^What is known of the files now may lack some/),
  ])
  expect(scratch.exists('new.txt')).toBe(true)
})

test('promise 12: what was captured before, and is read again, costs nothing of the budget', () => {
  const scratch = new Scratch().init({ 'a.txt': 'one\n' })
  userConfig(scratch, { snapshot: { maxBytes: '10KiB' } })
  scratch.write({ 'known.bin': 'x'.repeat(8000) })
  scratch.ckpt('snapshot')
  fs.utimesSync(scratch.at('known.bin'), 1, 1)
  scratch.write({ 'new.bin': 'y'.repeat(8000) })
  expect(scratch.ckpt('snapshot').checkpoint.uncovered).toEqual([])
  scratch.write({ 'known.bin': 'z'.repeat(8000), 'new2.bin': 'y'.repeat(8000) })
  expect(rows(scratch.ckpt('snapshot').checkpoint.uncovered)).toEqual(['budget new2.bin'])
})

test('promise 11: include wins over ignore rules, for what must not be lost', () => {
  const scratch = new Scratch().init({ 'a.txt': 'one\n', '.gitignore': '.env\nbuild/\n' })
  userConfig(scratch, { snapshot: { include: ['.env', 'build/keep.txt'] } })
  scratch.write({ '.env': 'TOKEN=1\n', 'build/keep.txt': 'kept\n', 'build/o.bin': 'object\n' })
  const before = scratch.manifest()
  scratch.turn('lose them', () => {
    scratch.write({ '.env': 'TOKEN=2\n' })
    scratch.remove('build/keep.txt')
  })
  scratch.ckpt('undo')
  expect(scratch.manifest()).toEqual(before)
})

test('promise 11: a tracked file that a rule ignores is covered, and not listed as left out', () => {
  const scratch = new Scratch().init({ '.gitignore': '*.log\n' })
  scratch.write({ 'kept.log': 'one\n', 'left.log': 'x\n' })
  scratch.git('add', '-f', 'kept.log')
  scratch.git('commit', '-q', '-m', 'kept')
  expect(scratch.ckpt('snapshot').checkpoint.ignoredCount).toBe(1)
  scratch.write({ 'kept.log': 'two\n' })
  expect(scratch.ckpt('snapshot').checkpoint.ignoredCount).toBe(1)
  scratch.turn('remove', () => scratch.remove('kept.log'))
  scratch.ckpt('undo')
  expect([scratch.read('kept.log'), scratch.read('left.log')]).toEqual(['two\n', 'x\n'])
})

test('promise 11: a tracked file in an ignored directory is covered, also when a turn removes it', () => {
  const scratch = new Scratch().init({ 'a.txt': 'one\n', '.gitignore': 'build/\n' })
  scratch.write({ 'build/keep.txt': 'kept\n', 'build/edit.txt': 'one\n', 'build/o.bin': 'object\n' })
  scratch.git('add', '-f', 'build/keep.txt', 'build/edit.txt')
  scratch.git('commit', '-qm', 'tracked all the same')
  const before = scratch.manifest()
  scratch.turn('work', () => {
    scratch.remove('build/keep.txt')
    scratch.write({ 'build/edit.txt': 'two\n' })
  })
  const after = scratch.manifest()
  scratch.ckpt('undo')
  expect(scratch.manifest()).toEqual(before)
  scratch.ckpt('redo')
  expect(scratch.manifest()).toEqual(after)
})

test('promise 11: where an undo cannot bring back more than it names, it says what lists them all, and that does', () => {
  const scratch = new Scratch().init({ 'a.txt': 'one\n', '.gitignore': '*.log\n' })
  const names = Array.from({ length: 8 }, (_, n) => `${n}.log`)
  scratch.turn('x', () => scratch.write(Object.fromEntries(['a.txt', ...names].map((name) => [name, 'two\n']))))
  const said = scratch.ckpt('undo').warnings.join()
  const [, listing] =
    /^Turn 1 also changed .*: 0\.log, .* and 3 more \(all of them: ckpt (show 1 --session s)\)\.$/.exec(said)!
  const { stdout } = scratch.run(listing!.split(' '))
  for (const name of names) expect(stdout).toContain(name)
})

test('promise 11: an undo that cannot bring an uncovered path back says so', () => {
  const scratch = new Scratch().init({ 'a.txt': 'one\n', '.gitignore': 'dist/\n' })
  scratch.write({ 'dist/app.js': 'built\n', 'large.bin': Buffer.alloc(11 * MIB) })
  scratch.ckpt('mark', 'prompt', '--session', 's')
  scratch.remove('dist', 'large.bin')
  scratch.write({ 'a.txt': 'two\n' })
  const { checkpoint } = scratch.ckpt('mark', 'stop', '--session', 's')
  expect(rows(checkpoint.uncovered)).toContain('ignored dist/')
  const { code, stderr } = scratch.run(['undo'])
  expect(code).toBe(0)
  expect(stderr).toMatch(/cannot be undone: .*dist\/.*large\.bin/)
})

test('promise 11: what a checkpoint does not hold is no file that is the same: diff, restore and switch name it', () => {
  const scratch = new Scratch().init({ 'a.txt': 'one\n', '.gitignore': '*.log\n' })
  userConfig(scratch, { snapshot: { maxFileSize: '10KiB' } })
  const large = (text: string) => ({ big: text.repeat(20_000) })
  scratch.write({ ...large('x'), 'b.log': 'x\n', 'same/big': 'y'.repeat(20_000) })
  scratch.git('init', '-q', scratch.at('nested'))
  scratch.turn('one', () => scratch.write({ ...large('z'), 'b.log': 'zz\n', 'nested/x': 'z\n' }))
  const left = 'Not compared, for checkpoints do not hold it: '
  const compared = (...args: string[]) => {
    const { files, warnings } = scratch.ckpt('diff', ...args)
    return [files, warnings]
  }
  expect(compared('1')).toEqual([[], [`${left}big (too-large), nested/ (nested-repo).`]])
  expect(compared('1:before', 'worktree')).toEqual([[], [`${left}big (too-large), nested/ (nested-repo).`]])
  expect(compared('1', '--', 'big')).toEqual([[], [`${left}big (too-large).`]])
  expect(compared('1', '--', 'b.log')).toEqual([[], [`${left}b.log (ignored).`]])
  expect(compared('1', '--', 'nested/x')).toEqual([[], [`${left}nested/ (nested-repo).`]])
  expect(compared('1', '--', 'same')).toEqual([[], []])
  expect(scratch.run(['diff', '1'])).toMatchObject({ stdout: '', stderr: expect.stringMatching(/^No differences\.\n/) })

  const disk = scratch.manifest()
  const not = 'Not brought back, for that checkpoint does not hold them: '
  for (const command of [
    ['restore', '1:before'],
    ['restore', '1:before', '--exact'],
  ]) {
    const { files, warnings } = scratch.ckpt(...command)
    expect([files, warnings]).toEqual([[], [`${not}big (too-large), nested/ (nested-repo).`]])
  }
  for (const [name, whole] of [
    ['big', 'big (too-large)'],
    ['b.log', 'b.log (ignored)'],
    ['nested/x', 'nested/ (nested-repo)'],
  ]) {
    const { code, document } = scratch.tryCkpt('restore', '1:before', '--', name!)
    expect([code, document.error.message]).toEqual([3, `That checkpoint does not hold ${whole}. Nothing was changed.`])
  }
  // What is as it was needs nothing brought back.
  expect(scratch.ckpt('restore', '1:before', '--', 'same/big').warnings).toEqual([])
  expect(scratch.ckpt('restore', '1:before', '--', 'a.txt', 'big').warnings).toEqual([`${not}big (too-large).`])
  expect(scratch.ckpt('switch', '1:before').warnings).toEqual([`${not}big (too-large), nested/ (nested-repo).`])
  expect(scratch.manifest()).toEqual(disk)
})

test('promise 11: what a checkpoint does not hold is not held by it where it is covered now, either', () => {
  const scratch = new Scratch().init({ 'a.txt': 'one\n' })
  userConfig(scratch, { snapshot: { maxFileSize: '10KiB' } })
  scratch.write({ big: 'x'.repeat(20_000) })
  scratch.turn('one', () => scratch.write({ 'a.txt': 'two\n' }))
  scratch.write({ big: 'small by now\n' })
  const { code, document } = scratch.tryCkpt('restore', '1', '--', 'big')
  expect([code, document.error.message]).toEqual([
    3,
    'That checkpoint does not hold big (too-large). Nothing was changed.',
  ])
  expect(scratch.ckpt('restore', '1:before').files).toEqual([
    { path: 'a.txt', action: 'write' },
    { path: 'big', action: 'skip', reason: 'is not held by that checkpoint (too-large)' },
  ])
})

test('promise 11: a fifo that is used differs in nothing', () => {
  const scratch = new Scratch().init({ 'a.txt': 'one\n' })
  execFileSync('mkfifo', [scratch.at('fifo')])
  scratch.turn('one', () => scratch.write({ 'a.txt': 'two\n' }))
  execFileSync('sh', ['-c', 'cat <fifo >/dev/null & echo x >fifo; wait'], { cwd: scratch.root })
  expect(scratch.ckpt('diff', '1', 'worktree')).toMatchObject({ files: [], warnings: [] })
  expect(scratch.ckpt('restore', '1')).toMatchObject({ files: [], warnings: [] })
})

test('promise 11: where the deadline left nothing to look at, show, diff and undo say that they do not know', () => {
  const scratch = new Scratch().init({ 'a.txt': 'one\n' })
  userConfig(scratch, { snapshot: { deadline: 1 } })
  scratch.ckpt('mark', 'prompt', '--session', 's')
  scratch.write({ 'a.txt': 'two\n', 'new.txt': 'new\n' })
  scratch.ckpt('mark', 'stop', '--session', 's')
  const shown = scratch.ckpt('show', '1')
  expect([shown.files, shown.turn.stat.files, rows(shown.uncovered)]).toEqual([[], 0, ['budget .']])
  expect(scratch.run(['show', '1']).stdout).toContain('Not covered, and changed: . (budget)')
  expect(scratch.run(['show', '1:before']).stdout).toContain('Not covered: . (budget)')
  const unsure = expect.stringContaining('may lack some of what was there')
  expect(scratch.ckpt('diff', '1').warnings).toEqual([unsure, unsure])
  expect(scratch.ckpt('undo', '--dry-run').warnings).toEqual([unsure])
  expect(scratch.ckpt('undo').warnings).toEqual([unsure])
  expect([scratch.read('a.txt'), scratch.read('new.txt')]).toEqual(['two\n', 'new\n'])
})

test('promise 11: show names what a checkpoint does not cover', () => {
  const scratch = new Scratch().init({ 'a.txt': 'one\n' })
  userConfig(scratch, { snapshot: { maxFileSize: '1k' } })
  scratch.write({ 'big.bin': Buffer.alloc(2000) })
  const { checkpoint } = scratch.ckpt('snapshot')
  expect(scratch.run(['show', checkpoint.id]).stdout).toContain('Not covered: big.bin (too-large)')
})

test('promise 12: byte budgets hold before the work is done, and a deadline before the turn is late', () => {
  const scratch = new Scratch().init({ 'a.txt': 'one\n' })
  userConfig(scratch, { snapshot: { maxFileSize: '100MiB', maxBytes: '20MiB', deadline: '1s' } })
  for (let i = 0; i < 12; i++) fs.writeFileSync(scratch.at(`b${i}.bin`), Buffer.alloc(8 * MIB, i))
  const { checkpoint } = scratch.ckpt('mark', 'prompt', '--session', 's')
  expect(checkpoint.degraded).toBe(true)
  const reasons = new Set(checkpoint.uncovered.map(({ reason }: Json) => reason))
  expect([...reasons]).toEqual(['budget'])
  expect(scratch.run(['list']).stdout).toMatch(/running, degraded$/m)
  const read = Number(inStore(scratch, 'ls-tree', '-rl', checkpoint.id).match(/\.bin$/gm)?.length ?? 0)
  expect(read).toBeLessThanOrEqual(2)
  expect(inStore(scratch, 'show', `${checkpoint.id}:a.txt`)).toBe('one') // what was known goes first
})

test("promise 12: what the deadline left nothing of is not gone on with: the repository's contents are not taken over for it", () => {
  const many = Object.fromEntries(Array.from({ length: 40 }, (_, i) => [`f${i}`, `${i}\n`]))
  const scratch = new Scratch().init(many)
  // Not so near to the files' times that it vouches for none of them.
  const later = new Date(Date.now() + 10_000)
  fs.utimesSync(scratch.at('.git/index'), later, later)
  const objects = scratch.at('.git/objects')
  const linked = () =>
    fs
      .readdirSync(objects, { recursive: true, encoding: 'utf8' })
      .filter((name) => /^..\/[0-9a-f]{38}$/.test(name) && fs.statSync(`${objects}/${name}`).nlink > 1).length
  const mark = () => scratch.ckpt('mark', 'prompt', '--session', 's').checkpoint.degraded
  userConfig(scratch, { snapshot: { deadline: 1 } })
  expect([mark(), linked()]).toEqual([true, 0])
  userConfig(scratch, {})
  expect([mark(), linked() >= 40]).toEqual([false, true])
})

test('promise 12: $HOME, / and a directory that contains the store are refused; nothing is made there', () => {
  const scratch = new Scratch()
  const refused = (cwd: string, vars: Record<string, string> = {}, command = ['init']) => {
    const { code, stdout } = scratch.run([...command, '--json'], { cwd, vars })
    expect([cwd, code, JSON.parse(stdout).error?.code]).toEqual([cwd, 9, 'BAD_ROOT'])
  }
  refused('/')
  refused(scratch.home)
  fs.symlinkSync(scratch.home, `${scratch.base}/link-to-home`)
  refused(`${scratch.base}/link-to-home`)
  refused(scratch.base) // XDG_STATE_HOME lies below it
  refused(scratch.root, { CKPT_STATE_DIR: scratch.at('state') })
  scratch.git('-C', scratch.home, 'init', '-q')
  refused(scratch.home, {}, ['snapshot'])
  fs.mkdirSync(`${scratch.home}/below`)
  refused(`${scratch.home}/below`, {}, ['snapshot'])
  scratch.git('init', '-q')
  scratch.git('config', 'core.worktree', '/')
  refused(scratch.root, {}, ['snapshot'])
  expect(fs.existsSync(scratch.at('.git/ckpt'))).toBe(false)
  expect(fs.readdirSync(scratch.home).sort()).toEqual(['.git', 'below'])
  expect(fs.existsSync(`${scratch.home}/.git/ckpt`)).toBe(false)
})

test('promise 12: a worktree that has no .git which leads back to its repository is refused', () => {
  const scratch = new Scratch().init()
  scratch.git('config', 'core.worktree', scratch.base)
  for (const line of ['status', 'snapshot', 'undo']) {
    const { code, document } = scratch.tryCkpt(line)
    expect([line, code, document.error.code, document.error.message]).toEqual([
      line,
      9,
      'BAD_ROOT',
      expect.stringContaining('core.worktree'),
    ])
  }
  expect(fs.existsSync(scratch.at('.git/ckpt'))).toBe(false)
})

test('promise 12: a bare repository and the inside of a git directory are refused', () => {
  const scratch = new Scratch().init()
  scratch.git('init', '-q', '--bare', `${scratch.base}/bare.git`)
  for (const cwd of [`${scratch.base}/bare.git`, scratch.at('.git'), scratch.at('.git/refs')]) {
    const { code, stdout } = scratch.run(['snapshot', '--json'], { cwd })
    expect([cwd, code, JSON.parse(stdout).error.code]).toEqual([cwd, 9, 'BAD_ROOT'])
  }
})

test('promise 12: our own directories are never part of a snapshot, wherever they lie', () => {
  const scratch = new Scratch()
  scratch.git('init', '-q', '--separate-git-dir', scratch.at('git-dir'))
  scratch.write({ 'a.txt': 'one\n' })
  const { checkpoint } = scratch.ckpt('snapshot')
  expect(inStore2(scratch, checkpoint.id)).toEqual(['a.txt'])
  scratch.turn('work', () => scratch.write({ 'a.txt': 'two\n' }))
  scratch.ckpt('undo')
  expect(scratch.read('a.txt')).toBe('one\n')
  expect(fs.existsSync(storeOf(scratch))).toBe(false)
})

test('promise 12: nor is the state directory, with what agents and stores elsewhere have in it', () => {
  const scratch = new Scratch().init({ 'a.txt': 'one\n' })
  const location = `${scratch.base}/stores`
  scratch.write({
    '../home/.config/ckpt/.checkpointrc': JSON.stringify({ store: { location } }),
    'state/mine': 'mine\n',
  })
  const vars = { CKPT_STATE_DIR: scratch.at('state/ckpt') }
  const ckpt = (...args: string[]) => JSON.parse(scratch.run([...args, '--json'], { vars }).stdout)
  ckpt('agent', 'install', 'claude', '--scope', 'user')
  ckpt('snapshot')
  expect(fs.readdirSync(scratch.at('state/ckpt'))).toEqual(['agents', 'by-path', 'node'])
  const { checkpoint } = ckpt('snapshot')
  expect(ckpt('diff', checkpoint.id, '--name-only').files).toEqual([])
  const { files } = ckpt('restore', checkpoint.id, '--exact', '--dry-run')
  expect(files).toEqual([])
  scratch.write({ 'state/ckpt/new': 'new\n', 'state/mine': 'changed\n' })
  expect(ckpt('diff', checkpoint.id, 'worktree', '--name-only').files).toMatchObject([{ path: 'state/mine' }])
})

const inStore2 = (scratch: Scratch, id: string) =>
  scratch
    .git(`--git-dir=${scratch.at('git-dir/ckpt/store.git')}`, 'ls-tree', '-r', '--name-only', id)
    .trim()
    .split('\n')

test.each([
  ['a socket', (at: string) => execFileSync('mkfifo', [`${at}/it`]), 'rm run/it; echo 1 >run/pid'],
  ['a nested repository', (at: string) => execFileSync('git', ['init', '-q', `${at}/it`]), 'rm -r run/it'],
  ['a large file', (at: string) => fs.writeFileSync(`${at}/it`, Buffer.alloc(11 * MIB)), 'rm -r run'],
])(
  'promise 11: a directory that held nothing but %s was there all the same: no undo takes it away',
  (_, fill, does) => {
    const scratch = new Scratch().init()
    fs.mkdirSync(scratch.at('run'))
    fs.chmodSync(scratch.at('run'), 0o2750)
    fill(scratch.at('run'))
    const { checkpoint } = scratch.ckpt('snapshot')
    scratch.ckpt('run', '--', 'sh', '-c', does)
    const left = scratch.manifest()
    scratch.ckpt('undo')
    const gone = does.endsWith(' run')
    expect(scratch.manifest()['run/']).toBe(gone ? undefined : 'directory 2750')
    expect(scratch.exists('run/pid')).toBe(false)
    scratch.ckpt('redo')
    expect(scratch.manifest()).toEqual(left)
    scratch.ckpt('restore', checkpoint.id, '--exact')
    expect(scratch.manifest()['run/']).toBe(gone ? undefined : 'directory 2750')
  },
)
