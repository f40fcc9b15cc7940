/**
 * Promise 1, while directories move: somebody moves one away, or leaves a link or a file in its place, before any call that
 * an undo or a redo makes while it writes. It is done or refused; nothing is written behind the link, and no content is lost.
 */
import fs from 'node:fs'
import { expect, test } from 'vitest'
import { Place, STRIDE } from '../support/fault.ts'
import { Scratch } from '../support/scratch.ts'

/** Every one with `npm run test:fault`. */
const STEP = STRIDE === 1 ? 1 : 67

type Act = (root: string, outside: string) => void
const away =
  (name: string): Act =>
  (root, outside) => {
    fs.renameSync(`${root}/${name}`, `${outside}/${name}`)
    fs.symlinkSync(`${outside}/${name}`, `${root}/${name}`)
  }
const acts: Record<string, Act> = {
  'd is moved out of the worktree, with a link in its place': away('d'),
  'new is moved out of the worktree, with a link in its place': away('new'),
  'd gets another name': (root) => fs.renameSync(`${root}/d`, `${root}/moved`),
  'd gets another name, and a link to an empty directory takes its place': (root, outside) => {
    fs.renameSync(`${root}/d`, `${root}/moved`)
    fs.symlinkSync(outside, `${root}/d`)
  },
  'd and new change places': (root) => {
    fs.renameSync(`${root}/d`, `${root}/between`)
    fs.renameSync(`${root}/new`, `${root}/d`)
    fs.renameSync(`${root}/between`, `${root}/new`)
  },
  'what ckpt has beside the worktree goes': (root) => {
    const own = `${root}/.git/ckpt/worktrees/@main/tmp`
    for (const name of fs.readdirSync(own)) fs.unlinkSync(`${own}/${name}`)
  },
  'a file is made where gone was': (root) => fs.writeFileSync(`${root}/gone`, 'mine', { flag: 'wx' }),
}

function attempt(act: () => void): void {
  try {
    act()
  } catch {
    // what it moves is not there at that moment
  }
}

/** What each file outside of git's directory holds, by path. */
const contents = (directory: string): Map<string, string> =>
  new Map(
    fs
      .readdirSync(directory, { withFileTypes: true, recursive: true })
      .filter((one) => one.isFile() && !`${one.parentPath}/`.includes('/.git/'))
      .map((one) => `${one.parentPath}/${one.name}`)
      .map((at) => [at, fs.readFileSync(at, 'utf8')]),
  )

test.each(['undo', 'redo'])('promise 1: %s while directories move', async (command) => {
  const scratch = new Scratch().init({ 'd/one': 'one', 'd/two': 'two', 'gone/x': 'x', 'from/moved': 'moved' })
  scratch.turn('all of it', () => {
    scratch.write({ 'd/one': 'ONE', 'new/n': 'N', 'new/deep/m': 'M' })
    scratch.remove('gone')
    fs.renameSync(scratch.at('from'), scratch.at('to'))
  })
  if (command === 'redo') scratch.ckpt('undo')
  const start = new Place(scratch, scratch.root)
  const before = [...contents(scratch.root).values()]
  const ends = new Set<number>()
  for (const [what, act] of Object.entries(acts)) {
    for (let at = 1; ; at += STEP) {
      const place = start.copy(`${command}-${at}`)
      const outside = `${place.root}-outside`
      fs.mkdirSync(outside)
      let was: ReturnType<typeof contents> = new Map()
      const interfere = () => {
        attempt(() => act(place.root, outside))
        was = contents(outside)
      }
      const { came, code, document } = await place.interfered({ at }, interfere, [command])
      const seen = `${command}: ${what} before call ${at}: ${JSON.stringify(document)}`
      if (came) {
        ends.add(code)
        expect([0, 4], seen).toContain(code)
        // What was put there or taken away in the last moment is taken back.
        const now = contents(outside)
        for (const [at, text] of now) if (text !== was.get(at)) expect(before, seen).toContain(text)
        for (const [at, text] of was) if (before.includes(text)) expect(now.get(at), seen).toBe(text)
        const there = [...contents(place.root).values(), ...now.values()]
        const isNamed = code === 0 || /Changed meanwhile, and left as they are now/.test(document.error.message)
        if (!isNamed) expect(there, seen).toEqual(expect.arrayContaining(before))
        expect((await place.try('verify')).document.problems, seen).toEqual([])
        expect(fs.readdirSync(`${place.root}/.git/ckpt/worktrees/@main/tmp`), seen).toEqual([])
      }
      place.remove()
      fs.rmSync(outside, { recursive: true })
      if (!came) break
    }
  }
  expect([...ends].sort()).toEqual([0, 4])
})
