// A directory has the mode that a checkpoint says, whatever is ignored, and whoever made the directory anew.
import { execFileSync } from 'node:child_process'
import fs from 'node:fs'
import { describe, expect, test } from 'vitest'
import { DEFAULTS } from '../../src/config/defaults.ts'
import { realEnv } from '../../src/env.ts'
import { closeContext, openContext } from '../../src/ops/worktree/context.ts'
import { capture } from '../../src/snapshot/capture.ts'
import { SnapshotView } from '../../src/snapshot/view.ts'
import { PROGRAM, Scratch } from '../support/scratch.ts'

const sh = (scratch: Scratch, script: string) => execFileSync('sh', ['-c', script], { cwd: scratch.root })
const modeOf = (scratch: Scratch, name: string) => fs.statSync(scratch.at(name)).mode & 0o7777

/** A committed worktree after a script, and one turn of another one. */
function place(before: string, work: string): Scratch {
  const scratch = new Scratch().init()
  sh(scratch, before)
  scratch.git('add', '-A')
  scratch.turn('one', () => sh(scratch, work))
  return scratch
}

describe('a change of what is ignored or captured is no change of modes', () => {
  const closed = 'mkdir -p d/in; echo k >d/key; echo k >d/in/key; chmod 700 d/in; chmod 2770 d'
  test.each([
    ['a rule comes', closed, 'echo d/ >.gitignore'],
    ['a rule goes', `${closed}; echo d/ >.gitignore; git add -f d`, ': >.gitignore'],
    ['a repository begins', closed, 'git init -q d'],
    ['a repository ends', `${closed}; git add d; git init -q d`, 'rm -r d/.git'],
  ])('%s', (_, before, work) => {
    const scratch = place(before, work)
    const modes = () => [modeOf(scratch, 'd'), modeOf(scratch, 'd/in')]
    for (const command of ['undo', 'redo']) {
      const { files } = scratch.ckpt(command)
      expect(files.filter(({ path }: { path: string }) => path.endsWith('/'))).toEqual([])
      expect(modes()).toEqual([0o2770, 0o700])
    }
    scratch.ckpt('restore', '1', '--exact', '--force')
    expect(modes()).toEqual([0o2770, 0o700])
    expect(scratch.ckpt('verify', '--worktree').problems).toEqual([])
  })
})

describe('the mode of an ignored directory with a tracked file', () => {
  const ignored = 'mkdir -p d/in; echo k >d/in/key; chmod 700 d d/in; echo d/ >.gitignore; git add -f d'
  test.each([
    ['goes with it, and comes back', 'rm -r d'],
    ['changes', 'chmod 755 d; chmod 750 d/in'],
  ])('%s', (_, work) => {
    const scratch = place(ignored, work)
    const done = scratch.manifest()
    scratch.ckpt('undo')
    expect([modeOf(scratch, 'd'), modeOf(scratch, 'd/in')]).toEqual([0o700, 0o700])
    scratch.ckpt('redo')
    expect(scratch.manifest()).toEqual(done)
    expect(scratch.ckpt('verify', '--worktree').problems).toEqual([])
  })
})

describe('a checkpoint that was made under another umask, with the cache lost since', () => {
  const made = 'umask 077; mkdir -p d/in; echo f >d/in/f; echo g >d/g; umask 022'

  /** A worktree whose checkpoints under umask 077 know of no mode but the default ones. */
  function closedPlace() {
    const scratch = new Scratch()
    scratch.git('init', '-q')
    sh(scratch, made)
    const ckpt = (command: string) =>
      execFileSync('sh', ['-c', `umask 077; exec "$0" "$@"`, process.execPath, PROGRAM, ...command.split(' ')], {
        cwd: scratch.root,
        env: scratch.vars,
        stdio: 'ignore',
      })
    return { scratch, ckpt, loseCache: () => fs.unlinkSync(scratch.at('.git/ckpt/worktrees/@main/cache.json')) }
  }

  test('gives back its modes where only they differ', () => {
    const { scratch, ckpt, loseCache } = closedPlace()
    ckpt('mark prompt --session s')
    const before = scratch.manifest()
    loseCache()
    sh(scratch, 'chmod 755 d d/in; chmod 644 d/g d/in/f')
    scratch.ckpt('mark', 'stop', '--session', 's')
    const after = scratch.manifest()
    const changed = ['d/', 'd/g', 'd/in/', 'd/in/f']
    const named = ({ files }: { files: { path: string }[] }) => files.map(({ path }) => path)
    expect(before['d/']).toBe('directory 700')
    expect(named(scratch.ckpt('diff'))).toEqual(changed)
    expect(scratch.ckpt('list').turns[0].stat.files).toBe(changed.length)
    expect(named(scratch.ckpt('restore', '1:before'))).toEqual(changed)
    expect(scratch.manifest()).toEqual(before)
    scratch.ckpt('restore', '1', '--force')
    expect(scratch.manifest()).toEqual(after)
  })

  test('gives back the directories that are gone', () => {
    const { scratch, ckpt, loseCache } = closedPlace()
    ckpt('mark prompt --session s')
    const before = scratch.manifest()
    scratch.remove('d')
    ckpt('mark stop --session s')
    loseCache()
    scratch.ckpt('undo')
    expect(scratch.manifest()).toEqual(before)
    scratch.ckpt('redo')
    expect(scratch.manifest()).toEqual({})
  })
})

