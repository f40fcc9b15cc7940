/** Promises 8 and 9: a kill loses nothing, and of many processes one works at a time. */
import { type ChildProcess, execFileSync, spawn } from 'node:child_process'
import { once } from 'node:events'
import fs from 'node:fs'
import path from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { expect, test } from 'vitest'
import { CONTAINER, canContain } from '../support/container.ts'
import { startDaemon } from '../support/daemon.ts'
import { PROGRAM, Scratch } from '../support/scratch.ts'
import { deadPid, foreignLock, inStore, ownDirectory } from '../support/store-surgery.ts'

interface Started {
  child: ChildProcess
  done: Promise<{ code: number | null; stdout: string }>
}

/** Starts the program as the leader of a process group of its own. */
function start(scratch: Scratch, ...args: string[]): Started {
  const child = spawn(process.execPath, [PROGRAM, ...args, '--json'], {
    cwd: scratch.root,
    env: scratch.vars,
    detached: true,
    stdio: ['ignore', 'pipe', 'ignore'],
  })
  let stdout = ''
  child.stdout?.on('data', (chunk) => {
    stdout += chunk
  })
  return { child, done: new Promise((resolve) => child.on('close', (code) => resolve({ code, stdout }))) }
}

/** One turn that changed, made and removed many files. */
function manyFiles(): { scratch: Scratch; before: Record<string, string>; after: Record<string, string> } {
  const name = (i: number) => `d${i % 7}/f${i}.txt`
  const numbers = Array.from({ length: 200 }, (_, i) => i)
  const scratch = new Scratch().init(Object.fromEntries(numbers.map((i) => [name(i), `old ${i}\n`])))
  const before = scratch.manifest()
  scratch.turn('work', () => {
    for (const i of numbers) {
      if (i % 5 === 0) scratch.remove(name(i))
      else scratch.write({ [name(i)]: `new ${i}\n`, [`made/${i}.txt`]: `made ${i}\n` })
    }
  })
  return { scratch, before, after: scratch.manifest() }
}

/** An undo of it that was killed amid its writing, `wait` ms after it began to: on a busy machine not at the first try. */
async function cutShort(wait: number) {
  for (let attempt = 1; ; attempt++) {
    const made = manyFiles()
    if (await killInTheMiddle(made.scratch, wait)) return made
    expect(attempt).toBeLessThan(5)
  }
}

/** Kills an undo with its children once its journal is there; true if it had not ended by then. */
async function killInTheMiddle(scratch: Scratch, wait: number): Promise<boolean> {
  const { child, done } = start(scratch, 'undo')
  const journal = path.join(ownDirectory(scratch), 'journal.json')
  while (!fs.existsSync(journal) && child.exitCode === null) await sleep(1)
  await sleep(wait)
  const killed = child.exitCode === null
  if (killed) process.kill(-child.pid!, 'SIGKILL')
  await done
  return killed && fs.existsSync(journal)
}

test('promise 8: after a kill while undo was writing, the next command finishes it, and redo goes back', async () => {
  for (const wait of [0, 25]) {
    const { scratch, before, after } = await cutShort(wait)
    const disk = scratch.manifest()
    const found = scratch.tryCkpt('verify') // writes nothing
    expect([found.code, found.document.problems.join()]).toEqual([7, expect.stringMatching(/^unfinished/)])
    expect(scratch.manifest()).toEqual(disk)
    const { warnings } = scratch.ckpt('list')
    expect(warnings.join()).toMatch(/A killed undo was finished/)
    expect(scratch.manifest()).toEqual(before)
    expect(scratch.ckpt('status').boundary.hiddenTurns).toEqual([1])
    scratch.ckpt('redo')
    expect(scratch.manifest()).toEqual(after)
    expect(scratch.ckpt('verify').problems).toEqual([])
  }
})

test('promise 8: recovery writes only where the disk holds one of the two states, and lists the rest', async () => {
  const { scratch, before } = await cutShort(0)
  scratch.write({ 'd1/f1.txt': 'by hand\n', 'd1/f8.txt': 'by hand\n' })
  const { warnings } = scratch.ckpt('status')
  expect(warnings.join()).toMatch(/finished, but for .*\(left as it is\): d1\/f1\.txt, d1\/f8\.txt/)
  const now = scratch.manifest()
  const { 'd1/f1.txt': one, 'd1/f8.txt': eight, ...rest } = now
  const { 'd1/f1.txt': _, 'd1/f8.txt': __, ...expected } = before
  expect(rest).toEqual(expected)
  expect([one, eight]).not.toContain(before['d1/f1.txt'])
  expect(scratch.read('d1/f1.txt')).toBe('by hand\n')
})

