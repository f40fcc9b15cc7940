/** Wrong or lost files: what happened to users of other tools, and must not happen here. */
import fs from 'node:fs'
import { expect, test } from 'vitest'
import { Scratch } from '../support/scratch.ts'
import { inStore, removeObject } from '../support/store-surgery.ts'

const put = (scratch: Scratch, name: Buffer, content: string) =>
  fs.writeFileSync(Buffer.concat([Buffer.from(`${scratch.root}/`), name]), content)

test('row 1: several files with non-ASCII names in one undo all come back, none is deleted', () => {
  const names = ['ä.txt', 'ö ü.txt', '日本語.md', 'quo"te.txt', 'back\\slash.txt', 'new\nline.txt', 'tab\t.txt', "it's"]
  const scratch = new Scratch().init(Object.fromEntries(names.map((name) => [name, `old ${name}\n`])))
  const latin1 = Buffer.from([0x63, 0x61, 0x66, 0xe9])
  put(scratch, latin1, 'not UTF-8\n')
  const before = scratch.manifest()
  scratch.turn('change them all', () => {
    scratch.write(Object.fromEntries(names.map((name) => [name, `new ${name}\n`])))
    put(scratch, latin1, 'changed\n')
    scratch.write({ 'neu-ñ.txt': 'made\n' })
  })
  const after = scratch.manifest()
  const { files } = scratch.ckpt('undo')
  expect(files).toHaveLength(names.length + 2)
  expect(files).toContainEqual({ path: 'caf\ufffd', pathBase64: latin1.toString('base64'), action: 'write' })
  expect(scratch.manifest()).toEqual(before)
  scratch.ckpt('redo')
  expect(scratch.manifest()).toEqual(after)
})

test('row 2: a tree object that is missing makes undo refuse; no file is deleted', () => {
  const scratch = new Scratch().init({ 'a.txt': 'one\n', 'sub/b.txt': 'two\n' })
  scratch.turn('change', () => scratch.write({ 'sub/b.txt': 'changed\n' }))
  const [turn] = scratch.ckpt('list').turns
  const disk = scratch.manifest()
  removeObject(scratch, `${turn.before}:sub`)
  const { code, document } = scratch.tryCkpt('undo')
  expect(code).toBe(7)
  expect(document.error.code).toBe('DAMAGED')
  expect(scratch.manifest()).toEqual(disk)
})

test('row 3: odd paths and stale locks of git never bring an older snapshot under a new name', () => {
  const scratch = new Scratch().init({ 'a.txt': 'weeks old\n' })
  scratch.turn('first', () => scratch.write({ 'a.txt': 'first\n' }))
  scratch.git('init', '-q', 'nested') // a repository without commits makes `git add` fail
  scratch.write({ 'nested/inner.txt': 'inner\n', '.git/index.lock': '' })
  scratch.write({ 'sub/.GIT/config': 'no name for a git tree\n' })
  scratch.write({ 'a.txt': 'mine\n' })
  const { checkpoint } = scratch.ckpt('mark', 'prompt', '--session', 's')
  scratch.write({ 'a.txt': 'agent\n' })
  scratch.ckpt('mark', 'stop', '--session', 's')
  expect(inStore(scratch, 'show', `${checkpoint.id}:a.txt`)).toBe('mine')
  expect(checkpoint.degraded).toBe(true)
  expect(checkpoint.uncovered).toContainEqual({ path: 'nested/', reason: 'nested-repo' })
  expect(checkpoint.uncovered).toContainEqual({ path: 'sub/.GIT', reason: 'unrepresentable' })
  scratch.ckpt('undo')
  expect(scratch.read('a.txt')).toBe('mine\n')
  expect(scratch.read('nested/inner.txt')).toBe('inner\n')
})

