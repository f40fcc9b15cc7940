// Recorded runs of the real agents: what becomes of them, and that undo of each turn gives the disk back as it was.
import { expect, test } from 'vitest'
import { hookLog, play, recorded } from '../support/agents.ts'
import { type Json, Scratch } from '../support/scratch.ts'

interface Expected {
  status: string
  /** Tools of the steps, in order. */
  steps: string[]
  unclaimed?: string[]
}

const done = (...steps: string[]): Expected => ({ status: 'completed', steps })
const interrupted = (...steps: string[]): Expected => ({ status: 'interrupted', steps })
const failed = (...steps: string[]): Expected => ({ status: 'failed', steps })

/** Agent, scenario, turns, and what undo needs to be told. */
const table: [string, string, Expected[], string[]?][] = [
  ['claude', 'two-turns', [done('Write', 'Bash'), done('Edit', 'Bash', 'Bash')]],
  ['claude', 'parallel', [done('Write', 'Write', 'Bash')]],
  ['claude', 'subagent', [done('Write', 'Write')]],
  ['claude', 'cwd', [done('Bash', 'Bash', 'Write'), done('Write')]],
  ['claude', 'api-error', [failed('Write')]],
  [
    'claude',
    'interrupt',
    [{ ...interrupted('Write', 'Bash'), unclaimed: ['started.txt'] }, done('Write')],
    ['--unclaimed'],
  ],
  ['codex', 'two-turns', [done('apply_patch', 'Bash'), done('Bash', 'apply_patch', 'Bash', 'Bash')]],
  ['codex', 'parallel', [done('apply_patch', 'apply_patch', 'Bash')]],
  ['codex', 'subagent', [done('Bash', 'apply_patch')]],
  ['codex', 'cwd', [done('Bash', 'Bash', 'apply_patch'), done('apply_patch')]],
  ['codex', 'api-error', [interrupted('apply_patch')]],
  [
    'codex',
    'interrupt',
    [{ ...interrupted('apply_patch', 'Bash'), unclaimed: ['started.txt'] }, done('apply_patch')],
    ['--unclaimed'],
  ],
  [
    'gemini',
    'two-turns',
    [done('write_file', 'run_shell_command'), done('replace', 'run_shell_command', 'run_shell_command')],
  ],
  ['gemini', 'parallel', [done('write_file', 'write_file', 'run_shell_command')]],
  ['gemini', 'subagent', [done('run_shell_command', 'write_file')]],
  ['gemini', 'cwd', [done('run_shell_command', 'run_shell_command', 'write_file'), done('write_file')]],
  // Nothing tells of the error: the next prompt will.
  ['gemini', 'api-error', [{ status: 'running', steps: ['write_file'] }], ['--interrupt']],
  ['gemini', 'interrupt', [interrupted('write_file', 'run_shell_command'), done('write_file')]],
  ['opencode', 'two-turns', [done('write', 'bash'), done('edit', 'bash', 'bash')]],
  ['opencode', 'parallel', [done('write', 'write', 'bash')]],
  ['opencode', 'subagent', [done('write', 'write')]],
  ['opencode', 'cwd', [done('bash', 'bash', 'write'), done('write')]],
  ['opencode', 'api-error', [failed('write')]],
  [
    'opencode',
    'interrupt',
    [{ ...interrupted('write', 'bash'), unclaimed: ['started.txt'] }, done('write')],
    ['--unclaimed'],
  ],
  [
    'cursor',
    'two-turns.hand-written',
    [done('afterFileEdit', 'afterShellExecution'), interrupted('afterShellExecution')],
  ],
]

test.each(table)('%s: %s', async (agent, scenario, expected, more = []) => {
  const scratch = new Scratch().init()
  const states = await play(scratch, agent, recorded(scratch, agent, scenario))
  expect(hookLog(scratch)).toEqual([])
  const { turns } = scratch.ckpt('list') as { turns: Json[] }
  const oldestFirst = turns.toReversed()
  const seen = oldestFirst.map((turn) => ({
    status: turn.status,
    steps: turn.steps.map((step: Json) => step.tool),
    unclaimed: turn.unclaimed,
  }))
  expect(seen).toEqual(expected.map((turn) => ({ unclaimed: [], ...turn })))
  expect(oldestFirst.map((turn) => turn.prompt.slice(0, 8))).toEqual(expected.map((_, i) => `[turn ${i + 1}]`))
  expect(oldestFirst.every((turn) => turn.agent === agent && typeof turn.messageId === 'string')).toBe(true)
  expect(scratch.ckpt('list', '--sessions').sessions).toHaveLength(1)
  for (const state of states.toReversed()) {
    scratch.ckpt('undo', ...more)
    expect(scratch.manifest()).toEqual(state)
  }
})

test('the whole run again, hook by hook, adds nothing', async () => {
  const scratch = new Scratch().init()
  const rows = recorded(scratch, 'claude', 'parallel')
  await play(scratch, 'claude', rows)
  const before = scratch.ckpt('list')
  await play(scratch, 'claude', rows)
  expect(scratch.ckpt('list')).toEqual(before)
})

test('two agents at once in one worktree: both timelines are whole', async () => {
  const scratch = new Scratch().init()
  const runs = ['claude', 'codex'].map((agent) => ({ agent, rows: recorded(scratch, agent, 'subagent') }))
  for (let i = 0; i < Math.max(...runs.map(({ rows }) => rows.length)); i++)
    await Promise.all(runs.map(({ agent, rows }) => play(scratch, agent, rows.slice(i, i + 1))))
  const { turns } = scratch.ckpt('list', '--all-sessions')
  expect(turns.map((turn: Json) => [turn.agent, turn.status, turn.steps.length]).sort()).toEqual([
    ['claude', 'completed', 2],
    ['codex', 'completed', 2],
  ])
})
