/** `ckpt run`: a command is a turn of its own, whatever else goes on in the worktree. */
import { execFileSync, spawn, spawnSync } from 'node:child_process'
import fs from 'node:fs'
import { expect, test } from 'vitest'
import { CONTAINER, canContain } from '../support/container.ts'
import { runLater } from '../support/daemon.ts'
import { isRoot, type Json, PROGRAM, Scratch } from '../support/scratch.ts'

const until = async (holds: () => boolean) => {
  for (let i = 0; i < 400 && !holds(); i++) await new Promise((resolve) => setTimeout(resolve, 25))
  expect(holds()).toBe(true)
}

/** A command that writes `begun`, waits until the test makes the file `go`, and writes `done`. */
const waiting = (scratch: Scratch, name: string) =>
  `echo x > ${name}-begun; until [ -e ${scratch.base}/go-${name} ]; do sleep 0.05; done; echo x > ${name}-done`

async function begin(scratch: Scratch, name: string, { options = [] as string[], code = 0 } = {}) {
  const line = `${waiting(scratch, name)}; exit ${code}`
  const ended = runLater(scratch, ['run', '--json', ...options, '--', 'sh', '-c', line])
  await until(() => scratch.exists(`${name}-begun`))
  return async (): Promise<Json> => {
    fs.writeFileSync(`${scratch.base}/go-${name}`, '')
    return JSON.parse((await ended).stdout)
  }
}

const turns = (scratch: Scratch, session: string) =>
  scratch.ckpt('list', '--session', session).turns.map(({ n, status }: Json) => `${n} ${status}`)
const files = (scratch: Scratch, session: string, turn: string) =>
  scratch.ckpt('diff', turn, '--session', session).files.map(({ path }: Json) => path)

test('two commands at once are two sessions: neither ends the other, and each has its own status', async () => {
  const scratch = new Scratch().init()
  const first = await begin(scratch, 'a', { code: 3 })
  const second = await begin(scratch, 'b')
  expect(await first()).toMatchObject({ exitCode: 3, turn: 1, checkpoint: { session: 'run' }, warnings: [] })
  expect(turns(scratch, 'run-2')).toEqual(['1 running'])
  const ended = await second()
  expect(ended).toMatchObject({ exitCode: 0, turn: 1, checkpoint: { session: 'run-2' } })
  expect(ended.warnings.join()).toContain('session run-2')
  expect([turns(scratch, 'run'), turns(scratch, 'run-2')]).toEqual([['1 failed'], ['1 completed']])
  expect(files(scratch, 'run-2', '1')).toContain('b-done')
  scratch.ckpt('run', '--', 'true')
  expect(turns(scratch, 'run')).toEqual(['2 completed', '1 failed'])
})

test.each(['TERM', 'QUIT'])('SIG%s right after the command began ends the turn with it, and no sooner', (signal) => {
  const scratch = new Scratch().init()
  for (let n = 1; n <= 2; n++) {
    const line = `kill -${signal} $PPID; echo ${n} >of-the-command; sleep 0.3; echo ${n} >of-the-command-too`
    scratch.run(['run', '--session', 's', '--', 'sh', '-c', line])
    expect(scratch.ckpt('list', '--session', 's').turns[0]).toMatchObject({
      ...{ n, status: signal === 'TERM' ? 'interrupted' : 'completed' },
    })
  }
})

test('a command that may not be sent a signal goes on, and its turn with it', () => {
  const scratch = new Scratch().init()
  const uid = scratch.handOver()
  const python = `${scratch.base}/python`
  fs.copyFileSync(
    execFileSync('python3', ['-c', 'import sys; print(sys.executable)'], { encoding: 'utf8' }).trim(),
    python,
  )
  fs.chmodSync(python, 0o4755)
  const line = `import os, time; os.setuid(0); os.kill(os.getppid(), 15); time.sleep(0.3); open('of-the-command', 'w')`
  const isOurs = spawnSync('setpriv', [
    `--reuid=${uid}`,
    '--clear-groups',
    python,
    '-c',
    'import os; os.setuid(0)',
  ]).status
  if (!isRoot || isOurs !== 0) return // a file system that takes no notice of the bit
  const ran = scratch.run(['run', '--session', 's', '--', python, '-c', line], { uid })
  expect([ran.code, ran.stderr]).toEqual([0, ''])
  expect(scratch.exists('of-the-command')).toBe(true)
  expect(JSON.parse(scratch.run(['list', '--json'], { uid }).stdout).turns).toMatchObject([
    { n: 1, status: 'completed' },
  ])
})

test('a command that runs one of its own keeps its turn', () => {
  const scratch = new Scratch().init()
  const inner = `"${process.execPath}" "${PROGRAM}" run -- sh -c 'echo x > inner'; echo x > outer`
  scratch.ckpt('run', '--', 'sh', '-c', inner)
  expect([turns(scratch, 'run'), turns(scratch, 'run-2')]).toEqual([['1 completed'], ['1 completed']])
  expect(files(scratch, 'run', '1')).toContain('outer')
})

test.each([
  ['', []],
  [' with its container', CONTAINER],
])('the session of one that was killed%s is used again', async (_, container) => {
  if (container.length > 0 && !canContain) return
  const scratch = new Scratch().init()
  const line = [process.execPath, PROGRAM, 'run', '--', 'sh', '-c', waiting(scratch, 'a')]
  const [command, ...args] = [...container, ...line]
  const killed = spawn(command!, args, { cwd: scratch.root, env: scratch.vars, stdio: 'ignore' })
  await until(() => scratch.exists('a-begun'))
  killed.kill('SIGKILL')
  await new Promise((resolve) => killed.on('exit', resolve))
  scratch.ckpt('run', '--', 'true')
  expect(turns(scratch, 'run')).toEqual(['2 completed', '1 interrupted'])
  expect(fs.readdirSync(scratch.at('.git/ckpt/worktrees/@main/runs'))).toEqual([])
  fs.writeFileSync(`${scratch.base}/go-a`, '')
  if (container.length === 0) await until(() => scratch.exists('a-done'))
})

