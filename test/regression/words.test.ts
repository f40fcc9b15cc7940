// Words on the command line and in answers that once were wrong.
import { execFileSync, spawnSync } from 'node:child_process'
import fs from 'node:fs'
import path from 'node:path'
import { Writable } from 'node:stream'
import { expect, test } from 'vitest'
import { main } from '../../src/cli/main.ts'
import { columnsOf } from '../../src/core/columns.ts'
import { gitFailure } from '../../src/git/failure.ts'
import { envOf } from '../support/in-process.ts'
import { type Json, PACKAGE, PROGRAM, Scratch } from '../support/scratch.ts'
import { hasPython, onTerminal } from '../support/terminal.ts'

const hasBash = spawnSync('bash', ['--version']).status === 0

const codes = ({ code, document }: { code: number; document: Json }) => [code, document.error?.code]

test('a value that was forgotten is a usage error, not the next option', () => {
  const scratch = new Scratch().init()
  for (const args of [
    ['mark', 'prompt', '--session', 's', '--text'],
    ['snapshot', '-m'],
    ['snapshot', '--message'],
    ['run', '--text', '--', 'true'],
    ['commit', '-m', '--session', 's'],
  ])
    expect([args, ...codes(scratch.tryCkpt(...args))]).toEqual([args, 2, 'USAGE'])
  expect(scratch.ckpt('list', '--sessions').sessions).toEqual([])
})

test('a text may begin with a dash, be empty, or be an option where it is told so', () => {
  const scratch = new Scratch().init()
  for (const given of [['--text', '- a list'], ['--text', '--verbose is broken'], ['--text=--json'], ['--text', '']])
    scratch.ckpt('mark', 'prompt', '--session', 's', ...given)
  const texts = [1, 2, 3].map((n) => scratch.ckpt('show', String(n)).turn.text)
  expect(texts).toEqual(['- a list', '--verbose is broken', '--json'])
})

test('an id that begins with a dash is an id, with an h in it as without', () => {
  const scratch = new Scratch().init()
  for (const session of ['-hV1StGXR8_Z5', '-dash', '-xyz', '-h']) {
    scratch.ckpt('mark', 'prompt', '--session', session, '--message-id', '-hab', '--agent', '-h')
    scratch.ckpt('mark', 'step', '--start', '--session', session, '--call-id', '-hab', '--path', '-h', '--path', '-n')
    scratch.write({ 'a.txt': `${session}\n` })
    scratch.ckpt('mark', 'step', '--session', session, '--call-id', '-hab', '--tool', '-edit')
    scratch.ckpt('mark', 'stop', '--session', session)
    const [turn] = scratch.ckpt('list', '--session', session, '-n', '1').turns
    expect(turn).toMatchObject({ session, messageId: '-hab', agent: '-h', steps: [{ tool: '-edit' }] })
    scratch.ckpt('undo', '--session', session)
    scratch.ckpt('accept', '--session', session)
  }
  expect(scratch.tryCkpt('undo', '--session', '--dry-run')).toMatchObject({ code: 2 })
  expect(scratch.tryCkpt('list', '--session', '-n', '1')).toMatchObject({ code: 2 })
})

test('undo --only of a turn of which nothing is left says so and records nothing', () => {
  const scratch = new Scratch().init()
  scratch.turn('first', () => scratch.write({ 'b.txt': 'b\n' }))
  scratch.turn('second', () => scratch.remove('b.txt'))
  const before = scratch.ckpt('status').store.checkpoints
  const { files, safety, boundary } = scratch.ckpt('undo', '--only', '1')
  expect([files, safety, boundary]).toEqual([[], null, null])
  expect(scratch.run(['undo', '--only', '1']).stdout).toBe(
    'Nothing of turn 1 is left to take back: nothing was recorded.\n',
  )
  fs.writeFileSync(scratch.at('b.txt'), 'b\n')
  expect(scratch.run(['undo', '--', 'b.txt']).stdout).toContain('nothing was recorded')
  expect(scratch.ckpt('status').store.checkpoints).toBe(before)
  expect(scratch.ckpt('list').turns).toHaveLength(2)
})

test('a turn that ckpt itself recorded leaves the session to its agent', () => {
  const scratch = new Scratch().init()
  for (const n of [1, 2]) {
    scratch.ckpt('mark', 'prompt', '--session', 's', '--agent', 'claude', '--message-id', `m${n}`)
    scratch.write({ [`f${n}`]: 'x' })
    scratch.ckpt('mark', 'stop', '--session', 's')
  }
  scratch.ckpt('undo', '--only', '1')
  expect(scratch.ckpt('list').turns.map(({ agent }: Json) => agent)).toEqual(['ckpt', 'claude', 'claude'])
  expect(scratch.ckpt('list', '--sessions').sessions[0].agent).toBe('claude')
  const { stdout } = scratch.run(['undo', '--to', '2'])
  expect(stdout).toContain('The conversation still has it: in Claude Code')
})

test('every refusal to read or to record says which, and what to do', () => {
  const scratch = new Scratch()
  const at = (...args: string[]) => scratch.run(args).stderr
  for (const args of [['status'], ['list'], ['show', '1'], ['diff'], ['log'], ['verify'], ['doctor'], ['capabilities']])
    expect([args, at(...args)]).toEqual([args, expect.stringContaining('Nothing was read.')])
  for (const args of [['snapshot'], ['mark', 'prompt', '--session', 's'], ['undo']])
    expect([args, at(...args)]).toEqual([args, expect.stringContaining('Nothing was recorded.')])
  expect(scratch.run(['status'], { cwd: scratch.home }).stderr).toContain('Nothing was read.')
  const bare = path.join(scratch.base, 'bare.git')
  fs.mkdirSync(bare)
  scratch.git('init', '-q', '--bare', bare)
  expect(scratch.run(['list'], { cwd: bare }).stderr).toContain('Nothing was read.')
  scratch.init()
  expect(scratch.run(['show', 'worktree'])).toMatchObject({
    code: 2,
    stderr: expect.stringContaining('Nothing was changed.\n'),
  })
})

