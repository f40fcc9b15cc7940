/** `ckpt commit`: exactly what the session changed; whatever else the person was at stays as it was. */
import { execFileSync } from 'node:child_process'
import fs from 'node:fs'
import path from 'node:path'
import { describe, expect, test } from 'vitest'
import { commit, lines, me } from '../support/commits.ts'
import { tryGit } from '../support/gate.ts'
import { Scratch } from '../support/scratch.ts'

const committed = (scratch: Scratch) => scratch.git('show', '--format=', '--name-status', 'HEAD').trim()

test('what a turn renamed with git, and changed in the same breath, leaves the index as the commit is', () => {
  const scratch = new Scratch().init({ 'a.txt': lines(), 'd/one': lines() })
  scratch.turn('rename', () => {
    scratch.git('mv', 'a.txt', 'b.txt')
    scratch.git('mv', 'd', 'e')
    scratch.write({ 'b.txt': lines([5, 'agent']), 'e/one': lines([5, 'agent']) })
  })
  expect(commit(scratch)).toMatchObject({ code: 0, stderr: '' })
  expect(scratch.git('status', '--porcelain')).toBe('')
})

test('what a turn staged on its way to something else stays staged, and how to stage the commit is said', () => {
  const scratch = new Scratch().init({ 'a.txt': lines() })
  scratch.turn('twice', () => {
    scratch.write({ 'a.txt': lines([5, 'at first']) })
    scratch.git('add', 'a.txt')
    scratch.write({ 'a.txt': lines([5, 'in the end']) })
  })
  const { code, json } = commit(scratch)
  expect([code, json.warnings]).toEqual([0, [expect.stringContaining('a.txt stays staged as it was')]])
  expect(json.warnings[0]).toContain('git restore --staged :/a.txt')
  scratch.git('restore', '--staged', 'a.txt')
  expect(scratch.git('status', '--porcelain')).toBe('')
})

test('turns that nothing in the commit is of name it neither in its message nor as its origin', () => {
  const scratch = new Scratch().init()
  scratch.turn('What does this repository do?', () => {})
  scratch.turn('Add login', () => scratch.write({ 'login.txt': 'x\n' }))
  scratch.git('add', 'login.txt')
  scratch.git('commit', '-q', '-m', 'by hand')
  scratch.turn('Add a draft', () => scratch.write({ 'draft.txt': 'x\n' }))
  scratch.turn('Take the draft away', () => scratch.remove('draft.txt'))
  scratch.turn('Add a cart', () => scratch.write({ 'cart.txt': 'x\n' }))
  const { json } = commit(scratch)
  expect(json).toMatchObject({ message: 'feat: add a cart\n', turns: [5], files: [{ path: 'cart.txt' }] })
  expect(scratch.git('show', '-s', '--format=%B', 'HEAD').trim()).toBe('feat: add a cart')
  expect(scratch.ckpt('show', 'HEAD').commit.checkpoints).toHaveLength(1)
  scratch.turn('Add tax', () => scratch.write({ 'cart.txt': 'x\ntax\n' }))
  expect(commit(scratch).json).toMatchObject({ message: 'feat: add tax\n', turns: [6] })
  expect(scratch.ckpt('verify', '--ref', 'HEAD~2..HEAD', '--covered').problems).toEqual([])
})

test('a turn that a person committed together with an edit of theirs is no part of the next commit', () => {
  const scratch = new Scratch().init({ 'a.txt': lines() })
  const agents = lines([1, 'the first turn'])
  scratch.turn('Add one', () => scratch.write({ 'a.txt': agents }))
  const both = agents.replace('line 8\n', 'mine\n')
  scratch.write({ 'a.txt': both })
  scratch.git('commit', '-q', '-a', '-m', 'by hand')
  scratch.turn('Add two', () => scratch.write({ 'a.txt': both.replace('line 3\n', 'the second turn\n') }))
  expect(commit(scratch).json).toMatchObject({ message: 'feat: add two\n', turns: [2] })
  expect(scratch.ckpt('show', 'HEAD').commit.checkpoints).toHaveLength(1)
  expect(scratch.git('status', '--porcelain')).toBe('')
})

const S = ['--session', 's']

test.each([0, 1])(
  'a commit that another one makes while git is at work is none of ours: the hook ends with %i',
  (code) => {
    const scratch = new Scratch().init({ f: lines() })
    scratch.turn('one', () => scratch.write({ f: lines([15, 'agent']) }))
    scratch.write({ '.git/theirs': lines([2, 'theirs']) })
    fs.writeFileSync(
      scratch.at('.git/hooks/pre-commit'),
      `#!/bin/sh
[ -e .git/done ] && exit 0; touch .git/done; export GIT_INDEX_FILE=.git/other-index; git read-tree HEAD
git update-index --cacheinfo "100644,$(git hash-object -w .git/theirs),f"
git update-ref HEAD "$(git commit-tree -p HEAD -m theirs "$(git write-tree)")"; exit ${code}
`,
      { mode: 0o755 },
    )
    const refused = commit(scratch)
    expect([refused.code, refused.json.error.code]).toEqual([4, 'CONFLICT'])
    expect(refused.json.error.message).toMatch(
      /^HEAD moved meanwhile, and git refused the commit \(exit \d+\)\. Nothing was/,
    )
    expect(scratch.ckpt('verify', '--ref', 'HEAD').commits).toMatchObject([{ covered: false }])
    expect(scratch.run(['show', 'HEAD']).code).toBe(3)
    expect(commit(scratch)).toMatchObject({ code: 0, json: { files: [{ path: 'f' }], turns: [1] } })
    expect(scratch.git('show', 'HEAD:f')).toBe(lines([2, 'theirs'], [15, 'agent']))
  },
)

