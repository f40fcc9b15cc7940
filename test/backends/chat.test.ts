// The example front end on each backend: what it offers is what the session can do, and nobody tells it whose it is.
import { spawn } from 'node:child_process'
import path from 'node:path'
import { describe, expect, test } from 'vitest'
import { claudeStage, claudeVars, sdkFile } from '../support/claude-sdk.ts'
import { isThere } from '../support/clients.ts'
import { openCodeStage, opencodeProgram } from '../support/opencode-server.ts'
import { Scratch } from '../support/scratch.ts'
import { prompt } from '../support/told-model.ts'

const program = path.resolve(import.meta.dirname, '../../examples/chat.ts')

/** Types each line when the one before was answered; what was said to each. */
function chat(
  scratch: Scratch,
  name: string,
  { lines, vars = {} }: { lines: readonly string[]; vars?: Record<string, string> },
): Promise<string[][]> {
  return new Promise((resolve, reject) => {
    const child = spawn(process.execPath, ['--import', 'tsx', program, scratch.root, name], {
      cwd: path.dirname(program),
      env: { ...scratch.vars, ...vars },
    })
    let said = ''
    let wrong = ''
    child.stdout.on('data', (chunk) => {
      said += chunk
    })
    child.stderr.on('data', (chunk) => {
      wrong += chunk
    })
    child.on('exit', (code) => {
      if (code !== 0) return reject(new Error(`exit ${code}: ${said}${wrong}`))
      const answers = said.split(/^> .*\n/m).slice(1)
      resolve(answers.map((answer) => answer.split('\n').filter((line) => line !== '')))
    })
    child.stdin.end([...lines, '/quit', ''].join('\n'))
  })
}

/** In one line; what is to be done is not shown again. */
const typed = (text: string) => text.replace('\n', ' ')
const shown = (said: string[][]) => said.map((lines) => lines.map((line) => line.replace(/ <do>.*<\/do>/, '')))

test('a shell, on checkpoints of ckpt alone', async () => {
  const scratch = new Scratch().init()
  const said = await chat(scratch, 'shell', {
    lines: [
      '/undo',
      'echo two > a.txt',
      'echo b > b.txt',
      '/diff',
      '/undo list',
      '/undo',
      '/undo list',
      '/redo',
      '/undo 1',
      '/redo',
    ],
  })
  expect(said).toEqual([
    [
      expect.stringMatching(
        /^NOT_FOUND: There is no session "shell-[-\da-f]{36}" in this worktree\. Nothing was changed\.$/,
      ),
    ],
    [],
    [],
    ['added b.txt +1 -0'],
    ['2  echo b > b.txt', '1  echo two > a.txt'],
    ['undone: turn 2; 1 files', 'to edit and send again: echo b > b.txt'],
    ['2  echo b > b.txt  (undone)', '1  echo two > a.txt'],
    ['back again: turn 2; 1 files'],
    ['undone: turn 1, 2; 2 files', 'to edit and send again: echo two > a.txt'],
    ['back again: turn 1; 1 files'],
    [],
  ])
  expect([scratch.read('a.txt'), scratch.exists('b.txt')]).toEqual(['two\n', false])
})

test('a command that fails ends its turn, and not the chat', async () => {
  const scratch = new Scratch().init()
  const said = await chat(scratch, 'shell', { lines: ['echo two > a.txt; false', 'echo why >&2; exit 3', '/undo 1'] })
  expect(said).toEqual([
    ['exit 1'],
    ['why', 'exit 3'],
    ['undone: turn 1, 2; 1 files', 'to edit and send again: echo two > a.txt; false'],
    [],
  ])
  expect(scratch.read('a.txt')).toBe('one\n')
  expect(scratch.ckpt('list', '--hidden').turns.map((turn: any) => turn.status)).toEqual(['failed', 'failed'])
})

const first = typed(prompt('first', { read: 'a.txt' }, { write: 'a.txt', content: 'two\n' }))
const second = typed(prompt('second', { write: 'new.txt', content: 'n\n' }))
const third = typed(prompt('third', { bash: 'echo 3 > third.txt' }))

