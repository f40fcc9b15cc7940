/** `ckpt commit` beside commits made by hand, and taken back: what counts as committed, and what a person chose. */
import { execFileSync, spawn } from 'node:child_process'
import fs from 'node:fs'
import { expect, test } from 'vitest'
import { answer, envOf } from '../support/in-process.ts'
import { Scratch } from '../support/scratch.ts'

const commit = (scratch: Scratch) => scratch.tryCkpt('commit')
const lines = (first: string, last: string) => `${first}\n${'line\n'.repeat(20)}${last}\n`
function begun(files?: Record<string, string>): Scratch {
  const scratch = new Scratch()
  if (files) scratch.init(files)
  else scratch.git('init', '-q', '-b', 'main')
  scratch.git('config', 'user.name', 'A U Thor')
  scratch.git('config', 'user.email', 'author@example.com')
  return scratch
}
const FIRST = { f: lines('1', '30') }

test.each([
  ['reset', (scratch: Scratch) => scratch.git('reset', '-q', 'HEAD^')],
  ['reset, and kept in the index', (scratch: Scratch) => scratch.git('reset', '-q', '--soft', 'HEAD^')],
  [
    'amended, without one of its files',
    (scratch: Scratch) => {
      scratch.git('reset', '-q', 'HEAD^', '--', 'f')
      scratch.git('commit', '-q', '--amend', '-m', 'less')
    },
  ],
])('what an agent committed in its turn is committed by ckpt where that commit was %s', (_, takeBack) => {
  const scratch = begun(FIRST)
  scratch.turn('one', () => {
    scratch.write({ f: lines('one', '30'), g: 'g\n' })
    scratch.git('add', '-A')
    scratch.git('commit', '-qm', 'wip')
  })
  scratch.turn('two', () => scratch.write({ f: lines('one', 'thirty') }))
  takeBack(scratch)
  const { code, document } = commit(scratch)
  expect([code, document.warnings]).toEqual([0, []])
  expect(scratch.git('show', 'HEAD:f')).toBe(lines('one', 'thirty'))
  expect(scratch.git('status', '--porcelain')).toBe('')
  expect(scratch.ckpt('verify', '--ref', 'HEAD', '--covered').problems).toEqual([])
})

test('what is committed on another branch is left out, and that is said', () => {
  const scratch = begun(FIRST)
  scratch.git('checkout', '-qb', 'other')
  scratch.turn('one', () => {
    scratch.write({ f: lines('one', '30') })
    scratch.git('commit', '-qam', 'wip')
  })
  scratch.turn('two', () => scratch.write({ g: 'g\n' }))
  scratch.git('checkout', '-q', 'main')
  const { code, document } = commit(scratch)
  expect([code, document.files, document.warnings]).toEqual([
    0,
    [{ path: 'g' }],
    ['Committed on another branch, and left out of the commit: f.'],
  ])
})

test('what was stashed, and is otherwise where HEAD went, waits for a later commit', () => {
  const scratch = begun(FIRST)
  scratch.git('branch', 'other')
  scratch.write({ f: lines('uno', '30') })
  scratch.git('commit', '-qam', 'uno')
  scratch.git('checkout', '-q', 'other')
  scratch.turn('one', () => scratch.write({ f: lines('one', 'thirty'), n: 'n\n' }))
  scratch.git('stash', '-qu')
  scratch.git('checkout', '-q', 'main')
  const first = commit(scratch)
  expect([first.code, first.document.files]).toEqual([0, [{ path: 'n' }]])
  expect(first.document.warnings).toEqual([
    'Otherwise in HEAD, and on disk as in HEAD (stashed, it may be), left out of this commit and looked at again by the next: f.',
  ])
  scratch.git('checkout', '-q', 'stash@{0}', '--', 'f')
  const refused = commit(scratch)
  expect([refused.code, refused.document.error.paths]).toEqual([4, ['f']])
  scratch.git('commit', '-qm', 'by hand')
  expect(commit(scratch).document).toMatchObject({ commit: null, warnings: [] })
})

