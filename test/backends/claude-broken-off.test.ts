// The real Claude Agent SDK, broken off in the middle: left by the caller, aborted, killed. And places and calls beside the usual.
import fs from 'node:fs'
import { describe, expect, test } from 'vitest'
import { openClaudeAgent } from '../../src/wrappers/claude-agent-sdk/agent.ts'
import { claudeStage, claudeVars, loadSdk, type Stage, say, sdkFile } from '../support/claude-sdk.ts'
import { isThere } from '../support/clients.ts'
import { Scratch } from '../support/scratch.ts'
import { prompt, startModel } from '../support/told-model.ts'

const first = prompt('first', { write: 'one.txt', content: '1\n' })
const endless = prompt('second', { write: 'two.txt', content: '2\n' }, { bash: 'until [ -e never ]; do sleep 1; done' })

async function until(holds: () => boolean): Promise<void> {
  while (!holds()) await new Promise((resolve) => setTimeout(resolve, 20))
}

/** Whether the SDK has written down what the files were before the newest `endless`: killed earlier it cannot go back there. */
function isKept({ transcript }: Stage, session: string): boolean {
  try {
    const lines = transcript(session)
      .trimEnd()
      .split('\n')
      .map((line) => JSON.parse(line))
    const asked = lines.findLast(({ type, message }) => type === 'user' && JSON.stringify(message).includes('never'))
    return lines.some(({ type, messageId }) => type === 'file-history-snapshot' && messageId === asked.uuid)
  } catch {
    return false // it is not there yet, or a line of it is half written
  }
}

/** The agent's own processes of this test. */
function processes({ scratch }: Stage): number[] {
  const pids = fs.readdirSync('/proc').filter((name) => /^\d+$/.test(name))
  const isOurs = (pid: string) => {
    try {
      const program = fs.readlinkSync(`/proc/${pid}/exe`)
      return (
        /claude/.test(program) && fs.readFileSync(`/proc/${pid}/environ`, 'utf8').includes(`HOME=${scratch.home}\0`)
      )
    } catch {
      return false // it is gone, or not ours to look at
    }
  }
  return pids.filter(isOurs).map(Number)
}

describe.skipIf(!isThere('The Claude Agent SDK', sdkFile))(
  'the SDK from npm (skipped where it is not)',
  { timeout: 300_000 },
  () => {
    test.each([false, true])(
      'left, aborted, killed: the turn can be undone, and the next one goes on (%s)',
      async (checkpoints) => {
        const stage = await claudeStage()
        const { scratch, open, options, model } = stage
        const agent = await open({ checkpoints })
        await say(agent, first)
        const goneBack = async (...heard: string[]) => {
          expect(agent.getQueryInstance()).toBe(null)
          expect(await agent.undo()).toMatchObject({ restoredPrompt: endless })
          expect([scratch.exists('two.txt'), scratch.exists('one.txt')]).toEqual([false, true])
          await say(agent, prompt(heard.at(-1)!, { bash: 'true' }))
          expect(model.heard.at(-1)).toEqual(heard)
        }
        /** It has written the file; and the SDK, whose own undo it is without ours, that it was not there before. */
        const isAtWork = () => scratch.exists('two.txt') && (checkpoints || isKept(stage, agent.sessionId!))
        for await (const _ of agent.query({ prompt: endless })) {
          if (!scratch.exists('two.txt')) continue
          await until(isAtWork)
          break
        }
        await goneBack('first', 'third')

        const abortController = new AbortController()
        const aborted = say(agent, endless, { ...options, abortController })
        await until(isAtWork)
        abortController.abort()
        await expect(aborted).rejects.toThrow('abort')
        await goneBack('first', 'third', 'fourth')

        const killed = say(agent, endless)
        await until(isAtWork)
        const pids = processes(stage)
        expect(pids).not.toEqual([])
        for (const pid of pids) process.kill(pid, 'SIGKILL')
        await expect(killed).rejects.toThrow('SIGKILL')
        await goneBack('first', 'third', 'fourth', 'fifth')
      },
    )

    test('a plain directory, once it is initialized', async () => {
      const scratch = new Scratch('plain')
      const model = await startModel(scratch.root)
      const env = { ...scratch.vars, ...claudeVars(model) }
      const options = { env, permissionMode: 'bypassPermissions', allowDangerouslySkipPermissions: true }
      const given = { sdk: await loadSdk(), options, vars: scratch.vars, checkpoints: true }
      await expect(openClaudeAgent(scratch.root, given)).rejects.toMatchObject({ code: 'NOT_INITIALIZED' })
      const agent = await openClaudeAgent(scratch.root, { ...given, init: true })
      await say(agent, first)
      await agent.undo()
      expect(fs.readdirSync(scratch.root)).toEqual([])
      await agent.redo()
      expect(fs.readdirSync(scratch.root)).toEqual(['one.txt'])
    })

    test("the caller's own hooks and calls: they reach the SDK's query", async () => {
      const { scratch, open, options } = await claudeStage()
      const agent = await open({ checkpoints: true })
      const seen: string[] = []
      const own = async (input: { tool_name: string }) => {
        seen.push(input.tool_name)
        return {}
      }
      const query = agent.query({ prompt: first, options: { ...options, hooks: { PreToolUse: [{ hooks: [own] }] } } })
      const calls = query as unknown as { supportedCommands: () => Promise<unknown[]> }
      expect((await calls.supportedCommands()).length).toBeGreaterThan(0)
      for await (const _ of query) {
        // Read to its end.
      }
      expect([seen, scratch.exists('one.txt')]).toEqual([['Write'], true])
      expect(scratch.ckpt('list').turns.map((turn: any) => turn.steps.length)).toEqual([1])
    })
  },
)
