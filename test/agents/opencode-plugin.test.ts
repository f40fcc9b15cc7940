// The plugin that we ship, fed with what OpenCode's hooks and bus sent, in a process of its own.
import { spawnSync } from 'node:child_process'
import fs from 'node:fs'
import path from 'node:path'
import { expect, test } from 'vitest'
import { hook, type Row, recorded } from '../support/agents.ts'
import { startDaemon } from '../support/daemon.ts'
import { type Json, PROGRAM, Scratch } from '../support/scratch.ts'

/** Hooks are awaited by OpenCode, events of the bus are not; at the end the process goes, whatever is under way. */
const DRIVER = `
import fs from 'node:fs'
const { CkptPlugin } = await import(process.argv[2])
const hooks = await CkptPlugin({ directory: process.cwd() })
const open = []
for (const { via, event, payload } of JSON.parse(fs.readFileSync(process.argv[3], 'utf8'))) {
  const args = payload.input?.args ?? payload.output?.args
  if (args?.content && (event === 'tool.execute.after' || event === 'by hand')) fs.writeFileSync(args.filePath, args.content)
  if (via === 'opencode-bus') open.push(hooks.event({ event: payload }))
  else if (process.env.PARALLEL && event.startsWith('tool')) open.push(hooks[event]?.(payload.input, payload.output))
  else await hooks[event]?.(payload.input, payload.output)
}
if (process.env.PARALLEL) await Promise.all(open)
process.exit(0)
`

function drive(scratch: Scratch, scenario: string | Row[], vars: Record<string, string> = {}) {
  const bin = path.join(scratch.base, 'bin')
  fs.mkdirSync(bin)
  fs.symlinkSync(PROGRAM, path.join(bin, 'ckpt'))
  fs.symlinkSync(path.join(path.dirname(PROGRAM), 'ckpt-hook'), path.join(bin, 'ckpt-hook'))
  // A daemon in the background would outlive the test.
  fs.mkdirSync(`${scratch.home}/.config/ckpt`, { recursive: true })
  fs.writeFileSync(`${scratch.home}/.config/ckpt/.checkpointrc`, 'watch:\n  start: never\n')
  const rows = typeof scenario === 'string' ? recorded(scratch, 'opencode', scenario) : scenario
  fs.writeFileSync(path.join(scratch.base, 'rows.json'), JSON.stringify(rows))
  fs.writeFileSync(path.join(scratch.base, 'drive.mjs'), DRIVER)
  const plugin = path.resolve(import.meta.dirname, '../../plugins/opencode.js')
  const args = [path.join(scratch.base, 'drive.mjs'), plugin, path.join(scratch.base, 'rows.json')]
  const env = { ...scratch.vars, PATH: `${bin}:${scratch.vars.PATH}`, ...vars }
  return spawnSync(process.execPath, args, { cwd: scratch.root, env, encoding: 'utf8' })
}

/** The marker of the end outlives OpenCode by a moment. */
async function settled(scratch: Scratch): Promise<Json[]> {
  for (let i = 0; ; i++) {
    const { turns } = scratch.ckpt('list')
    if (i === 100 || turns.every((turn: Json) => turn.status !== 'running')) return turns
    await new Promise((resolve) => setTimeout(resolve, 100))
  }
}

test('a subagent folds into its turn, and the end is recorded though OpenCode is gone by then', async () => {
  const scratch = new Scratch().init()
  expect(drive(scratch, 'subagent')).toMatchObject({ status: 0, stdout: '', stderr: '' })
  const turns = await settled(scratch)
  expect(turns.map((turn) => [turn.status, turn.steps.map((step: Json) => step.paths)])).toEqual([
    ['completed', [['sub.txt'], ['main.txt']]],
  ])
  expect(turns[0].prompt).toBe('[turn 1] Let a subagent write sub.txt, then write main.txt.')
})

test('tool calls at the same time: no marker is lost', async () => {
  const scratch = new Scratch().init()
  expect(drive(scratch, 'parallel', { PARALLEL: '1' }).status).toBe(0)
  const [turn] = await settled(scratch)
  expect(turn.steps.map((step: Json) => step.tool)).toEqual(['write', 'write', 'bash'])
})

