// What a diff, its counts and an undo say of what a checkpoint could not take, and of odd names: nothing that is not so.
import { execFileSync } from 'node:child_process'
import fs from 'node:fs'
import { expect, test } from 'vitest'
import { type Json, Scratch } from '../support/scratch.ts'
import { hasPython, onTerminal } from '../support/terminal.ts'

/** A worktree where a file of more than a kilobyte is not taken. */
function small(files: Record<string, string>): Scratch {
  const scratch = new Scratch().init()
  scratch.write({ '../home/.config/ckpt/.checkpointrc': 'snapshot:\n  maxFileSize: 1KiB\n' })
  scratch.write(files)
  scratch.ckpt('snapshot')
  return scratch
}
const LARGE = 'x'.repeat(2000)

test('a patch beside a file that became a symlink does not delete what is there', () => {
  const scratch = small({ f: '1\n', g: 'k\n', big: 'x\n', z: 'z\rdiff --git a\n' })
  scratch.turn('one', () => {
    fs.unlinkSync(`${scratch.root}/f`)
    fs.symlinkSync('g', `${scratch.root}/f`)
    scratch.write({ big: LARGE, z: 'y\rdiff --git b\n' })
  })
  const { files, patch } = scratch.ckpt('diff', '1')
  expect(files.map(({ path, status }: any) => `${status} ${path}`)).toEqual(['type f', 'modified z'])
  expect(patch).not.toContain('big')
  expect(patch.match(/^diff --git a\/. b\/.$/gm)).toHaveLength(3)
  const { turn } = scratch.ckpt('show', '1')
  expect(turn.stat).toEqual({ files: 2, insertions: 2, deletions: 2 })
})

test('a file that could not be taken was not moved away', () => {
  const text = Array.from({ length: 40 }, (_, i) => `line ${i}\n`).join('')
  const scratch = small({ big: text })
  scratch.turn('one', () => scratch.write({ big: LARGE, copy: text }))
  const { files, patch } = scratch.ckpt('diff', '1')
  expect(files).toMatchObject([{ path: 'copy', status: 'added', insertions: 40 }])
  expect(patch).not.toContain('rename')
  expect(scratch.ckpt('list').turns[0].stat).toEqual({ files: 1, insertions: 40, deletions: 0 })
})

test('a turn counts what its diff shows: renames, modes, empty directories, nothing that is unknown', () => {
  const scratch = small({ k: 'k\n', l: 'a\nb\nc\nd\n', big: 'x\n' })
  scratch.turn('one', () => {
    fs.renameSync(`${scratch.root}/l`, `${scratch.root}/m`)
    fs.chmodSync(`${scratch.root}/k`, 0o600)
    fs.mkdirSync(`${scratch.root}/e`)
    scratch.write({ big: LARGE })
  })
  const { files } = scratch.ckpt('diff', '1')
  expect(files.map(({ path }: any) => path).sort()).toEqual(['e/', 'k', 'm'])
  expect(scratch.ckpt('list').turns[0].stat).toEqual({ files: 3, insertions: 0, deletions: 0 })
})

test('an undo that brings back what a file was before does not say that it cannot', () => {
  const scratch = small({ big: 'x\n', other: LARGE })
  scratch.turn('one', () => scratch.write({ big: LARGE }))
  expect(scratch.ckpt('undo').warnings).toEqual([])
  expect(scratch.read('big')).toBe('x\n')
  scratch.ckpt('redo')
  expect(scratch.read('big')).toBe(LARGE)
  scratch.turn('two', () => scratch.write({ other: `${LARGE}more` }))
  const warnings = scratch.ckpt('undo').warnings.join('\n')
  expect(warnings).toMatch(/Turn 2 also changed .* cannot be undone: other\./)
})

test('a patch is what git applies, where all of it is text', () => {
  const scratch = small({ f: '1\n', g: 'k\n' })
  scratch.turn('one', () => scratch.write({ f: '2\n', 'new\tname': 'n\n' }))
  const { patch } = scratch.ckpt('diff', '1')
  scratch.ckpt('undo')
  execFileSync('git', ['apply'], { cwd: scratch.root, input: patch })
  expect([scratch.read('f'), scratch.read('new\tname')]).toEqual(['2\n', 'n\n'])
})

