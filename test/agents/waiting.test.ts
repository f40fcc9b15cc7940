// A hook that cannot get the lock leaves its marker as a file; the next command that can write takes it up, once.
import { execFileSync } from 'node:child_process'
import fs from 'node:fs'
import { expect, test } from 'vitest'
import { realEnv } from '../../src/env.ts'
import { withLock } from '../../src/ops/worktree/lock.ts'
import { hook, hookLog, storeOf } from '../support/agents.ts'
import { answer, envOf } from '../support/in-process.ts'
import { type Json, Scratch } from '../support/scratch.ts'

const waiting = (scratch: Scratch): string[] => {
  const directory = `${storeOf(scratch)}/markers`
  return fs.existsSync(directory) ? fs.readdirSync(directory).sort() : []
}

const held = <T>(scratch: Scratch, work: () => Promise<T>): Promise<T> =>
  withLock(realEnv(), { path: `${storeOf(scratch)}/lock`, command: 'test', wait: 0 }, work)

/** A place where hooks give up after a second. */
function impatient(): Scratch {
  const scratch = new Scratch().init()
  fs.mkdirSync(`${scratch.home}/.config/ckpt`, { recursive: true })
  fs.writeFileSync(`${scratch.home}/.config/ckpt/.checkpointrc`, 'snapshot:\n  deadline: 1000\n')
  scratch.ckpt('snapshot')
  return scratch
}

const say = async (scratch: Scratch, hook_event_name: string, { vars = {}, ...fields }: Json = {}) => {
  const payload = { session_id: 's', cwd: scratch.root, hook_event_name, prompt_id: 'p1', ...fields }
  expect(await hook(scratch, 'claude', { payload, vars })).toEqual({ code: 0, stdout: '', stderr: '' })
}

/** Checkpoints of the session as their subjects, oldest first, those that are late marked. */
const recordedIn = (scratch: Scratch): string[] =>
  scratch
    .git(
      '--git-dir=.git/ckpt/store.git',
      'log',
      '--reverse',
      '--format=%s%(trailers:key=Ckpt-Late)',
      '--glob=refs/ckpt/@main/s/*',
    )
    .split('\n')
    .filter(Boolean)
    .map((line) => line.replace('Ckpt-Late: yes', ' late'))

test('lock held: the marker waits, whole and private; the next command takes it up in order, late, and only once', async () => {
  const scratch = impatient()
  await held(scratch, async () => {
    await say(scratch, 'UserPromptSubmit', { prompt: 'go' })
    await say(scratch, 'Stop')
  })
  const names = waiting(scratch)
  expect(names).toHaveLength(2)
  const file = `${storeOf(scratch)}/markers/${names[0]}`
  expect(fs.statSync(file).mode & 0o777).toBe(0o600)
  expect(JSON.parse(fs.readFileSync(file, 'utf8'))).toMatchObject({
    version: 1,
    id: 'claude:p1',
    client: expect.stringMatching(/^claude \d+$/),
    time: expect.stringMatching(/^\d{4}-.*Z$/),
    marker: { event: 'prompt', session: 's', text: 'go' },
  })
  const copies = names.map((name) => [name, fs.readFileSync(`${storeOf(scratch)}/markers/${name}`)] as const)
  const { turns } = scratch.ckpt('list')
  expect(turns).toMatchObject([{ n: 1, prompt: 'go', status: 'completed', agent: 'claude', endInferred: true }])
  expect(waiting(scratch)).toEqual([])
  // Killed between recording and removing: the files are there again.
  for (const [name, bytes] of copies) fs.writeFileSync(`${storeOf(scratch)}/markers/${name}`, bytes)
  scratch.ckpt('snapshot')
  expect(waiting(scratch)).toEqual([])
  // And the agent may send them again.
  await say(scratch, 'UserPromptSubmit', { prompt: 'go' })
  await say(scratch, 'Stop')
  expect(recordedIn(scratch)).toEqual(['turn 1 before late', 'turn 1 after late'])
  expect(hookLog(scratch)).toEqual([])
})

test("a step that waited claims its declared paths only; what came after it is nobody's", async () => {
  const scratch = impatient()
  const call = { tool_name: 'Write', tool_use_id: 't1', tool_input: { file_path: scratch.at('b.txt') } }
  await say(scratch, 'UserPromptSubmit', { prompt: 'go' })
  await say(scratch, 'PreToolUse', call)
  scratch.write({ 'b.txt': 'two\n' })
  await held(scratch, () => say(scratch, 'PostToolUse', call))
  scratch.write({ 'mine.txt': 'by hand\n' })
  await say(scratch, 'Stop')
  const [turn] = scratch.ckpt('list').turns
  expect(turn.unclaimed).toEqual(['mine.txt'])
  scratch.ckpt('undo')
  expect([scratch.exists('b.txt'), scratch.exists('mine.txt')]).toEqual([false, true])
})

