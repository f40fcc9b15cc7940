// Where nothing can be written: a file system that is full, or mounted for reading only.
import { execFileSync, spawn, spawnSync } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import fs from 'node:fs'
import os from 'node:os'
import { expect, test } from 'vitest'
import type { Env } from '../../src/env.ts'
import { gitFailure } from '../../src/git/failure.ts'
import { answer, envOf } from '../support/in-process.ts'
import { type Json, PROGRAM, Scratch } from '../support/scratch.ts'
import { mountSmall, roomIn, testWithMounts } from '../support/small-disk.ts'
import { removeObject } from '../support/store-surgery.ts'

test('on a full disk prune drops what nothing needs first, and so makes the room that it needs to pack', async () => {
  const scratch = new Scratch().init()
  for (const n of [1, 2, 3]) scratch.turn(`${n}`, () => scratch.write({ 'big.bin': randomBytes(100_000) }))
  const objects = scratch.at('.git/ckpt/store.git/objects')
  const used = () =>
    fs
      .readdirSync(objects, { recursive: true, withFileTypes: true })
      .reduce((sum, one) => sum + (one.isFile() ? fs.statSync(`${one.parentPath}/${one.name}`).size : 0), 0)
  const before = used()
  const env = envOf(scratch)
  const full = ['-c', 'echo "fatal: write error. Out of diskspace" >&2; exit 128']
  const { code, document } = await answer(
    {
      ...env,
      spawn: ((command: string, args: string[], options: object) =>
        args.includes('repack') && used() > before - 100_000
          ? spawn('sh', full, options)
          : spawn(command, args, options)) as Env['spawn'],
    },
    'prune',
    '--keep',
    '1',
  )
  expect(code).toBe(0)
  expect(document.removed.map(({ turn }: Json) => turn)).toEqual([1, 2])
  expect(used()).toBeLessThan(before - 100_000)
  expect(scratch.run(['verify']).code).toBe(0)
})

test('a prune that has no room to move the refs removes nothing', async () => {
  const scratch = new Scratch().init()
  const numbers = () => scratch.ckpt('list').turns.map(({ n }: Json) => n)
  const env = envOf(scratch)
  const full = ['-c', 'echo "fatal: write error. Out of diskspace" >&2; exit 128']
  const spawnFull = ((command: string, args: string[], options: object) =>
    args.includes('update-ref') ? spawn('sh', full, options) : spawn(command, args, options)) as Env['spawn']
  for (const n of [1, 2, 3, 4]) scratch.turn(`${n}`, () => scratch.write({ 'a.txt': `${n}\n` }))
  for (const kept of [
    [4, 3, 2, 1],
    [4, 3, 2], // now in a history that was cut before
  ]) {
    const { code, document } = await answer({ ...env, spawn: spawnFull }, 'prune', '--keep', '1')
    expect([code, document.error.message]).toEqual([1, expect.stringContaining('The disk is full')])
    expect(numbers()).toEqual(kept)
    expect(scratch.run(['verify']).code).toBe(0)
    scratch.ckpt('prune', '--keep', '3')
  }
})

test('a git that had no room says so, and what to do', () => {
  for (const said of [
    'fatal: write error: No space left on device',
    "fatal: sha1 file 'x' write error. Out of diskspace",
    'error: cannot write: Disk quota exceeded',
  ]) {
    const { code, message, hints } = gitFailure(['bundle'], {
      code: 128,
      stdout: Buffer.alloc(0),
      stderr: `${said}\n`,
      crash: null,
    })
    expect([code, message, hints]).toEqual([
      'INTERNAL',
      `The disk is full: git bundle could not write (${said}).`,
      ['free some space, then run the command again'],
    ])
  }
})

