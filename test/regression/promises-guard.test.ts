/** Promises 1 and 2: undo never eats your work, and nothing is deleted on doubt. */
import { execFileSync } from 'node:child_process'
import fs from 'node:fs'
import path from 'node:path'
import { expect, test } from 'vitest'
import { startDaemon } from '../support/daemon.ts'
import { Scratch } from '../support/scratch.ts'
import { corruptObject, inStore, looseFile, removeObject, storeOf, swapObject } from '../support/store-surgery.ts'

const MIB = 2 ** 20
/** Over the size limit for untracked files. */
const large = (letter: string) => Buffer.alloc(11 * MIB, letter)

/** A turn that changed two files, one of which was then edited by hand in the same line. */
function conflicting(): Scratch {
  const scratch = new Scratch().init({ 'a.txt': 'one\n', 'b.txt': 'one\n', 'sub/c.txt': 'one\n' })
  scratch.turn('work', () => scratch.write({ 'a.txt': 'agent\n', 'b.txt': 'agent\n', 'new.txt': 'agent\n' }))
  scratch.write({ 'b.txt': 'hand\n' })
  return scratch
}

test('promise 1: with one conflict nothing at all is written, and the turn stays visible', () => {
  const scratch = conflicting()
  const [disk, times] = [
    scratch.manifest(),
    ['a.txt', 'b.txt', 'new.txt'].map((name) => fs.lstatSync(scratch.at(name))),
  ]
  const { code, document } = scratch.tryCkpt('undo')
  expect(code).toBe(4)
  expect(document.error).toMatchObject({ code: 'CONFLICT', paths: ['b.txt'] })
  expect(document.files).toContainEqual({
    path: 'b.txt',
    action: 'conflict',
    reason: 'changed since in the same lines',
  })
  expect(scratch.manifest()).toEqual(disk)
  const now = ['a.txt', 'b.txt', 'new.txt'].map((name) => fs.lstatSync(scratch.at(name)))
  expect(now.map(({ ino, ctimeMs }) => [ino, ctimeMs])).toEqual(times.map(({ ino, ctimeMs }) => [ino, ctimeMs]))
  expect(scratch.ckpt('status').boundary).toBe(null)
  expect(scratch.ckpt('list').turns[0].hidden).toBe(false)
})

test('promise 1: --skip-conflicts leaves the conflicting path and undoes the rest', () => {
  const scratch = conflicting()
  const { files } = scratch.ckpt('undo', '--skip-conflicts')
  expect(files.map((file: { path: string; action: string }) => `${file.action} ${file.path}`)).toEqual([
    'write a.txt',
    'skip b.txt',
    'delete new.txt',
  ])
  expect([scratch.read('a.txt'), scratch.read('b.txt'), scratch.exists('new.txt')]).toEqual(['one\n', 'hand\n', false])
  scratch.ckpt('redo')
  expect([scratch.read('a.txt'), scratch.read('b.txt')]).toEqual(['agent\n', 'hand\n'])
})

test('promise 1: --force keeps the overwritten bytes in the safety checkpoint, and redo brings those very bytes back', () => {
  const scratch = conflicting()
  const disk = scratch.manifest()
  const { safety } = scratch.ckpt('undo', '--force')
  expect(scratch.read('b.txt')).toBe('one\n')
  expect(inStore(scratch, 'show', `${safety}:b.txt`)).toBe('hand')
  scratch.ckpt('redo')
  expect(scratch.manifest()).toEqual(disk)
})

test('promise 1: --merge writes conflict markers, and redo takes them away again', () => {
  const scratch = conflicting()
  const disk = scratch.manifest()
  scratch.ckpt('undo', '--merge')
  expect(scratch.read('b.txt')).toMatch(/^<<<<<<< [\s\S]*hand\n[\s\S]*=======\n[\s\S]*one\n>>>>>>> /m)
  scratch.ckpt('redo')
  expect(scratch.manifest()).toEqual(disk)
})