test('a turn whose only call waited, start and end, is undone all the same', async () => {
  const scratch = impatient()
  const call = { tool_name: 'Write', tool_use_id: 't1', tool_input: { file_path: scratch.at('b.txt') } }
  await say(scratch, 'UserPromptSubmit', { prompt: 'go' })
  await held(scratch, async () => {
    await say(scratch, 'PreToolUse', call)
    scratch.write({ 'b.txt': 'two\n' })
    await say(scratch, 'PostToolUse', call)
  })
  await say(scratch, 'Stop')
  scratch.ckpt('undo')
  expect(scratch.exists('b.txt')).toBe(false)
})

test('undo takes up the end that waited first', async () => {
  const scratch = impatient()
  await say(scratch, 'UserPromptSubmit', { prompt: 'go' })
  scratch.write({ 'b.txt': 'two\n' })
  await held(scratch, () => say(scratch, 'Stop'))
  scratch.ckpt('undo')
  expect(scratch.exists('b.txt')).toBe(false)
})

test('a file that is no marker is logged whole and goes; a half-written one is left alone', async () => {
  const scratch = impatient()
  const directory = `${storeOf(scratch)}/markers`
  fs.mkdirSync(directory)
  fs.writeFileSync(`${directory}/1.json`, '{"version":2}')
  fs.writeFileSync(`${directory}/2.json.tmp`, '{"vers')
  const marker = { event: 'prompt', session: 'home-made', text: 'hello' }
  fs.writeFileSync(
    `${directory}/3.json`,
    JSON.stringify({ version: 1, id: 'x', client: 'mine', time: '2026-01-01T00:00:00Z', marker }),
  )
  expect(scratch.ckpt('list', '--session', 'home-made').turns).toMatchObject([{ n: 1, prompt: 'hello' }])
  expect(waiting(scratch)).toEqual(['2.json.tmp'])
  expect(hookLog(scratch)).toMatchObject([{ code: 'BAD_MARKER', payload: '{"version":2}' }])
})

test('a file that is too big to be a marker is logged and goes: what comes behind it is taken up', () => {
  const scratch = impatient()
  const directory = `${storeOf(scratch)}/markers`
  fs.mkdirSync(directory)
  fs.writeFileSync(`${directory}/1.json`, '')
  fs.truncateSync(`${directory}/1.json`, 3 * 2 ** 30) // sparse
  const marker = { event: 'prompt', session: 'home-made', text: 'hello' }
  const whole = { version: 1, id: 'x', client: 'mine', time: '2026-01-01T00:00:00Z', marker }
  fs.writeFileSync(`${directory}/2.json`, JSON.stringify(whole))
  expect(scratch.ckpt('list', '--session', 'home-made').turns).toMatchObject([{ n: 1, prompt: 'hello' }])
  expect(waiting(scratch)).toEqual([])
  expect(hookLog(scratch)).toMatchObject([{ code: 'BAD_MARKER', message: expect.stringContaining('3221225472 bytes') }])
})

test('one that cannot be logged stays, and stands in nobody’s way', () => {
  const scratch = impatient()
  const directory = `${storeOf(scratch)}/markers`
  fs.mkdirSync(directory)
  fs.mkdirSync(`${storeOf(scratch)}/hook.log`)
  fs.writeFileSync(`${directory}/1.json`, '{"version":2}')
  const marker = { event: 'prompt', session: 'home-made', text: 'hello' }
  const whole = { version: 1, id: 'x', client: 'mine', time: '2026-01-01T00:00:00Z', marker }
  fs.writeFileSync(`${directory}/2.json`, JSON.stringify(whole))
  expect(scratch.ckpt('snapshot').warnings).toEqual([
    'A marker that waited: recorded late.',
    'A marker that waited is not understood, and that cannot be logged: it goes on waiting.',
  ])
  expect(waiting(scratch)).toEqual(['1.json'])
})

