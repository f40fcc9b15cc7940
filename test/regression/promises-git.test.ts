/** Promises 5, 6 and 7: the user's git is not ours, nobody else's code runs, and gc takes nothing. */
import { execFileSync } from 'node:child_process'
import fs from 'node:fs'
import path from 'node:path'
import { expect, test } from 'vitest'
import { Scratch } from '../support/scratch.ts'

/** Every command, in an order in which each has something to do. `?`: may be refused. */
const everyCommand = [
  'init',
  'snapshot -m by-hand',
  'mark prompt --session s --text one',
  'WRITE',
  'mark step --session s --start --tool edit --call-id 1 --path a.txt',
  'mark step --session s --tool edit --call-id 1',
  'mark stop --session s',
  'run -- touch made-by-run',
  'list',
  'list --sessions',
  'show 1 --session s',
  'show 1:before --session s',
  'status',
  'diff 1 worktree --session s',
  'capabilities',
  'doctor',
  'verify',
  'undo --session s --dry-run',
  'undo --session s',
  'verify --no-pending ?',
  'redo --session s --dry-run',
  'redo --session s',
  'undo --session s --only 1',
  'restore 1:after --session s --force',
  'undo --session run',
  'accept --session run',
  'doctor --fix',
  'undo --session nobody ?',
  'apply not-a-token ?',
  'frobnicate ?',
]

function runEvery(scratch: Scratch, vars: Record<string, string>, after: (line: string) => void): void {
  for (const line of everyCommand) {
    if (line === 'WRITE') {
      scratch.write({ 'a.txt': 'changed\n', 'new.txt': 'new\n' })
      continue
    }
    const mayFail = line.endsWith(' ?')
    const { code, stderr, stdout } = scratch.run(line.replace(' ?', '').split(' '), { vars })
    if (!mayFail) expect([line, code, code === 0 ? '' : stdout + stderr]).toEqual([line, 0, ''])
    after(line)
  }
}

test('promise 5: HEAD, index, refs, reflogs, stash, config and excludes are byte-identical after every command', () => {
  const scratch = new Scratch().init({ 'a.txt': 'one\n', 'b.txt': 'b\n' })
  scratch.write({ 'b.txt': 'stashed\n' })
  scratch.git('stash', '-q')
  scratch.write({ 'staged.txt': 'staged\n', '.git/info/exclude': '*.mine\n' })
  scratch.git('add', 'staged.txt')
  scratch.git('tag', '-a', 'v1', '-m', 'tag')
  const state = scratch.gitState()
  const times = () => fs.lstatSync(scratch.at('.git/index')).mtimeMs
  const indexTime = times()
  runEvery(scratch, {}, (line) => {
    expect([line, scratch.gitState()]).toEqual([line, state])
    expect([line, times()]).toEqual([line, indexTime])
  })
  expect(scratch.git('stash', 'list').trim().split('\n')).toHaveLength(1)
})

test('promise 5: a split index, an untracked cache and fsmonitor settings are read, never rewritten', () => {
  const scratch = new Scratch().init({ 'a.txt': 'one\n', 'b.txt': 'b\n' })
  scratch.git('config', 'core.splitIndex', 'true')
  scratch.git('config', 'core.untrackedCache', 'true')
  scratch.git('update-index', '--split-index', '--untracked-cache')
  scratch.write({ 'c.txt': 'c\n' })
  scratch.git('add', 'c.txt')
  const state = scratch.gitState()
  expect(Object.keys(state).some((name) => name.startsWith('sharedindex.'))).toBe(true)
  scratch.turn('work', () => scratch.write({ 'a.txt': 'two\n', 'c.txt': 'two\n' }))
  scratch.ckpt('undo')
  expect([scratch.read('a.txt'), scratch.read('c.txt')]).toEqual(['one\n', 'c\n'])
  expect(scratch.gitState()).toEqual(state)
})

test('promise 5: `diff --uncommitted` looks at touched files and leaves their entries of the index as they are', () => {
  for (const split of [false, true]) {
    const scratch = new Scratch().init({ 'a.txt': 'one\n', 'b.txt': 'b\n', 'c.txt': 'c\n' })
    if (split) scratch.git('update-index', '--split-index')
    for (const name of ['a.txt', 'b.txt']) fs.utimesSync(scratch.at(name), 1e9, 1e9)
    scratch.write({ 'c.txt': 'd\n' })
    const state = scratch.gitState()
    expect(scratch.ckpt('diff', '--uncommitted').files).toMatchObject([{ path: 'c.txt', status: 'modified' }])
    expect(scratch.gitState()).toEqual(state)
  }
})

