/** The program from its source, in the test's own process: for what a test has to hand in. */
import { Writable, type WritableOptions } from 'node:stream'
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

/** Keeps what is written to it. */
function sink(): Writable & { chunks: Buffer[] } {
  const chunks: Buffer[] = []
  const write: WritableOptions['write'] = (chunk, _, done) => {
    chunks.push(Buffer.from(chunk))
    done()
  }
  return Object.assign(new Writable({ write }), { chunks })
}

export async function runHere(scratch: Scratch, argv: readonly string[], backends: Backends): Promise<Ran> {
  const [stdout, stderr] = [sink(), sink()]
  const code = await main(argv, { ...envOf(scratch), stdin: inputOf(Buffer.alloc(0)), stdout, stderr }, backends)
  return { code, stdout: Buffer.concat(stdout.chunks).toString(), stderr: Buffer.concat(stderr.chunks).toString() }
}

/** The exit code and the JSON document of one call. */
export async function answer(env: Env, ...argv: string[]): Promise<{ code: number; document: Json }> {
  const [stdout, stderr] = [sink(), sink()]
  const code = await main([...argv, '--json'], { ...env, stdout, stderr })
  return { code, document: JSON.parse(Buffer.concat(stdout.chunks).toString()) }
}
