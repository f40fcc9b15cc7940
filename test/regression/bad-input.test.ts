/** Bad input: wrong usage has its own exit code and word; damage is named, never worked around; a full disk loses nothing. */
import { execFileSync, spawnSync } from 'node:child_process'
import fs from 'node:fs'
import path from 'node:path'
import { expect, onTestFinished, test } from 'vitest'
import { killedAt } from '../support/amid.ts'
import { isRoot, type Json, OTHER_USER, PROGRAM, Scratch } from '../support/scratch.ts'
import { corruptObject, inStore, ownDirectory, removeObject, storeOf } from '../support/store-surgery.ts'

test('bad input: where standard output cannot be written that is said in a line, and what was done is done', () => {
  const scratch = new Scratch().init()
  scratch.turn('work', () => scratch.write({ 'a.txt': 'two\n' }))
  const run = (...args: string[]) => {
    const full = fs.openSync('/dev/full', 'w')
    try {
      const stdio = ['ignore', full, 'pipe'] as const
      return spawnSync(process.execPath, [PROGRAM, ...args], {
        cwd: scratch.root,
        env: scratch.vars,
        stdio: [...stdio],
        encoding: 'utf8',
      })
    } finally {
      fs.closeSync(full)
    }
  }
  for (const args of [['list'], ['undo', '--json']]) {
    const { status, stderr } = run(...args)
    expect([status, stderr.trim().split('\n')]).toEqual([
      1,
      [expect.stringMatching(/^ckpt: What was done could not be said: ENOSPC/)],
    ])
  }
  expect(scratch.read('a.txt')).toBe('one\n')
  expect(run('hook', 'cursor', 'beforeSubmitPrompt').status).toBe(0)
})

test('bad input: wrong commands, flags and values are usage errors, and change nothing', () => {
  const scratch = new Scratch().init()
  scratch.turn('work', () => scratch.write({ 'a.txt': 'two\n' }))
  const disk = scratch.manifest()
  const refs = inStore(scratch, 'for-each-ref')
  const said = new Set<string>() // prose is looked at once for each word
  for (const [code, error, ...args] of [
    [2, 'USAGE', 'frobnicate'],
    [2, 'USAGE', 'frobnicate', '--help'],
    [2, 'USAGE', 'undo', '--frobnicate'],
    [2, 'USAGE', 'mark', 'prompt', '--no-session'], // no session called "false"
    [2, 'USAGE', 'snapshot', '--no-message'],
    [2, 'USAGE', 'list', '--no-cwd'],
    [2, 'USAGE', 'commit', '-m', '  '],
    [2, 'USAGE', 'undo', '--dry-run=yes'], // never an undo in earnest
    [2, 'USAGE', 'undo', '--dry-run='],
    [2, 'USAGE', 'undo', '--dry-run.x'],
    [2, 'USAGE', 'prune', '--dry-run.x', '--keep', '1'],
    [2, 'USAGE', 'mark', 'prompt', '--session.x', 's'], // no session called "[object Object]"
    [2, 'USAGE', 'commit', '--message.x', 'foo'],
    [2, 'USAGE', 'init', '--agent.x', 'claude'],
    [2, 'USAGE', 'undo', '--no-dry-run=1'],
    [2, 'USAGE', 'prune', '--dry-run=TRUE', '--keep', '1'],
    [2, 'USAGE', 'undo', '--quiet=1'],
    [2, 'USAGE', 'undo', '--turns', '0'],
    [2, 'USAGE', 'undo', '--turns', '-1'],
    [2, 'USAGE', 'undo', '--turns', '1.5'],
    [2, 'USAGE', 'undo', '--turns', 'all'],
    [2, 'USAGE', 'undo', '--turns', '1', '--turns', '2'],
    [2, 'USAGE', 'undo', '--turns', '1', '--to', '1'],
    [2, 'USAGE', 'undo', '--step', '--only', '1'],
    [2, 'USAGE', 'undo', '--merge', '--force'],
    [2, 'USAGE', 'undo', '--to', 'yesterday'],
    [2, 'USAGE', 'undo', '--to', 'worktree'],
    [2, 'USAGE', 'undo', '--to', '../x'],
    [2, 'USAGE', 'undo', '--', '../outside.txt'],
    [2, 'USAGE', 'undo', '--', ''], // never the whole worktree
    [2, 'USAGE', 'undo', '--', 'a.txt', ''],
    [2, 'USAGE', 'restore', '1:before', '--force', '--', ''],
    [2, 'USAGE', 'diff', '--', ''],
    [2, 'USAGE', 'diff', '1', '--uncommitted'],
    [2, 'USAGE', 'blame', ''],
    [2, 'USAGE', 'forget', ''],
    [2, 'USAGE', 'forget', '.'],
    [2, 'USAGE', 'mark', 'step', '--session', 's', '--path', ''],
    [2, 'USAGE', 'redo', '--', 'a.txt'], // takes no paths: never everything instead
    [2, 'USAGE', 'redo', '--', ''],
    [2, 'USAGE', 'undo', '--', '/etc/passwd'],
    [2, 'USAGE', 'redo', '--all', '--turns', '2'],
    [2, 'USAGE', 'list', '-n', '0'],
    [2, 'USAGE', 'show'],
    [2, 'USAGE', 'show', '1', '2'],
    [2, 'USAGE', 'run'],
    [2, 'USAGE', 'apply', 'junk'],
    [2, 'USAGE', 'apply', Buffer.from('{"op":"undo"}').toString('base64url')],
    [2, 'USAGE', 'mark', 'prompt'],
    [2, 'BAD_MARKER', 'mark', 'frobnicate', '--session', 's'],
    [2, 'BAD_MARKER', 'mark', 'stop', '--session', 's', '--text', 'x'],
    [2, 'BAD_MARKER', 'mark', 'prompt', '--session', 's', '--tool', 'x'],
    [2, 'USAGE', 'mark', 'prompt', '--session', 's', '--kind', 'poem'],
    [2, 'USAGE', 'mark', 'stop', '--session', 's', '--status', 'fine'],
    [3, 'NOT_FOUND', 'mark', 'stop', '--session', 'unknown'],
    [3, 'NOT_FOUND', 'mark', 'step', '--session', 'unknown'],
    [3, 'NOT_FOUND', 'undo', '--to', '99'],
    [3, 'NOT_FOUND', 'undo', '--only', '99'],
    [3, 'NOT_FOUND', 'undo', '--to', '1.7'],
    [3, 'NOT_FOUND', 'show', '99'],
    [3, 'NOT_FOUND', 'show', 'abcd'],
    [3, 'NOT_FOUND', 'show', '1.7'],
    [3, 'NOT_FOUND', 'show', '99:after'],
    [3, 'NOT_FOUND', 'show', '1', '--session', 'unknown'],
    [3, 'NOT_FOUND', 'restore', 'deadbeef'],
    [3, 'NOT_FOUND', 'restore', '1:before', '--', 'never-there.txt'],
    [3, 'NOT_FOUND', 'diff', '1', '99'],
    [2, 'USAGE', 'undo', '--cwd', ''], // never where it was typed instead
    [2, 'USAGE', 'undo', '--cwd', '.', '--cwd', '.'],
    [2, 'USAGE', '--cwd', '.', '--cwd=.', 'undo'],
    [9, 'BAD_ROOT', 'status', '--cwd', '/nonexistent'],
    [9, 'BAD_ROOT', 'status', '--cwd', scratch.at('a.txt')],
  ] as const) {
    const { code: exit, document } = scratch.tryCkpt(...args)
    expect([args.join(' '), exit, document.ok, document.error?.code]).toEqual([args.join(' '), code, false, error])
    if (said.has(error)) continue
    said.add(error)
    const prose = scratch.run([...args])
    expect([args, prose.code, prose.stdout]).toEqual([args, code, ''])
    expect(prose.stderr).toMatch(/^ckpt: /)
  }
  expect(scratch.manifest()).toEqual(disk)
  expect(inStore(scratch, 'for-each-ref')).toBe(refs)
})