test('promise 1: what a merge left with conflict markers is told apart from what merged cleanly', () => {
  const lines = (third: string, last: string) => ['1', '2', third, ...Array(16).fill('.'), last, ''].join('\n')
  const scratch = new Scratch().init({ 'a.txt': lines('3', '20'), 'b.txt': lines('3', '20') })
  scratch.turn('work', () => scratch.write({ 'a.txt': lines('agent', '20'), 'b.txt': lines('agent', '20') }))
  scratch.write({ 'a.txt': lines('hand', '20'), 'b.txt': lines('agent', 'hand') })
  const files = [
    { path: 'a.txt', action: 'merge', reason: 'conflict markers' },
    { path: 'b.txt', action: 'merge' },
  ]
  const { token, ...planned } = scratch.ckpt('undo', '--merge', '--dry-run')
  expect(planned).toMatchObject({ files, warnings: ['Conflict markers would be written into a.txt.'] })
  expect(scratch.ckpt('apply', token)).toMatchObject({
    files,
    warnings: ['Conflict markers were written into a.txt: both sides changed the same lines.'],
  })
  expect([scratch.read('a.txt').includes('<<<<<<<'), scratch.read('b.txt')]).toEqual([true, lines('3', 'hand')])
  expect(scratch.ckpt('redo').warnings).toEqual([])
})

test('promise 1: of several turns, what is merged cleanly over conflict markers has them still', () => {
  const lines = (third: string, last: string) => ['1', '2', third, ...Array(16).fill('.'), last, ''].join('\n')
  const scratch = new Scratch().init({ 'a.txt': lines('3', '20') })
  scratch.turn('one', () => scratch.write({ 'a.txt': lines('3', 'one') }))
  scratch.turn('two', () => scratch.write({ 'a.txt': lines('two', 'one') }))
  scratch.write({ 'a.txt': lines('hand', 'one') })
  const { files } = scratch.ckpt('undo', '--turns', '2', '--merge')
  expect(files).toEqual([{ path: 'a.txt', action: 'merge', reason: 'conflict markers' }])
  expect(scratch.read('a.txt')).toMatch(/<<<<<<<[\s\S]*\n20\n$/)
})

test('promise 1: binary files, modes, and deletes against edits never merge', () => {
  const scratch = new Scratch().init({
    'x.bin': 'a\0a',
    'mode.sh': 'echo\n',
    'gone.txt': 'one\n',
    'edited.txt': 'one\n',
  })
  scratch.turn('work', () => {
    scratch.write({ 'x.bin': 'b\0b', 'made.txt': 'made\n', 'edited.txt': 'two\n' })
    fs.chmodSync(scratch.at('mode.sh'), 0o755)
    scratch.remove('gone.txt')
  })
  scratch.write({ 'x.bin': 'c\0c', 'made.txt': 'made and edited\n', 'gone.txt': 'made again\n' })
  fs.chmodSync(scratch.at('mode.sh'), 0o700)
  scratch.remove('edited.txt')
  const disk = scratch.manifest()
  for (const flags of [[], ['--merge']]) {
    const { code, document } = scratch.tryCkpt('undo', ...flags)
    expect(code).toBe(4)
    expect(document.error.paths).toEqual(['edited.txt', 'gone.txt', 'made.txt', 'mode.sh', 'x.bin'])
    expect(scratch.manifest()).toEqual(disk)
  }
  scratch.ckpt('undo', '--force')
  expect(scratch.read('edited.txt')).toBe('one\n')
  expect(scratch.exists('made.txt')).toBe(false)
  scratch.ckpt('redo')
  expect(scratch.manifest()).toEqual(disk)
})

