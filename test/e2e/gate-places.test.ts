/** The gate finds its worktree's marker wherever the worktree, its git directory and the store are, and without ckpt. */
import { execFileSync, spawnSync } from 'node:child_process'
import fs from 'node:fs'
import path from 'node:path'
import pc from 'picocolors'
import { expect, test } from 'vitest'
import { hooksText } from '../../src/cli/present/hooks.ts'
import { me } from '../support/commits.ts'
import { gateScratch, HOOKS, head, makePending, tryGit } from '../support/gate.ts'
import { isRoot, type Json, Scratch } from '../support/scratch.ts'

const commit = ['commit', '-q', '--allow-empty', '-m', 'x']
const fires = (document: Json) => document.hooks.map((hook: Json) => hook.fires)
const all = HOOKS.map(() => true)

/** A turn and its undo in another worktree or under another configuration. */
function undoneIn(scratch: Scratch, cwd: string): void {
  for (const args of [
    ['mark', 'prompt', '--session', 'there'],
    ['mark', 'stop', '--session', 'there'],
    ['undo', '--session', 'there'],
  ]) {
    expect(scratch.run(args, { cwd })).toMatchObject({ code: 0 })
    if (args[1] === 'prompt') fs.writeFileSync(path.join(cwd, 'agent.txt'), 'work\n')
  }
}

test('row 32: each worktree has its own gate: a boundary in one does not refuse commits in the other', () => {
  const scratch = gateScratch()
  scratch.ckpt('hooks', 'install')
  // Two linked worktrees of the same name, and one whose name says nothing.
  const linked = ['x/Main', 'y/Main', "it's ü [1]"].map((name) => path.join(scratch.base, name))
  for (const [i, directory] of linked.entries()) scratch.git('worktree', 'add', '-q', '-b', `linked-${i}`, directory)
  for (const cwd of linked) expect(tryGit(scratch, commit, { cwd }).code).toBe(0)
  expect(fires(JSON.parse(scratch.run(['hooks', 'status', '--json'], { cwd: linked[0]! }).stdout))).toEqual(all)
  for (const [i, cwd] of linked.entries()) {
    undoneIn(scratch, cwd)
    const refused = tryGit(scratch, commit, { cwd })
    expect([i, refused.code, refused.stderr.includes('session there')]).toEqual([i, 1, true])
    expect(fires(JSON.parse(scratch.run(['hooks', 'status', '--json'], { cwd }).stdout))).toEqual(all)
    for (const other of [scratch.root, ...linked.slice(i + 1)])
      expect(tryGit(scratch, commit, { cwd: other }).code).toBe(0)
  }
  for (const cwd of linked) {
    expect(tryGit(scratch, ['cherry-pick', 'side'], { cwd }).code).not.toBe(0)
    expect(tryGit(scratch, ['cherry-pick', '--abort'], { cwd }).code).toBe(0)
    expect(scratch.run(['redo', '--all'], { cwd }).code).toBe(0)
    expect(tryGit(scratch, commit, { cwd }).code).toBe(0)
  }
  makePending(scratch)
  expect(tryGit(scratch, commit).code).toBe(1)
  expect(tryGit(scratch, commit, { cwd: linked[0]! }).code).toBe(0)
})

test.skipIf(!isRoot)('what is undone by another user, and cannot be read here, refuses a commit all the same', () => {
  const scratch = gateScratch()
  scratch.ckpt('hooks', 'install')
  makePending(scratch)
  const boundary = scratch.at('.git/ckpt/worktrees/@main/boundary')
  fs.chmodSync(scratch.at('.git/ckpt'), 0o755)
  const uid = scratch.handOver()
  fs.chownSync(boundary, 0, 0)
  fs.chmodSync(boundary, 0o600)
  const as = ['setpriv', `--reuid=${uid}`, `--regid=${uid}`, '--clear-groups']
  const { status, stderr } = spawnSync(as[0]!, [...as.slice(1), 'git', ...commit], {
    cwd: scratch.root,
    env: { ...scratch.vars, ...me },
    encoding: 'utf8',
  })
  expect([status, stderr.split('\n').slice(0, 3)]).toEqual([
    1,
    [
      'ckpt: git commit refused: a revert boundary is pending in this worktree. Nothing was committed.',
      expect.stringMatching(/^ {2}what is undone cannot be read here: ls -l .*\/boundary$/),
      'Ways out:',
    ],
  ])
})

