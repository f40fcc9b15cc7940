// `ckpt-hook`: with the daemon up no Node where the agent waits; and no marker lost or doubled, whatever becomes of the daemon. `ckpt hook` goes through the same door.
import { spawn, spawnSync } from 'node:child_process'
import fs from 'node:fs'
import path from 'node:path'
import { describe, expect, onTestFinished, test } from 'vitest'
import { hookLog, storeOf } from '../support/agents.ts'
import { startDaemon } from '../support/daemon.ts'
import { until } from '../support/protocol.ts'
import { type Json, PROGRAM, type Ran, Scratch } from '../support/scratch.ts'
import { mountSmall, roomIn, testWithMounts } from '../support/small-disk.ts'
import { foreignLock } from '../support/store-surgery.ts'

const CLIENT = path.resolve(import.meta.dirname, '../../bin/ckpt-hook')
const SILENT = { code: 0, stdout: '', stderr: '' }
const which = (name: string) =>
  (process.env.PATH ?? '')
    .split(':')
    .map((at) => path.join(at, name))
    .find((file) => fs.existsSync(file))

/** A directory with the programs that the client may use, and no Node. */
function withoutNode(scratch: Scratch): string {
  const bin = path.join(scratch.base, 'bin')
  fs.mkdirSync(bin, { recursive: true })
  for (const name of ['cat', 'date', 'mkfifo', 'mv', 'printf', 'rm', 'sleep', 'sh']) {
    const file = which(name)!
    if (!fs.existsSync(path.join(bin, name))) fs.symlinkSync(fs.realpathSync(file), path.join(bin, name))
  }
  // Beside it there is no ckpt either.
  if (!fs.existsSync(path.join(bin, 'ckpt-hook'))) fs.copyFileSync(CLIENT, path.join(bin, 'ckpt-hook'))
  return bin
}

interface Options {
  client?: string
  shell?: string[]
  vars?: Record<string, string>
  cwd?: string
  agent?: string[]
  /** Standard input stays open when the payload is through. */
  open?: boolean
}

function later(scratch: Scratch, payload: unknown, options: Options = {}): Promise<Ran> {
  const { client = CLIENT, shell = [], vars = {}, cwd = scratch.root, agent = ['claude'], open } = options
  const [command, ...args] = [...shell, client, ...agent]
  return new Promise((resolve, reject) => {
    const child = spawn(command!, args, { cwd, env: { ...scratch.vars, ...vars } })
    let [stdout, stderr] = ['', '']
    child.stdout.on('data', (chunk) => {
      stdout += chunk
    })
    child.stderr.on('data', (chunk) => {
      stderr += chunk
    })
    child.on('error', reject)
    child.on('close', (code) => resolve({ code: code ?? 128, stdout, stderr }))
    child.stdin.on('error', () => undefined)
    const text = typeof payload === 'string' ? payload : JSON.stringify(payload)
    if (open) child.stdin.write(text)
    else child.stdin.end(text)
  })
}

const says = (scratch: Scratch, hook_event_name: string, more: Json = {}): Json => ({
  session_id: 's',
  cwd: scratch.root,
  hook_event_name,
  prompt_id: 'p1',
  ...more,
})
const call = (scratch: Scratch, id: string): Json =>
  says(scratch, 'PreToolUse', { tool_name: 'Bash', tool_use_id: id, tool_input: { command: 'true' } })

/** Call ids in the session's checkpoints, each as often as it is there. */
function calls(scratch: Scratch): string[] {
  const format = '--format=%(trailers:key=Ckpt-Call-Id,valueonly)'
  return scratch
    .git('--git-dir=.git/ckpt/store.git', 'log', format, '--glob=refs/ckpt/@main/s/*')
    .split('\n')
    .filter(Boolean)
    .sort()
}

const door = (scratch: Scratch) => `${storeOf(scratch)}/daemon/hooks`

/** What lies in the place of hooks and is no part of it. */
const left = (scratch: Scratch) => fs.readdirSync(door(scratch)).filter((name) => !/^(door|ready|free)$/.test(name))

/** One in the background would outlive the test. */
function startsNoDaemon(scratch: Scratch): void {
  fs.mkdirSync(`${scratch.home}/.config/ckpt`, { recursive: true })
  fs.writeFileSync(`${scratch.home}/.config/ckpt/.checkpointrc`, 'watch:\n  start: never\n')
}

function prompted({ small }: { small?: string } = {}): { scratch: Scratch; pid: number } {
  const scratch = new Scratch()
  if (small !== undefined) mountSmall(scratch.root, small)
  scratch.init()
  startsNoDaemon(scratch)
  const { pid } = startDaemon(scratch)
  expect(
    scratch.runApart(['hook', 'claude'], {
      input: JSON.stringify(says(scratch, 'UserPromptSubmit', { prompt: 'go' })),
    }),
  ).toEqual(SILENT)
  return { scratch, pid }
}

const SHELLS = [
  ['sh', []],
  ['dash', ['dash']],
  ['bash', ['bash', '--posix']],
  ['busybox', ['busybox', 'sh']],
  ['ksh', ['ksh']],
  ['mksh', ['mksh']],
  ['posh', ['posh']],
  ['zsh', ['zsh', '--emulate', 'sh']],
] as const

test.each(SHELLS.filter(([name]) => which(name)))('a whole turn without Node, by %s', async (_, shell) => {
  const scratch = new Scratch().init()
  startDaemon(scratch)
  const bin = withoutNode(scratch)
  const line = shell.length > 0 ? [which(shell[0]!)!, ...shell.slice(1)] : []
  const say = async (payload: Json) =>
    expect(await later(scratch, payload, { client: `${bin}/ckpt-hook`, shell: line, vars: { PATH: bin } })).toEqual(
      SILENT,
    )
  await say(says(scratch, 'UserPromptSubmit', { prompt: "it's ünï\u0000code \\ %s\n\n" }))
  await say(call(scratch, 't1'))
  scratch.write({ 'b.txt': 'two\n' })
  await say({ ...call(scratch, 't1'), hook_event_name: 'PostToolUse' })
  await say(says(scratch, 'Stop'))
  expect(scratch.ckpt('show', '1').turn).toMatchObject({
    status: 'completed',
    text: "it's ünï\u0000code \\ %s\n\n",
    steps: [{ tool: 'Bash', paths: ['b.txt'] }],
  })
  expect(left(scratch)).toEqual([])
  expect(hookLog(scratch)).toEqual([])
})