test('promise 1: an ignored or too large file in the way is saved whole before it is overwritten', () => {
  const scratch = new Scratch().init({ 'out/x.txt': 'old\n', 'small.txt': 'old\n', 'b.txt': 'old\n' })
  scratch.git('rm', '-rq', '--cached', '.') // untracked from here on: rules and limits apply
  scratch.turn('remove them', () => scratch.remove('out', 'small.txt'))
  scratch.write({ '.gitignore': 'out/\n', 'out/x.txt': 'by hand\n', 'small.txt': large('h') })
  const refused = scratch.tryCkpt('undo')
  expect([refused.code, refused.document.error.paths]).toEqual([4, ['out/x.txt', 'small.txt']])
  const { safety } = scratch.ckpt('undo', '--force')
  expect(scratch.read('out/x.txt')).toBe('old\n')
  expect(scratch.read('small.txt')).toBe('old\n')
  expect(inStore(scratch, 'show', `${safety}:out/x.txt`)).toBe('by hand')
  expect(inStore(scratch, 'cat-file', '-s', `${safety}:small.txt`)).toBe(String(11 * MIB))
  scratch.ckpt('redo')
  expect(scratch.read('out/x.txt')).toBe('by hand\n')
  expect(fs.readFileSync(scratch.at('small.txt')).equals(large('h'))).toBe(true)
})

test('promise 1: what cannot be saved is not overwritten, not even with --force', () => {
  const scratch = new Scratch().init({
    'pipe.txt': 'one\n',
    'dir.txt': 'one\n',
    'repo.txt': 'one\n',
    'other.txt': 'x\n',
  })
  scratch.turn('remove', () => scratch.remove('pipe.txt', 'dir.txt', 'repo.txt', 'other.txt'))
  execFileSync('mkfifo', [scratch.at('pipe.txt')])
  scratch.write({ 'dir.txt/inner.txt': 'by hand\n' })
  execFileSync('mkfifo', [scratch.at('dir.txt/pipe')])
  scratch.git('init', '-q', 'repo.txt')
  for (const flags of [[], ['--force'], ['--merge']]) {
    const { code, document } = scratch.tryCkpt('undo', ...flags)
    expect(code).toBe(4)
    expect(document.error.paths.sort()).toEqual(['dir.txt', 'pipe.txt', 'repo.txt'])
    expect(scratch.exists('other.txt')).toBe(false)
  }
  expect(fs.lstatSync(scratch.at('pipe.txt')).isFIFO()).toBe(true)
  expect(scratch.read('dir.txt/inner.txt')).toBe('by hand\n')
  expect(scratch.exists('repo.txt/.git/HEAD')).toBe(true)
  scratch.ckpt('undo', '--skip-conflicts')
  expect(scratch.read('other.txt')).toBe('x\n')
})

test('promise 1: a file that cannot be read is not overwritten', () => {
  const scratch = new Scratch().init({ 'a.txt': 'one\n', 'b.txt': 'one\n' })
  const uid = scratch.handOver()
  const as = (...args: string[]) => scratch.run([...args, '--json'], { uid })
  expect(as('mark', 'prompt', '--session', 's').code).toBe(0)
  scratch.write({ 'a.txt': 'agent\n', 'b.txt': 'agent\n' })
  expect(as('mark', 'stop', '--session', 's').code).toBe(0)
  scratch.write({ 'a.txt': 'secret\n' })
  fs.chmodSync(scratch.at('a.txt'), 0)
  for (const flags of [[], ['--force']]) {
    const { code, stdout } = as('undo', ...flags)
    expect([code, JSON.parse(stdout).error.paths]).toEqual([4, ['a.txt']])
  }
  fs.chmodSync(scratch.at('a.txt'), 0o600)
  expect(scratch.read('a.txt')).toBe('secret\n')
  expect(scratch.read('b.txt')).toBe('agent\n')
})

test('promise 1: what was changed by hand between two turns stays when both are undone', () => {
  const scratch = new Scratch().init({ 'a.txt': '1\n2\n3\n4\n5\n', 'hand.txt': 'one\n' })
  scratch.turn('first', () => scratch.write({ 'a.txt': 'agent\n2\n3\n4\n5\n', 'x.txt': 'x\n' }))
  scratch.write({ 'a.txt': 'agent\n2\n3\n4\nhand\n', 'hand.txt': 'two\n', 'by-hand.txt': 'new\n' })
  scratch.turn('second', () => scratch.write({ 'x.txt': 'y\n', 'by-hand.txt': 'agent\n' }))
  scratch.ckpt('undo', '--turns', '2')
  expect(scratch.read('a.txt')).toBe('1\n2\n3\n4\nhand\n')
  expect(scratch.read('hand.txt')).toBe('two\n')
  expect(scratch.read('by-hand.txt')).toBe('new\n')
  expect(scratch.exists('x.txt')).toBe(false)
})

