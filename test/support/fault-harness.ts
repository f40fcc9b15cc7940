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
 * Three do it to an inode right after the Nth call that put one aside (`.old`), as somebody would who has it open:
 *
 * aside               and let it run on
 * aside-killed        and kill it
 * aside-alone-killed  only kill it
 *
 * With them $CKPT_TEST_AMID is written to as soon as the journal is there, and with $CKPT_TEST_MOUNT the store is on
 * another mount than the worktree.
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
const isAside = mode?.startsWith('aside')
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

/** What is moved or linked to where an old inode goes: between two mounts only with a failure. */
function moved(args: readonly unknown[], call: () => unknown): unknown {
  const isOwn = (at: unknown) => String(at).includes('/.git/')
  if (process.env.CKPT_TEST_MOUNT && isOwn(args[0]) !== isOwn(args[1]))
    throw Object.assign(new Error('cross-device link'), { code: 'EXDEV' })
  const result = call()
  if (String(args[1]).endsWith('/journal.json')) fs.appendFileSync(process.env.CKPT_TEST_AMID!, 'theirs\n')
  if (!String(args[1]).endsWith('.old') || ++calls !== last) return result
  if (mode !== 'aside-alone-killed') fs.appendFileSync(String(args[1]), 'mine\n')
  if (mode !== 'aside') die()
  return result
}

const real = realEnv()
const files = new Proxy(power?.watched(real.files) ?? real.files, {
  get(target, name: keyof Files) {
    const own = target[name]
    if (isWriting) return (...args: unknown[]) => watched(name, args, () => Reflect.apply(own, target, args))
    if (isAside) {
      if (name !== 'linkSync' && name !== 'renameSync') return own
      return (...args: unknown[]) => moved(args, () => Reflect.apply(own, target, args))
    }
    if (!CHANGING.has(name) || mode === 'amid') return own
    return (...args: unknown[]) => counted(() => Reflect.apply(own, target, args))
  },
})
const start = power?.spawn(real.spawn) ?? real.spawn
const spawn: Env['spawn'] = (command, args, options) => {
  if (isWriting || isAside) return real.spawn(command, args, options)
  if (mode !== 'amid') return counted(() => start(command, args, options))
  const child = real.spawn(command, args, options)
  if (++calls === last) setTimeout(die, 1 + (last % 4))
  return child
}

process.exitCode = await main(argv, { ...real, files, spawn })
power?.fail()
fs.writeFileSync(report!, `${calls}\n`)
