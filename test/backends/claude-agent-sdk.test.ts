// The real Claude Agent SDK from npm, with a model on loopback: its own undo, through ckpt's interface.
import fs from 'node:fs'
import { describe, expect, onTestFinished, test } from 'vitest'
import { CkptError } from '../../src/core/errors.ts'
import { openWorktree } from '../../src/library/worktree.ts'
import type { ClaudeCheckpoint } from '../../src/wrappers/claude-agent-sdk/record.ts'
import { claudeStage, claudeVars, say, sdkFile } from '../support/claude-sdk.ts'
import { isThere } from '../support/clients.ts'
import { fakeModel } from '../support/fake-model.ts'
import { SCENARIOS } from '../support/scenarios.ts'
import { prompt } from '../support/told-model.ts'

const codeOf = (work: Promise<unknown>) =>
  work.then(
    () => null,
    (error) => (error instanceof CkptError ? error.code : `not a CkptError: ${error}`),
  )

const names = (checkpoints: readonly ClaudeCheckpoint[]) =>
  checkpoints.map(({ description }) => description.replace(/ <do>.*/, ''))

const first = prompt('first', { read: 'a.txt' }, { write: 'a.txt', content: 'two\n' }, { bash: 'echo s > shell.txt' })
const second = prompt('second', { write: 'new.txt', content: 'n\n' }, { edit: 'a.txt', old: 'two', new: 'three' })

