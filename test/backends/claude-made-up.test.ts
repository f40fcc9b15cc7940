// What the wrapper of the Claude Agent SDK does by itself, with a stand-in for the SDK: far undos, queries that nobody reads.
import { expect, test } from 'vitest'
import { openClaudeAgent } from '../../src/wrappers/claude-agent-sdk/agent.ts'
import { say } from '../support/claude-sdk.ts'
import { madeUpSdk } from '../support/made-up-sdk.ts'
import { Scratch } from '../support/scratch.ts'

async function stage(checkpoints = true) {
  const scratch = new Scratch().init()
  const sdk = madeUpSdk((text) => scratch.write({ [`${text}.txt`]: text }))
  const open = (session?: string) => openClaudeAgent(scratch.root, { sdk, checkpoints, session, vars: scratch.vars })
  return { scratch, sdk, open, agent: await open() }
}

const described = async (agent: Awaited<ReturnType<typeof openClaudeAgent>>) =>
  (await agent.checkpoints()).map(({ description }) => description)

test('undone past the prompts that are listed, the conversation goes on from before it all the same', async () => {
  const { scratch, sdk, open, agent } = await stage()
  for (let n = 1; n <= 14; n++) await say(agent, `p${n}`)
  const old = agent.sessionId!
  expect((await described(agent)).length).toBe(10)
  const second = agent.messages.filter(({ type }) => type === 'assistant')[1]!
  await agent.undo({ to: '3' })
  expect([scratch.exists('p2.txt'), scratch.exists('p3.txt')]).toEqual([true, false])
  expect(await described(agent)).toEqual([])
  await say(agent, 'next')
  expect(sdk.queries.at(-1)).toMatchObject({ resume: old, forkSession: true, resumeSessionAt: second.uuid })
  expect(await described(agent)).toEqual(['next'])
  expect(await described(await open(old))).toEqual([])
  await agent.undo()
  await say(agent, 'again')
  expect(sdk.queries.at(-1)).toMatchObject({ forkSession: true, resumeSessionAt: second.uuid })
})