test.each([
  ['push', ''],
  ['pull', ''],
  ['export', ''],
  ['import', ''],
  ['commit', '-m', ''],
  ['undo', '--only', '1.1'],
  ['undo', '--to', 'worktree'],
])('bad input: %s %j is wrong wherever it is said, and comes first', (...args) => {
  const [plain, amid] = [new Scratch(), new Scratch().init()]
  expect(plain.tryCkpt(...args).document.error.code).toBe('USAGE')
  amid.turn('work', () => amid.write({ 'a.txt': 'two\n' }))
  amid.ckpt('mark', 'prompt', '--session', 's')
  fs.writeFileSync(amid.at('.git/MERGE_HEAD'), amid.git('rev-parse', 'HEAD'))
  expect(amid.tryCkpt(...args).document.error.code).toBe('USAGE')
})

test.each([
  ['undo', null],
  ['undo', { mode: 'refuse', turns: 'x' }],
  ['undo', { mode: 'refuse', turns: -1 }],
  ['undo', { mode: 'refuse', paths: 5 }],
  ['undo', { mode: 'refuse', to: ['1'] }],
  ['undo', { mode: 'all' }],
  ['undo', { mode: 'refuse', ofAnotherVersion: true }],
  ['redo', { mode: 'refuse', all: 'yes' }],
  ['restore', { force: true }],
  ['restore', { id: '1:before', session: 7 }],
  ['prune', { id: '1:before' }],
])('bad input: what no dry run makes is no token: %s of %j', (op, options) => {
  const scratch = new Scratch().init({ 'a.txt': 'one\n' })
  const token = Buffer.from(JSON.stringify({ v: 1, op, options, hash: 'x' })).toString('base64url')
  const { code, document } = scratch.tryCkpt('apply', token)
  expect([code, document.error.code]).toEqual([2, 'USAGE'])
  expect(document.error.message).toBe('That is not a token of a dry run. Nothing was changed.')
})

test.each([
  ['undo', '--dry-run', '--', '.'],
  ['restore', '1:before', '--dry-run', '--', '.'],
  ['restore', '1:before', '--exact', '--dry-run', '--', '.'],
])('a token may be of the worktree itself, by its name: %s %s', (...args) => {
  const scratch = new Scratch().init({ 'a.txt': 'one\n' })
  scratch.turn('one', () => scratch.write({ 'a.txt': 'two\n' }))
  scratch.ckpt('apply', scratch.ckpt(...args).token)
  expect(scratch.read('a.txt')).toBe('one\n')
})

test('the worktree itself is a path that each checkpoint has', () => {
  const scratch = new Scratch().init({ 'a.txt': 'one\n', 'sub/b.txt': 'one\n' })
  scratch.turn('one', () => scratch.write({ 'a.txt': 'two\n' }))
  for (const [cwd, name] of [
    [scratch.root, '.'],
    [scratch.root, scratch.root],
    [scratch.at('sub'), '..'],
  ] as const) {
    const { code, stdout } = scratch.run(['restore', '1', '--json', '--', name], { cwd })
    expect([name, code, JSON.parse(stdout).files]).toEqual([name, 0, []])
  }
})