test('a git that could not write and does not say why: the file system tells whether it was for want of room', async () => {
  const scratch = new Scratch().init()
  for (const n of [1, 2]) scratch.turn(`${n}`, () => scratch.write({ 'a.txt': `${n}\n` }))
  const env = envOf(scratch)
  const full = (path: fs.PathLike) => ({ ...fs.statfsSync(path), bavail: 3, bsize: 4096 })
  const failing = (command: string, said: string) => ({
    ...env,
    files: { ...env.files, statfsSync: full } as Env['files'],
    spawn: ((program: string, args: string[], options: object) =>
      args.includes(command)
        ? spawn('sh', ['-c', 'printf "%s\\n" "$0" >&2; exit 128', said], options)
        : spawn(program, args, options)) as Env['spawn'],
  })
  const lock = failing('update-ref', "fatal: prepare: cannot update ref 'x': couldn't write 'x.lock'.")
  const told = async (one: Env, ...command: string[]) => {
    const { code, document } = await answer(one, ...command)
    return [command[0], code, document.error?.message, document.error?.hints]
  }
  const again = ['free some space, then run the command again']
  const isFull = (command: string) => expect.stringContaining(`The disk is full: git ${command} could not write (`)
  const mark = ['mark', 'prompt', '--session', 's']
  expect(await told(lock, ...mark)).toEqual(['mark', 1, isFull('update-ref'), again])
  expect(await told({ ...lock, files: env.files }, ...mark)).toEqual([
    'mark',
    1,
    expect.stringMatching(/^git update-ref failed/),
    ['ckpt doctor'],
  ])
  const init = failing('init', "error: failed to write new configuration file x\nfatal: could not set 'core.bare'")
  expect(await told(init, 'export', `${scratch.base}/x.bundle`)).toEqual(['export', 1, isFull('init'), again])
  const readOnly = failing('init', "fatal: unable to write 'x': Read-only file system")
  expect((await told(readOnly, 'export', `${scratch.base}/x.bundle`))[3]).toEqual(['ckpt doctor'])
  const commit = failing('hash-object', 'fatal: Unable to add stdin to database: No space left on device')
  const [, , message, hints] = await told(commit, 'commit', '-m', 'x')
  expect([message, hints]).toEqual([expect.stringMatching(/^The disk is full: .*\. Nothing was committed\.$/), again])
  const refused = failing('--cleanup=whitespace', "fatal: cannot update ref 'HEAD': couldn't write 'x.lock'")
  expect((await told(refused, 'commit', '-m', 'x'))[2]).toMatch(
    /^git refused the commit .*: the disk is full, it seems\. /,
  )
  const bad = async () => (await answer(lock, 'doctor')).document.findings.filter(({ ok }: Json) => !ok)
  expect(await bad()).toMatchObject([
    { name: 'store', mend: expect.stringMatching(/^free some space on .*, or: ckpt prune --keep N$/) },
  ])
  const status = ['free some disk space, then: ckpt status']
  expect(await told(lock, 'undo')).toEqual(['undo', 1, isFull('update-ref'), status])
  // A prune would have to finish that undo first.
  expect((await bad()).find(({ name }: Json) => name === 'store').mend).toMatch(/^free some space on [^,]*$/)
  scratch.ckpt('status')
  expect(await told(lock, 'accept')).toEqual(['accept', 1, isFull('update-ref'), status])
  scratch.ckpt('status')
  expect(scratch.ckpt('verify').problems).toEqual([])
})

// A full disk is a small one that is mounted here: skipped where nobody may mount.
testWithMounts(
  'a bundle, and a remote, are not to blame for a full disk here; with room the same command works',
  () => {
    const scratch = new Scratch('origin').init()
    scratch.turn('one', () => scratch.write({ 'big.bin': randomBytes(6_000_000) }))
    const bundle = `${scratch.base}/made.bundle`
    const remote = `${scratch.base}/remote.git`
    scratch.ckpt('export', bundle)
    scratch.git('init', '-q', '--bare', remote)
    scratch.ckpt('push', remote)
    const small = `${scratch.base}/small`
    fs.mkdirSync(small)
    mountSmall(small, '4m')
    scratch.git('init', '-q', small)
    const there = { cwd: small }
    const answered = (...args: string[]) => {
      const { code, stdout } = scratch.run([...args, '--json'], there)
      return { code, ...JSON.parse(stdout) }
    }
    const full = { code: 1, error: { code: 'INTERNAL', hints: ['free some space, then run the command again'] } }
    for (const args of [
      ['import', bundle],
      ['pull', remote],
    ]) {
      expect([args, answered(...args)]).toMatchObject([args, full])
      expect(answered('list', '--sessions')).toMatchObject({ sessions: [] })
    }
    // Where a bundle is unpacked, or a state laid out, for a moment: it is that directory that is named.
    for (const args of [
      ['verify', '--bundle', bundle, '--json'],
      ['bisect', '--json', '--', 'true'],
    ]) {
      const { code, stdout } = scratch.run(args, { vars: { TMPDIR: small } })
      const message = expect.stringContaining(`There is no room below ${small}: `)
      const hints = ['free some space there', expect.stringContaining('TMPDIR=DIRECTORY')]
      expect([args[0], code, JSON.parse(stdout).error]).toEqual([args[0], 1, { code: 'INTERNAL', message, hints }])
    }
    execFileSync('mount', ['-o', 'remount,size=40m', small])
    expect(answered('import', bundle)).toMatchObject({ code: 0 })
    expect(answered('pull', remote)).toMatchObject({ code: 0 })
    expect(answered('verify').problems).toEqual([])
  },
)

