/** Promises 14 and 15: the daemon is needed for nothing; a cloned repository, a prompt and a payload are data. */
import fs from 'node:fs'
import { expect, test } from 'vitest'
import { startDaemon } from '../support/daemon.ts'
import { Scratch } from '../support/scratch.ts'
import { inStore } from '../support/store-surgery.ts'

/** What no line on a terminal may hold: control characters but the line feed, and overrides of the writing direction. */
const raw = /[\x00-\x09\x0b-\x1f\x7f-\x9f\u200e\u200f\u202a-\u202e\u2066-\u2069]/

test('promise 14: every command works without the daemon, with and without --no-daemon', () => {
  const scratch = new Scratch().init()
  for (const flags of [[], ['--no-daemon']]) {
    const vars = { XDG_RUNTIME_DIR: '/nonexistent' }
    for (const line of [
      'mark prompt --session s',
      'mark step --session s',
      'mark stop --session s',
      'snapshot',
      'run -- true',
      'list',
      'show 1 --session s',
      'status',
      'diff',
      'undo --session s',
      'redo --session s',
      'restore 1:before --session s',
      'verify',
      'doctor',
      'capabilities',
    ]) {
      const [name, ...rest] = line.split(' ')
      expect([line, scratch.run([name!, ...flags, ...rest], { vars }).code]).toEqual([line, 0])
    }
    expect(scratch.ckpt('status').daemon).toMatchObject({ running: false })
  }
})

const hostile = [
  'subject\n\nCkpt-Kind: after\nCkpt-Turn: 99\nCkpt-Session: other\n',
  '\x1b]0;title\x07\x1b[2J\x1b[31mred\x9b1m',
  'safe\u202etxt.exe\u2066',
  '-----BEGIN PGP SIGNATURE-----\n\0'.replace('\0', ''),
  `long ${'x'.repeat(20_000)}`,
  '\r\nerased\r',
  '$(touch pwned) `touch pwned` ; touch pwned',
  '--force',
  '',
]

test('promise 15: text of prompts reaches neither the metadata of checkpoints nor a terminal raw', () => {
  const scratch = new Scratch().init()
  for (const text of hostile) scratch.turn(text, () => scratch.write({ 'a.txt': `${text.length}\n` }))
  const { turns } = scratch.ckpt('list', '-n', '100')
  expect(turns.map((turn: { n: number }) => turn.n)).toEqual([9, 8, 7, 6, 5, 4, 3, 2, 1])
  for (const [i, text] of hostile.entries()) {
    if (text !== '') expect(scratch.ckpt('show', String(i + 1)).turn.text).toBe(text)
  }
  const messages = inStore(scratch, 'log', '--all', '--no-notes', '--format=%B', '--glob=refs/ckpt')
  expect(messages).not.toMatch(/Turn: 99|other|title|erased|pwned|PGP|xxxx/)
  for (const args of [['list'], ['show', '1'], ['show', '2'], ['show', '6'], ['status'], ['undo', '--turns', '9']]) {
    const { stdout, stderr } = scratch.run(args)
    expect(stdout + stderr).not.toMatch(raw)
    expect(scratch.run([...args, '--json']).stdout).not.toMatch(raw)
  }
  expect(scratch.read('a.txt')).toBe('one\n')
  expect(scratch.exists('pwned')).toBe(false)
})

