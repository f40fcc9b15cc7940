// The turn machine heals itself: what agents leave out, send twice, or send late. Payloads here are hand-written.
import { execFileSync } from 'node:child_process'
import fs from 'node:fs'
import path from 'node:path'
import { expect, test } from 'vitest'
import { hook, hookLog, storeOf } from '../support/agents.ts'
import { claude, turnsOf } from '../support/claude-session.ts'
import { startDaemon } from '../support/daemon.ts'
import { type Json, Scratch } from '../support/scratch.ts'

/** Codex's payloads for one turn. */
const codex = (scratch: Scratch) => ({
  say: async (hook_event_name: string, fields: Json = {}) => {
    const ran = await hook(scratch, 'codex', {
      payload: {
        ...{ session_id: 's', turn_id: 't', cwd: scratch.root, hook_event_name },
        ...fields,
      },
    })
    expect(ran).toEqual({ code: 0, stdout: '', stderr: '' })
  },
})

const patch = (tool_use_id: string, verb: string, name: string) => ({
  tool_name: 'apply_patch',
  tool_use_id,
  tool_input: { command: `*** Begin Patch\n*** ${verb} File: ${name}\n+c\n*** End Patch\n` },
})

test("a missing end: the next prompt closes the turn as interrupted, a session's end too", async () => {
  const scratch = new Scratch().init()
  const one = claude(scratch)
  await one.prompt('p1')
  await one.write('p1', 'b.txt')
  await one.prompt('p2')
  await one.say('SessionEnd', { reason: 'other' })
  await one.say('SessionEnd', { reason: 'other' })
  expect(turnsOf(scratch)).toEqual([
    [1, 'interrupted', 1],
    [2, 'interrupted', 0],
  ])
})

test('double ends and retries are one; a step after the end is late', async () => {
  const scratch = new Scratch().init()
  const one = claude(scratch)
  await one.prompt('p1')
  await one.prompt('p1')
  await one.write('p1', 'b.txt')
  await one.stop('p1')
  await one.stop('p1')
  await one.write('p1', 'late.txt')
  expect(turnsOf(scratch)).toEqual([[1, 'completed', 1]])
  scratch.ckpt('undo')
  expect([scratch.exists('b.txt'), scratch.exists('late.txt')]).toEqual([false, true])
})

test('an agent that is sent back to work goes on with its turn: what it did after its first end is undone too', async () => {
  const scratch = new Scratch().init({ 'a.txt': 'mine\n' })
  const one = claude(scratch)
  await one.prompt('p1')
  await one.write('p1', 'b.txt')
  await one.stop('p1')
  scratch.write({ 'a.txt': 'mine, between the two\n' })
  await one.write('p1', 'c.txt')
  await one.stop('p1')
  await one.stop('p1')
  expect(turnsOf(scratch)).toEqual([[1, 'completed', 2]])
  expect(scratch.ckpt('show', '1').turn.unclaimed).toEqual(['a.txt'])
  const { files } = scratch.ckpt('undo')
  expect(files.map(({ path }: Json) => path)).toEqual(['b.txt', 'c.txt'])
  expect([scratch.exists('b.txt'), scratch.exists('c.txt')]).toEqual([false, false])
  expect(scratch.read('a.txt')).toBe('mine, between the two\n')
  scratch.ckpt('redo')
  expect([scratch.exists('b.txt'), scratch.exists('c.txt')]).toEqual([true, true])
  await one.prompt('p2')
  await one.write('p2', 'd.txt')
  await one.stop('p2')
  expect(turnsOf(scratch)).toEqual([
    [1, 'completed', 2],
    [2, 'completed', 1],
  ])
  expect(scratch.ckpt('verify').problems).toEqual([])
})

test('calls without ids that overlap after the first end, one of them without its end, are steps of their own', async () => {
  const scratch = new Scratch().init()
  const one = claude(scratch)
  await one.prompt('p1')
  await one.stop('p1')
  const call = { prompt_id: 'p1', tool_name: 'Write' }
  await one.say('PreToolUse', call)
  await one.say('PreToolUse', call)
  scratch.write({ 'b.txt': 'two at once\n' })
  await one.say('PostToolUse', call)
  await one.stop('p1')
  const { steps } = scratch.ckpt('show', '1').turn
  expect(steps.map(({ n }: Json) => n)).toEqual(['1.1', '1.2'])
  scratch.ckpt('undo')
  expect(scratch.exists('b.txt')).toBe(false)
})

test("a subagent in the background: its calls are its turn's, also after that ended, and do not keep it running", async () => {
  const scratch = new Scratch().init()
  const one = claude(scratch)
  await one.prompt('p1')
  await one.stop('p1')
  const call = {
    prompt_id: 'p1',
    agent_id: 'a1',
    tool_name: 'Write',
    tool_input: { file_path: scratch.at('sub.txt') },
  }
  await one.say('PreToolUse', { ...call, tool_use_id: 'c0' })
  await one.stop('p1')
  scratch.write({ 'amid.txt': 'begun before the end\n' })
  await one.say('PostToolUse', { ...call, tool_use_id: 'c0' })
  expect(turnsOf(scratch)).toEqual([[1, 'completed', 1]])
  await one.say('PreToolUse', { ...call, tool_use_id: 'c1' })
  expect(turnsOf(scratch)).toEqual([[1, 'running', 2]])
  scratch.write({ 'sub.txt': 'sub\n' })
  await one.say('PostToolUse', { ...call, tool_use_id: 'c1' })
  expect(turnsOf(scratch)).toEqual([[1, 'completed', 2]])
  scratch.ckpt('undo')
  expect([scratch.exists('amid.txt'), scratch.exists('sub.txt')]).toEqual([false, false])
  await one.say('PreToolUse', { ...call, tool_use_id: 'c2' })
  expect(scratch.ckpt('status').boundary.turn).toBe(1)
})

/** Of Claude Code's payload at a turn's end: what goes on in the background. */
const background = (...types: string[]) => ({
  background_tasks: types.map((type, i) => ({ id: `b${i}`, type, status: 'running', description: type })),
})

test('a turn that ended with an agent at work in the background is undone once that has ended, or when told to', async () => {
  const scratch = new Scratch().init()
  const one = claude(scratch)
  const refused = () => {
    const { code, document } = scratch.tryCkpt('undo')
    expect([code, document.error?.code]).toEqual([8, 'TURN_RUNNING'])
    expect(document.error.message).toMatch(/at work in the background.*Nothing was changed/)
    expect(document.error.hints[0]).toMatch(/--interrupt/)
  }
  await one.prompt('p1')
  await one.write('p1', 'b.txt')
  await one.say('Stop', { prompt_id: 'p1', ...background('subagent', 'shell') })
  expect(turnsOf(scratch)).toEqual([[1, 'completed', 1]])
  refused()
  await one.prompt('p2', { prompt: notice })
  refused()
  await one.say('Stop', { prompt_id: 'p2', ...background('shell') })
  scratch.ckpt('undo', '--dry-run')

  await one.prompt('p3')
  await one.say('Stop', { prompt_id: 'p3', ...background('workflow') })
  refused()
  await one.say('SessionEnd', { reason: 'other' })
  scratch.ckpt('undo', '--dry-run')

  await one.prompt('p4')
  await one.say('Stop', { prompt_id: 'p4', ...background('subagent', 'subagent') })
  refused()
  await one.prompt('p5')
  await one.say('Stop', { prompt_id: 'p5', ...background('subagent') })
  refused()
  expect(scratch.ckpt('undo', '--to', '1', '--interrupt').warnings).toEqual([
    'Agents that were at work in the background may go on writing.',
  ])
  expect(scratch.exists('b.txt')).toBe(false)
  expect(scratch.ckpt('verify').ok).toBe(true)
  expect(hookLog(scratch)).toEqual([])
})