// The same.
testWithMounts('on a disk without any room nothing is recorded; a prune makes some, and it goes on', () => {
  const scratch = new Scratch()
  mountSmall(scratch.root, '40m')
  scratch.init()
  for (const n of [1, 2, 3, 4, 5]) scratch.turn(`${n}`, () => scratch.write({ 'big.bin': randomBytes(1_000_000) }))
  const left = () => roomIn(scratch.root)
  const spare = scratch.at('.git/ckpt/spare')
  expect(fs.statSync(spare).size).toBe(65_536)
  fs.writeFileSync(scratch.at('.git/filler'), Buffer.alloc(left()))
  expect(left()).toBe(0)
  expect(scratch.tryCkpt('mark', 'prompt', '--session', 's')).toMatchObject({ code: 1 })
  const doctor = scratch.tryCkpt('doctor').document.findings.find(({ name }: Json) => name === 'store')
  expect(doctor.mend).toMatch(/ckpt prune --keep N/)
  const { removed, bytesFreed } = scratch.ckpt('prune', '--keep', '1')
  expect(removed.map(({ turn }: Json) => turn)).toEqual([1, 2, 3, 4])
  expect(bytesFreed).toBeGreaterThan(2_500_000)
  expect(scratch.ckpt('verify').problems).toEqual([])
  expect(scratch.ckpt('mark', 'prompt', '--session', 's').checkpoint.degraded).toBe(false)
  scratch.ckpt('mark', 'stop', '--session', 's')
  // With room it is there for the next time.
  expect(fs.existsSync(spare)).toBe(false)
  fs.rmSync(scratch.at('.git/filler'))
  scratch.ckpt('prune', '--keep', '1')
  expect(fs.statSync(spare).size).toBe(65_536)
})

test('a bundle is not to blame for what this process may not do, or for who ends git: it is no verdict', () => {
  const scratch = new Scratch('origin').init()
  scratch.turn('one', () => scratch.write({ 'big.bin': randomBytes(300_000) }))
  const bundle = `${scratch.base}/made.bundle`
  scratch.ckpt('export', bundle)
  const other = new Scratch().init()
  const bin = `${scratch.base}/bin`
  fs.mkdirSync(bin)
  const git = execFileSync('sh', ['-c', 'command -v git']).toString().trim()
  const script = `#!/bin/sh\ncase "$*" in *fetch*) kill -9 $$ ;; esac\nexec '${git}' "$@"\n`
  fs.writeFileSync(`${bin}/git`, script, { mode: 0o755 })
  const ran = (line: string, args: string[], PATH = scratch.vars.PATH) => {
    const command = ['-c', `${line}exec "$0" "$@"`, process.execPath, PROGRAM, ...args, '--json']
    const { status, stdout } = spawnSync('sh', command, {
      cwd: other.root,
      env: { ...other.vars, PATH },
      encoding: 'utf8',
    })
    return { code: status, error: JSON.parse(stdout).error }
  }
  for (const args of [
    ['verify', '--bundle', bundle],
    ['import', bundle],
  ]) {
    const limited = ran('ulimit -f 100; ', args)
    expect([args[0], limited]).toMatchObject([args[0], { code: 1, error: { code: 'INTERNAL' } }])
    expect(limited.error.hints[0]).toContain('ulimit -f')
    expect([args[0], ran('', args, `${bin}:${scratch.vars.PATH}`)]).toMatchObject([
      args[0],
      { code: 1, error: { message: 'git fetch was ended by somebody (SIGKILL). Nothing was changed.' } },
    ])
  }
  expect(other.ckpt('verify', '--bundle', bundle).problems).toEqual([])
  // The program that objects are read with is asked once more; ended again, it is no verdict either.
  fs.writeFileSync(`${bin}/git`, script.replace('*fetch*', '*cat-file*--batch*'))
  expect(ran('', ['verify', '--bundle', bundle], `${bin}:${scratch.vars.PATH}`)).toMatchObject({
    code: 1,
    error: { message: 'git cat-file was ended by somebody (SIGKILL). Nothing was changed.' },
  })
  // What was found bad before it is said all the same.
  fs.writeFileSync(`${bin}/git`, script)
  scratch.turn('two', () => scratch.write({ 'a.txt': 'two\n' }))
  removeObject(scratch, `${scratch.ckpt('show', '2:after').checkpoint.id}:a.txt`)
  const damaged = ran('', ['verify', '--bundle', bundle, '--cwd', scratch.root], `${bin}:${scratch.vars.PATH}`)
  expect([damaged.code, damaged.error.code]).toEqual([7, 'VERIFY_FAILED'])
})