test.each([
  ['an hour ahead of', 3600_000],
  ['an hour behind', -3600_000],
])(
  'where our clock is %s that of the file system a step is one, and nothing that waits is taken from who waits',
  async (_, by) => {
    const scratch = new Scratch().init()
    const other = `${scratch.home}/clock.cjs`
    fs.writeFileSync(other, `const now = Date.now; Date.now = () => now() + ${by}\n`)
    const { pid } = JSON.parse(
      scratch.run(['daemon', 'start', '--json'], { vars: { NODE_OPTIONS: `-r ${other}` } }).stdout,
    )
    onTestFinished(() => {
      scratch.run(['daemon', 'stop'])
    })
    const all = async (...payloads: Json[]) =>
      expect(await Promise.all(payloads.map((one) => later(scratch, one)))).toEqual(payloads.map(() => SILENT))
    await all(says(scratch, 'UserPromptSubmit', { prompt: 'go' }))
    for (const id of ['t1', 't2', 't3']) {
      await all(call(scratch, id))
      scratch.write({ [id]: 'new\n' })
      process.kill(pid, 'SIGSTOP') // so that both are handed over before one is carried out
      const both = all({ ...call(scratch, id), hook_event_name: 'PostToolUse' }, call(scratch, `${id}-beside`))
      await until(() => left(scratch).filter((name) => name.endsWith('.payload')).length === 2)
      process.kill(pid, 'SIGCONT')
      await both
    }
    await all(says(scratch, 'Stop'))
    const { turn } = scratch.ckpt('show', '1')
    const steps = turn.steps.flatMap((step: Json) => step.paths)
    expect([turn.status, steps]).toEqual(['completed', ['t1', 't2', 't3']])
    expect([left(scratch), hookLog(scratch)]).toEqual([[], []])
  },
)

const SEES_GROUPS = fs.existsSync('/proc/self/stat')

/** Names and states of a group's processes, those that nobody waited for included (proc(5)). */
function ofGroup(group: number): string[] {
  return fs.readdirSync('/proc').flatMap((pid) => {
    if (!/^\d+$/.test(pid)) return []
    try {
      const [, name, state, , its] = /\((.*)\) (\S) (\S+) (\S+)/s.exec(fs.readFileSync(`/proc/${pid}/stat`, 'latin1'))!
      return Number(its) === group ? [`${name} ${state}`] : []
    } catch {
      return [] // it has just ended
    }
  })
}

/** A hook in a group of its own. */
function inGroup(scratch: Scratch, [command, ...args]: string[], id: string) {
  const stdio: ['pipe', 'ignore', 'ignore'] = ['pipe', 'ignore', 'ignore']
  const child = spawn(command!, [...args, 'claude'], { cwd: scratch.root, env: scratch.vars, detached: true, stdio })
  child.stdin.end(JSON.stringify(call(scratch, id)))
  return child
}

// A container's first process may be the agent itself, which waits for nobody's children but its own: what a hook leaves
// behind would be there as long as the container is, one for each tool call.
test.skipIf(!SEES_GROUPS).each(SHELLS.filter(([name]) => which(name)))(
  'it leaves no process behind, by %s',
  async (_, shell) => {
    const { scratch } = prompted()
    const line = shell.length > 0 ? [which(shell[0]!)!, ...shell.slice(1), CLIENT] : [CLIENT]
    for (const id of ['t1', 't2', 't3']) {
      const child = inGroup(scratch, line, id)
      await new Promise((resolve) => child.on('close', resolve))
      expect(ofGroup(child.pid!)).toEqual([])
    }
    expect(calls(scratch)).toEqual(['t1', 't2', 't3'])
  },
)

test('from a subdirectory, a linked worktree, and a directory outside with the project named', async () => {
  const { scratch } = prompted()
  const bin = withoutNode(scratch)
  const plain = { client: `${bin}/ckpt-hook`, vars: { PATH: bin } }
  fs.mkdirSync(scratch.at('a b/c'), { recursive: true })
  expect(await later(scratch, call(scratch, 't1'), { ...plain, cwd: scratch.at('a b/c') })).toEqual(SILENT)
  const outside = { ...plain, cwd: scratch.home, vars: { PATH: bin, CLAUDE_PROJECT_DIR: scratch.root } }
  expect(await later(scratch, call(scratch, 't2'), outside)).toEqual(SILENT)
  expect(calls(scratch)).toEqual(['t1', 't2'])
  const linked = `${scratch.base}/linked`
  scratch.git('worktree', 'add', '-q', linked)
  scratch.ckpt('daemon', 'start', '--cwd', linked)
  onTestFinished(() => {
    scratch.run(['daemon', 'stop', '--cwd', linked])
  })
  const there = { ...plain, cwd: linked }
  expect(
    await later(scratch, { ...says(scratch, 'UserPromptSubmit', { prompt: 'there' }), cwd: linked }, there),
  ).toEqual(SILENT)
  expect(scratch.ckpt('list', '--cwd', linked).turns).toMatchObject([{ prompt: 'there' }])
})

/** Settings of the user that put stores into a directory. */
function apart(scratch: Scratch): Scratch {
  const location = `${scratch.base}/stores`
  scratch.write({ '../home/.config/ckpt/.checkpointrc': JSON.stringify({ store: { location } }) })
  return scratch
}

/** A worktree whose store lies apart from it; gives its root. */
const APART: [string, (scratch: Scratch) => string][] = [
  ['a plain directory', (scratch) => scratch.root],
  ['a plain directory with store.location', (scratch) => apart(scratch).root],
  ['a repository with store.location', (scratch) => apart(scratch).init().root],
  [
    'a linked worktree with store.location',
    (scratch) => {
      apart(scratch).init().git('worktree', 'add', '-q', '../linked')
      return `${scratch.base}/linked`
    },
  ],
  [
    'a plain directory that became a repository',
    (scratch) => {
      scratch.ckpt('init')
      return scratch.init().root
    },
  ],
]

