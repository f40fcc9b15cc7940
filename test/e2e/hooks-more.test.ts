/** The hooks beside the gate: what a commit came from, and pushes that are refused. */
import { execFileSync } from 'node:child_process'
import fs from 'node:fs'
import path from 'node:path'
import { expect, test } from 'vitest'
import { lineToAdd } from '../../src/githooks/hook-file.ts'
import { gateScratch, HOOKS, makePending, tryGit } from '../support/gate.ts'
import { type Json, Scratch } from '../support/scratch.ts'

/** The person's own configuration, and the hooks that it asks for. */
function configure(scratch: Scratch, hooks: Json): void {
  const file = path.join(scratch.home, '.config/ckpt/.checkpointrc.json')
  fs.mkdirSync(path.dirname(file), { recursive: true })
  fs.writeFileSync(file, JSON.stringify({ hooks }))
  scratch.ckpt('hooks', 'install')
}

function withRemote(hooks: Json): Scratch {
  const scratch = gateScratch()
  execFileSync('git', ['init', '-q', '--bare', path.join(scratch.base, 'remote.git')])
  scratch.git('remote', 'add', 'origin', path.join(scratch.base, 'remote.git'))
  scratch.git('push', '-q', 'origin', 'main')
  configure(scratch, hooks)
  return scratch
}

const hook = (scratch: Scratch, name: string, text: string) =>
  fs.writeFileSync(scratch.at(`.git/hooks/${name}`), text, { mode: 0o755 })

const commitAll = (scratch: Scratch, message: string, vars = {}) => {
  scratch.git('add', '-A')
  return tryGit(scratch, ['commit', '-q', '-m', message], { vars })
}

/** Variables with which `ckpt` is found. */
function inPath(scratch: Scratch): { PATH: string } {
  const bin = path.join(scratch.base, 'bin')
  fs.mkdirSync(bin)
  fs.symlinkSync(path.resolve('bin/ckpt.js'), path.join(bin, 'ckpt'))
  return { PATH: `${bin}:${scratch.vars.PATH}` }
}

test('a commit says which checkpoints it came from, and still does after an amend and a rebase', () => {
  const scratch = gateScratch()
  configure(scratch, { postCommit: true, postRewrite: true })
  const names = scratch.ckpt('hooks', 'status').hooks.map(({ name, fires }: Json) => `${name} ${fires}`)
  expect(names.slice(HOOKS.length)).toEqual(['post-commit true', 'post-rewrite true'])
  scratch.turn('work', () => scratch.write({ 'f.txt': 'f\n' }))
  const { after } = scratch.ckpt('list').turns[0]
  expect(commitAll(scratch, 'by hand').code).toBe(0)
  const { commit } = scratch.ckpt('show', 'HEAD')
  expect(commit).toMatchObject({ id: scratch.git('rev-parse', 'HEAD').trim(), pending: false })
  expect(commit.checkpoints.map(({ id, session, turn }: Json) => [id, session, turn])).toEqual([[after, 's', 1]])
  // An amend is a commit of its own, made later; a rebase makes none that a hook sees.
  tryGit(scratch, ['commit', '--amend', '-q', '-m', 'amended'])
  expect(scratch.ckpt('show', scratch.git('rev-parse', '--short=12', 'HEAD').trim()).commit.checkpoints).toHaveLength(1)
  expect(tryGit(scratch, ['rebase', '-q', 'side']).code).toBe(0)
  expect(scratch.ckpt('show', 'HEAD').commit.checkpoints[0].id).toBe(after)
  expect(scratch.run(['show', 'HEAD']).stdout).toMatch(/^Commit [0-9a-f]{10} came from 1 checkpoint:\n {2}[0-9a-f]{10}/)
  const unknown = scratch.tryCkpt('show', 'side')
  expect([unknown.code, unknown.document.error.message]).toEqual([
    3,
    expect.stringMatching(/Nobody wrote down what commit/),
  ])
})

test('ckpt commit writes it down with no hook', () => {
  const scratch = gateScratch()
  scratch.turn('one', () => scratch.write({ 'f.txt': 'f\n' }))
  scratch.turn('two', () => scratch.write({ 'g.txt': 'g\n' }))
  const env = { GIT_AUTHOR_NAME: 'A', GIT_AUTHOR_EMAIL: 'a@b', GIT_COMMITTER_NAME: 'A', GIT_COMMITTER_EMAIL: 'a@b' }
  expect(scratch.run(['commit'], { vars: env }).code).toBe(0)
  const { checkpoints } = scratch.ckpt('show', 'HEAD').commit
  expect(checkpoints.map(({ turn }: Json) => turn)).toEqual([1, 2])
})

