// Many texts are merged by few processes: each as git-merge-file(1) does it alone.
import { spawnSync } from 'node:child_process'
import fs from 'node:fs'
import { expect, test } from 'vitest'
import type { Oid } from '../../src/core/ids.ts'
import { mergeTexts } from '../../src/ops/store/merge-texts.ts'
import { closeContext, openContext } from '../../src/ops/worktree/context.ts'
import { envOf } from '../support/in-process.ts'
import { Scratch } from '../support/scratch.ts'

/** The base, and how each side changes it. */
const KINDS = {
  clean: ['f', (text: string) => text.replace('b\n', 'B\n'), (text: string) => text.replace('f\n', 'F\n')],
  conflict: ['f', (text: string) => text.replace('b\n', 'X\n'), (text: string) => text.replace('b\n', 'Y\n')],
  binary: ['\0', (text: string) => text.replace('b\n', 'B\n'), (text: string) => text.replace('f\n', 'F\n')],
  large: ['f\n'.repeat(3_000_000), (text: string) => `top\n${text}`, (text: string) => `${text}end\n`],
} as const

test('of 200 texts each is merged as alone, in its place, large and binary ones among them', async () => {
  const scratch = new Scratch().init()
  scratch.turn('first', () => scratch.write({ 'a.txt': 'two\n' }))
  const said: string[] = []
  const progress = async (what: string) => void said.push(what)
  const context = await openContext({ ...envOf(scratch), progress }, scratch.root)
  const { objects } = context.store
  const names = ['ours', 'base', 'theirs'].map((name) => `${scratch.base}/${name}`)
  const alone = (sides: readonly string[]) => {
    for (const [i, side] of sides.entries()) fs.writeFileSync(names[i]!, side)
    const labels = ['on disk', 'after the turn', 'before the turn'].flatMap((one) => ['-L', one])
    return spawnSync('git', ['merge-file', '-p', ...labels, ...names], { maxBuffer: 1 << 28, env: scratch.vars }).stdout
  }
  try {
    const jobs = Array.from({ length: 200 }, (_, i) => {
      const kind = i % 50 === 49 ? 'binary' : i === 100 ? 'large' : i % 7 === 0 ? 'conflict' : 'clean'
      const [more, one, other] = KINDS[kind]
      const base = `${i} a\nb\nc\nd\ne\n${more}\n`
      return { kind, sides: [one(base), base, other(base)] as const }
    })
    const write = (text: string): Oid => objects.write('blob', Buffer.from(text))
    const requests = jobs.map(({ sides: [ours, base, theirs] }) => ({
      ours: write(ours),
      base: write(base),
      theirs: write(theirs),
    }))
    const results = await mergeTexts(context, requests)
    expect(results.map(({ kind }) => kind)).toEqual(jobs.map(({ kind }) => (kind === 'large' ? 'clean' : kind)))
    for (const [i, { sides }] of jobs.entries()) {
      const result = results[i]!
      if (result.kind === 'binary') continue
      expect((await objects.get(result.oid, 'blob')).equals(alone(sides)), `${i}`).toBe(true)
    }
    expect(said.at(-1)).toBe('merging: 200 of 200 texts')
    expect(said.length).toBeLessThan(10)
    expect(fs.readdirSync(`${context.store.worktreeDir}/tmp`)).toEqual([])
  } finally {
    closeContext(context)
  }
})