const notice = `<task-notification>
<task-id>a1</task-id>
<summary>Agent "look" finished</summary>
</task-notification>`

test('news of a task in the background are no prompt: what the agent does then is of the turn that it ended', async () => {
  const scratch = new Scratch().init({ 'a.txt': 'mine\n', 'b.txt': 'mine\n' })
  const one = claude(scratch)
  await one.prompt('p1')
  await one.write('p1', 'c.txt')
  await one.stop('p1')
  scratch.write({ 'a.txt': 'mine, while it waited\n' })
  await one.prompt('p2', { prompt: notice })
  await one.prompt('p2', { prompt: notice })
  await one.write('p2', 'd.txt')
  await one.stop('p2')
  await one.prompt('p3', { prompt: notice }) // nothing comes of it
  await one.stop('p3')
  scratch.write({ 'b.txt': 'mine, after it\n' })
  expect(turnsOf(scratch)).toEqual([[1, 'completed', 2]])
  const { turn } = scratch.ckpt('show', '1')
  expect([turn.prompt, turn.unclaimed]).toEqual(['do p1', ['a.txt']])
  const { files } = scratch.ckpt('undo')
  expect(files.map(({ path }: Json) => path)).toEqual(['c.txt', 'd.txt'])
  expect([scratch.exists('c.txt'), scratch.exists('d.txt')]).toEqual([false, false])
  expect([scratch.read('a.txt'), scratch.read('b.txt')]).toEqual(['mine, while it waited\n', 'mine, after it\n'])
  scratch.ckpt('redo')
  expect([scratch.exists('c.txt'), scratch.exists('d.txt')]).toEqual([true, true])
  await one.prompt('p4')
  await one.write('p4', 'e.txt')
  await one.stop('p4')
  expect(turnsOf(scratch)).toEqual([
    [1, 'completed', 2],
    [2, 'completed', 1],
  ])
  expect(hookLog(scratch)).toEqual([])
})

test('news of a task in the background of an undone turn clear no boundary; of a session without turns they open one', async () => {
  const scratch = new Scratch().init()
  const one = claude(scratch)
  await one.prompt('p1')
  await one.write('p1', 'c.txt')
  await one.stop('p1')
  scratch.ckpt('undo')
  await one.prompt('p2', { prompt: notice })
  await one.write('p2', 'd.txt')
  await one.stop('p2')
  expect(scratch.ckpt('redo').boundary).toBeNull()
  expect([scratch.exists('c.txt'), scratch.exists('d.txt')]).toEqual([true, true])
  const other = claude(scratch, 'other')
  await other.prompt('q1', { prompt: notice })
  await other.write('q1', 'e.txt')
  await other.stop('q1')
  const { turns } = scratch.ckpt('list', '--session', 'other')
  expect(turns.map((turn: Json) => [turn.prompt, turn.status, turn.steps.length])).toEqual([
    ['Agent "look" finished', 'completed', 1],
  ])
  expect(hookLog(scratch)).toEqual([])
})

test('a turn that was interrupted goes on with news of a task in the background, and ends with them', async () => {
  const scratch = new Scratch().init()
  const one = claude(scratch)
  await one.prompt('p1')
  await one.write('p1', 'c.txt')
  scratch.write({ 'mine.txt': 'mine\n' })
  await one.prompt('p2', { prompt: notice })
  await one.write('p2', 'd.txt')
  await one.stop('p2')
  expect(turnsOf(scratch)).toEqual([[1, 'completed', 2]])
  expect(scratch.ckpt('undo').files.map(({ path }: Json) => path)).toEqual(['c.txt', 'd.txt'])
  expect(scratch.exists('mine.txt')).toBe(true)
})

test('a turn that had ended is not interrupted by a prompt that comes while its subagent is at work', async () => {
  const scratch = new Scratch().init()
  const one = claude(scratch)
  const call = { agent_id: 'a1', tool_name: 'Bash', tool_use_id: 'c1' }
  await one.prompt('p1')
  await one.stop('p1')
  await one.say('PreToolUse', { ...call, prompt_id: 'p1' })
  await one.prompt('p2')
  scratch.write({ 'sub.txt': 'sub\n' })
  await one.say('PostToolUse', { ...call, prompt_id: 'p2' }) // the id of the prompt that is answered meanwhile
  await one.stop('p2')
  expect(turnsOf(scratch)).toEqual([
    [1, 'completed', 1],
    [2, 'completed', 1],
  ])
  scratch.ckpt('undo')
  expect(scratch.exists('sub.txt')).toBe(false)
})

test.each([true, false])("a subagent's call that goes on over the next prompt (it ends then: %s)", async (ends) => {
  const scratch = new Scratch().init()
  const one = claude(scratch)
  const call = { agent_id: 'a1', tool_name: 'Bash', tool_use_id: 'c1' }
  await one.prompt('p1')
  await one.stop('p1')
  await one.say('PreToolUse', { ...call, prompt_id: 'p1' })
  scratch.write({ 'early.txt': 'before that prompt\n' })
  await one.prompt('p2')
  scratch.write({ 'sub.txt': 'after it\n' })
  if (ends) await one.say('PostToolUse', { ...call, prompt_id: 'p2' })
  await one.stop('p2')
  expect(scratch.ckpt('show', '1').turn.unclaimed).toEqual(ends ? [] : ['early.txt'])
  scratch.ckpt('undo')
  expect([scratch.exists('early.txt'), scratch.exists('sub.txt')]).toEqual([true, false])
  scratch.ckpt('undo')
  expect(scratch.exists('early.txt')).toBe(!ends)
})

test("a subagent's call that goes on over a whole turn is that turn's from its end on", async () => {
  const scratch = new Scratch().init()
  const one = claude(scratch)
  const call = { agent_id: 'a1', tool_name: 'Bash', tool_use_id: 'c1' }
  await one.prompt('p1')
  await one.stop('p1')
  await one.say('PreToolUse', { ...call, prompt_id: 'p1' })
  scratch.write({ 'early.txt': 'before that prompt\n' })
  await one.prompt('p2')
  await one.write('p2', 'b.txt')
  await one.stop('p2')
  scratch.write({ 'late.txt': 'after its end\n' })
  await one.say('PostToolUse', { ...call, prompt_id: 'p2' })
  scratch.write({ 'mine.txt': 'mine\n' })
  await one.say('PostToolUse', { ...call, prompt_id: 'p2', tool_use_id: 'c0' }) // nobody knows since when
  expect(turnsOf(scratch)).toEqual([
    [1, 'completed', 1],
    [2, 'completed', 2],
  ])
  scratch.ckpt('undo')
  expect(['early.txt', 'b.txt', 'late.txt'].map((name) => scratch.exists(name))).toEqual([true, false, false])
  scratch.ckpt('undo')
  expect([scratch.exists('early.txt'), scratch.exists('mine.txt')]).toEqual([false, true])
})

