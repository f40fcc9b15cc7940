// Promise 8: a child that lives on changes nothing. A git that drops objects goes on where only the ckpt that started it is killed.
import { execFileSync, spawn } from 'node:child_process'
import { once } from 'node:events'
import fs from 'node:fs'
import path from 'node:path'
import { expect, onTestFinished, test } from 'vitest'
import { tryGit } from '../../src/git/process.ts'
import { envOf } from '../support/in-process.ts'
import { until } from '../support/protocol.ts'
import { PROGRAM, Scratch } from '../support/scratch.ts'

/** A PATH with a git that waits, before it runs `command`, until it is let go. */
function heldGit(scratch: Scratch, command: string): { PATH: string; began: () => boolean; letGo: () => void } {
  const real = execFileSync('sh', ['-c', 'command -v git'], { encoding: 'utf8' }).trim()
  const bin = path.join(scratch.base, 'held-bin')
  const [began, hold] = [path.join(bin, 'began'), path.join(bin, 'hold')]
  fs.mkdirSync(bin)
  fs.writeFileSync(hold, '')
  fs.writeFileSync(
    path.join(bin, 'git'),
    `#!/bin/sh
case " $* " in *" ${command} "*) : >'${began}'; while [ -e '${hold}' ]; do sleep 0.02; done ;; esac
exec '${real}' "$@"
`,
    { mode: 0o755 },
  )
  const letGo = () => fs.rmSync(hold, { force: true })
  onTestFinished(letGo)
  return { PATH: `${bin}:${scratch.vars.PATH}`, began: () => fs.existsSync(began), letGo }
}

test.each([
  ['prune', 'repack', ['prune', '--keep', '1']],
  ['prune', 'prune', ['prune', '--keep', '1']],
  ['forget', 'prune', ['forget', 'a.txt']],
])('promise 8: a %s whose git %s outlives it holds the store until that has ended', async (_, command, argv) => {
  const scratch = new Scratch().init()
  for (const n of [1, 2, 3]) scratch.turn(`${n}`, () => scratch.write({ 'a.txt': `${n}\n` }))
  scratch.write({ '../home/.config/ckpt/.checkpointrc': '{"snapshot":{"deadline":"1s"}}' })
  const git = heldGit(scratch, command)
  const env = { ...scratch.vars, PATH: git.PATH }
  const killed = spawn(process.execPath, [PROGRAM, ...argv], { cwd: scratch.root, env, stdio: 'ignore' })
  await until(git.began, `git ${command}`)
  killed.kill('SIGKILL')
  await once(killed, 'exit')
  scratch.write({ 'b.txt': 'new\n' })
  const refused = scratch.tryCkpt('mark', 'prompt', '--session', 's')
  expect([refused.code, refused.document.error?.code]).toEqual([8, 'LOCKED'])
  expect(refused.document.error.message).toMatch(/a git that it started, process \d+/)
  git.letGo()
  scratch.ckpt('snapshot')
  expect(scratch.ckpt('verify').problems).toEqual([])
})

test('promise 8: a git whose ckpt is killed before that can say so never begins', async () => {
  const scratch = new Scratch().init()
  const killed = () => {
    throw new Error('killed')
  }
  const call = { args: ['config', 'user.name', 'begun'], cwd: scratch.root, begun: killed }
  await expect(tryGit(envOf(scratch), call)).rejects.toThrow('killed')
  expect(await tryGit(envOf(scratch), { ...call, begun: () => undefined })).toMatchObject({ code: 0 })
  expect(scratch.git('config', 'user.name')).toBe('begun\n')
})
