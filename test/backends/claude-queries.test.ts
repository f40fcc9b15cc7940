// Several queries of one agent of the Claude Agent SDK's, with a stand-in for the SDK: one goes on with the conversation at a time.
import { expect, test } from 'vitest'
import { openWorktree } from '../../src/library/worktree.ts'
import { type ClaudeAgent, openClaudeAgent } from '../../src/wrappers/claude-agent-sdk/agent.ts'
import type { AgentMessage, AgentQuery } from '../../src/wrappers/claude-agent-sdk/sdk.ts'
import { say } from '../support/claude-sdk.ts'
import { madeUpSdk } from '../support/made-up-sdk.ts'
import { Scratch } from '../support/scratch.ts'

/** The agent works on a prompt that begins with `long` until it is told that this is `done`. */
async function stage(checkpoints = false) {
  const scratch = new Scratch().init()
  let done: () => void = () => undefined
  const enough = new Promise<void>((resolve) => {
    done = resolve
  })
  const sdk = madeUpSdk(async (text) => {
    scratch.write({ [`${text}.txt`]: text })
    if (text.startsWith('long')) await enough
  })
  const agent = await openClaudeAgent(scratch.root, { sdk, checkpoints, vars: scratch.vars })
  /** Of the session that goes on, oldest first. */
  const turns = async () => {
    const worktree = await openWorktree(scratch.root, { vars: scratch.vars, backends: [agent.backend] })
    const told = await worktree.turns({ session: agent.sessionId! })
    return told.turns.map(({ prompt, status }) => [prompt, status]).reverse()
  }
  return { scratch, sdk, agent, done, turns }
}

/** Prompts that come when they are said. */
function spoken() {
  const said: string[] = []
  let wake: () => void = () => undefined
  const prompts = async function* () {
    for (;;) {
      const content = said.shift()
      if (content !== undefined)
        yield { type: 'user' as const, parent_tool_use_id: null, message: { role: 'user' as const, content } }
      else
        await new Promise<void>((resolve) => {
          wake = resolve
        })
    }
  }
  const prompt = (text: string) => {
    said.push(text)
    wake()
  }
  return { prompts: prompts(), prompt }
}

async function readTo(query: AsyncGenerator<AgentMessage, void>, type: string): Promise<void> {
  for (;;) {
    const { done, value } = await query.next()
    if (done || value.type === type) return
  }
}

const refused = (work: Promise<unknown>, code: string) => expect(work).rejects.toMatchObject({ code })

async function stillAtWork(agent: ClaudeAgent) {
  await refused(agent.undo(), 'TURN_RUNNING')
  expect(agent.getQueryInstance()).not.toBe(null)
}

test.each([false, true])(
  'while a query is at work another one is refused, and leaves it alone (%s)',
  async (recorded) => {
    const { scratch, sdk, agent, done, turns } = await stage(recorded)
    const long = agent.query({ prompt: 'long' })
    await readTo(long, 'user')
    await refused(say(agent, 'short'), 'TURN_RUNNING')
    const left = agent.query({ prompt: 'left' })
    await left.return()
    await stillAtWork(agent)
    done()
    await readTo(long, 'none')
    expect([sdk.queries.length, scratch.exists('short.txt'), scratch.exists('left.txt')]).toEqual([1, false, false])
    expect(await turns()).toEqual([['long', 'completed']])
    await say(agent, 'short')
    expect(await turns()).toEqual([
      ['long', 'completed'],
      ['short', 'completed'],
    ])
  },
)

test.each([false, true])('beside a query that waits for its next prompt another one goes on (%s)', async (recorded) => {
  const { sdk, agent, done, turns } = await stage(recorded)
  const { prompts, prompt } = spoken()
  const chat = agent.query({ prompt: prompts })
  prompt('one')
  await readTo(chat, 'result')
  await say(agent, 'two')
  // What was said in between is part of the conversation.
  prompt('three')
  await readTo(chat, 'result')
  const session = agent.sessionId
  expect(sdk.queries.map(({ resume }) => resume)).toEqual([undefined, session, session])
  expect(agent.getQueryInstance()).not.toBe(null)

  const long = agent.query({ prompt: 'long' })
  await readTo(long, 'user')
  prompt('four')
  await refused(readTo(chat, 'result'), 'TURN_RUNNING')
  await stillAtWork(agent)
  done()
  await readTo(long, 'none')
  expect(await turns()).toEqual(['one', 'two', 'three', 'long'].map((text) => [text, 'completed']))
})

