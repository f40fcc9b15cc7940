// Our entry in the agents' settings: shown, appended, and taken out to the exact bytes.
import { execFileSync, spawnSync } from 'node:child_process'
import fs from 'node:fs'
import path from 'node:path'
import fc from 'fast-check'
import { expect, test } from 'vitest'
import { append, applyEdits, dataOf, parseJsonc, take } from '../../src/agents/jsonc.ts'
import { clientIn, isHookOf, isNothingButHookOf, withClientAt } from '../../src/agents/program.ts'
import { isRoot, type Json, PROGRAM, Scratch } from '../support/scratch.ts'

const FILES: Record<string, string> = {
  claude: '.claude/settings.json',
  codex: '.codex/hooks.json',
  gemini: '.gemini/settings.json',
  cursor: '.cursor/hooks.json',
}
const AGENTS = [...Object.keys(FILES), 'opencode']

const theirs = '{ "hooks": [{ "type": "command", "command": "say done" }] }'
const SETTINGS: [string, string][] = [
  ['an empty file', ''],
  ['nothing but a line end', '\n'],
  ['an empty object', '{}'],
  ['an empty object with room', '{\n}\n'],
  ['a comment alone in it', '{\n  // nothing yet\n}\n'],
  ['on one line', '{"model":"x","hooks":{"Stop":[]}}'],
  [
    'comments',
    `// mine\n{\n  /* which */ "model": "x", // keep\n  "hooks": {\n    "Stop": [ ${theirs} ] // mine too\n  } // end\n}\n`,
  ],
  ['other hooks', `{\n  "hooks": {\n    "Stop": [\n      ${theirs}\n    ],\n    "Other": []\n  },\n  "z": 1\n}\n`],
  ['trailing commas', `{\n  "hooks": {\n    "Stop": [\n      ${theirs}, // first\n    ],\n  },\n}\n`],
  ['tabs', `{\n\t"hooks": {\n\t\t"Stop": [\n\t\t\t${theirs}\n\t\t]\n\t}\n}`],
  ['odd indentation', `  {\n       "a": [1,\n 2],\n   "hooks" : { "Stop":[\n${theirs} ]}\n }  \n\n`],
  ['Windows line ends', `{\r\n    "a": 1,\r\n    "hooks": {}\r\n}\r\n`],
  ['a byte order mark', '\uFEFF{\n  "a": "ä€😀"\n}\n'],
]

const strip = (text: string) => dataOf(parseJsonc(text)) as Json

/** The program, which is ended where it waits for something. */
const inTime = (scratch: Scratch, line: string[], vars: Record<string, string> = {}) =>
  spawnSync(process.execPath, [PROGRAM, ...line, '--json'], {
    cwd: scratch.root,
    env: { ...scratch.vars, ...vars },
    encoding: 'utf8',
    timeout: 20_000,
  })

