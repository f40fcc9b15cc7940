// Checkpoints on another machine: bundles, and remotes by git's own transport.
import { execFileSync, spawn } from 'node:child_process'
import fs from 'node:fs'
import path from 'node:path'
import { expect, test } from 'vitest'
import { renewOrigin } from '../../src/ops/transport/outgoing.ts'
import { closeContext, openContext } from '../../src/ops/worktree/context.ts'
import { alive, runLater } from '../support/daemon.ts'
import { answer, envOf } from '../support/in-process.ts'
import { type Json, PROGRAM, Scratch } from '../support/scratch.ts'
import { inStore, ownDirectory, storeOf } from '../support/store-surgery.ts'
import { cloneOf, twoTurns } from '../support/transport.ts'

function bareRemote(scratch: Scratch): string {
  const remote = path.join(scratch.base, 'remote.git')
  execFileSync('git', ['init', '-q', '--bare', remote], { env: scratch.vars })
  return remote
}

const inRemote = (scratch: Scratch, remote: string, ...args: string[]) =>
  execFileSync('git', [`--git-dir=${remote}`, ...args], { env: scratch.vars, encoding: 'utf8' }).trim()

const turnsOf = (scratch: Scratch, ...args: string[]) =>
  scratch.ckpt('list', ...args).turns.map((turn: any) => [turn.n, turn.before, turn.after])

/** Every object of a git directory, as text. */
function everything(gitDir: string, scratch: Scratch): string {
  const git = (args: string[], input?: string) =>
    execFileSync('git', [`--git-dir=${gitDir}`, 'cat-file', ...args], { env: scratch.vars, input: input ?? '' })
  return git(['--batch', '--batch-all-objects']).toString('latin1')
}

test('a bundle made here verifies in an empty clone, and lists, diffs and restores there', () => {
  const here = twoTurns()
  const file = path.join(here.base, 'ckpt.bundle')
  const before = here.gitState()
  const sent = here.ckpt('export', file)
  expect(sent).toMatchObject({ sent: true, sessions: 1, checkpoints: 4, prompts: 0, secrets: ['.env'] })
  expect(here.gitState()).toEqual(before)
  expect(fs.statSync(file).mode & 0o777).toBe(0o600)
  const there = cloneOf(here)
  execFileSync('git', ['bundle', 'verify', file], { cwd: there.root, env: there.vars, stdio: 'pipe' })
  const proof = there.ckpt('verify', '--bundle', file)
  expect(proof.checks).toContainEqual(expect.objectContaining({ name: 'bundle', ok: true }))
  expect(there.exists('.git/ckpt')).toBe(false)
  expect(there.ckpt('import', file).worktrees).toEqual([
    expect.objectContaining({ worktree: '@main', sessions: ['s'], checkpoints: 4 }),
  ])
  expect(turnsOf(there)).toEqual(turnsOf(here))
  expect(there.ckpt('diff', '1').patch).toBe(here.ckpt('diff', '1').patch)
  expect(there.ckpt('verify').problems).toEqual([])
  there.ckpt('restore', '2', '--force')
  expect([there.read('a.txt'), there.read('dir/new.txt')]).toEqual(['two\n', 'new\n'])
  there.ckpt('restore', '1:before', '--force', '--', 'a.txt')
  expect(there.read('a.txt')).toBe('one\n')
  // Once more changes nothing.
  const refs = inStore(there, 'for-each-ref')
  there.ckpt('import', file)
  expect(inStore(there, 'for-each-ref')).toBe(refs)
})

test('prompts stay unless they are asked for', () => {
  const here = twoTurns()
  const [without, withThem] = [path.join(here.base, 'a.bundle'), path.join(here.base, 'b.bundle')]
  here.ckpt('export', without)
  expect(here.ckpt('export', withThem, '--with-prompts').prompts).toBe(2)
  const [one, two] = [cloneOf(here), cloneOf(here)]
  one.ckpt('import', without)
  two.ckpt('import', withThem)
  expect(everything(storeOf(one), one)).not.toContain('words of the')
  expect(two.ckpt('list').turns.map((turn: any) => turn.prompt)).toEqual([
    'words of the second',
    'words of the first prompt',
  ])
  // Prompts that come later are added to what is there.
  one.ckpt('import', withThem)
  expect(one.ckpt('show', '1').turn.text).toBe('words of the first prompt')
  // Also to one that has gone on meanwhile; and only what is new is counted.
  const three = cloneOf(here)
  three.ckpt('import', without)
  three.turn('a third', () => three.write({ 'c.txt': 'c\n' }))
  const came = () => three.ckpt('import', withThem).worktrees
  expect(came()).toMatchObject([{ worktree: '@main', checkpoints: 0, prompts: 2 }])
  expect(three.ckpt('show', '1').turn.text).toBe('words of the first prompt')
  expect(three.ckpt('list').turns).toHaveLength(3)
  expect(came()).toMatchObject([{ prompts: 0 }])
})

test('an export that was killed stands in the way of none; a link to the bundle stays one', () => {
  const here = twoTurns()
  const file = path.join(here.base, 'x.bundle')
  fs.writeFileSync(`${file}.lock`, '') // what git leaves
  here.ckpt('export', file)
  fs.symlinkSync('x.bundle', path.join(here.base, 'link.bundle'))
  here.turn('more', () => here.write({ 'c.txt': 'c\n' }))
  here.ckpt('export', path.join(here.base, 'link.bundle'))
  expect(fs.readdirSync(here.base).filter((name) => name.includes('bundle'))).toEqual([
    'link.bundle',
    'x.bundle',
    'x.bundle.lock',
  ])
  expect(fs.lstatSync(path.join(here.base, 'link.bundle')).isSymbolicLink()).toBe(true)
  expect(fs.statSync(file).mode & 0o777).toBe(0o600)
  const there = cloneOf(here)
  there.ckpt('import', file)
  expect(there.ckpt('list').turns).toHaveLength(3)
})

test('what looks like a secret is listed first, and nobody is asked without a terminal', () => {
  const here = new Scratch().init({ 'a.txt': '', 'certs/server.pem': 'x', 'id_rsa.pub': 'x', '.env.example': 'x' })
  here.turn('x', () => here.write({ 'deep/id_rsa': 'x', '.env': 'x', 'config/secrets.yml': 'x' }))
  const file = path.join(here.base, 'x.bundle')
  const told = here.run(['export', file])
  expect(told.code).toBe(0)
  const lines = told.stderr.split('\n').filter((line) => line.startsWith('  '))
  expect(lines.map((line) => line.trim())).toEqual(['.env', 'certs/server.pem', 'config/secrets.yml', 'deep/id_rsa'])
  expect(told.stderr).toMatch(/Prompts stay here/)
})