test('row 32: a path with spaces and quotes, a run from a subdirectory, and a repository that was moved', () => {
  const scratch = gateScratch('my "own" it\'s $HOME `x` repo')
  scratch.ckpt('hooks', 'install')
  makePending(scratch)
  fs.mkdirSync(scratch.at('sub dir'))
  expect(tryGit(scratch, commit, { cwd: scratch.at('sub dir') }).code).toBe(1)
  const moved = path.join(scratch.base, 'moved here')
  fs.renameSync(scratch.root, moved)
  expect(tryGit(scratch, commit, { cwd: moved }).code).toBe(1)
  const elsewhere = { cwd: scratch.base }
  const far = ['--git-dir', path.join(moved, '.git'), '--work-tree', moved]
  expect(tryGit(scratch, [...far, ...commit], elsewhere).code).toBe(1)
  expect(tryGit(scratch, ['-C', 'moved here', ...commit], elsewhere).code).toBe(1)
  fs.renameSync(moved, scratch.root)
})

test('row 32: in a copy of a repository uninstall takes the gate out of the copy alone', () => {
  const scratch = gateScratch()
  const linked = `${scratch.base}/linked`
  scratch.git('worktree', 'add', '-q', linked)
  scratch.git('config', 'extensions.worktreeConfig', 'true')
  execFileSync('git', ['config', '--worktree', 'core.hooksPath', '.hooks'], { cwd: linked, env: scratch.vars })
  fs.appendFileSync(scratch.at('.git/info/exclude'), '.hooks\n')
  scratch.ckpt('hooks', 'install')
  expect(scratch.run(['hooks', 'install'], { cwd: linked }).code).toBe(0)
  const copy = `${scratch.base}/elsewhere/copy`
  fs.cpSync(scratch.root, copy, { recursive: true, verbatimSymlinks: true })
  const inCopy = (...args: string[]) => JSON.parse(scratch.run([...args, '--json'], { cwd: copy }).stdout)
  expect(inCopy('hooks', 'uninstall').hooks.some((hook: Json) => hook.installed)).toBe(false)
  expect(inCopy('hooks', 'status').warnings).toEqual([])
  for (const cwd of [scratch.root, linked])
    expect(fires(JSON.parse(scratch.run(['hooks', 'status', '--json'], { cwd }).stdout))).toEqual(all)
  fs.rmSync(`${linked}/.hooks`, { recursive: true })
  const gone = scratch.run(['hooks', 'status', '--json'], { cwd: linked }).stdout
  expect(JSON.parse(gone).warnings.join()).toContain('something took it out')
  scratch.run(['hooks', 'install'], { cwd: linked })
  scratch.ckpt('hooks', 'uninstall')
  expect(fs.existsSync(`${linked}/.hooks/pre-commit`)).toBe(false) // it is the same repository's
})

test('row 32: a git directory elsewhere, a submodule, and a bare repository with worktrees', () => {
  const scratch = gateScratch()
  const apart = path.join(scratch.base, 'apart')
  scratch.git('init', '-q', '--separate-git-dir', apart)
  scratch.ckpt('hooks', 'install')
  makePending(scratch)
  expect(tryGit(scratch, commit).code).toBe(1)
  scratch.ckpt('accept')

  const outer = path.join(scratch.base, 'outer')
  scratch.git('init', '-q', outer)
  scratch.git('-C', outer, '-c', 'protocol.file.allow=always', 'submodule', '--quiet', 'add', scratch.root, 'inner')
  const inner = path.join(outer, 'inner')
  expect(scratch.run(['hooks', 'install'], { cwd: inner }).code).toBe(0)
  undoneIn(scratch, inner)
  expect(tryGit(scratch, commit, { cwd: inner }).code).toBe(1)
  expect(tryGit(scratch, commit, { cwd: outer }).code).toBe(0)

  const bare = path.join(scratch.base, 'bare.git')
  scratch.git('clone', '-q', '--bare', scratch.root, bare)
  const tree = path.join(scratch.base, 'tree')
  scratch.git('-C', bare, 'worktree', 'add', '-q', tree, 'side')
  expect(scratch.run(['hooks', 'install'], { cwd: tree }).code).toBe(0)
  undoneIn(scratch, tree)
  expect(tryGit(scratch, commit, { cwd: tree }).code).toBe(1)
})

