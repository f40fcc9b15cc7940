// What comes after its time, of another turn than the one that runs, or from a place that is gone: it takes nothing of others.
import { execFileSync } from 'node:child_process'
import fs from 'node:fs'
import path from 'node:path'
import { expect, test } from 'vitest'
import { hook, hookLog, storeOf } from '../support/agents.ts'
import { claude, turnsOf } from '../support/claude-session.ts'
import { type Json, Scratch } from '../support/scratch.ts'

const CLIENT = path.resolve(import.meta.dirname, '../../bin/ckpt-hook')

test("a turn's own end that its session's end overtook says how the turn ended", async () => {
  const scratch = new Scratch().init()
  const one = claude(scratch)
  await one.prompt('p1')
  await one.write('p1', 'b.txt')
  await one.say('SessionEnd', { reason: 'other' })
  scratch.write({ 'mine.txt': 'written after the end\n' })
  await one.say('StopFailure', { prompt_id: 'p1', error: 'unknown' })
  await one.say('StopFailure', { prompt_id: 'p1', error: 'unknown' })
  expect(turnsOf(scratch)).toEqual([[1, 'failed', 1]])
  scratch.ckpt('verify')
  scratch.ckpt('undo')
  expect([scratch.exists('b.txt'), scratch.exists('mine.txt')]).toEqual([false, true])
  scratch.ckpt('redo')
  await one.prompt('p2')
  await one.stop('p1') // of an earlier turn that has its end
  expect(turnsOf(scratch)[0]).toEqual([1, 'failed', 1])
})

test("the end of a call that the turn's end overtook takes nothing of the person's", async () => {
  const scratch = new Scratch().init()
  const one = claude(scratch)
  const call = {
    prompt_id: 'p1',
    tool_name: 'Write',
    tool_use_id: 't1',
    tool_input: { file_path: scratch.at('b.txt') },
  }
  await one.prompt('p1')
  await one.say('PreToolUse', call)
  scratch.write({ 'b.txt': 'the agent\n' })
  await one.stop('p1')
  scratch.write({ 'b.txt': 'the agent\nmine\n', 'mine.txt': 'mine\n' })
  await one.say('PostToolUse', call)
  expect(scratch.ckpt('show', '1').files.map((file: Json) => file.path)).toEqual(['b.txt'])
  expect(scratch.run(['undo'])).toMatchObject({ code: 4 })
  expect([scratch.read('b.txt'), scratch.read('mine.txt')]).toEqual(['the agent\nmine\n', 'mine\n'])
  scratch.write({ 'b.txt': 'the agent\n' })
  scratch.ckpt('undo')
  expect([scratch.exists('b.txt'), scratch.exists('mine.txt')]).toEqual([false, true])
})

test('an end that came when the next turn ran already does not end that one', async () => {
  const scratch = new Scratch().init()
  const one = claude(scratch)
  await one.prompt('p1')
  await one.prompt('p2')
  await one.say('StopFailure', { prompt_id: 'p1', error: 'unknown' })
  await one.write('p2', 'b.txt')
  await one.stop('p2')
  expect(turnsOf(scratch)).toEqual([
    [1, 'failed', 0],
    [2, 'completed', 1],
  ])
  scratch.ckpt('undo')
  expect(scratch.exists('b.txt')).toBe(false)
})

test("a turn's own end, come late, takes nothing of what others did since", async () => {
  const scratch = new Scratch().init()
  const [one, other] = [claude(scratch, 'a'), claude(scratch, 'b')]
  await one.prompt('p1')
  await one.say('SessionEnd')
  scratch.write({ 'mine.txt': 'by hand\n' })
  await other.prompt('q1')
  await one.say('StopFailure', { prompt_id: 'p1' })
  await other.write('q1', 'b.txt')
  await other.stop('q1')
  expect(scratch.ckpt('list', '--session', 'a').turns).toMatchObject([{ n: 1, status: 'failed' }])
  scratch.ckpt('undo', '--session', 'b')
  expect([scratch.exists('b.txt'), scratch.exists('mine.txt')]).toEqual([false, true])
})

test.each([
  ['that is further back', ['p1', 'p2', 'p3'], []],
  ['that was abandoned', ['p0', 'p1'], ['p3']],
])('the end of a turn %s ends no other', async (_, before, after) => {
  const scratch = new Scratch().init()
  const one = claude(scratch)
  for (const id of before) await one.prompt(id)
  if (after.length > 0) scratch.ckpt('undo', '--interrupt')
  for (const id of after) await one.prompt(id)
  await one.stop('p1')
  await one.write('p3', 'b.txt')
  await one.stop('p3')
  expect(turnsOf(scratch).at(-1)).toMatchObject([expect.any(Number), 'completed', 1])
  scratch.ckpt('undo')
  expect(scratch.exists('b.txt')).toBe(false)
  await one.say('PreToolUse', { prompt_id: 'p1', tool_name: 'Bash', tool_use_id: 'x' })
  expect(scratch.ckpt('list').turns.some((turn: Json) => turn.status === 'running')).toBe(false)
})

test.each([
  ['with', true],
  ['without', false],
])("a tool call of the turn before is not the running turn's, %s calls of its own", async (_, works) => {
  const scratch = new Scratch().init()
  const one = claude(scratch)
  const call = { prompt_id: 'p1', tool_name: 'Bash', tool_use_id: 't1' }
  await one.prompt('p1')
  await one.say('PreToolUse', call)
  await one.prompt('p2')
  scratch.write({ 'late.txt': 'by a command that went on\n' })
  await one.say('PostToolUse', call)
  if (works) await one.write('p2', 'b.txt')
  await one.stop('p2')
  expect(scratch.ckpt('list').turns[0]).toMatchObject({ n: 2, unclaimed: ['late.txt'] })
  scratch.ckpt('undo')
  expect([scratch.exists('b.txt'), scratch.exists('late.txt')]).toEqual([false, true])
})