test('what was committed amid a turn, and is in HEAD no more, does not hold back what the turn left', () => {
  const scratch = new Scratch().init({ f: 'v0\n', gone: 'x\n' })
  const step = (work: () => void) => {
    work()
    scratch.ckpt('mark', 'step', ...S)
  }
  const committing = (text: string) => () => {
    scratch.write({ f: text })
    scratch.git('commit', '-qam', text)
  }
  scratch.ckpt('mark', 'prompt', ...S)
  step(committing('v1\n'))
  step(committing('v2\n'))
  step(() => {
    scratch.git('rm', '-q', 'gone')
    scratch.git('commit', '-qm', 'gone')
  })
  step(() => scratch.git('revert', '--no-edit', 'HEAD'))
  step(() => scratch.remove('gone'))
  step(() => scratch.write({ f: 'v1\n' }))
  scratch.ckpt('mark', 'stop', ...S)
  expect(commit(scratch)).toMatchObject({ code: 0, json: { files: [{ path: 'f' }, { path: 'gone' }], warnings: [] } })
  expect(scratch.git('status', '--porcelain')).toBe('')
  scratch.turn('at once', () => {
    committing('v3\n')()
    scratch.git('revert', '--no-edit', 'HEAD')
    scratch.write({ f: 'v3\n' })
  })
  expect(commit(scratch).json.files).toEqual([{ path: 'f' }])
  // What a person took back by a commit of their own stays so.
  scratch.git('revert', '--no-edit', 'HEAD')
  scratch.turn('more', () => scratch.write({ n: 'n\n' }))
  expect(commit(scratch).json.files).toEqual([{ path: 'n' }])
  expect(scratch.git('status', '--porcelain')).toBe('')
})

test("a file of the person's that a turn made no longer ignored is left out, and said; the rest is committed", () => {
  const scratch = new Scratch().init({ '.gitignore': '*.log\n', f: 'v0\n' })
  scratch.write({ 'x.log': 'mine\n' })
  scratch.turn('one', () => {
    scratch.remove('.gitignore')
    scratch.write({ f: 'v1\n' })
  })
  const { code, json } = commit(scratch)
  expect([code, json.files]).toEqual([0, [{ path: '.gitignore' }, { path: 'f' }]])
  expect(json.warnings).toEqual(['Not captured, and left out of the commit: x.log (not captured before it changed).'])
  scratch.turn('two', () => scratch.write({ f: 'v2\n' }))
  expect(commit(scratch)).toMatchObject({ code: 0, json: { files: [{ path: 'f' }], warnings: [] } })
  expect(scratch.git('status', '--porcelain')).toBe('?? x.log\n')
})

test('where a person has staged that a file goes, the way to choose by hand takes it up first', () => {
  const scratch = new Scratch().init({ a: 'one\n'.repeat(9) })
  scratch.git('rm', '-q', 'a')
  scratch.turn('again', () => scratch.write({ a: 'two\n' }))
  const { code, json } = commit(scratch)
  expect([code, json.error.hints[0]]).toEqual([4, 'git add -N -- :/a && git add -p && git commit   (choose by hand)'])
})

test('the way to choose by hand names a file whose name no terminal takes', () => {
  const scratch = new Scratch().init()
  const names = ['bad\xff[1].txt', 'line\nfeed', 'it\'s "é".txt'].map((name, i) =>
    Buffer.from(`${scratch.root}/${name}`, i === 2 ? 'utf8' : 'latin1'),
  )
  for (const name of names) fs.writeFileSync(name, 'mine\n')
  scratch.turn('one', () => {
    for (const name of names) fs.writeFileSync(name, 'two\n')
  })
  const [hint] = commit(scratch).json.error.hints
  execFileSync('sh', ['-c', hint.split(' && ')[0]], { cwd: scratch.root, env: scratch.vars })
  expect(scratch.git('status', '--porcelain').match(/^ A /gm)).toHaveLength(3)
})

test('a new file that was too large for a while is left out, and said; what was captured of it is not committed', () => {
  const scratch = new Scratch().init({ '.checkpointrc': '{"snapshot":{"maxFileSize":100}}', f: 'v0\n' })
  const large = 'x'.repeat(200)
  const out = (reason: string) => ({
    code: 0,
    json: { files: [{ path: 'f' }], warnings: [`Not captured, and left out of the commit: data (${reason}).`] },
  })
  scratch.turn('small', () => scratch.write({ data: '1', f: 'v1\n' }))
  scratch.turn('large', () => scratch.write({ data: large }))
  expect(commit(scratch)).toMatchObject(out('too-large'))
  scratch.turn('small', () => scratch.write({ data: '2', f: 'v2\n' }))
  expect(commit(scratch)).toMatchObject(out('not captured before it changed'))
  scratch.turn('small', () => scratch.write({ data: '3', f: 'v3\n' }))
  const { code, json } = commit(scratch)
  const { error } = json
  expect([code, error.paths]).toEqual([4, ['data']])
  expect(error.hints[0]).toBe('git add -N -- :/data && git add -p && git commit   (choose by hand)')
  // What is staged is what git offers a choice of, not what HEAD has.
  const hint = () => commit(scratch).json.error.hints[0]
  scratch.git('add', 'data')
  expect(hint()).toBe('git add -p && git commit   (choose by hand)')
  scratch.git('rm', '-q', '--cached', 'data')
  scratch.git('add', '-N', '--', ':/data')
  scratch.git('commit', '-qm', 'by hand', 'data')
  expect(commit(scratch)).toMatchObject({ code: 0, json: { files: [{ path: 'f' }] } })
  expect(scratch.git('status', '--porcelain')).toBe('')
})

test('a content that git cannot convert holds nothing up once a later turn mended it; at the end it is named', () => {
  const scratch = new Scratch().init({
    '.gitattributes':
      '*.f filter=f\n*.u16 text working-tree-encoding=UTF-16LE\n*.bom text working-tree-encoding=UTF-16\n',
  })
  scratch.git('config', 'filter.f.clean', 'grep OK')
  scratch.git('config', 'filter.f.required', 'true')
  scratch.turn('bad', () => scratch.write({ 'x.f': 'BAD\n', 'b.u16': 'x', 'c.bom': 'x\n' }))
  const { code, json } = commit(scratch)
  expect([code, json.error.code, json.error.paths]).toEqual([4, 'CONFLICT', ['b.u16', 'c.bom', 'x.f']])
  expect(json.error.message).toContain("x.f (git cannot convert it: x.f: clean filter 'f' failed)")
  scratch.turn('mended', () =>
    scratch.write({
      'x.f': 'OK\n',
      'b.u16': Buffer.from('x\n', 'utf16le'),
      'c.bom': Buffer.from('\ufeffx\n', 'utf16le'),
    }),
  )
  expect(commit(scratch)).toMatchObject({
    code: 0,
    json: { files: [{ path: 'b.u16' }, { path: 'c.bom' }, { path: 'x.f' }] },
  })
  expect(scratch.git('status', '--porcelain')).toBe('')
})