const bus = (type: string, properties: Json): Row => ({
  via: 'opencode-bus',
  event: type,
  payload: { type, properties },
})
const told = (event: string, payload: Json): Row => ({ via: 'opencode-hook', event, payload })
const said = (id: string, session = 's') =>
  told('chat.message', {
    input: { sessionID: session },
    output: { message: { id }, parts: [{ type: 'text', text: `do ${id}` }] },
  })
const answers = (parentID: string) =>
  bus('message.updated', { info: { id: 'msg_9', role: 'assistant', parentID, sessionID: 's' } })
const called = (
  scratch: Scratch,
  name: string,
  { when, callID = name }: { when: 'before' | 'after'; callID?: string },
) => {
  const args = { filePath: scratch.at(name), content: `${name}\n` }
  const call = { tool: 'write', sessionID: 's', callID }
  return when === 'before'
    ? told('tool.execute.before', { input: call, output: { args } })
    : told('tool.execute.after', { input: { ...call, args } })
}

test('calls that a model gives the same id are calls of their own: in a turn, and in the next', async () => {
  const scratch = new Scratch().init()
  startDaemon(scratch)
  const whole = (name: string) =>
    (['before', 'after'] as const).map((when) => called(scratch, name, { when, callID: 'write:0' }))
  const idle = bus('session.idle', { sessionID: 's' })
  const failed = bus('session.error', { error: { name: 'ProviderAuthError' } }) // it is of no session
  const rows = [
    failed,
    said('msg_1'),
    ...whole('a'),
    ...whole('b'),
    ...whole('e'),
    idle,
    said('msg_2'),
    ...whole('c'),
    idle,
  ]
  expect(drive(scratch, rows)).toMatchObject({ status: 0, stdout: '', stderr: '' })
  const turns = await settled(scratch)
  expect(turns.map(({ steps }) => steps.map((step: Json) => step.paths.join()))).toEqual([['c'], ['a', 'b', 'e']])
  scratch.ckpt('undo', '--turns', '2')
  expect(['a', 'b', 'c', 'e'].filter((name) => scratch.exists(name))).toEqual([])
  expect(scratch.ckpt('status').lastHookError).toBe(null)
})

const shell = (when: 'before' | 'after', session: string) => {
  const call = { tool: 'bash', sessionID: session, callID: 'call_0' }
  const args = { command: 'true' }
  return when === 'before'
    ? told('tool.execute.before', { input: call, output: { args } })
    : told('tool.execute.after', { input: { ...call, args } })
}
const byHand = (scratch: Scratch, name: string) =>
  told('by hand', { input: { args: { filePath: scratch.at(name), content: `${name}\n` } } })

test('two sessions at once whose models give the same id: the call that fails is the one of its session', async () => {
  const scratch = new Scratch().init()
  startDaemon(scratch)
  const part = { type: 'tool', sessionID: 's', callID: 'call_0', state: { status: 'error' } }
  const rows = [
    ...[said('msg_1', 's'), said('msg_2', 't'), shell('before', 's'), byHand(scratch, 's.txt'), shell('before', 't')],
    ...[bus('message.part.updated', { part }), bus('message.part.updated', { part })],
    // A hook is awaited, and so is what the bus told before it.
    told('tool.execute.before', { input: { tool: 'read', sessionID: 't', callID: 'call_1' }, output: { args: {} } }),
    ...[byHand(scratch, 't.txt'), shell('after', 't')],
    ...[bus('session.idle', { sessionID: 's' }), bus('session.idle', { sessionID: 't' })],
  ]
  expect(drive(scratch, rows)).toMatchObject({ status: 0, stdout: '', stderr: '' })
  await settled(scratch)
  const stepsOf = (session: string) =>
    scratch.ckpt('list', '--session', session).turns[0].steps.map((step: Json) => step.paths)
  expect([stepsOf('s'), stepsOf('t')]).toEqual([[['s.txt']], [['t.txt']]])
  scratch.ckpt('undo', '--session', 's')
  expect([scratch.exists('s.txt'), scratch.exists('t.txt')]).toEqual([false, true])
})