test('what the machine denies is told by the end of a line, wherever a repository lies', () => {
  const code = (stderr: string, crash: NodeJS.Signals | null = null) =>
    gitFailure(['rev-list'], { code: 128, stdout: Buffer.alloc(0), stderr, crash }, { store: true }).code
  for (const path of ['File too large', 'x: Too many open files', 'error: y died of signal 9'])
    expect([path, code(`fatal: loose object ab (stored in /${path}/ab) is corrupt\n`)]).toEqual([path, 'DAMAGED'])
  for (const said of [
    'fatal: open: Too many open files',
    'error: x: File too large',
    'error: a b died of signal 9',
    'error: Out of memory, malloc failed (tried to allocate 9000001 bytes)',
    'fatal: Out of memory, calloc failed',
    'fatal: Out of memory? fdopen failed: No such device',
    'fatal: inflate: out of memory',
    'fatal: mmap failed, check sys.vm.max_map_count and/or RLIMIT_DATA: Cannot allocate memory',
    'git: error while loading shared libraries: libc.so.6: failed to map segment from shared object',
  ])
    expect([said, code(`error: bad object ab\n${said}\n`)]).toEqual([said, 'INTERNAL'])
  // A size that no object has is a damaged one.
  const giant = 'error: Out of memory, malloc failed (tried to allocate 70368744177664 bytes)'
  expect(code(`${giant}\nfatal: packed object ab (stored in x.pack) is corrupt`)).toBe('DAMAGED')
  expect([code('', 'SIGXFSZ'), code('', 'SIGXCPU'), code('', 'SIGSEGV')]).toEqual(['INTERNAL', 'INTERNAL', 'DAMAGED'])
})

/** In a shell that lets no file grow beyond so many blocks of 512 bytes. */
function limitedTo(blocks: number, scratch: Scratch, command: string): Json {
  const ran = spawnSync(
    'sh',
    ['-c', `ulimit -f ${blocks}; exec "$0" "$@"`, process.execPath, PROGRAM, command, '--json'],
    { cwd: scratch.root, env: scratch.vars, encoding: 'utf8' },
  )
  return { code: ran.status, ...JSON.parse(ran.stdout) }
}
const LIMITED = [expect.stringContaining('ulimit -f'), expect.stringContaining('ckpt daemon stop')]

test('where no file may be as large as what is to be written, nothing is changed, and the limit is named', () => {
  const scratch = new Scratch().init()
  scratch.turn('one', () => scratch.write({ 'a.txt': randomBytes(100_000) }))
  scratch.write({ 'b.txt': randomBytes(100_000) })
  const before = scratch.manifest()
  for (const command of ['snapshot', 'undo']) {
    const { code, error } = limitedTo(16, scratch, command)
    expect(code).toBe(1)
    expect(error).toMatchObject({ message: expect.stringContaining('larger than may be written'), hints: LIMITED })
    expect(scratch.manifest()).toEqual(before)
  }
  expect(scratch.run(['verify']).code).toBe(0)
  scratch.ckpt('undo')
})

