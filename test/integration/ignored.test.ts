// Which names an ignore rule leaves out, by a git that stays.
import fs from 'node:fs'
import { expect, test } from 'vitest'
import { DEFAULTS } from '../../src/config/defaults.ts'
import type { RelativePath } from '../../src/core/paths.ts'
import { KeptProcess } from '../../src/git/line-process.ts'
import { closeContext, openContext } from '../../src/ops/worktree/context.ts'
import { askIgnored } from '../../src/snapshot/ignored.ts'
import type { Scan } from '../../src/snapshot/scan.ts'
import { envOf } from '../support/in-process.ts'
import { Scratch } from '../support/scratch.ts'

test('it says what one that is started for the question says, whatever came in the place of a directory meanwhile', async () => {
  const scratch = new Scratch().init({ '.gitignore': 'out/\n*.log\n!kept.log\n' })
  scratch.write({ 'd/.gitignore': '*.log\n', 'd/x': '1\n', 'e/.gitignore': 'x\n!a.log\n', 'e/x': '1\n' })
  fs.mkdirSync(scratch.at('out'))
  const env = envOf(scratch)
  const context = await openContext(env, scratch.root, { create: true })
  const { worktree, store } = context
  const rules = new KeptProcess()
  const scan = { env, worktree, store, limits: DEFAULTS.snapshot, rules } as Partial<Scan> as Scan
  const names = new Map<RelativePath, 'file' | 'directory'>()
  // Those of one directory first and last: git keeps what it has read of it until it is asked about another one.
  for (const name of [
    'd/x',
    'a.log',
    'kept.log',
    ':a',
    'n\xfe.log',
    '!a.log',
    'out',
    'out/kept.log',
    'd/kept.log',
    'd/a.log',
  ])
    names.set(name as RelativePath, name === 'out' ? 'directory' : 'file')
  const both = async () => {
    const { signal } = new AbortController()
    const once = await askIgnored(scan, { names, rules: null }, signal)
    expect(await askIgnored(scan, { names, rules: 'the same' }, signal)).toEqual(once)
    return once
  }
  try {
    const first = await both()
    const late = new AbortController()
    const asking = askIgnored(scan, { names, rules: null }, late.signal)
    late.abort()
    expect(await asking).toBeNull()
    expect(first).toEqual(new Set(['out/', 'a.log', 'n\xfe.log', '!a.log', 'd/kept.log', 'd/a.log', 'out/kept.log']))
    fs.renameSync(scratch.at('d'), scratch.at('away'))
    fs.renameSync(scratch.at('e'), scratch.at('d'))
    expect(await both()).toEqual(new Set(['out/', 'a.log', 'n\xfe.log', '!a.log', 'd/x', 'out/kept.log']))
  } finally {
    rules.close()
    closeContext(context)
  }
})
