/** Wrong or lost files, continued: bytes, times, the index, and what a shell or a hand did. */
import { spawnSync } from 'node:child_process'
import fs from 'node:fs'
import { expect, test } from 'vitest'
import { PROGRAM, Scratch } from '../support/scratch.ts'

test('row 11: what was staged stays staged through a turn, its undo and its redo', () => {
  const scratch = new Scratch().init({ 'a.txt': 'one\n', 'b.txt': 'one\n', 'gone.txt': 'x\n' })
  scratch.write({ 'b.txt': 'staged\n', 'new.txt': 'staged\n', 'intent.txt': 'later\n' })
  scratch.git('add', 'b.txt', 'new.txt')
  scratch.git('add', '-N', 'intent.txt')
  scratch.git('rm', '-q', '--cached', 'gone.txt')
  scratch.write({ 'b.txt': 'and more\n' })
  const state = scratch.gitState()
  const staged = scratch.git('diff', '--cached')
  scratch.turn('work', () => scratch.write({ 'a.txt': 'two\n', 'b.txt': 'agent\n', 'new.txt': 'agent\n' }))
  scratch.ckpt('undo')
  expect(scratch.read('b.txt')).toBe('and more\n')
  scratch.ckpt('redo')
  expect(scratch.gitState()).toEqual(state)
  expect(scratch.git('diff', '--cached')).toBe(staged)
})

test("row 12: started from a git hook, with git's variables inherited, it leaves the user's index alone", () => {
  const scratch = new Scratch().init({ 'a.txt': 'one\n', 'b.txt': 'one\n' })
  scratch.turn('work', () => scratch.write({ 'a.txt': 'agent\n', 'made.txt': 'agent\n' }))
  scratch.write({ 'b.txt': 'two\n' })
  const line = `"${process.execPath}" "${PROGRAM}"`
  scratch.write({
    '.git/hooks/pre-commit': `#!/bin/sh
env | grep -c GIT_ > "${scratch.base}/seen"
${line} snapshot -m hook && ${line} undo && ${line} redo && ${line} status > /dev/null
`,
  })
  fs.chmodSync(scratch.at('.git/hooks/pre-commit'), 0o755)
  scratch.git('commit', '-q', '-m', 'part', '--', 'b.txt') // a partial commit: GIT_INDEX_FILE is a temporary one
  expect(Number(fs.readFileSync(`${scratch.base}/seen`, 'utf8'))).toBeGreaterThan(0)
  expect(scratch.git('show', '--name-only', '--format=', 'HEAD').trim()).toBe('b.txt')
  expect(scratch.git('status', '--porcelain').split('\n').sort()).toEqual(['', ' M a.txt', '?? made.txt'])
  expect(scratch.git('fsck', '--no-dangling')).toBe('')
  expect(scratch.ckpt('list', '--session', 'manual').turns).toBeDefined()
})

test('row 13: redo touches only the files it changes; all other files keep inode and times', () => {
  const many = Object.fromEntries(Array.from({ length: 50 }, (_, i) => [`src/${i}.txt`, `${i}\n`]))
  const scratch = new Scratch().init({ ...many, 'a.txt': 'one\n' })
  scratch.turn('one file', () => scratch.write({ 'a.txt': 'two\n' }))
  const stats = () =>
    Object.keys(many).map((name) => {
      const { ino, mtimeMs, ctimeMs } = fs.lstatSync(scratch.at(name))
      return [name, ino, mtimeMs, ctimeMs]
    })
  const before = stats()
  scratch.ckpt('undo')
  scratch.ckpt('redo')
  expect(stats()).toEqual(before)
})

test('row 14: files under line-end, LFS and filter attributes come back with the bytes they had', () => {
  const scratch = new Scratch().init({
    '.gitattributes':
      'crlf.txt text eol=crlf\nlf.txt text eol=lf\n*.bin filter=lfs -text\n*.id ident\n*.u16 working-tree-encoding=UTF-16\n',
    'plain.txt': 'one\n',
  })
  scratch.git('config', 'filter.lfs.clean', 'sed s/./X/g')
  scratch.git('config', 'filter.lfs.smudge', 'sed s/./Y/g')
  scratch.git('config', 'core.autocrlf', 'true')
  const files = {
    'crlf.txt': 'a\r\nb\nc\r\n',
    'lf.txt': 'a\r\nb\r\n',
    'big.bin': 'large file\n',
    'x.id': '$Id$ and $Id: keep this $\n',
    'x.u16': Buffer.from('\ufeffhello\n', 'utf16le'),
    'mixed.txt': '\r\r\n\n\0',
  }
  scratch.write(files)
  scratch.git('add', '-A')
  scratch.git('commit', '-qm', 'converted')
  scratch.write(files)
  const before = scratch.manifest()
  scratch.turn('rewrite', () => {
    for (const name of Object.keys(files)) scratch.write({ [name]: `new\r\n${name}\n` })
  })
  const after = scratch.manifest()
  scratch.ckpt('undo')
  expect(scratch.manifest()).toEqual(before)
  scratch.ckpt('redo')
  expect(scratch.manifest()).toEqual(after)
})

