// More new files at once than a JavaScript call takes arguments. Takes minutes: it runs with `npm run test:large` only.
import fs from 'node:fs'
import { expect, test } from 'vitest'
import { kernelTree } from '../../scripts/large-tree.ts'
import { Scratch } from '../support/scratch.ts'

test.skipIf(!fs.existsSync(kernelTree))(
  '150,000 new files are recorded, undone and redone',
  { timeout: 900_000 },
  () => {
    const scratch = new Scratch()
    scratch.init()
    const mark = (event: string) => scratch.ckpt('mark', event, '--session', 's')
    const changed = (command: string) => (scratch.ckpt(command).files as unknown[]).length
    mark('prompt')
    for (let d = 0; d < 150; d++) {
      fs.mkdirSync(scratch.at(`new/d${d}`), { recursive: true })
      for (let f = 0; f < 1000; f++) fs.writeFileSync(scratch.at(`new/d${d}/f${f}`), `${d} ${f}\n`)
    }
    mark('stop')
    expect(changed('undo')).toBe(150_000)
    expect(fs.existsSync(scratch.at('new'))).toBe(false)
    expect(changed('redo')).toBe(150_000)
    scratch.ckpt('verify', '--worktree')
  },
)