test("a call that failed without a word is over when the agent's next one begins: what the person does to its file stays", async () => {
  const scratch = new Scratch().init({ 'a.txt': 'one\n' })
  const one = codex(scratch)
  await one.say('UserPromptSubmit', { prompt: 'do it' })
  await one.say('PreToolUse', patch('t1', 'Update', 'a.txt'))
  await one.say('PreToolUse', patch('t2', 'Add', 'b.txt'))
  scratch.write({ 'b.txt': 'b\n' })
  await one.say('PostToolUse', patch('t2', 'Add', 'b.txt'))
  scratch.write({ 'a.txt': 'mine\n' })
  await one.say('Stop')
  expect(scratch.ckpt('show', '1').turn.unclaimed).toEqual(['a.txt'])
  scratch.ckpt('undo')
  expect([scratch.exists('b.txt'), scratch.read('a.txt')]).toEqual([false, 'mine\n'])
})

test.each([
  ["apply_patch <<'EOF'\n", 'c.txt'],
  ['applypatch <<EOF\n', 'c.txt'],
  ['cd sub && apply_patch <<"EOF"\n', 'sub/c.txt'],
  ["cd 'sub' && apply_patch << 'PATCH'\n", 'sub/c.txt'],
])(
  "a patch that a shell command hands over, of whose end Codex says nothing, is the turn's: %j",
  async (line, name) => {
    const scratch = new Scratch().init({ 'sub/a.txt': 'one\n' })
    const one = codex(scratch)
    const { tool_use_id, tool_input } = patch('t1', 'Add', 'c.txt')
    await one.say('UserPromptSubmit', { prompt: 'do it' })
    await one.say('PreToolUse', {
      tool_name: 'Bash',
      tool_use_id,
      tool_input: { command: `${line}${tool_input.command}` },
    })
    scratch.write({ [name]: 'c\n', 'mine.txt': 'mine\n' })
    await one.say('Stop')
    scratch.ckpt('undo')
    expect([scratch.exists(name), scratch.exists('mine.txt')]).toEqual([false, true])
  },
)

test('a call that was refused, of which no end comes, makes no later call of its tool its own (Gemini CLI)', async () => {
  const scratch = new Scratch().init({ 'mine.txt': 'mine\n', 'a.txt': 'one\n' })
  let second = 10
  const say = (hook_event_name: string, fields: Json = {}) => {
    const timestamp = `2026-01-01T00:00:${second++}.000Z`
    return hook(scratch, 'gemini', {
      payload: { session_id: 's', cwd: scratch.root, hook_event_name, timestamp, ...fields },
    })
  }
  const shell = (command: string) => ({ tool_name: 'run_shell_command', tool_input: { command } })
  const write = (name: string) => ({
    tool_name: 'write_file',
    tool_input: { file_path: scratch.at(name), content: '' },
  })
  const call = async (fields: Json, files: Record<string, string>) => {
    await say('BeforeTool', fields)
    scratch.write(files)
    await say('AfterTool', fields)
  }
  await say('BeforeAgent', { prompt: 'go' })
  await say('BeforeTool', shell('rm -rf /'))
  await say('BeforeTool', write('refused.txt'))
  scratch.write({ 'mine.txt': 'mine, changed\n' })
  await call(shell('touch b.txt'), { 'b.txt': '' })
  scratch.write({ 'mine.txt': 'mine, changed again\n' })
  await call(write('a.txt'), { 'a.txt': 'two\n' })
  // At once, the first ends first.
  await say('BeforeTool', write('c.txt'))
  await say('BeforeTool', write('d.txt'))
  scratch.write({ 'c.txt': '', 'd.txt': '' })
  await say('AfterTool', write('c.txt'))
  await say('AfterTool', write('d.txt'))
  await say('AfterAgent')
  const [turn] = scratch.ckpt('list').turns
  expect(turn.steps.map(({ paths }: Json) => paths)).toEqual([[], [], ['b.txt'], ['a.txt'], ['c.txt'], ['d.txt']])
  expect(turn.unclaimed).toEqual(['mine.txt'])
  scratch.ckpt('undo')
  expect(fs.readdirSync(scratch.root).sort()).toEqual(['.git', 'a.txt', 'mine.txt'])
  expect([scratch.read('a.txt'), scratch.read('mine.txt')]).toEqual(['one\n', 'mine, changed again\n'])
})

test('calls of one tool that begin and end in one millisecond are steps of their own (Gemini CLI)', async () => {
  const scratch = new Scratch().init()
  const say = async (hook_event_name: string, fields: Json = {}) => {
    const common = { session_id: 's', cwd: scratch.root, timestamp: '2026-01-01T00:00:00.000Z' }
    const ran = await hook(scratch, 'gemini', { payload: { ...common, hook_event_name, ...fields } })
    expect(ran).toEqual({ code: 0, stdout: '', stderr: '' })
  }
  const calls = ['b.txt', 'c.txt'].map((name) => ({
    tool_name: 'run_shell_command',
    tool_input: { command: `echo > ${name}` },
  }))
  await say('BeforeAgent', { prompt: 'do it' })
  for (const call of calls) await say('BeforeTool', call)
  scratch.write({ 'b.txt': 'b\n' })
  await say('AfterTool', calls[0])
  scratch.write({ 'c.txt': 'c\n' })
  for (const call of [calls[1], calls[1]]) await say('AfterTool', call)
  await say('AfterAgent')
  const { turn } = scratch.ckpt('show', '1')
  expect([turn.steps.length, turn.unclaimed]).toEqual([2, []])
  scratch.ckpt('undo')
  expect([scratch.exists('b.txt'), scratch.exists('c.txt')]).toEqual([false, false])
})

test.each([true, false])(
  "Codex's notify ends its own turn, and none that began since (its hooks ran too: %s)",
  async (both) => {
    const scratch = new Scratch().init()
    const one = codex(scratch)
    const notify = (turn: string) =>
      hook(scratch, 'codex-notify', {
        payload: Buffer.alloc(0),
        event: JSON.stringify({ type: 'agent-turn-complete', 'thread-id': 's', 'turn-id': turn, cwd: scratch.root }),
      })
    const write = async (turn_id: string, name: string) => {
      await one.say('PreToolUse', { turn_id, ...patch(name, 'Add', name) })
      scratch.write({ [name]: `${name}\n` })
      await one.say('PostToolUse', { turn_id, ...patch(name, 'Add', name) })
    }
    await one.say('UserPromptSubmit', { turn_id: 't1', prompt: 'one' })
    await write('t1', 'b.txt')
    if (both) await one.say('Stop', { turn_id: 't1' })
    else await notify('t1')
    await one.say('UserPromptSubmit', { turn_id: 't2', prompt: 'two' })
    await notify('t1')
    await write('t2', 'c.txt')
    if (both) await one.say('Stop', { turn_id: 't2' })
    await notify('t2')
    expect(turnsOf(scratch)).toEqual([
      [1, 'completed', 1],
      [2, 'completed', 1],
    ])
    scratch.ckpt('undo')
    expect([scratch.exists('b.txt'), scratch.exists('c.txt')]).toEqual([true, false])
    expect(scratch.ckpt('verify').problems).toEqual([])
  },
)