test.each<[line: string, said: string, ...hints: string[]]>([
  ['undo --foce', 'There is no option --foce here: is --force meant?', 'ckpt undo --help'],
  ['undo --skip', 'There is no option --skip here: is --skip-conflicts meant?', 'ckpt undo --help'],
  ['list --jsn=true', 'There is no option --jsn here: is --json meant?', 'ckpt list --help'],
  ['undo --xyzzy', 'There is no option --xyzzy here.', 'ckpt undo --help'],
  ['undo --constructor', 'There is no option --constructor here.', 'ckpt undo --help'],
  ['undo --no-toString --xyzzy', 'There is no option --no-toString here.', 'ckpt undo --help'],
  ['undo -x', 'There is no option -x here.', 'ckpt undo --help'],
  ['undo --dry-run=yes', '--dry-run is true or false, not "yes".', 'ckpt undo --help'],
  ['agent install claude -y=no', '-y is true or false, not "no".', 'ckpt agent --help'],
  ['undo --to', '--to wants a value.', 'ckpt undo --help'],
  ['list -n', '-n wants a value.', 'ckpt list --help'],
  ['mark prompt', '--session is missing.', 'ckpt mark --help'],
  ['show', 'Something is missing: ckpt show <id>.', 'ckpt show --help'],
  ['show 1 2', '"2" cannot stand there.', 'ckpt show --help'],
  [
    'undo 3',
    '"3" cannot stand there.',
    'ckpt undo --to 3   (and all later ones)',
    'ckpt undo --only 3',
    'ckpt undo --help',
  ],
  ['undo a.txt', '"a.txt" cannot stand there.', 'ckpt undo -- a.txt', 'ckpt undo --help'],
  ['run npm test', '"npm" and "test" cannot stand there.', 'ckpt run -- npm test', 'ckpt run --help'],
  ['run ls -l', 'There is no option -l here.', 'ckpt run -- ls -l', 'ckpt run --help'],
  ['redo 2', '"2" cannot stand there.', 'ckpt redo --turns 2', 'ckpt redo --help'],
  ['redo 2.1', '"2.1" cannot stand there.', 'ckpt redo --help'],
  ['lits', 'There is no command "lits".', 'ckpt list', 'ckpt --help   (every command)'],
  ['statsu', 'There is no command "statsu".', 'ckpt status', 'ckpt --help   (every command)'],
])('ckpt %s: what is wrong is said in words of ours, and what may be meant', (line, said, ...hints) => {
  const { code, stderr } = new Scratch().run(line.split(' '))
  expect(code).toBe(2)
  expect(stderr).toBe(`ckpt: ${said} Nothing was changed.\n${hints.map((hint) => `  → ${hint}\n`).join('')}`)
})

test('a path where an id stands is told where it belongs', () => {
  const scratch = new Scratch().init()
  scratch.turn('work', () => scratch.write({ 'a b': 'new\n' }))
  const { stderr } = scratch.run(['diff', 'a b'])
  expect(stderr).toContain("\n  → ckpt diff -- 'a b'   (if it is a file or a directory)\n")
  expect(scratch.ckpt('diff', '--', 'a b').files).toHaveLength(1)
})

test('what is wrong with the configuration is said once for the two ends of a turn', () => {
  const scratch = new Scratch().init()
  scratch.write({ '.checkpointrc': '{' })
  const { stderr } = scratch.run(['run', '--', 'true'])
  expect(stderr.match(/was passed over/g)).toHaveLength(1)
})

test.skipIf(!hasPython)('help is no wider than the terminal', () => {
  const scratch = new Scratch()
  for (const [columns, args] of [
    [80, ['--help']],
    [60, ['undo', '--help']],
  ] as const) {
    const { text } = onTerminal(scratch, [...args], { size: [40, columns] })
    expect(Math.max(...text.split('\n').map((line) => line.length))).toBeLessThanOrEqual(columns)
    expect(text).toMatch(/^\s*ckpt\b/)
  }
})

test('completion offers what may stand there, and leaves files to the shell', () => {
  const scratch = new Scratch().init()
  scratch.turn('first', () => scratch.write({ 'b.txt': 'b\n' }), 'chat-1')
  scratch.turn('of another', () => scratch.write({ 'c.txt': 'c\n' }), 'other')
  scratch.turn('one more', () => scratch.write({ 'c.txt': 'd\n' }), 'other')
  const offered = (...line: string[]) =>
    scratch.ckpt('completion', '--words', '--', ...line).words.map(({ word }: Json) => word)
  expect(offered('sho')).toEqual(['show'])
  expect(offered('he')).toEqual(['help'])
  expect(offered('help', 'sho')).toEqual(['show'])
  expect(offered('--json', 'sho')).toEqual(['show'])
  expect(offered('--cwd', '.', 'sho')).toEqual(['show'])
  expect(offered('undo', '--no')).toEqual(['--no-color', '--no-daemon'])
  expect(offered('run', '--no-c')).toEqual(['--no-commit', '--no-checkpoints', '--no-color'])
  expect(offered('verify', '--no-p')).toEqual(['--no-pending'])
  expect(offered('verify', '--p')).toEqual([])
  expect(offered('undo', '--session', '')).toEqual(['other', 'chat-1'])
  expect(offered('show', '--session', 'ch')).toEqual(['chat-1'])
  expect(offered('undo', '--session=')).toEqual(['--session=other', '--session=chat-1']) // zsh, fish
  expect(offered('undo', '--session=ch')).toEqual(['--session=chat-1'])
  expect(offered('undo', '--session', '=')).toEqual(['other', 'chat-1']) // bash
  expect(offered('undo', '--session', '=', 'ch')).toEqual(['chat-1'])
  expect(offered('show', '--session', '=', 'chat-1', '')).toEqual(['1'])
  expect(offered('mark', 'stop', '--status', '')).toEqual(['completed', 'interrupted', 'failed'])
  expect(offered('mark', 'prompt', '--kind=c')).toEqual(['--kind=command', '--kind=compaction'])
  expect(offered('agent', 'install', '--scope', 'p')).toEqual(['project'])
  expect(offered('show', '')).toEqual(['2', '1'])
  expect(offered('show', '--session', 'chat-1', '')).toEqual(['1'])
  expect(offered('undo', '--to', '')).toEqual(['2', '1'])
  expect(offered('diff', '1', '')).toEqual(['2', '1'])
  expect(offered('diff', '1:')).toEqual(['1:before', '1:after']) // zsh, fish
  expect(offered('diff', '1', ':')).toEqual(['before', 'after']) // bash
  expect(offered('diff', '2', ':', 'a')).toEqual(['after'])
  expect(offered('diff', '2', ':', 'after', '1', ':', 'a')).toEqual(['after'])
  const elsewhere = new Scratch().init().root
  expect(offered('--cwd', elsewhere, 'undo', '--session', '')).toEqual([])
  expect(offered('show', '--cwd', elsewhere, '')).toEqual([])
  expect(offered('daemon', 'st')).toEqual(['start', 'stop', 'status'])
  expect(offered('agent', 'install', 'c')).toEqual(['claude', 'codex', 'cursor'])
  expect(offered('mark', '')).toEqual(['prompt', 'step', 'stop'])
  for (const line of [
    ['show', '2', ''],
    ['restore', '1', '--', ''],
    ['run', '--', '--'],
    ['undo', '--cwd', ''],
    ['undo', '--cwd=x'],
    ['undo', '--json='],
    ['blame', ''],
  ])
    expect([line, offered(...line)]).toEqual([line, []])
})

