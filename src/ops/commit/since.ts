/** What became of a worktree's paths in git, between HEAD when a checkpoint was taken and HEAD now. */
import type { Oid } from '../../core/ids.ts'
import { tryGit } from '../../git/process.ts'
import { isAncestor } from '../committed/commits-file.ts'
import { type Entry, readHeadEntries, sameEntry } from '../committed/entries.ts'
import type { Context } from '../worktree/context.ts'

export interface Since {
  /**
   * Whether a content is committed where a checkpoint shows it: HEAD had it then, or a commit since made it so: a person may
   * have committed the turn's work by hand. What was committed before it, and is in HEAD no more, is not. `elsewhere`: on a
   * branch that is not part of HEAD.
   */
  committed: (path: string, entry: Entry) => 'here' | 'elsewhere' | null
  /**
   * Whether a commit that HEAD is made on, and that was made since then (milliseconds since 1970, UTC; by git's own word),
   * changed a path; or what HEAD was is on no branch any more, as after a rebase.
   */
  isGoneOver: (path: string, then: number) => boolean
}

/** `from`: null: there was no commit. */
export async function readSince(
  context: Context,
  from: Oid | null,
  { head, entries }: { head: Oid | null; entries: ReadonlyMap<string, Entry> },
): Promise<Since> {
  const isHere = from === null || from === head || (head !== null && (await isAncestor(context, from, head)))
  const isKept = isHere || (await isOnBranch(context, from))
  const then =
    from === null ? new Map() : from === head ? entries : isKept ? await readHeadEntries(context, from) : null
  const made = new Set<string>()
  const changed = new Map<string, number>()
  for (const { path, entry, time } of from === head ? [] : await readChanges(context, from, head)) {
    made.add(entryKey(path, entry))
    changed.set(path, Math.max(time, changed.get(path) ?? 0))
  }
  return {
    committed(path, entry) {
      const was: boolean = then !== null && sameEntry(then.get(path) ?? null, entry)
      if (made.has(entryKey(path, entry)) || (was && isHere)) return 'here'
      return was ? 'elsewhere' : null
    },
    isGoneOver: (path, then) => !isKept || (isHere && (changed.get(path) ?? Number.NEGATIVE_INFINITY) > then - SECOND),
  }
}

/** git tells its times by the second; in milliseconds. */
const SECOND = 1000

const entryKey = (path: string, entry: Entry) => `${entry ? `${entry.mode} ${entry.oid}` : ''}\0${path}`

/** A path that a commit changed. */
interface Change {
  path: string
  /** What it made of it. */
  entry: Entry
  /** Of the commit: milliseconds since 1970, UTC. */
  time: number
}

/** Nothing where git cannot say. */
async function readChanges({ env, worktree }: Context, from: Oid | null, head: Oid | null): Promise<Change[]> {
  if (head === null) return []
  const shown = ['--format=%x01%ct', '--root', '--raw', '--no-abbrev', '--no-renames', '-m', '-z']
  const args = ['log', '--no-show-signature', ...shown, from === null ? head : `${from}..${head}`]
  const { code, stdout } = await tryGit(env, { args, cwd: worktree.root })
  const fields = code === 0 ? stdout.toString('latin1').split('\0') : []
  const found: Change[] = []
  let time = 0
  for (let i = 0; i < fields.length; i++) {
    if (fields[i]!.startsWith('\x01')) time = Number(fields[i]!.slice(1)) * SECOND
    const [, mode, oid] = /^\n?:\d+ (\d+) [0-9a-f]+ ([0-9a-f]+) [A-Z]/.exec(fields[i]!) ?? []
    if (mode === undefined) continue
    const entry = mode === '000000' ? null : { mode: mode as '100644', oid: oid as Oid }
    found.push({ path: fields[++i]!, entry, time })
  }
  return found
}

/** Whether a commit is part of any branch, here or of a remote, or of a tag. */
async function isOnBranch({ env, worktree }: Context, commit: Oid): Promise<boolean> {
  const args = ['for-each-ref', '--count=1', `--contains=${commit}`, 'refs/heads', 'refs/remotes', 'refs/tags']
  const { code, stdout } = await tryGit(env, { args, cwd: worktree.root })
  return code === 0 && stdout.length > 0
}