test('push to and pull from a bare repository: refs/ckpt/ and nothing else', () => {
  const here = twoTurns()
  const remote = bareRemote(here)
  // A hook of the remote would be somebody's program.
  fs.writeFileSync(path.join(remote, 'hooks/pre-receive'), `#!/bin/sh\ntouch ${here.base}/ran\nexit 1\n`, {
    mode: 0o755,
  })
  here.git('remote', 'add', 'shared', remote)
  const before = here.gitState()
  here.ckpt('push', 'shared')
  expect(here.gitState()).toEqual(before)
  expect(fs.existsSync(`${here.base}/ran`)).toBe(false)
  const refs = inRemote(here, remote, 'for-each-ref', '--format=%(refname)').split('\n')
  expect(refs).toEqual([expect.stringMatching(/^refs\/ckpt\/[0-9a-f]{12}\/@main$/)])
  expect(everything(remote, here)).not.toContain('words of the')
  const there = cloneOf(here)
  expect(there.ckpt('pull', remote).worktrees).toEqual([expect.objectContaining({ worktree: '@main', checkpoints: 4 })])
  expect(turnsOf(there)).toEqual(turnsOf(here))
  expect(there.ckpt('verify').problems).toEqual([])
  expect(there.ckpt('pull', remote).worktrees).toEqual([])
  // Only what is new goes and comes.
  here.turn('third', () => here.write({ 'a.txt': 'three\n' }))
  here.ckpt('push', 'shared')
  expect(there.ckpt('pull', remote).worktrees).toEqual([expect.objectContaining({ worktree: '@main', checkpoints: 2 })])
  expect(turnsOf(there)).toEqual(turnsOf(here))
  expect(there.ckpt('verify').problems).toEqual([])
})

test('a store is no remote, and neither is the repository itself', () => {
  const [here, other] = [twoTurns(), twoTurns()]
  here.git('worktree', 'add', '-q', here.at('../linked'))
  here.git('remote', 'add', 'self', '.')
  fs.symlinkSync(here.root, here.at('../a link'))
  const store = other.at('.git/ckpt/store.git')
  const before = [other.gitState(), here.gitState()]
  const ways = [/^git init --bare DIRECTORY/, /^ckpt export FILE/]
  const linked = here.at('../linked/.git')
  const own = [
    linked,
    '.git/worktrees/linked',
    here.root,
    '.',
    '.git',
    'self',
    here.at('../linked'),
    `file://${path.dirname(here.root)}/a%20link`,
  ]
  for (const remote of [store, `file://${store}`, '.git/ckpt/store.git', ...own]) {
    const { code, document } = here.tryCkpt('push', remote, '--yes')
    expect([remote, code, document.error.code]).toEqual([remote, 2, 'USAGE'])
    expect(document.error.hints).toEqual(ways.map((way) => expect.stringMatching(way)))
    const pulled = here.tryCkpt('pull', remote)
    expect([remote, pulled.code, pulled.document.error.code]).toEqual([remote, 2, 'USAGE'])
  }
  expect([other.gitState(), here.gitState()]).toEqual(before)
  expect(other.ckpt('verify').problems).toEqual([])
  expect(here.tryCkpt('push', 'a.txt', '--yes').document.error.message).toMatch(/^git could not speak to the remote/)
  // A directory in the worktree may be one.
  here.git('init', '-q', '--bare', here.at('remote.git'))
  here.ckpt('push', 'remote.git', '--yes')
})

test('what was pushed to a store all the same doctor takes out again', () => {
  const [scratch, other] = [twoTurns(), twoTurns()]
  const remote = bareRemote(other)
  other.ckpt('push', remote, '--yes')
  const [ref = ''] = inRemote(other, remote, 'for-each-ref', '--format=%(refname)').split('\n')
  const turns = turnsOf(scratch)
  inRemote(other, remote, 'push', '-q', scratch.at('.git/ckpt/store.git'), 'refs/ckpt/*:refs/ckpt/*')
  const bad = scratch.tryCkpt('verify')
  expect([bad.code, bad.document.error.hints.join()]).toEqual([7, expect.stringMatching(/^ckpt doctor/)])
  expect(scratch.tryCkpt('forget', 'a.txt').code).toBe(7)
  const finding = ({ document }: ReturnType<typeof scratch.tryCkpt>) =>
    document.findings.find(({ name }: { name: string }) => name === 'refs')
  expect(finding(scratch.tryCkpt('doctor'))).toMatchObject({ ok: false, detail: expect.stringContaining(ref) })
  expect(finding(scratch.tryCkpt('doctor', '--fix'))).toMatchObject({ ok: true, fixed: true })
  expect(scratch.ckpt('verify').problems).toEqual([])
  expect(finding(scratch.tryCkpt('doctor'))).toMatchObject({ ok: true })
  expect(turnsOf(scratch)).toEqual(turns)
  scratch.ckpt('forget', 'a.txt')
})

test.each(['heads/x', 'tags/t', 'ckpt/zzz', 'ckpt/zzz/x', 'ckpt/zzz/live', 'ckpt/z/s/live'])(
  'so it does with what git itself pushed to %s, and forget refuses until then',
  (name) => {
    const scratch = twoTurns()
    scratch.turn('a key', () => scratch.write({ 'key.txt': 'secret\n' }))
    scratch.git('add', 'key.txt')
    scratch.git('commit', '-qm', 'the key')
    const [turns, oid] = [turnsOf(scratch), scratch.git('rev-parse', 'HEAD:key.txt').trim()]
    scratch.git('push', '-q', '.git/ckpt/store.git', `HEAD:refs/${name}`)
    const refused = scratch.tryCkpt('forget', 'key.txt')
    expect([refused.code, refused.document.error.hints[0]]).toEqual([7, 'ckpt doctor --fix   (takes it out)'])
    expect(scratch.tryCkpt('doctor').code).toBe(7)
    scratch.ckpt('doctor', '--fix')
    expect([scratch.tryCkpt('doctor').code, scratch.ckpt('verify').problems]).toEqual([0, []])
    expect(turnsOf(scratch)).toEqual(turns)
    scratch.ckpt('forget', 'key.txt')
    expect(() => scratch.git('--git-dir', '.git/ckpt/store.git', 'cat-file', '-e', oid)).toThrow()
  },
)

