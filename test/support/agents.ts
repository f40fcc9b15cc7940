/** Payloads that agents sent, played to `ckpt hook`, with the work that they tell of done in between. */
import { spawnSync } from 'node:child_process'
import fs from 'node:fs'
import path from 'node:path'
import { PassThrough } from 'node:stream'
import { inputOf } from '../../src/env.ts'
import type { Json, Ran, Scratch } from './scratch.ts'

const DATA = path.resolve(import.meta.dirname, '../data/payloads')
const BUILT = path.resolve(import.meta.dirname, '../../dist/cli/main.cjs')

export interface Row {
  via: string
  event: string
  payload: Json
}

/** A recorded run with its paths in this place. */
export function recorded(scratch: Scratch, agent: string, scenario: string): Row[] {
  const text = fs.readFileSync(path.join(DATA, agent, `${scenario}.ndjson`), 'utf8')
  const here = (line: string) => line.replaceAll('$WORK', scratch.root).replaceAll('$HOME', scratch.home)
  return text
    .trimEnd()
    .split('\n')
    .map((line) => JSON.parse(here(line)))
}

interface HookOptions {
  payload: unknown
  event?: string
  cwd?: string
  vars?: Record<string, string>
}

/** The built program in this process: what the agent's hook would be, but for the start of Node. */
export async function hook(
  scratch: Scratch,
  name: string,
  { payload, event, cwd = scratch.root, vars = {} }: HookOptions,
): Promise<Ran> {
  const { main, realEnv } = await import(BUILT)
  const input = Buffer.isBuffer(payload) ? payload : Buffer.from(JSON.stringify(payload))
  const [stdout, stderr] = [new PassThrough(), new PassThrough()]
  const env = {
    ...realEnv(),
    cwd,
    home: scratch.home,
    vars: { ...scratch.vars, ...vars },
    stdin: inputOf(input),
    stdout,
    stderr,
  }
  const code = await main(['hook', name, ...(event === undefined ? [] : [event])], env)
  const said = (stream: PassThrough) => String(stream.read() ?? '')
  return { code, stdout: said(stdout), stderr: said(stderr) }
}

export async function send(scratch: Scratch, agent: string, row: Row): Promise<Ran> {
  if (row.via === 'codex-notify')
    return hook(scratch, row.via, { payload: Buffer.alloc(0), event: JSON.stringify(row.payload) })
  return hook(scratch, agent, { payload: row.payload, event: row.event })
}

const ENDS = /^(PostToolUse|PostToolUseFailure|AfterTool|tool\.execute\.after|afterFileEdit|afterShellExecution)$/

/** What the tool of an event did; a call that never ended had begun. */
export function work(scratch: Scratch, row: Row, rows: readonly Row[]): void {
  const begun = /sleep 25/.test(JSON.stringify(row.payload))
  const ends = ENDS.test(row.event)
  if (begun ? ends : !ends) return
  const { payload } = row
  const input = payload.tool_input ?? payload.input?.args ?? payload.output?.args ?? payload
  const file = input.file_path ?? input.filePath
  const [from, to] = [input.old_string ?? input.oldString, input.new_string ?? input.newString]
  const patch = /^\*\*\* (Add|Update) File: (.+)\n([\s\S]*)\*\*\* End Patch/m.exec(input.command ?? '')
  if (patch) {
    const lines = patch[3]!.split('\n')
    const added = lines.filter((line) => line.startsWith('+')).map((line) => `${line.slice(1)}\n`)
    const gone = lines.filter((line) => line.startsWith('-')).map((line) => `${line.slice(1)}\n`)
    const name = patch[2]!
    const before = patch[1] === 'Add' ? '' : scratch.read(name)
    scratch.write({ [name]: before.replace(gone.join(''), '') + added.join('') })
  } else if (payload.edits) fs.writeFileSync(file, payload.edits[0].new_string)
  else if (file && input.content !== undefined) fs.writeFileSync(file, input.content)
  else if (file && from !== undefined) fs.writeFileSync(file, fs.readFileSync(file, 'utf8').replace(from, to))
  else if (input.command) {
    const command = begun ? 'echo started > started.txt' : input.command.replace(/sleep [\d.]+/, 'true')
    const moved = rows.slice(0, rows.indexOf(row)).findLast((one) => one.payload.cwd)?.payload.cwd
    spawnSync('sh', ['-c', command], { cwd: moved && fs.existsSync(moved) ? moved : scratch.root })
  }
}

const TURN_ENDS = /^(Stop|StopFailure|SessionEnd)$/
const PROMPTS = /^(UserPromptSubmit|BeforeAgent|chat\.message|beforeSubmitPrompt)$/

export interface PlayOptions {
  rows: readonly Row[]
  /** The end of a call is heard only when the next one's work is done, or the turn is over. */
  endsOvertaken?: boolean
}

/** Plays a run; gives the disk as it was at each prompt. Every hook has to be silent. */
export async function play(
  scratch: Scratch,
  agent: string,
  { rows, endsOvertaken = false }: PlayOptions,
): Promise<Record<string, string>[]> {
  const states: Record<string, string>[] = []
  const held: Row[] = []
  const say = async (row: Row) => {
    const { code, stdout, stderr } = await send(scratch, agent, row)
    const answer = row.event === 'beforeSubmitPrompt' ? '{"continue":true}\n' : ''
    if (code !== 0 || stdout !== answer || stderr !== '')
      throw new Error(`${agent} ${row.event}: exit ${code}, said ${JSON.stringify(stdout + stderr)}`)
  }
  const sayHeld = async () => {
    for (const row of held.splice(0)) await say(row)
  }
  const isChild = (row: Row) => agent === 'opencode' && row.payload.input?.agent === 'general'
  const isNotice = (row: Row) => agent === 'claude' && /^<task-notification>/.test(row.payload.prompt ?? '')
  for (const row of rows) {
    if (PROMPTS.test(row.event) && !isChild(row) && !isNotice(row)) states.push(scratch.manifest())
    // The call that is under way when its start is told changes files only after that; an end is told after the work.
    const ends = ENDS.test(row.event)
    if (ends) work(scratch, row, rows)
    if (ends && endsOvertaken) {
      await sayHeld()
      held.push(row)
    } else {
      await say(row)
      if (TURN_ENDS.test(row.event)) await sayHeld()
    }
    if (!ends) work(scratch, row, rows)
  }
  return states
}

/** The worktree's own directory in the store. */
export const storeOf = (scratch: Scratch): string => scratch.at('.git/ckpt/worktrees/@main')

export function hookLog(scratch: Scratch): Json[] {
  const file = `${storeOf(scratch)}/hook.log`
  if (!fs.existsSync(file)) return []
  return fs
    .readFileSync(file, 'utf8')
    .split('\n')
    .filter((line) => line !== '') // none is in it at the moment in which it is made
    .map((line) => JSON.parse(line))
}
