/** Hooks of git's may have put away what is not to be committed until they are through, as pre-commit and lint-staged do. */
import { spawn, spawnSync } from 'node:child_process'
import fs from 'node:fs'
import path from 'node:path'
import { expect, onTestFinished, test } from 'vitest'
import { startDaemon } from '../support/daemon.ts'
import { type Json, PROGRAM, Scratch } from '../support/scratch.ts'

// A git that is at work is found by proc(5).
const hasProc = fs.existsSync('/proc/self/environ')
const testWithProc = test.skipIf(!hasProc)
const canMount = spawnSync('unshare', ['-m', 'true']).status === 0

/** Goes on when the test makes `go`; says that it is there by `asked`. */
const WAIT = 'touch ../asked; while test ! -e ../go; do sleep 0.05; done'
/** As pre-commit does it: what is not staged goes into a patch, and comes back in the end. */
const PUT_AWAY = `git diff --binary >../away; git checkout -q -- .; ${WAIT}; git apply ../away`

async function until(holds: () => boolean): Promise<void> {
  for (let i = 0; i < 1200 && !holds(); i++) await new Promise((resolve) => setTimeout(resolve, 25))
  expect(holds()).toBe(true)
}

interface AtWork {
  scratch: Scratch
  /** Lets the hook end; gives the exit code of the commit. */
  done: () => Promise<number | null>
}

/** A command that commits, whose git waits in a hook, or in its editor. */
async function committing(
  scratch: Scratch,
  { command = ['git', 'commit', '-qm', 'mine'], hook = 'pre-commit', script = PUT_AWAY, vars = {} },
): Promise<AtWork> {
  fs.writeFileSync(scratch.at(`.git/hooks/${hook}`), `#!/bin/sh\n${script}\n`, { mode: 0o755 })
  const child = spawn(command[0]!, command.slice(1), {
    cwd: scratch.root,
    env: { ...scratch.vars, ...IDENTITY, ...vars },
    stdio: 'ignore',
  })
  const ended = new Promise<number | null>((resolve) => child.on('close', resolve))
  await until(() => fs.existsSync(path.join(scratch.base, 'asked')))
  const goOn = () => fs.writeFileSync(path.join(scratch.base, 'go'), '')
  onTestFinished(goOn)
  const done = () => {
    goOn()
    return ended
  }
  return { scratch, done }
}

const IDENTITY = {
  GIT_AUTHOR_NAME: 'a',
  GIT_AUTHOR_EMAIL: 'a@example.com',
  GIT_COMMITTER_NAME: 'a',
  GIT_COMMITTER_EMAIL: 'a@example.com',
}

/** A turn, then an edit of a person's that is not staged, and another that is. */
function edited(name?: string): Scratch {
  const scratch = new Scratch(name).init({ 'a.txt': 'a\n', 's.txt': 's\n', 'u.txt': 'u\n' })
  scratch.turn('one', () => scratch.write({ 'a.txt': 'agent\n', 'new.txt': 'n\n' }))
  scratch.write({ 's.txt': 'mine\n', 'u.txt': 'staged\n' })
  scratch.git('add', 'u.txt')
  scratch.ckpt('snapshot')
  return scratch
}

const ways = {
  'git commit': ['git', 'commit', '-qm', 'mine'],
  'git commit PATH': ['git', 'commit', '-qm', 'mine', 'u.txt'],
  'ckpt commit': [process.execPath, PROGRAM, 'commit', '-m', 'one'],
}

testWithProc.each(Object.entries(ways))(
  '%s: what a turn that begins meanwhile finds put away, and finds again later, no undo takes without being forced',
  async (_, command) => {
    const { scratch, done } = await committing(edited(), { command })
    expect(scratch.read('s.txt')).toBe('s\n')
    const { warnings } = scratch.ckpt('mark', 'prompt', '--session', 'b')
    expect(warnings.join()).toMatch(/git runs hooks now/)
    expect(await done()).toBe(0)
    scratch.write({ 'made.txt': 'by the agent\n' })
    expect(scratch.ckpt('mark', 'stop', '--session', 'b').warnings).toEqual([])
    expect(scratch.read('s.txt')).toBe('mine\n')
    const { code, document } = scratch.tryCkpt('undo', '--session', 'b')
    expect([code, document.error.message]).toEqual([4, expect.stringMatching(/s\.txt.*git ran hooks/)])
    expect([scratch.read('s.txt'), scratch.exists('made.txt')]).toEqual(['mine\n', true])
    expect(scratch.ckpt('verify').problems).toEqual([])
  },
)