test('promise 6: no hook, filter, fsmonitor, pager, editor, diff driver, helper or template is started', () => {
  const scratch = new Scratch().init({
    'a.txt': 'one\n',
    'b.txt': 'b\n',
    '.gitattributes': '* filter=evil diff=evil merge=evil\n',
  })
  const sentinel = `${scratch.base}/ran`
  const evil = `${scratch.base}/evil.sh`
  fs.writeFileSync(evil, `#!/bin/sh\necho "$0 $*" >> '${sentinel}'\ncat 2>/dev/null\nexit 0\n`, { mode: 0o755 })
  const hooks = [
    'reference-transaction',
    'post-index-change',
    'pre-commit',
    'post-commit',
    'post-checkout',
    'pre-auto-gc',
    'post-rewrite',
    'fsmonitor-watchman',
    'proc-receive',
  ]
  const template = `${scratch.base}/template`
  for (const directory of [`${scratch.base}/global-hooks`, scratch.at('.git/hooks'), `${template}/hooks`]) {
    fs.mkdirSync(directory, { recursive: true })
    for (const hook of hooks) fs.copyFileSync(evil, path.join(directory, hook))
  }
  const keys: [string, string][] = [
    ['core.fsmonitor', evil],
    ['core.pager', evil],
    ['core.editor', evil],
    ['core.askPass', evil],
    ['core.sshCommand', evil],
    ['core.alternateRefsCommand', evil],
    ['core.gitProxy', evil],
    ['sequence.editor', evil],
    ['credential.helper', `!${evil}`],
    ['diff.external', evil],
    ['diff.evil.command', evil],
    ['diff.evil.textconv', evil],
    ['merge.evil.driver', `${evil} %A`],
    ['filter.evil.clean', evil],
    ['filter.evil.smudge', evil],
    ['filter.evil.process', evil],
    ['filter.evil.required', 'true'],
    ['gpg.program', evil],
    ['log.showSignature', 'true'],
    ['commit.gpgSign', 'true'],
    ['pager.log', evil],
    ['pager.diff', evil],
    ['interactive.diffFilter', evil],
    ['init.templateDir', template],
    ['alias.log', `!${evil}`],
    ['uploadpack.packObjectsHook', evil],
    ['gc.recentObjectsHook', evil],
    ['status.submoduleSummary', 'true'],
  ]
  const section = (pairs: [string, string][]) =>
    pairs
      .map(([key, value]) => {
        const parts = key.split('.')
        const name = parts.pop()
        const [first, ...rest] = parts
        return `[${first}${rest.length > 0 ? ` "${rest.join('.')}"` : ''}]\n\t${name} = ${JSON.stringify(value)}\n`
      })
      .join('')
  // A signed commit by the turn: showing it would start gpg.
  scratch.write({ 'signed.txt': 'signed\n' })
  const commit = scratch.git('cat-file', 'commit', 'HEAD')
  const signature = 'gpgsig -----BEGIN PGP SIGNATURE-----\n \n x\n -----END PGP SIGNATURE-----\n'
  const head = scratch.git('rev-parse', 'HEAD').trim()
  const signed = commit.replace('author ', `parent ${head}\nauthor `).replace(/^(committer .*\n)/m, `$1${signature}`)
  const oid = execFileSync('git', ['hash-object', '-t', 'commit', '-w', '--stdin'], {
    cwd: scratch.root,
    input: signed,
    encoding: 'utf8',
    env: scratch.vars,
  }).trim()
  fs.appendFileSync(scratch.at('.git/config'), section(keys))
  fs.writeFileSync(`${scratch.home}/.gitconfig`, section([...keys, ['core.hooksPath', `${scratch.base}/global-hooks`]]))
  const vars = {
    GIT_PAGER: evil,
    PAGER: evil,
    GIT_EDITOR: evil,
    EDITOR: evil,
    VISUAL: evil,
    GIT_EXTERNAL_DIFF: evil,
    GIT_SSH_COMMAND: evil,
    GIT_ASKPASS: evil,
    SSH_ASKPASS: evil,
    GIT_TEMPLATE_DIR: template,
    GIT_PROXY_COMMAND: evil,
  }
  runEvery(scratch, vars, (line) => {
    if (line.startsWith('mark prompt')) fs.writeFileSync(scratch.at('.git/refs/heads/main'), `${oid}\n`)
    expect([line, fs.existsSync(sentinel) ? fs.readFileSync(sentinel, 'utf8') : '']).toEqual([line, ''])
  })
})

