// What plain JavaScript may give an agent of the Claude Agent SDK: what is no option, and values that are none, are refused.
import { expect, test } from 'vitest'
import { openClaudeAgent } from '../../src/wrappers/claude-agent-sdk/agent.ts'
import { say } from '../support/claude-sdk.ts'
import { madeUpSdk } from '../support/made-up-sdk.ts'
import { Scratch } from '../support/scratch.ts'

const usage = { code: 'USAGE', message: expect.stringMatching(/ Nothing was changed\.$/) }

test.each<[string, object | number]>([
  ['no object', 5],
  ['a list', []],
  ['a misspelled name', { checkpoint: true }],
  ['no module', { sdk: {} }],
  ['a number for the module', { sdk: 5 }],
  ['nothing for the module', { sdk: null }],
  ['a word for a switch', { checkpoints: 'no' }],
  ['an empty session', { session: '' }],
  ['options that are none', { options: 'fast' }],
])('an agent is not opened with %s', async (_, given) => {
  const scratch = new Scratch().init()
  const sdk = madeUpSdk(() => undefined)
  const all = typeof given === 'object' && !Array.isArray(given) ? { sdk, vars: scratch.vars, ...given } : given
  await expect(openClaudeAgent(scratch.root, all as object)).rejects.toMatchObject(usage)
  await expect(openClaudeAgent(7 as unknown as string, { sdk })).rejects.toMatchObject(usage)
})

test('nothing is asked, undone or redone with what is no option', async () => {
  const scratch = new Scratch().init()
  const sdk = madeUpSdk((text) => scratch.write({ [`${text}.txt`]: text }))
  const agent = await openClaudeAgent(scratch.root, { sdk, checkpoints: true, vars: scratch.vars })
  await say(agent, 'first')
  const queries: unknown[] = [
    undefined,
    null,
    {},
    { prompt: 5 },
    { prompt: ['second'] },
    { prompt: 'second', option: {} },
    { prompt: 'second', options: null },
    { prompt: 'second', options: { resume: 5 } },
    { prompt: 'second', options: { resume: '' } },
  ]
  for (const given of queries)
    expect(() => agent.query(given as { prompt: string })).toThrow(expect.objectContaining(usage))
  expect(sdk.queries.length).toBe(1)
  const undos: unknown[] = [
    5,
    { turn: 2 },
    { turns: 0 },
    { turns: 'all' },
    { to: 1 },
    { to: '' },
    { conflicts: 'force' },
  ]
  for (const given of undos) await expect(agent.undo(given as object)).rejects.toMatchObject(usage)
  for (const given of [5, { turns: 'x' }, { al: true }, { session: 'another' }] as unknown[])
    await expect(agent.redo(given as object)).rejects.toMatchObject(usage)
  expect(scratch.exists('first.txt')).toBe(true)
  expect(await agent.undo(null as unknown as object)).toMatchObject({ restoredPrompt: 'first' })
})
