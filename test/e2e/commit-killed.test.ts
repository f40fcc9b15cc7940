/** `ckpt commit` that is killed, and two at once: the commit is whole or none, and the person's index follows it. */
import { execFileSync, spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import fs from 'node:fs'
import path from 'node:path'
import { expect, test } from 'vitest'
import { type Env, realEnv } from '../../src/env.ts'
import { isRunning } from '../../src/ops/worktree/processes.ts'
import { killedAt } from '../support/amid.ts'
import { commit, lines, me } from '../support/commits.ts'
import { answer, envOf } from '../support/in-process.ts'
import { until } from '../support/protocol.ts'
import { type Json, PROGRAM, Scratch } from '../support/scratch.ts'

/**
 * `ckpt commit` in a process group of its own, as a terminal makes one, once git runs the hook that holds it up. `isSeen`: false:
 * by nothing that shows that it is one.
 */
async function heldUp(scratch: Scratch, hook: string, argv: string[] = [], { message = true, isSeen = true } = {}) {
  const hidden = isSeen ? '' : '[ -z "$GIT_INDEX_FILE" ] || exec env -u GIT_INDEX_FILE "$0"\n'
  const script = `#!/bin/sh\n${hidden}: >.git/here\nwhile [ -e .git/here ]; do sleep 0.1; done\n`
  fs.writeFileSync(scratch.at(`.git/hooks/${hook}`), script, { mode: 0o755 })
  const child = spawn(process.execPath, [PROGRAM, 'commit', ...(message ? ['-m', 'c'] : []), ...argv], {
    cwd: scratch.root,
    env: { ...scratch.vars, ...me },
    detached: true,
    stdio: 'ignore',
  })
  const ended = once(child, 'exit')
  await until(() => fs.existsSync(scratch.at('.git/here')))
  fs.rmSync(scratch.at(`.git/hooks/${hook}`))
  return {
    ended,
    release: () => fs.rmSync(scratch.at('.git/here')),
    /** ckpt alone: its git, and the hook, go on. */
    killAlone: async () => {
      child.kill('SIGKILL')
      await ended
    },
    kill: async (signal: NodeJS.Signals) => {
      const { git } = JSON.parse(fs.readFileSync(scratch.at('.git/ckpt/worktrees/@main/commit.json'), 'utf8'))
      process.kill(-child.pid!, signal)
      const [code] = await ended
      await until(() => !isRunning(realEnv(), git.pid, git.started)) // on a busy machine it ends after its parent
      fs.rmSync(scratch.at('.git/here'), { force: true })
      return code
    },
  }
}

test.each([
  ['Ctrl-C', 'SIGINT', []],
  ['a kill, then a marker', 'SIGKILL', ['mark', 'prompt', '--session', 'next']],
  ['a kill, then an undo', 'SIGKILL', ['undo', '--dry-run']],
  ['a kill, then a look', 'SIGKILL', ['status']],
  ['a kill, then a doctor', 'SIGKILL', ['doctor', '--fix']],
] as const)(
  '%s, while a hook after the commit runs: the index follows the commit, at the latest with the next command',
  async (_, signal, next) => {
    const scratch = new Scratch().init({ 'a.txt': lines() })
    scratch.write({ 'staged.txt': 'mine\n' })
    scratch.git('add', 'staged.txt')
    scratch.turn('work', () => scratch.write({ 'a.txt': lines([3, 'agent']), 'b.txt': 'new\n' }))
    const code = await (await heldUp(scratch, 'post-commit')).kill(signal)
    if (next.length === 0) expect(code).toBe(0)
    else if (next[0] === 'doctor') {
      const finding = (...more: string[]) =>
        scratch.tryCkpt('doctor', ...more).document.findings.find(({ name }: { name: string }) => name === 'commit')
      expect(finding()).toMatchObject({
        ok: false,
        detail: expect.stringMatching(/your index does not follow it yet$/),
      })
      expect(finding('--fix')).toMatchObject({ ok: true, fixed: true })
      expect(finding()).toBe(undefined)
    } else expect(scratch.ckpt(...next).warnings.join()).toContain('A commit that was cut short is finished')
    expect(scratch.git('status', '--porcelain')).toBe('A  staged.txt\n')
    expect(scratch.git('show', '--format=%s', '--name-only', 'HEAD').trim().split('\n')).toEqual([
      'c',
      '',
      'a.txt',
      'b.txt',
    ])
    expect(fs.readdirSync(scratch.at('.git/ckpt/worktrees/@main/tmp'))).toEqual([])
    expect(commit(scratch, ['--session', 's']).json.commit).toBe(null)
  },
)

test('of a commit that was killed, what hooks left out and put in is told by the next command, as by itself', async () => {
  const scratch = new Scratch().init({ 'a.txt': 'a\n', 'hand.txt': 'one\n' })
  scratch.write({ 'hand.txt': 'by hand\n' })
  scratch.turn('work', () => scratch.write({ 'a.txt': ' agent\n', 'b.txt': 'new\n' }))
  const hook = 'git reset -q -- b.txt; echo agent >a.txt; git add a.txt hand.txt'
  fs.writeFileSync(scratch.at('.git/hooks/pre-commit'), `#!/bin/sh\n${hook}\n`, { mode: 0o755 })
  await (await heldUp(scratch, 'post-commit')).kill('SIGKILL')
  fs.rmSync(scratch.at('.git/hooks/pre-commit'))
  const id = scratch.git('rev-parse', '--short=10', 'HEAD').trim()
  expect(scratch.ckpt('status').warnings).toEqual(
    expect.arrayContaining([
      `A commit that was cut short is finished: your index follows ${id}.`,
      expect.stringMatching(`^Commit ${id} lacks what .*: b.txt.$`),
      expect.stringMatching(`^Commit ${id} also holds what .*: hand.txt.$`),
    ]),
  )
  expect(scratch.git('status', '--porcelain')).toBe('?? b.txt\n')
  expect(scratch.tryCkpt('verify', '--ref', 'HEAD', '--covered').code).toBe(7)
  expect(commit(scratch).json).toMatchObject({ files: [{ path: 'b.txt' }], warnings: [] })
  expect(commit(scratch).json.commit).toBe(null)
})

test('a kill before the commit was made leaves nothing behind', async () => {
  const scratch = new Scratch().init({ 'a.txt': 'a\n' })
  scratch.turn('work', () => scratch.write({ 'b.txt': 'new\n' }))
  await (await heldUp(scratch, 'pre-commit')).kill('SIGKILL')
  expect(commit(scratch).json.files).toEqual([{ path: 'b.txt' }])
  expect(fs.readdirSync(scratch.at('.git/ckpt/worktrees/@main/tmp'))).toEqual([])
  expect(fs.existsSync(scratch.at('.git/ckpt/worktrees/@main/commit.json'))).toBe(false)
})

test('a commit by hand after such a kill is not taken for the one that was cut short', async () => {
  const scratch = new Scratch().init({ 'a.txt': 'a\n' })
  scratch.turn('work', () => scratch.write({ 'b.txt': 'new\n' }))
  await (await heldUp(scratch, 'pre-commit')).kill('SIGKILL')
  scratch.write({ 'mine.txt': 'mine\n' })
  scratch.git('add', 'mine.txt')
  scratch.git('commit', '-qm', 'by hand')
  expect(scratch.ckpt('status').warnings).toEqual([])
  expect(fs.existsSync(scratch.at('.git/ckpt/worktrees/@main/commit.json'))).toBe(false)
  expect(commit(scratch).json.files).toEqual([{ path: 'b.txt' }])
})

test('a commit by hand of a part of it is not taken for the whole', async () => {
  const scratch = new Scratch().init({ 'a.txt': 'a\n', 'b.txt': 'b\n' })
  scratch.turn('work', () => scratch.write({ 'a.txt': 'agent\n', 'b.txt': 'agent\n' }))
  await (await heldUp(scratch, 'pre-commit')).kill('SIGKILL')
  scratch.git('add', 'a.txt')
  scratch.git('commit', '-qm', 'by hand')
  expect(scratch.ckpt('status').warnings).toEqual([])
  expect(commit(scratch).json.files).toEqual([{ path: 'b.txt' }])
  expect(scratch.git('status', '--porcelain')).toBe('')
})

test.each([
  ['a part of its file', '1\n2\n3\nagent\n', ['a.txt']],
  ['something else in its file', 'hand\n', []],
])('a commit by hand of %s is not taken for it', async (_, content, left) => {
  const scratch = new Scratch().init({ 'a.txt': '1\n2\n3\n4\n' })
  scratch.turn('work', () => scratch.write({ 'a.txt': 'agent\n2\n3\nagent\n' }))
  await (await heldUp(scratch, 'pre-commit')).kill('SIGKILL')
  const disk = scratch.read('a.txt')
  scratch.write({ 'a.txt': content })
  scratch.git('commit', '-qam', 'by hand')
  if (left.length > 0) scratch.write({ 'a.txt': disk })
  expect(scratch.ckpt('status').warnings).toEqual([])
  expect((commit(scratch).json.files ?? []).map(({ path }: Json) => path)).toEqual(left)
  expect(scratch.tryCkpt('verify', '--ref', 'HEAD', '--covered').code).toBe(left.length > 0 ? 0 : 7)
})

test('an undo that is killed while a hook runs takes nothing of the commit along', async () => {
  const scratch = new Scratch().init({ 'a.txt': 'a\n' })
  scratch.turn('work', () => scratch.write({ 'a.txt': 'agent\n' }))
  const held = await heldUp(scratch, 'pre-commit', [], { isSeen: false })
  const others = fs.readdirSync(scratch.at('.git/ckpt/worktrees/@main/tmp'))
  killedAt(scratch, ['renameSync', 'a.txt'], 'undo')
  scratch.ckpt('status')
  expect(others.length).toBeGreaterThan(1)
  expect(fs.readdirSync(scratch.at('.git/ckpt/worktrees/@main/tmp'))).toEqual(others)
  held.release()
  expect(await held.ended).toEqual([0, null])
})

/** A repository with a turn in each of two sessions. */
function ofTwo(): Scratch {
  const scratch = new Scratch().init({ 'a.txt': 'a\n' })
  scratch.turn('work', () => scratch.write({ 'a.txt': 'agent\n' }), 'one')
  scratch.turn('more', () => scratch.write({ 'b.txt': 'new\n' }), 'two')
  return scratch
}

/** The end of the second session's commit; the first goes on a while after it began. */
function begunBeside(scratch: Scratch, first: { release: () => void }): Promise<unknown[]> {
  const argv = [PROGRAM, 'commit', '-m', 'second', '--session', 'two']
  const env = { ...scratch.vars, ...me }
  setTimeout(first.release, 500)
  return once(spawn(process.execPath, argv, { cwd: scratch.root, env, stdio: 'ignore' }), 'exit')
}

function expectBoth(scratch: Scratch): void {
  expect(scratch.git('log', '--format=%s', '--name-only')).toBe('second\n\nb.txt\nc\n\na.txt\nfirst\n\na.txt\n')
  expect(scratch.git('status', '--porcelain')).toBe('')
}

test('of two at once the second waits for the first, and commits what is left', async () => {
  const scratch = ofTwo()
  const first = await heldUp(scratch, 'pre-commit', ['--session', 'one'])
  // What is recorded meanwhile takes nothing from it.
  scratch.ckpt('snapshot')
  const second = begunBeside(scratch, first)
  expect([(await first.ended)[0], (await second)[0]]).toEqual([0, 0])
  expectBoth(scratch)
})

test('promise 8: a git that outlives its killed ckpt is at work: the next commit waits for it, and is made on its commit', async () => {
  const scratch = ofTwo()
  const first = await heldUp(scratch, 'pre-commit', ['--session', 'one'])
  const kept = fs.readdirSync(scratch.at('.git/ckpt/worktrees/@main/tmp'))
  await first.killAlone()
  scratch.ckpt('snapshot')
  expect(fs.readdirSync(scratch.at('.git/ckpt/worktrees/@main/tmp'))).toEqual(kept)
  const second = begunBeside(scratch, first)
  expect((await second)[0]).toBe(0)
  expectBoth(scratch)
})

test('of a git that outlives its killed ckpt and goes on, the commit says which process that is', async () => {
  const scratch = new Scratch().init({ 'a.txt': 'a\n' })
  scratch.turn('work', () => scratch.write({ 'a.txt': 'agent\n' }), 'one')
  const first = await heldUp(scratch, 'pre-commit', ['--session', 'one'])
  await first.killAlone()
  const env = envOf(scratch)
  const hours = (function* () {
    for (let at = 0; ; at += 3_600_000) yield at
  })()
  const { code, document } = await answer({ ...env, monotonic: () => hours.next().value! }, 'commit')
  expect([code, document.error.code]).toEqual([8, 'LOCKED'])
  const pid = /^A git that a killed ckpt commit started, process (\d+), is at work/.exec(document.error.message)![1]!
  expect(fs.readFileSync(`/proc/${pid}/cmdline`, 'latin1').split('\0')).toContain('commit')
  first.release()
  await until(() => !fs.existsSync(`/proc/${pid}`))
  expect(scratch.ckpt('status').warnings.join()).toContain('A commit that was cut short is finished')
  expect(scratch.git('status', '--porcelain')).toBe('')
})

test('a kill after the commit, and a commit by hand of another file on it: the index follows all the same', async () => {
  const scratch = new Scratch().init({ 'a.txt': 'a\n', 'mine.txt': 'mine\n', 'gone.txt': 'gone\n' })
  scratch.turn('work', () => {
    scratch.write({ 'a.txt': 'agent\n', 'b.txt': 'new\n' })
    scratch.remove('gone.txt')
  })
  await (await heldUp(scratch, 'post-commit')).kill('SIGKILL')
  const made = scratch.git('rev-parse', '--short=10', 'HEAD').trim()
  scratch.write({ 'mine.txt': 'by hand\n' })
  scratch.git('commit', '-qm', 'mine', '--', 'mine.txt')
  expect(scratch.git('show', '--format=', '--name-status', 'HEAD')).toBe('M\tmine.txt\n')
  const finding = () =>
    scratch.tryCkpt('doctor').document.findings.find(({ name }: { name: string }) => name === 'commit')
  expect(finding()).toMatchObject({ ok: false, detail: expect.stringContaining(made) })
  expect(scratch.ckpt('status').warnings).toEqual([
    `A commit that was cut short is finished: your index follows ${made}.`,
  ])
  expect(scratch.git('status', '--porcelain')).toBe('')
  expect(finding()).toBe(undefined)
  expect(commit(scratch, ['--session', 's']).json.commit).toBe(null)
})

test('what a person stages in files of their own later commits stays, where a killed commit is finished behind them', async () => {
  const scratch = new Scratch().init({ 'a.txt': 'a\n', 'mine.txt': 'one\n' })
  scratch.turn('work', () => scratch.write({ 'a.txt': 'agent\n', 'b.txt': 'new\n' }))
  await (await heldUp(scratch, 'post-commit')).kill('SIGKILL')
  scratch.write({ 'mine.txt': 'two\n', 'more.txt': 'more\n' })
  scratch.git('add', 'more.txt')
  scratch.git('commit', '-qm', 'mine', '--', 'mine.txt', 'more.txt')
  scratch.write({ 'mine.txt': 'one\n' })
  scratch.git('add', 'mine.txt')
  scratch.git('rm', '-q', '--cached', 'more.txt')
  expect(scratch.ckpt('status').warnings).toEqual([expect.stringContaining('A commit that was cut short is finished')])
  expect(scratch.git('diff', '--cached', '--name-status')).toBe('M\tmine.txt\nD\tmore.txt\n')
})

test('a later commit of the index as it was before took the work out: that is said, and how it is staged again', async () => {
  const scratch = new Scratch().init({ 'a.txt': 'a\n', 'mine.txt': 'mine\n' })
  scratch.turn('work', () => scratch.write({ 'a.txt': 'agent\n', 'b.txt': 'new\n' }))
  await (await heldUp(scratch, 'post-commit')).kill('SIGKILL')
  const made = scratch.git('rev-parse', '--short=10', 'HEAD').trim()
  scratch.write({ 'mine.txt': 'by hand\n' })
  scratch.git('add', 'mine.txt')
  scratch.git('commit', '-qm', 'mine')
  const command = `git restore --staged --source=${made} -- :/a.txt :/b.txt`
  expect(scratch.ckpt('status').warnings).toEqual([
    `A commit that was cut short is finished: your index follows ${made}.`,
    `A later commit took out what ${made} holds of a.txt, b.txt; your files are as they were: ${command}   (stages it again, for a commit)`,
  ])
  scratch.git(...command.split(' ').slice(1))
  expect(scratch.git('status', '--porcelain')).toBe('M  a.txt\nA  b.txt\n')
})

test('a message of any length is whole in the commit, though ckpt is killed before git reads it', async () => {
  const scratch = new Scratch().init({ 'a.txt': 'a\n' })
  const prompt = `${'word '.repeat(140_000)}end`
  const payload = { session_id: 's', cwd: scratch.root, prompt_id: 'p', hook_event_name: 'UserPromptSubmit', prompt }
  scratch.runApart(['hook', 'claude'], { input: JSON.stringify(payload) })
  scratch.write({ 'a.txt': 'agent\n' })
  scratch.ckpt('mark', 'stop', '--session', 's')
  const held = await heldUp(scratch, 'pre-commit', [], { message: false })
  const { message, git } = JSON.parse(fs.readFileSync(scratch.at('.git/ckpt/worktrees/@main/commit.json'), 'utf8'))
  expect(message.length).toBeGreaterThan(prompt.length)
  await held.killAlone()
  held.release()
  await until(() => !fs.existsSync(`/proc/${git.pid}`))
  expect(scratch.git('show', '-s', '--format=%B', 'HEAD').trim()).toBe(message.trim())
})

test('where it cannot be noted which git makes the commit, none begins, and the reason is told', async () => {
  const scratch = new Scratch().init({ 'a.txt': 'a\n' })
  scratch.turn('work', () => scratch.write({ 'a.txt': 'agent\n' }))
  const hook = scratch.at('.git/hooks/pre-commit')
  fs.writeFileSync(hook, '#!/bin/sh\n: >.git/ran\n', { mode: 0o755 })
  const env = envOf(scratch)
  let isBegun = false
  const spawning = ((command: string, args: string[], options: object) => {
    isBegun ||= args.includes('commit')
    return spawn(command, args, options)
  }) as Env['spawn']
  const renameSync: Env['files']['renameSync'] = (from, to) => {
    if (isBegun && String(to).endsWith('/commit.json'))
      throw Object.assign(new Error('ENOSPC: no space left on device, rename'), { code: 'ENOSPC' })
    env.files.renameSync(from, to)
  }
  const full = { ...env, vars: { ...env.vars, ...me }, spawn: spawning, files: { ...env.files, renameSync } }
  const { code, document } = await answer(full, 'commit', '-m', 'x')
  expect([code, document.error.message]).toEqual([1, expect.stringContaining('ENOSPC')])
  expect(fs.existsSync(scratch.at('.git/ran'))).toBe(false)
  expect(scratch.git('log', '--format=%s')).toBe('first\n')
  expect(commit(scratch).json.files).toEqual([{ path: 'a.txt' }])
})

test('whatever became of what was noted, no command fails by it', async () => {
  const scratch = new Scratch().init({ 'a.txt': 'a\n' })
  scratch.turn('work', () => scratch.write({ 'b.txt': 'new\n' }))
  await (await heldUp(scratch, 'post-commit')).kill('SIGKILL')
  const file = scratch.at('.git/ckpt/worktrees/@main/commit.json')
  const note = JSON.parse(fs.readFileSync(file, 'utf8'))
  const index = fs.readFileSync(scratch.at('.git/index'))
  const odd = [null, 5, 'abc', {}, [5], [[5]], [['--skip-worktree']], [['--foo', ['a.txt']]], [[5, ['a.txt']]]]
  for (const key of [
    'pid',
    'started',
    'turns',
    'paths',
    'git',
    'marked',
    'open',
    'taken',
    'message',
    'head',
    'session',
  ])
    for (const value of odd) {
      fs.writeFileSync(scratch.at('.git/index'), index)
      fs.writeFileSync(file, JSON.stringify({ ...note, [key]: value }))
      const env = envOf(scratch)
      const { code } = await answer({ ...env, vars: { ...env.vars, ...me } }, 'snapshot')
      expect([key, value, code]).toEqual([key, value, 0])
      if (['git', 'marked', 'open', 'taken'].includes(key))
        expect([key, value, fs.existsSync(file), scratch.git('status', '--porcelain')]).toEqual([key, value, false, ''])
      fs.rmSync(file, { force: true })
    }
})

test('where what a killed commit was to be made on is gone from the repository, nothing is held up', async () => {
  const scratch = new Scratch().init({ 'a.txt': 'a\n' })
  scratch.turn('work', () => scratch.write({ 'b.txt': 'new\n' }))
  await (await heldUp(scratch, 'pre-commit')).kill('SIGKILL')
  const file = scratch.at('.git/ckpt/worktrees/@main/commit.json')
  fs.writeFileSync(file, fs.readFileSync(file, 'utf8').replace(/"head":"[0-9a-f]+"/, `"head":"${'1'.repeat(40)}"`))
  expect(scratch.ckpt('status').warnings).toEqual([])
  expect(fs.existsSync(file)).toBe(false)
})

test.each(['--assume-unchanged', '--skip-worktree'])(
  'a kill right before an entry of the index gets its mark again (%s) takes none',
  (mark) => {
    const scratch = new Scratch().init({ 'a.txt': 'a\n', 'b.txt': 'b\n', 'c.txt': 'c\n' })
    scratch.git('update-index', '--assume-unchanged', 'a.txt')
    scratch.git('update-index', '--skip-worktree', 'b.txt')
    const marks = scratch.git('ls-files', '-v')
    scratch.turn('work', () => scratch.write({ 'a.txt': 'agent\n', 'b.txt': 'agent\n', 'c.txt': 'agent\n' }))
    const bin = path.join(scratch.base, 'killing-bin')
    fs.mkdirSync(bin)
    const real = execFileSync('sh', ['-c', 'command -v git'], { encoding: 'utf8' }).trim()
    fs.writeFileSync(
      path.join(bin, 'git'),
      `#!/bin/sh\nif [ -z "$GIT_INDEX_FILE" ]; then case " $* " in *" ${mark} "*) kill -9 $PPID; exit 1 ;; esac; fi\nexec '${real}' "$@"\n`,
      { mode: 0o755 },
    )
    const env = { ...scratch.vars, ...me, PATH: `${bin}:${scratch.vars.PATH}` }
    const killed = spawnSync(process.execPath, [PROGRAM, 'commit', '-m', 'c'], { cwd: scratch.root, env })
    expect(killed.signal).toBe('SIGKILL')
    expect(scratch.git('ls-files', '-v')).not.toBe(marks)
    expect(scratch.ckpt('status').warnings.join()).toContain('A commit that was cut short is finished')
    expect(scratch.git('ls-files', '-v')).toBe(marks)
    expect(scratch.git('show', '--format=', '--name-only', 'HEAD')).toBe('a.txt\nb.txt\nc.txt\n')
  },
)

test('what a program that lives on could not finish is finished by the next command', async () => {
  const scratch = new Scratch().init({ 'a.txt': 'a\n' })
  scratch.turn('work', () => scratch.write({ 'b.txt': 'new\n' }))
  fs.writeFileSync(scratch.at('.git/hooks/post-commit'), '#!/bin/sh\n: >.git/index.lock\n', { mode: 0o755 })
  const env = envOf(scratch)
  const { code, document } = await answer({ ...env, vars: { ...env.vars, ...me } }, 'commit')
  expect([code, document.warnings.join()]).toEqual([0, expect.stringContaining('your index still holds')])
  scratch.remove('.git/index.lock')
  expect(scratch.ckpt('list').warnings.join()).toContain('A commit that was cut short is finished')
  expect(scratch.git('status', '--porcelain')).toBe('')
})
