/** Two machines with the same repository. */
import { execFileSync } from 'node:child_process'
import fs from 'node:fs'
import { Scratch } from './scratch.ts'

/** The same repository on another machine. */
export function cloneOf(origin: Scratch): Scratch {
  const clone = new Scratch()
  fs.rmdirSync(clone.root)
  execFileSync('git', ['clone', '-q', origin.root, clone.root], { env: clone.vars, stdio: 'pipe' })
  return clone
}

export function twoTurns(): Scratch {
  const scratch = new Scratch().init({ 'a.txt': 'one\n', 'dir/b.txt': 'b\n', '.env': 'KEY=1\n' })
  scratch.turn('words of the first prompt', () => scratch.write({ 'a.txt': 'two\n' }))
  scratch.turn('words of the second', () => scratch.write({ 'dir/new.txt': 'new\n' }))
  return scratch
}
