/** Environments: every kind of worktree, each with its own timeline. */
import { execFileSync } from 'node:child_process'
import fs from 'node:fs'
import path from 'node:path'
import { expect, onTestFinished, test } from 'vitest'
import { homeIn } from '../../src/env.ts'
import { startDaemon } from '../support/daemon.ts'
import { tryGit } from '../support/gate.ts'
import { answer, envOf } from '../support/in-process.ts'
import { isRoot, type Json, type RunOptions, Scratch } from '../support/scratch.ts'

/** The program in another directory of the same scratch place. */
function at(scratch: Scratch, cwd: string, options: RunOptions = {}) {
  const json = (...args: string[]): Json => {
    const { code, stdout, stderr } = scratch.run([...args, '--json'], { ...options, cwd })
    if (code !== 0) throw new Error(`ckpt ${args.join(' ')} exited ${code}: ${stdout}${stderr}`)
    return JSON.parse(stdout)
  }
  const write = (name: string, text: string) => {
    fs.mkdirSync(path.dirname(path.join(cwd, name)), { recursive: true })
    fs.writeFileSync(path.join(cwd, name), text)
  }
  const turn = (work: () => void) => {
    json('mark', 'prompt', '--session', 's')
    work()
    return json('mark', 'stop', '--session', 's')
  }
  return { json, write, turn, read: (name: string) => fs.readFileSync(path.join(cwd, name), 'utf8') }
}

/** A turn, its undo and its redo, compared with the disk. */
function roundTrip(scratch: Scratch, cwd: string, work: () => void): void {
  const here = at(scratch, cwd)
  const before = scratch.manifest(cwd)
  here.turn(work)
  const after = scratch.manifest(cwd)
  expect(after).not.toEqual(before)
  here.json('undo')
  expect(scratch.manifest(cwd)).toEqual(before)
  here.json('redo')
  expect(scratch.manifest(cwd)).toEqual(after)
  expect(here.json('verify').problems).toEqual([])
}

test('environments: linked worktrees have timelines of their own, also one named main and one made again', () => {
  const scratch = new Scratch().init()
  const linked = `${scratch.base}/elsewhere/main`
  scratch.git('worktree', 'add', '-q', '-b', 'side', linked)
  const there = at(scratch, linked)
  scratch.turn('here', () => scratch.write({ 'a.txt': 'here\n' }))
  there.turn(() => there.write('a.txt', 'there\n'))
  const ids = [scratch.ckpt('status').worktree, there.json('status').worktree]
  expect(ids[0]).toBe('@main')
  expect(ids[1]).toMatch(/^main-[0-9a-f]+$/)
  there.json('undo')
  expect([scratch.read('a.txt'), there.read('a.txt')]).toEqual(['here\n', 'one\n'])
  expect(scratch.ckpt('list').turns[0].hidden).toBe(false)
  scratch.ckpt('undo')
  expect(scratch.read('a.txt')).toBe('one\n')

  scratch.git('worktree', 'remove', '--force', linked)
  scratch.git('worktree', 'add', '-q', linked, 'side')
  expect(there.json('list').turns).toEqual([])
  there.turn(() => there.write('a.txt', 'again\n'))
  expect(there.json('status').worktree).not.toBe(ids[1])
  there.json('undo')
  expect(there.read('a.txt')).toBe('one\n')
  expect(scratch.ckpt('verify').problems).toEqual([])
})

test('environments: a linked worktree of a bare repository', () => {
  const scratch = new Scratch().init()
  const bare = `${scratch.base}/bare.git`
  scratch.git('clone', '-q', '--bare', scratch.root, bare)
  scratch.git('--git-dir', bare, 'worktree', 'add', '-q', `${scratch.base}/tree`, 'main')
  const there = at(scratch, `${scratch.base}/tree`)
  roundTrip(scratch, `${scratch.base}/tree`, () => there.write('a.txt', 'two\n'))
  expect(fs.existsSync(`${bare}/ckpt/store.git`)).toBe(true)
  expect(there.json('status').gitDir).toBe(`${bare}/worktrees/tree`)
})

test.each([false, true])(
  'environments: entries that a turn makes and removes in a nested repository are told of (daemon %s)',
  (watched) => {
    const scratch = new Scratch().init({ 'a.txt': 'a\n' })
    scratch.git('init', '-q', 'nested')
    scratch.write({ 'nested/theirs.txt': 'theirs\n' })
    if (watched) {
      scratch.ckpt('daemon', 'start')
      onTestFinished(() => void scratch.run(['daemon', 'stop']))
    }
    for (const session of ['first', 'second']) {
      scratch.ckpt('mark', 'prompt', '--session', session)
      scratch.write({ [`${session}.txt`]: '' })
      if (session === 'second') fs.rmSync(scratch.at('nested/theirs.txt'))
      scratch.ckpt('mark', 'stop', '--session', session)
    }
    const uncovered = (session: string) => scratch.ckpt('show', '1', '--session', session).uncovered
    expect([uncovered('first'), uncovered('second')]).toEqual([[], [{ path: 'nested/', reason: 'nested-repo' }]])
  },
)