test('bad input: where several refusals apply, wrong usage comes first, and a pending boundary before what is not there', () => {
  const codeOf = (scratch: Scratch, line: string) => {
    const { code, document } = scratch.tryCkpt(...line.split(' '))
    return [line, code, document.error.code]
  }
  const wrong = ['undo --to zz', 'undo --only zz', 'restore zz', 'switch zz', 'diff zz yy']
  const plain = new Scratch('plain')
  for (const line of [...wrong, 'show zz']) expect(codeOf(plain, line)).toEqual([line, 2, 'USAGE'])
  expect(codeOf(plain, 'show 1')).toEqual(['show 1', 9, 'NOT_INITIALIZED'])

  const scratch = new Scratch().init()
  scratch.turn('one', () => scratch.write({ 'a.txt': 'two\n' }))
  scratch.ckpt('undo')
  for (const line of wrong) expect(codeOf(scratch, line)).toEqual([line, 2, 'USAGE'])
  for (const line of ['undo --only 99', 'undo --only 1 --session nobody', 'switch 99', 'switch 99 --session s'])
    expect(codeOf(scratch, line)).toEqual([line, 5, 'BOUNDARY_PENDING'])
  expect(codeOf(scratch, 'commit --session nope')).toEqual(['commit --session nope', 5, 'BOUNDARY_PENDING'])
  fs.writeFileSync(scratch.at('.git/MERGE_HEAD'), scratch.git('rev-parse', 'HEAD'))
  for (const line of wrong) expect(codeOf(scratch, line)).toEqual([line, 2, 'USAGE'])
  expect(codeOf(scratch, 'restore 1')).toEqual(['restore 1', 8, 'GIT_BUSY'])
  scratch.remove('.git/MERGE_HEAD')
  scratch.ckpt('accept')
  expect(codeOf(scratch, 'commit --session nope')).toEqual(['commit --session nope', 3, 'NOT_FOUND'])
})

test('bad input: a prefix that fits several comes before all that is in the way', () => {
  const scratch = new Scratch().init()
  for (const session of ['chat-1', 'chat-2']) scratch.turn('x', () => scratch.write({ [session]: '1\n' }), session)
  const of = ['--session', 'chat']
  const all = [
    ['undo', ...of],
    ['undo', '--only', '1', ...of],
    ['undo', ...of, '--', 'a.txt'],
    ['redo', ...of],
    ['accept', ...of],
    ['commit', ...of],
    ['restore', '1', ...of],
    ['switch', '1', ...of],
  ]
  const codes = () => all.map((args) => [args[0], scratch.tryCkpt(...args).code])
  const expected = all.map(([command]) => [command, 2])
  scratch.ckpt('undo', '--session', 'chat-1')
  expect(codes()).toEqual(expected)
  fs.writeFileSync(scratch.at('.git/MERGE_HEAD'), scratch.git('rev-parse', 'HEAD'))
  expect(codes()).toEqual(expected)
})

test('bad input: a checkpoint’s prefix that fits several comes before what git is in the middle of', () => {
  const scratch = new Scratch().init()
  scratch.turn('x', () => scratch.write({ 'a.txt': '1\n' }))
  const one = inStore(scratch, 'cat-file', 'commit', scratch.ckpt('list').turns[0].after)
  const files = Array.from({ length: 2000 }, (_, n) => `${scratch.base}/${n}.commit`)
  for (const [n, file] of files.entries()) fs.writeFileSync(file, one.replace(/Ckpt-Seq: \d+/, `Ckpt-Seq: ${n + 9}`))
  const ids = inStore(scratch, 'hash-object', '-w', '-t', 'commit', ...files)
    .trim()
    .split('\n')
  const counts = new Map<string, number>()
  for (const id of ids) counts.set(id.slice(0, 4), (counts.get(id.slice(0, 4)) ?? 0) + 1)
  const [several] = [...counts].find(([prefix, count]) => count > 1 && /[a-f]/.test(prefix))!
  fs.writeFileSync(scratch.at('.git/MERGE_HEAD'), scratch.git('rev-parse', 'HEAD'))
  for (const line of [
    ['undo', '--to', several],
    ['undo', '--only', several],
    ['restore', several],
    ['switch', several],
  ]) {
    const { code, document } = scratch.tryCkpt(...line)
    expect([line, code, document.error.message]).toEqual([
      line,
      2,
      expect.stringContaining(`${several} could be any of`),
    ])
  }
})

test('bad input: the user’s own configuration, wrong, comes before a root that is none', () => {
  const scratch = new Scratch('plain')
  const bare = scratch.at('../bare.git')
  execFileSync('git', ['init', '-q', '--bare', bare], { env: scratch.vars })
  const codeOf = (...args: string[]) => scratch.tryCkpt('--cwd', bare, ...args).document.error.code
  const lines = [['status'], ['list'], ['undo'], ['mark', 'prompt', '--session', 's'], ['init']]
  expect(lines.map((line) => codeOf(...line))).toEqual(lines.map(() => 'BAD_ROOT'))
  scratch.write({ '../home/.config/ckpt/.checkpointrc': '{"foo":1}' })
  expect(lines.map((line) => codeOf(...line))).toEqual(lines.map(() => 'CONFIG'))
})

