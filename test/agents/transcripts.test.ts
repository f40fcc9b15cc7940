// Turns whose hooks did not run, from the agent's own record. The records here are of Claude Code, and what is done to them.
import { execFileSync, spawnSync } from 'node:child_process'
import fs from 'node:fs'
import path from 'node:path'
import { expect, onTestFinished, test } from 'vitest'
import { ClaudeTranscript } from '../../src/agents/claude-transcript.ts'
import { findAgent } from '../../src/agents/registry.ts'
import { GrowingFile, linesWith } from '../../src/agents/transcript.ts'
import { TranscriptWatch } from '../../src/agents/transcript-watch.ts'
import { realEnv } from '../../src/env.ts'
import { hook, hookLog } from '../support/agents.ts'
import { amid } from '../support/amid.ts'
import { startDaemon } from '../support/daemon.ts'
import { answer, envOf } from '../support/in-process.ts'
import { isRoot, type Json, PROGRAM, Scratch } from '../support/scratch.ts'

const DATA = path.resolve(import.meta.dirname, '../data/transcripts')
const SESSION = '519ca2a3-d7c8-46f4-a5c7-d5399746c2d5'
const FORK = '22f9b9a9-80a9-4c5a-af09-4419f4fb37ff'
const [ONE, TWO, THREE] = [
  '0fc09f50-9048-47cb-b191-74d70461d5b1',
  '6a1b3e5c-5e89-4e92-8cd2-fa1eec1447df',
  '8a8fc3e7-79cc-478a-81dc-930dc13c21ef',
]

/** What the hooks of its two turns call them. */
const [FIRST, SECOND] = ['145e6229-97a2-4bd0-ac30-adb33d638c62', '4bb67091-0c3c-4ef6-b6d1-4984c3ef5bbf']

/** A record as a file of this place. */
function transcript(scratch: Scratch, name: string): string {
  const text = fs.readFileSync(path.join(DATA, `claude-${name}.jsonl`), 'utf8').replaceAll('$WORK', scratch.root)
  const file = path.join(scratch.home, `${name}.jsonl`)
  fs.writeFileSync(file, text)
  return file
}

/** The same, as if it were said now. */
const newLines = (scratch: Scratch): string[] =>
  fs
    .readFileSync(transcript(scratch, 'two-turns'), 'utf8')
    .trimEnd()
    .split('\n')
    .map((line) =>
      line.replace(/"timestamp":"[^"]*"/, () => `"timestamp":"${new Date(Date.now() + 60_000).toISOString()}"`),
    )

const outcomes = (scratch: Scratch, file: string): [number | null, string][] =>
  scratch.ckpt('import-transcript', 'claude', file).prompts.map((one: Json) => [one.turn, one.outcome])

const say = (scratch: Scratch, hook_event_name: string, more: Json = {}) =>
  hook(scratch, 'claude', { payload: { session_id: SESSION, cwd: scratch.root, hook_event_name, ...more } })

test('prompts, message ids and the tree of a conversation; the file is only read', () => {
  const scratch = new Scratch().init()
  const file = transcript(scratch, 'two-turns')
  const bytes = fs.readFileSync(file)
  const { atimeNs: _, ...stats } = fs.statSync(file, { bigint: true })
  const { prompts } = scratch.ckpt('import-transcript', 'claude', file)
  expect(prompts).toMatchObject([
    { session: SESSION, turn: 1, outcome: 'recorded', messageId: ONE, parent: null, end: 'completed' },
    { session: SESSION, turn: 2, outcome: 'recorded', messageId: TWO, parent: ONE, end: 'completed' },
  ])
  const { turns } = scratch.ckpt('list')
  expect(turns.map((turn: Json) => [turn.n, turn.status, turn.messageId, turn.prompt.slice(0, 8)])).toEqual([
    [2, 'completed', TWO, '[turn 2]'],
    [1, 'completed', ONE, '[turn 1]'],
  ])
  expect(outcomes(scratch, file)).toEqual([
    [1, 'known'],
    [2, 'known'],
  ])
  expect(fs.readFileSync(file)).toEqual(bytes)
  expect(fs.statSync(file, { bigint: true })).toMatchObject(stats)
})

test('a record that an editor put a byte order mark before has the same prompts', () => {
  const scratch = new Scratch().init()
  const file = transcript(scratch, 'two-turns')
  fs.writeFileSync(file, `\uFEFF${fs.readFileSync(file, 'utf8').split('\n').slice(2).join('\n')}`)
  expect(outcomes(scratch, file)).toEqual([
    [1, 'recorded'],
    [2, 'recorded'],
  ])
})

test('each prompt has a deadline of its own, however long the whole takes', async () => {
  const scratch = new Scratch().init()
  let passed = 0
  const env = {
    ...envOf(scratch),
    monotonic: () => performance.now() + passed,
    progress: async () => {
      passed += 60_000 // as where the record is long
    },
  }
  const file = transcript(scratch, 'two-turns')
  expect((await answer(env, 'import-transcript', 'claude', file)).document.prompts).toHaveLength(2)
  for (const turn of ['1:before', '2:before', '2:after'])
    expect(scratch.ckpt('show', turn).checkpoint, turn).toMatchObject({ degraded: false })
  expect(scratch.run(['show', '2:after']).stdout).not.toContain('Not covered')
})

test('what hooks recorded is known; a prompt that they did not hear is added to its turn', async () => {
  const scratch = new Scratch().init()
  await say(scratch, 'UserPromptSubmit', { prompt_id: FIRST, prompt: 'one' })
  await say(scratch, 'Stop', { prompt_id: FIRST })
  const unheard = { prompt_id: SECOND, tool_name: 'Bash', tool_use_id: 't1' }
  await say(scratch, 'PreToolUse', unheard)
  expect(outcomes(scratch, transcript(scratch, 'two-turns'))).toEqual([
    [1, 'known'],
    [2, 'described'],
  ])
  expect(scratch.ckpt('show', '2').turn.text).toMatch(/^\[turn 2\] Edit hello.txt/)
  expect(scratch.ckpt('show', '1').turn.text).toBe('one')
})

test('a turn that lies before one that is recorded is passed over: numbers keep their order', async () => {
  const scratch = new Scratch().init()
  await say(scratch, 'UserPromptSubmit', { prompt_id: SECOND, prompt: 'two' })
  expect(outcomes(scratch, transcript(scratch, 'two-turns'))).toEqual([
    [null, 'passed-over'],
    [1, 'known'],
  ])
})

/** The same record as it was while its last turn was at work. */
function unended(scratch: Scratch): string {
  const file = transcript(scratch, 'two-turns')
  const lines = fs.readFileSync(file, 'utf8').split('\n')
  const end = lines.findLastIndex((line) => line.includes('"end_turn"'))
  fs.writeFileSync(file, `${lines.slice(0, end).join('\n')}\n`)
  return file
}