test.each(APART)(
  'a whole turn without Node in %s: from its top, from below, through a link, and by `ckpt hook`',
  async (_, make) => {
    const scratch = new Scratch()
    const root = make(scratch)
    const ckpt = (...args: string[]): Json => scratch.ckpt(...args, '--cwd', root)
    fs.mkdirSync(`${root}/a b/c`, { recursive: true })
    const link = `${scratch.base}/link`
    fs.symlinkSync(`${root}/a b`, link)
    ckpt('init')
    ckpt('daemon', 'start')
    onTestFinished(() => {
      ckpt('daemon', 'stop')
    })
    const calls = () => ckpt('daemon', 'status').state.calls
    const bin = withoutNode(scratch)
    const say = async (payload: Json, cwd: string) => {
      const vars = { PATH: bin, PWD: cwd }
      expect(await later(scratch, { ...payload, cwd }, { client: `${bin}/ckpt-hook`, cwd, vars })).toEqual(SILENT)
    }
    await say(says(scratch, 'UserPromptSubmit', { prompt: 'go' }), root)
    await say(call(scratch, 't1'), `${root}/a b/c`)
    fs.writeFileSync(`${root}/b.txt`, 'two\n')
    await say({ ...call(scratch, 't1'), hook_event_name: 'PostToolUse' }, `${link}/c`)
    const before = calls()
    const payload = JSON.stringify({ ...says(scratch, 'Stop'), cwd: root })
    expect(scratch.runApart(['hook', 'claude'], { cwd: root, input: payload })).toEqual(SILENT)
    expect(calls()).toBe(before + 2) // and the question itself
    const { turn } = ckpt('show', '1')
    expect([turn.status, turn.steps]).toMatchObject(['completed', [{ paths: ['b.txt'] }]])
    expect(ckpt('status').warnings).toEqual([])
  },
)

test('without the daemon Node does it, and starts one for the next time', async () => {
  const scratch = new Scratch().init()
  onTestFinished(() => {
    scratch.run(['daemon', 'stop'])
  })
  expect(await later(scratch, says(scratch, 'UserPromptSubmit', { prompt: 'go' }))).toEqual(SILENT)
  for (let i = 0; i < 200 && !fs.existsSync(`${door(scratch)}/ready`); i++)
    await new Promise((resolve) => setTimeout(resolve, 100))
  const bin = withoutNode(scratch)
  expect(await later(scratch, call(scratch, 't1'), { client: `${bin}/ckpt-hook`, vars: { PATH: bin } })).toEqual(SILENT)
  expect(calls(scratch)).toEqual(['t1'])
  scratch.ckpt('daemon', 'stop')
  expect(fs.existsSync(`${door(scratch)}/ready`)).toBe(false)
  expect(await later(scratch, call(scratch, 't2'), { vars: { CKPT_DISABLED: '1' } })).toEqual(SILENT)
  expect(calls(scratch)).toEqual(['t1'])
})

test('without ckpt, Node and daemon it is nothing: no word, exit 0', async () => {
  const scratch = new Scratch().init()
  const bin = withoutNode(scratch)
  expect(await later(scratch, call(scratch, 't1'), { client: `${bin}/ckpt-hook`, vars: { PATH: bin } })).toEqual(SILENT)
})

test('where Node cannot start it is nothing; options for other programs do not keep it from starting', async () => {
  const scratch = new Scratch().init()
  fs.mkdirSync(`${scratch.home}/.config/ckpt`, { recursive: true })
  fs.writeFileSync(`${scratch.home}/.config/ckpt/.checkpointrc`, 'watch:\n  start: never\n')
  const bin = withoutNode(scratch)
  const prompt = says(scratch, 'UserPromptSubmit', { prompt: 'go' })
  expect(await later(scratch, prompt, { vars: { PATH: bin } })).toEqual(SILENT)
  expect(await later(scratch, prompt, { vars: { NODE_OPTIONS: '--require /gone/loader.js' } })).toEqual(SILENT)
  expect(scratch.ckpt('list').turns).toHaveLength(1)
})

test('from a directory that is gone, and without cat, the marker is there', async () => {
  const { scratch } = prompted()
  const gone = scratch.at('gone')
  fs.mkdirSync(gone)
  const script = `cd ${gone} && rmdir ${gone} && exec ${CLIENT} claude`
  const input = JSON.stringify({ ...call(scratch, 't1'), cwd: gone })
  const ran = spawnSync('sh', ['-c', script], { cwd: scratch.root, env: scratch.vars, input, encoding: 'utf8' })
  expect([ran.status, ran.stdout]).toEqual([0, ''])
  const node = path.join(scratch.base, 'node-only')
  fs.mkdirSync(node)
  for (const name of ['node', 'env', 'git']) fs.symlinkSync(which(name)!, path.join(node, name))
  expect(await later(scratch, call(scratch, 't2'), { vars: { PATH: node } })).toEqual(SILENT)
  expect(calls(scratch)).toEqual(['t1', 't2'])
})

/** Programs in a directory of their own; `node` behaves as one that is too old. */
function oldNode(scratch: Scratch): string {
  const bin = path.join(scratch.base, 'old-node')
  fs.mkdirSync(bin)
  for (const name of ['cat', 'date', 'env', 'git', 'mkdir', 'mkfifo', 'rm', 'sh', 'sleep'])
    fs.symlinkSync(which(name)!, path.join(bin, name))
  const lacks = path.join(bin, 'lacks.cjs')
  fs.writeFileSync(lacks, 'delete process.getBuiltinModule\n')
  const script = `#!/bin/sh\nexec '${process.execPath}' --require '${lacks}' "$@"\n`
  fs.writeFileSync(path.join(bin, 'node'), script, { mode: 0o755 })
  return bin
}