test('promise 8: a marker that was killed is in the timeline whole or not at all', async () => {
  const scratch = new Scratch().init({ 'a.txt': 'one\n' })
  scratch.ckpt('mark', 'prompt', '--session', 's', '--message-id', 'm0')
  for (const wait of [40, 80, 120, 160, 200]) {
    const { child, done } = start(
      scratch,
      'mark',
      'prompt',
      '--session',
      's',
      '--message-id',
      `m${wait}`,
      '--text',
      'x',
    )
    await sleep(wait)
    if (child.exitCode === null) process.kill(-child.pid!, 'SIGKILL')
    const { stdout } = await done
    const retried = scratch.ckpt('mark', 'prompt', '--session', 's', '--message-id', `m${wait}`, '--text', 'x')
    if (stdout !== '') expect(retried.checkpoint.id).toBe(JSON.parse(stdout).checkpoint.id)
  }
  const { turns } = scratch.ckpt('list')
  expect(turns.map((turn: { messageId: string }) => turn.messageId)).toEqual([
    'm200',
    'm160',
    'm120',
    'm80',
    'm40',
    'm0',
  ])
  expect(scratch.ckpt('verify').problems).toEqual([])
})

test('promise 9: eight processes mark, list and undo at once; each acknowledged marker is there exactly once', async () => {
  const scratch = new Scratch().init({ 'a.txt': 'one\n' })
  const worker = async (n: number) => {
    const acknowledged: string[] = []
    const mark = async (...args: string[]) => {
      const { code, stdout } = await start(scratch, 'mark', ...args, '--session', `s${n}`).done
      expect([n, code, code === 0 ? '' : stdout]).toEqual([n, 0, ''])
      acknowledged.push(JSON.parse(stdout).checkpoint.id)
    }
    await mark('prompt', '--message-id', `m${n}`)
    await mark('step', '--tool', 'edit', '--call-id', 'c')
    await mark('stop')
    return acknowledged
  }
  const others = async () => {
    for (let i = 0; i < 2; i++) expect((await start(scratch, 'list', '--sessions').done).code).toBe(0)
    expect([0, 3, 4, 8]).toContain((await start(scratch, 'undo', '--session', 's0').done).code)
  }
  const [acknowledged] = await Promise.all([Promise.all(Array.from({ length: 8 }, (_, n) => worker(n))), others()])
  const ids = acknowledged.flat()
  expect(new Set(ids).size).toBe(24)
  const all = inStore(scratch, 'rev-list', '--glob=refs/ckpt').split('\n')
  expect(all.filter((id) => ids.includes(id)).sort()).toEqual(ids.sort())
  for (let n = 1; n < 8; n++) {
    const { turns } = scratch.ckpt('list', '--session', `s${n}`)
    expect(turns.map((turn: { steps: unknown[]; status: string }) => [turn.steps.length, turn.status])).toEqual([
      [1, 'completed'],
    ])
  }
  expect(scratch.ckpt('verify').problems).toEqual([])
})

test('promise 9: the same marker sent by several processes at once is one turn', async () => {
  const scratch = new Scratch().init({ 'a.txt': 'one\n' })
  const send = () => start(scratch, 'mark', 'prompt', '--session', 's', '--message-id', 'm', '--marker', 'once').done
  const sent = await Promise.all([send(), send(), send(), send()])
  const ids = new Set(sent.map(({ stdout }) => JSON.parse(stdout).checkpoint.id))
  expect(ids.size).toBe(1)
  expect(scratch.ckpt('list').turns).toHaveLength(1)
})

/** Identity of this machine as a lock names it. */
function here() {
  const machine = fs.existsSync('/etc/machine-id') ? fs.readFileSync('/etc/machine-id', 'utf8').trim() : ''
  return {
    machine: `${fs.readFileSync('/proc/sys/kernel/hostname', 'utf8').trim()} ${machine}`,
    boot: fs.readFileSync('/proc/sys/kernel/random/boot_id', 'utf8').trim(),
    namespace: fs.readlinkSync('/proc/self/ns/pid'),
  }
}