test.each([
  ['claude', 'AskUserQuestion'],
  ['codex', 'request_user_input'],
  ['gemini', 'ask_user'],
  ['gemini', 'exit_plan_mode'],
  ['gemini', 'invoke_agent'],
  ['opencode', 'question'],
  ['opencode', 'plan_exit'],
])('%s: %s is no step: what the person does while it waits stays', async (agent, waits) => {
  const scratch = new Scratch().init({ 'a.txt': 'one\n' })
  const say = async (event: string, fields: Json = {}) => {
    const hooks = { session_id: 's', turn_id: 't', prompt_id: 't', cwd: scratch.root, timestamp: event, ...fields }
    const plugin = {
      directory: scratch.root,
      input: { sessionID: 's', tool: fields.tool_name, callID: fields.tool_name },
    }
    const ran = await hook(scratch, agent, {
      payload: { hook_event_name: event, ...(agent === 'opencode' ? plugin : hooks) },
    })
    expect(ran).toEqual({ code: 0, stdout: '', stderr: '' })
  }
  const [prompt, begins, ends] = {
    gemini: ['BeforeAgent', 'BeforeTool', 'AfterTool'],
    opencode: ['chat.message', 'tool.execute.before', 'tool.execute.after'],
  }[agent] ?? ['UserPromptSubmit', 'PreToolUse', 'PostToolUse']
  const call = async (tool_name: string, name: string) => {
    await say(begins!, { tool_name, tool_use_id: tool_name })
    scratch.write({ [name]: `${tool_name}\n` })
    await say(ends!, { tool_name, tool_use_id: tool_name })
  }
  await say(prompt!, { prompt: 'do it' })
  await call(waits, 'a.txt')
  await call('writes', 'b.txt')
  scratch.ckpt('undo', '--interrupt')
  expect([scratch.exists('b.txt'), scratch.read('a.txt')]).toEqual([false, `${waits}\n`])
})

test('a skill that runs as a subagent claims nothing beside that one; one that does not claims what its commands change', async () => {
  const scratch = new Scratch().init({ 'a.txt': 'one\n' })
  const one = claude(scratch)
  const skill = (tool_use_id: string) => ({ prompt_id: 'p1', tool_name: 'Skill', tool_use_id })
  await one.prompt('p1')
  await one.say('PreToolUse', skill('t1'))
  await one.write('p1', 'b.txt', { agent_id: 'a1' })
  scratch.write({ 'a.txt': 'mine\n' })
  await one.say('PostToolUse', { ...skill('t1'), tool_response: { success: true, status: 'forked', agentId: 'a1' } })
  await one.say('PreToolUse', skill('t2'))
  scratch.write({ 'c.txt': 'by a command in the skill\n' })
  await one.say('PostToolUse', { ...skill('t2'), tool_response: { success: true, allowedTools: [] } })
  await one.stop('p1')
  expect(scratch.ckpt('show', '1').turn.unclaimed).toEqual(['a.txt'])
  scratch.ckpt('undo')
  expect([scratch.exists('b.txt'), scratch.exists('c.txt'), scratch.read('a.txt')]).toEqual([false, false, 'mine\n'])
})

test('a prompt that was not heard: its first tool call opens the turn', async () => {
  const scratch = new Scratch().init()
  const one = claude(scratch)
  await one.prompt('p1')
  await one.stop('p1')
  await one.write('p2', 'b.txt')
  await one.prompt('p2') // it was only slow
  await one.stop('p2')
  expect(turnsOf(scratch)).toEqual([
    [1, 'completed', 0],
    [2, 'completed', 1],
  ])
  scratch.ckpt('undo')
  expect(scratch.exists('b.txt')).toBe(false)
})

test('hooks that begin in the middle of a conversation: nothing until the first prompt, and no error', async () => {
  const scratch = new Scratch().init()
  const one = claude(scratch)
  await one.write('p0', 'b.txt')
  await one.stop('p0')
  expect(scratch.ckpt('list', '--sessions').sessions).toEqual([])
  await one.prompt('p1')
  expect(turnsOf(scratch)).toEqual([[1, 'running', 0]])
  expect(hookLog(scratch)).toEqual([])
})

test('a late step of an undone turn leaves the boundary, the next prompt clears it', async () => {
  const scratch = new Scratch().init()
  const one = claude(scratch)
  await one.prompt('p1')
  await one.write('p1', 'b.txt')
  await one.stop('p1')
  scratch.ckpt('undo')
  await one.write('p9', 'c.txt')
  expect(scratch.ckpt('status').boundary.turn).toBe(1)
  await one.prompt('p2')
  expect(scratch.ckpt('status').boundary).toBeNull()
  expect(turnsOf(scratch)).toEqual([[2, 'running', 0]])
})

test('a fork has its parent; a session of its own has none', async () => {
  const scratch = new Scratch().init()
  const old = claude(scratch, 'old')
  await old.say('SessionStart', { source: 'startup' })
  await old.prompt('p1')
  await old.stop('p1')
  await old.say('SessionStart', { source: 'resume' })
  await claude(scratch, 'own').say('SessionStart', { source: 'startup' })
  await claude(scratch, 'own').prompt('p2')
  await claude(scratch, 'fork').prompt('p3')
  await claude(scratch, 'later').prompt('p4')
  const { sessions } = scratch.ckpt('list', '--sessions')
  const parents = Object.fromEntries(sessions.map((one: Json) => [one.id, one.parent]))
  expect(parents).toEqual({ old: null, own: null, fork: 'old', later: null })
})

test("a compaction that was asked for is a turn of that kind; one of the agent's own is not", async () => {
  const scratch = new Scratch().init()
  const one = claude(scratch)
  await one.prompt('p1')
  await one.say('PreCompact', { trigger: 'auto', prompt_id: 'p1' })
  await one.say('SessionStart', { source: 'compact' })
  await one.write('p1', 'b.txt')
  await one.stop('p1')
  await one.say('PreCompact', { trigger: 'manual' })
  const { turns } = scratch.ckpt('list')
  expect(turns.map((turn: Json) => [turn.n, turn.kind ?? 'prompt', turn.status])).toEqual([
    [2, 'compaction', 'completed'],
    [1, 'prompt', 'completed'],
  ])
})

test('hooks that are installed in two scopes tell of everything twice: it is recorded once', async () => {
  const scratch = new Scratch().init()
  const twice = async (agent: string, payload: Json, event?: string) => {
    for (let i = 0; i < 2; i++) await hook(scratch, agent, { payload, ...(event === undefined ? {} : { event }) })
  }
  const kinds = (session: string) =>
    scratch
      .ckpt('list', '--session', session)
      .turns.toReversed()
      .map((turn: Json) => [turn.kind ?? 'prompt', turn.status])
  for (const [agent, idOfTurn] of [
    ['claude', 'prompt_id'],
    ['codex', 'turn_id'],
  ] as const) {
    const say = (hook_event_name: string, turn: string, more: Json = {}) =>
      twice(agent, { session_id: agent, cwd: scratch.root, hook_event_name, [idOfTurn]: turn, ...more })
    await say('UserPromptSubmit', 'p1', { prompt: 'one' })
    await say('Stop', 'p1')
    for (const turn of ['c1', 'c2']) await say('PreCompact', turn, { trigger: 'manual' })
    const compaction = ['compaction', 'completed']
    expect(kinds(agent)).toEqual([['prompt', 'completed'], compaction, compaction])
  }
  const cursor = { conversation_id: 'cursor', generation_id: 'g1', workspace_roots: [scratch.root] }
  const say = (event: string, more: Json = {}) => twice('cursor', { ...cursor, ...more }, event)
  await say('beforeSubmitPrompt', { prompt: 'one' })
  const edit = async (text: string) => {
    scratch.write({ 'f.txt': text })
    await say('afterFileEdit', { file_path: scratch.at('f.txt'), edits: [{ old_string: '', new_string: 'x' }] })
  }
  const shell = async (name: string) => {
    scratch.write({ [name]: 'by the command\n' })
    await say('afterShellExecution', { command: 'make', output: '' })
  }
  await edit('x')
  await edit('xx') // the same once more
  await shell('one')
  await shell('two')
  await say('stop', { status: 'completed' })
  const steps = scratch.ckpt('show', '1', '--session', 'cursor').turn.steps
  expect(steps.map((step: Json) => [step.n, step.paths])).toEqual([
    ['1.1', ['f.txt']],
    ['1.2', ['f.txt']],
    ['1.3', ['one']],
    ['1.4', ['two']],
  ])
})

