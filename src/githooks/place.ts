/** Which hooks directory git uses in this worktree, whether it is ours to write, and whose it is. */
import { constants } from 'node:fs'
import { type Env, errno, statIfThere } from '../env.ts'
import { gitFailure } from '../git/failure.ts'
import { type ConfigValue, configVariables, tryGit } from '../git/process.ts'
import type { Repository } from '../git/repository.ts'
import { nearestAbove } from '../ops/worktree/place.ts'

export interface HooksPlace {
  /** Absolute; links followed where it is there. */
  directory: string
  /** Why git runs no hooks here at all, and what changes that; null: it would. */
  off: { why: string; mend: string } | null
  /** Why it is not ours to write; null: it is. */
  refusal: string | null
  /** husky's own launchers lie here; the project's hooks are one directory up. */
  husky: boolean
  /** Directly below the git directory that all worktrees share. */
  beside: boolean
}

/** Configuration over the files' for a git that is to see what the user's own would: none of ours (core.hooksPath is one). */
export const usersConfig = (overrides: readonly ConfigValue[] = []): Record<string, string> =>
  configVariables(overrides)

export async function findHooksPlace(env: Env, repository: Repository): Promise<HooksPlace> {
  const { commonDir, root } = repository
  const set = await configuredPath(env, repository)
  const named = set === null ? `${commonDir}/hooks` : set.path.startsWith('/') ? set.path : `${root}/${set.path}`
  const directory = realPath(env, named)
  const within = (top: string) => directory === top || directory.startsWith(`${top}/`)
  const base = {
    directory,
    off: switchedOff(env, directory, set),
    husky: directory.endsWith('/_') && env.files.existsSync(`${directory}/h`),
    beside: directory.slice(0, directory.lastIndexOf('/')) === realPath(env, commonDir),
  }
  if (set !== null && set.scope !== 'local' && set.scope !== 'worktree')
    return {
      ...base,
      refusal: `it is shared by all your repositories (core.hooksPath in the ${set.scope} configuration)`,
    }
  if (within(realPath(env, commonDir)) || within(realPath(env, repository.gitDir)))
    return { ...base, refusal: unwritable(env, directory) }
  if (!within(root)) return { ...base, refusal: 'it lies outside of this repository' }
  const relative = directory.slice(root.length + 1) || '.'
  const tracked = await tryGit(env, { args: ['ls-files', '-z', '--', relative], cwd: root })
  if (tracked.code !== 0) throw gitFailure(['ls-files'], tracked)
  if (tracked.stdout.length > 0) return { ...base, refusal: 'its files are tracked: they belong to the project' }
  const ignored = await tryGit(env, {
    args: ['check-ignore', '-q', '--', `./${relative}/pre-commit`],
    cwd: root,
    vars: { GIT_LITERAL_PATHSPECS: '0' }, // check-ignore dies of it
  })
  if (ignored.code > 1) throw gitFailure(['check-ignore'], ignored)
  return {
    ...base,
    refusal: ignored.code === 0 ? unwritable(env, directory) : 'it is part of the worktree: it would be committed',
  }
}

/** Why no file can be made in a directory, or in what is there above it. */
function unwritable(env: Env, directory: string): string | null {
  try {
    env.files.accessSync(nearestAbove(env, directory), constants.W_OK | constants.X_OK)
    return null
  } catch (error) {
    return `it cannot be written (${errno(error) ?? 'unknown'})`
  }
}

/** A directory that is to be made yet switches nothing off; a file does (`core.hooksPath=/dev/null`). */
function switchedOff(env: Env, directory: string, set: { scope: string; path: string } | null): HooksPlace['off'] {
  const unset = (scope: string) =>
    `git config --${scope} --unset-all core.hooksPath   (git's own hooks directory again)`
  if (set?.path === '')
    return { why: `core.hooksPath in the ${set.scope} configuration is empty`, mend: unset(set.scope) }
  // Ignored by git, so that a linked worktree begins without.
  if (set?.path.endsWith('/_') && !env.files.existsSync(directory))
    return { why: `husky is not installed in this worktree (${directory} is not there)`, mend: 'npx husky' }
  let at = directory
  let stats = statIfThere(env.files, at)
  while (stats === null && at.lastIndexOf('/') > 0) {
    at = at.slice(0, at.lastIndexOf('/'))
    stats = statIfThere(env.files, at)
  }
  if (stats === null || stats.isDirectory()) return null
  if (set === null) return { why: `${at} is no directory`, mend: `move ${at} away` }
  return {
    why: `core.hooksPath in the ${set.scope} configuration is ${set.path}, which is no directory`,
    mend: unset(set.scope),
  }
}

/** core.hooksPath as the user's git sees it (git-config(1)); relative ones are seen from the top of the worktree. */
async function configuredPath(env: Env, { root }: Repository): Promise<{ scope: string; path: string } | null> {
  const asked = await tryGit(env, {
    args: ['config', '-z', '--show-scope', '--type=path', '--get-all', 'core.hooksPath'],
    cwd: root,
    vars: usersConfig(),
  })
  if (asked.code > 1) throw gitFailure(['config'], asked)
  const fields = asked.stdout.toString('utf8').split('\0')
  let found: { scope: string; path: string } | null = null
  for (let i = 0; i + 1 < fields.length; i += 2)
    found = { scope: fields[i]!, path: fields[i + 1]!.replace(/(?<=.)\/+$/, '') }
  return found
}

/** Links followed as far as the path is there. */
export function realPath(env: Env, path: string): string {
  try {
    return env.files.realpathSync(path)
  } catch (error) {
    if (!['ENOENT', 'ENOTDIR', 'ELOOP'].includes(errno(error) ?? '')) throw error
    const cut = path.lastIndexOf('/')
    return cut <= 0 ? path : `${realPath(env, path.slice(0, cut))}/${path.slice(cut + 1)}`
  }
}