test('row 32: a store elsewhere is found, for linked worktrees too; uninstall leaves nothing in the git directory', () => {
  const scratch = gateScratch()
  scratch.write({ '.checkpointrc': JSON.stringify({ store: { location: path.join(scratch.base, "my 'störes' 店") } }) })
  scratch.git('add', '-A')
  scratch.git('commit', '-q', '-m', 'config')
  const linked = path.join(scratch.base, 'linked')
  scratch.git('worktree', 'add', '-q', linked)
  expect(fires(scratch.ckpt('hooks', 'install'))).toEqual(all)
  makePending(scratch)
  expect(tryGit(scratch, commit).code).toBe(1)
  expect(tryGit(scratch, commit, { cwd: linked }).code).toBe(0)
  undoneIn(scratch, linked)
  expect(tryGit(scratch, commit, { cwd: linked }).code).toBe(1)
  expect(fires(scratch.ckpt('hooks', 'status'))).toEqual(all)
  scratch.ckpt('hooks', 'uninstall')
  expect(scratch.exists('.git/ckpt')).toBe(false)
  expect(tryGit(scratch, commit).code).toBe(0)
})

test('where the store elsewhere is away, that is said by the gate, by doctor, and by whoever begins another', () => {
  const scratch = gateScratch()
  const location = path.join(scratch.base, 'stores')
  scratch.write({ '.checkpointrc': JSON.stringify({ store: { location } }) })
  scratch.git('add', '-A')
  scratch.git('commit', '-q', '-m', 'config')
  scratch.ckpt('hooks', 'install')
  expect(tryGit(scratch, commit).stderr).not.toContain('ckpt:') // nothing was recorded yet
  makePending(scratch)
  expect(tryGit(scratch, commit).code).toBe(1)
  fs.renameSync(location, `${location}.away`)
  fs.mkdirSync(location) // as the mount point is
  const passed = tryGit(scratch, commit)
  expect([passed.code, passed.stderr.split('ckpt: the store of this worktree is not where it was').length]).toEqual([
    0, 2,
  ])
  const isGone = expect.stringMatching(/^The checkpoints of this worktree were in .*stores.*, which is not there\./)
  const { code, document } = scratch.tryCkpt('doctor')
  expect([code, document.error.code]).toEqual([7, 'DAMAGED'])
  expect(document.findings).toContainEqual(expect.objectContaining({ name: 'store', ok: false, detail: isGone }))
  const commands = ['list', 'status', 'diff', 'show 1', 'verify', 'undo', 'redo --all', 'accept', 'commit', 'restore 1']
  commands.push('mark stop --session s', 'mark step --session s')
  for (const command of [...commands, 'switch 1', 'forget a.txt', 'prune', 'daemon start', 'hooks install']) {
    const { code, document } = scratch.tryCkpt(...command.split(' '))
    expect([command, code, document.error.message]).toEqual([command, 7, isGone])
  }
  const linked = path.join(scratch.base, 'linked') // nothing was recorded in it
  scratch.git('worktree', 'add', '-q', linked)
  expect(scratch.run(['undo'], { cwd: linked })).toMatchObject({
    code: 7,
    stderr: expect.stringContaining('not there'),
  })
  const stop = { session_id: 'c', cwd: scratch.root, hook_event_name: 'Stop' }
  expect(scratch.run(['hook', 'claude'], { input: JSON.stringify(stop) }).code).toBe(0)
  expect(fs.readdirSync(location)).toEqual([])
  expect(tryGit(scratch, commit).stderr).toContain('ckpt: the store of this worktree is not where it was')
  fs.rmSync(location, { recursive: true })
  fs.renameSync(`${location}.away`, location)
  expect(tryGit(scratch, commit).code).toBe(1)
  expect(scratch.ckpt('redo').turns).toHaveLength(1)
  fs.rmSync(location, { recursive: true })
  const isBegunAnew = expect.stringMatching(/which is not there\. A new store was begun, without them: /)
  expect(scratch.ckpt('snapshot').warnings).toContainEqual(isBegunAnew)
  expect(scratch.ckpt('snapshot').warnings).toEqual([])
  fs.rmSync(location, { recursive: true })
  const prompt = { session_id: 'c', cwd: scratch.root, hook_event_name: 'UserPromptSubmit', prompt: 'x' }
  expect(scratch.run(['hook', 'claude'], { input: JSON.stringify(prompt) }).code).toBe(0)
  expect(scratch.ckpt('status').lastHookError).toMatchObject({ where: 'store.location', message: isBegunAnew })
  const wasBegunAnew = expect.stringContaining('was begun in the place of one that was away')
  for (const cwd of [scratch.root, linked]) {
    expect(tryGit(scratch, commit, { cwd }).stderr).toEqual(wasBegunAnew)
    expect(scratch.run(['status'], { cwd }).stderr).toEqual(wasBegunAnew)
  }
  expect(scratch.ckpt('doctor').findings).toContainEqual(
    expect.objectContaining({ detail: wasBegunAnew, advice: true }),
  )
  scratch.ckpt('init')
  expect(tryGit(scratch, commit).stderr).not.toContain('ckpt:')
  expect(scratch.ckpt('status').warnings).toEqual([])
})

