// The kernel's source, 78,000 files. `npm run test:large` fetches it; without it these skip.
import { execFileSync } from 'node:child_process'
import fs from 'node:fs'
import path from 'node:path'
import { beforeAll, expect, test } from 'vitest'
import { kernelTree } from '../../scripts/large-tree.ts'
import { startDaemon } from '../support/daemon.ts'
import { Scratch } from '../support/scratch.ts'

const isThere = fs.existsSync(path.join(kernelTree, '.git'))

beforeAll(() => {
  if (!isThere) console.log(`skipped: no kernel source in ${kernelTree}; npm run test:large fetches it`)
})

function laidOut(): Scratch {
  const scratch = new Scratch()
  fs.rmdirSync(scratch.root)
  execFileSync('cp', ['-a', '--reflink=auto', kernelTree, scratch.root])
  fs.rmSync(scratch.at('.git/ckpt'), { recursive: true, force: true })
  scratch.git('update-index', '-q', '--refresh')
  return scratch
}

/** What git itself makes of the worktree. */
function gitsTree(scratch: Scratch): string {
  const env = { ...scratch.vars, GIT_INDEX_FILE: path.join(scratch.base, 'judge') }
  const git = (...args: string[]) => execFileSync('git', args, { cwd: scratch.root, encoding: 'utf8', env }).trim()
  if (!fs.existsSync(env.GIT_INDEX_FILE)) fs.copyFileSync(scratch.at('.git/index'), env.GIT_INDEX_FILE)
  git('add', '-A')
  return git('write-tree')
}

const mark = (scratch: Scratch, event: string) =>
  (scratch.ckpt('mark', event, '--session', 's') as unknown as { checkpoint: { tree: string; degraded: boolean } })
    .checkpoint

test.skipIf(!isThere).each([
  ['without the daemon', false],
  ['with the daemon', true],
])('the kernel, %s: large turns are recorded, undone and redone exactly', { timeout: 900_000 }, (_how, daemon) => {
  const scratch = laidOut()
  expect(scratch.ckpt('snapshot').checkpoint).toMatchObject({
    tree: scratch.git('rev-parse', 'HEAD^{tree}').trim(),
    degraded: false,
  })
  if (daemon) startDaemon(scratch)

  const before = mark(scratch, 'prompt').tree
  for (const name of fs.readdirSync(scratch.at('mm')).slice(0, 50)) {
    const at = scratch.at(`mm/${name}`)
    if (fs.lstatSync(at).isFile()) fs.appendFileSync(at, '/* changed */\n')
  }
  fs.rmSync(scratch.at('Documentation'), { recursive: true })
  fs.renameSync(scratch.at('fs/ext4'), scratch.at('fs/moved'))
  fs.renameSync(scratch.at('net/ipv4'), scratch.at('net/between'))
  fs.renameSync(scratch.at('net/ipv6'), scratch.at('net/ipv4'))
  fs.renameSync(scratch.at('net/between'), scratch.at('net/ipv6'))
  for (let i = 0; i < 30; i++) {
    fs.mkdirSync(scratch.at(`burst/d${i}`), { recursive: true })
    for (let j = 0; j < 1000; j++) fs.writeFileSync(scratch.at(`burst/d${i}/f${j}`), `${i} ${j}\n`)
  }
  const after = mark(scratch, 'stop')
  expect(after.degraded).toBe(false)
  expect(after.tree).toBe(gitsTree(scratch))

  scratch.ckpt('undo')
  expect(gitsTree(scratch)).toBe(before)
  expect(scratch.git('status', '--porcelain')).toBe('')
  scratch.ckpt('redo')
  expect(gitsTree(scratch)).toBe(after.tree)
  expect(scratch.ckpt('verify').ok).toBe(true)
})
