// The daemon's life: one for a worktree, needed for nothing, and no trace that needs a hand.
import { spawn, spawnSync } from 'node:child_process'
import fs from 'node:fs'
import { connect, createServer } from 'node:net'
import path from 'node:path'
import { expect, onTestFinished, test } from 'vitest'
import { daemonStatus, stopDaemon } from '../../src/daemon/life.ts'
import { PROTOCOL } from '../../src/daemon/protocol.ts'
import { realEnv } from '../../src/env.ts'
import { takeAtOnce } from '../../src/ops/worktree/lock.ts'
import { startOf } from '../../src/ops/worktree/processes.ts'
import { canContain } from '../support/container.ts'
import { alive, runLater, startDaemon } from '../support/daemon.ts'
import { Bare, frame } from '../support/protocol.ts'
import { type Json, PACKAGE, PROGRAM, Scratch } from '../support/scratch.ts'
import { hasPython, hungUp } from '../support/terminal.ts'

const until = async (holds: () => boolean) => {
  for (let i = 0; i < 200 && !holds(); i++) await new Promise((resolve) => setTimeout(resolve, 50))
  expect(holds()).toBe(true)
}
const infoOf = (scratch: Scratch) => path.join(scratch.root, '.git/ckpt/worktrees/@main/daemon/info.json')

test('it starts once, says so, is in status, and stops', () => {
  const scratch = new Scratch().init()
  const { pid } = startDaemon(scratch)
  expect(scratch.ckpt('daemon', 'start')).toMatchObject({ started: false, pid })
  expect(scratch.ckpt('status').daemon).toEqual({ running: true, pid, watching: true })
  expect(scratch.run(['watch']).code).toBe(8)
  expect(scratch.ckpt('daemon', 'stop')).toMatchObject({ stopped: true })
  expect(alive(pid)).toBe(false)
  expect(scratch.ckpt('daemon', 'stop')).toMatchObject({ stopped: false })
  expect(scratch.ckpt('status').daemon).toEqual({ running: false, pid: null, watching: false })
})

test('switched off nothing is started: one that ran would lose the hooks of those who have not', () => {
  const scratch = new Scratch().init()
  const off = (...args: string[]) => scratch.run(args, { vars: { CKPT_DISABLED: '1' } })
  expect(scratch.ckpt('daemon', 'logs').lines).toEqual([])
  expect(JSON.parse(off('daemon', 'start', '--json').stdout)).toMatchObject({
    started: false,
    pid: null,
    running: false,
  })
  expect(off('watch')).toEqual({ code: 0, stdout: 'CKPT_DISABLED is set: nothing was started.\n', stderr: '' })
  expect(fs.existsSync(scratch.at('.git/ckpt'))).toBe(false)
  const { pid } = startDaemon(scratch)
  expect(JSON.parse(off('daemon', 'start', '--json').stdout)).toMatchObject({ started: false, pid, running: true })
})

test('what it answered and cannot be printed is said in a line, and who has read enough is no error', () => {
  const scratch = new Scratch().init()
  scratch.turn('work', () => scratch.write({ 'a.txt': 'two\n' }))
  startDaemon(scratch)
  const shell = (line: string) =>
    spawnSync('sh', ['-c', `"$0" "$1" ${line}`, process.execPath, PROGRAM], {
      cwd: scratch.root,
      env: scratch.vars,
      encoding: 'utf8',
    })
  const { status, stderr } = shell('undo >/dev/full')
  expect([status, stderr]).toEqual([1, expect.stringMatching(/^ckpt: What was done could not be said: ENOSPC.*\n$/)])
  expect(scratch.read('a.txt')).toBe('one\n')
  expect(shell('redo 2>&1 >/dev/full | grep -c .').stdout).toBe('1\n')
  const closed = shell('undo --dry-run --json | (exec <&-; sleep 1)')
  expect([closed.status, closed.stderr]).toEqual([0, ''])
})

