/** What a commit does not take in: what was undone or taken back since, and what no checkpoint holds. */
import type { UncoveredReason } from '../../core/beside.ts'
import { joinTransitions, withoutTold } from '../../core/claims.ts'
import type { Oid, SessionId } from '../../core/ids.ts'
import { barePath, isWithin, shortList } from '../../core/paths.ts'
import type { PathState } from '../../core/state.ts'
import { lastOf, type Turn } from '../../core/timeline.ts'
import type { WorktreeRefs } from '../../git/history.ts'
import { look } from '../../snapshot/disk.ts'
import { unstaging } from '../change/still-staged.ts'
import type { CommitBlobs } from '../committed/blobs.ts'
import { isAncestor, type LastCommit } from '../committed/commits-file.ts'
import { type Entry, readIndexEntries, sameEntry } from '../committed/entries.ts'
import { commitsOfTurns } from '../committed/origins.ts'
import { settledPaths, uncommittedPaths } from '../committed/uncommitted.ts'
import { ChangeReader, type TurnChanges } from '../history/turn-changes.ts'
import type { Context } from '../worktree/context.ts'
import { loadTimeline } from '../worktree/sessions.ts'

/** Turns that were committed and undone, and kept so: git knows nothing of that. */
export async function undoneSince(
  context: Context,
  {
    refs,
    session,
    last,
    before,
  }: { refs: WorktreeRefs; session: SessionId; last: LastCommit; before: ReadonlyMap<string, Entry> },
): Promise<string[]> {
  const timeline = await loadTimeline(context, refs, { session, abandoned: true })
  const reader = new ChangeReader(context, refs, timeline)
  const held: Turn[] = []
  const paths = new Set<string>()
  // Of one that was cut what it kept is not undone.
  const keptOf = ({ id }: Turn) => timeline.turns.find((one) => one.id === id)
  for (const turn of [...timeline.abandoned, ...timeline.uncut]) {
    const kept = keptOf(turn)
    const from = kept ? lastOf(kept).seq : turn.before.seq
    if (!((last.turns[turn.number] ?? 0) > from)) continue
    const { parts } = await reader.changesOf(turn)
    const claimed = withoutTold(joinTransitions(parts.filter(({ unclaimed, seq }) => !unclaimed && seq > from)))
    const there = claimed.filter(
      ({ path, to }) =>
        !path.endsWith('/') && (to.kind === 'present' ? before.get(path)?.oid === to.oid : !before.has(path)),
    )
    if (there.length > 0) held.push(turn)
    for (const { path } of there) paths.add(path)
  }
  if (held.length === 0) return []
  const numbers = held.map((turn) => turn.number)
  const inPart = held.some((turn) => keptOf(turn)) ? ' in part' : ''
  const which = held.length === 1 ? `Turn ${numbers[0]} was` : `Turns ${numbers.join(', ')} were`
  const there = new Set(held.flatMap(({ checkpoints }) => checkpoints.map(({ id }) => id)))
  const made = [...commitsOfTurns(context)].flatMap(([commit, { turns }]) =>
    turns.some((id) => there.has(id)) ? commit : [],
  )
  const isInHead = await Promise.all(made.map((commit) => isAncestor(context, commit)))
  // The newest first, as git reverts them.
  const commits = made.filter((_, i) => isInHead[i]).reverse()
  const words = ['git revert', ...commits.map((commit) => commit.slice(0, 10))].join(' ')
  const way = `, or take the ${commits.length > 1 ? 'commits' : 'commit'} back (${words})`
  // What git reverts may be missing on disk, and must not be changed there.
  const settled = new Set(commits.length > 0 ? await settledPaths(context, [...paths], before) : [])
  const isFree = (path: string) => settled.has(path) || look(context.env, context.worktree.root, path) === null
  const canRevert = commits.length > 0 && [...paths].every(isFree)
  return [
    `${which} committed and undone${inPart} since, and HEAD still has what was done: commit what is on disk by hand (git add -p && git commit)${canRevert ? way : ''}.`,
  ]
}

/** What no checkpoint holds though a commit could: what is ignored nobody means to commit, and git has no fifos. */
const COULD_BE_COMMITTED: ReadonlySet<UncoveredReason> = new Set([
  'too-large',
  'nested-repo',
  'unreadable',
  'budget',
  'not-here',
])

/** Uncovered paths that turns made, changed or removed, where git sees something to commit. `captured`: what checkpoints hold. */
export async function uncoveredAndUncommitted(
  context: Context,
  { turns, captured }: { turns: readonly TurnChanges[]; captured: ReadonlyMap<string, PathState> },
): Promise<TurnChanges['uncovered']> {
  const uncovered = turns.flatMap((turn) => turn.uncovered).filter(({ reason }) => COULD_BE_COMMITTED.has(reason))
  if (uncovered.length === 0) return []
  const uncommitted = await uncommittedPaths(context, '--untracked-files=all')
  const open = uncommitted?.filter((path) => !captured.has(path))
  const once = new Map(uncovered.map((entry) => [entry.path, entry]))
  return [...once.values()].filter(({ path }) => !open || open.some((one) => isWithin(barePath(one), barePath(path))))
}

/**
 * What a turn did that is staged, and that it or a later one took back: it is not in this commit, and may be in the next one by
 * hand. `isIn`: whether the commit changes the path, or has a conflict there. `turns`: oldest first, read where anything is staged.
 */
export async function takenBackAndStaged(
  context: Context,
  {
    turns,
    head,
    blobs,
    isIn,
  }: {
    turns: () => Promise<readonly TurnChanges[]>
    head: ReadonlyMap<string, Entry>
    blobs: CommitBlobs
    isIn: (path: string) => boolean
  },
): Promise<Map<string, Entry>> {
  const index = await readIndexEntries(context)
  const entryIn = (entries: ReadonlyMap<string, Entry>, path: string) => entries.get(path) ?? null
  const isStaged = (path: string) => !sameEntry(entryIn(index, path), entryIn(head, path))
  const open = new Set([...index.keys(), ...head.keys()].filter((path) => isStaged(path) && !isIn(path)))
  const did = new Map<string, Entry[]>()
  for (const { path, to, unclaimed } of open.size === 0 ? [] : (await turns()).flatMap(({ parts }) => parts)) {
    const entry = unclaimed || !open.has(path) ? undefined : await blobs.entryOf(path, to)
    if (entry !== undefined) did.set(path, [...(did.get(path) ?? []), entry])
  }
  const found = new Map<string, Entry>()
  for (const [path, entries] of did) {
    const staged = entryIn(index, path)
    const isBack = sameEntry(entries.at(-1)!, entryIn(head, path))
    if (isBack && entries.some((entry) => sameEntry(entry, staged))) found.set(path, staged)
  }
  return found
}

/** What is so to the end: a file that was moved on from there does not stay staged beside the commit. */
export async function stillStagedOf(
  context: Context,
  { takenBack, head }: { takenBack: ReadonlyMap<string, Entry>; head: Oid | null },
): Promise<string[]> {
  if (takenBack.size === 0) return []
  const index = await readIndexEntries(context)
  const paths = [...takenBack].flatMap(([path, entry]) => (sameEntry(index.get(path) ?? null, entry) ? [path] : []))
  if (paths.length === 0) return []
  return [
    `Taken back since, and still staged, so that git commit would take it: ${shortList(paths)}. ${unstaging(paths, head !== null)}`,
  ]
}
