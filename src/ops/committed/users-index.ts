/** The user's index, beside a commit that was made on one of its own. */
import { setTimeout as pause } from 'node:timers/promises'
import { diffArrays } from 'diff'
import { refuseCancelled } from '../../core/cancel.ts'
import { CkptError } from '../../core/errors.ts'
import { quotedPath, quotedPathspec } from '../../core/hint-words.ts'
import type { Oid } from '../../core/ids.ts'
import { printable, shown } from '../../core/paths.ts'
import type { Repository } from '../../git/repository.ts'
import { runUsersGit, tryUsersGit } from '../../git/users-git.ts'
import { look, observe } from '../../snapshot/disk.ts'
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
  readUnmergedPaths,
  sameEntry,
} from './entries.ts'

/** One change of a path by a turn, as files are on disk: edits of the person's may be in both. */
export type Passed = readonly [from: Entry, to: Entry]

export interface Committed {
  /** What the commit was made on; null: nothing. */
  head: Oid | null
  /** What the turns did at these paths, one after the other. */
  passed: ReadonlyMap<string, readonly Passed[]>
  blobs: CommitBlobs
  /** Paths that follow; null: all that HEAD has otherwise than `head`. */
  within: ReadonlySet<string> | null
  /** Of an earlier try that was killed: what may have lost its marks. */
  marked: readonly Marked[]
  /** Written down first: a kill may come between an entry that is set anew and its marks. */
  keepMarks: (marked: readonly Marked[]) => void
}

/** Paths of an index (bytes) that have a mark, by the option of `git update-index` that sets it. */
export type Marked = readonly [option: string, paths: readonly string[]]

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
 * The user's index follows HEAD on the committed paths, as their hooks left the commit, and only there. What they had staged
 * in such a file stays staged, on top of the commit; what a turn had left there on its way does not, for it would take the
 * commit back.
 */