testWithProc.each([
  ['a hook that writes no index', { script: `git diff >../away; git apply -R ../away; ${WAIT}; git apply ../away` }],
  ['the hook for the message', { hook: 'commit-msg' }],
  ['a hook after the commit', { hook: 'post-commit' }],
  [
    'a hook before a push',
    { hook: 'pre-push', command: ['git', 'push', '-q', '../elsewhere', 'HEAD:refs/heads/main'] },
  ],
  [
    'a program in a directory that is called post-office',
    { script: `cat >'../post-office' <<'END'\n${PUT_AWAY}\nEND\nexec sh ../post-office` },
  ],
])('%s: so, too; and with the daemon', async (_, given) => {
  const scratch = edited()
  scratch.git('init', '-q', '--bare', '../elsewhere')
  startDaemon(scratch)
  scratch.ckpt('snapshot')
  const { done } = await committing(scratch, given)
  const refused = ['--no-daemon', '--daemon'].map((how) => scratch.tryCkpt('undo', how).document.error.code)
  expect(refused).toEqual(['GIT_BUSY', 'GIT_BUSY'])
  scratch.ckpt('mark', 'prompt', '--session', 'b')
  expect(await done()).toBe(0)
  expect(scratch.read('s.txt')).toBe('mine\n')
  scratch.ckpt('mark', 'stop', '--session', 'b')
  expect(scratch.tryCkpt('undo', '--session', 'b').document.error.paths).toContain('s.txt')
})

// Only root mounts.
test.skipIf(!hasProc || !canMount)(
  'so is a git that was started in the same directory by the path of another mount',
  async () => {
    const scratch = edited()
    const other = path.join(scratch.base, 'other')
    fs.mkdirSync(other)
    const commit = `mount --bind '${scratch.root}' '${other}' && cd '${other}' && git commit -qm mine`
    const { done } = await committing(scratch, { command: ['unshare', '-m', 'sh', '-c', commit] })
    expect(scratch.read('s.txt')).toBe('s\n')
    expect(scratch.tryCkpt('undo').document.error.code).toBe('GIT_BUSY')
    expect(scratch.ckpt('mark', 'prompt', '--session', 'b').warnings.join()).toMatch(/git runs hooks now/)
    expect(await done()).toBe(0)
    scratch.ckpt('mark', 'stop', '--session', 'b')
    expect(scratch.tryCkpt('undo', '--session', 'b').document.error.paths).toContain('s.txt')
    expect(scratch.read('s.txt')).toBe('mine\n')
  },
)

test.skipIf(!hasProc || !canMount)(
  'a git in another directory is not, though its path is the same elsewhere',
  async () => {
    const scratch = edited()
    const commit = `mount -t tmpfs none '${scratch.root}' && cd '${scratch.root}' && git init -q . &&
    mkdir -p .git/hooks && cp '${scratch.base}/hook' .git/hooks/pre-commit && git commit -q --allow-empty -m other`
    const hook = `#!/bin/sh\n${WAIT.replaceAll('../', `${scratch.base}/`)}\n`
    fs.writeFileSync(path.join(scratch.base, 'hook'), hook, { mode: 0o755 })
    const { done } = await committing(scratch, { command: ['unshare', '-m', 'sh', '-c', commit] })
    scratch.ckpt('undo')
    expect(await done()).toBe(0)
  },
)

testWithProc('so by the daemon, which asks who is at work once for each index as it was written', async () => {
  const scratch = edited()
  startDaemon(scratch)
  for (const n of [1, 2]) scratch.turn(`before ${n}`, () => scratch.write({ 'a.txt': `${n}\n` }), 'a')
  const { done } = await committing(scratch, {})
  const { mode, warnings } = scratch.ckpt('mark', 'prompt', '--session', 'b')
  expect([mode, warnings.join()]).toEqual(['fast', expect.stringMatching(/git runs hooks now/)])
  expect(await done()).toBe(0)
  scratch.write({ 'made.txt': 'by the agent\n' })
  expect(scratch.ckpt('mark', 'stop', '--session', 'b').warnings).toEqual([])
  expect(scratch.tryCkpt('undo', '--session', 'b').document.error.paths).toContain('s.txt')
})