test('a part that was chosen by hand, as a refusal says, is all that is chosen; of later turns it says nothing', () => {
  const scratch = begun(FIRST)
  scratch.turn('one', () => scratch.write({ f: lines('one', 'thirty') }))
  scratch.write({ f: lines('uno', '30') })
  scratch.git('commit', '-qam', 'uno')
  scratch.write({ f: lines('one', 'thirty') })
  const isRefused = () => {
    const { code, document } = commit(scratch)
    expect([code, document.error.paths]).toEqual([4, ['f']])
  }
  isRefused()
  scratch.git('commit', '-q', '--allow-empty', '-m', 'of nothing')
  isRefused()
  scratch.write({ f: lines('uno', 'thirty') })
  scratch.atPresent().git('commit', '-qam', 'a part')
  scratch.write({ f: lines('one', 'thirty') })
  scratch.turn('two', () => scratch.write({ g: 'g\n' }))
  expect(commit(scratch).document).toMatchObject({
    files: [{ path: 'g' }],
    warnings: ['Left as you have committed it: f.'],
  })
  expect(scratch.git('status', '--porcelain')).toBe(' M f\n')
  scratch.turn('three', () => scratch.write({ f: lines('eins', 'thirty') }))
  isRefused()
})

test.each(['--skip-worktree', '--assume-unchanged'])('the way by hand goes past a mark of git’s (%s)', (mark) => {
  const scratch = begun({ 'its conf': '1\n2\n3\n', o: 'o\n' })
  scratch.git('update-index', mark, 'its conf')
  scratch.write({ 'its conf': '1\n2 mine\n3\n' })
  scratch.turn('one', () => scratch.write({ 'its conf': '1 agent\n2 mine\n3\n', o: 'agent\n' }))
  const { code, document } = commit(scratch)
  expect([code, document.error.paths]).toEqual([4, ['its conf']])
  const [hint] = document.error.hints
  const line = hint
    .replace(/ {3}\(.*/, '')
    .replace('git add -p', 'yes | git add -p')
    .replace(/commit$/, 'commit -qm hand')
  execFileSync('sh', ['-c', line], {
    cwd: scratch.base,
    env: { ...scratch.vars, GIT_DIR: scratch.at('.git'), GIT_WORK_TREE: scratch.root },
    stdio: 'ignore',
  })
  expect(scratch.git('show', 'HEAD:its conf', 'HEAD:o')).toBe('1 agent\n2 mine\n3\nagent\n')
  scratch.turn('two', () => scratch.write({ o: 'more\n' }))
  expect(commit(scratch).document.files).toEqual([{ path: 'o' }])
})

test('on a branch without a commit, what is nowhere there is left out', () => {
  const scratch = begun({ a: 'a\n' })
  scratch.git('checkout', '-q', '--detach')
  scratch.turn('one', () => scratch.write({ a: 'a\nagent\n' }))
  expect(commit(scratch)).toMatchObject({ code: 0 })
  scratch.git('checkout', '-q', '--orphan', 'new')
  scratch.git('rm', '-rqf', '.')
  scratch.turn('two', () => scratch.write({ o: 'o\n' }))
  const { code, document } = commit(scratch)
  expect([code, document.warnings.join()]).toEqual([0, expect.stringMatching(/left out of this commit.*: a\.$/)])
  expect(scratch.git('show', '--format=', '--name-only', 'HEAD')).toBe('o\n')
})

test('the way by hand makes no new file of one with a conflict in the index, and no deletion', () => {
  const scratch = begun({ a: 'a\n', b: 'b\n' })
  scratch.git('checkout', '-q', '-b', 'side')
  scratch.write({ a: 'a\nside\n' })
  scratch.git('commit', '-qam', 'side')
  scratch.git('checkout', '-q', 'main')
  scratch.write({ a: 'a\nmine\n' })
  scratch.git('stash', '-q')
  scratch.git('checkout', '-q', 'side')
  expect(() => scratch.git('stash', 'pop', '-q')).toThrow()
  scratch.turn('resolves', () => scratch.write({ a: 'a\nresolved\n', b: 'b\nagent\n' }))
  const { code, document } = commit(scratch)
  const [hint] = document.error.hints
  expect([code, hint]).toEqual([
    4,
    'git add -- :/a && git add -p && git commit   (choose by hand, once the conflict in a is resolved)',
  ])
  const steps = hint.replace(/ {3}\(.*/, '').replace('git commit', 'git commit -qm "by hand"')
  execFileSync('sh', ['-c', steps], { cwd: scratch.root, env: scratch.vars, input: 'n\n' })
  expect([scratch.git('show', 'HEAD:a'), scratch.git('show', 'HEAD:b')]).toEqual(['a\nresolved\n', 'b\n'])
  expect(commit(scratch)).toMatchObject({ code: 0 })
  expect(scratch.git('show', 'HEAD:b')).toBe('b\nagent\n')
  expect(scratch.git('status', '--porcelain')).toBe('')
})

test('a directory that a person kept in the place of an agent’s file is no conflict for good', () => {
  const scratch = begun({ 'd/1': '1\n', o: 'o\n' })
  scratch.turn('one', () => {
    scratch.remove('d')
    scratch.write({ d: 'file\n', o: 'agent\n' })
  })
  scratch.remove('d')
  scratch.git('checkout', '-q', 'd')
  scratch.write({ 'd/3': '3\n' })
  scratch.git('add', 'd/3')
  scratch.git('commit', '-qm', 'the directory stays')
  const { code, document } = commit(scratch)
  expect([code, document.files]).toEqual([0, [{ path: 'o' }]])
  expect(scratch.git('status', '--porcelain')).toBe('')
})

test('a file in the place of a submodule is a person’s to choose, and then chosen', () => {
  const scratch = begun({ o: 'o\n' })
  const other = begun({ s: 's\n' })
  scratch.git('-c', 'protocol.file.allow=always', 'submodule', '-q', 'add', other.root, 'sm')
  scratch.git('commit', '-qm', 'sm')
  scratch.turn('one', () => {
    scratch.remove('sm')
    scratch.write({ sm: 'file\n', o: 'agent\n' })
  })
  const { code, document } = commit(scratch)
  expect([code, document.error.paths]).toEqual([4, ['sm']])
  execFileSync('sh', ['-c', 'yes | git add -p && git commit -qm hand'], {
    cwd: scratch.root,
    env: scratch.vars,
    stdio: 'ignore',
  })
  expect(scratch.git('status', '--porcelain')).toBe('')
  expect(commit(scratch).document).toMatchObject({ commit: null, warnings: [] })
})

test('with nothing committed when the turn began, what a person committed of it since is known', () => {
  const scratch = begun()
  scratch.turn('one', () => scratch.write(FIRST))
  for (const first of ['a', 'b', 'c']) {
    scratch.git('add', '-A')
    scratch.git('commit', '-q', '--allow-empty', '-m', 'by hand')
    scratch.write({ f: lines(first, '30') })
  }
  scratch.turn('two', () => scratch.write({ g: 'g\n' }))
  const { code, document } = commit(scratch)
  expect([code, document.files, document.warnings]).toEqual([0, [{ path: 'g' }], []])
})

test('what git mv put into the index on its way is gone from there once it is committed', () => {
  const scratch = begun({ f: lines('1', '30'), keep: 'k\n' })
  scratch.turn('one', () => scratch.git('mv', 'f', 'g'))
  scratch.turn('two', () => fs.renameSync(scratch.at('g'), scratch.at('h')))
  expect(commit(scratch)).toMatchObject({ code: 0, document: { warnings: [] } })
  expect(scratch.git('status', '--porcelain')).toBe('')
})

test('where git cannot say what is changed, for a required filter fails, the refusal names the file', () => {
  const scratch = begun({ 'x.f': 'OK\n', '.gitattributes': '*.f filter=f\n' })
  scratch.git('config', 'filter.f.clean', 'grep OK')
  scratch.git('config', 'filter.f.required', 'true')
  scratch.turn('one', () => scratch.write({ 'x.f': 'BAD\n' }))
  const { code, document } = commit(scratch)
  expect([code, document.error.message]).toEqual([
    4,
    expect.stringContaining("x.f (git cannot convert it: x.f: clean filter 'f' failed)"),
  ])
})

test('a session that removes what another one committed, or puts it back, commits that', () => {
  const scratch = begun(FIRST)
  scratch.turn('one', () => scratch.write({ f: lines('one', '30'), h: 'h\n' }), 'first')
  scratch.turn('two', () => {
    scratch.write({ ...FIRST, k: 'k\n' })
    scratch.remove('h')
  })
  expect(scratch.tryCkpt('commit', '--session', 'first').document.files).toEqual([{ path: 'f' }, { path: 'h' }])
  expect(commit(scratch).document.files).toEqual([{ path: 'f' }, { path: 'h' }, { path: 'k' }])
  expect(scratch.git('status', '--porcelain')).toBe('')
})

test('what a person took out of a commit of ckpt by an amend is not put back by the next one', () => {
  const scratch = begun(FIRST)
  scratch.turn('one', () => scratch.write({ f: lines('one', 'thirty'), b: 'b\n' }))
  const first = commit(scratch).document.commit.slice(0, 10)
  scratch.write({ f: lines('one', '30') })
  scratch.remove('b')
  scratch.git('commit', '-qa', '--amend', '--no-edit')
  scratch.turn('two', () => scratch.write({ k: 'k\n' }))
  const { document } = commit(scratch)
  expect([document.files, document.warnings]).toEqual([
    [{ path: 'k' }],
    [expect.stringContaining(`Commit ${first} is no part of HEAD any more`)],
  ])
  scratch.git('commit', '-q', '--amend', '-m', 'other words')
  scratch.turn('three', () => scratch.write({ l: 'l\n' }))
  expect(commit(scratch).document).toMatchObject({ files: [{ path: 'l' }], warnings: [] })
})

test('a commit by hand under the subject of one that was refused is none of ckpt’s', () => {
  const scratch = begun(FIRST)
  scratch.turn('one', () => scratch.write({ f: lines('one', '30') }))
  fs.writeFileSync(
    scratch.at('.git/hooks/pre-commit'),
    `#!/bin/sh
[ -e .git/done ] && exit 0; touch .git/done; unset GIT_INDEX_FILE
sed -i s/^30$/mine/ f; git commit -qam 'the same words'; exit 1
`,
    { mode: 0o755 },
  )
  expect(scratch.tryCkpt('commit', '-m', 'the same words').code).toBe(4)
  expect(scratch.ckpt('verify', '--ref', 'HEAD').commits).toMatchObject([{ covered: false }])
  scratch.git('rm', '-q', '--cached', 'f')
  const staged = scratch.git('status', '--porcelain')
  scratch.ckpt('status')
  expect(scratch.git('status', '--porcelain')).toBe(staged)
})

test('a conflict is not settled by an amend of the message', () => {
  const scratch = begun(FIRST)
  scratch.turn('one', () => scratch.write({ f: lines('one', '30') }))
  scratch.write({ f: lines('uno', '30') })
  scratch.git('commit', '-qam', 'uno')
  scratch.write({ f: lines('one', '30') })
  expect(commit(scratch).code).toBe(4)
  scratch.atPresent().git('commit', '-q', '--amend', '-m', 'better words')
  expect(commit(scratch).code).toBe(4)
  expect(commit(scratch).code).toBe(4)
})

test('what an agent committed on a branch between its steps is not committed on another one too', () => {
  const scratch = begun(FIRST)
  scratch.ckpt('mark', 'prompt', '--session', 's', '--text', 'one')
  scratch.write({ f: lines('one', '30'), h: 'h\n' })
  scratch.ckpt('mark', 'step', '--session', 's')
  scratch.git('checkout', '-qb', 'other')
  scratch.git('add', '-A')
  scratch.git('commit', '-qm', 'wip')
  scratch.ckpt('mark', 'stop', '--session', 's')
  scratch.git('checkout', '-q', 'main')
  const said = ['Committed on another branch, and left out of the commit: f, h.']
  expect(commit(scratch).document).toMatchObject({ commit: null, warnings: said })
  scratch.turn('two', () => scratch.write({ k: 'k\n' }))
  expect(commit(scratch).document).toMatchObject({ files: [{ path: 'k' }], warnings: said })
  // Once that branch is gone it is nowhere.
  scratch.git('branch', '-qD', 'other')
  expect(commit(scratch).document.files).toEqual([{ path: 'f' }, { path: 'h' }])
})

test('what ckpt committed on one branch is not committed on another one too, and is once it is nowhere', () => {
  const scratch = begun({ ...FIRST, g: 'g\n' })
  // An author and a second are what an amended commit is known by.
  let second = 0
  const dated = () => {
    const vars = { GIT_AUTHOR_DATE: `2026-01-01T00:00:${10 + second++}Z` }
    return JSON.parse(scratch.run(['commit', '--json'], { vars }).stdout)
  }
  scratch.git('checkout', '-qb', 'other')
  scratch.turn('one', () => scratch.write({ f: lines('one', '30'), n: 'n\n' }))
  expect(dated().files).toEqual([{ path: 'f' }, { path: 'n' }])
  scratch.git('checkout', '-q', 'main')
  const said = 'Committed on another branch, and left out of the commit: f, n.'
  scratch.turn('two', () => scratch.write({ g: 'two\n' }))
  expect(dated()).toMatchObject({ files: [{ path: 'g' }], warnings: [said] })
  expect(scratch.git('status', '--porcelain')).toBe('')
  scratch.turn('three', () => scratch.write({ k: 'k\n' }))
  expect(dated()).toMatchObject({ files: [{ path: 'k' }], warnings: [said] })
  scratch.git('checkout', '-q', 'other')
  expect(dated()).toMatchObject({
    commit: null,
    warnings: ['Committed on another branch, and left out of the commit: g, k.'],
  })
  scratch.git('checkout', '-q', 'main')
  scratch.git('branch', '-qD', 'other')
  expect(dated()).toMatchObject({ files: [{ path: 'f' }, { path: 'n' }], warnings: [] })
})

test('what a person staged of a file that is nowhere now stays staged', () => {
  const scratch = begun(FIRST)
  scratch.turn('one', () => scratch.write({ x: 'x\n' }))
  scratch.git('add', 'x')
  scratch.turn('two', () => {
    scratch.remove('x')
    scratch.write({ k: 'k\n' })
  })
  expect(commit(scratch).document.files).toEqual([{ path: 'k' }])
  expect(scratch.git('status', '--porcelain')).toBe('AD x\n')
})

test('a git that is killed while what HEAD was is looked up does not make it gone: nothing is committed, and then it is', async () => {
  const scratch = begun({ 'a.txt': 'one\n', 'b.txt': 'one\n' }).atPresent()
  scratch.turn('work', () => scratch.write({ 'a.txt': 'two\n' }))
  scratch.write({ 'b.txt': 'mine\n' })
  scratch.git('commit', '-q', '-m', 'mine', 'b.txt')
  const env = envOf(scratch)
  const killed = ((file: string, args: string[], options: object) =>
    args.includes('cat-file') && args.includes('-e')
      ? spawn('sh', ['-c', 'kill -9 $$'], options)
      : spawn(file, args, options)) as typeof env.spawn
  const { code, document } = await answer({ ...env, spawn: killed }, 'commit', '-m', 'theirs')
  expect([code, document.error?.message]).toEqual([
    1,
    'git cat-file was ended by somebody (SIGKILL). Nothing was changed.',
  ])
  expect(scratch.git('log', '--format=%s')).toBe('mine\nfirst\n')
  scratch.ckpt('commit', '-m', 'theirs')
  expect(scratch.git('show', '--format=%s', '--name-only')).toBe('theirs\n\na.txt\n')
})