test('row 4: run from a subdirectory, undo and redo leave the sibling directories alone', () => {
  const scratch = new Scratch().init({ 'left/a.txt': 'left\n', 'right/b.txt': 'right\n' })
  scratch.turn('left', () => scratch.write({ 'left/a.txt': 'left by the agent\n' }))
  scratch.write({ 'right/b.txt': 'right by hand\n', 'right/new.txt': 'by hand\n' })
  for (const [command, left] of [
    ['undo', 'left\n'],
    ['redo', 'left by the agent\n'],
  ] as const) {
    const ran = scratch.run([command, '--json'], { cwd: scratch.at('right') })
    expect(ran.code).toBe(0)
    expect(JSON.parse(ran.stdout).files).toEqual([{ path: 'left/a.txt', action: 'write' }])
    expect(scratch.read('left/a.txt')).toBe(left)
    expect(scratch.read('right/b.txt')).toBe('right by hand\n')
    expect(scratch.read('right/new.txt')).toBe('by hand\n')
  }
})

test("row 5: undo in one session leaves another session's files, and the user's, as they are", () => {
  const scratch = new Scratch().init({ 'mine.txt': 'x\n', 'theirs.txt': 'x\n', 'user.txt': 'x\n' })
  scratch.ckpt('mark', 'prompt', '--session', 'one')
  scratch.ckpt('mark', 'prompt', '--session', 'two')
  scratch.ckpt('mark', 'step', '--session', 'one', '--start', '--call-id', '1', '--path', 'mine.txt')
  scratch.ckpt('mark', 'step', '--session', 'two', '--start', '--call-id', '2', '--path', 'theirs.txt')
  scratch.write({ 'mine.txt': 'one\n', 'theirs.txt': 'two\n' })
  scratch.ckpt('mark', 'step', '--session', 'one', '--call-id', '1')
  scratch.ckpt('mark', 'step', '--session', 'two', '--call-id', '2')
  scratch.write({ 'user.txt': 'user\n' })
  scratch.ckpt('mark', 'stop', '--session', 'one')
  scratch.ckpt('mark', 'stop', '--session', 'two')
  const { files } = scratch.ckpt('undo', '--session', 'one')
  expect(files).toEqual([{ path: 'mine.txt', action: 'write' }])
  expect(scratch.read('mine.txt')).toBe('x\n')
  expect(scratch.read('theirs.txt')).toBe('two\n')
  expect(scratch.read('user.txt')).toBe('user\n')
})

test('row 6: undo after the turn changed .gitignore deletes neither newly ignored nor newly unignored files', () => {
  const scratch = new Scratch().init({ 'a.txt': 'a\n', '.gitignore': 'secret.env\ncache/\n' })
  scratch.write({ 'secret.env': 'TOKEN=1\n', 'cache/x': 'cached\n', 'build.log': 'a log\n', 'out/o.txt': 'out\n' })
  const before = scratch.manifest()
  scratch.turn('turn the rules round', () => scratch.write({ '.gitignore': '*.log\nout/\n', 'a.txt': 'b\n' }))
  const after = scratch.manifest()
  scratch.ckpt('undo')
  expect(scratch.manifest()).toEqual(before)
  scratch.ckpt('redo')
  expect(scratch.manifest()).toEqual(after)
})

for (const several of ['turns', 'steps'])
  test(`row 6: what a change of .gitignore lets in, and one of the next ${several} moves or edits, comes back with an undo of both`, () => {
    const scratch = new Scratch().init({ '.gitignore': '*.log\n' })
    scratch.write({ 'd/moved.log': 'the only copy\n', 'gone.log': 'the only copy\n', 'edited.log': 'one\n' })
    const before = scratch.manifest()
    const parts = [
      () => scratch.write({ '.gitignore': '' }),
      () => {
        fs.renameSync(scratch.at('d/moved.log'), scratch.at('moved'))
        scratch.remove('gone.log')
        scratch.write({ 'edited.log': 'two\n' })
      },
    ]
    if (several === 'turns') for (const part of parts) scratch.turn('work', part)
    else
      scratch.turn('work', () => {
        for (const part of parts) {
          part()
          scratch.ckpt('mark', 'step', '--session', 's', '--tool', 'edit')
        }
      })
    const after = scratch.manifest()
    const { files } = scratch.ckpt('undo', '--to', '1')
    expect(scratch.manifest()).toEqual(before)
    expect(files).toContainEqual({
      path: 'd/moved.log',
      action: 'write',
      reason: 'no further back: was not captured before the turn (ignored)',
    })
    scratch.ckpt('redo', '--all')
    expect(scratch.manifest()).toEqual(after)
  })