test('many hooks against a lock that comes and goes: each marker is in the timeline exactly once', async () => {
  const scratch = impatient()
  const calls = Array.from({ length: 8 }, (_, i) => ({ tool_name: 'Bash', tool_use_id: `t${i}` }))
  await say(scratch, 'UserPromptSubmit', { prompt: 'go' })
  await held(scratch, () => Promise.all(calls.slice(0, 4).map((call) => say(scratch, 'PostToolUse', call))))
  await Promise.all([...calls, ...calls.slice(4)].map((call) => say(scratch, 'PostToolUse', call)))
  scratch.ckpt('status')
  expect(waiting(scratch)).toEqual([])
  const log = scratch.git(
    '--git-dir=.git/ckpt/store.git',
    'log',
    '--format=%(trailers:key=Ckpt-Call-Id,valueonly)',
    '--glob=refs/ckpt/@main/s/*',
  )
  expect(log.split('\n').filter(Boolean).sort()).toEqual(calls.map((call) => call.tool_use_id))
})

test.each(['running', 'ended', 'undone'])('a step that waited and is sent again is one, its turn %s', async (state) => {
  const scratch = impatient()
  const call = { tool_name: 'Bash', tool_use_id: 't1' }
  await say(scratch, 'UserPromptSubmit', { prompt: 'go' })
  scratch.write({ 'b.txt': 'two\n' })
  if (state !== 'running') await say(scratch, 'Stop')
  if (state === 'undone') scratch.ckpt('undo')
  await held(scratch, () => say(scratch, 'PostToolUse', call))
  scratch.ckpt('snapshot')
  await say(scratch, 'PostToolUse', call)
  const calls = scratch.git(
    '--git-dir=.git/ckpt/store.git',
    'log',
    '--format=%(trailers:key=Ckpt-Call-Id,valueonly)',
    '--glob=refs/ckpt/@main/s/*',
  )
  expect(calls.split('\n').filter(Boolean)).toEqual(['t1'])
})

test('a payload that never ends is left behind', async () => {
  const scratch = impatient()
  const { spawn } = await import('node:child_process')
  const { PROGRAM } = await import('../support/scratch.ts')
  const child = spawn(process.execPath, [PROGRAM, 'hook', 'claude'], {
    cwd: scratch.root,
    env: scratch.vars,
    stdio: 'pipe',
  })
  const code = await new Promise((resolve) => child.on('close', resolve))
  expect(code).toBe(0)
  expect(hookLog(scratch)).toHaveLength(1)
})

test('a fifo among the markers that wait is nobody’s marker, and no command waits for it', async () => {
  const scratch = impatient()
  fs.mkdirSync(`${storeOf(scratch)}/markers`)
  execFileSync('mkfifo', [`${storeOf(scratch)}/markers/0.json`])
  fs.symlinkSync('somebody@host.1:2', `${storeOf(scratch)}/markers/.#edited.json`) // an editor's lock
  await say(scratch, 'UserPromptSubmit', { prompt: 'go' })
  expect(scratch.ckpt('snapshot').ok).toBe(true)
  expect(scratch.ckpt('list').turns).toMatchObject([{ n: 1, prompt: 'go' }])
  expect(waiting(scratch)).toEqual(['.#edited.json', '0.json'])
})

/** Leaves markers as a program does that can only write files. */
function leave(scratch: Scratch, markers: Record<string, Json>): void {
  const directory = `${storeOf(scratch)}/markers`
  fs.mkdirSync(directory, { recursive: true })
  for (const [name, { id = name, ...marker }] of Object.entries(markers)) {
    const whole = { version: 1, id, client: 'mine', time: '2026-01-31T12:00:00.000Z', marker }
    fs.writeFileSync(`${directory}/${name}.json`, JSON.stringify(whole))
  }
}

test('one that cannot be read is told, and waits with those behind it, which may be of its turn', async () => {
  const scratch = impatient()
  leave(scratch, {
    a: { event: 'prompt', session: 'a' },
    b: { event: 'prompt', session: 'b' },
    c: { event: 'stop', session: 'b' },
  })
  const env = envOf(scratch)
  const readFileSync = ((...args: Parameters<typeof fs.readFileSync>) => {
    if (String(args[0]).endsWith('/markers/b.json')) throw Object.assign(new Error('not allowed'), { code: 'EACCES' })
    return env.files.readFileSync(...args)
  }) as typeof fs.readFileSync
  const { document } = await answer({ ...env, files: { ...env.files, readFileSync } }, 'snapshot')
  expect(document.warnings).toEqual([
    'A marker that waited: recorded late.',
    'A marker that waited cannot be taken up yet: ckpt status says why.',
  ])
  expect(waiting(scratch)).toEqual(['b.json', 'c.json'])
  expect(scratch.ckpt('list', '--session', 'b').turns).toMatchObject([{ n: 1, status: 'completed' }])
  expect(waiting(scratch)).toEqual([])
})

