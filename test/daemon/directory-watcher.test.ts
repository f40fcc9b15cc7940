import fs from 'node:fs'
import path from 'node:path'
import { setImmediate } from 'node:timers/promises'
import { expect, onTestFinished, test } from 'vitest'
import { DirectoryWatcher } from '../../src/daemon/directory-watcher.ts'
import { KernelQueue } from '../../src/daemon/kernel-queue.ts'
import { eventually } from '../support/protocol.ts'
import { Scratch } from '../support/scratch.ts'

class Counting extends KernelQueue {
  counted = 0

  override count(): void {
    this.counted++
    super.count()
  }
}

async function watching() {
  const { root } = new Scratch()
  for (let i = 0; i < 5; i++) {
    fs.mkdirSync(path.join(root, `a/b${i}/c`), { recursive: true })
    for (let j = 0; j < 20; j++) fs.writeFileSync(path.join(root, `a/b${i}/f${j}`), 'text\n')
  }
  fs.symlinkSync('a', path.join(root, 'link'))
  fs.mkdirSync(path.join(root, 'passed/over'), { recursive: true })
  const told: string[] = []
  const watched = new Set<string>()
  const errors: unknown[] = []
  const queue = new Counting(Number.POSITIVE_INFINITY)
  const relative = (directory: string) => path.relative(root, directory)
  const watcher = new DirectoryWatcher({
    root,
    skip: (directory) => directory === path.join(root, 'passed'),
    onEvent: (directory, name) => told.push(path.join(relative(directory), String(name))),
    queue,
    onNew: (directory) => watched.add(relative(directory)),
    onGone: (directory) => watched.delete(relative(directory)),
    onLinked: () => errors.push('linked'),
    onAway: () => errors.push('away'),
    onError: (error) => errors.push(error),
  })
  onTestFinished(() => {
    watcher.close()
    expect(errors).toEqual([])
  })
  await watcher.add(root)
  /** Every directory of the disk that is meant to be watched. */
  const there = () =>
    ['', ...fs.readdirSync(root, { recursive: true, encoding: 'utf8' })]
      .filter((name) => !/^(link|passed)/.test(name) && fs.lstatSync(path.join(root, name)).isDirectory())
      .sort()
  return { root, watcher, told, there, watched: () => [...watched].sort(), strays: () => queue.counted - told.length }
}

test('every directory is watched, but what is passed over and what is behind a link', async () => {
  const { root, watcher, told, there, watched } = await watching()
  expect(watched()).toEqual(there())
  expect([watched().length, watcher.count]).toEqual([12, 12])
  for (const i of [0, 1, 2, 3, 4]) fs.appendFileSync(path.join(root, `a/b${i}/f3`), 'more\n')
  await eventually(() => expect(new Set(told)).toEqual(new Set([0, 1, 2, 3, 4].map((i) => `a/b${i}/f3`))))
})

test('directories that come, go, change places and come back are watched again', async () => {
  const { root, told, there, watched } = await watching()
  const at = (name: string) => path.join(root, name)
  let cookies = 0
  const hears = async (...names: string[]) => {
    const cookie = `cookie${++cookies}`
    fs.writeFileSync(at(cookie), '')
    await eventually(() => expect(told).toContain(cookie)) // and all that was before
    expect(watched()).toEqual(there())
    told.length = 0
    for (const name of names) fs.appendFileSync(at(name), 'x')
    await eventually(() => expect(told).toEqual(expect.arrayContaining(names)))
  }
  fs.mkdirSync(at('a/b0/new/deep'), { recursive: true })
  await hears('a/b0/new/deep/file')
  // Away and back: its own times stay what they were.
  fs.renameSync(at('a/b1'), at('a/away'))
  await hears('a/away/c/file')
  fs.renameSync(at('a/away'), at('a/b1'))
  await hears('a/b1/c/file')
  // Two change places.
  fs.renameSync(at('a/b2'), at('a/tmp'))
  fs.renameSync(at('a/b3'), at('a/b2'))
  fs.renameSync(at('a/tmp'), at('a/b3'))
  await hears('a/b2/c/file', 'a/b3/c/file')
  // Gone and made anew, all of it with the numbers that were there before.
  fs.rmSync(at('a/b4'), { recursive: true })
  fs.mkdirSync(at('a/b4/c/d'), { recursive: true })
  await hears('a/b4/c/d/file', 'a/b4/file')
  // A file in its place, and a directory again.
  fs.rmSync(at('a'), { recursive: true })
  fs.writeFileSync(at('a'), 'a file\n')
  await hears('file')
  fs.rmSync(at('a'))
  fs.mkdirSync(at('a/a/a'), { recursive: true })
  await hears('a/file', 'a/a/file', 'a/a/a/file')
})

