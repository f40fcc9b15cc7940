/** `ckpt commit` where hooks refuse what is to be committed, and want it otherwise: as fixers of pre-commit do. */
import { execFileSync } from 'node:child_process'
import fs from 'node:fs'
import { expect, test } from 'vitest'
import { commit, me } from '../support/commits.ts'
import { tryGit } from '../support/gate.ts'
import { Scratch } from '../support/scratch.ts'

/** Takes blanks at the ends of lines away, on disk, and fails where there were any in what is staged. */
const FIXER = `#!/bin/sh
for file in $(git diff --cached --name-only --diff-filter=AM); do
  git show ":$file" | grep -q ' $' || continue
  sed 's/ *$//' "$file" >../fixed
  cat ../fixed >"$file"
  bad=1
done
[ -z "$bad" ]
`
const CHECK = `#!/bin/sh
for file in $(git diff --cached --name-only --diff-filter=AM); do
  ! git show ":$file" | grep -q FAIL || exit 1
done
`

function withHook(hook: string, files: Record<string, string> = { 'a.txt': 'a\n', 'u.txt': 'u\n' }): Scratch {
  const scratch = new Scratch().init(files)
  fs.writeFileSync(scratch.at('.git/hooks/pre-commit'), hook, { mode: 0o755 })
  return scratch
}

test('what hooks changed is named, and committed so once it is staged', () => {
  const scratch = withHook(FIXER)
  scratch.turn('one', () => scratch.write({ 'a.txt': 'two \n', 'b.txt': 'new\n' }))
  const { code, json } = commit(scratch)
  expect([code, json.error.message, json.error.hints[0]]).toEqual([
    1,
    expect.stringMatching(/Nothing was committed; your index is as it was; hooks changed a\.txt\./),
    'git add -- :/a.txt && ckpt commit   (with what hooks made of it)',
  ])
  expect(scratch.git('diff', '--cached', '--name-only')).toBe('')
  scratch.git('add', '--', ':/a.txt')
  const again = commit(scratch)
  expect([again.code, again.json.warnings]).toEqual([0, ['Committed as staged since git refused it: a.txt.']])
  expect(scratch.git('show', 'HEAD:a.txt', 'HEAD:b.txt')).toBe('two\nnew\n')
  expect(scratch.git('status', '--porcelain')).toBe('')
  // What comes next is committed on top of it, and what is staged then is a person's own again.
  scratch.turn('two', () => scratch.write({ 'a.txt': 'three\n' }))
  scratch.git('add', 'a.txt')
  expect(commit(scratch)).toMatchObject({ code: 0, json: { files: [{ path: 'a.txt' }], warnings: [] } })
  expect(scratch.ckpt('verify', '--ref', 'HEAD').problems).toEqual([])
})

test('what a person mends and stages, too; what they leave unstaged, or edited before, stays out of the commit', () => {
  const scratch = withHook(CHECK)
  scratch.write({ 'u.txt': 'mine\n' })
  scratch.git('add', 'u.txt')
  scratch.turn('one', () => scratch.write({ 'a.txt': 'FAIL\n', 'b.txt': 'new\n' }))
  expect(commit(scratch)).toMatchObject({
    code: 1,
    json: { error: { message: expect.stringContaining('your index and your files are as they were') } },
  })
  scratch.write({ 'a.txt': 'fine\n' })
  expect(commit(scratch).code).toBe(1) // nobody has said that this is to be committed
  scratch.git('add', 'a.txt')
  scratch.write({ 'b.txt': 'edited\n' })
  expect(commit(scratch)).toMatchObject({ code: 0, json: { files: [{ path: 'a.txt' }, { path: 'b.txt' }] } })
  expect(scratch.git('show', 'HEAD:a.txt', 'HEAD:b.txt', 'HEAD:u.txt')).toBe('fine\nnew\nu\n')
  expect(scratch.git('status', '--porcelain')).toBe(' M b.txt\nM  u.txt\n')
})

