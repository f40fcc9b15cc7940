// A repository within the worktree that ceases to be one, though its directory stays as it was: git lists its files from then on.
import { execFileSync } from 'node:child_process'
import fs from 'node:fs'
import { expect, test } from 'vitest'
import { startDaemon } from '../support/daemon.ts'
import { type Json, Scratch } from '../support/scratch.ts'

const WAYS: [string, begin: string, end: string][] = [
  ['a linked worktree that git forgot', 'git worktree add -q sub', 'rm -r .git/worktrees'],
  ['one without its HEAD', 'git init -q sub', 'rm sub/.git/HEAD'],
  ['one without its objects', 'git init -q sub', 'rm -r sub/.git/objects'],
  ['one whose git directory lies elsewhere, and went', 'git init -q --separate-git-dir=../own sub', 'rm -r ../own'],
  ['one whose .git says something else', 'git init -q --separate-git-dir=../own sub', 'echo else >sub/.git'],
]

test.each(WAYS.flatMap((way) => [false, true].map((watched) => [way[0], watched ? 'with' : 'without', way] as const)))(
  '%s, %s the daemon',
  async (_what, how, [, begin, end]) => {
    const scratch = new Scratch().init()
    const sh = (line: string) => execFileSync('sh', ['-c', line], { cwd: scratch.root, env: scratch.vars })
    sh(begin)
    scratch.write({ 'sub/u': 'one\n' })
    // What changed just now is looked at in any case.
    sh('touch -d "1 hour ago" sub sub/.git sub/u .')
    if (how === 'with') await startDaemon(scratch)
    const uncovered = (): string[] => scratch.ckpt('snapshot').checkpoint.uncovered.map((one: Json) => one.path)
    for (let i = 0; i < 2; i++) expect(uncovered()).toEqual(['sub/'])
    sh(end)
    scratch.turn('in what is none any more', () => scratch.write({ 'sub/u': 'two\n', 'sub/n': 'new\n' }))
    scratch.ckpt('undo')
    expect([scratch.read('sub/u'), fs.existsSync(scratch.at('sub/n'))]).toEqual(['one\n', false])
  },
)
