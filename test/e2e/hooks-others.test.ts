/** The gate beside other people's hooks: they are kept and run, and given back byte for byte. */
import { execFileSync, spawnSync } from 'node:child_process'
import fs from 'node:fs'
import { createRequire } from 'node:module'
import path from 'node:path'
import { expect, test } from 'vitest'
import { gateScratch, HOOKS, hookFiles, makePending, tryGit } from '../support/gate.ts'
import { type Json, Scratch } from '../support/scratch.ts'

const require = createRequire(import.meta.url)
/** Hooks in the configuration, too (githooks(5)). */
const [, major, minor] = /(\d+)\.(\d+)/.exec(execFileSync('git', ['version'], { encoding: 'utf8' }))!
const hasConfigured = Number(major) > 2 || Number(minor) >= 54
const states = (document: Json) => Object.fromEntries(document.hooks.map((hook: Json) => [hook.name, hook]))

function writeHook(scratch: Scratch, name: string, { text, mode = 0o755 }: { text: string; mode?: number }): string {
  const file = scratch.at(name)
  fs.mkdirSync(path.dirname(file), { recursive: true })
  fs.writeFileSync(file, text, 'latin1')
  fs.chmodSync(file, mode)
  return file
}

const husky = (scratch: Scratch, cwd = scratch.root) =>
  execFileSync(process.execPath, [path.join(path.dirname(require.resolve('husky')), 'bin.js')], {
    cwd,
    env: scratch.vars,
  })

/** A hook that notes its arguments and what it is given, and fails when told to. */
const noting = (name: string) => `#!/bin/sh
printf '%s' "${name}" >>"$NOTES"
for one in "$@"; do printf ' <%s>' "$one" >>"$NOTES"; done
printf ' %s\\n' "$(cat)" >>"$NOTES"
exit "\${FAIL_WITH:-0}"`

test('row 31: a hand-written hook is kept: its arguments, standard input and exit code; both run, both can refuse', () => {
  const scratch = gateScratch()
  const notes = path.join(scratch.base, 'notes')
  const before: Record<string, string> = {}
  for (const name of HOOKS)
    before[name] = fs.readFileSync(writeHook(scratch, `.git/hooks/${name}`, { text: noting(name) }), 'latin1')
  const bytes = hookFiles(scratch.at('.git/hooks'))
  const { hooks } = scratch.ckpt('hooks', 'install')
  expect(hooks).toEqual(
    HOOKS.map((name) => ({
      name,
      path: scratch.at(`.git/hooks/${name}`),
      installed: true,
      chained: true,
      fires: true,
    })),
  )
  expect(fs.existsSync(notes)).toBe(false) // the dry run ran nobody else's code

  const said = (args: string[], more: Record<string, string> = {}) => {
    fs.rmSync(notes, { force: true })
    const done = tryGit(scratch, args, { vars: { NOTES: notes, ...more } })
    return { code: done.code, notes: fs.existsSync(notes) ? fs.readFileSync(notes, 'utf8') : '', stderr: done.stderr }
  }
  expect(said(['commit', '--allow-empty', '-m', 'x'])).toMatchObject({
    code: 0,
    notes: 'pre-commit \nprepare-commit-msg <.git/COMMIT_EDITMSG> <message> \ncommit-msg <.git/COMMIT_EDITMSG> \n',
  })
  expect(said(['commit', '--allow-empty', '-m', 'x'], { FAIL_WITH: '3' })).toMatchObject({
    code: 1,
    notes: 'pre-commit \n',
  })
  for (const name of HOOKS) {
    const run = spawnSync(scratch.at(`.git/hooks/${name}`), ['a b', "c'd", ''], {
      cwd: scratch.root,
      env: { ...scratch.vars, NOTES: notes, FAIL_WITH: '7' },
      input: 'given\nlines',
      encoding: 'utf8',
    })
    expect(run.status).toBe(7)
    expect(fs.readFileSync(notes, 'utf8').endsWith(`${name} <a b> <c'd> <> given\nlines\n`)).toBe(true)
  }
  makePending(scratch)
  expect(said(['commit', '--allow-empty', '-m', 'x'])).toMatchObject({ code: 1, notes: '' })

  scratch.ckpt('hooks', 'uninstall')
  expect(hookFiles(scratch.at('.git/hooks'))).toEqual(bytes)
  expect(said(['commit', '--allow-empty', '-m', 'x']).code).toBe(0)
})