test('subagents at the same time whose calls have the same id: each is a step', async () => {
  const scratch = new Scratch().init()
  startDaemon(scratch)
  const child = (id: string) => bus('session.created', { info: { id, parentID: 's', directory: scratch.root } })
  const rows = [
    ...[said('msg_1'), child('c1'), child('c2')],
    ...[shell('before', 'c1'), byHand(scratch, 'a.txt'), shell('before', 'c2'), shell('after', 'c1')],
    ...[byHand(scratch, 'b.txt'), shell('after', 'c2'), bus('session.idle', { sessionID: 's' })],
  ]
  expect(drive(scratch, rows)).toMatchObject({ status: 0, stdout: '', stderr: '' })
  const [turn] = await settled(scratch)
  expect(turn.steps.map((step: Json) => step.paths)).toEqual([['a.txt'], ['b.txt']])
})

test('a prompt that is given while OpenCode works is a turn from where its own work begins', async () => {
  const scratch = new Scratch().init()
  startDaemon(scratch)
  const rows = [
    ...[said('msg_1'), answers('msg_1'), called(scratch, 'b.txt', { when: 'before' })],
    ...[said('msg_2'), said('msg_3'), answers('msg_1'), called(scratch, 'b.txt', { when: 'after' })],
    ...[answers('msg_3'), called(scratch, 'c.txt', { when: 'before' }), called(scratch, 'c.txt', { when: 'after' })],
    bus('session.idle', { sessionID: 's' }),
  ]
  expect(drive(scratch, rows)).toMatchObject({ status: 0, stdout: '', stderr: '' })
  const turns = await settled(scratch)
  expect(turns.map(({ status, prompt, steps }) => [status, prompt, steps.map((step: Json) => step.paths)])).toEqual([
    ['completed', 'do msg_3', [['c.txt']]],
    ['completed', 'do msg_2', []],
    ['completed', 'do msg_1', [['b.txt']]],
  ])
  scratch.ckpt('undo', '--turns', '2')
  expect([scratch.exists('b.txt'), scratch.exists('c.txt')]).toEqual([true, false])
  scratch.ckpt('undo')
  expect(scratch.exists('b.txt')).toBe(false)
})

test('a prompt that was given meanwhile and never answered is nothing; the next one is a turn', async () => {
  const scratch = new Scratch().init()
  const rows = [
    ...[said('msg_1'), answers('msg_1'), said('msg_2')],
    bus('session.error', { sessionID: 's', error: { name: 'MessageAbortedError' } }),
    ...[said('msg_3'), answers('msg_3'), bus('session.idle', { sessionID: 's' })],
  ]
  expect(drive(scratch, rows).status).toBe(0)
  const turns = await settled(scratch)
  expect(turns.map(({ status, prompt }) => [status, prompt])).toEqual([
    ['completed', 'do msg_3'],
    ['interrupted', 'do msg_1'],
  ])
})

test('a context that is too large ends no turn: OpenCode makes it smaller, and goes on', async () => {
  const scratch = new Scratch().init()
  startDaemon(scratch)
  const overflow = bus('session.error', { sessionID: 's', error: { name: 'ContextOverflowError' } })
  const rows = [
    ...[
      said('msg_1'),
      called(scratch, 'a.txt', { when: 'before' }),
      called(scratch, 'a.txt', { when: 'after' }),
      overflow,
    ],
    ...[
      called(scratch, 'b.txt', { when: 'before' }),
      called(scratch, 'b.txt', { when: 'after' }),
      bus('session.idle', { sessionID: 's' }),
    ],
  ]
  expect(drive(scratch, rows).status).toBe(0)
  const [turn] = await settled(scratch)
  expect(turn).toMatchObject({ status: 'completed', steps: [{ paths: ['a.txt'] }, { paths: ['b.txt'] }] })
  scratch.ckpt('undo')
  expect([scratch.read('a.txt'), scratch.exists('b.txt')]).toEqual(['one\n', false])
  // A plugin of before tells of it.
  for (const name of ['chat.message', 'session.error'])
    await hook(scratch, 'opencode', {
      payload: {
        hook_event_name: name,
        directory: scratch.root,
        input: { sessionID: 'old' },
        output: { message: { id: 'msg_9' }, parts: [] },
        properties: { sessionID: 'old', error: { name: 'ContextOverflowError' } },
      },
    })
  expect(scratch.ckpt('list', '--session', 'old').turns).toMatchObject([{ status: 'running' }])
})