test('what is printed into a file is what git applies, with carriage returns and blank lines at its end', () => {
  const before = { dos: 'a\r\nb\r\n', blank: 'a\nb\n\n\n' }
  const after = { dos: 'a\r\nc\r\n', blank: 'a\nc\n\n\n', new: 'n\r\n' }
  const scratch = small(before)
  scratch.turn('one', () => scratch.write(after))
  const { stdout } = scratch.run(['diff'])
  const texts = () =>
    Object.fromEntries(Object.keys(after).map((name) => [name, scratch.exists(name) && scratch.read(name)]))
  for (const [way, left] of [
    [['-R'], { ...before, new: false }],
    [[], after],
  ] as const) {
    execFileSync('git', ['apply', ...way], { cwd: scratch.root, input: stdout })
    expect(texts()).toEqual(left)
  }
  if (hasPython) expect(onTerminal(scratch, ['diff'], {}).text).toContain('+c\\x0d\n')
})

test('of a rename whose old name is not UTF-8 the exact one is told', () => {
  const scratch = small({ f: '1\n' })
  const odd = Buffer.concat([Buffer.from(`${scratch.root}/x`), Buffer.from([0xff])])
  fs.writeFileSync(odd, 'one\ntwo\n')
  scratch.ckpt('snapshot')
  scratch.turn('one', () => fs.renameSync(odd, `${scratch.root}/new`))
  const { files } = scratch.ckpt('diff', '1')
  expect(files).toMatchObject([
    { path: 'new', oldPath: 'x\ufffd', oldPathBase64: Buffer.from([0x78, 0xff]).toString('base64') },
  ])
})

test("what is not committed, word by word, is as between two checkpoints; nobody's program is started for it", () => {
  const scratch = new Scratch().init({
    'a.txt': 'one two three\n\nfour\n',
    'crlf.txt': 'one\r\ntwo\r\n',
    'deleted.txt': '-- gone\n',
    'link.txt': 'a file\n',
    'moved.txt': Array.from({ length: 9 }, (_, i) => `line ${i}\n`).join(''),
    'open.txt': 'no end',
    'binary.bin': 'a\0b',
    'run.sh': 'true\n',
    '.gitattributes': '* diff=evil filter=evil\n',
  })
  const evil = `touch ${scratch.base}/ran; cat`
  for (const key of ['diff.external', 'diff.evil.textconv', 'diff.evil.command', 'filter.evil.clean'])
    scratch.git('config', key, evil)
  scratch.git('config', 'diff.suppressBlankEmpty', 'true')
  scratch.git('config', 'diff.noprefix', 'true')
  scratch.turn('change', () => {
    scratch.write({
      'a.txt': 'one 2 three\n\nfour\n@@ diff --git\n',
      'crlf.txt': 'one\r\n2\r\n',
      'open.txt': 'no end at\nall',
    })
    scratch.write({ 'binary.bin': 'a\0c', 'new.txt': '++ new\n' })
    scratch.remove('deleted.txt', 'link.txt')
    fs.symlinkSync('a.txt', scratch.at('link.txt'))
    fs.renameSync(scratch.at('moved.txt'), scratch.at('to.txt'))
    fs.appendFileSync(scratch.at('to.txt'), 'more\n')
    fs.chmodSync(scratch.at('run.sh'), 0o755)
  })
  // As they are in the user's own index: without their filter.
  scratch.git('-c', 'filter.evil.clean=', 'add', 'new.txt', 'to.txt')
  fs.rmSync(`${scratch.base}/ran`, { force: true })
  const words = (...args: string[]) => scratch.run(['diff', '--word', ...args])
  const { code, stdout, stderr } = words('--uncommitted')
  expect([code, stderr]).toEqual([0, ''])
  expect(stdout).toContain('one [-two-]{+2+} three')
  expect(stdout).toContain('no end{+ at')
  expect(stdout).toBe(words().stdout)
  expect(words('--uncommitted', '--', 'open.txt').stdout).toBe('open.txt\nno end{+ at\nall+}\n')
  expect(scratch.ckpt('diff', '--uncommitted', '--word').patch).toBe(scratch.ckpt('diff', '--uncommitted').patch)
  expect(fs.existsSync(`${scratch.base}/ran`)).toBe(false)
  scratch.git('-c', 'filter.evil.clean=', 'commit', '-q', '-a', '-m', 'done')
  expect(words('--uncommitted').stdout).toBe('')
})

