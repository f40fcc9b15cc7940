/** A commit that git refused, for a hook mostly, which may have changed files: pre-commit's fixers do, and want them staged again. */
import { CkptError } from '../../core/errors.ts'
import { quotedPathspec } from '../../core/hint-words.ts'
import type { SessionId } from '../../core/ids.ts'
import { printable, shortList } from '../../core/paths.ts'
import { isNearlyFull } from '../../git/failure.ts'
import { tryUsersGit } from '../../git/users-git.ts'
import { isStats, look } from '../../snapshot/disk.ts'
import { type Entry, readIndexEntries, sameEntry } from '../committed/entries.ts'
import { stashedPaths } from '../committed/stashed.ts'
import { rememberStopped, stoppedAsPlanned } from '../committed/stopped-file.ts'
import { settledPaths, unstagedPaths } from '../committed/uncommitted.ts'
import type { Context } from '../worktree/context.ts'
import { byHand } from './by-hand.ts'

interface Planned {
  session: SessionId
  /** What the commit is to change, and what HEAD has. */
  entries: ReadonlyMap<string, Entry>
  before: ReadonlyMap<string, Entry>
}
type Changing = Planned & { entries: Map<string, Entry> }

/** Of these paths, what differs on disk from an index (`vars`: which one): names of its bytes, by path; empty where they are not known. Null: git cannot say. */
export async function bytesOnDisk(
  context: Context,
  { entries }: Pick<Planned, 'entries'>,
  vars: Vars,
): Promise<Map<string, string> | null> {
  const { env, worktree } = context
  const unstaged = await unstagedPaths(context, vars)
  if (unstaged === null) return null
  const paths = unstaged.filter((path) => entries.has(path))
  // git reads a name with a line feed, or a quote first, otherwise.
  const plain = paths.filter((path) => !/^"|\n/.test(path) && isFile(look(env, worktree.root, path)))
  const input = Buffer.from(plain.map((path) => `${path}\n`).join(''), 'latin1')
  const asked = plain.length === 0 ? null : await tryUsersGit(env, { args: HASH, cwd: worktree.root, input })
  const named = asked?.stdout.toString('latin1').split('\n') ?? []
  const names = new Map(plain.map((path, i) => [path, named[i] ?? '']))
  return new Map(paths.map((path) => [path, names.get(path) ?? '']))
}

type Vars = Record<string, string>

const HASH = ['hash-object', '--no-filters', '--stdin-paths']

const isFile = (found: ReturnType<typeof look>) => isStats(found) && found.isFile()

/** Where nobody has seen it. */
export const whatGitSaid = (stderr: string, isShown: boolean): string =>
  isShown || stderr.trim() === '' ? '' : ` It said: ${printable(stderr.trim().slice(0, 500))}`

/** What to say, and to remember until the next try. `before`: what differed on disk before git began, of that index. */
export async function refusedByGit(
  context: Context,
  { session, entries, before: head }: Planned,
  {
    code,
    stderr,
    isShown,
    vars,
    before,
  }: {
    code: number
    stderr: string
    isShown: boolean
    vars: Vars
    before: ReadonlyMap<string, string> | null
  },
): Promise<CkptError> {
  const now = await bytesOnDisk(context, { entries }, vars)
  const isKnown = now !== null && before !== null
  const changed = isKnown ? [...entries.keys()].filter((path) => now.get(path) !== before.get(path)) : []
  rememberStopped(context, { session, entries, staged: await readIndexEntries(context) })
  const asInHead = await leftAsInHead(context, [...entries.keys()], head)
  const why = isNearlyFull(context.env, context.worktree.root)
    ? 'the disk is full, it seems'
    : 'a hook, signing, or a missing name'
  const same = isKnown ? 'your index and your files are as they were' : 'your index is as it was'
  const left = changed.length === 0 ? same : `your index is as it was; hooks changed ${shortList(changed)}`
  const without =
    asInHead.length === 0 ? '' : ` The next ckpt commit leaves out what is on disk as in HEAD: ${shortList(asInHead)}.`
  const mended = changed.filter((path) => !asInHead.includes(path))
  const hint =
    mended.length === 0
      ? 'ckpt commit   (once what git said is mended: what you mend wants git add, whole; what you bring back to HEAD is left out)'
      : `git add -- ${mended.map(quotedPathspec).join(' ')} && ckpt commit   (with what hooks made of ${mended.length === 1 ? 'it' : 'them'})`
  return new CkptError(
    'INTERNAL',
    `git refused the commit (exit ${code}): ${why}. Nothing was committed; ${left}.${without}${whatGitSaid(stderr, isShown)}`,
    { hints: [hint, await byHand(context, [...entries.keys()], 'by hand instead')] },
  )
}

/** What nobody wants to commit any more: on disk and in the index is what HEAD has, and no stash keeps it for later. None where git cannot say. */
async function leftAsInHead(
  context: Context,
  paths: readonly string[],
  head: ReadonlyMap<string, Entry>,
): Promise<string[]> {
  const settled = await settledPaths(context, paths, head)
  const stashed = settled.length === 0 ? null : await stashedPaths(context)
  return stashed ? settled.filter((path) => !stashed.has(path)) : []
}

/** Puts what was staged since git refused this commit in the place of what was planned; what is as HEAD has it is left out. */
export async function takeStagedSince(context: Context, { session, entries, before }: Changing): Promise<void> {
  const stopped = stoppedAsPlanned(context, { session, entries })
  if (stopped.size === 0) return
  // Nothing is staged of what is in conflict, or only intended; a part of a file, as it is on disk, says nothing of the rest.
  const unstaged = await unstagedPaths(context)
  if (unstaged === null) return // and nobody knows what is staged whole
  const open = new Set(unstaged)
  const index = await readIndexEntries(context)
  const [staged, inPart, back] = [[] as string[], [] as string[], [] as string[]]
  for (const [path, row] of stopped) {
    const [now, head] = [index.get(path) ?? null, before.get(path) ?? null]
    const isStaged = now !== null && ![row.staged, row.planned, head].some((entry) => sameEntry(now, entry))
    if (isStaged) (open.has(path) ? inPart : staged).push(path)
    else if (!open.has(path) && sameEntry(now, head)) back.push(path)
  }
  for (const path of staged) entries.set(path, index.get(path)!)
  const asInHead = await leftAsInHead(context, back, before)
  for (const path of asInHead) entries.delete(path)
  if (staged.length > 0) context.warnings.push(`Committed as staged since git refused it: ${shortList(staged)}.`)
  if (inPart.length > 0)
    context.warnings.push(
      `Staged in part since git refused it, which is not taken (git add it whole): ${shortList(inPart)}.`,
    )
  if (asInHead.length > 0)
    context.warnings.push(
      `Left out, also of later commits, for it is on disk as in HEAD since git refused it: ${shortList(asInHead)}.`,
    )
}