describe('a directory that is made again for a file in it', () => {
  const closed = 'mkdir -p d/in; echo k >d/in/key; echo o >d/other; chmod 2750 d; chmod 700 d/in'

  test('has the mode that the checkpoint says, whatever else of it stays away', () => {
    const scratch = place(closed, 'rm -r d')
    const modes = () => [modeOf(scratch, 'd'), modeOf(scratch, 'd/in')]
    expect(scratch.ckpt('undo', '--', 'd/in/key').files.map(({ path }: { path: string }) => path)).toEqual([
      'd/',
      'd/in/',
      'd/in/key',
    ])
    expect(modes()).toEqual([0o2750, 0o700])
    expect(scratch.ckpt('verify', '--worktree').problems).toEqual([])
    scratch.ckpt('undo')
    expect(scratch.exists('d')).toBe(false)
    scratch.ckpt('restore', '1:before', '--', 'd/in/key')
    expect(modes()).toEqual([0o2750, 0o700])
    expect(scratch.ckpt('verify', '--worktree').problems).toEqual([])
  })

  test('goes again with redo, where a person had removed it', () => {
    const scratch = place('mkdir -p d/k e; echo f >d/k/f; echo h >d/k/h; echo e >e/e', 'rm d/k/h; echo two >a.txt')
    scratch.turn('two', () => sh(scratch, 'rm e/e'))
    sh(scratch, 'rm -r d')
    const gone = scratch.manifest()
    scratch.ckpt('undo', '--to', '1')
    expect(scratch.exists('d/k/h')).toBe(true)
    scratch.ckpt('redo', '--all')
    expect(scratch.manifest()).toEqual(gone)
    expect(scratch.ckpt('verify', '--worktree').problems).toEqual([])
  })

  test('keeps its mode when somebody put a file into it, also in what the redo records', () => {
    const scratch = place(closed, 'rm -r d')
    scratch.ckpt('undo')
    scratch.write({ 'd/mine': 'mine\n' })
    scratch.ckpt('redo')
    expect([modeOf(scratch, 'd'), scratch.exists('d/in')]).toEqual([0o2750, false])
    expect(scratch.ckpt('verify', '--worktree').problems).toEqual([])
  })
})

describe('a mode that a directory was given since', () => {
  test('is a conflict for restore, and force takes the other one at once', () => {
    const scratch = new Scratch().init({ 'd/f': 'f\n' })
    const { id } = scratch.ckpt('snapshot').checkpoint
    fs.chmodSync(scratch.at('d'), 0o700)
    const { code, document } = scratch.tryCkpt('restore', id)
    expect([code, document.error.code, document.error.paths]).toEqual([4, 'CONFLICT', ['d/']])
    expect(modeOf(scratch, 'd')).toBe(0o700)
    const { safety } = scratch.ckpt('restore', id, '--force')
    expect(modeOf(scratch, 'd')).toBe(0o755)
    scratch.ckpt('restore', safety)
    expect(modeOf(scratch, 'd')).toBe(0o700)
  })

  test('holds up no undo and is named; force takes the other one, and redo gives it back', () => {
    const undone = (...args: string[]) => {
      const scratch = place('mkdir d; echo f >d/f', 'chmod 770 d; echo two >d/f')
      fs.chmodSync(scratch.at('d'), 0o700)
      const { files } = scratch.ckpt('undo', ...args)
      const told = files.map(({ path, action, reason }: Record<string, string>) => [path, action, reason])
      return { scratch, told, mode: modeOf(scratch, 'd') }
    }
    const file = ['d/f', 'write', undefined]
    expect(undone()).toMatchObject({
      told: [['d/', 'skip', 'its permission mode changed since'], file],
      mode: 0o700,
    })
    const { scratch, ...forced } = undone('--force')
    expect(forced).toEqual({ told: [['d/', 'mode', undefined], file], mode: 0o755 })
    scratch.ckpt('redo')
    expect(modeOf(scratch, 'd')).toBe(0o700)
  })
})

