/** A kill at a place that is named, where test/support/fault.ts goes through all of them. */
import fs from 'node:fs'
import { expect } from 'vitest'
import type { Scratch } from './scratch.ts'

/** Runs a command that is killed right after a call of the file system on a path that ends so. */
export function killedAt(scratch: Scratch, at: [string, string], ...args: string[]): void {
  expect(scratch.runApart(args, { vars: killAt(scratch, at) }).code).toBe(128)
}

/** Variables with which a command is killed there. */
export function killAt(scratch: Scratch, [call, end]: [string, string]): Record<string, string> {
  const preload = `${scratch.base}/kill.cjs`
  fs.writeFileSync(
    preload,
    `const fs = require('node:fs')
const own = fs[process.env.KILL_CALL]
fs[process.env.KILL_CALL] = (...args) => {
  const result = own(...args)
  if (args.some((arg) => String(arg).endsWith(process.env.KILL_END))) process.kill(process.pid, 'SIGKILL')
  return result
}
`,
  )
  return { NODE_OPTIONS: `--require ${preload}`, KILL_CALL: call, KILL_END: end }
}
