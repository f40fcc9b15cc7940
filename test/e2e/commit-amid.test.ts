/** `ckpt commit` where git moves while a turn is at work, and where others have a hand in the commit or the index. */
import fs from 'node:fs'
import { expect, test } from 'vitest'
import type { Env } from '../../src/env.ts'
import { answer, envOf } from '../support/in-process.ts'
import { type Json, Scratch } from '../support/scratch.ts'

async function commit(scratch: Scratch, through = (spawn: Env['spawn']) => spawn): Promise<Json> {
  const given = envOf(scratch)
  const env = { ...given, spawn: through(given.spawn) }
  const me = Object.fromEntries(
    ['AUTHOR', 'COMMITTER'].flatMap((who) => [
      [`GIT_${who}_NAME`, 'A U Thor'],
      [`GIT_${who}_EMAIL`, 'author@example.com'],
    ]),
  )
  return (await answer({ ...env, vars: { ...env.vars, ...me } }, 'commit', '-m', 'c')).document
}

const files = ({ files }: Json): string[] => files.map(({ path }: Json) => path)

/** An agent that tells of its turn and of its calls. */
function agentIn(scratch: Scratch) {
  const told = (hook_event_name: string, more: object = {}) => {
    const payload = { session_id: 's', prompt_id: 'p', cwd: scratch.root, hook_event_name, ...more }
    scratch.run(['hook', 'claude'], { input: JSON.stringify(payload) })
  }
  const call = (id: string, work: () => void) => {
    const more = { tool_name: 'Bash', tool_input: { command: 'x' }, tool_use_id: id }
    told('PreToolUse', more)
    work()
    told('PostToolUse', { ...more, tool_response: {} })
  }
  return { told, call }
}

test('of a turn that ckpt committed on one branch, what its agent did then is committed on another one', async () => {
  const scratch = new Scratch().init({ 'a.txt': '1\n', 'b.txt': '1\n' })
  const { told, call } = agentIn(scratch)
  scratch.git('checkout', '-qb', 'other')
  told('UserPromptSubmit', { prompt: 'go' })
  call('one', () => scratch.write({ 'a.txt': '2\n' }))
  told('Stop')
  expect(files(await commit(scratch))).toEqual(['a.txt'])
  scratch.git('checkout', '-q', 'main')
  call('two', () => scratch.write({ 'b.txt': '2\n' }))
  told('Stop')
  const { warnings, ...done } = await commit(scratch)
  expect(files(done)).toEqual(['b.txt'])
  expect(warnings).toContain('Committed on another branch, and left out of the commit: a.txt.')
})

test('what an agent does in a turn that is committed already, for it goes on, is in the next commit', async () => {
  const scratch = new Scratch().init({ 'a.txt': '1\n', 'b.txt': '1\n' })
  const { told, call } = agentIn(scratch)
  told('UserPromptSubmit', { prompt: 'go' })
  call('one', () => scratch.write({ 'a.txt': '2\n' }))
  call('two', () => scratch.write({ 'a.txt': '3\n', 'new.txt': 'new\n' }))
  told('Stop')
  expect(files(await commit(scratch))).toEqual(['a.txt', 'new.txt'])
  expect((await commit(scratch)).commit).toBe(null)
  call('three', () => scratch.write({ 'a.txt': '4\n', 'b.txt': '2\n' }))
  told('Stop')
  const { turns, warnings, ...done } = await commit(scratch)
  expect([turns, files(done), warnings]).toEqual([[1], ['a.txt', 'b.txt'], []])
  expect(scratch.git('status', '--porcelain')).toBe('')
  // What a person made of it since is nobody else's, and an end that is told once more is nothing.
  scratch.write({ 'a.txt': 'by hand\n' })
  scratch.git('commit', '-qam', 'by hand')
  told('Stop')
  told('SessionEnd', { reason: 'other' })
  expect(await commit(scratch)).toMatchObject({ ok: true, commit: null, warnings: [] })
})