test('row 31: a hook edited after the installation keeps the edit; one made by a person in our file stays', () => {
  const scratch = new Scratch().init()
  const hook = writeHook(scratch, '.git/hooks/pre-commit', { text: '#!/bin/sh\necho theirs\n' })
  scratch.ckpt('hooks', 'install')
  fs.appendFileSync(hook, 'echo more\n')
  fs.appendFileSync(scratch.at('.git/hooks/pre-rebase'), 'echo added\n')
  scratch.ckpt('hooks', 'install')
  scratch.ckpt('hooks', 'uninstall')
  expect(fs.readFileSync(hook, 'utf8')).toBe('#!/bin/sh\necho theirs\necho more\n')
  expect(scratch.read('.git/hooks/pre-rebase')).toBe('#!/bin/sh\necho added\n')
})

const odd: Record<string, { text: string; mode?: number; link?: string }> = {
  'without an interpreter line': { text: 'echo ran >&2\n' },
  'without a last newline': { text: '#!/bin/sh\necho ran >&2' },
  'with -eu': { text: '#!/bin/sh -eu\necho ran >&2\n' },
  'by env bash': { text: '#!/usr/bin/env bash\n[[ -n x ]] && echo ran >&2\n', mode: 0o700 },
  'with bytes that are no UTF-8': { text: '#!/bin/sh\n# \xe9\xff\necho ran >&2\n' },
  'of node': { text: '#!/usr/bin/env node\nconsole.error("ran")\n' },
  'that reads itself': { text: '#!/bin/sh\ntail -n 1 "$0" >&2; exit\nran\n' },
  'behind a link': {
    text: '#!/bin/sh\n[ "$(basename "$0")" = pre-commit ] && echo ran >&2\n',
    link: '../../tools/check',
  },
}

for (const [what, { text, mode = 0o755, link }] of Object.entries(odd)) {
  test(`row 31: a hook ${what} runs after the gate, and comes back as it was`, () => {
    const scratch = new Scratch().init()
    if (link) {
      writeHook(scratch, 'tools/check', { text, mode })
      fs.symlinkSync(link, scratch.at('.git/hooks/pre-commit'))
    } else writeHook(scratch, '.git/hooks/pre-commit', { text, mode })
    const bytes = hookFiles(scratch.at('.git/hooks'))
    const first = scratch.ckpt('hooks', 'install')
    expect(states(first)['pre-commit']).toMatchObject({ installed: true, chained: true, fires: true })
    const installed = hookFiles(scratch.at('.git/hooks'))
    expect(scratch.ckpt('hooks', 'install').hooks).toEqual(first.hooks)
    expect(hookFiles(scratch.at('.git/hooks'))).toEqual(installed)
    const commit = tryGit(scratch, ['commit', '-q', '--allow-empty', '-m', 'x'])
    expect([commit.code, commit.stderr]).toEqual([0, 'ran\n'])
    makePending(scratch)
    expect(tryGit(scratch, ['commit', '-q', '--allow-empty', '-m', 'x']).stderr).not.toContain('ran')
    scratch.ckpt('hooks', 'uninstall')
    expect(hookFiles(scratch.at('.git/hooks'))).toEqual(bytes)
    if (link) expect(fs.readFileSync(scratch.at('tools/check'), 'latin1')).toBe(text)
  })
}

test('row 31: a hook that was switched off does not begin to run', () => {
  const scratch = new Scratch().init()
  writeHook(scratch, '.git/hooks/pre-commit', { text: '#!/bin/sh\necho ran >&2\n', mode: 0o644 })
  const bytes = hookFiles(scratch.at('.git/hooks'))
  expect(states(scratch.ckpt('hooks', 'install'))['pre-commit']).toMatchObject({ chained: false, fires: true })
  expect(tryGit(scratch, ['commit', '-q', '--allow-empty', '-m', 'x'])).toMatchObject({ code: 0, stderr: '' })
  scratch.ckpt('hooks', 'uninstall')
  expect(hookFiles(scratch.at('.git/hooks'))).toEqual(bytes)
})