test('a push of commits made while a boundary was pending is refused, rewritten or not; the way out works', () => {
  const scratch = withRemote({ prePush: 'pending', postCommit: true, postRewrite: true })
  scratch.write({ 'good.txt': 'good\n' })
  commitAll(scratch, 'good')
  expect(tryGit(scratch, ['push', '-q', 'origin', 'main']).code).toBe(0)
  makePending(scratch)
  scratch.write({ 'bad.txt': 'bad\n' })
  expect(commitAll(scratch, 'bad', { CKPT_ALLOW_PENDING: '1' }).code).toBe(0)
  expect(scratch.ckpt('show', 'HEAD').commit.pending).toBe(true)
  scratch.ckpt('accept')
  const remote = () =>
    execFileSync('git', ['rev-parse', 'main'], { cwd: path.join(scratch.base, 'remote.git') }).toString()
  const before = remote()
  for (const ref of ['main', 'main:new-branch']) {
    const refused = tryGit(scratch, ['push', 'origin', ref])
    expect([ref, refused.code]).toEqual([ref, 1])
    expect(refused.stderr).toContain('made while a revert boundary was pending. Nothing was pushed.')
    expect(refused.stderr).toMatch(/^ {2}[0-9a-f]{7,} bad$/m)
    expect(refused.stderr).not.toContain('good')
  }
  tryGit(scratch, ['commit', '--amend', '-q', '-m', 'reworded'])
  expect(tryGit(scratch, ['push', 'origin', 'main']).stderr).toMatch(/^ {2}[0-9a-f]{7,} reworded$/m)
  expect(remote()).toBe(before)
  expect(tryGit(scratch, ['push', '-q', '--no-verify', 'origin', 'main']).code).toBe(0)
  expect(tryGit(scratch, ['push', '-q', 'origin', ':main']).stderr).not.toContain('ckpt')
})

test('uncovered: a push of commits that no recorded turn accounts for is refused', () => {
  const scratch = withRemote({ prePush: 'uncovered' })
  const vars = inPath(scratch)
  scratch.turn('work', () => scratch.write({ 'f.txt': 'f\n' }))
  commitAll(scratch, 'of the turn')
  expect(tryGit(scratch, ['push', '-q', 'origin', 'main'], { vars })).toMatchObject({ code: 0, stderr: '' })
  scratch.write({ 'f.txt': 'by hand\n' })
  commitAll(scratch, 'by hand')
  const refused = tryGit(scratch, ['push', 'origin', 'main'], { vars })
  expect(refused.code).toBe(1)
  expect(refused.stderr).toMatch(
    /not every commit of it is covered[^\n]*\n {2}-> git rev-list [0-9a-f]+ --not --remotes=origin \| ckpt verify --ref - --covered/,
  )
})

test('uncovered: exactly what the remote does not have is looked at, from the root on, and across merges', () => {
  const scratch = withRemote({ prePush: 'uncovered' })
  const vars = inPath(scratch)
  const byTurn = (name: string) => {
    scratch.turn(name, () => scratch.write({ [name]: `${name}\n` }))
    commitAll(scratch, name)
  }
  // A branch of a turn's work into which a person's work is merged that the remote has already.
  scratch.git('checkout', '-q', '-b', 'feature')
  byTurn('of-a-turn')
  scratch.git('checkout', '-q', 'main')
  scratch.write({ 'mine.txt': 'mine\n' })
  commitAll(scratch, 'by hand')
  scratch.git('push', '-q', '--no-verify', 'origin', 'main')
  scratch.git('checkout', '-q', 'feature')
  scratch.git('merge', '-q', '--no-edit', 'main')
  expect(tryGit(scratch, ['push', '-q', 'origin', 'feature'], { vars })).toMatchObject({ code: 0, stderr: '' })
  // A first push whose last commit alone is covered.
  scratch.git('checkout', '-q', '--orphan', 'anew')
  commitAll(scratch, 'root by hand')
  byTurn('last')
  const refused = tryGit(scratch, ['push', '-q', 'origin', 'anew'], { vars })
  expect([refused.code, refused.stderr]).toEqual([1, expect.stringContaining('not every commit of it is covered')])
  const list = scratch.git('rev-list', 'anew', '--not', '--remotes=origin')
  const { stdout, code } = scratch.run(['verify', '--ref', '-', '--covered', '--json'], { input: list })
  expect([code, JSON.parse(stdout).commits.map(({ subject, covered }: Json) => `${subject} ${covered}`)]).toEqual([
    7,
    ['root by hand false', 'last true'],
  ])
  for (const input of ['', '\n'])
    expect(JSON.parse(scratch.run(['verify', '--ref', '-', '--json'], { input }).stdout).commits).toEqual([])
})