test('a call that fails ends: what the person then does to its file stays', async () => {
  const scratch = new Scratch().init()
  const part = { type: 'tool', sessionID: 's', callID: 'a.txt', state: { status: 'error', error: 'not found' } }
  const rows = [
    ...[said('msg_1'), called(scratch, 'a.txt', { when: 'before' }), bus('message.part.updated', { part })],
    ...[called(scratch, 'b.txt', { when: 'before' }), called(scratch, 'b.txt', { when: 'after' })],
    told('by hand', { input: { args: { filePath: scratch.at('a.txt'), content: 'mine\n' } } }),
    bus('session.idle', { sessionID: 's' }),
  ]
  expect(drive(scratch, rows).status).toBe(0)
  const [turn] = await settled(scratch)
  expect(turn).toMatchObject({ steps: [{ tool: 'write' }, { tool: 'write' }], unclaimed: ['a.txt'] })
  scratch.ckpt('undo')
  expect([scratch.exists('b.txt'), scratch.read('a.txt')]).toEqual([false, 'mine\n'])
})

test('without ckpt it is nothing', () => {
  const scratch = new Scratch().init()
  const ran = drive(scratch, 'parallel', { PATH: path.dirname(process.execPath) })
  expect(ran).toMatchObject({ status: 0, stdout: '', stderr: '' })
})

test.each([
  ['lies below a file', 'a.txt/below', ''],
  ['is there, and nothing more can be opened', '.', 'for (;;) try { fs.openSync("/dev/null") } catch { break }'],
])('a process that cannot be started fails no hook: the directory %s', (_, directory, first) => {
  const scratch = new Scratch().init()
  const plugin = path.resolve(import.meta.dirname, '../../plugins/opencode.js')
  const host = `
import fs from 'node:fs'
const { CkptPlugin } = await import(${JSON.stringify(plugin)})
const hooks = await CkptPlugin({ directory: ${JSON.stringify(path.join(scratch.root, directory))} })
await hooks['tool.execute.before']({ tool: 'bash', sessionID: 's', callID: 'none' }, { args: {} }) // loads what is loaded late
${first}
await hooks['chat.message']({ sessionID: 's' }, { message: { id: 'm' }, parts: [] })
await hooks['tool.execute.before']({ tool: 'bash', sessionID: 's', callID: 'c' }, { args: {} })
await hooks['tool.execute.after']({ tool: 'bash', sessionID: 's', callID: 'c', args: {} })
await hooks.event({ event: { type: 'session.idle', properties: { sessionID: 's' } } })
process.exitCode = 7
`
  fs.writeFileSync(path.join(scratch.base, 'host.mjs'), host)
  const line = 'ulimit -n 100; exec "$0" "$1" 2>&1'
  const done = spawnSync('/bin/sh', ['-c', line, process.execPath, path.join(scratch.base, 'host.mjs')], {
    cwd: scratch.root,
    env: { ...scratch.vars, PATH: '/none' },
    encoding: 'utf8',
  })
  expect([done.stdout, done.status]).toEqual(['', 7])
})

test('calls at the same time wait together for a ckpt that does not answer, not one after the other', () => {
  const scratch = new Scratch().init()
  const bin = path.join(scratch.base, 'bin')
  fs.mkdirSync(bin)
  fs.writeFileSync(`${bin}/ckpt-hook`, '#!/bin/sh\nwhile [ -d "$HOME" ]; do sleep 0.1; done\n', { mode: 0o755 })
  const plugin = path.resolve(import.meta.dirname, '../../plugins/opencode.js')
  const host = `
const alarms = []
globalThis.setTimeout = (alarm) => alarms.push(alarm)
globalThis.clearTimeout = () => undefined
const { CkptPlugin } = await import(${JSON.stringify(plugin)})
const hooks = await CkptPlugin({ directory: process.cwd() })
const begin = (callID) => hooks['tool.execute.before']({ tool: 'bash', sessionID: 's', callID }, { args: {} })
const calls = ['a', 'b', 'c'].map(begin)
for (const alarm of alarms.splice(0)) alarm()
await Promise.all(calls)
process.exit(7)
`
  fs.writeFileSync(path.join(scratch.base, 'host.mjs'), host)
  const done = spawnSync(process.execPath, [path.join(scratch.base, 'host.mjs')], {
    cwd: scratch.root,
    env: { ...scratch.vars, PATH: `${bin}:${scratch.vars.PATH}` },
    timeout: 60_000,
  })
  expect(done.status).toBe(7)
})
