// `ckpt verify`: every damage is found, and what is whole is called so. Damage is done with files and plain git.
import { createHash } from 'node:crypto'
import fs from 'node:fs'
import path from 'node:path'
import { expect, test } from 'vitest'
import { realEnv } from '../../src/env.ts'
import { type VerifyOptions, verify } from '../../src/ops/verify/verify.ts'
import { closeContext, openContext } from '../../src/ops/worktree/context.ts'
import { Scratch } from '../support/scratch.ts'
import { inStore, ownDirectory, storeOf } from '../support/store-surgery.ts'

/** Two turns, the second with a step; one undone. */
function smallStore(): Scratch {
  const scratch = new Scratch().init({ 'a.txt': 'one\n', 'dir/b.txt': 'b\n' })
  scratch.turn('first', () => scratch.write({ 'a.txt': 'two\n', 'dir/new.txt': 'new\n' }))
  scratch.ckpt('mark', 'prompt', '--session', 's', '--text', 'second')
  scratch.write({ 'a.txt': 'three\n' })
  scratch.ckpt('mark', 'step', '--session', 's', '--tool', 'Edit', '--path', 'a.txt')
  fs.mkdirSync(scratch.at('empty'))
  scratch.ckpt('mark', 'stop', '--session', 's')
  scratch.ckpt('undo')
  return scratch
}

/** Read anew each time, as a command does; in this process, for it is asked hundreds of times. */
async function problems(scratch: Scratch, options: VerifyOptions = {}): Promise<string[]> {
  const env = { ...realEnv(), cwd: scratch.root, home: scratch.home, vars: scratch.vars }
  const context = await openContext(env, scratch.root, { reading: true })
  try {
    return (await verify(context, options)).problems
  } finally {
    closeContext(context)
  }
}

function looseFiles(scratch: Scratch): string[] {
  const objects = path.join(storeOf(scratch), 'objects')
  return fs
    .readdirSync(objects)
    .filter((name) => /^[0-9a-f]{2}$/.test(name))
    .flatMap((fan) => fs.readdirSync(path.join(objects, fan)).map((name) => path.join(objects, fan, name)))
}

const oidOf = (file: string) => `${path.basename(path.dirname(file))}${path.basename(file)}`

/** Does something to a file, looks, and puts it back. */
async function damaged(
  file: string,
  change: (bytes: Buffer) => Buffer | null,
  look: () => Promise<unknown>,
): Promise<void> {
  const bytes = fs.readFileSync(file)
  const mode = fs.statSync(file).mode
  const next = change(bytes)
  // Another inode: a hard link to the user's own object stays as it is.
  fs.unlinkSync(file)
  if (next) fs.writeFileSync(file, next)
  try {
    await look()
  } finally {
    fs.writeFileSync(file, bytes)
    fs.chmodSync(file, mode)
  }
}

const flipped =
  (at: number, mask = 0xff) =>
  (bytes: Buffer) => {
    const other = Buffer.from(bytes)
    other[at] = other[at]! ^ mask
    return other
  }

test('every single object of a small store deleted is found', async () => {
  const scratch = smallStore()
  expect(await problems(scratch)).toEqual([])
  // What only earlier versions of @meta and of the notes needed is no loss; git says which these are.
  const needed = new Set(inStore(scratch, 'rev-list', '--objects', '--no-object-names', '--all').split('\n'))
  const files = looseFiles(scratch)
  expect(needed.size).toBeGreaterThan(20)
  const missed: string[] = []
  for (const file of files.filter((one) => needed.has(oidOf(one)))) {
    await damaged(
      file,
      () => null,
      async () => (await problems(scratch)).length === 0 && missed.push(oidOf(file)),
    )
  }
  expect(missed).toEqual([])
  expect(await problems(scratch)).toEqual([])
})

test('a byte flipped in any loose object is found, and named', async () => {
  const scratch = smallStore()
  const missed: string[] = []
  for (const [i, file] of looseFiles(scratch).entries()) {
    const size = fs.statSync(file).size
    const at = [0, 1, 2, (size / 2) | 0, size - 5, size - 1][i % 6]!
    await damaged(file, flipped(at), async () => {
      if (!(await problems(scratch)).join().includes(oidOf(file))) missed.push(`${oidOf(file)} at ${at}`)
    })
  }
  expect(missed).toEqual([])
})

