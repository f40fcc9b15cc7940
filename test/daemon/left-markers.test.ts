// Markers that somebody leaves as files, beside a daemon: taken up at once, so that turns can be undone one by one.
import fs from 'node:fs'
import path from 'node:path'
import { expect, onTestFinished, test } from 'vitest'
import type { SessionId } from '../../src/core/ids.ts'
import type { Marker } from '../../src/core/marker.ts'
import { KernelQueue } from '../../src/daemon/kernel-queue.ts'
import { LeftMarkers } from '../../src/daemon/left-markers.ts'
import { realEnv } from '../../src/env.ts'
import { leaveMarker, waitingMarkers } from '../../src/ops/worktree/marker-files.ts'
import { startDaemon } from '../support/daemon.ts'
import { until } from '../support/protocol.ts'
import { type Json, Scratch } from '../support/scratch.ts'

/** An agent that can only write files. */
class FileAgent {
  readonly #directory: string
  #count = 0

  constructor(scratch: Scratch) {
    const { store, worktree } = scratch.ckpt('status')
    this.#directory = path.join(store.path, 'worktrees', worktree, 'markers')
    fs.mkdirSync(this.#directory, { recursive: true })
  }

  get waiting(): string[] {
    return fs.readdirSync(this.#directory)
  }

  leave(marker: Json): void {
    const id = `id-${++this.#count}`
    const [file, time] = [path.join(this.#directory, `${id}.json`), '2026-01-31T12:00:00.000Z']
    fs.writeFileSync(`${file}.tmp`, JSON.stringify({ version: 1, id, client: 'mine', time, marker }))
    fs.renameSync(`${file}.tmp`, file)
  }

  async told(marker: Json): Promise<void> {
    this.leave(marker)
    await until(() => this.waiting.length === 0, 'taken up', 4)
  }
}

test('turns that are told of by files alone are undone one by one', async () => {
  const scratch = new Scratch().init()
  startDaemon(scratch)
  const agent = new FileAgent(scratch)
  for (const n of [1, 2]) {
    await agent.told({ event: 'prompt', session: 's', text: `turn ${n}` })
    scratch.write({ [`f${n}.txt`]: `${n}\n` })
    await agent.told({ event: 'stop', session: 's' })
  }
  const { turns } = scratch.ckpt('list')
  expect(turns.map(({ n, status, stat }: Json) => [n, status, stat.files])).toEqual([
    [2, 'completed', 1],
    [1, 'completed', 1],
  ])
  scratch.ckpt('undo')
  expect([scratch.exists('f1.txt'), scratch.exists('f2.txt')]).toEqual([true, false])
})

test('what was left before the daemon came is taken up, and what comes while somebody is at work once that ends', async () => {
  const scratch = new Scratch().init()
  const agent = new FileAgent(scratch)
  agent.leave({ event: 'prompt', session: 's' })
  startDaemon(scratch)
  await until(() => agent.waiting.length === 0, 'left before')
  const lock = scratch.at('.git/ckpt/worktrees/@main/lock')
  fs.writeFileSync(lock, 'somebody else')
  agent.leave({ event: 'stop', session: 's' })
  await new Promise((resolve) => setTimeout(resolve, 500))
  expect(agent.waiting).toHaveLength(1)
  expect(scratch.ckpt('daemon', 'status').running).toBe(true)
  fs.rmSync(lock)
  await until(() => agent.waiting.length === 0, 'once the lock is free', 4)
  expect(scratch.ckpt('list').turns).toMatchObject([{ n: 1, status: 'completed' }])
})

test('one that cannot be taken up is tried once, and again with the next one that comes', async () => {
  const scratch = new Scratch()
  let tried = 0
  const takeUp = async () => tried++
  const left = new LeftMarkers(realEnv(), {
    store: { worktreeDir: scratch.root },
    queue: KernelQueue.of(realEnv()),
    takeUp,
    log: () => undefined,
  })
  onTestFinished(() => left.stop())
  left.start()
  for (const [i, name] of ['markers/a.json', 'markers/b.json'].entries()) {
    scratch.write({ [name]: '' })
    await until(() => tried > i, name)
    for (let looks = 0; looks < 5; looks++) {
      left.look(0)
      await new Promise((resolve) => setTimeout(resolve, 10))
    }
    expect(tried).toBe(i + 1)
  }
})

test('markers wait in the order in which they were left, though the clock was set back', () => {
  const scratch = new Scratch().init()
  const store = { worktreeDir: scratch.base }
  const leave = (id: string, marker: Marker, time: string) =>
    leaveMarker(realEnv(), store, { version: 1, id, client: 'mine', time, marker })
  leave('a', { event: 'prompt', session: 's' as SessionId }, '2026-01-31T12:00:03.000Z')
  leave('b', { event: 'step', session: 's' as SessionId }, '2026-01-31T12:00:00.000Z')
  leave('c', { event: 'stop', session: 's' as SessionId }, '2026-01-31T12:00:01.000Z')
  const waiting = waitingMarkers(realEnv(), store)
  expect(waiting.map((name) => JSON.parse(fs.readFileSync(`${scratch.base}/markers/${name}`, 'utf8')).id)).toEqual([
    'a',
    'b',
    'c',
  ])
})

test('none is left where the repository was taken away meanwhile', () => {
  const { base } = new Scratch()
  const store = { worktreeDir: `${base}/gone/.git/ckpt/worktrees/@main` }
  const marker = { event: 'stop', session: 's' as SessionId } as const
  leaveMarker(realEnv(), store, { version: 1, id: 'a', client: 'mine', time: '2026-01-31T12:00:03.000Z', marker })
  expect(fs.existsSync(`${base}/gone`)).toBe(false)
})

test.each(['list', 'status'])('the first marker of all, left before there is a store, is taken up by %s', (command) => {
  const scratch = new Scratch().init()
  const agent = new FileAgent(scratch)
  expect(scratch.exists('.git/ckpt/store.git')).toBe(false)
  agent.leave({ event: 'prompt', session: 's', text: 'one' })
  scratch.ckpt(command)
  expect(agent.waiting).toEqual([])
  scratch.write({ 'a.txt': 'two\n' })
  agent.leave({ event: 'stop', session: 's' })
  expect(scratch.ckpt('list').turns).toMatchObject([{ prompt: 'one', status: 'completed', stat: { files: 1 } }])
  scratch.ckpt('undo')
  expect(scratch.read('a.txt')).toBe('one\n')
})
