/**
 * Which checkpoints a commit of the user's came from: written down by `ckpt commit` and, where they are installed, by the
 * post-commit and post-rewrite hooks, whose format hooks/gate-more.sh describes.
 */
import type { Checkpoint } from '../../core/checkpoint.ts'
import { CkptError } from '../../core/errors.ts'
import { isOid, type Oid } from '../../core/ids.ts'
import type { Env } from '../../env.ts'
import { worktreeNames } from '../../git/frame.ts'
import { readCheckpoint } from '../../git/history.ts'
import { tryGit } from '../../git/process.ts'
import { appendTo, readIfThere } from '../../git/whole-file.ts'
import type { Context } from '../worktree/context.ts'
import { presentIds } from '../worktree/replaced.ts'

export interface CommitOrigin {
  commit: Oid
  /** Those that it was made from by an amend or a rebase, the recorded ones: the commit itself where nothing was rewritten. */
  recorded: Oid[]
  /** ISO 8601 UTC, of the newest of them. */
  time: string
  /** One of them was made while a boundary was pending. */
  pending: boolean
  checkpoints: Checkpoint[]
}

interface Made {
  time: string
  pending: boolean
  from: Oid[]
  /** Of `from`, what `ckpt commit` took in: the last checkpoints of the turns. */
  turns: Oid[]
  /** Paths that are in it beyond what `ckpt commit` had planned. */
  beyond: string[]
}

const fileOf = (directory: string) => `${directory}/made`

/** Writes down what a commit came from, and what in it did not. */
export function recordOrigin(
  context: Context,
  commit: Oid,
  { checkpoints, beyond }: { checkpoints: readonly Oid[]; beyond: readonly string[] },
): void {
  const { now } = context.env
  const lines = [
    `commit ${commit} ${new Date(now()).toISOString()} clean`,
    ...checkpoints.map((id) => `from ${id} turn`),
    ...beyond.map((path) => `beyond ${Buffer.from(path, 'latin1').toString('hex')}`), // a name may hold a line end
  ]
  appendTo(context.env, fileOf(context.store.worktreeDir), { text: `${lines.join('\n')}\n` })
}

/** `directory`: the worktree's own in the store. */
function readOrigins(env: Env, directory: string): { made: Map<string, Made>; rewritten: Map<string, string[]> } {
  const made = new Map<string, Made>()
  const rewritten = new Map<string, string[]>()
  let last: Made | null = null
  for (const line of (readIfThere(env, fileOf(directory))?.toString('utf8') ?? '').split('\n')) {
    const [word, first, second, third] = line.split(' ')
    if (word === 'commit' && first && second) {
      // Told twice (by `ckpt commit` and by a hook of its own): what either says counts.
      const before: Made | undefined = made.get(first)
      last = {
        time: second,
        pending: before?.pending || third === 'pending',
        from: before?.from ?? [],
        turns: before?.turns ?? [],
        beyond: before?.beyond ?? [],
      }
      made.set(first, last)
    } else if (word === 'from' && isOid(first ?? '') && last) {
      if (!last.from.includes(first as Oid)) last.from.push(first as Oid)
      if (second === 'turn') last.turns.push(first as Oid)
    } else if (word === 'beyond' && first && last) {
      last.beyond.push(Buffer.from(first, 'hex').toString('latin1'))
    } else if (word === 'rewrite' && first && second) rewritten.set(second, [...(rewritten.get(second) ?? []), first])
  }
  return { made, rewritten }
}

/**
 * Commits that `ckpt commit` made, in any worktree of the store, with the last checkpoints of the turns that they took in, and
 * the paths in them that are not the turns'.
 */
export function commitsOfTurns(context: Context): Map<string, Pick<Made, 'turns' | 'beyond'>> {
  const { env, place } = context
  const since = presentIds(context.env, context.store)
  const made = worktreeNames(env, place).flatMap((name) => [
    ...readOrigins(env, `${place.directory}/worktrees/${name}`).made,
  ])
  return new Map(
    made.flatMap(([commit, { turns, beyond }]) =>
      turns.length > 0 ? [[commit, { turns: turns.map(since), beyond }]] : [],
    ),
  )
}

/** Null: that is no commit here. @throws CkptError NOT_FOUND when nothing was written down */
export async function originOf(context: Context, rev: string): Promise<CommitOrigin | null> {
  const { env, repository, store } = context
  if (!repository) return null
  const args = ['rev-parse', '--verify', '-q', '--end-of-options', `${rev}^{commit}`]
  const { code, stdout } = await tryGit(env, { args, cwd: repository.root })
  const commit = stdout.toString('latin1').trim()
  if (code !== 0 || !isOid(commit)) return null
  const { made, rewritten } = readOrigins(env, store.worktreeDir)
  const seen = new Set<string>([commit])
  for (const id of seen) for (const old of rewritten.get(id) ?? []) seen.add(old)
  // A commit that was recorded itself says more than what it was made from.
  const ids = made.has(commit) && made.get(commit)!.from.length > 0 ? [commit] : [...seen].filter((id) => made.has(id))
  if (ids.length === 0) {
    throw new CkptError(
      'NOT_FOUND',
      `Nobody wrote down what commit ${commit.slice(0, 10)} came from. Nothing was changed.`,
      {
        hints: [
          `ckpt verify --ref ${commit.slice(0, 10)}   (whether a recorded turn accounts for it)`,
          'hooks.postCommit in your configuration, then: ckpt hooks install',
        ],
      },
    )
  }
  const checkpoints: Checkpoint[] = []
  const since = presentIds(context.env, context.store)
  for (const id of new Set(ids.flatMap((one) => made.get(one)!.from.map(since))))
    if (await store.objects.read(id)) checkpoints.push(await readCheckpoint(store, id)) // else it was pruned
  const records = [...seen].flatMap((id) => made.get(id) ?? [])
  return {
    commit,
    recorded: ids as Oid[],
    time: records
      .map(({ time }) => time)
      .sort()
      .at(-1)!,
    pending: records.some((one) => one.pending),
    checkpoints,
  }
}
