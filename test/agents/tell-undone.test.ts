// After an undo the next prompt's hook tells the agent, where that is wanted (`agents.tellUndone`).
import fs from 'node:fs'
import { expect, test } from 'vitest'
import { hook, hookLog } from '../support/agents.ts'
import { type Json, Scratch } from '../support/scratch.ts'

/** A turn with two calls; `prompt` gives what the agent is told. */
function session(scratch: Scratch) {
  const say = async (hook_event_name: string, prompt_id: string, more: Json = {}) => {
    const payload = { hook_event_name, session_id: 's', cwd: scratch.root, prompt_id, ...more }
    return (await hook(scratch, 'claude', { payload })).stdout
  }
  const prompt = async (id: string) => {
    const said = await say('UserPromptSubmit', id, { prompt: `Do ${id}` })
    return said === '' ? '' : JSON.parse(said).hookSpecificOutput.additionalContext
  }
  const turn = async (id: string) => {
    for (const name of ['one.txt', 'two.txt']) {
      const call = { tool_name: 'Write', tool_use_id: `${id} ${name}`, tool_input: { file_path: scratch.at(name) } }
      await say('PreToolUse', id, call)
      scratch.write({ [name]: `${id}\n` })
      await say('PostToolUse', id, call)
    }
    await say('Stop', id)
  }
  return { prompt, turn }
}

test('after an undo of a turn, or of a step, the next prompt says once what was taken back', async () => {
  const scratch = new Scratch().init()
  fs.mkdirSync(`${scratch.home}/.config/ckpt`, { recursive: true })
  fs.writeFileSync(`${scratch.home}/.config/ckpt/.checkpointrc`, 'agents:\n  tellUndone: true\n')
  const { prompt, turn } = session(scratch)
  expect(await prompt('p1')).toBe('')
  await turn('p1')
  scratch.ckpt('undo', '--step')
  expect(await prompt('p2')).toMatch(/^ckpt: the user took back what was done from step 1\.2 on\. .*: "two\.txt"\.$/)
  expect(await prompt('p2')).toBe('') // the same, by a second hook
  await turn('p2')
  scratch.ckpt('undo')
  expect(await prompt('p3')).toMatch(/ from turn 2 on\. .*: "one\.txt", "two\.txt"\.$/)
  await turn('p3')
  expect(await prompt('p4')).toBe('')
  expect(hookLog(scratch)).toEqual([])
})

test('where nobody asked for it, nothing is told', async () => {
  const scratch = new Scratch().init()
  const { prompt, turn } = session(scratch)
  await prompt('p1')
  await turn('p1')
  scratch.ckpt('undo')
  expect(await prompt('p2')).toBe('')
})