test('what was staged before git refused it is not taken for the choice; nor what a later turn left otherwise', () => {
  const scratch = withHook(CHECK)
  scratch.turn('one', () => scratch.write({ 'a.txt': 'FAIL\n' }))
  scratch.write({ 'a.txt': 'staged before\n' })
  scratch.git('add', 'a.txt')
  scratch.write({ 'a.txt': 'FAIL\n' })
  expect(commit(scratch).code).toBe(1)
  expect(commit(scratch).code).toBe(1)
  scratch.write({ 'a.txt': 'staged since\n' })
  scratch.git('add', 'a.txt')
  scratch.write({ 'a.txt': 'FAIL\n' })
  scratch.turn('two', () => scratch.write({ 'a.txt': 'by the agent\n' }))
  expect(commit(scratch)).toMatchObject({ code: 0, json: { files: [{ path: 'a.txt' }], warnings: expect.any(Array) } })
  expect(scratch.git('show', 'HEAD:a.txt')).toBe('by the agent\n')
})

test('what is staged is the choice also after another refusal, and a commit by hand of something else', () => {
  const scratch = withHook(CHECK)
  scratch.turn('one', () => scratch.write({ 'a.txt': 'FAIL\n', 'b.txt': 'FAIL\n' }))
  expect(commit(scratch).code).toBe(1)
  scratch.write({ 'u.txt': 'mine\n', 'a.txt': 'fine\n', 'b.txt': 'still FAIL\n' })
  scratch.git('add', 'a.txt', 'b.txt')
  expect(commit(scratch).code).toBe(1)
  scratch.git('commit', '-qm', 'by hand', '--no-verify', 'u.txt')
  scratch.write({ 'b.txt': 'fine\n' })
  scratch.git('add', 'b.txt')
  expect(commit(scratch)).toMatchObject({ code: 0, json: { files: [{ path: 'a.txt' }, { path: 'b.txt' }] } })
  expect(scratch.git('show', 'HEAD:a.txt', 'HEAD:b.txt', 'HEAD:u.txt')).toBe('fine\nfine\nmine\n')
  expect(scratch.git('status', '--porcelain')).toBe('')
})

test('what is taken out of the index again is committed as the turn left it', () => {
  const scratch = withHook(CHECK)
  scratch.turn('one', () => scratch.write({ 'a.txt': 'FAIL\n' }))
  expect(commit(scratch).code).toBe(1)
  scratch.write({ 'a.txt': 'fine\n' })
  scratch.git('add', 'a.txt')
  scratch.git('restore', '--staged', 'a.txt')
  fs.rmSync(scratch.at('.git/hooks/pre-commit'))
  expect(commit(scratch)).toMatchObject({ code: 0, json: { warnings: [] } })
  expect(scratch.git('show', 'HEAD:a.txt')).toBe('FAIL\n')
})

test('what hooks made as HEAD has it is left out; the rest is committed, and so is what comes next', () => {
  const scratch = withHook(FIXER)
  scratch.turn('one', () => scratch.write({ 'a.txt': 'a \n', 'b.txt': 'new\n' }))
  const { code, json } = commit(scratch)
  expect([code, json.error.message, json.error.hints[0]]).toEqual([
    1,
    expect.stringContaining('hooks changed a.txt. The next ckpt commit leaves out what is on disk as in HEAD: a.txt.'),
    expect.stringMatching(/^ckpt commit /),
  ])
  expect(commit(scratch)).toMatchObject({
    code: 0,
    json: {
      files: [{ path: 'b.txt' }],
      warnings: ['Left out, also of later commits, for it is on disk as in HEAD since git refused it: a.txt.'],
    },
  })
  expect(scratch.git('status', '--porcelain')).toBe('')
  scratch.turn('two', () => scratch.write({ 'a.txt': 'more\n' }))
  expect(commit(scratch)).toMatchObject({ code: 0, json: { files: [{ path: 'a.txt' }], warnings: [] } })
  expect(scratch.git('status', '--porcelain')).toBe('')
})

test('what is stashed after git refused it is committed all the same', () => {
  const scratch = withHook(CHECK)
  scratch.turn('one', () => scratch.write({ 'a.txt': 'FAIL\n' }))
  expect(commit(scratch).code).toBe(1)
  scratch.git('stash')
  fs.rmSync(scratch.at('.git/hooks/pre-commit'))
  expect(commit(scratch)).toMatchObject({ code: 0, json: { files: [{ path: 'a.txt' }] } })
})