test('bad input: what is wrong whatever the root comes before a root that is none', () => {
  const scratch = new Scratch('plain')
  const bare = scratch.at('../bare.git')
  execFileSync('git', ['init', '-q', '--bare', bare], { env: scratch.vars })
  for (const line of [
    ['agent', 'install', 'foo'],
    ['agent', 'status', 'foo'],
    ['init', '--agent', 'foo'],
    ['show', 'zz'],
    ['show', 'worktree'],
    ['undo', '--', ''],
    ['blame', ''],
    ['forget', ''],
    ['mark', 'step', '--session', 's', '--path', ''],
  ]) {
    const { code, document } = scratch.tryCkpt('--cwd', bare, ...line)
    expect([line, code, document.error.code]).toEqual([line, 2, 'USAGE'])
  }
})

test('an id serves as git writes it, and undo --only takes a turn by one of its checkpoints', () => {
  const scratch = new Scratch().init()
  const written = () => ['one.txt', 'two.txt', 'three.txt'].map((name) => scratch.exists(name))
  scratch.turn('one', () => scratch.write({ 'one.txt': 'a\n' }))
  scratch.ckpt('mark', 'prompt', '--session', 's')
  scratch.write({ 'two.txt': 'b\n' })
  const step = scratch.ckpt('mark', 'step', '--session', 's').checkpoint
  scratch.ckpt('mark', 'stop', '--session', 's')
  scratch.turn('three', () => scratch.write({ 'three.txt': 'c\n' }))
  const [, two, one] = scratch.ckpt('list').turns
  expect(scratch.ckpt('show', one.before.toUpperCase()).checkpoint.id).toBe(one.before)
  scratch.ckpt('undo', '--only', one.after.slice(0, 12), '--dry-run')
  scratch.ckpt('undo', '--only', two.before)
  expect(written()).toEqual([true, false, true])
  scratch.ckpt('undo', '--only', '1:after')
  expect(written()).toEqual([false, false, true])
  expect(scratch.tryCkpt('undo', '--only', step.id).document.error).toMatchObject({ code: 'USAGE' })
  const manual = scratch.ckpt('snapshot').checkpoint.id
  expect(scratch.tryCkpt('undo', '--only', manual, '--session', 's').document.error).toMatchObject({
    code: 'NOT_FOUND',
    message: expect.stringContaining('is of no turn of session s'),
  })
})

test('bad input: an ambiguous or unknown session is refused, an exact one wins over a prefix', () => {
  const scratch = new Scratch().init()
  for (const session of ['chat', 'chat-1', 'chat-2']) scratch.turn('x', () => undefined, session)
  expect(scratch.ckpt('list', '--session', 'chat').session).toBe('chat')
  expect(scratch.ckpt('list', '--session', 'chat-2').session).toBe('chat-2')
  for (const wrong of ['chat-', 'nobody', 'CHAT']) {
    const { code, document } = scratch.tryCkpt('undo', '--session', wrong)
    expect([wrong, document.ok, [2, 3].includes(code)]).toEqual([wrong, false, true])
  }
})

test('bad input: run gives back the exit status of its command, or 128 and its signal', () => {
  const scratch = new Scratch().init()
  expect(scratch.run(['run', '--', 'sh', '-c', 'exit 7']).code).toBe(7)
  expect(scratch.run(['run', '--', 'sh', '-c', 'kill -TERM $$']).code).toBe(143)
  expect(scratch.run(['run', '--', '/nonexistent/command']).code).toBe(127)
  expect(scratch.run(['run', '--', './a.txt/below']).code).toBe(126)
  expect(scratch.run(['run', '--', '']).code).toBe(2)
  const { turns } = scratch.ckpt('list', '--session', 'run')
  expect(turns.map((turn: { status: string }) => turn.status).filter((status: string) => status === 'running')).toEqual(
    [],
  )
})

test('bad input: a place for the store that is none is bad configuration, and nothing is made', () => {
  const scratch = new Scratch().init()
  fs.writeFileSync(path.join(scratch.base, 'file'), '')
  const unusable = ['/dev/null', path.join(scratch.base, 'file'), '/proc/none', '/proc/self/none/deep']
  for (const location of ['~/st', './st', 'st', '', ...unusable]) {
    scratch.write({ '.checkpointrc': JSON.stringify({ store: { location } }) })
    scratch.git('add', '-A')
    scratch.git('commit', '-q', '-m', 'configured')
    const { code, document } = scratch.tryCkpt('mark', 'prompt', '--session', 's')
    expect([location, code, document.error.code]).toEqual([location, 2, 'CONFIG'])
    expect(document.error.message).toMatch(/"store\.location".* must be "git" or an absolute directory/)
    expect(fs.readdirSync(scratch.root).sort()).toEqual(['.checkpointrc', '.git', 'a.txt'])
  }
})