test('a single bit flipped anywhere in an object is found, also where no checksum looks', async () => {
  const scratch = smallStore()
  const file = looseFiles(scratch).find((one) => fs.statSync(one).size < 60)!
  const missed: string[] = []
  // The filling bits of the last byte before the checksum, and each byte in turn.
  const size = fs.statSync(file).size
  const all = [...Array(size).keys()].map((at): [number, number] => [at, 1 << (at % 8)])
  for (const [at, mask] of [...all, [size - 5, 0x80], [size - 5, 0x40]] as const) {
    await damaged(
      file,
      flipped(at, mask),
      async () => (await problems(scratch)).length === 0 && missed.push(`${at} ^ ${mask}`),
    )
  }
  expect(missed).toEqual([])
})

test('a byte flipped in a pack, its index or its reverse index is found, wherever it lies', async () => {
  const scratch = smallStore()
  scratch.ckpt('prune')
  const directory = path.join(storeOf(scratch), 'objects/pack')
  const names = fs.readdirSync(directory)
  expect(names.map((name) => path.extname(name))).toEqual(expect.arrayContaining(['.idx', '.pack']))
  expect(await problems(scratch)).toEqual([])
  const missed: string[] = []
  for (const name of names) {
    const size = fs.statSync(path.join(directory, name)).size
    for (const at of [0, 9, (size / 3) | 0, (size / 2) | 0, size - 21, size - 1]) {
      await damaged(path.join(directory, name), flipped(at), async () => {
        if ((await problems(scratch)).length === 0) missed.push(`${path.extname(name)} at ${at}`)
      })
    }
    if (name.endsWith('.rev')) continue // git makes it again
    await damaged(
      path.join(directory, name),
      () => null,
      async () => (await problems(scratch)).length === 0 && missed.push(`${name} gone`),
    )
  }
  expect(missed).toEqual([])
})

test('any ref moved back, moved elsewhere or deleted is found', async () => {
  const scratch = smallStore()
  const rows = inStore(scratch, 'for-each-ref', '--format=%(refname) %(objectname) %(objecttype)').split('\n')
  expect(rows.length).toBeGreaterThan(4)
  const missed: string[] = []
  for (const row of rows) {
    const [ref, oid, type] = row.split(' ') as [string, string, string]
    const others =
      type === 'commit' && !ref.startsWith('refs/notes/') ? inStore(scratch, 'rev-list', oid).split('\n') : []
    for (const to of [...others.slice(1), null]) {
      inStore(scratch, 'update-ref', ...(to === null ? ['-d', ref] : [ref, to]))
      if ((await problems(scratch)).length === 0) missed.push(`${ref} to ${to}`)
      inStore(scratch, 'update-ref', ref, oid)
    }
  }
  expect(missed).toEqual([])
  expect(await problems(scratch)).toEqual([])
})

test('a ref moved back stays found when the session went on from there', async () => {
  const scratch = new Scratch().init()
  scratch.turn('first', () => scratch.write({ 'a.txt': 'two\n' }))
  scratch.turn('second', () => scratch.write({ 'a.txt': 'three\n' }))
  const lost = inStore(scratch, 'rev-parse', 'refs/ckpt/@main/s/live')
  inStore(scratch, 'update-ref', 'refs/ckpt/@main/s/live', `${lost}~2`)
  scratch.turn('third', () => scratch.write({ 'a.txt': 'four\n' }))
  expect((await problems(scratch)).join()).toContain(lost.slice(0, 10))
  // Once it is on a branch again nothing is lost.
  inStore(scratch, 'update-ref', 'refs/ckpt/@main/s/abandoned/9-1700000000', lost)
  expect(await problems(scratch)).toEqual([])
})

test('a byte flipped in a ref, in shallow, in a journal or in the record of the refs is found', async () => {
  const scratch = new Scratch().init()
  for (const n of [1, 2, 3]) scratch.turn(`turn ${n}`, () => scratch.write({ 'a.txt': `${n}\n` }))
  scratch.ckpt('prune', '--keep', '2')
  scratch.ckpt('undo')
  expect(await problems(scratch)).toEqual([])
  const store = storeOf(scratch)
  const refs = fs
    .readdirSync(path.join(store, 'refs'), { recursive: true, encoding: 'utf8' })
    .map((name) => path.join(store, 'refs', name))
    .filter((name) => fs.statSync(name).isFile())
  const own = ownDirectory(scratch)
  const files = [...refs, path.join(store, 'shallow'), path.join(own, 'tips'), path.join(own, 'boundary')]
  const missed: string[] = []
  for (const file of files) {
    const size = fs.statSync(file).size
    for (const at of [0, (size / 2) | 0, size - 2])
      await damaged(
        file,
        flipped(at, 0x03),
        async () => (await problems(scratch)).length === 0 && missed.push(`${file} at ${at}`),
      )
    await damaged(
      file,
      () => null,
      async () => (await problems(scratch)).length === 0 && missed.push(`${file} gone`),
    )
  }
  const body = JSON.stringify({ version: 1, op: 'undo', session: 's', entries: [], refs: [] })
  const journal = `${createHash('sha256').update(body).digest('hex')}\n${body}\n`
  for (const at of [3, 70, 90]) {
    fs.writeFileSync(path.join(own, 'journal.json'), flipped(at)(Buffer.from(journal)))
    if ((await problems(scratch)).length === 0) missed.push(`journal at ${at}`)
  }
  fs.unlinkSync(path.join(own, 'journal.json'))
  expect(missed).toEqual([])
  expect(await problems(scratch)).toEqual([])
})