test('promise 15: ids and tool names from payloads stay values, whatever they hold', () => {
  const scratch = new Scratch().init()
  const sessions = [
    '../../../etc/x',
    'a/b',
    'A/B',
    '-x',
    '--session',
    'refs/heads/main',
    'é ü',
    'x.lock',
    '..',
    '@{-1}',
    'a b',
  ]
  for (const session of sessions) {
    scratch.ckpt(
      'mark',
      'prompt',
      `--session=${session}`,
      '--agent',
      'ag\nCkpt-Turn: 7',
      '--message-id',
      'm\nCkpt-Kind: after',
    )
    scratch.ckpt('mark', 'step', `--session=${session}`, '--tool', 'Edit\x1b[1m\n\nCkpt-Tool: no', '--path', 'a\nb')
    scratch.ckpt('mark', 'stop', `--session=${session}`)
  }
  const listed = scratch.ckpt('list', '--sessions').sessions
  expect(listed.map((one: { id: string }) => one.id).sort()).toEqual([...sessions].sort())
  for (const session of sessions) {
    const [turn] = scratch.ckpt('list', `--session=${session}`).turns
    expect(turn).toMatchObject({
      n: 1,
      agent: 'ag\nCkpt-Turn: 7',
      messageId: 'm\nCkpt-Kind: after',
      status: 'completed',
    })
    expect(turn.steps[0].tool).toBe('Edit\x1b[1m\n\nCkpt-Tool: no')
  }
  for (const args of [['list', '--sessions'], ['list'], ['show', '1'], ['status']])
    expect(scratch.run(args).stdout).not.toMatch(raw)
  for (const bad of ['', 'a\nb', 'nul\x01', 'x'.repeat(2000)]) {
    const { code, stdout } = scratch.run(['mark', 'prompt', `--session=${bad}`, '--json'])
    expect([code, JSON.parse(stdout).error.code]).toEqual([2, expect.stringMatching(/BAD_MARKER|USAGE/)])
  }
  expect(scratch.ckpt('verify').problems).toEqual([])
})

test('promise 15: file names with escapes, line ends and trailer look-alikes are shown safely and undone exactly', () => {
  const names = [
    'x\n\nCkpt-Kind: after',
    '\x1b[31mred',
    'bell\x07',
    '-rf',
    '--',
    ' lead',
    'trail ',
    '*',
    '?[a]',
    ':(top)x',
    'a\\b',
    '~',
    '#x',
    '!y',
    '"q"',
  ]
  const scratch = new Scratch().init({ 'a.txt': 'one\n' })
  const before = scratch.manifest()
  scratch.turn('odd names', () => scratch.write(Object.fromEntries(names.map((name) => [name, 'x\n']))))
  const after = scratch.manifest()
  for (const args of [
    ['show', '1'],
    ['diff', '--stat'],
    ['diff', '--name-only'],
    ['undo', '--dry-run'],
    ['undo'],
    ['redo'],
  ])
    expect([args, scratch.run(args).stdout]).toEqual([args, expect.not.stringMatching(raw)])
  expect(scratch.manifest()).toEqual(after)
  scratch.ckpt('undo', '--', '*') // a name, not a pattern
  expect(scratch.exists('*')).toBe(false)
  expect(scratch.exists('-rf')).toBe(true)
  scratch.write({ '*': 'x\n' })
  scratch.ckpt('undo', '--only', '1', '--', ...names.filter((name) => name !== '*'))
  scratch.remove('*')
  expect(scratch.manifest()).toEqual(before)
})

test("promise 15: a project's file that narrows protection counts only once it is committed, and that is said", () => {
  const scratch = new Scratch().init({ 'a.txt': 'one\n', 'b.log': 'one\n' })
  const narrow = {
    enableFileCheckpointing: false,
    snapshot: { exclude: ['*.log'], maxFileSize: 1, maxBytes: 1, deadline: '1ms' },
  }
  scratch.ckpt('mark', 'prompt', '--session', 's')
  scratch.write({ '.checkpointrc': JSON.stringify(narrow), 'a.txt': 'two\n', 'b.log': 'two\n' })
  const { checkpoint, warnings } = scratch.ckpt('mark', 'stop', '--session', 's')
  expect(checkpoint.degraded).toBe(false)
  expect(warnings.join()).toMatch(/narrows protection.*enableFileCheckpointing.*exclude.*once it is committed/)
  scratch.ckpt('undo')
  expect([scratch.read('a.txt'), scratch.read('b.log'), scratch.exists('.checkpointrc')]).toEqual([
    'one\n',
    'one\n',
    false,
  ])

  // Also by an exception that goes, or comes.
  const committed = { exclude: ['*.log', '!keep.log'], include: ['.env'] }
  const other = new Scratch().init({ '.checkpointrc': JSON.stringify({ snapshot: committed }), '.gitignore': '.env\n' })
  other.write({ 'keep.log': 'mine\n', '.env': 'mine\n' })
  other.write({ '.checkpointrc': '{"snapshot":{"exclude":["*.log"],"include":[".env","!.env"]}}' })
  const [prompted] = [
    other.ckpt('mark', 'prompt', '--session', 's'),
    other.write({ 'keep.log': "the agent's\n", '.env': "the agent's\n" }),
    other.ckpt('mark', 'stop', '--session', 's'),
    other.ckpt('undo'),
  ]
  expect([other.read('keep.log'), other.read('.env')]).toEqual(['mine\n', 'mine\n'])
  expect(prompted.warnings.join()).toMatch(/narrows protection \(snapshot.include, snapshot.exclude\)/)

  scratch.write({ '.checkpointrc': '{"snapshot":{"exclude":["*.log"]}}' })
  scratch.git('add', '-f', '.checkpointrc')
  scratch.git('commit', '-qm', 'narrow')
  const { checkpoint: next } = scratch.ckpt('snapshot')
  expect(inStore(scratch, 'ls-tree', '--name-only', next.id).split('\n')).toEqual(['.checkpointrc', 'a.txt'])
  scratch.write({ '.checkpointrc': '{"enableFileCheckpointing":false}' })
  scratch.git('commit', '-qam', 'off')
  const off = scratch.ckpt('mark', 'prompt', '--session', 's')
  expect([off.checkpoint, off.warnings.join()]).toEqual([null, expect.stringMatching(/switched off/)])
  expect(scratch.ckpt('status').warnings.join()).toMatch(/switched off/)
  expect(scratch.ckpt('doctor').findings).toContainEqual(expect.objectContaining({ name: 'switch', advice: true }))
})

