/** What is on disk and in no commit, at the time of a snapshot. */
import { CkptError, reasonOf } from '../../core/errors.ts'
import type { Oid } from '../../core/ids.ts'
import { isText, pathToText, splitNul } from '../../core/paths.ts'
import type { HeadState } from '../../git/head.ts'
import { tryGit, withObjectsOf } from '../../git/process.ts'
import { hasUncommittedChanges } from '../../git/repository.ts'
import type { Captured } from '../../snapshot/capture.ts'
import type { Context } from '../worktree/context.ts'

/** With more paths than this, git's look at all of them is as good. */
const FEW = 100

export interface Uncommitted {
  head: Pick<HeadState, 'tree'>
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
  const { env, repository, config } = context
  if (!repository) return false
  const { tree, degraded, beside } = snapshot
  const differences =
    head.tree === null || degraded ? null : await difference(context, { before: head.tree, after: tree }, signal)
  if (differences === null) return hasUncommittedChanges(env, repository, { signal })
  // A file that HEAD does not have is one, unless the configuration asks for files that git ignores.
  if (config.snapshot.include.length === 0 && differences.some(({ isNew }) => isNew)) return true
  const suspects = [...differences, ...beside.uncovered].map(({ path }) => path)
  if (suspects.length === 0) return false
  // An argument is text: what is not cannot be named.
  const few = suspects.length <= FEW && suspects.every(isText)
  return hasUncommittedChanges(env, repository, { ...(few ? { paths: suspects.map(pathToText) } : {}), signal })
}

/** Null: git cannot tell, for its repository is damaged, say. That is said, and keeps nobody from what else there is to do. */
export async function unlessUntold({ warnings }: Context, asked: Promise<boolean>): Promise<boolean | null> {
  try {
    return await asked
  } catch (error) {
    if (!(error instanceof CkptError)) throw error
    warnings.push(`Whether there are uncommitted changes is not known: ${reasonOf(error)}`)
    return null
  }
}

interface Difference {
  path: string
  /** A file or a link that was not there at all. */
  isNew: boolean
}

/** What one tree has other than another (git-diff-tree(1)). Null: git cannot compare them. */
async function difference(
  { env, store, repository }: Context,
  { before, after }: { before: Oid; after: Oid },
  signal: AbortSignal,
): Promise<Difference[] | null> {
  if (before === after) return []
  const args = ['diff-tree', '-r', '-z', '--raw', '--no-renames', before, after]
  store.objects.flush() // for a git that is not the store's
  const vars = withObjectsOf([`${store.gitDir}/objects`])
  const asked = await tryGit(env, { args, cwd: repository!.root, vars, signal }).catch(() => null)
  if (asked?.code !== 0) return null
  const fields = splitNul(asked.stdout)
  return Array.from({ length: fields.length / 2 }, (_, i) => {
    const [, mode, , , status] = fields[2 * i]!.split(' ')
    return { path: fields[2 * i + 1]!, isNew: status === 'A' && mode !== '160000' }
  })
}
