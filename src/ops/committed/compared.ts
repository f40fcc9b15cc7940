/** A commit that git made, held against its plan: a hook of the user's may leave paths out, and put others in. */
import { CkptError } from '../../core/errors.ts'
import type { Oid } from '../../core/ids.ts'
import { shortList, splitNul } from '../../core/paths.ts'
import { WITH_SUBMODULES } from '../../git/diff.ts'
import { tryGit } from '../../git/process.ts'
import type { Context } from '../worktree/context.ts'
import { type Entry, readHeadEntries } from './entries.ts'
import { settledPaths } from './uncommitted.ts'

export interface Compared {
  /** Paths that it changes. */
  changed: string[]
  /** Planned, and not in it: still to be committed. */
  leftOut: string[]
  /** In it, and not planned. */
  beyond: string[]
}

/** Other bytes at a planned path are a hook's to make. Where git cannot say, it is taken for what was planned. */
export async function compare(
  context: Context,
  { head, entries }: { head: Oid | null; entries: ReadonlyMap<string, Entry> },
  made: Oid,
): Promise<Compared> {
  const changed = (await changedPaths(context, head, made)) ?? [...entries.keys()]
  const isIn = new Set(changed)
  const missing = [...entries.keys()].filter((path) => !isIn.has(path))
  const settled = new Set(missing.length > 0 ? await settledIn(context, missing, made) : [])
  return {
    changed,
    leftOut: missing.filter((path) => !settled.has(path)),
    beyond: changed.filter((path) => !entries.has(path)),
  }
}

/** What a hook made of a file may be what HEAD has. */
async function settledIn(context: Context, paths: readonly string[], made: Oid): Promise<string[]> {
  try {
    return await settledPaths(context, paths, await readHeadEntries(context, made))
  } catch (error) {
    if (!(error instanceof CkptError)) throw error
    return [] // the next commit looks again
  }
}

/** `from`: null: nothing. The result is null where git fails. */
export async function changedPaths({ env, worktree }: Context, from: Oid | null, to: Oid): Promise<string[] | null> {
  const names = ['-r', '-z', '--name-only']
  const args =
    from === null
      ? ['ls-tree', ...names, '--full-tree', to]
      : ['diff-tree', ...names, '--no-renames', WITH_SUBMODULES, from, to]
  const { code, stdout } = await tryGit(env, { args, cwd: worktree.root })
  return code === 0 ? splitNul(stdout) : null
}

/** What to tell the person of it. */
export function* toldOf({ leftOut, beyond }: Compared, made: Oid): Generator<string> {
  const id = made.slice(0, 10)
  if (leftOut.length > 0)
    yield `Commit ${id} lacks what the session changed (a hook can do that), and the next ckpt commit takes it: ${shortList(leftOut)}.`
  if (beyond.length > 0)
    yield `Commit ${id} also holds what the session did not change (a hook can do that): ${shortList(beyond)}.`
}