test.each(['an older Node', 'no Node'])(
  'where PATH has %s, the one is taken that ckpt was installed with',
  async (which) => {
    const scratch = new Scratch().init()
    startsNoDaemon(scratch)
    const bin = oldNode(scratch)
    if (which === 'no Node') fs.rmSync(path.join(bin, 'node'))
    const own = path.dirname(path.dirname(PROGRAM))
    const prefix = path.join(scratch.base, 'pre fix')
    const home = path.join(prefix, 'lib/node_modules/ckpt')
    fs.mkdirSync(home, { recursive: true })
    fs.mkdirSync(path.join(prefix, 'bin'))
    fs.cpSync(path.join(own, 'bin'), path.join(home, 'bin'), { recursive: true })
    for (const name of ['dist', 'node_modules', 'package.json'])
      fs.symlinkSync(path.join(own, name), path.join(home, name))
    const there = (name: string, target: string) => fs.symlinkSync(target, path.join(prefix, 'bin', name))
    there('ckpt-hook', '../lib/node_modules/ckpt/bin/ckpt-hook')
    there('ckpt', '../lib/node_modules/ckpt/bin/ckpt.js')
    there('node', process.execPath)
    const say = (client: string, event: string) =>
      later(scratch, says(scratch, event, { prompt: 'go', prompt_id: 'p1' }), { client, vars: { PATH: bin } })
    expect(await say(path.join(prefix, 'bin/ckpt-hook'), 'UserPromptSubmit')).toEqual(SILENT)
    scratch.write({ 'a.txt': 'changed\n' })
    expect(await say(path.join(home, 'bin/ckpt-hook'), 'Stop')).toEqual(SILENT)
    const [turn] = scratch.ckpt('list').turns
    expect(turn).toMatchObject({ status: 'completed', stat: { files: 1 } })
  },
)

/** A client in a package that no Node lies beside. */
function clientWithoutNode(scratch: Scratch): string {
  const client = path.join(scratch.base, 'modules/ckpt/bin/ckpt-hook')
  fs.cpSync(path.dirname(PROGRAM), path.dirname(client), { recursive: true })
  for (const name of ['dist', 'node_modules', 'package.json'])
    fs.symlinkSync(path.join(path.dirname(path.dirname(PROGRAM)), name), path.join(client, '../..', name))
  return client
}

const stateOf = (scratch: Scratch) => path.join(scratch.vars.XDG_STATE_HOME ?? `${scratch.home}/.local/state`, 'ckpt')

test('without a Node in PATH, or beside it, the one is taken that an install noted; and without that it is said', async () => {
  const scratch = new Scratch().init()
  startsNoDaemon(scratch)
  const [bin, client] = [oldNode(scratch), clientWithoutNode(scratch)]
  const say = (event: string, vars: Record<string, string> = {}) =>
    later(scratch, says(scratch, event, { prompt: 'go', prompt_id: 'p1' }), { client, vars: { PATH: bin, ...vars } })
  scratch.ckpt('agent', 'install', 'claude')
  fs.rmSync(path.join(stateOf(scratch), 'node'))
  expect(await say('UserPromptSubmit', { CKPT_DISABLED: '1' })).toEqual(SILENT)
  expect(scratch.ckpt('status').lastHookError).toBe(null)
  expect(await say('UserPromptSubmit')).toEqual(SILENT)
  expect(scratch.ckpt('list').turns).toEqual([])
  const { lastHookError } = scratch.ckpt('status')
  expect(lastHookError).toMatchObject({ where: 'ckpt-hook', cwd: scratch.root })
  expect(lastHookError.message).toMatch(/not recorded: it has no Node in PATH that ckpt runs on. ckpt agent install /)
  scratch.ckpt('agent', 'install', 'claude')
  expect(await say('UserPromptSubmit')).toEqual(SILENT)
  // A Node that cannot be executed is none, either.
  fs.rmSync(path.join(bin, 'node'))
  fs.mkdirSync(path.join(bin, 'node'))
  expect(await say('Stop')).toEqual(SILENT)
  expect(scratch.ckpt('list').turns).toMatchObject([{ status: 'completed' }])
})

test('what lies in the place of a noted Node, or of what is said, and is no file holds nobody up', async () => {
  const scratch = new Scratch().init()
  startsNoDaemon(scratch)
  const [bin, client, state] = [oldNode(scratch), clientWithoutNode(scratch), stateOf(scratch)]
  fs.mkdirSync(state, { recursive: true })
  for (const make of ['mkfifo', 'mkdir']) {
    for (const name of ['node', 'hook.shell']) {
      fs.rmSync(path.join(state, name), { recursive: true, force: true })
      spawnSync(make, [path.join(state, name)])
    }
    const options = { client, vars: { PATH: bin } }
    expect(await later(scratch, says(scratch, 'UserPromptSubmit', { prompt: 'go' }), options)).toEqual(SILENT)
    expect(scratch.ckpt('status').lastHookError).toBe(null)
    expect(scratch.ckpt('agent', 'install', 'claude').agents).toHaveLength(1)
  }
})

test('an older Node is told by the program, and fails no hook', () => {
  const scratch = new Scratch().init()
  const vars = { ...scratch.vars, PATH: oldNode(scratch) }
  const run = (...args: string[]) => {
    const options = { cwd: scratch.root, env: vars, input: '{}', encoding: 'utf8' } as const
    const { status, stdout, stderr } = spawnSync(PROGRAM, args, options)
    return { status, stdout, stderr }
  }
  const message = `This is Node ${process.versions.node}, and ckpt runs on 20.19 or later (of 22: 22.3). Nothing was changed.`
  expect(run('undo')).toMatchObject({ status: 2, stdout: '', stderr: expect.stringContaining(message) })
  const { status, stdout } = run('undo', '--json')
  expect([status, JSON.parse(stdout)]).toMatchObject([
    2,
    { schemaVersion: 1, ok: false, error: { code: 'USAGE', message } },
  ])
  expect(run('hook', 'claude')).toMatchObject({ status: 0, stdout: '' })
})

/** Both ways to the daemon's door. */
const CLIENTS: [string, Options][] = [
  ['ckpt-hook', {}],
  ['ckpt hook', { client: PROGRAM, agent: ['hook', 'claude'] }],
]

