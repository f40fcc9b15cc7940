// Recorded runs of the real agents: what becomes of them, and that undo of each turn gives the disk back as it was.
import { expect, test } from 'vitest'
import { hookLog, play, recorded } from '../support/agents.ts'
import { AT_FIRST, forksIn, inOrder, type Row, SCENARIOS, TABLE } from '../support/scenarios.ts'
import { type Json, Scratch } from '../support/scratch.ts'

/** From its documentation, and by hand: Cursor cannot be run here. */
const CURSOR: Row = {
  agent: 'cursor',
  scenario: 'two-turns.hand-written',
  turns: [
    { status: 'completed', steps: ['afterFileEdit', 'afterShellExecution'] },
    { status: 'interrupted', steps: ['afterShellExecution'] },
  ],
}

/** A hook may be slow, and what follows be heard before it: then the calls are taken to have run at the same time. */
const CALLING = ['two-turns', 'parallel', 'background', 'interrupt']
const OVERTAKEN = TABLE.filter(({ agent, scenario }) => agent === 'claude' && CALLING.includes(scenario)).map(
  (row) => ({
    ...row,
    how: 'ends overtaken',
  }),
)
const IN_ORDER = [...TABLE, CURSOR].map((row) => ({ ...row, how: 'in order' }))

test.each([...IN_ORDER, ...OVERTAKEN])('$agent: $scenario, $how', async (row) => {
  const { agent, scenario, turns: expected, undo = [], how } = row
  const scratch = new Scratch().init(AT_FIRST)
  const states = await play(scratch, agent, {
    rows: recorded(scratch, agent, scenario),
    endsOvertaken: how === 'ends overtaken',
  })
  expect(hookLog(scratch)).toEqual([])
  const { from = [] } = SCENARIOS[scenario] ?? {}
  const oldestFirst = inOrder(scratch.ckpt('list', '--all-sessions').turns)
  const seen = oldestFirst.map((turn) => ({
    status: turn.status,
    steps: turn.steps.map((step: Json) => step.tool),
    unclaimed: turn.unclaimed,
  }))
  expect(seen).toEqual(expected.map((turn) => ({ unclaimed: [], ...turn })))
  expect(oldestFirst.map((turn) => turn.prompt.slice(0, 8))).toEqual(expected.map((_, i) => `[turn ${i + 1}]`))
  expect(oldestFirst.every((turn) => turn.agent === agent && typeof turn.messageId === 'string')).toBe(true)
  const { sessions } = scratch.ckpt('list', '--sessions')
  expect(sessions).toHaveLength(Math.max(1, from.filter((one) => typeof one !== 'number').length))
  const parents = Object.fromEntries(sessions.map((one: Json) => [one.id, one.parent]))
  for (const [child, parent] of forksIn({ from }))
    expect(parents[oldestFirst[child]!.session]).toBe(row.untold ? null : oldestFirst[parent]!.session)
  for (const [i, state] of [...states.entries()].toReversed()) {
    scratch.ckpt('undo', '--session', oldestFirst[i]!.session, ...undo)
    expect(scratch.manifest()).toEqual(state)
  }
})

test('the whole run again, hook by hook, adds nothing', async () => {
  const scratch = new Scratch().init()
  const rows = recorded(scratch, 'claude', 'parallel')
  await play(scratch, 'claude', { rows })
  const before = scratch.ckpt('list')
  await play(scratch, 'claude', { rows })
  expect(scratch.ckpt('list')).toEqual(before)
})

test('two agents at once in one worktree: both timelines are whole', async () => {
  const scratch = new Scratch().init()
  const runs = ['claude', 'codex'].map((agent) => ({ agent, rows: recorded(scratch, agent, 'subagent') }))
  for (let i = 0; i < Math.max(...runs.map(({ rows }) => rows.length)); i++)
    await Promise.all(runs.map(({ agent, rows }) => play(scratch, agent, { rows: rows.slice(i, i + 1) })))
  const { turns } = scratch.ckpt('list', '--all-sessions')
  expect(turns.map((turn: Json) => [turn.agent, turn.status, turn.steps.length]).sort()).toEqual([
    ['claude', 'completed', 2],
    ['codex', 'completed', 2],
  ])
})
