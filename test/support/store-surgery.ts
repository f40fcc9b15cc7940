/** Looks into a store, and damages it, from outside: with git and with files, never with the code under test. */
import { execFileSync } from 'node:child_process'
import fs from 'node:fs'
import path from 'node:path'
import type { Scratch } from './scratch.ts'

/** The store of a repository's worktrees. */
export const storeOf = (scratch: Scratch): string => scratch.at('.git/ckpt/store.git')

/** This worktree's own directory in the store: lock, journal, index. */
export const ownDirectory = (scratch: Scratch, id = '@main'): string => scratch.at(`.git/ckpt/worktrees/${id}`)

/** git on the store, as anyone could run it. */
export function inStore(scratch: Scratch, ...args: string[]): string {
  return execFileSync('git', [`--git-dir=${storeOf(scratch)}`, ...args], {
    cwd: scratch.root,
    encoding: 'utf8',
    stdio: ['ignore', 'pipe', 'pipe'],
    env: scratch.vars,
  }).trim()
}

/** Where an object lies as a loose file; `rev` as git-rev-parse(1) takes it. */
export function looseFile(scratch: Scratch, rev: string): string {
  const oid = inStore(scratch, 'rev-parse', rev)
  return path.join(storeOf(scratch), 'objects', oid.slice(0, 2), oid.slice(2))
}

export function removeObject(scratch: Scratch, rev: string): void {
  fs.unlinkSync(looseFile(scratch, rev))
}

/** Other bytes under the same name; a hard link to the user's own object is broken first. */
export function corruptObject(scratch: Scratch, rev: string): void {
  const file = looseFile(scratch, rev)
  fs.unlinkSync(file)
  fs.writeFileSync(file, 'this is no object')
}

/** A lock file as a process that is not here would have left it. */
export function foreignLock(
  scratch: Scratch,
  more: Record<string, unknown> = {},
  file = path.join(ownDirectory(scratch), 'lock'),
): string {
  const holder = {
    nonce: 'feedfeedfeedfeed',
    pid: 4242,
    started: '1',
    boot: 'b7e4f7f0-0000-0000-0000-000000000000',
    namespace: 'pid:[1]',
    machine: 'another-host 0123456789abcdef',
    command: 'undo',
    since: '2026-01-01T00:00:00.000Z',
    ...more,
  }
  fs.writeFileSync(file, `${JSON.stringify(holder)}\n`)
  return file
}

/** A process id that nobody has: of a process that has just ended. */
export function deadPid(): number {
  return Number(execFileSync('sh', ['-c', 'echo $$'], { encoding: 'utf8' }))
}

/** A whole object of other content under the same name: only its hash tells. */
export function swapObject(scratch: Scratch, rev: string): void {
  const other = path.join(scratch.base, 'other.txt')
  fs.writeFileSync(other, 'other content\n')
  const written = inStore(scratch, 'hash-object', '-w', other)
  const file = looseFile(scratch, rev)
  fs.unlinkSync(file)
  fs.copyFileSync(looseFile(scratch, written), file)
}
