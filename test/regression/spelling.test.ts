// File systems that take several spellings for one name: macOS's, or the one that `npm run test:folding` makes.
import fs from 'node:fs'
import path from 'node:path'
import { describe, expect, test } from 'vitest'
import { Scratch } from '../support/scratch.ts'

const folds = () => {
  const probe = fs.mkdtempSync(path.join(process.env.TMPDIR ?? '/tmp', 'ckpt-Probe-'))
  const does = fs.existsSync(path.join(path.dirname(probe), path.basename(probe).toUpperCase()))
  fs.rmdirSync(probe)
  return does
}
const here = folds()
if (!here) {
  if (process.env.CKPT_FOLDING_REQUIRED) throw new Error('this file system takes each spelling for a name of its own')
  console.log('skipped: this file system takes each spelling for a name of its own (npm run test:folding)')
}

const rest = (seconds: number) => new Promise((resolve) => setTimeout(resolve, seconds * 1000))

/** Each file under the name that its directory has for it. */
const files = (root: string): Record<string, string> =>
  Object.fromEntries(
    fs
      .readdirSync(root, { recursive: true, withFileTypes: true })
      .filter((one) => one.isFile() && !one.parentPath.includes('/.git'))
      .map((one) => path.join(one.parentPath, one.name))
      .map((file) => [path.relative(root, file), fs.readFileSync(file, 'utf8')])
      .filter(([name]) => !name!.startsWith('.git')),
  )

const BEFORE = { 'File.txt': 'one\n', 'Dir/a': 'a\n', 'Dir/b': 'b\n' }
const AFTER = { 'file.txt': 'one\n', 'dir/a': 'a\n', 'dir/b': 'b\n' }

function renamed({ more = () => {} }: { more?: (scratch: Scratch) => void } = {}): Scratch {
  const scratch = new Scratch().init(BEFORE)
  scratch.turn('rename', () => {
    fs.renameSync(path.join(scratch.root, 'File.txt'), path.join(scratch.root, 'file.txt'))
    fs.renameSync(path.join(scratch.root, 'Dir'), path.join(scratch.root, 'dir'))
    more(scratch)
  })
  return scratch
}

describe.runIf(here)('where names differ in more than their case', () => {
  test('a file and a directory that were renamed in case only: undo and redo give each name back', () => {
    const scratch = renamed()
    expect(files(scratch.root)).toEqual(AFTER)
    expect(scratch.ckpt('diff').files.map((one: { status: string }) => one.status)).toEqual(Array(3).fill('renamed'))
    scratch.ckpt('undo')
    expect(files(scratch.root)).toEqual(BEFORE)
    scratch.ckpt('redo')
    expect(files(scratch.root)).toEqual(AFTER)
    expect(scratch.ckpt('verify').problems).toEqual([])
  })

  test('so also once all has come to rest, when the rules changed, and without a cache', async () => {
    for (const change of ['none', 'rules', 'cache']) {
      const scratch = new Scratch().init(BEFORE)
      scratch.ckpt('snapshot')
      await rest(2.2)
      scratch.ckpt('snapshot')
      scratch.turn('rename', () => {
        fs.renameSync(path.join(scratch.root, 'Dir'), path.join(scratch.root, 'dir'))
        if (change === 'rules') scratch.write({ '.gitignore': 'x\n' })
        if (change === 'cache') fs.unlinkSync(path.join(scratch.root, '.git/ckpt/worktrees/@main/cache.json'))
      })
      scratch.ckpt('undo')
      expect(files(scratch.root)).toEqual(BEFORE)
      scratch.ckpt('redo')
      expect(Object.keys(files(scratch.root))).toEqual(expect.arrayContaining(['dir/a', 'dir/b']))
    }
  })

  test('what came under the other spelling since is a conflict, and what would be lost with it stays', () => {
    const scratch = renamed()
    scratch.write({ 'dir/mine': 'mine\n' })
    const refused = scratch.tryCkpt('undo').document
    expect(refused.error).toMatchObject({ code: 'CONFLICT', paths: expect.arrayContaining(['Dir/a', 'Dir/b']) })
    expect(files(scratch.root)).toEqual({ ...AFTER, 'dir/mine': 'mine\n' })
    scratch.ckpt('undo', '--skip-conflicts')
    expect(files(scratch.root)).toEqual({ 'File.txt': 'one\n', 'dir/a': 'a\n', 'dir/b': 'b\n', 'dir/mine': 'mine\n' })
  })

  test('a file of yours under another spelling of one that comes back is not replaced, not even by force', () => {
    const scratch = new Scratch().init({ 'a.txt': 'a\n' })
    scratch.turn('remove', () => fs.unlinkSync(path.join(scratch.root, 'a.txt')))
    scratch.write({ 'A.TXT': 'mine\n' })
    expect(scratch.tryCkpt('undo').document.error.code).toBe('CONFLICT')
    expect(scratch.tryCkpt('undo', '--force').document.error.code).toBe('CONFLICT')
    expect(files(scratch.root)).toEqual({ 'A.TXT': 'mine\n' })
  })
})