test('of a directory that a snapshot did not reach in time the mode is not known', async () => {
  const scratch = new Scratch().init({ 'd/f': 'f\n', 'e/f': 'f\n' })
  sh(scratch, 'chmod 700 d e')
  let looks = Number.NEGATIVE_INFINITY
  const { files, monotonic, ...rest } = realEnv()
  // The deadline is over once the walk has read the top directory.
  const readdirSync = (...given: unknown[]) => {
    looks++
    return Reflect.apply(files.readdirSync, files, given)
  }
  const env = {
    ...rest,
    vars: scratch.vars,
    home: scratch.home,
    cwd: scratch.root,
    files: { ...files, readdirSync } as typeof files,
    monotonic: () => (looks > 0 ? Number.POSITIVE_INFINITY : monotonic()),
  }
  const context = await openContext(env, scratch.root, { create: true })
  const { worktree, store } = context
  const given = { worktree, store, limits: DEFAULTS.snapshot, lastTree: null, headTree: null }
  const whole = await capture(env, { ...given, cache: null })
  scratch.write({ 'new.txt': 'new\n' })
  looks = 0
  const cut = await capture(env, { ...given, cache: whole.cache, lastTree: whole.tree })
  closeContext(context)
  const states = ({ tree, beside }: typeof cut) =>
    Promise.all(['d/', 'e/'].map((path) => new SnapshotView(store, tree, beside).state(path)))
  const known = { kind: 'directory', mode: 0o700 }
  expect([cut.degraded, await states(whole)]).toEqual([true, [known, known]])
  const unknown = { kind: 'unknown', reason: 'budget' }
  expect(await states(cut)).toEqual([unknown, unknown])
})

test('a directory in which something stays is not said to go, and stays with its mode', () => {
  for (const stays of ['echo mine >v/mine', 'git init -q v/sub', 'mkdir v/empty', 'mkfifo v/fifo']) {
    const scratch = place('true', 'mkdir -m 700 v; echo 1 >v/1')
    sh(scratch, stays)
    const undone = [
      { path: 'v/', action: 'skip', reason: 'something in it stays' },
      { path: 'v/1', action: 'delete' },
    ]
    expect(scratch.ckpt('undo', '--dry-run').files).toEqual(undone)
    expect(scratch.ckpt('undo').files).toEqual(undone)
    expect(modeOf(scratch, 'v')).toBe(0o700)
    expect(scratch.ckpt('redo').files).toEqual([{ path: 'v/1', action: 'write' }])
  }
})

test('an empty directory that the turn left and that was gone since goes with redo, and so does what undo made in it', () => {
  const scratch = place('mkdir -p n/e/s; echo 1 >n/e/s/t', 'rm -r n/e')
  scratch.remove('n')
  scratch.ckpt('undo')
  expect(scratch.read('n/e/s/t')).toBe('1\n')
  expect(scratch.ckpt('redo').files).toEqual([
    { path: 'n/', action: 'delete' },
    { path: 'n/e/s/t', action: 'delete' },
  ])
  expect(scratch.exists('n')).toBe(false)
})

test('what undo made in a directory that a sparse checkout leaves out goes with redo, directories and all', () => {
  const scratch = place('mkdir -p n/e/s; echo 1 >n/e/s/t', 'true')
  execFileSync('git', ['-c', 'user.name=a', '-c', 'user.email=a@b', 'commit', '-qm', 'n'], {
    cwd: scratch.root,
    env: scratch.vars,
  })
  scratch.turn('two', () => {
    scratch.remove('n')
    scratch.git('sparse-checkout', 'set', '--no-cone', '/a.txt')
  })
  scratch.ckpt('undo', '--force')
  expect(scratch.read('n/e/s/t')).toBe('1\n')
  scratch.ckpt('redo')
  expect(scratch.exists('n')).toBe(false)
})

test('a directory that holds only what is not covered is there: undo does not say that it makes it', () => {
  const scratch = place('mkdir -m 700 d', 'mkfifo d/pipe')
  expect(scratch.ckpt('undo').files).toEqual([])
  scratch.ckpt('redo')
  scratch.turn('two', () => sh(scratch, 'rm d/pipe; chmod 755 d; git init -q d'))
  expect(scratch.ckpt('undo', '--turns', '2').files).toEqual([{ path: 'd/', action: 'mode' }])
  expect(modeOf(scratch, 'd')).toBe(0o700)
})