test('a turn that may still be at work is left out, and its work stays its own', async () => {
  const scratch = new Scratch().init()
  await say(scratch, 'UserPromptSubmit', { prompt_id: FIRST, prompt: 'one' })
  await say(scratch, 'Stop', { prompt_id: FIRST })
  const { prompts, warnings } = scratch.ckpt('import-transcript', 'claude', unended(scratch))
  expect(prompts.map((one: Json) => [one.turn, one.outcome])).toEqual([
    [1, 'known'],
    [null, 'at-work'],
  ])
  expect(warnings.join()).toMatch(/still be at work.*import/)
  const call = { prompt_id: SECOND, tool_name: 'Write', tool_use_id: 't1', tool_input: { file_path: scratch.at('t1') } }
  await say(scratch, 'PreToolUse', call)
  scratch.write({ t1: 'by the agent\n' })
  await say(scratch, 'PostToolUse', call)
  await say(scratch, 'Stop', { prompt_id: SECOND })
  scratch.ckpt('undo')
  expect(scratch.exists('t1')).toBe(false)
})

test('an import clears no boundary: what is undone can be redone', async () => {
  const scratch = new Scratch().init()
  await say(scratch, 'UserPromptSubmit', { prompt_id: FIRST, prompt: 'one' })
  scratch.write({ 'made.txt': 'made\n' })
  await say(scratch, 'Stop', { prompt_id: FIRST })
  scratch.ckpt('undo')
  const file = transcript(scratch, 'two-turns')
  const { warnings } = scratch.ckpt('import-transcript', 'claude', file)
  expect(warnings).toMatchObject([expect.stringContaining('are undone: ckpt redo or ckpt accept')])
  expect(outcomes(scratch, file)).toEqual([
    [1, 'known'],
    [null, 'pending'],
  ])
  scratch.ckpt('redo')
  expect(scratch.read('made.txt')).toBe('made\n')
  expect(outcomes(scratch, file)).toEqual([
    [1, 'known'],
    [2, 'recorded'],
  ])
})

test('a last turn without an end is an interrupted one where nothing was written for an hour', () => {
  const scratch = new Scratch().init()
  const file = unended(scratch)
  const longAgo = Date.now() / 1000 - 3700
  fs.utimesSync(file, longAgo, longAgo)
  expect(outcomes(scratch, file)).toEqual([
    [1, 'recorded'],
    [2, 'recorded'],
  ])
  expect(scratch.ckpt('list').turns.map(({ status }: Json) => status)).toEqual(['interrupted', 'completed'])
})

test('a running turn is closed by no prompt that the record has after it', async () => {
  const scratch = new Scratch().init()
  await say(scratch, 'UserPromptSubmit', { prompt_id: FIRST, prompt: 'one' })
  const file = transcript(scratch, 'two-turns')
  expect(outcomes(scratch, file)).toEqual([
    [1, 'known'],
    [null, 'at-work'],
  ])
  expect(scratch.ckpt('list').turns).toMatchObject([{ n: 1, status: 'running' }])
  await say(scratch, 'Stop', { prompt_id: FIRST })
  expect(outcomes(scratch, file)).toEqual([
    [1, 'known'],
    [2, 'recorded'],
  ])
})

test("a fork takes its parent's prompts along: they are the parent's", () => {
  const scratch = new Scratch().init()
  outcomes(scratch, transcript(scratch, 'two-turns'))
  expect(outcomes(scratch, transcript(scratch, 'fork'))).toEqual([
    [1, 'of-parent'],
    [2, 'of-parent'],
    [1, 'recorded'],
  ])
  const { sessions } = scratch.ckpt('list', '--sessions')
  const fork = sessions.find((one: Json) => one.id === FORK)
  expect(fork).toMatchObject({ parent: SESSION, turns: 1 })
  expect(scratch.ckpt('list', '--session', FORK).turns[0].messageId).toBe(THREE)
})

test('a fork that gives what it took along the id of its own prompt (Claude Code 2.1.330)', async () => {
  const scratch = new Scratch().init()
  const parent = transcript(scratch, '2.1.330-two-turns')
  const fork = transcript(scratch, '2.1.330-fork')
  const lines = (file: string): Json[] =>
    fs
      .readFileSync(file, 'utf8')
      .trimEnd()
      .split('\n')
      .map((line) => JSON.parse(line))
  const said = lines(fork).filter(({ turnPosition }) => turnPosition)
  const own = said.at(-1)
  expect(said.map((line) => line.promptId === own.promptId)).toEqual([true, true, true])
  const [{ sessionId: session }] = lines(parent)
  expect([outcomes(scratch, parent), outcomes(scratch, fork)]).toEqual([
    [
      [1, 'recorded'],
      [2, 'recorded'],
    ],
    [
      [1, 'of-parent'],
      [2, 'of-parent'],
      [1, 'recorded'],
    ],
  ])
  const { sessions } = scratch.ckpt('list', '--sessions')
  expect(sessions.find((one: Json) => one.id === own.sessionId)).toMatchObject({ parent: session, turns: 1 })
  expect(scratch.ckpt('list', '--session', own.sessionId).turns[0].messageId).toBe(own.uuid)
  // The fork first: what it took along are turns of its parent all the same.
  const turned = new Scratch().init()
  const both = (...names: string[]) => names.map((name) => outcomes(turned, transcript(turned, `2.1.330-${name}`)))
  expect(both('fork', 'two-turns', 'fork')).toEqual([
    [
      [1, 'recorded'],
      [2, 'recorded'],
      [1, 'recorded'],
    ],
    [
      [1, 'known'],
      [2, 'known'],
    ],
    [
      [1, 'of-parent'],
      [2, 'of-parent'],
      [1, 'known'],
    ],
  ])
  expect(turned.ckpt('list', '--sessions').sessions).toMatchObject([
    { id: own.sessionId, parent: session, turns: 1 },
    { id: session, parent: null, turns: 2 },
  ])
  // The same from its hooks, of which only the first knows that it is a fork, and the transcript is not there yet.
  const other = new Scratch().init()
  other.ckpt('init')
  const hooks = async (hook_event_name: string, more: Json = {}) =>
    hook(other, 'claude', {
      payload: {
        session_id: own.sessionId,
        cwd: other.root,
        hook_event_name,
        transcript_path: fork,
        ...more,
      },
    })
  const away = `${fork}.away`
  fs.renameSync(fork, away)
  await hooks('SessionStart', { source: 'fork' })
  await hooks('UserPromptSubmit', { prompt_id: own.promptId, prompt: own.message.content })
  fs.renameSync(away, fork)
  await hooks('Stop', { prompt_id: own.promptId })
  expect(other.ckpt('list', '--sessions').sessions).toMatchObject([{ id: own.sessionId, parent: session }])
  expect(other.ckpt('list').turns).toMatchObject([{ messageId: own.uuid, prompt: '[turn 3] Write three.txt.' }])
  expect(hookLog(other)).toEqual([])
})

