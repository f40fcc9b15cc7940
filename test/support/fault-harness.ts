/**
 * The program with an outside world that kills it: `node fault-harness.js MODE N REPORT -- ARGUMENTS`. The calls that
 * change something, and every start of a git, are counted; at the Nth the process gets a SIGKILL. A run that ends by
 * itself writes the number of its calls to REPORT.
 *
 * before  right before the call: its children live on
 * after   right after it
 * group   right after it, the children too
 * amid    the children too, a moment after the Nth start of a git: in the middle of what that git does
 *
 * Two modes write to the file $CKPT_TEST_WRITE as somebody else would, by its name, right before the Nth call (of any
 * kind) that is made while the journal is there:
 *
 * written         and let it run on
 * written-killed  and kill it, children too, right after that call
 *
 * One, `power`, cuts the power right after the Nth call that changes something, or at the end of a run that ends before.
 *
 * And `full`: from the Nth call on that is made while the journal is there, the disk has no room for anything new.
 */
import fs from 'node:fs'
import { main } from '../../src/cli/main.ts'
import { type Env, type Files, realEnv } from '../../src/env.ts'
import { PowerCut } from './power.ts'

/** Nothing is different before and after a call that only reads. */
const CHANGING = new Set<string>([
  ...['chmodSync', 'chownSync', 'fsyncSync', 'linkSync', 'mkdirSync', 'openSync', 'renameSync', 'rmdirSync'],
  ...['symlinkSync', 'unlinkSync', 'utimesSync', 'writeFileSync', 'writeSync'],
])

const [mode, at, report, , ...argv] = process.argv.slice(2)
const last = Number(at)
let calls = 0

const power = mode === 'power' ? new PowerCut(process.cwd()) : null

function die(): never {
  power?.fail()
  // Detached: this process leads a group of its own.
  process.kill(mode === 'before' || mode === 'after' ? process.pid : -process.pid, 'SIGKILL')
  for (;;) Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 1000)
}

function counted<T>(call: () => T): T {
  const mine = ++calls === last
  if (mine && mode === 'before') die()
  try {
    return call()
  } finally {
    if (mine) die() // also where the call failed, as some do: else the loop would take it for the end
  }
}

const isWriting = mode === 'written' || mode === 'written-killed' || mode === 'full'
const NEEDS_ROOM = new Set(['linkSync', 'mkdirSync', 'symlinkSync', 'writeFileSync', 'writeSync'])
let hasJournal = false
let isFull = false

function watched<T>(name: string, args: readonly unknown[], call: () => T): T {
  const mine = hasJournal && ++calls === last
  if (mine && mode === 'full') isFull = true
  else if (mine) fs.appendFileSync(process.env.CKPT_TEST_WRITE!, 'mine\n')
  if (isFull && NEEDS_ROOM.has(name)) throw Object.assign(new Error(`ENOSPC: ${name}`), { code: 'ENOSPC' })
  const result = call()
  if (mine && mode === 'written-killed') die()
  if (name === 'renameSync' && String(args[1]).endsWith('/journal.json')) hasJournal = true
  if (name === 'unlinkSync' && String(args[0]).endsWith('/journal.json')) hasJournal = false
  return result
}

const real = realEnv()
const files = new Proxy(power?.watched(real.files) ?? real.files, {
  get(target, name: keyof Files) {
    const own = target[name]
    if (isWriting) return (...args: unknown[]) => watched(name, args, () => Reflect.apply(own, target, args))
    if (!CHANGING.has(name) || mode === 'amid') return own
    return (...args: unknown[]) => counted(() => Reflect.apply(own, target, args))
  },
})
const start = power?.spawn(real.spawn) ?? real.spawn
const spawn: Env['spawn'] = (command, args, options) => {
  if (isWriting) return real.spawn(command, args, options)
  if (mode !== 'amid') return counted(() => start(command, args, options))
  const child = real.spawn(command, args, options)
  if (++calls === last) setTimeout(die, 1 + (last % 4))
  return child
}

const reachDisk = power?.sync(real.sync) ?? real.sync
const sync: Env['sync'] = (fd) => (isWriting || mode === 'amid' ? real.sync(fd) : counted(() => reachDisk(fd)))

process.exitCode = await main(argv, { ...real, files, spawn, sync })
power?.fail()
fs.writeFileSync(report!, `${calls}\n`)
