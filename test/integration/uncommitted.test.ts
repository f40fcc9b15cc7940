// A session's first prompt says whether there were uncommitted changes before it: git is asked about what differs from HEAD.
import fs from 'node:fs'
import { expect, test } from 'vitest'
import { startDaemon } from '../support/daemon.ts'
import { Scratch } from '../support/scratch.ts'

const FIRST = {
  'a.txt': 'one\n',
  'd/b.txt': 'b\n',
  'd/run.sh': '#!/bin/sh\n',
  'crlf.txt': 'line\n',
  '.gitattributes': 'crlf.txt text eol=crlf\n',
  '.gitignore': '*.log\n',
  '.checkpointrc': '{"snapshot":{"maxFileSize":"1MiB"}}',
}

/** What is done to a clean worktree; whether that leaves something uncommitted on disk is git's to say. */
const CASES: Record<string, (scratch: Scratch) => void> = {
  nothing: () => undefined,
  'a file that is ignored': (at) => at.write({ 'x.log': 'x\n', 'new/y.log': 'y\n' }),
  'a file as its attributes want it': (at) => {
    at.remove('crlf.txt')
    at.git('checkout', 'crlf.txt')
  },
  'a touched file': (at) => fs.utimesSync(at.at('a.txt'), 1, 1),
  'a mode that git is told to ignore': (at) => {
    at.git('config', 'core.fileMode', 'false')
    fs.chmodSync(at.at('a.txt'), 0o755)
  },
  'an empty directory': (at) => fs.mkdirSync(at.at('empty')),
  'a sparse checkout': (at) =>
    at.git('sparse-checkout', 'set', '--no-cone', '/a.txt', '/.gitignore', '/.gitattributes'),
  'a new file': (at) => at.write({ 'new.txt': 'new\n' }),
  'a new file below a new directory': (at) => at.write({ 'new/er/file.txt': 'new\n' }),
  'a change': (at) => at.write({ 'd/b.txt': 'other\n' }),
  'a deletion': (at) => at.remove('d'),
  'a rename': (at) => at.git('mv', 'a.txt', 'd/a.txt'),
  'a mode': (at) => fs.chmodSync(at.at('d/run.sh'), 0o755),
  'a link in the place of a file': (at) => {
    at.remove('a.txt')
    fs.symlinkSync('d/b.txt', at.at('a.txt'))
  },
  'what is staged': (at) => {
    at.write({ 'a.txt': 'staged\n' })
    at.git('add', 'a.txt')
  },
  'names that mean something to git': (at) => at.write({ ':(top)x': '1\n', ':!a.txt': '2\n', '*': '3\n', '-n': '4\n' }),
  'a name with a line break': (at) => at.write({ 'two\nlines "q"': '1\n' }),
  'a name that is no text': (at) => fs.writeFileSync(Buffer.from(`${at.root}/\xff`, 'latin1'), 'x\n'),
  'a file that is too large': (at) => at.write({ 'large.bin': Buffer.alloc(2 * 2 ** 20, 'x') }),
  'a repository of its own': (at) => {
    at.write({ 'other/file.txt': 'x\n' })
    at.git('init', '-q', 'other')
  },
  'many files': (at) => at.write(Object.fromEntries(Array.from({ length: 150 }, (_, i) => [`m/f${i}`, `${i}\n`]))),
  'many files that git takes for unchanged': (at) => {
    at.write(Object.fromEntries(Array.from({ length: 150 }, (_, i) => [`n/f${i}`, 'line\n'])))
    at.write({ 'n/.gitattributes': '* text eol=crlf\n' })
    at.git('add', '-A')
    at.git('commit', '-q', '-m', 'second')
    at.remove('n')
    at.git('checkout', 'n')
  },
}

for (const held of [false, true]) {
  test(`uncommitted changes before a session are what git status shows${held ? ', with the daemon' : ''}`, () => {
    const scratch = new Scratch().init(FIRST)
    scratch.git('tag', 'clean')
    if (held) startDaemon(scratch)
    const said: Record<string, boolean> = {}
    const seen: Record<string, boolean> = {}
    for (const [name, change] of Object.entries(CASES)) {
      change(scratch)
      seen[name] = scratch.git('status', '--porcelain') !== ''
      const { warnings } = scratch.ckpt('mark', 'prompt', '--session', `s ${Object.keys(said).length}`)
      said[name] = warnings.some((one: string) => one.startsWith('There were uncommitted changes before this session'))
      scratch.git('config', '--unset-all', 'core.fileMode')
      scratch.git('config', 'core.fileMode', 'true')
      scratch.git('sparse-checkout', 'disable')
      scratch.git('reset', '-q', '--hard', 'clean')
      scratch.git('clean', '-qffdx')
    }
    expect(said).toEqual(seen)
    const clean = Object.keys(seen).filter((name) => !seen[name])
    expect(clean).toEqual([
      'nothing',
      'a file that is ignored',
      'a file as its attributes want it',
      'a touched file',
      'a mode that git is told to ignore',
      'an empty directory',
      'a sparse checkout',
      'many files that git takes for unchanged',
    ])
  })
}

test('before the first commit all is uncommitted, and what is only in the index is nothing on disk', () => {
  const scratch = new Scratch()
  scratch.git('init', '-q')
  scratch.write({ 'a.txt': 'one\n' })
  const isSaid = (session: string) => scratch.ckpt('mark', 'prompt', '--session', session).warnings.length > 0
  expect(isSaid('unborn')).toBe(true)
  scratch.git('add', '-A')
  scratch.git('commit', '-q', '-m', 'first')
  scratch.git('rm', '-q', '--cached', 'a.txt')
  expect(isSaid('index')).toBe(false)
  scratch.write({ 'a.txt': 'two\n' })
  expect(isSaid('disk')).toBe(true)
})

test('a file that git ignores and the configuration asks for is nothing uncommitted', () => {
  const config = '{"snapshot":{"include":["kept.log"]}}'
  const scratch = new Scratch().init({ 'a.txt': 'one\n', '.gitignore': '*.log\n', '.checkpointrc': config })
  const isSaid = (session: string) => scratch.ckpt('mark', 'prompt', '--session', session).warnings.length > 0
  scratch.write({ 'kept.log': 'one\n' })
  expect(isSaid('ignored')).toBe(false)
  scratch.write({ 'kept.log': 'two\n', 'new.txt': 'new\n' })
  scratch.ckpt('mark', 'stop', '--session', 'ignored')
  expect(isSaid('new')).toBe(true)
  scratch.ckpt('undo', '--session', 'ignored')
  expect(scratch.read('kept.log')).toBe('one\n')
})