test.skipIf(!hasBash)('bash is offered what it takes for one word, as it is', () => {
  const scratch = new Scratch().init()
  const odd = ["it's mine", 'a:b c:d', '$(touch here)', 'a"b;c', 'back\\slash', '`x`', '!!', 'plain']
  for (const session of odd) scratch.ckpt('mark', 'prompt', '--session', session, '--text', 'go')
  const bin = path.join(scratch.base, 'bin')
  fs.mkdirSync(bin)
  fs.symlinkSync(PROGRAM, path.join(bin, 'ckpt'))
  const vars = { ...scratch.vars, PATH: `${bin}:${scratch.vars.PATH}` }
  const bash = (script: string, words: string[] = []) =>
    execFileSync('bash', ['-c', script, 'bash', ...words], { cwd: scratch.root, env: vars, encoding: 'utf8' })
      .split('\0')
      .slice(0, -1)
  const script = path.join(scratch.base, 'completion')
  fs.writeFileSync(script, scratch.run(['completion', 'bash']).stdout)
  const complete = String.raw`source '${script}'; COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); _ckpt; printf '%s\0' "${'$'}{COMPREPLY[@]}"`
  // Words as they are typed; what is offered for the last one is then read as a command line.
  const taken = (...line: string[]): string[] => {
    const quote = /^['"]/.exec(line.at(-1)!)?.[0] ?? ''
    const offered = bash(complete, ['ckpt', ...line]).map((word) => `${quote}${word}${quote}`)
    return bash(`printf '%s\\0' ${offered.join(' ')}`).toSorted()
  }
  expect(taken('undo', '--session', '')).toEqual(odd.toSorted())
  expect(taken('undo', '--session', "it\\'s\\ m")).toEqual(["it's mine"])
  expect(taken('undo', '--session', '"it')).toEqual(["it's mine"])
  expect(taken('undo', '--session', 'a', ':')).toEqual(['b c:d'])
  expect(taken('undo', '--session', 'a', ':', 'b\\ c', ':')).toEqual(['d'])
  expect(taken('undo', '--session', '=', 'a', ':')).toEqual(['b c:d'])
  expect(taken('undo', '--session', "'")).toEqual(odd.slice(1).toSorted())
  expect(taken('undo', '--session', '"')).toEqual(['a:b c:d', "it's mine", 'plain'])
  expect(taken('show', '--session', "it\\'s\\ mine", '')).toEqual(['1'])
  expect(scratch.exists('here')).toBe(false)
})

const hasFish = spawnSync('fish', ['-c', 'true']).status === 0

// fish is on few machines, and nothing else runs its scripts.
test.skipIf(!hasFish)('fish completes files by its own way, whatever they are called', () => {
  const scratch = new Scratch().init({ '-l': '', 'one.txt': '', 'with blank': '', '#hash': '', 'dir/in': '' })
  const script = path.join(scratch.base, 'completion.fish')
  const offered = (line: string): string[] =>
    execFileSync('fish', ['--no-config', '-c', `source '${script}'; complete -C "${line}"`], {
      cwd: scratch.root,
      env: { ...scratch.vars, PATH: `${bin}:${scratch.vars.PATH}` },
      encoding: 'utf8',
    })
      .split('\n')
      .filter(Boolean)
  const bin = path.join(scratch.base, 'bin')
  fs.mkdirSync(bin)
  fs.symlinkSync(PROGRAM, path.join(bin, 'ckpt'))
  fs.writeFileSync(script, scratch.run(['completion', 'fish']).stdout)
  expect(offered('ckpt undo -- ').toSorted()).toEqual(['#hash', '-l', 'dir/', 'one.txt', 'with blank'])
  expect(offered('ckpt undo -- dir/')).toEqual(['dir/in'])
  expect(offered('ckpt und')).toEqual([expect.stringMatching(/^undo\t/)])
})

test('the script for completion is that of the own shell, or of bash where that completes nothing', () => {
  const scratch = new Scratch()
  const of = (SHELL: string) => JSON.parse(scratch.run(['completion', '--json'], { vars: { SHELL } }).stdout).shell
  expect([of('/usr/bin/fish'), of('/bin/zsh'), of('/bin/dash'), of('')]).toEqual(['fish', 'zsh', 'bash', 'bash'])
  expect(of('/bin/constructor')).toBe('bash')
  // Nor is a word that every object knows one of ours.
  for (const shell of ['csh', 'constructor', '__proto__'])
    expect([shell, scratch.tryCkpt('completion', shell).document.error]).toMatchObject([shell, { code: 'USAGE' }])
  expect(scratch.tryCkpt('mark', 'constructor', '--session', 's').document.error).toMatchObject({ code: 'BAD_MARKER' })
})

test('restore of paths that a checkpoint does not have names that checkpoint', () => {
  const scratch = new Scratch().init()
  scratch.turn('first', () => scratch.write({ 'b.txt': 'b\n' }))
  const { code, document } = scratch.tryCkpt('restore', '1', '--', 'none.txt')
  expect([code, document.error.hints]).toEqual([3, ['ckpt show 1']])
})

test('the head of a help is how the command is written, what follows -- too', () => {
  const scratch = new Scratch()
  const usage = (name: string) => scratch.run([name, '--help']).stdout.split('\n')[0]
  expect(['redo', 'mark', 'hooks', 'run', 'diff', 'undo', 'restore'].map(usage)).toEqual([
    'ckpt redo [options]',
    'ckpt mark <event> [options]',
    'ckpt hooks <action>',
    'ckpt run [options] -- COMMAND…',
    'ckpt diff [a] [b] [options] [-- PATH…]',
    'ckpt undo [options] [-- PATH…]',
    'ckpt restore <id> [options] [-- PATH…]',
  ])
})

test('help and the version are a JSON document too, where one is asked for', () => {
  const scratch = new Scratch().init()
  for (const args of [['help'], ['help', 'undo'], ['undo', '--help'], ['--version']]) {
    const { code, stdout } = scratch.run(args)
    const document = { schemaVersion: 1, ok: true, text: stdout.trimEnd() }
    for (const line of [
      [...args, '--json'],
      ['--json', ...args],
    ]) {
      const asked = scratch.run(line)
      expect([line, asked.code, JSON.parse(asked.stdout)]).toEqual([line, code, document])
    }
  }
})

test('help and a command is the command and --help', () => {
  const scratch = new Scratch().init()
  expect(scratch.run(['help', 'undo'])).toEqual(scratch.run(['undo', '--help']))
  expect(scratch.run(['help', '--json', 'undo'])).toEqual(scratch.run(['undo', '--help', '--json']))
  expect(scratch.run(['help', '--json', 'nosuch'])).toEqual(scratch.run(['help', 'nosuch', '--json']))
  expect(scratch.run(['help'])).toEqual(scratch.run(['--help']))
  expect(scratch.run(['help', 'undoo'])).toMatchObject({
    code: 2,
    stderr: expect.stringMatching(/^ckpt: There is no command "undoo"\..*\n {2}→ ckpt undo\n/),
  })
})

test('undo of paths that the turns never changed says so, and of those whose names it cannot be given', () => {
  const scratch = new Scratch().init({ 'a.txt': 'one\n', 'b.txt': 'one\n' })
  const bytes = Buffer.from(`${scratch.root}/c\xff`, 'latin1')
  scratch.turn('first', () => {
    scratch.write({ 'a.txt': 'two\n', 'd\ufffd': 'two\n' })
    fs.writeFileSync(bytes, 'two\n')
  })
  for (const paths of [['b.txt'], ['typo', 'neither']]) {
    const { code, document } = scratch.tryCkpt('undo', '--', ...paths)
    expect([code, document.error.code, document.error.paths]).toEqual([3, 'NOTHING_TO_UNDO', paths])
    expect(document.error.message).toBe('Turn 1 changed none of these paths. Nothing was changed.')
  }
  expect(scratch.ckpt('undo', '--dry-run', '--', 'typo', 'a.txt').files).toHaveLength(1)
  const { code, document } = scratch.tryCkpt('undo', '--', 'c\ufffd') // what Node makes of the name
  expect([code, document.error.message]).toEqual([2, expect.stringContaining('holds bytes that are not UTF-8')])
  expect(scratch.ckpt('undo', '--dry-run', '--', 'd\ufffd').files).toHaveLength(1)
  expect(fs.readFileSync(bytes, 'utf8')).toBe('two\n')
})

test('in a directory that is gone the one that is left above it is named', () => {
  const scratch = new Scratch().init()
  const { code, document } = scratch.tryCkpt('status', '--cwd', scratch.at('gone/deeper'))
  expect([code, document.error.hints[0]]).toEqual([9, `cd ${scratch.root} && ckpt status   (what is left above it)`])
})

test('from a directory that is gone nothing else is meant: neither where the process began, nor what has its name by now', () => {
  const [theirs, mine] = [new Scratch().init(), new Scratch('mine').init()]
  theirs.turn('work', () => theirs.write({ 'a.txt': 'work\n' }))
  const gone = mine.at('gone')
  fs.mkdirSync(gone)
  const script = `
    import { rmdirSync } from 'node:fs'
    import { connectDaemon, openWorktree } from '${PACKAGE}/dist/index.js'
    process.chdir(${JSON.stringify(gone)})
    rmdirSync(${JSON.stringify(gone)})
    for (const open of [() => openWorktree('.'), () => openWorktree('sub'), () => connectDaemon('.')])
      await open().then(({ root }) => console.log(root), ({ code }) => console.log(code))`
  const begun = spawnSync(process.execPath, ['--input-type=module', '-e', script], {
    cwd: theirs.root,
    env: { ...theirs.vars, PWD: theirs.root },
    encoding: 'utf8',
  })
  expect([begun.stdout, begun.stderr]).toEqual(['BAD_ROOT\n'.repeat(3), ''])
  fs.mkdirSync(gone)
  const again = `cd "$1"; rmdir "$1"; git init -q "$1"; exec "$2" "$3" undo`
  const { status, stderr } = spawnSync('sh', ['-c', again, 'sh', gone, process.execPath, PROGRAM], {
    cwd: theirs.root,
    env: theirs.vars,
    encoding: 'utf8',
  })
  expect([status, stderr]).toEqual([9, expect.stringContaining(`${gone} (deleted)`)])
  expect(theirs.read('a.txt')).toBe('work\n')
})

test('a path that is not UTF-8 is named as that, and nothing is made of it', () => {
  const scratch = new Scratch().init()
  const odd = Buffer.concat([Buffer.from(`${scratch.base}/`), Buffer.from([0xe4])])
  fs.mkdirSync(odd)
  const run = (...args: string[]) =>
    spawnSync('sh', ['-c', 'cd "$1"/?; shift; exec "$@"', 'sh', scratch.base, process.execPath, PROGRAM, ...args], {
      env: { ...scratch.vars, PWD: '' },
      encoding: 'utf8',
    })
  for (const [args, untouched] of [
    [['status'], 'read'],
    [['snapshot'], 'recorded'],
    [['init'], 'changed'],
    [['agent', 'install', 'claude'], 'changed'],
  ] as const) {
    const { status, stderr } = run(...args)
    expect([status, stderr]).toEqual([9, expect.stringMatching(`its name is not UTF-8\\). Nothing was ${untouched}`)])
  }
  fs.symlinkSync(odd, `${scratch.base}/link`)
  const linked = scratch.tryCkpt('status', '--cwd', `${scratch.base}/link`).document.error
  expect(linked.message).toContain('its name is not UTF-8')
  expect(linked.hints[0]).toContain(`cd ${scratch.base} && `)
  fs.unlinkSync(`${scratch.base}/link`)
  expect(fs.readdirSync(odd)).toEqual([])
  // A git directory elsewhere: the store would be made beside it.
  scratch.write({ '.git.path': Buffer.concat([Buffer.from('gitdir: '), odd, Buffer.from('/git\n')]) })
  fs.renameSync(scratch.at('.git'), Buffer.concat([odd, Buffer.from('/git')]))
  fs.renameSync(scratch.at('.git.path'), scratch.at('.git'))
  const { code, document } = scratch.tryCkpt('snapshot')
  expect([code, document.error.message]).toEqual([9, 'The path of this repository is not UTF-8. Nothing was recorded.'])
  expect(fs.readdirSync(scratch.base).sort()).toEqual(['home', 'work', '\ufffd'])
})

test('a git that a damaged store makes end by a signal of its own is damage, and says which', () => {
  const failed = (crash: NodeJS.Signals | null, store: boolean) =>
    gitFailure(['for-each-ref'], { code: 128, stdout: Buffer.alloc(0), stderr: 'free(): twice', crash }, { store })
  expect(failed('SIGABRT', true)).toMatchObject({
    code: 'DAMAGED',
    message: 'git for-each-ref failed (SIGABRT): free(): twice. Nothing was changed.',
    hints: ['ckpt doctor --fix'],
  })
  expect([failed('SIGABRT', false).code, failed(null, true).code]).toEqual(['INTERNAL', 'INTERNAL'])
})

test('a turn that runs while checkpoints are switched off: its end is not recorded, and the hint says what helps', () => {
  const scratch = new Scratch().init()
  scratch.ckpt('mark', 'prompt', '--session', 's')
  const own = `${scratch.home}/.config/ckpt/.checkpointrc`
  fs.mkdirSync(path.dirname(own), { recursive: true })
  fs.writeFileSync(own, '{"enableFileCheckpointing":false}')
  expect(scratch.tryCkpt('redo').document.error).toMatchObject({
    code: 'TURN_RUNNING',
    hints: ['set enableFileCheckpointing to true, then: ckpt mark stop --session s'],
  })
  fs.rmSync(own)
  expect(scratch.tryCkpt('redo').document.error.hints).toEqual(['ckpt mark stop --session s'])
})

test('a worktree that goes away while git works is no damage of a store', () => {
  const failed = (stderr: string) =>
    gitFailure(['ls-files'], { code: 128, stdout: Buffer.alloc(0), stderr, crash: null }).code
  const gone = 'fatal: Unable to read current working directory: No such file or directory'
  expect([gone, `fatal: unable to read ${'ab'.repeat(20)}`].map(failed)).toEqual(['INTERNAL', 'DAMAGED'])
})

test.each([
  'error: cannot fork() for pack-objects: Resource temporarily unavailable',
  'fatal: unable to create thread: Resource temporarily unavailable',
])('a system that lets nobody start another process is no damage, and the limit is named: %s', (stderr) => {
  const failed = gitFailure(['repack'], { code: 128, stdout: Buffer.alloc(0), stderr, crash: null }, { store: true })
  expect([failed.code, failed.hints]).toEqual(['INTERNAL', [expect.stringContaining('ulimit -u')]])
})

test('a dry run prints the token that ckpt apply takes, on a line of its own; a switch stays a switch', () => {
  const scratch = new Scratch().init()
  scratch.turn('first', () => scratch.write({ 'a.txt': 'two\n' }))
  scratch.turn('second', () => scratch.write({ 'a.txt': 'three\n' }))
  const said = scratch.run(['undo', '--dry-run']).stdout.trimEnd().split('\n')
  expect(said.at(-2)).toBe('Do exactly this: ckpt apply TOKEN   The token:')
  expect(scratch.run(['apply', said.at(-1)!]).stdout).toContain('Undid turn 2')
  expect(scratch.read('a.txt')).toBe('two\n')
  scratch.ckpt('redo')
  const { token } = scratch.ckpt('switch', '1', '--dry-run')
  expect(scratch.run(['apply', token]).stdout).toContain('Switched to turn 1')
  expect(scratch.ckpt('list').turns.map((turn: Json) => turn.n)).toEqual([1])
})

test('forget of a path that no checkpoint holds changes no id', () => {
  const scratch = new Scratch().init()
  scratch.turn('first', () => scratch.write({ 'a.txt': 'two\n' }))
  const { turns } = scratch.ckpt('list')
  expect(codes(scratch.tryCkpt('forget', 'nowhere.txt'))).toEqual([3, 'NOT_FOUND'])
  expect(scratch.ckpt('list').turns).toEqual(turns)
})

/** The lines that hints propose, typed by a person. */
function typed(scratch: Scratch, line: string) {
  const bin = `${scratch.base}/bin`
  fs.mkdirSync(bin, { recursive: true })
  fs.rmSync(`${bin}/ckpt`, { force: true })
  fs.symlinkSync(PROGRAM, `${bin}/ckpt`)
  const env = { ...scratch.vars, PATH: `${bin}:${scratch.vars.PATH}` }
  return spawnSync('sh', ['-c', line], { cwd: scratch.root, env, encoding: 'utf8' })
}

test.each(['-x', '--force', "it's a chat"])('a session called %s: what is proposed can be typed', (session) => {
  const scratch = new Scratch().init()
  scratch.ckpt('hooks', 'install')
  scratch.ckpt('mark', 'prompt', `--session=${session}`)
  scratch.write({ 'a.txt': 'two\n' })
  const running = scratch.run(['undo', `--session=${session}`]).stderr
  expect(typed(scratch, /→ (ckpt mark stop .*)/.exec(running)![1]!).status).toBe(0)
  const undone = scratch.run(['undo', `--session=${session}`]).stdout
  expect(typed(scratch, /Back again: (.*?) {3}/.exec(undone)![1]!).status).toBe(0)
  expect(scratch.read('a.txt')).toBe('two\n')
  scratch.ckpt('undo', `--session=${session}`)
  const refused = typed(scratch, 'git -c user.name=n -c user.email=e commit --allow-empty -m x').stderr
  const ways = [...refused.matchAll(/-> (ckpt redo .*?) {4}/g)].map(([, line]) => line!)
  expect(ways).toHaveLength(1)
  expect(typed(scratch, ways[0]!).status).toBe(0)
  expect(scratch.read('a.txt')).toBe('two\n')
})

test.each([
  ['EROFS', /^mount the file system of .*\.git\/ckpt/],
  ['EPERM', /^(lsattr -d|ls -ldO) \S*\.git\/ckpt\S* {3}\(shows what forbids it to everybody\)$/],
])('doctor does not propose permissions where they are not what forbids to write: %s', async (code, expected) => {
  const scratch = new Scratch().init()
  scratch.ckpt('snapshot')
  const readOnly = (_: unknown, mode = 0) => {
    if (mode & fs.constants.W_OK) throw Object.assign(new Error(`${code}: no`), { code })
  }
  const told: string[] = []
  const stdout = new Writable({
    write(chunk, _, done) {
      told.push(String(chunk))
      done()
    },
  })
  const env = envOf(scratch)
  await main(['doctor', '--json'], { ...env, files: { ...env.files, accessSync: readOnly }, stdout })
  const { mend } = JSON.parse(told.join('')).findings.find(({ name }: Json) => name === 'store')
  expect(mend).toMatch(expected)
})

test('options of every command may stand before its name, and mean the same there', () => {
  const scratch = new Scratch().init()
  scratch.turn('one', () => scratch.write({ 'a.txt': 'two\n' }))
  scratch.write({ 'a.txt': 'mine\n' })
  const hints = (...args: string[]) => JSON.parse(scratch.run(args).stdout).error.hints
  expect(hints('--json', '--cwd', '.', 'undo')).toEqual(hints('undo', '--cwd', '.', '--json'))
  expect(hints('--json', '--no-daemon', 'undo')[0]).toBe('ckpt undo --dry-run   (the whole plan)')
  expect(scratch.ckpt('--quiet', 'snapshot', '-m', '- a list').checkpoint.kind).toBe('manual')
  expect(scratch.run(['--json', 'help', 'undo']).stdout).toContain('ckpt undo [options]')
  expect(scratch.runApart(['--no-daemon', 'hook', 'claude', 'too', 'many', 'words']).code).toBe(0)
})

test('a switch that is given a value is on or off in what a refusal prints, too', () => {
  const scratch = new Scratch().init()
  expect(JSON.parse(scratch.run(['show', '1', '--json=true']).stdout).error.code).toBe('NOT_FOUND')
  for (const off of [['--json=false'], ['--no-json'], ['--json', '--no-json']])
    expect([off, scratch.run(['show', '1', ...off]).stdout]).toEqual([off, ''])
})

test('lines to run name the session that is meant, where it is not the newest', () => {
  const scratch = new Scratch().init({ 'a.txt': 'one\n', 'b.txt': 'one\n' })
  scratch.turn('one', () => scratch.write({ 'a.txt': 'two\n' }), 's1')
  scratch.turn('two', () => scratch.write({ 'b.txt': 'two\n' }), 's2')
  const { token } = scratch.ckpt('undo', '--session', 's1', '--dry-run')
  expect(scratch.run(['apply', token]).stdout).toContain(
    'ckpt redo --session s1   Keep it this way: ckpt accept --session s1',
  )
  const ways = ['ckpt redo --all --session s1', 'ckpt accept --session s1']
  for (const args of [['commit'], ['commit', '--session', 's2'], ['verify', '--no-pending']])
    expect([args, scratch.tryCkpt(...args).document.error.hints]).toEqual([args, ways])
})

test('what is proposed instead is the same command with one option more', () => {
  const scratch = new Scratch().init()
  scratch.turn('one', () => scratch.write({ 'a.txt': 'two\n' }))
  scratch.turn('two', () => scratch.write({ 'a.txt': 'three\n' }))
  scratch.git('checkout', '-q', '-b', "it's;new")
  const hints = (...args: string[]) => scratch.tryCkpt(...args).document.error.hints
  expect(hints('undo', '--to', '1', '--', 'a.txt')[1]).toBe('ckpt undo --to 1 --force -- a.txt')
  scratch.turn('three', () => scratch.write({ 'a.txt': 'four\n' }))
  scratch.ckpt('mark', 'prompt', '--session', 's')
  const closing = 'ckpt undo --to 1 --interrupt   (closes the turn as interrupted)'
  expect(hints('undo', '--to', '1')[1]).toBe(closing)
  scratch.git('checkout', '-q', '--detach')
  scratch.ckpt('mark', 'stop', '--session', 's')
  scratch.git('checkout', '-q', '-b', 'other')
  expect(hints('undo', '--turns', '2')[0]).toBe("git switch 'it'\\''s;new'")
})

test('what is refused of a token is said in the words of its dry run', () => {
  const scratch = new Scratch().init({ 'a.txt': 'one\n', 'b c.txt': 'one\n' })
  scratch.turn('one', () => scratch.write({ 'a.txt': 'two\n', 'b c.txt': 'two\n' }), 's1')
  const at = ['--cwd', scratch.root]
  const hints = (...args: string[]) => scratch.tryCkpt(...args).document.error.hints
  const dry = (command: string, ...args: string[]) => scratch.ckpt(command, '--dry-run', ...args).token
  const [whole, some] = [dry('undo', '--to', '1', '--session', 's1'), dry('undo', '--force', '--', 'b c.txt')]
  const back = dry('restore', '1', '--exact')
  scratch.write({ 'a.txt': 'hand\n', 'b c.txt': 'hand\n' })
  expect(hints('apply', whole)).toEqual(['ckpt undo --session=s1 --to=1 --dry-run'])
  expect(hints('apply', some, ...at)).toEqual([
    `ckpt undo --force --dry-run --cwd ${scratch.root} -- '${scratch.at('b c.txt')}'`,
  ])
  expect(hints('apply', back)).toEqual(['ckpt restore 1 --exact --dry-run'])
  const refused = dry('undo', '--session', 's1')
  expect(hints('apply', refused)[0]).toBe('ckpt undo --session=s1 --dry-run   (the whole plan)')
  for (const hint of hints('apply', refused)) expect(hint).not.toContain('…')
  scratch.write({ 'new\nline': 'x', 'a.txt': 'two\n' })
  const odd = dry('undo', '--session', 's1', '--', 'a.txt', 'new\nline')
  scratch.write({ 'a.txt': 'hand\n' })
  expect(hints('apply', odd)).toEqual(['run the dry run again']) // no line would name it
  scratch.ckpt('undo', '--session', 's1', '--skip-conflicts')
  expect(hints('apply', whole)[0]).toBe('ckpt undo --session=s1 --to=1 --dry-run')
})

test('a path with a space in it is one word of a line to run', () => {
  const scratch = new Scratch('my work')
  fs.writeFileSync(scratch.at('.git'), 'gitdir: /nonexistent\n')
  const hints = (...args: string[]) => scratch.tryCkpt(...args).document.error.hints
  expect(hints('status')).toEqual([`git -C '${scratch.root}' status`])
  fs.rmSync(scratch.at('.git'))
  scratch.init()
  scratch.turn('one', () => scratch.write({ 'a.txt': 'two\n' }))
  expect(hints('export', 'no such/x.bundle')).toEqual([`mkdir -p '${scratch.at('no such')}'`])
  fs.rmSync(scratch.at('.git/ckpt/store.git'), { recursive: true })
  expect(hints('list')).toContain(`to begin anew: rm -r '${scratch.at('.git/ckpt')}'`)
})

test('lines to run name the place that was named', () => {
  const scratch = new Scratch().init()
  scratch.turn('one', () => scratch.write({ 'a.txt': 'two\n' }))
  const from = (...args: string[]) => scratch.run([...args, '--cwd', scratch.root], { cwd: scratch.base }).stdout
  const at = ` --cwd ${scratch.root}`
  expect(from('undo', '--dry-run')).toContain(`ckpt apply TOKEN${at}   The`)
  const undone = from('undo')
  expect(undone).toContain(`ckpt redo${at}   Keep it this way: ckpt accept${at}\n`)
  expect(undone).toContain(` --exact${at}\n`)
  expect(from('status')).toContain(`ckpt redo --all${at}   `)
  expect(from('list', '--hidden')).toContain(`ckpt redo --all${at}   `)
})

test('of a configuration file it is said what is wrong in it, and where it is to be mended', () => {
  const scratch = new Scratch().init({ '.checkpointrc': 'keep: 3\n' })
  const { message, hints } = scratch.tryCkpt('list').document.error
  expect([message, hints]).toEqual([
    expect.stringMatching(/^HEAD:\.checkpointrc: unknown key "keep"/),
    [`edit ${scratch.at('.checkpointrc')}, and commit it`],
  ])
  const other = new Scratch().init()
  other.write({ '.checkpointrc': '{ broken' })
  expect(other.tryCkpt('list').document.error).toMatchObject({
    message: expect.stringMatching(/\.checkpointrc cannot be read: .+ Nothing was changed\.$/),
    hints: [`edit ${other.at('.checkpointrc')}`],
  })
  expect(other.tryCkpt('list').document.error.message).not.toContain('YAML Error')
  other.remove('.checkpointrc')
  other.write({ '.checkpointrc.json': '{"prune":{"grace":"7d",}}' })
  expect(other.tryCkpt('list').document.error.message).toMatch(
    /\.checkpointrc\.json cannot be read: Expected .+ in JSON at position .+ Nothing was changed\.$/,
  )
})

test('an empty configuration file is none, whatever its name, and the next one counts', () => {
  const scratch = new Scratch().init()
  for (const empty of ['', ' \n', '\uFEFF']) {
    scratch.write({ '.checkpointrc': empty, '.checkpointrc.json': empty })
    expect([empty, scratch.tryCkpt('list').code]).toEqual([empty, 0])
  }
  scratch.write({ '.checkpointrc.yaml': 'keep: 3\n' })
  expect(scratch.tryCkpt('list').document.error.message).toContain('.checkpointrc.yaml: unknown key "keep"')
})

test('with --quiet what was asked for is printed still, and what was done is not told', () => {
  const scratch = new Scratch().init()
  scratch.turn('one', () => scratch.write({ 'a.txt': 'two\n' }))
  const quiet = (line: string) => scratch.run([...line.split(' '), '--quiet'])
  for (const line of [
    ...['list', 'list --sessions', 'list --all-sessions', 'show 1', 'log', 'status', 'diff', 'blame a.txt'],
    ...['verify', 'doctor', 'capabilities', 'hooks status', 'agent status', 'daemon status', 'completion bash'],
    ...['undo --dry-run', 'restore 1:before --dry-run', 'switch 1 --dry-run', 'prune --dry-run'],
  ])
    expect([line, quiet(line)]).toEqual([line, { code: 0, stdout: scratch.run(line.split(' ')).stdout, stderr: '' }])
  expect(quiet('undo --dry-run').stdout).toContain('The token:')
  const nothing = { code: 0, stdout: '', stderr: '' }
  for (const line of ['mark stop --session s', 'snapshot', 'undo', 'redo', 'undo', 'accept', 'restore 1', 'prune'])
    expect([line, quiet(line)]).toEqual([line, nothing])
})

test('of a turn that is undone from a step on, no word says that the whole turn is', () => {
  const scratch = new Scratch().init({ 'a.txt': '0\n', 'b.txt': '0\n' })
  const mark = (event: string) => scratch.ckpt('mark', event, '--session', 's')
  mark('prompt')
  for (const name of ['a.txt', 'b.txt']) {
    scratch.write({ [name]: '1\n' })
    mark('step')
  }
  mark('stop')
  scratch.turn('next', () => scratch.write({ 'c.txt': 'c\n' }))
  const said = (line: string) => scratch.run(line.split(' ')).stdout.split('\n')[0]
  expect(said('undo --to 1.2 --dry-run')).toBe(
    'Would undo turns 1 (from step 1.2 on) to 2: 2 files. Nothing was changed.',
  )
  expect(said('undo')).toBe('Undid turn 2: 1 file.')
  expect(said('undo --step')).toBe('Undid turn 1 from step 1.2 on: 1 file.')
  expect(scratch.run(['status']).stdout).toMatch(/^Undone +from step 1\.2 of s$/m)
  expect(scratch.run(['list', '--sessions']).stdout).toContain('undone from step 1.2')
  expect(scratch.run(['list']).stdout).toContain('Undone from step 1.2 on.')
  expect(said('undo --step')).toBe('Undid turn 1 from step 1.1 on: 1 file.')
  expect(scratch.tryCkpt('undo', '--step').document.error.message).toContain('Turn 1 has no step left that changed')
  expect(said('redo')).toBe('Redid turn 1: 2 files.')
  expect(said('redo')).toBe('Redid turn 2: 1 file.')
  expect(said('undo --to 1')).toBe('Undid turns 1 to 2: 3 files.')
  expect(said('redo --all')).toBe('Redid turns 1 to 2: 3 files.')
  const { boundary } = scratch.ckpt('undo', '--to', '1.2')
  expect(said('accept')).toBe(
    `Kept. Turn 2 is abandoned now; the files can still be brought back: ckpt restore 2. Turn 1 ends before its step 1.2 now; as it was: ckpt restore ${boundary.baseline.slice(0, 10)}`,
  )
  expect(said('accept')).toBe('Nothing is undone here.')
  const { safety } = scratch.ckpt('undo', '--step')
  expect(said('accept')).toBe(
    `Kept. Turn 1 ends before its step 1.1 now; as it was: ckpt restore ${safety.slice(0, 10)}`,
  )
  expect(scratch.ckpt('restore', safety.slice(0, 10)).files).toEqual([{ path: 'a.txt', action: 'write' }])
})

test('a list of all worktrees says which each turn and session is of', () => {
  const scratch = new Scratch().init()
  scratch.turn('here', () => scratch.write({ 'a.txt': 'two\n' }))
  scratch.git('worktree', 'add', '-q', '../other')
  fs.writeFileSync(path.join(scratch.base, 'other/a.txt'), 'three\n')
  scratch.run(['run', '--text', 'there', '--', 'true'], { cwd: path.join(scratch.base, 'other') })
  const rows = (...more: string[]) =>
    scratch
      .run(['list', '--all-worktrees', ...more])
      .stdout.trim()
      .split('\n')
  expect(rows()).toEqual([
    expect.stringMatching(/^other-\S+ +run .* there$/),
    expect.stringMatching(/^@main +s .* here$/),
  ])
  expect(rows('--sessions').map((row) => row.split(/ +/).slice(0, 2))).toEqual(
    expect.arrayContaining([
      ['@main', 's'],
      [expect.stringMatching(/^other-/), 'run'],
    ]),
  )
  expect(scratch.run(['list', '--sessions']).stdout).toMatch(/^s /)
})

test('checkpoints by hand are listed with what they were called', () => {
  const scratch = new Scratch().init()
  for (const message of ['before it', 'second']) scratch.ckpt('snapshot', '-m', message)
  scratch.ckpt('snapshot')
  const { turns, checkpoints } = scratch.ckpt('list', '--session', 'manual')
  expect([turns, checkpoints.map((one: Json) => one.message)]).toEqual([[], [null, 'second', 'before it']])
  const [, , row] = scratch.run(['list', '--session', 'manual']).stdout.trimEnd().split('\n')
  expect(row).toMatch(/^ {2}[0-9a-f]{10} {2}\d\d:\d\d {2}second$/)
  const asked = scratch.ckpt('list', '--session', 'manual', '-n', '1')
  expect(asked.checkpoints).toEqual([{ ...checkpoints[0], message: null }])
  scratch.write({ 'a.txt': 'two\n' })
  scratch.ckpt('restore', checkpoints[2].id, '--force')
  expect(scratch.read('a.txt')).toBe('one\n')
  // With turns that are recorded in a session of that name: both.
  scratch.turn('in it', () => scratch.write({ 'a.txt': 'two\n' }), 'manual')
  scratch.ckpt('undo', '--session', 'manual')
  const { stdout } = scratch.run(['list', '--session', 'manual'])
  expect(stdout).toMatch(/^Session manual: no turns to show\. See the undone ones: .*\n\nCheckpoints by hand\n/)
})

test('a count of any size is one', () => {
  const scratch = new Scratch().init()
  scratch.turn('one', () => scratch.write({ 'a.txt': 'two\n' }))
  expect(scratch.ckpt('undo', '--turns', '9'.repeat(30)).turns).toEqual([1])
})

test('a list of all sessions without a visible turn names the way to the undone ones', () => {
  const scratch = new Scratch().init()
  // Prose: standard output has none of it, for whoever counts lines there.
  const said = (...words: string[]) => {
    const { stdout, stderr } = scratch.run(['list', ...words])
    expect([stdout, scratch.run(['list', ...words, '--quiet']).stderr]).toEqual(['', ''])
    return stderr
  }
  const listed = () => said('--all-sessions')
  expect(listed()).toMatch(/^No turns yet\./)
  scratch.turn('one', () => scratch.write({ 'a.txt': 'two\n' }))
  scratch.ckpt('undo')
  expect(listed()).toBe('No turns to show. See the undone ones: ckpt list --hidden --all-sessions\n')
  expect(said('--all-worktrees', '--session', 's')).toBe(
    'No turns to show. See the undone ones: ckpt list --hidden --session s --all-worktrees\n',
  )
  expect(scratch.run(['diff', '--session', 's', '--stat']).stdout).toBe('')
  expect(scratch.run(['daemon', 'logs'])).toMatchObject({ stdout: '', stderr: 'No log yet.\n' })
  expect(said()).toMatch(/^Session s: no turns to show\. See the undone ones: ckpt list --hidden\n$/)
  expect(scratch.run(['list', '--hidden', '--all-sessions']).stdout).toContain('undone')
  scratch.ckpt('accept')
  expect(listed()).toBe('No turns to show. See the abandoned ones: ckpt list --abandoned --all-sessions\n')
})

test('accept without a session means the one that has something undone, and its line names it where another is newer', () => {
  const scratch = new Scratch().init()
  scratch.turn('one', () => scratch.write({ 'a.txt': 'two\n' }), 'older')
  scratch.turn('two', () => scratch.write({ 'b.txt': 'b\n' }), 'newer')
  scratch.ckpt('undo', '--session', 'older')
  const line = /: ckpt (restore .*)\n$/.exec(scratch.run(['accept']).stdout)?.[1]
  expect(line).toBe('restore 1 --session older')
  expect(scratch.ckpt(...line!.split(' ')).files).toEqual([{ path: 'a.txt', action: 'write' }])
  scratch.ckpt('undo')
  expect(scratch.run(['accept']).stdout).toMatch(/: ckpt restore 1\n$/)
})

test('list --sessions names as many sessions as are asked for, and the one that is named', () => {
  const scratch = new Scratch().init()
  for (const session of ['one', 'two', 'three']) scratch.turn(session, () => undefined, session)
  const named = (...args: string[]) => scratch.ckpt('list', '--sessions', ...args).sessions.map(({ id }: Json) => id)
  expect(named()).toEqual(['three', 'two', 'one'])
  expect(named('-n', '2')).toEqual(['three', 'two'])
  expect(named('--session', 'tw')).toEqual(['two'])
  expect(codes(scratch.tryCkpt('list', '--sessions', '--session', 'nosuch'))).toEqual([3, 'NOT_FOUND'])
})

test('the line that takes an agent’s hooks out again names the scope that they were put in', () => {
  const scratch = new Scratch().init()
  for (const scope of ['local', 'project', 'user']) {
    const out = /^Out again: (.*)$/m.exec(scratch.run(['agent', 'install', 'claude', '--scope', scope]).stdout)?.[1]
    expect(out).toBe(`ckpt agent uninstall claude${scope === 'user' ? '' : ` --scope ${scope}`}`)
    expect(scratch.ckpt(...out!.split(' ').slice(1)).agents).toMatchObject([{ scope, changed: true }])
  }
})

test.skipIf(!hasPython)('each list of turns fits the terminal', () => {
  const scratch = new Scratch().init({ 'a.txt': 'one\n' })
  for (const n of [1, 2, 3])
    scratch.turn(`${n} ${'日本 words '.repeat(30)}`, () => scratch.write({ 'a.txt': `${n}\n` }))
  scratch.ckpt('undo', '--to', '2')
  scratch.turn(`another ${'x'.repeat(300)}`, () => scratch.write({ 'b.txt': 'two\n' }))
  for (const args of [['list'], ['list', '--all-sessions', '--abandoned'], ['log'], ['log', '--graph']]) {
    const lines = onTerminal(scratch, args, { size: [40, 70] }).text.split(/\r?\n/)
    expect([args, lines.filter((line) => columnsOf(line) > 70)]).toEqual([args, []])
    expect([args, lines.some((line) => columnsOf(line) > 60 && line.includes('…'))]).toEqual([args, true])
    const { stdout } = scratch.run(args)
    expect([args, stdout.split('\n').some((line) => columnsOf(line) > 80)]).toEqual([args, true]) // no terminal, no limit
  }
})

test('where all turns of a session are abandoned, each command says so, with the way to them', () => {
  const scratch = new Scratch().init({ 'a.txt': 'one\n' })
  const others = () => scratch.ckpt('blame', 'a.txt').lines.map((line: Json) => [line.session, line.turn])
  scratch.ckpt('mark', 'prompt', '--session', 'gone', '--text', 'work', '--agent', 'claude')
  scratch.write({ 'a.txt': 'two\n' })
  scratch.ckpt('mark', 'stop', '--session', 'gone')
  scratch.ckpt('undo')
  scratch.ckpt('accept')
  const way = 'ckpt list --abandoned --session gone   (ckpt switch TURN --session gone goes back to one)'
  for (const args of [['undo'], ['diff'], ['redo'], ['blame', 'a.txt'], ['rewind']]) {
    if (args[0] === 'rewind' && !hasPython) continue
    const said =
      args[0] === 'rewind'
        ? onTerminal(scratch, args, {}).text
        : JSON.stringify(scratch.tryCkpt(...args).document.error)
    expect([args, said]).toEqual([args, expect.stringContaining(way)])
    expect([args, said]).not.toEqual([args, expect.stringContaining('--hidden')])
  }
  expect(scratch.run(['list']).stderr).toContain('See the abandoned ones: ckpt list --abandoned')
  expect(scratch.run(['commit']).stdout).toBe('Nothing to commit. All turns of session gone are abandoned.\n')
  expect(scratch.ckpt('list', '--sessions').sessions).toMatchObject([{ id: 'gone', agent: 'claude' }])
  expect(scratch.run(['list', '--abandoned']).stdout).toContain('work')
  // Another session's turns are still there to be asked.
  scratch.turn('of another', () => scratch.write({ 'a.txt': 'three\n' }), 'other')
  scratch.turn('gone again', () => scratch.write({ 'b.txt': 'b\n' }), 'gone')
  scratch.ckpt('undo')
  scratch.ckpt('accept')
  expect(others()).toEqual([['other', 1]])
})

test('a step that is undone already is not called one that does not exist', () => {
  const scratch = new Scratch().init({ 'a.txt': 'one\n' })
  scratch.ckpt('mark', 'prompt', '--session', 's')
  for (const text of ['two\n', 'three\n']) {
    scratch.write({ 'a.txt': text })
    scratch.ckpt('mark', 'step', '--session', 's')
  }
  scratch.ckpt('mark', 'stop', '--session', 's')
  scratch.ckpt('undo', '--step')
  const why = (to: string) => scratch.tryCkpt('undo', '--to', to).document.error.message
  expect(why('1.2')).toBe('Step 1.2 is undone already. Nothing was changed.')
  expect(why('1.3')).toBe('Turn 1 has no step 3 to undo. Nothing was changed.')
})

test('a word that is no command is taken for one that is near, and for none where none is', () => {
  const scratch = new Scratch().init()
  const hints = (word: string) => scratch.tryCkpt(word).document.error.hints
  const all = 'ckpt --help   (every command)'
  expect([hints('lis'), hints('undoo'), hints('foo'), hints('zzz')]).toEqual([
    ['ckpt list', all],
    ['ckpt undo', all],
    [all],
    [all],
  ])
})

test('where there is no repository no hint names its remotes', () => {
  const scratch = new Scratch()
  scratch.run(['init'])
  scratch.ckpt('snapshot')
  for (const args of [
    ['push', 'origin'],
    ['pull', 'origin'],
  ])
    expect(scratch.tryCkpt(...args).document.error).toEqual({
      code: 'NOT_FOUND',
      message: expect.any(String),
      hints: [`ckpt ${args[0]} --help`],
    })
})

test('the lines that a switch into a turn prints lead back when they are followed', () => {
  const scratch = new Scratch().init({ 'a.txt': 'one\n' })
  scratch.ckpt('mark', 'prompt', '--session', 's')
  for (const text of ['two\n', 'three\n']) {
    scratch.write({ 'a.txt': text })
    scratch.ckpt('mark', 'step', '--session', 's')
  }
  scratch.ckpt('mark', 'stop', '--session', 's')
  for (const [place, text] of [
    ['1.1', 'two\n'],
    ['1:before', 'one\n'],
  ] as const) {
    const { stdout } = scratch.run(['switch', place])
    expect(scratch.read('a.txt')).toBe(text)
    const [, end, back] = /, or: ckpt (.*)\nAs it was before, once it has ended: ckpt (.*)\n/.exec(stdout) ?? []
    expect([place, end]).toEqual([place, 'mark stop --session s'])
    for (const line of [end!, back!]) expect([line, scratch.run(line.split(' ')).code]).toEqual([line, 0])
    expect(scratch.read('a.txt')).toBe('three\n')
  }
})

test('a repository that only GIT_DIR names is not followed, which is said', () => {
  const scratch = new Scratch()
  scratch.git('init', '-q', '--bare', `${scratch.base}/dotfiles.git`)
  const vars = { GIT_DIR: `${scratch.base}/dotfiles.git`, GIT_WORK_TREE: scratch.root }
  const { code, stdout } = scratch.run(['snapshot', '--json'], { vars })
  expect([code, JSON.parse(stdout).error]).toEqual([
    9,
    {
      code: 'NOT_INITIALIZED',
      message: `${scratch.root} is a plain directory without a store. GIT_DIR is set, and ckpt does not follow it. Nothing was recorded.`,
      hints: ['ckpt init   (checkpoints for this directory)'],
    },
  ])
})