test('environments: a submodule is a place of its own, and to its parent a nested repository', () => {
  const scratch = new Scratch().init()
  const library = new Scratch('library').init({ 'lib.c': 'int x;\n' })
  scratch.git('-c', 'protocol.file.allow=always', 'submodule', 'add', '-q', library.root, 'lib')
  scratch.git('commit', '-qm', 'with a submodule')
  const inside = at(scratch, scratch.at('lib'))
  const stop = scratch.ckpt('mark', 'prompt', '--session', 's')
  expect(stop.checkpoint.uncovered).toEqual([{ path: 'lib/', reason: 'nested-repo' }])
  inside.write('lib.c', 'int y;\n')
  scratch.write({ 'a.txt': 'two\n' })
  scratch.ckpt('mark', 'stop', '--session', 's')
  expect(scratch.ckpt('undo').files).toEqual([{ path: 'a.txt', action: 'write' }])
  expect(inside.read('lib.c')).toBe('int y;\n')
  roundTrip(scratch, scratch.at('lib'), () => inside.write('lib.c', 'int z;\n'))
  expect(fs.existsSync(scratch.at('.git/modules/lib/ckpt/store.git'))).toBe(true)
})

test('environments: an unborn HEAD, through the first commit', () => {
  const scratch = new Scratch()
  scratch.git('init', '-q', '-b', 'main')
  roundTrip(scratch, scratch.root, () => scratch.write({ 'a.txt': 'one\n', 'dir/b.txt': 'b\n' }))
  scratch.turn('commit', () => {
    scratch.write({ 'a.txt': 'two\n' })
    scratch.git('add', '-A')
    scratch.git('commit', '-qm', 'first')
  })
  const head = scratch.git('rev-parse', 'HEAD')
  const { warnings } = scratch.ckpt('undo')
  expect(warnings.join()).toMatch(/first commit was made.*leaves commits alone/)
  expect(scratch.read('a.txt')).toBe('one\n')
  expect(scratch.git('rev-parse', 'HEAD')).toBe(head)
})

test('environments: an empty directory and an empty repository', () => {
  const scratch = new Scratch()
  scratch.git('init', '-q')
  const { checkpoint } = scratch.ckpt('snapshot')
  expect([checkpoint.degraded, checkpoint.uncovered]).toEqual([false, []])
  roundTrip(scratch, scratch.root, () => fs.mkdirSync(scratch.at('empty')))
})

test('environments: a plain directory that becomes a SHA-256 repository keeps its store, and takes no object from it', () => {
  const scratch = new Scratch()
  scratch.write({ 'a.txt': 'one\n' })
  scratch.ckpt('init')
  scratch.git('init', '-q', '-b', 'main', '--object-format=sha256')
  scratch.git('add', '-A')
  scratch.git('commit', '-qm', 'first')
  scratch.git('gc', '-q')
  roundTrip(scratch, scratch.root, () => scratch.write({ 'a.txt': 'two\n', 'new.txt': 'new\n' }))
  expect(scratch.ckpt('verify').problems).toEqual([])
  expect(scratch.run(['prune']).code).toBe(0)
  expect(scratch.run(['doctor']).code).toBe(0)
  expect(scratch.run(['export', `${scratch.base}/bundle`]).code).toBe(0)
})

test('environments: commit in a SHA-256 repository that once was a plain directory', () => {
  const scratch = new Scratch()
  scratch.write({ 'a.txt': 'one\n2\n3\n4\nfive\n', 'kept.txt': 'kept\n' })
  scratch.ckpt('init')
  scratch.git('init', '-q', '-b', 'main', '--object-format=sha256')
  for (const [key, value] of Object.entries({ 'user.name': 'A', 'user.email': 'a@example.com' }))
    scratch.git('config', key, value)
  scratch.git('add', '-A')
  scratch.git('commit', '-qm', 'first')
  scratch.turn('work', () => {
    scratch.write({ 'a.txt': 'ONE\n2\n3\n4\nfive\n', 'new.txt': 'new\n' })
    fs.symlinkSync('a.txt', scratch.at('link'))
  })
  scratch.write({ 'a.txt': 'ONE\n2\n3\n4\nFIVE\n' }) // the person's own, in the same file
  scratch.git('add', 'a.txt')
  const { files } = scratch.ckpt('commit', '-m', 'work')
  expect(files.map((file: Json) => file.path)).toEqual(['a.txt', 'link', 'new.txt'])
  expect(scratch.git('show', 'HEAD:a.txt')).toBe('ONE\n2\n3\n4\nfive\n')
  expect([scratch.git('show', 'HEAD:new.txt'), scratch.git('show', 'HEAD:link')]).toEqual(['new\n', 'a.txt'])
  expect(scratch.git('status', '--porcelain')).toBe('M  a.txt\n')
  scratch.turn('more', () => scratch.write({ 'a.txt': 'ONE\n2\n3\n4\nFIVE\n6\n' }))
  expect(scratch.run(['commit', '-m', 'more', '--json']).code).toBe(4) // it builds on what is not committed
  scratch.git('commit', '-qm', 'mine')
  scratch.ckpt('commit', '-m', 'more')
  expect(scratch.git('show', 'HEAD:a.txt')).toBe('ONE\n2\n3\n4\nFIVE\n6\n')
})