test('row 32: status sees a gate that looks at another store than ckpt does', () => {
  const scratch = gateScratch()
  scratch.ckpt('hooks', 'install')
  scratch.ckpt('snapshot')
  const file = scratch.at('.git/ckpt/hooks/gate.sh')
  fs.writeFileSync(file, fs.readFileSync(file, 'utf8').replace(/^ckpt_store=.*$/m, `ckpt_store='${scratch.base}'`))
  fs.mkdirSync(path.join(scratch.base, 'worktrees/@main'), { recursive: true })
  expect(fires(scratch.ckpt('hooks', 'status'))).toEqual(HOOKS.map(() => false))
  expect(fires(scratch.ckpt('hooks', 'install'))).toEqual(all)
})

test('row 32: a gate of another version of ckpt, or of another configuration, is told; an install renews it', () => {
  const scratch = gateScratch('wörk 店')
  scratch.ckpt('hooks', 'install')
  scratch.ckpt('snapshot')
  const told = () => [
    scratch.ckpt('hooks', 'status').warnings.filter((one: string) => one.includes('another version of ckpt')).length,
    scratch.ckpt('doctor').findings.find(({ name }: Json) => name === 'hooks').mend ?? null,
  ]
  expect(told()).toEqual([0, null])
  const refuse = scratch.at('.git/ckpt/hooks/gate-refuse.sh')
  fs.appendFileSync(refuse, '# older\n')
  expect(told()).toEqual([1, 'ckpt hooks install'])
  scratch.ckpt('hooks', 'install')
  expect(told()).toEqual([0, null])
  // Hooks of ours in a directory that git does not look into any more are still found, whatever its name.
  const before = scratch.at('.git/hooks/pre-commit')
  scratch.git('config', 'core.hooksPath', scratch.at('.git/others'))
  scratch.ckpt('hooks', 'uninstall')
  expect([fs.existsSync(before), scratch.exists('.git/ckpt/hooks')]).toEqual([false, false])
})

test('row 32: where git does not run what was installed, install does not say that commits are refused', () => {
  const hook = { name: 'pre-commit', path: '/x/pre-commit', installed: true, chained: false } as const
  const place = { directory: '/x', off: null, refusal: null, husky: false, beside: true }
  const said = (fires: boolean | null) =>
    hooksText('install', { hooks: [{ ...hook, fires }], place, outdated: false, warnings: [] }, pc.createColors(false))
  expect(said(true)).toMatch(/commits in this repository are refused now/)
  expect(said(null)).toMatch(/commits in this repository are refused now/)
  expect(said(false)).toMatch(/commits may go through while something is undone/)
})

