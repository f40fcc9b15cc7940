/** Slow, large, stuck: budgets hold, garbage collection takes nothing, and no lock stays for ever. */
import { spawn } from 'node:child_process'
import fs from 'node:fs'
import path from 'node:path'
import { expect, test } from 'vitest'
import { answer, envOf } from '../support/in-process.ts'
import { PROGRAM, Scratch } from '../support/scratch.ts'
import { deadPid, foreignLock, inStore, ownDirectory, storeOf } from '../support/store-surgery.ts'

/** Bytes on disk below a directory. */
function bytesBelow(directory: string): number {
  let sum = 0
  for (const entry of fs.readdirSync(directory, { withFileTypes: true })) {
    const file = path.join(directory, entry.name)
    sum += entry.isDirectory() ? bytesBelow(file) : fs.lstatSync(file).size
  }
  return sum
}

const filesBelow = (directory: string): string[] =>
  fs.readdirSync(directory, { recursive: true, withFileTypes: true }).map((entry) => entry.name)

test('row 21: a home directory is refused, and thousands of untracked files do not block a turn past its deadline', () => {
  const scratch = new Scratch().init()
  scratch.write({ '../home/.config/ckpt/.checkpointrc': '{"snapshot":{"deadline":"150ms"}}' })
  const refused = scratch.run(['mark', 'prompt', '--session', 's', '--json'], { cwd: scratch.home })
  expect(refused.code).toBe(9)
  expect(JSON.parse(refused.stdout).error.code).toBe('BAD_ROOT')
  for (let directory = 0; directory < 6; directory++) {
    fs.mkdirSync(scratch.at(`many/${directory}`), { recursive: true })
    for (let i = 0; i < 1000; i++) fs.writeFileSync(scratch.at(`many/${directory}/${i}`), `${directory} ${i}\n`)
  }
  const { checkpoint, warnings } = scratch.ckpt('mark', 'prompt', '--session', 's')
  expect(checkpoint.degraded).toBe(true)
  expect(warnings.join()).toMatch(/degraded.*budget/)
  expect(checkpoint.uncovered[0].reason).toBe('budget')
  // What was there in time is there in full; what was left out is never taken for deleted.
  const disk = scratch.manifest()
  scratch.ckpt('mark', 'stop', '--session', 's')
  scratch.run(['undo'])
  expect(scratch.manifest()).toEqual(disk)
})

test('row 22: a very large untracked file is named, not copied, and nothing temporary is left over', () => {
  const scratch = new Scratch().init()
  fs.closeSync(fs.openSync(scratch.at('disk.img'), 'w'))
  fs.truncateSync(scratch.at('disk.img'), 11 * 2 ** 30)
  scratch.turn('work', () => scratch.write({ 'a.txt': 'two\n' }))
  const { uncovered } = scratch.ckpt('status')
  expect(uncovered).toContainEqual({ path: 'disk.img', reason: 'too-large' })
  scratch.ckpt('undo')
  expect(bytesBelow(scratch.at('.git/ckpt'))).toBeLessThan(200_000)
  expect(filesBelow(scratch.at('.git/ckpt')).filter((name) => /tmp_|\.tmp$|\.lock$/.test(name))).toEqual([])
  expect(fs.lstatSync(scratch.at('disk.img')).size).toBe(11 * 2 ** 30)
})

test("row 23: the user's own gc takes nothing from checkpoints, and goes on working", () => {
  const files = Object.fromEntries(Array.from({ length: 40 }, (_, i) => [`src/${i}.txt`, `content ${i}\n`]))
  const scratch = new Scratch().init(files)
  scratch.git('gc', '-q')
  scratch.write({ 'loose.txt': 'loose\n' })
  scratch.git('add', '-A')
  scratch.git('commit', '-qm', 'second')
  const before = scratch.manifest()
  scratch.turn('remove all', () => scratch.remove('src', 'loose.txt'))
  const gone = scratch.ckpt('list').turns[0]
  // The branch that held these blobs goes, with its reflog.
  scratch.git('checkout', '-q', '--orphan', 'empty')
  scratch.git('rm', '-q', '-r', '--cached', '--ignore-unmatch', '.')
  scratch.git('commit', '-q', '--allow-empty', '-m', 'empty')
  scratch.git('branch', '-D', 'main')
  scratch.git('reflog', 'expire', '--expire=now', '--all')
  scratch.git('gc', '-q', '--prune=now')
  expect(scratch.git('count-objects').trim()).toBe('0 objects, 0 kilobytes')
  scratch.git('branch', '-m', 'empty', 'main')
  expect(scratch.ckpt('verify').problems).toEqual([])
  expect(scratch.ckpt('show', gone.before).checkpoint.durable).toBe(true)
  scratch.ckpt('undo')
  expect(scratch.manifest()).toEqual(before)
  scratch.git('gc', '-q', '--prune=now')
  expect(scratch.git('fsck', '--no-dangling')).toBe('')
})