const startOf = (pid: number) =>
  fs
    .readFileSync(`/proc/${pid}/stat`, 'utf8')
    .replace(/^.*\) /, '')
    .split(' ')[19]

test('promise 9: the lock of a provably dead process is taken over', () => {
  const scratch = new Scratch().init()
  scratch.ckpt('snapshot')
  const dead = [
    { ...here(), pid: deadPid() },
    { ...here(), pid: process.pid, started: '1' }, // the number was used again
    { ...here(), boot: 'b7e4f7f0-0000-0000-0000-000000000000', pid: process.pid }, // before the last start of the machine
  ]
  for (const holder of dead) {
    foreignLock(scratch, holder)
    scratch.ckpt('snapshot')
  }
})

test('promise 9: a live, foreign or unreadable lock is not taken over; doctor breaks the foreign ones when told', () => {
  const scratch = new Scratch().init()
  scratch.ckpt('snapshot')
  scratch.write({ '../home/.config/ckpt/.checkpointrc': '{"snapshot":{"deadline":"300ms"}}' })
  const marker = ['mark', 'prompt', '--session', 's'] as const
  const locked = () => {
    const { code, document } = scratch.tryCkpt(...marker)
    expect([code, document.error.code]).toEqual([8, 'LOCKED'])
    return document.error.hints.join()
  }
  foreignLock(scratch)
  expect(locked()).toContain('doctor --break-lock')
  expect(scratch.tryCkpt('doctor').document.findings).toContainEqual(
    expect.objectContaining({ name: 'lock', ok: false }),
  )
  scratch.ckpt('doctor', '--break-lock')
  scratch.ckpt(...marker)

  foreignLock(scratch, { ...here(), namespace: 'pid:[1]' }) // a container beside us
  locked()
  fs.writeFileSync(path.join(ownDirectory(scratch), 'lock'), '')
  locked()
  scratch.ckpt('doctor', '--break-lock')

  const file = foreignLock(scratch, { ...here(), pid: process.pid, started: startOf(process.pid) })
  expect(locked()).toContain('wait')
  scratch.tryCkpt('doctor', '--break-lock')
  expect(fs.existsSync(file)).toBe(true)
  fs.unlinkSync(file)
  scratch.ckpt(...marker)
})

test('promise 9: a lock of this machine is taken over also where the machine had another name then', () => {
  const scratch = new Scratch().init()
  scratch.ckpt('snapshot')
  foreignLock(scratch, { ...here(), machine: 'named-by-another-network 0123456789abcdef', pid: deadPid() })
  scratch.ckpt('mark', 'prompt', '--session', 's')
  expect(fs.existsSync(path.join(ownDirectory(scratch), 'lock'))).toBe(false)
})

test('promise 9: a lock of another container is taken over once the process that shows its sign is gone', async () => {
  const scratch = new Scratch().init()
  scratch.ckpt('snapshot')
  scratch.write({ '../home/.config/ckpt/.checkpointrc': '{"snapshot":{"deadline":"300ms"}}' })
  const name = 'alive-0123456789abcdef'
  const fifo = path.join(ownDirectory(scratch), name)
  const marked = () => scratch.tryCkpt('mark', 'prompt', '--session', 's').code
  const sign = () => {
    const { dev, ino } = fs.lstatSync(fifo, { bigint: true })
    return { name, at: `${dev} ${ino}` }
  }
  const there = { ...here(), namespace: 'pid:[1]', machine: 'a container' }
  execFileSync('mkfifo', [fifo])
  const holder = spawn('sh', ['-c', 'exec 3<>"$0"; echo; exec sleep 60', fifo], { stdio: ['ignore', 'pipe', 'ignore'] })
  await once(holder.stdout!, 'data')
  foreignLock(scratch, { ...there, sign: sign() })
  expect(marked()).toBe(8)
  const { code, document } = scratch.tryCkpt('doctor', '--break-lock')
  expect([code, document.error.code]).toEqual([8, 'LOCKED'])
  expect(document.findings).toContainEqual(
    expect.objectContaining({ name: 'lock', ok: false, detail: expect.stringContaining('which is alive') }),
  )
  holder.kill('SIGKILL')
  await once(holder, 'close')
  // Nothing is known of one in another running system, of a git that it started, and from another fifo.
  foreignLock(scratch, { ...there, sign: sign(), boot: 'b7e4f7f0-0000-0000-0000-000000000000' })
  expect(marked()).toBe(8)
  foreignLock(scratch, { ...there, sign: sign(), git: { pid: 1, started: '1' } })
  expect(marked()).toBe(8)
  foreignLock(scratch, { ...there, sign: { name, at: '1 1' } })
  expect(marked()).toBe(8)
  foreignLock(scratch, { ...there, sign: sign() })
  expect(marked()).toBe(0)
})