test('what an agent commits itself in its turn is where the rest of the turn goes on', async () => {
  const scratch = new Scratch().init({ 'a.txt': '1\n', 'gone.txt': '1\n' })
  scratch.turn('go', () => {
    scratch.write({ 'a.txt': '2\n', 'new.txt': 'one\n', 'passing.txt': '1\n' })
    scratch.ckpt('mark', 'step', '--session', 's')
    scratch.git('add', '-A')
    scratch.git('commit', '-qm', 'the agent')
    scratch.write({ 'a.txt': '3\n', 'new.txt': 'one\ntwo\n' })
    scratch.remove('gone.txt', 'passing.txt')
    scratch.ckpt('mark', 'step', '--session', 's')
  })
  expect(files(await commit(scratch))).toEqual(['a.txt', 'gone.txt', 'new.txt', 'passing.txt'])
  expect(scratch.git('status', '--porcelain')).toBe('')
})

test('what an agent commits itself in a turn without steps is where the rest of it goes on, in the same lines too', async () => {
  const scratch = new Scratch().init({ 'a.txt': '1\n', 'b.txt': '1\n', 'c.txt': '1\n' })
  scratch.write({ 'b.txt': '1\nmine\n' })
  scratch.turn('go', () => {
    scratch.write({ 'a.txt': '1\n2\n', 'c.txt': '2\n' })
    scratch.git('commit', '-qm', 'the agent', 'a.txt', 'c.txt')
    scratch.write({ 'a.txt': '1\n2\n3\n', 'c.txt': '3\n' })
  })
  const { warnings, ...done } = await commit(scratch)
  expect([files(done), warnings]).toEqual([['a.txt', 'c.txt'], []])
  expect(scratch.git('status', '--porcelain')).toBe(' M b.txt\n')
  // What a person had there before, and did not commit, is in what the turn left: it stays theirs.
  scratch.turn('more', () => {
    scratch.write({ 'b.txt': '1\nmine\n2\n' })
    scratch.git('commit', '-qm', 'the agent', 'b.txt')
    scratch.write({ 'b.txt': '1\nmine\n2\n3\n' })
  })
  const refused = await commit(scratch)
  expect(refused.error).toMatchObject({ code: 'CONFLICT', paths: ['b.txt'] })
})

test('what a hook adds to the commit is in the index, too', async () => {
  const scratch = new Scratch().init({ 'a.txt': '1\n', 'mine.txt': '1\n' })
  const hook = '#!/bin/sh\necho made >made.txt\ngit add -A . :!mine.txt\n'
  fs.writeFileSync(scratch.at('.git/hooks/pre-commit'), hook, { mode: 0o755 })
  scratch.write({ 'mine.txt': 'mine\n' })
  scratch.git('add', 'mine.txt')
  scratch.turn('work', () => scratch.write({ 'a.txt': '2\n' }))
  const { warnings, ...done } = await commit(scratch)
  expect([files(done), warnings]).toEqual([['a.txt', 'made.txt'], [beyond(done, 'made.txt')]])
  expect(scratch.git('show', '--name-only', '--format=', 'HEAD')).toBe('a.txt\nmade.txt\n')
  expect(scratch.git('status', '--porcelain')).toBe('M  mine.txt\n')
})

const withHook = (scratch: Scratch, name: string, script: string) =>
  fs.writeFileSync(scratch.at(`.git/hooks/${name}`), `#!/bin/sh\n${script}\n`, { mode: 0o755 })
const beyond = ({ commit }: Json, paths: string) =>
  `Commit ${commit.slice(0, 10)} also holds what the session did not change (a hook can do that): ${paths}.`
const lacks = ({ commit }: Json, paths: string) =>
  `Commit ${commit.slice(0, 10)} lacks what the session changed (a hook can do that), and the next ckpt commit takes it: ${paths}.`