test('a journal left over is `unfinished`, in this worktree or another', async () => {
  const scratch = smallStore()
  const journalOf = (op: string, session: string) => {
    const body = JSON.stringify({ version: 1, op, session, entries: [], refs: [] })
    return `${createHash('sha256').update(body).digest('hex')}\n${body}\n`
  }
  const journal = journalOf('undo', 's')
  for (const [one, words] of [
    [journalOf('refs', 's'), 'an operation of session s'],
    [journalOf('forget', ''), 'the forget'],
    [journal, 'the undo of session s'],
  ] as const) {
    fs.writeFileSync(path.join(ownDirectory(scratch), 'journal.json'), one)
    const said = `unfinished: ${words} was cut short; the next command that writes finishes it`
    expect(await problems(scratch)).toEqual([said])
  }
  fs.unlinkSync(path.join(ownDirectory(scratch), 'journal.json'))
  fs.mkdirSync(ownDirectory(scratch, 'other-0123456789ab'))
  fs.writeFileSync(path.join(ownDirectory(scratch, 'other-0123456789ab'), 'journal.json'), journal)
  expect((await problems(scratch)).join()).toMatch(/^unfinished: .*other-0123456789ab/)
})

test('a boundary whose turn is not in the live chain, and one that the git hooks do not see, are found', async () => {
  const scratch = smallStore()
  const boundary = inStore(scratch, 'rev-parse', 'refs/ckpt/@main/s/boundary')
  fs.unlinkSync(path.join(ownDirectory(scratch), 'boundary'))
  expect((await problems(scratch)).join()).toContain('git hooks')
  scratch.ckpt('redo', '--all')
  scratch.ckpt('undo', '--turns', '2')
  scratch.ckpt('accept')
  expect(await problems(scratch)).toEqual([])
  inStore(scratch, 'update-ref', 'refs/ckpt/@main/s/boundary', boundary)
  expect((await problems(scratch)).join()).toMatch(/boundary: .*hides turn 2, which is not in its live chain/)
})

test('--no-pending: exit 5 while something is undone', async () => {
  const scratch = smallStore()
  const { code, document } = scratch.tryCkpt('verify', '--no-pending')
  expect([code, document.error.code]).toEqual([5, 'BOUNDARY_PENDING'])
  scratch.ckpt('redo')
  expect(scratch.ckpt('verify', '--no-pending').problems).toEqual([])
})

test('--worktree: every file, mode and empty directory is that of the last checkpoint', async () => {
  const scratch = smallStore()
  scratch.ckpt('redo')
  scratch.ckpt('snapshot')
  expect(await problems(scratch, { worktree: true })).toEqual([])
  const cases: [string, () => void, () => void][] = [
    ['a.txt (changed)', () => scratch.write({ 'a.txt': 'thrEe\n' }), () => scratch.write({ 'a.txt': 'three\n' })],
    ['more.txt (added)', () => scratch.write({ 'more.txt': '' }), () => scratch.remove('more.txt')],
    ['dir/b.txt (deleted)', () => scratch.remove('dir/b.txt'), () => scratch.write({ 'dir/b.txt': 'b\n' })],
    ['a.txt (mode)', () => fs.chmodSync(scratch.at('a.txt'), 0o600), () => fs.chmodSync(scratch.at('a.txt'), 0o644)],
    ['empty (deleted)', () => fs.rmdirSync(scratch.at('empty')), () => fs.mkdirSync(scratch.at('empty'))],
    ['dir (mode)', () => fs.chmodSync(scratch.at('dir'), 0o700), () => fs.chmodSync(scratch.at('dir'), 0o755)],
  ]
  for (const [said, change, back] of cases) {
    const { mtime } = fs.statSync(scratch.at('a.txt'))
    change()
    if (said.startsWith('a.txt')) fs.utimesSync(scratch.at('a.txt'), mtime, mtime) // no cache is believed
    expect((await problems(scratch, { worktree: true })).join()).toContain(said)
    back()
  }
  expect(await problems(scratch, { worktree: true })).toEqual([])
})