test('row 7: files made by hand after the turn survive its undo', () => {
  const scratch = new Scratch().init()
  scratch.turn('make a directory', () => scratch.write({ 'new/agent.txt': 'agent\n', 'a.txt': 'two\n' }))
  scratch.write({ 'new/hand.txt': 'hand\n', 'hand.txt': 'hand\n' })
  scratch.ckpt('undo')
  expect(scratch.read('a.txt')).toBe('one\n')
  expect(scratch.exists('new/agent.txt')).toBe(false)
  expect(scratch.read('new/hand.txt')).toBe('hand\n')
  expect(scratch.read('hand.txt')).toBe('hand\n')
})

test('row 8: a symlink that took the place of a directory, or the reverse, never leads outside the worktree', () => {
  const scratch = new Scratch().init({ 'dir/f.txt': 'inside\n', 'dir/g.txt': 'inside\n' })
  const outside = `${scratch.base}/outside`
  fs.mkdirSync(outside)
  fs.writeFileSync(`${outside}/f.txt`, 'outside\n')
  fs.symlinkSync('../outside', scratch.at('link'))
  const before = scratch.manifest()
  scratch.turn('swap them', () => {
    scratch.remove('dir')
    fs.symlinkSync('../outside', scratch.at('dir'))
    scratch.remove('link')
    scratch.write({ 'link/f.txt': 'now a file\n' })
  })
  const after = scratch.manifest()
  scratch.ckpt('undo')
  expect(scratch.manifest()).toEqual(before)
  scratch.ckpt('redo')
  expect(scratch.manifest()).toEqual(after)
  expect(scratch.manifest(outside)).toHaveProperty('f.txt')

  // The user swaps after the turn: what lies behind the symlink is not what the turn left.
  scratch.turn('edit', () => scratch.write({ 'link/f.txt': 'edited\n' }))
  scratch.remove('link')
  fs.symlinkSync('../outside', scratch.at('link'))
  const swapped = scratch.manifest()
  const { code, document } = scratch.tryCkpt('undo')
  expect(code).toBe(4)
  expect(document.error.code).toBe('CONFLICT')
  scratch.run(['undo', '--force'])
  expect(fs.readdirSync(outside)).toEqual(['f.txt'])
  expect(fs.readFileSync(`${outside}/f.txt`, 'utf8')).toBe('outside\n')
  expect(swapped.link).toBe('link ../outside')
})

test('row 9: a nested repository made during the turn stays, with its .git, and is named', () => {
  const scratch = new Scratch().init()
  scratch.turn('clone something', () => {
    scratch.git('init', '-q', 'vendor/lib')
    scratch.write({ 'vendor/lib/code.c': 'int x;\n', 'a.txt': 'two\n' })
  })
  const head = fs.readFileSync(scratch.at('vendor/lib/.git/HEAD'), 'utf8')
  const undone = scratch.ckpt('undo')
  expect(scratch.read('a.txt')).toBe('one\n')
  expect(scratch.read('vendor/lib/code.c')).toBe('int x;\n')
  expect(fs.readFileSync(scratch.at('vendor/lib/.git/HEAD'), 'utf8')).toBe(head)
  expect(undone.warnings.join()).toMatch(/cannot be undone: vendor\/lib/)
  scratch.ckpt('redo')
  expect(scratch.read('a.txt')).toBe('two\n')
  expect(scratch.read('vendor/lib/code.c')).toBe('int x;\n')
})

test('row 10: the .git of a nested repository keeps its name and every byte', () => {
  const scratch = new Scratch().init()
  scratch.git('init', '-q', 'nested')
  scratch.write({ 'nested/n.txt': 'n\n' })
  scratch.git('-C', 'nested', 'add', '-A')
  scratch.git('-C', 'nested', 'commit', '-qm', 'inner')
  const inner = scratch.manifest(scratch.at('nested/.git'))
  scratch.turn('edit', () => scratch.write({ 'a.txt': 'two\n', 'nested/n.txt': 'edited\n' }))
  scratch.ckpt('undo')
  scratch.ckpt('redo', '--all')
  const nested = fs.readdirSync(scratch.at('nested')).sort()
  expect(nested).toEqual(['.git', 'n.txt'])
  const { '.git': _, ...now } = scratch.manifest(scratch.at('nested/.git'))
  expect(now).toEqual(inner)
})