test('promise 15: an invalid file that is not committed stops no marker; elsewhere it is named with its key', () => {
  const scratch = new Scratch().init()
  for (const [content, named] of [
    ['{"snapshot":{"maxFilesize":1}}', 'snapshot.maxFilesize'],
    ['{"snapshot":{"deadline":-1}}', 'snapshot.deadline'],
    ['{{{{', '.checkpointrc'],
    ['[1,2]', '.checkpointrc'],
  ] as const) {
    scratch.write({ '.checkpointrc': content })
    const { warnings } = scratch.ckpt('mark', 'prompt', '--session', 's')
    expect(warnings.join()).toMatch(/passed over/)
    scratch.ckpt('mark', 'stop', '--session', 's')
    const { code, document } = scratch.tryCkpt('list')
    expect([content, code, document.error.code]).toEqual([content, 2, 'CONFIG'])
    expect(document.error.message).toContain(named)
    expect(document.error.message).toContain('.checkpointrc')
  }
  scratch.git('add', '.checkpointrc')
  scratch.git('commit', '-qm', 'broken and committed')
  expect(scratch.tryCkpt('mark', 'prompt', '--session', 's')).toMatchObject({
    code: 2,
    document: { error: { code: 'CONFIG' } },
  })
})

test('promise 15: nor does one that may not be read; the same of the user is named', () => {
  const scratch = new Scratch().init({ 'package.json': '{}', 'a.txt': 'one\n' })
  const own = `${scratch.home}/.config/ckpt/.checkpointrc`
  scratch.write({ '../home/.config/ckpt/.checkpointrc': '{}' })
  const uid = scratch.handOver()
  const as = (...args: string[]) => {
    const { code, stdout } = scratch.run(['--json', ...args], { uid })
    return { code, document: JSON.parse(stdout) }
  }
  as('mark', 'prompt', '--session', 's')
  scratch.write({ 'a.txt': 'two\n' })
  fs.chmodSync(scratch.at('package.json'), 0)
  const stopped = as('mark', 'stop', '--session', 's')
  expect(stopped.document.warnings.join()).toMatch(/package\.json cannot be read \(EACCES\).* It was passed over/)
  expect(stopped.code).toBe(0)
  expect(as('list')).toMatchObject({ code: 2, document: { error: { code: 'CONFIG' } } })
  expect(as('undo', '--', 'a.txt').code).toBe(0)
  expect(scratch.read('a.txt')).toBe('one\n')
  fs.chmodSync(scratch.at('package.json'), 0o644)
  fs.chmodSync(own, 0)
  expect(as('mark', 'prompt', '--session', 's').document.error).toMatchObject({
    ...{ code: 'CONFIG', message: expect.stringContaining(own) },
  })
  // What may not be searched is not there; for the daemon, too.
  for (const how of [['daemon', 'start'], ['snapshot'], ['daemon', 'stop']]) {
    fs.chmodSync(`${scratch.home}/.config/ckpt`, 0)
    expect([how, as(...how).code]).toEqual([how, 0])
  }
})

