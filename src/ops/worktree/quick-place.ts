/** Where a worktree is recorded, found without git: for those who want to be quick, or cannot start it. */
import { resolve } from 'node:path'
import { type Env, lstatIfThere } from '../../env.ts'
import { readIfThere } from '../../git/whole-file.ts'
import { linkedByPath } from './by-path.ts'

export interface QuickPlace {
  root: string
  /** Its own directory in the store. */
  worktreeDir: string
}

/** Where the nearest worktree may be recorded, what its last command that wrote used first. None: ask git. */
export function quickPlaces(env: Env, cwd: string): QuickPlace[] {
  for (let at = cwd; at !== ''; at = at.slice(0, at.lastIndexOf('/'))) {
    const apart = linkedByPath(env, at)
    const git = lstatIfThere(env.files, `${at}/.git`)
    if (apart === null && !git) continue
    const inGit = git?.isDirectory()
      ? `${at}/.git/ckpt/worktrees/@main`
      : git?.isFile()
        ? linkedWorktreeDir(env, at)
        : null
    return [apart, inGit].flatMap((worktreeDir) => (worktreeDir === null ? [] : [{ root: at, worktreeDir }]))
  }
  return []
}

/** A linked worktree's `.git` names its git directory, which names the common one (gitrepository-layout(5)). */
function linkedWorktreeDir(env: Env, root: string): string | null {
  const line = (path: string) => readIfThere(env, path)?.toString('utf8').replace(/\n$/, '') ?? null
  const gitDir = /^gitdir: (.+)$/.exec(line(`${root}/.git`) ?? '')?.[1]
  if (gitDir === undefined) return null
  const own = resolve(root, gitDir)
  const common = line(`${own}/commondir`)
  if (common === null) return `${own}/ckpt/worktrees/@main` // a submodule, or a git directory that lies elsewhere
  const random = line(`${own}/ckpt-worktree-id`)
  if (random === null || !/^[0-9a-f]{12}$/.test(random)) return null
  const worktrees = `${resolve(own, common)}/ckpt/worktrees`
  const names = env.files.existsSync(worktrees) ? env.files.readdirSync(worktrees) : []
  const name = names.find((one) => one.endsWith(`-${random}`))
  return name === undefined ? null : `${worktrees}/${name}`
}