test('what is not committed, word by word, of lines whose ends git turns round', () => {
  const scratch = new Scratch().init({ 'a.txt': 'one\ntwo\n', '.gitattributes': 'a.txt text eol=crlf\n' })
  scratch.write({ 'a.txt': 'one\r\n2\r\n' })
  expect(scratch.run(['diff', '--uncommitted', '--word']).stdout).toBe('a.txt\none\n[-two-]{+2+}\n\n')
})

test('word by word, too, a file that was renamed has both its names, and one without other lines says what changed', () => {
  const many = Array.from({ length: 9 }, (_, n) => `line ${n}\n`).join('')
  const scratch = new Scratch().init({ 'a.txt': many, 'b.txt': `${many}b\n`, 'run.sh': 'echo\n' })
  scratch.turn('one', () => {
    scratch.remove('a.txt', 'b.txt')
    scratch.write({ 'c.txt': many, 'd.txt': `${many}d\n`, 'empty.txt': '' })
    fs.chmodSync(scratch.at('run.sh'), 0o755)
  })
  const { stdout } = scratch.run(['diff', '1', '--word'])
  expect(stdout).toBe('a.txt → c.txt  renamed\nb.txt → d.txt\nline 8\n[-b-]{+d+}\n\nempty.txt  added\nrun.sh  mode\n')
  expect(scratch.run(['diff', '--uncommitted', '--word']).stdout).toContain('run.sh  mode\n')
})

test('a whole session is told with its checkpoints, above a patch that git still applies', () => {
  const scratch = new Scratch().init()
  scratch.turn('one', () => {
    scratch.write({ 'a.txt': 'two\n' })
    scratch.ckpt('mark', 'step', '--session', 's', '--tool', 'edit')
  })
  scratch.turn('two', () => scratch.write({ 'b.txt': 'b\n' }))
  scratch.turn('undone', () => scratch.write({ 'b.txt': 'c\n' }))
  scratch.ckpt('undo')
  scratch.turn('elsewhere', () => scratch.write({ 'c.txt': 'c\n' }), 'other')
  const { checkpoints, from, to, files } = scratch.ckpt('diff', '--session', 's')
  expect(files.map(({ path }: Json) => path)).toEqual(['a.txt', 'b.txt'])
  expect(checkpoints.map(({ kind, turn, step }: Json) => [kind, turn, step])).toEqual([
    ['before', 1, null],
    ['step', 1, '1.1'],
    ['after', 1, null],
    ['before', 2, null],
    ['after', 2, null],
  ])
  expect([checkpoints[0].id, checkpoints[4].id]).toEqual([from, to])
  expect(checkpoints[1]).toEqual(scratch.ckpt('show', checkpoints[1].id).checkpoint)
  const { stdout } = scratch.run(['diff', '--session', 's'])
  expect(stdout.split('\n').slice(0, 8)).toEqual([
    '5 checkpoints:',
    ...['before turn 1', 'step 1.1', 'after turn 1', 'before turn 2', 'after turn 2'].map((what, i) =>
      expect.stringMatching(new RegExp(`^  ${checkpoints[i].id.slice(0, 10)}  ${what} +[-0-9: ]+$`)),
    ),
    '',
    'diff --git a/a.txt b/a.txt',
  ])
  scratch.remove('b.txt', 'c.txt')
  scratch.write({ 'a.txt': 'one\n' })
  execFileSync('git', ['apply'], { cwd: scratch.root, input: stdout })
  expect([scratch.read('a.txt'), scratch.read('b.txt')]).toEqual(['two\n', 'b\n'])
  // What scripts read by lines is as it was, and what is no whole session names none.
  expect(scratch.run(['diff', '--session', 's', '--name-only']).stdout).toBe('a.txt\nb.txt\n')
  expect(scratch.run(['diff', '--session', 's', '--stat']).stdout).toMatch(/^ {2}modified +a\.txt/)
  for (const args of [['1', '--session', 's'], ['1:before', '2:after', '--session', 's'], []])
    expect(scratch.ckpt('diff', ...args)).not.toHaveProperty('checkpoints')
})