test('promise 10: a file larger than may be written is not covered, and the rest is captured', () => {
  const scratch = new Scratch().init({ 'a.txt': 'one\n' })
  scratch.turn('one', () => scratch.write({ 'a.txt': 'two\n' }))
  scratch.write({ 'a.txt': 'three\n', large: randomBytes(1_500_000) })
  const { code, checkpoint } = limitedTo(2048, scratch, 'snapshot')
  expect([code, checkpoint.degraded, checkpoint.uncovered]).toEqual([
    0,
    true,
    [{ path: 'large', reason: 'unreadable' }],
  ])
  expect(scratch.ckpt('diff', '1:after', checkpoint.id).files.map(({ path }: Json) => path)).toEqual(['a.txt'])
})

test('where what was written cannot be taken back under such a limit either, that is named, until it is lifted', () => {
  const scratch = new Scratch().init({ 'a-large': randomBytes(200_000), 'small.txt': 'one\n' })
  scratch.turn('one', () => {
    scratch.remove('a-large')
    scratch.write({ new: randomBytes(200_000), 'small.txt': 'two\n' })
  })
  const after = scratch.manifest()
  scratch.ckpt('undo')
  const failed = limitedTo(200, scratch, 'redo')
  expect([failed.code, failed.error.message, failed.error.hints]).toEqual([
    1,
    expect.stringContaining('cannot be taken back now (EFBIG)'),
    LIMITED,
  ])
  const again = limitedTo(200, scratch, 'redo')
  expect([again.code, again.error.message, again.error.hints]).toEqual([
    1,
    expect.stringContaining('cannot be finished now'),
    LIMITED,
  ])
  scratch.run(['status'])
  expect(scratch.manifest()).toEqual(after)
})

test('read-only: the message names what could not be written, not what could not be cleaned up after that', async () => {
  const scratch = new Scratch().init()
  scratch.turn('one', () => scratch.write({ 'a.txt': 'two\n' }))
  const refused = (call: string) => (path: fs.PathLike) => {
    throw Object.assign(new Error(`EROFS: read-only file system, ${call} '${path}'`), { code: 'EROFS' })
  }
  const env = envOf(scratch)
  const files = {
    ...env.files,
    writeFileSync: refused('open'),
    unlinkSync: refused('unlink'),
  } as unknown as Env['files']
  const { code, document } = await answer({ ...env, files }, 'undo')
  expect([code, document.error.code]).toEqual([1, 'INTERNAL'])
  expect(document.error.message).toMatch(
    /^The store cannot be written \(EROFS: .*, open '.*\/lock\.[^']*'\)\. Your files/,
  )
})

const full = () => Object.assign(new Error('ENOSPC: no space left on device, write'), { code: 'ENOSPC' })

/** The nth write finds room for half of it, and the later ones for nothing. */
function filling(env: Env, nth: number): Env {
  let calls = 0
  const writeFileSync = ((file: fs.PathOrFileDescriptor, data: string | Buffer, options?: fs.WriteFileOptions) => {
    if (++calls < nth) return fs.writeFileSync(file, data, options)
    if (calls === nth) fs.writeFileSync(file, data.slice(0, data.length / 2), options)
    throw full()
  }) as typeof fs.writeFileSync
  return { ...env, files: { ...env.files, writeFileSync } }
}

