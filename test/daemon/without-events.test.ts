// Where the kernel reports not all, or nothing: what is recorded is right all the same, and the daemon says why it is slow.
import { spawnSync } from 'node:child_process'
import fs from 'node:fs'
import path from 'node:path'
import { expect, onTestFinished, test, vi } from 'vitest'
import { startDaemon } from '../support/daemon.ts'
import { treeByGit } from '../support/judge.ts'
import { isRoot, PROGRAM, Scratch } from '../support/scratch.ts'

/** A user namespace of our own: the same user, who may set its limits. */
const NAMESPACE = ['--user', '--map-current-user', '--keep-caps', 'sh', '-c']
const canLimit = spawnSync('unshare', [...NAMESPACE, 'echo 30 > /proc/sys/user/max_inotify_watches']).status === 0

/** Starts a daemon where a limit is this low; what it says beside that it is at work. */
function startLimited(scratch: Scratch, limit: string, most: number): string {
  onTestFinished(() => void scratch.ckpt('daemon', 'stop'))
  const line = `echo ${most} > /proc/sys/user/${limit} && exec "${process.execPath}" "${PROGRAM}" daemon start`
  const { stdout, stderr } = spawnSync('unshare', [...NAMESPACE, line], { cwd: scratch.root, env: scratch.vars })
  expect(String(stdout)).toMatch(/^The daemon is at work in /)
  return String(stderr)
}

interface Marked {
  mode: string
  checkpoint: { tree: string; degraded: boolean }
}

/** A marker's tree, and what git itself makes of the worktree. */
function bothTrees(scratch: Scratch, ...marker: string[]): { ours: string; gits: string; mode: string } {
  const { checkpoint, mode } = scratch.ckpt('mark', ...marker, '--session', 's') as unknown as Marked
  return { ours: checkpoint.tree, gits: treeByGit(scratch), mode }
}

interface Status {
  running: boolean
  state: { why: string | null; misses: number; watched: number } | null
}
const statusOf = (scratch: Scratch) => scratch.ckpt('daemon', 'status') as unknown as Status

test.skipIf(!canLimit)('watches run out: every marker is right, and status names the setting to raise', () => {
  const scratch = new Scratch().init()
  for (let i = 0; i < 60; i++) scratch.write({ [`d${i}/e/file`]: `${i}\n` })
  const stderr = startLimited(scratch, 'max_inotify_watches', 30)
  expect(stderr).toContain('It does not watch, and each snapshot is a scan: the limit of watches is reached')
  expect(statusOf(scratch).state?.why).toContain('fs.inotify.max_user_watches')
  scratch.ckpt('mark', 'prompt', '--session', 's')
  for (let i = 0; i < 60; i += 7) {
    scratch.write({ [`d${i}/e/file`]: 'changed\n', [`d${i}/e/new${i}`]: 'new\n' })
    const { ours, gits, mode } = bothTrees(scratch, 'step')
    expect(ours).toBe(gits)
    expect(mode).toBe('scan')
  }
  expect(scratch.run(['status']).stdout).toContain('max_user_watches')
})

test.skipIf(!canLimit)(
  'not one watch is to be had: it is at work all the same, and says which setting to raise',
  () => {
    const scratch = new Scratch().init()
    const stderr = startLimited(scratch, 'max_inotify_instances', 0)
    expect(stderr).toContain('It does not watch, and each snapshot is a scan: too many programs watch files')
    expect(statusOf(scratch).state?.why).toContain('fs.inotify.max_user_instances')
    scratch.ckpt('mark', 'prompt', '--session', 's')
    scratch.write({ 'a.txt': 'changed\n', new: 'new\n' })
    const { ours, gits, mode } = bothTrees(scratch, 'stop')
    expect([ours, mode]).toEqual([gits, 'scan'])
    scratch.ckpt('undo')
    expect([scratch.read('a.txt'), scratch.exists('new')]).toEqual(['one\n', false])
  },
)

test('a backslash is a character like any other, in the path of the worktree and below it', () => {
  const scratch = new Scratch('back\\slash').init({ 'a.txt': 'one\n', 'd\\e/b.txt': 'one\n', 'd/e/c.txt': 'one\n' })
  startDaemon(scratch)
  scratch.ckpt('mark', 'prompt', '--session', 's')
  for (const name of ['d\\e/b.txt', 'd/e/c.txt', 'd\\e/new', 'd\\new/in/it']) {
    scratch.write({ [name]: 'two\n' })
    const { ours, gits, mode } = bothTrees(scratch, 'step')
    expect([name, ours]).toEqual([name, gits])
    expect(mode).toBe('fast')
  }
})

