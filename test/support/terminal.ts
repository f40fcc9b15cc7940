/** The program on a terminal, with somebody at the keys. Needs python3, whose standard library opens pseudo-terminals. */
import { spawn, spawnSync } from 'node:child_process'
import path from 'node:path'
import { text } from 'node:stream/consumers'
import { stripVTControlCharacters } from 'node:util'
import { PROGRAM, type Scratch } from './scratch.ts'

export const hasPython = spawnSync('python3', ['-c', 'import pty']).status === 0

export const KEYS = { enter: '\r', down: '\x1b[B', right: '\x1b[C', ctrlC: '\x03', ctrlD: '\x04', escape: '\x1b' }

/** The text to wait for, then the keys to press. */
export type Step = [text: string, keys: string]

export interface Shown {
  code: number
  /** As it came, control characters included. */
  raw: string
  text: string
}

interface Stage {
  steps?: Step[]
  vars?: Record<string, string>
  /** Rows and columns. */
  size?: [number, number]
  /** Another one than ckpt. */
  program?: string
}

/** @throws if a text that is waited for never comes */
export function onTerminal(scratch: Scratch, args: string[], stage: Stage): Shown {
  const [program, script] = PYTHON
  const input = described(scratch, args, stage)
  return read(spawnSync(program, [script], { input, encoding: 'utf8', maxBuffer: 1 << 26 }).stdout)
}

/** The same, while the test goes on. */
export async function laterOnTerminal(scratch: Scratch, args: string[], stage: Stage = {}): Promise<Shown> {
  const [program, script] = PYTHON
  const child = spawn(program, [script], { stdio: ['pipe', 'pipe', 'inherit'] })
  child.stdin.end(described(scratch, args, stage))
  return read(await text(child.stdout))
}

const HANG_UP = `
import json, os, pty, sys
steps, text = json.loads(sys.argv[1]), sys.argv[2].encode()
pid, terminal = pty.fork()
if pid == 0: os.execv(sys.argv[3], sys.argv[3:])
def until(text):
    shown = b''
    while text not in shown: shown += os.read(terminal, 65536)
for asked, keys in steps:
    until(asked.encode())
    os.write(terminal, keys.encode())
until(text)
os.close(terminal)
print(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))
`

/**
 * How a program ended whose terminal was closed once it had shown a text, behind `steps`: minus a signal's number.
 * NaN: the text never came.
 */
export function hungUp(
  command: string[],
  text: string,
  { steps = [], ...given }: { cwd: string; env: Record<string, string>; steps?: Step[] },
): number {
  const options = { ...given, env: { ...given.env, TERM: 'xterm' }, encoding: 'utf8', timeout: 30_000 } as const
  const { stdout } = spawnSync('python3', ['-c', HANG_UP, JSON.stringify(steps), text, ...command], options)
  return stdout === '' ? Number.NaN : Number(stdout)
}

const PYTHON = ['python3', path.join(import.meta.dirname, 'terminal.py')] as const

function described(
  scratch: Scratch,
  args: string[],
  { steps = [], vars = {}, size = [40, 100], program = PROGRAM }: Stage,
): string {
  return JSON.stringify({
    argv: [process.execPath, program, ...args],
    cwd: scratch.root,
    vars: { ...scratch.vars, TERM: 'xterm', ...vars },
    steps,
    size,
    seconds: 20,
  })
}

function read(said: string): Shown {
  const { shown, code, left } = JSON.parse(said) as { shown: string; code: number; left: Step[] }
  const text = stripVTControlCharacters(shown).replaceAll('\r', '')
  if (left.length > 0) throw new Error(`It never said ${JSON.stringify(left[0]![0])}:\n${text}`)
  return { code, raw: shown, text }
}
