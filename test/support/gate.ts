/** A repository for the gate: branches to merge, pick and rebase, a patch, and a turn that can be undone. */
import { spawnSync } from 'node:child_process'
import fs from 'node:fs'
import path from 'node:path'
import { type Ran, Scratch } from './scratch.ts'

export const HOOKS = [
  'pre-commit',
  'pre-merge-commit',
  'pre-rebase',
  'pre-applypatch',
  'prepare-commit-msg',
  'commit-msg',
]

export interface GitOptions {
  cwd?: string
  vars?: Record<string, string>
  input?: string
}

/** git as a person runs it; never throws. */
export function tryGit(
  scratch: Scratch,
  args: string[],
  { cwd = scratch.root, vars = {}, input = '' }: GitOptions = {},
): Ran {
  const date = '2026-02-01T00:00:00Z'
  const done = spawnSync('git', args, {
    cwd,
    encoding: 'utf8',
    input,
    env: {
      ...scratch.vars,
      GIT_EDITOR: 'true',
      GIT_AUTHOR_NAME: 'A U Thor',
      GIT_AUTHOR_EMAIL: 'author@example.com',
      GIT_COMMITTER_NAME: 'C O Mitter',
      GIT_COMMITTER_EMAIL: 'committer@example.com',
      GIT_AUTHOR_DATE: date,
      GIT_COMMITTER_DATE: date,
      ...vars,
    },
  })
  return { code: done.status ?? 128, stdout: done.stdout, stderr: done.stderr }
}

/** main: first, second, third; side: two commits beside third; clash: one that conflicts with third. */
export function gateScratch(name = 'work'): Scratch {
  const scratch = new Scratch(name).init({ 'a.txt': 'one\n' })
  const commit = (file: string, text: string, subject: string) => {
    scratch.write({ [file]: text })
    scratch.git('add', '-A')
    scratch.git('commit', '-q', '-m', subject)
  }
  commit('b.txt', 'b\n', 'second')
  scratch.git('branch', 'side')
  scratch.git('branch', 'clash')
  commit('c.txt', 'c\n', 'third')
  scratch.git('checkout', '-q', 'side')
  commit('d.txt', 'd\n', 'side one')
  commit('e.txt', 'e\n', 'side two')
  scratch.git('checkout', '-q', 'clash')
  commit('c.txt', 'another\n', 'clash')
  scratch.git('format-patch', '-q', '-1', '-o', path.join(scratch.base, 'patches'), 'side')
  scratch.git('checkout', '-q', 'main')
  return scratch
}

export const patchOf = (scratch: Scratch): string => path.join(scratch.base, 'patches', '0001-side-two.patch')

/** Two turns, both undone: a boundary at turn 1 with 1 and 2 hidden. */
export function makePending(scratch: Scratch, session = 's'): void {
  scratch.turn('first', () => scratch.write({ 'agent.txt': 'first\n' }), session)
  scratch.turn('second', () => scratch.write({ 'agent.txt': 'second\n' }), session)
  scratch.ckpt('undo', '--turns', '2', '--session', session)
}

export const head = (scratch: Scratch): string => scratch.git('rev-parse', 'HEAD').trim()

/** Every hook file with its mode and bytes, links as links. */
export function hookFiles(directory: string): Record<string, string> {
  const rows: Record<string, string> = {}
  for (const name of fs.readdirSync(directory).sort()) {
    const file = path.join(directory, name)
    const stats = fs.lstatSync(file)
    if (stats.isSymbolicLink()) rows[name] = `link ${fs.readlinkSync(file)}`
    else if (stats.isDirectory()) rows[name] = 'directory'
    else rows[name] = `${(stats.mode & 0o7777).toString(8)} ${fs.readFileSync(file, 'latin1')}`
  }
  return rows
}