test.each(CLIENTS)('many at once, by %s: each is recorded once', async (_, client) => {
  const { scratch } = prompted()
  const length = client.client ? 10 : 24 // a start of Node is slow, and they come one after the other
  const ids = Array.from({ length }, (_, i) => `t${String(i).padStart(2, '0')}`)
  const ran = await Promise.all(
    ids.flatMap((id) => [later(scratch, call(scratch, id), client), later(scratch, call(scratch, id), client)]),
  )
  expect(ran.every((one) => one.code === 0 && one.stdout + one.stderr === '')).toBe(true)
  expect(calls(scratch)).toEqual(ids)
  expect(left(scratch)).toEqual([])
})

test('a daemon that hangs: Node does it, once; who comes next does not ask it; awake, it answers again', async () => {
  const { scratch, pid } = prompted()
  process.kill(pid, 'SIGSTOP')
  onTestFinished(() => {
    try {
      process.kill(pid, 'SIGCONT')
    } catch {
      return // it has stopped
    }
  })
  expect(await later(scratch, call(scratch, 't1'))).toEqual(SILENT)
  expect(fs.existsSync(`${door(scratch)}/ready`)).toBe(false)
  expect(await later(scratch, call(scratch, 't2'))).toEqual(SILENT)
  process.kill(pid, 'SIGCONT')
  for (let i = 0; i < 200 && !fs.existsSync(`${door(scratch)}/ready`); i++)
    await new Promise((resolve) => setTimeout(resolve, 100))
  const bin = withoutNode(scratch)
  expect(await later(scratch, call(scratch, 't3'), { client: `${bin}/ckpt-hook`, vars: { PATH: bin } })).toEqual(SILENT)
  expect(calls(scratch)).toEqual(['t1', 't2', 't3'])
  expect(left(scratch)).toEqual([])
})

test('a daemon at work for seconds is waited for, by every shell', async () => {
  // All at once, for it is only waiting.
  const shells = SHELLS.filter(([name]) => which(name)).map((one) => [...one, prompted().scratch] as const)
  const each = shells.map(async ([name, shell, scratch]) => {
    const bin = withoutNode(scratch)
    const line = shell.length > 0 ? [which(shell[0]!)!, ...shell.slice(1)] : []
    const held = foreignLock(scratch)
    const waits = later(scratch, call(scratch, 't1'), { client: `${bin}/ckpt-hook`, shell: line, vars: { PATH: bin } })
    setTimeout(() => fs.rmSync(held, { force: true }), 3500)
    expect([name, await waits]).toEqual([name, SILENT])
    expect([name, calls(scratch)]).toEqual([name, ['t1']]) // there is no Node: it was the daemon's
    expect([name, left(scratch), hookLog(scratch)]).toEqual([name, [], []])
  })
  await Promise.all(each)
})

test('a process that has the number of a daemon that was killed is not asked', async () => {
  const { scratch, pid } = prompted()
  process.kill(pid, 'SIGKILL')
  const ready = `${door(scratch)}/ready`
  fs.writeFileSync(ready, fs.readFileSync(ready, 'utf8').replace(`\n${pid}\n`, `\n${process.pid}\n`))
  expect(await later(scratch, call(scratch, 't1'))).toEqual(SILENT)
  expect(await later(scratch, call(scratch, 't2'))).toEqual(SILENT)
  expect(calls(scratch)).toEqual(['t1', 't2'])
  expect(left(scratch)).toEqual([])
})

test('the next daemon answers hooks, where the last one was killed', async () => {
  const { scratch, pid } = prompted()
  process.kill(pid, 'SIGKILL')
  startDaemon(scratch)
  const bin = withoutNode(scratch)
  expect(await later(scratch, call(scratch, 't1'), { client: `${bin}/ckpt-hook`, vars: { PATH: bin } })).toEqual(SILENT)
  expect(calls(scratch)).toEqual(['t1'])
})

test('under a umask that takes our own rights away the payload can be read', async () => {
  const { scratch, pid } = prompted()
  process.kill(pid, 'SIGSTOP')
  const asked = later(scratch, call(scratch, 't1'), { shell: ['sh', '-c', 'umask 777; exec "$0" "$@"'] })
  const given = () => left(scratch).find((one) => one.endsWith('.payload'))
  for (let i = 0; i < 100 && !given(); i++) await new Promise((resolve) => setTimeout(resolve, 10))
  const { mode } = fs.statSync(`${door(scratch)}/${given()}`)
  process.kill(pid, 'SIGCONT')
  expect(await asked).toEqual(SILENT)
  expect(mode & 0o777).toBe(0o600)
  expect(calls(scratch)).toEqual(['t1'])
})

test.each(CLIENTS)('a daemon that is killed while it answers %s: each marker is there, once', async (_, client) => {
  const { scratch, pid } = prompted()
  let running = pid
  const moments = client.client ? [40, 70] : [0, 10, 20] // Node starts first
  for (const [n, moment] of moments.entries()) {
    const ids = [`t${n}a`, `t${n}b`, `t${n}c`]
    const asked = ids.map((id) => later(scratch, call(scratch, id), client))
    await new Promise((resolve) => setTimeout(resolve, moment))
    process.kill(running, 'SIGKILL')
    expect(await Promise.all(asked)).toEqual([SILENT, SILENT, SILENT])
    running = (scratch.ckpt('daemon', 'start') as { pid: number }).pid
  }
  expect(calls(scratch)).toEqual(moments.flatMap((_, n) => ['a', 'b', 'c'].map((one) => `t${n}${one}`)))
})