for (const daemon of [false, true])
  test(`promise 15: only markers, undo and redo pass over an invalid file that is not committed${daemon ? ', with the daemon' : ''}`, () => {
    const scratch = new Scratch().init()
    if (daemon) startDaemon(scratch)
    scratch.turn('one', () => scratch.write({ 'a.txt': 'two\n' }))
    scratch.write({ '.checkpointrc': '{"snapshot":{"maxFileSiz":"1MiB"}}' })
    const before = { ...scratch.manifest(), refs: inStore(scratch, 'for-each-ref') }
    for (const line of ['snapshot', 'restore 1:before', 'accept', 'switch 1', 'list'])
      expect([line, scratch.tryCkpt(...line.split(' '))]).toMatchObject([
        line,
        { code: 2, document: { error: { code: 'CONFIG', hints: [`edit ${scratch.at('.checkpointrc')}`] } } },
      ])
    expect({ ...scratch.manifest(), refs: inStore(scratch, 'for-each-ref') }).toEqual(before)
    for (const line of ['undo', 'redo', 'mark prompt --session s', 'mark stop --session s', 'run -- true'])
      expect([line, scratch.ckpt(...line.split(' ')).warnings?.join() ?? 'passed over']).toEqual([
        line,
        expect.stringContaining('passed over'),
      ])
    scratch.write({ '.checkpointrc': '{"snapshot":{"maxFileSize":"1KiB"}}' }) // valid; it is told, and counts for nobody
    expect(scratch.ckpt('snapshot').warnings.join()).toContain('narrows protection')
  })

test('promise 15: configuration that is code is not loaded', () => {
  const scratch = new Scratch().init()
  const code = (name: string) => `require('fs').writeFileSync(${JSON.stringify(scratch.at(name))},'');module.exports={}`
  const names = [
    '.checkpointrc.js',
    '.checkpointrc.cjs',
    'checkpoint.config.js',
    'checkpoint.config.cjs',
    '.checkpointrc.ts',
    '.config/checkpointrc.js',
  ]
  scratch.write(Object.fromEntries(names.map((name) => [name, code(`${name.replace('/', '-')}.ran`)])))
  scratch.write({
    '.checkpointrc.mjs': `import fs from 'fs';fs.writeFileSync('${scratch.at('mjs.ran')}','');export default {}`,
  })
  // YAML tags that make objects, and JSON keys that reach prototypes.
  scratch.write({ '.checkpointrc.yaml': 'snapshot: !!js/function "function(){ return 1 }"\n' })
  scratch.ckpt('mark', 'prompt', '--session', 's')
  scratch.remove('.checkpointrc.yaml')
  scratch.write({ '.checkpointrc.json': '{"__proto__":{"enableFileCheckpointing":false},"constructor":{}}' })
  const { checkpoint } = scratch.ckpt('mark', 'stop', '--session', 's')
  expect(checkpoint.kind).toBe('after')
  expect(fs.readdirSync(scratch.root).filter((name) => name.endsWith('.ran'))).toEqual([])
})

test('promise 15: a configuration file that is a symlink out of the worktree is not followed', () => {
  const scratch = new Scratch().init()
  fs.writeFileSync(`${scratch.base}/outside.json`, 'secret: [unclosed')
  fs.symlinkSync('../outside.json', scratch.at('.checkpointrc'))
  const { code, stdout, stderr } = scratch.run(['status'])
  expect([code, stdout + stderr]).toEqual([0, expect.not.stringMatching(/unclosed/)])
})

test('promise 15: a link in the place of a configuration file that is committed is no configuration, and that is said', () => {
  const scratch = new Scratch().init({ 'conf/rc': 'snapshot: {exclude: [a.txt]}\n', 'a.txt': 'one\n' })
  fs.symlinkSync('conf/rc', scratch.at('.checkpointrc'))
  scratch.git('add', '-A')
  scratch.git('commit', '-qm', 'link')
  const { checkpoint, warnings } = scratch.ckpt('snapshot')
  expect(inStore(scratch, 'ls-tree', '--name-only', checkpoint.id)).toContain('a.txt')
  expect(warnings).toEqual([
    `${scratch.at('.checkpointrc')} is a link: a project's configuration is not read through one.`,
  ])
  fs.unlinkSync(scratch.at('.checkpointrc'))
  expect(scratch.ckpt('snapshot').warnings).toEqual([])
})

