// Directories that their owner closed are opened for the moment of writing; what this user cannot change is a conflict of its path.
import { execFileSync, spawnSync } from 'node:child_process'
import fs from 'node:fs'
import { expect, onTestFinished, test } from 'vitest'
import { killAt } from '../support/amid.ts'
import { isRoot, type Json, OTHER_USER, Scratch } from '../support/scratch.ts'
import { mountSmall, testWithMounts } from '../support/small-disk.ts'

/** A worktree of a user who is not root, and what that user does there. */
function place(files: Record<string, string> = { 'a.txt': 'one\n' }) {
  const scratch = new Scratch().init(files)
  const uid = scratch.handOver()
  const as = isRoot ? ['setpriv', `--reuid=${uid}`, `--regid=${uid}`, '--clear-groups'] : ['env']
  const sh = (script: string) => execFileSync(as[0]!, [...as.slice(1), 'sh', '-c', script], { cwd: scratch.root })
  const ckpt = (...args: string[]): Json => {
    const { code, stdout } = scratch.run([...args, '--json'], { uid })
    return { code, ...JSON.parse(stdout) }
  }
  const turn = (script: string) => {
    ckpt('mark', 'prompt', '--session', 's')
    sh(script)
    ckpt('mark', 'stop', '--session', 's')
  }
  return { scratch, sh, ckpt, turn }
}

test.each([
  ['made', '', 'mkdir ro; echo x >ro/f; chmod 555 ro'],
  ['made, with others inside', '', 'mkdir -p ro/in; echo x >ro/in/f; chmod 555 ro/in ro'],
  ['removed', 'mkdir ro; echo x >ro/f; chmod 555 ro', 'chmod 755 ro; rm -rf ro'],
  ['opened, and written into', 'mkdir ro; echo x >ro/f; chmod 555 ro', 'chmod 755 ro; rm ro/f; echo y >ro/e'],
  [
    'written into, and closed again',
    'mkdir ro; echo x >ro/f; chmod 500 ro',
    'chmod 700 ro; echo y >ro/f; chmod 500 ro',
  ],
  [
    'a file in the place of',
    'mkdir -p ro/in; echo x >ro/in/f; chmod 555 ro/in ro',
    'chmod -R u+w ro; rm -rf ro; echo x >ro',
  ],
  ['the root', '', 'echo x >new; chmod 555 .'],
])('a closed directory is %s: undo and redo give every state and mode back', (_, before, work) => {
  const { scratch, sh, ckpt, turn } = place()
  sh(before)
  const first = scratch.manifest()
  turn(work)
  const second = scratch.manifest()
  expect(ckpt('undo').code).toBe(0)
  expect(scratch.manifest()).toEqual(first)
  expect(ckpt('redo').code).toBe(0)
  expect(scratch.manifest()).toEqual(second)
  expect(ckpt('verify').problems).toEqual([])
})

test.skipIf(!isRoot)('what this user cannot change is found while planning, and can be skipped', () => {
  const { scratch, ckpt, turn } = place({ 'a.txt': 'one\n', 'theirs/b.txt': 'one\n' })
  turn('echo two >a.txt; echo two >theirs/b.txt; echo new >theirs/c.txt')
  fs.chownSync(scratch.at('theirs'), 0, 0)
  const disk = scratch.manifest()
  for (const args of [['undo'], ['undo', '--force'], ['undo', '--merge']]) {
    const { code, error } = ckpt(...args)
    expect([args, code, error.paths]).toEqual([args, 4, ['theirs/b.txt', 'theirs/c.txt']])
    expect(error.message).toMatch(/theirs\/b\.txt \(it cannot be changed here: permission denied\)/)
    expect(scratch.manifest()).toEqual(disk)
  }
  expect(ckpt('undo', '--skip-conflicts').code).toBe(0)
  expect(scratch.manifest()).toEqual({ ...disk, 'a.txt': expect.stringMatching(/./) })
  expect(scratch.read('a.txt')).toBe('one\n')
})