test.each([[['snapshot']], [['commit', '-m', 'x']]])(
  'what a full disk cut short does not stay: %s',
  async (command) => {
    const scratch = new Scratch().init()
    scratch.turn('one', () => {
      for (let i = 0; i < 20; i++) scratch.write({ [`d${i}/f`]: randomBytes(100).toString('hex') })
    })
    const env = envOf(scratch)
    scratch.git('-C', scratch.root, 'config', 'user.name', 'somebody')
    scratch.git('-C', scratch.root, 'config', 'user.email', 'somebody@example.com')
    const drafts = () =>
      fs.readdirSync(scratch.at('.git/ckpt'), { recursive: true, encoding: 'utf8' }).filter((name) => /tmp./.test(name))
    let nth = 1
    for (; ; nth++) {
      if (command[0] === 'snapshot')
        for (let i = 0; i < 20; i++) scratch.write({ [`d${i}/f`]: randomBytes(100).toString('hex') })
      const { code } = await answer(filling(env, nth), ...command)
      expect([nth, drafts()]).toEqual([nth, []])
      if (code === 0) break
    }
    expect(nth).toBeGreaterThan(4)
    expect(scratch.run(['verify']).code).toBe(0)
  },
)

test('hooks are installed all or none, where there is room for some', async () => {
  const scratch = new Scratch().init()
  scratch.ckpt('snapshot')
  const theirs = scratch.at('.git/hooks/pre-commit')
  fs.writeFileSync(theirs, '#!/usr/bin/env python3\n', { mode: 0o755 })
  const hooks = () =>
    Object.fromEntries(
      fs
        .readdirSync(scratch.at('.git/hooks'))
        .map((name) => [name, fs.readFileSync(scratch.at(`.git/hooks/${name}`), 'utf8')]),
    )
  const before = hooks()
  let nth = 1
  for (; ; nth++) {
    const { code } = await answer(filling(envOf(scratch), nth), 'hooks', 'install')
    if (code === 0) break
    expect([nth, hooks()]).toEqual([nth, before])
  }
  expect(nth).toBeGreaterThan(8)
  scratch.ckpt('hooks', 'uninstall')
  expect(hooks()).toEqual(before)
})

test('what could not be begun is not left beside the store', async () => {
  const scratch = new Scratch().init()
  scratch.turn('one', () => scratch.write({ 'a.txt': 'two\n' }))
  const failing = ['-c', 'echo "fatal: cannot mkdir: No space left on device" >&2; exit 128']
  const spawnFull = ((command: string, args: string[], options: object) =>
    args.includes('init') ? spawn('sh', failing, options) : spawn(command, args, options)) as Env['spawn']
  const { code, document } = await answer({ ...envOf(scratch), spawn: spawnFull }, 'export', `${scratch.base}/x.bundle`)
  expect([code, document.error.message]).toEqual([1, expect.stringContaining('The disk is full')])
  expect(fs.readdirSync(scratch.at('.git/ckpt')).filter((name) => name.startsWith('parcel'))).toEqual([])
})

test('while the disk is full what an undo could not record holds up nobody who only reads', async () => {
  const scratch = new Scratch().init()
  for (const n of [1, 2])
    scratch.turn(`${n}`, () => {
      for (let i = 0; i < 20; i++) scratch.write({ [`f${i}`]: `${n} ${i}\n` }) // enough for a pack
    })
  const env = envOf(scratch)
  const refused = ['-c', 'echo "fatal: prepare: cannot update ref: no room" >&2; exit 128']
  const spawnFull = ((command: string, args: string[], options: object) =>
    args.includes('update-ref') ? spawn('sh', refused, options) : spawn(command, args, options)) as Env['spawn']
  const undone = await answer({ ...env, spawn: spawnFull }, 'undo')
  expect(undone.document.error.message).toMatch(/could not be recorded/)
  // There is room for a lock, and for nothing that is of any size.
  const writeFileSync = ((file: fs.PathOrFileDescriptor, ...more: [string]) => {
    if (String(file).includes('/objects/')) throw full()
    fs.writeFileSync(file, ...more)
  }) as typeof fs.writeFileSync
  for (const command of [['list'], ['status'], ['show', '1'], ['diff', '1']]) {
    const { code, document } = await answer({ ...env, files: { ...env.files, writeFileSync } }, ...command)
    expect([command, code, document.ok]).toEqual([command, 0, true])
  }
  expect(scratch.run(['list', '--hidden', '--json']).code).toBe(0)
  expect(scratch.run(['verify']).code).toBe(0)
})

/** As Node 20 throws what it has no name for. */
const nameless = (number: number, call: string) => {
  const code = `Unknown system error -${number}`
  return Object.assign(new Error(`${code}: ${code}, ${call}`), { code, errno: -number })
}