test.each(CLIENTS)('where the daemon can start no git, %s does it itself, once', async (_, client) => {
  const scratch = new Scratch().init()
  const bin = path.join(scratch.base, 'gits')
  fs.mkdirSync(bin)
  for (const name of ['git', 'mkfifo']) fs.symlinkSync(which(name)!, path.join(bin, name))
  expect(scratch.runApart(['daemon', 'start'], { vars: { PATH: bin } })).toMatchObject({ code: 0 })
  onTestFinished(() => void scratch.run(['daemon', 'stop']))
  expect(await later(scratch, says(scratch, 'UserPromptSubmit', { prompt: 'go' }), client)).toEqual(SILENT)
  fs.unlinkSync(path.join(bin, 'git'))
  scratch.git('config', 'core.excludesFile', 'rules') // the daemon has to ask git
  expect(await later(scratch, call(scratch, 't1'), client)).toEqual(SILENT)
  expect(await later(scratch, says(scratch, 'Stop'), client)).toEqual(SILENT)
  expect(fs.readFileSync(`${scratch.vars.XDG_STATE_HOME}/ckpt/hook.log`, 'utf8')).toContain('git is not installed')
  expect(calls(scratch)).toEqual(['t1'])
  expect(scratch.ckpt('list').turns).toMatchObject([{ prompt: 'go', status: 'completed' }])
  expect(left(scratch)).toEqual([])
})

test.skipIf(!SEES_GROUPS)('a client that is killed while it waits leaves no process behind', async () => {
  const { scratch, pid } = prompted()
  process.kill(pid, 'SIGSTOP')
  const child = inGroup(scratch, [CLIENT], 't1')
  const theirs = () => ofGroup(child.pid!).filter((one) => !one.endsWith(' Z')) // whose parent was killed is not ours to wait for
  await expect.poll(theirs, { timeout: 2000, interval: 10 }).toEqual(['ckpt-hook S', 'sleep S'])
  child.kill('SIGKILL')
  await expect.poll(theirs, { timeout: 10_000 }).toEqual([])
  process.kill(pid, 'SIGCONT')
})

// Others try again for longer than anybody waits.
const ENDING = SHELLS.filter(([name]) => ['dash', 'busybox'].includes(name) && which(name) && which('prlimit'))
test.each(ENDING)('where no process can be started, %s hands the marker over and ends with 0', async (_, shell) => {
  const scratch = new Scratch().init()
  const uid = scratch.handOver()
  const bin = withoutNode(scratch)
  scratch.runApart(['daemon', 'start'], { uid })
  onTestFinished(() => void scratch.runApart(['daemon', 'stop'], { uid }))
  const user = uid === process.getuid!() ? [] : ['setpriv', `--reuid=${uid}`, `--regid=${uid}`, '--clear-groups']
  const limited = [...user, 'prlimit', '--nproc=1', which(shell[0]!)!, ...shell.slice(1)]
  const payload = says(scratch, 'UserPromptSubmit', { prompt: 'two\nlines \\ and "all"' })
  expect(await later(scratch, payload, { client: `${bin}/ckpt-hook`, shell: limited })).toEqual(SILENT)
  const text = () => JSON.parse(scratch.runApart(['show', '1', '--json'], { uid }).stdout).turn?.text
  await expect.poll(text, { timeout: 10_000 }).toBe(payload.prompt)
  expect(left(scratch)).toEqual([])
})

test('after more than the fifos that are ready, each client gets its answer', async () => {
  const { scratch } = prompted()
  const bin = withoutNode(scratch)
  const shell = { client: `${bin}/ckpt-hook`, vars: { PATH: bin } }
  const node = CLIENTS[1]![1]
  for (let round = 0; round < 4; round++) {
    const ids = Array.from({ length: 20 }, (_, i) => `r${round}-${i}`)
    const ran = await Promise.all(ids.map((id, i) => later(scratch, call(scratch, id), i % 5 === 0 ? node : shell)))
    expect(ran.filter(({ code, stdout, stderr }) => code !== 0 || stdout + stderr !== '')).toEqual([])
  }
  expect(calls(scratch)).toHaveLength(80)
  expect(left(scratch)).toEqual([])
  expect(fs.readdirSync(`${door(scratch)}/free`).length).toBeGreaterThan(0)
})

test('markers without an id of the agent’s own are not doubled either', async () => {
  const { scratch, pid } = prompted()
  const payload = { conversation_id: 's', hook_event_name: 'afterShellExecution', workspace_roots: [scratch.root] }
  process.kill(pid, 'SIGSTOP')
  const asked = later(scratch, payload, { agent: ['cursor', 'afterShellExecution'] })
  const given = () => left(scratch).find((one) => one.endsWith('.payload'))
  const bytes = () => (given() ? fs.readFileSync(`${door(scratch)}/${given()}`) : Buffer.alloc(0))
  for (let i = 0; i < 200 && !bytes().toString().endsWith('\nend\n'); i++)
    await new Promise((resolve) => setTimeout(resolve, 10))
  const [name, copy] = [given(), bytes()]
  expect(await asked).toEqual(SILENT)
  // Killed before it could remove what it had recorded: the same file is there again, and the daemon has its line.
  fs.writeFileSync(`${door(scratch)}/${name}`, copy)
  process.kill(pid, 'SIGCONT')
  for (let i = 0; i < 200 && left(scratch).length > 0; i++) await new Promise((resolve) => setTimeout(resolve, 50))
  expect(scratch.ckpt('list').turns[0].steps).toHaveLength(1)
})

test('what a killed client handed over is taken up by the next hook, late, and once', async () => {
  const { scratch, pid } = prompted()
  process.kill(pid, 'SIGKILL')
  const payload = JSON.stringify(call(scratch, 't1'))
  const file = `${door(scratch)}/0123-left.payload`
  fs.writeFileSync(file, `claude\n\n${scratch.root}\n\n${payload}\nend\n`)
  const cut = file.replace('0123', '4567')
  fs.writeFileSync(cut, `claude\n\n${scratch.root}\n\n${payload.slice(0, 40)}`)
  const claimed = file.replace('0123', '89ab')
  fs.writeFileSync(claimed, '')
  expect(await later(scratch, call(scratch, 't2'))).toEqual(SILENT)
  expect(calls(scratch)).toEqual(['t2']) // its client may still be waiting
  const old = new Date(Date.now() - 120_000)
  for (const one of [file, cut, claimed]) fs.utimesSync(one, old, old)
  expect(await later(scratch, call(scratch, 't3'))).toEqual(SILENT)
  expect(calls(scratch)).toEqual(['t1', 't2', 't3'])
  expect([file, cut, claimed].filter((one) => fs.existsSync(one))).toEqual([])
  expect(hookLog(scratch).map(({ payload, message }) => payload ?? message)).toEqual([
    payload.slice(0, 40), // it was cut short
    expect.stringContaining('ends before it says anything'),
  ])
  scratch.run(['daemon', 'stop'])
})

