/** What git itself makes of a worktree, with an index of its own. */
import { execFileSync } from 'node:child_process'
import path from 'node:path'
import type { Scratch } from './scratch.ts'

export interface Judged {
  /** The worktree, where it is not the scratch place's own. */
  root?: string
  /** What is taken though a rule ignores it. */
  tracked?: readonly string[]
  /** Pathspecs of what is looked at. */
  only?: readonly string[]
}

/** The tree's id. */
export function treeByGit(scratch: Scratch, { root = scratch.root, tracked = [], only = ['.'] }: Judged = {}): string {
  const vars = {
    ...scratch.vars,
    GIT_INDEX_FILE: path.join(scratch.base, `judge-${Math.random()}`),
    GIT_DIR: path.join(root, '.git'),
    GIT_WORK_TREE: root,
  }
  const git = (...args: string[]) => execFileSync('git', args, { cwd: root, encoding: 'utf8', env: vars }).trim()
  if (tracked.length > 0) git('add', '-f', '--', ...tracked)
  git('add', '-A', '--', ...only)
  return git('write-tree')
}