test('a quota is no odd failure: it is said, reading goes on, and what was begun is finished when there is room', async () => {
  const scratch = new Scratch().init()
  scratch.turn('one', () => scratch.write({ 'a.txt': 'two\n', 'b.txt': 'new\n' }))
  const env = envOf(scratch)
  const { EDQUOT } = os.constants.errno
  const failing = (name: RegExp) => {
    const refusing = <Call extends (file: never, ...more: never[]) => unknown>(call: Call) =>
      ((file: never, ...more: never[]) => {
        if (name.test(String(file))) throw nameless(EDQUOT, `open '${file}'`)
        return call(file, ...more)
      }) as unknown as Call
    const { openSync, writeFileSync } = env.files
    return {
      ...env,
      files: { ...env.files, openSync: refusing(openSync), writeFileSync: refusing(writeFileSync) },
    }
  }
  const locking = (await answer(failing(/\/lock\./), 'undo')).document.error
  expect(locking.message).toMatch(/^The disk quota is exceeded: .*\(EDQUOT, open '.*\/lock\./)
  const half = (await answer(failing(/\.new$/), 'undo')).document.error
  expect(half.message).toMatch(/^Writing failed at a\.txt \(EDQUOT\), and .* \(EDQUOT\)\. Nothing is lost/)
  expect(half.hints).toEqual(['free some disk space, then: ckpt status'])
  const reading = await answer(failing(/\/lock\./), 'status')
  expect([reading.code, reading.document.warnings.join()]).toEqual([
    0,
    expect.stringMatching(/^An operation is unfinis/),
  ])
  expect(scratch.run(['status']).code).toBe(0)
  expect([scratch.read('a.txt'), scratch.exists('b.txt')]).toEqual(['one\n', false])
})

test('a file that cannot be read for whatever reason degrades the snapshot, and does not fail it', async () => {
  const scratch = new Scratch().init({ 'a.txt': 'one\n', 'odd.txt': 'odd\n' })
  scratch.ckpt('mark', 'prompt', '--session', 's')
  scratch.write({ 'a.txt': 'two\n', 'odd.txt': 'other\n' })
  const env = envOf(scratch)
  for (const number of [os.constants.errno.EBADMSG, 117 /* EUCLEAN */, 126 /* ENOKEY */]) {
    const openSync = ((file: fs.PathLike, ...more: [string]) => {
      if (String(file).endsWith('/odd.txt')) throw nameless(number, 'open')
      return fs.openSync(file, ...more)
    }) as typeof fs.openSync
    const { code, document } = await answer({ ...env, files: { ...env.files, openSync } }, 'snapshot')
    expect([number, code, document.checkpoint?.degraded]).toEqual([number, 0, true])
    expect(document.checkpoint.uncovered).toEqual([{ path: 'odd.txt', reason: 'unreadable' }])
  }
  const { checkpoint } = scratch.ckpt('mark', 'stop', '--session', 's')
  expect([checkpoint.degraded, scratch.ckpt('undo').files.length]).toEqual([false, 2])
  expect([scratch.read('a.txt'), scratch.read('odd.txt')]).toEqual(['one\n', 'odd\n'])
})

test('what git could not be told is not done: no marker is acknowledged for it', async () => {
  const scratch = new Scratch().init()
  scratch.ckpt('mark', 'prompt', '--session', 's')
  scratch.write({ 'a.txt': 'two\n' })
  const env = envOf(scratch)
  const deaf = ((command: string, args: string[], options: object) => {
    const child = spawn(command, args, options)
    if (args.includes('update-ref')) child.stdin!.destroy(full())
    return child
  }) as Env['spawn']
  const stop = ['mark', 'stop', '--session', 's', '--marker', 'm']
  const { code, document } = await answer({ ...env, spawn: deaf }, ...stop)
  expect([code, document.error.message]).toEqual([
    1,
    expect.stringMatching(/^git could not be told what to do: ENOSPC/),
  ])
  scratch.ckpt(...stop)
  expect(scratch.ckpt('list').turns).toMatchObject([{ n: 1, status: 'completed', stat: { files: 1 } }])
  expect(scratch.ckpt('verify').problems).toEqual([])
})
