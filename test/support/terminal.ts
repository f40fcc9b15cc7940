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
import json, os, pty, signal, subprocess, sys
(steps, keeps), text, command = json.loads(sys.argv[1]), sys.argv[2].encode(), sys.argv[3:]
ended, end = os.pipe()
pid, terminal = pty.fork()
if pid == 0 and keeps:
    signal.signal(signal.SIGHUP, signal.SIG_IGN)
    child = subprocess.Popen(command, preexec_fn=lambda: signal.signal(signal.SIGHUP, signal.SIG_DFL))
    os.write(end, str(child.wait()).encode())
    os._exit(0)
if pid == 0: os.execv(command[0], command)
def until(text):
    shown = b''
    while text not in shown: shown += os.read(terminal, 65536)
for asked, keys in steps:
    until(asked.encode())
    os.write(terminal, keys.encode())
until(text)
os.close(terminal)
_, status = os.waitpid(pid, 0)
print(os.read(ended, 9).decode() if keeps else os.waitstatus_to_exitcode(status))
`

interface HangUp {
  cwd: string
  env: Record<string, string>
  /** What is done before. */
  steps?: Step[]
  /** Its shell keeps the signal to itself: only the end of the keys tells. */
  keeps?: boolean
}

/** How a program ended whose terminal was closed once it had shown a text: minus a signal's number. NaN: the text never came. */
export function hungUp(command: string[], text: string, { steps = [], keeps = false, ...given }: HangUp): number {
  const options = { ...given, env: { ...given.env, TERM: 'xterm' }, encoding: 'utf8', timeout: 30_000 } as const
  const { stdout } = spawnSync('python3', ['-c', HANG_UP, JSON.stringify([steps, keeps]), text, ...command], options)
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