test('what a sparse checkout left out for a while is committed as it was changed afterwards', () => {
  const scratch = new Scratch().init({ 'q/q': 'q\n', f: 'v0\n' })
  const narrowed = () => scratch.git('sparse-checkout', 'set', 'other')
  const changed = (text: string) => () => {
    scratch.git('sparse-checkout', 'disable')
    scratch.write({ 'q/q': text })
  }
  scratch.turn('narrower', narrowed)
  scratch.turn('wider', changed('q2\n'))
  expect(commit(scratch)).toMatchObject({ code: 0, json: { files: [{ path: 'q/q' }] } })
  scratch.turn('narrower', () => {
    narrowed()
    scratch.write({ f: 'v1\n' })
  })
  expect(commit(scratch)).toMatchObject({ code: 0, json: { files: [{ path: 'f' }] } })
  scratch.turn('wider', changed('q3\n'))
  expect(commit(scratch)).toMatchObject({ code: 0, json: { files: [{ path: 'q/q' }] } })
  expect(scratch.git('status', '--porcelain')).toBe('')
})

test("show 5: staged, unstaged and untracked edits of the person's own are all still there, byte for byte", () => {
  const scratch = new Scratch().init({
    'agent.txt': 'one\n',
    'both.txt': lines(),
    'gone.txt': 'gone\n',
    'staged.txt': 'one\n',
    'both-staged.txt': lines(),
    'unstaged.txt': 'one\n',
  })
  scratch.write({
    'staged.txt': 'staged\n',
    'both-staged.txt': lines([2, 'staged']),
    'unstaged.txt': 'mine\n',
    'untracked.txt': 'untracked\n',
    'both.txt': lines([2, 'mine']),
  })
  scratch.git('add', 'staged.txt', 'both-staged.txt')
  scratch.turn('Add a login page.', () => {
    scratch.write({
      'agent.txt': 'two\n',
      'new dir/ü.txt': 'new\n',
      'both.txt': lines([2, 'mine'], [15, 'agent']),
      'both-staged.txt': lines([2, 'staged'], [15, 'agent']),
    })
    scratch.remove('gone.txt')
    fs.chmodSync(scratch.at('agent.txt'), 0o755)
  })
  const files = scratch.manifest()
  const { code, json } = commit(scratch)
  expect([code, json.turns, json.message]).toEqual([0, [1], 'feat: add a login page\n'])
  expect(scratch.manifest()).toEqual(files)
  expect(committed(scratch).split('\n')).toEqual([
    'M\tagent.txt',
    'M\tboth-staged.txt',
    'M\tboth.txt',
    'D\tgone.txt',
    'A\t"new dir/\\303\\274.txt"',
  ])
  expect(scratch.git('show', 'HEAD:both.txt')).toBe(lines([15, 'agent']))
  expect(scratch.git('show', ':both-staged.txt')).toBe(lines([2, 'staged'], [15, 'agent']))
  expect(scratch.git('ls-tree', 'HEAD', 'agent.txt')).toMatch(/^100755/)
  expect(scratch.git('status', '--porcelain').split('\n')).toEqual([
    'M  both-staged.txt',
    ' M both.txt',
    'M  staged.txt',
    ' M unstaged.txt',
    '?? untracked.txt',
    '',
  ])
  // Undo still works after it, and nothing is committed twice.
  expect(commit(scratch).json.commit).toBeNull()
  scratch.ckpt('undo')
  expect(scratch.read('both.txt')).toBe(lines([2, 'mine']))
  expect(scratch.exists('gone.txt')).toBe(true)
})

test('a file of which only the intent to add it was told is in the index as it was committed', () => {
  const scratch = new Scratch().init({ 'own.txt': 'one\n' })
  scratch.turn('Add two', () => scratch.write({ 'g.txt': 'agent\n', 'empty.txt': '' }))
  scratch.write({ 'mine.txt': 'mine\n' })
  scratch.git('add', '-N', 'g.txt', 'empty.txt', 'mine.txt')
  const { code, json } = commit(scratch)
  expect([code, json.warnings]).toEqual([0, []])
  expect(scratch.git('status', '--porcelain').trimEnd()).toBe(' A mine.txt')
  scratch.write({ 'own.txt': 'two\n' })
  execFileSync('git', ['commit', '-qam', 'own'], { cwd: scratch.root, env: { ...scratch.vars, ...me } })
  expect(scratch.git('ls-tree', '--name-only', 'HEAD').split('\n')).toEqual(
    expect.arrayContaining(['empty.txt', 'g.txt']),
  )
})

test('status is clean after the commit of a clean worktree, and the session goes on', () => {
  const scratch = new Scratch().init()
  scratch.turn('fix: the first thing', () => scratch.write({ 'a.txt': 'two\n' }))
  scratch.turn('Rename it', () => scratch.write({ 'b.txt': 'b\n' }))
  const first = commit(scratch).json
  expect(first.message).toBe('fix: the first thing\n\n- fix: the first thing\n- Rename it\n')
  expect(scratch.git('status', '--porcelain')).toBe('')
  scratch.git('update-index', '--refresh')
  scratch.turn('more', () => scratch.write({ 'a.txt': 'three\n' }))
  expect(commit(scratch, ['-m', 'mine\n\n# kept']).json.turns).toEqual([3])
  expect(scratch.git('log', '-1', '--format=%B').trim()).toBe('mine\n\n# kept')
  // A revert of it is the person's word: it is not committed again.
  scratch.git('revert', '--no-edit', 'HEAD')
  expect(commit(scratch).json.commit).toBeNull()
  // A commit that was taken back can be made again.
  scratch.git('reset', '-q', '--hard', `${first.commit}~1`)
  expect(commit(scratch).code).toBe(0)
  expect(scratch.git('show', 'HEAD:a.txt')).toBe('three\n')
})