test('what a remote was sent it has until the next push: forget says so', () => {
  const here = twoTurns()
  const remote = bareRemote(here)
  const forget = (name: string) => here.ckpt('forget', name).warnings.join(' ')
  here.turn('a key', () => here.write({ 'key.txt': 'secret\n', 'other.txt': 'other\n' }))
  expect(forget('other.txt')).not.toContain('remote')
  here.ckpt('push', remote, '--yes')
  expect(forget('key.txt')).toContain('ckpt push REMOTE')
  const isThere = () => {
    inRemote(here, remote, 'gc', '-q', '--prune=now')
    return inRemote(here, remote, 'cat-file', '--batch-all-objects', '--batch').includes('secret\n')
  }
  expect(isThere()).toBe(true)
  here.ckpt('push', remote, '--yes')
  expect(isThere()).toBe(false)
})

test('two clones with different sessions do not lose any', () => {
  const one = new Scratch().init()
  const two = cloneOf(one)
  const remote = bareRemote(one)
  one.turn('one', () => one.write({ 'a.txt': 'by one\n' }), 'first')
  two.turn('two', () => two.write({ 'b.txt': 'by two\n' }), 'second')
  one.ckpt('push', remote)
  two.ckpt('push', remote)
  const [ownOne, ownTwo] = [turnsOf(one), turnsOf(two)]
  for (const [scratch, other] of [
    [one, 'second'],
    [two, 'first'],
  ] as const) {
    const { worktrees } = scratch.ckpt('pull', remote)
    expect(worktrees).toEqual([
      expect.objectContaining({
        from: '@main',
        worktree: expect.stringMatching(/^from-[0-9a-f]{8}-main$/),
        sessions: [other],
      }),
    ])
    const all = scratch.ckpt('list', '--sessions', '--all-worktrees').sessions.map((session: any) => session.id)
    expect(all.sort()).toEqual(['first', 'second'])
    expect(scratch.ckpt('verify').problems).toEqual([])
  }
  expect([turnsOf(one), turnsOf(two)]).toEqual([ownOne, ownTwo])
  one.ckpt('show', ownTwo[0][2])
  one.ckpt('restore', ownTwo[0][2], '--', 'b.txt')
  expect(one.read('b.txt')).toBe('by two\n')
  // A turn's own id serves too, wherever it came from; to undo one is for its own place.
  const [theirs] = two.ckpt('list').turns
  expect(one.ckpt('show', theirs.id).turn).toMatchObject({
    id: theirs.id,
    session: 'second',
    stat: theirs.stat,
    worktree: expect.stringMatching(/^from-/),
  })
  expect(one.ckpt('diff', theirs.id).files).toEqual(two.ckpt('diff', theirs.id).files)
  one.write({ 'b.txt': 'else\n' })
  one.ckpt('restore', theirs.id, '--force')
  expect(one.read('b.txt')).toBe('by two\n')
  expect(one.run(['undo', '--to', theirs.id]).code).toBe(3)
})

test('the same session gone on on both sides: both stay', () => {
  const one = twoTurns()
  const remote = bareRemote(one)
  const two = cloneOf(one)
  one.ckpt('push', remote)
  two.ckpt('pull', remote)
  one.turn('here', () => one.write({ 'a.txt': 'here\n' }))
  two.turn('there', () => two.write({ 'a.txt': 'there\n' }))
  const [mine, theirs] = [turnsOf(one), turnsOf(two)]
  one.ckpt('push', remote)
  two.ckpt('push', remote)
  // Six came, of which four were here.
  for (const scratch of [one, two])
    expect(scratch.ckpt('pull', remote).worktrees).toMatchObject([
      { worktree: expect.stringMatching(/^from-/), checkpoints: 2 },
    ])
  expect([turnsOf(one), turnsOf(two)]).toEqual([mine, theirs])
  one.ckpt('show', theirs[0][2])
  two.ckpt('show', mine[0][2])
  for (const scratch of [one, two]) expect(scratch.ckpt('verify').problems).toEqual([])
  // What came before stays when its sender forgot it: here the other goes back, and sends again.
  two.ckpt('undo')
  two.turn('otherwise', () => two.write({ 'a.txt': 'otherwise\n' }))
  two.ckpt('push', remote)
  one.ckpt('pull', remote)
  one.ckpt('show', theirs[0][2])
  expect(one.ckpt('verify').problems).toEqual([])
})

function copyOf(one: Scratch): Scratch {
  const copy = new Scratch()
  fs.cpSync(path.join(one.root, '.git'), path.join(copy.root, '.git'), { recursive: true })
  copy.git('checkout', '-q', '.')
  return copy
}

test('a copy of a store does not push over what its original sent', () => {
  const one = twoTurns()
  const remote = bareRemote(one)
  one.ckpt('push', remote)
  const copy = copyOf(one)
  one.turn('at one', () => one.write({ 'a.txt': 'at one\n' }))
  one.ckpt('push', remote)
  copy.turn('at the copy', () => copy.write({ 'a.txt': 'at the copy\n' }))
  copy.ckpt('push', remote)
  expect(inRemote(one, remote, 'for-each-ref', '--format=%(refname)').split('\n')).toHaveLength(2)
  const third = cloneOf(one)
  third.ckpt('pull', remote)
  third.ckpt('show', turnsOf(one)[0][2])
  third.ckpt('show', turnsOf(copy)[0][2])
  expect(third.ckpt('verify').problems).toEqual([])
})

test('a copy of a store pulls what its original sent since, though it goes by the same name', () => {
  const one = twoTurns()
  const remote = bareRemote(one)
  one.ckpt('push', remote)
  const copy = copyOf(one)
  expect(copy.ckpt('pull', remote).worktrees).toEqual([])
  one.turn('at one', () => one.write({ 'a.txt': 'at one\n' }))
  one.ckpt('push', remote)
  const [newest] = turnsOf(one)
  expect(copy.tryCkpt('show', newest[2]).code).toBe(3)
  expect(copy.ckpt('pull', remote).worktrees).toHaveLength(1)
  copy.ckpt('show', newest[2])
  expect([copy.ckpt('pull', remote).worktrees, copy.ckpt('verify').problems]).toEqual([[], []])
  expect(one.ckpt('pull', remote).worktrees).toEqual([])
})

test('a store that forgot what it sent is no copy, by whatever URL it goes there', () => {
  const one = twoTurns()
  const remote = bareRemote(one)
  one.ckpt('push', remote)
  one.ckpt('forget', 'a.txt')
  expect(one.ckpt('pull', `file://${remote}`).worktrees).toEqual([])
  one.ckpt('push', `file://${remote}`)
  expect(inRemote(one, remote, 'for-each-ref', '--format=%(refname)').split('\n')).toHaveLength(1)
})

