/** The user's index, beside a commit that was made on one of its own. */
import { setTimeout as pause } from 'node:timers/promises'
import { refuseCancelled } from '../../core/cancel.ts'
import { CkptError } from '../../core/errors.ts'
import { quotedName, quotedPath } from '../../core/hint-words.ts'
import type { Oid } from '../../core/ids.ts'
import { printable, shown } from '../../core/paths.ts'
import type { Repository } from '../../git/repository.ts'
import { runUsersGit, tryUsersGit } from '../../git/users-git.ts'
import { look } from '../../snapshot/disk.ts'
import type { Context } from '../worktree/context.ts'
import { type CommitBlobs, mergeEntries } from './blobs.ts'
import {
  clashes,
  type Entry,
  indexInfo,
  readHeadEntries,
  readIndexEntries,
  readIntendedPaths,
  readMarkedPaths,
  sameEntry,
} from './entries.ts'

export interface Committed {
  /** What the commit was made on; null: nothing. */
  head: Oid | null
  /** What the turns left at these paths at any time. */
  passed: ReadonlyMap<string, readonly Entry[]>
  blobs: CommitBlobs
}

/** Milliseconds for another git to be done with the index. */
const INDEX_PATIENCE = 3000

/** `patience`: milliseconds. @throws CkptError GIT_BUSY */
export async function untilIndexIsFree(
  { env }: Context,
  { gitDir }: Repository,
  patience = INDEX_PATIENCE,
): Promise<void> {
  const lock = `${gitDir}/index.lock`
  const end = env.monotonic() + patience
  while (env.files.existsSync(lock)) {
    refuseCancelled(env.signal)
    if (env.monotonic() >= end) {
      throw new CkptError('GIT_BUSY', `Another git holds ${printable(lock)}. Nothing was committed.`, {
        hints: ['ckpt commit   (once it is done)', `rm ${quotedPath(lock)}   (if no git runs: a killed one left it)`],
      })
    }
    await pause(50)
  }
}

/**
 * The user's index follows HEAD on the committed paths, as their hooks left the commit, and only there.
 * What they had staged in such a file stays staged, on top of the commit: not what a turn had left there on its way, which
 * would take the commit back.
 */
export async function refreshIndex(context: Context, { head, passed, blobs }: Committed, made: Oid): Promise<void> {
  const { env, worktree, warnings } = context
  const cwd = worktree.root
  const [staged, intended, before, after] = await Promise.all([
    readIndexEntries(context),
    readIntendedPaths(context),
    readHeadEntries(context, head),
    readHeadEntries(context, made),
  ])
  const isChanged = (path: string) => !sameEntry(before.get(path) ?? null, after.get(path) ?? null)
  const changed = [...new Set([...before.keys(), ...after.keys()])].filter(isChanged)
  // What `git mv` put into the index is at its new path as HEAD has it at the one that goes.
  const moved = changed.flatMap((path) => (after.has(path) ? [] : [before.get(path) ?? null]))
  const edits = new Map<string, Entry>()
  for (const path of changed) {
    const [was, now, own] = [before.get(path) ?? null, after.get(path) ?? null, staged.get(path) ?? null]
    if (intended.has(path)) {
      edits.set(path, now)
      continue
    }
    if (sameEntry(own, now)) continue
    const isPassed = [was, ...(passed.get(path) ?? []), ...(was ? [] : moved)].some((one) => sameEntry(own, one))
    if (isPassed) edits.set(path, now)
    else {
      const merged = await mergeEntries(blobs, { base: was, ours: own, theirs: now })
      if (merged) edits.set(path, merged)
      else
        warnings.push(
          `${shown(path)} stays staged as it was, on top of the commit, which holds something else: git restore --staged ${quotedName(path)}   (stages what the commit holds)`,
        )
    }
  }
  // Where it was moved on since, what `git mv` put there is left, and nothing else.
  for (const path of passed.keys()) {
    const isNowhere = !before.has(path) && !after.has(path) && look(env, cwd, path) === null
    const own = isNowhere ? staged.get(path) : undefined
    if (own && moved.some((one) => sameEntry(own, one))) edits.set(path, null)
  }
  for (const [path, reason] of clashes(edits, staged)) {
    edits.delete(path)
    warnings.push(`${shown(path)} is committed, and not in your index: ${reason}.`)
  }
  await blobs.publish(edits.values())
  if (edits.size > 0) await setEntries(context, edits, made)
  await tryUsersGit(env, { args: ['update-index', '-q', '--refresh'], cwd }) // exits 1 where files differ
}

/** An entry that is set anew loses its marks; those that stay get them back. */
async function setEntries(context: Context, edits: ReadonlyMap<string, Entry>, made: Oid): Promise<void> {
  const { env, worktree } = context
  const cwd = worktree.root
  const marked = await readMarkedPaths(context)
  await runUsersGit(env, { args: ['update-index', '-z', '--index-info'], cwd, input: indexInfo(edits, made) })
  await setMarks(context, marked, { isMeant: (path) => edits.get(path) != null })
}

/** Gives entries of an index the marks that a person gave them in theirs. */
export async function setMarks(
  { env, worktree }: Context,
  marked: Awaited<ReturnType<typeof readMarkedPaths>>,
  { isMeant, vars = {} }: { isMeant: (path: string) => boolean; vars?: Record<string, string> },
): Promise<void> {
  for (const [mark, paths] of marked) {
    const again = [...paths].filter(isMeant).map((path) => `${path}\0`)
    const input = Buffer.from(again.join(''), 'latin1')
    if (again.length > 0)
      await runUsersGit(env, { args: ['update-index', mark, '-z', '--stdin'], cwd: worktree.root, vars, input })
  }
}