test('what the person committed by hand is not committed again; what is undone is left out', () => {
  const scratch = new Scratch().init()
  scratch.turn('one', () => scratch.write({ 'a.txt': 'two\n' }))
  scratch.git('commit', '-qam', 'by hand')
  scratch.write({ 'a.txt': 'mine\n' })
  scratch.git('commit', '-qam', 'later')
  expect(commit(scratch).json.commit).toBeNull()
  scratch.turn('two', () => scratch.write({ 'b.txt': 'b\n' }))
  scratch.turn('three', () => scratch.write({ 'c.txt': 'c\n' }))
  scratch.ckpt('undo')
  expect(commit(scratch)).toMatchObject({ code: 5, json: { error: { code: 'BOUNDARY_PENDING' } } })
  scratch.ckpt('accept')
  expect(commit(scratch).code).toBe(0)
  expect(committed(scratch)).toBe('A\tb.txt')
})

test('changes that overlap with the person’s own are refused by name, and nothing moves'.replace('’', "'"), () => {
  const names = Array.from({ length: 12 }, (_, i) => `f${String(i).padStart(2, '0')}`)
  const all = (text: string) => Object.fromEntries(names.map((name) => [name, text]))
  const scratch = new Scratch().init({ ...all('one\n'), 'b.txt': 'b\n' })
  scratch.write(all('mine\n'))
  scratch.turn('work', () => scratch.write({ ...all('mine, and the agent\n'), 'b.txt': 'two\n' }))
  const state = scratch.gitState()
  const { code, json } = commit(scratch)
  expect([code, json.error.code, json.error.paths]).toEqual([4, 'CONFLICT', names])
  expect(json.error.message).toMatch(/^Refused, nothing was committed: f00 \(.*f09 \([^)]+\), and 2 more\.$/)
  expect(scratch.gitState()).toEqual(state)
})

test('a link in the place of a directory: what was in it is gone with the commit, and what the person put behind one is named', () => {
  const scratch = new Scratch().init({ 'd/a': 'a\n', 'e/b': 'b\n' })
  scratch.turn('one', () => scratch.write({ 'd/n': 'new\n' }))
  scratch.turn('two', () => {
    scratch.remove('d')
    fs.symlinkSync('e', scratch.at('d'))
  })
  const { code, json } = commit(scratch)
  expect([code, json.warnings, committed(scratch)]).toEqual([0, [], 'A\td\nD\td/a'])
  scratch.turn('three', () => scratch.write({ 'g/1': '1\n', k: 'k\n' }))
  fs.renameSync(scratch.at('g'), scratch.at('h'))
  fs.symlinkSync('h', scratch.at('g'))
  expect(commit(scratch).json.warnings).toEqual([
    'Left out of the commit, for a link or a file is where a directory was: g/1.',
  ])
  expect(committed(scratch)).toBe('A\tk')
})

describe('a file and a directory of one name: what the session did not change is not dropped, and that is refused', () => {
  test.each<[string, (at: Scratch) => void, string]>([
    ['a file of HEAD', (at) => at.remove('was'), 'was/n (a file is in the place of its directory)'],
    [
      'a submodule',
      (at) => {
        at.remove('was')
        at.git('rm', '-q', '--cached', 'was')
        at.git('update-index', '--add', '--cacheinfo', `160000,${at.git('rev-parse', 'HEAD').trim()},was`)
        execFileSync('git', ['commit', '-qm', 'sub'], { cwd: at.root, env: { ...at.vars, ...me } })
      },
      'was/n (a submodule is in the place of its directory)',
    ],
  ])('%s', (_, before, said) => {
    const scratch = new Scratch().init({ was: 'one\n' })
    before(scratch)
    scratch.turn('work', () => scratch.write({ 'was/n': 'new\n' }))
    const state = scratch.gitState()
    const { code, json } = commit(scratch)
    expect([code, json.error.message]).toEqual([4, `Refused, nothing was committed: ${said}.`])
    expect(scratch.gitState()).toEqual(state)
  })

  test('files of HEAD below: where they stay on disk, and that is nothing to choose, the file is left out', () => {
    const scratch = new Scratch().init({ 'd/a': 'a\n' })
    scratch.turn('work', () => {
      scratch.remove('d')
      scratch.write({ d: 'a file\n' })
    })
    scratch.remove('d')
    scratch.write({ 'd/b': 'mine\n' })
    scratch.git('add', 'd/b')
    execFileSync('git', ['commit', '-qm', 'mine'], { cwd: scratch.root, env: { ...scratch.vars, ...me } })
    fs.renameSync(scratch.at('d'), scratch.at('aside'))
    scratch.write({ d: 'a file\n' })
    expect(commit(scratch)).toMatchObject({
      code: 4,
      json: { error: { message: 'Refused, nothing was committed: d (a directory with other files is in its place).' } },
    })
    scratch.remove('d')
    fs.renameSync(scratch.at('aside'), scratch.at('d'))
    const { code, json } = commit(scratch)
    expect([code, json.files, json.warnings]).toEqual([
      0,
      [{ path: 'd/a' }],
      [expect.stringMatching(/left out of this commit and looked at again by the next: d\.$/)],
    ])
  })
})

test("the person's hooks run, see only the commit, and can refuse it; their conversions hold", () => {
  const scratch = new Scratch().init({ 'a.txt': 'one\n', '.gitattributes': '*.txt text eol=crlf\n' })
  const seen = path.join(scratch.base, 'seen')
  const hook = scratch.at('.git/hooks/pre-commit')
  fs.writeFileSync(hook, `#!/bin/sh\ngit diff --cached --name-only >'${seen}'\nexit \${REFUSE:-0}\n`, { mode: 0o755 })
  scratch.write({ 'mine.txt': 'mine\r\n' })
  scratch.git('add', 'mine.txt')
  scratch.turn('work', () => scratch.write({ 'a.txt': 'two\r\n' }))
  const state = scratch.git('ls-files', '-s')
  const refused = commit(scratch, [], { REFUSE: '1' })
  expect([refused.code, refused.json.error.message.includes('Nothing was committed')]).toEqual([1, true])
  expect(scratch.git('ls-files', '-s')).toBe(state)
  expect(commit(scratch).code).toBe(0)
  expect(fs.readFileSync(seen, 'utf8')).toBe('a.txt\n')
  expect(scratch.git('show', 'HEAD:a.txt')).toBe('two\n')
  expect(scratch.git('status', '--porcelain')).toBe('A  mine.txt\n')
})

