// No command is forgotten: each state shows each command of the table.
import fs from 'node:fs'
import path from 'node:path'
import { expect, test } from 'vitest'
import { commands } from '../../src/cli/commands.ts'

const STATES = ['empty', 'fresh', 'turns', 'pending', 'damaged', 'plain']

test.each(STATES)('the state %s shows every command', (state) => {
  const text = fs.readFileSync(path.join(import.meta.dirname, `face-${state}.test.ts`), 'utf8')
  const shown = new Set([...text.matchAll(/^ +\$ ckpt (\S+)/gm)].map(([, name]) => name))
  const missing = commands.map(({ usage }) => usage.split(' ')[0]).filter((name) => !shown.has(name))
  expect(missing).toEqual([])
})