test.each([
  ['new', 'key.pem', (scratch: Scratch) => fs.rmSync(scratch.at('key.pem'))],
  ['tracked', 'u.txt', (scratch: Scratch) => scratch.git('checkout', '-q', 'u.txt')],
] as const)('what a person takes back (a %s file) is left out: the rest is committed', (_, path, takeBack) => {
  const scratch = withHook(CHECK)
  scratch.turn('one', () => scratch.write({ 'a.txt': 'two\n', [path]: 'FAIL\n' }))
  expect(commit(scratch).code).toBe(1)
  takeBack(scratch)
  const { code, json } = commit(scratch)
  expect([code, json.files, json.warnings]).toEqual([
    0,
    [{ path: 'a.txt' }],
    [`Left out, also of later commits, for it is on disk as in HEAD since git refused it: ${path}.`],
  ])
  expect(scratch.git('status', '--porcelain')).toBe('')
  fs.rmSync(scratch.at('.git/hooks/pre-commit'))
  scratch.turn('two', () => scratch.write({ 'b.txt': 'b\n' }))
  expect(commit(scratch).json.files).toEqual([{ path: 'b.txt' }])
})

test.each([
  ['tracked', ['stash', '-q'], 'u.txt'],
  ['untracked', ['stash', '-qu'], 'n.txt'],
])(
  'what lies in an older stash (%s) is committed all the same; where git cannot say what does, too',
  (_, stash, name) => {
    const scratch = withHook(CHECK)
    scratch.turn('one', () => scratch.write({ 'a.txt': 'a2\n', [name]: 'FAIL\n' }))
    expect(commit(scratch).code).toBe(1)
    scratch.git(...stash)
    scratch.write({ 'other.txt': 'mine\n' })
    scratch.git('stash', '-qu')
    scratch.git('stash', 'apply', '-q', 'stash@{1}')
    scratch.remove(name)
    if (name === 'u.txt') scratch.git('checkout', '-q', 'u.txt')
    const { code, json } = commit(scratch)
    expect([code, json.error.message.includes('leaves out')]).toEqual([1, false])
    const tree = scratch.git('rev-parse', 'stash@{1}^{tree}').trim()
    fs.rmSync(scratch.at(`.git/objects/${tree.slice(0, 2)}/${tree.slice(2)}`))
    expect(commit(scratch).json.error.message).not.toContain('leaves out')
    scratch.git('stash', 'clear')
    expect(commit(scratch)).toMatchObject({ code: 0, json: { files: [{ path: 'a.txt' }] } })
  },
)

test('what was taken back before the first try is left out of the next one, as the refusal says', () => {
  const scratch = withHook(CHECK)
  scratch.turn('one', () => scratch.write({ 'a.txt': 'two\n', 'key.pem': 'FAIL\n' }))
  scratch.remove('key.pem')
  expect(commit(scratch).json.error.message).toContain(
    'The next ckpt commit leaves out what is on disk as in HEAD: key.pem.',
  )
  expect(commit(scratch)).toMatchObject({ code: 0, json: { files: [{ path: 'a.txt' }] } })
  expect(scratch.git('status', '--porcelain')).toBe('')
})

test('where all of it was taken back there is nothing to commit; what comes back is committed', () => {
  const scratch = withHook(CHECK)
  scratch.turn('one', () => scratch.write({ 'key.pem': 'FAIL\n' }))
  expect(commit(scratch).code).toBe(1)
  scratch.remove('key.pem')
  expect(commit(scratch)).toMatchObject({ code: 0, json: { commit: null } })
  scratch.write({ 'key.pem': 'FAIL\n' })
  expect(commit(scratch).code).toBe(1)
})

test('what is staged in part is not taken, which is said', () => {
  const scratch = withHook(CHECK)
  scratch.turn('one', () => scratch.write({ 'a.txt': 'FAIL\n' }))
  expect(commit(scratch).code).toBe(1)
  scratch.write({ 'a.txt': 'fine\n' })
  scratch.git('add', 'a.txt')
  scratch.write({ 'a.txt': 'fine\nand more\n' })
  const { code, stderr } = scratch.run(['commit'], { vars: me })
  expect([code, stderr]).toEqual([1, expect.stringContaining('(git add it whole): a.txt.')])
})