describe.skipIf(!isThere('The Claude Agent SDK', sdkFile))(
  'the SDK from npm (skipped where it is not)',
  { timeout: 300_000 },
  () => {
    test('two prompts, undo, undo: files, prompt, summary; shell edits stay, and redo is refused', async () => {
      const { scratch, open, transcript } = await claudeStage()
      const agent = await open()
      expect([agent.sessionId, agent.getQueryInstance(), await agent.checkpoints()]).toEqual([null, null, []])
      expect(await codeOf(agent.undo())).toBe('NOTHING_TO_UNDO')
      await say(agent, first)
      await say(agent, second)
      const session = agent.sessionId!
      expect(scratch.read('a.txt')).toBe('three\n')
      expect(await agent.checkpoints()).toMatchObject([
        { description: expect.stringMatching(/^second /), sessionId: session },
        { description: expect.stringMatching(/^first /), sessionId: session },
      ])
      const [two, one] = await agent.checkpoints()
      const before = transcript(session)

      const dry = await agent.undo({ dryRun: true })
      expect([scratch.read('a.txt'), dry.revertMessageID]).toEqual(['three\n', two!.id])
      const undone = await agent.undo()
      expect(undone).toMatchObject({
        revertMessageID: two!.id,
        restoredPrompt: second,
        summary: { files: 2, insertions: 1, deletions: 2 },
      })
      expect(undone.change).toMatchObject({ turns: [2], boundary: { turn: 2, messageId: two!.id, hiddenTurns: [2] } })
      expect(undone.change.files).toEqual([
        { path: 'a.txt', action: 'write' },
        { path: 'new.txt', action: 'delete' },
      ])
      expect([scratch.read('a.txt'), scratch.exists('new.txt')]).toEqual(['two\n', false])
      expect((await agent.checkpoints()).map(({ id }) => id)).toEqual([one!.id])
      expect(agent.messages.some(({ uuid }) => uuid === two!.id)).toBe(true)

      expect(await agent.reverted()).toEqual({
        revertMessageID: two!.id,
        restoredPrompt: second,
        summary: { files: 2, insertions: 1, deletions: 2 },
      })
      expect(await codeOf(agent.undo({ to: two!.id }))).toBe('NOTHING_TO_UNDO')
      expect(await agent.undo({ to: one!.id })).toMatchObject({ revertMessageID: one!.id, restoredPrompt: first })
      expect([scratch.read('a.txt'), scratch.exists('shell.txt')]).toEqual(['one\n', true])
      expect(await codeOf(agent.undo())).toBe('NOTHING_TO_UNDO')
      expect(await codeOf(agent.redo())).toBe('UNSUPPORTED')
      // Append-only: what was there is there, and no message was added.
      expect(transcript(session).startsWith(before)).toBe(true)
      expect(transcript(session).slice(before.length)).not.toMatch(/"type":"(user|assistant)"/)
    })

    test('going on after an undo: a fork from before it, with a session and checkpoints of its own', async () => {
      const { scratch, model, open, transcript } = await claudeStage()
      const agent = await open()
      const events: unknown[] = []
      agent.on('session.started', (event) => events.push(['started', event]))
      agent.on('session.forked', (event) => events.push(['forked', event]))
      agent.on('boundary.changed', ({ messageId }) => events.push(['boundary', messageId]))
      await say(agent, first)
      await say(agent, second)
      const old = agent.sessionId!
      const { revertMessageID } = await agent.undo()
      const before = transcript(old)
      await say(agent, prompt('third', { write: 'third.txt', content: '3\n' }))
      const session = agent.sessionId!
      expect(session).not.toBe(old)
      expect(events).toEqual([
        ['started', { session: old }],
        ['boundary', revertMessageID],
        ['boundary', null],
        ['forked', { old, new: session }],
      ])
      expect(transcript(old)).toBe(before)
      expect(await agent.reverted()).toBe(null)
      // What was undone is no longer part of the conversation, neither for the model nor here.
      expect(model.heard.at(-1)).toEqual(['first', 'third'])
      expect(agent.messages.some(({ uuid }) => uuid === revertMessageID)).toBe(false)
      expect(names(await agent.checkpoints())).toEqual(['third'])
      const worktree = await openWorktree(scratch.root, { vars: scratch.vars, backends: [agent.backend], session })
      expect(await worktree.sessions.getSessionInfo()).toMatchObject({ id: session, parent: old, boundary: null })
      // It goes on in the fork, once it is one.
      await say(agent, prompt('fourth', { write: 'fourth.txt', content: '4\n' }))
      expect([agent.sessionId, model.heard.at(-1)]).toEqual([session, ['first', 'third', 'fourth']])
      // And the fork can be undone to its own beginning, and goes on from there.
      await agent.undo({ turns: 2 })
      expect([scratch.exists('third.txt'), scratch.exists('fourth.txt')]).toEqual([false, false])
      await say(agent, prompt('fifth', { write: 'fifth.txt', content: '5\n' }))
      expect(agent.sessionId).not.toBe(session)
      expect(model.heard.at(-1)).toEqual(['first', 'fifth'])
    })

    test('the very first prompt undone: a fresh session', async () => {
      const { scratch, model, open, transcript } = await claudeStage()
      const agent = await open()
      const forked: unknown[] = []
      agent.on('session.forked', (event) => forked.push(event))
      await say(agent, first)
      const old = agent.sessionId!
      await agent.undo()
      const before = transcript(old)
      await say(agent, prompt('again', { write: 'again.txt', content: 'x\n' }))
      expect(agent.sessionId).not.toBe(old)
      expect([forked, model.heard.at(-1), scratch.read('a.txt')]).toEqual([[], ['again'], 'one\n'])
      expect(transcript(old)).toBe(before)
      const worktree = await openWorktree(scratch.root, { vars: scratch.vars, backends: [agent.backend] })
      expect((await worktree.sessions.getSessionInfo(agent.sessionId!)).parent).toBe(null)
    })

    test('opened again: checkpoints and what is undone are as they were, also for a session that was never seen', async () => {
      const { scratch, model, open, transcript } = await claudeStage()
      const one = await open()
      await say(one, first)
      await say(one, second)
      const session = one.sessionId!
      const known = await one.checkpoints()
      await one.undo()
      const again = await open({ session })
      expect(await again.checkpoints()).toEqual(known.slice(1))
      expect(await again.undo()).toMatchObject({ revertMessageID: known[1]!.id })
      expect(scratch.read('a.txt')).toBe('one\n')
      expect(await again.reverted()).toMatchObject({ revertMessageID: known[1]!.id, restoredPrompt: first })
      // Nothing is known of it here but its transcript.
      fs.rmSync(scratch.at('.git/ckpt'), { recursive: true })
      scratch.write({ 'a.txt': 'three\n' })
      const stranger = await open({ session })
      expect((await stranger.checkpoints()).map(({ id, description }) => [id, description])).toEqual(
        known.map(({ id, description }) => [id, description]),
      )
      expect(await stranger.undo()).toMatchObject({ revertMessageID: known[0]!.id, restoredPrompt: second })
      expect(scratch.read('a.txt')).toBe('two\n')
      const before = transcript(session)
      await say(stranger, prompt('third', { write: 'third.txt', content: '3\n' }))
      expect(model.heard.at(-1)).toEqual(['first', 'third'])
      expect(transcript(session)).toBe(before)
    })

    test('the SDK chooses the session (continue): its earlier prompts can be undone too', async () => {
      const { scratch, open, options } = await claudeStage()
      const one = await open()
      await say(one, first)
      fs.rmSync(scratch.at('.git/ckpt'), { recursive: true })
      const agent = await open({ options: { ...options, continue: true } })
      const created: string[] = []
      agent.on('checkpoint.created', ({ description }) => created.push(description))
      await say(agent, second)
      await say(agent, prompt('third', { write: 'third.txt', content: '3\n' }))
      expect(agent.sessionId).toBe(one.sessionId)
      expect([names(await agent.checkpoints()), created.length]).toEqual([['third', 'second', 'first'], 2])
      await agent.undo({ turns: 3 })
      expect([scratch.read('a.txt'), scratch.exists('new.txt'), scratch.exists('third.txt')]).toEqual([
        'one\n',
        false,
        false,
      ])
    })

    test('ten prompts are kept, or as many as the configuration says', async () => {
      const { scratch, open } = await claudeStage()
      const agent = await open()
      for (let n = 1; n <= 12; n++) await say(agent, prompt(`prompt ${n}`, { bash: 'true' }))
      expect(names(await agent.checkpoints())).toEqual([12, 11, 10, 9, 8, 7, 6, 5, 4, 3].map((n) => `prompt ${n}`))
      scratch.write({ '.checkpointrc': '{"checkpointKeepCount": 3}' })
      scratch.git('add', '.checkpointrc')
      scratch.git('commit', '-q', '-m', 'keep three')
      await say(agent, prompt('prompt 13', { bash: 'true' }))
      expect(names(await agent.checkpoints())).toEqual([13, 12, 11].map((n) => `prompt ${n}`))
    })

    test('each refusal is its own: nothing to undo, cannot rewind, no query', async () => {
      const { scratch, open, options } = await claudeStage()
      const agent = await open()
      await say(agent, first)
      const session = agent.sessionId!
      const before = scratch.manifest()
      const off = await open({
        session,
        options: { ...options, env: { ...(options.env as object), CLAUDE_CODE_DISABLE_FILE_CHECKPOINTING: '1' } },
      })
      const warnings: string[] = []
      off.on('warning', (message) => warnings.push(message))
      expect(await codeOf(off.undo())).toBe('CONFLICT')
      await say(off, prompt('second', { bash: 'true' }))
      expect(warnings).toEqual([expect.stringContaining('CLAUDE_CODE_ENABLE_SDK_FILE_CHECKPOINTING=true')])
      const { HOME: _, ...homeless } = options.env as Record<string, string>
      const lost = await open({ session, options: { ...options, env: { ...homeless, HOME: scratch.base } } })
      expect(await codeOf(lost.undo())).toBe('NOT_FOUND')
      expect(await codeOf(agent.undo({ turns: 2 }))).toBe(null)
      expect(await codeOf(agent.undo())).toBe('NOTHING_TO_UNDO')
      expect(before).not.toEqual(scratch.manifest())
    })

    test('a stream of prompts: the live query rewinds, and a prompt after an undo opens the fork by itself', async () => {
      const { scratch, model, open } = await claudeStage()
      const agent = await open()
      const waiting: ((text: string | null) => void)[] = []
      const prompts = (async function* () {
        for (;;) {
          const text = await new Promise<string | null>((resolve) => waiting.push(resolve))
          if (text === null) return
          yield { type: 'user' as const, parent_tool_use_id: null, message: { role: 'user' as const, content: text } }
        }
      })()
      const query = agent.query({ prompt: prompts })
      const results: string[] = []
      const next = [first, second, 'undo', prompt('third', { write: 'third.txt', content: '3\n' }), null]
      const sessions: (string | null)[] = []
      const step = async (): Promise<void> => {
        const one = next.shift()
        if (one !== 'undo') return void waiting.shift()?.(one ?? null)
        expect(agent.getQueryInstance()).not.toBe(null)
        await agent.undo()
        expect(scratch.read('a.txt')).toBe('two\n')
        await step()
      }
      while (waiting.length === 0) await new Promise((resolve) => setTimeout(resolve, 10))
      await step()
      for await (const message of query) {
        if (message.type !== 'result') continue
        results.push(String(message.result))
        sessions.push(agent.sessionId)
        while (waiting.length === 0) await new Promise((resolve) => setTimeout(resolve, 10))
        await step()
      }
      expect(results).toEqual(['done', 'done', 'done'])
      expect(new Set(sessions).size).toBe(2)
      expect(model.heard.at(-1)).toEqual(['first', 'third'])
      expect(agent.getQueryInstance()).toBe(null)
    })

    test('prompts that are sent while a turn runs are part of it: one checkpoint, one undo', async () => {
      const { scratch, open } = await claudeStage()
      for (const checkpoints of [false, true]) {
        scratch.git('checkout', '-q', '.')
        const agent = await open({ checkpoints })
        await say(agent, first)
        const worktree = await openWorktree(scratch.root, { vars: scratch.vars, backends: [agent.backend] })
        const prompts = (async function* () {
          for (const content of [second, 'By the way,', 'one more thing.'])
            yield { type: 'user' as const, parent_tool_use_id: null, message: { role: 'user' as const, content } }
        })()
        for await (const _ of agent.query({ prompt: prompts })) {
          // Read to its end.
        }
        const told = agent.messages.filter((message) => JSON.stringify(message).includes('one more thing'))
        expect([told.length, names(await agent.checkpoints())]).toEqual([1, ['second', 'first']])
        expect((await worktree.turns({ session: agent.sessionId! })).turns.map(({ n, status }) => [n, status])).toEqual(
          [
            [2, 'completed'],
            [1, 'completed'],
          ],
        )
        expect(await agent.undo()).toMatchObject({ restoredPrompt: second })
        expect([scratch.read('a.txt'), scratch.exists('new.txt')]).toEqual(['two\n', false])
      }
    })

    test('a turn at work is not undone, unless it is interrupted', async () => {
      const { scratch, open } = await claudeStage()
      const agent = await open()
      await say(agent, first)
      const slow = prompt(
        'slow',
        { write: 'slow.txt', content: 's\n' },
        { bash: 'until [ -e never ]; do sleep 1; done' },
      )
      const ended = say(agent, slow).catch(() => 'ended')
      while (!scratch.exists('slow.txt')) await new Promise((resolve) => setTimeout(resolve, 20))
      expect(agent.getQueryInstance()).not.toBe(null)
      expect(await codeOf(agent.undo())).toBe('TURN_RUNNING')
      expect(scratch.exists('slow.txt')).toBe(true)
      expect(await agent.undo({ interrupt: true })).toMatchObject({ restoredPrompt: slow })
      expect([scratch.exists('slow.txt'), scratch.read('a.txt')]).toEqual([false, 'two\n'])
      await ended
    })

    test('so it is with an agent in the background, and with what is done when that has ended', async () => {
      const { scratch, open, options } = await claudeStage()
      const scenario = SCENARIOS.background!
      const model = await fakeModel(scenario, scratch.root)
      onTestFinished(model.close)
      const agent = await open({ options: { ...options, env: { ...scratch.vars, ...claudeVars(model) } } })
      const told: Record<string, string | null> = {}
      for await (const message of agent.query({ prompt: scenario.prompts[0]! })) {
        const isOwn = message.type === 'assistant' && !message.parent_tool_use_id
        if (isOwn && /It works on it/.test(JSON.stringify(message))) told.launched = await codeOf(agent.undo())
        if (message.type === 'result' && !scratch.exists('sub.txt')) told.ended = await codeOf(agent.undo())
        if (isOwn && /Followed up/.test(JSON.stringify(message))) told.followed = await codeOf(agent.undo())
      }
      expect(told).toEqual({ launched: 'TURN_RUNNING', ended: 'TURN_RUNNING', followed: 'TURN_RUNNING' })
      expect(agent.getQueryInstance()).toBe(null)
      // What an agent in the background wrote the SDK leaves.
      await agent.undo()
      expect([scratch.exists('sub.txt'), scratch.exists('follow.txt')]).toEqual([true, false])

      scratch.remove('sub.txt', 'sub-by-shell.txt')
      let undone: ReturnType<typeof agent.undo> | null = null
      for await (const message of agent.query({ prompt: scenario.prompts[0]! }))
        if (message.type === 'result') undone ??= agent.undo({ interrupt: true })
      expect(await undone).toMatchObject({ restoredPrompt: scenario.prompts[0] })
      expect([scratch.exists('sub.txt'), scratch.exists('follow.txt')]).toEqual([false, false])
    })
  },
)
