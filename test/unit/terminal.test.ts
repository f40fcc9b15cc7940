// The terminal's settings, asked back where the terminal is gone: no failure of ours.
import path from 'node:path'
import { expect, test } from 'vitest'
import { PACKAGE } from '../support/scratch.ts'
import { hasPython, hungUp } from '../support/terminal.ts'

const PROGRAM = `
  import { setRaw } from ${JSON.stringify(path.join(PACKAGE, 'src/library/raw-mode.ts'))}
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
  const env = { PATH: process.env.PATH ?? '' }
  expect(hungUp(command, 'ready', { cwd: PACKAGE, env })).toBe(-9)
})
