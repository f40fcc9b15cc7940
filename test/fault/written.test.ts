/**
 * A disk that is full from some moment on. And promise 1, at the last moment: somebody writes to a file while an undo puts another state there, before any call that
 * the undo makes, and the undo is killed or lives on. What was written is in the worktree, or in a file that is named.
 */
import fs from 'node:fs'
import { describe, expect, test } from 'vitest'
import { Place, STRIDE } from '../support/fault.ts'
import { Scratch } from '../support/scratch.ts'

/** Every one with `npm run test:fault`. */
const STEP = STRIDE === 1 ? 1 : 67

const keptIn = (place: Place): string[] => {
  const kept = `${place.root}/.git/ckpt/worktrees/@main/kept`
  return fs.existsSync(kept) ? fs.readdirSync(kept).map((name) => fs.readFileSync(`${kept}/${name}`, 'utf8')) : []
}

describe.each(['written', 'written-killed'] as const)('%s', (mode) => {
  test.each(['changed.txt', 'made.txt', 'gone.txt'])('promise 1: %s, written to at the last moment', async (file) => {
    const scratch = new Scratch().init({ 'changed.txt': 'one\n', 'gone.txt': 'gone\n' })
    scratch.turn('all three', () => {
      scratch.write({ 'changed.txt': 'two\n', 'made.txt': 'made\n' })
      scratch.remove('gone.txt')
    })
    const start = new Place(scratch, scratch.root)
    for (let at = mode === 'written' ? 1 : 2; ; at += STEP) {
      const place = start.copy(`${mode}-${at}`)
      const calls = await place.written({ mode, at, file }, ['undo'])
      if (calls !== null && at > calls) break
      await place.ckpt('snapshot')
      const path = `${place.root}/${file}`
      const texts = [fs.existsSync(path) ? fs.readFileSync(path, 'utf8') : '', ...keptIn(place)]
      expect([at, texts.some((text) => text.endsWith('mine\n'))], JSON.stringify(texts)).toEqual([at, true])
      expect((await place.try('verify')).document.problems).toEqual([])
      place.remove()
    }
  })
})

test('a disk that is full in the middle of an undo: all is as it was, or the next command finishes it', async () => {
  const scratch = new Scratch().init({ 'changed.txt': 'one\n', 'gone/away.txt': 'gone\n' })
  scratch.turn('all three', () => {
    scratch.write({ 'changed.txt': 'two\n', 'made.txt': 'made\n' })
    scratch.remove('gone')
  })
  const start = new Place(scratch, scratch.root)
  const before = start.manifest
  const finished = start.copy('finished')
  await finished.ckpt('undo')
  const after = finished.manifest
  const ends = new Set<string>()
  for (let at = 1; ; at += STEP) {
    const place = start.copy(`full-${at}`)
    const calls = await place.full(at, ['undo'])
    if (calls !== null && at > calls) break
    const isUnfinished = fs.existsSync(`${place.root}/.git/ckpt/worktrees/@main/journal.json`)
    if (isUnfinished) await place.ckpt('status')
    const end = JSON.stringify(place.manifest) === JSON.stringify(after) ? 'after' : 'before'
    expect([at, place.manifest]).toEqual([at, end === 'after' ? after : before])
    if (isUnfinished) expect(end).toBe('after')
    ends.add(isUnfinished ? 'later' : end)
    expect((await place.try('verify')).document.problems).toEqual([])
    place.remove()
  }
  expect([...ends].sort()).toEqual(expect.arrayContaining(['before', 'later']))
})