test('what a hook leaves out of the commit is in a later one, with what the turns did there since', async () => {
  const scratch = new Scratch().init({ 'a.txt': '1\n', 'b.txt': '1\n' })
  withHook(scratch, 'pre-commit', 'git reset -q -- big.bin')
  scratch.turn('one', () => {
    scratch.write({ 'a.txt': '2\n', 'big.bin': 'one\n' })
    scratch.git('add', 'big.bin')
  })
  const { warnings, ...first } = await commit(scratch)
  expect([files(first), warnings]).toEqual([['a.txt'], [lacks(first, 'big.bin')]])
  expect(scratch.git('status', '--porcelain')).toBe('A  big.bin\n')
  scratch.turn('two', () => scratch.write({ 'big.bin': 'one\ntwo\n', 'b.txt': '2\n' }))
  scratch.write({ 'a.txt': 'by hand\n' })
  scratch.git('commit', '-q', '-m', 'by hand', 'a.txt')
  const second = await commit(scratch)
  expect([files(second), second.turns, second.warnings]).toEqual([['b.txt'], [1, 2], [lacks(second, 'big.bin')]])
  fs.rmSync(scratch.at('.git/hooks/pre-commit'))
  const third = await commit(scratch)
  expect([files(third), third.turns, third.warnings]).toEqual([['big.bin'], [1, 2], []])
  expect(scratch.git('show', 'HEAD:big.bin', 'HEAD:a.txt')).toBe('one\ntwo\nby hand\n')
  expect(scratch.git('status', '--porcelain')).toBe('')
  expect(await commit(scratch)).toMatchObject({ commit: null, warnings: [] })
})

test('what a hook left out of a commit that was taken back, and made again with it, is in that one', async () => {
  const scratch = new Scratch().init({ 'a.txt': '1\n' })
  const leaveOut = () => withHook(scratch, 'pre-commit', 'git reset -q -- b.txt')
  leaveOut()
  scratch.turn('one', () => scratch.write({ 'a.txt': '2\n', 'b.txt': '1\n' }))
  await commit(scratch)
  scratch.git('reset', '-q', 'HEAD~1')
  expect(files(await commit(scratch))).toEqual(['a.txt'])
  scratch.git('reset', '-q', 'HEAD~1')
  fs.rmSync(scratch.at('.git/hooks/pre-commit'))
  expect(files(await commit(scratch))).toEqual(['a.txt', 'b.txt'])
  expect(await commit(scratch)).toMatchObject({ commit: null, warnings: [] })
})

test('a hook that formats what is committed puts nothing in and leaves nothing out, though it be as it was in HEAD', async () => {
  const scratch = new Scratch().init({ 'a.txt': '1\n', 'b.txt': '1\n' })
  withHook(scratch, 'pre-commit', 'for f in a.txt b.txt; do tr -d " " <$f >t; cat t >$f; rm t; git add $f; done')
  scratch.turn('one', () => scratch.write({ 'a.txt': ' 2\n', 'b.txt': ' 1\n' }))
  const { warnings, ...done } = await commit(scratch)
  expect([files(done), warnings, scratch.git('show', 'HEAD:a.txt')]).toEqual([['a.txt'], [], '2\n'])
  expect(scratch.git('status', '--porcelain')).toBe('')
  expect(scratch.ckpt('verify', '--ref', 'HEAD', '--covered').commits).toMatchObject([{ covered: true }])
  expect(await commit(scratch)).toMatchObject({ commit: null, warnings: [] })
})

