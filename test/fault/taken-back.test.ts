/**
 * Promise 1, while an undo that is refused in the middle takes back what it wrote: somebody writes to an inode that it put
 * aside, or it is killed there. Each path holds what is its own, what was written is there or named, and nothing is left.
 */
import { execFileSync } from 'node:child_process'
import fs from 'node:fs'
import { describe, expect, test } from 'vitest'
import { type Amid, amid } from '../support/amid.ts'
import { Place } from '../support/fault.ts'
import { Scratch } from '../support/scratch.ts'

const OWN = '.git/ckpt/worktrees/@main'

const textsIn = (directory: string): [path: string, text: string][] =>
  (fs.existsSync(directory) ? fs.readdirSync(directory, { withFileTypes: true, recursive: true }) : [])
    .filter((one) => one.isFile() && !`${one.parentPath}/`.includes(`${directory}/.git/`))
    .map((one) => `${one.parentPath}/${one.name}`)
    .map((at) => [at.slice(directory.length + 1), fs.readFileSync(at, 'utf8')])

const JOURNAL = { call: 'renameSync', on: '/journal\\.json$', when: 'after' } as const
/** Calls that put an old inode aside. */
const ASIDE = { on: '\\.old$', when: 'after' } as const
const FIRST_ASIDE = { ...ASIDE, call: 'linkSync', when: 'before' } as const

const WAYS: Record<string, Pick<Amid, 'run' | 'kill'>> = {
  'somebody writes to it': { run: 'echo mine >>"$SEEN"' },
  'somebody writes to it, and the undo is killed': { run: 'echo mine >>"$SEEN"', kill: true },
  'the undo is killed': { kill: true },
}

describe.each([
  ['beside the worktree', false],
  ['on another mount', true],
])('with the store %s', (_, mount) => {
  test.each(Object.entries(WAYS))('promise 1: right after an inode went aside %s', async (_, way) => {
    const scratch = new Scratch().init({ 'a/1': 'a/1 one\n', 'a/gone': 'a/gone\n', 'b/1': 'b/1\n', 'c/z': 'c/z one\n' })
    scratch.turn('all four', () => {
      scratch.write({ 'a/1': 'a/1 two\n', 'b/2': 'b/2 two\n', 'c/z': 'c/z two\n' })
      scratch.remove('a/gone')
    })
    const start = new Place(scratch, scratch.root)
    // b/2 and a/1 while it undoes, a/gone and a/1 while it takes that back
    for (const [call, nth] of [
      ['renameSync', 1],
      ['linkSync', 1],
      ['renameSync', 2],
      ['linkSync', 2],
    ] as const) {
      const place = start.copy(`${mount}-${call}-${nth}`)
      // Once new content is written for all of them, c/z is looked at again when its turn comes.
      const amidst = call === 'renameSync' && nth === 1 ? JOURNAL : FIRST_ASIDE
      const refused = { ...amidst, run: 'echo theirs >>c/z' }
      const vars = amid(scratch, [refused, { ...ASIDE, call, nth, ...way }], { mount })
      expect(scratch.runApart(['undo'], { cwd: place.root, vars }).code).toBe(way.kill ? 128 : 4)
      await place.ckpt('snapshot')
      const own = `${place.root}/${OWN}`
      const texts = textsIn(place.root)
      const kept = textsIn(`${own}/kept`)
      const seen = `${call} ${nth}: ${JSON.stringify([...texts, ...kept])}`
      for (const [path, text] of texts) expect([path, text.startsWith(path)], seen).toEqual([path, true])
      expect(texts.find(([path]) => path === 'c/z')?.[1], seen).toBe('c/z two\ntheirs\n')
      expect(
        [...texts, ...kept].some(([, text]) => text.endsWith('mine\n')),
        seen,
      ).toBe(way.run !== undefined)
      for (const [, text] of kept) expect(text, seen).toMatch(/mine\n$/)
      expect(fs.readdirSync(`${own}/tmp`), seen).toEqual([])
      expect((await place.try('verify')).document.problems, seen).toEqual([])
      place.remove()
    }
  })
})

