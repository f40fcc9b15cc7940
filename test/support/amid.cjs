/**
 * Loaded before the program: what happens to it, and around it, at one of its calls of the file system. The specs are in
 * $CKPT_TEST_AMID (see amid.ts).
 */
const { execFileSync } = require('node:child_process')
const fs = require('node:fs')
const os = require('node:os')

const specs = JSON.parse(process.env.CKPT_TEST_AMID).map((spec) => ({ ...spec, on: new RegExp(spec.on), seen: 0 }))
const MOVING = ['linkSync', 'renameSync']
const isOwn = (at) => String(at).includes('/.git/')

function failed(code, call) {
  return Object.assign(new Error(`${code}: ${call}`), { code, errno: -os.constants.errno[code], syscall: call })
}

function happen({ run, fail, kill, call }, seen) {
  if (run) execFileSync('sh', ['-c', run], { env: { ...process.env, NODE_OPTIONS: '', SEEN: seen } })
  if (kill) process.kill(process.pid, 'SIGKILL')
  if (fail) throw failed(fail, call)
}

for (const call of new Set([...specs.map((spec) => spec.call), ...MOVING])) {
  const own = fs[call]
  fs[call] = (...args) => {
    const isBetween = MOVING.includes(call) && isOwn(args[0]) !== isOwn(args[1])
    if (process.env.CKPT_TEST_MOUNT && isBetween) throw failed('EXDEV', call)
    const due = specs.filter((spec) => spec.call === call && args.some((arg) => spec.on.test(String(arg))))
    for (const spec of due) spec.seen++
    const now = (when) => due.filter((spec) => spec.when === when && spec.seen === (spec.nth ?? 1))
    const last = String(args[MOVING.includes(call) ? 1 : 0])
    for (const spec of now('before')) happen(spec, last)
    const result = own(...args)
    for (const spec of now('after')) happen(spec, last)
    return result
  }
}