export async function refreshIndex(context: Context, committed: Committed, made: Oid): Promise<void> {
  const { head, passed, blobs, within } = committed
  const { env, worktree, warnings } = context
  const cwd = worktree.root
  const [staged, intended, unmerged, before, after] = await Promise.all([
    readIndexEntries(context),
    readIntendedPaths(context),
    readUnmergedPaths(context),
    readHeadEntries(context, head),
    readHeadEntries(context, made),
  ])
  const isChanged = (path: string) =>
    (within?.has(path) ?? true) && !sameEntry(before.get(path) ?? null, after.get(path) ?? null)
  const changed = [...new Set([...before.keys(), ...after.keys()])].filter(isChanged)
  // What `git mv` put into the index is at its new path as HEAD has it at the one that goes.
  const moved = changed.flatMap((path) => (after.has(path) ? [] : [before.get(path) ?? null]))
  const edits = new Map<string, Entry>()
  for (const path of changed) {
    const [was, now, own] = [before.get(path) ?? null, after.get(path) ?? null, staged.get(path) ?? null]
    if (unmerged.has(path)) {
      warnings.push(`${shown(path)} is committed, and not in your index: it has a conflict there.`)
      continue
    }
    if (intended.has(path)) {
      edits.set(path, now)
      continue
    }
    if (sameEntry(own, now)) continue
    const isUntouched = [was, ...(was ? [] : moved)].some((one) => sameEntry(own, one))
    const next = isUntouched ? now : await onTop(context, committed, { path, was, now, own })
    if (next !== undefined) edits.set(path, next)
    else
      warnings.push(
        `${shown(path)} stays staged as it was, on top of the commit, which holds something else: git restore --staged ${quotedPathspec(path)}   (stages what the commit holds)`,
      )
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
  await setEntries(context, committed, { edits, staged, made })
  await tryUsersGit(env, { args: ['update-index', '-q', '--refresh'], cwd }) // exits 1 where files differ
}

/**
 * What is staged, with what the commit brought; undefined: they overlap. What was staged rests on HEAD, or on what the turns
 * had made of it at some time; the rest is the person's. Which of them, is told by what comes of it: a part that was chosen
 * (`git add -p`) rests on HEAD, though it may be nearer to the commit, less the rest; and that rest is on disk. Where the
 * disk tells nothing it is the newest of those that it is nearest to.
 */
async function onTop(
  context: Context,
  { passed, blobs }: Committed,
  { path, was, now, own }: { path: string; was: Entry; now: Entry; own: Entry },
): Promise<Entry | undefined> {
  const bases = [was]
  let made = was
  for (const part of passed.get(path) ?? []) {
    const next = await carried(blobs, made, part)
    if (next !== undefined) made = next // null: a turn removed it
    bases.push(made)
  }
  const onBase = async (entry: Entry, base: Entry): Promise<Entry | undefined> => {
    const next = await carried(blobs, entry, [base, now])
    return next === undefined && base === null && (await isPartOf(blobs, entry, now)) ? now : next
  }
  const found: { next: Entry; far: number }[] = []
  let [unlike, least] = [false, Number.POSITIVE_INFINITY]
  for (const base of bases) {
    const far = await distance(blobs, base, own)
    const next = await onBase(own, base)
    if (far < least) unlike = false
    if (far <= least) unlike ||= next === undefined // as near to one as to the other, and not to be told from it
    least = Math.min(least, far)
    if (next === undefined) continue
    // With what it would take back of the commit, too: a later turn may have gone on in the part that was chosen.
    const whole = await onBase(next, was)
    found.unshift({ next, far }, ...(whole === undefined ? [] : [{ next: whole, far }]))
  }
  if (unlike) return undefined
  if (found.every(({ next }) => sameEntry(next, found[0]!.next))) return found[0]!.next
  const disk = await blobs.entryOf(
    path,
    observe(context.env, { root: context.worktree.root, path }, context.store.objects),
  )
  const ranked: { next: Entry; far: number; off: number }[] = []
  for (const one of found) ranked.push({ ...one, off: disk === undefined ? 0 : await distance(blobs, one.next, disk) })
  return ranked.sort((a, b) => a.off - b.off || a.far - b.far)[0]!.next
}

/** Of a new file: whether nothing was chosen but lines of it. */
async function isPartOf(blobs: CommitBlobs, own: Entry, now: Entry): Promise<boolean> {
  if (!own || !now || own.mode !== now.mode || !own.mode.startsWith('100')) return false
  const [some, all] = [await blobs.linesOf(own.oid), await blobs.linesOf(now.oid)]
  return diffArrays(some, all, { maxEditLength: FAR })?.every(({ removed }) => !removed) ?? false
}

/** A change made to an entry that need not be what it was made to; undefined: they overlap. */
async function carried(blobs: CommitBlobs, entry: Entry, [from, to]: Passed): Promise<Entry | undefined> {
  if (sameEntry(from, to)) return entry
  return sameEntry(entry, from) ? to : mergeEntries(blobs, { base: from, ours: entry, theirs: to })
}

/** Lines: the time that comparing takes grows with the square of what differs, so that it ends there (Myers 1986). */
const FAR = 2000

/** How many lines, and modes, tell two entries apart. */
async function distance(blobs: CommitBlobs, a: Entry, b: Entry): Promise<number> {
  if (sameEntry(a, b)) return 0
  if (!a || !b || ![a, b].every(({ mode }) => mode.startsWith('100'))) return FAR // links and submodules have no lines
  const modes = a.mode === b.mode ? 0 : 1
  if (a.oid === b.oid) return modes
  const [one, other] = [await blobs.linesOf(a.oid), await blobs.linesOf(b.oid)]
  const parts = diffArrays(one, other, { maxEditLength: FAR })
  return modes + (parts?.reduce((sum, part) => sum + (part.added || part.removed ? part.count : 0), 0) ?? FAR)
}

/** An entry that is set anew loses its marks; those that stay get them back. */
async function setEntries(
  context: Context,
  committed: Pick<Committed, 'marked' | 'keepMarks'>,
  { edits, staged, made }: { edits: ReadonlyMap<string, Entry>; staged: ReadonlyMap<string, Entry>; made: Oid },
): Promise<void> {
  const { env, worktree } = context
  let marked = committed.marked
  if (edits.size > 0) {
    const losing = [...(await readMarkedPaths(context))].map(([mark, paths]): Marked => {
      return [mark, [...paths].filter((path) => edits.get(path) != null)]
    })
    marked = [...marked, ...losing.filter(([, paths]) => paths.length > 0)]
    if (marked.length > 0) committed.keepMarks(marked)
    const input = indexInfo(edits, made)
    await runUsersGit(env, { args: ['update-index', '-z', '--index-info'], cwd: worktree.root, input })
  }
  const isMeant = (path: string) => (edits.has(path) ? edits.get(path) !== null : staged.has(path))
  await setMarks(context, marked, { isMeant })
}

/** Gives entries of an index the marks that a person gave them in theirs. */
export async function setMarks(
  { env, worktree }: Context,
  marked: readonly (readonly [option: string, paths: Iterable<string>])[],
  { isMeant, vars = {} }: { isMeant: (path: string) => boolean; vars?: Record<string, string> },
): Promise<void> {
  for (const [mark, paths] of marked) {
    const again = [...paths].filter(isMeant).map((path) => `${path}\0`)
    const input = Buffer.from(again.join(''), 'latin1')
    if (again.length > 0)
      await runUsersGit(env, { args: ['update-index', mark, '-z', '--stdin'], cwd: worktree.root, vars, input })
  }
}
