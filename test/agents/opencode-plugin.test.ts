// The plugin that we ship, fed with what OpenCode's hooks and bus sent, in a process of its own.
import { spawnSync } from 'node:child_process'
import fs from 'node:fs'
import path from 'node:path'
import { expect, test } from 'vitest'
import { recorded } from '../support/agents.ts'
import { type Json, PROGRAM, Scratch } from '../support/scratch.ts'

/** Hooks are awaited by OpenCode, events of the bus are not; at the end the process goes, whatever is under way. */
const DRIVER = `
import fs from 'node:fs'
const { CkptPlugin } = await import(process.argv[2])
const hooks = await CkptPlugin({ directory: process.cwd() })
const open = []
for (const { via, event, payload } of JSON.parse(fs.readFileSync(process.argv[3], 'utf8'))) {
  const args = payload.input?.args ?? payload.output?.args
  if (event === 'tool.execute.after' && args.content) fs.writeFileSync(args.filePath, args.content)
  if (via === 'opencode-bus') open.push(hooks.event({ event: payload }))
  else if (process.env.PARALLEL && event.startsWith('tool')) open.push(hooks[event]?.(payload.input, payload.output))
  else await hooks[event]?.(payload.input, payload.output)
}
if (process.env.PARALLEL) await Promise.all(open)
process.exit(0)
`

function drive(scratch: Scratch, scenario: string, vars: Record<string, string> = {}) {
  const bin = path.join(scratch.base, 'bin')
  fs.mkdirSync(bin)
  fs.symlinkSync(PROGRAM, path.join(bin, 'ckpt'))
  fs.symlinkSync(path.join(path.dirname(PROGRAM), 'ckpt-hook'), path.join(bin, 'ckpt-hook'))
  // A daemon in the background would outlive the test.
  fs.mkdirSync(`${scratch.home}/.config/ckpt`, { recursive: true })
  fs.writeFileSync(`${scratch.home}/.config/ckpt/.checkpointrc`, 'watch:\n  start: never\n')
  const rows = recorded(scratch, 'opencode', scenario)
  fs.writeFileSync(path.join(scratch.base, 'rows.json'), JSON.stringify(rows))
  fs.writeFileSync(path.join(scratch.base, 'drive.mjs'), DRIVER)
  const plugin = path.resolve(import.meta.dirname, '../../plugins/opencode.js')
  const args = [path.join(scratch.base, 'drive.mjs'), plugin, path.join(scratch.base, 'rows.json')]
  const env = { ...scratch.vars, PATH: `${bin}:${scratch.vars.PATH}`, ...vars }
  return spawnSync(process.execPath, args, { cwd: scratch.root, env, encoding: 'utf8' })
}

/** The marker of the end outlives OpenCode by a moment. */
async function settled(scratch: Scratch): Promise<Json[]> {
  for (let i = 0; ; i++) {
    const { turns } = scratch.ckpt('list')
    if (i === 100 || turns.every((turn: Json) => turn.status !== 'running')) return turns
    await new Promise((resolve) => setTimeout(resolve, 100))
  }
}

test('a subagent folds into its turn, and the end is recorded though OpenCode is gone by then', async () => {
  const scratch = new Scratch().init()
  expect(drive(scratch, 'subagent')).toMatchObject({ status: 0, stdout: '', stderr: '' })
  const turns = await settled(scratch)
  expect(turns.map((turn) => [turn.status, turn.steps.map((step: Json) => step.paths)])).toEqual([
    ['completed', [['sub.txt'], ['main.txt']]],
  ])
  expect(turns[0].prompt).toBe('[turn 1] Let a subagent write sub.txt, then write main.txt.')
})

test('tool calls at the same time: no marker is lost', async () => {
  const scratch = new Scratch().init()
  expect(drive(scratch, 'parallel', { PARALLEL: '1' }).status).toBe(0)
  const [turn] = await settled(scratch)
  expect(turn.steps.map((step: Json) => step.tool)).toEqual(['write', 'write', 'bash'])
})

test('without ckpt it is nothing', () => {
  const scratch = new Scratch().init()
  const ran = drive(scratch, 'parallel', { PATH: path.dirname(process.execPath) })
  expect(ran).toMatchObject({ status: 0, stdout: '', stderr: '' })
})