test('an unborn HEAD, a plain directory, a running turn, and git in the middle of something', () => {
  const scratch = new Scratch().init({})
  scratch.turn('work', () => scratch.write({ 'a.txt': 'one\n' }))
  expect(commit(scratch).code).toBe(0)
  expect(scratch.git('log', '--format=%s').trim()).toBe('chore: work')
  scratch.ckpt('mark', 'prompt', '--session', 's')
  expect(commit(scratch)).toMatchObject({ code: 8, json: { error: { code: 'TURN_RUNNING' } } })
  scratch.ckpt('mark', 'stop', '--session', 's')
  scratch.git('checkout', '-q', '-b', 'side')
  scratch.write({ 'a.txt': 'side\n' })
  scratch.git('commit', '-qam', 'side')
  scratch.git('checkout', '-q', 'main')
  scratch.write({ 'a.txt': 'main\n' })
  scratch.git('commit', '-qam', 'main')
  tryGit(scratch, ['merge', 'side'])
  expect(commit(scratch)).toMatchObject({ code: 8, json: { error: { code: 'GIT_BUSY' } } })
  const plain = new Scratch('plain')
  plain.ckpt('init')
  expect(commit(plain).code).toBe(9)
})

test('while another git holds the index nothing is committed; where it comes in between, the commit stands and that is said', () => {
  const scratch = new Scratch().init()
  const head = () => scratch.git('rev-parse', 'HEAD')
  scratch.turn('one', () => scratch.write({ 'a.txt': 'agent\n', 'new.txt': 'new\n' }))
  const before = head()
  scratch.write({ '.git/index.lock': '' })
  const refused = commit(scratch)
  expect([refused.code, refused.json.error.code]).toEqual([8, 'GIT_BUSY'])
  expect(refused.json.error.message).toMatch(/index\.lock\. Nothing was committed\.$/)
  expect(head()).toBe(before)
  scratch.remove('.git/index.lock')
  expect(scratch.git('status', '--porcelain')).toBe(' M a.txt\n?? new.txt\n')
  fs.writeFileSync(scratch.at('.git/hooks/post-commit'), '#!/bin/sh\n: >.git/index.lock\n', { mode: 0o755 })
  const { code, json } = commit(scratch)
  expect([code, json.commit]).toEqual([0, head().trim()])
  const behind =
    /^The commit .* was made, but your index .*index\.lock\. The next command of ckpt mends it: ckpt status$/
  expect(json.warnings.join()).toMatch(behind)
  expect(committed(scratch)).toBe('M\ta.txt\nA\tnew.txt')
  // What is recorded meanwhile neither waits for that lock nor fails.
  expect(scratch.ckpt('mark', 'prompt', '--session', 's', '--text', 'two').warnings.join()).toMatch(behind)
  expect(scratch.ckpt('mark', 'stop', '--session', 's').turn).toBe(2)
  scratch.remove('.git/index.lock')
  expect(scratch.ckpt('snapshot').warnings.join()).toBe(
    `A commit that was cut short is finished: your index follows ${json.commit.slice(0, 10)}.`,
  )
  expect(scratch.git('status', '--porcelain')).toBe('')
  expect(commit(scratch).json.commit).toBe(null)
})

test('where executable bits mean nothing (core.fileMode), those that git knows are committed', () => {
  const scratch = new Scratch().init({ 'plain.txt': 'one\n', 'run.sh': '#!/bin/sh\n' })
  scratch.git('update-index', '--chmod=+x', 'run.sh')
  scratch.git('-c', 'user.name=n', '-c', 'user.email=n@example.com', 'commit', '-qm', 'a program')
  scratch.git('config', 'core.fileMode', 'false')
  scratch.turn('work', () => {
    scratch.write({ 'new.txt': 'new\n', 'run.sh': '#!/bin/sh\necho\n', 'plain.txt': 'two\n' })
    for (const name of ['new.txt', 'plain.txt']) fs.chmodSync(scratch.at(name), 0o777)
  })
  expect(commit(scratch, ['-m', 'work']).code).toBe(0)
  expect(
    scratch
      .git('ls-tree', 'HEAD')
      .replaceAll(/ blob \S+\t/g, ' ')
      .trim()
      .split('\n')
      .sort(),
  ).toEqual(['100644 new.txt', '100644 plain.txt', '100755 run.sh'])
})

test('line ends that git leaves alone, for CRLF is committed, are committed as git add would', () => {
  const crlf = (...changed: [number, string][]) => lines(...changed).replaceAll('\n', '\r\n')
  for (const auto of ['attributes', 'core.autocrlf', 'attributes of the turn']) {
    const files = { 'f.txt': crlf(), 'lf.txt': lines(), 'm.txt': `${crlf()}${lines()}` }
    const scratch = new Scratch().init(files)
    const attributes = () => scratch.write({ '.gitattributes': '* text=auto\n' })
    if (auto === 'core.autocrlf') scratch.git('config', 'core.autocrlf', 'true')
    if (auto === 'attributes') {
      attributes()
      scratch.git('add', '.gitattributes')
      scratch.git('commit', '-qm', 'normalize what comes')
    }
    scratch.turn('work', () => {
      if (auto === 'attributes of the turn') attributes()
      scratch.write({
        'f.txt': crlf([3, 'three']),
        'lf.txt': crlf([3, 'three']), // was converted, and is
        'm.txt': `${crlf()}${lines([3, 'three'])}`,
        'new.txt': crlf(),
      })
    })
    scratch.git('add', '-A')
    const asAdded = scratch.git('write-tree')
    scratch.git('reset', '-q')
    expect([auto, commit(scratch).json]).toMatchObject([auto, { ok: true, warnings: [] }])
    expect([auto, scratch.git('rev-parse', 'HEAD^{tree}')]).toEqual([auto, asAdded])
    expect([auto, scratch.git('show', '--format=', '--numstat', 'HEAD', 'f.txt')]).toEqual([auto, '1\t1\tf.txt\n'])
    expect(scratch.git('status', '--porcelain')).toBe('')
  }
})