test('environments: a SHA-256 repository', () => {
  const scratch = new Scratch()
  scratch.git('init', '-q', '--object-format=sha256')
  scratch.write({ 'a.txt': 'one\n', 'dir/b.txt': 'b\n' })
  scratch.git('add', '-A')
  scratch.git('commit', '-qm', 'first')
  const { checkpoint } = scratch.ckpt('snapshot')
  expect(checkpoint.id).toMatch(/^[0-9a-f]{64}$/)
  roundTrip(scratch, scratch.root, () => {
    scratch.write({ 'a.txt': 'two\n', 'new.txt': 'new\n' })
    scratch.remove('dir')
  })
})

test('environments: a sparse checkout: what is not here is neither made nor deleted nor called removed', () => {
  const scratch = new Scratch().init({
    'in/a.txt': 'one\n',
    'out/b.txt': 'one\n',
    'out/deep/c.txt': 'one\n',
    'top.txt': 't\n',
  })
  scratch.git('sparse-checkout', 'init', '--cone')
  scratch.git('sparse-checkout', 'set', 'in')
  expect(scratch.exists('out')).toBe(false)
  const state = scratch.gitState()
  const { checkpoint } = scratch.ckpt('snapshot')
  expect(checkpoint.uncovered).toContainEqual({ path: 'out/', reason: 'not-here' })
  roundTrip(scratch, scratch.root, () => scratch.write({ 'in/a.txt': 'two\n', 'top.txt': 'two\n' }))
  expect(scratch.exists('out')).toBe(false)
  expect(scratch.gitState()).toEqual(state)
  // Widened after the turn: the files that came are git's, not the turn's.
  scratch.ckpt('mark', 'prompt', '--session', 's')
  scratch.git('checkout', '-q', '--', '.')
  scratch.git('sparse-checkout', 'disable')
  scratch.ckpt('mark', 'stop', '--session', 's')
  scratch.run(['undo', '--skip-conflicts'])
  expect(scratch.read('out/b.txt')).toBe('one\n')
})

test.each([false, true])(
  'environments: a sparse checkout: of a directory that was not here, and is by now, it is said what it has (watched: %s)',
  (watched) => {
    const scratch = new Scratch().init({
      'in/a.txt': '1\n',
      'out/b.txt': '1\n',
      'out/deep/c.txt': '1\n',
      'out/e.log': '1\n',
    })
    scratch.write({ '.gitignore': '*.log\n' })
    scratch.git('sparse-checkout', 'set', '--cone', 'in')
    if (watched) startDaemon(scratch)
    scratch.turn('one', () => scratch.write({ 'in/a.txt': '2\n', 'out/new.txt': 'new\n', 'out/e.log': '2\n' }))
    const first = scratch.ckpt('show', '1')
    expect(first.turn.stat).toEqual({ files: 1, insertions: 1, deletions: 1 })
    expect(first.files.map(({ path }: Json) => path)).toEqual(['in/a.txt'])
    expect(scratch.ckpt('show', '1:after').checkpoint.uncovered).toEqual([
      { path: 'out/b.txt', reason: 'not-here' },
      { path: 'out/deep/', reason: 'not-here' },
    ])
    const before = scratch.manifest()
    scratch.turn('two', () => {
      scratch.write({ 'out/another.txt': 'another\n', 'out/e.log': '3\n' })
      scratch.remove('out/new.txt')
    })
    const after = scratch.manifest()
    scratch.ckpt('undo')
    expect(scratch.manifest()).toEqual(before)
    scratch.ckpt('redo')
    expect(scratch.manifest()).toEqual(after)
  },
)

test('environments: a plain directory after init, and its store when it becomes a repository', () => {
  const scratch = new Scratch()
  scratch.write({ 'a.txt': 'one\n', 'sub/b.txt': 'b\n' })
  const made = scratch.ckpt('init')
  expect([made.created, made.store.path.startsWith(`${scratch.home}/state/ckpt/work-`)]).toEqual([true, true])
  expect(scratch.ckpt('init').created).toBe(false)
  roundTrip(scratch, scratch.root, () => scratch.write({ 'a.txt': 'two\n', 'sub/b.txt': 'two\n' }))
  expect(scratch.exists('.git')).toBe(false)
  expect(at(scratch, scratch.at('sub')).json('status').root).toBe(scratch.root)
  scratch.git('init', '-q')
  expect(scratch.ckpt('list').turns).toHaveLength(1)
  expect(scratch.ckpt('status').store.path).toBe(made.store.path)
  scratch.ckpt('undo')
  expect(scratch.read('a.txt')).toBe('one\n')
  expect(scratch.exists('.git/ckpt')).toBe(false)
})