test("a subagent's prompts and stops are no turns, its calls are steps", async () => {
  const scratch = new Scratch().init()
  const one = claude(scratch)
  await one.prompt('p1')
  await one.prompt('p2', { agent_id: 'a1' })
  await one.write('p1', 'b.txt', { agent_id: 'a1' })
  await one.say('Stop', { prompt_id: 'p1', agent_id: 'a1' })
  expect(turnsOf(scratch)).toEqual([[1, 'running', 1]])
})

test("the message id is the one that a rewind takes: the transcript's line", async () => {
  const scratch = new Scratch().init()
  const one = claude(scratch)
  const transcript_path = `${scratch.home}/t.jsonl`
  const line = (row: Json) => `${JSON.stringify({ sessionId: 's', ...row })}\n`
  await one.prompt('p1', { transcript_path })
  const written = [
    line({ type: 'user', uuid: 'u-0', promptId: 'p0', message: { content: 'p1' } }),
    line({ type: 'user', uuid: 'u-1', promptId: 'p1', message: { content: 'do p1' } }),
    line({ type: 'user', uuid: 'u-2', promptId: 'p1', message: { content: [{ type: 'tool_result' }] } }),
  ]
  fs.writeFileSync(transcript_path, written.join(''))
  await one.say('Stop', { prompt_id: 'p1', transcript_path })
  expect(scratch.ckpt('list').turns[0].messageId).toBe('u-1')
  scratch.write({ 'b.txt': 'two\n' })
  expect(scratch.ckpt('undo', '--dry-run').messageId).toBe('u-1')
  execFileSync('mkfifo', [`${scratch.home}/pipe`])
  await one.prompt('p2', { transcript_path: `${scratch.home}/pipe` }) // would wait for ever
  expect(scratch.ckpt('list').turns[0].messageId).toBe('p2')
})

test.each(['the next prompt', "the session's end"])(
  '%s has the message id of the turn that it closes',
  async (which) => {
    const scratch = new Scratch().init()
    const one = claude(scratch)
    const transcript_path = `${scratch.home}/t.jsonl`
    await one.prompt('p1', { transcript_path })
    await one.write('p1', 'b.txt')
    fs.writeFileSync(
      transcript_path,
      `${JSON.stringify({ sessionId: 's', type: 'user', uuid: 'u-1', promptId: 'p1', message: { content: 'do p1' } })}\n`,
    )
    if (which === 'the next prompt') await one.prompt('p2', { transcript_path })
    else await one.say('SessionEnd', { prompt_id: 'p9', transcript_path })
    const { turn } = scratch.ckpt('show', '1')
    expect([turn.status, turn.messageId]).toEqual(['interrupted', 'u-1'])
  },
)

test("a compaction that comes with the id of another prompt is none of that one's", async () => {
  const scratch = new Scratch().init()
  const one = claude(scratch)
  const transcript_path = `${scratch.home}/t.jsonl`
  fs.writeFileSync(
    transcript_path,
    `${JSON.stringify({ sessionId: 's', type: 'user', uuid: 'u-1', promptId: 'p1', message: { content: 'do p1' } })}\n`,
  )
  await one.prompt('p1')
  await one.say('Stop', { prompt_id: 'p1', transcript_path })
  await one.say('PreCompact', { prompt_id: 'p1', trigger: 'manual', transcript_path }) // "Summarize from here" in its rewind
  const { turns } = scratch.ckpt('list')
  expect(turns.map((turn: Json) => [turn.prompt, turn.messageId])).toEqual([
    ['/compact', null],
    ['do p1', 'u-1'],
  ])
})

test("the agent's cd into a nested repository changes nothing, into a worktree of the same one it does", async () => {
  const scratch = new Scratch().init()
  scratch.write({ 'nested/x.txt': 'x\n' })
  execFileSync('git', ['init', '-q'], { cwd: scratch.at('nested'), env: scratch.vars })
  scratch.git('worktree', 'add', '-q', `${scratch.base}/other`)
  const one = claude(scratch, 's', { vars: { CLAUDE_PROJECT_DIR: scratch.root } })
  await one.prompt('p1')
  await one.say('Stop', { prompt_id: 'p1', cwd: scratch.at('nested') })
  expect(fs.existsSync(scratch.at('nested/.git/ckpt'))).toBe(false)
  expect(turnsOf(scratch)).toEqual([[1, 'completed', 0]])
  await one.prompt('p2', { cwd: `${scratch.base}/other` })
  expect(turnsOf(scratch)).toEqual([[1, 'completed', 0]])
  expect(turnsOf(scratch, '--cwd', `${scratch.base}/other`)).toEqual([[1, 'running', 0]])
  // A directory that the agent removed behind itself is still in its worktree.
  await one.prompt('p3', { cwd: scratch.at('gone/away') })
  expect(turnsOf(scratch)).toHaveLength(2)
  // So is one in whose place a file is now; and a transcript that cannot be there is none.
  await one.prompt('p4', { cwd: scratch.at('a.txt/in/it'), transcript_path: scratch.at('a.txt/t.jsonl') })
  expect(hookLog(scratch)).toEqual([])
  expect(turnsOf(scratch)).toHaveLength(3)
})

test('switched off it is nothing at all: no store, no word', async () => {
  const scratch = new Scratch().init()
  await claude(scratch, 's', { vars: { CKPT_DISABLED: '1' } }).prompt('p1')
  fs.mkdirSync(`${scratch.home}/.config/ckpt`, { recursive: true })
  fs.writeFileSync(`${scratch.home}/.config/ckpt/.checkpointrc`, '{"enableFileCheckpointing": false}')
  await claude(scratch).prompt('p1')
  expect(fs.existsSync(scratch.at('.git/ckpt'))).toBe(false)
})

test('a plain directory without a store: nothing, and nothing is made', async () => {
  const scratch = new Scratch()
  scratch.write({ 'a.txt': 'one\n' })
  await claude(scratch).prompt('p1')
  expect(fs.existsSync(`${scratch.home}/state`)).toBe(false)
  scratch.ckpt('init')
  await claude(scratch).prompt('p1')
  expect(turnsOf(scratch)).toEqual([[1, 'running', 0]])
})

test('in the root of the file system or a home directory: nothing, unless it is a repository that cannot be recorded', async () => {
  const scratch = new Scratch()
  for (const cwd of ['/', scratch.home]) {
    const ran = await hook(scratch, 'claude', {
      payload: {
        session_id: 's',
        cwd,
        hook_event_name: 'UserPromptSubmit',
        prompt: 'go',
        prompt_id: 'p1',
      },
    })
    expect(ran).toEqual({ code: 0, stdout: '', stderr: '' })
  }
  expect(fs.existsSync(`${scratch.home}/state`)).toBe(false)
  execFileSync('git', ['init', '-q', scratch.home])
  await claude(scratch).prompt('p1', { cwd: scratch.home })
  expect(fs.existsSync(`${scratch.home}/.git/ckpt`)).toBe(false)
  const log = fs.readFileSync(`${scratch.home}/state/ckpt/hook.log`, 'utf8')
  expect(JSON.parse(log)).toMatchObject({ code: 'BAD_ROOT', where: 'claude UserPromptSubmit' })
})

