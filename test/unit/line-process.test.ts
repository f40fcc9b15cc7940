// A git process that stays is asked one question after the other, whoever asks.
import { expect, test } from 'vitest'
import { LineProcess } from '../../src/git/line-process.ts'
import { envOf } from '../support/in-process.ts'
import { Scratch } from '../support/scratch.ts'

test('questions at the same time each get their own answer', async () => {
  const scratch = new Scratch().init()
  const head = scratch.git('rev-parse', 'HEAD').trim()
  const args = ['cat-file', '--batch-check=%(objectname)']
  const asked = new LineProcess(envOf(scratch), { args, cwd: scratch.root })
  const answers = await Promise.all([
    asked.ask('HEAD\nnothing\n', 2),
    asked.ask('HEAD\n', 1),
    asked.ask('none\nHEAD\n', 2),
  ])
  asked.close()
  expect(answers).toEqual([[head, 'nothing missing'], [head], ['none missing', head]])
})