testWithProc.each(Object.entries(ways))(
  '%s: so by the daemon where a marker came before the hook did, and the index is old',
  async (_, command) => {
    const scratch = edited()
    const late = 'touch ../begun; while test ! -e ../on; do sleep 0.05; done'
    const old = new Date(Date.now() - 7_200_000)
    fs.utimesSync(scratch.at('.git/index'), old, old)
    startDaemon(scratch)
    const begun = committing(scratch, { command, script: `${late}; ${PUT_AWAY}` })
    await until(() => fs.existsSync(path.join(scratch.base, 'begun')))
    scratch.ckpt('snapshot')
    fs.writeFileSync(path.join(scratch.base, 'on'), '')
    const { done } = await begun
    expect(scratch.ckpt('mark', 'prompt', '--session', 'b').warnings.join()).toMatch(/git runs hooks now/)
    expect(await done()).toBe(0)
  },
)

testWithProc('so for one that ends meanwhile: an undo and a redo leave what was put away as it is', async () => {
  const scratch = edited()
  scratch.ckpt('mark', 'prompt', '--session', 'b')
  const { done } = await committing(scratch, {})
  scratch.ckpt('mark', 'stop', '--session', 'b')
  expect(await done()).toBe(0)
  scratch.tryCkpt('undo', '--session', 'b')
  scratch.tryCkpt('redo', '--session', 'b')
  expect([scratch.read('s.txt'), scratch.read('a.txt')]).toEqual(['mine\n', 'agent\n'])
})

testWithProc('what an agent names is its own, and can be taken back without the others', async () => {
  const { scratch, done } = await committing(edited(), {})
  scratch.ckpt('mark', 'prompt', '--session', 'b')
  scratch.ckpt('mark', 'step', '--start', '--session', 'b', '--path', 'made.txt')
  expect(await done()).toBe(0)
  scratch.write({ 'made.txt': 'by the agent\n' })
  scratch.ckpt('mark', 'step', '--session', 'b', '--path', 'made.txt')
  scratch.ckpt('mark', 'stop', '--session', 'b')
  scratch.ckpt('undo', '--session', 'b', '--skip-conflicts')
  expect([scratch.read('s.txt'), scratch.exists('made.txt')]).toEqual(['mine\n', false])
})

testWithProc.each([
  ['undo', ['undo']],
  ['restore', ['restore', '1:before']],
  ['switch', ['switch', '1:before']],
])(
  '%s is refused, for what was put away would come back over it; it is not once the hook is through',
  async (_, command) => {
    const { scratch, done } = await committing(edited(), {})
    const { code, document } = scratch.tryCkpt(...command)
    expect([code, document.error.code, document.error.message]).toEqual([
      8,
      'GIT_BUSY',
      expect.stringMatching(/git \(process \d+\) runs hooks.*Nothing was changed\./),
    ])
    expect(await done()).toBe(0)
    scratch.ckpt(...command)
    expect(scratch.read('a.txt')).toBe('a\n')
  },
)

testWithProc('redo, too', async () => {
  const scratch = edited()
  scratch.ckpt('undo')
  const { done } = await committing(scratch, {})
  expect(scratch.tryCkpt('redo').document.error.code).toBe('GIT_BUSY')
  expect(await done()).toBe(0)
  scratch.ckpt('redo')
  expect(scratch.read('a.txt')).toBe('agent\n')
})

testWithProc.each([
  [
    'an editor',
    {
      hook: 'unused',
      command: ['git', 'commit', '-q'],
      vars: { GIT_EDITOR: `sh -c '${WAIT}; echo mine >"$1"' editor` },
    },
  ],
])('%s of git’s holds up nothing, and takes nobody’s claim, whatever its repository is called', async (_, given) => {
  const { scratch, done } = await committing(edited('hooks'), given)
  expect(scratch.ckpt('mark', 'prompt', '--session', 'b').warnings.join()).not.toMatch(/git runs hooks/)
  scratch.write({ 'made.txt': 'by the agent\n' })
  scratch.ckpt('mark', 'stop', '--session', 'b')
  scratch.ckpt('undo', '--session', 'b')
  expect(scratch.exists('made.txt')).toBe(false)
  expect(await done()).toBe(0)
})

testWithProc('a command of the hook’s own is not held up by it', async () => {
  const scratch = edited()
  const script = `'${process.execPath}' '${PROGRAM}' undo --json >../told; touch ../asked`
  const { done } = await committing(scratch, { script })
  expect(await done()).toBe(0)
  const told: Json = JSON.parse(fs.readFileSync(path.join(scratch.base, 'told'), 'utf8'))
  expect(told.ok).toBe(true)
})
