// The terminal's settings, asked back where the terminal is gone: no failure of ours.
import { spawnSync } from 'node:child_process'
import path from 'node:path'
import { expect, test } from 'vitest'
import { PACKAGE } from '../support/scratch.ts'
import { hasPython } from '../support/terminal.ts'

/** Prints how a program ended whose terminal was closed once it was ready. */
const HANG_UP = `
import os, pty, sys
pid, terminal = pty.fork()
if pid == 0: os.execv(sys.argv[1], sys.argv[1:])
shown = b''
while b'ready' not in shown: shown += os.read(terminal, 65536)
os.close(terminal)
print(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))
`

const PROGRAM = `
  import { setRaw } from ${JSON.stringify(path.join(PACKAGE, 'src/cli/terminal.ts'))}
  process.on('SIGHUP', () => {
    for (const isRaw of [false, true]) setRaw(process.stdin, isRaw)
    process.kill(process.pid, 'SIGKILL') // Node itself would abort when it exits
  })
  setRaw(process.stdin, true)
  process.stdout.write('ready')
  setInterval(() => {}, 1000)
`

test.skipIf(!hasPython)('one that hung up before its end was read', () => {
  const command = [process.execPath, '--import', 'tsx', '--input-type=module', '-e', PROGRAM]
  const { stdout, stderr } = spawnSync('python3', ['-c', HANG_UP, ...command], {
    cwd: PACKAGE,
    encoding: 'utf8',
    timeout: 30_000,
  })
  expect([stdout, stderr]).toEqual(['-9\n', ''])
})