test.each([
  ['another command', ['run', '--session', 's', '--', 'true'], 'completed'],
  ['a prompt that has no id', ['mark', 'prompt', '--session', 's'], 'running'],
])('in a session that was named, %s closes the turn, which is said; its end ends no other', async (_, line, status) => {
  const scratch = new Scratch().init()
  const first = await begin(scratch, 'a', { options: ['--session', 's'] })
  scratch.ckpt(...line)
  const ended = await first()
  expect(ended).toMatchObject({ exitCode: 0, turn: 1 })
  expect(ended.warnings.join()).toMatch(/Turn 1 of session s was ended while the command ran/)
  expect(turns(scratch, 's')).toEqual([`2 ${status}`, '1 completed'])
})

test.each(['nosuchcommand', './nosuch', '/nosuch/command'])(
  '%s, which is nowhere, is no turn: what an undo hid can be redone',
  (name) => {
    const scratch = new Scratch().init({ 'a.txt': 'one\n' })
    scratch.ckpt('run', '--', 'sh', '-c', 'echo two > a.txt')
    scratch.ckpt('undo')
    const { code, stdout, stderr } = scratch.run(['run', '--json', '--', name])
    expect([code, JSON.parse(stdout)]).toEqual([
      127,
      expect.objectContaining({ checkpoint: null, turn: null, exitCode: 127 }),
    ])
    expect(stderr).toContain(`${name} could not be started`)
    scratch.ckpt('redo')
    expect(scratch.read('a.txt')).toBe('two\n')
  },
)

test('what PATH leaves to the directory that a command begins in is found there, and is a turn', () => {
  const scratch = new Scratch().init()
  fs.writeFileSync(scratch.at('own'), '#!/bin/sh\necho two > made\n', { mode: 0o755 })
  for (const PATH of [`:${process.env.PATH}`, `.:${process.env.PATH}`, `${scratch.root}:${process.env.PATH}`]) {
    expect(scratch.run(['run', '--', 'own'], { vars: { PATH } }).code).toBe(0)
    expect(files(scratch, 'run', `${turns(scratch, 'run').length}`)).toBeTruthy()
  }
  expect(turns(scratch, 'run')).toEqual(['3 completed', '2 completed', '1 completed'])
})

test('the directory that a command began in may be gone when it ends', () => {
  const scratch = new Scratch().init({ 'a.txt': 'one\n', 'sub/b.txt': 'one\n' })
  const line = 'cd ..; rm -r sub; echo two > a.txt; exit 5'
  expect(scratch.run(['run', '--', 'sh', '-c', line], { cwd: scratch.at('sub') }).code).toBe(5)
  expect(turns(scratch, 'run')).toEqual(['1 failed'])
  scratch.ckpt('undo')
  expect([scratch.read('a.txt'), scratch.read('sub/b.txt')]).toEqual(['one\n', 'one\n'])
})

test('the worktree may be gone, too: the status is the command’s, and what was not recorded is said', () => {
  const scratch = new Scratch().init()
  const line = `mv '${scratch.root}' '${scratch.base}/moved'; exit 5`
  const { code, stdout } = scratch.run(['run', '--json', '--', 'sh', '-c', line])
  const { exitCode, warnings } = JSON.parse(stdout)
  expect([code, exitCode, warnings.join()]).toEqual([
    5,
    5,
    expect.stringMatching(
      /^The end of turn 1 was not recorded, and it counts as running: .*ckpt mark stop --session run$/,
    ),
  ])
  const moved = { cwd: `${scratch.base}/moved` }
  expect(scratch.run(['mark', 'stop', '--session', 'run'], moved).code).toBe(0)
  expect(scratch.run(['undo'], moved).code).toBe(0)
})

test.each(['SIGINT', 'SIGTERM', 'SIGHUP'] as const)(
  '%s once the command has ended: its end is recorded',
  async (signal) => {
    const scratch = new Scratch().init()
    // Git lists the worktree when the command has ended: it is there that the signal comes.
    const bin = `${scratch.base}/bin`
    fs.mkdirSync(bin)
    const git = `#!/bin/sh
case "$*" in *ls-files*) test -e '${scratch.base}/ended' && : >'${scratch.base}/listing' && sleep 1 ;; esac
PATH='${scratch.vars.PATH}' exec git "$@"
`
    fs.writeFileSync(`${bin}/git`, git, { mode: 0o755 })
    const line = `echo two >a.txt; mkdir new; echo x >new/x; : >'${scratch.base}/ended'`
    const child = spawn(process.execPath, [PROGRAM, 'run', '--', 'sh', '-c', line], {
      cwd: scratch.root,
      env: { ...scratch.vars, PATH: `${bin}:${scratch.vars.PATH}` },
      stdio: 'ignore',
    })
    const ended = new Promise((resolve) => child.on('close', (...how) => resolve(how)))
    await until(() => fs.existsSync(`${scratch.base}/listing`))
    child.kill(signal)
    expect(await ended).toEqual([0, null])
    expect(turns(scratch, 'run')).toEqual(['1 completed'])
  },
)
