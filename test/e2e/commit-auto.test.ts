/** `commit.messageCommand` and `commit.auto`: the message from the user's own program, the commit without being asked. */

import fs from 'node:fs'
import path from 'node:path'
import { setTimeout } from 'node:timers/promises'
import { expect, test } from 'vitest'
import { hookLog } from '../support/agents.ts'
import { type Json, Scratch } from '../support/scratch.ts'

const vars = {
  GIT_AUTHOR_NAME: 'A U Thor',
  GIT_AUTHOR_EMAIL: 'author@example.com',
  GIT_COMMITTER_NAME: 'C O Mitter',
  GIT_COMMITTER_EMAIL: 'committer@example.com',
}

/** A worktree whose person has this in their own configuration file. */
function withConfig(config: Json): Scratch {
  const scratch = new Scratch().init()
  const file = path.join(scratch.home, '.config/ckpt/.checkpointrc.json')
  fs.mkdirSync(path.dirname(file), { recursive: true })
  fs.writeFileSync(file, JSON.stringify(config))
  return scratch
}

const commit = (scratch: Scratch, ...args: string[]): Json =>
  JSON.parse(scratch.run(['commit', ...args, '--json'], { vars }).stdout)

test('the user’s command gets the prompts’ message and the patch, and what it prints is the message', () => {
  const scratch = withConfig({
    commit: { messageCommand: 'cat >../given; echo "feat: $CKPT_SESSION"; echo; echo body' },
  })
  // What a person likes to see is nothing for a program.
  for (const [key, value] of Object.entries({ 'color.ui': 'always', 'diff.noprefix': 'true', 'diff.relative': 'true' }))
    scratch.git('config', key, value)
  scratch.turn('Add a page', () => scratch.write({ 'a.txt': 'two\n' }))
  expect(commit(scratch)).toMatchObject({ message: 'feat: s\n\nbody\n', warnings: [] })
  expect(scratch.git('log', '-1', '--format=%B').trim()).toBe('feat: s\n\nbody')
  const given = fs.readFileSync(path.join(scratch.base, 'given'), 'utf8')
  expect(given).toMatch(/^feat: add a page\n\ndiff --git a\/a\.txt b\/a\.txt\n[\s\S]*^-one\n\+two\n/m)
  scratch.turn('again', () => scratch.write({ 'a.txt': 'three\n' }))
  expect(commit(scratch, '-m', 'mine').message).toBe('mine')
})

test.each([
  ['exit 3', 'failed (exit 3)'],
  ['printf " \\n"', 'printed nothing'],
  ['no-such-command-of-mine', 'failed (exit 127)'],
])('a command that fails (%s): the prompts’ message, with a warning', (messageCommand, why) => {
  const scratch = withConfig({ commit: { messageCommand } })
  scratch.turn('Add a page', () => scratch.write({ 'a.txt': 'two\n' }))
  const { message, warnings } = commit(scratch)
  expect([message, warnings]).toEqual([
    'feat: add a page\n',
    [`commit.messageCommand ${why}: the message is made from the prompts.`],
  ])
})

test("the example of all keys can be a project's file as it is", () => {
  const example = fs.readFileSync(new URL('../../.checkpointrc.example', import.meta.url), 'utf8')
  const scratch = new Scratch().init({ '.checkpointrc': example })
  expect(scratch.ckpt('status').warnings).toEqual([])
})

test('a project cannot name a command, committed or not', () => {
  const scratch = new Scratch().init({ '.checkpointrc': 'commit:\n  messageCommand: touch pwned; echo theirs\n' })
  scratch.turn('Add a page', () => scratch.write({ 'a.txt': 'two\n' }))
  const { message, warnings } = commit(scratch)
  expect(message).toBe('feat: add a page\n')
  expect(warnings.join()).toContain("commit.messageCommand is a command: it counts in the user's own file only")
  expect(scratch.exists('pwned')).toBe(false)
})

test('commit.auto: a run ends with a commit of what it changed; what stands in its way is a warning', () => {
  const scratch = withConfig({ commit: { auto: true } })
  scratch.write({ 'mine.txt': 'mine\n' })
  const run = (...args: string[]) => JSON.parse(scratch.run(['run', '--json', ...args], { vars }).stdout)
  const { warnings } = run('--text', 'Add b', '--', 'sh', '-c', 'echo b >b.txt')
  expect(warnings.join()).toMatch(/Committed [0-9a-f]{10}: feat: add b/)
  expect(scratch.git('show', '--format=%s', '--name-only', 'HEAD').trim()).toBe('feat: add b\n\nb.txt')
  expect(scratch.git('status', '--porcelain').trim()).toBe('?? mine.txt')
  const head = scratch.git('rev-parse', 'HEAD')
  expect(run('--', 'true').warnings.join()).not.toContain('commit')
  run('--no-commit', '--', 'sh', '-c', 'echo kept >kept.txt')
  expect(scratch.git('rev-parse', 'HEAD')).toBe(head)
  fs.writeFileSync(scratch.at('.git/hooks/pre-commit'), '#!/bin/sh\necho not so >&2\nexit 1\n', { mode: 0o755 })
  const refused = run('--', 'sh', '-c', 'echo c >c.txt')
  expect(refused.exitCode).toBe(0)
  expect(refused.warnings.join()).toMatch(
    /No commit was made \(commit\.auto\): git refused the commit.*It said: not so/,
  )
  expect([scratch.git('rev-parse', 'HEAD'), scratch.read('c.txt')]).toEqual([head, 'c\n'])
})

test('commit.auto: an agent’s session that ends is committed behind it; what goes wrong is in the log', async () => {
  const scratch = withConfig({ commit: { auto: true } })
  const tell = (hook_event_name: string, more: Json = {}) =>
    expect(
      scratch.run(['hook', 'claude'], {
        input: JSON.stringify({ hook_event_name, session_id: 'c1', cwd: scratch.root, ...more }),
        vars,
      }),
    ).toEqual({ code: 0, stdout: '', stderr: '' })
  const turn = (n: number) => {
    tell('UserPromptSubmit', { prompt: `Add number ${n}`, prompt_id: `p${n}` })
    scratch.write({ 'b.txt': `${n}\n` })
    tell('Stop', { prompt_id: `p${n}` })
  }
  turn(1)
  tell('SessionEnd', { reason: 'exit' })
  const subject = () => scratch.git('log', '-1', '--format=%s').trim()
  for (let i = 0; i < 200 && subject() === 'first'; i++) await setTimeout(50)
  expect(subject()).toBe('feat: add number 1')
  fs.writeFileSync(scratch.at('.git/hooks/pre-commit'), '#!/bin/sh\nexit 1\n', { mode: 0o755 })
  turn(2)
  tell('SessionEnd', { reason: 'exit' })
  for (let i = 0; i < 200 && hookLog(scratch).length === 0; i++) await setTimeout(50)
  expect(hookLog(scratch).at(-1)).toMatchObject({ where: 'commit.auto' })
  expect(subject()).toBe('feat: add number 1')
})