test('a pruned store exports and pushes; its ids stay, and it is cut there too', () => {
  const here = twoTurns()
  here.turn('third', () => here.write({ 'a.txt': 'three\n' }))
  here.ckpt('prune', '--keep', '2')
  expect(fs.existsSync(path.join(storeOf(here), 'shallow'))).toBe(true)
  const file = path.join(here.base, 'cut.bundle')
  const remote = bareRemote(here)
  here.ckpt('export', file)
  here.ckpt('push', remote)
  for (const bring of [
    ['import', file],
    ['pull', remote],
  ]) {
    const there = cloneOf(here)
    expect(there.ckpt('verify', '--bundle', file).problems).toEqual([])
    there.ckpt(...bring)
    expect(turnsOf(there)).toEqual(turnsOf(here))
    expect(there.ckpt('verify').problems).toEqual([])
    inStore(there, 'fsck', '--strict', '--no-dangling')
    there.ckpt('prune')
    expect(turnsOf(there)).toEqual(turnsOf(here))
  }
})

test('a pending boundary goes along: redo there, and the gate sees it', () => {
  const here = twoTurns()
  here.ckpt('undo')
  const file = path.join(here.base, 'pending.bundle')
  here.ckpt('export', file)
  const there = cloneOf(here)
  there.write({ 'a.txt': 'two\n' })
  there.ckpt('import', file)
  expect(there.ckpt('status').boundary).toMatchObject({ session: 's', turn: 2 })
  expect(fs.readFileSync(path.join(ownDirectory(there), 'boundary'), 'utf8')).toMatch(/^s\t2\t2/)
  expect(there.tryCkpt('verify', '--no-pending').code).toBe(5)
  there.ckpt('redo')
  expect(there.read('dir/new.txt')).toBe('new\n')
  expect(there.ckpt('verify').problems).toEqual([])
})

test("a store's own bundle brings nothing new to any of its worktrees, and no second copy of one", () => {
  const here = twoTurns()
  const linked = path.join(here.base, 'linked')
  here.git('worktree', 'add', '-q', linked)
  const empty = path.join(here.base, 'empty')
  here.git('worktree', 'add', '-q', empty)
  const inside = (cwd: string, ...args: string[]) => JSON.parse(here.run([...args, '--json'], { cwd }).stdout)
  inside(linked, 'snapshot')
  const file = path.join(here.base, 'own.bundle')
  here.ckpt('export', file)
  inside(linked, 'snapshot')
  const refs = () => inStore(here, 'for-each-ref')
  const before = refs()
  for (const cwd of [here.root, linked, empty]) {
    expect(inside(cwd, 'import', file).worktrees.map((one: any) => [one.from, one.worktree, one.checkpoints])).toEqual([
      ['@main', '@main', 0],
      [expect.stringMatching(/linked/), expect.stringMatching(/linked/), 0],
    ])
    expect(refs()).toBe(before)
  }
  expect(here.ckpt('verify').problems).toEqual([])
})

test('what is pending elsewhere is beside what is here: no git hook reads it, and none is asked to', () => {
  const there = twoTurns()
  there.turn('third', () => there.write({ 'a.txt': 'three\n' }))
  const here = cloneOf(there)
  here.turn('of its own', () => here.write({ 'b.txt': 'b\n' }))
  const file = path.join(there.base, 'pending.bundle')
  for (const step of [['undo'], ['undo'], ['redo'], ['redo', '--all']]) {
    there.ckpt(...step)
    there.ckpt('export', file)
    const [{ worktree }] = here.ckpt('import', file).worktrees
    expect(worktree).toMatch(/^from-/)
    expect(here.ckpt('verify', '--no-pending').problems).toEqual([])
    expect(here.ckpt('doctor').findings).toContainEqual(expect.objectContaining({ name: 'boundary', ok: true }))
  }
})

test.each([
  ['redone', ['redo']],
  ['kept so', ['accept']],
])('what was pending elsewhere, and is %s there, does not keep what came beside from going on', (_, [then = '']) => {
  const there = twoTurns()
  const here = cloneOf(there)
  here.turn('of its own', () => here.write({ 'b.txt': 'b\n' }), 'own')
  const file = path.join(there.base, 'on.bundle')
  there.ckpt('undo')
  there.ckpt('export', file)
  const [{ worktree }] = here.ckpt('import', file).worktrees
  there.ckpt(then)
  there.turn('it goes on', () => there.write({ 'c.txt': 'c\n' }))
  there.turn('of another', () => there.write({ 'd.txt': 'd\n' }), 'other')
  there.ckpt('export', file)
  expect(here.ckpt('import', file).worktrees).toMatchObject([{ worktree }])
  expect(here.ckpt('import', file).worktrees).toMatchObject([{ checkpoints: 0 }])
  here.ckpt('prune')
  const visible = (scratch: Scratch, ...more: string[]) => {
    const { turns } = scratch.ckpt('list', '--all-sessions', ...more)
    return turns
      .flatMap((turn: any) => (turn.session === 'own' ? [] : [`${turn.session} ${turn.n} ${turn.after}`]))
      .sort()
  }
  expect(visible(here, '--all-worktrees')).toEqual(visible(there))
  for (const { after } of there.ckpt('list', '--all-sessions').turns) here.ckpt('restore', after, '--dry-run')
  expect(here.ckpt('verify', '--no-pending').problems).toEqual([])
})

test('what is pending here stays so when its session went on elsewhere', () => {
  const here = twoTurns()
  const bare = path.join(here.base, 'bare.git')
  here.git('clone', '-q', '--bare', here.root, bare)
  here.ckpt('undo')
  here.ckpt('push', bare)
  const there = cloneOf(here)
  there.ckpt('pull', bare)
  there.turn('it goes on there', () => there.write({ 'a.txt': 'three\n' }))
  there.ckpt('push', bare)
  const before = here.manifest()
  expect(here.ckpt('pull', bare).worktrees).toMatchObject([{ worktree: expect.stringMatching(/^from-/) }])
  expect(here.ckpt('verify').problems).toEqual([])
  here.ckpt('redo')
  expect(here.read('dir/new.txt')).toBe('new\n')
  here.ckpt('undo')
  expect(here.manifest()).toEqual(before)
  const third = cloneOf(here)
  const file = path.join(here.base, 'pending.bundle')
  here.ckpt('export', file)
  expect(third.ckpt('import', file).worktrees[0].worktree).toBe('@main')
  here.ckpt('accept')
  here.ckpt('export', file)
  third.ckpt('import', file)
  expect(third.ckpt('status').boundary.hiddenTurns).toEqual([2])
  expect(third.ckpt('verify').problems).toEqual([])
})

