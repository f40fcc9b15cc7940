import fs from 'node:fs'
import path from 'node:path'
import { expect, test } from 'vitest'
import { parseIndex } from '../../src/snapshot/index-file.ts'
import { Scratch } from '../support/scratch.ts'

/** What git itself says of the entries that an index vouches for. */
function asGitSays(scratch: Scratch): string[] {
  const unmerged = new Set(scratch.git('ls-files', '-u', '-z').split('\0').filter(Boolean))
  const state = new Map(
    scratch
      .git('ls-files', '-v', '-z')
      .split('\0')
      .filter(Boolean)
      .map((line) => [line.slice(2), line[0]!]),
  )
  const sizes = scratch.git('ls-files', '--debug', '-z').split('\0')
  const rows: string[] = []
  const intent = new Set(scratch.git('diff', '--name-only', '--diff-filter=A', '-z').split('\0'))
  for (const line of scratch.git('ls-files', '-s', '-z').split('\0').filter(Boolean)) {
    const [, mode, oid, name] = /^(\d+) (\w+) \d\t(.*)$/s.exec(line)!
    if (unmerged.has(line) || state.get(name!) !== 'H' || mode === '160000' || intent.has(name!)) continue
    const after = sizes[sizes.findIndex((row) => row.endsWith(name!)) + 1]!
    const stat = /ctime: (\d+):(\d+)\n {2}mtime: (\d+):(\d+)\n.*ino: (\d+)\n.*size: (\d+)/s.exec(after)!
    const [ctime, cnano, mtime, mnano, ino, size] = stat.slice(1).map(Number)
    const ms = (seconds: number, nano: number) => seconds * 1000 + nano / 1e6
    rows.push([name, mode, oid, ms(ctime!, cnano!), ms(mtime!, mnano!), ino, size].join(' '))
  }
  return rows.sort()
}

function asWeSay(scratch: Scratch): string[] {
  const bytes = fs.readFileSync(path.join(scratch.root, '.git/index'))
  return parseIndex(bytes, 'sha1', { unsummed: true })
    .map(({ path, mode, oid, ctimeMs, mtimeMs, ino, size }) =>
      [Buffer.from(path, 'latin1').toString('utf8'), mode, oid, ctimeMs, mtimeMs, ino, size].join(' '),
    )
    .sort()
}

function laidOut(): Scratch {
  const scratch = new Scratch()
  scratch.git('init', '-q')
  const long = `deep/${'x'.repeat(120)}/${'y'.repeat(90)}`
  const names = [
    'a',
    'b.txt',
    'deep/c',
    `${long}/d`,
    `${long}/e e`,
    'ümläut\nline',
    'link',
    'tool',
    'z/assumed',
    'z/other',
  ]
  for (const name of names) {
    const at = path.join(scratch.root, name)
    fs.mkdirSync(path.dirname(at), { recursive: true })
    if (name === 'link') fs.symlinkSync('a', at)
    else fs.writeFileSync(at, `content of ${name}\n`)
  }
  fs.chmodSync(path.join(scratch.root, 'tool'), 0o755)
  scratch.git('add', '-A')
  scratch.git('commit', '-q', '-m', 'first')
  scratch.git('update-index', '--assume-unchanged', 'z/assumed')
  return scratch
}

test.each([2, 3, 4])('index version %i: the entries that git vouches for, as git says', (version) => {
  const scratch = laidOut()
  if (version >= 3) {
    fs.writeFileSync(path.join(scratch.root, 'intent'), 'not added yet\n')
    scratch.git('add', '-N', 'intent')
    scratch.git('update-index', '--skip-worktree', 'b.txt')
  }
  scratch.git('update-index', '--index-version', String(version === 3 ? 2 : version), '--force-write-index')
  expect(fs.readFileSync(path.join(scratch.root, '.git/index')).readUInt32BE(4)).toBe(version)
  const ours = asWeSay(scratch)
  expect(ours).toEqual(asGitSays(scratch))
  expect(ours).toHaveLength(version >= 3 ? 8 : 9)
})

test('an index without a sum, one of a merge that stopped, one with collapsed directories, one in two files', () => {
  const scratch = laidOut()
  const bytes = fs.readFileSync(path.join(scratch.root, '.git/index'))
  bytes.fill(0, bytes.length - 20)
  expect(parseIndex(bytes, 'sha1', { unsummed: true })).toHaveLength(9)
  expect(() => parseIndex(bytes, 'sha1')).toThrow('cannot be read')
  for (const cut of [0, 11, 40, 200, 600])
    expect(() =>
      parseIndex(Buffer.concat([bytes.subarray(0, cut), Buffer.alloc(20)]), 'sha1', { unsummed: true }),
    ).toThrow('cannot be read')

  scratch.git('checkout', '-q', '-b', 'side')
  fs.writeFileSync(path.join(scratch.root, 'a'), 'side\n')
  scratch.git('commit', '-q', '-am', 'side')
  scratch.git('checkout', '-q', '-')
  fs.writeFileSync(path.join(scratch.root, 'a'), 'main\n')
  scratch.git('commit', '-q', '-am', 'main')
  expect(() => scratch.git('merge', 'side')).toThrow()
  expect(asWeSay(scratch)).toEqual(asGitSays(scratch))
  scratch.git('merge', '--abort')

  scratch.git('update-index', '--split-index')
  expect(asWeSay(scratch)).toEqual([])
  scratch.git('update-index', '--no-split-index')

  scratch.git('update-index', '--no-assume-unchanged', 'z/assumed')
  scratch.git('sparse-checkout', 'set', '--cone', '--sparse-index', 'z')
  const sparse = asWeSay(scratch).map((row) => row.replace(/ 100.*/s, ''))
  expect(sparse).toContain('z/other')
  expect(sparse.some((name) => name.startsWith('deep'))).toBe(false)
})