test('in the foreground it ends once nobody reads it, and with its terminal', async () => {
  const scratch = new Scratch().init()
  const watch = spawn(process.execPath, [PROGRAM, 'watch'], {
    cwd: scratch.root,
    env: scratch.vars,
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  onTestFinished(() => void watch.kill('SIGKILL'))
  await new Promise((resolve) => watch.stdout.once('data', resolve))
  watch.stdout.destroy()
  const timer = setInterval(() => scratch.write({ 'a.txt': `${Date.now()}\n` }), 100)
  const code = await new Promise((resolve) => watch.once('close', resolve))
  clearInterval(timer)
  expect(code).toBe(0)
  if (!hasPython) return
  const closed = hungUp([process.execPath, PROGRAM, 'watch'], 'q quit', { cwd: scratch.root, env: scratch.vars })
  expect([closed, scratch.ckpt('status').daemon.running]).toEqual([-1, false]) // SIGHUP
})

test('told to stop it finishes what it does: exit 0, no lock, its last word in the log; and who called is answered', async () => {
  const scratch = new Scratch().init()
  for (let round = 0; round < 3; round++) {
    const ended = runLater(scratch, ['watch', '--background'])
    await until(() => fs.existsSync(infoOf(scratch)))
    const { pid } = JSON.parse(fs.readFileSync(infoOf(scratch), 'utf8'))
    scratch.write({ 'a.txt': `round ${round}\n` })
    scratch.ckpt('snapshot')
    const asked = Array.from({ length: 3 }, (_, i) =>
      runLater(scratch, ['mark', 'prompt', '--session', `s${round}${i}`, '--json']),
    )
    if (round === 0) expect(scratch.ckpt('daemon', 'stop')).toMatchObject({ stopped: true })
    else for (let i = 0; i < round; i++) process.kill(pid, 'SIGTERM')
    expect((await ended).code).toBe(0)
    for (const one of await Promise.all(asked)) expect(JSON.parse(one.stdout)).toMatchObject({ ok: true, turn: 1 })
    const log = fs.readFileSync(path.join(scratch.root, '.git/ckpt/worktrees/@main/daemon/log'), 'utf8')
    expect(log.trimEnd().split('\n').at(-1)).toContain('"msg":"stopped"')
    const left = fs.readdirSync(path.join(scratch.root, '.git/ckpt/worktrees/@main'))
    expect([left.includes('cache.json'), left.filter((name) => name.startsWith('lock'))]).toEqual([true, []])
    fs.cpSync(scratch.root, `${scratch.root}-copy-${round}`, { recursive: true }) // which takes no fifos
  }
})

test('told to stop it ends, whatever a client has begun to say; and so does a client whose daemon is gone', async () => {
  const scratch = new Scratch().init()
  const ended = runLater(scratch, ['watch', '--background'])
  await until(() => fs.existsSync(infoOf(scratch)))
  const { pid, socket } = JSON.parse(fs.readFileSync(infoOf(scratch), 'utf8'))
  const begun = new Bare({ socket }).send('Content-Length: 100\r\n\r\n{"jsonrpc"')
  await until(() => begun.socket.bytesWritten > 0)
  scratch.ckpt('status') // it reads what was sent before
  process.kill(pid, 'SIGTERM')
  await until(() => !alive(pid))
  expect((await ended).code).toBe(0)

  const socketOfNone = path.join(scratch.home, 'none')
  const server = createServer((one) => one.end('Content-Length: 100\r\n\r\n{"jsonrpc"')).listen(socketOfNone)
  onTestFinished(() => void server.close())
  const info = { pid: process.pid, started: startOf(realEnv(), process.pid), socket: socketOfNone, token: 't' }
  fs.writeFileSync(infoOf(scratch), JSON.stringify({ ...info, root: scratch.root }))
  const script = `import { connectDaemon } from '${PACKAGE}/dist/index.js'
    await connectDaemon('.').catch((error) => console.log(error.code))`
  const client = spawn(process.execPath, ['--input-type=module', '-e', script], {
    cwd: scratch.root,
    env: scratch.vars,
  })
  const said = client.stdout.toArray()
  await until(() => client.exitCode !== null)
  expect(Buffer.concat(await said).toString()).toBe('INTERNAL\n')
})

test('what is asked of one that was told to stop is not begun, and it ends', async () => {
  const scratch = new Scratch().init()
  const ended = runLater(scratch, ['watch', '--background'])
  await until(() => fs.existsSync(infoOf(scratch)))
  const { pid, socket, token } = JSON.parse(fs.readFileSync(infoOf(scratch), 'utf8'))
  const late = connect({ path: socket, allowHalfOpen: true })
  late.on('error', () => undefined) // it may be closed before all is said
  onTestFinished(() => void late.destroy())
  const ask = (method: string, params: object) =>
    late.write(frame(JSON.stringify({ jsonrpc: '2.0', id: method, method, params })))
  ask('hello', { token, protocol: PROTOCOL })
  late.once('data', () => process.kill(pid, 'SIGTERM'))
  late.once('end', () => {
    ask('subscribe', {})
    ask('mark', { event: 'prompt', session: 'late' })
  })
  await until(() => !alive(pid))
  expect((await ended).code).toBe(0)
  expect(scratch.ckpt('list', '--sessions').sessions).toEqual([])
})

test('one that ends by a failure says so in its log', async () => {
  const scratch = new Scratch().init()
  const broken = `${scratch.home}/broken.cjs`
  const fail = "setTimeout(() => { throw new Error('a bug of ours') }, 1500)"
  fs.writeFileSync(broken, `if (process.argv.includes('--background')) ${fail}\n`)
  const vars = { NODE_OPTIONS: `--require=${broken}` }
  const { pid } = JSON.parse(scratch.run(['daemon', 'start', '--json'], { vars }).stdout)
  await until(() => !alive(pid))
  expect(scratch.run(['daemon', 'logs']).stdout).toMatch(/ended by a failure: a bug of ours/)
  expect(scratch.ckpt('mark', 'prompt', '--session', 's').turn).toBe(1)
})

test('one that cannot come up says so at once, and is gone', () => {
  const scratch = new Scratch().init()
  scratch.write({ '.git/ckpt/worktrees/@main/daemon/hooks': 'in the way\n' })
  const { code, stderr } = scratch.run(['daemon', 'start'])
  const last = JSON.parse(scratch.ckpt('daemon', 'logs').lines.at(-1))
  onTestFinished(() => {
    if (alive(last.pid)) process.kill(last.pid)
  })
  expect([code, stderr]).toEqual([1, expect.stringContaining(`The daemon did not come up: ${last.msg}`)])
  expect([alive(last.pid), fs.existsSync(infoOf(scratch))]).toEqual([false, false])
  expect(scratch.ckpt('mark', 'prompt', '--session', 's').turn).toBe(1)
})

test.each([
  ['is too far down', (scratch: Scratch) => `${scratch.base}/${'far'.repeat(40)}`],
  ['is none', () => '/dev/null'],
  ['is open to others', (scratch: Scratch) => `${scratch.base}/open`],
])('where the runtime directory %s the socket lies elsewhere', (what, name) => {
  const scratch = new Scratch().init()
  const runtime = name(scratch)
  if (what === 'is open to others') fs.mkdirSync(`${runtime}/ckpt`, { recursive: true, mode: 0o755 })
  const vars = { XDG_RUNTIME_DIR: runtime, TMPDIR: runtime }
  expect(JSON.parse(scratch.run(['daemon', 'start', '--json'], { vars }).stdout)).toMatchObject({ started: true })
  onTestFinished(() => {
    scratch.run(['daemon', 'stop'])
  })
  const { socket } = JSON.parse(fs.readFileSync(infoOf(scratch), 'utf8'))
  expect(socket.startsWith(`${runtime}/ckpt/`)).toBe(false)
  expect(scratch.ckpt('daemon', 'status').watching).toBe(true)
})

test.each([
  ['lies in the worktree', (scratch: Scratch) => scratch.at('tmp')],
  ['leads into it', (scratch: Scratch) => `${scratch.base}/link`],
  ['is relative', () => 'tmp'],
])('where the temporary directory %s no socket is put there', (_, name) => {
  const scratch = new Scratch().init({ 'tmp/a.txt': 'a\n' })
  fs.symlinkSync(scratch.at('tmp'), `${scratch.base}/link`)
  const vars = { XDG_RUNTIME_DIR: name(scratch), TMPDIR: name(scratch) }
  scratch.run(['daemon', 'start'], { vars })
  onTestFinished(() => {
    scratch.run(['daemon', 'stop'])
  })
  const { socket } = JSON.parse(fs.readFileSync(infoOf(scratch), 'utf8'))
  expect(socket).toMatch(/^\/tmp\/ckpt-\d+\//)
  expect(fs.readdirSync(scratch.at('tmp'))).toEqual(['a.txt'])
  expect(scratch.ckpt('status').uncovered).toEqual([])
  const below = scratch.run(['daemon', 'status', '--json'], { cwd: scratch.at('tmp') })
  expect(JSON.parse(below.stdout)).toMatchObject({ running: true, watching: true })
})

test('sockets of daemons that were killed go, of other worktrees too, and nothing else that lies there', async () => {
  const [scratch, long, just] = [new Scratch().init(), new Scratch().init(), new Scratch().init()]
  const runtime = `${scratch.base}/run`
  const sockets = `${runtime}/ckpt`
  fs.mkdirSync(runtime)
  const start = (one: Scratch): { pid: number; socket: string } => {
    one.run(['daemon', 'start'], { vars: { XDG_RUNTIME_DIR: runtime } })
    const { pid, socket } = JSON.parse(fs.readFileSync(infoOf(one), 'utf8'))
    return { pid, socket: path.basename(socket) }
  }
  const killed = [scratch, long, just].map(start)
  for (const { pid } of killed) process.kill(pid, 'SIGKILL')
  await until(() => killed.every(({ pid }) => !alive(pid)))
  const [, killedLongAgo, killedJustNow] = killed.map(({ socket }) => socket)
  const server = createServer().listen(`${sockets}/live.sock`)
  onTestFinished(() => void server.close())
  fs.writeFileSync(`${sockets}/file.sock`, '')
  for (const name of [killedLongAgo!, 'live.sock', 'file.sock']) fs.utimesSync(`${sockets}/${name}`, 1, 1)
  const { socket } = start(scratch)
  onTestFinished(() => {
    scratch.run(['daemon', 'stop'])
  })
  expect(fs.readdirSync(sockets).sort()).toEqual(['file.sock', killedJustNow, 'live.sock', socket].sort())
})

test('one that nobody finds any more ends by itself, says why, and another one is at work', async () => {
  const watched = new Scratch().init()
  const ended = runLater(watched, ['watch'])
  await until(() => fs.existsSync(infoOf(watched)))
  fs.unlinkSync(infoOf(watched))
  const scratch = new Scratch().init()
  const { pid } = startDaemon(scratch)
  onTestFinished(() => void scratch.run(['daemon', 'stop']))
  fs.rmSync(path.dirname(infoOf(scratch)), { recursive: true })
  const { pid: second } = startDaemon(scratch)
  await until(() => !alive(pid))
  expect([alive(second), scratch.ckpt('daemon', 'status')]).toMatchObject([true, { running: true, pid: second }])
  scratch.turn('first', () => scratch.write({ 'a.txt': 'two\n' }))
  scratch.ckpt('undo')
  expect(scratch.read('a.txt')).toBe('one\n')
  expect(await ended).toMatchObject({
    code: 0,
    stdout: expect.stringContaining(`${infoOf(watched)} is gone, or tells of another daemon: watching has ended.`),
  })
})

test('one that cannot be asked from here is left alone, told apart from one that hangs, and can be stopped', () => {
  const scratch = new Scratch().init()
  const runtime = `${scratch.base}/runtime`
  fs.mkdirSync(runtime)
  const uid = scratch.handOver()
  const ckpt = (...args: string[]): Json =>
    JSON.parse(scratch.run([...args, '--json'], { uid, vars: { XDG_RUNTIME_DIR: runtime } }).stdout)
  const { pid } = ckpt('daemon', 'start')
  fs.chmodSync(runtime, 0)
  try {
    expect(ckpt('daemon', 'start')).toMatchObject({ started: false, pid })
    expect(scratch.run(['daemon', 'status'], { uid }).stdout).toContain('it cannot be asked from here (EACCES)')
    expect(ckpt('mark', 'prompt', '--session', 's').turn).toBe(1)
    expect([alive(pid), ckpt('daemon', 'stop').stopped, alive(pid)]).toEqual([true, true, false])
  } finally {
    fs.chmodSync(runtime, 0o700)
  }
})

test.skipIf(!canContain)('so is one whose temporary directory is another one than ours', () => {
  const scratch = new Scratch().init()
  const { pid } = startDaemon(scratch)
  const { socket } = JSON.parse(fs.readFileSync(infoOf(scratch), 'utf8'))
  const inside = (...args: string[]): Json => {
    const line = `mount -t tmpfs none '${path.dirname(socket)}' && exec "$0" '${PROGRAM}' "$@" --json`
    const command = ['--user', '--map-root-user', '--mount', 'sh', '-c', line, process.execPath, ...args]
    return JSON.parse(spawnSync('unshare', command, { cwd: scratch.root, env: scratch.vars, encoding: 'utf8' }).stdout)
  }
  expect(inside('daemon', 'start')).toMatchObject({ started: false, pid })
  expect(inside('mark', 'prompt', '--session', 's').turn).toBe(1)
  expect(scratch.ckpt('daemon', 'status')).toMatchObject({ running: true, pid, watching: true })
})

test('where the configuration cannot be: there is none', () => {
  const scratch = new Scratch().init()
  const vars = { XDG_CONFIG_HOME: '/dev/null' }
  onTestFinished(() => {
    scratch.run(['daemon', 'stop'], { vars })
  })
  expect(scratch.run(['daemon', 'start'], { vars }).code).toBe(0)
  const marked = scratch.run(['mark', 'prompt', '--session', 's', '--json'], { vars })
  expect(JSON.parse(marked.stdout)).toMatchObject({ ok: true, mode: 'fast', turn: 1 })
})

test('markers and undo go through it, and are fast and right', () => {
  const scratch = new Scratch().init({ 'a.txt': 'one\n', 'd/b.txt': 'b\n', '.gitignore': 'out/\n' })
  startDaemon(scratch)
  scratch.turn('first', () => {
    scratch.write({ 'a.txt': 'two\n', 'new/deep/c.txt': 'c\n', 'out/ignored.txt': 'x\n' })
    scratch.remove('d')
  })
  const before = scratch.manifest()
  scratch.ckpt('mark', 'prompt', '--session', 's', '--text', 'second')
  scratch.write({ 'new/deep/c.txt': 'cc\n', 'new/e.txt': 'e\n' })
  const stop = scratch.ckpt('mark', 'stop', '--session', 's')
  expect(stop).toMatchObject({ mode: 'fast', barrier: 'ok' })
  expect(scratch.ckpt('show', '2').files.map((file: Json) => file.path)).toEqual(['new/deep/c.txt', 'new/e.txt'])
  scratch.ckpt('undo')
  expect(scratch.manifest()).toEqual(before)
  scratch.ckpt('undo')
  expect(scratch.read('a.txt')).toBe('one\n')
  expect(scratch.exists('d/b.txt')).toBe(true)
  expect(scratch.exists('out/ignored.txt')).toBe(true)
  scratch.ckpt('redo', '--all')
  expect(scratch.ckpt('verify').ok).toBe(true)
})

test('a client that is gone while files change does not end it', () => {
  const scratch = new Scratch().init()
  const { pid } = startDaemon(scratch)
  for (let i = 0; i < 20; i++) {
    scratch.write({ 'a.txt': `${i}\n`, [`new-${i}/b.txt`]: 'b\n' })
    scratch.ckpt('mark', i % 2 === 0 ? 'prompt' : 'stop', '--session', 's')
  }
  expect(scratch.ckpt('daemon', 'status')).toMatchObject({ running: true, pid })
})

test('a linked worktree, and one of a repository that lies elsewhere, have a daemon of their own', () => {
  const scratch = new Scratch().init({ 'a.txt': 'one\n' })
  const linked = path.join(scratch.base, 'linked')
  scratch.git('worktree', 'add', '-q', linked)
  const elsewhere = path.join(scratch.base, 'elsewhere')
  scratch.git('init', '-q', `--separate-git-dir=${scratch.base}/apart.git`, elsewhere)
  for (const cwd of [linked, elsewhere]) {
    const ckpt = (...args: string[]) => JSON.parse(scratch.run([...args, '--json'], { cwd }).stdout)
    ckpt('mark', 'prompt', '--session', 's')
    expect(ckpt('daemon', 'start').started).toBe(true)
    try {
      fs.writeFileSync(path.join(cwd, 'a.txt'), 'two\n')
      expect(ckpt('mark', 'stop', '--session', 's')).toMatchObject({ mode: 'fast', barrier: 'ok' })
      expect(ckpt('undo').turns).toEqual([1])
      expect(scratch.ckpt('daemon', 'status').running).toBe(false)
    } finally {
      ckpt('daemon', 'stop')
    }
  }
})

test('where its git directory moves away, commands go on in the new place at once, and it ends', async () => {
  const scratch = new Scratch().init({ 'a.txt': 'one\n' })
  const { pid } = startDaemon(scratch)
  scratch.turn('first', () => scratch.write({ 'a.txt': 'two\n' }))
  scratch.git('init', '-q', '--separate-git-dir', `${scratch.base}/elsewhere.git`)
  scratch.turn('second', () => scratch.write({ 'a.txt': 'three\n' }))
  await until(() => !alive(pid))
  scratch.ckpt('undo', '--turns', '2')
  expect(scratch.read('a.txt')).toBe('one\n')
  startDaemon(scratch)
  expect(scratch.ckpt('redo', '--all').turns).toEqual([1, 2])
  expect([scratch.read('a.txt'), scratch.ckpt('verify').problems]).toEqual(['three\n', []])
})

test('a marker in a large worktree starts one, in a small one, or where it is not wanted, none', async () => {
  const small = new Scratch().init()
  const large = new Scratch().init()
  for (let i = 0; i < 260; i++) large.write({ [`d${i}/f`]: `${i}\n` })
  for (const scratch of [small, large]) scratch.runApart(['mark', 'prompt', '--session', 's', '--no-daemon'])
  await new Promise((resolve) => setTimeout(resolve, 1500))
  const running = (scratch: Scratch): boolean => scratch.ckpt('daemon', 'status').running
  expect([small, large].map(running)).toEqual([false, false])
  for (const scratch of [small, large]) scratch.runApart(['mark', 'stop', '--session', 's'])
  onTestFinished(() => {
    large.run(['daemon', 'stop'])
  })
  for (let i = 0; i < 100 && !running(large); i++) await new Promise((resolve) => setTimeout(resolve, 100))
  expect([small, large].map(running)).toEqual([false, true])
  large.write({ 'd1/f': 'changed\n' })
  expect(large.ckpt('mark', 'prompt', '--session', 's')).toMatchObject({ mode: 'fast' })
})

test('promise 14: killed, every command goes on without it, and another can start', async () => {
  const scratch = new Scratch().init()
  const { pid } = startDaemon(scratch)
  scratch.turn('first', () => scratch.write({ 'a.txt': 'two\n' }))
  process.kill(pid, 'SIGKILL')
  await until(() => !alive(pid))
  scratch.turn('second', () => scratch.write({ 'a.txt': 'three\n' }))
  expect(scratch.ckpt('list').turns).toHaveLength(2)
  scratch.ckpt('undo', '--session', 's')
  expect(scratch.read('a.txt')).toBe('two\n')
  const again = startDaemon(scratch)
  expect(again.pid).not.toBe(pid)
  scratch.ckpt('redo')
  expect(scratch.read('a.txt')).toBe('three\n')
})

test('one that hangs is killed when it is told to stop, and that is said', async () => {
  const scratch = new Scratch().init()
  const { pid } = startDaemon(scratch)
  process.kill(pid, 'SIGSTOP')
  const { stdout } = await runLater(scratch, ['daemon', 'stop', '--json'])
  const killed = [expect.stringMatching(/^It did not end by itself and was killed\. What was recorded is kept/)]
  expect(JSON.parse(stdout)).toMatchObject({ ok: true, stopped: true, running: false, warnings: killed })
  expect([alive(pid), fs.existsSync(infoOf(scratch))]).toEqual([false, false])
  expect(scratch.ckpt('mark', 'prompt', '--session', 's').turn).toBe(1)
})

test('promise 12: no client waits for a daemon that hangs', async () => {
  const scratch = new Scratch().init()
  const { pid } = startDaemon(scratch)
  process.kill(pid, 'SIGSTOP')
  try {
    const status = await runLater(scratch, ['status', '--json'])
    expect(JSON.parse(status.stdout).daemon).toMatchObject({ running: true, pid })
    const listed = await runLater(scratch, ['list', '--json'])
    expect(listed.code).toBe(0)
    for (const args of [['mark', 'prompt', '--session', 's'], ['mark', 'stop', '--session', 's'], ['undo'], ['redo']]) {
      const { code, stdout } = await runLater(scratch, [...args, '--json'])
      expect([args[0], code, JSON.parse(stdout).ok]).toEqual([args[0], 0, true])
    }
  } finally {
    process.kill(pid, 'SIGCONT')
  }
  // What it was asked it does not do once it goes on.
  expect(scratch.ckpt('undo', '--dry-run').turns).toEqual([1])
  expect(scratch.ckpt('list').turns).toHaveLength(1)
})

test('promise 1: a daemon that goes in the middle of an undo: nobody does it a second time', async () => {
  const scratch = new Scratch().init({ 'a.txt': 'one\n' })
  for (const text of ['two\n', 'three\n']) scratch.turn('work', () => scratch.write({ 'a.txt': text }))
  const { pid } = startDaemon(scratch)
  const release = takeAtOnce(realEnv(), scratch.at('.git/ckpt/worktrees/@main/lock'), { command: 'test' })
  const undo = runLater(scratch, ['undo', '--json', '--turns', '1'])
  const step = runLater(scratch, ['mark', 'prompt', '--session', 'other', '--json'])
  await new Promise((resolve) => setTimeout(resolve, 1500)) // both calls are taken, and wait for the lock
  process.kill(pid, 'SIGKILL')
  release?.()
  const { code, stdout } = await undo
  const { message, hints } = JSON.parse(stdout).error
  expect([code, message]).toEqual([1, expect.stringContaining('it may have been carried out')])
  expect(hints[1]).toMatch(/^ckpt undo --json --turns 1 --no-daemon {3}\(only where/)
  expect(scratch.read('a.txt')).toBe('three\n')
  // A marker is sent again, and is one.
  expect((await step).code).toBe(0)
  expect(scratch.ckpt('list', '--session', 'other').turns).toHaveLength(1)
  scratch.ckpt('undo', '--session', 's')
  expect(scratch.read('a.txt')).toBe('two\n')
})

test('it stops by itself when the worktree goes away', async () => {
  const scratch = new Scratch().init()
  const { pid } = startDaemon(scratch)
  fs.renameSync(scratch.root, `${scratch.root}-gone`)
  await until(() => !alive(pid))
  fs.renameSync(`${scratch.root}-gone`, scratch.root)
  expect(scratch.ckpt('status').daemon.running).toBe(false)
})

test('a wrong token gets an error and nothing else', async () => {
  const scratch = new Scratch().init()
  startDaemon(scratch)
  const info = JSON.parse(fs.readFileSync(infoOf(scratch), 'utf8'))
  expect(fs.statSync(infoOf(scratch)).mode & 0o777).toBe(0o600)
  const { callDaemon } = await import('../../src/daemon/call.ts')
  const answer = await callDaemon(
    realEnv(),
    { ...info, token: 'wrong' },
    { method: 'cli', params: { argv: ['undo'], cwd: scratch.root, vars: {} }, timeout: 3000 },
  )
  expect(answer?.error?.code).toBe(-32001)
})

/** Of each of 16 clients. */
const MARKERS = Number(process.env.CKPT_CLIENT_MARKERS ?? 2)
const PATIENCE = 120_000 + MARKERS * 10_000

test('16 clients with a daemon that is killed and started again: each acknowledged marker is there once', {
  timeout: PATIENCE,
}, async () => {
  const scratch = new Scratch().init()
  let { pid } = startDaemon(scratch)
  const acknowledged: string[] = []
  const client = async (name: number) => {
    for (let i = 0; i < MARKERS; i++) {
      const id = `m-${name}-${i}`
      const ran = await runLater(scratch, ['mark', 'prompt', '--session', `c${name}`, '--message-id', id, '--json'])
      if (ran.code === 0) acknowledged.push(id)
    }
  }
  const clients = Array.from({ length: 16 }, (_, name) => client(name))
  await until(() => acknowledged.length >= 8)
  process.kill(pid, 'SIGKILL')
  await until(() => !alive(pid))
  pid = startDaemon(scratch).pid
  await Promise.all(clients)
  const { turns } = scratch.ckpt('list', '--all-sessions') as { turns: { messageId: string }[] }
  const found = turns.map((turn) => turn.messageId)
  expect(new Set(found).size).toBe(found.length)
  expect(acknowledged.filter((id) => !found.includes(id))).toEqual([])
  expect(acknowledged.length).toBeGreaterThan(13 * MARKERS)
  expect(scratch.ckpt('verify').ok).toBe(true)
})

test('16 writers of marker files, with a daemon that is killed and started again: each marker is there once', {
  timeout: PATIENCE,
}, async () => {
  const scratch = new Scratch().init()
  let { pid } = startDaemon(scratch)
  const directory = path.join(path.dirname(path.dirname(infoOf(scratch))), 'markers')
  const ids: string[] = []
  const writer = async (name: number) => {
    for (let i = 0; i < MARKERS; i++) {
      const id = `f-${name}-${String(i).padStart(4, '0')}`
      const marker = { event: 'prompt', session: `c${name}`, messageId: id, text: id }
      const document = { version: 1, id, client: 'test', time: new Date().toISOString(), marker }
      fs.mkdirSync(directory, { recursive: true })
      fs.writeFileSync(path.join(directory, `${id}.tmp`), JSON.stringify(document))
      fs.renameSync(path.join(directory, `${id}.tmp`), path.join(directory, `${id}.json`))
      ids.push(id)
      await new Promise((resolve) => setTimeout(resolve, 20 + name))
    }
  }
  const writers = Array.from({ length: 16 }, (_, name) => writer(name))
  await new Promise((resolve) => setTimeout(resolve, 500))
  process.kill(pid, 'SIGKILL')
  await until(() => !alive(pid))
  pid = startDaemon(scratch).pid
  await Promise.all(writers)
  // Whoever writes first takes them all up, and holds the lock meanwhile.
  while (scratch.tryCkpt('mark', 'prompt', '--session', 'last').code === 8);
  const { turns } = scratch.ckpt('list', '--all-sessions') as { turns: { messageId: string; session: string }[] }
  const found = turns.filter(({ session }) => session !== 'last').map(({ messageId }) => messageId)
  expect(found.sort()).toEqual(ids.sort())
  expect(fs.readdirSync(directory).filter((name) => name.endsWith('.json'))).toEqual([])
  expect(scratch.ckpt('verify').ok).toBe(true)
})

test('where nothing tells when a process started, a number that somebody else has by now is sent no signal', async () => {
  const scratch = new Scratch()
  const innocent = spawn('sleep', ['60'], { stdio: 'ignore' })
  onTestFinished(() => void innocent.kill('SIGKILL'))
  const real = realEnv()
  const seen = (path: string): string => (path.startsWith('/proc/') ? path.replace('/proc/', '/none/') : path)
  const files = Object.assign(Object.create(real.files), {
    readFileSync: (path: string, ...more: []) => fs.readFileSync(seen(path), ...more),
    readlinkSync: (path: string, ...more: []) => fs.readlinkSync(seen(path), ...more),
  })
  const info = { pid: innocent.pid, started: '', socket: `${scratch.base}/nothing.sock`, token: 't', version: '0' }
  fs.mkdirSync(`${scratch.base}/daemon`)
  fs.writeFileSync(`${scratch.base}/daemon/info.json`, JSON.stringify({ ...info, root: scratch.root, since: '' }))
  expect(await stopDaemon({ ...real, files }, scratch.base)).toBeNull()
  expect([innocent.exitCode, innocent.signalCode, fs.existsSync(`${scratch.base}/daemon/info.json`)]).toEqual([
    null,
    null,
    false,
  ])
})

test('promise 14: what a daemon may not do, for it has too few files to open, who asked does itself', ({ skip }) => {
  const scratch = new Scratch().init({ 'a.txt': 'one\n' })
  const { pid } = startDaemon(scratch)
  scratch.turn('one', () => scratch.write({ 'a.txt': 'two\n' }))
  const allow = (most: number) => spawnSync('prlimit', ['--pid', `${pid}`, `--nofile=${most}:`]).status === 0
  skip(!allow(1000), 'prlimit is not there')
  const open = new Set(fs.readdirSync(`/proc/${pid}/fd`).map(Number))
  const next = [...open].findIndex((_, fd) => !open.has(fd))
  for (let more = 0; more < 8; more++) {
    allow(next + more)
    for (const event of ['prompt', 'stop']) {
      const { code, stderr } = scratch.run(['mark', event, '--session', `s${more}`, '--quiet'])
      expect([more, event, code, stderr]).toEqual([more, event, 0, ''])
    }
  }
  allow(1000)
})

test('one that ended because nobody called is asked for again by the next hook', async () => {
  const scratch = new Scratch().init()
  fs.mkdirSync(`${scratch.home}/.config/ckpt`, { recursive: true })
  fs.writeFileSync(`${scratch.home}/.config/ckpt/.checkpointrc`, 'watch:\n  idleStop: 1s\n')
  const info = infoOf(scratch)
  const hook = () => {
    const input = JSON.stringify({ session_id: 'c', hook_event_name: 'UserPromptSubmit', prompt: 'go' })
    scratch.runApart(['hook', '--shell', 'claude'], { input })
    return until(() => fs.existsSync(info))
  }
  await hook()
  const { pid } = JSON.parse(fs.readFileSync(info, 'utf8')) as { pid: number }
  await until(() => !alive(pid))
  await hook()
  scratch.ckpt('daemon', 'stop')
})

test('one that answers is no one that hangs, however busy who asks is', async () => {
  const scratch = new Scratch().init()
  const { pid } = startDaemon(scratch)
  const given = { env: realEnv(), worktreeDir: path.dirname(path.dirname(infoOf(scratch))) }
  const asked = daemonStatus(given.env, given.worktreeDir, { timeout: 15_000 })
  Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 2500) // longer than one is given to be reached
  expect(await asked).toMatchObject({ running: true, pid, watching: true })
})

test('a daemon that Bun runs watches nothing: each snapshot is a scan, which is said', () => {
  const scratch = new Scratch().init({ 'a.txt': 'one\n' })
  const as = path.join(scratch.base, 'as-bun.cjs')
  fs.writeFileSync(as, "Object.defineProperty(process, 'versions', { value: { ...process.versions, bun: '1.0.0' } })\n")
  const vars = { NODE_OPTIONS: `--require ${as}` }
  const started = scratch.runApart(['daemon', 'start', '--json'], { vars })
  onTestFinished(() => void scratch.run(['daemon', 'stop']))
  expect([started.code, JSON.parse(started.stdout).warnings]).toEqual([0, [expect.stringContaining('Bun runs it')]])
  expect(scratch.ckpt('status').daemon).toMatchObject({ running: true, watching: false })
  scratch.write({ 'a.txt': 'two\n' })
  expect(scratch.ckpt('snapshot').mode).toBe('scan')
  expect(scratch.ckpt('diff', '--uncommitted').files).toMatchObject([{ path: 'a.txt' }])
})

// Elsewhere there is no such place.
test.runIf(process.platform === 'linux')(
  'in a place where nothing can be made, which says so as if what is above were missing, no daemon and no hook goes on for ever',
  () => {
    const scratch = new Scratch().init()
    const inTime = (args: string[], vars: Record<string, string>, input = '') => {
      const options = { cwd: scratch.root, env: { ...scratch.vars, ...vars }, input, timeout: 30_000 } as const
      return spawnSync(process.execPath, [PROGRAM, ...args], options).status
    }
    onTestFinished(() => void scratch.run(['daemon', 'stop']))
    expect(inTime(['daemon', 'start'], { XDG_RUNTIME_DIR: '/proc' })).toBe(0)
    expect(scratch.ckpt('status').daemon).toMatchObject({ running: true, watching: true })
    const elsewhere = { XDG_STATE_HOME: '/proc', CKPT_STATE_DIR: '/proc/none' }
    expect(inTime(['hook', 'claude', '--no-daemon'], elsewhere, 'no payload')).toBe(0)
  },
)
