/** What git's own walk says of the worktree against the private index: git-diff-files(1), git-ls-files(1). */
import { splitNul } from '../core/beside.ts'
import { CkptError } from '../core/errors.ts'
import { pathToText, type RelativePath } from '../core/paths.ts'
import type { Env } from '../env.ts'
import { gitFailure, tryGit } from '../git/process.ts'
import type { Store } from '../git/store.ts'
import type { SnapshotLimits, Worktree } from './worktree.ts'

export interface Listing {
  /** Paths of the private index that are not as it says. */
  changed: RelativePath[]
  /** Files that the private index does not have and no rule ignores. */
  untracked: RelativePath[]
  /** Directories that are repositories of their own, without the slash. */
  nested: RelativePath[]
  /** Ignored files, and directories with a trailing slash. */
  ignored: RelativePath[]
  /** Files that `snapshot.include` asks for, whatever the ignore rules say. */
  included: RelativePath[]
}

export interface ListingInput {
  worktree: Worktree
  store: Store
  /** File name of the private index, if there is one. */
  index: string | null
  limits: SnapshotLimits
  signal: AbortSignal
}

/** Null: the signal came first. @throws CkptError when git fails: a failure is never "nothing changed". */
export async function listWorktree(
  env: Env,
  { worktree, store, index, limits, signal }: ListingInput,
): Promise<Listing | null> {
  const { root } = worktree
  const vars = {
    ...store.vars,
    GIT_WORK_TREE: root,
    GIT_INDEX_FILE: `${store.worktreeDir}/${index ?? 'index-none'}`,
  }
  const list = async (args: string[]) => {
    const result = await tryGit(env, { args, cwd: root, vars, signal })
    if (signal.aborted) return []
    if (result.code !== 0) throw gitFailure(args, result)
    return splitNul(result.stdout)
  }
  const exclude = [...worktree.ours.map((own) => `/${pathToText(own)}/`), ...limits.exclude]
  const rules = [
    ...exclude.map((pattern) => `--exclude=${pattern}`),
    ...worktree.ignoreFiles.map((file) => `--exclude-from=${file}`),
    '--exclude-per-directory=.gitignore',
  ]
  try {
    const [changed, others, ignored, included] = await Promise.all([
      index === null ? [] : list(['diff-files', '--name-only', '-z', '--no-ext-diff', '--ignore-submodules']),
      list(['ls-files', '-o', '-z', ...rules]),
      list(['ls-files', '-o', '-i', '-z', '--directory', ...rules]),
      limits.include.length === 0
        ? []
        : list(['ls-files', '-o', '-i', '-z', ...limits.include.map((pattern) => `--exclude=${pattern}`)]),
    ])
    if (signal.aborted) return null
    const nested = others.filter((path) => path.endsWith('/')).map((path) => path.slice(0, -1) as RelativePath)
    const untracked = others.filter((path) => !path.endsWith('/'))
    return { changed, untracked, nested, ignored, included: included.filter((path) => !path.endsWith('/')) }
  } catch (error) {
    if (signal.aborted && !(error instanceof CkptError && error.code === 'DAMAGED')) return null
    throw error
  }
}

/** Paths of the user's own index that git's walk of ours cannot know: tracked ones. */
export async function userIndexPaths(
  env: Env,
  root: string,
  only: readonly RelativePath[] = [],
): Promise<RelativePath[]> {
  const args = ['ls-files', '-z', ...(only.length > 0 ? ['--', ...only.map(pathToText)] : [])]
  const result = await tryGit(env, { args, cwd: root })
  if (result.code !== 0) throw gitFailure(args, result)
  return splitNul(result.stdout)
}

/** Paths of a sparse checkout that are not on disk by intent (git-sparse-checkout(1)). */
export async function skippedPaths(env: Env, root: string): Promise<RelativePath[]> {
  const args = ['ls-files', '-t', '-z']
  const result = await tryGit(env, { args, cwd: root })
  if (result.code !== 0) throw gitFailure(args, result)
  return splitNul(result.stdout)
    .filter((row) => row.startsWith('S '))
    .map((row) => row.slice(2) as RelativePath)
}