test("row 24: a timeline that lay untouched for months is whole, whatever git's own expiry says", () => {
  const scratch = new Scratch().init()
  scratch.turn('old work', () => scratch.write({ 'a.txt': 'two\n', 'b.txt': 'new\n' }))
  const months = new Date('2025-01-01T00:00:00Z')
  for (const entry of fs.readdirSync(storeOf(scratch), { recursive: true, withFileTypes: true }))
    fs.utimesSync(path.join(entry.parentPath, entry.name), months, months)
  inStore(scratch, 'reflog', 'expire', '--expire=now', '--all')
  inStore(scratch, 'gc', '-q', '--prune=now')
  inStore(scratch, 'prune', '--expire=now')
  expect(scratch.ckpt('list').turns).toHaveLength(1)
  expect(scratch.ckpt('verify').problems).toEqual([])
  scratch.ckpt('undo')
  expect(scratch.read('a.txt')).toBe('one\n')
  expect(scratch.exists('b.txt')).toBe(false)
})

/** One process of the program; resolves to its exit code and output. */
function start(scratch: Scratch, args: string[]): Promise<{ code: number | null; stdout: string }> {
  const child = spawn(process.execPath, [PROGRAM, ...args, '--json'], { cwd: scratch.root, env: scratch.vars })
  let stdout = ''
  child.stdout.on('data', (chunk) => {
    stdout += chunk
  })
  return new Promise((resolve) => child.on('close', (code) => resolve({ code, stdout })))
}

test('row 25: eight processes at once: every snapshot that was acknowledged is there, once', async () => {
  const scratch = new Scratch().init()
  const runs = await Promise.all(
    Array.from({ length: 8 }, async (_, worker) => {
      const ids: string[] = []
      for (let i = 0; i < 2; i++) {
        scratch.write({ [`worker-${worker}.txt`]: `${i}\n` })
        const { code, stdout } = await start(scratch, ['snapshot', '-m', `${worker} ${i}`])
        expect([code, stdout]).toEqual([0, stdout])
        ids.push(JSON.parse(stdout).checkpoint.id)
      }
      return ids
    }),
  )
  const acknowledged = runs.flat()
  expect(new Set(acknowledged).size).toBe(16)
  const chain = inStore(scratch, 'rev-list', '--glob=refs/ckpt').split('\n')
  for (const id of acknowledged) expect(chain).toContain(id)
  expect(scratch.ckpt('verify').problems).toEqual([])
})

test('row 26: locks that dead processes left stop nothing', () => {
  const scratch = new Scratch().init()
  scratch.turn('first', () => scratch.write({ 'a.txt': 'two\n' }))
  const machine = fs.existsSync('/etc/machine-id') ? fs.readFileSync('/etc/machine-id', 'utf8').trim() : ''
  foreignLock(scratch, {
    pid: deadPid(),
    machine: `${fs.readFileSync('/proc/sys/kernel/hostname', 'utf8').trim()} ${machine}`,
    boot: fs.readFileSync('/proc/sys/kernel/random/boot_id', 'utf8').trim(),
    namespace: fs.readlinkSync('/proc/self/ns/pid'),
  })
  const [live] = inStore(scratch, 'for-each-ref', '--format=%(refname)', 'refs/ckpt').split('\n')
  const stale = [
    path.join(ownDirectory(scratch), 'index.lock'),
    path.join(storeOf(scratch), `${live}.lock`),
    path.join(storeOf(scratch), 'refs/notes/ckpt/@main.lock'),
    scratch.at('.git/index.lock'),
  ]
  for (const file of stale) {
    fs.mkdirSync(path.dirname(file), { recursive: true })
    fs.writeFileSync(file, '')
  }
  scratch.turn('second', () => scratch.write({ 'a.txt': 'three\n' }))
  scratch.ckpt('undo', '--turns', '2')
  expect(scratch.read('a.txt')).toBe('one\n')
  expect(fs.existsSync(scratch.at('.git/index.lock'))).toBe(true) // the user's own: not ours to remove
})

test('files of one content are synced once', async () => {
  const scratch = new Scratch().init()
  const names = Array.from({ length: 200 }, (_, i) => `${i}.txt`)
  scratch.turn('many', () => scratch.write(Object.fromEntries(names.map((name) => [name, 'the same\n']))))
  const env = envOf(scratch)
  let syncs = 0
  const fsyncSync = (fd: number) => {
    syncs++
    fs.fsyncSync(fd)
  }
  const { code } = await answer({ ...env, files: { ...env.files, fsyncSync } }, 'undo')
  expect([code, scratch.exists('7.txt')]).toEqual([0, false])
  expect(syncs).toBeLessThan(names.length)
})

test('a lock that a killed git left while the clock was ahead is no young one', () => {
  const scratch = new Scratch().init()
  scratch.turn('one', () => scratch.write({ 'a.txt': 'two\n' }))
  scratch.ckpt('undo')
  const lock = `${storeOf(scratch)}/packed-refs.lock`
  fs.writeFileSync(lock, '')
  const ahead = new Date(Date.now() + 24 * 3600 * 1000)
  fs.utimesSync(lock, ahead, ahead)
  scratch.ckpt('accept')
  expect([fs.existsSync(lock), scratch.ckpt('verify').problems]).toEqual([false, []])
})