test('row 32: without ckpt, and without Node, the gate still refuses and says how to get round it; without its directory it lets all pass', () => {
  const scratch = gateScratch()
  scratch.ckpt('hooks', 'install')
  makePending(scratch)
  const bin = path.join(scratch.base, 'bin')
  fs.mkdirSync(bin)
  for (const name of ['git', 'sh', 'tr', 'sed', 'grep', 'printf', 'ps']) {
    fs.symlinkSync(execFileSync('sh', ['-c', `command -v ${name}`], { encoding: 'utf8' }).trim(), path.join(bin, name))
  }
  const bare = { vars: { PATH: bin } }
  const refused = tryGit(scratch, commit, bare)
  expect([refused.code, refused.stderr.includes('ckpt is not in PATH')]).toEqual([1, true])
  expect(tryGit(scratch, ['revert', '--no-edit', 'HEAD'], bare).code).not.toBe(0)
  scratch.git('reset', '-q', '--merge')
  const forced = { vars: { PATH: bin, CKPT_ALLOW_PENDING: '1' } }
  expect(tryGit(scratch, commit, forced)).toMatchObject({ code: 0, stderr: '' })
  scratch.remove('.git/ckpt')
  expect(tryGit(scratch, commit, bare)).toMatchObject({ code: 0, stderr: '' })
  expect(tryGit(scratch, ['revert', '--no-edit', 'HEAD~3'], bare)).toMatchObject({ code: 0 })
})

test('row 32: a half-done undo is refused as well, and finishing it opens the gate', () => {
  const scratch = gateScratch()
  scratch.ckpt('hooks', 'install')
  scratch.ckpt('snapshot')
  const journal = scratch.at('.git/ckpt/worktrees/@main/journal.json')
  fs.writeFileSync(journal, 'cut sh')
  for (const args of [commit, ['revert', '--no-edit', 'HEAD'], ['merge', '--no-edit', 'side']]) {
    const refused = tryGit(scratch, args)
    expect(refused.code).not.toBe(0)
    expect(refused.stderr).toContain('half done')
    expect(refused.stderr).toContain('ckpt doctor --fix')
    scratch.git('reset', '-q', '--merge')
  }
  scratch.ckpt('doctor', '--fix')
  expect(tryGit(scratch, commit).code).toBe(0)
})

const PREFIX = '#!/bin/sh\nsed -i "1s/^/ABC-1 /" "$1"\n'

test.each([
  ['x "head":null,"turns":', null],
  ['"x" first', null],
  ['\n\nx after blank lines', null],
  ['x and blanks  ', null],
  ['x', PREFIX],
])(
  'row 32: amid a ckpt commit that was killed once git had made it a commit would take it out again: refused, until it is finished (%j)',
  (message, hook) => {
    const scratch = gateScratch()
    if (hook) fs.writeFileSync(scratch.at('.git/hooks/commit-msg'), hook, { mode: 0o755 })
    scratch.ckpt('hooks', 'install')
    scratch.turn('it\'s "one"', () => {
      scratch.write({ 'new.txt': 'new\n' })
      scratch.remove('b.txt')
    })
    const killing = '#!/bin/sh\nkill -9 "$(sed -n \'s/^PPid:[[:space:]]*//p\' /proc/$PPID/status)"\n'
    fs.writeFileSync(scratch.at('.git/hooks/post-commit'), killing, { mode: 0o755 })
    expect(scratch.runApart(['commit', '-m', message], { vars: me }).code).toBe(128)
    scratch.remove('.git/hooks/post-commit')
    const made = head(scratch)
    expect(scratch.git('show', '--name-only', '--format=', 'HEAD')).toBe('b.txt\nnew.txt\n')
    scratch.write({ 'mine.txt': 'mine\n' })
    scratch.git('add', 'mine.txt')
    for (const args of [
      ['commit', '-m', 'mine'],
      ['commit', '-am', 'mine'],
      ['commit', '--amend', '--no-edit'],
    ]) {
      const { code, stderr } = tryGit(scratch, args)
      expect([code, head(scratch)]).toEqual([1, made])
      expect(stderr).toMatch(/a ckpt commit was cut short.*\n.*\n {2}-> ckpt status/)
    }
    expect(scratch.run(['status']).stderr).toContain('is finished: your index follows')
    expect(tryGit(scratch, ['commit', '-q', '-m', 'mine'])).toMatchObject({ code: 0, stderr: '' })
    expect(scratch.git('show', '--name-only', '--format=', 'HEAD')).toBe('mine.txt\n')
    expect(scratch.git('status', '--porcelain')).toBe('')
  },
)