const IN_CONTAINER = 'promise 9: a daemon that ended with its container keeps no other one from starting'
test.skipIf(!canContain)(IN_CONTAINER, async () => {
  const scratch = new Scratch().init()
  const [unshare, ...options] = [...CONTAINER, process.execPath, PROGRAM]
  const place = { cwd: scratch.root, env: scratch.vars }
  const container = spawn(unshare!, [...options, 'watch'], { ...place, stdio: 'ignore' })
  const info = path.join(ownDirectory(scratch), 'daemon/info.json')
  for (let i = 0; i < 200 && !fs.existsSync(info); i++) await sleep(50)
  expect(scratch.tryCkpt('daemon', 'start').document.error.message).toContain('A daemon is at work here already')
  expect(scratch.ckpt('doctor').findings.find((one: { name: string }) => one.name === 'lock').ok).toBe(true)
  scratch.turn('beside it', () => scratch.write({ 'a.txt': 'two\n' }))
  // A hook, which would start a daemon, knows that it would not come up.
  const payload = JSON.stringify({ session_id: 'c', hook_event_name: 'UserPromptSubmit', prompt: 'go' })
  expect(scratch.runApart(['hook', '--shell', 'claude'], { input: payload }).code).toBe(0)
  expect(scratch.ckpt('list', '--session', 'c').turns).toHaveLength(1)
  expect(fs.existsSync(path.join(ownDirectory(scratch), 'daemon/asked'))).toBe(false)
  container.kill('SIGKILL')
  await once(container, 'close')
  execFileSync(unshare!, [...options, 'snapshot'], place)
  expect(fs.readdirSync(ownDirectory(scratch)).filter((name) => name.startsWith('alive-'))).toEqual([])
  startDaemon(scratch)
})

test.each([
  ['none', ''],
  ['zeros', '\0'.repeat(300)],
])("promise 8: a lock whose bytes a power cut took is nobody's: %s are left", (_, bytes) => {
  const scratch = new Scratch().init()
  scratch.ckpt('snapshot')
  const own = ownDirectory(scratch)
  fs.mkdirSync(path.join(own, 'daemon'), { recursive: true })
  for (const lock of ['lock', '../../lock', 'daemon/lock']) {
    const file = path.join(own, lock)
    fs.writeFileSync(file, bytes)
    fs.utimesSync(file, 0, 0) // before this system started
  }
  const { findings } = scratch.ckpt('doctor')
  const found = findings.find(({ name }: { name: string }) => name === 'lock')
  expect(found.detail).toMatch(/left by a process that a power failure cut short, which is gone/)
  scratch.ckpt('snapshot', '-m', 'after it')
  scratch.ckpt('daemon', 'start')
  scratch.ckpt('daemon', 'stop')
})

test.each([
  ['the store', '../../lock', ['snapshot']],
  ['the daemon', 'daemon/lock', ['daemon', 'start']],
  ['worktree linked-', '../LINKED/lock', ['prune']],
])('promise 9: of %s too: doctor names it, and breaks it when told', (whose, lock, argv) => {
  const scratch = new Scratch().init()
  scratch.git('worktree', 'add', '-q', '../linked')
  scratch.ckpt('snapshot', '--cwd', scratch.at('../linked'))
  scratch.ckpt('snapshot')
  const own = ownDirectory(scratch)
  const linked = fs.readdirSync(path.join(own, '..')).find((name) => name.startsWith('linked'))!
  fs.mkdirSync(path.join(own, 'daemon'), { recursive: true })
  const file = foreignLock(scratch, {}, path.join(own, lock.replace('LINKED', linked)))
  const found = scratch.tryCkpt('doctor').document.findings.find(({ name }: { name: string }) => name === 'lock')
  expect(found).toMatchObject({ ok: false, mend: 'ckpt doctor --break-lock' })
  expect(found.detail).toMatch(new RegExp(`^${whose}.*: held by process 4242`))
  scratch.ckpt('doctor', '--break-lock')
  expect(fs.existsSync(file)).toBe(false)
  scratch.ckpt(...argv)
  scratch.ckpt('daemon', 'stop')
})