test.skipIf(!isRoot)('on an overlay every snapshot is a scan from the start', () => {
  const scratch = new Scratch()
  const [lower, upper, aside] = ['lower', 'upper', 'aside'].map((name) => path.join(scratch.base, name)) as [
    string,
    string,
    string,
  ]
  for (const directory of [lower, upper, aside]) fs.mkdirSync(directory)
  fs.writeFileSync(path.join(lower, 'below'), 'one\n')
  const options = `lowerdir=${lower},upperdir=${upper},workdir=${aside}`
  if (spawnSync('mount', ['-t', 'overlay', 'overlay', '-o', options, scratch.root]).status !== 0) return
  onTestFinished(() => void spawnSync('umount', ['-l', scratch.root]))
  scratch.init({ 'a.txt': 'one\n' })
  startDaemon(scratch)
  expect(statusOf(scratch).state?.why).toContain('an overlay')
  scratch.ckpt('mark', 'prompt', '--session', 's')
  scratch.write({ below: 'two\n', 'a.txt': 'two\n' })
  const { ours, gits, mode } = bothTrees(scratch, 'stop')
  expect(ours).toBe(gits)
  expect(mode).toBe('scan')
  scratch.ckpt('undo')
  expect([scratch.read('below'), scratch.read('a.txt')]).toEqual(['one\n', 'one\n'])
})

const canMount = isRoot && spawnSync('unshare', ['-m', 'true']).status === 0

// Needs the right to mount a file system: not there in most containers.
test.skipIf(!canMount)(
  'promise 13: a mount in the worktree while the daemon runs, and an unmount: every snapshot is a scan from there on',
  () => {
    const outside = (scratch: Scratch) => {
      const there = path.join(scratch.base, 'outside')
      fs.mkdirSync(there)
      fs.writeFileSync(path.join(there, 'f'), 'outside\n')
      return there
    }
    const mount = (scratch: Scratch) => {
      expect(spawnSync('mount', ['--bind', outside(scratch), scratch.at('d')]).status).toBe(0)
      onTestFinished(() => void spawnSync('umount', ['-l', scratch.at('d')]))
    }
    for (const first of ['mount', 'unmount']) {
      const scratch = new Scratch().init({ 'd/f': 'below\n', 'a.txt': 'one\n' })
      if (first === 'unmount') mount(scratch)
      startDaemon(scratch)
      scratch.turn('before', () => scratch.write({ 'a.txt': 'two\n' }))
      if (first === 'mount') mount(scratch)
      else expect(spawnSync('umount', [scratch.at('d')]).status).toBe(0)
      const start = scratch.ckpt('mark', 'prompt', '--session', 's') as unknown as Marked
      scratch.write({ 'd/f': 'changed\n', 'd/new': 'new\n' })
      const { ours, gits, mode } = bothTrees(scratch, 'stop')
      expect([first, start.mode, mode, ours]).toEqual([first, 'scan', 'scan', gits])
      expect(statusOf(scratch).state?.why).toContain('mounted in the worktree')
      scratch.ckpt('undo')
      expect([scratch.read('d/f'), scratch.exists('d/new')]).toEqual([
        first === 'mount' ? 'outside\n' : 'below\n',
        false,
      ])
    }
  },
)

test('a write that the kernel does not report is found by the sweep; from then on every snapshot is a scan', async () => {
  const scratch = new Scratch().init({ 'a.txt': 'one\n', 'b.txt': 'one\n' })
  const outside = path.join(scratch.base, 'outside')
  startDaemon(scratch)
  scratch.ckpt('mark', 'prompt', '--session', 's')
  const settled = async () => {
    scratch.write({ 'b.txt': `${Math.random()}\n` })
    return bothTrees(scratch, 'step')
  }
  await vi.waitFor(async () => expect((await settled()).mode).toBe('fast'), { timeout: 20_000, interval: 2000 })
  fs.linkSync(scratch.at('a.txt'), outside) // one that a snapshot has seen is looked at by the next
  fs.writeFileSync(outside, 'written by the other name\n')
  await settled()
  await vi.waitFor(() => expect(statusOf(scratch).state?.misses).toBe(1), { timeout: 20_000, interval: 300 })
  expect(statusOf(scratch).state?.why).toContain('not reported')
  const { ours, gits, mode } = await settled()
  expect(ours).toBe(gits)
  expect(mode).toBe('scan')
  fs.writeFileSync(outside, 'and again\n')
  const again = bothTrees(scratch, 'step')
  expect(again.ours).toBe(again.gits)
})