test('--worktree: nested empty directories, and a tracked directory that became a link, are as they were recorded', async () => {
  const scratch = new Scratch().init({ 'dir/b.txt': 'b\n' })
  fs.mkdirSync(scratch.at('one/two'), { recursive: true })
  fs.renameSync(scratch.at('dir'), scratch.at('moved'))
  fs.symlinkSync('moved', scratch.at('dir'))
  scratch.ckpt('snapshot')
  expect(await problems(scratch, { worktree: true })).toEqual([])
  fs.rmdirSync(scratch.at('one/two'))
  expect((await problems(scratch, { worktree: true })).join()).toContain('one/two (deleted)')
})

test('a pack with nothing in it, as clones that leave contents out can have one, is whole', () => {
  const scratch = new Scratch().init()
  scratch.turn('one', () => scratch.write({ 'a.txt': 'two\n' }))
  const packs = path.join(scratch.root, '.git/ckpt/store.git/objects/pack')
  scratch.git('pack-objects', '-q', `${packs}/pack`)
  const [pack] = fs.readdirSync(packs).filter((name) => name.endsWith('.pack'))
  expect(fs.statSync(`${packs}/${pack}`).size).toBe(32)
  expect(scratch.ckpt('verify').problems).toEqual([])
  fs.chmodSync(`${packs}/${pack}`, 0o600)
  fs.truncateSync(`${packs}/${pack}`, 19)
  expect(scratch.tryCkpt('verify').code).toBe(7)
})

test('from a worktree that recorded nothing itself, the whole store is looked at', () => {
  const scratch = new Scratch().init({ 'a.txt': 'a\n' })
  const there = `${scratch.base}/linked`
  scratch.git('worktree', 'add', '-q', there)
  const said = (...args: string[]) => scratch.run([...args, '--json'], { cwd: scratch.root })
  scratch.run(['mark', 'prompt', '--session', 'theirs'], { cwd: there })
  expect(JSON.parse(said('verify').stdout).checkpoints).toBe(1)
  expect(said('doctor').code).toBe(0)
  expect(JSON.parse(said('list', '--all-worktrees', '--sessions').stdout).sessions).toHaveLength(1)
  expect(said('export', `${scratch.base}/bundle`).code).toBe(0)
  const [object] = fs
    .readdirSync(`${storeOf(scratch)}/objects`, { recursive: true, encoding: 'utf8' })
    .filter((name) => /^..\/.{38}$/.test(name))
  fs.chmodSync(`${storeOf(scratch)}/objects/${object}`, 0o600)
  fs.writeFileSync(`${storeOf(scratch)}/objects/${object}`, 'zzzz')
  expect(said('verify').code).toBe(7)
  expect(fs.readdirSync(scratch.at('.git/ckpt/worktrees'))).toHaveLength(1)
})

test('a store that was killed while it was made is one without anything in it', () => {
  const scratch = new Scratch().init({ 'a.txt': 'a\n' })
  scratch.ckpt('snapshot')
  fs.rmSync(scratch.at('.git/ckpt/worktrees'), { recursive: true })
  fs.rmSync(`${storeOf(scratch)}/refs/ckpt`, { recursive: true })
  for (const command of ['verify', 'doctor', 'list', 'status', 'prune'])
    expect([command, scratch.run([command]).code]).toEqual([command, 0])
  scratch.ckpt('snapshot')
  expect(scratch.ckpt('verify').checkpoints).toBe(1)
})

test('a store that is gone is damage, not nothing', () => {
  const scratch = new Scratch().init({ 'a.txt': 'a\n' })
  scratch.ckpt('mark', 'prompt', '--session', 's')
  fs.rmSync(storeOf(scratch), { recursive: true })
  for (const command of ['verify', 'list', 'status', 'doctor', 'prune'])
    expect([command, scratch.run([command]).code]).toEqual([command, 7])
})