/** A plain directory with a turn, made a repository with another one, and a linked worktree of it. */
function oncePlain() {
  const scratch = new Scratch()
  const store = scratch.ckpt('init').store.path
  scratch.turn('plain', () => scratch.write({ 'a.txt': 'one\n' }))
  scratch.init({})
  scratch.git('add', '-A')
  scratch.git('commit', '-q', '-m', 'first')
  const linked = `${scratch.base}/linked`
  scratch.git('worktree', 'add', '-q', '-b', 'side', linked)
  return { scratch, store, linked, there: at(scratch, linked) }
}

test('environments: the linked worktrees of a repository that was a plain directory share its store', () => {
  const { scratch, store, linked, there } = oncePlain()
  scratch.ckpt('hooks', 'install')
  roundTrip(scratch, linked, () => there.write('a.txt', 'there\n'))
  expect(there.json('status').store.path).toBe(store)
  expect(scratch.ckpt('status').store.path).toBe(store)
  expect([scratch.ckpt('list').turns.length, there.json('list').turns.length]).toEqual([1, 1])
  there.json('undo')
  expect(tryGit(scratch, ['commit', '--allow-empty', '-m', 'x'], { cwd: linked }).code).toBe(1)
  expect(tryGit(scratch, ['commit', '--allow-empty', '-m', 'x']).code).toBe(0)
  scratch.ckpt('undo')
  expect(tryGit(scratch, ['commit', '--allow-empty', '-m', 'x']).code).toBe(1)
  expect(scratch.exists('a.txt')).toBe(false)
  expect(scratch.exists('.git/ckpt/store.git')).toBe(false)
})

test('environments: a linked worktree with a store of its own keeps it, and hides no other', () => {
  const { scratch, store, linked, there } = oncePlain()
  fs.renameSync(store, `${store}.away`)
  there.turn(() => there.write('a.txt', 'there\n'))
  fs.renameSync(`${store}.away`, store)
  expect(scratch.exists('.git/ckpt/store.git')).toBe(true)
  expect([scratch.ckpt('list').turns.length, there.json('list').turns.length]).toEqual([1, 1])
  expect(scratch.ckpt('status').warnings).toEqual([])
  const other = `${scratch.base}/other`
  scratch.git('worktree', 'add', '-q', '-b', 'more', other)
  at(scratch, other).turn(() => at(scratch, other).write('a.txt', 'other\n'))
  expect(at(scratch, other).json('status').store.path).toBe(store)
  // The gate of all of them, wherever it was installed.
  expect(scratch.run(['hooks', 'install'], { cwd: linked }).code).toBe(0)
  for (const cwd of [scratch.root, linked]) {
    at(scratch, cwd).json('undo')
    expect(tryGit(scratch, ['commit', '--allow-empty', '-m', 'x'], { cwd }).code).toBe(1)
  }
  // What was recorded there for both, while the other was not seen, goes on.
  fs.renameSync(store, `${store}.away`)
  scratch.turn('hidden', () => scratch.write({ 'a.txt': 'two\n' }))
  fs.renameSync(`${store}.away`, store)
  expect(scratch.ckpt('status').store.path).toBe(scratch.at('.git/ckpt'))
})

test('environments: a root path with spaces, quotes, dollar signs and letters that are not ASCII', () => {
  for (const name of [`my "work" $HOME 'x' `, ' -rf überstück 日本 é', 'a:b;c&d\\e*?[x]']) {
    const scratch = new Scratch(name).init({ 'a.txt': 'one\n', 'sub dir/ä.txt': 'one\n' })
    roundTrip(scratch, scratch.root, () =>
      scratch.write({ 'a.txt': 'two\n', 'sub dir/ä.txt': 'two\n', 'ñ.txt': 'new\n' }),
    )
    expect(scratch.ckpt('status').root).toBe(scratch.root)
    const plain = `${scratch.base}/plain ${name}`
    fs.mkdirSync(plain)
    at(scratch, plain).json('init')
    roundTrip(scratch, plain, () => at(scratch, plain).write('x.txt', 'x\n'))
  }
})

test('environments: a root path with a line feed is served or refused, never mistaken for another place', () => {
  const scratch = new Scratch('line\nfeed').init()
  const { code, document } = scratch.tryCkpt('snapshot')
  if (code === 0) expect(scratch.ckpt('status').root).toBe(scratch.root)
  else expect([code, document.error.code]).toEqual([9, 'BAD_ROOT'])
})

test('environments: a branch is the same one when a tag of its name comes, and where HEAD is a symlink', () => {
  const scratch = new Scratch().init()
  scratch.turn('work', () => scratch.write({ 'b.txt': 'agent\n' }))
  scratch.git('tag', 'main')
  expect(scratch.ckpt('status').git.branch).toBe('main')
  scratch.ckpt('undo')
  fs.unlinkSync(scratch.at('.git/HEAD'))
  fs.symlinkSync('refs/heads/main', scratch.at('.git/HEAD'))
  expect(scratch.ckpt('status').git.branch).toBe('main')
  scratch.ckpt('redo')
  expect(scratch.read('b.txt')).toBe('agent\n')
})