test('a broken payload is logged whole, shown by status, and nothing is said to the agent', async () => {
  const scratch = new Scratch().init()
  await claude(scratch).prompt('p1')
  const broken = ['{"session_id":', '', '[]', '{"session_id":7}', '\u0000', '{"session_id":"a\\u0007b"}']
  for (const payload of broken) {
    const ran = scratch.run(['hook', 'claude'], { input: payload })
    expect(ran).toEqual({ code: 0, stdout: '', stderr: '' })
  }
  const bytes = Buffer.from([0x7b, 0xff, 0xfe])
  expect(await hook(scratch, 'codex', { payload: bytes })).toEqual({ code: 0, stdout: '', stderr: '' })
  const log = hookLog(scratch)
  expect(log.map(({ payload }) => payload)).toEqual([...broken, undefined])
  expect(Buffer.from(log.at(-1)!.payloadBase64, 'base64')).toEqual(bytes)
  expect(scratch.ckpt('status').lastHookError).toMatchObject({ where: 'codex', code: 'BAD_MARKER' })
  expect(scratch.run(['status']).stdout).toMatch(/A hook failed at .*\(codex\): The payload is not understood/)
  expect(scratch.run(['hook', 'nobody'], { input: '{}' })).toEqual({ code: 0, stdout: '', stderr: '' })
})

test('before a worktree is known, errors go to the log that all share', async () => {
  const scratch = new Scratch().init()
  expect(scratch.run(['hook', 'claude'], { input: 'x' }).code).toBe(0)
  expect(fs.existsSync(scratch.at('.git/ckpt'))).toBe(false)
  expect(scratch.ckpt('status').lastHookError).toMatchObject({ where: 'claude', cwd: scratch.root })
})

test('Cursor gets its answer, whatever happens', async () => {
  const scratch = new Scratch().init()
  for (const [input, vars] of [
    ['{', {}],
    ['{}', { CKPT_DISABLED: '1' }],
  ] as const) {
    const ran = scratch.run(['hook', 'cursor', 'beforeSubmitPrompt'], { input, vars })
    expect(ran).toEqual({ code: 0, stdout: '{"continue":true}\n', stderr: '' })
  }
})

test('what is remembered between payloads is only a hint: damaged, it is nothing', async () => {
  const scratch = new Scratch().init()
  const one = claude(scratch)
  await one.prompt('p1')
  const file = `${storeOf(scratch)}/agents.jsonl`
  fs.writeFileSync(file, 'no note\n{"agent":"claude","ses')
  await one.say('SessionStart', { source: 'resume' })
  // A line that was cut short does not take the next one with it.
  expect(fs.readFileSync(file, 'utf8').split('\n').at(-2)).toMatch(/^\{"agent":"claude".*"resume"\}$/)
  await one.prompt('p2')
  expect(turnsOf(scratch)).toHaveLength(2)
  expect(hookLog(scratch)).toEqual([])
})

test('a turn that goes on in another worktree of the repository is one of both, with a daemon and without', async () => {
  for (const daemon of [false, true]) {
    const scratch = new Scratch().init({ 'a.txt': 'a\n', 'b.txt': 'b\n', '.gitignore': 'in/\n' })
    fs.mkdirSync(`${scratch.home}/.config/ckpt`, { recursive: true })
    fs.writeFileSync(`${scratch.home}/.config/ckpt/.checkpointrc`, 'watch:\n  start: never\n')
    if (daemon) startDaemon(scratch)
    const inner = scratch.at('in')
    const vars = { CLAUDE_PROJECT_DIR: scratch.root }
    const say = async (cwd: string, hook_event_name: string, more: Json = {}) => {
      const payload = { session_id: 'A', cwd, hook_event_name, prompt_id: 'p1', ...more }
      const line = [path.resolve('bin/ckpt-hook'), 'claude']
      execFileSync(line[0]!, line.slice(1), {
        cwd: scratch.root,
        env: { ...scratch.vars, ...vars },
        input: JSON.stringify(payload),
      })
    }
    const call = (tool_use_id: string) => ({ tool_name: 'Bash', tool_use_id, tool_input: { command: 'x' } })
    await say(scratch.root, 'UserPromptSubmit', { prompt: 'in both' })
    await say(scratch.root, 'PreToolUse', call('t1'))
    scratch.write({ 'a.txt': 'by the agent\n' })
    scratch.git('worktree', 'add', '-q', inner)
    await say(inner, 'PostToolUse', call('t1')) // its shell ended there
    await say(inner, 'PreToolUse', call('t2'))
    scratch.write({ 'in/b.txt': 'by the agent\n' })
    await say(inner, 'PostToolUse', call('t2'))
    await say(inner, 'Stop')
    const there = (...args: string[]) => JSON.parse(scratch.run([...args, '--json'], { cwd: inner }).stdout)
    const told = ({ turns }: Json) => turns.map((one: Json) => [one.n, one.prompt, one.status])
    expect(told(scratch.ckpt('list'))).toEqual([[1, 'in both', 'completed']])
    expect(told(there('list'))).toEqual([[1, 'in both', 'completed']])
    expect(scratch.ckpt('show', '1').turn.steps).toMatchObject([{ tool: 'Bash', paths: ['a.txt'] }])
    there('undo')
    expect([scratch.read('a.txt'), scratch.read('in/b.txt')]).toEqual(['by the agent\n', 'b\n'])
    scratch.ckpt('undo')
    expect(scratch.read('a.txt')).toBe('a\n')
  }
})

test('a session that goes to another worktree and back has its turns there whole', async () => {
  const scratch = new Scratch().init({ 'a.txt': 'a\n' })
  const there = `${scratch.base}/linked`
  scratch.git('worktree', 'add', '-q', there)
  const told = (cwd: string) => {
    const { turns } = JSON.parse(scratch.run(['list', '--json'], { cwd }).stdout)
    return turns.map((turn: Json) => [turn.n, turn.prompt, turn.status]).toReversed()
  }
  const one = claude(scratch, 's', { vars: { CLAUDE_PROJECT_DIR: scratch.root } })
  const work = async (prompt_id: string) => {
    await one.prompt(prompt_id)
    const call = { prompt_id, cwd: there, tool_name: 'Bash', tool_use_id: `t-${prompt_id}`, tool_input: {} }
    await one.say('PreToolUse', call)
    fs.writeFileSync(`${there}/${prompt_id}.txt`, 'by the agent\n')
    await one.say('PostToolUse', call)
  }
  for (const id of ['p1', 'p2']) {
    await work(id)
    await one.say('Stop', { prompt_id: id, cwd: there })
  }
  const both = [
    [1, 'do p1', 'completed'],
    [2, 'do p2', 'completed'],
  ]
  expect(told(there)).toEqual(both)
  await work('p3')
  await one.stop('p3')
  expect(told(there)).toEqual([...both, [3, 'do p3', 'completed']])
  await work('p4')
  await one.prompt('p5') // no hook tells of an interrupt
  await one.stop('p5')
  expect(told(there).at(-1)).toEqual([4, 'do p4', 'running'])
  await one.say('SessionEnd', { reason: 'other' })
  expect(told(there).at(-1)).toEqual([4, 'do p4', 'interrupted'])
  expect(told(scratch.root)).toHaveLength(5)
  expect(scratch.run(['undo'], { cwd: there }).code).toBe(0)
  expect(['p3', 'p4'].map((id) => fs.existsSync(`${there}/${id}.txt`))).toEqual([true, false])
  expect(hookLog(scratch)).toEqual([])
})