test('--ref: which commits recorded turns account for', async () => {
  const scratch = new Scratch().init()
  scratch.turn('edit', () => scratch.write({ 'a.txt': 'two\n' }))
  scratch.git('commit', '-qam', 'what turn 1 did')
  scratch.turn('commit by itself', async () => {
    scratch.write({ 'b.txt': 'b\n' })
    scratch.git('add', 'b.txt')
    scratch.git('commit', '-qm', 'inside turn 2')
  })
  scratch.write({ 'mine.txt': 'mine\n' })
  scratch.git('add', 'mine.txt')
  scratch.git('commit', '-qm', 'my own')
  const { commits, problems: found } = scratch.ckpt('verify', '--ref', 'HEAD~3..HEAD')
  expect(commits.map((one: any) => [one.subject, one.covered, one.session, one.turn])).toEqual([
    ['what turn 1 did', true, 's', 1],
    ['inside turn 2', true, 's', 2],
    ['my own', false, null, null],
  ])
  expect(found).toEqual([])
  const strict = scratch.tryCkpt('verify', '--ref', 'HEAD~3..HEAD', '--covered')
  expect(strict.code).toBe(7)
  expect(strict.document.problems.join()).toContain('mine.txt')
  expect(scratch.ckpt('verify', '--ref', 'HEAD~3..HEAD~1', '--covered').problems).toEqual([])
  const one = scratch.ckpt('verify', '--ref', 'HEAD~1').commits
  expect(one).toEqual([commits[1]])
  expect(scratch.tryCkpt('verify', '--ref', 'nowhere..HEAD').code).toBe(3)
  const nope = scratch.tryCkpt('verify', '--ref', 'nope')
  expect([nope.code, nope.document.error.message]).toEqual([3, expect.stringMatching(/nope.*'nope'\)\. Nothing/)])
  for (const none of ['HEAD:a.txt', 'HEAD^{tree}', 'HEAD..HEAD:a.txt', 'HEAD:a.txt..HEAD', '^HEAD']) {
    const { code, document } = scratch.tryCkpt('verify', '--ref', none, '--covered')
    expect([code, document.error?.message]).toEqual([
      3,
      `"${none}" is no range of commits here (it names no commit). Nothing was changed.`,
    ])
  }
  scratch.git('tag', '-a', '-m', 'a tag', 'tagged', 'HEAD~1')
  expect(scratch.ckpt('verify', '--ref', 'tagged', '--covered').commits).toEqual([commits[1]])
  for (const empty of ['HEAD..HEAD', 'HEAD...HEAD'])
    expect(scratch.ckpt('verify', '--ref', empty, '--covered').commits).toEqual([])
  for (const unset of ['..tagged', '...HEAD']) {
    const { code, document } = scratch.tryCkpt('verify', '--ref', unset, '--covered')
    expect([code, document.error.message]).toEqual([
      2,
      `--ref ${unset} has no base before its dots. Nothing was changed.`,
    ])
  }
  expect(scratch.tryCkpt('verify', '--covered').code).toBe(2)
})

test('--ref: a commit with which a shallow clone ends says so, and how to mend it', () => {
  const scratch = new Scratch().init({ 'a.txt': 'one\n', 'b.txt': 'one\n' })
  scratch.turn('two', () => scratch.write({ 'a.txt': 'two\n' }))
  scratch.git('commit', '-qam', 'by the turn')
  const bundle = scratch.at('../bundle')
  scratch.ckpt('export', bundle)
  const clone = scratch.at('../clone')
  scratch.git('clone', '-q', '--depth', '1', `file://${scratch.root}`, clone)
  const there = (...args: string[]) => scratch.run([...args, '--json'], { cwd: clone })
  there('import', bundle)
  const unknown = (run: (...args: string[]) => { stdout: string }) =>
    JSON.parse(run('verify', '--ref', 'nowhere..HEAD').stdout).error.hints
  const here = (...args: string[]) => scratch.run([...args, '--json'])
  const branches = 'git branch --all   (what there is)'
  const fetch = expect.stringMatching(/^git fetch --unshallow /)
  expect([unknown(here), unknown(there)]).toEqual([[branches], [branches, fetch]])
  const covered = () => JSON.parse(there('verify', '--ref', 'HEAD').stdout).commits
  expect(covered()).toMatchObject([{ covered: false, why: 'its parent is not here: git fetch --unshallow' }])
  scratch.git('-C', clone, 'fetch', '-q', '--unshallow')
  expect(covered()).toMatchObject([{ covered: true, turn: 1 }])
})