test('what was left behind takes its fifo along: nobody else’s marker bears its id', async () => {
  const { scratch } = prompted()
  const [id] = fs.readdirSync(`${door(scratch)}/free`)
  const file = `${door(scratch)}/${id}.payload`
  fs.writeFileSync(file, `claude\nStop\n${scratch.root}\n\n${JSON.stringify(says(scratch, 'PreCompact'))}\nend\n`)
  const old = new Date(Date.now() - 120_000)
  fs.utimesSync(file, old, old)
  expect(await later(scratch, call(scratch, 't1'))).toEqual(SILENT)
  expect([fs.existsSync(file), fs.existsSync(`${door(scratch)}/free/${id}`)]).toEqual([false, false])
})

test('a project that is no absolute path is none', async () => {
  const { scratch } = prompted()
  const bin = withoutNode(scratch)
  const vars = { PATH: bin, CLAUDE_PROJECT_DIR: 'foo' }
  expect(await later(scratch, call(scratch, 't1'), { client: `${bin}/ckpt-hook`, vars, cwd: scratch.home })).toEqual(
    SILENT,
  )
  expect(await later(scratch, call(scratch, 't2'), { client: `${bin}/ckpt-hook`, vars })).toEqual(SILENT)
  expect(calls(scratch)).toEqual(['t2'])
})

test('Cursor hears its answer; a broken payload is logged whole; odd words go to Node', async () => {
  const { scratch } = prompted()
  const bin = withoutNode(scratch)
  const plain = { client: `${bin}/ckpt-hook`, vars: { PATH: bin } }
  const cursor = { ...plain, agent: ['cursor', 'beforeSubmitPrompt'] }
  expect(await later(scratch, '{', cursor)).toEqual({ ...SILENT, stdout: '{"continue":true}\n' })
  expect(await later(scratch, '{"session_id":7}', plain)).toEqual(SILENT)
  expect(hookLog(scratch).map(({ payload }) => payload)).toEqual(['{', '{"session_id":7}'])
  expect(await later(scratch, '{}', { ...plain, agent: ['no body;x'] })).toEqual(SILENT)
  expect(await later(scratch, call(scratch, 't1'), { agent: ['nobody'] })).toEqual(SILENT)
  expect(spawnSync(CLIENT, [], { cwd: scratch.root, env: scratch.vars, input: '' }).status).toBe(0)
})

// A full disk is a small one that is mounted here: skipped where nobody may mount.
testWithMounts.each([
  ['nothing fits', 0, 'two'],
  ['where it is for is all that fits', 4096, 'x'.repeat(20_000)],
])('on a full disk Cursor hears its answer, and status tells what is not recorded: %s', async (_, room, prompt) => {
  const { scratch } = prompted({ small: '12m' })
  const before = scratch.ckpt('list').turns.length
  const cursor = (event: string) =>
    later(scratch, { ...told, hook_event_name: event, prompt }, { agent: ['cursor', event] })
  const told = { conversation_id: 'c', generation_id: 'g', workspace_roots: [scratch.root], status: 'completed' }
  fs.writeFileSync(scratch.at('.git/filler'), Buffer.alloc(roomIn(scratch.root) - room))
  expect(roomIn(scratch.root)).toBe(room)
  expect(await cursor('beforeSubmitPrompt')).toEqual({ ...SILENT, stdout: '{"continue":true}\n' })
  expect(await cursor('stop')).toEqual(SILENT)
  fs.rmSync(scratch.at('.git/filler'))
  expect(scratch.ckpt('list').turns.length).toBe(before)
  expect(scratch.ckpt('status').lastHookError).toMatchObject({ where: 'cursor stop', cwd: scratch.root })
  expect(await cursor('beforeSubmitPrompt')).toEqual({ ...SILENT, stdout: '{"continue":true}\n' })
  expect(scratch.ckpt('status').sessions.map(({ id }: Json) => id)).toContain('c')
})

// Skipped where nobody may mount: to leave no room to the last byte takes a small disk of its own, which is mounted here.
testWithMounts('where no log has any room, a mark says that something is not recorded, and when', async () => {
  const begun = Date.now()
  const { scratch, pid } = prompted({ small: '12m' })
  process.kill(pid, 'SIGKILL')
  await until(() => !fs.existsSync(`/proc/${pid}`))
  const vars = { CKPT_STATE_DIR: scratch.at('.git/state') }
  fs.writeFileSync(scratch.at('.git/filler'), Buffer.alloc(roomIn(scratch.root)))
  expect(await later(scratch, says(scratch, 'Stop'), { vars })).toEqual(SILENT)
  fs.rmSync(scratch.at('.git/filler'))
  const { lastHookError } = scratch.ckpt('status')
  expect(lastHookError).toMatchObject({ where: 'ckpt hook', message: expect.stringContaining('there was no room') })
  const time = Date.parse(lastHookError.time)
  expect([time >= begun - 1000, time <= Date.now() + 1000]).toEqual([true, true]) // the clock of files is coarser
  // What goes wrong later is newer.
  expect(await later(scratch, '{')).toEqual(SILENT)
  expect(scratch.ckpt('status').lastHookError.code).toBe('BAD_MARKER')
})

// Skipped where nobody may mount: its worktree lies on a small disk that is mounted here, to be filled to the last byte.
testWithMounts('where nothing is recorded yet, and no log has any room, there is such a mark too', async () => {
  const scratch = new Scratch()
  mountSmall(scratch.root, '12m')
  scratch.init()
  const vars = { CKPT_STATE_DIR: scratch.at('.git/state') }
  fs.writeFileSync(scratch.at('.git/filler'), Buffer.alloc(roomIn(scratch.root)))
  expect(await later(scratch, says(scratch, 'UserPromptSubmit', { prompt: 'go' }), { vars })).toEqual(SILENT)
  fs.rmSync(scratch.at('.git/filler'))
  const { stdout } = scratch.run(['status', '--json', '--no-daemon'], { vars })
  expect(JSON.parse(stdout).lastHookError).toMatchObject({ message: expect.stringContaining('there was no room') })
})