test('verify --ref -: each line is one commit, whatever git log would make of it', () => {
  const scratch = new Scratch().init()
  scratch.turn('of a turn', () => scratch.write({ 'a.txt': 'two\n' }))
  commitAll(scratch, 'of a turn')
  scratch.write({ 'a.txt': 'three\n' })
  commitAll(scratch, 'by hand')
  const [hand, turn] = scratch.git('rev-list', 'HEAD').split('\n') as [string, string]
  const verify = (...lines: string[]) => {
    const { code, stdout } = scratch.run(['verify', '--ref', '-', '--covered', '--json'], { input: lines.join('\n') })
    const { commits, error } = JSON.parse(stdout)
    return [code, commits?.map(({ subject }: Json) => subject) ?? error]
  }
  // git reads no further than the first empty line.
  expect(verify(turn, '', `${hand}\r`, '')).toEqual([7, ['by hand', 'of a turn']])
  expect(verify(turn)).toEqual([0, ['of a turn']])
  for (const line of [`^${hand}`, '--', 'a.txt', `${turn}..${hand}`, '--all', `${hand}^@`]) {
    expect(verify(turn, line)).toMatchObject([
      3,
      {
        code: 'NOT_FOUND',
        message: `${JSON.stringify(line)} on standard input is no commit here. Nothing was changed.`,
      },
    ])
  }
})

test.each([
  ['a shell script', '#!/bin/sh\necho "$# $1" >../pushed\ncat >>../pushed\n'],
  [
    'another language',
    '#!/usr/bin/env python3\nimport sys\nopen("../pushed","w").write(f"{len(sys.argv)-1} {sys.argv[1]}\\n"+sys.stdin.read())\n',
  ],
])('a hook that was there (%s) gets its arguments and its standard input, and comes back to the byte', (_, text) => {
  const scratch = withRemote({})
  hook(scratch, 'pre-push', text)
  configure(scratch, { prePush: 'pending', postCommit: true })
  scratch.write({ 'good.txt': 'good\n' })
  commitAll(scratch, 'good')
  const [old, head] = scratch.git('rev-parse', 'origin/main', 'HEAD').trim().split('\n')
  expect(tryGit(scratch, ['push', '-q', 'origin', 'main'])).toMatchObject({ code: 0 })
  const pushed = () => fs.readFileSync(path.join(scratch.base, 'pushed'), 'utf8')
  expect(pushed()).toBe(`2 origin\nrefs/heads/main ${head} refs/heads/main ${old}\n`)
  expect(tryGit(scratch, ['push', '-q', 'origin', 'main'])).toMatchObject({ code: 0 })
  expect(pushed()).toBe('2 origin\n') // nothing to push: nothing on standard input
  configure(scratch, { postCommit: true }) // taken out again by its key alone
  expect(fs.readFileSync(scratch.at('.git/hooks/pre-push'), 'utf8')).toBe(text)
  expect(
    scratch
      .ckpt('hooks', 'status')
      .hooks.map(({ name }: Json) => name)
      .slice(HOOKS.length),
  ).toEqual(['post-commit'])
  scratch.ckpt('hooks', 'uninstall')
  expect(fs.readdirSync(scratch.at('.git/hooks')).filter((name) => !name.endsWith('.sample'))).toEqual(['pre-push'])
})

test('no place for temporary files refuses no push, and the gate still does; switched off, a hook does nothing', () => {
  const scratch = withRemote({ prePush: 'pending', postCommit: true })
  makePending(scratch)
  scratch.write({ 'bad.txt': 'bad\n' })
  commitAll(scratch, 'bad', { CKPT_ALLOW_PENDING: '1' })
  for (const text of [null, '#!/bin/sh\ncat >../pushed\n', `#!/bin/sh\n${lineToAdd('pre-push')}\n`]) {
    scratch.remove('.git/hooks/pre-push')
    if (text !== null) hook(scratch, 'pre-push', text)
    scratch.ckpt('hooks', 'install')
    const push = (vars: Record<string, string>) =>
      tryGit(scratch, ['push', '-q', '--dry-run', 'origin', 'main'], { vars: { TMPDIR: '/nonexistent', ...vars } })
    expect(push({})).toMatchObject({ code: 1, stderr: expect.stringContaining('a revert boundary was pending') })
    expect(push({ CKPT_DISABLED: '1' })).toMatchObject({ code: 0, stderr: '' })
    expect(fs.readdirSync(scratch.at('.git/ckpt/hooks')).join()).not.toContain('input')
  }
  expect(fs.readFileSync(path.join(scratch.base, 'pushed'), 'utf8')).toMatch(/^refs\/heads\/main /)
})

test('they never fail a commit: no store, a store that cannot be written, ckpt switched off', () => {
  const scratch = gateScratch()
  configure(scratch, { postCommit: true, postRewrite: true })
  for (const prepare of [
    () => undefined,
    () => scratch.turn('work', () => scratch.write({ 'f.txt': 'f\n' })),
    () => {
      scratch.remove('.git/ckpt/worktrees/@main/made')
      fs.mkdirSync(scratch.at('.git/ckpt/worktrees/@main/made')) // not a file
    },
  ]) {
    prepare()
    scratch.write({ 'n.txt': `${Math.random()}` })
    expect(commitAll(scratch, 'x')).toMatchObject({ code: 0 })
    expect(tryGit(scratch, ['commit', '--amend', '-q', '-m', 'y'])).toMatchObject({ code: 0 })
  }
})
