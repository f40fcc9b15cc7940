/** What git's own walk says of the worktree against the private index: git-diff-files(1), git-ls-files(1). */
import { constants, type Stats } from 'node:fs'
import { pathToText, type RelativePath, splitNul } from '../core/paths.ts'
import type { Env } from '../env.ts'
import { gitFailure } from '../git/failure.ts'
import { tryGit } from '../git/process.ts'
import type { Store } from '../git/store.ts'
import type { Visited } from './walk.ts'
import type { SnapshotLimits, Worktree } from './worktree.ts'

export interface Listing {
  /** Paths of the private index that are not as it says. */
  changed: RelativePath[]
  /** Files that the private index does not have and no rule ignores; a narrow listing gives the new ones only. */
  untracked: RelativePath[]
  /** Directories that are repositories of their own, without the slash. */
  nested: RelativePath[]
  /** Ignored files, and directories with a trailing slash. */
  ignored: RelativePath[]
  /** Files that `snapshot.include` asks for, whatever the ignore rules say. */
  included: RelativePath[]
  /** Ignored directories that are known to be so themselves; without it they have to be asked about. */
  stops?: RelativePath[]
  /** What lstat said of known directories before anything else was looked at: of all, or of those that a watcher named. */
  stats: ReadonlyMap<string, Stats>
  /** A narrow listing: the new directories that may be entered. */
  narrow?: {
    fresh: RelativePath[]
    /** What was read for it. */
    visited: ReadonlyMap<string, Visited>
    /** What was ignored, or a repository of its own, and is not there. */
    gone: readonly RelativePath[]
    only?: ReadonlySet<string>
  }
}

export interface ListingInput {
  worktree: Worktree
  /** As the worktree names them. */
  ignoreFiles: readonly string[]
  store: Store
  /** File name of the private index, if there is one. */
  index: string | null
  limits: SnapshotLimits
  signal: AbortSignal
  /** Only below these directories. */
  only?: readonly RelativePath[]
}

/** A name in another case is another name, as it is to `spelling.ts`, whatever git found out about the file system. */
export const SPELLING = [['core.ignoreCase', 'false']] as const

/** Null: the signal came first. @throws CkptError when git fails: a failure is never "nothing changed" */
async function list(
  env: Env,
  { worktree, store, index, signal }: ListingInput,
  args: string[],
): Promise<RelativePath[] | null> {
  const vars = {
    ...store.vars,
    GIT_WORK_TREE: worktree.root,
    GIT_INDEX_FILE: `${store.worktreeDir}/${index ?? 'index-none'}`,
  }
  const result = await tryGit(env, { args, cwd: worktree.root, vars, signal, config: SPELLING })
  if (signal.aborted) return null
  if (result.code !== 0) throw gitFailure(args, result)
  return splitNul(result.stdout)
}

/** Paths of the private index whose file is not as it says. */
export async function changedPaths(env: Env, input: ListingInput): Promise<RelativePath[]> {
  if (input.index === null) return []
  return (await list(env, input, ['diff-files', '--name-only', '-z', '--no-ext-diff', '--ignore-submodules'])) ?? []
}

/** git passes over an ignore file that it cannot read, but not over one that is named to it. */
export function readableIgnoreFiles({ files }: Env, ignoreFiles: readonly string[]): string[] {
  return ignoreFiles.filter((file) => {
    try {
      files.accessSync(file, constants.R_OK)
      return files.statSync(file).isFile()
    } catch {
      return false
    }
  })
}

type Untracked = Pick<Listing, 'untracked' | 'nested' | 'ignored'>

/** What the private index does not have. Null: the signal came first. */
export async function listUntracked(env: Env, input: ListingInput): Promise<Untracked | null> {
  const { worktree, ignoreFiles, limits, only = [] } = input
  const exclude = [...worktree.ours.map((own) => `/${pathToText(own)}/`), ...limits.exclude]
  const rules = [
    ...exclude.map((pattern) => `--exclude=${pattern}`),
    ...readableIgnoreFiles(env, ignoreFiles).map((file) => `--exclude-from=${file}`),
    '--exclude-per-directory=.gitignore',
    ...(only.length > 0 ? ['--', ...only.map(pathToText)] : []),
  ]
  const [others, ignored] = await Promise.all([
    list(env, input, ['ls-files', '-o', '-z', ...rules]),
    list(env, input, ['ls-files', '-o', '-i', '-z', '--directory', ...rules]),
  ])
  if (others === null || ignored === null) return null
  return {
    untracked: others.filter((path) => !path.endsWith('/')),
    nested: others.filter((path) => path.endsWith('/')).map((path) => path.slice(0, -1) as RelativePath),
    ignored,
  }
}

/** The whole worktree. Null: the signal came first. */
export async function fullListing(env: Env, input: ListingInput): Promise<Omit<Listing, 'stats'> | null> {
  const { include } = input.limits
  const [changed, untracked, included] = await Promise.all([
    changedPaths(env, input),
    listUntracked(env, input),
    include.length === 0
      ? []
      : list(env, input, ['ls-files', '-o', '-i', '-z', ...include.map((pattern) => `--exclude=${pattern}`)]),
  ])
  if (untracked === null || included === null) return null
  return { changed, ...untracked, included: included.filter((path) => !path.endsWith('/')) }
}
