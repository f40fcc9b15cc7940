import { describe, expect, test } from 'vitest'
import { Prompts } from '../../src/wrappers/claude-agent-sdk/prompts.ts'
import type { AgentMessage } from '../../src/wrappers/claude-agent-sdk/sdk.ts'
import { Unprompted } from '../../src/wrappers/claude-agent-sdk/unprompted.ts'

const system = (subtype: string, more: object = {}): AgentMessage => ({ type: 'system', subtype, ...more })
const tasks = (...types: string[]) =>
  system('background_tasks_changed', { tasks: types.map((task_type, i) => ({ task_id: `t${i}`, task_type })) })
const said: AgentMessage = { type: 'assistant', parent_tool_use_id: null }
const result: AgentMessage = { type: 'result', subtype: 'success' }

/** Whether it is at work after each message; the ones within `prompted` are about a prompt. */
function states(...messages: (AgentMessage | { prompted: AgentMessage })[]): boolean[] {
  const unprompted = new Unprompted()
  return messages.map((one) => {
    if ('prompted' in one) unprompted.hear(one.prompted, true)
    else unprompted.hear(one, false)
    return unprompted.running
  })
}

describe('what the agent does without a prompt', () => {
  test('an agent in the background is at work until the result of what its end starts', () => {
    const end = [system('task_notification'), tasks(), system('init'), said, result]
    expect(states({ prompted: tasks('local_agent') }, result, ...end)).toEqual([
      true,
      true,
      true,
      true,
      true,
      true,
      false,
    ])
  })

  test('a command in the background is not, what its end starts is', () => {
    const end = [system('task_notification'), tasks(), system('init'), result]
    expect(states({ prompted: tasks('local_bash') }, result, ...end)).toEqual([false, false, true, true, true, false])
  })

  test('nothing is done at the end of what was stopped', () => {
    const stopped = system('task_notification', { status: 'stopped' })
    expect(states(tasks('local_agent'), stopped, tasks())).toEqual([true, true, false])
  })

  test('what is heard while a prompt is worked on is a part of that', () => {
    const ended = system('task_notification')
    expect(states({ prompted: ended }, { prompted: system('init') }, { prompted: said })).toEqual([false, false, false])
    const within = { ...said, parent_tool_use_id: 'agent' }
    expect(states(result, within)).toEqual([false, false])
  })

  test('an end that starts nothing is given up, what began is not', () => {
    const unprompted = new Unprompted()
    unprompted.hear(system('task_notification'), false)
    expect([unprompted.onlyWaiting, unprompted.running]).toEqual([true, true])
    unprompted.giveUp()
    expect([unprompted.onlyWaiting, unprompted.running]).toEqual([false, false])
    unprompted.hear(said, false)
    unprompted.giveUp()
    expect([unprompted.onlyWaiting, unprompted.running]).toEqual([false, true])
  })
})

test('a prompt that is shown again after its result begins no turn; one that was given up may come late', () => {
  const prompts = new Prompts()
  prompts.send('a', 'one')
  expect([prompts.takeUp('a'), prompts.running]).toEqual([true, true])
  prompts.end()
  expect([prompts.takeUp('a'), prompts.running]).toEqual([false, false])
  prompts.send('b', 'two')
  prompts.giveUp()
  expect([prompts.running, prompts.takeUp('b'), prompts.running]).toEqual([false, true, true])
})
