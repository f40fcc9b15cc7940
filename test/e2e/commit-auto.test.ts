/** `commit.messageCommand` and `commit.auto`: the message from the user's own program, the commit without being asked. */

import { type ChildProcess, spawn, spawnSync } from 'node:child_process'
import fs from 'node:fs'
import path from 'node:path'
import { setTimeout } from 'node:timers/promises'
import { expect, test } from 'vitest'
import { hookLog } from '../support/agents.ts'
import { type Json, PROGRAM, Scratch } from '../support/scratch.ts'

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

/** `ckpt commit` at work, once its message command is. */
async function committing(scratch: Scratch, work: (child: ChildProcess) => void, more = {}): Promise<Ended> {
  const child = spawn(process.execPath, [PROGRAM, 'commit', '--json'], {
    cwd: scratch.root,
    env: { ...scratch.vars, ...vars, ...more },
    detached: true,
  })
  const out: Buffer[] = []
  child.stdout.on('data', (chunk: Buffer) => out.push(chunk))
  const ended = new Promise<Ended>((resolve) =>
    child.on('close', (code, signal) => {
      const text = Buffer.concat(out).toString()
      resolve({ code, signal, document: text === '' ? null : JSON.parse(text) })
    }),
  )
  await until(() => fs.existsSync(path.join(scratch.base, 'asked')))
  work(child)
  return ended
}
interface Ended {
  code: number | null
  signal: NodeJS.Signals | null
  document: Json
}
async function until(holds: () => boolean): Promise<void> {
  while (!holds()) await setTimeout(20)
}

test.each([
  ['undone', [['undo']], 5, /pending/],
  [
    'undone for good',
    [['undo'], ['accept']],
    4,
    /Turn 2 was undone, pruned or rewritten meanwhile. Nothing was committed/,
  ],
])('a turn that is %s while the message is made is not committed', async (_, commands, code, why) => {
  const scratch = withConfig({
    commit: { messageCommand: 'touch ../asked; while test ! -e ../go; do sleep 0.05; done; echo message' },
  })
  const head = scratch.git('rev-parse', 'HEAD')
  scratch.turn('one', () => scratch.write({ 'a.txt': 'two\n' }))
  scratch.turn('two', () => scratch.write({ 'b.txt': 'new\n' }))
  const ended = await committing(scratch, () => {
    for (const command of commands) scratch.ckpt(...command)
    fs.writeFileSync(path.join(scratch.base, 'go'), '')
  })
  expect([ended.code, ended.document.error.message]).toEqual([code, expect.stringMatching(why)])
  expect([scratch.git('rev-parse', 'HEAD'), scratch.git('status', '--porcelain')]).toEqual([head, ' M a.txt\n'])
})

test('what is forgotten, or pruned, while git is at work is not told as undone', async () => {
  const scratch = new Scratch().init({ 'a.txt': 'one\n', z: 'z\n' })
  const hook = '#!/bin/sh\ntouch ../asked; while test ! -e ../go; do sleep 0.05; done\n'
  fs.writeFileSync(scratch.at('.git/hooks/pre-commit'), hook, { mode: 0o755 })
  scratch.turn('one', () => scratch.write({ 'b.txt': 'new\n' }))
  scratch.turn('two', () => scratch.write({ 'a.txt': 'two\n' }))
  const { code, document } = await committing(scratch, () => {
    scratch.ckpt('forget', 'z')
    scratch.ckpt('prune', '--keep', '1')
    fs.writeFileSync(path.join(scratch.base, 'go'), '')
  })
  expect([code, document.turns, document.warnings]).toEqual([0, [1, 2], []])
})

test('a turn that is undone in part while git is at work is in the commit: that is said', async () => {
  const scratch = new Scratch().init()
  // By nothing that shows that it is a hook: else the undo waits for it.
  const hidden = '[ -z "$GIT_INDEX_FILE" ] || exec env -u GIT_INDEX_FILE "$0"'
  const hook = `#!/bin/sh\n${hidden}\ntouch ../asked; while test ! -e ../go; do sleep 0.05; done\n`
  fs.writeFileSync(scratch.at('.git/hooks/pre-commit'), hook, { mode: 0o755 })
  scratch.turn('one', () => {
    scratch.write({ 'b.txt': 'new\n' })
    scratch.ckpt('mark', 'step', '--session', 's')
    scratch.write({ 'a.txt': 'two\n' })
    scratch.ckpt('mark', 'step', '--session', 's')
  })
  const { code, document } = await committing(scratch, () => {
    scratch.ckpt('undo', '--step')
    fs.writeFileSync(path.join(scratch.base, 'go'), '')
  })
  expect([code, document.warnings.join()]).toEqual([
    0,
    expect.stringMatching(/^Turn 1 was undone while git was at work, and is in the commit: git reset --soft \w+\^ /),
  ])
  expect(scratch.git('status', '--porcelain')).toBe(' M a.txt\n')
})

