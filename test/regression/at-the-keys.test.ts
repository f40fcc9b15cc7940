// Keys at a terminal that once were taken for failures, or left it to nobody.
import fs from 'node:fs'
import path from 'node:path'
import { describe, expect, test } from 'vitest'
import { Scratch } from '../support/scratch.ts'
import { hasPython, KEYS, onTerminal } from '../support/terminal.ts'

const { ctrlC, ctrlD, enter } = KEYS

describe.skipIf(!hasPython)('on a terminal (python3 opens it; skipped where there is none)', () => {
  test.each(['', 'sed "" | '])('Ctrl-C while a pager is shown (%sPAGER) is the pager’s alone', (before) => {
    const scratch = new Scratch().init()
    const lines = Array.from({ length: 100 }, (_, n) => `${n}\n`).join('')
    scratch.turn('one', () => scratch.write({ 'a.txt': lines }))
    const pager = path.join(scratch.base, 'pager')
    // dash keeps a signal that comes before it reads until it has read: it says so once it does.
    fs.writeFileSync(
      pager,
      'trap "echo it heard that" INT\ncat >/dev/null\n(sleep 0.5; echo shown) &\nread key </dev/tty || read key </dev/tty\necho "key $key"\n',
    )
    const { code, text } = onTerminal(scratch, ['diff', '1'], {
      vars: { CKPT_PAGER: `${before}sh ${pager}` },
      steps: [
        ['shown', ctrlC],
        ['heard', 'q\r'],
      ],
    })
    expect([code, text]).toEqual([0, expect.stringContaining('key q')])
  })

  describe.each<[args: string[], question: string, no: string]>([
    [['export', 'out.bundle'], 'Go on? [y/N] ', 'Nothing left this machine.'],
    [['agent', 'install', 'claude'], 'Write this? [y/N] ', 'Nothing was changed.'],
  ])('ckpt %j', (args, question, no) => {
    const asked = (keys: string) => {
      const scratch = new Scratch().init()
      scratch.turn('one', () => scratch.write({ '.env': 'A=1\n' }))
      const { code, text } = onTerminal(scratch, args, { steps: [[question, keys]] })
      expect([scratch.exists('out.bundle'), fs.existsSync(path.join(scratch.home, '.claude'))]).toEqual([false, false])
      return [code, text.slice(text.indexOf(question))]
    }

    test.each([enter, ctrlD])('%j is a no', (keys) => {
      expect(asked(keys)).toEqual([0, `${question}\n${no}\n`])
    })

    test('Ctrl-C ends it as the signal does', () => {
      expect(asked(ctrlC)).toEqual([-2, `${question}\n`])
    })
  })
})