test('a byte flipped anywhere in a bundle is found, and nothing of it is taken in', () => {
  const here = twoTurns()
  const file = path.join(here.base, 'whole.bundle')
  here.ckpt('export', file)
  const bytes = fs.readFileSync(file)
  const there = cloneOf(here)
  const broken = path.join(here.base, 'broken.bundle')
  const missed: number[] = []
  const places = [0, 20, 60, 75, ...Array.from({ length: 12 }, (_, i) => Math.floor((bytes.length * (i + 1)) / 13))]
  for (const at of places) {
    const other = Buffer.from(bytes)
    other[at] = other[at]! ^ 0x11
    fs.writeFileSync(broken, other)
    if (there.tryCkpt('verify', '--bundle', broken).code !== 7) missed.push(at)
    if (there.tryCkpt('import', broken).code === 0) missed.push(-at)
  }
  expect(missed).toEqual([])
  expect(there.ckpt('list', '--sessions').sessions).toEqual([])
  fs.writeFileSync(broken, bytes.subarray(0, bytes.length - 30))
  expect(there.tryCkpt('import', broken).code).toBe(7)
  expect(there.tryCkpt('import', path.join(here.base, 'none')).code).toBe(3)
})

test.skipIf(process.platform !== 'linux')('a directory in which nothing may be made is told of by its name', () => {
  const here = twoTurns()
  const { code, document } = here.tryCkpt('export', '/proc/x.bundle')
  expect([code, document.error.message]).toEqual([
    1,
    'The bundle cannot be written to /proc/x.bundle (ENOENT). Nothing was changed.',
  ])
  expect(document.error.hints).toEqual(['ls -ld /proc', 'ckpt export FILE   (in another directory)'])
})

test('export replaces a bundle of this store, and nothing else', () => {
  const here = twoTurns()
  const at = (name: string) => path.join(here.base, name)
  const refused = (file: string) => {
    const { code, document } = here.tryCkpt('export', file)
    expect([file, document.error]).toEqual([file, expect.objectContaining({ hints: [expect.stringMatching(/./)] })])
    expect(document.error.message).toMatch(/Nothing was changed\.$/)
    return [code, document.error.code]
  }
  here.write({ 'a.txt': 'nowhere else\n' })
  here.git('bundle', 'create', '-q', at('own.bundle'), 'main')
  execFileSync('mkfifo', [at('fifo')])
  for (const file of [here.at('a.txt'), at('own.bundle'), at('fifo'), here.root, ''])
    expect([file, ...refused(file)]).toEqual([file, 2, 'USAGE'])
  expect(here.read('a.txt')).toBe('nowhere else\n')
  expect(fs.statSync(here.at('a.txt')).mode & 0o777).toBe(0o644)
  for (const file of [at('none/x.bundle'), path.join(here.at('a.txt'), 'x.bundle')])
    expect([file, ...refused(file)]).toEqual([file, 3, 'NOT_FOUND'])
  // An empty file, as mktemp makes one; then what was exported before.
  fs.writeFileSync(at('x.bundle'), '')
  for (const turn of ['third', 'fourth']) {
    here.turn(turn, () => here.write({ 'a.txt': `${turn}\n` }))
    here.ckpt('export', at('x.bundle'))
  }
  expect(cloneOf(here).ckpt('import', at('x.bundle')).worktrees[0].checkpoints).toBe(8)
  const other = twoTurns()
  fs.symlinkSync('not here yet', path.join(other.base, 'link'))
  for (const file of [at('x.bundle'), path.join(other.base, 'link')]) {
    for (let times = 0; times < 2; times++) {
      const { code, document } = other.tryCkpt('export', file)
      expect([code, document.error.message]).toEqual([
        2,
        expect.stringContaining(file.endsWith('link') ? 'leads nowhere' : 'another store'),
      ])
      if (times === 0) other.ckpt('export', path.join(other.base, 'x.bundle')) // from then on it has a name of its own
    }
  }
  expect(cloneOf(here).ckpt('import', at('x.bundle')).worktrees[0].checkpoints).toBe(8)
  expect(fs.readlinkSync(path.join(other.base, 'link'))).toBe('not here yet')
})

test('what is no bundle, or one of another kind, is named as what it is', () => {
  const here = twoTurns()
  const at = (name: string) => path.join(here.base, name)
  here.ckpt('export', at('sha1'))
  const other = new Scratch()
  other.git('init', '-q', '--object-format=sha256')
  other.turn('one', () => other.write({ 'a.txt': 'a\n' }))
  other.ckpt('export', at('sha256'))
  fs.writeFileSync(at('empty'), '')
  fs.writeFileSync(at('text'), 'text\n')
  fs.writeFileSync(at('cut'), fs.readFileSync(at('sha1')).subarray(0, -30))
  execFileSync('mkfifo', [at('fifo')])
  const there = cloneOf(here)
  const cases: [scratch: Scratch, file: string, code: number, said: RegExp][] = [
    [there, 'none', 3, /^There is no file \S+none\. Nothing/],
    [there, 'text/none', 3, /^There is no file \S+none\. Nothing/],
    [there, 'fifo', 2, /fifo is no regular file, and no bundle\. Nothing/],
    [there, 'work', 2, /work is a directory, and no bundle\. Nothing/],
    [there, 'empty', 7, /empty is empty\. Nothing/],
    [there, 'text', 7, /text does not begin as a bundle\. Nothing/],
    [there, 'cut', 7, /cut is not a whole bundle: [^.]+[^. ]\. Nothing/],
    [there, 'sha256', 7, /sha256 holds SHA-256 objects, and those of this repository are SHA-1\. Nothing/],
    [other, 'sha1', 7, /sha1 holds SHA-1 objects, and those of this repository are SHA-256\. Nothing/],
  ]
  for (const [scratch, file, code, said] of cases) {
    const came = scratch.tryCkpt('import', at(file))
    const looked = scratch.tryCkpt('verify', '--bundle', at(file))
    expect([file, came.code, looked.code]).toEqual([file, code, code])
    expect(came.document.error.message).toMatch(said)
    if (code === 7) expect(looked.document.problems).toEqual([`bundle: ${came.document.error.message}`])
    else expect(looked.document.error).toEqual(came.document.error)
  }
  expect(there.tryCkpt('import', '').code).toBe(2)
  expect(there.ckpt('list', '--sessions').sessions).toEqual([])
})