test('bad input: an old id of a checkpoint that was pruned since is not found, and no damage', () => {
  const scratch = new Scratch().init({ 'a.txt': 'one\n', 'secret.txt': 'secret\n' })
  for (const n of [1, 2]) scratch.turn(`work ${n}`, () => scratch.write({ 'a.txt': `${n}\n` }))
  const [gone, kept] = ['~3', ''].map((back) => inStore(scratch, 'rev-parse', `refs/ckpt/@main/s/live${back}`))
  const [second, first] = scratch.ckpt('list').turns
  scratch.ckpt('forget', 'secret.txt')
  expect(scratch.ckpt('show', gone!).checkpoint.turn).toBe(1)
  // So does a turn's own id, which comes of its first checkpoint's.
  expect(scratch.ckpt('show', first.id).turn).toMatchObject({ n: 1, prompt: 'work 1' })
  expect(scratch.ckpt('undo', '--to', second.id).turns).toEqual([2])
  expect(scratch.ckpt('redo').turns).toEqual([2])
  scratch.ckpt('prune', '--keep', '1')
  const { code, document } = scratch.tryCkpt('show', gone!)
  expect([code, document.error.code]).toEqual([3, 'NOT_FOUND'])
  expect(scratch.ckpt('show', kept!).checkpoint.turn).toBe(2)
  expect(scratch.ckpt('verify').problems).toEqual([])
})

test('bad input: a journal cut short is damage; doctor --fix sets it aside', () => {
  const scratch = new Scratch().init()
  scratch.turn('work', () => scratch.write({ 'a.txt': 'two\n' }))
  const disk = scratch.manifest()
  const journal = path.join(ownDirectory(scratch), 'journal.json')
  for (const content of ['', '{"version":1', `${'0'.repeat(64)}\n{"version":1,"op":"undo","entries":[]}\n`]) {
    fs.writeFileSync(journal, content)
    for (const command of [['snapshot'], ['list'], ['undo'], ['mark', 'prompt', '--session', 's']]) {
      const { code, document } = scratch.tryCkpt(...command)
      expect([command, code, document.error.code]).toEqual([command, 7, 'DAMAGED'])
      expect(document.error.hints.join()).toContain('doctor --fix')
    }
    expect(scratch.tryCkpt('verify').code).toBe(7)
    expect(scratch.tryCkpt('doctor').document.findings).toContainEqual(
      expect.objectContaining({ name: 'journal', ok: false }),
    )
    expect(fs.existsSync(journal)).toBe(true)
    scratch.ckpt('doctor', '--fix')
    expect(fs.existsSync(journal)).toBe(false)
    expect(scratch.manifest()).toEqual(disk)
  }
  scratch.ckpt('undo')
  expect(scratch.read('a.txt')).toBe('one\n')
})

test('bad input: where the journal of a killed undo is damaged too, what was there before it is kept and named', () => {
  const scratch = new Scratch().init()
  scratch.turn('work', () => scratch.write({ 'a.txt': 'two\n', 'b.txt': 'new\n' }))
  scratch.write({ 'a.txt': 'MINE\n' })
  killedAt(scratch, ['renameSync', '/a.txt'], 'undo', '--force')
  expect(scratch.read('a.txt')).toBe('one\n')
  const journal = path.join(ownDirectory(scratch), 'journal.json')
  fs.writeFileSync(journal, fs.readFileSync(journal, 'utf8').replace('undo', 'undone'))
  const { findings } = scratch.ckpt('doctor', '--fix')
  const { detail } = findings.find(({ name }: { name: string }) => name === 'journal')
  scratch.ckpt('prune')
  scratch.ckpt(.../ckpt (restore [0-9a-f]+ --exact --force)$/.exec(detail)![1]!.split(' '))
  expect([scratch.read('a.txt'), scratch.read('b.txt')]).toEqual(['MINE\n', 'new\n'])
  expect(scratch.ckpt('verify').problems).toEqual([])
})

test('bad input: a ref cut short is damage; the session is not begun anew over it', () => {
  const scratch = new Scratch().init()
  scratch.turn('work', () => scratch.write({ 'a.txt': 'two\n' }))
  const ref = path.join(storeOf(scratch), 'refs/ckpt/@main/s/live')
  const whole = fs.readFileSync(ref)
  const disk = scratch.manifest()
  for (const content of ['', whole.subarray(0, 20), `${'0'.repeat(39)}1\n`]) {
    fs.writeFileSync(ref, content)
    for (const command of [['undo'], ['list'], ['mark', 'prompt', '--session', 's'], ['verify']]) {
      const { code, document } = scratch.tryCkpt(...command)
      expect([String(content), command, code, document.ok]).toEqual([String(content), command, 7, false])
    }
  }
  expect(scratch.manifest()).toEqual(disk)
  fs.writeFileSync(ref, whole)
  scratch.ckpt('undo')
  expect(scratch.read('a.txt')).toBe('one\n')
})

test.each([
  ['worktrees/@main/clock', 'mark prompt --session s'],
  ['worktrees/@main/tips', 'doctor --fix'],
  ['store.git/refs/ckpt/@main/s/live', 'doctor --fix'],
])('bad input: a directory where %s belongs is damage, and mended once it is moved away', (file, command) => {
  const scratch = new Scratch().init()
  scratch.turn('one', () => scratch.write({ 'a.txt': 'two\n' }))
  const at = scratch.at(`.git/ckpt/${file}`)
  fs.renameSync(at, `${at}.before`)
  fs.mkdirSync(`${at}/d`, { recursive: true })
  const { code, document } = scratch.tryCkpt(...command.split(' '))
  expect([code, document.error.code, document.error.hints]).toEqual([7, 'DAMAGED', ['move it away, then: ckpt doctor']])
  expect(document.error.message).toContain(`.git/ckpt/${file}`)
  fs.renameSync(at, `${scratch.base}/away`)
  expect(scratch.tryCkpt('doctor', '--fix').code).toBe(0)
  scratch.ckpt('undo', '--interrupt')
  expect(scratch.read('a.txt')).toBe('one\n')
  expect(scratch.ckpt('verify').problems).toEqual([])
})