test('news of a task in the background are no prompt; where hooks told of none, its turn is one of its own', async () => {
  const scratch = new Scratch().init()
  const file = transcript(scratch, '2.1.330-background')
  const { prompts } = scratch.ckpt('import-transcript', 'claude', file)
  expect(prompts.map((one: Json) => [one.turn, one.outcome, one.text.slice(0, 8)])).toEqual([
    [1, 'recorded', '[turn 1]'],
    [2, 'recorded', '[turn 2]'],
  ])
  expect(prompts[1].parent).toBe(prompts[0].messageId)
  const reader = new ClaudeTranscript()
  reader.add(fs.readFileSync(file, 'utf8'))
  expect(reader.prompts.map(({ text, notice, end }) => [text.slice(0, 25), notice, end])).toEqual([
    ['[turn 1] Let a subagent w', false, 'completed'],
    ['Agent "scripted" finished', true, 'completed'],
    ['[turn 2] Write two.txt.', false, 'completed'],
  ])
})

test('words that were to be said later are a prompt; what stands after a turn that died is no end of it', () => {
  const reader = new ClaudeTranscript()
  const rows = [
    { type: 'user', uuid: 'a', promptId: 'p1', message: { content: 'watch it' } },
    { type: 'assistant', uuid: 'b', message: { content: [], stop_reason: 'end_turn' } },
    { type: 'user', uuid: 'c', promptId: 'p2', isMeta: true, turnOrigin: 'scheduled', message: { content: 'look' } },
    { type: 'assistant', uuid: 'd', message: { content: [], stop_reason: 'tool_use' } },
    { type: 'user', uuid: 'e', promptId: 'p3', isMeta: true, message: { content: 'Stop hook feedback' } },
    { type: 'assistant', uuid: 'f', message: { content: [], stop_reason: 'stop_sequence', model: '<synthetic>' } },
  ]
  for (const [i, row] of rows.entries())
    reader.add(`${JSON.stringify({ sessionId: SESSION, parentUuid: rows[i - 1]?.uuid ?? null, ...row })}\n`)
  expect(reader.prompts.map(({ messageId, text, notice, end }) => [messageId, text, notice, end])).toEqual([
    ['a', 'watch it', false, 'completed'],
    ['c', 'look', false, null],
  ])
})

test('damaged lines are passed over, an interrupt is one, and no prompt at all is refused', () => {
  const scratch = new Scratch().init()
  const file = transcript(scratch, 'two-turns')
  const lines = fs.readFileSync(file, 'utf8').split('\n')
  const last = lines.findLast((line) => line.includes('"type":"assistant"') && line.includes('end_turn'))!
  const { uuid, sessionId } = JSON.parse(last)
  const cut = {
    type: 'user',
    uuid: 'x',
    parentUuid: uuid,
    sessionId,
    promptId: 'p',
    message: { content: '[Request interrupted by user]' },
  }
  const damaged = ['{"type":"user"', 'null', '[]', ...lines, '\u0000', JSON.stringify(cut), '{"uuid":']
  const reader = new ClaudeTranscript()
  // In pieces, as a file that grows is read.
  for (const piece of damaged.join('\n').match(/[\s\S]{1,777}/g)!) reader.add(piece)
  expect(reader.prompts.map(({ messageId, end }) => [messageId, end])).toEqual([
    [ONE, 'completed'],
    [TWO, 'interrupted'],
  ])
  fs.writeFileSync(file, '{}\n')
  expect(scratch.tryCkpt('import-transcript', 'claude', file).code).toBe(2)
  expect(scratch.tryCkpt('import-transcript', 'gemini', file).code).toBe(2)
  expect(scratch.ckpt('list').turns).toEqual([])
})

test('the summary that a compaction leaves is no prompt', async () => {
  const scratch = new Scratch().init()
  const file = transcript(scratch, 'compact')
  expect(outcomes(scratch, file)).toEqual([
    [1, 'recorded'],
    [2, 'recorded'],
  ])
  const lines = fs.readFileSync(file, 'utf8').trimEnd().split('\n')
  const { promptId, uuid } = JSON.parse(lines.find((line) => line.includes('"isCompactSummary":true'))!)
  const { messageIdIn } = (await findAgent('claude'))!
  expect(messageIdIn!(lines, promptId)).not.toBe(uuid)
})

test.each([
  ['that names the last line', (last: string) => ({ logicalParentUuid: last })],
  ['that names a line which was not written down', () => ({ logicalParentUuid: 'nowhere' })],
  ['of an older kind', () => ({})],
])('a turn goes on behind a compaction amid it %s', (_, more) => {
  const line = (uuid: string, parentUuid: string | null, rest: Json) =>
    `${JSON.stringify({ uuid, parentUuid, sessionId: SESSION, ...rest })}\n`
  const user = (promptId: string, content: string, rest: Json = {}) => ({
    type: 'user',
    promptId,
    message: { content },
    ...rest,
  })
  const answer = (stop_reason: string) => ({ type: 'assistant', message: { stop_reason, content: [] } })
  const reader = new ClaudeTranscript()
  reader.add(line('u1', null, user('p1', 'one')) + line('a1', 'u1', answer('tool_use')))
  reader.add(line('c1', null, { type: 'system', subtype: 'compact_boundary', ...more('a1') }))
  reader.add(line('s1', 'c1', user('p1', 'This session is being continued', { isCompactSummary: true })))
  reader.add(line('a2', 's1', answer('end_turn')))
  const seen = () => reader.prompts.map(({ text, parent, end }) => [text, parent, end])
  expect(seen()).toEqual([['one', null, 'completed']])
  reader.add(line('u2', 'a2', user('p2', 'Caveat: leave the tests alone')))
  reader.add(line('i2', 'u2', user('p2', '[Request interrupted by user]')))
  reader.add(line('u3', 'i2', user('p3', '<command-line> flags, please')))
  reader.add(line('a3', 'u3', { ...answer('stop_sequence'), isApiErrorMessage: true }))
  expect(seen()).toEqual([
    ['one', null, 'completed'],
    ['Caveat: leave the tests alone', 'u1', 'interrupted'],
    ['<command-line> flags, please', 'u2', 'failed'],
  ])
})