test.skipIf(!isRoot).each([
  ['what goes with it', '', 'mkdir x; echo w >x/w', 'x', ['write a.txt', 'skip x/w'], ['x/w']],
  [
    'a file that was in its place',
    'echo p >x',
    'rm x; mkdir x; echo w >x/w',
    'x',
    ['write a.txt', 'skip x', 'skip x/w'],
    ['x/w', 'x'],
  ],
  [
    'what was below it',
    'mkdir -p d/x; echo w >d/x/w; chmod 1777 d',
    'rm -r d/x; echo p >d/x',
    'd',
    ['write a.txt', 'skip d/x', 'skip d/x/w'],
    ['d/x', 'd/x/w'],
  ],
])('what this user cannot take away holds back %s too, and nothing else', (_, before, work, closed, files, held) => {
  const { scratch, sh, ckpt, turn } = place()
  sh(before)
  turn(`echo two >a.txt; ${work}`)
  execFileSync('chown', ['-R', '0:0', scratch.at(closed)])
  const disk = scratch.manifest()
  const { code, error } = ckpt('undo')
  expect([code, error.paths]).toEqual([4, held.toSorted()])
  expect(scratch.manifest()).toEqual(disk)
  const undone = ckpt('undo', '--skip-conflicts')
  expect([undone.code, undone.files.map((one: Json) => `${one.action} ${one.path}`)]).toEqual([0, files])
  expect(scratch.manifest()).toEqual({ ...disk, 'a.txt': expect.stringMatching(/./) })
  expect(scratch.read('a.txt')).toBe('one\n')
  expect(ckpt('redo').files).toMatchObject([{ path: 'a.txt' }])
  expect([scratch.manifest(), ckpt('verify').problems]).toEqual([disk, []])
})

test.skipIf(!isRoot).each([
  ['a file of somebody else in a sticky directory', 'echo w >d/w', 'd/w'],
  ['a symlink', 'ln -s w d/w', 'd/w'],
  ['an empty directory', 'mkdir d/w', 'd/w/'],
])('%s is found while planning, and can be skipped', (_, work, held) => {
  const { scratch, sh, ckpt, turn } = place()
  sh('mkdir d; chmod 1777 d')
  fs.chownSync(scratch.at('d'), 0, 0)
  turn(`echo two >a.txt; ${work}`)
  fs.lchownSync(scratch.at('d/w'), 0, 0)
  const { files } = ckpt('undo', '--skip-conflicts', '--dry-run')
  expect(files).toMatchObject([
    { path: 'a.txt', action: 'write' },
    { path: held, action: 'skip', reason: 'it cannot be changed here: permission denied' },
  ])
  expect(ckpt('undo', '--skip-conflicts').code).toBe(0)
  expect([scratch.read('a.txt'), fs.readdirSync(scratch.at('d'))]).toEqual(['one\n', ['w']])
})

test.skipIf(!isRoot)('so is the mode of a directory of somebody else; it may be written into', () => {
  const { scratch, sh, ckpt, turn } = place()
  sh('mkdir -p d/e; chmod 777 d d/e')
  turn('echo two >a.txt; chmod 755 d/e')
  fs.chownSync(scratch.at('d/e'), 0, 0)
  fs.chmodSync(scratch.at('d/e'), 0o755)
  const { files } = ckpt('undo', '--skip-conflicts')
  expect(files.map(({ path, action }: Json) => `${action} ${path}`)).toEqual(['write a.txt', 'skip d/e/'])
  expect(fs.statSync(scratch.at('d/e')).mode & 0o777).toBe(0o755)
})