test('--ref: what was there before a turn, or was committed before it, is none of its work', () => {
  const scratch = new Scratch().init()
  scratch.write({ 'early.txt': 'by hand\n' })
  scratch.git('add', '-A')
  scratch.git('commit', '-qm', 'by hand, before')
  scratch.write({ 'late.txt': 'by hand\n' })
  scratch.turn('one', () => scratch.write({ 'a.txt': 'two\n' }))
  scratch.turn('two', () => scratch.write({ 'b.txt': 'b\n' }))
  scratch.git('commit', '-qam', 'of turn one')
  scratch.git('add', 'b.txt')
  scratch.git('commit', '-qm', 'of turn two')
  scratch.git('add', 'late.txt')
  scratch.git('commit', '-qm', 'by hand, after')
  const { commits } = scratch.ckpt('verify', '--ref', 'HEAD~4..HEAD')
  expect(commits.map((one: any) => [one.subject, one.covered])).toEqual([
    ['by hand, before', false],
    ['of turn one', true],
    ['of turn two', true],
    ['by hand, after', false],
  ])
  // A head of long ago may have lost its past, and another may be gone.
  const parent = scratch.git('rev-parse', 'HEAD~1').trim()
  scratch.git('checkout', '-q', '--orphan', 'anew')
  scratch.git('commit', '-qm', 'anew')
  scratch.git('branch', '-D', 'main')
  scratch.turn('three', () => scratch.write({ 'a.txt': 'three\n' }))
  scratch.git('commit', '-qam', 'of turn three')
  fs.rmSync(scratch.at(`.git/objects/${parent.slice(0, 2)}/${parent.slice(2)}`))
  const last = scratch.ckpt('verify', '--ref', 'HEAD~1..HEAD').commits
  expect(last.map((one: any) => [one.subject, one.covered])).toEqual([['of turn three', true]])
})

/** Of each commit of a range, oldest first: its subject, and whether recorded turns account for it. */
const coverage = (scratch: Scratch, range: string) =>
  scratch.ckpt('verify', '--ref', range).commits.map((one: any) => [one.subject, one.covered])

test('--ref: a commit made by hand is not of the turn that another worktree began meanwhile, or that moved back over it', () => {
  const scratch = new Scratch().init()
  scratch.git('branch', 'other')
  scratch.git('worktree', 'add', '-q', '../linked', 'other')
  scratch.write({ 'a.txt': 'by hand\n' })
  scratch.git('commit', '-qam', 'by hand')
  scratch.ckpt('mark', 'prompt', '--session', 's')
  scratch.ckpt('mark', 'prompt', '--session', 't', '--cwd', scratch.at('../linked'))
  scratch.ckpt('mark', 'stop', '--session', 's')
  expect(coverage(scratch, 'HEAD')).toEqual([['by hand', false]])
  scratch.git('reset', '-q', '--keep', 'HEAD~1')
  scratch.ckpt('mark', 'prompt', '--session', 's')
  scratch.git('merge', '-q', '--ff-only', 'HEAD@{1}')
  scratch.ckpt('mark', 'stop', '--session', 's')
  expect(coverage(scratch, 'HEAD')).toEqual([['by hand', false]])
})

test('--ref: what a turn committed in a linked worktree stays its own when another merges it, and so does what was made by hand', () => {
  const scratch = new Scratch().init()
  scratch.git('worktree', 'add', '-q', '-b', 'other', '../linked')
  const [here, there] = [scratch.root, scratch.at('../linked')]
  const mark = (cwd: string, ...args: string[]) => scratch.ckpt('mark', ...args, '--session', cwd, '--cwd', cwd)
  const commit = (subject: string) => {
    fs.appendFileSync(path.join(there, 'b.txt'), `${subject}\n`)
    scratch.git('-C', there, 'add', 'b.txt')
    scratch.git('-C', there, 'commit', '-qm', subject)
  }
  mark(here, 'prompt')
  mark(there, 'prompt')
  commit('first of the turn')
  commit('second of the turn')
  mark(there, 'stop')
  commit('by hand')
  mark(there, 'prompt')
  scratch.git('merge', '-q', 'other') // while a turn is at work here, too
  mark(here, 'step')
  mark(here, 'stop')
  const expected = [
    ['first of the turn', true],
    ['second of the turn', true],
    ['by hand', false],
  ]
  expect(coverage(scratch, 'HEAD~3..HEAD')).toEqual(expected)
  mark(here, 'prompt')
  mark(here, 'stop')
  expect(coverage(scratch, 'HEAD~3..HEAD')).toEqual(expected)
})