test('a call that leads back from another worktree ends there, and so does its turn, whatever ended here before', async () => {
  const scratch = new Scratch().init({ 'a.txt': 'a\n' })
  const there = `${scratch.base}/linked`
  scratch.git('worktree', 'add', '-q', there)
  const one = claude(scratch, 's', { vars: { CLAUDE_PROJECT_DIR: scratch.root } })
  const goThereAndBack = async (prompt_id: string) => {
    await one.prompt(prompt_id, { cwd: there })
    const call = { prompt_id, tool_name: 'Bash', tool_use_id: `t-${prompt_id}`, tool_input: { command: 'cd back' } }
    await one.say('PreToolUse', { ...call, cwd: there })
    fs.writeFileSync(`${there}/${prompt_id}.txt`, 'by the agent\n')
    await one.say('PostToolUse', call)
    await one.stop(prompt_id)
    const { turns } = JSON.parse(scratch.run(['list', '--json'], { cwd: there }).stdout)
    expect([turns[0].prompt, turns[0].status, turns[0].steps.length]).toEqual([`do ${prompt_id}`, 'completed', 1])
    expect(scratch.run(['undo'], { cwd: there }).code).toBe(0)
    expect(fs.existsSync(`${there}/${prompt_id}.txt`)).toBe(false)
  }
  await goThereAndBack('p1')
  await one.prompt('p2')
  await one.stop('p2')
  await goThereAndBack('p3')
  expect(hookLog(scratch)).toEqual([])
})

test('a subagent in a worktree of its own: all its calls are undone there, and its turn ends with the news of it', async () => {
  const scratch = new Scratch().init({ 'a.txt': 'a\n' })
  const there = `${scratch.base}/linked`
  scratch.git('worktree', 'add', '-q', there)
  const one = claude(scratch, 's', { vars: { CLAUDE_PROJECT_DIR: scratch.root } })
  const call = (name: string) => ({ prompt_id: 'p1', agent_id: 'a1', cwd: there, tool_name: 'Bash', tool_use_id: name })
  const ends = async (name: string) => {
    fs.writeFileSync(`${there}/${name}`, 'by the subagent\n')
    await one.say('PostToolUse', call(name))
  }
  const told = () => {
    const { turns } = JSON.parse(scratch.run(['list', '--json'], { cwd: there }).stdout)
    return turns.map((turn: Json) => [turn.n, turn.prompt, turn.status, turn.steps.length])
  }
  await one.prompt('p1')
  await one.say('PreToolUse', call('b.txt'))
  await one.stop('p1')
  await ends('b.txt')
  await one.say('PreToolUse', call('c.txt'))
  await ends('c.txt')
  expect(told()).toEqual([[1, 'do p1', 'completed', 2]])
  scratch.run(['undo'], { cwd: there })
  expect(['b.txt', 'c.txt'].map((name) => fs.existsSync(`${there}/${name}`))).toEqual([false, false])
  await one.prompt('p2')
  await one.stop('p2')
  const late = { ...call('d.txt'), prompt_id: 'p2' }
  scratch.run(['accept'], { cwd: there })
  await one.say('PreToolUse', late)
  fs.writeFileSync(`${there}/d.txt`, 'by the subagent\n')
  await one.say('PostToolUse', late)
  await one.prompt('p3', { prompt: notice })
  await one.stop('p3')
  expect(told()[0]).toEqual([2, 'do p2', 'completed', 1])
  expect(hookLog(scratch)).toEqual([])
})

test('a session of a linked worktree that goes to the main one and back ends its turn there', async () => {
  const scratch = new Scratch().init({ 'a.txt': 'a\n' })
  const linked = `${scratch.base}/linked`
  scratch.git('worktree', 'add', '-q', linked)
  const one = claude(scratch, 's', { vars: { CLAUDE_PROJECT_DIR: linked } })
  const call = { prompt_id: 'p1', tool_name: 'Bash', tool_use_id: 't1', tool_input: {} }
  await one.prompt('p1', { cwd: linked })
  await one.say('PreToolUse', call)
  await one.say('PostToolUse', call)
  expect(scratch.ckpt('list').turns).toMatchObject([{ n: 1, prompt: 'do p1', status: 'running' }])
  await one.say('StopFailure', { prompt_id: 'p1', cwd: linked })
  expect(scratch.ckpt('list').turns).toMatchObject([{ n: 1, prompt: 'do p1', status: 'failed' }])
})

test('a directory inside is recorded in its own repository, with a daemon around it and without', async () => {
  for (const daemon of [false, true]) {
    const scratch = new Scratch().init({ 'a.txt': 'a\n', '.gitignore': 'in/\n' })
    if (daemon) startDaemon(scratch)
    scratch.git('init', '-q', scratch.at('in'))
    await hook(scratch, 'codex', {
      payload: {
        session_id: 'A',
        turn_id: 'p1',
        cwd: scratch.at('in'),
        hook_event_name: 'UserPromptSubmit',
        prompt: 'inside',
      },
    })
    expect(scratch.ckpt('list', '--sessions').sessions).toEqual([])
    const inside = scratch.run(['list', '--json'], { cwd: scratch.at('in') })
    expect(JSON.parse(inside.stdout).turns).toMatchObject([{ n: 1, prompt: 'inside' }])
    scratch.run(['daemon', 'stop'], { cwd: scratch.at('in') })
  }
})

test('a directory that a link leads to is recorded where it lies, with a daemon around the link and without', async () => {
  for (const daemon of [false, true]) {
    const scratch = new Scratch().init({ 'a.txt': 'a\n', 'sub/b.txt': 'b\n' })
    const there = `${scratch.base}/there`
    scratch.git('worktree', 'add', '-q', there)
    fs.symlinkSync(`${there}/sub`, scratch.at('in'))
    fs.symlinkSync(scratch.at('sub'), `${there}/back`)
    if (daemon) startDaemon(scratch)
    const say = (cwd: string, session_id: string) =>
      hook(scratch, 'codex', {
        payload: { session_id, turn_id: 'p1', cwd, hook_event_name: 'UserPromptSubmit', prompt: 'go' },
      })
    await say(scratch.at('in'), 'led-out')
    await say(`${there}/back`, 'led-in')
    const sessions = (cwd: string) => {
      const { stdout } = scratch.run(['list', '--sessions', '--json'], { cwd })
      return JSON.parse(stdout).sessions.map(({ id }: Json) => id)
    }
    expect([sessions(scratch.root), sessions(there)]).toEqual([['led-in'], ['led-out']])
  }
})