test('what is in conflict, only intended, or gone from the index is no choice', () => {
  const scratch = withHook(CHECK, { 'a.txt': 'a\nb\nc\n', 'u.txt': 'u\n' })
  scratch.write({ 'a.txt': 'a\nb\nMINE\n' })
  scratch.git('stash')
  scratch.turn('one', () => scratch.write({ 'a.txt': 'a\nb\nAGENT\n', 'u.txt': 'FAIL\n', 'n.txt': 'new\n' }))
  expect(commit(scratch).code).toBe(1)
  scratch.git('add', 'a.txt')
  expect(tryGit(scratch, ['stash', 'pop']).code).toBe(1)
  scratch.git('add', '-N', 'n.txt')
  scratch.git('rm', '-q', '--cached', 'u.txt')
  fs.rmSync(scratch.at('.git/hooks/pre-commit'))
  expect(commit(scratch)).toMatchObject({
    code: 0,
    json: { files: ['a.txt', 'n.txt', 'u.txt'].map((path) => ({ path })) },
  })
  expect(scratch.git('show', 'HEAD:a.txt', 'HEAD:n.txt', 'HEAD:u.txt')).toBe('a\nb\nAGENT\nnew\nFAIL\n')
})

test('what is stashed after a hook changed it is committed as the turn left it', () => {
  const scratch = withHook('#!/bin/sh\necho hook >>a.txt\nexit 1\n')
  scratch.turn('one', () => scratch.write({ 'a.txt': 'two\n' }))
  expect(commit(scratch).json.error.message).toContain('hooks changed a.txt')
  scratch.git('stash')
  fs.rmSync(scratch.at('.git/hooks/pre-commit'))
  expect(commit(scratch)).toMatchObject({ code: 0, json: { files: [{ path: 'a.txt' }], warnings: [] } })
  expect(scratch.git('show', 'HEAD:a.txt')).toBe('two\n')
})

test('what hooks changed is named also where a person had edited it; there is a way by hand', () => {
  const scratch = withHook('#!/bin/sh\necho hook >>a.txt\nexit 1\n', { 'a.txt': 'a\nb\nc\n' })
  scratch.write({ 'a.txt': 'a\nb\nc mine\n' })
  scratch.turn('one', () => scratch.write({ 'a.txt': 'A\nb\nc mine\n', 'n.txt': 'new\n' }))
  const { message, hints } = commit(scratch).json.error
  expect([message, hints[1]]).toEqual([
    expect.stringContaining('hooks changed a.txt'),
    'git add -N -- :/n.txt && git add -p && git commit   (by hand instead)',
  ])
})

test('a part of a file that a person stages is no choice: what the turn did is committed, and theirs stays staged', () => {
  const nine = (first: string, last: string) => [first, ...'2345678', last, ''].join('\n')
  const scratch = withHook(CHECK, { 'a.txt': nine('1', '9'), 'u.txt': 'u\n' })
  scratch.turn('one', () => scratch.write({ 'a.txt': nine('agent', '9'), 'u.txt': 'FAIL\n' }))
  expect(commit(scratch).code).toBe(1)
  scratch.write({ 'a.txt': nine('1', 'mine') })
  scratch.git('add', 'a.txt')
  scratch.write({ 'a.txt': nine('agent', 'mine') })
  fs.rmSync(scratch.at('.git/hooks/pre-commit'))
  expect(commit(scratch)).toMatchObject({ code: 0, json: { files: [{ path: 'a.txt' }, { path: 'u.txt' }] } })
  expect(scratch.git('show', 'HEAD:a.txt')).toBe(nine('agent', '9'))
  expect(scratch.git('show', ':a.txt')).toBe(nine('agent', 'mine'))
})

