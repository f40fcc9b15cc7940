/** What is on disk and in no commit, at the time of a snapshot. */
import { splitNul } from '../core/beside.ts'
import type { Oid } from '../core/ids.ts'
import { isText, pathToText } from '../core/paths.ts'
import { tryGit, withObjectsOf } from '../git/process.ts'
import { hasUncommittedChanges, type Repository } from '../git/repository.ts'
import type { Captured } from '../snapshot/capture.ts'
import type { Context } from './context.ts'

/** With more paths than this, git's look at all of them is as good. */
const FEW = 100

export interface Uncommitted {
  head: Oid | null
  snapshot: Pick<Captured, 'tree' | 'beside' | 'degraded'>
  signal: AbortSignal
}

/**
 * Whether there were uncommitted changes on disk. Only what the snapshot has other than HEAD, or could not take, can be
 * one: git is asked about that alone. What is only in the index counts where it is asked about: no undo touches it.
 */
export async function hadUncommittedChanges(
  context: Context,
  { head, snapshot, signal }: Uncommitted,
): Promise<boolean> {
  const { env, repository } = context
  if (!repository) return false
  const { tree, degraded } = snapshot
  const other = head === null || degraded ? null : await pathsOtherThan(context, { repository, head, tree, signal })
  if (other === null) return hasUncommittedChanges(env, repository, { signal })
  const suspects = [...other, ...snapshot.beside.uncovered.map(({ path }) => path)]
  if (suspects.length === 0) return false
  // An argument is text: what is not cannot be named.
  const few = suspects.length <= FEW && suspects.every(isText)
  return hasUncommittedChanges(env, repository, { ...(few ? { paths: suspects.map(pathToText) } : {}), signal })
}

/** Null: git cannot compare them. */
async function pathsOtherThan(
  { env, store }: Context,
  { repository, head, tree, signal }: { repository: Repository; head: Oid; tree: Oid; signal: AbortSignal },
): Promise<string[] | null> {
  const args = ['diff-tree', '-r', '-z', '--name-only', '--no-renames', `${head}^{tree}`, tree]
  store.objects.flush() // for a git that is not the store's
  const vars = withObjectsOf([`${store.gitDir}/objects`])
  const asked = await tryGit(env, { args, cwd: repository.root, vars, signal }).catch(() => null)
  return asked?.code === 0 ? splitNul(asked.stdout) : null
}
