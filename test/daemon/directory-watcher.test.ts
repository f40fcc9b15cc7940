import fs from 'node:fs'
import path from 'node:path'
import { expect, onTestFinished, test, vi } from 'vitest'
import { DirectoryWatcher } from '../../src/daemon/directory-watcher.ts'
import { Scratch } from '../support/scratch.ts'

class Counting extends DirectoryWatcher {
  readonly reads: string[] = []

  override _readdirp(...given: Parameters<DirectoryWatcher['_readdirp']>) {
    this.reads.push(given[0])
    return super._readdirp(...given)
  }
}

async function watching() {
  const { root } = new Scratch()
  for (let i = 0; i < 5; i++) {
    fs.mkdirSync(path.join(root, `a/b${i}/c`), { recursive: true })
    for (let j = 0; j < 20; j++) fs.writeFileSync(path.join(root, `a/b${i}/f${j}`), 'text\n')
  }
  fs.symlinkSync('a', path.join(root, 'link'))
  await new Promise((resolve) => setTimeout(resolve, 150)) // the directories come to rest
  const watcher = new Counting({
    ignored: (_path, stats) => stats !== undefined && !stats.isDirectory(),
    ignoreInitial: true,
    followSymlinks: false,
    persistent: true,
    atomic: false,
  })
  onTestFinished(() => watcher.close())
  const told: string[] = []
  watcher.on('raw', (_event, name, details) =>
    told.push(path.join(path.relative(root, (details as { watchedPath: string }).watchedPath), String(name))),
  )
  watcher.add(root)
  await new Promise<void>((resolve) => watcher.once('ready', () => resolve()))
  const watched = () =>
    Object.keys(watcher.getWatched())
      .map((one) => path.relative(root, one))
      .filter((one) => !one.startsWith('..'))
      .sort()
  return { root, watcher, told, watched }
}

test('every directory is watched, and nothing else; a file that is written makes it read nothing', async () => {
  const { root, watcher, told, watched } = await watching()
  const five = [0, 1, 2, 3, 4]
  expect(watched()).toEqual(['', 'a', ...five.flatMap((i) => [`a/b${i}`, `a/b${i}/c`])].sort())
  const before = watcher.reads.length
  for (const i of five) fs.appendFileSync(path.join(root, `a/b${i}/f3`), 'more\n')
  await vi.waitFor(() => expect(told).toEqual(expect.arrayContaining(five.map((i) => `a/b${i}/f3`))))
  expect(watcher.reads.slice(before)).toEqual([])
})

test('directories that come, go, change places and come back are watched again', async () => {
  const { root, told, watched } = await watching()
  const at = (name: string) => path.join(root, name)
  const hears = async (name: string) => {
    await vi.waitFor(
      () => {
        fs.appendFileSync(at(name), 'x')
        expect(told).toContain(name)
      },
      { timeout: 5000, interval: 50 },
    )
  }
  // Right after a write in the same directory.
  fs.appendFileSync(at('a/b0/f0'), 'x')
  fs.mkdirSync(at('a/b0/new/deep'), { recursive: true })
  await hears('a/b0/new/deep/file')
  // Away and back: its own times stay what they were.
  fs.renameSync(at('a/b1'), at('a/away'))
  await vi.waitFor(() => expect(watched()).toContain('a/away/c'), { timeout: 5000 })
  fs.renameSync(at('a/away'), at('a/b1'))
  await vi.waitFor(() => expect(watched()).not.toContain('a/away'), { timeout: 5000 })
  await hears('a/b1/c/file')
  // Two change places.
  fs.renameSync(at('a/b2'), at('a/tmp'))
  fs.renameSync(at('a/b3'), at('a/b2'))
  fs.renameSync(at('a/tmp'), at('a/b3'))
  await hears('a/b2/c/file')
  await hears('a/b3/c/file')
  // Gone and made anew.
  fs.rmSync(at('a/b4'), { recursive: true })
  fs.mkdirSync(at('a/b4/c/d'), { recursive: true })
  await hears('a/b4/c/d/file')
})

test('a file in the place of a directory above: nothing is there to read, and nothing fails', async () => {
  const { root, watcher } = await watching()
  fs.rmSync(path.join(root, 'a'), { recursive: true })
  fs.writeFileSync(path.join(root, 'a'), 'a file\n')
  for (const gone of ['a/b0', 'a/b0/c']) {
    const found: unknown[] = []
    for await (const one of watcher._readdirp(path.join(root, gone))!) found.push(one)
    expect(found).toEqual([])
    watcher._throttle('readdir', path.join(root, gone), 1000)
  }
})