test('what hooks made as HEAD has it is left out also of a try after the next one', () => {
  const scratch = withHook(FIXER)
  scratch.turn('one', () => scratch.write({ 'a.txt': 'a \n', 'u.txt': 'one\n' }))
  expect(commit(scratch).code).toBe(1)
  fs.writeFileSync(scratch.at('.git/hooks/pre-commit'), '#!/bin/sh\nexit 1\n')
  expect(commit(scratch).code).toBe(1)
  fs.rmSync(scratch.at('.git/hooks/pre-commit'))
  expect(commit(scratch)).toMatchObject({ code: 0, json: { files: [{ path: 'u.txt' }] } })
  expect(scratch.git('status', '--porcelain')).toBe('')
})

test('what hooks changed and staged before they refused is named, and committed so once it is staged', () => {
  const scratch = withHook('#!/bin/sh\nsed -i.old s/agent/AGENT/ a.txt b.txt && rm *.old && git add a.txt\nexit 1\n')
  scratch.turn('one', () => scratch.write({ 'a.txt': 'agent\n', 'b.txt': 'agent\n', 'u.txt': 'two\n' }))
  const { message, hints } = commit(scratch).json.error
  expect([message, hints[0]]).toEqual([
    expect.stringContaining('your index is as it was; hooks changed a.txt, b.txt.'),
    'git add -- :/a.txt :/b.txt && ckpt commit   (with what hooks made of them)',
  ])
  expect(scratch.git('diff', '--cached', '--name-only')).toBe('')
  fs.rmSync(scratch.at('.git/hooks/pre-commit'))
  scratch.git('add', '--', ':/a.txt', ':/b.txt')
  expect(commit(scratch).code).toBe(0)
  expect(scratch.git('show', 'HEAD:a.txt', 'HEAD:b.txt', 'HEAD:u.txt')).toBe('AGENT\nAGENT\ntwo\n')
  expect(scratch.git('status', '--porcelain')).toBe('')
  expect(fs.readdirSync(scratch.at('.git/ckpt/worktrees/@main/tmp'))).toEqual([])
})

test('what hooks changed is named by what git takes for it', () => {
  const names = ['__init__.py', '"quoted', 'b c.txt']
  const scratch = withHook(
    `#!/bin/sh\nfor name in __init__.py '"quoted' 'b c.txt'; do echo more >>"$name"; done\nexit 1\n`,
  )
  scratch.turn('one', () => scratch.write(Object.fromEntries(names.map((name) => [name, 'new\n']))))
  const [hint] = commit(scratch).json.error.hints
  fs.rmSync(scratch.at('.git/hooks/pre-commit'))
  execFileSync('sh', ['-c', hint.split(' && ')[0]], { cwd: scratch.root, env: scratch.vars })
  expect(commit(scratch).code).toBe(0)
  expect(scratch.git('show', ...names.map((name) => `HEAD:${name}`))).toBe('new\nmore\n'.repeat(3))
})

test('to look for what is staged since writes nothing: the index stays as it is; where git cannot compare, nothing is said of files', () => {
  const scratch = withHook(CHECK, { '.gitattributes': '*.f filter=f\n', 'a.txt': 'a\n', 'u.txt': 'u\n', 'x.f': 'x\n' })
  scratch.turn('one', () => scratch.write({ 'a.txt': 'FAIL\n', 'b.txt': 'FAIL\n' }))
  expect(commit(scratch).code).toBe(1)
  scratch.write({ 'a.txt': 'fine\n' })
  scratch.git('add', 'a.txt')
  const index = fs.readFileSync(scratch.at('.git/index'))
  fs.utimesSync(scratch.at('u.txt'), 1, 1) // a refresh would write that
  expect(commit(scratch).code).toBe(1) // b.txt
  expect(fs.readFileSync(scratch.at('.git/index')).equals(index)).toBe(true)
  scratch.git('config', 'filter.f.clean', 'false')
  scratch.git('config', 'filter.f.required', 'true')
  scratch.write({ 'x.f': 'y\n' })
  fs.rmSync(scratch.at('.git/hooks/pre-commit'))
  expect(commit(scratch).json.error.message).toMatch(/^git refused the commit.*; your index is as it was\.$/)
  scratch.git('config', 'filter.f.clean', 'cat')
  expect(commit(scratch)).toMatchObject({ code: 0, json: { files: [{ path: 'a.txt' }, { path: 'b.txt' }] } })
  expect(scratch.git('show', 'HEAD:a.txt')).toBe('fine\n')
})