test('promise 1: a dry run writes nothing, and its token does exactly that or is refused', () => {
  const scratch = conflicting()
  scratch.write({ 'b.txt': 'agent\n' })
  const disk = scratch.manifest()
  const dry = scratch.ckpt('undo', '--dry-run')
  expect(scratch.manifest()).toEqual(disk)
  scratch.write({ 'a.txt': 'hand\n' })
  const stale = scratch.tryCkpt('apply', dry.token)
  expect([stale.code, stale.document.error.code]).toEqual([4, 'CONFLICT'])
  expect(scratch.read('a.txt')).toBe('hand\n')
  scratch.write({ 'a.txt': 'agent\n' })
  const { token, files } = scratch.ckpt('undo', '--dry-run')
  expect(scratch.ckpt('apply', token).files).toEqual(files)
  expect(scratch.read('a.txt')).toBe('one\n')
  // Done already: what it would take back is not there any more.
  const { code, document } = scratch.tryCkpt('apply', token)
  expect([code, document.error.code]).toEqual([4, 'CONFLICT'])
  expect(scratch.read('a.txt')).toBe('one\n')
  const redo = scratch.ckpt('redo', '--dry-run')
  scratch.ckpt('redo')
  expect(scratch.tryCkpt('apply', redo.token)).toMatchObject({ code: 4, document: { error: { code: 'CONFLICT' } } })
  expect(scratch.tryCkpt('apply', `${redo.token}x`).code).toBe(2)
})

test('promise 1: a change made by hand while undo is at work is not eaten', () => {
  const scratch = new Scratch().init()
  scratch.turn('work', () => {
    scratch.write({ 'a.txt': 'agent\n' })
    scratch.git('commit', '-qam', 'by the agent')
  })
  // The worktree is scanned while git is asked about the commits of the turn: the hand is slower than the scan.
  scratch.write({
    '../slow/git': `#!/bin/sh
case " $* " in *" log "*) sleep 1; printf 'hand\\n' > '${scratch.at('a.txt')}';; esac
PATH='${process.env.PATH}' exec git "$@"
`,
  })
  fs.chmodSync(`${scratch.base}/slow/git`, 0o755)
  const { code, stdout } = scratch.run(['undo', '--json'], {
    vars: { PATH: `${scratch.base}/slow:${process.env.PATH}` },
  })
  expect([code, JSON.parse(stdout).error?.paths]).toEqual([4, ['a.txt']])
  expect(scratch.read('a.txt')).toBe('hand\n')
})

test('promise 2: with an object missing or damaged undo refuses, with nothing written', () => {
  for (const [damage, rev] of [
    [removeObject, ':b.txt'],
    [corruptObject, ':b.txt'],
    [swapObject, ':b.txt'],
    [corruptObject, ':sub'],
    [removeObject, '^{tree}'],
  ] as const) {
    const scratch = new Scratch().init({ 'a.txt': 'one\n' })
    scratch.write({ 'b.txt': `untracked ${rev}\n`, 'sub/c.txt': 'one\n' })
    scratch.turn('work', () => {
      scratch.write({ 'a.txt': 'two\n', 'sub/c.txt': 'two\n', 'new.txt': 'x\n' })
      scratch.remove('b.txt')
    })
    const [turn] = scratch.ckpt('list').turns
    const disk = scratch.manifest()
    damage(scratch, `${turn.before}${rev}`)
    const { code, document } = scratch.tryCkpt('undo')
    expect([rev, code, document.error.code]).toEqual([rev, 7, 'DAMAGED'])
    expect(scratch.manifest()).toEqual(disk)
    expect(scratch.tryCkpt('verify').code).toBe(7)
    expect(scratch.manifest()).toEqual(disk)
  }
})