test.each([
  ['pre-commit', 'git add -A'],
  ['post-commit', 'test -e ../done && exit; touch ../done; git add -A; git commit -q --amend --no-edit'],
])('what a %s hook puts into the commit is named, and no turn accounts for it', async (hook, script) => {
  const scratch = new Scratch().init({ 'a.txt': '1\n', 'hand.txt': '1\n' })
  for (const one of ['name', 'email']) scratch.git('config', `user.${one}`, 'a@example.com')
  withHook(scratch, hook, script)
  scratch.write({ 'hand.txt': 'by hand\n', 'line\nend.txt': 'by hand\n' })
  scratch.turn('work', () => scratch.write({ 'a.txt': '2\n' }), 'other')
  scratch.turn('work', () => scratch.write({ 'b.txt': '2\n' }))
  const { warnings, ...done } = await commit(scratch)
  expect(done.commit).toBe(scratch.git('rev-parse', 'HEAD').trim())
  expect([files(done).length, warnings.length]).toEqual([4, 1])
  expect(warnings[0]).toContain('hand.txt')
  const { code, document } = scratch.tryCkpt('verify', '--ref', 'HEAD', '--covered')
  expect([code, document.error.message]).toEqual([
    7,
    expect.stringMatching(/hand.txt is as a turn left it, and none is known to have made it so/),
  ])
  // What another session's turn left is accounted for.
  scratch.git('reset', '-q', '--soft', 'HEAD~1')
  scratch.git('reset', '-q')
  fs.rmSync(scratch.at(`.git/hooks/${hook}`), { force: true })
  withHook(scratch, 'pre-commit', 'git add a.txt')
  const again = await commit(scratch)
  expect([files(again), again.warnings]).toEqual([['a.txt', 'b.txt'], [beyond(again, 'a.txt')]])
  expect(scratch.ckpt('verify', '--ref', 'HEAD', '--covered').commits).toMatchObject([{ covered: true }])
})

test('turns of a commit that was taken back are committed again, one of them by `switch`', async () => {
  const scratch = new Scratch().init({ 'a.txt': '1\n' })
  scratch.turn('one', () => scratch.write({ 'a.txt': '2\n' }))
  scratch.turn('two', () => scratch.write({ 'two.txt': '2\n' }))
  await commit(scratch)
  scratch.git('reset', '-q', 'HEAD^')
  scratch.ckpt('undo')
  scratch.ckpt('accept')
  expect(files(await commit(scratch))).toEqual(['a.txt'])
  scratch.ckpt('switch', '2')
  expect(files(await commit(scratch))).toEqual(['two.txt'])
})

test('a commit that a post-commit hook takes back is none, and the one below it stays the person’s', async () => {
  const scratch = new Scratch().init({ 'a.txt': '1\n', 'b.txt': '1\n' })
  scratch.turn('zero', () => scratch.write({ zero: '\n' }))
  scratch.write({ 'b.txt': 'by hand\n' })
  scratch.git('commit', '-qm', 'by hand', 'b.txt')
  withHook(scratch, 'post-commit', 'git reset -q --soft HEAD^')
  scratch.turn('one', () => scratch.write({ 'a.txt': '2\n' }))
  const { error } = await commit(scratch)
  expect(error.message).toMatch(/HEAD has it no more/)
  expect(scratch.tryCkpt('verify', '--ref', 'HEAD', '--covered').code).toBe(7)
  fs.rmSync(scratch.at('.git/hooks/post-commit'))
  expect(files(await commit(scratch))).toEqual(['a.txt', 'zero'])
})

test('a commit that git made, and cannot be asked for then, is not said to be gone: the next command finishes it', async () => {
  const scratch = new Scratch().init({ 'a.txt': '1\n' })
  scratch.turn('one', () => scratch.write({ 'a.txt': '2\n' }))
  const { error } = await commit(scratch, (spawn) => (file, args, options) => {
    const isAsked = args[0] === 'rev-list' && args.includes('--first-parent')
    return isAsked ? spawn('false', [], options) : spawn(file, args, options)
  })
  expect(error.message).toMatch(/^git made the commit, and then could not be asked for it: git rev-list failed/)
  expect(scratch.git('show', 'HEAD:a.txt')).toBe('2\n')
  expect(scratch.ckpt('status').warnings.join()).toContain('A commit that was cut short is finished')
  expect(scratch.git('status', '--porcelain')).toBe('')
})

test('of commits that a hook made after it ckpt tells nothing', async () => {
  const scratch = new Scratch().init({ 'a.txt': '1\n', 'b.txt': '1\n' })
  withHook(scratch, 'post-commit', 'test -e ../done && exit; touch ../done; echo 2 >b.txt; git commit -qm bump b.txt')
  scratch.turn('one', () => scratch.write({ 'a.txt': '2\n' }))
  const done = await commit(scratch)
  expect([files(done), done.commit]).toEqual([['a.txt'], scratch.git('rev-parse', 'HEAD^').trim()])
  const { document } = scratch.tryCkpt('verify', '--ref', 'HEAD~2..HEAD', '--covered')
  expect(document.error.message).toContain('1 of 2 commits are covered')
  expect(scratch.git('status', '--porcelain')).toBe('')
})