test('a directory that is made anew with the number of the old one is watched', async () => {
  const { root, told } = await watching()
  const at = (name: string) => path.join(root, name)
  let same = 0
  for (let i = 0; i < 20; i++) {
    fs.mkdirSync(at(`one${i}`))
    await eventually(() => expect(told).toContain(`one${i}`))
    const { ino } = fs.lstatSync(at(`one${i}`))
    fs.rmdirSync(at(`one${i}`))
    fs.mkdirSync(at(`one${i}`))
    if (fs.lstatSync(at(`one${i}`)).ino === ino) same++
    await new Promise((resolve) => setTimeout(resolve, 5))
    fs.writeFileSync(at(`one${i}/file`), 'x')
    await eventually(() => expect(told).toContain(`one${i}/file`))
  }
  // On a file system that never gives a number twice this would show nothing.
  if (fs.statfsSync(root).type === 0xef53) expect(same).toBeGreaterThan(0)
})

test('a directory that left its name is heard of for a while, and by its new name', async () => {
  const { root, told, watched, there, strays } = await watching()
  const at = (name: string) => path.join(root, name)
  const away = `${root}-away`
  fs.renameSync(at('a/b1'), away)
  await eventually(() => expect(watched()).toEqual(there()))
  fs.writeFileSync(`${away}/file`, 'x')
  await eventually(() => expect(strays()).toBeGreaterThan(0))
  expect(told.filter((name) => name.endsWith('file'))).toEqual([])
  // Under another name, from where it goes at once and comes anew with the same number.
  fs.renameSync(away, at('a/new'))
  await eventually(() => expect(watched()).toEqual(there()))
  fs.rmSync(at('a/new'), { recursive: true })
  fs.mkdirSync(at('a/new'))
  fs.writeFileSync(at('cookie'), '')
  await eventually(() => expect(told).toContain('cookie'))
  fs.writeFileSync(at('a/new/file'), 'x')
  await eventually(() => expect(told).toContain('a/new/file'))
  // Silent, it is let go.
  fs.renameSync(at('a/new'), away)
  await new Promise((resolve) => setTimeout(resolve, 3500))
  const before = strays()
  fs.writeFileSync(`${away}/more`, 'x')
  fs.writeFileSync(at('cookie2'), '')
  await eventually(() => expect(told).toContain('cookie2'))
  expect(strays()).toBe(before)
})

/** Numbers below one that is given: the same ones for the same seed. */
function random(seed: number): (below: number) => number {
  let x = seed
  return (below) => {
    x = (Math.imul(x, 1103515245) + 12345) >>> 0
    return (x >>> 16) % below
  }
}

test.each([1, 2, 3])(
  'after any coming and going every directory is watched, and no other (seed %i)',
  { timeout: 60_000 },
  async (seed) => {
    const { root, told, there, watched } = await watching()
    const at = (name: string) => path.join(root, name)
    const names = ['a/b0', 'a/b0/c', 'a/b1', 'a/b1/b1', 'n', 'n/n', 'n/n/m', 'a/b0/c/n']
    const pick = random(seed)
    const churn = () => {
      const [one, other] = [names[pick(names.length)]!, names[pick(names.length)]!]
      const what = pick(4)
      fs.mkdirSync(at(one), { recursive: true })
      if (what < 2) {
        fs.rmSync(at(one), { recursive: true })
        if (pick(3) > 0) fs.mkdirSync(at(one))
      } else if (what === 2) {
        const fits = !fs.existsSync(at(other)) && !other.startsWith(one) && fs.existsSync(path.dirname(at(other)))
        if (fits) fs.renameSync(at(one), at(other))
      }
    }
    for (let round = 0; round < 25; round++) {
      for (let i = pick(12); i >= 0; i--) churn()
      if (pick(2) === 0) await new Promise((resolve) => setTimeout(resolve, pick(5)))
      for (let i = pick(12); i >= 0; i--) churn()
      // All events so far were heard when this one is.
      fs.writeFileSync(at(`cookie${round}`), '')
      await eventually(() => expect(told).toContain(`cookie${round}`), { interval: 5 })
      expect(watched()).toEqual(there())
      const heard = there().map((name) => path.join(name, `file-${round}`))
      for (const name of heard) fs.writeFileSync(at(name), 'x')
      await eventually(() => expect(heard.filter((name) => !told.includes(name))).toEqual([]))
    }
  },
)

test('a tree of thousands of directories is watched while others have their turn', async () => {
  const { root, watcher, told, there, watched } = await watching()
  const outside = path.join(path.dirname(root), 'outside')
  for (let i = 0; i < 1500; i++) fs.mkdirSync(path.join(outside, `d${i % 30}/e${i}`), { recursive: true })
  fs.renameSync(outside, path.join(root, 'moved'))
  let turns = 0
  while (!watcher.settled || !told.includes('moved')) {
    await setImmediate()
    if (!watcher.settled) turns++
  }
  expect(turns).toBeGreaterThan(2)
  expect(watched()).toEqual(there())
})
