// The real clients, offline, with the hooks that the installer gave them: the same table as for the recorded payloads.
import { spawn } from 'node:child_process'
import fs from 'node:fs'
import path from 'node:path'
import { describe, expect, onTestFinished, test } from 'vitest'
import { hookLog } from '../support/agents.ts'
import { fakeModel } from '../support/fake-model.ts'
import { CLIENTS, type From, modulesOf, prepare, type Session } from '../support/real-agents.ts'
import { keepRecorded } from '../support/recorder.ts'
import { AT_FIRST, forksIn, inOrder, SCENARIOS, type Scenario, TABLE } from '../support/scenarios.ts'
import { type Json, Scratch } from '../support/scratch.ts'
import { hasPython } from '../support/terminal.ts'

/** Milliseconds for one turn of a client. */
const PATIENCE = 120_000

async function until(what: string, holds: () => boolean, ms = PATIENCE): Promise<void> {
  for (const end = Date.now() + ms; !holds(); ) {
    if (Date.now() > end) throw new Error(`waited in vain: ${what}`)
    await new Promise((resolve) => setTimeout(resolve, 50))
  }
}

const pause = (ms: number) => new Promise((resolve) => setTimeout(resolve, ms))

/** Runs the prompts one by one; gives the disk before each. */
async function headless(scratch: Scratch, session: Session, scenario: Scenario) {
  const states: Record<string, string>[] = []
  const ids: string[] = []
  for (const [i, prompt] of scenario.prompts.entries()) {
    const goesOn = scenario.from?.[i] ?? (i === 0 ? 'new' : i)
    const old = typeof goesOn === 'number' ? goesOn : typeof goesOn === 'object' ? goesOn.fork : null
    const from: From = old === null ? null : { session: ids[old - 1]!, fork: typeof goesOn === 'object' }
    states.push(scratch.manifest())
    const { session: id, output } = await session.turn(prompt, from)
    if (id === '') throw new Error(`no session in: ${output.slice(-2000)}`)
    ids.push(id)
  }
  return { states, ids }
}

/** Somebody at a terminal, who interrupts the first turn. */
async function interrupted(
  scratch: Scratch,
  session: Session,
  { agent, scenario }: { agent: string; scenario: Scenario },
) {
  const { interactive, interrupt, quit, settling } = CLIENTS[agent]!
  const child = spawn('python3', [path.resolve('test/support/relay.py'), ...session.argv, ...interactive], {
    cwd: scratch.root,
    env: session.vars,
    stdio: ['pipe', 'pipe', 'inherit'],
  })
  onTestFinished(() => {
    child.kill('SIGKILL')
  })
  let last = Date.now()
  let shown = ''
  child.stdout.on('data', (chunk: Buffer) => {
    shown += chunk.toString('utf8')
    last = Date.now()
  })
  const quiet = async (ms: number) => {
    await pause(ms)
    await until('quiet', () => Date.now() - last > ms, 20_000).catch(() => undefined) // some never come to rest
  }
  const type = async (text: string) => {
    child.stdin.write(text)
    await pause(1000)
    child.stdin.write('\r')
  }
  const states = [scratch.manifest()]
  await until('something shown', () => shown !== '')
  await pause(settling)
  await quiet(2000)
  await type(scenario.prompts[0]!)
  await until('the shell command begins', () => scratch.exists(scenario.interruptAt!), 60_000)
  await pause(1000)
  for (const key of interrupt) {
    child.stdin.write(key)
    await pause(500)
  }
  await quiet(2000)
  states.push(scratch.manifest())
  await type(scenario.prompts[1]!)
  await until('after.txt', () => scratch.exists('after.txt'), 60_000)
  await quiet(2000)
  await type(quit)
  await Promise.race([new Promise((resolve) => child.on('close', resolve)), pause(5000)])
  child.stdin.end()
  return { states }
}

/** Turns of all sessions, oldest first; ends may come a moment after their client has gone, and after its session's end. */
async function turnsOf(scratch: Scratch, expected: readonly { status: string }[]): Promise<Json[]> {
  let turns: Json[] = []
  for (let i = 0; i < 100; i++) {
    turns = inOrder(scratch.ckpt('list', '--all-sessions').turns)
    if (turns.every((turn, at) => turn.status === expected[at]?.status)) break
    await pause(100)
  }
  return turns
}

