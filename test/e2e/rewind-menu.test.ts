// The menu for front ends: Escape twice, a list, a turn, and what came of it; in a front end of its own and in the live view.
import { EventEmitter } from 'node:events'
import fs from 'node:fs'
import path from 'node:path'
import { PassThrough } from 'node:stream'
import { stripVTControlCharacters } from 'node:util'
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest'
import { columnsOf } from '../../src/core/columns.ts'
import { type KeyStream, onDoubleEscape } from '../../src/library/double-escape.ts'
import { rewindMenu } from '../../src/library/rewind-menu.ts'
import { openWorktree } from '../../src/library/worktree.ts'
import { PROGRAM, Scratch } from '../support/scratch.ts'
import { corruptObject, looseFile } from '../support/store-surgery.ts'
import { hasPython, hungUp, KEYS, laterOnTerminal, onTerminal, type Step } from '../support/terminal.ts'
import { uncaught } from '../support/uncaught.ts'

const program = path.resolve(import.meta.dirname, '../support/front-end.mjs')
const { enter, down, ctrlC, ctrlD, escape: esc } = KEYS

function prepared(): Scratch {
  const scratch = new Scratch().init()
  scratch.turn('write a plan', () => scratch.write({ 'plan.md': 'a plan\n' }))
  scratch.turn('change a', () => scratch.write({ 'a.txt': 'two\n' }))
  return scratch
}

const menu = (scratch: Scratch, steps: Step[], vars = {}) =>
  onTerminal(scratch, [scratch.root, 's'], { program, vars, steps: [['ready', esc + esc], ...steps] })

