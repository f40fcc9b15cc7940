// What an agent waits for: its hook, against a shell and a Node that do nothing, and a whole run of a real client.
import { execFileSync, spawnSync } from 'node:child_process'
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { type FakeModel, fakeModel } from '../test/support/fake-model.ts'
import { modulesOf, type Place, prepare, type Session } from '../test/support/real-agents.ts'
import { SCENARIOS } from '../test/support/scenarios.ts'

/**
 * What the model takes for each answer, in milliseconds. Nothing: the worst that hooks can look like, and no model's time.
 * Half a second: less than one takes to write a tool call, so that a person sees less of the hooks than this.
 */
const MODEL_THINKS = [0, 500]

const bin = path.resolve(import.meta.dirname, '../bin')
const median = (values: number[]) => [...values].sort((a, b) => a - b)[values.length >> 1]!
const ms = (value: number) => (value < 10 ? value.toFixed(1) : value.toFixed(0))

function place(name: string): Place & { remove: () => void } {
  const base = mkdtempSync(path.join(tmpdir(), `ckpt-bench-${name}-`))
  const [home, root] = [path.join(base, 'home'), path.join(base, 'work')]
  for (const directory of [home, root]) mkdirSync(directory)
  const vars = { PATH: process.env.PATH ?? '', HOME: home, GIT_CONFIG_GLOBAL: '/dev/null', LC_ALL: 'C' }
  execFileSync('git', ['init', '-q'], { cwd: root, env: vars })
  for (let i = 0; i < 200; i++) {
    mkdirSync(path.join(root, `src/d${i % 20}`), { recursive: true })
    writeFileSync(path.join(root, `src/d${i % 20}/f${i}.ts`), `export const f${i} = ${i}\n`)
  }
  execFileSync('git', ['add', '-A'], { cwd: root, env: vars })
  const who = {
    GIT_AUTHOR_NAME: 'b',
    GIT_AUTHOR_EMAIL: 'b@example.com',
    GIT_COMMITTER_NAME: 'b',
    GIT_COMMITTER_EMAIL: 'b@example.com',
  }
  execFileSync('git', ['commit', '-q', '-m', 'first'], { cwd: root, env: { ...vars, ...who } })
  return { base, home, root, vars, remove: () => rmSync(base, { recursive: true, force: true }) }
}

const daemon = ({ root, vars }: Place, action: 'start' | 'stop') =>
  execFileSync(process.execPath, [path.join(bin, 'ckpt.js'), 'daemon', action], {
    cwd: root,
    env: vars,
    stdio: 'ignore',
  })

/** One hook at a time, nothing changed in between; the daemon is up. */
function hooks(rounds: number): void {
  const at = place('hooks')
  const { root: cwd, vars: env } = at
  const rows = { sh: [] as number[], shell: [] as number[], node: [] as number[], program: [] as number[] }
  const timed = (list: number[], command: string[], input = '') => {
    const start = performance.now()
    const { status, stderr } = spawnSync(command[0]!, command.slice(1), { cwd, env, input })
    if (status !== 0) throw new Error(`${command.join(' ')}: ${stderr}`)
    list.push(performance.now() - start)
  }
  const payload = (hook_event_name: string, more: object) =>
    JSON.stringify({ session_id: 'bench', cwd, hook_event_name, prompt_id: 'p1', ...more })
  const client = [path.join(bin, 'ckpt-hook'), 'claude']
  const program = [process.execPath, path.join(bin, 'ckpt.js'), 'hook', 'claude']
  const call = (n: number) =>
    payload('PreToolUse', { tool_name: 'Bash', tool_use_id: `t${n}`, tool_input: { command: 'true' } })
  try {
    daemon(at, 'start')
    timed([], program, payload('UserPromptSubmit', { prompt: 'go' }))
    for (let i = 0; i < 5; i++) timed([], client, call(i)) // warm
    for (let i = 0; i < rounds; i++) {
      timed(rows.sh, ['sh', '-c', ':'])
      timed(rows.shell, client, call(1000 + i))
      timed(rows.node, [process.execPath, '-e', '0'])
      timed(rows.program, program, call(2000 + i))
    }
    const [sh, shell, node, own] = [rows.sh, rows.shell, rows.node, rows.program].map(median) as [
      number,
      number,
      number,
      number,
    ]
    console.log(
      `ckpt-hook with the daemon, nothing changed: ${ms(shell)} ms against ${ms(sh)} ms for sh -c :, ratio ${(shell / sh).toFixed(2)} (at most 5)`,
    )
    console.log(
      `ckpt hook with the daemon, nothing changed: ${ms(own)} ms against ${ms(node)} ms for node -e 0, ratio ${(own / node).toFixed(2)} (at most 1.6)`,
    )
  } finally {
    daemon(at, 'stop')
    at.remove()
  }
}