test('a branch that is gone, or that another worktree has, is not one to switch to', () => {
  const scratch = new Scratch().init()
  scratch.git('checkout', '-q', '-b', 'a/topic')
  scratch.turn('work', () => scratch.write({ 'b.txt': 'agent\n' }))
  const refused = () => scratch.tryCkpt('undo').document.error
  scratch.git('checkout', '-q', 'main')
  const linked = path.join(scratch.base, 'linked')
  scratch.git('worktree', 'add', '-q', linked, 'a/topic')
  expect(refused()).toMatchObject({
    message: `Turn 1 was made on branch a/topic, which the worktree ${linked} has, but main is checked out. Nothing was changed.`,
    hints: ['ckpt undo --force'],
  })
  scratch.git('worktree', 'remove', linked)
  scratch.git('branch', '-q', '-m', 'a/topic', 'a/topic/renamed')
  expect(refused()).toMatchObject({
    message: 'Turn 1 was made on branch a/topic, which is there no more, but main is checked out. Nothing was changed.',
    hints: ['ckpt undo --force'],
  })
  scratch.ckpt('undo', '--force')
  expect(scratch.exists('b.txt')).toBe(false)
})

test('who leaves a branch that has no commit makes none by that', () => {
  const scratch = new Scratch().init()
  scratch.git('checkout', '-q', '--orphan', 'new')
  scratch.turn('work', () => {
    scratch.write({ 'b.txt': 'agent\n' })
    scratch.git('checkout', '-q', '-f', 'main')
  })
  const head = scratch.git('rev-parse', '--short=7', 'HEAD').trim()
  expect(scratch.ckpt('undo').warnings).toContain(
    `HEAD moved during these turns (no commit → ${head}). Undo leaves commits alone.`,
  )
})

test('environments: a detached HEAD, another branch, and a merge in progress', () => {
  const scratch = new Scratch().init()
  scratch.git('branch', 'other')
  scratch.turn('work', () => scratch.write({ 'b.txt': 'agent\n' }))
  scratch.git('checkout', '-q', 'other')
  const refused = scratch.tryCkpt('undo')
  expect([refused.code, refused.document.error.code]).toEqual([4, 'CONFLICT'])
  expect(refused.document.error.message).toMatch(/made on branch main, but other is checked out/)
  expect(refused.document.error.hints).toContain('git switch main')
  scratch.git('checkout', '-q', '--detach')
  scratch.ckpt('undo')
  expect(scratch.exists('b.txt')).toBe(false)
  scratch.ckpt('redo')
  scratch.git('checkout', '-q', 'main')
  scratch.write({ 'a.txt': 'main\n' })
  scratch.git('commit', '-qam', 'main')
  scratch.git('checkout', '-q', 'other')
  scratch.write({ 'a.txt': 'other\n' })
  scratch.git('commit', '-qam', 'other')
  expect(() => scratch.git('merge', '-q', 'main')).toThrow()
  for (const command of [['undo', '--force'], ['redo'], ['restore', '1:before']]) {
    const { code, document } = scratch.tryCkpt(...command)
    expect([command, code, document.error.code]).toEqual([command, 8, 'GIT_BUSY'])
  }
  scratch.ckpt('mark', 'prompt', '--session', 's')
  scratch.ckpt('mark', 'stop', '--session', 's')
})

test('environments: amid a rebase that stopped at a pick, and between two picks of a series, git is at work, and how to end it is said', () => {
  const commits = (scratch: Scratch, ...names: string[]) => {
    for (const name of names) {
      scratch.write({ [`${name}.txt`]: `${name}\n`, 'a.txt': `${name}\n` })
      scratch.git('add', '-A')
      scratch.git('commit', '-qm', name)
    }
  }
  const start = () => {
    const scratch = new Scratch().init({ 'a.txt': 'one\n' })
    scratch.turn('work', () => scratch.write({ 'b.txt': 'b\n' }))
    scratch.git('checkout', '-qb', 'other')
    commits(scratch, 'x', 'y', 'z')
    scratch.git('checkout', '-q', 'main')
    commits(scratch, 'm')
    return scratch
  }
  const told = (scratch: Scratch) => {
    const { code, document } = scratch.tryCkpt('undo')
    return [scratch.ckpt('status').git.busy, code, document.error.hints]
  }
  const ends = (busy: string) => [busy, 8, [`git ${busy} --continue`, `git ${busy} --abort`]]
  const rebased = start()
  rebased.git('checkout', '-q', 'other')
  expect(() => rebased.git('rebase', '--merge', 'main')).toThrow()
  expect(() => rebased.git('rebase', '--skip')).toThrow() // and stops at the next one
  expect(told(rebased)).toEqual(ends('rebase'))
  for (const [command, commitsOf] of [
    ['cherry-pick', ['other~2', 'other~1', 'other']],
    ['revert', ['other~1', 'other~2', 'other~3']], // 'w' comes on top
  ] as const) {
    const scratch = start()
    if (command === 'revert') {
      scratch.git('checkout', '-q', 'other')
      commits(scratch, 'w')
    }
    expect(() => scratch.git(command, ...commitsOf)).toThrow()
    scratch.git('checkout', '--ours', 'a.txt')
    scratch.git('add', '-A')
    scratch.git('commit', '-qm', 'by hand')
    expect(told(scratch)).toEqual(ends(command))
    scratch.git(command, '--quit')
    expect(scratch.ckpt('status').git.busy).toBe(null)
  }
})