test("the end of a call of the turn before is not the running one's, where the agent tells no turn", async () => {
  const scratch = new Scratch().init()
  const one = claude(scratch)
  const call = { tool_name: 'Bash', tool_use_id: 't1' }
  await one.say('UserPromptSubmit', { prompt: 'one' })
  await one.say('PreToolUse', call)
  await one.say('Stop')
  await one.say('UserPromptSubmit', { prompt: 'two' })
  await one.say('PreToolUse', { tool_name: 'Write', tool_use_id: 't2', tool_input: { file_path: scratch.at('b.txt') } })
  scratch.write({ 'b.txt': 'b\n' })
  await one.say('PostToolUse', {
    tool_name: 'Write',
    tool_use_id: 't2',
    tool_input: { file_path: scratch.at('b.txt') },
  })
  scratch.write({ 'mine.txt': 'by hand\n' })
  await one.say('PostToolUse', call)
  await one.say('Stop')
  expect(scratch.ckpt('list').turns[0]).toMatchObject({ n: 2, unclaimed: ['mine.txt'] })
  scratch.ckpt('undo')
  expect([scratch.exists('b.txt'), scratch.exists('mine.txt')]).toEqual([false, true])
})

test('a session id that is no text is refused, and the others go on', async () => {
  const scratch = new Scratch().init()
  const bad = claude(scratch, 'a\ud800b')
  await bad.prompt('p1')
  await bad.stop('p1')
  await claude(scratch, 'good').prompt('p1')
  expect(scratch.ckpt('list', '--sessions').sessions.map((one: Json) => one.id)).toEqual(['good'])
  expect(fs.existsSync(`${storeOf(scratch)}/markers`)).toBe(false)
})

test('the directory of an agent is gone, and was another worktree: nothing is recorded in the one around it', async () => {
  const scratch = new Scratch().init({ 'a.txt': 'a\n' })
  const there = scratch.at('wt')
  scratch.git('worktree', 'add', '-q', there)
  const one = claude(scratch, 'theirs', { vars: { CLAUDE_PROJECT_DIR: there } })
  await one.say('UserPromptSubmit', { cwd: there, prompt_id: 'p1', prompt: 'go' })
  scratch.git('worktree', 'remove', '--force', there)
  await one.say('UserPromptSubmit', { cwd: there, prompt_id: 'p2', prompt: 'go on' })
  expect(scratch.ckpt('list', '--sessions').sessions).toEqual([])
  expect(JSON.stringify(hookLog(scratch))).toContain('is gone')
})

test('what is no payload that was handed over is neither read nor removed', () => {
  const scratch = new Scratch().init({ 'a.txt': 'not committed\n' })
  scratch.run(['hook', '--handed', scratch.at('a.txt'), 'claude'], { input: '' })
  execFileSync(CLIENT, ['--handed', scratch.at('a.txt'), 'claude'], { cwd: scratch.root, env: scratch.vars, input: '' })
  expect(scratch.read('a.txt')).toBe('not committed\n')
  expect(fs.readFileSync(`${scratch.home}/state/ckpt/hook.log`, 'utf8')).toContain('was not handed over')
})

test('a conversation that begins in a worktree of which nothing is recorded leaves nothing there', async () => {
  const scratch = new Scratch().init({ 'a.txt': 'a\n' })
  scratch.ckpt('snapshot')
  const there = `${scratch.base}/linked`
  scratch.git('worktree', 'add', '-q', there)
  const ran = await hook(scratch, 'claude', {
    payload: {
      session_id: 's',
      cwd: there,
      hook_event_name: 'SessionStart',
      source: 'startup',
    },
  })
  expect(ran.code).toBe(0)
  expect(fs.readdirSync(scratch.at('.git/ckpt/worktrees'))).toEqual(['@main'])
  expect(hookLog(scratch)).toEqual([])
})

test.each([
  ['end', { hook_event_name: 'SessionEnd' }],
  ['prompt', { hook_event_name: 'UserPromptSubmit', prompt_id: 'p0', prompt: 'long ago' }],
])('an %s that a killed client handed over long ago ends and replaces no turn that began since', async (_, fields) => {
  const scratch = new Scratch().init()
  const one = claude(scratch)
  await one.prompt('p1')
  await one.stop('p1')
  await one.prompt('p2')
  const directory = `${storeOf(scratch)}/daemon/hooks`
  fs.mkdirSync(directory, { recursive: true })
  const file = `${directory}/left-behind.payload`
  const payload = JSON.stringify({ session_id: 's', cwd: scratch.root, ...fields })
  fs.writeFileSync(file, `claude\n\n${scratch.root}\n\n${payload}\nend\n`)
  const longAgo = Date.now() / 1000 - 70
  fs.utimesSync(file, longAgo, longAgo)
  await one.write('p2', 'b.txt')
  await one.stop('p2')
  expect(fs.existsSync(file)).toBe(false)
  expect(turnsOf(scratch)).toEqual([
    [1, 'completed', 0],
    [2, 'completed', 1],
  ])
  scratch.ckpt('undo')
  expect(scratch.exists('b.txt')).toBe(false)
})