test('--ref: line ends that a turn changed are its work, and no other bytes count as line ends', () => {
  const scratch = new Scratch().init({ 'crlf.txt': 'a\r\nb\r\n' })
  scratch.turn('one', () => scratch.write({ 'crlf.txt': 'a\nb\n', 'x.bin': 'a\r\n\0' }))
  scratch.git('commit', '-qam', 'line ends')
  scratch.write({ 'x.bin': 'a\n\0' })
  scratch.git('add', 'x.bin')
  scratch.git('commit', '-qm', 'other bytes by hand')
  expect(coverage(scratch, 'HEAD~2..HEAD')).toEqual([
    ['line ends', true],
    ['other bytes by hand', false],
  ])
})

test('--ref: the kind of a file and whether it is a program count as much as its bytes', () => {
  const scratch = new Scratch().init({ 'a.txt': 'one\n', 'tool.sh': 'x\n', 'there.txt': 'x\n' })
  scratch.turn('one', () => scratch.write({ 'run.sh': '#!/bin/sh\n', link: 'a.txt' }))
  fs.chmodSync(scratch.at('run.sh'), 0o755)
  scratch.git('add', 'run.sh')
  scratch.git('commit', '-qm', 'a program by hand')
  fs.rmSync(scratch.at('link'))
  fs.symlinkSync('a.txt', scratch.at('link'))
  scratch.git('add', 'link')
  scratch.git('commit', '-qm', 'a link by hand')
  scratch.turn('two', () => {
    fs.chmodSync(scratch.at('tool.sh'), 0o755)
    fs.rmSync(scratch.at('there.txt'))
    scratch.write({ 'there.txt/below.txt': 'x\n' })
  })
  scratch.git('add', 'tool.sh')
  scratch.git('commit', '-qm', 'a program by the turn')
  scratch.git('add', '-A', 'there.txt')
  scratch.git('commit', '-qm', 'a directory in the place of a file')
  const commits = [
    ['a program by hand', false],
    ['a link by hand', false],
    ['a program by the turn', true],
    ['a directory in the place of a file', true],
  ]
  expect(coverage(scratch, 'HEAD~4..HEAD')).toEqual(commits)
  scratch.git('config', 'core.fileMode', 'false') // the disk does not tell programs apart here
  expect(coverage(scratch, 'HEAD~4..HEAD~3')).toEqual([['a program by hand', true]])
})

test('--ref: what `ckpt commit` made is covered: the first commit of all, with line ends converted, or a part of the file', () => {
  const first = new Scratch().init({ 'a.txt': 'one\n' })
  first.git('checkout', '-q', '--orphan', 'anew')
  first.git('rm', '-q', '--cached', 'a.txt')
  for (const one of ['name', 'email']) first.git('config', `user.${one}`, 'a@example.com')
  first.turn('one', () => first.write({ 'new.txt': 'new\n' }))
  first.ckpt('commit', '-m', 'the first')
  expect(coverage(first, 'HEAD')).toEqual([['the first', true]])

  const lines = Array.from({ length: 20 }, (_, i) => `${i}\n`)
  const scratch = new Scratch().init({ 'b.txt': lines.join('') })
  scratch.git('config', 'core.autocrlf', 'true')
  for (const one of ['name', 'email']) scratch.git('config', `user.${one}`, 'a@example.com')
  scratch.turn('one', () => scratch.write({ 'a.txt': 'one\r\ntwo\r\n' }))
  scratch.ckpt('commit', '-m', 'line ends')
  scratch.git('config', 'core.autocrlf', 'false')
  scratch.write({ 'b.txt': lines.with(0, 'by hand\n').join('') })
  scratch.turn('two', () => scratch.write({ 'b.txt': lines.with(0, 'by hand\n').with(15, 'by the turn\n').join('') }))
  scratch.ckpt('commit', '-m', 'a part')
  const covered = (part: boolean) => [
    ['line ends', true],
    ['a part', part],
  ]
  expect(coverage(scratch, 'HEAD~2..HEAD')).toEqual(covered(true))
  // Another clone has no word of who made them, and tells by what the turns left.
  const bundle = scratch.at('../bundle')
  scratch.ckpt('export', bundle)
  const clone = scratch.at('../clone')
  scratch.git('clone', '-q', scratch.root, clone)
  scratch.run(['import', bundle], { cwd: clone })
  const there = JSON.parse(scratch.run(['verify', '--ref', 'HEAD~2..HEAD', '--json'], { cwd: clone }).stdout).commits
  expect(there.map((one: any) => [one.subject, one.covered])).toEqual(covered(false))
})