test('row 31: the hooks directory is made where there is none, and goes again; nothing of ours stays', () => {
  const scratch = new Scratch().init()
  scratch.remove('.git/hooks')
  const before = scratch.gitState()
  scratch.ckpt('hooks', 'install')
  scratch.ckpt('hooks', 'uninstall')
  expect([scratch.exists('.git/hooks'), scratch.exists('.git/ckpt'), scratch.gitState()]).toEqual([
    false,
    false,
    before,
  ])
})

test('core.hooksPath=/dev/null: git runs no hooks, which status and doctor say; install refuses, uninstall still works', () => {
  const scratch = new Scratch().init()
  const finding = () => scratch.tryCkpt('doctor').document.findings.find((one: Json) => one.name === 'hooks')
  const why = (scope: string, value: string) =>
    `runs no hooks here: core.hooksPath in the ${scope} configuration is ${value}, which is no directory`
  scratch.git('config', 'core.hooksPath', '/dev/null')
  const bytes = hookFiles(scratch.at('.git/hooks'))
  const { hooks, warnings } = scratch.ckpt('hooks', 'status')
  expect(hooks.map((hook: Json) => hook.fires)).toEqual(HOOKS.map(() => false))
  expect(warnings).toEqual([`Git ${why('local', '/dev/null')}.`])
  for (const command of [
    ['hooks', 'install'],
    ['init', '--hooks'],
  ]) {
    const { code, document } = scratch.tryCkpt(...command)
    expect([code, document.error.code]).toEqual([2, 'CONFIG'])
    expect(document.error.message).toBe(`Git ${why('local', '/dev/null')}. No hook was changed.`)
    expect(document.error.hints[0]).toMatch(/^git config --local --unset-all core\.hooksPath /)
  }
  expect(finding()).toEqual({ name: 'hooks', ok: true, detail: `git ${why('local', '/dev/null')}` })
  scratch.git('config', 'core.hooksPath', '') // git would look into /
  expect(scratch.tryCkpt('hooks', 'install').document.error.message).toMatch(
    /core\.hooksPath in the local conf\S+ is empty/,
  )
  scratch.ckpt('hooks', 'uninstall')
  scratch.git('config', '--local', '--unset-all', 'core.hooksPath')

  // Switched off after the installation: doctor finds it, and the hooks can still be taken out.
  scratch.ckpt('hooks', 'install')
  scratch.git('config', '--global', 'core.hooksPath', '/dev/null/hooks')
  expect(finding()).toMatchObject({ ok: false, detail: `git ${why('global', '/dev/null/hooks')}` })
  scratch.ckpt('hooks', 'uninstall')
  expect(hookFiles(scratch.at('.git/hooks'))).toEqual(bytes)
})

test('a hook that is a link to itself is passed over by git: it is kept, and comes back', () => {
  const scratch = new Scratch().init()
  fs.symlinkSync('pre-commit', scratch.at('.git/hooks/pre-commit'))
  const bytes = hookFiles(scratch.at('.git/hooks'))
  expect(states(scratch.ckpt('hooks', 'status'))['pre-commit']).toMatchObject({ installed: false, fires: false })
  expect(states(scratch.ckpt('hooks', 'install'))['pre-commit']).toMatchObject({ chained: false, fires: true })
  scratch.ckpt('hooks', 'uninstall')
  expect(hookFiles(scratch.at('.git/hooks'))).toEqual(bytes)
})