test('bad input: a directory with the name of a marker holds up none that waits', () => {
  const scratch = new Scratch().init()
  scratch.turn('one', () => scratch.write({ 'a.txt': 'two\n' }))
  const marker = { event: 'prompt', session: 's', text: 'two' }
  const waiting = { version: 1, id: 'waited', client: 'x', time: new Date().toISOString(), marker }
  const at = '.git/ckpt/worktrees/@main/markers'
  scratch.write({ [`${at}/000.json/inside`]: '', [`${at}/004.json`]: JSON.stringify(waiting) })
  expect(scratch.ckpt('list').turns.map(({ prompt }: Json) => prompt)).toEqual(['two', 'one'])
  expect(scratch.ckpt('list').warnings).toEqual([])
})

test('bad input: a damaged ref and a marker that waits: each command says so, and hooks do not fail', () => {
  const scratch = new Scratch().init()
  scratch.turn('work', () => scratch.write({ 'a.txt': 'two\n' }))
  const ref = path.join(storeOf(scratch), 'refs/ckpt/@main/@meta')
  const whole = fs.readFileSync(ref)
  fs.writeFileSync(ref, '')
  const input = JSON.stringify({ session_id: 'c', hook_event_name: 'UserPromptSubmit', prompt: 'x', cwd: scratch.root })
  for (let i = 0; i < 2; i++)
    expect(scratch.runApart(['hook', 'claude'], { input })).toEqual({ code: 0, stdout: '', stderr: '' })
  for (const command of [['list'], ['status'], ['undo'], ['diff'], ['mark', 'prompt', '--session', 's']]) {
    const { code, stdout, stderr } = scratch.runApart([...command, '--json'])
    expect([command, code, stderr]).toEqual([command, 7, ''])
    expect(JSON.parse(stdout).error.code).toBe('DAMAGED')
  }
  fs.writeFileSync(ref, whole)
  const sessions = scratch.ckpt('list', '--sessions').sessions as { id: string; turns: number }[]
  expect(sessions.map(({ id, turns }) => [id, turns])).toEqual([
    ['c', 2],
    ['s', 1],
  ])
})

test('bad input: missing or corrupted commits, trees and coverage lists are damage for each command that needs them', () => {
  for (const [damage, rev] of [
    [removeObject, ''],
    [corruptObject, ''],
    [removeObject, '^{tree}'],
    [corruptObject, '^{tree}'],
  ] as const) {
    const scratch = new Scratch().init()
    scratch.turn('work', () => scratch.write({ 'a.txt': 'two\n' }))
    const [turn] = scratch.ckpt('list').turns
    const disk = scratch.manifest()
    damage(scratch, `${turn.before}${rev}`)
    for (const command of [['undo'], ['diff', '1'], ['restore', '1:before'], ['verify']]) {
      const { code } = scratch.tryCkpt(...command)
      expect([rev, command, code]).toEqual([rev, command, 7])
    }
    expect(scratch.manifest()).toEqual(disk)
  }
})

test('bad input: what the newest checkpoint lost is read from the disk again, and recording goes on', () => {
  for (const [damage, rev] of [
    [removeObject, '^{tree}'],
    [corruptObject, '^{tree}'],
    [removeObject, ':d'],
    [corruptObject, ':d'],
    [removeObject, ':d/b.txt'],
  ] as const) {
    const scratch = new Scratch().init({ 'a.txt': 'one\n', 'd/b.txt': 'b\n' })
    scratch.turn('work', () => scratch.write({ 'a.txt': 'two\n', 'd/b.txt': 'changed\n' }))
    damage(scratch, `${scratch.ckpt('list').turns[0].after}${rev}`)
    fs.rmSync(scratch.at('.git/ckpt/worktrees/@main/cache.json')) // else it may rest on what is in it
    const disk = scratch.manifest()
    scratch.turn('more', () => scratch.write({ 'a.txt': 'three\n' }))
    expect([rev, scratch.ckpt('verify').problems]).toEqual([rev, []])
    scratch.ckpt('undo')
    expect(scratch.manifest()).toEqual(disk)
  }
})

test.skipIf(!isRoot)(
  'bad input: a store that this user cannot write refuses to record, and still shows what is there',
  () => {
    const scratch = new Scratch().init()
    scratch.turn('work', () => scratch.write({ 'a.txt': 'two\n' }))
    const uid = scratch.handOver()
    execFileSync('chown', ['-R', '0:0', scratch.at('.git/ckpt')])
    execFileSync('chmod', ['-R', 'go+rX', scratch.at('.git/ckpt')])
    const as = (...args: string[]) => {
      const { code, stdout } = scratch.run([...args, '--json'], { uid })
      return { code, document: JSON.parse(stdout) }
    }
    for (const command of [['snapshot'], ['mark', 'prompt', '--session', 's'], ['undo']]) {
      const { code, document } = as(...command)
      expect([command, code, document.error.message]).toEqual([
        command,
        1,
        expect.stringMatching(/cannot be (read or )?written/),
      ])
    }
    expect(as('list').document.turns).toHaveLength(1)
    expect(as('status').code).toBe(0)
    expect(scratch.read('a.txt')).toBe('two\n')
  },
)