describe.skipIf(!hasPython)('on a terminal (python3 opens it; skipped where there is none)', () => {
  test('list, pick, restore; success is green', () => {
    const scratch = prepared()
    const { raw, text } = menu(scratch, [
      ['Back to before which turn?', down],
      ['● ', enter],
    ])
    expect(text).toMatch(/2 .* change a/)
    expect(raw).toContain('\x1b[32mRestored to before turn 1: 2 files.\x1b[39m')
    expect(text).toContain('outcome: restored')
    expect([scratch.read('a.txt'), scratch.exists('plan.md')]).toEqual(['one\n', false])
    expect(scratch.ckpt('status').boundary).toMatchObject({ turn: 1, hiddenTurns: [1, 2] })
  })

  test('failure is red, and logged; nothing was written', () => {
    const scratch = prepared()
    scratch.write({ 'a.txt': 'mine\n' })
    const { raw, text } = menu(scratch, [['Back to before which turn?', enter]])
    expect(raw).toMatch(/\x1b\[31mRefused, nothing was written.*\x1b\[39m/)
    expect(text).toContain('logged: CONFLICT')
    expect(text).toContain('outcome: failed')
    expect(scratch.read('a.txt')).toBe('mine\n')
  })

  test('the time is that of the place, as in the list', () => {
    const scratch = prepared()
    const vars = { TZ: 'Asia/Kathmandu' }
    const [, time] = /1 {2}(\d\d:\d\d) /.exec(scratch.run(['list'], { vars }).stdout)!
    expect(menu(scratch, [['Back to before which turn?', ctrlC]], vars).text).toMatch(
      new RegExp(` 1 .*${time}  write a plan`),
    )
  })

  test.each([ctrlC, ctrlD])('nothing is picked (%j): nothing is done', (key) => {
    const scratch = prepared()
    const before = scratch.manifest()
    const { raw, text } = menu(scratch, [['Back to before which turn?', key]])
    expect(text).toContain('outcome: cancelled')
    expect(raw.lastIndexOf('\x1b[?25h')).toBeGreaterThan(raw.lastIndexOf('\x1b[?25l')) // the cursor is shown again
    expect(scratch.manifest()).toEqual(before)
  })

  test('no checkpoints, or the feature is off: that is said', () => {
    const scratch = new Scratch().init()
    expect(menu(scratch, []).text).toContain('No checkpoints available')
    const off = prepared()
    expect(menu(off, [], { CKPT_DISABLED: '1' }).text).toContain('Checkpoint feature not enabled')
    off.write({ '.checkpointrc': '{"enableFileCheckpointing": false}' })
    off.git('add', '.checkpointrc')
    off.git('commit', '-q', '-m', 'off')
    expect(menu(off, []).text).toContain('Checkpoint feature not enabled')
    expect(off.read('a.txt')).toBe('two\n')
  })

  test('the live view opens it, and goes on afterwards', () => {
    const scratch = prepared()
    const { code, text } = onTerminal(scratch, ['watch'], {
      steps: [
        ['Esc Esc rewind', esc + esc],
        ['Back to before which turn?', enter],
        ['Restored to before turn 2: 1 file.', esc + esc],
        ['Back to before which turn?', ctrlC],
        ['Esc Esc rewind', 'r'],
        ['Redid turn 2', 'aq'],
      ],
    })
    expect(code).toBe(0)
    expect(text).toContain('a all turns')
    expect(scratch.read('a.txt')).toBe('two\n')
  })

  test('the live view ends of the hangup where its terminal goes amid the question', () => {
    const scratch = prepared()
    const given = { cwd: scratch.root, env: scratch.vars, steps: [['Esc Esc rewind', esc + esc] as Step] }
    expect(hungUp([process.execPath, PROGRAM, 'watch'], 'Back to before which turn?', given)).toBe(-1) // SIGHUP
    expect([scratch.read('a.txt'), scratch.ckpt('status').boundary]).toEqual(['two\n', null])
  })

  test('a front end of its own ends of the hangup, too', () => {
    const scratch = prepared()
    const given = { cwd: scratch.root, env: scratch.vars, steps: [['ready', esc + esc] as Step] }
    const command = [process.execPath, program, scratch.root, 's']
    expect(hungUp(command, 'Back to before which turn?', given)).toBe(-1)
  })

  test('the live view on a dumb terminal is plain lines', () => {
    const scratch = prepared()
    const later = onTerminal(scratch, ['watch'], { vars: { TERM: 'dumb' }, steps: [['watch', ctrlC]] })
    expect(later.raw).not.toContain('\x1b')
  })

  test('the live view keeps the newest turns on the screen, each on one line', () => {
    const scratch = new Scratch().init()
    for (let n = 1; n <= 12; n++) scratch.turn(`${n} 日本語${'日本語'.repeat(20)}`, () => undefined)
    const { raw } = onTerminal(scratch, ['watch'], {
      size: [16, 60],
      steps: [
        ['a all turns', 'a'],
        ['  6  ', 'q'],
      ],
    })
    const [last] = raw.split('\x1b[H').at(-1)!.split('\x1b[J')
    const frame = stripVTControlCharacters(last!).split(/\r?\n/)
    expect(rowsOf(frame, 60)).toBeLessThanOrEqual(16)
    const turns = frame.filter((line) => /^ +\d+ {2}.*日本語/.test(line))
    expect(turns.slice(0, 7).map((line) => Number.parseInt(line, 10))).toEqual([12, 11, 10, 9, 8, 7, 6])
    expect(Math.max(...turns.map(columnsOf))).toBeLessThanOrEqual(60)
  })

  test('the live view stays on the screen with more to say than there is room for, and names how much is left out', () => {
    const scratch = new Scratch().init()
    const many = Object.fromEntries(Array.from({ length: 30 }, (_, i) => [`file-${i}.txt`, 'of the turn\n']))
    scratch.turn('many files', () => scratch.write(many))
    const { raw } = onTerminal(scratch, ['watch'], {
      size: [12, 40],
      steps: [
        ['u undo', 'd'],
        ['more lines', 'u'],
        ['Undid turn 1', 'q'],
      ],
    })
    const frames = raw.split('\x1b[H').slice(1)
    const shown = frames.map((one) => stripVTControlCharacters(one.split('\x1b[J')[0]!).split(/\r?\n/))
    expect(Math.max(...shown.map((frame) => rowsOf(frame, 40)))).toBeLessThanOrEqual(12)
    for (const frame of shown) expect(frame.join('\n')).toMatch(/^ckpt .*many files.*q quit$/s)
  })

  test('the live view says why it can show no turns, and shows them when it can again', () => {
    const scratch = prepared()
    const file = looseFile(scratch, 'refs/ckpt/@main/s/live')
    const whole = fs.readFileSync(file)
    corruptObject(scratch, 'refs/ckpt/@main/s/live')
    const { code, text } = onTerminal(scratch, ['watch'], { steps: [['ckpt doctor --fix', 'q']] })
    expect([code, text]).toEqual([0, expect.stringMatching(/ckpt: .*Nothing was changed/)])
    fs.rmSync(file)
    fs.writeFileSync(file, whole)
    expect(onTerminal(scratch, ['watch'], { steps: [['Esc Esc rewind', 'q']] }).text).not.toContain('ckpt: ')
  })

  test('who was stopped and goes on has its screen again', async () => {
    const scratch = prepared()
    const later = laterOnTerminal(scratch, ['watch'], { steps: [['late.txt', 'q']] })
    const daemon = () => scratch.ckpt('status').daemon
    await expect.poll(() => daemon().watching, { timeout: 20_000 }).toBe(true)
    process.kill(daemon().pid, 'SIGCONT')
    await new Promise((resolve) => setTimeout(resolve, 100)) // a signal is heard in its own time
    scratch.write({ 'late.txt': '' })
    const { code, raw } = await later
    expect([code, raw.split('\x1b[?1049h').length - 1]).toEqual([0, 2])
  })

  test('the live view says in its log what failed', () => {
    const scratch = prepared()
    scratch.write({ 'a.txt': 'mine\n' })
    onTerminal(scratch, ['watch'], {
      steps: [
        ['Esc Esc rewind', esc + esc],
        ['Back to before which turn?', enter],
        ['Refused, nothing was written', 'q'],
      ],
    })
    const log = fs.readFileSync(path.join(scratch.ckpt('status').store.path, 'worktrees/@main/daemon/log'), 'utf8')
    expect(log).toContain('"code":"CONFLICT"')
    expect(scratch.read('a.txt')).toBe('mine\n')
  })
})

test('a turn that somebody undid while the menu stood open is a failure, told like any other', async () => {
  const scratch = prepared()
  const worktree = await openWorktree(scratch.root, { vars: scratch.vars })
  const [input, output, logged] = [new PassThrough(), new PassThrough(), [] as string[]]
  let shown = ''
  output.on('data', (chunk: Buffer) => {
    shown += chunk.toString()
    if (!chunk.includes('Enter: confirm')) return
    setImmediate(() => {
      scratch.ckpt('undo')
      input.write(enter)
    })
  })
  const outcome = await rewindMenu(worktree, { input, output, log: ({ code }) => logged.push(code) })
  expect(outcome).toMatchObject({ kind: 'failed', error: { code: 'NOT_FOUND' } })
  expect(logged).toEqual(['NOT_FOUND'])
  expect(shown).toContain('Turn 2 is undone already. Nothing was changed.')
})

test('a log that throws is an uncaught exception of the front end, and the outcome is told all the same', async () => {
  const scratch = prepared()
  const worktree = await openWorktree(scratch.root, { vars: scratch.vars })
  const log = () => {
    throw new Error('from log')
  }
  const met = await uncaught(async () => {
    const outcome = await rewindMenu(worktree, { session: 5, log } as never)
    expect(outcome).toMatchObject({ kind: 'failed', error: { code: 'USAGE' } })
  })
  expect(met).toEqual([new Error('from log')])
})

const rowsOf = (frame: string[], columns: number): number =>
  frame.reduce((sum, line) => sum + Math.max(1, Math.ceil(columnsOf(line) / columns)), 0)

describe('Escape, twice', () => {
  beforeEach(() => {
    vi.useFakeTimers({ toFake: ['performance'] })
  })
  afterEach(() => {
    vi.useRealTimers()
  })

  /** Keys, and the milliseconds that pass between them; how often it was heard. */
  function heard(...keys: (string | number)[]): number {
    const stdin = new EventEmitter()
    let count = 0
    const stop = onDoubleEscape(stdin as KeyStream, 300, () => count++)
    for (const key of keys) {
      if (typeof key === 'number') vi.advanceTimersByTime(key)
      else stdin.emit('data', Buffer.from(key, 'latin1'))
    }
    stop()
    stdin.emit('data', Buffer.from(esc + esc))
    return count
  }

  test('within the time only, and nothing in between', () => {
    expect(heard(esc, 299, esc)).toBe(1)
    expect(heard(esc, 300, esc)).toBe(1)
    expect(heard(esc, 301, esc)).toBe(0)
    expect(heard(esc + esc)).toBe(1)
    expect(heard(esc + esc + esc)).toBe(1)
    expect(heard(esc, esc + esc + esc)).toBe(2)
    expect(heard(esc + esc + esc, 301, esc)).toBe(1)
    expect(heard(`${esc}x`, esc)).toBe(0)
    expect(heard(esc, 10, 'x', 10, esc)).toBe(0)
    expect(heard(esc, 301, esc, 10, esc)).toBe(1)
    expect(heard(esc, esc, esc)).toBe(1)
    expect(heard(esc, esc, esc, esc)).toBe(2)
    expect(heard('\x1b[A', '\x1b[B')).toBe(0)
    expect(heard('\x1bb')).toBe(0)
  })
})
