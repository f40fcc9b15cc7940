/** What a commit cannot carry over by itself is a person's to choose: how that is done, and what of it was. */
import { quotedName, quotedPath, quotedPathspec } from '../../core/hint-words.ts'
import type { Oid, SessionId } from '../../core/ids.ts'
import { ancestorsOf, shortList } from '../../core/paths.ts'
import { isStats, look } from '../../snapshot/disk.ts'
import { type Entry, readIndexEntries, readMarkedPaths, readUnmergedPaths } from '../committed/entries.ts'
import { readRefused, rememberRefused } from '../committed/refused-file.ts'
import { settledPaths } from '../committed/uncommitted.ts'
import type { Context } from '../worktree/context.ts'
import { readSince, type Since } from './since.ts'

/** The last that a session did at a path in conflict. */
export interface Last {
  /** The place in the order of the last checkpoint of its turn. */
  seq: number
  /** When that was taken: milliseconds since 1970, UTC. */
  time: number
  since: Since
}

interface Asked {
  session: SessionId
  /** Null: there is no commit. */
  head: Oid | null
  /** What HEAD has. */
  entries: ReadonlyMap<string, Entry>
  /** By path. */
  conflicts: ReadonlyMap<string, Last>
  /** What is to be committed beside these. */
  planned: ReadonlyMap<string, Entry>
}

interface Choice {
  /** They were refused, and a commit since changed them; or one did since the turn, and nothing is left to choose. */
  chosen: string[]
  /** Nothing is left to choose, and nobody chose: what the turn did is not on disk, as where it is stashed. */
  open: string[]
}

/** What a person made of paths in conflict. The others are written down as refused. */
export async function chosenByHand(
  context: Context,
  { session, head, entries, conflicts, planned }: Asked,
): Promise<Choice> {
  const refused = readRefused(context, session)
  const since = new Map<Oid, Since>()
  // What goes to make room for a file that does not come stays as well.
  const isBelow = ([path, entry]: [string, Entry]) =>
    entry === null && ancestorsOf(path).some((at) => conflicts.has(at))
  const below = [...planned].filter(isBelow).map(([path]) => path)
  const settled = new Set(await settledPaths(context, [...conflicts.keys(), ...below], entries))
  const [chosen, open]: [string[], string[]] = [[], []]
  for (const [path, last] of conflicts) {
    const row = refused.get(path)
    const isTold = row !== undefined && row.seq >= last.seq
    if (isTold && !since.has(row.head)) since.set(row.head, await readSince(context, row.head, { head, entries }))
    const after = isTold ? since.get(row.head)! : null
    if (after?.isGoneOver(path, row!.time)) chosen.push(path)
    else if (settled.has(path)) (last.since.isGoneOver(path, last.time) ? chosen : open).push(path)
    else if (!after?.isHere && head !== null) refused.set(path, { head, seq: last.seq, time: context.env.now() })
  }
  rememberRefused(context, session, refused)
  const isOpen = new Set(open)
  open.push(...below.filter((path) => settled.has(path) && ancestorsOf(path).some((at) => isOpen.has(at))))
  return { chosen, open }
}

/** The hint how what is in conflict is committed by hand; `why`: what goes behind it. */
export async function byHand(context: Context, paths: readonly string[], why: string): Promise<string> {
  const { env, worktree } = context
  const isFile = (path: string) => {
    const found = look(env, worktree.root, path)
    return isStats(found) && !found.isDirectory()
  }
  const steps = ['git add -p', 'git commit']
  const staged = await readIndexEntries(context)
  const unmerged = await readUnmergedPaths(context)
  // `git add -p` passes them over.
  const untracked = paths.filter((path) => !staged.has(path) && !unmerged.has(path) && isFile(path))
  if (untracked.length > 0) {
    const named = untracked.length > 10 ? [':/'] : untracked.map(quotedPathspec)
    steps.unshift(`git add -N -- ${named.join(' ')}`)
  }
  // No commit is made while there are any; to say that such a file is to be added would make a new one of it.
  if (unmerged.size > 0) steps.unshift(`git add -- ${[...unmerged].map(quotedPathspec).join(' ')}`)
  // Of what bears a mark git sees no change. It takes names from where it runs, not pathspecs.
  for (const [mark, bearing] of await readMarkedPaths(context)) {
    const marked = paths.filter((path) => bearing.has(path)).map(quotedName)
    const unmark = `update-index ${mark.replace('--', '--no-')} -- ${marked.join(' ')}`
    if (marked.length > 0) steps.unshift(`git -C ${quotedPath(worktree.root)} ${unmark}`)
  }
  const first = unmerged.size > 0 ? `, once the conflict in ${shortList([...unmerged])} is resolved` : ''
  return `${steps.join(' && ')}   (${why}${first})`
}
