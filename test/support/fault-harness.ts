/**
 * The program with an outside world that kills it: `node fault-harness.js MODE N REPORT -- ARGUMENTS`. The calls that
 * change something, and every start of a git, are counted; at the Nth the process gets a SIGKILL. A run that ends by
 * itself writes the number of its calls to REPORT.
 *
 * before  right before the call: its children live on
 * after   right after it
 * group   right after it, the children too
 * amid    the children too, a moment after the Nth start of a git: in the middle of what that git does
 */
import fs from 'node:fs'
import { main } from '../../src/cli/main.ts'
import { type Env, type Files, realEnv } from '../../src/env.ts'

/** Nothing is different before and after a call that only reads. */
const CHANGING = new Set<string>([
  ...['chmodSync', 'chownSync', 'fsyncSync', 'linkSync', 'mkdirSync', 'openSync', 'renameSync', 'rmdirSync'],
  ...['symlinkSync', 'unlinkSync', 'utimesSync', 'writeFileSync', 'writeSync'],
])

const [mode, at, report, , ...argv] = process.argv.slice(2)
const last = Number(at)
let calls = 0

function die(): never {
  // Detached: this process leads a group of its own.
  process.kill(mode === 'before' || mode === 'after' ? process.pid : -process.pid, 'SIGKILL')
  for (;;) Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 1000)
}

function counted<T>(call: () => T): T {
  const mine = ++calls === last
  if (mine && mode === 'before') die()
  const result = call()
  if (mine) die()
  return result
}

const real = realEnv()
const files = new Proxy(real.files, {
  get(target, name: keyof Files) {
    const own = target[name]
    if (!CHANGING.has(name) || mode === 'amid') return own
    return (...args: unknown[]) => counted(() => Reflect.apply(own, target, args))
  },
})
const spawn: Env['spawn'] = (command, args, options) => {
  if (mode !== 'amid') return counted(() => real.spawn(command, args, options))
  const child = real.spawn(command, args, options)
  if (++calls === last) setTimeout(die, 1 + (last % 4))
  return child
}

process.exitCode = await main(argv, { ...real, files, spawn })
fs.writeFileSync(report!, `${calls}\n`)
