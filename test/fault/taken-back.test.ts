/**
 * Promise 1, while an undo that is refused in the middle takes back what it wrote: somebody writes to an inode that it put
 * aside, or it is killed there. Each path holds what is its own, what was written is there or named, and nothing is left.
 */
import { execFileSync } from 'node:child_process'
import fs from 'node:fs'
import { expect, test } from 'vitest'
import { ASIDE_MODES, Place } from '../support/fault.ts'
import { Scratch } from '../support/scratch.ts'

const textsIn = (directory: string): [path: string, text: string][] =>
  (fs.existsSync(directory) ? fs.readdirSync(directory, { withFileTypes: true, recursive: true }) : [])
    .filter((one) => one.isFile() && !`${one.parentPath}/`.includes(`${directory}/.git/`))
    .map((one) => `${one.parentPath}/${one.name}`)
    .map((at) => [at.slice(directory.length + 1), fs.readFileSync(at, 'utf8')])

test.each(
  ASIDE_MODES.flatMap((mode) => [
    [mode, 'beside the worktree', false] as const,
    [mode, 'on another mount', true] as const,
  ]),
)('promise 1: %s, with the store %s', async (mode, _, mount) => {
  const scratch = new Scratch().init({ 'a/1': 'a/1 one\n', 'a/gone': 'a/gone\n', 'b/1': 'b/1\n', 'c/z': 'c/z one\n' })
  scratch.turn('all four', () => {
    scratch.write({ 'a/1': 'a/1 two\n', 'b/2': 'b/2 two\n', 'c/z': 'c/z two\n' })
    scratch.remove('a/gone')
  })
  const start = new Place(scratch, scratch.root)
  let killed = 0
  for (let at = 1; ; at++) {
    const place = start.copy(`${mode}-${mount}-${at}`)
    const calls = await place.aside({ mode, at, amid: 'c/z', mount }, ['undo'])
    if (calls !== null && at > calls) break
    if (calls === null) killed++
    await place.ckpt('snapshot')
    const own = `${place.root}/.git/ckpt/worktrees/@main`
    const texts = textsIn(place.root)
    const seen = `${at}: ${JSON.stringify(texts)}`
    for (const [path, text] of texts) expect([path, text.startsWith(path)], seen).toEqual([path, true])
    expect(texts.find(([path]) => path === 'c/z')?.[1], seen).toBe('c/z two\ntheirs\n')
    const mine = [...texts, ...textsIn(`${own}/kept`)].filter(([, text]) => text.endsWith('mine\n'))
    expect(mine.length > 0, seen).toBe(mode !== 'aside-alone-killed')
    for (const [, text] of textsIn(`${own}/kept`)) expect(text, seen).toMatch(/mine\n$/)
    expect(fs.readdirSync(`${own}/tmp`), seen).toEqual([])
    expect((await place.try('verify')).document.problems, seen).toEqual([])
    place.remove()
  }
  expect(killed > 0).toBe(mode !== 'aside')
})

test.each([
  ['a directory', (at: string) => fs.mkdirSync(at)],
  ['a named pipe', (at: string) => execFileSync('mkfifo', [at])],
])('%s that took the place of a file right before that went aside goes back', async (_, make) => {
  const scratch = new Scratch().init({ 'a.txt': 'one\n' })
  scratch.turn('one more', () => scratch.write({ 'b.txt': 'two\n' }))
  const place = new Place(scratch, scratch.root)
  const own = scratch.at('.git/ckpt/worktrees/@main')
  expect(await place.aside({ mode: 'aside-alone-killed', at: 1, amid: 'a.txt', mount: false }, ['undo'])).toBe(null)
  const [name] = fs.readdirSync(`${own}/tmp`)
  fs.unlinkSync(`${own}/tmp/${name}`)
  make(`${own}/tmp/${name}`)
  const { warnings } = await place.ckpt('status')
  expect(warnings).toContain('b.txt was written to at that very moment; it holds that now.')
  expect(fs.lstatSync(scratch.at('b.txt')).isFile()).toBe(false)
  expect([fs.readdirSync(`${own}/tmp`), fs.existsSync(`${own}/kept`)]).toEqual([[], false])
  expect((await place.try('verify')).document.problems).toEqual([])
})

test('what was written to what went aside goes back over nothing that is written to right then', async () => {
  const scratch = new Scratch().init({ 'a.txt': 'one\n', 'b.txt': 'one\n' })
  scratch.turn('both', () => scratch.write({ 'a.txt': 'two\n', 'b.txt': 'two\n' }))
  const start = new Place(scratch, scratch.root)
  const own = '.git/ckpt/worktrees/@main'
  expect(await start.aside({ mode: 'aside-alone-killed', at: 1, amid: 'b.txt', mount: false }, ['undo'])).toBe(null)
  const old = `${own}/tmp/${fs.readdirSync(scratch.at(`${own}/tmp`)).find((name) => name.endsWith('.old'))}`
  scratch.remove(old)
  scratch.write({ [old]: 'mine\n' })
  for (const gone of [false, true]) {
    if (gone) scratch.remove('a.txt')
    for (let at = 1; ; at++) {
      const place = start.copy(`late-${gone}-${at}`)
      const { came } = await place.interfered(
        { at, of: /\/a\.txt$|\.old$|\/kept\// },
        () => fs.appendFileSync(`${place.root}/a.txt`, 'late\n'),
        ['status'],
      )
      if (!came) break
      const texts = [...textsIn(place.root), ...textsIn(`${place.root}/${own}/kept`)]
      const seen = `gone: ${gone}, before call ${at}: ${JSON.stringify(texts)}`
      for (const word of ['mine\n', 'late\n'])
        expect(
          texts.some(([, text]) => text.includes(word)),
          seen,
        ).toBe(true)
      expect(fs.readdirSync(`${place.root}/${own}/tmp`), seen).toEqual([])
      place.remove()
    }
  }
})