test('a turn that Claude Code compacted amid its work ends where it ended (2.1.332)', () => {
  const scratch = new Scratch().init()
  const { prompts } = scratch.ckpt('import-transcript', 'claude', transcript(scratch, '2.1.332-compacted'))
  expect(prompts).toMatchObject([{ text: '[turn 1] Create files.', outcome: 'recorded', end: 'completed' }])
})

test('a record of an older version, which names no prompts, has them; a time that is none is left out', () => {
  const scratch = new Scratch().init()
  const file = transcript(scratch, 'two-turns')
  const old = fs.readFileSync(file, 'utf8').replaceAll(/"promptId":"[^"]*",/g, '')
  fs.writeFileSync(file, old.replace(/"timestamp":"[^"]*"/g, '"timestamp":"yesterday"'))
  const read = () => scratch.ckpt('import-transcript', 'claude', file).prompts
  expect(read()).toMatchObject([
    { turn: 1, outcome: 'recorded', messageId: ONE, end: 'completed', time: null },
    { turn: 2, outcome: 'recorded', messageId: TWO, end: 'completed', time: null },
  ])
  expect(read()).toMatchObject([{ outcome: 'known' }, { outcome: 'known' }])
})

test("a command of the person's own is a prompt, one of Claude Code's is none", async () => {
  const scratch = new Scratch().init()
  const file = transcript(scratch, 'command')
  const lines = fs.readFileSync(file, 'utf8').trimEnd().split('\n')
  const at = lines.findIndex((line) => line.includes('<command-name>/foo'))
  const { uuid, promptId } = JSON.parse(lines[at]!)
  const reader = new ClaudeTranscript()
  const read = () => reader.prompts.map(({ messageId, text, end }) => [messageId === uuid, text, end])
  const first = [false, '[turn 1] Create hello.txt', 'completed']
  reader.add(`${lines.slice(0, at + 1).join('\n')}\n`)
  expect(read()).toEqual([first])
  // What it tells the model; its work follows that.
  reader.add(`${lines.slice(at + 1, -2).join('\n')}\n`)
  expect(read()).toEqual([first, [true, '/foo bar', null]])
  const { uuid: parentUuid, sessionId } = JSON.parse(lines.at(-3)!)
  const cut = { type: 'user', uuid: 'x', parentUuid, sessionId, promptId }
  reader.add(`${JSON.stringify({ ...cut, message: { content: '[Request interrupted by user]' } })}\n`)
  expect(read()).toEqual([first, [true, '/foo bar', 'interrupted']])
  expect(outcomes(scratch, file)).toEqual([
    [1, 'recorded'],
    [2, 'recorded'],
  ])
  expect(scratch.ckpt('show', '2').turn.text).toBe('/foo bar')
})

test('the turn of a built-in command has no words for the model, whatever stands around it', () => {
  const said = (uuid: string, parentUuid: string | null, content: string, more: Json = {}) =>
    JSON.stringify({ type: 'user', uuid, parentUuid, promptId: 'p', sessionId: SESSION, message: { content }, ...more })
  const reader = new ClaudeTranscript()
  const lines = [
    said('a', null, '<local-command-caveat>Caveat: x</local-command-caveat>', { isMeta: true }),
    said('b', 'a', '<command-name>/model</command-name>\n<command-args></command-args>'),
    said('c', 'b', '<local-command-stdout>Set</local-command-stdout>'),
    said('d', 'c', 'of something else', { isMeta: true }),
    said('e', 'd', '<command-name>/clear</command-name>'),
    said('f', 'e', '<local-command-caveat>Caveat: x</local-command-caveat>', { isMeta: true }),
    said('g', 'f', 'a real one', { promptId: 'q' }),
    said('h', 'g', 'of the real one', { isMeta: true, promptId: 'q' }),
  ]
  reader.add(`${lines.join('\n')}\n`)
  expect(reader.prompts.map(({ text }) => text)).toEqual(['a real one'])
})

test('a line of an impossible session is passed over, and what stands beside it is read', () => {
  const scratch = new Scratch().init()
  const file = transcript(scratch, 'two-turns')
  const lines = fs.readFileSync(file, 'utf8').trimEnd().split('\n')
  const asked = JSON.parse(lines.find((line) => line.includes(ONE))!)
  const odd = ['', 'x\ny', 'x'.repeat(1025), '\ud800'].map((sessionId, i) =>
    JSON.stringify({ ...asked, sessionId, uuid: `u${i}`, promptId: `p${i}` }),
  )
  fs.writeFileSync(file, `${[...odd, ...lines].join('\n')}\n`)
  expect(outcomes(scratch, file)).toEqual([
    [1, 'recorded'],
    [2, 'recorded'],
  ])
})

test('what is no file is refused, and not waited for', () => {
  const scratch = new Scratch().init()
  const pipe = path.join(scratch.home, 'pipe')
  execFileSync('mkfifo', [pipe])
  for (const file of [scratch.home, pipe]) {
    const line = [PROGRAM, 'import-transcript', 'claude', file, '--json']
    const { status, stdout } = spawnSync(process.execPath, line, {
      cwd: scratch.root,
      env: scratch.vars,
      encoding: 'utf8',
      timeout: 20_000,
    })
    const { error } = JSON.parse(stdout || '{}')
    expect([file, status, error?.code]).toEqual([file, 2, 'USAGE'])
    expect(error.message).toMatch(/no file.*Nothing was recorded/)
  }
  expect(scratch.ckpt('list').turns).toEqual([])
})

test('a file of some gigabytes is read, and a line that is no message passed over', () => {
  const scratch = new Scratch().init()
  const file = transcript(scratch, 'two-turns')
  fs.truncateSync(file, 2 ** 31 + 4096) // a hole: zeros
  expect(outcomes(scratch, file)).toEqual([
    [1, 'recorded'],
    [2, 'recorded'],
  ])
})

test('of a turn of many megabytes the first line is found, and of others not even the last ones are looked for', () => {
  const scratch = new Scratch()
  const file = scratch.at('long.jsonl')
  const output = 'x'.repeat(2 ** 20)
  const line = (promptId: string, uuid: number) => `${JSON.stringify({ promptId, uuid, output })}\n`
  const count = 40
  fs.writeFileSync(file, [line('before', -1), ...Array.from({ length: count }, (_, i) => line('p1', i))].join(''))
  const found = (words: string) => linesWith(realEnv(), file, words).map((one) => JSON.parse(one).uuid)
  expect(found('p1')).toEqual(Array.from({ length: count }, (_, i) => i))
  expect(found('before')).toEqual([])
})

test('a turn of many lines is not walked for each of them, whether its prompt was read or not', () => {
  const line = (n: number, more: Json) => JSON.stringify({ uuid: `u${n}`, parentUuid: `u${n - 1}`, ...more })
  const asked = line(1, { type: 'user', promptId: 'p', sessionId: SESSION, message: { content: 'long' } })
  const answers = Array.from({ length: 20_000 }, (_, i) => line(i + 2, { type: 'assistant', message: {} }))
  const last = line(20_002, { type: 'assistant', message: { stop_reason: 'end_turn' } })
  const { get } = Map.prototype
  for (const prompts of [[asked], []]) {
    const reader = new ClaudeTranscript()
    let left = 20 * answers.length
    Map.prototype.get = function (key) {
      if (--left < 0) throw new Error('more steps than lines, by far')
      return get.call(this, key)
    }
    try {
      reader.add(`${[...prompts, ...answers, last].join('\n')}\n`)
    } finally {
      Map.prototype.get = get
    }
    expect(reader.prompts.map(({ end }) => end)).toEqual(prompts.map(() => 'completed'))
  }
})

test('lines that come before those above them, and lines in a circle', () => {
  const line = (uuid: string, parentUuid: string | null, more: Json) => JSON.stringify({ uuid, parentUuid, ...more })
  const ended = { type: 'assistant', message: { stop_reason: 'end_turn' } }
  const reader = new ClaudeTranscript()
  const lines = [
    line('c', 'b', { type: 'assistant' }),
    line('b', 'a', { type: 'assistant' }),
    line('a', null, { type: 'user', promptId: 'p', sessionId: SESSION, message: { content: 'asked' } }),
    line('x', 'y', { type: 'assistant' }),
    line('y', 'x', ended),
    line('z', 'z', ended),
  ]
  reader.add(`${lines.join('\n')}\n`)
  expect(reader.prompts.map(({ end }) => end)).toEqual([null])
  reader.add(`${line('d', 'c', ended)}\n`)
  expect(reader.prompts.map(({ end }) => end)).toEqual(['completed'])
})

test('while a daemon runs, a turn that no hook tells of is recorded as it is written down', async () => {
  const scratch = new Scratch().init()
  const directory = path.join(scratch.home, '.claude/projects', scratch.root.replaceAll(/[^A-Za-z0-9]/g, '-'))
  fs.mkdirSync(directory, { recursive: true })
  startDaemon(scratch)
  const lines = newLines(scratch)
  const file = path.join(directory, `${SESSION}.jsonl`)
  const write = (from: number, to: number) => fs.appendFileSync(file, `${lines.slice(from, to).join('\n')}\n`)
  const first = lines.findIndex((line) => line.includes(ONE))
  const second = lines.findIndex((line) => line.includes(`"uuid":"${TWO}"`))
  const until = async (status: string, n: number) => {
    for (let i = 0; i < 200; i++) {
      const [turn] = scratch.ckpt('list').turns
      if (turn?.n === n && turn.status === status) return
      await new Promise((resolve) => setTimeout(resolve, 100))
    }
    throw new Error(`turn ${n} is not ${status}: ${JSON.stringify(scratch.ckpt('list').turns)}`)
  }
  // The watch stands a moment after the daemon does.
  await new Promise((resolve) => setTimeout(resolve, 1000))
  write(0, first + 1)
  await until('running', 1)
  scratch.write({ 'by-agent.txt': 'x' })
  write(first + 1, second)
  await until('completed', 1)
  write(second, lines.length)
  await until('completed', 2)
  scratch.ckpt('undo', '--to', '1')
  expect(scratch.exists('by-agent.txt')).toBe(false)
})

test('while a daemon runs, the transcript tells what hooks left out: words, message ids, whose fork it is', async () => {
  const scratch = new Scratch().init()
  const directory = path.join(scratch.home, '.claude/projects', scratch.root.replaceAll(/[^A-Za-z0-9]/g, '-'))
  fs.mkdirSync(directory, { recursive: true })
  startDaemon(scratch)
  await new Promise((resolve) => setTimeout(resolve, 1000))
  const time = new Date(Date.now() + 60_000).toISOString()
  const write = (session: string, rows: Json[]) => {
    const lines = rows.map((row) =>
      JSON.stringify({ sessionId: session, cwd: scratch.root, timestamp: time, parentUuid: null, ...row }),
    )
    fs.appendFileSync(path.join(directory, `${session}.jsonl`), `${lines.join('\n')}\n`)
  }
  const turns = () =>
    scratch.ckpt('list', '--all-sessions').turns.map((turn: Json) => [turn.prompt, turn.messageId, turn.status])
  const line = (uuid: string, promptId: string, text: string, more: Json = {}) => ({
    ...{ type: 'user', uuid, promptId, message: { content: text } },
    ...more,
  })
  const step = { tool_name: 'Bash', tool_use_id: 't1', prompt_id: 'p2' }
  // A message that was sent while the agent spoke came with the id of the turn before; its own is heard at a tool call.
  await say(scratch, 'UserPromptSubmit', { prompt_id: 'p1', prompt: 'one' })
  await say(scratch, 'UserPromptSubmit', { prompt_id: 'p1', prompt: 'two' })
  await say(scratch, 'Stop', { prompt_id: 'p1' })
  await say(scratch, 'PreToolUse', step)
  write(SESSION, [line('u2', 'p2', 'two')])
  await expect.poll(turns, { timeout: 20_000 }).toContainEqual(['two', null, 'running'])
  write(SESSION, [line('u3', 'p2', '[Request interrupted by user for tool use]', { parentUuid: 'u2' })])
  await expect.poll(turns, { timeout: 20_000 }).toContainEqual(['two', 'u2', 'interrupted'])
  write(FORK, [line('u2', 'p2', 'two'), line('u4', 'p4', 'three', { parentUuid: 'u2' })])
  await expect.poll(turns, { timeout: 20_000 }).toContainEqual(['three', 'u4', 'running'])
  const { sessions } = scratch.ckpt('list', '--sessions')
  expect(sessions.find((one: Json) => one.id === FORK)).toMatchObject({ parent: SESSION, turns: 1 })
  expect(turns()).toHaveLength(3)
})

/** A watch of a scratch's transcripts, and how many turns it saw in one of them. */
async function watched(scratch: Scratch) {
  const directory = path.join(scratch.home, '.claude/projects', scratch.root.replaceAll(/[^A-Za-z0-9]/g, '-'))
  fs.mkdirSync(directory, { recursive: true })
  const agent = (await findAgent('claude'))!
  const done = { seen: 0, events: 0, file: path.join(directory, `${SESSION}.jsonl`) }
  const watch = new TranscriptWatch(
    { ...realEnv(), home: scratch.home, vars: scratch.vars },
    {
      agent: { ...agent, transcripts: agent.transcripts! },
      root: scratch.root,
      inTurn: async () => {
        done.seen++
      },
      onEvent: () => done.events++,
      log: (...said) => expect.fail(JSON.stringify(said)),
    },
  )
  onTestFinished(() => watch.stop())
  return { watch, done }
}

test('each event of a transcript is told: it had its room in the queue of all watches', async () => {
  const scratch = new Scratch().init()
  const { watch, done } = await watched(scratch)
  const files = [done.file, `${path.dirname(done.file)}/other.jsonl`]
  for (const file of files) fs.writeFileSync(file, '')
  await watch.start()
  // In turns: the kernel takes two in a row that are the same for one.
  for (let i = 0; i < 100; i++) fs.appendFileSync(files[i % 2]!, '{}\n')
  await expect.poll(() => done.events).toBeGreaterThanOrEqual(100)
})

test('a prompt far behind the beginning of a new transcript is seen', async () => {
  const scratch = new Scratch().init()
  const { watch, done } = await watched(scratch)
  await watch.start()
  const printed = JSON.stringify({ type: 'attachment', uuid: 'x', text: '€'.repeat(300_000) })
  const long = JSON.stringify({ type: 'attachment', uuid: 'y', text: '€'.repeat(3 * 2 ** 20) })
  fs.writeFileSync(done.file, `${[...Array(20).fill(printed), long, ...newLines(scratch)].join('\n')}\n`)
  await expect.poll(() => done.seen, { timeout: 20_000 }).toBe(2)
})

test.each<[string, (file: string, text: string) => void]>([
  ['truncated', (file, text) => fs.writeFileSync(file, text)],
  [
    'put there anew, and longer',
    (file, text) => {
      fs.writeFileSync(`${file}.new`, `${text}${'{}\n'.repeat(30_000)}`)
      fs.renameSync(`${file}.new`, file)
    },
  ],
])('a file that was %s is read from its beginning', (_, change) => {
  const scratch = new Scratch()
  const file = path.join(scratch.home, 'a.jsonl')
  fs.writeFileSync(file, `${'{}\n'.repeat(1000)}{"cut`)
  const growing = new GrowingFile(realEnv(), file)
  const read = () => {
    let all = ''
    for (let lines = growing.next(); lines !== null; lines = growing.next()) all += lines
    return all
  }
  expect(read()).toBe('{}\n'.repeat(1000))
  change(file, '"first"\n"second"\n')
  expect(read()).toMatch(/^"first"\n"second"\n/)
  fs.appendFileSync(file, '"third"\n')
  expect(read()).toBe('"third"\n')
})

test('what is written down between the beginning of a watch and its first look is seen', async () => {
  const scratch = new Scratch().init()
  const { watch, done } = await watched(scratch)
  await new Promise((resolve) => setTimeout(resolve, 50)) // the clock of a file system is a little behind
  const old = JSON.stringify({ type: 'attachment', uuid: 'x', text: 'x'.repeat(2 ** 23) })
  fs.writeFileSync(
    done.file,
    `${[fs.readFileSync(transcript(scratch, 'fork')), old, ...newLines(scratch)].join('\n')}\n`,
  )
  await watch.start()
  await expect.poll(() => done.seen, { timeout: 20_000 }).toBe(2)
})

/** Lines of a conversation, said now, in the place where Claude Code writes them. */
function writing(scratch: Scratch) {
  const directory = path.join(scratch.home, '.claude/projects', scratch.root.replaceAll(/[^A-Za-z0-9]/g, '-'))
  fs.mkdirSync(directory, { recursive: true })
  const file = path.join(directory, `${SESSION}.jsonl`)
  return {
    file,
    write: (uuid: string, parentUuid: string | null, more: Json) => {
      const line = { sessionId: SESSION, cwd: scratch.root, timestamp: new Date().toISOString(), uuid, parentUuid }
      fs.appendFileSync(file, `${JSON.stringify({ ...line, ...more })}\n`)
    },
  }
}
const asked = (promptId: string, content: string) => ({ type: 'user', promptId, message: { content } })
const ended = { type: 'assistant', message: { content: [], stop_reason: 'end_turn' } }
const standing = () => new Promise((resolve) => setTimeout(resolve, 1000))

test('transcripts of a place with a long name lie where Claude Code cuts it off (2.1.330)', async () => {
  const { transcripts } = (await findAgent('claude'))!
  expect(transcripts!.prefix(`/${'x/'.repeat(150)}`)).toBe('-x'.repeat(100))
})

test('the place of transcripts may be a link, and may go and come again', async () => {
  const scratch = new Scratch().init()
  const { file, write } = writing(scratch)
  const projects = path.join(scratch.home, '.claude/projects')
  const there = path.join(scratch.base, 'shared projects')
  fs.renameSync(projects, there)
  fs.symlinkSync(there, projects)
  const turns = () => scratch.ckpt('list').turns.map(({ prompt }: Json) => prompt)
  startDaemon(scratch)
  await standing()
  write('u1', null, asked('p1', 'one'))
  await expect.poll(turns, { timeout: 20_000 }).toEqual(['one'])
  write('e1', 'u1', ended)
  fs.renameSync(there, `${there}, as it was`)
  await standing()
  fs.mkdirSync(there)
  fs.mkdirSync(path.dirname(file))
  await standing()
  write('u2', 'e1', asked('p2', 'two'))
  await expect.poll(turns, { timeout: 20_000 }).toEqual(['two', 'one'])
})

test.each(['while it watches', 'before it came'])(
  'a turn that no hook told of, at work when the daemon was started again, ends as its transcript says: %s',
  async (when) => {
    const scratch = new Scratch().init({ 'mine.txt': 'mine\n' })
    const { write } = writing(scratch)
    const status = () => scratch.ckpt('list').turns[0]?.status
    startDaemon(scratch)
    await standing()
    write('u1', null, asked('p1', 'one'))
    await expect.poll(status, { timeout: 20_000 }).toBe('running')
    scratch.write({ 'a.txt': 'a\n' })
    scratch.ckpt('daemon', 'stop')
    if (when === 'before it came') write('e1', 'u1', ended)
    startDaemon(scratch)
    await standing()
    if (when === 'while it watches') write('e1', 'u1', ended)
    await expect.poll(status, { timeout: 20_000 }).toBe('completed')
    scratch.write({ 'mine.txt': 'mine, changed\n' })
    const { files, warnings } = scratch.ckpt('undo')
    expect(files.map((one: Json) => one.path)).toEqual(['a.txt'])
    if (when === 'before it came') expect(warnings).toMatchObject([expect.stringContaining('recorded late')])
    expect(scratch.read('mine.txt')).toBe('mine, changed\n')
  },
)

test('a turn that no hook told of, whose end came when no daemon was there, is ended by an import', async () => {
  const scratch = new Scratch().init()
  const { write, file } = writing(scratch)
  startDaemon(scratch)
  await standing()
  write('u1', null, asked('p1', 'one'))
  await expect.poll(() => scratch.ckpt('list').turns[0]?.status, { timeout: 20_000 }).toBe('running')
  scratch.ckpt('daemon', 'stop')
  expect(outcomes(scratch, file)).toEqual([[1, 'known']])
  expect(scratch.ckpt('list').turns).toMatchObject([{ status: 'running' }])
  write('e1', 'u1', ended)
  expect(outcomes(scratch, file)).toEqual([[1, 'known']])
  expect(scratch.ckpt('list').turns).toMatchObject([{ status: 'completed' }])
})

test('hooks without ids: their turns are those of the transcript, with a daemon and in an import', async () => {
  const scratch = new Scratch().init()
  const { write, file } = writing(scratch)
  startDaemon(scratch)
  await standing()
  await say(scratch, 'UserPromptSubmit', { prompt: 'one' })
  write('u1', null, asked('p1', 'one'))
  await standing()
  scratch.write({ 'a.txt': 'a\n' })
  await say(scratch, 'Stop')
  write('e1', 'u1', ended)
  await standing()
  const turns = () => scratch.ckpt('list').turns.map((one: Json) => [one.n, one.status, one.stat.files])
  expect(turns()).toEqual([[1, 'completed', 1]])
  scratch.ckpt('daemon', 'stop')
  expect(outcomes(scratch, file)).toEqual([[1, 'known']])
  expect(turns()).toEqual([[1, 'completed', 1]])
})

test('where neither hooks nor the record name a prompt, other words of it are no turn of their own', async () => {
  const scratch = new Scratch().init()
  const { write } = writing(scratch)
  startDaemon(scratch)
  await standing()
  await say(scratch, 'UserPromptSubmit', { prompt: 'one' })
  const { promptId: _, ...old } = asked('p1', '<ide_opened_file>a.txt</ide_opened_file>\none')
  write('u1', null, old)
  await standing()
  scratch.write({ 'a.txt': 'a\n' })
  await say(scratch, 'Stop')
  expect(scratch.ckpt('list').turns).toMatchObject([{ n: 1, status: 'completed', stat: { files: 1 } }])
})

test('an interrupt of the turn whose hook started the daemon is found', async () => {
  const scratch = new Scratch().init()
  const { write } = writing(scratch)
  await say(scratch, 'UserPromptSubmit', { prompt_id: 'p1', prompt: 'one' })
  write('u1', null, asked('p1', 'one'))
  startDaemon(scratch)
  await standing()
  write('i1', 'u1', asked('p1', '[Request interrupted by user]'))
  await expect
    .poll(() => scratch.ckpt('list').turns, { timeout: 20_000 })
    .toMatchObject([{ status: 'interrupted', messageId: 'u1' }])
})

test('a transcript that was removed and made anew is read, whatever its length', async () => {
  const scratch = new Scratch().init()
  const { watch, done } = await watched(scratch)
  const lines = `${newLines(scratch).join('\n')}\n`
  fs.writeFileSync(done.file, '\n'.repeat(lines.length - 1))
  fs.utimesSync(done.file, 1, 1)
  await watch.start()
  fs.rmSync(done.file)
  await new Promise((resolve) => setTimeout(resolve, 700))
  fs.writeFileSync(done.file, lines)
  await expect.poll(() => done.seen, { timeout: 20_000 }).toBe(2)
})

test('a conversation at work in another worktree or repository that lies inside is not this one’s', async () => {
  const scratch = new Scratch().init({ 'a.txt': 'a\n', '.gitignore': 'in-*/\n' })
  scratch.git('worktree', 'add', '-q', scratch.at('in-worktree'))
  fs.mkdirSync(scratch.at('in-repository/below'), { recursive: true })
  scratch.git('init', '-q', scratch.at('in-repository'))
  fs.mkdirSync(scratch.at('sub'))
  const slug = (at: string) => at.replaceAll(/[^A-Za-z0-9]/g, '-')
  const projects = path.join(scratch.home, '.claude/projects')
  const agent = (await findAgent('claude'))!
  fs.mkdirSync(projects, { recursive: true })
  const said: string[] = []
  const watch = new TranscriptWatch(
    { ...realEnv(), home: scratch.home, vars: scratch.vars },
    {
      agent: { ...agent, transcripts: agent.transcripts! },
      root: scratch.root,
      inTurn: async () => {
        said.push(now)
      },
      log: (...told) => expect.fail(JSON.stringify(told)),
    },
  )
  await watch.start()
  onTestFinished(() => watch.stop())
  let now = ''
  /** A conversation that began in one directory, and prompts in another. */
  const converse = async (began: string, at: string) => {
    now = `${began} ${at}`
    const directory = path.join(projects, slug(scratch.at(began)))
    fs.mkdirSync(directory, { recursive: true })
    const lines = newLines(scratch).map((line) => {
      const { promptId, uuid, ...more } = JSON.parse(line)
      const ids = { uuid: `${now} ${uuid}`, ...(promptId ? { promptId: `${now} ${promptId}` } : {}) }
      return JSON.stringify({ ...more, ...ids, cwd: scratch.at(at) })
    })
    fs.writeFileSync(path.join(directory, `${Math.random()}.jsonl`), `${lines.join('\n')}\n`)
    await new Promise((resolve) => setTimeout(resolve, 700))
  }
  await converse('in-worktree', 'in-worktree')
  await converse('in-repository', 'in-repository/below')
  await converse('', 'in-worktree') // its turns there are that worktree's
  await converse('gone', 'gone')
  expect(said).toEqual([])
  await converse('sub', 'sub')
  await converse('', 'in-repository/below') // what it does there is not seen, but the turn is this one's
  await expect.poll(() => [...new Set(said)], { timeout: 20_000 }).toEqual(['sub sub', ' in-repository/below'])
})

test('where checkpoints are switched off an import records nothing, and says why', () => {
  const scratch = new Scratch().init()
  fs.mkdirSync(`${scratch.home}/.config/ckpt`, { recursive: true })
  fs.writeFileSync(`${scratch.home}/.config/ckpt/.checkpointrc`, 'enableFileCheckpointing: false\n')
  const file = path.join(scratch.base, 'transcript.jsonl')
  fs.writeFileSync(file, `${newLines(scratch).join('\n')}\n`)
  const { prompts } = scratch.ckpt('import-transcript', 'claude', file)
  expect(new Set(prompts.map(({ outcome, turn }: Json) => `${outcome} ${turn}`))).toEqual(
    new Set(['switched-off null']),
  )
  expect(scratch.run(['import-transcript', 'claude', file]).stdout).toContain('checkpoints are switched off here')
})

test('watch.transcripts: false leaves them alone', async () => {
  const scratch = new Scratch().init()
  fs.mkdirSync(`${scratch.home}/.config/ckpt`, { recursive: true })
  fs.writeFileSync(`${scratch.home}/.config/ckpt/.checkpointrc`, 'watch:\n  transcripts: false\n')
  const directory = path.join(scratch.home, '.claude/projects', scratch.root.replaceAll(/[^A-Za-z0-9]/g, '-'))
  fs.mkdirSync(directory, { recursive: true })
  startDaemon(scratch)
  await new Promise((resolve) => setTimeout(resolve, 1000))
  fs.writeFileSync(path.join(directory, `${SESSION}.jsonl`), `${newLines(scratch).join('\n')}\n`)
  await new Promise((resolve) => setTimeout(resolve, 1500))
  expect(scratch.ckpt('list').turns).toEqual([])
})

test('what is imported is no news: latest, and an undo, are of what markers told of', () => {
  const scratch = new Scratch().init()
  const file = transcript(scratch, 'two-turns')
  expect(outcomes(scratch, file)).toHaveLength(2)
  expect(scratch.ckpt('list').session).toBe(SESSION) // there is no other
  scratch.turn('real', () => scratch.write({ 'w.txt': 'w\n' }), 'real')
  const fork = fs
    .readFileSync(file, 'utf8')
    .replaceAll(SESSION, FORK)
    .replaceAll(/-(97a2|4bd0|9048|47cb|5e89|0c3c)-/g, '-0000-')
  fs.writeFileSync(`${file}.later.jsonl`, fork)
  expect(outcomes(scratch, `${file}.later.jsonl`)).toEqual([
    [1, 'recorded'],
    [2, 'recorded'],
  ])
  expect(scratch.ckpt('list').session).toBe('real')
  expect(scratch.ckpt('undo')).toMatchObject({ session: 'real', files: [{ path: 'w.txt' }] })
  expect(scratch.exists('w.txt')).toBe(false)
  // A session is as new as what markers told of it, whatever was imported into it since.
  scratch.ckpt('accept')
  scratch.turn('newer', () => scratch.write({ 'n.txt': 'n\n' }), FORK)
  expect(scratch.ckpt('list').session).toBe(FORK)
})

test('what was said in another place is left out, and how to record it there is told; one that is gone is named', () => {
  const [scratch, other] = [new Scratch().init(), new Scratch('its place').init()]
  const file = transcript(other, 'two-turns')
  const { prompts, warnings } = scratch.ckpt('import-transcript', 'claude', file)
  expect(prompts).toMatchObject([
    { turn: null, outcome: 'elsewhere' },
    { turn: null, outcome: 'elsewhere' },
  ])
  const line = `ckpt --cwd '${other.root}' import-transcript claude ${file}`
  expect(warnings).toEqual([`Some prompts were left out, for they were given in another place: ${line}`])
  expect(scratch.ckpt('list').turns).toEqual([])
  execFileSync('sh', ['-c', line.replace(/^ckpt/, `"${process.execPath}" "${PROGRAM}"`)], { env: other.vars })
  expect(other.ckpt('list').turns).toHaveLength(2)
  const gone = `${scratch.base}/gone`
  fs.writeFileSync(file, fs.readFileSync(file, 'utf8').replaceAll(other.root, gone))
  expect(scratch.ckpt('import-transcript', 'claude', file)).toMatchObject({
    prompts: [{ outcome: 'recorded' }, { outcome: 'recorded' }],
    warnings: [`Some prompts were given in ${gone}, which is not there any more: they are recorded here.`],
  })
})

test.each(['', 'rel/dir'])('a place that is none (%j) is no place that is gone', (cwd) => {
  const scratch = new Scratch().init()
  const file = transcript(scratch, 'two-turns')
  fs.writeFileSync(file, fs.readFileSync(file, 'utf8').replaceAll(JSON.stringify(scratch.root), JSON.stringify(cwd)))
  expect(scratch.ckpt('import-transcript', 'claude', file)).toMatchObject({
    prompts: [{ outcome: 'recorded' }, { outcome: 'recorded' }],
    warnings: [],
  })
})

test('an import that was killed between a prompt and its end is finished by the next one', () => {
  const scratch = new Scratch().init()
  const file = transcript(scratch, 'two-turns')
  const lines = fs.readFileSync(file, 'utf8').split('\n')
  fs.writeFileSync(file, lines.filter((one) => !one.includes('"end_turn"')).join('\n'))
  fs.utimesSync(file, 0, 0)
  scratch.turn('real', () => scratch.write({ 'w.txt': 'w\n' }), 'real')
  // Each marker looks once whether git is at a merge: the first starts the turn, the second ends it.
  const atTheEnd = { call: 'lstatSync', on: '/MERGE_HEAD$', nth: 2, when: 'before', kill: true } as const
  const killed = scratch.runApart(['import-transcript', 'claude', file], { vars: amid(scratch, [atTheEnd]) })
  expect(killed.code).toBe(128)
  const turns = () => scratch.ckpt('list', '--session', SESSION).turns.map((one: Json) => one.status)
  expect(turns()).toEqual(['running'])
  const { warnings } = scratch.ckpt('import-transcript', 'claude', file)
  expect(warnings).toEqual([])
  expect(turns()).toEqual(['interrupted', 'interrupted'])
  expect(scratch.ckpt('list').session).toBe('real')
})

test('a prompt whose directory cannot be one, or cannot be looked at, keeps no other out', ({ skip }) => {
  const scratch = new Scratch().init()
  const file = transcript(scratch, 'two-turns')
  const text = fs.readFileSync(file, 'utf8')
  const first = (cwd: string) =>
    text.replaceAll(/"cwd":"[^"]*"/g, (said, at) => (at < text.indexOf('"end_turn"') ? `"cwd":"${cwd}"` : said))
  for (const cwd of ['no\\u0000where', 'relative', '']) {
    fs.writeFileSync(file, first(cwd))
    expect(outcomes(scratch, file).map(([, outcome]) => outcome)).not.toContain('elsewhere')
  }
  skip(!isRoot, 'whom permissions do not bind can hand over')
  const uid = scratch.handOver()
  const closed = new Scratch('closed').init()
  fs.chmodSync(closed.base, 0o700)
  fs.writeFileSync(
    file,
    first(`${closed.root}/a`)
      .replaceAll(SESSION, FORK)
      .replaceAll(/-(97a2|4bd0|9048|47cb|5e89|0c3c)-/g, '-0000-'),
  )
  const { code, stdout } = scratch.run(['import-transcript', 'claude', file, '--json'], { uid })
  const said = JSON.parse(stdout).prompts.map((one: Json) => one.outcome)
  expect([code, said]).toEqual([0, ['elsewhere', 'recorded']])
})
