/** `watch.autoTurn`: changes followed by quiet become a turn, whoever made them. */
import { spawn } from 'node:child_process'
import fs from 'node:fs'
import { setTimeout } from 'node:timers/promises'
import { expect, test } from 'vitest'
import { AutoTurns } from '../../src/daemon/auto-turns.ts'
import { closeContext, openContext } from '../../src/ops/worktree/context.ts'
import { me } from '../support/commits.ts'
import { startDaemon } from '../support/daemon.ts'
import { envOf } from '../support/in-process.ts'
import { type Json, Scratch } from '../support/scratch.ts'

test('changes by anybody, then quiet: a turn that can be undone; turns of agents and undos are not made twice', async () => {
  const scratch = new Scratch().init({ 'a.txt': 'one\n' })
  fs.mkdirSync(`${scratch.home}/.config/ckpt`, { recursive: true })
  fs.writeFileSync(`${scratch.home}/.config/ckpt/.checkpointrc`, 'watch:\n  autoTurn: true\n')
  startDaemon(scratch)
  const turns = (): string[] =>
    scratch
      .ckpt('list', '--all-sessions', '--hidden')
      .turns.map(
        ({ session, n, status, hidden, files }: Json) => `${session} ${n} ${status} ${files}${hidden ? ' hidden' : ''}`,
      )
  const until = async (count: number) => {
    for (let i = 0; i < 100 && turns().length < count; i++) await setTimeout(100)
    expect(turns()).toHaveLength(count)
  }
  await setTimeout(500)
  scratch.write({ 'a.txt': 'two\n' })
  scratch.write({ 'b.txt': 'b\n' })
  await until(1)
  scratch.ckpt('undo')
  expect([scratch.read('a.txt'), scratch.exists('b.txt')]).toEqual(['one\n', false])
  await setTimeout(3500) // the undo's own writes, and quiet: no turn
  expect(turns()).toHaveLength(1)
  scratch.ckpt('redo')
  expect(scratch.read('a.txt')).toBe('two\n')
  // An agent's turn is the agent's.
  scratch.ckpt('mark', 'prompt', '--session', 's')
  scratch.write({ 'a.txt': 'three\n' })
  await setTimeout(3500)
  expect(turns()).toHaveLength(2)
  scratch.ckpt('mark', 'stop', '--session', 's')
  scratch.write({ 'a.txt': 'by hand\n' })
  await until(3)
  scratch.ckpt('undo', '--session', 'auto')
  expect(scratch.read('a.txt')).toBe('three\n')
  expect(scratch.ckpt('verify').problems).toEqual([])
})

test('what changes shortly before an agent’s prompt, or a snapshot, is a turn before that', async () => {
  const scratch = new Scratch().init({ 'a.txt': 'one\n' })
  fs.mkdirSync(`${scratch.home}/.config/ckpt`, { recursive: true })
  fs.writeFileSync(`${scratch.home}/.config/ckpt/.checkpointrc`, 'watch:\n  autoTurn: true\n')
  startDaemon(scratch)
  scratch.ckpt('snapshot') // it has looked
  scratch.write({ 'a.txt': 'by hand\n' })
  scratch.turn('an agent', () => scratch.write({ 'b.txt': 'b\n' }))
  scratch.write({ 'c.txt': 'c\n' })
  scratch.ckpt('snapshot')
  const turns = scratch.ckpt('list', '--all-sessions').turns.map(({ session, n }: Json) => `${session} ${n}`)
  expect(turns.sort()).toEqual(['auto 1', 'auto 2', 's 1'])
  scratch.ckpt('undo', '--session', 'auto', '--turns', '2')
  expect([scratch.read('a.txt'), scratch.read('b.txt'), scratch.exists('c.txt')]).toEqual(['one\n', 'b\n', false])
  scratch.ckpt('undo', '--session', 's')
  expect(scratch.exists('b.txt')).toBe(false)
  expect(scratch.ckpt('verify').problems).toEqual([])
})

test('what an agent does after the end of its turn, and in a session that is called auto, is not taken for nobody’s', () => {
  const scratch = new Scratch().init({ 'a.txt': 'one\n' })
  fs.mkdirSync(`${scratch.home}/.config/ckpt`, { recursive: true })
  fs.writeFileSync(`${scratch.home}/.config/ckpt/.checkpointrc`, 'watch:\n  autoTurn: true\n')
  startDaemon(scratch)
  scratch.ckpt('snapshot') // it has looked
  const hook = (event: string, more: object = {}) => {
    const payload = { session_id: 's', cwd: scratch.root, hook_event_name: event, prompt_id: 'p1', ...more }
    expect(scratch.run(['hook', 'claude'], { input: JSON.stringify(payload) }).code).toBe(0)
  }
  const call = { tool_name: 'Bash', tool_input: { command: 'x' }, tool_use_id: 't1' }
  hook('UserPromptSubmit', { prompt: 'x' })
  hook('Stop')
  hook('PreToolUse', call) // a hook of somebody's had sent it back to work
  scratch.write({ 'a.txt': 'agent\n' })
  hook('PostToolUse', call)
  hook('Stop')
  const turns = () => scratch.ckpt('list', '--all-sessions').turns.map(({ session, n }: Json) => `${session} ${n}`)
  expect(turns()).toEqual(['s 1'])
  scratch.ckpt('undo', '--session', 's')
  expect(scratch.read('a.txt')).toBe('one\n')
  scratch.turn('mine', () => scratch.write({ 'c.txt': 'c\n' }), 'auto')
  expect(turns().sort()).toEqual(['auto 1'])
  expect(scratch.ckpt('show', '1', '--session', 'auto').files).toMatchObject([{ path: 'c.txt' }])
})