/** An undo of a turn that changed a.txt and b.txt, killed right after it put a.txt aside; the name of what it put there. */
function killedWithAside(scratch: Scratch): string {
  scratch.turn('both', () => scratch.write({ 'a.txt': 'two\n', 'b.txt': 'two\n' }))
  const vars = amid(scratch, [{ ...ASIDE, call: 'linkSync', kill: true }])
  expect(scratch.runApart(['undo'], { vars }).code).toBe(128)
  const name = fs.readdirSync(scratch.at(`${OWN}/tmp`)).find((one) => one.endsWith('.old'))
  return `${OWN}/tmp/${name}`
}

test.each([
  ['a directory', (at: string) => fs.mkdirSync(at)],
  ['a named pipe', (at: string) => execFileSync('mkfifo', [at])],
])('%s that took the place of a file right before that went aside goes back', async (_, make) => {
  const scratch = new Scratch().init({ 'a.txt': 'one\n', 'b.txt': 'one\n' })
  const old = killedWithAside(scratch)
  for (const name of [old, 'a.txt']) scratch.remove(name)
  make(scratch.at(old))
  const { warnings } = scratch.ckpt('status')
  expect(warnings).toContain('a.txt was written to at that very moment; it holds that now.')
  expect(fs.lstatSync(scratch.at('a.txt')).isFile()).toBe(false)
  expect([fs.readdirSync(scratch.at(`${OWN}/tmp`)), scratch.exists(`${OWN}/kept`)]).toEqual([[], false])
  expect(scratch.ckpt('verify').problems).toEqual([])
})

test('what was written to what went aside goes back over nothing that is written to right then', async () => {
  const scratch = new Scratch().init({ 'a.txt': 'one\n', 'b.txt': 'one\n' })
  const old = killedWithAside(scratch)
  const start = new Place(scratch, scratch.root)
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
      const texts = [...textsIn(place.root), ...textsIn(`${place.root}/${OWN}/kept`)]
      const seen = `gone: ${gone}, before call ${at}: ${JSON.stringify(texts)}`
      for (const word of ['mine\n', 'late\n'])
        expect(
          texts.some(([, text]) => text.includes(word)),
          seen,
        ).toBe(true)
      expect(fs.readdirSync(`${place.root}/${OWN}/tmp`), seen).toEqual([])
      place.remove()
    }
  }
})

test('what was there before is kept, and named, where what was written over it cannot be taken back', () => {
  const lines = (first: string, last: string) => `${first}\n${'same\n'.repeat(8)}${last}\n`
  const scratch = new Scratch().init({ 'a.txt': lines('one', 'one'), 'z.txt': 'one\n' })
  scratch.turn('both', () => scratch.write({ 'a.txt': lines('two', 'one'), 'z.txt': 'two\n' }))
  const mine = lines('two', 'mine')
  scratch.write({ 'a.txt': mine })
  const vars = amid(scratch, [
    { call: 'renameSync', on: '/a\\.txt$', when: 'after', run: 'echo later >a.txt; echo theirs >>z.txt' },
  ])
  const { code, stdout } = scratch.runApart(['undo', '--json'], { vars })
  const { message } = JSON.parse(stdout).error
  expect([code, scratch.read('a.txt'), scratch.read('z.txt')]).toEqual([4, 'later\n', 'two\ntheirs\n'])
  const [, id] = /Changed meanwhile, and left as they are now: a\.txt \(before: checkpoint ([0-9a-f]{10})\)/.exec(
    message,
  )!
  scratch.ckpt('prune')
  scratch.ckpt('restore', id!, '--force', '--', 'a.txt')
  expect(scratch.read('a.txt')).toBe(mine)
  expect(scratch.ckpt('verify').problems).toEqual([])
})
