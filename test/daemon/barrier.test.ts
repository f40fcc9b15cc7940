// The barrier: what changed before it has been told of when it is passed.
import fs, { watch } from 'node:fs'
import { expect, onTestFinished, test } from 'vitest'
import { Barrier } from '../../src/daemon/barrier.ts'
import { KernelQueue } from '../../src/daemon/kernel-queue.ts'
import { realEnv } from '../../src/env.ts'
import { Scratch } from '../support/scratch.ts'

function begun(): { scratch: Scratch; barrier: Barrier; cookies: string } {
  const scratch = new Scratch()
  const cookies = `${scratch.home}/cookies`
  const barrier = new Barrier(realEnv(), { directory: cookies, queue: KernelQueue.of(realEnv()) })
  barrier.start()
  onTestFinished(() => barrier.stop())
  return { scratch, barrier, cookies }
}

test('every change before it was told of, one after the other and many at once', async () => {
  const { scratch, barrier } = begun()
  const told = new Set<string>()
  const watcher = watch(scratch.root, (_event, name) => told.add(String(name)))
  onTestFinished(() => watcher.close())
  for (let round = 0; round < 50; round++) {
    const passed = [0, 1, 2].map(async (n) => {
      const names = Array.from({ length: 40 }, (_, i) => `f${round}-${n}-${i}`)
      for (const name of names) fs.writeFileSync(scratch.at(name), '')
      expect(await barrier.wait(5000)).toBe(true)
      expect(names.filter((name) => !told.has(name))).toEqual([])
    })
    await Promise.all(passed)
  }
})

test('somebody who touches or removes its file passes it for nobody; without its directory it is made again', async () => {
  const { barrier, cookies } = begun()
  expect(await barrier.wait(5000)).toBe(true)
  const files = () => fs.readdirSync(cookies).map((name) => `${cookies}/${name}`)
  for (const file of files()) fs.chmodSync(file, 0o644)
  expect(await barrier.wait(0).then(() => barrier.wait(5000))).toBe(true)
  for (const file of files()) fs.unlinkSync(file)
  expect(await barrier.wait(5000)).toBe(true)
  fs.rmSync(cookies, { recursive: true })
  expect(await barrier.wait(5000)).toBe(false)
  expect(await barrier.wait(5000)).toBe(true)
})

test('an event that came too late vouches for nobody', async () => {
  const { barrier } = begun()
  const late = barrier.wait(0)
  const end = Date.now() + 50
  while (Date.now() < end); // the timer is due before the event is read
  const [first, second] = await Promise.all([late, barrier.wait(5000)])
  expect([typeof first, second]).toEqual(['boolean', true])
  expect(await barrier.wait(5000)).toBe(true)
})