test.each(SETTINGS)('install and uninstall give the bytes back: %s', (_, text) => {
  const scratch = new Scratch().init()
  for (const [agent, name] of Object.entries(FILES)) {
    const file = path.join(scratch.home, name)
    fs.mkdirSync(path.dirname(file))
    fs.writeFileSync(file, text, { mode: 0o640 })
    expect(scratch.ckpt('agent', 'install', agent).agents).toMatchObject([{ name: agent, changed: true, path: file }])
    const installed = fs.readFileSync(file, 'utf8')
    const { hooks, ...rest } = strip(installed)
    const events = Object.values(hooks as Record<string, Json[]>).flat()
    expect(events.filter((entry) => JSON.stringify(entry).includes(`hook ${agent}`)).length).toBeGreaterThan(3)
    if (text.includes('say done')) {
      expect(hooks.Stop[0]).toEqual(strip(theirs)) // appended, never before another's
      expect(installed).toContain(theirs)
    }
    for (const comment of text.match(/\/\/ .*|\/\* .*? \*\//g) ?? []) expect(installed).toContain(comment.trim())
    const before = text.trim() === '' ? {} : strip(text)
    delete before.hooks
    expect(rest).toMatchObject(before)
    // Again it is nothing; and it is said to be there.
    expect(scratch.ckpt('agent', 'install', agent).agents).toMatchObject([{ changed: false, diff: '' }])
    expect(fs.readFileSync(file, 'utf8')).toBe(installed)
    expect(scratch.ckpt('agent', 'status', agent, '--scope', 'user').agents).toMatchObject([
      { installed: true, missing: [] },
    ])
    scratch.ckpt('agent', 'uninstall', agent)
    expect(fs.readFileSync(file, 'utf8')).toBe(text)
    expect(fs.statSync(file).mode & 0o777).toBe(0o640)
  }
})

test('where there was no file there is none afterwards, nor a directory of ours', () => {
  const scratch = new Scratch().init()
  for (const agent of AGENTS) scratch.ckpt('agent', 'install', agent)
  for (const agent of AGENTS) scratch.ckpt('agent', 'uninstall', agent)
  expect(Object.keys(scratch.manifest(scratch.home)).filter((name) => !name.startsWith('state'))).toEqual([])
})

test('where the repository was moved since, uninstall gives back the bytes, or the place without a file', () => {
  const scratch = new Scratch().init()
  const there = (name: string) => path.join(scratch.base, name)
  const run = (cwd: string, action: string, agent: string) =>
    expect(scratch.run(['agent', action, agent, '--scope', 'project'], { cwd }).code).toBe(0)
  for (const [n, text] of [null, ...SETTINGS.map(([, one]) => one)].entries()) {
    const [before, after] = [there(`before-${n}`), there(`after-${n}`)]
    scratch.git('init', '-q', before)
    for (const [agent, name] of Object.entries(FILES)) {
      if (text !== null) {
        fs.mkdirSync(path.dirname(path.join(before, name)), { recursive: true })
        fs.writeFileSync(path.join(before, name), text)
      }
      run(before, 'install', agent)
    }
    fs.renameSync(before, after)
    for (const [agent, name] of Object.entries(FILES)) {
      if (n % 2 === 0) run(after, 'install', agent) // it is there already
      run(after, 'uninstall', agent)
      const file = path.join(after, name)
      expect(fs.existsSync(file) ? fs.readFileSync(file, 'utf8') : null).toBe(text)
    }
    if (text === null) expect(fs.readdirSync(after)).toEqual(['.git'])
  }
  expect(fs.readdirSync(path.join(scratch.home, 'state/ckpt/agents'))).toEqual([])
})

test.each(SETTINGS.slice(5, 10))('changed by its owner since, ours goes and the change stays: %s', (_, text) => {
  const scratch = new Scratch().init()
  const file = path.join(scratch.home, FILES.claude!)
  fs.mkdirSync(path.dirname(file))
  fs.writeFileSync(file, text)
  scratch.ckpt('agent', 'install', 'claude')
  const added = (now: string) => `${now.trimEnd().slice(0, -1).trimEnd().replace(/,$/, '')}, "new": true }`
  const commented = text.includes('// end')
  if (commented) return
  fs.writeFileSync(file, added(fs.readFileSync(file, 'utf8')))
  scratch.ckpt('agent', 'uninstall', 'claude')
  const left = strip(fs.readFileSync(file, 'utf8'))
  expect(JSON.stringify(left)).not.toContain('hook claude')
  expect(left.new).toBe(true)
  if (text.includes('say done')) expect(left.hooks.Stop).toEqual([strip(theirs)])
})

test.each([
  ['{ "hooks": { // mine\n } }', { hooks: {} }],
  ['{ "hooks": { "PreToolUse": [ /* mine */ ] } }', { hooks: { PreToolUse: [] } }],
  ['{\n  "hooks": {\n    // mine\n    "PreToolUse": []\n  }\n}\n', { hooks: { PreToolUse: [] } }],
  ['{ "hooks": /* mine */ {} }', { hooks: {} }],
  ['{ "hooks" // mine\n: {} }', { hooks: {} }],
  ['{ "hooks": { "Stop": /* mine */ [] } }', { hooks: { Stop: [] } }],
])('changed by its owner since, a comment beside ours stays: %j', (text, expected) => {
  const scratch = new Scratch().init()
  const file = path.join(scratch.home, FILES.claude!)
  fs.mkdirSync(path.dirname(file))
  fs.writeFileSync(file, text)
  scratch.ckpt('agent', 'install', 'claude')
  fs.writeFileSync(file, fs.readFileSync(file, 'utf8').replace('{', '{ "new": true,'))
  scratch.ckpt('agent', 'uninstall', 'claude')
  const left = fs.readFileSync(file, 'utf8')
  expect(left).toContain('mine')
  expect(strip(left)).toEqual({ new: true, ...expected })
})

test.each([
  ['claude', '{"a":1}'],
  ['claude', '{"a":1,"hooks":{}}'],
  ['claude', '{"hooks":{"Stop":[],"x":[{"command":"y"}]}}'],
  ['cursor', '{"a":1}'],
  ['cursor', '{"version":1}'],
  ['cursor', '{"a":1,"hooks":{}}'],
  ['cursor', '{"hooks":{"stop":[],"x":[{"command":"y"}]}}'],
])('changed by its owner since, what was there before ours stays, and no more: %s, %s', (agent, text) => {
  const scratch = new Scratch().init()
  const file = path.join(scratch.home, FILES[agent]!)
  fs.mkdirSync(path.dirname(file))
  fs.writeFileSync(file, text)
  for (let i = 0; i < 2; i++) {
    scratch.ckpt('agent', 'install', agent)
    fs.appendFileSync(file, '\n') // the second install is into a text that is not as the first one left it
  }
  scratch.ckpt('agent', 'uninstall', agent)
  expect(fs.readFileSync(file, 'utf8')).toBe(`${text}\n\n`)
})

test('a version that hooks of others need stays', () => {
  const scratch = new Scratch().init()
  const file = path.join(scratch.home, FILES.cursor!)
  fs.mkdirSync(path.dirname(file))
  fs.writeFileSync(file, '{}\n')
  scratch.ckpt('agent', 'install', 'cursor')
  const now = strip(fs.readFileSync(file, 'utf8'))
  fs.writeFileSync(file, JSON.stringify({ ...now, hooks: { ...now.hooks, x: [{ command: 'y' }] } }))
  scratch.ckpt('agent', 'uninstall', 'cursor')
  expect(strip(fs.readFileSync(file, 'utf8'))).toEqual({ version: 1, hooks: { x: [{ command: 'y' }] } })
})

test.each(SETTINGS)('installed again from elsewhere, uninstall gives the bytes back all the same: %s', (_, text) => {
  const scratch = new Scratch().init()
  const file = path.join(scratch.home, FILES.claude!)
  fs.mkdirSync(path.dirname(file))
  fs.writeFileSync(file, text)
  const onPath = path.join(scratch.base, 'bin')
  fs.mkdirSync(onPath)
  fs.symlinkSync(path.join(path.dirname(PROGRAM), 'ckpt-hook'), path.join(onPath, 'ckpt-hook'))
  const install = (vars: Record<string, string>) => {
    expect(scratch.run(['agent', 'install', 'claude'], { vars }).code).toBe(0)
    return fs.readFileSync(file, 'utf8')
  }
  const first = install({})
  const second = install({ PATH: `${onPath}:${scratch.vars.PATH}` })
  expect(second).not.toBe(first)
  expect(second).toBe(first.replaceAll(/"[^"]*ckpt-hook claude"/g, JSON.stringify(`${onPath}/ckpt-hook claude`)))
  scratch.ckpt('agent', 'uninstall', 'claude')
  expect(fs.readFileSync(file, 'utf8')).toBe(text)
})

test('a client that only what npx or yarn starts has in its PATH is none to the agent', () => {
  const scratch = new Scratch().init()
  const bin = path.join(scratch.base, 'node_modules/.bin')
  const berry = path.join(scratch.base, 'xfs-1')
  for (const at of [bin, berry]) {
    fs.mkdirSync(at, { recursive: true })
    fs.symlinkSync(path.join(path.dirname(PROGRAM), 'ckpt-hook'), path.join(at, 'ckpt-hook'))
  }
  const vars = { PATH: `${bin}:${berry}:${scratch.vars.PATH}`, BERRY_BIN_FOLDER: berry }
  const file = path.join(scratch.home, FILES.claude!)
  expect(scratch.run(['agent', 'install', 'claude'], { vars })).toMatchObject({ code: 0, stderr: '' })
  expect(fs.readFileSync(file, 'utf8')).toMatch(/"command": "\/[^"]*\/bin\/ckpt-hook claude"/)
  // What others share cannot name it, which is said, here as by the doctor.
  const shared = ['agent', 'install', 'gemini', '--scope', 'project']
  const toInstall = 'npm install -g ckpt   (ckpt-hook is not in PATH)'
  const { code, stderr } = scratch.run(shared, { vars })
  expect([code, stderr]).toEqual([0, `ckpt: The agent cannot start these hooks yet: ${toInstall}\n`])
  const { findings } = JSON.parse(scratch.run(['doctor', '--json'], { vars }).stdout)
  const found = (agent: string) => findings.find(({ name }: Json) => name === `agent ${agent}`)
  expect([found('claude'), found('gemini')]).toMatchObject([{ ok: true }, { ok: false, mend: toInstall }])
})

test('a command of its own that starts this ckpt is none of another, however it is named', () => {
  const scratch = new Scratch().init()
  const file = path.join(scratch.home, FILES.claude!)
  scratch.ckpt('agent', 'install', 'claude')
  const text = fs.readFileSync(file, 'utf8')
  const found = () => scratch.tryCkpt('doctor').document.findings.find(({ name }: Json) => name === 'agent claude')
  for (const command of [`log x; ${PROGRAM} hook claude`, `node ${PROGRAM} hook claude`]) {
    fs.writeFileSync(file, text.replaceAll(/"[^"]*ckpt-hook claude"/g, JSON.stringify(command)))
    expect(found()).toMatchObject({ ok: true })
  }
  const other = path.join(scratch.base, 'other/bin')
  fs.cpSync(path.dirname(PROGRAM), other, { recursive: true })
  fs.writeFileSync(file, text.replaceAll(/"[^"]*ckpt-hook claude"/g, `"log; ${other}/ckpt.js hook claude"`))
  expect(found()).toMatchObject({ ok: false, mend: `edit ${file}` })
})

/** As pnpm lays a package out in a directory, and links to it. */
function byPnpm(top: string): { program: string; linked: string } {
  const own = path.dirname(path.dirname(PROGRAM))
  const kept = path.join(top, '.pnpm/ckpt@0.1.0/node_modules/ckpt')
  fs.mkdirSync(kept, { recursive: true })
  for (const name of ['bin', 'dist', 'package.json'])
    fs.cpSync(path.join(own, name), path.join(kept, name), { recursive: true })
  fs.symlinkSync(path.join(own, 'node_modules'), path.join(kept, 'node_modules'))
  const linked = path.join(top, path.basename(top) === 'node_modules' ? 'ckpt' : 'node_modules/ckpt')
  fs.mkdirSync(path.dirname(linked), { recursive: true })
  fs.symlinkSync(path.relative(path.dirname(linked), kept), linked)
  return { program: path.join(kept, 'bin/ckpt.js'), linked: path.join(linked, 'bin/ckpt-hook') }
}

test.each(['node_modules', 'global/5'])(
  'what pnpm installed (%s) is named where it stays, and not its wrapper',
  (where) => {
    const scratch = new Scratch().init()
    const { program, linked } = byPnpm(path.join(scratch.base, where))
    const wrapper = path.join(scratch.base, 'bin/ckpt-hook')
    fs.mkdirSync(path.dirname(wrapper))
    fs.writeFileSync(wrapper, `#!/bin/sh\nexec /bin/sh '${linked}' "$@"\n`, { mode: 0o755 })
    const env = { ...scratch.vars, PATH: `${path.dirname(wrapper)}:${scratch.vars.PATH}` }
    const run = (...args: string[]) => {
      const options = { cwd: scratch.root, env, encoding: 'utf8' } as const
      return JSON.parse(spawnSync(process.execPath, [program, ...args, '--json'], options).stdout)
    }
    run('agent', 'install', 'claude')
    const text = fs.readFileSync(path.join(scratch.home, FILES.claude!), 'utf8')
    expect(new Set([...text.matchAll(/"command": "(.*)"/g)].map(([, command]) => command))).toEqual(
      new Set([`${linked} claude`]),
    )
    const found = () => run('doctor').findings.find(({ name }: Json) => name === 'agent claude')
    expect(found()).toMatchObject({ ok: true })
    // An install before named the wrapper.
    fs.writeFileSync(path.join(scratch.home, FILES.claude!), text.replaceAll(linked, wrapper))
    expect(found()).toMatchObject({ ok: false, mend: 'ckpt agent install claude' })
  },
)

test('doctor tells of hooks that start another ckpt than the one that is asked', () => {
  const scratch = new Scratch().init()
  const other = path.join(scratch.base, 'other/bin')
  fs.cpSync(path.dirname(PROGRAM), other, { recursive: true })
  const vars = { PATH: `${other}:${scratch.vars.PATH}` }
  expect(scratch.run(['agent', 'install', 'claude'], { vars }).code).toBe(0)
  const found = (vars?: Record<string, string>) => {
    const { stdout } = scratch.run(['doctor', '--json'], vars && { vars })
    return JSON.parse(stdout).findings.find(({ name }: Json) => name === 'agent claude')
  }
  expect(found(vars)).toMatchObject({ ok: true })
  const mend = 'ckpt agent install claude'
  const detail = expect.stringContaining(`they start ${other}/ckpt-hook, which is not of this ckpt`)
  expect(found()).toMatchObject({ ok: false, detail, mend })
  scratch.ckpt(...mend.split(' ').slice(1))
  expect(found()).toMatchObject({ ok: true })
})

test('hooks that would be started from the cache of npx are installed, and that is said', () => {
  const scratch = new Scratch().init()
  const cached = path.join(scratch.base, '_npx/0123456789abcdef/node_modules/ckpt')
  const own = path.dirname(path.dirname(PROGRAM))
  fs.mkdirSync(cached, { recursive: true })
  for (const name of ['bin', 'dist', 'package.json'])
    fs.cpSync(path.join(own, name), path.join(cached, name), { recursive: true })
  fs.symlinkSync(path.join(own, 'node_modules'), path.join(cached, 'node_modules'))
  const install = [path.join(cached, 'bin/ckpt.js'), 'agent', 'install', 'claude', '--json']
  const { stdout } = spawnSync(process.execPath, install, { cwd: scratch.root, env: scratch.vars, encoding: 'utf8' })
  const warning = expect.stringMatching(/from a cache, .*\/_npx\/.*: npm install -g ckpt, and install them again\.$/)
  expect(JSON.parse(stdout)).toMatchObject({ ok: true, agents: [{ changed: true }], warnings: [warning] })
})

test('our hook in a group of others: only ours goes', () => {
  const scratch = new Scratch().init()
  const file = path.join(scratch.home, FILES.claude!)
  fs.mkdirSync(path.dirname(file))
  const group = (...commands: string[]) => ({ hooks: commands.map((command) => ({ type: 'command', command })) })
  fs.writeFileSync(file, JSON.stringify({ hooks: { Stop: [group('say', 'ckpt hook claude', 'sing')] } }, null, 2))
  scratch.ckpt('agent', 'uninstall', 'claude')
  expect(strip(fs.readFileSync(file, 'utf8'))).toEqual({ hooks: { Stop: [group('say', 'sing')] } })
})

test('a command of ours that its owner made do more stays theirs', () => {
  const scratch = new Scratch().init()
  const file = path.join(scratch.home, FILES.claude!)
  scratch.ckpt('agent', 'install', 'claude')
  const installed = fs.readFileSync(file, 'utf8')
  const word = /"command": "(.*?)ckpt-hook claude"/.exec(installed)![1]!
  const commandsOf = (event: string) =>
    (strip(fs.readFileSync(file, 'utf8')).hooks?.[event] ?? []).flatMap(({ hooks }: Json) =>
      hooks.map(({ command }: Json) => command),
    )
  const mine = (at: string) => [
    `mytool log; ${at}ckpt-hook claude`,
    `${at}ckpt-hook claude || true`,
    `${at}ckpt-hook claude; mytool`,
    `sh -c '${at}ckpt-hook claude && mytool'`,
    `CKPT_DISABLED=1 ${at}ckpt-hook claude`,
  ]
  const EVENT_NAMES = ['Stop', 'PreCompact', 'SessionEnd', 'PreToolUse', 'SessionStart']
  const extended = strip(installed)
  for (const [i, event] of EVENT_NAMES.entries()) extended.hooks[event][0].hooks[0].command = mine('/old/place/')[i]
  extended.hooks.PostToolUse[0].hooks[0].command = `'/old place/ckpt-hook' claude` // ours alone
  fs.writeFileSync(file, JSON.stringify(extended, null, 2))
  scratch.ckpt('agent', 'install', 'claude')
  expect(EVENT_NAMES.map(commandsOf)).toEqual(mine(word).map((command) => [command]))
  expect(commandsOf('PostToolUse')).toEqual([`${word}ckpt-hook claude`])
  expect(scratch.ckpt('agent', 'install', 'claude').agents).toMatchObject([{ changed: false }])
  const { agents } = scratch.ckpt('agent', 'uninstall', 'claude', '--dry-run')
  expect(agents[0].left.toSorted()).toEqual(mine(word).toSorted())
  expect(scratch.run(['agent', 'uninstall', 'claude']).stdout).toContain(mine(word)[0])
  expect(EVENT_NAMES.map(commandsOf)).toEqual(mine(word).map((command) => [command]))
  expect(Object.keys(strip(fs.readFileSync(file, 'utf8')).hooks)).toHaveLength(EVENT_NAMES.length)
  expect(scratch.run(['agent', 'uninstall', 'claude']).stdout).toContain('no hooks of ckpt alone')
})

test('which commands run our hook, and which do nothing else', () => {
  const [runs, only] = [isHookOf('claude'), isNothingButHookOf('claude')]
  const whole = [
    'ckpt-hook claude',
    '/a/b/ckpt-hook claude',
    `'/a b/it'\\''s/ckpt-hook' claude`,
    '"/a b/ckpt-hook" claude',
    '/a\\ b/ckpt-hook claude Stop',
    'ckpt hook claude',
    'npx ckpt hook claude',
    "node '/a b/bin/ckpt.js' hook claude Stop",
  ]
  const more = [
    'ckpt-hook claude; say',
    'say;ckpt-hook claude',
    'ckpt-hook claude >/dev/null',
    '(ckpt-hook claude)',
    'ckpt-hook claude\nsay',
    'nice ckpt-hook claude',
    '"$HOME/bin/ckpt-hook" claude',
    'A=1 ckpt-hook claude',
    'ckpt-hook claude &',
    'say; ckpt-hook "claude"',
    "A='it is' '/a b/ckpt-hook' 'claude' || true",
  ]
  expect(whole.filter((command) => !runs(command) || !only(command))).toEqual([])
  expect(more.filter((command) => !runs(command) || only(command))).toEqual([])
  const none = ['ckpt-hook claude-notify', 'ckpt-hook codex', 'my-ckpt-hook claude']
  const comments = ['# ckpt-hook claude', 'say # ckpt-hook claude', 'say;#ckpt-hook claude\nsay']
  expect([...none, ...comments].filter(runs)).toEqual([])
  const quoted = [
    `say '#'; ckpt-hook claude`,
    `say "# it's"; ckpt-hook claude`,
    'say \\#; ckpt-hook claude',
    'say a#b; ckpt-hook claude',
  ]
  expect(quoted.filter((command) => !runs(command))).toEqual([])
  expect(whole.map((command) => clientIn(command, 'claude'))).toEqual([
    'ckpt-hook',
    '/a/b/ckpt-hook',
    "/a b/it's/ckpt-hook",
    '/a b/ckpt-hook',
    '/a b/ckpt-hook',
    'ckpt',
    'ckpt',
    '/a b/bin/ckpt.js',
  ])
  const clients = [...more, ...quoted].map((command) => clientIn(command, 'claude'))
  const told = (command = '') =>
    command.includes('$HOME') ? null : command.includes('/a b') ? '/a b/ckpt-hook' : 'ckpt-hook'
  expect(clients).toEqual(clients.map((_, i) => told(more[i])))
  for (const command of [
    '~/bin/ckpt-hook claude',
    '"$(say)/ckpt-hook" claude',
    '$(say)/ckpt-hook claude',
    '`say`/ckpt-hook claude',
  ])
    expect([command, clientIn(command, 'claude')]).toEqual([command, null])
  const at = (command: string) => withClientAt(command, { agent: 'claude', word: '/new/ckpt-hook' })
  expect(at('say;/old/ckpt-hook claude')).toBe('say;/new/ckpt-hook claude')
  expect(at(`say; '/a b/ckpt-hook' "claude" || true # '/a b/ckpt-hook' claude`)).toBe(
    `say; /new/ckpt-hook "claude" || true # '/a b/ckpt-hook' claude`,
  )
  expect(at('# say\nA="it is" "/a b/ckpt-hook" claude')).toBe('# say\nA="it is" /new/ckpt-hook claude')
  for (const command of ['"$HOME/bin/ckpt-hook" claude', 'say; ckpt hook claude']) expect(at(command)).toBe(command)
})

test.each([
  ['cut short', '{"hooks": {'],
  ['a list', '[]'],
  ['hooks no object', '{"hooks": []}'],
  ['a key twice', '{"hooks": {}, "hooks": {}}'],
  ['an event no list', '{"hooks": {"Stop": {}}}'],
  ['not UTF-8', Buffer.from([0x7b, 0xff, 0x7d])],
])('a settings file that cannot be read is refused and left alone: %s', (_, content) => {
  const scratch = new Scratch().init()
  const file = path.join(scratch.home, FILES.claude!)
  fs.mkdirSync(path.dirname(file))
  fs.writeFileSync(file, content)
  const { code, document } = scratch.tryCkpt('agent', 'install', 'claude')
  expect([code, document.error.code]).toEqual([2, 'CONFIG'])
  expect(document.error.message).toContain(file)
  expect(scratch.tryCkpt('agent', 'status', 'claude')).toMatchObject({ code: 2, document: { error: document.error } })
  expect(fs.readFileSync(file)).toEqual(Buffer.from(content))
})

test('a dry run shows what an install does, and changes nothing', () => {
  const scratch = new Scratch().init()
  const shown = scratch.ckpt('agent', 'install', 'claude', '--dry-run')
  expect(scratch.exists(`${scratch.home}/.claude`)).toBe(false)
  expect(shown.agents[0].diff).toBe(scratch.ckpt('agent', 'install', 'claude').agents[0].diff)
  expect(shown.agents[0].diff).toContain('"UserPromptSubmit"')
})

test('scopes: project and local files lie in the worktree, from a directory below too; what an agent lacks is refused', () => {
  const scratch = new Scratch().init({ 'sub/a.txt': 'one\n' })
  const at = (scope: string) =>
    scratch.ckpt('agent', 'install', 'claude', '--scope', scope, '--cwd', scratch.at('sub')).agents[0].path
  expect(at('project')).toBe(scratch.at('.claude/settings.json'))
  expect(at('local')).toBe(scratch.at('.claude/settings.local.json'))
  // Others share this file: it names no place of this machine.
  expect(scratch.read('.claude/settings.json')).toContain('"ckpt-hook claude"')
  expect(scratch.tryCkpt('agent', 'install', 'codex', '--scope', 'local').document.error.code).toBe('USAGE')
  for (const wrong of [['install'], ['install', 'nobody'], ['frobnicate', 'claude'], ['install', 'claude', '--all']])
    expect(scratch.tryCkpt('agent', ...wrong).code).toBe(2)
})

test('--all finds what is on this machine', () => {
  const scratch = new Scratch().init()
  for (const action of ['install', 'uninstall'])
    expect(scratch.run(['agent', action, '--all']).stdout).toMatch(/^No agent has left its directory here/)
  for (const name of ['.claude', '.config/opencode']) fs.mkdirSync(path.join(scratch.home, name), { recursive: true })
  const { agents } = scratch.ckpt('agent', 'install', '--all')
  expect(agents.map(({ name }: Json) => name)).toEqual(['claude', 'opencode'])
  const { agents: standing } = scratch.ckpt('agent', 'status')
  const installed = standing.filter((one: Json) => one.installed).map(({ name, scope }: Json) => [name, scope])
  expect(installed).toEqual([
    ['claude', 'user'],
    ['opencode', 'user'],
  ])
})

test('a plugin of somebody else under our name is left alone', () => {
  const scratch = new Scratch().init()
  const file = path.join(scratch.home, '.config/opencode/plugin/ckpt.js')
  fs.mkdirSync(path.dirname(file), { recursive: true })
  fs.writeFileSync(file, '// mine\n')
  expect(scratch.tryCkpt('agent', 'install', 'opencode').code).toBe(2)
  scratch.ckpt('agent', 'uninstall', 'opencode')
  expect(fs.readFileSync(file, 'utf8')).toBe('// mine\n')
})

test('a plugin starts a client whose path has quotes in it', () => {
  const scratch = new Scratch().init()
  const link = path.join(scratch.base, `it's "here"`)
  fs.symlinkSync(path.join(path.dirname(PROGRAM), '..'), link)
  const ckpt = (...line: string[]) => {
    const node = ['--preserve-symlinks', '--preserve-symlinks-main', path.join(link, 'bin/ckpt.js')]
    const stdout = execFileSync(process.execPath, [...node, ...line], { cwd: scratch.root, env: scratch.vars })
    return stdout.toString()
  }
  ckpt('agent', 'install', 'opencode')
  const plugin = fs.readFileSync(path.join(scratch.home, '.config/opencode/plugin/ckpt.js'), 'utf8')
  const [, program] = /^const PROGRAM = (.*)$/m.exec(plugin)!
  expect(JSON.parse(program!)).toBe(path.join(link, 'bin/ckpt-hook'))
  expect(ckpt('doctor')).toMatch(/^ok {2}agent opencode {2}its hooks run/m)
})

// Nobody else may give a file to somebody.
test.runIf(isRoot)('a file stays with its owner, whoever installs', () => {
  const scratch = new Scratch().init()
  const file = path.join(scratch.home, '.claude/settings.json')
  fs.mkdirSync(path.dirname(file))
  fs.writeFileSync(file, '{ "model": "x" }\n', { mode: 0o600 })
  fs.chownSync(file, 1234, 2345)
  for (const action of ['install', 'uninstall']) {
    scratch.ckpt('agent', action, 'claude')
    const { uid, gid, mode } = fs.statSync(file)
    expect([uid, gid, mode & 0o777]).toEqual([1234, 2345, 0o600])
  }
  expect(fs.readFileSync(file, 'utf8')).toBe('{ "model": "x" }\n')
})

test('an uninstall tells of the other scopes', () => {
  const scratch = new Scratch().init()
  scratch.ckpt('agent', 'install', 'gemini', '--scope', 'project')
  const { stdout } = scratch.run(['agent', 'uninstall', 'gemini'])
  expect(stdout).toMatch(
    /^Gemini CLI has no hooks of ckpt in .*\nAlso in its settings of scope project: ckpt agent uninstall gemini --scope project\n$/,
  )
})

test('a link is followed, not replaced', () => {
  const scratch = new Scratch().init()
  const real = path.join(scratch.base, 'dotfiles.json')
  fs.writeFileSync(real, '{}')
  fs.mkdirSync(path.join(scratch.home, '.claude'))
  fs.symlinkSync(real, path.join(scratch.home, FILES.claude!))
  scratch.ckpt('agent', 'install', 'claude')
  expect(fs.lstatSync(path.join(scratch.home, FILES.claude!)).isSymbolicLink()).toBe(true)
  expect(fs.readFileSync(real, 'utf8')).toContain('hook claude')
})

test('appending to any JSON, however it is laid out, adds the value and nothing else', () => {
  const layout = fc.constantFrom(undefined, 1, 2, 4, '\t')
  fc.assert(
    fc.property(
      fc.dictionary(fc.string(), fc.jsonValue({ maxDepth: 3 })),
      layout,
      fc.jsonValue(),
      (object, space, value) => {
        const data = JSON.parse(JSON.stringify(object))
        delete data.added
        const text = JSON.stringify(data, null, space)
        const root = parseJsonc(text)
        const now = applyEdits(text, append(text, { root, into: root }, { key: 'added', value }))
        expect(JSON.parse(now)).toEqual({ ...data, added: JSON.parse(JSON.stringify(value)) })
      },
    ),
    { numRuns: 300 },
  )
})

test('taking an element out of any list leaves the others, however it is laid out', () => {
  const blank = fc.constantFrom(
    '',
    ' ',
    '\n',
    '\n  ',
    ' // it\n',
    '\n  // it, too\n  ',
    ' /* it */ ',
    '/* a\n b */',
    `// ${'x'.repeat(5000)}\n`,
  )
  const item = fc.tuple(blank, fc.constantFrom('1', '"// no comment"', '{ "a": [] }', '["/*"]'), blank)
  fc.assert(
    fc.property(
      fc.array(item, { minLength: 1, maxLength: 4 }),
      blank,
      fc.boolean(),
      fc.nat(),
      (items, end, more, pick) => {
        const text = `[${items.map(([a, one, b]) => `${a}${one}${b}`).join(',')}${more ? ',' : ''}${end}]`
        const node = parseJsonc(text)
        const index = pick % items.length
        const after = applyEdits(text, take(text, node, index))
        const left = (dataOf(node) as Json[]).filter((_, i) => i !== index)
        expect(dataOf(parseJsonc(after)), `${text}\n${after}`).toEqual(left)
      },
    ),
    { numRuns: 2000 },
  )
})

test('strings of any length are read, and damaged ones are not', () => {
  const long = 'x"\\\n/*ä'.repeat(3_000_000)
  const text = JSON.stringify({ [long]: long, n: 1 })
  expect(strip(text)[long] === long).toBe(true)
  const { end } = parseJsonc(text)
  expect(end).toBe(text.length)
  for (const bad of ['"', '"x', '"x\\', '"x\\"', '"x\ny"', '"\\x"', '"\t"', '"\\\n"'])
    expect(() => parseJsonc(bad), bad).toThrow(SyntaxError)
})

test('settings that cannot be read are named, and the other agents are said all the same', () => {
  const scratch = new Scratch().init()
  scratch.ckpt('agent', 'install', 'cursor')
  fs.mkdirSync(path.join(scratch.home, '.gemini'))
  fs.writeFileSync(path.join(scratch.home, '.gemini/settings.json'), '{ broken')
  fs.mkdirSync(path.join(scratch.home, '.claude/settings.json'), { recursive: true })
  fs.mkdirSync(path.join(scratch.home, '.codex'))
  fs.symlinkSync('hooks.json', path.join(scratch.home, '.codex/hooks.json'))
  const { code, document } = scratch.tryCkpt('agent', 'status')
  expect([code, document.error.code]).toEqual([2, 'CONFIG'])
  for (const name of ['.gemini/settings.json', '.claude/settings.json', '.codex/hooks.json'])
    expect(document.error.message).toContain(name)
  expect(document.agents).toContainEqual(expect.objectContaining({ name: 'cursor' }))
  for (const agent of ['gemini', 'claude', 'codex']) {
    const refused = scratch.tryCkpt('agent', 'install', agent)
    expect([agent, refused.code, refused.document.error.code]).toEqual([agent, 2, 'CONFIG'])
  }
  const { stdout } = scratch.run(['agent', 'status'])
  expect(stdout).toMatch(/^cursor .*\nNot installed: opencode\. .*\n$/) // of the others nobody knows
})

test('a plugin of another version of ckpt is told, and installing again renews it', () => {
  const scratch = new Scratch().init()
  scratch.ckpt('agent', 'install', 'opencode', '--scope', 'project')
  const file = scratch.at('.opencode/plugin/ckpt.js')
  const now = fs.readFileSync(file, 'utf8')
  const outdated = () => scratch.ckpt('agent', 'status', 'opencode').agents.map((one: Json) => one.outdated)
  expect(outdated()).toEqual([false, false])
  fs.writeFileSync(file, now.replace(/^const PATIENCE = .*$/m, 'const PATIENCE = 1'))
  expect(outdated()).toEqual([false, true])
  const renew = 'ckpt agent install opencode --scope project'
  expect(scratch.run(['agent', 'status']).stdout).toContain(`(of another version of ckpt; renew: ${renew})`)
  const finding = (vars?: Record<string, string>) => {
    const { stdout } = scratch.run(['doctor', '--json'], vars && { vars })
    return JSON.parse(stdout).findings.find(({ name }: Json) => name === 'agent opencode')
  }
  expect(finding()).toMatchObject({ ok: false, mend: expect.stringMatching(/^npm install -g ckpt /) })
  expect(finding({ PATH: `${path.dirname(PROGRAM)}:${scratch.vars.PATH}` })).toMatchObject({
    ok: false,
    detail: expect.stringContaining('another version of ckpt'),
    mend: renew,
  })
  scratch.ckpt(...renew.split(' ').slice(1))
  expect([fs.readFileSync(file, 'utf8'), outdated()]).toEqual([now, [false, false]])
})

test.runIf(process.platform === 'linux')('a place where no directory can be made is not tried for ever', () => {
  const scratch = new Scratch().init()
  const { status, stdout } = inTime(scratch, ['agent', 'install', 'claude'], { XDG_STATE_HOME: '/proc/none' })
  expect([status, JSON.parse(stdout).error.code]).toEqual([2, 'CONFIG'])
})

test('where the way back cannot be kept nothing is installed, nor taken out', () => {
  const scratch = new Scratch().init()
  const place = path.join(scratch.base, 'no-directory')
  const file = path.join(scratch.home, FILES.claude!)
  const refused = (action: string) => {
    const vars = { XDG_STATE_HOME: place }
    const { code, stdout } = scratch.run(['agent', action, 'claude', '--json'], { vars })
    const { message, hints } = JSON.parse(stdout).error
    expect([code, message]).toEqual([2, expect.stringMatching(/ENOTDIR.* Nothing was changed\.$/)])
    expect(hints[0]).toContain(`ls -ld ${place}`)
  }
  fs.writeFileSync(place, '')
  refused('install')
  expect(fs.existsSync(file)).toBe(false)
  scratch.ckpt('agent', 'install', 'claude')
  const installed = fs.readFileSync(file, 'utf8')
  refused('install')
  refused('uninstall')
  expect(fs.readFileSync(file, 'utf8')).toBe(installed)
  scratch.ckpt('agent', 'uninstall', 'claude')
  expect(fs.existsSync(file)).toBe(false)
})

test('a pipe in the place of settings is refused, and not waited for', () => {
  const scratch = new Scratch().init()
  scratch.ckpt('agent', 'install', 'cursor')
  const file = path.join(scratch.home, '.claude/settings.json')
  fs.mkdirSync(path.dirname(file))
  const pipe = path.join(scratch.home, 'pipe')
  execFileSync('mkfifo', [pipe])
  fs.symlinkSync(pipe, file)
  for (const line of [
    ['agent', 'status'],
    ['agent', 'install', 'claude'],
    ['agent', 'uninstall', 'claude'],
  ]) {
    const { status, stdout } = inTime(scratch, line)
    const { error } = JSON.parse(stdout || '{}')
    expect([...line, status, error?.code]).toEqual([...line, 2, 'CONFIG'])
    expect(error.message).toBe(`${file} cannot be read: it is no file. Nothing was changed.`)
  }
  fs.rmSync(file)
  scratch.ckpt('agent', 'install', 'claude')
  fs.mkdirSync(scratch.at('.claude'))
  fs.symlinkSync(pipe, scratch.at('.claude/settings.local.json'))
  expect(inTime(scratch, ['doctor']).stdout).toContain('it is no file')
})

test('a link that leads nowhere yet stays one', () => {
  const scratch = new Scratch().init()
  const file = path.join(scratch.home, '.claude/settings.json')
  fs.mkdirSync(path.dirname(file))
  fs.symlinkSync('../dots/settings.json', file)
  scratch.ckpt('agent', 'install', 'claude')
  expect(fs.lstatSync(file).isSymbolicLink()).toBe(true)
  expect(fs.readFileSync(file, 'utf8')).toContain('ckpt-hook')
  scratch.ckpt('agent', 'uninstall', 'claude')
  expect([fs.lstatSync(file).isSymbolicLink(), fs.existsSync(path.join(scratch.home, 'dots'))]).toEqual([true, false])
})

test('doctor says which hooks will really run, and what stands in the way', () => {
  const scratch = new Scratch().init()
  const findings = (): Json[] => scratch.ckpt('doctor').findings.filter(({ name }: Json) => name.startsWith('agent '))
  expect(findings()).toEqual([])
  for (const agent of ['claude', 'gemini', 'opencode', 'cursor']) scratch.ckpt('agent', 'install', agent)
  expect(findings().map(({ name, ok }) => [name, ok])).toEqual([
    ['agent claude', true],
    ['agent opencode', true],
    ['agent gemini', true],
    ['agent cursor', true],
  ])
  const settings = path.join(scratch.home, '.claude/settings.json')
  const installed = fs.readFileSync(settings, 'utf8')
  const finding = (text: string) => {
    fs.writeFileSync(settings, text)
    return findings().find(({ name }) => name === 'agent claude')
  }
  const without = JSON.parse(installed)
  delete without.hooks.Stop
  expect(finding(JSON.stringify(without))).toMatchObject({
    ok: false,
    advice: true,
    detail: expect.stringMatching(/^none for Stop/),
  })
  expect(finding(installed.replaceAll(/"command": ".*?"/g, '"command": "/nowhere/ckpt-hook claude"'))).toMatchObject({
    ok: false,
    detail: expect.stringMatching(/^they cannot be started: \/nowhere\/ckpt-hook claude/),
    mend: 'ckpt agent install claude',
  })
  const as = (command: string) =>
    installed.replaceAll(/"command": ".*?"/g, () => JSON.stringify({ command }).slice(1, -1))
  for (const [command, ok] of [
    ['CKPT_X=1 true; cd . ; (/nowhere/ckpt-hook claude)', false],
    ['A=1 $HOME/ckpt-hook claude', true],
  ] as const)
    expect(finding(as(command))).toMatchObject({ ok })
  expect(finding(as('# ckpt-hook claude'))).toBeUndefined()
  fs.writeFileSync(settings, as('A=1 /nowhere/ckpt-hook claude'))
  scratch.ckpt('agent', 'install', 'claude')
  expect(findings().find(({ name }) => name === 'agent claude')).toMatchObject({ ok: true })
  expect(finding(installed.replace('{', '{ "disableAllHooks": true,'))).toMatchObject({
    ok: false,
    detail: expect.stringMatching(/^they are switched off by disableAllHooks/),
  })
  expect(finding('{')).toMatchObject({ ok: false, advice: true, detail: expect.stringMatching(/cannot be read/) })
  expect(finding(installed)).toMatchObject({ ok: true })
})

/** Git, node and ckpt-hook are in PATH, and no agent. */
function withoutAgents(scratch: Scratch): { PATH: string } {
  const bin = path.join(scratch.base, 'bin')
  fs.mkdirSync(bin)
  for (const program of ['git', 'node', 'ckpt-hook'])
    fs.symlinkSync(
      execFileSync('sh', ['-c', `command -v ${program} || command -v true`], { encoding: 'utf8' }).trim(),
      path.join(bin, program),
    )
  return { PATH: bin }
}

test('where trust cannot be given the hooks are installed, which is said, and so is what is missing', () => {
  const scratch = new Scratch().init()
  const install = ['agent', 'install', 'codex', '--trust']
  const { code, stdout, stderr } = scratch.run(install, { vars: withoutAgents(scratch) })
  expect([code, stdout.split('\n')[0]]).toEqual([1, expect.stringMatching(/^Installed the hooks for Codex: /)])
  expect(stderr).toContain('no `codex` is in PATH here. Its hooks are installed')
  const document = JSON.parse(scratch.run([...install, '--json'], { vars: { PATH: `${scratch.base}/bin` } }).stdout)
  expect(document).toMatchObject({
    ok: false,
    agents: [{ name: 'codex', installed: true }],
    error: { code: 'INTERNAL' },
  })
})

test('doctor does not say that hooks run which want trust where their agent cannot be asked for it', () => {
  const scratch = new Scratch().init()
  const vars = withoutAgents(scratch)
  expect(scratch.run(['agent', 'install', 'codex'], { vars }).code).toBe(0)
  const { findings } = JSON.parse(scratch.run(['doctor', '--json'], { vars }).stdout)
  expect(findings.find(({ name }: Json) => name === 'agent codex')).toMatchObject({
    ok: true,
    detail: expect.stringMatching(/^its hooks are there; whether Codex trusts them is not known/),
  })
})

test('undo says how to take the conversation back too, and gives the ids for it', () => {
  const scratch = new Scratch().init()
  scratch.ckpt('mark', 'prompt', '--session', 'abc-1', '--agent', 'claude', '--message-id', 'm1')
  scratch.write({ 'b.txt': 'two\n' })
  scratch.ckpt('mark', 'stop', '--session', 'abc-1')
  expect(scratch.ckpt('undo')).toMatchObject({ session: 'abc-1', agent: 'claude', messageId: 'm1' })
  scratch.ckpt('redo')
  expect(scratch.run(['undo']).stdout).toContain('claude --resume abc-1 --fork-session')
  // An id that a shell would take for more than a word is not put into a command line.
  scratch.ckpt('mark', 'prompt', '--session', 'a;b', '--agent', 'claude')
  scratch.write({ 'c.txt': 'three\n' })
  scratch.ckpt('mark', 'stop', '--session', 'a;b')
  expect(scratch.run(['undo', '--session', 'a;b']).stdout).not.toContain('--resume')
})