test('the two ends of a step are told apart among the checkpoints of a session', () => {
  const scratch = new Scratch().init()
  scratch.turn('one', () => {
    scratch.ckpt('mark', 'step', '--start', '--call-id', 'c', '--session', 's')
    scratch.write({ 'a.txt': 'two\n' })
    scratch.ckpt('mark', 'step', '--call-id', 'c', '--session', 's')
  })
  const { stdout } = scratch.run(['diff', '--session', 's'])
  const named = /^ {2}[0-9a-f]{10} {2}(.*?) {2}/gm
  expect([...stdout.matchAll(named)].map(([, name]) => name!.trim())).toEqual([
    'before turn 1',
    'start of step 1.1',
    'step 1.1',
    'after turn 1',
  ])
})

test('the patch of what is not committed is a plain one, whatever a person likes to see, from below too', () => {
  const scratch = new Scratch().init({ 'a.txt': 'one\n', 'sub/b.txt': 'one\n' })
  scratch.write({ 'a.txt': 'two\n', 'sub/b.txt': 'two\n' })
  const patch = () =>
    JSON.parse(scratch.run(['diff', '--uncommitted', '--json'], { cwd: scratch.at('sub') }).stdout).patch
  const plain = patch()
  expect(plain).toMatch(/^diff --git a\/a\.txt b\/a\.txt\n[\s\S]*\ndiff --git a\/sub\/b\.txt b\/sub\/b\.txt\n/)
  for (const [key, value] of Object.entries({
    'color.ui': 'always',
    'diff.noprefix': 'true',
    'diff.mnemonicPrefix': 'true',
    'diff.relative': 'true',
  }))
    scratch.git('config', key, value)
  expect(patch()).toBe(plain)
})

test('--uncommitted calls a mode a mode, as a diff of checkpoints does', () => {
  const scratch = new Scratch().init({ 'a.txt': 'one\n', 'b.txt': 'one\n' })
  fs.chmodSync(scratch.at('a.txt'), 0o755)
  fs.chmodSync(scratch.at('b.txt'), 0o755)
  scratch.write({ 'b.txt': 'two\n' })
  const statuses = scratch.ckpt('diff', '--uncommitted').files.map(({ path, status }: Json) => [path, status])
  expect(statuses).toEqual([
    ['a.txt', 'mode'],
    ['b.txt', 'modified'],
  ])
})

test('a turn that has no end yet is told so, with the way to see all of it', () => {
  const scratch = new Scratch().init({ 'a.txt': 'one\n' })
  scratch.turn('before', () => scratch.write({ 'b.txt': 'b\n' }))
  scratch.ckpt('mark', 'prompt', '--session', 's')
  scratch.write({ 'a.txt': 'two\n' })
  const said =
    'Turn 2 is running: this is as far as its last checkpoint. All of it: ckpt diff 2:before worktree --session s'
  for (const args of [['diff'], ['diff', '2'], ['show', '2'], ['diff', '1', '2']])
    expect([args, scratch.ckpt(...args).warnings]).toEqual([args, [said]])
  expect(scratch.ckpt('diff', '2:before', 'worktree', '--session', 's')).toMatchObject({
    files: [{ path: 'a.txt' }],
    warnings: [],
  })
  for (const args of [
    ['diff', '1'],
    ['show', '1'],
    ['diff', '1', '2:before'],
  ])
    expect([args, scratch.ckpt(...args).warnings]).toEqual([args, []])
  scratch.ckpt('mark', 'stop', '--session', 's')
  expect(scratch.ckpt('diff').warnings).toEqual([])
})