describe.skipIf(!isThere('The Claude Agent SDK', sdkFile))(
  'the SDK from npm (skipped where it is not)',
  { timeout: 300_000 },
  () => {
    test('its own undo: no redo, no diff', async () => {
      const { scratch, model } = await claudeStage()
      const said = await chat(scratch, 'claude', {
        lines: ['/undo', first, second, '/undo list', '/redo', '/diff', '/undo', '/undo list', third, '/undo list'],
        vars: { ...claudeVars(model), CHAT_SDK: sdkFile! },
      })
      const able = 'this session cannot do that. It knows /undo, /undo list, /undo N'
      expect(shown(said)).toEqual([
        ['NOTHING_TO_UNDO: There is no turn in this worktree yet. Nothing was changed.'],
        ['done'],
        ['done'],
        ['2  second', '1  first'],
        [`/redo: ${able}`],
        [`/diff: ${able}`],
        ['undone: turn 2; 1 files', 'to edit and send again: second'],
        ['2  second  (undone)', '1  first'],
        ['done'],
        ['1  third'],
        [],
      ])
      expect([scratch.read('a.txt'), scratch.exists('new.txt'), scratch.read('third.txt')]).toEqual([
        'two\n',
        false,
        '3\n',
      ])
    })

    test('with checkpoints of ckpt: all of it', async () => {
      const { scratch, model } = await claudeStage()
      const said = await chat(scratch, 'claude', {
        lines: [first, third, '/diff', '/undo', '/redo', '/undo 1', '/redo'],
        vars: { ...claudeVars(model), CHAT_SDK: sdkFile!, CHAT_CHECKPOINTS: '1' },
      })
      expect(shown(said.slice(2))).toEqual([
        ['added third.txt +1 -0'],
        ['undone: turn 2; 1 files', 'to edit and send again: third'],
        ['back again: turn 2; 1 files'],
        ['undone: turn 1, 2; 2 files', 'to edit and send again: first'],
        ['back again: turn 1; 1 files'],
        [],
      ])
      expect([scratch.read('a.txt'), scratch.exists('third.txt')]).toEqual(['two\n', false])
    })
  },
)

describe.skipIf(!isThere('OpenCode', opencodeProgram))(
  'the server from npm (skipped where it is not)',
  { timeout: 300_000 },
  () => {
    test('its revert and unrevert: all of it', async () => {
      const { scratch, url } = await openCodeStage()
      const said = await chat(scratch, 'opencode', {
        lines: [
          '/undo',
          first,
          second,
          '/diff',
          '/undo',
          '/undo',
          '/undo',
          '/redo',
          '/undo 1',
          '/redo',
          '/redo',
          '/redo',
        ],
        vars: { CHAT_OPENCODE: url },
      })
      const nothing = expect.stringMatching(
        /^NOTHING_TO_UNDO: Session ses_\w+ has no visible turn\. Nothing was changed\.$/,
      )
      const all = expect.stringMatching(
        /^NOTHING_TO_UNDO: All turns of session ses_\w+ are undone\. Nothing was changed\.$/,
      )
      expect(shown(said)).toEqual([
        [nothing],
        ['done'],
        ['done'],
        ['added new.txt +1 -0'],
        ['undone: turn 2; 1 files', 'to edit and send again: second'],
        ['undone: turn 1; 1 files', 'to edit and send again: first'],
        [all],
        ['back again: turn 1; 1 files'],
        ['undone: turn 1; 1 files', 'to edit and send again: first'],
        ['back again: turn 1; 1 files'],
        ['back again: turn 2; 1 files'],
        [expect.stringMatching(/^NOTHING_TO_REDO: Session ses_\w+ has nothing undone\. Nothing was changed\.$/)],
        [],
      ])
      expect([scratch.read('a.txt'), scratch.read('new.txt')]).toEqual(['two\n', 'n\n'])
    })
  },
)