test('a remote of the other object format is named as that, and what can take the checkpoints', () => {
  const here = twoTurns()
  const other = new Scratch()
  other.git('init', '-q', '--object-format=sha256')
  other.turn('one', () => other.write({ 'a.txt': 'a\n' }))
  const remote = path.join(here.base, 'sha256.git')
  execFileSync('git', ['init', '-q', '--bare', '--object-format=sha256', remote], { env: here.vars })
  const refused = (verb: string, hint: string) => {
    const { code, document } = here.tryCkpt(verb, remote, ...(verb === 'push' ? ['--yes'] : []))
    const message = expect.stringMatching(
      /another object format than this repository.* sha1.*Nothing was changed here\.$/,
    )
    expect([code, document.error]).toEqual([
      1,
      expect.objectContaining({ message, hints: [expect.stringMatching(hint)] }),
    ])
  }
  refused('push', '^git init --bare --object-format=sha1 ')
  other.ckpt('push', remote, '--yes')
  refused('pull', '^git init --object-format=sha256 ')
  expect(here.ckpt('list').turns).toHaveLength(2)
})

test("promise 6: only the user's own programs may run, and a URL that names one is refused", () => {
  const here = twoTurns()
  const ran = path.join(here.base, 'ran')
  const program = path.join(here.base, 'program.sh')
  fs.writeFileSync(program, `#!/bin/sh\necho "$0 $*" >> ${ran}\nexit 1\n`, { mode: 0o755 })
  here.git('config', 'core.sshCommand', program)
  here.git('config', 'credential.helper', program)
  here.git('remote', 'add', 'evil', `ext::${program} %S`)
  expect(here.tryCkpt('push', 'evil').code).toBe(1)
  expect(here.tryCkpt('pull', `ext::${program}`).code).toBe(1)
  here.run(['pull', 'ssh://nowhere.invalid/x.git'], { vars: { GIT_SSH_COMMAND: 'false' } })
  expect(fs.existsSync(ran)).toBe(false)
  // The user's own: asked for in their own file.
  fs.writeFileSync(path.join(here.home, '.gitconfig'), `[core]\n\tsshCommand = ${program}\n`)
  expect(here.tryCkpt('pull', 'ssh://nowhere.invalid/x.git').code).toBe(1)
  expect(fs.readFileSync(ran, 'utf8')).toContain('nowhere.invalid')
  expect(here.tryCkpt('push', 'no-such-remote').code).toBe(3)
  expect(here.tryCkpt('push', '--', '--upload-pack=x').code).toBe(2)
})

test('nothing recorded: nothing to send, and a word', () => {
  const scratch = new Scratch().init()
  const { code, document } = scratch.tryCkpt('export', path.join(scratch.base, 'x'))
  expect([code, document.error.code]).toEqual([3, 'NOT_FOUND'])
  expect(scratch.exists('.git/ckpt')).toBe(false)
})

test('what the main worktree sent out is never a linked one’s own, though it was pruned there since', () => {
  const here = new Scratch().init()
  for (const n of ['1', '2', '3', '4']) here.turn(n, () => here.write({ [n]: n }))
  const bundle = path.join(here.base, 'all.bundle')
  here.ckpt('export', bundle)
  here.ckpt('prune', '--keep', '2')
  here.git('add', '-A')
  here.git('commit', '-qm', 'work')
  const linked = path.join(here.base, 'linked')
  here.git('worktree', 'add', '-q', '--detach', linked)
  expect(here.run(['import', bundle, '--json'], { cwd: linked }).code).toBe(0)
  expect(here.run(['undo', '--json'], { cwd: linked }).code).toBe(3)
  expect(fs.existsSync(path.join(linked, '4'))).toBe(true)
})

test('a linked worktree is no place that came from elsewhere, whatever its name; a list names one session of all worktrees', () => {
  const here = twoTurns()
  const linked = new Scratch('from-20241107-fix')
  here.git('worktree', 'add', '-q', linked.root)
  linked.turn('in the linked one', () => linked.write({ 'c.txt': 'c\n' }), 'linked')
  const file = path.join(here.base, 'x.bundle')
  expect(here.ckpt('export', file)).toMatchObject({ sessions: 2, checkpoints: 6 })
  const listed = (...more: string[]) => here.ckpt('list', '--all-worktrees', ...more).turns.map((turn: any) => turn.n)
  expect(listed()).toEqual([1, 2, 1])
  expect(listed('--session', 'link')).toEqual([1])
  expect(here.tryCkpt('list', '--all-worktrees', '--session', 'nosuch').code).toBe(3)
  expect(here.tryCkpt('list', '--all-sessions', '--session', 'linked').code).toBe(3)
})

test('push: what cannot be reached is named, and who comes at the same time as another is told to come again', () => {
  const here = twoTurns()
  const push = (remote: string, vars = {}) => {
    const { code, stdout } = here.run(['push', remote, '--yes', '--json'], { vars })
    return { code, error: JSON.parse(stdout).error }
  }
  expect(push('file:///none/at all')).toMatchObject({
    code: 1,
    error: { hints: ["git ls-remote 'file:///none/at all'"] },
  })
  const remote = bareRemote(here)
  const there = `git --git-dir='${remote}'`
  const bin = path.join(here.base, 'bin')
  fs.mkdirSync(bin)
  // Another push comes between the look at the remote and ours.
  const script = `PATH='${here.vars.PATH}'
case " $* " in
  *' push '*) for last; do :; done; ${there} update-ref "\${last%%:*}" "$(echo x | ${there} hash-object -w --stdin)" ;;
esac
exec git "$@"`
  fs.writeFileSync(path.join(bin, 'git'), `#!/bin/sh\n${script}\n`, { mode: 0o755 })
  expect(push(remote, { PATH: `${bin}:${here.vars.PATH}` })).toMatchObject({
    code: 1,
    error: { message: expect.stringContaining('at the same time'), hints: ['run the command again'] },
  })
})