test('promise 2: what is damaged in the store and whole on disk is written once more, and undo goes on', () => {
  for (const damage of [removeObject, corruptObject, swapObject]) {
    const scratch = new Scratch().init({ 'a.txt': 'one\n' })
    scratch.turn('work', () => scratch.write({ 'a.txt': 'two\n', 'new.txt': 'x\n' }))
    const [turn] = scratch.ckpt('list').turns
    const disk = scratch.manifest()
    damage(scratch, `${turn.after}:new.txt`)
    scratch.ckpt('undo')
    expect([scratch.read('a.txt'), scratch.exists('new.txt')]).toEqual(['one\n', false])
    scratch.ckpt('redo')
    expect(scratch.manifest()).toEqual(disk)
    expect(scratch.ckpt('verify').ok).toBe(true)
  }
})

test('promise 2: a checkpoint rests on no damaged object of before, where the disk has its content', () => {
  for (const damage of [corruptObject, swapObject]) {
    const scratch = new Scratch().init({ 'a.txt': 'one\n' })
    scratch.turn('make', () => scratch.write({ 'd/p.txt': 'precious\n' }))
    const [{ after }] = scratch.ckpt('list').turns
    scratch.remove('d')
    scratch.ckpt('snapshot')
    damage(scratch, `${after}:d/p.txt`)
    fs.truncateSync(looseFile(scratch, `${after}:d`), 0)
    scratch.write({ 'd/p.txt': 'precious\n' })
    scratch.ckpt('snapshot')
    expect(scratch.ckpt('verify').problems).toEqual([])
  }
})

test('promise 2: so too for a content that is merged; and what is whole no more but in its name is not merged', () => {
  for (const damage of [removeObject, corruptObject, swapObject]) {
    const scratch = new Scratch().init({ 'a.txt': '1\n2\n3\n4\n5\n' })
    scratch.turn('work', () => scratch.write({ 'a.txt': 'one\n2\n3\n4\n5\n' }))
    const [turn] = scratch.ckpt('list').turns
    scratch.write({ 'a.txt': 'one\n2\n3\n4\nfive\n' })
    const { checkpoint } = scratch.ckpt('snapshot')
    damage(scratch, `${checkpoint.id}:a.txt`)
    scratch.ckpt('undo', '--merge')
    expect(scratch.read('a.txt')).toBe('1\n2\n3\n4\nfive\n')
    scratch.ckpt('redo')
    expect(scratch.read('a.txt')).toBe('one\n2\n3\n4\nfive\n')
    expect(scratch.ckpt('verify').ok).toBe(true)
    damage(scratch, `${turn.after}:a.txt`)
    const disk = scratch.manifest()
    expect(scratch.tryCkpt('undo', '--merge').document.error.code).toBe('DAMAGED')
    expect(scratch.manifest()).toEqual(disk)
  }
})

test('promise 2: packs that were deleted under a daemon that has them open are gone: nothing rests on them', () => {
  const scratch = new Scratch().init({ 'a.txt': 'one\n' })
  const many = (content: string) =>
    Object.fromEntries(Array.from({ length: 20 }, (_, i) => [`f${i}`, `${content} ${i}\n`]))
  startDaemon(scratch)
  scratch.turn('make', () => scratch.write(many('one')))
  scratch.turn('work', () => scratch.write(many('two')))
  scratch.ckpt('undo')
  scratch.ckpt('redo')
  const disk = scratch.manifest()
  const packs = path.join(storeOf(scratch), 'objects', 'pack')
  const deleted = fs.readdirSync(packs)
  expect(deleted.length).toBeGreaterThan(0)
  for (const file of deleted) fs.unlinkSync(path.join(packs, file))
  expect(scratch.tryCkpt('undo').document.error.code).toBe('DAMAGED')
  expect(scratch.manifest()).toEqual(disk)
})

