// Somebody before a terminal, whose command the daemon carries out: he sees how far it is, and Ctrl-C is heard.
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import fs from 'node:fs'
import path from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { expect, test } from 'vitest'
import { realEnv } from '../../src/env.ts'
import { withLock } from '../../src/ops/worktree/lock.ts'
import { runLater, startDaemon } from '../support/daemon.ts'
import { until } from '../support/protocol.ts'
import { PROGRAM, Scratch } from '../support/scratch.ts'
import { hasPython, laterOnTerminal } from '../support/terminal.ts'

const FILES = 1200

/** One turn, and a daemon. */
function worked(files = 1): { scratch: Scratch; pid: number } {
  const scratch = new Scratch().init({ 'a.txt': 'one\n' })
  scratch.turn('first', () =>
    scratch.write(Object.fromEntries(Array.from({ length: files }, (_, i) => [`d/${i}.txt`, `${i}\n`]))),
  )
  return { scratch, ...startDaemon(scratch) }
}

/** While `work` goes on nothing can be written. */
const locked = <T>({ root }: Scratch, work: () => Promise<T>): Promise<T> =>
  withLock(realEnv(), { path: `${root}/.git/ckpt/worktrees/@main/lock`, command: 'test', wait: 0 }, work)

interface Asked {
  child: ChildProcess
  ended: Promise<[code: number | null, signal: NodeJS.Signals | null]>
  said: () => string
}

/** Runs a command, and comes back once the daemon has it. */
async function ask(scratch: Scratch, ...args: string[]): Promise<Asked> {
  const file = path.join(scratch.base, `said-${Math.random()}`)
  const fd = fs.openSync(file, 'w')
  const child = spawn(process.execPath, [PROGRAM, ...args], {
    cwd: scratch.root,
    env: scratch.vars,
    stdio: ['ignore', fd, fd],
  })
  fs.closeSync(fd)
  const ended = once(child, 'exit') as Asked['ended']
  const fds = `/proc/${child.pid}/fd`
  const isConnected = (name: string) => fs.readlinkSync(`${fds}/${name}`).startsWith('socket:')
  await until(() => {
    try {
      return fs.readdirSync(fds).some(isConnected)
    } catch {
      return false // one was closed in between
    }
  })
  await sleep(100) // the call goes out as soon as it is connected
  return { child, ended, said: () => fs.readFileSync(file, 'utf8') }
}

/** Begins what has to wait longer than a command is patient before it says anything. */
async function slowed<T>(scratch: Scratch, begin: () => Promise<T>): Promise<T> {
  const { begun } = await locked(scratch, async () => {
    const begun = begin()
    await sleep(3000) // on a busy machine its program takes its time to start
    return { begun } // its end is not waited for here
  })
  return begun
}

test.runIf(hasPython)(
  'what takes long is told on the terminal of whoever asked, and goes when it is done',
  async () => {
    const { scratch } = worked(FILES)
    const shown = await slowed(scratch, () => laterOnTerminal(scratch, ['undo']))
    expect(shown).toMatchObject({ code: 0 })
    const lines = shown.raw.split('\r\x1b[2K')
    const of = `(planning: [1-9]00 of ${FILES + 1}|writing: [1-9]00 of ${FILES})` // a plan is of their directory too
    const told = new RegExp(`^ckpt: ${of} paths …$`)
    expect(lines).toContainEqual(expect.stringMatching(told))
    expect(lines.at(-1)).toContain('Undid turn 1')
    expect(scratch.exists('d/7.txt')).toBe(false)
  },
)

test('on a pipe nothing is told', async () => {
  const { scratch } = worked(FILES)
  expect(await slowed(scratch, () => runLater(scratch, ['undo']))).toMatchObject({ code: 0, stderr: '' })
})

