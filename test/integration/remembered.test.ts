// What a hook reads beside its payload: notes of conversations, and the end of a transcript.
import fs from 'node:fs'
import { expect, test } from 'vitest'
import { readNotes, remember } from '../../src/agents/notes.ts'
import { linesWith } from '../../src/agents/transcript.ts'
import { realEnv } from '../../src/env.ts'
import { Scratch } from '../support/scratch.ts'

const note = (session: string, source = 'startup') => ({ agent: 'claude', session, source })

test('notes are what their file says now, also to one that has read it before', () => {
  const { base } = new Scratch()
  const [here, other] = [realEnv(), realEnv()]
  const file = `${base}/agents.jsonl`
  const same = () => {
    const fresh = readNotes(realEnv(), base)
    expect(readNotes(here, base)).toEqual(fresh)
    return fresh
  }
  expect(same()).toEqual([])
  remember(here, base, note('a'))
  remember(other, base, note('b'))
  expect(same()).toEqual([note('a'), note('b')])
  remember(other, base, note('a', 'resume'))
  expect(same()).toEqual([note('b'), note('a', 'resume')])
  fs.appendFileSync(file, '{"agent":"claude","session":"c","sou')
  expect(same()).toHaveLength(2)
  fs.appendFileSync(file, 'rce":"fork"}\n')
  expect(same().at(-1)).toEqual(note('c', 'fork'))
  fs.writeFileSync(file, `${JSON.stringify(note('d'))}\n`)
  expect(same()).toEqual([note('d')])
  for (let i = 0; i < 2000; i++) remember(other, base, note(`long ${'x'.repeat(40)} ${i}`))
  expect(same().length).toBeLessThan(1000)
  fs.rmSync(file)
  expect(same()).toEqual([])
})

test('the lines of a transcript that speak of a turn, as far back as its end still does', () => {
  const { base } = new Scratch()
  const file = `${base}/t.jsonl`
  const lines = ['turn-1 ä', 'nothing', 'two of turn-1, turn-1', '', 'turn-12', 'the last, of turn-1']
  for (const end of ['', '\n']) {
    fs.writeFileSync(file, lines.join('\n') + end)
    expect(linesWith(realEnv(), file, 'turn-1')).toEqual(lines.filter((line) => line.includes('turn-1')))
    expect(linesWith(realEnv(), file, 'turn-2')).toEqual([])
  }
  fs.writeFileSync(file, `turn-1 early\n${'x'.repeat(9 * 2 ** 20)}\nturn-1 late\n`)
  expect(linesWith(realEnv(), file, 'turn-1')).toEqual(['turn-1 early', 'turn-1 late'])
  expect(linesWith(realEnv(), `${base}/none.jsonl`, 'turn-1')).toEqual([])
})