test.each(['SIGINT', 'SIGTERM', 'SIGHUP'] as const)(
  '%s while the message is made: nothing is committed, what it started is ended, and ckpt ends of it',
  async (signal) => {
    const scratch = withConfig({ commit: { messageCommand: 'sleep 4711 & echo $! >../asked; wait; echo message' } })
    const head = scratch.git('rev-parse', 'HEAD')
    scratch.turn('one', () => scratch.write({ 'a.txt': 'two\n' }))
    const ended = await committing(scratch, (child) => child.kill(signal))
    expect(ended).toEqual({ code: null, signal, document: null })
    const asked = Number(fs.readFileSync(path.join(scratch.base, 'asked'), 'utf8'))
    await until(() => !isAtWork(asked))
    expect([scratch.git('rev-parse', 'HEAD'), scratch.git('status', '--porcelain')]).toEqual([head, ' M a.txt\n'])
    expect(scratch.ckpt('verify').problems).toEqual([])
    expect(fs.readdirSync(scratch.at('.git/ckpt')).join()).not.toContain('commit.json')
  },
)

/** The PATH of a git that does this, in a shell, when it is to read HEAD into the commit's index. */
function withGit(scratch: Scratch, script: string): string {
  const bin = path.join(scratch.base, 'bin')
  fs.mkdirSync(bin)
  const git = `#!/bin/sh
case "$1" in read-tree) touch '${scratch.base}/asked'; ${script} ;; esac
PATH='${scratch.vars.PATH}' exec git "$@"
`
  fs.writeFileSync(path.join(bin, 'git'), git, { mode: 0o755 })
  return `${bin}:${scratch.vars.PATH}`
}

test.each([
  ['all of it', -1],
  ['ckpt alone', 1],
])(
  'SIGINT to %s while git is asked, before the message is made: nothing is committed, and ckpt ends of it',
  async (_, who) => {
    const scratch = withConfig({ commit: { messageCommand: 'touch ../made; echo message' } })
    const PATH = withGit(scratch, 'sleep 1')
    scratch.turn('one', () => scratch.write({ 'a.txt': 'two\n' }))
    const ended = await committing(scratch, (child) => process.kill(who * child.pid!, 'SIGINT'), { PATH })
    expect(ended).toEqual({ code: null, signal: 'SIGINT', document: null })
    expect([scratch.git('status', '--porcelain'), fs.existsSync(path.join(scratch.base, 'made'))]).toEqual([
      ' M a.txt\n',
      false,
    ])
  },
)

test('SIGINT that comes to git first, and to ckpt when that has ended: ckpt ends of it', async () => {
  const scratch = new Scratch().init()
  const PATH = withGit(scratch, '(sleep 0.1; kill -INT $PPID) <&- >&- 2>&- & kill -INT $$')
  scratch.turn('one', () => scratch.write({ 'a.txt': 'two\n' }))
  const ended = await committing(scratch, () => undefined, { PATH })
  expect(ended).toEqual({ code: null, signal: 'SIGINT', document: null })
})

test('SIGINT while git commits: what git began is ended, and ckpt ends of it', async () => {
  const scratch = new Scratch().init()
  fs.writeFileSync(scratch.at('.git/hooks/pre-commit'), '#!/bin/sh\ntouch ../asked; sleep 4711\n', { mode: 0o755 })
  const head = scratch.git('rev-parse', 'HEAD')
  scratch.turn('one', () => scratch.write({ 'a.txt': 'two\n' }))
  const ended = await committing(scratch, (child) => {
    // As a terminal does; again, as a person does: a shell between two commands may pass over it.
    const press = () => spawnSync('kill', ['-INT', '--', `-${child.pid}`])
    press()
    const pressing = setInterval(press, 500)
    child.on('close', () => clearInterval(pressing))
  })
  expect(ended).toEqual({ code: null, signal: 'SIGINT', document: null })
  expect([scratch.git('rev-parse', 'HEAD'), scratch.git('status', '--porcelain')]).toEqual([head, ' M a.txt\n'])
})