test('what was committed before an attribute converted it holds up no commit', () => {
  const scratch = new Scratch().init({ 'f.txt': 'a\r\nb\r\n', 'mine.txt': 'a\r\nb\r\n' })
  fs.chmodSync(scratch.at('mine.txt'), 0o755)
  scratch.git('commit', '-qam', 'a program')
  scratch.turn('work', () => {
    scratch.write({ '.gitattributes': '*.txt text\n', 'f.txt': 'a\r\nB\r\n', 'mine.txt': 'a\r\nB\r\n' })
  })
  scratch.git('update-index', '--chmod=-x', 'mine.txt')
  scratch.git('commit', '-qm', 'no program')
  expect(commit(scratch).code).toBe(0)
  expect(scratch.git('show', 'HEAD:f.txt', 'HEAD:mine.txt')).toBe('a\nB\na\nB\n')
  expect(scratch.git('ls-tree', 'HEAD', 'mine.txt')).toMatch(/^100644/)
})

test('where links are files (core.symlinks), those that git knows are committed', () => {
  const scratch = new Scratch().init({ 'a.txt': 'one\n' })
  fs.symlinkSync('a.txt', scratch.at('link'))
  scratch.git('add', 'link')
  scratch.git('commit', '-qm', 'a link')
  scratch.git('config', 'core.symlinks', 'false')
  scratch.remove('link')
  scratch.git('checkout', '-q', 'link')
  scratch.turn('work', () => scratch.write({ link: 'new.txt', 'new.txt': 'new\n' }))
  expect(commit(scratch).code).toBe(0)
  expect(scratch.git('ls-tree', 'HEAD', 'link', 'new.txt').replaceAll(/ blob \S+\t/g, ' ')).toBe(
    '120000 link\n100644 new.txt\n',
  )
  expect(scratch.git('status', '--porcelain')).toBe('')
})

test('what a turn did that no checkpoint holds is no part of the commit, and that is said until it is in one', () => {
  const library = new Scratch('library').init({ 'lib.c': 'int x;\n' })
  const scratch = new Scratch().init({ 'a.txt': 'one\n', '.gitignore': '*.log\n' })
  const large = (byte: string) => Buffer.alloc(11 << 20, byte)
  scratch.turn('work', () => {
    scratch.write({ 'a.txt': 'two\n', 'assets/large.bin': large('1'), 'huge.log': large('1') })
    execFileSync('mkfifo', [scratch.at('fifo')])
    scratch.git('-c', 'protocol.file.allow=always', 'submodule', 'add', '-q', library.root, 'lib')
  })
  const said = 'Not captured, and left out of the commit: assets/large.bin (too-large), lib/ (nested-repo).'
  const { warnings } = commit(scratch).json
  expect(warnings).toEqual([said])
  expect(committed(scratch)).toBe('A\t.gitmodules\nM\ta.txt')
  scratch.git('add', 'assets')
  scratch.git('commit', '-qm', 'by hand')
  expect(scratch.git('status', '--porcelain')).toBe('')
  scratch.turn('more', () => {
    scratch.write({ 'a.txt': 'three\n' })
    scratch.git('rm', '-qf', 'lib')
  })
  expect(commit(scratch).json.warnings).toEqual(['Not captured, and left out of the commit: lib/ (nested-repo).'])
  scratch.turn('by itself', () => {
    scratch.write({ 'a.txt': 'four\n', 'late.bin': large('1') })
    scratch.git('add', '-A')
    scratch.git('commit', '-qm', 'by the agent')
  })
  expect(commit(scratch).json).toMatchObject({ commit: null, warnings: [] })
})

test('a sparse checkout: what is not here is not deleted to the hooks, and no remote is asked for it', () => {
  const origin = new Scratch('origin').init({ 'in/a.txt': 'one\n', 'out/b.txt': 'one\n' })
  origin.git('config', 'uploadpack.allowFilter', 'true')
  const scratch = new Scratch('clone')
  scratch.git('clone', '-q', '--no-checkout', '--filter=blob:none', `file://${origin.root}`, '.')
  scratch.git('sparse-checkout', 'set', '--cone', '--sparse-index', 'in')
  scratch.git('checkout', '-q')
  scratch.git('remote', 'set-url', 'origin', 'file:///nonexistent')
  scratch.git('config', 'user.name', 'n')
  scratch.git('config', 'user.email', 'n@example.com')
  const saw = `${scratch.base}/saw`
  fs.writeFileSync(scratch.at('.git/hooks/pre-commit'), `#!/bin/sh\ngit status --porcelain > '${saw}'\n`, {
    mode: 0o755,
  })
  scratch.turn('work', () => scratch.write({ 'in/a.txt': 'two\n', 'new.txt': 'new\n' }))
  const { code, stderr } = commit(scratch)
  expect([code, stderr]).toEqual([0, ''])
  expect(fs.readFileSync(saw, 'utf8')).toBe('M  in/a.txt\nA  new.txt\n')
  expect(committed(scratch)).toBe('M\tin/a.txt\nA\tnew.txt')
  expect(scratch.git('status', '--porcelain')).toBe('')
})

test('marks that a person gave entries of the index stay on what is committed', () => {
  const names = ['assumed', 'both', 'gone', 'plain', 'skipped', 'tab\there']
  const scratch = new Scratch().init(Object.fromEntries(names.map((name) => [name, 'one\n'])))
  scratch.git('update-index', '--assume-unchanged', 'assumed', 'both', 'gone', 'tab\there')
  scratch.git('update-index', '--skip-worktree', 'skipped', 'both')
  scratch.turn('work', () => {
    scratch.write(Object.fromEntries(names.map((name) => [name, 'two\n'])))
    scratch.remove('gone')
  })
  expect(commit(scratch).code).toBe(0)
  expect(scratch.git('ls-files', '-v', '-z').split('\0')).toEqual([
    'h assumed',
    's both',
    'H plain',
    'S skipped',
    'h tab\there',
    '',
  ])
  expect(scratch.git('diff', '--cached', '--name-only')).toBe('')
  expect(scratch.git('show', 'HEAD:both')).toBe('two\n')
})

