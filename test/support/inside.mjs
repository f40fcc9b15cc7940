// The compiled program in a process that is there already: a start of node for each of thousands of commands is saved.
import path from 'node:path'
import { Readable, Writable } from 'node:stream'
import { pathToFileURL } from 'node:url'

/** `main` of the program whose `bin/ckpt.js` is `program`. */
export async function run({ argv, ...given }) {
  const { main, realEnv } = await import(pathToFileURL(path.join(given.program, '../../dist/cli/main.cjs')))
  const chunks = { stdout: [], stderr: [] }
  const sink = (name) =>
    new Writable({
      write(chunk, _, done) {
        chunks[name].push(Buffer.from(chunk))
        done()
      },
    })
  const { stdout, stderr } = { stdout: sink('stdout'), stderr: sink('stderr') }
  const code = await main(argv, { ...realEnv(), ...given, stdin: Readable.from([]), stdout, stderr })
  return { code, stdout: Buffer.concat(chunks.stdout).toString(), stderr: Buffer.concat(chunks.stderr).toString() }
}