/** A hook that is at work until its process is ended. */
function withHook(scratch: Scratch, name: string): () => Promise<void> {
  const hook = '#!/bin/sh\necho $$ >../asked; exec sleep 4711\n'
  fs.writeFileSync(scratch.at(`.git/hooks/${name}`), hook, { mode: 0o755 })
  return () => until(() => !isAtWork(Number(fs.readFileSync(path.join(scratch.base, 'asked'), 'utf8'))))
}
const isAtWork = (pid: number): boolean =>
  fs.existsSync(`/proc/${pid}`) && !/^State:\s+Z/m.test(fs.readFileSync(`/proc/${pid}/status`, 'utf8'))

test.each(['SIGINT', 'SIGTERM', 'SIGHUP'] as const)(
  '%s to ckpt alone while git runs a hook: both are ended, nothing is committed, and ckpt ends of it',
  async (signal) => {
    const scratch = new Scratch().init()
    const ended = withHook(scratch, 'pre-commit')
    const head = scratch.git('rev-parse', 'HEAD')
    scratch.turn('one', () => scratch.write({ 'a.txt': 'two\n' }))
    expect(await committing(scratch, (child) => child.kill(signal))).toEqual({ code: null, signal, document: null })
    await ended()
    expect([scratch.git('rev-parse', 'HEAD'), scratch.git('status', '--porcelain')]).toEqual([head, ' M a.txt\n'])
    expect(fs.readdirSync(scratch.at('.git/ckpt/worktrees/@main')).join()).not.toContain('commit.json')
  },
)

test('SIGTERM to ckpt alone while a hook after the commit runs: the commit stands, and the index follows it', async () => {
  const scratch = new Scratch().init()
  const ended = withHook(scratch, 'post-commit')
  scratch.turn('one', () => scratch.write({ 'a.txt': 'two\n' }))
  const { code, document } = await committing(scratch, (child) => child.kill('SIGTERM'))
  await ended()
  expect([code, document]).toMatchObject([0, { files: [{ path: 'a.txt' }], warnings: [] }])
  expect([scratch.git('rev-parse', 'HEAD').trim(), scratch.git('status', '--porcelain')]).toEqual([document.commit, ''])
})

test('SIGTERM to a commit that nobody waits for: what does not end of it is not waited for', async () => {
  const scratch = new Scratch().init()
  const hook = '#!/bin/sh\n(trap "" TERM; exec sleep 4711) & echo $! >../left; touch ../asked; wait\n'
  fs.writeFileSync(scratch.at('.git/hooks/pre-commit'), hook, { mode: 0o755 })
  scratch.turn('one', () => scratch.write({ 'a.txt': 'two\n' }))
  const ended = await committing(scratch, (child) => child.kill('SIGTERM'), { CKPT_COMMIT_BEHIND: '1' })
  expect(ended).toEqual({ code: null, signal: 'SIGTERM', document: null })
  process.kill(Number(fs.readFileSync(path.join(scratch.base, 'left'), 'utf8')), 'SIGKILL')
})

test('a message command that prints without end is ended; one that leaves something at work is not waited for', () => {
  const endless = withConfig({ commit: { messageCommand: 'yes' } })
  endless.turn('Add a page', () => endless.write({ 'a.txt': 'two\n' }))
  const { message, warnings } = commit(endless)
  expect([message, warnings]).toEqual([
    'feat: add a page\n',
    ['commit.messageCommand printed more than 64 KiB: the message is made from the prompts.'],
  ])
  const leaving = withConfig({
    commit: { messageCommand: 'sleep 600 2>/dev/null & echo $! >../left; echo "feat: left"' },
  })
  leaving.turn('work', () => leaving.write({ 'a.txt': 'two\n' }))
  expect(commit(leaving)).toMatchObject({ message: 'feat: left\n', warnings: [] })
  process.kill(Number(fs.readFileSync(path.join(leaving.base, 'left'), 'utf8')))
})

test('the message is committed as it is: in UTF-8, with lines that begin with #; what a hook makes of it is told', () => {
  const scratch = new Scratch().init()
  scratch.git('config', 'i18n.commitEncoding', 'ISO-8859-1')
  scratch.git('config', 'commit.cleanup', 'strip')
  scratch.turn('one', () => scratch.write({ 'a.txt': 'two\n' }))
  expect(commit(scratch, '-m', '#12 für alle')).toMatchObject({ ok: true, message: '#12 für alle' })
  expect(scratch.git('log', '-1', '--format=%s', '--encoding=UTF-8')).toBe('#12 für alle\n')
  fs.writeFileSync(scratch.at('.git/hooks/commit-msg'), '#!/bin/sh\necho "Refs: 1" >>"$1"\n', { mode: 0o755 })
  scratch.turn('two', () => scratch.write({ 'a.txt': 'three\n' }))
  expect(commit(scratch, '-m', 'mine\n\nbody').message).toBe('mine\n\nbody\nRefs: 1\n')
})
