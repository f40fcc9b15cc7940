/**
 * Some tests are another user for a while, where root runs them. That one needs Node and the program where they can be
 * reached, and ours may lie in a closed directory, such as root's own: then there is a copy of both for the run.
 */
import { spawnSync } from 'node:child_process'
import fs from 'node:fs'
import os from 'node:os'
import path from 'node:path'
import type { TestProject } from 'vitest/node'
import { asUser, copyProgram, isRoot, OTHER_USER, PACKAGE, PROGRAM } from './scratch.ts'

declare module 'vitest' {
  interface ProvidedContext {
    /** Directory of the copy; null: ours can be reached. */
    reachable: string | null
  }
}

/** Vitest's global setup: what it gives back is called when the run is over. */
export default function setup(project: TestProject): () => void {
  const copy = isRoot && isBuilt() && !canReachOurs() ? copied() : null
  project.provide('reachable', copy)
  return () => {
    if (copy) fs.rmSync(copy, { recursive: true, force: true })
  }
}

/** Without it only tests of parts can run. */
const isBuilt = (): boolean => fs.existsSync(path.join(PACKAGE, 'dist/cli'))

function canReachOurs(): boolean {
  const [file, ...args] = [...asUser(OTHER_USER), process.execPath, PROGRAM, '--version'] as const
  return spawnSync(file!, args).status === 0
}

function copied(): string {
  const there = fs.mkdtempSync(path.join(os.tmpdir(), 'ckpt-reachable-'))
  fs.chmodSync(there, 0o755)
  copyProgram(there)
  fs.copyFileSync(process.execPath, path.join(there, 'node'))
  for (const name of ['inside.mjs', 'inside-process.mjs'])
    fs.copyFileSync(path.join(import.meta.dirname, name), path.join(there, name))
  return there
}