test('a lock that a killed git left on the remote is named', () => {
  const here = twoTurns()
  const remote = bareRemote(here)
  here.ckpt('push', remote)
  here.turn('third', () => here.write({ 'a.txt': 'three\n' }))
  const lock = path.join(remote, `${inRemote(here, remote, 'for-each-ref', '--format=%(refname)')}.lock`)
  fs.writeFileSync(lock, '')
  const { code, document } = here.tryCkpt('push', remote)
  expect([code, document.error.hints]).toEqual([
    1,
    ['run the command again', expect.stringMatching(/^rm \S+\/remote\.git\/\S+\/@main\.lock {3}\(there, if/)],
  ])
  fs.unlinkSync(lock)
  here.ckpt('push', remote)
})

test('a store has one name on a remote, whoever gives it at the same time', async () => {
  const here = twoTurns()
  const remote = bareRemote(here)
  const context = await openContext(envOf(here), here.root, { create: true })
  try {
    const names = await Promise.all([1, 2, 3].map(() => renewOrigin(context, null)))
    expect(new Set(names).size).toBe(1)
    // Another one, where a copy goes by it.
    const others = await Promise.all([1, 2, 3].map(() => renewOrigin(context, names[0]!)))
    expect(new Set([...names, ...others]).size).toBe(2)
  } finally {
    closeContext(context)
  }
  const fresh = twoTurns()
  const pushed = await Promise.all([1, 2, 3].map(() => runLater(fresh, ['push', remote, '--yes'])))
  expect(pushed.map(({ code }) => code)).toContain(0)
  expect(inRemote(fresh, remote, 'for-each-ref', '--format=%(refname)').split('\n')).toHaveLength(1)
})

test('a remote whose directory is gone is named as what it is', () => {
  const here = twoTurns()
  here.git('remote', 'add', 'o', '../gone')
  for (const command of ['push', 'pull']) {
    const { code, document } = here.tryCkpt(command, 'o')
    expect([code, document.error.message]).toEqual([
      3,
      expect.stringMatching(/^Remote "o" is \S*gone, and there is nothing\./),
    ])
  }
})

test('what was forgotten here comes back from who still has it, and that is said', () => {
  const here = twoTurns()
  here.turn('secret', () => here.write({ '.env': 'PASSWORD=1\n' }))
  const bundle = path.join(here.base, 'x.bundle')
  here.ckpt('export', bundle, '--yes')
  const there = cloneOf(here)
  there.ckpt('import', bundle)
  there.turn('more', () => there.write({ 'more.txt': 'more\n' }))
  fs.rmSync(bundle)
  there.ckpt('export', bundle, '--yes')
  here.remove('.env')
  here.ckpt('forget', '.env')
  const { warnings } = here.ckpt('import', bundle)
  expect(warnings).toEqual([
    expect.stringMatching(/^\d+ checkpoints that came hold what was forgotten here: ckpt forget PATH/),
  ])
})

test('what was forgotten here of a session with something undone comes back, too, and no pull fails', () => {
  const here = twoTurns()
  const remote = bareRemote(here)
  const there = cloneOf(here)
  here.ckpt('undo')
  there.turn('of its own', () => there.write({ 'c.txt': 'c\n' }), 'other')
  here.ckpt('push', remote)
  there.ckpt('pull', remote)
  there.ckpt('forget', 'dir/new.txt')
  here.turn('going on', () => here.write({ 'a.txt': 'three\n' }))
  here.ckpt('push', remote)
  expect(there.ckpt('pull', remote).warnings.join()).toContain('hold what was forgotten here')
  const came = there.ckpt('list', '--all-worktrees').turns.map(({ session, n }: Json) => [session, n])
  expect(came).toEqual(
    expect.arrayContaining([
      ['other', 1],
      ['s', 1],
      ['s', 3],
    ]),
  )
  expect(there.ckpt('verify').problems).toEqual([])
})

test('a remote that refuses is told apart from one that cannot be reached, with its own words', () => {
  const here = twoTurns()
  const remote = bareRemote(here)
  inRemote(here, remote, 'config', 'transfer.hideRefs', 'refs/ckpt')
  const hidden = here.tryCkpt('push', remote)
  expect([hidden.code, hidden.document.error.message]).toEqual([
    1,
    'The remote refused it: deny updating a hidden ref. Nothing was changed here.',
  ])
  inRemote(here, remote, 'config', '--unset', 'transfer.hideRefs')
  fs.writeFileSync(`${remote}/hooks/pre-receive`, '#!/bin/sh\necho "only branches and tags" >&2\nexit 1\n', {
    mode: 0o755,
  })
  // An ssh that goes nowhere else: a remote on this machine is written without its hooks.
  const bin = path.join(here.base, 'bin')
  fs.mkdirSync(bin)
  fs.writeFileSync(`${bin}/ssh`, '#!/bin/sh\nfor last; do :; done\nexec sh -c "$last"\n', { mode: 0o755 })
  const vars = { PATH: `${bin}:${here.vars.PATH}` }
  const { code, stdout } = here.run(['push', `ssh://host${remote}`, '--json'], { vars })
  expect([code, JSON.parse(stdout).error.message]).toEqual([
    1,
    'The remote refused it: pre-receive hook declined; only branches and tags. Nothing was changed here.',
  ])
})

test("a ref on a remote that is nothing of ckpt's is left out and named, by pull, and for its own place by push", () => {
  const [here, other] = [twoTurns(), twoTurns()]
  const remote = bareRemote(here)
  other.ckpt('push', remote)
  const ref = inRemote(here, remote, 'for-each-ref', '--format=%(refname)').trim()
  here.ckpt('push', remote)
  inRemote(here, remote, 'fetch', '-q', here.root, 'HEAD:refs/heads/main')
  inRemote(here, remote, 'update-ref', ref, 'refs/heads/main')
  const there = cloneOf(here)
  const { worktrees, warnings } = there.ckpt('pull', remote)
  expect(worktrees).toEqual([expect.objectContaining({ worktree: '@main', checkpoints: 4 })])
  expect(warnings).toEqual([
    `Left out: ${ref} of ${remote} cannot be read. What came is not what ckpt exports: it has no manifest. git push ${remote} :${ref}   (takes it out there, where nobody needs it)`,
  ])
  expect(there.ckpt('verify').problems).toEqual([])
  expect(there.ckpt('pull', remote)).toMatchObject({ worktrees: [], warnings })
  // Whose place it is.
  const { code, document } = other.tryCkpt('push', remote)
  expect([code, document.error.code]).toEqual([7, 'DAMAGED'])
  expect(document.error.message).toMatch(new RegExp(`^${ref} of \\S+ cannot be read\\. .* Nothing was changed\\.$`))
  const own = other.ckpt('pull', remote)
  expect(own.worktrees).toEqual([expect.objectContaining({ checkpoints: 4 })])
  expect(own.warnings).toEqual(warnings)
  execFileSync('sh', ['-c', document.error.hints[0]!.replace(/ {3}.*/, '')], {
    cwd: other.root,
    env: other.vars,
    stdio: 'pipe',
  })
  expect(other.ckpt('push', remote).sent).toBe(true)
  expect(there.ckpt('pull', remote).warnings).toEqual([])
  // Where nothing else is.
  inRemote(here, remote, 'for-each-ref', '--format=%(refname)')
    .trim()
    .split('\n')
    .filter((one) => one.startsWith('refs/ckpt/'))
    .forEach((one) => {
      inRemote(here, remote, 'update-ref', one, 'refs/heads/main')
    })
  expect(cloneOf(here).tryCkpt('pull', remote)).toMatchObject({ code: 7, document: { error: { code: 'DAMAGED' } } })
})

/** An ssh of its own kind. */
function withSsh(scratch: Scratch, script: string): Record<string, string> {
  const program = path.join(scratch.base, 'own-ssh')
  fs.writeFileSync(program, `#!/bin/sh\n${script}\n`, { mode: 0o755 })
  return { GIT_SSH_COMMAND: program, GIT_SSH_VARIANT: 'ssh' }
}

test('what ssh says is passed on with the line that says why, and the hint leads to the same account', () => {
  const here = twoTurns()
  const frame = '@'.repeat(60)
  const vars = withSsh(
    here,
    `printf '%s\\r\\n' '${frame}' '@    WARNING: IT HAS CHANGED!     @' '${frame}' 'IT IS POSSIBLE.' 'Somebody could listen.' 'Host key verification failed.' >&2; exit 255`,
  )
  const pull = (url: string) => JSON.parse(here.run(['pull', url, '--json'], { vars }).stdout).error
  const { message, hints } = pull('ssh://git@host/x.git')
  expect(message).toMatch(
    /^git could not speak to the remote: @ +WARNING: IT HAS CHANGED! +@ .*Host key verification failed\. fatal: Could not read from remote repository\. Nothing was changed here\.$/,
  )
  expect(message).not.toMatch(/[\r\n]|@@/)
  expect(hints).toEqual(['git ls-remote ssh://git@host/x.git'])
  expect(pull('ssh://git:word@host/x.git').hints).toEqual(['git ls-remote ssh://git@host/x.git'])
  for (const user of ['token', 'someone:word', 'someone:w@rd']) {
    const said = JSON.stringify(pull(`http://${user}@127.0.0.1:1/x.git`))
    expect(said).toContain('git ls-remote http://127.0.0.1:1/x.git')
    expect(said).not.toMatch(/token|someone|word|rd@/)
  }
})

test.each(['push', 'pull'])(
  'a signal to a %s alone ends what speaks to the other machine, and leaves nothing',
  async (command) => {
    const here = twoTurns()
    const seen = path.join(here.base, 'seen')
    const vars = withSsh(here, `echo $$ >'${seen}.new'; mv '${seen}.new' '${seen}'; exec sleep 60`)
    const child = spawn(
      process.execPath,
      [PROGRAM, command, 'ssh://host/x.git', ...(command === 'push' ? ['--yes'] : [])],
      {
        cwd: here.root,
        env: { ...here.vars, ...vars },
        stdio: 'ignore',
      },
    )
    const ended = new Promise((resolve) => child.on('close', (_, signal) => resolve(signal)))
    await expect.poll(() => fs.existsSync(seen)).toBe(true)
    const ssh = Number(fs.readFileSync(seen, 'utf8'))
    child.kill('SIGTERM')
    expect(await ended).toBe('SIGTERM')
    await expect.poll(() => alive(ssh)).toBe(false)
    expect(fs.readdirSync(here.at('.git/ckpt')).filter((name) => name.startsWith('parcel-'))).toEqual([])
  },
)

test('a push goes where the user pushes to, and a rule of theirs leads nobody into the repository itself', () => {
  const here = twoTurns()
  const [fetching, pushing] = [bareRemote(here), `${here.base}/pushed.git`]
  here.git('init', '-q', '--bare', pushing)
  here.git('remote', 'add', 'both', fetching)
  here.git('remote', 'set-url', '--push', 'both', pushing)
  here.ckpt('push', 'both')
  expect(inRemote(here, fetching, 'for-each-ref')).toBe('')
  expect(inRemote(here, pushing, 'for-each-ref')).toMatch(/refs\/ckpt/)
  here.git('remote', 'set-url', '--push', 'both', 'DISABLED')
  expect(here.tryCkpt('push', 'both')).toMatchObject({ code: 3, document: { error: { code: 'NOT_FOUND' } } })
  here.git('remote', 'set-url', '--push', 'both', here.root)
  expect(here.tryCkpt('push', 'both')).toMatchObject({ code: 2, document: { error: { code: 'USAGE' } } })
  const rule = `[url "${path.dirname(here.root)}/"]\n\tinsteadOf = own:\n`
  fs.writeFileSync(path.join(here.home, '.gitconfig'), rule)
  const before = here.gitState()
  for (const command of ['push', 'pull'])
    expect(here.tryCkpt(command, `own:${path.basename(here.root)}`)).toMatchObject({
      code: 2,
      document: { error: { code: 'USAGE' } },
    })
  expect(here.gitState()).toEqual(before)
})

/** The first look at what came meets an object that is damaged here. */
function oneDamage({ spawn: own }: ReturnType<typeof envOf>) {
  let looks = 0
  const damaged = ['-c', 'echo "fatal: bad tree object 0123" >&2; exit 128']
  const spawned = ((command, args, options) =>
    args.includes('rev-list') && args.includes('--objects') && looks++ === 0
      ? own('sh', damaged, options)
      : own(command, args, options)) as typeof own
  return { spawned, looks: () => looks }
}

test('what cannot be read with what is here, and can be without it, is damage here: nothing there is to go for it', async () => {
  const here = twoTurns()
  const remote = bareRemote(here)
  here.ckpt('push', remote)
  const there = cloneOf(here)
  const env = envOf(there)
  const { spawned, looks } = oneDamage(env)
  const { code, document } = await answer({ ...env, spawn: spawned }, 'pull', remote)
  expect([code, document.error.code, looks()]).toEqual([7, 'DAMAGED', 2])
  expect(document.error.message).not.toContain('refs/ckpt/')
  expect(document.error.hints.join()).not.toContain('git push')
  expect(there.ckpt('pull', remote).worktrees).toEqual([expect.objectContaining({ checkpoints: 4 })])
})

test('damage here is not passed over where a remote has what goes by the own name', async () => {
  const here = twoTurns()
  const remote = bareRemote(here)
  here.ckpt('push', remote)
  fs.rmSync(here.at('.git/ckpt/sent'))
  const env = envOf(here)
  for (const command of ['pull', 'push']) {
    const { spawned, looks } = oneDamage(env)
    const { code, document } = await answer({ ...env, spawn: spawned }, command, remote)
    expect([command, code, document.error?.code, looks()]).toEqual([command, 7, 'DAMAGED', 2])
    expect(document.error.message).not.toContain('refs/ckpt/')
  }
  expect(here.ckpt('pull', remote).warnings).toEqual([])
})
