/** A daemon for a test's worktree; it is stopped when the test ends. */
import { spawn } from 'node:child_process'
import fs from 'node:fs'
import os from 'node:os'
import { expect, onTestFinished } from 'vitest'
import { PROGRAM, type Scratch } from './scratch.ts'

export function startDaemon(scratch: Scratch): { pid: number } {
  const { pid } = scratch.ckpt('daemon', 'start') as { pid: number }
  onTestFinished(() => {
    // Nothing that a test did may keep it from ending by itself.
    expect(scratch.run(['daemon', 'stop']).stderr).not.toContain('killed')
  })
  return { pid }
}

/** Runs the program without waiting for it. */
export function runLater(scratch: Scratch, args: string[]): Promise<{ code: number; stdout: string; stderr: string }> {
  return new Promise((resolve) => {
    const child = spawn(process.execPath, [PROGRAM, ...args], {
      cwd: scratch.root,
      env: scratch.vars,
      stdio: ['ignore', 'pipe', 'pipe'],
    })
    let stdout = ''
    let stderr = ''
    child.stdout.on('data', (chunk) => {
      stdout += chunk
    })
    child.stderr.on('data', (chunk) => {
      stderr += chunk
    })
    child.on('close', (code, signal) => resolve({ code: code ?? 128 + os.constants.signals[signal!], stdout, stderr }))
  })
}

export function alive(pid: number): boolean {
  try {
    return !/\) [ZX] /.test(fs.readFileSync(`/proc/${pid}/stat`, 'utf8'))
  } catch {
    return false
  }
}