test("a user's own configuration may be a link, as to a repository of such files; what it leads to counts with a daemon, too", () => {
  const scratch = new Scratch().init({ 'a.txt': 'one\n', 'b.txt': 'one\n', 'c.txt': 'one\n' })
  const own = `${scratch.home}/.config/ckpt`
  fs.mkdirSync(own, { recursive: true })
  const exclude = (name: string) => fs.writeFileSync(`${scratch.base}/own.yaml`, `snapshot: {exclude: [${name}]}\n`)
  exclude('a.txt')
  fs.symlinkSync(`${scratch.base}/own.yaml`, `${own}/.checkpointrc.yaml`)
  const captured = () => inStore(scratch, 'ls-tree', '--name-only', scratch.ckpt('snapshot').checkpoint.id).split('\n')
  expect(captured()).toEqual(['b.txt', 'c.txt'])
  startDaemon(scratch)
  expect(captured()).toEqual(['b.txt', 'c.txt'])
  exclude('b.txt, c.txt')
  expect(captured()).toEqual(['a.txt'])
})

test('what a project has ckpt do by itself counts once it is committed; without a repository in the own file only', () => {
  const scratch = new Scratch().init()
  const project = { commit: { auto: true }, hooks: { postCommit: true }, snapshot: { exclude: ['x'] } }
  scratch.write({ '.checkpointrc': JSON.stringify(project) })
  expect(scratch.ckpt('snapshot').warnings).toEqual([
    "The project's configuration on disk narrows protection (snapshot.exclude): that counts once it is committed.",
    "The project's configuration on disk says what ckpt does by itself (commit.auto, hooks.postCommit): that counts once it is committed.",
  ])
  const plain = new Scratch('plain')
  plain.write({ '.checkpointrc': '{"snapshot":{"exclude":["x"]}}' })
  const own = `${plain.home}/.config/ckpt/.checkpointrc`
  expect(plain.ckpt('init').warnings).toEqual([
    `The project's configuration on disk narrows protection (snapshot.exclude): that counts in your own file only (${own}).`,
  ])
})

test('a configuration that is broken on disk takes nothing from the committed one: what that leaves out is left out', () => {
  const scratch = new Scratch().init({ '.checkpointrc': 'snapshot:\n  exclude: ["vault/"]\n', 'a.txt': '1\n' })
  scratch.write({ 'vault/key': 'secret\n' })
  scratch.ckpt('mark', 'prompt', '--session', 's')
  scratch.write({ '.checkpointrc': 'snapshot: [\n' })
  const { checkpoint, warnings } = scratch.ckpt('mark', 'stop', '--session', 's')
  expect(scratch.git('--git-dir=.git/ckpt/store.git', 'ls-tree', '-r', '--name-only', checkpoint.id)).not.toContain(
    'vault',
  )
  expect(warnings).toEqual([expect.stringContaining('was passed over')])
})

test('switched off, a checkpoint by hand is not recorded either, and that is said', () => {
  const scratch = new Scratch().init()
  fs.mkdirSync(`${scratch.home}/.config/ckpt`, { recursive: true })
  fs.writeFileSync(`${scratch.home}/.config/ckpt/.checkpointrc`, '{"enableFileCheckpointing": false}')
  for (const args of [['snapshot'], ['mark', 'prompt', '--session', 's'], ['run', '--', 'true']]) {
    const { checkpoint, warnings } = scratch.ckpt(...args)
    expect([args, checkpoint, warnings.join()]).toEqual([args, null, expect.stringMatching(/switched off/)])
  }
  expect(scratch.run(['snapshot']).stdout).toBe('Nothing was recorded.\n')
  expect(scratch.ckpt('status').store.checkpoints).toBe(0)
  expect(scratch.exists('.git/ckpt')).toBe(false)
})