test.skipIf(!isRoot)('bad input: a store that this user cannot look into is not an empty one', () => {
  const scratch = new Scratch().init()
  scratch.turn('work', () => scratch.write({ 'a.txt': 'two\n' }))
  const uid = scratch.handOver()
  execFileSync('chown', ['-R', '0:0', scratch.at('.git/ckpt')])
  for (const line of [
    'list',
    'show 1',
    'status',
    'verify',
    'doctor',
    'prune',
    'snapshot',
    'undo',
    'mark stop --session s',
  ]) {
    const { code, stdout } = scratch.run([...line.split(' '), '--json'], { uid })
    const { error } = JSON.parse(stdout)
    expect([line, code, error.code, error.message]).toEqual([
      line,
      1,
      'INTERNAL',
      expect.stringContaining('cannot be looked into (EACCES)'),
    ])
  }
})

test('where no store can be made, doctor says so', () => {
  const scratch = new Scratch().init()
  const uid = scratch.handOver()
  fs.chmodSync(scratch.at('.git'), 0o555)
  const { code, stdout } = scratch.run(['mark', 'prompt', '--session', 's', '--json'], { uid })
  expect([code, JSON.parse(stdout).error.hints]).toEqual([1, ['ckpt doctor']])
  const told = scratch.run(['doctor', '--json'], { uid })
  expect([told.code, JSON.parse(told.stdout).findings.find((one: Json) => one.name === 'store')]).toEqual([
    7,
    {
      name: 'store',
      ok: false,
      detail: 'the store cannot be written (EACCES)',
      mend: `chmod u+rwx ${scratch.at('.git')}`,
    },
  ])
  fs.chmodSync(scratch.at('.git'), 0o755)
  expect(scratch.run(['doctor'], { uid }).code).toBe(0)
})

test.skipIf(!isRoot)(
  'bad input: what another user wrote into the store is not damage, and nothing is mended because of it',
  () => {
    const scratch = new Scratch().init()
    scratch.turn('one', () => scratch.write({ 'a.txt': 'two\n' }))
    const uid = scratch.handOver()
    const config = `${scratch.home}/.gitconfig`
    fs.writeFileSync(config, '[safe]\n\tdirectory = *\n')
    for (const event of ['prompt', 'stop'])
      expect(
        scratch.runApart(['mark', event, '--session', 's'], { vars: { GIT_CONFIG_GLOBAL: config } }),
      ).toMatchObject({
        code: 0,
      })
    const refs = () => inStore(scratch, 'for-each-ref')
    const before = refs()
    for (const command of [['list'], ['undo'], ['mark', 'prompt', '--session', 's'], ['doctor'], ['doctor', '--fix']]) {
      const { code, stdout } = scratch.run([...command, '--json'], { uid })
      const { error } = JSON.parse(stdout)
      expect([command, code, error.message]).toEqual([
        command,
        1,
        expect.stringMatching(
          /^The store cannot be read: .* belongs to another user( \(and \d more\))?\. Nothing was changed\.$/,
        ),
      ])
      expect(error.hints[0]).toMatch(/^sudo chown -R "\$\(id -u\)" .*\.git\/ckpt$/)
    }
    expect(refs()).toBe(before)
    scratch.handOver()
    expect(JSON.parse(scratch.run(['list', '--json'], { uid }).stdout).turns).toHaveLength(2)
  },
)

test.skipIf(!isRoot)('bad input: a repository of another user is refused, with the way to allow it', () => {
  const scratch = new Scratch().init()
  fs.chmodSync(scratch.base, 0o755)
  const { code, stdout } = scratch.run(['snapshot', '--json'], { uid: OTHER_USER, vars: { HOME: '/nonexistent' } })
  const { error } = JSON.parse(stdout)
  expect([code, error.code]).toEqual([9, 'BAD_ROOT'])
  expect(error.hints.join()).toContain('safe.directory')
})

const canMount = spawnSync('unshare', ['-m', 'true']).status === 0

// Needs the right to mount a file system: not there in most containers.
test.skipIf(!canMount)('bad input: a full disk loses no file and no checkpoint', () => {
  const scratch = new Scratch()
  execFileSync('mount', ['-t', 'tmpfs', '-o', 'size=4m', 'none', scratch.root])
  onTestFinished(() => {
    execFileSync('umount', ['-l', scratch.root])
  })
  const noise = (length: number, seed: number) => Buffer.from(Array.from({ length }, (_, i) => (i * i * seed) >> 3))
  scratch.init({ 'a.txt': 'one\n', 'b.bin': noise(300_000, 7) })
  scratch.turn('work', () => scratch.write({ 'a.txt': 'two\n', 'b.bin': noise(300_000, 11) }))
  fs.writeFileSync(scratch.at('new.bin'), noise(200_000, 13))
  const fill = fs.openSync(scratch.at('.git/filler'), 'w')
  try {
    for (;;) fs.writeSync(fill, Buffer.alloc(4096, 1))
  } catch (error) {
    expect(error).toMatchObject({ code: 'ENOSPC' })
  }
  fs.closeSync(fill)
  const disk = scratch.manifest()
  for (const command of [['snapshot'], ['undo'], ['mark', 'prompt', '--session', 's'], ['undo', '--force']]) {
    const { code, document } = scratch.tryCkpt(...command)
    expect([command, code, document.error.message]).toEqual([command, 1, expect.stringMatching(/full|space|ENOSPC/i)])
    expect(scratch.manifest()).toEqual(disk)
  }
  expect(scratch.ckpt('list').turns).toHaveLength(1)
  scratch.remove('.git/filler')
  expect(fs.readdirSync(ownDirectory(scratch)).filter((name) => /^lock\..*\.tmp$/.test(name))).toEqual([])
  expect(scratch.ckpt('verify').problems).toEqual([])
  scratch.ckpt('undo')
  expect(scratch.read('a.txt')).toBe('one\n')
  expect(fs.readFileSync(scratch.at('b.bin')).equals(noise(300_000, 7))).toBe(true)
})