test('promise 2: what a checkpoint did not cover is unknown, never absent', () => {
  const scratch = new Scratch().init({ 'a.txt': 'one\n', '.gitignore': 'ignored.txt\n' })
  scratch.write({ 'ignored.txt': 'ignored\n', 'large.txt': large('x') })
  scratch.turn('cover them', () => {
    scratch.write({ 'large.txt': 'small now\n', '.gitignore': '', 'a.txt': 'two\n' })
    scratch.write({ 'ignored.txt': 'changed\n' })
  })
  const { files } = scratch.ckpt('undo')
  expect(scratch.read('large.txt')).toBe('small now\n')
  expect(scratch.read('ignored.txt')).toBe('changed\n')
  expect(scratch.read('a.txt')).toBe('one\n')
  const skipped = files.filter((file: { action: string }) => file.action === 'skip')
  expect(skipped.map((file: { path: string }) => file.path)).toEqual(['ignored.txt', 'large.txt'])
})

test('promise 2: restore deletes nothing, and with --exact only what the checkpoint covered and did not have', () => {
  const scratch = new Scratch().init({ 'a.txt': 'one\n', '.gitignore': '*.log\n' })
  scratch.write({ 'x.log': 'log\n', 'large.bin': large('x') })
  const { checkpoint } = scratch.ckpt('snapshot')
  scratch.write({ 'a.txt': 'two\n', 'new.txt': 'new\n', 'dir/new.txt': 'new\n', '.gitignore': '', 'dir/y.log': 'y\n' })
  scratch.ckpt('snapshot')
  scratch.ckpt('restore', checkpoint.id)
  expect([scratch.read('a.txt'), scratch.read('new.txt')]).toEqual(['one\n', 'new\n'])
  scratch.ckpt('restore', checkpoint.id, '--exact')
  expect([scratch.exists('new.txt'), scratch.exists('dir/new.txt')]).toEqual([false, false])
  expect([scratch.exists('x.log'), scratch.exists('large.bin')]).toEqual([true, true])
})

test('promise 11: what --exact leaves, because it is ignored since, is said', () => {
  const scratch = new Scratch().init({ 'a.txt': 'one\n', '.gitignore': '*.log\n' })
  scratch.write({ 'x.log': 'log\n', 'build/was.txt': 'x\n' })
  const { checkpoint } = scratch.ckpt('snapshot')
  scratch.write({ '.gitignore': '*.log\nnew.txt\nbuild/\n', 'new.txt': 'new\n', 'build/new.txt': 'x\n' })
  const said = (...more: string[]) => scratch.ckpt('restore', checkpoint.id, '--force', ...more).warnings
  expect(said('--dry-run')).toEqual([])
  const left = ['Left as they are, for they are not captured now: build/, new.txt.']
  expect([said('--exact', '--dry-run'), said('--exact')]).toEqual([left, left])
  expect([scratch.read('.gitignore'), scratch.exists('new.txt')]).toEqual(['*.log\n', true])
  expect([said('--exact'), scratch.exists('new.txt'), scratch.exists('x.log')]).toEqual([[], false, true])
})

test('promise 11: what --exact does not leave is not said to be left', () => {
  const scratch = new Scratch().init({ 'a.txt': 'one\n', 'note.txt': 'first\n' })
  const { checkpoint } = scratch.ckpt('snapshot')
  scratch.git('rm', '-q', 'note.txt')
  scratch.ckpt('snapshot')
  scratch.write({ '.git/info/exclude': 'note.txt\n', 'note.txt': 'mine\n' })
  const { warnings, files, safety } = scratch.ckpt('restore', checkpoint.id, '--exact', '--force')
  expect([scratch.read('note.txt'), files.map((file: { path: string }) => file.path)]).toEqual([
    'first\n',
    ['note.txt'],
  ])
  expect(warnings).toEqual([])
  scratch.ckpt('restore', safety, '--force')
  expect(scratch.read('note.txt')).toBe('mine\n')
})

test('promise 2: a git that fails never means "absent", nor "a plain directory"', () => {
  const scratch = new Scratch().init()
  scratch.ckpt('snapshot')
  const none = scratch.run(['snapshot', '--json'], { vars: { PATH: '/nonexistent' } })
  expect([none.code, JSON.parse(none.stdout).error.message]).toEqual([1, expect.stringMatching(/git is not installed/)])
  scratch.write({ '.git/HEAD': 'no ref at all' })
  const broken = scratch.tryCkpt('snapshot')
  expect([broken.code, broken.document.error.code]).toEqual([9, 'BAD_ROOT'])
  const sub = scratch.run(['init', '--json'])
  expect(sub.code).toBe(9)
  expect(fs.existsSync(`${scratch.home}/state`)).toBe(false)
})

