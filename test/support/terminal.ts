/** The program on a terminal, with somebody at the keys. Needs python3, whose standard library opens pseudo-terminals. */
import { spawnSync } from 'node:child_process'
import path from 'node:path'
import { stripVTControlCharacters } from 'node:util'
import { PROGRAM, type Scratch } from './scratch.ts'

export const hasPython = spawnSync('python3', ['-c', 'import pty']).status === 0

export const KEYS = { enter: '\r', down: '\x1b[B', right: '\x1b[C', ctrlC: '\x03', escape: '\x1b' }

/** The text to wait for, then the keys to press. */
export type Step = [text: string, keys: string]

export interface Shown {
  code: number
  /** As it came, control characters included. */
  raw: string
  text: string
}

/** `size`: rows and columns. `program`: another one than ckpt. Throws if a text that is waited for never comes. */
export function onTerminal(
  scratch: Scratch,
  args: string[],
  {
    steps,
    vars = {},
    size = [40, 100],
    program = PROGRAM,
  }: { steps: Step[]; vars?: Record<string, string>; size?: [number, number]; program?: string },
): Shown {
  const done = spawnSync('python3', [path.join(import.meta.dirname, 'terminal.py')], {
    input: JSON.stringify({
      argv: [process.execPath, program, ...args],
      cwd: scratch.root,
      vars: { ...scratch.vars, TERM: 'xterm', ...vars },
      steps,
      size,
      seconds: 20,
    }),
    encoding: 'utf8',
    maxBuffer: 1 << 26,
  })
  const { shown, code, left } = JSON.parse(done.stdout) as { shown: string; code: number; left: Step[] }
  const text = stripVTControlCharacters(shown).replaceAll('\r', '')
  if (left.length > 0) throw new Error(`It never said ${JSON.stringify(left[0]![0])}:\n${text}`)
  return { code, raw: shown, text }
}
