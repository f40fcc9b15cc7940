/** What git, asked as the user would ask it, has still to commit. */
import { splitNul } from '../../core/paths.ts'
import { tryUsersGit } from '../../git/users-git.ts'
import { isStats, look } from '../../snapshot/disk.ts'
import type { Context } from '../worktree/context.ts'
import { type Entry, readMarkedPaths } from './entries.ts'

const SUBMODULE = '160000'

/**
 * Of these paths those with nothing to commit: on disk is what is in HEAD, or they are in neither, as files (a directory may
 * be there, with what is in it). None where git cannot say.
 */
export async function settledPaths(
  context: Context,
  paths: readonly string[],
  head: ReadonlyMap<string, Entry>,
): Promise<string[]> {
  const { env, worktree } = context
  const uncommitted = await uncommittedPaths(context, '--untracked-files=no', '--ignore-submodules')
  if (uncommitted === null) return []
  const changed = new Set(uncommitted)
  // Of what bears a mark git tells nothing, whatever is on disk.
  const marked = await readMarkedPaths(context)
  const isTold = (path: string) => !marked.some(([, bearing]) => bearing.has(path))
  const isFree = (path: string) => {
    const found = look(env, worktree.root, path)
    return found === null || (isStats(found) && found.isDirectory())
  }
  // Of what is in the place of a submodule it was not asked.
  const isAsInHead = (path: string) => (head.get(path)?.mode === SUBMODULE ? isFree(path) : head.has(path))
  return paths.filter((path) => !changed.has(path) && isTold(path) && (isAsInHead(path) || isFree(path)))
}

/** Null: git cannot say, as where a filter that is required fails. */
export async function uncommittedPaths(context: Context, ...flags: string[]): Promise<string[] | null> {
  return (await statusRows(context, flags))?.map((row) => row.slice(3)) ?? null
}

/** Of these those that differ on disk from the index, the person's or another one (`vars`). Null: git cannot say. */
export async function unstagedPaths(context: Context, vars: Record<string, string> = {}): Promise<string[] | null> {
  const rows = await statusRows(context, ['--untracked-files=no', '--ignore-submodules'], vars)
  return rows?.filter((row) => row[1] !== ' ').map((row) => row.slice(3)) ?? null
}

/** As git-status(1) prints them (`--porcelain -z`). */
async function statusRows(
  { env, worktree }: Context,
  flags: readonly string[],
  vars: Record<string, string> = {},
): Promise<string[] | null> {
  const args = ['status', '--porcelain', '-z', '--no-renames', ...flags]
  const there = { cwd: worktree.root, vars: { ...vars, GIT_OPTIONAL_LOCKS: '0' } } // it would write the index
  const { code, stdout } = await tryUsersGit(env, { ...there, args })
  return code === 0 ? splitNul(stdout) : null
}