test.skipIf(!isRoot).each([
  ['is gone', 'rm tool', false],
  ['is another one’s', 'rm tool; echo new >tool', true],
  ['is a link', 'rm tool; ln -s a.txt tool', true],
  ['is a copy', 'cp tool copy; mv -f copy tool; chmod 644 tool', true],
  ['is a directory', 'rm tool; mkdir tool', false],
])('root makes no program of somebody else, that %s now, one that runs with its own rights', (_, work, isTaken) => {
  const { scratch, sh, ckpt, turn } = place()
  sh('echo tool >tool; echo plain >plain; chmod 4755 tool')
  turn(`echo two >a.txt; rm plain; ${work}`)
  if (isTaken) fs.lchownSync(scratch.at('tool'), 0, 0)
  const disk = scratch.manifest()
  const undo = (...args: string[]) => {
    const { code, stdout } = scratch.run(['undo', '--json', ...args], { vars: { SUDO_UID: String(OTHER_USER) } })
    return { code, ...JSON.parse(stdout) }
  }
  const { code, error } = undo()
  expect([code, error.paths, error.hints.at(-1)]).toEqual([
    4,
    ['tool'],
    'ckpt undo   (again, as the user whose directory it is)',
  ])
  expect([undo('--force').code, scratch.manifest()]).toEqual([4, disk])
  expect(undo('--skip-conflicts').code).toBe(0)
  expect([scratch.read('a.txt'), scratch.read('plain'), scratch.manifest().tool]).toEqual([
    'one\n',
    'plain\n',
    disk.tool,
  ])
  execFileSync('chown', ['-Rh', `${OTHER_USER}:${OTHER_USER}`, scratch.root]) // what root adds to the store is root's
  expect(ckpt('redo').code).toBe(0)
  expect(ckpt('undo').code).toBe(0)
  expect(fs.statSync(scratch.at('tool')).mode & 0o7777).toBe(0o4755)
})

test.skipIf(!isRoot)('what stays somebody else’s is given back by root as it was', () => {
  const { scratch, sh, turn } = place()
  sh('echo tool >tool; chmod 4755 tool')
  turn('echo changed >tool; chmod 755 tool')
  expect(scratch.run(['undo'], { vars: { SUDO_UID: String(OTHER_USER) } }).code).toBe(0)
  const { mode, uid } = fs.statSync(scratch.at('tool'))
  expect([scratch.read('tool'), mode & 0o7777, uid]).toEqual(['tool\n', 0o4755, OTHER_USER])
})

// It is mounted here: skipped where nobody may mount.
testWithMounts('what is on a read-only file system is said to be, and goes once it is not', () => {
  const scratch = new Scratch().init()
  const disk = scratch.at('disk')
  fs.mkdirSync(disk)
  mountSmall(disk, '1m')
  scratch.turn('work', () => scratch.write({ 'disk/b.txt': 'two\n' }))
  execFileSync('mount', ['-o', 'remount,ro', disk])
  const { code, document } = scratch.tryCkpt('undo')
  expect([code, document.error.paths, document.error.hints.at(-1)]).toEqual([
    4,
    ['disk/b.txt'],
    'ckpt undo   (again, once it can be changed)',
  ])
  expect(document.error.message).toContain('disk/b.txt (it cannot be changed here: the file system is read-only)')
  execFileSync('mount', ['-o', 'remount,rw', disk])
  scratch.ckpt('undo')
  expect(scratch.exists('disk/b.txt')).toBe(false)
})

/** Whether root may do it here; a container may not, nor is there everything everywhere. */
function tried(scratch: Scratch, ...[command, ...args]: [string, ...string[]]): boolean {
  return isRoot && spawnSync(command, args, { cwd: scratch.root, stdio: 'ignore' }).status === 0
}

test('what is append-only stops an undo, which takes back what it wrote and names it; the rest can be undone by name', ({
  skip,
}) => {
  const scratch = new Scratch().init({ 'a.txt': 'one\n', log: 'one\n' })
  scratch.turn('work', () => scratch.write({ 'a.txt': 'two\n', log: 'two\n' }))
  onTestFinished(() => void tried(scratch, 'chattr', '-a', 'log'))
  skip(!tried(scratch, 'chattr', '+a', 'log'), 'no chattr +a here')
  const disk = scratch.manifest()
  const { code, document } = scratch.tryCkpt('undo')
  expect([code, document.error.message]).toEqual([1, expect.stringMatching(/at log \(EPERM\)/)])
  expect(scratch.manifest()).toEqual(disk)
  scratch.ckpt('undo', '--', 'a.txt')
  expect([scratch.read('a.txt'), scratch.read('log')]).toEqual(['one\n', 'two\n'])
})

