// The picker, on a terminal with somebody at the keys.
import { describe, expect, test } from 'vitest'
import { PROGRAM, Scratch } from '../support/scratch.ts'
import { hasPython, hungUp, KEYS, onTerminal, type Step } from '../support/terminal.ts'

function prepared(): Scratch {
  const scratch = new Scratch().init()
  scratch.turn('write a plan', () => scratch.write({ 'plan.md': 'a plan\n' }))
  scratch.turn('change a', () => scratch.write({ 'a.txt': 'two\n' }))
  scratch.turn('tidy up', () => scratch.remove('plan.md'))
  return scratch
}

const { enter, down, right, ctrlC, ctrlD, escape: esc } = KEYS
const second: Step[] = [
  ['Which turn?', down],
  ['● ', enter],
]

describe.skipIf(!hasPython)('on a terminal (python3 opens it; skipped where there is none)', () => {
  test('undo to before a turn, after its plan was shown', () => {
    const scratch = prepared()
    const { code, text } = onTerminal(scratch, ['rewind'], {
      steps: [...second, ['What is to happen?', enter], ['Do this?', enter]],
    })
    expect(code).toBe(0)
    expect(text).toContain('Undo: back to before turn 2')
    expect(text).toMatch(/write {2}a\.txt\s+│\n.*write {2}plan\.md[\s\S]*Do this\?/)
    expect(text).toContain('Undid turns 2 to 3: 2 files.')
    expect([scratch.read('a.txt'), scratch.read('plan.md')]).toEqual(['one\n', 'a plan\n'])
    expect(scratch.ckpt('status').boundary).toMatchObject({ turn: 2, hiddenTurns: [2, 3] })
  })

  test('the files only: no turn is undone', () => {
    const scratch = prepared()
    const { code } = onTerminal(scratch, ['rewind'], {
      steps: [...second, ['What is to happen?', down], ['Files only', enter], ['Do this?', enter]],
    })
    expect(code).toBe(0)
    expect([scratch.read('a.txt'), scratch.read('plan.md')]).toEqual(['two\n', 'a plan\n'])
    expect(scratch.ckpt('status').boundary).toBeNull()
  })

  test('an undone turn is offered as a redo', () => {
    const scratch = prepared()
    scratch.ckpt('undo', '--turns', '3')
    const { text } = onTerminal(scratch, ['rewind'], {
      steps: [...second, ['Redo: up to the end of turn 2', enter], ['Do this?', enter]],
    })
    expect(text).toContain('Still undone: from turn 3')
    expect([scratch.read('a.txt'), scratch.read('plan.md')]).toEqual(['two\n', 'a plan\n'])
  })

  test('where a step is undone too, the turns are redone to the end of the one that was picked', () => {
    const scratch = new Scratch().init()
    for (const turn of [1, 2, 3, 4]) {
      scratch.ckpt('mark', 'prompt', '--session', 's', '--text', `turn ${turn}`)
      for (const step of [1, 2]) {
        scratch.write({ 'a.txt': `${turn}.${step}\n` })
        scratch.ckpt('mark', 'step', '--session', 's')
      }
      scratch.ckpt('mark', 'stop', '--session', 's')
    }
    scratch.ckpt('undo', '--to', '2.2')
    const done = (label: string): Step[] => [
      [label, enter],
      ['Do this?', enter],
    ]
    const { text } = onTerminal(scratch, ['rewind'], { steps: [...second, ...done('Redo: up to the end of turn 3')] })
    expect(text).toContain('Redid turns 2 to 3: 1 file.')
    expect(scratch.read('a.txt')).toBe('3.2\n')
    scratch.ckpt('undo', '--to', '2.2')
    const third: Step[] = [second[0]!, ['● ', down], ['● ', enter]]
    // Undone in part: it goes either way.
    onTerminal(scratch, ['rewind'], {
      steps: [...third, ['Undo: back to before turn 2', down], ...done('● Redo: up to the end of turn 2')],
    })
    expect(scratch.read('a.txt')).toBe('2.2\n')
  })

  test('Ctrl-Z and a signal give the terminal back; where it goes on, so does the question', () => {
    const shell = 'require("node:child_process").spawnSync("bash", ["--norc", "-i"], { stdio: "inherit" })'
    const rewind = `${process.execPath} ${PROGRAM} rewind\r`
    const { raw } = onTerminal(prepared(), [shell], {
      program: '-e',
      vars: { PS1: 'ready> ' },
      steps: [
        ['ready> ', rewind],
        ['Which turn?', '\x1a'],
        ['Stopped', 'fg\r'],
        ['Which turn?', ctrlC],
        ['Nothing was changed.', rewind],
        ['Which turn?', '\x1a'],
        ['Stopped', 'p=$(jobs -p); kill %1; while kill -0 $p 2>/dev/null; do sleep 0.1; done; echo go""ne\r'],
        ['gone', rewind],
        // Let go on in the background, it leaves the terminal alone: it would be stopped for touching it, and could not end.
        ['Which turn?', '\x1a'],
        [
          'Stopped',
          'p=$(jobs -p); kill -CONT $p; sleep 0.5; kill $p; while kill -0 $p 2>/dev/null; do sleep 0.1; done; echo ov""er\r',
        ],
        ['over', 'exit\r'],
      ],
    })
    // Some shells say once more that it was stopped.
    for (const before of raw.split(/Stopped|Nothing was changed|gone|over/).slice(0, -1))
      expect(before.lastIndexOf('\x1b[?25h')).toBeGreaterThanOrEqual(before.lastIndexOf('\x1b[?25l'))
  })

  test.each<[string, Step[]]>([
    ['Ctrl-C in the list', [['Which turn?', ctrlC]]],
    ['Escape in the list', [['Which turn?', esc]]],
    ['Ctrl-D in the list', [['Which turn?', ctrlD]]],
    ['Ctrl-D after another key', [['Which turn?', `x${ctrlD}`]]],
    ['Ctrl-D at the ways', [...second, ['What is to happen?', ctrlD]]],
    ['Ctrl-D at the last question', [...second, ['What is to happen?', enter], ['Do this?', ctrlD]]],
    ['Ctrl-C at the ways', [...second, ['What is to happen?', ctrlC]]],
    ['Ctrl-C at the last question', [...second, ['What is to happen?', enter], ['Do this?', ctrlC]]],
    ['No', [...second, ['What is to happen?', enter], ['Do this?', right], ['● No', enter]]],
  ])('%s changes nothing', (_, steps) => {
    const scratch = prepared()
    const [before, refs] = [scratch.manifest(), scratch.ckpt('list', '--hidden').turns]
    const { code, text, raw } = onTerminal(scratch, ['rewind'], { steps })
    expect(code).toBe(0)
    expect(text).toContain('Nothing was changed.')
    expect(raw.lastIndexOf('\x1b[?25h')).toBeGreaterThan(raw.lastIndexOf('\x1b[?25l')) // the cursor is shown again
    expect(scratch.manifest()).toEqual(before)
    expect(scratch.ckpt('list', '--hidden').turns).toEqual(refs)
    expect(scratch.ckpt('status').boundary).toBeNull()
  })

  test('what somebody changed since is a conflict, listed, and nothing is written', () => {
    const scratch = prepared()
    scratch.write({ 'a.txt': 'mine\n' })
    const { code, text } = onTerminal(scratch, ['rewind'], { steps: [...second, ['What is to happen?', enter]] })
    expect(code).toBe(4)
    expect(text).toContain('conflict  a.txt')
    expect(text).not.toContain('Do this?')
    expect(scratch.read('a.txt')).toBe('mine\n')
    expect(scratch.exists('plan.md')).toBe(false)
  })

  test.each([{}, { NO_COLOR: '1' }])('each turn is one line, whatever its prompt is made of (%j)', (vars) => {
    const scratch = new Scratch().init()
    for (const text of ['x'.repeat(300), '日本語'.repeat(30), '🛒'.repeat(60), 'plain'])
      scratch.turn(text, () => scratch.write({ 'b.txt': text }))
    scratch.ckpt('undo')
    const { text } = onTerminal(scratch, ['rewind'], { steps: [['plain', ctrlC]], size: [24, 80], vars })
    const list = text.slice(text.indexOf('Which turn?')).split('■')[0]!
    expect(list.match(/^│ {2}[○●] .*\d:\d.*$/gm)).toHaveLength(4)
    expect(list.match(/^│ {2}.*…$/gm)).toHaveLength(3)
    expect(list.match(/^│ +\S/gm)).toHaveLength(5) // and the keys
  })

  test('on a narrow one the prompts are told, and no counts', () => {
    const { text } = onTerminal(prepared(), ['rewind'], { steps: [['Which turn?', ctrlC]], size: [24, 40] })
    for (const prompt of ['write a p', 'change a', 'tidy up']) expect(text).toContain(prompt)
    expect(text).not.toContain('1 file')
  })

  test('a terminal that does not know its size', () => {
    const scratch = prepared()
    const { text } = onTerminal(scratch, ['rewind'], { steps: [['Which turn?', ctrlC]], size: [0, 0] })
    expect(text).toContain('write a plan')
  })

  test('no colours where they are not wanted, and prompts cannot paint', () => {
    const scratch = prepared()
    scratch.turn('\x1b[31mred\x07', () => scratch.write({ 'b.txt': 'b\n' }))
    const { raw } = onTerminal(scratch, ['rewind'], { steps: [['Which turn?', ctrlC]], vars: { NO_COLOR: '1' } })
    expect(raw).not.toMatch(/\x1b\[[0-9;]*m|\x07/)
  })

  test('where the terminal goes it ends of the hangup, at each question, and nothing was changed', () => {
    const scratch = prepared()
    const asked: Step[] = [['Which turn?', enter]]
    for (const [steps, question] of [
      [[], 'Which turn?'],
      [asked, 'What is to happen?'],
      [[...asked, ['What is to happen?', enter] as Step], 'Do this?'],
    ] as const) {
      const given = { cwd: scratch.root, env: scratch.vars, steps: [...steps] }
      for (const keeps of [false, true])
        expect(hungUp([process.execPath, PROGRAM, 'rewind'], question, { ...given, keeps }), question).toBe(-1) // SIGHUP
    }
    expect(scratch.ckpt('status').boundary).toBeNull()
    expect([scratch.read('a.txt'), scratch.exists('plan.md')]).toEqual(['two\n', false])
  })

  test('so does a question that wants a yes, and nothing was written', () => {
    const scratch = prepared()
    for (const keeps of [false, true]) {
      const given = { cwd: scratch.root, env: scratch.vars, keeps }
      expect(hungUp([process.execPath, PROGRAM, 'agent', 'install', 'claude'], '[y/N]', given)).toBe(-1)
    }
    expect(scratch.exists('../home/.claude')).toBe(false)
  })

  test('a dumb one is shown no menu', () => {
    const { code, raw } = onTerminal(prepared(), ['rewind'], { vars: { TERM: 'dumb' } })
    expect(code).toBe(2)
    expect(raw).toContain('this terminal cannot show a menu (TERM=dumb)')
    expect(raw).not.toContain('\x1b')
  })
})

test('without a terminal it names the commands that do the same', () => {
  const scratch = prepared()
  const { code, document } = scratch.tryCkpt('rewind')
  expect({ code, error: document.error.code }).toEqual({ code: 2, error: 'USAGE' })
  expect(document.error.hints).toContain('ckpt undo --to TURN --dry-run')
})
