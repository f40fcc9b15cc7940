// The first turn that makes a command fail, found without touching the worktree.
import { spawn } from 'node:child_process'
import fs from 'node:fs'
import { setTimeout } from 'node:timers/promises'
import { expect, test } from 'vitest'
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
  const ended = new Promise((resolve) => bisect.on('exit', resolve))
  while (!fs.existsSync(pid)) await setTimeout(20)
  bisect.kill('SIGTERM')
  expect(await ended).toBe(143)
  const command = Number(fs.readFileSync(pid, 'utf8'))
  for (let i = 0; i < 100 && alive(command); i++) await setTimeout(20)
  expect(alive(command)).toBe(false)
})
