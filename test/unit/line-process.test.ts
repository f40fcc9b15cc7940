// A git process that stays is asked one question after the other, whoever asks.
import { spawnSync } from 'node:child_process'
import { setTimeout } from 'node:timers/promises'
import { expect, test } from 'vitest'
import { KeptProcess, LineProcess } from '../../src/git/line-process.ts'
import { envOf } from '../support/in-process.ts'
import { PACKAGE, Scratch } from '../support/scratch.ts'

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

test('one that was closed answers nobody any more, neither who waits nor who asks then; another one does', async () => {
  const scratch = new Scratch().init({ '.gitignore': '*.log\n!kept.log\n' })
  const args = ['check-ignore', '--no-index', '-z', '--stdin', '--verbose', '--non-matching']
  const start = () =>
    new LineProcess(envOf(scratch), { args, cwd: scratch.root, vars: { GIT_LITERAL_PATHSPECS: '0' } }, '\0')
  const closed = start()
  const waiting = [closed.ask('a.log\0', 8), closed.ask('a.log\0', 4)] // four will come of the first
  await setTimeout(50)
  closed.close()
  waiting.push(closed.ask('a.log\0', 4))
  for (const one of waiting) await expect(one).rejects.toMatchObject({ code: 'INTERNAL' })
  const asked = start()
  expect(await asked.ask(Buffer.from('\xff.log\0kept.log\0a\0', 'latin1'), 12)).toEqual([
    ...['.gitignore', '1', '*.log', '\xff.log'],
    ...['.gitignore', '2', '!kept.log', 'kept.log'],
    ...['', '', '', 'a'],
  ])
  asked.close()
})

test('one that nobody asks keeps no program alive', () => {
  const scratch = new Scratch().init()
  const asking = `
    const { LineProcess } = await import('./src/git/line-process.ts')
    const { realEnv } = await import('./src/env.ts')
    const asked = new LineProcess(realEnv(), { args: ['cat-file', '--batch-check'], cwd: ${JSON.stringify(scratch.root)} })
    for (const name of ['none', 'no more']) console.log((await asked.ask(name + '\\n', 1))[0])`
  const args = ['--import', 'tsx', '--input-type=module', '-e', asking]
  const { status, stdout } = spawnSync(process.execPath, args, { cwd: PACKAGE, encoding: 'utf8', timeout: 30_000 })
  expect([status, stdout]).toEqual([0, 'none missing\nno more missing\n'])
})

test('a process is kept for one state, and another one has its own', async () => {
  const scratch = new Scratch().init()
  const start = () => new LineProcess(envOf(scratch), { args: ['cat-file', '--batch-check'], cwd: scratch.root })
  const kept = new KeptProcess()
  const first = kept.of('one', start)
  const asking = first.ask('none\n', 2)
  expect(kept.of('one', start)).toBe(first)
  const other = kept.of('two', start)
  await expect(asking).rejects.toMatchObject({ code: 'INTERNAL' })
  expect(await other.ask('none\n', 1)).toEqual(['none missing'])
  kept.close()
})