test('more than are looked for at once, of which two have one id and most are nothing', () => {
  const scratch = impatient()
  const ends = Array.from({ length: 105 }, (_, i) => [`m${100 + i}`, { event: 'stop', session: 'none' }] as const)
  leave(scratch, {
    ...Object.fromEntries(ends),
    m150: { event: 'prompt', session: 's', id: 'once' },
    m151: { event: 'prompt', session: 's', id: 'once' },
    m204: { event: 'prompt', session: 's', id: 'again' },
    m205: { event: 'stop', session: 's' },
  })
  expect(scratch.ckpt('snapshot').warnings).toEqual([
    '3 markers that waited: recorded late.',
    'Markers that waited are of no turn, and dropped: ckpt status names the last.',
  ])
  expect(waiting(scratch)).toEqual([])
  expect(recordedIn(scratch)).toHaveLength(4)
  leave(scratch, { m150: { event: 'prompt', session: 's', id: 'once' } })
  expect(scratch.ckpt('snapshot').warnings).toEqual([])
  expect(scratch.ckpt('list').turns).toHaveLength(2)
})

const kept = (scratch: Scratch): string[] => {
  const directory = `${storeOf(scratch)}/daemon/hooks`
  return fs.existsSync(directory) ? fs.readdirSync(directory).filter((name) => name.endsWith('.payload')) : []
}

test('what a hook tells where no git can be started is recorded by the next one, in order and once', async () => {
  const scratch = impatient()
  const PATH = `${scratch.base}/nothing`
  await say(scratch, 'UserPromptSubmit', { prompt: 'go', vars: { PATH } })
  await say(scratch, 'Stop', { vars: { PATH } })
  expect(kept(scratch)).toHaveLength(2)
  expect(recordedIn(scratch)).toEqual([])
  await say(scratch, 'UserPromptSubmit', { prompt: 'go on', prompt_id: 'p2' })
  expect(scratch.ckpt('list').turns).toMatchObject([
    { prompt: 'go on', messageId: 'p2', status: 'running' },
    { prompt: 'go', messageId: 'p1', status: 'completed' },
  ])
  expect(kept(scratch)).toEqual([])
  // What the next one cannot open either is given up.
  const linked = `${scratch.base}/linked`
  scratch.git('worktree', 'add', '-q', linked)
  scratch.ckpt('snapshot', '--cwd', linked)
  await say(scratch, 'Stop', { cwd: linked, prompt_id: 'p2', vars: { PATH } })
  expect(kept(scratch)).toHaveLength(1)
  fs.writeFileSync(`${linked}/.git`, 'nothing that git reads')
  await say(scratch, 'Stop', { prompt_id: 'p2' })
  expect(kept(scratch)).toEqual([])
  // Codex tells of a turn's end in an argument.
  const prompt = { session_id: 'c', turn_id: 't', cwd: scratch.root, hook_event_name: 'UserPromptSubmit', prompt: 'go' }
  await hook(scratch, 'codex', { payload: prompt })
  const end = { type: 'agent-turn-complete', 'thread-id': 'c', 'turn-id': 't', cwd: scratch.root }
  const event = JSON.stringify(end, null, 1)
  expect(await hook(scratch, 'codex-notify', { payload: Buffer.alloc(0), event, vars: { PATH } })).toMatchObject({
    code: 0,
  })
  expect(kept(scratch)).toHaveLength(1)
  await say(scratch, 'Stop', { prompt_id: 'p2' })
  expect(kept(scratch)).toEqual([])
  expect(scratch.ckpt('list', '--session', 'c').turns).toMatchObject([{ prompt: 'go', status: 'completed' }])
  // In a place that nobody asked to be recorded nothing is kept.
  const other = new Scratch().init()
  await say(other, 'UserPromptSubmit', { prompt: 'go', vars: { PATH } })
  expect(fs.existsSync(other.at('.git/ckpt'))).toBe(false)
})