test('--worktree: new directories that are empty are told, ignored ones and repositories are not', () => {
  const scratch = new Scratch().init({ 'a.txt': 'one\n', '.gitignore': 'out/\n*.log\n' })
  fs.mkdirSync(scratch.at('empty/before'), { recursive: true })
  scratch.write({ 'out/kept.txt': 'tracked\n' })
  scratch.git('add', '-f', 'out/kept.txt')
  scratch.turn('work', () => scratch.write({ 'a.txt': 'two\n' }))
  expect(scratch.ckpt('verify', '--worktree').ok).toBe(true)
  fs.mkdirSync(scratch.at('out/deep/empty'), { recursive: true })
  scratch.write({ 'logs/x.log': 'x\n' })
  scratch.git('init', '-q', 'apart')
  expect(scratch.ckpt('verify', '--worktree').ok).toBe(true)
  fs.mkdirSync(scratch.at('new/deep'), { recursive: true })
  fs.mkdirSync(scratch.at('empty/after'))
  const told = scratch.tryCkpt('verify', '--worktree')
  expect(told.code).toBe(7)
  const { detail } = told.document.checks.find((one: any) => one.name === 'worktree')
  expect(detail.split(': ')[1].split(', ').sort()).toEqual(['empty/after (added)', 'new/deep (added)'])
  scratch.ckpt('snapshot')
  expect(scratch.ckpt('verify', '--worktree').ok).toBe(true)
})

test('--ci: annotations and a summary in the words of the CI', async () => {
  const scratch = smallStore()
  const summary = path.join(scratch.base, 'summary.md')
  const github = { GITHUB_ACTIONS: 'true', GITHUB_STEP_SUMMARY: summary }
  expect(scratch.run(['verify', '--ci'], { vars: github }).stdout).not.toContain('::error')
  expect(fs.readFileSync(summary, 'utf8')).toMatch(/\| timeline \| ok \| \d+ checkpoints/)
  // Where the summary cannot be written the answer is the same.
  const nowhere = path.join(scratch.base, 'none/summary.md')
  const unwritten = scratch.run(['verify', '--ci'], { vars: { ...github, GITHUB_STEP_SUMMARY: nowhere } })
  expect([unwritten.code, unwritten.stderr]).toEqual([0, expect.stringMatching(/summary was not written to .*ENOENT/)])
  inStore(scratch, 'update-ref', '-d', 'refs/ckpt/@main/s/live')
  expect(scratch.run(['verify', '--ci'], { vars: { ...github, GITHUB_STEP_SUMMARY: nowhere } }).code).toBe(7)
  const bad = scratch.run(['verify', '--ci'], { vars: github })
  expect(bad.code).toBe(7)
  expect(bad.stdout).toMatch(/^::error title=ckpt verify%3A refs::refs\/ckpt\/@main\/s\/live is gone/m)
  expect(fs.readFileSync(summary, 'utf8')).toContain('| refs | **bad** |')
  const gitlab = scratch.run(['verify', '--ci'], { vars: { GITLAB_CI: 'true' } })
  expect(gitlab.stdout).toMatch(/^ERROR: ckpt verify: refs: /m)
  const json = scratch.run(['verify', '--ci', '--json'], { vars: github })
  expect(JSON.parse(json.stdout).ok).toBe(false)
  expect(json.stderr).toContain('::error')
})

test('it writes nothing: no byte and no time in the store or the worktree moves', async () => {
  const scratch = smallStore()
  const state = () =>
    fs
      .readdirSync(scratch.root, { recursive: true, encoding: 'utf8' })
      .map((name) => `${name} ${fs.lstatSync(scratch.at(name)).mtimeMs} ${fs.lstatSync(scratch.at(name)).ino}`)
      .sort()
  const before = state()
  scratch.tryCkpt('verify', '--worktree', '--ref', 'HEAD', '--no-pending', '--ci')
  expect(state()).toEqual(before)
})

test('what failed is answered with what helps: a worktree that went on is nothing for doctor', () => {
  const scratch = new Scratch().init({ 'a.txt': 'one\n' })
  scratch.ckpt('snapshot')
  scratch.write({ 'a.txt': 'two\n' })
  const { code, document } = scratch.tryCkpt('verify', '--worktree')
  expect([code, document.error.hints]).toEqual([7, [expect.stringMatching(/^ckpt snapshot /)]])
  scratch.ckpt('snapshot')
  expect(scratch.run(['verify', '--worktree']).code).toBe(0)
})