test.each(['--skip-worktree', '--assume-unchanged', '--no-skip-worktree'])(
  'a file with %s that a person had edited before is none that was committed by hand',
  (mark) => {
    const scratch = new Scratch().init({ cfg: 'one\n', 'a.txt': 'one\n' })
    scratch.git('update-index', mark, 'cfg')
    scratch.write({ cfg: 'one\nmine\n' })
    scratch.turn('work', () => scratch.write({ cfg: 'one\nmine\nagent\n', 'a.txt': 'two\n' }))
    const head = scratch.git('rev-parse', 'HEAD')
    const { code, json } = commit(scratch)
    expect([code, json.error.paths, scratch.git('rev-parse', 'HEAD')]).toEqual([4, ['cfg'], head])
  },
)

test('two sessions: each commits its own', () => {
  const scratch = new Scratch().init({ 'a.txt': lines() })
  scratch.turn('one', () => scratch.write({ 'a.txt': lines([3, 'x']), 'x.txt': 'x\n' }), 'x')
  scratch.turn('two', () => scratch.write({ 'a.txt': lines([3, 'x'], [15, 'y']), 'y.txt': 'y\n' }), 'y')
  expect(commit(scratch, ['--session', 'y']).code).toBe(0)
  expect(committed(scratch).split('\n')).toEqual(['M\ta.txt', 'A\ty.txt'])
  expect(scratch.git('show', 'HEAD:a.txt')).toBe(lines([15, 'y']))
  expect(commit(scratch, ['--session', 'x']).code).toBe(0)
  expect(scratch.git('show', 'HEAD:a.txt')).toBe(lines([3, 'x'], [15, 'y']))
  expect(scratch.git('status', '--porcelain')).toBe('')
})

test('what two sessions claim holds up no commit once a person has committed it', () => {
  const scratch = new Scratch().init()
  scratch.ckpt('mark', 'prompt', '--session', 'x')
  scratch.turn('one', () => scratch.write({ 'both.txt': 'first\n' }), 'y')
  scratch.write({ 'x.txt': 'x\n' })
  scratch.ckpt('mark', 'stop', '--session', 'x')
  scratch.turn('two', () => scratch.write({ 'both.txt': 'first\nsecond\n' }), 'x')
  const refused = commit(scratch, ['--session', 'x'])
  expect([refused.code, refused.json.error.paths]).toEqual([4, ['both.txt']])
  scratch.git('add', '-A')
  scratch.git('commit', '-qm', 'by hand')
  expect(commit(scratch, ['--session', 'x']).json).toMatchObject({ ok: true, commit: null })
  scratch.turn('three', () => scratch.write({ 'new.txt': 'n\n', 'both.txt': 'second\n' }), 'x')
  expect(commit(scratch, ['--session', 'x']).code).toBe(0)
  expect(committed(scratch).split('\n')).toEqual(['M\tboth.txt', 'A\tnew.txt'])
})

test('what a person has changed and committed by hand holds up no commit; what is not committed yet does', () => {
  const scratch = new Scratch().init({ 'a.txt': 'one\n', 'gone.txt': 'one\n' })
  scratch.turn('one', () => scratch.write({ 'a.txt': 'two\n', 'gone.txt': 'two\n', 'new.txt': 'two\n' }))
  scratch.write({ 'a.txt': 'mine\n', 'new.txt': 'mine\n' })
  scratch.remove('gone.txt')
  scratch.atPresent().git('add', '-A')
  scratch.git('commit', '-qm', 'by hand')
  scratch.turn('two', () => scratch.write({ 'b.txt': 'b\n' }))
  scratch.write({ 'a.txt': 'mine, again\n' })
  const refused = commit(scratch)
  expect([refused.code, refused.json.error.paths]).toEqual([4, ['a.txt']])
  scratch.git('commit', '-qam', 'again')
  expect(commit(scratch).json.warnings).toEqual(['Left as you have committed it: a.txt, gone.txt, new.txt.'])
  expect(committed(scratch)).toBe('A\tb.txt')
  expect(scratch.git('show', 'HEAD:a.txt', 'HEAD:new.txt')).toBe('mine, again\nmine\n')
  expect(scratch.git('status', '--porcelain')).toBe('')
})

test('a commit of ours that a person amended on the same lines holds up none of the turns that follow', () => {
  const scratch = new Scratch().init({ 'f.txt': 'a\nb\nc\n' })
  scratch.turn('one', () => scratch.write({ 'f.txt': 'a\nB\nc\n' }))
  const first = commit(scratch).json.commit
  scratch.write({ 'f.txt': 'a\nB, mended\nc\n' })
  scratch.git('commit', '-qa', '--amend', '--no-edit')
  scratch.turn('two', () => scratch.write({ 'g.txt': 'g\n' }))
  const { turns, warnings } = commit(scratch).json
  expect([turns, warnings]).toEqual([
    [2],
    [
      `Commit ${first.slice(0, 10)} is no part of HEAD any more: what turns up to 1 did is taken to be there as you have changed it.`,
    ],
  ])
  expect(scratch.git('show', 'HEAD:f.txt', 'HEAD:g.txt')).toBe('a\nB, mended\nc\ng\n')
  scratch.turn('three', () => scratch.write({ 'h.txt': 'h\n' }))
  expect(commit(scratch).json.warnings).toEqual([])
})

