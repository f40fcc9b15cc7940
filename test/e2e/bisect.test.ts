// The first turn that makes a command fail, found without touching the worktree.
import { execFileSync, spawn } from 'node:child_process'
import fs from 'node:fs'
import { setTimeout } from 'node:timers/promises'
import { expect, onTestFinished, test } from 'vitest'
import { alive } from '../support/daemon.ts'
import { PROGRAM, Scratch } from '../support/scratch.ts'

test('it names the turn, runs few times, and leaves the worktree as it is', () => {
  const scratch = new Scratch().init({ 'n.txt': '0\n', '.gitignore': 'deps/\n', 'deps/tool': 'x\n' })
  for (let i = 1; i <= 9; i++) scratch.turn(`Set it to ${i}`, () => scratch.write({ 'n.txt': `${i}\n` }))
  scratch.write({ 'mine.txt': 'mine\n' })
  const before = scratch.manifest()
  const found = scratch.ckpt('bisect', '--', 'sh', '-c', 'test -f deps/tool && test "$(cat n.txt)" -lt 6')
  expect(found).toMatchObject({ turn: 6, session: 's', prompt: 'Set it to 6' })
  expect(found.runs).toBeLessThanOrEqual(6) // nothing changed between the turns: that is not tried
  expect(scratch.manifest()).toEqual(before)
})

test('one that never fails, one that failed before, one that is no program', () => {
  const scratch = new Scratch().init()
  scratch.turn('first', () => scratch.write({ 'a.txt': 'two\n' }))
  expect(scratch.tryCkpt('bisect', '--', 'true').code).toBe(3)
  expect(scratch.tryCkpt('bisect', '--', 'false').code).toBe(3)
  expect(scratch.tryCkpt('bisect', '--', 'no-such-program').code).toBe(2)
  expect(scratch.tryCkpt('bisect', '--', './a.txt/below').document.error).toMatchObject({ code: 'USAGE' })
  expect(scratch.tryCkpt('bisect', '--', '').code).toBe(2)
  expect(scratch.tryCkpt('bisect').code).toBe(2)
})

test('what the command does to ignored files, and to a repository, is done to a copy', () => {
  const scratch = new Scratch().init({ 'n.txt': 'good\n', '.gitignore': 'out/\n.env\n' })
  scratch.write({ 'out/bin/tool': '#!/bin/sh\nexit 0\n', '.env': 'precious\n' })
  fs.chmodSync(`${scratch.root}/out/bin/tool`, 0o755)
  fs.symlinkSync('bin/tool', `${scratch.root}/out/link`)
  scratch.turn('first', () => scratch.write({ 'a.txt': 'a\n' }))
  scratch.turn('second', () => scratch.write({ 'n.txt': 'bad\n' }))
  const before = scratch.manifest()
  const script = [
    'pwd >> "$HOME/places"',
    'test "$(cat .env)" = precious && out/bin/tool && out/link || exit 9',
    'echo gone > .env; echo more >> out/bin/tool; rm -r out/bin; mkdir -p shut/in; chmod 555 shut',
    'git config user.name somebody; git tag -f taken 2>/dev/null',
    'grep -q good n.txt || { rm -rf "$PWD"; exit 1; }',
  ].join('\n')
  expect(scratch.ckpt('bisect', '--', 'sh', '-c', script)).toMatchObject({ turn: 2, warnings: [] })
  expect(scratch.manifest()).toEqual(before)
  expect(scratch.git('tag')).toBe('')
  const places = fs.readFileSync(`${scratch.home}/places`, 'utf8').trimEnd().split('\n')
  expect(places).toHaveLength(3)
  expect(places.filter((place) => fs.existsSync(place))).toEqual([])
})

test('what is ignored now, and was not there then, comes along; a file in the place of its directory stays', () => {
  const scratch = new Scratch().init({ '.gitignore': 'node_modules/\nplace/in\n', place: 'a file\n' })
  for (const turn of [1, 2, 3]) scratch.turn(`turn ${turn}`, () => scratch.write({ [`f${turn}.txt`]: 'x\n' }))
  scratch.remove('place')
  scratch.write({ 'node_modules/dep/x': 'x\n', 'place/in': 'in\n' })
  const script = 'test -e node_modules/dep/x && test -f place && ! test -e f2.txt'
  expect(scratch.ckpt('bisect', '--', 'sh', '-c', script)).toMatchObject({ turn: 2, warnings: [] })
})