for (const agent of Object.keys(CLIENTS)) {
  const isThere = modulesOf(agent) !== null
  describe.skipIf(!isThere)(`${agent}${isThere ? '' : ' is not installed: npm run test:agents'}`, () => {
    const rows = TABLE.filter((one) => one.agent === agent).map((row) => [row.scenario, row] as const)
    test.each(rows)('%s', { timeout: 600_000 }, async (_, row) => {
      const scenario = SCENARIOS[row.scenario]!
      if (scenario.interruptAt && !hasPython) return
      const scratch = new Scratch().init(AT_FIRST)
      onTestFinished(() => {
        scratch.run(['daemon', 'stop'])
      })
      const model = await fakeModel(scenario, scratch.root)
      onTestFinished(() => model.close())
      const session = prepare(scratch, agent, model)
      const { states, ...more } = scenario.interruptAt
        ? await interrupted(scratch, session, { agent, scenario })
        : await headless(scratch, session, scenario)
      if (process.env.CKPT_RECORD) keepRecorded(scratch, agent, row.scenario)
      expect(hookLog(scratch)).toEqual([])
      const turns = await turnsOf(scratch, row.turns)
      const seen = turns.map(({ status, steps, unclaimed }) => ({
        status,
        steps: steps.map((step: Json) => step.tool),
        unclaimed,
      }))
      expect(seen).toEqual(row.turns.map((turn) => ({ unclaimed: [], ...turn })))
      expect(turns.map((turn) => turn.prompt)).toEqual(
        scenario.prompts.map((prompt) => expect.stringContaining(prompt.slice(0, 60))),
      )
      expect(turns.every((turn) => turn.agent === agent && typeof turn.messageId === 'string')).toBe(true)
      if ('ids' in more) expect(turns.map((turn) => turn.session)).toEqual(more.ids)
      const parents = Object.fromEntries(
        scratch.ckpt('list', '--sessions').sessions.map((one: Json) => [one.id, one.parent]),
      )
      for (const [child, parent] of forksIn(scenario))
        expect(parents[turns[child]!.session]).toBe(row.untold ? null : turns[parent]!.session)
      for (const [i, state] of [...states.entries()].toReversed()) {
        scratch.ckpt('undo', '--session', turns[i]!.session, ...(row.undo ?? []))
        expect(scratch.manifest()).toEqual(state)
      }
    })
  })
}

const both = modulesOf('claude') !== null && modulesOf('codex') !== null
describe.skipIf(!both)(`two real clients at once${both ? '' : ' are not installed: npm run test:agents'}`, () => {
  test('both timelines are whole', { timeout: 600_000 }, async () => {
    const scratch = new Scratch().init()
    onTestFinished(() => {
      scratch.run(['daemon', 'stop'])
    })
    const work = (name: string): Scenario => ({
      prompts: [`[turn 1] ${name} one`, `[turn 2] ${name} two`],
      turns: ['one', 'two'].map((turn) => [
        { op: 'write', path: `${name}-${turn}.txt`, content: `${name}\n` },
        { op: 'bash', command: `sleep 0.2; echo ${turn} > ${name}-${turn}-by-shell.txt` },
        { op: 'text', text: 'Done.' },
      ]),
    })
    const runs = ['claude', 'codex'].map(async (agent) => {
      const scenario = work(agent)
      const model = await fakeModel(scenario, scratch.root)
      onTestFinished(() => model.close())
      const session = prepare(scratch, agent, model)
      const { ids } = await headless(scratch, session, scenario)
      return { agent, session: ids[0]! }
    })
    const sessions = await Promise.all(runs)
    expect(hookLog(scratch)).toEqual([])
    for (const { agent, session } of sessions) {
      const { turns } = scratch.ckpt('list', '--session', session)
      expect(turns.map((turn: Json) => [turn.n, turn.agent, turn.status, turn.steps.length])).toEqual([
        [2, agent, 'completed', 2],
        [1, agent, 'completed', 2],
      ])
    }
    const first = sessions[0]!
    // What both may have done by a shell at the same time is nobody's for sure, and stays.
    scratch.ckpt('undo', '--session', first.session, '--turns', '2', '--skip-conflicts')
    const left = fs.readdirSync(scratch.root).filter((name) => name !== '.git')
    expect(left.filter((name) => name.startsWith('codex')).length).toBe(4)
    expect(left.filter((name) => name.startsWith('claude-') && !name.includes('shell'))).toEqual([])
  })
})