test('environments: shallow, partial and single-branch clones need nothing that is not here', () => {
  const scratch = new Scratch('origin').init({ 'a.txt': 'one\n', 'b/b.txt': 'b\n' })
  scratch.write({ 'a.txt': 'two\n' })
  scratch.git('commit', '-qam', 'second')
  scratch.git('config', 'uploadpack.allowFilter', 'true')
  for (const [name, ...flags] of [
    ['shallow', '--depth=1'],
    ['partial', '--filter=blob:none'],
    ['sparse', '--filter=blob:none', '--sparse'],
  ] as const) {
    const clone = `${scratch.base}/${name}`
    scratch.git('clone', '-q', ...flags, `file://${scratch.root}`, clone)
    scratch.git('-C', clone, 'remote', 'set-url', 'origin', 'file:///nonexistent')
    roundTrip(scratch, clone, () => at(scratch, clone).write('a.txt', 'three\n'))
  }
})

test.each([
  ['blob:none', 'reset', '-q', '--soft', 'HEAD~1'],
  ['tree:0', 'reset', '-q', '--soft', 'HEAD~1'],
  ['tree:0', 'update-ref', '-d', 'refs/remotes/origin/HEAD'],
])('environments: a partial clone (%s, then %s) whose HEAD is not here whole', (filter, ...command) => {
  const scratch = new Scratch('origin').init({ 'a.txt': 'one\n', 'package.json': '{"version":"1"}\n' })
  scratch.write({ 'a.txt': 'two\n', 'package.json': '{"version":"2"}\n' })
  scratch.git('commit', '-qam', 'second')
  scratch.git('config', 'uploadpack.allowFilter', 'true')
  const clone = `${scratch.base}/clone`
  const bare = command[0] === 'reset' ? [] : ['--no-checkout']
  scratch.git('clone', '-q', `--filter=${filter}`, ...bare, `file://${scratch.root}`, clone)
  scratch.git('-C', clone, ...command)
  scratch.git('-C', clone, 'remote', 'set-url', 'origin', 'file:///nonexistent')
  const here = at(scratch, clone)
  roundTrip(scratch, clone, () => here.write('a.txt', 'three\n'))
  for (const line of [['snapshot'], ['list'], ['status'], ['show', '1'], ['diff', '1'], ['doctor'], ['prune']])
    expect(here.json(...line), line.join(' ')).toMatchObject({ ok: true })
  const { stderr } = scratch.run(['diff', '--uncommitted'], { cwd: clone })
  expect(stderr).toMatch(/Nothing was changed\.\n {2}→ git diff HEAD {3}\(fetches/)
})

test('environments: a repository that git cannot use any more is named as that, by a daemon too', async () => {
  const scratch = new Scratch().init()
  await startDaemon(scratch)
  scratch.turn('one', () => scratch.write({ 'a.txt': 'two\n' }))
  const head = fs.readFileSync(scratch.at('.git/HEAD'))
  scratch.write({ '.git/HEAD': '' })
  for (const where of [[], ['--no-daemon']]) {
    const { code, document } = scratch.tryCkpt('mark', 'prompt', '--session', 's', ...where)
    expect([code, document.error]).toMatchObject([
      9,
      { code: 'BAD_ROOT', message: expect.stringMatching(/There is a \.git at/) },
    ])
  }
  fs.writeFileSync(scratch.at('.git/HEAD'), head)
  expect(scratch.ckpt('mark', 'prompt', '--session', 's')).toMatchObject({ turn: 2 })
})

test('environments: a umask of one’s own keeps the modes that files have'.replace('’', "'"), () => {
  const scratch = new Scratch().init({ 'a.txt': 'one\n', 'run.sh': 'echo\n' })
  fs.chmodSync(scratch.at('run.sh'), 0o755)
  const modes = () => ['a.txt', 'run.sh'].map((name) => (fs.lstatSync(scratch.at(name)).mode & 0o777).toString(8))
  scratch.turn('remove', () => scratch.remove('a.txt', 'run.sh'))
  const program = path.resolve(import.meta.dirname, '../../bin/ckpt.js')
  execFileSync('sh', ['-c', `umask 077; exec "${process.execPath}" "${program}" undo`], {
    cwd: scratch.root,
    env: scratch.vars,
  })
  expect(modes()).toEqual(['644', '755'])
})

test.each(['777', '377', '177'])(
  'environments: what is recorded under a umask of %s can be read, and a command keeps it',
  (mask) => {
    const scratch = new Scratch().init({ 'a.txt': 'one\n' })
    fs.writeFileSync(`${scratch.home}/umask.cjs`, `process.umask(0o${mask})\n`)
    const uid = scratch.handOver()
    const masked = { NODE_OPTIONS: `--require=${scratch.home}/umask.cjs` }
    const json = (args: string[], vars: Record<string, string>): Json => {
      const { code, stdout, stderr } = scratch.run(args, { uid, vars })
      expect([args.join(' '), code, stderr]).toEqual([args.join(' '), 0, ''])
      return JSON.parse(stdout)
    }
    json(['mark', 'prompt', '--session', 's', '--json'], masked)
    scratch.write({ 'a.txt': 'two\n' })
    expect(json(['mark', 'stop', '--session', 's', '--json'], {})).toMatchObject({ turn: 1 })
    json(['run', '--json', '--', 'sh', '-c', ': > made'], masked)
    expect(fs.lstatSync(scratch.at('made')).mode & 0o777).toBe(0o666 & ~Number.parseInt(mask, 8))
    json(['undo', '--session', 's', '--json'], masked)
    expect(scratch.read('a.txt')).toBe('one\n')
    json(['redo', '--session', 's', '--json'], {})
    expect(json(['doctor', '--json'], {}).findings.filter(({ ok }: Json) => !ok)).toEqual([])
  },
)

test('environments: paths are understood in a worktree that is reached through a link, and behind links of its own', () => {
  const scratch = new Scratch().init({ 'sub/f.txt': 'one\n', 'sub/g.txt': 'one\n' })
  fs.symlinkSync('sub', scratch.at('dir'))
  fs.symlinkSync('g.txt', scratch.at('sub/link'))
  const root = path.join(scratch.base, 'a link')
  fs.symlinkSync('work', root)
  const undone = (...paths: string[]) =>
    scratch.ckpt('undo', '--dry-run', '--cwd', root, '--', ...paths).files.map((file: Json) => file.path)
  scratch.ckpt('mark', 'prompt', '--session', 's')
  scratch.write({ 'sub/f.txt': 'two\n', 'sub/g.txt': 'two\n', 'new/h.txt': 'two\n' })
  fs.rmSync(scratch.at('sub/link'))
  fs.symlinkSync('f.txt', scratch.at('sub/link'))
  const paths = ['sub/f.txt', 'dir/g.txt', 'new/h.txt', 'sub/link', 'gone/i.txt'].map((name) => `${root}/${name}`)
  scratch.ckpt('mark', 'step', '--session', 's', '--cwd', root, ...paths.flatMap((one) => ['--path', one]))
  scratch.remove('new')
  scratch.ckpt('mark', 'stop', '--session', 's')
  expect(scratch.ckpt('show', '1').turn.steps[0].paths).toEqual(['new/h.txt', 'sub/f.txt', 'sub/g.txt', 'sub/link'])
  expect(undone(`${root}/sub/f.txt`)).toEqual(['sub/f.txt'])
  expect(undone('dir/f.txt')).toEqual(['sub/f.txt'])
  expect(undone(`${root}/sub/link`)).toEqual(['sub/link']) // the link, not what it leads to
  expect(scratch.tryCkpt('undo', '--', `${root}/dir`).code).toBe(3) // likewise, and the turn did not change it
  expect(undone(`${root}/sub`)).toEqual(['sub/f.txt', 'sub/g.txt', 'sub/link'])
  expect(undone(root)).toContain('sub/f.txt')
  expect(scratch.tryCkpt('undo', '--', `${root}/../home`).code).toBe(2)
})

test('a state directory that is relative is refused where it would count, and no store is made there', () => {
  const plain = new Scratch('plain')
  plain.write({ 'a.txt': 'one\n' })
  const init = (vars: Record<string, string>) => {
    const { code, stdout } = plain.run(['init', '--json'], { vars })
    const { error, store } = JSON.parse(stdout)
    return [code, error?.code ?? path.dirname(store.path)]
  }
  expect(init({ CKPT_STATE_DIR: 'state' })).toEqual([2, 'CONFIG'])
  expect(Object.keys(plain.manifest())).toEqual(['a.txt'])
  expect(plain.run(['hook', 'claude'], { vars: { CKPT_STATE_DIR: 'state' }, input: '{}' }).code).toBe(0)
  expect(Object.keys(plain.manifest())).toEqual(['a.txt'])
  // As every program takes it.
  expect(init({ XDG_STATE_HOME: 'state' })).toEqual([0, `${plain.home}/.local/state/ckpt`])
  const repository = new Scratch().init()
  expect(repository.run(['snapshot'], { vars: { CKPT_STATE_DIR: 'state' } }).code).toBe(0)
})

test('a HOME that is relative is none', () => {
  expect([{}, { HOME: '' }, { HOME: 'rel' }, { HOME: '/home/a' }].map(homeIn)).toEqual([null, null, null, '/home/a'])
})

test.skipIf(!isRoot)('what may not be written beside all stores is no store: it is shown whose it is', () => {
  const scratch = new Scratch().init()
  const uid = scratch.handOver()
  fs.chmodSync(scratch.home, 0o555)
  const { code, stdout } = scratch.run(['agent', 'install', 'claude', '--yes', '--json'], { uid })
  const { message, hints } = JSON.parse(stdout).error
  expect([code, message]).toEqual([1, expect.stringContaining('Not permitted: EACCES')])
  expect(hints).toEqual([`namei -l ${scratch.home}/state   (whose it is)`])
})

test('environments: where GIT_CONFIG_GLOBAL names it, the user’s configuration counts as it does for git', () => {
  const scratch = new Scratch().init()
  const vars = { GIT_CONFIG_GLOBAL: `${scratch.base}/own.config` }
  const ckpt = (...args: string[]) => JSON.parse(scratch.run(['--json', ...args], { vars }).stdout)
  fs.writeFileSync(vars.GIT_CONFIG_GLOBAL, `[core]\n\texcludesFile = ${scratch.base}/ignore\n`)
  fs.writeFileSync(`${scratch.base}/ignore`, '.env\n')
  ckpt('run', '--', 'sh', '-c', 'echo secret >.env; echo two >a.txt')
  expect(ckpt('show', '1').files.map((one: Json) => one.path)).toEqual(['a.txt'])
  ckpt('undo')
  expect(scratch.read('.env')).toBe('secret\n')
  if (!isRoot) return
  scratch.handOver()
  expect(ckpt('status').error.code).toBe('BAD_ROOT')
  fs.appendFileSync(vars.GIT_CONFIG_GLOBAL, `[safe]\n\tdirectory = ${scratch.root}\n`)
  expect(ckpt('status').ok).toBe(true)
})

test('environments: a TMPDIR that is not there, or relative, is done without; words of git about paths are not for ours', () => {
  const scratch = new Scratch().init()
  scratch.turn('one', () => scratch.write({ 'a.txt': 'two\n', 'b.txt': 'one\n' }))
  fs.mkdirSync(scratch.at('sub'))
  const bundle = `${scratch.base}/bundle`
  scratch.ckpt('export', bundle)
  const ckpt = (vars: Record<string, string>, ...args: string[]) =>
    JSON.parse(scratch.run([...args, '--json'], { vars, cwd: scratch.at('sub') }).stdout)
  for (const TMPDIR of ['/nowhere', '.']) {
    expect(ckpt({ TMPDIR }, 'diff', '--uncommitted').files).toMatchObject([{ status: 'modified' }])
    expect(ckpt({ TMPDIR }, 'verify', '--bundle', bundle).ok).toBe(true)
  }
  const who = {
    GIT_AUTHOR_NAME: 'A',
    GIT_AUTHOR_EMAIL: 'a@example.com',
    GIT_COMMITTER_NAME: 'A',
    GIT_COMMITTER_EMAIL: 'a@example.com',
  }
  expect(ckpt({ ...who, GIT_LITERAL_PATHSPECS: '1' }, 'commit', '-m', 'x').files).toHaveLength(2)
})

test('environments: in a repository of several people each has a store, and a file that comes back has the directory’s group', () => {
  if (!isRoot) return
  const scratch = new Scratch().init({ 'shared/a.txt': 'one\n' })
  scratch.ckpt('snapshot')
  fs.chownSync(scratch.at('shared'), 0, 50)
  fs.chmodSync(scratch.at('shared'), 0o2770)
  scratch.turn('away', () => scratch.remove('shared/a.txt'))
  scratch.ckpt('undo')
  expect(fs.statSync(scratch.at('shared/a.txt')).gid).toBe(50)
  const own = path.join(scratch.base, 'own')
  const uid = scratch.handOver()
  execFileSync('chown', ['-R', '0:0', scratch.at('.git/ckpt')])
  const location = { store: { location: own } }
  scratch.write({ '../home/.config/ckpt/.checkpointrc': JSON.stringify(location) })
  fs.chmodSync(scratch.base, 0o777)
  const ran = scratch.run(['snapshot', '--json'], { uid })
  expect([ran.code, fs.existsSync(own)]).toEqual([0, true])
})

test('environments: a file system that does not tell what an entry is', async () => {
  const scratch = new Scratch().init({ 'é.txt': 'one\n' })
  const env = envOf(scratch)
  // What Node does there with names of other bytes than it was told (DT_UNKNOWN, readdir(3)).
  const readdirSync = ((at: fs.PathLike, options?: { encoding?: string; withFileTypes?: boolean }) => {
    const found = fs.readdirSync(at, options as never) as unknown as { name: string }[]
    if (options?.withFileTypes && options.encoding === 'latin1')
      for (const { name } of found) fs.lstatSync(`${at}/${name}`)
    return found
  }) as unknown as typeof fs.readdirSync
  const odd = { ...env, files: { ...env.files, readdirSync } }
  const ckpt = (...argv: string[]) => answer(odd, ...argv)
  await ckpt('mark', 'prompt', '--session', 's')
  const before = scratch.manifest()
  scratch.write({ 'new.txt': 'new\n', 'sub/ü/b': 'b\n', 'é.txt': 'two\n' })
  fs.mkdirSync(scratch.at('empty'))
  const { document } = await ckpt('mark', 'stop', '--session', 's')
  expect([document.checkpoint.degraded, document.checkpoint.uncovered]).toEqual([false, []])
  const after = scratch.manifest()
  await ckpt('undo')
  expect(scratch.manifest()).toEqual(before)
  await ckpt('redo')
  expect(scratch.manifest()).toEqual(after)
})
