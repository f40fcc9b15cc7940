// The real Claude Agent SDK with ckpt's own checkpoints beside it: what its own undo does not cover, redo, another process.
import { execFileSync } from 'node:child_process'
import path from 'node:path'
import { describe, expect, test } from 'vitest'
import { openWorktree } from '../../src/library/worktree.ts'
import { claudeStage, say, sdkFile } from '../support/claude-sdk.ts'
import { isThere } from '../support/clients.ts'
import { prompt } from '../support/told-model.ts'

const first = prompt('first', { read: 'a.txt' }, { write: 'a.txt', content: 'two\n' }, { bash: 'echo s > shell.txt' })
const second = prompt('second', { bash: 'rm b.txt && echo x >> a.txt' }, { write: 'new.txt', content: 'n\n' })

describe.skipIf(!isThere('The Claude Agent SDK', sdkFile))(
  'the SDK from npm (skipped where it is not)',
  { timeout: 300_000 },
  () => {
    test('shell edits and deletions are undone, redo works, and the capabilities say so', async () => {
      const { scratch, model, open, transcript } = await claudeStage()
      const agent = await open({ checkpoints: true })
      const heard: unknown[] = []
      agent.on('warning', (message) => heard.push(message))
      await say(agent, first)
      await say(agent, second)
      const session = agent.sessionId!
      const worktree = await openWorktree(scratch.root, { vars: scratch.vars, backends: [agent.backend], session })
      const { backend, capabilities } = await worktree.sessions.capabilities()
      expect([backend, capabilities.supportsRedo, capabilities.supportsDiff]).toEqual(['claude-agent-sdk', true, true])
      const [two, one] = await agent.checkpoints()
      const { turns } = await worktree.turns()
      expect(turns.map(({ n, messageId, agent: who, status }) => [n, messageId, who, status])).toEqual([
        [2, two!.id, 'claude', 'completed'],
        [1, one!.id, 'claude', 'completed'],
      ])
      expect(turns[0]!.steps.map(({ tool }) => tool)).toEqual(['Bash', 'Write'])
      const [after, before] = [scratch.manifest(), transcript(session)]

      const undone = await agent.undo()
      expect(undone).toMatchObject({
        revertMessageID: two!.id,
        restoredPrompt: second,
        summary: { files: 3, insertions: 1, deletions: 2 },
      })
      expect([scratch.read('a.txt'), scratch.read('b.txt'), scratch.exists('new.txt')]).toEqual(['two\n', 'b\n', false])
      await agent.redo()
      expect(scratch.manifest()).toEqual(after)
      await agent.undo({ to: two!.id })
      expect(await agent.reverted()).toMatchObject({ revertMessageID: two!.id, summary: { files: 3 } })
      expect(await agent.undo()).toMatchObject({ revertMessageID: one!.id })
      expect([scratch.read('a.txt'), scratch.exists('shell.txt')]).toEqual(['one\n', false])
      await agent.redo({ all: true })
      expect(scratch.manifest()).toEqual(after)
      expect(transcript(session)).toBe(before)
      // Nothing is undone: the conversation goes on where it is.
      await say(agent, prompt('third', { bash: 'echo 3 > third.txt' }))
      expect([agent.sessionId, model.heard.at(-1)]).toEqual([session, ['first', 'second', 'third']])
      expect(heard).toEqual([])
    })

    test('your own edits stay: a file that differs is a conflict, and nothing is written', async () => {
      const { scratch, open } = await claudeStage()
      const agent = await open({ checkpoints: true })
      await say(agent, first)
      scratch.write({ 'a.txt': 'mine\n' })
      const before = scratch.manifest()
      await expect(agent.undo()).rejects.toMatchObject({ code: 'CONFLICT', paths: ['a.txt'] })
      expect(scratch.manifest()).toEqual(before)
    })

    test('undone by the command line: the next prompt opens the fork all the same', async () => {
      const { scratch, model, open, transcript } = await claudeStage()
      const agent = await open({ checkpoints: true })
      await say(agent, first)
      await say(agent, second)
      const old = agent.sessionId!
      scratch.ckpt('undo', '--session', old)
      expect(scratch.read('b.txt')).toBe('b\n')
      const before = transcript(old)
      await say(agent, prompt('third', { bash: 'echo 3 > third.txt' }))
      const session = agent.sessionId!
      expect([session === old, model.heard.at(-1), transcript(old) === before]).toEqual([
        false,
        ['first', 'third'],
        true,
      ])
      expect(scratch.ckpt('status').boundary).toBe(null)
      const sessions = scratch.ckpt('list', '--sessions').sessions as {
        id: string
        parent: string | null
        turns: number
      }[]
      expect(sessions.map(({ id, parent, turns }) => [id, parent, turns])).toEqual([
        [session, old, 1],
        [old, null, 1],
      ])
      expect(
        scratch.ckpt('list', '--session', old, '--abandoned').turns.map((turn: any) => [turn.n, turn.abandoned]),
      ).toEqual([
        [2, true],
        [1, false],
      ])
      await agent.undo()
      expect(scratch.exists('third.txt')).toBe(false)
    })

    test('another process takes the session up: undo there, redo there', async () => {
      const { scratch, open, options } = await claudeStage()
      const agent = await open({ checkpoints: true })
      await say(agent, first)
      const plain = await open()
      await say(plain, prompt('no checkpoints', { write: 'plain.txt', content: 'p\n' }))
      const code = `
      import * as sdk from ${JSON.stringify(sdkFile)}
      import { openClaudeAgent } from ${JSON.stringify(path.resolve(import.meta.dirname, '../../dist/claude-agent-sdk.js'))}
      const [session, ...verbs] = process.argv.slice(1)
      const agent = await openClaudeAgent(process.cwd(), { sdk, session, options: JSON.parse(process.env.OPTIONS) })
      const said = [(await agent.checkpoints()).map(({ description }) => description.split(' ')[0])]
      for (const verb of verbs) said.push(await agent[verb]().then((one) => one.revertMessageID ?? one.turns, (error) => error.code))
      console.log(JSON.stringify(said))`
      const elsewhere = (session: string, ...verbs: string[]) =>
        JSON.parse(
          execFileSync(process.execPath, ['--input-type=module', '-e', code, session, ...verbs], {
            cwd: scratch.root,
            encoding: 'utf8',
            env: { ...scratch.vars, OPTIONS: JSON.stringify(options) },
          }),
        )
      const [one] = await agent.checkpoints()
      expect(elsewhere(agent.sessionId!, 'undo', 'redo', 'redo', 'undo')).toEqual([
        ['first'],
        one!.id,
        [1],
        'NOTHING_TO_REDO',
        one!.id,
      ])
      expect([scratch.read('a.txt'), scratch.exists('shell.txt')]).toEqual(['one\n', false])
      const [other] = await plain.checkpoints()
      expect(elsewhere(plain.sessionId!, 'undo', 'redo', 'undo')).toEqual([
        ['no'],
        other!.id,
        'UNSUPPORTED',
        'NOTHING_TO_UNDO',
      ])
      expect(scratch.exists('plain.txt')).toBe(false)
    })
  },
)
