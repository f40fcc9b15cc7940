// What only a real client can show beside the table: its transcripts, and what it is told after an undo.
import fs from 'node:fs'
import path from 'node:path'
import { describe, expect, onTestFinished, test } from 'vitest'
import { hookLog } from '../support/agents.ts'
import { fakeModel } from '../support/fake-model.ts'
import { modulesOf, prepare } from '../support/real-agents.ts'
import { AT_FIRST, SCENARIOS, type Scenario } from '../support/scenarios.ts'
import { type Json, Scratch } from '../support/scratch.ts'

const work = (name: string): Scenario['turns'][number] => [
  { op: 'bash', command: 'sleep 2' },
  { op: 'write', path: `${name}.txt`, content: `${name}\n` },
  { op: 'bash', command: `echo ${name} > ${name}-by-shell.txt` },
  { op: 'text', text: 'Done.' },
]
const scenario: Scenario = {
  prompts: ['[turn 1] Write one.txt.', '[turn 2] Write two.txt.', '[turn 3] Write three.txt.'],
  turns: [work('one'), work('two'), work('three')],
}

async function client(agent: string, { hooks }: { hooks: boolean }) {
  const scratch = new Scratch().init(AT_FIRST)
  onTestFinished(() => {
    scratch.run(['daemon', 'stop'])
  })
  const model = await fakeModel(scenario, scratch.root)
  onTestFinished(() => model.close())
  return { scratch, model, session: prepare(scratch, agent, { url: model.url, hooks }) }
}

const settled = async (scratch: Scratch, turns: number): Promise<Json[]> => {
  for (let i = 0; ; i++) {
    const { turns: found } = scratch.ckpt('list', '--all-sessions')
    if (i === 100 || (found.length === turns && found.every((turn: Json) => turn.status !== 'running'))) return found
    await new Promise((resolve) => setTimeout(resolve, 100))
  }
}

const transcriptOf = (scratch: Scratch, id: string) => {
  const directory = path.join(scratch.home, '.claude/projects')
  const [project] = fs.readdirSync(directory)
  return path.join(directory, project!, `${id}.jsonl`)
}

const isThere = modulesOf('claude') !== null
const told = isThere ? '' : ' is not installed: npm run test:agents'

describe.skipIf(!isThere)(`claude${told}`, () => {
  test.each(['a repository', 'a plain directory'])(
    'in %s each hook goes to the daemon; for a tool that only reads none is started',
    async (place) => {
      const scratch = new Scratch()
      if (place === 'a repository') scratch.init(AT_FIRST)
      else scratch.write(AT_FIRST)
      scratch.ckpt('init')
      onTestFinished(() => {
        scratch.run(['daemon', 'stop'])
      })
      const reading = SCENARIOS['two-turns']!
      const model = await fakeModel(reading, scratch.root)
      onTestFinished(() => model.close())
      const session = prepare(scratch, 'claude', model)
      const calls = (): number => scratch.ckpt('daemon', 'status').state.calls
      scratch.ckpt('daemon', 'start')
      const before = calls()
      const { session: id } = await session.turn(reading.prompts[0]!, null)
      await session.turn(reading.prompts[1]!, { session: id })
      // Each turn's start, prompt, stop and end; before and after each of five tools that write; this question itself.
      expect(calls() - before).toBe(2 * 4 + 2 * 5 + 1)
      expect(scratch.ckpt('undo', '--turns', '2').turns).toEqual([1, 2])
      for (const [name, content] of Object.entries(AT_FIRST))
        expect([name, scratch.read(name)]).toEqual([name, content])
    },
  )

  test('without hooks: a daemon takes turns from the transcript, and undo gives each back', async () => {
    const { scratch, session } = await client('claude', { hooks: false })
    fs.mkdirSync(`${scratch.home}/.claude/projects`, { recursive: true })
    scratch.ckpt('daemon', 'start')
    const states = [scratch.manifest()]
    const { session: id } = await session.turn(scenario.prompts[0]!, null)
    await settled(scratch, 1)
    states.push(scratch.manifest())
    await session.turn(scenario.prompts[1]!, { session: id })
    const turns = await settled(scratch, 2)
    expect(turns.map((turn) => [turn.session, turn.agent, turn.status, turn.prompt])).toEqual([
      [id, 'claude', 'completed', scenario.prompts[1]],
      [id, 'claude', 'completed', scenario.prompts[0]],
    ])
    for (const state of states.toReversed()) {
      scratch.ckpt('undo')
      expect(scratch.manifest()).toEqual(state)
    }
  })

  test('import-transcript: prompts, message ids and the tree; the file is only read', async () => {
    const { scratch, session } = await client('claude', { hooks: false })
    const { session: id } = await session.turn(scenario.prompts[0]!, null)
    await session.turn(scenario.prompts[1]!, { session: id })
    const file = transcriptOf(scratch, id)
    const before = { bytes: fs.readFileSync(file), stats: fs.statSync(file, { bigint: true }) }
    const { prompts } = scratch.ckpt('import-transcript', 'claude', file)
    expect(prompts.map((one: Json) => [one.session, one.turn, one.outcome, one.text, one.end])).toEqual([
      [id, 1, 'recorded', scenario.prompts[0], 'completed'],
      [id, 2, 'recorded', scenario.prompts[1], 'completed'],
    ])
    expect(prompts[0].parent).toBeNull()
    expect(prompts[1].parent).toBe(prompts[0].messageId)
    const again = scratch.ckpt('import-transcript', 'claude', file)
    expect(again.prompts.map((one: Json) => one.outcome)).toEqual(['known', 'known'])
    const { bytes, stats } = before
    expect(fs.readFileSync(file)).toEqual(bytes)
    expect(fs.statSync(file, { bigint: true })).toMatchObject({
      mtimeNs: stats.mtimeNs,
      ino: stats.ino,
      size: stats.size,
    })
    const { turns } = scratch.ckpt('list', '--session', id)
    expect(turns.map((turn: Json) => turn.messageId)).toEqual(prompts.map((one: Json) => one.messageId).toReversed())
  })

  test('with hooks and the watching of transcripts no turn is there twice', async () => {
    const { scratch, session } = await client('claude', { hooks: true })
    scratch.ckpt('daemon', 'start')
    const { session: id } = await session.turn(scenario.prompts[0]!, null)
    await session.turn(scenario.prompts[1]!, { session: id })
    const turns = await settled(scratch, 2)
    expect(turns.map((turn) => [turn.status, turn.steps.length])).toEqual([
      ['completed', 3],
      ['completed', 3],
    ])
    const { prompts } = scratch.ckpt('import-transcript', 'claude', transcriptOf(scratch, id))
    expect(prompts.map((one: Json) => [one.turn, one.outcome])).toEqual([
      [1, 'known'],
      [2, 'known'],
    ])
    // The id that the agent's own rewind takes.
    expect(turns.map((turn) => turn.messageId)).toEqual(prompts.map((one: Json) => one.messageId).toReversed())
    expect(hookLog(scratch)).toEqual([])
  })
})

