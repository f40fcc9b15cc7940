/** What a daemon does while nobody calls. */
import { execFileSync } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import fs from 'node:fs'
import { expect, test } from 'vitest'
import { IdleWork, QUIET_BEFORE } from '../../src/daemon/idle.ts'
import { realEnv } from '../../src/env.ts'
import { PROGRAM, Scratch } from '../support/scratch.ts'
import { inStore, storeOf } from '../support/store-surgery.ts'

function idleWork(scratch: Scratch, isOver = () => false) {
  const said: string[] = []
  const env = { ...realEnv(), vars: scratch.vars, program: PROGRAM }
  const log = (_: string, details?: object) => said.push(JSON.stringify(details))
  return { work: new IdleWork(env, { root: scratch.root, gitDir: storeOf(scratch), isOver, log }), said }
}

const quiet = { quiet: QUIET_BEFORE, busy: false }
const loose = (scratch: Scratch) => /^count: (\d+)/m.exec(inStore(scratch, 'count-objects', '-v'))![1]

async function until(condition: () => boolean): Promise<void> {
  for (let i = 0; i < 600 && !condition(); i++) await new Promise((resolve) => setTimeout(resolve, 50))
  expect(condition()).toBe(true)
}

test('once a day it packs, and removes only what goes by itself', async () => {
  const scratch = new Scratch().init()
  for (const text of ['two', 'three', 'four']) scratch.turn(text, () => scratch.write({ 'a.txt': `${text}\n` }))
  const { turns } = scratch.ckpt('list')
  fs.mkdirSync(`${scratch.home}/.config/ckpt`, { recursive: true })
  fs.writeFileSync(`${scratch.home}/.config/ckpt/.checkpointrc`, 'checkpointKeepCount: 1\nprune:\n  olderThan: 1ms\n')
  expect(loose(scratch)).not.toBe('0')
  const { work, said } = idleWork(scratch)
  work.consider({ ...quiet, quiet: QUIET_BEFORE - 1 })
  work.consider({ ...quiet, busy: true })
  expect(work.running).toBe(false)
  work.consider(quiet)
  expect(work.running).toBe(true)
  await until(() => !work.running)
  expect([said.length, said[0]]).toEqual([1, expect.stringContaining('"code":0')])
  expect(loose(scratch)).toBe('0')
  expect(scratch.ckpt('list').turns).toEqual(turns)
  expect(scratch.ckpt('verify').problems).toEqual([])
  work.consider(quiet) // not twice on one day
  expect(work.running).toBe(false)
})

test('a call ends it at once: nothing is lost, nothing waits, and the next one goes on', async () => {
  const scratch = new Scratch().init()
  for (let i = 0; i < 5; i++) scratch.turn('work', () => scratch.write({ 'a.txt': `${i}\n` }))
  for (let delay = 0; delay < 900; delay += 150) {
    fs.rmSync(`${storeOf(scratch)}/../idle`, { force: true })
    const { work } = idleWork(scratch)
    work.consider(quiet)
    await new Promise((resolve) => setTimeout(resolve, delay))
    await work.interrupt()
    expect(work.running).toBe(false)
    expect(execFileSync('ps', ['-eo', 'args']).toString()).not.toContain(`${storeOf(scratch)}`)
    scratch.turn('more', () => scratch.write({ 'a.txt': `after ${delay}\n` }))
    expect(scratch.ckpt('verify').problems).toEqual([])
  }
  scratch.ckpt('undo', '--turns', '3')
  expect(scratch.read('a.txt')).toBe('after 300\n')
})

test('over store.maxBytes it removes the oldest turns on the same day, and status says how it stands', async () => {
  const scratch = new Scratch().init()
  for (let i = 0; i < 4; i++) scratch.turn(`${i}`, () => scratch.write({ 'big.bin': randomBytes(200_000) }))
  fs.mkdirSync(`${scratch.home}/.config/ckpt`, { recursive: true })
  fs.writeFileSync(`${scratch.home}/.config/ckpt/.checkpointrc`, 'store:\n  maxBytes: 600KiB\n')
  const { store, warnings } = scratch.ckpt('status')
  expect(store.bytes).toBeGreaterThan(600 * 1024)
  expect(warnings).toEqual([expect.stringMatching(/more than store\.maxBytes \(600\.0 KiB\): ckpt prune/)])
  const stamp = `${storeOf(scratch)}/../idle`
  const before = new Date(Date.now() - 11 * 60_000)
  const asked: boolean[] = []
  const { work } = idleWork(scratch, () => asked.push(true) > 0)
  fs.writeFileSync(stamp, '')
  work.consider(quiet) // it was just done
  expect([work.running, asked]).toEqual([false, []])
  fs.utimesSync(stamp, before, before)
  work.consider(quiet)
  expect([work.running, asked]).toEqual([true, [true]])
  await until(() => !work.running)
  expect(scratch.ckpt('list').turns.length).toBeLessThan(4)
  expect(scratch.ckpt('status').warnings).toEqual([expect.stringMatching(/^The oldest went since .*: \d turns?\./)])
})