test.each<[string, (scratch: Scratch) => void]>([
  [
    'an older state of it',
    (scratch) => {
      scratch.git('add', 'new.txt')
      scratch.turn('more', () => scratch.write({ 'new.txt': 'new\nmore\n' }))
    },
  ],
  [
    'a change of one’s own in it',
    (scratch) => {
      const mine = scratch.at('.git/mine')
      fs.writeFileSync(mine, 'mine\none\n')
      const blob = scratch.git('hash-object', '-w', mine).trim()
      scratch.turn('more', () => scratch.write({ 'a.txt': 'one\nagent\n' }))
      scratch.git('update-index', '--cacheinfo', `100644,${blob},a.txt`)
      scratch.write({ 'a.txt': 'mine\none\nagent\n' })
    },
  ],
])('row 32: so it is where something of a file was staged before: %s', (_, stageIt) => {
  const scratch = gateScratch()
  scratch.ckpt('hooks', 'install')
  scratch.turn('one', () => scratch.write({ 'new.txt': 'new\n' }))
  stageIt(scratch)
  const killing = '#!/bin/sh\nkill -9 "$(sed -n \'s/^PPid:[[:space:]]*//p\' /proc/$PPID/status)"\n'
  fs.writeFileSync(scratch.at('.git/hooks/post-commit'), killing, { mode: 0o755 })
  expect(scratch.runApart(['commit', '-m', '"x"'], { vars: me }).code).toBe(128)
  scratch.remove('.git/hooks/post-commit')
  const made = head(scratch)
  expect([tryGit(scratch, ['commit', '-m', 'mine']).code, head(scratch)]).toEqual([1, made])
  scratch.ckpt('status')
  tryGit(scratch, ['commit', '-m', 'mine'])
  expect(scratch.git('diff', '--stat', made, 'HEAD', '--diff-filter=D')).toBe('')
  expect(
    scratch
      .git('diff', made, 'HEAD')
      .split('\n')
      .filter((line) => /^-[^-]/.test(line)),
  ).toEqual([])
})

test('row 32: one that was killed before git made it, and one that is at work, refuse nothing, whatever came since', () => {
  const scratch = gateScratch()
  scratch.ckpt('hooks', 'install')
  scratch.turn('one', () => scratch.write({ 'new.txt': 'new\n' }))
  const note = (pid: number, was: string | null, message = 'x', tree?: string) => {
    const file = scratch.at('.git/ckpt/worktrees/@main/commit.json')
    const of = {
      ...(tree ? { tree } : {}),
      session: 's',
      head: was,
      turns: [],
      open: [],
      taken: {},
      paths: [],
      message,
    }
    fs.writeFileSync(file, JSON.stringify({ pid, started: null, time: Date.now(), ...of }))
  }
  const code = () => tryGit(scratch, ['commit', '--allow-empty', '-m', 'x']).code
  const was = head(scratch)
  scratch.write({ 'mine.txt': 'mine\n' })
  scratch.git('add', 'mine.txt')
  for (const [pid, at] of [
    [0, was],
    [0, was],
    [0, was.replace(/^./, 'f')],
    [0, null],
  ] as const) {
    note(pid, at)
    expect(code()).toBe(0)
  }
  scratch.git('read-tree', was)
  const tree = scratch.git('rev-parse', 'HEAD^{tree}').trim()
  for (const args of [
    [0, was],
    [0, was, 'another', tree],
  ] as [number, string, string?, string?][]) {
    note(...args)
    expect(code()).toBe(1)
  }
  // Another commit than the one that was to be made, and one whose process lives.
  for (const args of [
    [0, was, 'another'],
    [process.pid, was],
  ] as [number, string, string?][]) {
    note(...args)
    expect(code()).toBe(0)
    scratch.git('reset', '-q', '--soft', 'HEAD^')
  }
  // Of what HEAD has no more nothing is taken out.
  note(0, was, 'another')
  expect(code()).toBe(0)
  note(0, was)
  expect(code()).toBe(0)
  scratch.git('read-tree', '--empty')
  note(0, null, 'first')
  expect(code()).toBe(1)
})