test.each([
  ['is waited for', 0, false],
  ['and was not heard of for long holds up nobody', 3_600_000, true],
])('an agent that went on after the end of its turn %s', async (_, later, made) => {
  const scratch = new Scratch().init({ 'a.txt': 'one\n' })
  fs.mkdirSync(`${scratch.home}/.config/ckpt`, { recursive: true })
  fs.writeFileSync(`${scratch.home}/.config/ckpt/.checkpointrc`, 'watch:\n  autoTurn: true\n')
  scratch.ckpt('mark', 'prompt', '--session', 's', '--marker', 'p1')
  scratch.ckpt('mark', 'stop', '--session', 's')
  scratch.ckpt('mark', 'step', '--start', '--session', 's', '--tool', 'Bash')
  const env = { ...envOf(scratch), now: () => Date.now() + later }
  const context = await openContext(env, scratch.root, { create: true })
  const auto = new AutoTurns(
    async () => context,
    () => undefined,
  )
  expect(await auto.record()).toBe(false) // it has looked
  scratch.write({ 'a.txt': 'two\n' })
  expect(await auto.record()).toBe(made)
  closeContext(context)
})

test('what was only looked at, and went with a prune, no turn begins with', async () => {
  const scratch = new Scratch().init({ 'a.txt': 'one\n' })
  fs.mkdirSync(`${scratch.home}/.config/ckpt`, { recursive: true })
  fs.writeFileSync(`${scratch.home}/.config/ckpt/.checkpointrc`, 'watch:\n  autoTurn: true\n')
  scratch.write({ 'mine.txt': 'mine\n' })
  startDaemon(scratch)
  await setTimeout(3500) // it has looked
  scratch.ckpt('prune')
  scratch.write({ 'b.txt': 'b\n' })
  await setTimeout(3500)
  scratch.write({ 'c.txt': 'c\n' })
  for (let i = 0; i < 100 && scratch.ckpt('list', '--all-sessions').turns.length === 0; i++) await setTimeout(100)
  expect(scratch.ckpt('verify').problems).toEqual([])
  scratch.ckpt('undo')
  expect(['a.txt', 'mine.txt', 'b.txt', 'c.txt'].map((name) => scratch.exists(name))).toEqual([true, true, true, false])
})

test('off by default', async () => {
  const scratch = new Scratch().init({ 'a.txt': 'one\n' })
  startDaemon(scratch)
  scratch.write({ 'a.txt': 'two\n' })
  await setTimeout(3500)
  expect(scratch.ckpt('list', '--all-sessions').turns).toEqual([])
})

// What hooks are at work is found by proc(5).
test.skipIf(!fs.existsSync('/proc/self/environ'))(
  'what changes while hooks of git are at work is a turn once they are through',
  async () => {
    const scratch = new Scratch().init({ 'a.txt': 'one\n' })
    fs.mkdirSync(`${scratch.home}/.config/ckpt`, { recursive: true })
    fs.writeFileSync(`${scratch.home}/.config/ckpt/.checkpointrc`, 'watch:\n  autoTurn: true\n')
    const hook = '#!/bin/sh\ntouch ../asked; while test ! -e ../go; do sleep 0.05; done\n'
    fs.writeFileSync(scratch.at('.git/hooks/pre-commit'), hook, { mode: 0o755 })
    startDaemon(scratch)
    await setTimeout(500)
    const child = spawn('git', ['commit', '-q', '--allow-empty', '-m', 'x'], {
      cwd: scratch.root,
      env: { ...scratch.vars, ...me },
    })
    const ended = new Promise((resolve) => child.on('close', resolve))
    while (!fs.existsSync(`${scratch.base}/asked`)) await setTimeout(20)
    scratch.write({ 'a.txt': 'two\n' })
    await setTimeout(3500)
    const turns = () => scratch.ckpt('list', '--all-sessions').turns
    expect(turns()).toEqual([])
    fs.writeFileSync(`${scratch.base}/go`, '')
    await ended
    for (let i = 0; i < 100 && turns().length === 0; i++) await setTimeout(100)
    scratch.ckpt('undo')
    expect(scratch.read('a.txt')).toBe('one\n')
  },
)