test('a file on which another one is mounted stays, is named, and can be skipped', ({ skip }) => {
  const scratch = new Scratch().init({ 'a.txt': 'one\n', 'of the host.txt': 'one\n' })
  fs.writeFileSync(`${scratch.base}/host`, 'host\n')
  onTestFinished(() => void tried(scratch, 'umount', 'of the host.txt'))
  skip(!tried(scratch, 'mount', '--bind', `${scratch.base}/host`, 'of the host.txt'), 'no mounts here')
  scratch.turn('work', () => {
    scratch.write({ 'a.txt': 'two\n', 'of the host.txt': 'two\n' })
    fs.chmodSync(scratch.at('of the host.txt'), 0o600)
  })
  const { code, document } = scratch.tryCkpt('undo', '--force')
  expect([code, document.error.message]).toEqual([
    4,
    expect.stringContaining('of the host.txt (something is mounted there)'),
  ])
  expect(scratch.read('a.txt')).toBe('two\n')
  scratch.ckpt('undo', '--skip-conflicts')
  expect([scratch.read('a.txt'), scratch.read('of the host.txt')]).toEqual(['one\n', 'two\n'])
  expect(scratch.ckpt('verify').problems).toEqual([])
})

test.skipIf(!isRoot)(
  'a file of a group that this user is not in is found while planning; its mode alone is given back',
  () => {
    const { scratch, ckpt, turn } = place({ 'a.txt': 'one\n', 'group.txt': 'one\n', 'mode.txt': 'one\n' })
    for (const name of ['group.txt', 'mode.txt']) fs.chownSync(scratch.at(name), 4321, 7777)
    turn('echo two >a.txt; echo two >group.txt; chmod 600 mode.txt')
    const disk = scratch.manifest()
    const { code, error } = ckpt('undo', '--force')
    expect([code, error.paths, error.message]).toEqual([
      4,
      ['group.txt'],
      expect.stringMatching(/its owner cannot be kept/),
    ])
    expect(scratch.manifest()).toEqual(disk)
    expect(ckpt('undo', '--skip-conflicts').code).toBe(0)
    expect([scratch.read('a.txt'), scratch.read('group.txt')]).toEqual(['one\n', 'two\n'])
    const { mode, gid } = fs.lstatSync(scratch.at('mode.txt'))
    expect([mode & 0o7777, gid]).toEqual([0o644, 7777])
  },
)

test.each(['000', '400'])(
  'what lies in a directory that cannot be looked into now (mode %s) is left, and the rest undone',
  (mode) => {
    const { scratch, ckpt, sh, turn } = place()
    sh('mkdir -p k/open; echo x >k/open/f')
    turn('mkdir k/new; chmod 700 k/open; echo two >a.txt; echo b >b')
    const done = scratch.manifest()
    sh(`chmod ${mode} k`)
    const { code, files } = ckpt('undo')
    expect([code, scratch.read('a.txt'), scratch.exists('b')]).toEqual([0, 'one\n', false])
    expect(files.filter(({ action }: Json) => action === 'skip').map(({ path }: Json) => path)).toEqual([
      'k/new/',
      'k/open/',
    ])
    sh('chmod 755 k')
    expect(ckpt('redo').code).toBe(0)
    expect(scratch.manifest()).toEqual(done)
    expect(ckpt('verify', '--worktree').problems).toEqual([])
  },
)

/** An undo that was killed before its first write. */
function killedUndo(before: string) {
  const here = place({ 'a.txt': 'one\n', 'k/f': 'one\n' })
  here.turn(`echo two >a.txt; echo two >k/f; ${before}`)
  const vars = killAt(here.scratch, ['renameSync', 'journal.json'])
  expect(here.scratch.run(['undo'], { uid: here.scratch.handOver(), vars }).code).toBe(128)
  return here
}