/** Puts a program that does nothing in the place of ours, wherever Claude Code's settings start it. */
function doNothing({ home, root }: Place): void {
  for (const file of [`${home}/.claude/settings.json`, `${root}/.claude/settings.json`]) {
    if (!existsSync(file)) continue
    writeFileSync(file, readFileSync(file, 'utf8').replaceAll(/("command":\s*)"ckpt-hook[^"]*"/g, '$1"true"'))
  }
}

/**
 * Two turns of Claude Code, without hooks, with hooks that do nothing, and with ours, in turn: what the client itself needs
 * to start that many programs is no part of what ours cost. `thinks`: milliseconds that the model takes for each answer.
 */
async function client(rounds: number, thinks: number): Promise<void> {
  const scenario = SCENARIOS['two-turns']!
  const make = async (name: string, hooks: boolean): Promise<Run> => {
    const at = place(name)
    const model = await fakeModel(scenario, at.root, thinks)
    return { at, model, session: prepare(at, 'claude', { url: model.url, hooks }), times: [] }
  }
  const run = async ({ session, times, at }: Run) => {
    execFileSync('git', ['clean', '-qfd'], { cwd: at.root })
    const start = performance.now()
    const first = await session.turn(scenario.prompts[0]!, null)
    await session.turn(scenario.prompts[1]!, { session: first.session })
    times.push(performance.now() - start)
  }
  const bare = await make('without', false)
  const empty = await make('nothing', true)
  const hooked = await make('with', true)
  doNothing(empty.at)
  const all = [bare, empty, hooked]
  try {
    daemon(hooked.at, 'start')
    for (const one of all) {
      await run(one)
      one.times.length = 0
    }
    for (let i = 0; i < rounds; i++) for (const one of i % 2 ? all : all.toReversed()) await run(one)
    const [theirs, nothing, ours] = all.map(({ times }) => median(times)) as [number, number, number]
    console.log(
      `A two-turn run of Claude Code whose model answers ${thinks ? `after ${thinks} ms` : 'at once, as none does'}, with hooks and the daemon: ${ms(ours)} ms against ${ms(theirs)} ms without, ratio ${(ours / theirs).toFixed(2)} (at most 1.1); with hooks that only run \`true\`: ${ms(nothing)} ms, ratio ${(nothing / theirs).toFixed(2)}`,
    )
  } finally {
    daemon(hooked.at, 'stop')
    for (const { model, at } of all) {
      model.close()
      at.remove()
    }
  }
}

interface Run {
  at: ReturnType<typeof place>
  model: FakeModel
  session: Session
  /** Milliseconds. */
  times: number[]
}

export async function benchHooks(rounds: number): Promise<void> {
  hooks(rounds * 4)
  if (!modulesOf('claude')) {
    console.log('A two-turn run of Claude Code: it is not installed (npm run test:agents)')
    return
  }
  for (const thinks of MODEL_THINKS) await client(Math.max(3, Math.ceil(rounds / 2)), thinks)
}

if (process.argv[1] === import.meta.filename) await benchHooks(Number(process.env.CKPT_BENCH_ROUNDS ?? 9))