test('a hook that cannot be read is named, and no hook is changed', () => {
  const scratch = new Scratch().init()
  writeHook(scratch, '.git/hooks/pre-commit', { text: '#!/bin/sh\n', mode: 0o111 })
  const uid = scratch.handOver()
  const run = (...args: string[]) => scratch.run([...args, '--json'], { uid })
  const status = JSON.parse(run('hooks', 'status').stdout)
  expect(states(status)['pre-commit']).toMatchObject({ installed: false, fires: null })
  expect(status.warnings.join()).toContain('pre-commit cannot be read')
  const before = fs.readdirSync(scratch.at('.git/hooks'))
  const { code, stdout } = run('hooks', 'install')
  expect([code, JSON.parse(stdout).error.message]).toEqual([
    2,
    `${scratch.at('.git/hooks/pre-commit')} cannot be read. No hook was changed.`,
  ])
  expect(fs.readdirSync(scratch.at('.git/hooks'))).toEqual(before)
  expect([run('doctor').code, run('hooks', 'uninstall').code]).toEqual([0, 0])
})

test('where one hook cannot be put aside none is changed', () => {
  const scratch = new Scratch().init()
  writeHook(scratch, '.git/hooks/prepare-commit-msg', { text: '#!/usr/bin/env python3\n' })
  writeHook(scratch, '.git/hooks/prepare-commit-msg.ckpt-kept', { text: 'an older one\n' })
  const bytes = hookFiles(scratch.at('.git/hooks'))
  const { code, document } = scratch.tryCkpt('hooks', 'install')
  expect([code, document.error.code]).toEqual([2, 'USAGE'])
  expect(document.error.message).toMatch(/ckpt-kept, but something lies there\. No hook was changed\.$/)
  expect(hookFiles(scratch.at('.git/hooks'))).toEqual(bytes)
  scratch.remove('.git/hooks/prepare-commit-msg.ckpt-kept')
  expect(scratch.ckpt('hooks', 'install').hooks.every((hook: Json) => hook.installed)).toBe(true)
})

test('a hooks directory that cannot be written is refused, and nothing is said to be taken out of it', () => {
  const scratch = new Scratch().init()
  const uid = scratch.handOver()
  fs.chmodSync(scratch.at('.git/hooks'), 0o555)
  const run = (...args: string[]) => JSON.parse(scratch.run([...args, '--json'], { uid }).stdout)
  const { error } = run('hooks', 'install')
  expect([error.code, error.message]).toEqual([
    'USAGE',
    expect.stringContaining('it cannot be written (EACCES). No hook'),
  ])
  expect(run('hooks', 'status').warnings).toEqual([])
})

test('row 31: a tracked, a global, an outside or a to-be-tracked hooks directory is not written to: exit 2, with the lines; with them, all is well', () => {
  const cases: [string, (scratch: Scratch) => string][] = [
    [
      'tracked',
      (scratch) => {
        writeHook(scratch, '.githooks/pre-commit', { text: '#!/bin/sh\necho ran >&2\n' })
        scratch.git('add', '-A')
        scratch.git('commit', '-q', '-m', 'hooks')
        scratch.git('config', 'core.hooksPath', '.githooks')
        return scratch.at('.githooks')
      },
    ],
    [
      'to be tracked',
      (scratch) => {
        writeHook(scratch, 'my hooks/pre-commit', { text: '#!/bin/sh\necho ran >&2\n' })
        scratch.git('config', 'core.hooksPath', 'my hooks')
        return scratch.at('my hooks')
      },
    ],
    [
      'global',
      (scratch) => {
        const directory = path.join(scratch.home, 'githooks')
        writeHook(scratch, path.relative(scratch.root, `${directory}/pre-commit`), {
          text: '#!/bin/sh\necho ran >&2\n',
        })
        scratch.git('config', '--global', 'core.hooksPath', '~/githooks')
        return directory
      },
    ],
    [
      'outside',
      (scratch) => {
        const directory = path.join(scratch.base, 'shared')
        writeHook(scratch, path.relative(scratch.root, `${directory}/pre-commit`), {
          text: '#!/bin/sh\necho ran >&2\n',
        })
        scratch.git('config', 'core.hooksPath', directory)
        return directory
      },
    ],
  ]
  for (const [name, make] of cases) {
    const scratch = new Scratch(`a ${name} one`).init()
    const directory = make(scratch)
    const bytes = hookFiles(directory)
    const { code, document } = scratch.tryCkpt('hooks', 'install')
    expect([name, code, document.error.code]).toEqual([name, 2, 'USAGE'])
    expect(hookFiles(directory)).toEqual(bytes)
    expect(document.error.hints.length).toBe(HOOKS.length)
    for (const hint of document.error.hints as string[]) {
      const at = hint.indexOf(': ')
      const [file, line] = [hint.slice(0, at), hint.slice(at + 2)]
      const had = fs.existsSync(file) ? fs.readFileSync(file, 'utf8').replace('#!/bin/sh\n', '') : ''
      fs.writeFileSync(file, `#!/bin/sh\n${line}\n${had}`)
      fs.chmodSync(file, 0o755)
    }
    const { hooks } = scratch.ckpt('hooks', 'install')
    expect(hooks.map((hook: Json) => [hook.installed, hook.fires])).toEqual(HOOKS.map(() => [true, true]))
    const commit = () => tryGit(scratch, ['commit', '-q', '--allow-empty', '-m', 'x'])
    expect(commit()).toMatchObject({ code: 0, stderr: 'ran\n' })
    makePending(scratch)
    expect(commit().code).toBe(1)
    expect(tryGit(scratch, ['revert', '--no-edit', 'HEAD']).code).not.toBe(0)
    scratch.ckpt('hooks', 'uninstall')
    // The lines are right without ckpt, too.
    scratch.git('reset', '-q', '--merge')
    expect(commit()).toMatchObject({ code: 0, stderr: 'ran\n' })
  }
})