test('a workspace with several roots: each has its turns, an edit is of the root that it lies in', async () => {
  const [one, two, plain] = [new Scratch().init(), new Scratch().init({ 'old.txt': 'old\n' }), new Scratch()]
  const linked = path.join(one.base, 'linked')
  one.git('worktree', 'add', '-q', linked)
  fs.mkdirSync(one.at('packages'))
  const workspace_roots = [plain.root, one.root, one.at('packages'), two.root, linked]
  const say = async (event: string, more: Json = {}, turn = 'g1') => {
    const payload = { conversation_id: 'c', generation_id: turn, hook_event_name: event, workspace_roots, ...more }
    const { code, stderr } = await hook(one, 'cursor', { payload, event })
    expect({ code, stderr }).toEqual({ code: 0, stderr: '' })
  }
  await say('beforeSubmitPrompt', { prompt: 'one' })
  two.write({ 'old.txt': 'new\n' })
  one.write({ 'mine.txt': 'by a person\n' })
  await say('afterFileEdit', { file_path: two.at('old.txt') })
  one.write({ 'by-shell.txt': 'x\n' })
  two.write({ 'by-shell.txt': 'x\n' })
  fs.writeFileSync(`${linked}/by-shell.txt`, 'x\n')
  await say('afterShellExecution', { command: 'make' })
  await say('stop', { status: 'completed' })
  startDaemon(one) // from now on it carries out what is to be done in all of them
  await say('beforeSubmitPrompt', { prompt: 'two' }, 'g2')
  for (const { root } of [one, two]) fs.writeFileSync(`${root}/second.txt`, '2\n')
  await say('afterShellExecution', { command: 'again' }, 'g2')
  await say('stop', { status: 'aborted' }, 'g2')
  const turns = (cwd: string) =>
    one
      .ckpt('list', '--session', 'c', '--cwd', cwd)
      .turns.map((turn: Json) => [turn.n, turn.status, turn.steps.map((step: Json) => step.paths)])
  const last = [2, 'interrupted', [['second.txt']]]
  expect(turns(one.root)).toEqual([last, [1, 'completed', [['by-shell.txt', 'mine.txt']]]])
  expect(turns(two.root)).toEqual([last, [1, 'completed', [['old.txt'], ['by-shell.txt']]]])
  expect(turns(linked)).toEqual([
    [2, 'interrupted', [[]]],
    [1, 'completed', [['by-shell.txt']]],
  ])
  one.ckpt('undo', '--session', 'c', '--cwd', two.root)
  one.ckpt('undo', '--session', 'c', '--cwd', two.root)
  expect([two.read('old.txt'), two.exists('by-shell.txt'), one.exists('by-shell.txt')]).toEqual(['old\n', false, true])
  expect(fs.readdirSync(plain.root)).toEqual([])
})

test('a root of a workspace whose store is damaged costs the others nothing', async () => {
  const [bad, good] = [new Scratch().init(), new Scratch().init()]
  bad.ckpt('snapshot')
  const objects = bad.at('.git/ckpt/store.git/objects')
  fs.renameSync(objects, `${objects}.away`)
  const workspace_roots = [bad.root, good.root]
  const payload = { conversation_id: 'c', generation_id: 'g', hook_event_name: 'beforeSubmitPrompt', workspace_roots }
  const ran = await hook(good, 'cursor', { payload: { ...payload, prompt: 'one' }, event: payload.hook_event_name })
  expect(ran).toEqual({ code: 0, stdout: '{"continue":true}\n', stderr: '' })
  expect(hookLog(good)).toEqual([])
  fs.renameSync(`${objects}.away`, objects)
  expect(good.ckpt('status').lastHookError).toBe(null)
  const { lastHookError } = good.ckpt('status', '--cwd', bad.root)
  expect(lastHookError).toMatchObject({ where: 'cursor beforeSubmitPrompt', code: 'DAMAGED', cwd: bad.root })
  expect(good.ckpt('list', '--session', 'c').turns).toHaveLength(1)
})

/** Two calls of one id, the person at work before the second. */
async function twoOfOneId(scratch: Scratch, first: { ends: boolean; turn: string }): Promise<void> {
  const one = claude(scratch)
  const call = (prompt_id: string, name: string) => ({
    ...{ prompt_id, tool_name: 'Edit', tool_use_id: 'Edit:0', tool_input: { file_path: scratch.at(name) } },
  })
  await one.prompt(first.turn)
  await one.say('PreToolUse', call(first.turn, 'first'))
  scratch.write({ first: 'agent\n' })
  if (first.ends) await one.say('PostToolUse', call(first.turn, 'first'))
  if (first.turn !== 'p') await one.prompt('p')
  scratch.write({ mine: 'mine\n', 'a.txt': 'mine\n' })
  await one.say('PreToolUse', call('p', 'second'))
  scratch.write({ second: 'agent\n' })
  await one.say('PostToolUse', call('p', 'second'))
  await one.stop('p')
}

test.each([
  ['another turn, interrupted', { turn: 'before', ends: false }, ['first', 'mine']],
  ['another turn, ended', { turn: 'before', ends: true }, ['first', 'mine']],
  ['the same turn, ended', { turn: 'p', ends: true }, ['mine']],
])(
  'a call whose id comes again is another call, and what the person did before it stays: of %s',
  async (_, first, left) => {
    const scratch = new Scratch().init()
    await twoOfOneId(scratch, first)
    scratch.ckpt('undo')
    expect(scratch.read('a.txt')).toBe('mine\n')
    expect(['first', 'mine', 'second'].filter((name) => scratch.exists(name))).toEqual(left)
  },
)

test('a call whose beginning had to wait claims its declared path only', () => {
  const scratch = new Scratch().init()
  const mark = (...args: string[]) => scratch.ckpt('mark', ...args, '--session', 's')
  mark('prompt')
  scratch.write({ mine: 'mine\n' })
  const begin = { event: 'step', session: 's', start: true, tool: 'Edit', callId: 'c', paths: ['its'] }
  const waiting = { version: 1, id: 'c:start', client: 'claude', time: new Date().toISOString(), marker: begin }
  scratch.write({ '.git/ckpt/worktrees/@main/markers/1.json': JSON.stringify(waiting), its: 'agent\n' })
  mark('step', '--tool', 'Edit', '--call-id', 'c', '--path', 'its')
  mark('stop')
  scratch.ckpt('undo')
  expect(['its', 'mine'].filter((name) => scratch.exists(name))).toEqual(['mine'])
})

test('a call whose id comes again ends where its end does not name the tool', () => {
  const scratch = new Scratch().init()
  const mark = (...args: string[]) => scratch.ckpt('mark', ...args, '--session', 's')
  mark('prompt')
  for (const name of ['one', 'two']) {
    mark('step', '--start', '--tool', 'edit', '--call-id', 'c')
    scratch.write({ [name]: '' })
    for (let told = 0; told < 2; told++) mark('step', '--call-id', 'c')
  }
  mark('stop')
  expect(scratch.ckpt('list').turns[0].steps).toHaveLength(2)
  scratch.ckpt('undo')
  expect([scratch.exists('one'), scratch.exists('two')]).toEqual([false, false])
})

test('several calls of one message are steps of their own, with paths and without call ids', () => {
  const scratch = new Scratch().init()
  const mark = (...args: string[]) => scratch.ckpt('mark', ...args, '--session', 's')
  mark('prompt')
  for (const name of ['one', 'two']) {
    const call = ['step', '--tool', 'edit', '--message-id', 'm', '--path', name]
    mark(...call, '--start')
    scratch.write({ [name]: '' })
    for (let told = 0; told < 2; told++) mark(...call)
  }
  mark('stop')
  expect(scratch.ckpt('list').turns[0].steps).toHaveLength(2)
  scratch.ckpt('undo')
  expect([scratch.exists('one'), scratch.exists('two')]).toEqual([false, false])
})

test.each(['claude', 'codex', 'gemini', 'cursor'])(
  'the event that the command line names counts where the payload names none: %s',
  async (name) => {
    const scratch = new Scratch().init()
    const event = { claude: 'UserPromptSubmit', codex: 'UserPromptSubmit', gemini: 'BeforeAgent' }[name]
    const payload = { session_id: 's', conversation_id: 's', cwd: scratch.root, prompt: 'Go' }
    scratch.run(['hook', name, event ?? 'beforeSubmitPrompt'], { input: JSON.stringify(payload) })
    expect(scratch.ckpt('list').turns).toMatchObject([{ session: 's', prompt: 'Go', agent: name }])
    expect(hookLog(scratch)).toEqual([])
  },
)