describe('ckpt hook', () => {
  const [, client] = CLIENTS[1]!
  const asked = (scratch: Scratch) => scratch.ckpt('daemon', 'status').state.calls as number

  test('asks the daemon, from a directory outside with the project named too; hears Cursor’s answer', async () => {
    const { scratch } = prompted()
    const before = asked(scratch)
    expect(await later(scratch, call(scratch, 't1'), client)).toEqual(SILENT)
    const outside = { ...client, cwd: scratch.home, vars: { CLAUDE_PROJECT_DIR: scratch.root } }
    expect(await later(scratch, call(scratch, 't2'), outside)).toEqual(SILENT)
    const cursor = { ...client, agent: ['hook', 'cursor', 'beforeSubmitPrompt'] }
    expect(await later(scratch, '{', cursor)).toEqual({ ...SILENT, stdout: '{"continue":true}\n' })
    const notified = { type: 'agent-turn-complete', 'thread-id': 's', 'turn-id': 'u', cwd: scratch.root }
    const codex = { ...client, agent: ['hook', 'codex-notify', JSON.stringify(notified)], open: true }
    expect(await later(scratch, '', codex)).toEqual(SILENT)
    expect(asked(scratch)).toBe(before + 5)
    expect(calls(scratch)).toEqual(['t1', 't2'])
    expect(hookLog(scratch).map(({ payload }) => payload)).toEqual(['{'])
    expect(left(scratch)).toEqual([])
  })

  test('does it itself, once, when the daemon hangs; who comes next does not ask it', async () => {
    const { scratch, pid } = prompted()
    process.kill(pid, 'SIGSTOP')
    expect(await later(scratch, call(scratch, 't1'), client)).toEqual(SILENT)
    expect(fs.existsSync(`${door(scratch)}/ready`)).toBe(false)
    expect(await later(scratch, call(scratch, 't2'), client)).toEqual(SILENT)
    process.kill(pid, 'SIGCONT')
    for (let i = 0; i < 200 && !fs.existsSync(`${door(scratch)}/ready`); i++)
      await new Promise((resolve) => setTimeout(resolve, 100))
    expect(calls(scratch)).toEqual(['t1', 't2'])
    expect(left(scratch)).toEqual([])
  })

  test('makes a fifo of its own where none is left, and takes none that is somebody’s', async () => {
    const { scratch } = prompted()
    const before = asked(scratch)
    const taken = fs.readdirSync(`${door(scratch)}/free`).map((id) => `${door(scratch)}/${id}.payload`)
    for (const file of taken) fs.writeFileSync(file, '')
    expect(await later(scratch, call(scratch, 't1'), client)).toEqual(SILENT)
    expect(asked(scratch)).toBe(before + 2)
    expect(taken.map((file) => fs.readFileSync(file, 'utf8')).join('')).toBe('')
    expect(left(scratch)).toHaveLength(taken.length)
  })

  test('does not go to what lies in the place of the door and is none', async () => {
    const { scratch } = prompted()
    fs.rmSync(`${door(scratch)}/door`)
    fs.writeFileSync(`${door(scratch)}/door`, 'mine\n')
    expect(await later(scratch, call(scratch, 't1'), client)).toEqual(SILENT)
    expect(fs.readFileSync(`${door(scratch)}/door`, 'utf8')).toBe('mine\n')
    expect(calls(scratch)).toEqual(['t1'])
    expect(left(scratch)).toEqual([])
  })

  test('is heard without a HOME, says nothing of what Node would deprecate, and exits 0 whatever it is given', async () => {
    const { scratch } = prompted()
    const vars = { HOME: '', NODE_PENDING_DEPRECATION: '1' }
    expect(await later(scratch, call(scratch, 't1'), { ...client, vars })).toEqual(SILENT)
    expect(calls(scratch)).toEqual(['t1'])
    for (const words of [[], ['claude', 'Stop', 'more'], ['codex-notify', '{}', 'more'], ['claude', '--none']])
      expect((await later(scratch, '{}', { ...client, agent: ['hook', ...words] })).code).toBe(0)
  })

  test('loads none of Node’s sockets and streams, which take longer than the daemon', async () => {
    const { scratch } = prompted()
    const list = path.join(scratch.base, 'loaded')
    const spy = path.join(scratch.base, 'spy.cjs')
    fs.writeFileSync(
      spy,
      `process.on('exit', () => require('fs').writeFileSync(${JSON.stringify(list)}, process.moduleLoadList.join('\\n')))\n`,
    )
    const vars = { NODE_OPTIONS: `--require=${spy}` }
    expect(await later(scratch, call(scratch, 't1'), { ...client, vars })).toEqual(SILENT)
    const loaded = fs.readFileSync(list, 'utf8').split('\n')
    expect(loaded).toContain('NativeModule fs')
    expect(loaded.filter((name) => /^NativeModule (net|stream|tty|child_process)$/.test(name))).toEqual([])
  })
})

test.each([
  ['with the daemon', []],
  ['without it', ['--no-daemon']],
])('the Node program ends though the agent keeps its end of standard input open, %s', async (_, more) => {
  const { scratch } = prompted()
  const options = { client: PROGRAM, agent: ['hook', 'claude', ...more], open: true }
  expect(await later(scratch, call(scratch, 't1'), options)).toEqual(SILENT)
  expect(calls(scratch)).toEqual(['t1'])
})

test('an error in the Node program that nobody catches is in the log, and the agent goes on', async () => {
  const { scratch } = prompted()
  const broken = path.join(scratch.base, 'broken.cjs')
  fs.writeFileSync(broken, "setImmediate(() => { throw new Error('out of nowhere') })\n")
  const vars = { NODE_OPTIONS: `--require=${broken}` }
  const options = { client: PROGRAM, agent: ['hook', 'claude'], vars, open: true }
  expect(await later(scratch, '{', options)).toEqual(SILENT)
  const log = path.join(scratch.home, 'state/ckpt/hook.log')
  expect(fs.readFileSync(log, 'utf8')).toContain('"message":"out of nowhere"')
})