test('row 31: husky: the project hooks run after the gate, both can refuse, uninstall gives its files back', () => {
  const scratch = gateScratch()
  scratch.write({ '.husky/pre-commit': 'echo husky ran >&2\n[ -z "$FAIL" ]\n' })
  husky(scratch)
  expect(scratch.git('config', 'core.hooksPath').trim()).toBe('.husky/_')
  scratch.git('add', '-A')
  scratch.git('commit', '-q', '-m', 'husky')
  const launchers = hookFiles(scratch.at('.husky/_'))
  const project = hookFiles(scratch.at('.husky'))
  const { hooks, warnings } = scratch.ckpt('hooks', 'install')
  expect(hooks.map((hook: Json) => [hook.installed, hook.chained, hook.fires])).toEqual(
    HOOKS.map(() => [true, true, true]),
  )
  expect(warnings.join()).toMatch(/husky writes .* anew .*\.husky\/pre-commit.*gate\.sh/)
  const commit = (vars = {}) => tryGit(scratch, ['commit', '-q', '--allow-empty', '-m', 'x'], { vars })
  expect(commit()).toMatchObject({ code: 0, stderr: 'husky ran\n' })
  expect(commit({ FAIL: '1' }).code).toBe(1)
  makePending(scratch)
  const refused = commit()
  expect([refused.code, refused.stderr.includes('husky ran')]).toEqual([1, false])
  expect(tryGit(scratch, ['cherry-pick', 'side']).code).not.toBe(0)
  scratch.git('cherry-pick', '--abort')
  expect(scratch.git('status', '--porcelain')).toBe('')

  // A new `npm install` takes the gate out: that is seen, and mended.
  husky(scratch)
  const gone = scratch.ckpt('hooks', 'status')
  expect(gone.hooks.every((hook: Json) => !hook.installed && hook.fires === false)).toBe(true)
  expect(gone.warnings.join()).toContain('something took it out')
  expect(scratch.tryCkpt('doctor').document.findings.find((one: Json) => one.name === 'hooks')).toMatchObject({
    ok: false,
    mend: 'ckpt hooks install',
  })
  scratch.ckpt('hooks', 'install')
  expect(commit().code).toBe(1)

  scratch.ckpt('hooks', 'uninstall')
  expect([hookFiles(scratch.at('.husky/_')), hookFiles(scratch.at('.husky'))]).toEqual([launchers, project])
  expect(commit()).toMatchObject({ code: 0, stderr: 'husky ran\n' })
})

const hooksFound = (document: Json) => document.findings.find(({ name }: Json) => name === 'hooks')

