// What the gate costs: `git commit` with it, against one whose same hooks hold only `exit 0`.
import { execFileSync } from 'node:child_process'
import { mkdirSync, writeFileSync } from 'node:fs'
import path from 'node:path'

const HOOKS = ['pre-commit', 'pre-merge-commit', 'pre-rebase', 'pre-applypatch', 'prepare-commit-msg', 'commit-msg']

export interface GateCost {
  /** Milliseconds of one `git commit`, medians of interleaved rounds. */
  gated: number
  bare: number
}

export function gateCost(base: string, program: string, vars: NodeJS.ProcessEnv): GateCost {
  const env = {
    ...vars,
    GIT_AUTHOR_NAME: 'bench',
    GIT_AUTHOR_EMAIL: 'bench@example.com',
    GIT_COMMITTER_NAME: 'bench',
    GIT_COMMITTER_EMAIL: 'bench@example.com',
  }
  const make = (name: string) => {
    const cwd = path.join(base, name)
    mkdirSync(cwd)
    const git = (...args: string[]) => execFileSync('git', args, { cwd, env, stdio: 'ignore' })
    git('init', '-q')
    git('config', 'gc.auto', '0')
    git('commit', '-q', '--allow-empty', '-m', 'first')
    return { cwd, git, times: [] as number[] }
  }
  const [gated, bare] = [make('gated'), make('bare')]
  for (const name of HOOKS)
    writeFileSync(path.join(bare.cwd, '.git/hooks', name), '#!/bin/sh\nexit 0\n', { mode: 0o755 })
  for (const args of [['snapshot'], ['hooks', 'install']]) {
    execFileSync(process.execPath, [program, ...args], { cwd: gated.cwd, env, stdio: 'ignore' })
  }
  for (let round = 0; round < 60; round++) {
    for (const { git, times } of round % 2 ? [gated, bare] : [bare, gated]) {
      const start = performance.now()
      git('commit', '-q', '--allow-empty', '-m', 'bench')
      times.push(performance.now() - start)
    }
  }
  const median = ({ times }: { times: number[] }) => times.sort((a, b) => a - b)[times.length >> 1]!
  return { gated: median(gated), bare: median(bare) }
}