test.each(['000', '400'])('a killed undo is finished also in a directory that was closed since (mode %s)', (mode) => {
  const { scratch, ckpt, sh } = killedUndo('')
  sh(`chmod ${mode} k`)
  expect(ckpt('snapshot').warnings[0]).toBe('A killed undo was finished.')
  expect(fs.statSync(scratch.at('k')).mode & 0o777).toBe(Number.parseInt(mode, 8))
  expect([scratch.read('a.txt'), scratch.read('k/f')]).toEqual(['one\n', 'one\n'])
})

test.skipIf(!isRoot)('a killed undo is finished but for what is out of reach now, and holds up nothing', () => {
  const { scratch, ckpt } = killedUndo('')
  fs.chmodSync(scratch.at('k'), 0o700)
  fs.chownSync(scratch.at('k'), 0, 0)
  expect(ckpt('mark', 'prompt', '--session', 'next').warnings[0]).toBe(
    'A killed undo was finished, but for what changed since or is out of reach (left as it is): k/f.',
  )
  expect([scratch.read('a.txt'), scratch.read('k/f')]).toEqual(['one\n', 'two\n'])
})

test('a killed undo that is given up closes the directory that it had opened', () => {
  const { scratch, ckpt, sh, turn } = place({ 'k/f': 'one\n', 'k/g': 'one\n' })
  sh('chmod 555 k')
  turn('chmod 755 k; echo two >k/f; echo two >k/g; chmod 555 k')
  const vars = killAt(scratch, ['renameSync', '/k/f'])
  expect(scratch.run(['undo'], { uid: scratch.handOver(), vars }).code).toBe(128)
  expect(fs.statSync(scratch.at('k')).mode & 0o200).toBe(0o200)
  sh('cp .git/refs/heads/* .git/MERGE_HEAD')
  expect(ckpt('status').warnings[0]).toMatch(/^A killed undo of session s was given up, .* of its 2 paths 1 /)
  expect(fs.statSync(scratch.at('k')).mode & 0o777).toBe(0o555)
  expect([scratch.read('k/f'), scratch.read('k/g')]).toEqual(['one\n', 'two\n'])
})

test('a mode that a directory was given after an undo was killed stays', () => {
  const { scratch, ckpt, sh } = killedUndo('chmod 500 k')
  sh('chmod 750 k')
  expect(ckpt('snapshot').warnings[0]).toContain('(left as it is): k/.')
  expect(fs.statSync(scratch.at('k')).mode & 0o777).toBe(0o750)
  expect(scratch.read('k/f')).toBe('one\n')
})

test('a mode that a directory was given after the turn comes back with it, with the first of its turns that is redone', () => {
  const { scratch, ckpt, sh, turn } = place({ 'a.txt': 'one\n', '.gitignore': '*.log\n' })
  turn('mkdir -p c/d kept; echo 1 >c/d/f; echo 1 >kept/f')
  turn('echo 2 >c/g')
  sh('chmod 700 c; chmod 2750 c/d; chmod 700 kept; echo mine >kept/x.log')
  const done = scratch.manifest()
  const undone = ckpt('undo', '--to', '1').files.map(({ path }: Json) => path)
  expect([undone, scratch.exists('c')]).toEqual([expect.arrayContaining(['c/', 'c/d/']), false])
  expect(undone).not.toContain('kept/')
  expect(ckpt('redo').code).toBe(0)
  expect([scratch.exists('c/d/f'), fs.statSync(scratch.at('c')).mode & 0o7777]).toEqual([true, 0o700])
  expect(ckpt('redo').code).toBe(0)
  expect(scratch.manifest()).toEqual(done)
  expect(ckpt('verify', '--worktree').problems).toEqual([])
})

test('an ignored file in the place of an empty directory is left, and the rest undone', () => {
  const { scratch, ckpt, sh, turn } = place()
  sh('mkdir out')
  turn('rmdir out; echo data >out; echo out >.gitignore; echo two >a.txt')
  expect(ckpt('undo').code).toBe(0)
  expect([scratch.read('a.txt'), scratch.read('out')]).toEqual(['one\n', 'data\n'])
})