test('a query that is left while it waits ends no other one', async () => {
  const { agent, done, turns } = await stage()
  const { prompts, prompt } = spoken()
  const chat = agent.query({ prompt: prompts })
  prompt('one')
  await readTo(chat, 'result')
  const long = agent.query({ prompt: 'long' })
  await readTo(long, 'user')
  await chat.return()
  await stillAtWork(agent)
  done()
  await readTo(long, 'none')
  expect(await turns()).toEqual([
    ['one', 'completed'],
    ['long', 'completed'],
  ])
})

test('a query that resumed a session goes on in the fork of an undo, and not in that session again', async () => {
  const { scratch, sdk, agent } = await stage()
  await say(agent, 'first')
  const resume = agent.sessionId!
  const other = await openClaudeAgent(scratch.root, { sdk, vars: scratch.vars })
  const { prompts, prompt } = spoken()
  const chat = other.query({ prompt: prompts, options: { resume } })
  prompt('one')
  await readTo(chat, 'result')
  await other.undo()
  prompt('two')
  await readTo(chat, 'result')
  const fork = other.sessionId!
  prompt('three')
  await readTo(chat, 'result')
  await other.undo()
  prompt('four')
  await readTo(chat, 'result')
  expect(fork).not.toBe(resume)
  expect(sdk.queries.at(-1)).toMatchObject({ resume: fork, forkSession: true })
  await chat.return()
})

test('what a query is asked for is asked of it, and not of the one that is live', async () => {
  const { sdk, agent, done } = await stage()
  const first = agent.query({ prompt: 'first' }) as AgentQuery
  await readTo(first, 'none')
  const never = agent.query({ prompt: 'never' }) as AgentQuery
  await never.return()
  const long = agent.query({ prompt: 'long' }) as AgentQuery
  await readTo(long, 'user')
  await expect(first.interrupt()).rejects.toThrow('Query closed')
  await expect(first.rewindFiles('any', { dryRun: true })).rejects.toThrow('Query closed')
  await refused(never.interrupt(), 'NOT_FOUND')
  const before = sdk.interrupted
  await long.interrupt()
  expect(sdk.interrupted).toBe(before + 1)
  done()
  await readTo(long, 'none')
})

test.each([
  { forkSession: true },
  { resume: 'another', forkSession: true },
  { resumeSessionAt: 'a-message' },
  { resumeDropsTurn: 'a-message' },
  { sessionId: 'a-new-one' },
])('a query that would go on elsewhere, %j, is refused', async (options) => {
  const { sdk, agent } = await stage()
  await say(agent, 'first')
  expect(() => agent.query({ prompt: 'second', options })).toThrow(expect.objectContaining({ code: 'USAGE' }))
  expect(sdk.queries.length).toBe(1)
})

test('the first session has the id that it is given; every query of an agent has no session to go back to', async () => {
  const { scratch, sdk, agent } = await stage()
  const sessionId = '11111111-1111-4111-8111-111111111111'
  await say(agent, 'first', { sessionId, forkSession: false })
  expect([sdk.queries.at(-1)!.sessionId, agent.sessionId]).toEqual([sessionId, sessionId])
  await say(agent, 'second', { sessionId })
  expect(sdk.queries.at(-1)).toMatchObject({ resume: sessionId })
  const opened = (options: object, session?: string) =>
    openClaudeAgent(scratch.root, { sdk, options, session, vars: scratch.vars })
  await refused(opened({ resume: sessionId }), 'USAGE')
  await refused(opened({ forkSession: true }), 'USAGE')
  await refused(opened({ sessionId: 'another' }, sessionId), 'USAGE')
})
