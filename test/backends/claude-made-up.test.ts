// What the wrapper of the Claude Agent SDK does by itself, with a stand-in for the SDK: far undos, queries that nobody reads.
import { execFileSync } from 'node:child_process'
import fs from 'node:fs'
import path from 'node:path'
import { expect, test } from 'vitest'
import type { CkptError } from '../../src/core/errors.ts'
import { openClaudeAgent } from '../../src/wrappers/claude-agent-sdk/agent.ts'
import { say } from '../support/claude-sdk.ts'
import { madeUpSdk } from '../support/made-up-sdk.ts'
import { Scratch } from '../support/scratch.ts'
import { ownDirectory } from '../support/store-surgery.ts'

async function stage(checkpoints = true) {
  const scratch = new Scratch().init()
  const sdk = madeUpSdk((text) => scratch.write({ [`${text}.txt`]: text }))
  const open = (session?: string, vars = scratch.vars) =>
    openClaudeAgent(scratch.root, { sdk, checkpoints, session, vars })
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

/** As the SDK's own query has it. */
interface Query extends AsyncGenerator<unknown> {
  close: () => void
  [Symbol.asyncDispose]: () => Promise<void>
}

/** Reads the first message, which comes when the agent has the prompt; from then on nobody reads. */
async function unread(agent: Awaited<ReturnType<typeof openClaudeAgent>>, prompt: string, options: object = {}) {
  const query = agent.query({ prompt, options }) as unknown as Query
  await query.next()
  return query
}

test.each([true, false])('a query that is left when nobody reads it is over (%s)', async (checkpoints) => {
  const { scratch, sdk, agent } = await stage(checkpoints)
  await say(agent, 'first')
  const over = async (undone: string) => {
    await expect.poll(() => agent.getQueryInstance()).toBe(null)
    expect(await agent.undo({ interrupt: true })).toMatchObject({ restoredPrompt: undone })
    await say(agent, 'first')
  }
  const never = agent.query({ prompt: 'never' })
  await never.return()
  await new Promise((resolve) => setTimeout(resolve, 200))
  expect(scratch.exists('never.txt')).toBe(false)
  await over('first')
  const thrown = agent.query({ prompt: 'never' })
  await expect(thrown.throw(new Error('enough'))).rejects.toThrow('enough')
  const closed = agent.query({ prompt: 'never' }) as unknown as Query
  closed.close()
  expect(await closed.next()).toMatchObject({ done: true })
  await over('first')
  const disposed = agent.query({ prompt: 'never' }) as unknown as Query
  await disposed[Symbol.asyncDispose]()
  await over('first')
  expect(scratch.exists('never.txt')).toBe(false)

  const query = await unread(agent, 'second')
  query.close()
  await expect.poll(() => agent.getQueryInstance()).toBe(null)
  await say(agent, 'third')
  // What was left before has no say in what runs now.
  const running = await unread(agent, 'fourth')
  const live = agent.getQueryInstance()
  await query.return(undefined)
  query.close()
  expect([await query.next(), agent.getQueryInstance() === live]).toEqual([{ done: true, value: undefined }, true])
  await running.return(undefined)
  expect(agent.getQueryInstance()).toBe(null)

  const abortController = new AbortController()
  await unread(agent, 'fifth', { abortController })
  abortController.abort()
  await expect.poll(() => agent.getQueryInstance()).toBe(null)
  await say(agent, 'sixth')
  await over('sixth')
  expect(sdk.interrupted).toBe(0)
})

test.each(['asked for afterwards', 'asked for before'])(
  'a prompt that is left while it is recorded stands before the next one (%s), and is over',
  async (next) => {
    const { scratch, open } = await stage()
    const [slow, began] = ['slow', 'began'].map((name) => path.join(scratch.home, name)) as [string, string]
    const bin = path.join(scratch.home, 'bin')
    fs.mkdirSync(bin)
    const [git] = execFileSync('/bin/sh', ['-c', 'command -v git'], { encoding: 'utf8' }).split('\n')
    const wait = `[ ! -e '${slow}' ] || { : >'${began}'; sleep 1; }`
    fs.writeFileSync(path.join(bin, 'git'), `#!/bin/sh\n${wait}\nexec '${git}' "$@"\n`, { mode: 0o755 })
    const agent = await open(undefined, { ...scratch.vars, PATH: `${bin}:${scratch.vars.PATH}` })
    await say(agent, 'first')
    const abortController = new AbortController()
    const slowly = async () => fs.writeFileSync(slow, '')
    await unread(agent, 'second', { abortController, hooks: { UserPromptSubmit: [{ hooks: [slowly] }] } })
    await expect.poll(() => fs.existsSync(began)).toBe(true)
    fs.rmSync(slow)
    if (next === 'asked for afterwards') abortController.abort()
    const saying = say(agent, 'third')
    if (next === 'asked for before') abortController.abort()
    await saying
    const { turns } = scratch.ckpt('list')
    expect(turns.map((turn: { prompt: string; status: string }) => [turn.prompt, turn.status])).toEqual([
      ['third', 'completed'],
      ['second', 'interrupted'],
      ['first', 'completed'],
    ])
    expect((await described(agent))[0]).toBe('third')
  },
)

test('a query that ended in its own way is over for an undo that would interrupt it', async () => {
  const { agent } = await stage()
  await say(agent, 'first')
  await unread(agent, 'second')
  const query = agent.getQueryInstance() as unknown as { close: () => void }
  query.close()
  expect(await agent.undo({ interrupt: true })).toMatchObject({ restoredPrompt: 'second' })
  expect(agent.getQueryInstance()).toBe(null)
})

test.each([true, false])('what is refused does not interrupt the turn that is at work (%s)', async (checkpoints) => {
  const { sdk, agent } = await stage(checkpoints)
  await say(agent, 'first')
  const query = await unread(agent, 'second')
  while (agent.messages.filter(({ type }) => type === 'user').length < 2) await query.next()
  await expect(agent.undo({ to: '7', interrupt: true })).rejects.toMatchObject({ code: 'NOT_FOUND' })
  await expect(agent.undo()).rejects.toMatchObject({ code: 'TURN_RUNNING' })
  expect(sdk.interrupted).toBe(0)
  await query.return(undefined)
})

test('who leaves a query does not wait for a prompt that never comes', { timeout: 10_000 }, async () => {
  const { agent } = await stage()
  const prompts = async function* () {
    yield { type: 'user' as const, parent_tool_use_id: null, message: { role: 'user' as const, content: 'first' } }
    await new Promise(() => undefined)
  }
  for await (const message of agent.query({ prompt: prompts() })) if (message.type === 'result') break
  expect(agent.getQueryInstance()).toBe(null)
  expect(await agent.undo()).toMatchObject({ restoredPrompt: 'first' })
})

test('an agent without a prompt has nothing to undo or redo, whatever other sessions have', async () => {
  const { scratch, agent } = await stage()
  scratch.ckpt('mark', 'prompt', '--session', 'other')
  scratch.write({ 'other.txt': 'of another session' })
  scratch.ckpt('mark', 'stop', '--session', 'other')
  scratch.ckpt('undo', '--session', 'other')
  await expect(agent.undo()).rejects.toMatchObject({ code: 'NOTHING_TO_UNDO' })
  await expect(agent.redo()).rejects.toMatchObject({ code: 'NOTHING_TO_REDO' })
  expect([await agent.reverted(), await agent.checkpoints(), scratch.exists('other.txt')]).toEqual([null, [], false])
})

test('of a session that goes on elsewhere too, what is undone is not among the checkpoints, and all the rest is', async () => {
  const { scratch, open } = await stage()
  const session = '22222222-2222-4222-8222-222222222222'
  const elsewhere = (id: string) => {
    scratch.ckpt('mark', 'prompt', '--session', session, '--message-id', id, '--agent', 'claude')
    scratch.write({ [`${id}.txt`]: id })
    scratch.ckpt('mark', 'stop', '--session', session)
  }
  elsewhere('before')
  const agent = await open(session)
  for (const text of ['one', 'two']) await say(agent, text)
  elsewhere('after')
  await agent.undo()
  expect(await described(agent)).toEqual(['two', 'one'])
  await agent.undo({ turns: 3 })
  expect(await described(agent)).toEqual([])
  await agent.redo({ turns: 2 })
  expect(await described(agent)).toEqual(['one'])
})

test('an undo that goes forward says which prompt is now the first that is undone', async () => {
  const { agent } = await stage()
  for (const text of ['one', 'two', 'three']) await say(agent, text)
  const [, two] = await agent.checkpoints()
  await agent.undo({ turns: 3 })
  const to = two!.id
  await expect(agent.undo({ to, turns: 2 })).rejects.toMatchObject({ code: 'USAGE' })
  await expect(agent.undo({ to: '2', turns: 2 })).rejects.toMatchObject({ code: 'USAGE' })
  expect(await agent.undo({ to, dryRun: true })).toMatchObject({ revertMessageID: to })
  const summary = { files: 2, insertions: 0, deletions: 2 }
  expect(await agent.undo({ to })).toMatchObject({ revertMessageID: to, restoredPrompt: 'two', summary })
  expect(await agent.reverted()).toEqual({ revertMessageID: to, restoredPrompt: 'two', summary })
})

test('what a rewind will write and what delete the SDK does not say beforehand, and neither does a dry run', async () => {
  const scratch = new Scratch().init({ 'changed.txt': 'old', 'deleted.txt': 'old' })
  const work = () => {
    scratch.write({ 'changed.txt': 'new', 'made.txt': 'new' })
    scratch.remove('deleted.txt')
  }
  const sdk = madeUpSdk(work, ({ dryRun }) => {
    if (!dryRun) {
      scratch.write({ 'changed.txt': 'old', 'deleted.txt': 'old' })
      scratch.remove('made.txt')
    }
    return ['changed.txt', 'deleted.txt', 'made.txt'].map((name) => scratch.at(name))
  })
  const agent = await openClaudeAgent(scratch.root, { sdk, vars: scratch.vars })
  await say(agent, 'first')
  const dry = await agent.undo({ dryRun: true })
  expect([dry.change.files, dry.summary.files]).toEqual([[], 3])
  expect(dry.change.warnings).toEqual([
    'The SDK does not say beforehand what it would write and what delete: changed.txt, deleted.txt, made.txt.',
  ])
  const { change } = await agent.undo()
  expect(change.files).toEqual([
    { path: 'changed.txt', action: 'write' },
    { path: 'deleted.txt', action: 'write' },
    { path: 'made.txt', action: 'delete' },
  ])
  expect(change.warnings).toEqual([])
})

test.each(['EACCES: permission denied, open b.txt', 'Claude Code process exited with code 137'])(
  'a rewind that writes, and then fails (%s): what may have happened is said, with the way back',
  async (why) => {
    const scratch = new Scratch().init()
    const sdk = madeUpSdk(
      () => scratch.write({ 'a.txt': 'new\n' }),
      ({ dryRun }) => {
        if (dryRun) return [scratch.at('a.txt')]
        scratch.write({ 'a.txt': 'half of it\n' })
        throw new Error(why)
      },
    )
    const agent = await openClaudeAgent(scratch.root, { sdk, vars: scratch.vars })
    await say(agent, 'first')
    scratch.write({ 'a.txt': 'mine, in no commit\n' })
    const disk = scratch.manifest()
    const { code, message, hints } = await agent.undo().then(
      () => expect.unreachable(),
      (error: CkptError) => error,
    )
    expect([code, message]).toEqual(['INTERNAL', expect.stringContaining(why)])
    expect(message).not.toContain('Nothing was')
    const [, saved] = /The SDK may have changed files by then\. They are as they were in checkpoint (\w+)\.$/.exec(
      message,
    )!
    expect(hints[0]).toBe(`ckpt restore ${saved} --exact --force`)
    scratch.ckpt('restore', saved!, '--exact', '--force')
    expect(scratch.manifest()).toEqual(disk)
    expect(await agent.reverted()).toBe(null)
  },
)

test('a rewind that was done, and cannot be written down: the way back is named all the same', async () => {
  const scratch = new Scratch().init()
  const kept = path.join(ownDirectory(scratch), 'claude-agent-sdk')
  const sdk = madeUpSdk(
    () => scratch.write({ 'a.txt': 'new\n' }),
    ({ dryRun }) => {
      if (!dryRun) {
        scratch.remove('a.txt')
        fs.rmSync(kept, { recursive: true })
        fs.writeFileSync(kept, '')
      }
      return [scratch.at('a.txt')]
    },
  )
  const agent = await openClaudeAgent(scratch.root, { sdk, vars: scratch.vars })
  await say(agent, 'first')
  const disk = scratch.manifest()
  const { message, hints } = await agent.undo().then(
    () => expect.unreachable(),
    (error: CkptError) => error,
  )
  const [, saved] = /The SDK may have changed files by then\. They are as they were in checkpoint (\w+)\.$/.exec(
    message,
  )!
  expect(hints[0]).toBe(`ckpt restore ${saved} --exact --force`)
  scratch.ckpt('restore', saved!, '--exact', '--force')
  expect(scratch.manifest()).toEqual(disk)
})

test.each([
  ['no list', 'x'],
  ['names that are none', ['a.txt', 7, null]],
])('what the SDK says of a rewind is taken as far as it says anything: %s', async (_, told) => {
  const scratch = new Scratch().init()
  const sdk = madeUpSdk(
    () => scratch.write({ 'a.txt': 'new\n' }),
    () => told as string[],
  )
  const agent = await openClaudeAgent(scratch.root, { sdk, vars: scratch.vars })
  await say(agent, 'first')
  const { change } = await agent.undo()
  expect(change.files).toEqual(Array.isArray(told) ? [{ path: 'a.txt', action: 'write' }] : [])
  expect(await agent.reverted()).toMatchObject({ restoredPrompt: 'first' })
})

/** What ruins the wrapper's part of a store; whom it concerns: an agent whose session is known, or one that begins another. */
type Ruin = [string, 'known' | 'fresh', (directory: string, session: string) => void]
const ruins: Ruin[] = [
  ['no directory', 'known', (directory) => fs.writeFileSync(directory, '')],
  ['no directory', 'fresh', (directory) => fs.writeFileSync(directory, '')],
  ['damaged backends', 'fresh', (directory) => fs.writeFileSync(path.join(directory, '../backends.json'), '{')],
  [
    'a damaged record',
    'known',
    (directory, session) => {
      fs.mkdirSync(directory)
      fs.writeFileSync(path.join(directory, `${Buffer.from(session).toString('base64url')}.json`), '{')
    },
  ],
]

test.each(ruins.flatMap((ruin) => [[...ruin, true] as const, [...ruin, false] as const]))(
  'what cannot be recorded is a warning, and the agent goes on: %s, %s',
  async (_, whose, ruin, checkpoints) => {
    const { scratch, open, agent: first } = await stage(checkpoints)
    await say(first, 'first')
    const agent = whose === 'known' ? first : await open()
    const warnings: string[] = []
    agent.on('warning', (warning) => warnings.push(warning))
    const directory = scratch.at('.git/ckpt/worktrees/@main/claude-agent-sdk')
    fs.rmSync(directory, { recursive: true })
    ruin(directory, first.sessionId!)
    expect(await say(agent, 'second')).toBe('done')
    expect(warnings).not.toEqual([])
    expect([scratch.exists('second.txt'), agent.getQueryInstance()]).toEqual([true, null])
    expect(agent.sessionId === first.sessionId).toBe(whose === 'known')
  },
)

test.each([true, false])(
  'a prompt that the agent had not taken up yet is interrupted, and the one before it stays (%s)',
  async (checkpoints) => {
    const scratch = new Scratch().init()
    const held = new Map<string, () => void>()
    const start = (text: string) =>
      text.startsWith('slow') ? new Promise<void>((resolve) => held.set(text, resolve)) : undefined
    const sdk = madeUpSdk(
      (text) => scratch.write({ [`${text}.txt`]: text }),
      () => [],
      start,
    )
    const agent = await openClaudeAgent(scratch.root, { sdk, checkpoints, vars: scratch.vars })
    const onItsWay = async (prompt: string) => {
      const saying = say(agent, prompt)
      await expect.poll(() => held.has(prompt)).toBe(true)
      await expect(agent.undo()).rejects.toMatchObject({ code: 'TURN_RUNNING' })
      await expect(agent.undo({ interrupt: true })).rejects.toMatchObject({
        code: 'NOTHING_TO_UNDO',
        message:
          'What was sent last was ended before the agent took it up; what came before it stays. Nothing was changed.',
      })
      held.get(prompt)!()
      await saying
    }
    await onItsWay('slow 1')
    await say(agent, 'first')
    await onItsWay('slow 2')
    expect([sdk.interrupted, await described(agent), scratch.exists('first.txt')]).toEqual([2, ['first'], true])
    expect(await agent.undo()).toMatchObject({ restoredPrompt: 'first' })
    expect([scratch.exists('slow 1.txt'), scratch.exists('slow 2.txt')]).toEqual([false, false])
  },
)

test.each([true, false])(
  'a prompt whose words came while its query was aborted is the last one (%s)',
  async (checkpoints) => {
    const { scratch, agent } = await stage(checkpoints)
    await say(agent, 'first')
    const abortController = new AbortController()
    const query = agent.query({ prompt: 'second', options: { abortController } })
    for await (const { type } of query) {
      if (type !== 'system') continue
      await expect.poll(() => scratch.exists('second.txt')).toBe(true) // its prompt waits to be read
      abortController.abort()
    }
    expect([await described(agent), agent.messages.some(({ uuid }) => uuid === undefined)]).toEqual([
      ['second', 'first'],
      false,
    ])
    expect(await agent.undo()).toMatchObject({ restoredPrompt: 'second' })
  },
)
