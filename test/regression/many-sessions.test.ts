// A worktree that saw many conversations: no command starts a git for each of them, and none prints them all unasked.
import { execFileSync } from 'node:child_process'
import fs from 'node:fs'
import { expect, test } from 'vitest'
import { Scratch } from '../support/scratch.ts'

/** Two turns of which the second was undone, and a third that goes on from there. */
function converse(scratch: Scratch, session: string): void {
  for (const text of ['one', 'two'])
    scratch.turn(text, () => scratch.write({ [`${session}.txt`]: `${text}\n` }), session)
  scratch.ckpt('undo', '--session', session)
  scratch.turn('three', () => scratch.write({ [`${session}.txt`]: 'three\n' }), session)
}

/** How many git processes a command starts. */
function processes(scratch: Scratch, ...args: string[]): number {
  const directory = `${scratch.base}/counted`
  const real = execFileSync('sh', ['-c', 'command -v git'], { encoding: 'utf8' }).trim()
  fs.mkdirSync(directory, { recursive: true })
  fs.writeFileSync(`${directory}/git`, `#!/bin/sh\necho >>'${directory}/log'\nexec '${real}' "$@"\n`, { mode: 0o755 })
  fs.writeFileSync(`${directory}/log`, '')
  const done = scratch.runApart(args, { vars: { PATH: `${directory}:${scratch.vars.PATH}` } })
  expect(done).toMatchObject({ code: 0, stderr: '' })
  return fs.readFileSync(`${directory}/log`, 'utf8').length
}

test('no command starts more git processes for more sessions, and each says what is so', () => {
  const scratch = new Scratch().init()
  const commands = [
    ['list', '--sessions'],
    ['list', '--all-sessions', '--abandoned'],
    ['list', '--all-sessions', '-n', '2'],
    ['log'],
    ['status'],
    ['prune', '--dry-run'],
  ]
  const counts = () => commands.map((args) => [args.join(' '), processes(scratch, ...args)])
  const converseUpTo = (from: number, to: number) => {
    for (let n = from; n <= to; n++) converse(scratch, `s${n}`)
  }
  converseUpTo(1, 2)
  const few = counts()
  converseUpTo(3, 8)
  expect(counts()).toEqual(few)
  const { sessions } = scratch.ckpt('list', '--sessions')
  expect(sessions.map(({ id, turns }: { id: string; turns: number }) => [id, turns])).toEqual(
    [8, 7, 6, 5, 4, 3, 2, 1].map((n) => [`s${n}`, 2]),
  )
  const { turns } = scratch.ckpt('list', '--all-sessions', '--abandoned')
  expect(turns.slice(0, 3).map(({ session, prompt }: Record<string, string>) => [session, prompt])).toEqual([
    ['s8', 'three'],
    ['s8', 'two'],
    ['s8', 'one'],
  ])
  expect(turns).toHaveLength(24)
  expect(scratch.run(['status']).stdout).toMatch(
    /^ *Sessions +s8 \(2 turns, idle\), .*s4 .*, and 3 more {3}\(ckpt list --sessions\)$/m,
  )
})