test('what was committed, undone and kept so is still in HEAD, and that is said until it is not', () => {
  const scratch = new Scratch().init({ 'a.txt': 'one\n' })
  scratch.turn('one', () => scratch.write({ 'a.txt': 'two\n' }))
  scratch.turn('two', () => scratch.write({ 'bad.txt': 'bad\n' }))
  const made = commit(scratch).json.commit
  scratch.ckpt('undo')
  scratch.ckpt('accept')
  const said = [
    `Turn 2 was committed and undone since, and HEAD still has what was done: commit what is on disk by hand (git add -p && git commit), or take the commit back (git revert ${made.slice(0, 10)}).`,
  ]
  expect(commit(scratch).json).toMatchObject({ commit: null, warnings: said })
  scratch.turn('three', () => scratch.write({ 'good.txt': 'good\n' }))
  expect(commit(scratch).json).toMatchObject({ turns: [3], warnings: said })
  scratch.git('commit', '-qam', 'without it')
  scratch.turn('four', () => scratch.write({ 'more.txt': 'more\n' }))
  expect(commit(scratch).json).toMatchObject({ turns: [4], warnings: [] })
  scratch.turn('five', () => scratch.write({ 'a.txt': 'three\n' }))
  commit(scratch)
  scratch.ckpt('undo')
  scratch.ckpt('accept')
  expect(commit(scratch).json.warnings.join()).toMatch(/ by hand \(git add -p && git commit\)\.$/) // git refuses to revert over it
})

test('of several commits that one is named which has the turn that was undone, and each where turns of several were', () => {
  const scratch = new Scratch().init({ 'a.txt': 'one\n' })
  const commits = ['one', 'two', 'three'].map((name) => {
    scratch.turn(name, () => scratch.write({ [name]: name }))
    return commit(scratch).json.commit.slice(0, 10)
  })
  const warnings = () => commit(scratch).json.warnings.join()
  scratch.ckpt('undo')
  scratch.ckpt('accept')
  scratch.turn('four', () => scratch.write({ four: 'four' }))
  expect(warnings()).toContain(`the commit back (git revert ${commits[2]}).`)
  scratch.ckpt('undo', '--to', '2')
  scratch.ckpt('accept')
  expect(warnings()).toMatch(/^Turns .* were .* the commits back \(git revert .*\)\.$/)
  const named = warnings().match(/[0-9a-f]{10}/g)
  expect(named).toEqual([scratch.git('rev-parse', 'HEAD').slice(0, 10), commits[2], commits[1]])
  scratch.git('revert', '--no-edit', ...named!)
  expect(warnings()).toBe('')
})

test('a commit that is no part of HEAD any more is not named as one to revert', () => {
  const scratch = new Scratch().init({ 'a.txt': 'one\n' })
  scratch.turn('one', () => scratch.write({ 'b.txt': 'b\n' }))
  commit(scratch)
  scratch.git('reset', '-q', '--soft', 'HEAD~1')
  const again = commit(scratch).json.commit
  scratch.ckpt('undo')
  scratch.ckpt('accept')
  const warnings = () => commit(scratch).json.warnings.join()
  expect(warnings()).toContain(`or take the commit back (git revert ${again.slice(0, 10)}).`)
  fs.rmSync(scratch.at('.git/ckpt/worktrees/@main/made'))
  expect(warnings()).toMatch(/commit what is on disk by hand \(git add -p && git commit\)\.$/)
})

test('a commit that was amended, and one by hand: what was made of a path since is not committed over it', () => {
  const scratch = new Scratch().init({ 'a.txt': '0\n' })
  scratch.turn('one', () => scratch.write({ 'f.txt': '1\n', 'a.txt': '1\n' }))
  scratch.turn('two', () => scratch.write({ 'f.txt': '2\n', 'a.txt': '2\n' }))
  expect(commit(scratch).code).toBe(0)
  scratch.turn('three', () => {
    scratch.remove('f.txt')
    scratch.write({ 'a.txt': '0\n' })
  })
  expect(commit(scratch).code).toBe(0)
  scratch.git('commit', '-q', '--amend', '-m', 'reworded')
  scratch.turn('four', () => scratch.write({ 'b.txt': 'b\n' }))
  expect(commit(scratch).code).toBe(0)
  expect(committed(scratch)).toBe('A\tb.txt')
  expect(scratch.git('status', '--porcelain')).toBe('')

  scratch.turn('five', () => scratch.write({ 'a.txt': '5\n' }))
  scratch.git('commit', '-qam', 'by hand')
  scratch.turn('six', () => scratch.write({ 'a.txt': '0\n' }))
  scratch.turn('seven', () => scratch.write({ 'a.txt': '5\n' }))
  expect(commit(scratch).json.commit).toBe(null)
  scratch.git('commit', '-q', '--allow-empty', '-m', 'nothing')
  scratch.turn('eight', () => scratch.write({ 'a.txt': '0\n' })) // what a commit from before this turn had, too
  expect(commit(scratch).code).toBe(0)
  expect(scratch.git('show', 'HEAD:a.txt')).toBe('0\n')
})

test('a turn that a switch brought back is committed, whatever its number', () => {
  const scratch = new Scratch().init({ 'a.txt': 'a\n' })
  for (const name of ['one', 'two']) scratch.turn(name, () => scratch.write({ [name]: `${name}\n` }))
  scratch.ckpt('undo')
  scratch.turn('three', () => scratch.write({ three: 'three\n' }))
  expect(commit(scratch).json.turns).toEqual([1, 3])
  scratch.ckpt('switch', '2')
  const { json } = commit(scratch)
  expect([json.turns, json.files]).toEqual([[2], [{ path: 'two' }]])
  expect(json.warnings.join()).toContain('Turn 3 was committed and undone since')
})

test('what is known of earlier commits may be damaged: it is then told from HEAD', () => {
  const scratch = new Scratch().init({ 'a.txt': 'a\n' })
  scratch.turn('one', () => scratch.write({ 'a.txt': 'b\n' }))
  commit(scratch)
  const head = scratch.git('rev-parse', 'HEAD').trim()
  const [odd, list] = ['x', head].map((commit) => JSON.stringify({ s: { commit, turns: [1] } }))
  for (const [i, damage] of ['', '{', 'null', '[1]', odd!, list!, '{"s":null}'].entries()) {
    fs.writeFileSync(scratch.at('.git/ckpt/worktrees/@main/commits.json'), damage)
    scratch.turn('more', () => scratch.write({ 'a.txt': `${i}\n` }))
    expect(commit(scratch).json.files).toEqual([{ path: 'a.txt' }])
    expect(scratch.git('show', 'HEAD:a.txt')).toBe(`${i}\n`)
  }
})