test('row 31: husky in a linked worktree: git runs no hooks there before it is installed, which is said, and what to run', () => {
  const scratch = gateScratch()
  scratch.write({ '.husky/pre-commit': 'true\n' })
  husky(scratch)
  scratch.git('add', '-A')
  scratch.git('commit', '-q', '-m', 'husky')
  expect(scratch.ckpt('hooks', 'install').warnings.join()).toContain('in a linked worktree git runs no hook before')
  const linked = path.join(scratch.base, 'linked')
  scratch.git('worktree', 'add', '-q', '-b', 'linked', linked)
  const refused = scratch.tryCkpt('hooks', 'install', '--cwd', linked)
  expect([refused.code, refused.document.error]).toMatchObject([
    2,
    {
      code: 'CONFIG',
      message: `Git runs no hooks here: husky is not installed in this worktree (${linked}/.husky/_ is not there). No hook was changed.`,
      hints: ['npx husky', `ckpt hooks install --cwd ${linked}`],
    },
  ])
  const doctor = () => hooksFound(scratch.tryCkpt('doctor', '--cwd', linked).document)
  expect(doctor()).toMatchObject({ ok: false, mend: 'npx husky' })
  husky(scratch, linked)
  scratch.ckpt('hooks', 'install', '--cwd', linked)
  expect(doctor()).toMatchObject({ ok: true })
})

test('row 31: the line that is to be taken out of a husky project is named where it is', () => {
  const scratch = new Scratch().init()
  const gate = (name: string) =>
    `ckpt_gate="$(git rev-parse --git-common-dir)/ckpt/hooks/gate.sh"; [ ! -f "$ckpt_gate" ] || sh "$ckpt_gate" ${name} "$@" </dev/null || exit "$?"\n`
  for (const name of HOOKS) scratch.write({ [`.husky/${name}`]: gate(name) })
  husky(scratch)
  const paths = scratch.ckpt('hooks', 'install').hooks.map((hook: Json) => [hook.installed, hook.path])
  expect(paths).toEqual(HOOKS.map((name) => [true, scratch.at(`.husky/${name}`)]))
  const { warnings } = scratch.ckpt('hooks', 'uninstall')
  expect(warnings).toContain(
    `The line that calls the gate for pre-commit (${scratch.at('.husky/pre-commit')}) can be taken out now.`,
  )
})

test.each([
  ['to be tracked', '.githooks', []],
  ['shared by all repositories', '../home/githooks', ['--global']],
])(
  'row 31: where lines were added to hooks that are not ours to write (%s), it is noticed when they are gone',
  (_, at, scope) => {
    const scratch = new Scratch().init()
    writeHook(scratch, `${at}/pre-commit`, { text: '#!/bin/sh\n' })
    scratch.git('config', ...scope, 'core.hooksPath', scratch.at(at))
    const { hints } = scratch.tryCkpt('hooks', 'install').document.error
    for (const hint of hints as string[]) {
      const end = hint.indexOf(': ')
      writeHook(scratch, path.relative(scratch.root, hint.slice(0, end)), {
        text: `#!/bin/sh\n${hint.slice(end + 2)}\n`,
      })
    }
    const doctor = () => hooksFound(scratch.tryCkpt('doctor').document)
    scratch.ckpt('hooks', 'install')
    expect(doctor()).toMatchObject({ ok: true, detail: 'all fire' })
    scratch.remove(at)
    expect(scratch.ckpt('hooks', 'status').warnings).toEqual([expect.stringContaining('The gate is not in')])
    expect(doctor()).toMatchObject({ ok: false, mend: 'ckpt hooks install' })
    scratch.git('config', ...scope, '--unset', 'core.hooksPath')
    expect(scratch.ckpt('hooks', 'status').warnings).toEqual([expect.stringContaining('git now runs the hooks in')])
    scratch.ckpt('hooks', 'uninstall')
    expect(doctor()).toMatchObject({ ok: true })
  },
)

