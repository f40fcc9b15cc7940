// The compiled program in a thread of the test's own process: a start of node for each of thousands of commands is saved.
import { Readable, Writable } from 'node:stream'
import { runAsWorker } from 'synckit'
import { main, realEnv } from '../../dist/cli/main.cjs'

runAsWorker(async ({ argv, ...given }) => {
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
})
