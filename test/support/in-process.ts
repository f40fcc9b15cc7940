/** The program from its source, in the test's own process: for what a test has to hand in. */
import { Writable } from 'node:stream'
import type { Backends } from '../../src/backends/backends.ts'
import { main } from '../../src/cli/main.ts'
import { type Env, inputOf, realEnv } from '../../src/env.ts'
import { type Json, PROGRAM, type Ran, type Scratch } from './scratch.ts'

export const envOf = (scratch: Scratch): Env => ({
  ...realEnv(),
  cwd: scratch.root,
  home: scratch.home,
  vars: scratch.vars,
  program: PROGRAM,
})

export async function runHere(scratch: Scratch, argv: readonly string[], backends: Backends): Promise<Ran> {
  const chunks: Record<'stdout' | 'stderr', Buffer[]> = { stdout: [], stderr: [] }
  const sink = (name: 'stdout' | 'stderr') =>
    new Writable({
      write(chunk, _, done) {
        chunks[name].push(Buffer.from(chunk))
        done()
      },
    })
  const streams = { stdin: inputOf(Buffer.alloc(0)), stdout: sink('stdout'), stderr: sink('stderr') }
  const code = await main(argv, { ...envOf(scratch), ...streams }, backends)
  return { code, stdout: Buffer.concat(chunks.stdout).toString(), stderr: Buffer.concat(chunks.stderr).toString() }
}

/** The exit code and the JSON document of one call. */
export async function answer(env: Env, ...argv: string[]): Promise<{ code: number; document: Json }> {
  const told: string[] = []
  const stdout = new Writable({
    write(chunk, _, done) {
      told.push(String(chunk))
      done()
    },
  })
  const code = await main([...argv, '--json'], { ...env, stdout })
  return { code, document: JSON.parse(told.join('')) }
}