test.each(['upstream', 'chore: one'])(
  'a commit that a hook after it moved onto others (%s) is the one that is told of, and what they hold is not the session’s',
  async (subject) => {
    const scratch = new Scratch().init({ 'a.txt': '1\n', 'b.txt': '1\n' })
    scratch.git('checkout', '-qb', 'up')
    scratch.write({ 'b.txt': 'up\n' })
    scratch.git('commit', '-qam', subject)
    scratch.git('checkout', '-q', 'main')
    scratch.write({ 'c.txt': 'local\n' })
    scratch.git('add', 'c.txt')
    scratch.git('commit', '-qm', 'local')
    withHook(scratch, 'post-commit', 'test -e ../done && exit; touch ../done; git rebase -q up')
    scratch.turn('one', () => scratch.write({ 'a.txt': '2\n' }))
    const done = await commit(scratch)
    expect([files(done), done.commit, done.warnings]).toEqual([['a.txt'], scratch.git('rev-parse', 'HEAD').trim(), []])
    expect(scratch.git('log', '--format=%s').split('\n').slice(1, 3)).toEqual(['local', subject])
    expect([scratch.ckpt('show', 'HEAD').commit.checkpoints.length, scratch.tryCkpt('show', 'up').code]).toEqual([1, 3])
    expect(scratch.git('status', '--porcelain')).toBe('')
    expect(scratch.ckpt('commit')).toMatchObject({ commit: null, warnings: [] })
  },
)

test('what an agent staged on its way does not stay staged: it would take the commit back', async () => {
  const scratch = new Scratch().init({ 'a.txt': '1\n', 'mine.txt': '1\n' })
  scratch.turn('one', () => {
    scratch.write({ 'a.txt': '2\n', 'new.txt': '1\n' })
    scratch.git('add', '-A')
  })
  scratch.turn('two', () => scratch.write({ 'a.txt': '3\n', 'new.txt': '2\n' }))
  expect((await commit(scratch)).warnings).toEqual([])
  expect(scratch.git('status', '--porcelain')).toBe('')
  scratch.write({ 'a.txt': 'staged by hand\n' })
  scratch.git('add', 'a.txt')
  scratch.turn('three', () => scratch.write({ 'new.txt': '3\n' }))
  expect((await commit(scratch)).warnings).toEqual([])
  expect(scratch.git('status', '--porcelain')).toBe('M  a.txt\n')
})

test('what is staged below the place of a committed file stays staged, and that is said', async () => {
  const scratch = new Scratch().init({ 'a.txt': '1\n' })
  scratch.write({ 'd/only-here.txt': 'precious\n' })
  scratch.git('add', 'd')
  const staged = scratch.git('ls-files', '-s', 'd')
  scratch.remove('d')
  scratch.turn('work', () => scratch.write({ d: 'a file\n' }))
  const { warnings, ...done } = await commit(scratch)
  expect([files(done), warnings.join()]).toEqual([
    ['d'],
    expect.stringContaining('d is committed, and not in your index'),
  ])
  expect(scratch.git('ls-files', '-s', 'd')).toBe(staged)
})

test('a submodule in the place of a file of the session is left as it is, and no damage', async () => {
  const scratch = new Scratch().init({ 'a.txt': '1\n', f: '1\n' })
  scratch.turn('work', () => scratch.write({ f: '2\n' }))
  scratch.remove('f')
  scratch.git('init', '-q', 'f')
  scratch.git('-C', 'f', 'commit', '-q', '--allow-empty', '-m', 'x')
  scratch.atPresent().git('add', 'f')
  scratch.git('commit', '-qm', 'submodule')
  const { ok, commit: made, warnings } = await commit(scratch)
  expect([ok, made, warnings]).toEqual([true, null, ['Left as you have committed it: f.']])
})
