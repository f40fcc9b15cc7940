// Another directory in the place of the worktree, another store in the place of its own, or another program, while a daemon holds them.
import { execFileSync, spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import fs from 'node:fs'
import path from 'node:path'
import { expect, onTestFinished, test } from 'vitest'
import { VERSION } from '../../src/core/version.ts'
import { logFile } from '../../src/daemon/life.ts'
import { connectDaemon } from '../../src/library/client.ts'
import { alive, startDaemon } from '../support/daemon.ts'
import { until } from '../support/protocol.ts'
import { copyProgram, type Json, PACKAGE, PROGRAM, Scratch } from '../support/scratch.ts'
import { foreignLock } from '../support/store-surgery.ts'

const infoOf = (scratch: Scratch) => scratch.at('.git/ckpt/worktrees/@main/daemon/info.json')

const copy = (from: string, to: string) =>
  fs.cpSync(from, to, { recursive: true, preserveTimestamps: true, verbatimSymlinks: true })

/** A linked worktree with a daemon, where a turn has just begun. */
function linkedWorktree() {
  const scratch = new Scratch().init({ 'a.txt': 'one\n' })
  const cwd = path.join(scratch.base, 'above/linked')
  scratch.git('worktree', 'add', '-q', cwd)
  const ckpt = (...args: string[]): Json => JSON.parse(scratch.run([...args, '--json'], { cwd }).stdout)
  ckpt('mark', 'prompt', '--session', 's')
  const { pid } = ckpt('daemon', 'start') as { pid: number }
  onTestFinished(() => {
    if (alive(pid)) process.kill(pid, 'SIGKILL')
  })
  return { scratch, cwd, ckpt, pid }
}

test.each([
  [
    'removed and put back',
    ({ cwd }: { cwd: string }) => {
      copy(cwd, `${cwd}-saved`)
      fs.rmSync(cwd, { recursive: true })
      copy(`${cwd}-saved`, cwd)
    },
  ],
  [
    'below a directory that was renamed',
    ({ cwd }: { cwd: string }) => {
      const above = path.dirname(cwd)
      fs.renameSync(above, `${above}-before`)
      copy(`${above}-before`, above)
    },
  ],
] as const)('promise 13: a worktree %s: what is recorded is what is there', async (_, replace) => {
  const { cwd, ckpt, pid } = linkedWorktree()
  replace({ cwd })
  fs.writeFileSync(path.join(cwd, 'a.txt'), 'two\n')
  fs.writeFileSync(path.join(cwd, 'new.txt'), 'new\n')
  ckpt('mark', 'stop', '--session', 's')
  const { turns } = ckpt('list', '--session', 's')
  expect(turns[0].stat.files).toBe(2)
  expect(ckpt('undo').turns).toEqual([1])
  expect(fs.readFileSync(path.join(cwd, 'a.txt'), 'utf8')).toBe('one\n')
  expect(fs.existsSync(path.join(cwd, 'new.txt'))).toBe(false)
  await until(() => !alive(pid))
})

test('a client whose worktree was removed and added again is refused, and nothing is recorded in the old one', async () => {
  const { scratch, cwd } = linkedWorktree()
  const client = await connectDaemon(cwd, { vars: scratch.vars })
  scratch.git('worktree', 'remove', '--force', cwd)
  scratch.git('worktree', 'add', '-q', cwd, 'linked')
  const refused = { code: 'INTERNAL', message: expect.stringContaining('not where it was') }
  await expect(client.mark({ event: 'prompt', session: 'other' })).rejects.toMatchObject(refused)
  expect(scratch.ckpt('list', '--all-worktrees', '--session', 's').turns).toHaveLength(1)
  client.close()
})

test('a daemon whose store was deleted leaves the next one alone, and ends in order', async () => {
  const scratch = new Scratch().init({ 'a.txt': 'one\n' })
  const first = spawn(process.execPath, [PROGRAM, 'watch', '--background'], {
    cwd: scratch.root,
    env: scratch.vars,
    stdio: 'ignore',
  })
  await until(() => fs.existsSync(infoOf(scratch)))
  fs.rmSync(scratch.at('.git/ckpt'), { recursive: true })
  const { pid } = startDaemon(scratch)
  expect(pid).not.toBe(first.pid)
  expect(await once(first, 'exit')).toEqual([0, null]) // by itself, at its next look
  expect(scratch.ckpt('daemon', 'status')).toMatchObject({ running: true, pid, watching: true })
  scratch.turn('work', () => scratch.write({ 'a.txt': 'two\n' }))
  expect(scratch.ckpt('undo').turns).toEqual([1])
  expect(fs.existsSync(scratch.at('.git/ckpt/worktrees/@main/daemon/hooks/ready'))).toBe(true)
})

test('a repository that is moved while its daemon runs: that one says so and ends, another is started by hand, or by a hook', async () => {
  const scratch = new Scratch().init({ 'a.txt': 'one\n' })
  const moved = (from: string, name: string) => {
    const to = path.join(scratch.base, name)
    fs.renameSync(from, to)
    return to
  }
  const ckpt = (cwd: string, ...args: string[]): Json => JSON.parse(scratch.run([...args, '--json'], { cwd }).stdout)
  const { pid } = startDaemon(scratch)
  const once = moved(scratch.root, 'once')
  expect(scratch.run(['daemon', 'status'], { cwd: once }).stdout).toContain('not where it was: this daemon ends')
  expect(ckpt(once, 'daemon', 'start')).toMatchObject({ started: true })
  expect(alive(pid)).toBe(false)
  const payload = JSON.stringify({ session_id: 's', hook_event_name: 'UserPromptSubmit', prompt: 'go' })
  const hook = (cwd: string) => scratch.runApart(['hook', '--shell', 'claude'], { cwd, input: payload })
  const answers = async (cwd: string) => {
    await until(() => ckpt(cwd, 'daemon', 'status').watching)
    return ckpt(cwd, 'daemon', 'status').pid
  }
  ckpt(once, 'daemon', 'stop')
  hook(once)
  const second = await answers(once)
  const twice = moved(once, 'twice')
  await until(() => !alive(second))
  hook(twice)
  expect(await answers(twice)).not.toBe(second)
  ckpt(twice, 'daemon', 'stop')
})

test('after store.location names another place the daemon records nothing in the old one, and ends', async () => {
  const scratch = new Scratch().init({ 'a.txt': 'one\n' })
  const { pid } = startDaemon(scratch)
  scratch.turn('one', () => scratch.write({ 'a.txt': 'two\n' }))
  const settings = `${scratch.home}/.config/ckpt`
  fs.mkdirSync(settings, { recursive: true })
  const write = (location: string) =>
    fs.writeFileSync(`${settings}/.checkpointrc`, JSON.stringify({ store: { location }, watch: { start: 'never' } }))
  // Another client's own settings are nobody else's.
  const elsewhere = { XDG_CONFIG_HOME: `${scratch.base}/other` }
  fs.mkdirSync(`${elsewhere.XDG_CONFIG_HOME}/ckpt`, { recursive: true })
  fs.writeFileSync(
    `${elsewhere.XDG_CONFIG_HOME}/ckpt/.checkpointrc`,
    JSON.stringify({ store: { location: `${scratch.base}/theirs` } }),
  )
  expect(scratch.runApart(['mark', 'prompt', '--session', 'theirs', '--json'], { vars: elsewhere }).code).toBe(0)
  scratch.turn('two', () => scratch.write({ 'a.txt': 'three\n' }))
  expect(scratch.ckpt('list').turns).toHaveLength(2)
  expect(alive(pid)).toBe(true)
  write(`${scratch.base}/stores`)
  const mark = (...args: string[]) => scratch.runApart(['mark', ...args, '--session', 'other'])
  expect(mark('prompt', '--text', 'three').code).toBe(0)
  scratch.write({ 'a.txt': 'four\n' })
  expect(mark('stop').code).toBe(0)
  const { session, turns } = scratch.ckpt('list')
  expect([session, turns.map(({ n, stat }: Json) => [n, stat.files])]).toEqual(['other', [[1, 1]]])
  await until(() => !alive(pid))
  write('git')
  expect(scratch.ckpt('list', '--sessions').sessions.map(({ id }: Json) => id)).toEqual(['s'])
})

test('a copy of a repository, made while its daemon runs, has none, and one of its own when told', async () => {
  const scratch = new Scratch().init({ 'a.txt': 'one\n' })
  const { pid } = startDaemon(scratch)
  const cwd = path.join(scratch.base, 'copied')
  execFileSync('cp', ['-a', scratch.root, cwd])
  const ckpt = (...args: string[]): Json => JSON.parse(scratch.run([...args, '--json'], { cwd }).stdout)
  expect(ckpt('daemon', 'status')).toMatchObject({ running: false })
  expect(ckpt('status').daemon).toMatchObject({ running: false })
  expect(ckpt('daemon', 'stop')).toMatchObject({ stopped: false })
  await expect(connectDaemon(cwd, { vars: scratch.vars })).rejects.toThrow()
  const own = ckpt('daemon', 'start') as { pid: number }
  onTestFinished(() => void ckpt('daemon', 'stop'))
  expect(own.pid).not.toBe(pid)
  const client = await connectDaemon(cwd, { vars: scratch.vars })
  await client.mark({ event: 'prompt', session: 's' })
  fs.writeFileSync(path.join(cwd, 'a.txt'), 'two\n')
  await client.mark({ event: 'stop', session: 's' })
  client.close()
  expect(ckpt('undo').turns).toEqual([1])
  expect([fs.readFileSync(path.join(cwd, 'a.txt'), 'utf8'), scratch.read('a.txt')]).toEqual(['one\n', 'one\n'])
  expect(scratch.ckpt('list', '--all-sessions').turns).toEqual([])
  expect([alive(pid), alive(own.pid)]).toEqual([true, true])
})

test('promise 9: a daemon that cannot be seen from here is not taken for a copied one', () => {
  const scratch = new Scratch().init({ 'a.txt': 'one\n' })
  const { pid } = startDaemon(scratch)
  const info = fs.readFileSync(infoOf(scratch), 'utf8')
  scratch.ckpt('daemon', 'stop')
  // As seen from a container, where the same directory may have other numbers.
  fs.writeFileSync(infoOf(scratch), info.replace(/"at":"[^"]*"/, '"at":"1 2"'))
  const lock = foreignLock(scratch, { pid, command: 'daemon' }, path.join(path.dirname(infoOf(scratch)), 'lock'))
  expect(scratch.tryCkpt('daemon', 'start').code).not.toBe(0)
  expect([fs.existsSync(lock), fs.existsSync(infoOf(scratch))]).toEqual([true, true])
})

/** The package as it would be installed, where a test may upgrade it. */
function installed(scratch: Scratch) {
  const home = path.join(scratch.base, 'installed')
  copyProgram(home)
  const PATH = `${path.join(scratch.base, 'bin')}:${scratch.vars.PATH}`
  fs.mkdirSync(path.join(scratch.base, 'bin'))
  fs.symlinkSync(path.join(home, 'bin/ckpt.js'), path.join(scratch.base, 'bin/ckpt'))
  fs.symlinkSync(path.join(home, 'bin/ckpt-hook'), path.join(scratch.base, 'bin/ckpt-hook'))
  return {
    home,
    run: (program: string, ...args: string[]): Json => {
      const [input = '', rest] = program === 'ckpt-hook' ? [args.pop(), args] : ['', [...args, '--json']]
      const options = { cwd: scratch.root, env: { ...scratch.vars, PATH }, input, encoding: 'utf8' } as const
      const { status, stdout } = spawnSync(program, rest, options)
      expect([program, args, status]).toEqual([program, args, 0])
      return program === 'ckpt-hook' ? {} : JSON.parse(stdout)
    },
    /** The first one that is found. */
    node: path.join(scratch.base, 'bin/node'),
    upgrade: () => {
      fs.renameSync(path.join(home, 'dist'), path.join(home, 'before'))
      copy(path.join(home, 'before'), path.join(home, 'dist'))
      fs.rmSync(path.join(home, 'before'), { recursive: true })
    },
  }
}

test.each(['program was upgraded', 'Node was removed'])(
  'a daemon whose %s hands hooks back and ends, and the turn is whole',
  async (what) => {
    const scratch = new Scratch().init({ 'a.txt': 'one\n' })
    const { run, upgrade, node } = installed(scratch)
    if (what === 'Node was removed') fs.copyFileSync(process.execPath, node)
    const { pid } = run('ckpt', 'daemon', 'start') as { pid: number }
    onTestFinished(() => void run('ckpt', 'daemon', 'stop'))
    const hook = (hook_event_name: string, more: object = {}) =>
      run('ckpt-hook', 'claude', JSON.stringify({ session_id: 's', cwd: scratch.root, hook_event_name, ...more }))
    hook('UserPromptSubmit', { prompt: 'work', prompt_id: 'p' })
    if (what === 'Node was removed') fs.unlinkSync(node)
    else upgrade()
    scratch.write({ 'a.txt': 'two\n', '.checkpointrc': '{"snapshot":{"deadline":"19s"}}' })
    hook('PostToolUse', { tool_name: 'Bash', tool_use_id: 't', tool_input: {} })
    hook('Stop')
    await until(() => !alive(pid))
    const { turns } = run('ckpt', 'list', '--session', 's')
    expect(turns).toMatchObject([{ status: 'completed', stat: { files: 2 } }])
    expect(turns[0].steps).toHaveLength(1)
  },
)

/** Files of the program that a daemon loads when it needs them, or when it is quiet. */
function lose({ home }: { home: string }, ...names: string[]): void {
  const parts = path.join(home, 'dist/cli')
  for (const file of fs.readdirSync(parts).filter((one) => names.some((name) => one.startsWith(`${name}-`))))
    fs.rmSync(path.join(parts, file))
}

test('a daemon whose program lost what it has not loaded yet hands that over, and ends', async () => {
  const scratch = new Scratch().init({ 'a.txt': 'one\n' })
  const there = installed(scratch)
  const start = () => there.run('ckpt', 'daemon', 'start').pid as number
  onTestFinished(() => void scratch.run(['daemon', 'stop']))

  const first = start()
  scratch.turn('work', () => scratch.write({ 'a.txt': 'two\n' }))
  lose(there, 'undo')
  expect(scratch.ckpt('undo').turns).toEqual([1])
  await until(() => !alive(first))

  const second = start()
  lose(there, 'gemini')
  const payload = { session_id: 'g', cwd: scratch.root, hook_event_name: 'BeforeAgent', prompt: 'more' }
  const hook = { cwd: scratch.root, env: scratch.vars, input: JSON.stringify(payload) }
  expect(spawnSync(path.join(PACKAGE, 'bin/ckpt-hook'), ['gemini'], hook).status).toBe(0)
  await until(() => !alive(second))
  expect(scratch.ckpt('list', '--session', 'g').turns).toMatchObject([{ prompt: 'more', status: 'running' }])

  const notified = start()
  lose(there, 'codex')
  scratch.run([
    'hook',
    'codex-notify',
    JSON.stringify({ type: 'agent-turn-complete', 'turn-id': 't', cwd: scratch.root }),
  ])
  await until(() => !alive(notified))

  const third = start()
  lose(there, 'methods')
  const client = await connectDaemon(scratch.root, { vars: scratch.vars })
  await expect(client.sessions.getSessionInfo('g')).rejects.toMatchObject({
    message: expect.stringContaining('not where it was'),
  })
  client.close()
  await until(() => !alive(third))
})

test('a daemon that was left in quiet has all of its program loaded', async () => {
  const scratch = new Scratch().init({ 'a.txt': 'one\n' })
  const there = installed(scratch)
  const { pid } = there.run('ckpt', 'daemon', 'start') as { pid: number }
  onTestFinished(() => void scratch.run(['daemon', 'stop']))
  scratch.turn('work', () => scratch.write({ 'a.txt': 'two\n' }))
  const log = logFile(scratch.at('.git/ckpt/worktrees/@main'))
  await until(() => fs.readFileSync(log, 'utf8').includes('all is loaded'))
  lose(there, 'undo', 'redo', 'methods', 'gemini', 'parse')
  const { calls } = scratch.ckpt('daemon', 'status').state
  scratch.ckpt('undo')
  scratch.ckpt('redo')
  const client = await connectDaemon(scratch.root, { vars: scratch.vars })
  expect(await client.sessions.getSessionInfo('s')).toMatchObject({ boundary: null })
  client.close()
  expect(scratch.ckpt('daemon', 'status').state.calls).toBeGreaterThan(calls + 3)
  expect([alive(pid), fs.readFileSync(log, 'utf8')]).toEqual([true, expect.not.stringContaining('Cannot find')])
})

test('promise 14: a daemon of another version is asked nothing, is named, and makes room for one of this', () => {
  const scratch = new Scratch().init({ 'a.txt': 'one\n' })
  const { home, run } = installed(scratch)
  const parts = path.join(home, 'dist/cli')
  for (const name of fs.readdirSync(parts)) {
    const text = fs.readFileSync(path.join(parts, name), 'utf8')
    fs.writeFileSync(path.join(parts, name), text.replaceAll(`"${VERSION}"`, '"0.0.9"'))
  }
  const { pid } = run('ckpt', 'daemon', 'start') as { pid: number }
  onTestFinished(() => void scratch.run(['daemon', 'stop']))
  const { calls } = scratch.ckpt('daemon', 'status').state
  scratch.turn('work', () => scratch.write({ 'a.txt': 'two\n' }))
  scratch.ckpt('undo')
  const { stdout } = scratch.run(['daemon', 'status'])
  expect(stdout).toContain(`It is of version 0.0.9, and this is ${VERSION}: commands do their own work.`)
  expect(scratch.ckpt('daemon', 'status').state.calls).toBe(calls + 2)
  expect(scratch.ckpt('daemon', 'start')).toMatchObject({ started: true })
  expect(alive(pid)).toBe(false)
})