test("promise 6: inherited GIT_* variables lead neither the worktree nor the user's index astray", () => {
  const scratch = new Scratch().init()
  const elsewhere = `${scratch.base}/elsewhere`
  scratch.git('init', '-q', elsewhere)
  fs.writeFileSync(`${elsewhere}/x.txt`, 'x\n')
  const index = `${scratch.base}/their-index`
  const vars = {
    GIT_DIR: `${elsewhere}/.git`,
    GIT_WORK_TREE: elsewhere,
    GIT_INDEX_FILE: index,
    GIT_OBJECT_DIRECTORY: `${scratch.base}/objects`,
    GIT_ALTERNATE_OBJECT_DIRECTORIES: `${scratch.base}/alternates`,
    GIT_COMMON_DIR: `${elsewhere}/.git`,
    GIT_NAMESPACE: 'nowhere',
    GIT_PREFIX: 'sub/',
    GIT_CEILING_DIRECTORIES: scratch.root,
    GIT_CONFIG_COUNT: '1',
    GIT_CONFIG_KEY_0: 'core.bare',
    GIT_CONFIG_VALUE_0: 'true',
    GIT_CONFIG_PARAMETERS: "'core.bare=true'",
    GIT_DEFAULT_HASH: 'sha256',
    GIT_TRACE: `${scratch.base}/trace`,
    GIT_LITERAL_PATHSPECS: '0',
    GIT_ICASE_PATHSPECS: '1',
    GIT_AUTHOR_DATE: 'not a date',
  }
  const state = scratch.gitState()
  const as = (...args: string[]) => {
    const ran = scratch.run([...args, '--json'], { vars })
    expect([args, ran.code, ran.stderr]).toEqual([args, 0, ''])
    return JSON.parse(ran.stdout)
  }
  as('mark', 'prompt', '--session', 's')
  scratch.write({ 'a.txt': 'two\n' })
  as('mark', 'stop', '--session', 's')
  expect(as('status').root).toBe(scratch.root)
  expect(as('undo').files).toEqual([{ path: 'a.txt', action: 'write' }])
  expect(scratch.gitState()).toEqual(state)
  for (const made of [index, `${scratch.base}/objects`, `${scratch.base}/trace`, `${elsewhere}/.git/ckpt`])
    expect([made, fs.existsSync(made)]).toEqual([made, false])
})

const prune = (scratch: Scratch) => {
  scratch.git('reflog', 'expire', '--expire=now', '--expire-unreachable=now', '--all')
  scratch.git('gc', '-q', '--prune=now', '--aggressive')
}

test('promise 7: every checkpoint reported durable restores after gc --prune=now, packed, loose or borrowed', () => {
  const origin = new Scratch('origin').init({ 'packed.txt': 'packed\n', 'sub/p.txt': 'packed\n' })
  origin.git('gc', '-q')
  origin.write({ 'loose.txt': 'loose\n' })
  origin.git('add', '-A')
  origin.git('commit', '-qm', 'second')
  const scratch = new Scratch('shared')
  scratch.git('clone', '-q', '--shared', origin.root, scratch.root)
  scratch.write({ 'own.txt': 'staged only\n' })
  scratch.git('add', 'own.txt')
  const states = [scratch.manifest()]
  const ids: string[] = []
  for (const n of [1, 2, 3]) {
    const { checkpoint } = scratch.ckpt('snapshot')
    expect(checkpoint.durable).toBe(true)
    ids.push(checkpoint.id)
    scratch.write({ [`n${n}.txt`]: `${n}\n`, 'packed.txt': `${n}\n` })
    states.push(scratch.manifest())
  }
  scratch.git('rm', '-rqf', '--cached', '.')
  scratch.git('commit', '-qm', 'all gone', '--allow-empty')
  prune(scratch)
  fs.rmSync(`${origin.root}/.git`, { recursive: true })
  for (const [i, id] of ids.entries()) {
    scratch.ckpt('restore', id, '--exact', '--force')
    expect(scratch.manifest()).toEqual(states[i])
  }
  expect(scratch.ckpt('verify').problems).toEqual([])
})

test('promise 7: undo works after the history that the turn started from is gone', () => {
  const scratch = new Scratch().init({ 'a.txt': 'one\n', 'b.txt': 'b\n' })
  const before = scratch.manifest()
  scratch.turn('work', () => {
    scratch.write({ 'a.txt': 'two\n' })
    scratch.remove('b.txt')
  })
  scratch.git('checkout', '-q', '--orphan', 'fresh')
  scratch.git('add', '-A')
  scratch.git('commit', '-qm', 'fresh')
  scratch.git('branch', '-D', 'main')
  scratch.git('branch', '-m', 'main')
  prune(scratch)
  scratch.ckpt('undo')
  expect(scratch.manifest()).toEqual(before)
  prune(scratch)
  scratch.ckpt('redo')
  expect(scratch.read('a.txt')).toBe('two\n')
})