test('promise 10: what fails beside a snapshot that does not need it is an error of the command, not of the process', () => {
  const scratch = new Scratch().init()
  scratch.ckpt('snapshot')
  const bin = path.join(scratch.base, 'bin')
  fs.mkdirSync(bin)
  const git = execFileSync('sh', ['-c', 'command -v git'], { encoding: 'utf8' }).trim()
  const failing = `#!/bin/sh\ncase "$*" in *count-objects*) echo no luck >&2; exit 128 ;; esac\nexec '${git}' "$@"\n`
  fs.writeFileSync(path.join(bin, 'git'), failing, { mode: 0o755 })
  fs.writeFileSync(scratch.at('.git/objects/info/alternates'), `${scratch.base}/elsewhere\n`)
  // A tree of before is known, the user's index says nothing: nobody asks what the packs are for.
  for (const file of ['.git/index', '.git/ckpt/worktrees/@main/cache.json']) fs.rmSync(scratch.at(file))
  const ran = scratch.run(['snapshot', '--json'], { vars: { PATH: `${bin}:${process.env.PATH}` } })
  const { ok, error } = JSON.parse(ran.stdout)
  expect([ran.code, ran.stderr, ok, error.message]).toEqual([
    1,
    '',
    false,
    expect.stringMatching(/count-objects failed/),
  ])
  expect(scratch.ckpt('snapshot').checkpoint.degraded).toBe(false)
})

test.each([
  ['symbolic-ref', ['snapshot']],
  ['core.excludesFile', ['snapshot']],
  ['filter', ['diff', '--uncommitted']],
  ['HEAD^{tree}', ['diff', '--uncommitted']],
])(
  'promise 2: a git that is killed at %s has given no answer: it is an error, and nothing is recorded',
  (asked, command) => {
    const scratch = new Scratch().init({ '.gitattributes': '*.txt filter=theirs\n', 'a.txt': 'one\n' })
    scratch.git('config', 'filter.theirs.clean', `touch ${scratch.base}/ran; cat`)
    scratch.turn('first', () => scratch.write({ 'a.txt': 'two\n' }))
    const before = scratch.ckpt('list').turns
    fs.rmSync(scratch.at('.git/ckpt/worktrees/@main/cache.json'))
    fs.rmSync(`${scratch.base}/ran`, { force: true })
    if (asked === 'symbolic-ref') fs.renameSync(scratch.at('.git/HEAD'), scratch.at('.git/main'))
    if (asked === 'symbolic-ref') fs.symlinkSync('refs/heads/main', scratch.at('.git/HEAD')) // git is asked what it is
    const bin = path.join(scratch.base, 'bin')
    fs.mkdirSync(bin)
    const git = execFileSync('sh', ['-c', 'command -v git'], { encoding: 'utf8' }).trim()
    // What is asked is among the words, or on standard input.
    const killed = [
      `case "$*" in *'${asked}'*) kill -KILL $$ ;; *--batch-check*) ;; *) exec '${git}' "$@" ;; esac`,
      `while read -r line; do [ "$line" != '${asked}' ] || { kill -KILL $$; exit; }; echo "$line"; done | '${git}' "$@"`,
    ]
    fs.writeFileSync(path.join(bin, 'git'), `#!/bin/sh\n${killed.join('\n')}\n`, { mode: 0o755 })
    const ran = scratch.run([...command, '--json'], { vars: { PATH: `${bin}:${process.env.PATH}` } })
    expect([ran.code, JSON.parse(ran.stdout).ok]).toEqual([1, false])
    expect(fs.existsSync(`${scratch.base}/ran`)).toBe(false)
    expect(scratch.ckpt('list').turns).toEqual(before)
  },
)