test('row 31: a hook of simple-git-hooks is told to be written anew', () => {
  const scratch = new Scratch().init()
  const text = '#!/bin/sh\n\nif [ "$SKIP_SIMPLE_GIT_HOOKS" = "1" ]; then\n    exit 0\nfi\n\ntrue'
  writeHook(scratch, '.git/hooks/pre-commit', { text })
  expect(scratch.ckpt('hooks', 'install').warnings).toEqual([
    expect.stringMatching(/^simple-git-hooks writes .*pre-commit anew/),
  ])
})

test('row 31: pre-commit installed after the gate runs it before its own hooks: status says so, and uninstall takes it away', () => {
  const scratch = new Scratch().init()
  scratch.ckpt('hooks', 'install')
  // As pre-commit's installer does where it finds a hook that is not its own, and as its hook goes on.
  fs.renameSync(scratch.at('.git/hooks/pre-commit'), scratch.at('.git/hooks/pre-commit.legacy'))
  const text = '#!/usr/bin/env bash\n# File generated by pre-commit: https://pre-commit.com\n"$0.legacy" "$@"\n'
  writeHook(scratch, '.git/hooks/pre-commit', { text })
  const { hooks } = scratch.ckpt('hooks', 'status')
  expect(states({ hooks })['pre-commit']).toMatchObject({ installed: true, chained: true, fires: null })
  expect(hooksFound(scratch.tryCkpt('doctor').document)).toMatchObject({ ok: true })
  makePending(scratch)
  expect(tryGit(scratch, ['commit', '--allow-empty', '-m', 'x']).code).toBe(1)
  for (const installs of [0, 1]) {
    for (let i = 0; i < installs; i++) scratch.ckpt('hooks', 'install')
    scratch.ckpt('hooks', 'uninstall')
    const left = Object.entries(hookFiles(scratch.at('.git/hooks'))).filter(([name]) => !name.endsWith('.sample'))
    expect(left).toEqual([['pre-commit', `755 ${text}`]])
  }
})

test.each([
  ['for a shell', '#!/bin/sh\n\necho mine\n'],
  ['for a shell, with nothing in it', '#!/bin/sh\n'],
  ['for another program', '#!/usr/bin/env python3\nprint("mine")\n'],
])('row 31: a hook %s that pre-commit moved away with the gate comes back as it was, where it is now', (_, text) => {
  const scratch = new Scratch().init()
  writeHook(scratch, '.git/hooks/pre-commit', { text, mode: 0o750 })
  scratch.ckpt('hooks', 'install')
  fs.renameSync(scratch.at('.git/hooks/pre-commit'), scratch.at('.git/hooks/pre-commit.legacy'))
  const theirs = '#!/usr/bin/env bash\n# File generated by pre-commit: https://pre-commit.com\n"$0.legacy" "$@"\n'
  writeHook(scratch, '.git/hooks/pre-commit', { text: theirs })
  expect(scratch.ckpt('hooks', 'uninstall').warnings).toEqual([])
  const left = Object.entries(hookFiles(scratch.at('.git/hooks'))).filter(([name]) => !name.endsWith('.sample'))
  expect(left).toEqual([
    ['pre-commit', `755 ${theirs}`],
    ['pre-commit.legacy', `750 ${text}`],
  ])
})

test('row 31: husky installed after the gate takes over the hooks: status says so', () => {
  const scratch = new Scratch().init()
  scratch.ckpt('hooks', 'install')
  husky(scratch)
  const { hooks, warnings } = scratch.ckpt('hooks', 'status')
  expect(hooks.every((hook: Json) => hook.fires === false)).toBe(true)
  expect(warnings.join()).toContain('git now runs the hooks in')
  scratch.ckpt('hooks', 'install')
  makePending(scratch)
  expect(tryGit(scratch, ['commit', '--allow-empty', '-m', 'x']).code).toBe(1)
  scratch.ckpt('hooks', 'uninstall')
  expect(Object.keys(hookFiles(scratch.at('.git/hooks'))).filter((name) => !name.endsWith('.sample'))).toEqual([])
})

/** The real program, if it is installed here: it is a binary of 14 MB that this project does not ask for. */
function findLefthook(): string | null {
  try {
    return require.resolve(`lefthook-${process.platform}-${process.arch}/bin/lefthook`)
  } catch {
    const found = spawnSync('sh', ['-c', 'command -v lefthook'], { encoding: 'utf8' })
    return found.stdout.trim() || null
  }
}
const lefthook = findLefthook()

