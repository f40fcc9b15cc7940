/** What others do, and what befalls the program, at a moment that is named, where test/support/fault.ts goes through all of them. */
import fs from 'node:fs'
import path from 'node:path'
import { expect } from 'vitest'
import type { Scratch } from './scratch.ts'

export interface Amid {
  /** The call of `node:fs`. */
  call:
    | 'chmodSync'
    | 'linkSync'
    | 'lstatSync'
    | 'mkdirSync'
    | 'openSync'
    | 'renameSync'
    | 'unlinkSync'
    | 'writeFileSync'
  /** A regular expression that one of its arguments matches. */
  on: string
  /** The first such call unless told. */
  nth?: number
  when: 'before' | 'after'
  /** Somebody's shell command, run in the worktree. $SEEN: what the call is of (two paths: the second). */
  run?: string
  /** The call fails with this. */
  fail?: string
  kill?: true
}

/** Variables with which a command of its own process meets all that. `mount`: the store is on another one. */
export function amid({ base }: Scratch, specs: readonly Amid[], { mount = false } = {}): Record<string, string> {
  const preload = path.join(base, 'amid.cjs')
  fs.copyFileSync(path.join(import.meta.dirname, 'amid.cjs'), preload) // which another user reads there
  return {
    NODE_OPTIONS: `--require ${preload}`,
    CKPT_TEST_AMID: JSON.stringify(specs),
    ...(mount && { CKPT_TEST_MOUNT: '1' }),
  }
}

type At = readonly [call: Amid['call'], end: string]

/** A kill right after a call on a path that ends so. */
export const killAt = (scratch: Scratch, [call, end]: At): Record<string, string> =>
  amid(scratch, [{ call, on: `${end.replaceAll('.', '\\.')}$`, when: 'after', kill: true }])

export function killedAt(scratch: Scratch, at: At, ...args: string[]): void {
  expect(scratch.runApart(args, { vars: killAt(scratch, at) }).code).toBe(128)
}