test('what is ignored beside files that are not, comes along, and no file of another state', () => {
  const scratch = new Scratch().init({ '.gitignore': 'vendor/\n', 'vendor/README': 'r\n', n: 'good\n' })
  scratch.git('add', '-f', 'vendor')
  scratch.git('commit', '-qm', 'vendor')
  scratch.turn('first', () => scratch.write({ n: 'still good\n' }))
  scratch.turn('second', () => {
    scratch.write({ n: 'bad\n', 'vendor/more': 'more\n', 'vendor/README': 'changed\n' })
    scratch.git('add', '-f', 'vendor')
  })
  scratch.write({ 'vendor/dep/x': 'x\n', 'vendor/y': 'y\n' })
  const script = [
    'test -e vendor/dep/x && test -e vendor/y || exit 9',
    'grep -q bad n || { grep -q r vendor/README && ! test -e vendor/more || exit 9; }',
    '! grep -q bad n',
  ].join('\n')
  expect(scratch.ckpt('bisect', '--', 'sh', '-c', script)).toMatchObject({ turn: 2, warnings: [] })
})

test('what a person changed between two turns is no turn’s', () => {
  const scratch = new Scratch().init({ 'n.txt': 'good\n' })
  scratch.turn('first', () => scratch.write({ 'a.txt': 'a\n' }))
  scratch.write({ 'n.txt': 'bad\n' })
  scratch.turn('second', () => scratch.write({ 'b.txt': 'b\n' }))
  scratch.turn('third', () => scratch.write({ 'c.txt': 'c\n' }))
  const { code, document } = scratch.tryCkpt('bisect', '--', 'grep', '-q', 'good', 'n.txt')
  expect(code).toBe(3)
  expect(document).toMatchObject({ error: { code: 'NOT_FOUND', hints: ['ckpt diff 1:after 2:before'] } })
})

test('told to end, it ends the command too', async () => {
  const scratch = new Scratch().init({ 'n.txt': 'good\n' })
  scratch.turn('first', () => scratch.write({ 'n.txt': 'bad\n' }))
  const pid = `${scratch.base}/pid`
  const line = ['bisect', '--', 'sh', '-c', `echo $$ >"${pid}.new"; mv "${pid}.new" "${pid}"; exec sleep 60`]
  const bisect = spawn(process.execPath, [PROGRAM, ...line], { cwd: scratch.root, env: scratch.vars, stdio: 'ignore' })
  const ended = new Promise((resolve) => bisect.on('exit', (_, signal) => resolve(signal)))
  while (!fs.existsSync(pid)) await setTimeout(20)
  bisect.kill('SIGTERM')
  expect(await ended).toBe('SIGTERM')
  const command = Number(fs.readFileSync(pid, 'utf8'))
  for (let i = 0; i < 100 && alive(command); i++) await setTimeout(20)
  expect(alive(command)).toBe(false)
})

test('a state has the modes that were recorded, whatever the umask, and what no checkpoint holds as it is now', () => {
  const scratch = new Scratch().init({ 'tool.sh': '#!/bin/sh\n', 'shut/in': 'x\n' })
  scratch.write({ 'data/data.bin': Buffer.alloc(11 << 20, 'x'), 'nested/file': 'n\n' })
  scratch.git('init', '-q', 'nested')
  scratch.git('-C', 'nested', 'commit', '-q', '--allow-empty', '-m', 'x')
  fs.mkdirSync(scratch.at('linked'))
  fs.writeFileSync(scratch.at('linked/.git'), `gitdir: ${scratch.root}/nested/.git\n`)
  fs.writeFileSync(scratch.at('linked/file'), 'l\n')
  execFileSync('mkfifo', [scratch.at('pipe')])
  fs.chmodSync(scratch.at('tool.sh'), 0o666)
  fs.chmodSync(scratch.at('shut'), 0o700)
  scratch.turn('first', () => scratch.write({ 'a.txt': 'a\n' }))
  scratch.turn('second', () => scratch.write({ 'b.txt': 'b\n' }))
  const script = [
    'test "$(stat -c %a tool.sh)" = 666 && test "$(stat -c %a shut)" = 700 || exit 1',
    'test -s data/data.bin && cat nested/file linked/file && test ! -e nested/.git && test ! -e linked/.git || exit 1',
    'test ! -e b.txt',
  ].join('\n')
  expect(scratch.ckpt('bisect', '--', 'sh', '-c', script)).toMatchObject({
    turn: 2,
    warnings: ['Not in the states that were tried, for no checkpoint holds it: pipe (special).'],
  })
  const { document } = scratch.tryCkpt('bisect', '--', 'false')
  expect(document).toMatchObject({
    error: { code: 'NOT_FOUND' },
    warnings: [expect.stringContaining('pipe (special)')],
  })
})