test.skipIf(!canMount)('promise 4: run in a directory that is mounted in the worktree', () => {
  const scratch = new Scratch().init({ 'a.txt': 'one\n', 'sub/.keep': '' })
  execFileSync('mount', ['-t', 'tmpfs', 'none', scratch.at('sub')])
  onTestFinished(() => {
    execFileSync('umount', ['-l', scratch.at('sub')])
  })
  scratch.write({ 'sub/b.txt': 'one\n' })
  const inside = (args: string[], input = '') => scratch.run(args, { cwd: scratch.at('sub'), input }).code
  expect(inside(['run', '--', 'sh', '-c', 'echo two > ../a.txt; echo two > b.txt; echo new > new.txt'])).toBe(0)
  expect(inside(['undo'])).toBe(0)
  const now = [scratch.read('a.txt'), scratch.read('sub/b.txt'), scratch.exists('sub/new.txt')]
  expect(now).toEqual(['one\n', 'one\n', false])
  const prompt = { session_id: 'c', cwd: scratch.at('sub'), hook_event_name: 'UserPromptSubmit', prompt: 'go' }
  expect(inside(['hook', 'claude'], JSON.stringify(prompt))).toBe(0)
  expect(scratch.ckpt('list', '--session', 'c').turns).toHaveLength(1)
})

test.skipIf(!canMount)(
  'bad input: a git directory that can only be read, as in the sandbox of an agent: that is said',
  () => {
    const apart = new Scratch()
    const location = path.join(apart.base, 'stores')
    apart.write({ '../home/.config/ckpt/.checkpointrc': JSON.stringify({ store: { location } }) })
    for (const [scratch, closed] of [
      [new Scratch(), '.git'],
      [apart, location],
    ] as const) {
      scratch.init()
      scratch.turn('work', () => scratch.write({ 'a.txt': 'two\n' }))
      const sandbox = `mount --bind ${closed} ${closed} && mount -o remount,ro,bind ${closed} && exec "$@"`
      const inside = (...args: string[]) =>
        spawnSync('unshare', ['-m', 'sh', '-c', sandbox, 'sh', process.execPath, PROGRAM, ...args], {
          cwd: scratch.root,
          env: scratch.vars,
          encoding: 'utf8',
        })
      for (const command of [['list'], ['verify']]) expect(inside(...command).status).toBe(0)
      for (const command of [['undo'], ['prune', '--keep', '1'], ['daemon', 'start'], ['watch']]) {
        const { status, stderr } = inside(...command)
        expect([status, stderr]).toEqual([1, expect.stringMatching(/^ckpt: The store cannot be written \(EROFS/)])
      }
      expect(scratch.read('a.txt')).toBe('two\n')
    }
  },
)

test.skipIf(!canMount)(
  'bad input: a disk that is full in the middle of writing: all is as it was, or it is finished later',
  () => {
    const scratch = new Scratch()
    execFileSync('mount', ['-t', 'tmpfs', '-o', 'size=6m', 'none', scratch.root])
    onTestFinished(() => {
      execFileSync('umount', ['-l', scratch.root])
    })
    const noise = (length: number, seed: number) => Buffer.from(Array.from({ length }, (_, i) => (i * i * seed) >> 3))
    const filler = scratch.at('.git/filler')
    scratch.init({ 'a.bin': noise(90_000, 3), 'k.txt': 'kept\n' })
    const agents = { 'a.bin': noise(90_000, 5), 'new/b.bin': noise(90_000, 7), 'new/er/z.bin': noise(300_000, 11) }
    scratch.turn('work', () => {
      scratch.write(agents)
      scratch.remove('k.txt')
    })
    const done = scratch.manifest()
    scratch.ckpt('undo')
    const mine = { 'a.bin': noise(150_000, 13), 'k.txt': 'MINE\n' }
    scratch.write(mine)
    const before = scratch.manifest()
    const ends = new Set<string>()
    for (let left = 60_000; left < 900_000; left += 105_000) {
      const { bavail, bsize } = fs.statfsSync(scratch.root)
      fs.writeFileSync(filler, Buffer.alloc(Math.max(0, bavail * bsize - left)))
      const { code, document } = scratch.tryCkpt('redo', '--force')
      const disk = scratch.manifest()
      const said = code === 0 ? 'done' : document.error.message
      const seen = scratch.run(['list', '--json'])
      expect([said, seen.code]).toEqual([said, 0])
      fs.rmSync(filler)
      if (code === 0) expect([left, disk]).toEqual([left, done])
      else if (/Nothing is lost: the next command/.test(said)) scratch.ckpt('status')
      else expect([said, disk]).toEqual([said, before])
      ends.add(code === 0 ? 'done' : /Nothing is lost/.test(said) ? 'later' : 'taken back')
      expect(scratch.ckpt('verify').problems).toEqual([])
      if (JSON.stringify(scratch.manifest()) === JSON.stringify(before)) continue
      // What was there before is in the safety checkpoint, and comes back with it.
      expect(scratch.manifest()).toEqual(done)
      scratch.ckpt('undo')
      scratch.write(mine)
    }
    expect([...ends]).toEqual(expect.arrayContaining(['taken back', 'done']))
  },
)