test('row 32: several sessions are all named, each with its own way out; control characters reach no terminal', () => {
  const scratch = gateScratch()
  scratch.ckpt('hooks', 'install')
  makePending(scratch, "it's é → \\n")
  makePending(scratch, 'another')
  const { code, stderr } = tryGit(scratch, commit)
  expect(code).toBe(1)
  expect(stderr).toContain("session it's é → \\n: undone from turn 1 on; hidden turns: 1,2")
  expect(stderr).toContain("ckpt accept --session 'it'\\''s é → \\n'")
  expect(stderr).toContain('session another')
  expect(stderr).not.toContain('\u001b')
  const marker = scratch.at('.git/ckpt/worktrees/@main/boundary')
  fs.writeFileSync(marker, 'bell \u0007\u001b[2J\t1\t1')
  expect(tryGit(scratch, commit).stderr).not.toMatch(/[\u0007\u001b]/)
})

/** `git refs migrate` came with a second kind of ref store (git 2.46). */
const STORES = spawnSync('git', ['refs', '-h']).status === 1 ? ['files'] : ['files', 'reftable']

test.each(STORES)('row 32: where the calling command cannot be seen, the state of git decides (refs: %s)', (kind) => {
  const scratch = gateScratch()
  if (kind !== 'files') {
    scratch.remove('.git/logs') // git 2.47 does not take them along
    scratch.git('refs', 'migrate', `--ref-format=${kind}`)
  }
  scratch.ckpt('hooks', 'install')
  makePending(scratch)
  const start = head(scratch)
  const backstop = (message: string) => {
    fs.writeFileSync(scratch.at('.git/MESSAGE'), message)
    const hook = scratch.at('.git/hooks/prepare-commit-msg')
    return spawnSync(hook, ['.git/MESSAGE', 'message'], { cwd: scratch.root, env: scratch.vars }).status
  }
  expect(backstop('plain\n')).toBe(0)
  expect(backstop('Revert "third"\n\nThis reverts commit 0123456.\n')).toBe(5)
  for (const args of [
    ['merge', 'clash'],
    ['cherry-pick', 'clash'],
    ['revert', 'clash'],
    ['rebase', 'clash'],
  ]) {
    tryGit(scratch, args, { vars: { CKPT_ALLOW_PENDING: '1' } })
    expect([args[0], scratch.ckpt('status').git.busy, backstop('plain\n')]).toEqual([args[0], args[0], 5])
    scratch.git(args[0]!, '--abort')
    expect([head(scratch), backstop('plain\n')]).toEqual([start, 0])
  }
})

test('row 32: outside of a repository there are no git hooks: exit 9', () => {
  const scratch = new Scratch()
  scratch.ckpt('init')
  for (const action of ['install', 'uninstall', 'status']) expect(scratch.tryCkpt('hooks', action).code).toBe(9)
  expect(scratch.tryCkpt('hooks', 'dance').code).toBe(2)
})

test('where PATH is empty it refuses all the same, and says why', () => {
  const scratch = gateScratch()
  scratch.ckpt('hooks', 'install')
  makePending(scratch)
  const git = execFileSync('sh', ['-c', 'command -v git'], { encoding: 'utf8' }).trim()
  const before = head(scratch)
  for (const args of [
    ['commit', '--allow-empty', '-m', 'x'],
    ['revert', '--no-edit', 'HEAD'],
    ['cherry-pick', 'side'],
  ]) {
    const { status, stderr } = spawnSync(git, ['-c', 'user.name=n', '-c', 'user.email=n@example.com', ...args], {
      cwd: scratch.root,
      env: { PATH: '', HOME: scratch.home },
      encoding: 'utf8',
    })
    expect([args[0], status]).not.toEqual([args[0], 0])
    expect(stderr).toContain(`ckpt: git ${args[0]} refused: a revert boundary is pending`)
    expect(stderr).not.toContain('not found')
    spawnSync(git, ['reset', '-q', '--merge'], { cwd: scratch.root })
  }
  expect(head(scratch)).toBe(before)
})