test.skipIf(lefthook === null)(
  'row 31: lefthook: its jobs run after the gate, both can refuse, uninstall gives its files back',
  () => {
    const scratch = gateScratch()
    const run = (...args: string[]) =>
      execFileSync(lefthook!, args, { cwd: scratch.root, env: scratch.vars, stdio: 'ignore' })
    scratch.write({ 'lefthook.yml': 'pre-commit:\n  jobs:\n    - run: echo "lefthook"" ran" && test -z "$FAIL"\n' })
    scratch.git('add', '-A')
    scratch.git('commit', '-q', '-m', 'lefthook')
    run('install')
    const bytes = hookFiles(scratch.at('.git/hooks'))
    const { hooks, warnings } = scratch.ckpt('hooks', 'install')
    expect(states({ hooks })['pre-commit']).toMatchObject({ installed: true, chained: true, fires: true })
    expect(hooks.every((hook: Json) => hook.fires)).toBe(true)
    expect(warnings.join()).toContain('lefthook writes')
    let count = 0
    const commit = (vars = {}) => {
      scratch.write({ 'mine.txt': `${count++}` })
      scratch.git('add', '-A')
      const { code, stdout, stderr } = tryGit(scratch, ['commit', '-q', '-m', 'x'], {
        vars: { LEFTHOOK_BIN: lefthook!, ...vars },
      })
      return { code, ran: `${stdout}${stderr}`.includes('lefthook ran') }
    }
    expect(commit()).toEqual({ code: 0, ran: true })
    expect(commit({ FAIL: '1' }).code).toBe(1)
    makePending(scratch)
    expect(commit()).toEqual({ code: 1, ran: false })
    scratch.ckpt('hooks', 'uninstall')
    expect(hookFiles(scratch.at('.git/hooks'))).toEqual(bytes)
    expect(commit()).toEqual({ code: 0, ran: true })
  },
)

test.skipIf(!hasConfigured)(
  'hooks in the configuration: a look at the gate runs none of them, and the gate refuses beside them',
  () => {
    const scratch = gateScratch()
    const notes = path.join(scratch.base, 'notes')
    for (const [i, event] of [...HOOKS, 'reference-transaction', 'post-index-change'].entries()) {
      scratch.git('config', '--add', `hook.mine=${i}.event`, event)
      scratch.git('config', `hook.mine=${i}.command`, `echo ${event} >>'${notes}'; :`)
    }
    expect(scratch.ckpt('hooks', 'install').hooks.map((hook: Json) => hook.fires)).toEqual(HOOKS.map(() => true))
    scratch.ckpt('doctor')
    scratch.turn('work', () => scratch.write({ 'mine.txt': 'two\n' }))
    scratch.ckpt('undo')
    expect(fs.existsSync(notes)).toBe(false)
    expect(tryGit(scratch, ['commit', '-q', '--allow-empty', '-m', 'x']).code).toBe(1)
    expect(fs.readFileSync(notes, 'utf8')).toContain('pre-commit\n')
  },
)

test('what was moved aside, and another took the place of since, is named and stays', () => {
  const scratch = gateScratch()
  const hook = (text: string) => fs.writeFileSync(scratch.at('.git/hooks/pre-commit'), text, { mode: 0o755 })
  hook('#!/usr/bin/env node\nconsole.log("mine")\n')
  scratch.ckpt('hooks', 'install')
  hook('#!/bin/sh\necho another\n')
  const kept = scratch.at('.git/hooks/pre-commit.ckpt-kept')
  const told = `${kept} was your pre-commit before ckpt, and git does not run it any more.`
  for (const what of ['install', 'status', 'uninstall']) expect(scratch.ckpt('hooks', what).warnings).toEqual([told])
  expect(fs.readFileSync(kept, 'utf8')).toContain('mine')
  expect(scratch.read('.git/hooks/pre-commit')).toBe('#!/bin/sh\necho another\n')
})