test.each(['SIGINT', 'SIGTERM', 'SIGHUP'] as const)(
  '%s cancels a command that has not begun to write',
  async (signal) => {
    const { scratch } = worked()
    const before = scratch.manifest()
    await locked(scratch, async () => {
      const { child, ended, said } = await ask(scratch, 'undo')
      child.kill(signal)
      expect(await ended).toEqual([null, signal])
      expect(said()).toBe('ckpt: Cancelled. Nothing was changed.\n')
    })
    expect(scratch.manifest()).toEqual(before)
    expect(scratch.ckpt('undo').turns).toEqual([1])
  },
)

test('cancelled with --json, it says so as it says all else; with --quiet it says no more than that', async () => {
  const { scratch } = worked()
  const answers = await locked(scratch, async () => {
    const asked = [await ask(scratch, 'undo', '--json'), await ask(scratch, 'redo', '--quiet')]
    for (const { child } of asked) child.kill('SIGTERM')
    return Promise.all(asked.map(({ ended, said }) => ended.then(([, signal]) => [signal, said()])))
  })
  expect(answers[0]?.[0]).toBe('SIGTERM')
  expect(JSON.parse(answers[0]?.[1] ?? '')).toEqual({
    schemaVersion: 1,
    ok: false,
    error: { code: 'CANCELLED', message: 'Cancelled. Nothing was changed.' },
  })
  expect(answers[1]).toEqual(['SIGTERM', 'ckpt: Cancelled. Nothing was changed.\n'])
})

test('where the daemon does not answer, a second Ctrl-C leaves it to it', async () => {
  const { scratch, pid } = worked()
  process.kill(pid, 'SIGSTOP')
  try {
    const { child, ended, said } = await ask(scratch, 'undo')
    child.kill('SIGINT')
    await until(() => said().includes('what is being written ends first. Ctrl-C once more leaves it to the daemon.'))
    child.kill('SIGINT')
    expect(await ended).toEqual([null, 'SIGINT'])
  } finally {
    process.kill(pid, 'SIGCONT')
  }
  expect(scratch.ckpt('daemon', 'status').running).toBe(true)
  expect(scratch.ckpt('verify').ok).toBe(true)
})

test('a marker is recorded even where whoever brought it was told to go', async () => {
  const { scratch } = worked()
  await locked(scratch, async () => {
    const { child, ended } = await ask(scratch, 'mark', 'prompt', '--session', 's', '--text', 'second')
    child.kill('SIGTERM')
    expect(await ended).toEqual([null, 'SIGTERM'])
  })
  await until(() => scratch.ckpt('list').turns.length === 2)
})

test('what was begun is carried out to its end where whoever asked for it is gone, though there is much to tell', async () => {
  const { scratch } = worked(300)
  await locked(scratch, async () => {
    const { child, ended } = await ask(scratch, 'undo')
    await sleep(1100) // from then on it is told how far it is
    child.kill('SIGKILL')
    await ended
  })
  await until(() => !scratch.exists('d/0.txt') && scratch.ckpt('status').boundary !== null)
  expect(scratch.manifest()).not.toHaveProperty('d/')
})

test.skipIf(!hasPython)('what others ask of the daemon in a terminal is not painted over what that shows', async () => {
  const scratch = new Scratch().init({ 'a.txt': 'one\n' })
  scratch.turn('first', () =>
    scratch.write(Object.fromEntries(Array.from({ length: FILES }, (_, i) => [`${i}.txt`, '']))),
  )
  const watch = laterOnTerminal(scratch, ['watch'], {
    steps: [
      ['q quit', ''],
      ['Undone from turn 1', 'q'],
    ],
  })
  await until(() => fs.existsSync(`${scratch.root}/.git/ckpt/worktrees/@main/daemon/info.json`))
  await sleep(1100) // from then on a command would tell how far it is
  expect((await runLater(scratch, ['undo', '--json'])).code).toBe(0)
  const { code, raw } = await watch
  expect([code, raw.includes('\r\x1b[2Kckpt: ')]).toEqual([0, false])
})