test('a mark waits for what is left of other sessions for half of its time, and for all of its own', async () => {
  const scratch = new Scratch().init()
  scratch.ckpt('snapshot')
  const directory = `${storeOf(scratch)}/markers`
  fs.mkdirSync(directory)
  const leave = (place: number, marker: Json) => {
    const waiting = { version: 1, id: `id-${place}`, client: 'test 1', time: '2026-08-08T08:00:00.000Z', marker }
    fs.writeFileSync(`${directory}/${String(place).padStart(15, '0')}-x.json`, JSON.stringify(waiting))
  }
  for (const [at, session] of ['other', 'other', 'own', 'parent'].entries()) {
    leave(2 * at, { event: 'prompt', session, text: `${session} ${at}` })
    leave(2 * at + 1, { event: 'stop', session })
  }
  // The first two that are taken up take more than half of what a mark has.
  let passed = 0
  const { files, ...env } = envOf(scratch)
  const unlinkSync = (path: string) => {
    if (path.startsWith(`${directory}/`)) passed = Math.min(12_000, passed + 6000)
    files.unlinkSync(path)
  }
  const late = { ...env, files: { ...files, unlinkSync } as typeof files, monotonic: () => performance.now() + passed }
  const mark = ['mark', 'prompt', '--session', 'own', '--parent', 'parent', '--text', 'now']
  const { document } = await answer(late, ...mark)
  expect(document.warnings).toEqual([
    '6 markers that waited: recorded late.',
    '2 markers wait on: recorded by a later command.',
  ])
  const prompts = (session: string) => scratch.ckpt('list', '--session', session).turns.map((one: Json) => one.prompt)
  expect(waiting(scratch)).toHaveLength(2)
  expect(prompts('other')).toEqual(['other 1', 'other 0'])
  expect(prompts('own')).toEqual(['now', 'own 2'])
  expect(prompts('parent')).toEqual(['parent 3'])
  expect(waiting(scratch)).toEqual([])
})

test('an end of no turn that somebody left is dropped and told of; one that a hook left is nothing', async () => {
  const scratch = impatient()
  const leave = (name: string, marker: Json) => {
    fs.mkdirSync(`${storeOf(scratch)}/markers`, { recursive: true })
    const one = { version: 1, id: name, client: 'mine', time: new Date().toISOString(), marker }
    fs.writeFileSync(`${storeOf(scratch)}/markers/${name}`, JSON.stringify(one))
  }
  leave('a.json', { event: 'stop', session: 'mine' })
  leave('b.json', { event: 'prompt', session: 'mine' })
  await held(scratch, () => say(scratch, 'Stop', { session_id: 'other' }))
  expect(waiting(scratch)).toHaveLength(3)
  const { warnings, turns } = scratch.ckpt('list', '--all-sessions')
  expect(warnings).toEqual([
    'A marker that waited: recorded late.',
    'Markers that waited are of no turn, and dropped: ckpt status names the last.',
  ])
  expect([turns.map(({ session }: Json) => session), waiting(scratch)]).toEqual([['mine'], []])
  expect(hookLog(scratch)).toMatchObject([{ where: 'marker a.json', code: 'NOT_FOUND' }])
  expect(scratch.run(['status']).stdout).toContain('marker a.json')
})

test('a link among the markers is none: nothing of what it leads to is read', () => {
  const scratch = impatient()
  scratch.write({ 'secret.txt': 'a secret\n' })
  fs.mkdirSync(`${storeOf(scratch)}/markers`, { recursive: true })
  fs.symlinkSync(scratch.at('secret.txt'), `${storeOf(scratch)}/markers/c.json`)
  expect(scratch.ckpt('list').warnings).toEqual([])
  expect(fs.existsSync(`${storeOf(scratch)}/hook.log`)).toBe(false)
})

test('a second copy of what came to nothing ends no turn that began between the two', () => {
  const scratch = impatient()
  scratch.turn('one', () => scratch.write({ 'b.txt': 'one\n' }), 's')
  const end = { event: 'stop', session: 's', id: 'end', onlyRunning: true }
  leave(scratch, { a: end, b: { event: 'prompt', session: 's', id: 'two', text: 'two' }, c: end })
  scratch.ckpt('snapshot')
  expect(scratch.ckpt('list').turns).toMatchObject([{ n: 2, status: 'running' }, { n: 1 }])
  expect(waiting(scratch)).toEqual([])
})

test('an old directory that is named as what is being written holds up no marker', () => {
  const scratch = impatient()
  const directory = `${storeOf(scratch)}/markers/x.tmp`
  fs.mkdirSync(directory, { recursive: true })
  fs.utimesSync(directory, 1, 1)
  leave(scratch, { a: { event: 'prompt', session: 's', id: 'one', text: 'one' } })
  expect(scratch.ckpt('list').turns).toMatchObject([{ n: 1, status: 'running' }])
})

test('of a copy that was overtaken nothing is recorded, and the other one is all the same', () => {
  const scratch = impatient()
  scratch.ckpt('mark', 'prompt', '--session', 's', '--marker', 'p')
  const end = { event: 'stop', session: 's', id: 'end', onlyRunning: true, status: 'interrupted' }
  leave(scratch, { a: { ...end, handedAt: '2020-01-01T00:00:00.000Z' }, b: end })
  scratch.ckpt('snapshot')
  expect(scratch.ckpt('list').turns).toMatchObject([{ n: 1, status: 'interrupted' }])
  expect(waiting(scratch)).toEqual([])
})