test('what lies behind a link out of the worktree by now is not in a state', () => {
  const scratch = new Scratch().init({ '.gitignore': 'cache/\n', 'd/k': 'k\n' })
  scratch.write({ 'd/cache/c': 'c\n', '../outside/cache/s': 'secret\n' })
  for (const name of ['b.txt', 'c.txt']) scratch.turn(name, () => scratch.write({ [name]: 'x\n' }))
  scratch.remove('d')
  fs.symlinkSync(`${scratch.base}/outside`, scratch.at('d'))
  const script = 'test ! -e d/cache/s && test -f d/k && test ! -e c.txt'
  expect(scratch.ckpt('bisect', '--', 'sh', '-c', script)).toMatchObject({ turn: 2 })
})

test('a temporary directory in an ignored directory of the worktree is not copied into itself', () => {
  const scratch = new Scratch().init({ '.gitignore': '.tmpé/\n' })
  scratch.write({ '.tmpé/tool': 't\n' })
  for (const name of ['b.txt', 'c.txt']) scratch.turn(name, () => scratch.write({ [name]: 'x\n' }))
  const line = ['bisect', '--json', '--', 'sh', '-c', 'test -f .tmpé/tool && test ! -e c.txt']
  const { code, stdout } = scratch.run(line, { vars: { TMPDIR: scratch.at('.tmpé') } })
  expect([code, JSON.parse(stdout).turn]).toEqual([0, 2])
  expect(fs.readdirSync(scratch.at('.tmpé'))).toEqual(['tool'])
})

/** Bisects with a command that always fails, which may reach `$VICTIM`; the states are laid out in the home directory. */
function failing(scratch: Scratch, victim: Scratch, script: string) {
  const vars = { TMPDIR: scratch.home, VICTIM: victim.root }
  scratch.turn('first', () => scratch.write({ 'b.txt': 'b\n' }))
  const { code, stdout } = scratch.run(['bisect', '--json', '--', 'sh', '-c', `${script}; exit 1`], { vars })
  expect(code).toBe(3)
  return JSON.parse(stdout)
}
const left = /ckpt-bisect-\w+, where a state was tried, was not removed, or not all of it/

test('what the command put in the place of its directory is left alone, and that is said', () => {
  const [scratch, victim] = [new Scratch().init(), new Scratch('victim').init()]
  const before = victim.manifest()
  const { warnings } = failing(scratch, victim, 'd=$PWD; cd ..; mv "$d" "$d.moved"; ln -s "$VICTIM" "$d"')
  expect(victim.manifest()).toEqual(before)
  expect(warnings).toEqual([expect.stringMatching(left), expect.stringMatching(left)])
})

test('what the command mounted in its directory is left alone, and that is said', ({ skip }) => {
  const [scratch, victim] = [new Scratch().init(), new Scratch('victim').init()]
  const before = victim.manifest()
  onTestFinished(() => {
    for (const name of fs.readdirSync(scratch.home))
      if (fs.existsSync(`${scratch.home}/${name}/m/a.txt`)) execFileSync('umount', [`${scratch.home}/${name}/m`])
  })
  const { warnings } = failing(scratch, victim, 'mkdir m && mount --bind "$VICTIM" m && echo yes > "$HOME/mounted"')
  skip(!fs.existsSync(`${scratch.home}/mounted`), 'no mounts here')
  expect(victim.manifest()).toEqual(before)
  expect(warnings).toEqual([expect.stringMatching(left), expect.stringMatching(left)])
})