test("what lies behind a link out of the worktree is in nobody's way", () => {
  const { scratch, ckpt, sh, turn } = place({ 'd/e/1': '1\n' })
  sh('mkdir ../out; echo mine >../out/e')
  turn('rm -rf d; ln -s ../out d')
  const done = scratch.manifest()
  expect(ckpt('undo').code).toBe(0)
  expect(scratch.read('d/e/1')).toBe('1\n')
  expect(ckpt('redo').code).toBe(0)
  expect(scratch.manifest()).toEqual(done)
  expect(fs.readFileSync(`${scratch.base}/out/e`, 'utf8')).toBe('mine\n')
})

test('a closed directory behind a link out of the worktree is not touched, nor is its mode taken', () => {
  const { scratch, ckpt, sh, turn } = place({ 'd/e/1': '1\n', 'd/e/2': '2\n' })
  const first = scratch.manifest()
  sh('mkdir -p ../out/e; echo mine >../out/e/1; chmod 555 ../out/e ../out')
  turn('rm -rf d; ln -s ../out d')
  const outside = () => ['', '/e', '/e/1'].map((name) => fs.lstatSync(`${scratch.base}/out${name}`, { bigint: true }))
  const before = outside().map(({ mode, ctimeNs }) => [mode, ctimeNs])
  expect(ckpt('undo').code).toBe(0)
  expect(scratch.manifest()).toEqual(first)
  expect(ckpt('redo').code).toBe(0)
  expect(outside().map(({ mode, ctimeNs }) => [mode, ctimeNs])).toEqual(before)
})

test.skipIf(!isRoot)('so is what --force would have to take away from where it cannot', () => {
  const { scratch, sh, ckpt, turn } = place()
  turn('rm a.txt')
  sh('mkdir -p a.txt/theirs; echo mine >a.txt/theirs/b; echo mine >a.txt/c')
  fs.chownSync(scratch.at('a.txt/theirs'), 0, 0)
  const disk = scratch.manifest()
  const { files } = ckpt('undo', '--force', '--dry-run')
  expect(files.map(({ path, action }: Json) => `${action} ${path}`)).toEqual(['conflict a.txt'])
  const { code, error } = ckpt('undo', '--force')
  expect([code, error.paths]).toEqual([4, ['a.txt']])
  expect(error.hints.at(-1)).toBe('ckpt undo --force   (again, once what is in the way was moved aside)')
  expect(scratch.manifest()).toEqual(disk)
})

test('what is excluded in a directory that cannot be listed takes no other word out of what is not covered', () => {
  const limits = 'snapshot:\n  maxFileSize: 1kB\n'
  const { scratch, sh, ckpt, turn } = place({ '.checkpointrc': limits, 'closed/x.log': 'one\n' })
  turn('head -c 2000 /dev/zero >b.big')
  scratch.write({ '.checkpointrc': `${limits}  exclude: ["*.log"]\n` })
  scratch.git('-c', `safe.directory=${scratch.root}`, 'commit', '-qam', 'exclude') // narrower, and counts once committed
  sh('chmod 311 closed')
  turn('echo one >new')
  const { uncovered } = ckpt('status')
  expect(uncovered.map(({ path, reason }: Json) => `${path} ${reason}`).sort()).toEqual([
    'b.big too-large',
    'closed/ unreadable',
  ])
})

test('a worktree that may not be entered is no place for checkpoints, and git is not to blame', () => {
  const scratch = new Scratch().init()
  const uid = scratch.handOver()
  fs.chmodSync(scratch.root, 0o600)
  for (const line of [['status'], ['snapshot'], ['list'], ['agent', 'status']]) {
    const { code, stdout } = scratch.run([...line, '--cwd', scratch.root, '--json'], { uid, cwd: scratch.base })
    expect([line, code, JSON.parse(stdout).error]).toMatchObject([
      line,
      9,
      {
        code: 'BAD_ROOT',
        message: expect.stringContaining(`${scratch.root} is not a directory that can be used (EACCES).`),
        hints: [`ls -ld ${scratch.root}   (who may enter it)`],
      },
    ])
  }
})