describe.each(['claude', 'codex', 'gemini'])('%s', (agent) => {
  const there = modulesOf(agent) !== null
  test.skipIf(!there)(
    `after an undo the model is told, where it is wanted${there ? '' : ': not installed, npm run test:agents'}`,
    async () => {
      const { scratch, session, model } = await client(agent, { hooks: true })
      const { session: id } = await session.turn(scenario.prompts[0]!, null)
      await settled(scratch, 1)
      scratch.ckpt('undo')
      await session.turn(scenario.prompts[1]!, { session: id })
      await settled(scratch, 1)
      expect(model.asked.join('\n')).not.toContain('took back')
      fs.mkdirSync(`${scratch.home}/.config/ckpt`, { recursive: true })
      fs.writeFileSync(`${scratch.home}/.config/ckpt/.checkpointrc`, 'agents:\n  tellUndone: true\n')
      scratch.ckpt('undo')
      await session.turn(scenario.prompts[2]!, { session: id })
      const said = model.asked.at(-1)!
      expect(said).toContain('ckpt: the user took back what was done from turn 2 on.')
      expect(said).toContain('two-by-shell.txt')
      expect(said).not.toContain('one-by-shell.txt\\\\\\"')
      expect(hookLog(scratch)).toEqual([])
    },
  )
})

const hasCodex = modulesOf('codex') !== null
describe.skipIf(!hasCodex)(`codex${hasCodex ? '' : ' is not installed: npm run test:agents'}`, () => {
  test('hooks run only once they are trusted: doctor says so, and trust is given with --trust alone', async () => {
    const { scratch, session } = await client('codex', { hooks: false })
    const ckpt = (...args: string[]): Json => {
      const done = scratch.runApart([...args, '--json'], { vars: session.vars })
      return JSON.parse(done.stdout)
    }
    const finding = () => ckpt('doctor').findings.find(({ name }: Json) => name === 'agent codex')
    expect(finding()).toBeUndefined()
    expect(ckpt('agent', 'install', 'codex', '--yes').agents[0].trust).toBeUndefined()
    expect(finding()).toMatchObject({ ok: false, advice: true, mend: 'ckpt agent install codex --trust' })
    const { session: first } = await session.turn(scenario.prompts[0]!, null)
    expect(scratch.ckpt('list', '--all-sessions').turns).toEqual([])
    expect(ckpt('agent', 'install', 'codex', '--trust').agents[0]).toMatchObject({
      changed: false,
      trust: { trusted: 8, waiting: 0 },
    })
    expect(finding()).toMatchObject({ ok: true })
    await session.turn(scenario.prompts[1]!, { session: first })
    expect(await settled(scratch, 1)).toMatchObject([{ status: 'completed', agent: 'codex' }])
  })
})