test('row 15: what a shell command changed, moved and removed is restored', () => {
  const scratch = new Scratch().init({ 'a.txt': 'one\n', 'sub/b.txt': 'two\n', 'c.txt': 'three\n' })
  scratch.write({ 'untracked.txt': 'not in git\n' })
  const before = scratch.manifest()
  const script = 'sed -i s/one/ONE/ a.txt; rm -r sub untracked.txt; mv c.txt d.txt; mkdir new; echo x > new/x'
  expect(scratch.run(['run', '--', 'sh', '-c', script]).code).toBe(0)
  expect(scratch.manifest()).not.toEqual(before)
  scratch.ckpt('undo')
  expect(scratch.manifest()).toEqual(before)
})

test('row 16: hand edits between two undos are merged where they can be, and else refuse the second', () => {
  const text = (first: string, last: string) => `${first}\n2\n3\n4\n5\n6\n${last}\n`
  const scratch = new Scratch().init({ 'a.txt': text('1', '7'), 'b.txt': 'one\n' })
  scratch.turn('first', () => scratch.write({ 'a.txt': text('agent', '7'), 'b.txt': 'two\n' }))
  scratch.turn('second', () => scratch.write({ 'b.txt': 'three\n' }))
  scratch.ckpt('undo')
  scratch.write({ 'a.txt': text('agent', 'hand'), 'b.txt': 'hand\n' })
  const disk = scratch.manifest()
  const refused = scratch.tryCkpt('undo')
  expect(refused.code).toBe(4)
  expect(refused.document.error.paths).toEqual(['b.txt'])
  expect(scratch.manifest()).toEqual(disk)
  scratch.write({ 'b.txt': 'two\n' })
  const { files } = scratch.ckpt('undo')
  expect(files).toEqual([
    { path: 'a.txt', action: 'merge' },
    { path: 'b.txt', action: 'write' },
  ])
  expect(scratch.read('a.txt')).toBe(text('1', 'hand'))
})

test('row 17: an edit of the same size in the same second is seen, even with its time set back', () => {
  const scratch = new Scratch().init({ 'a.txt': 'aaaa\n', 'b.txt': 'aaaa\n' })
  scratch.git('config', 'core.trustctime', 'false')
  scratch.git('config', 'core.checkStat', 'minimal')
  const time = new Date('2026-01-01T00:00:00Z')
  for (const name of ['a.txt', 'b.txt']) fs.utimesSync(scratch.at(name), time, time)
  scratch.git('update-index', '-q', '--refresh')
  for (const content of ['bbbb\n', 'cccc\n', 'dddd\n']) {
    scratch.turn(content, () => {
      scratch.write({ 'a.txt': content, 'b.txt': content })
      fs.utimesSync(scratch.at('b.txt'), time, time)
    })
  }
  for (const content of ['cccc\n', 'bbbb\n', 'aaaa\n']) {
    expect(scratch.ckpt('undo').files).toHaveLength(2)
    expect(scratch.read('a.txt')).toBe(content)
    expect(scratch.read('b.txt')).toBe(content)
  }
})

test('row 17: an edit while the same process goes on marking is in the checkpoint of its turn', () => {
  const scratch = new Scratch().init({ 'a.txt': '0000\n' })
  // One shell, no pause between write and marker: the clock of the file system ticks slower than this.
  const ckpt = `"${process.execPath}" "${PROGRAM}"`
  const script = [1, 2, 3, 4]
    .map((n) => `${ckpt} mark prompt --session s; printf '000${n}\\n' > a.txt; ${ckpt} mark stop --session s`)
    .join('\n')
  const done = spawnSync('sh', ['-ec', script], { cwd: scratch.root, env: scratch.vars, encoding: 'utf8' })
  expect(done.stderr).toBe('')
  const { turns } = scratch.ckpt('list')
  expect(turns.map((turn: { stat: { files: number } }) => turn.stat.files)).toEqual([1, 1, 1, 1])
})
