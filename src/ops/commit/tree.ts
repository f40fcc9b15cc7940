/**
 * What a session's turns come to on top of HEAD: each change is carried over, oldest first, to what is committed.
 * Base = before the turn, theirs = after it, ours = what the commit holds so far; the person's own edits, before, between
 * or after the turns, are in none of the differences and so stay out.
 */
import { type ClaimedTransition, toldRival } from '../../core/claims.ts'
import { ancestorsOf } from '../../core/paths.ts'
import { type PathState, sameState } from '../../core/state.ts'
import { type CommitBlobs, mergeEntries } from '../committed/blobs.ts'
import { clashes, type Entry, sameEntry } from '../committed/entries.ts'

export interface Folded {
  /** Paths that the commit changes, with what it holds. */
  entries: Map<string, Entry>
  conflicts: Map<string, string>
  /** New to git, and not captured before the session changed it, or for a while: whose it was nobody knows. With the reason. */
  leftOut: Map<string, string>
  /** What the entries are made of: what was undone again, or is committed already, is not among it. */
  made: Set<ClaimedTransition>
}

export interface FoldInput {
  /** Oldest first. */
  changes: readonly ClaimedTransition[]
  head: ReadonlyMap<string, Entry>
  blobs: CommitBlobs
  /** Whether what the change left is committed: the person has, or the agent. `applies`: what it changed is in the commit so far. */
  committed: (change: ClaimedTransition, to: Entry, applies: boolean) => boolean
  /** Whether its turn went on from what is committed (`ours`), which a commit amid it made. */
  wentOnFrom: (change: ClaimedTransition, entries: { from: Entry; ours: Entry }) => boolean
}

/** Where a path is not known any more: what it was before, and what it is. */
interface Gap {
  from: Entry | undefined
  to: PathState
  /** Why it could not be committed before that. */
  conflict: string | undefined
}

const isNotHere = (state: PathState) => state.kind === 'unknown' && state.reason === 'not-here'

/** Whether nobody changed it between the two: a content that git cannot convert, or what a sparse checkout leaves out. */
const goesOn = (to: PathState, from: PathState) => sameState(to, from) || (isNotHere(to) && isNotHere(from))

/** What a path was before a change, where no snapshot holds it: what is only not here is as git has it. */
function before(state: PathState, { gap, ours }: { gap: Gap | undefined; ours: Entry }): Entry | undefined {
  if (gap && gap.from !== undefined) return gap.from
  return isNotHere(state) && ours !== null ? ours : undefined
}

export async function foldChanges({ changes, head, blobs, committed, wentOnFrom }: FoldInput): Promise<Folded> {
  const entries = new Map<string, Entry>()
  const conflicts = new Map<string, string>()
  const madeOf = new Map<string, ClaimedTransition[]>()
  const leftOut = new Map<string, string>()
  const leaveOut = (path: string, { to }: ClaimedTransition) => {
    leftOut.set(path, to.kind === 'unknown' ? to.reason : 'not captured before it changed')
    conflicts.delete(path)
    if (entries.delete(path)) madeOf.delete(path)
  }
  const gaps = new Map<string, Gap>()
  const changed = new Set(changes.map(({ path }) => path))
  for (const change of changes) {
    const { path } = change
    if (path.endsWith('/')) continue // git keeps no directories
    const enter = (entry: Entry) => {
      entries.set(path, entry)
      madeOf.set(path, [...(madeOf.get(path) ?? []), change])
    }
    const ours = entries.get(path) ?? (entries.has(path) ? null : (head.get(path) ?? null))
    const isNew = (state: PathState) => !head.has(path) && state.kind === 'unknown' && !isNotHere(state)
    const gap = gaps.get(path)
    const isContinued = gap !== undefined && goesOn(gap.to, change.from)
    const known = await blobs.entryOf(path, change.from)
    const from = known === undefined ? before(change.from, { gap: isContinued ? gap : undefined, ours }) : known
    const to = await blobs.entryOf(path, change.to)
    if (to === undefined) {
      gaps.set(path, { from, to: change.to, conflict: isContinued ? gap.conflict : conflicts.get(path) })
      if ((from === undefined && ours === null) || isNew(change.to)) leaveOut(path, change)
      else if (!isNotHere(change.to) || from === undefined || !sameEntry(ours, from))
        conflicts.set(path, await blobs.whyNot(path, change.to))
      continue
    }
    gaps.delete(path)
    if (isContinued) {
      if (gap.conflict === undefined) conflicts.delete(path)
      else conflicts.set(path, gap.conflict)
    }
    const applies = from !== undefined && sameEntry(ours, from)
    if (sameEntry(ours, to) || committed(change, to, applies)) {
      conflicts.delete(path) // whosever it was, and however it came to be: it is committed
      if (!sameEntry(ours, to) && entries.delete(path)) madeOf.delete(path) // and what was made of it since is in HEAD
      continue
    }
    if (change.ambiguousWith !== undefined) {
      conflicts.set(path, toldRival(change.ambiguousWith))
      continue
    }
    if (from === undefined) {
      if (ours === null || isNew(change.from)) leaveOut(path, change)
      else conflicts.set(path, await blobs.whyNot(path, change.from))
      continue
    }
    if (sameEntry(from, to)) continue
    if (sameEntry(ours, from) || sameEntry(ours, unconverted(from, change.from))) {
      enter(to)
      continue
    }
    const merged =
      (await mergeEntries(blobs, { base: from, ours, theirs: to })) ??
      (wentOnFrom(change, { from, ours }) ? to : undefined)
    // Attributes that a person changed, and did not commit, are none of the commit's.
    const given = { state: change.from, committedToo: attributesOf(path).some((file) => changed.has(file)) }
    if (merged === undefined && ours && from && (await blobs.isCheckedOut(path, ours, given)))
      enter(to && to.mode === from.mode ? { ...to, mode: ours.mode } : to)
    else if (merged === undefined)
      conflicts.set(path, "changes of yours, or of another session, overlap with this session's")
    else if (!sameEntry(merged, ours)) enter(merged) // else a person has committed it, beside something of theirs
  }
  for (const [path, entry] of entries) if (sameEntry(entry, head.get(path) ?? null)) entries.delete(path)
  for (const [path, reason] of clashes(entries, head)) conflicts.set(path, reason)
  for (const path of [...entries.keys(), ...conflicts.keys()]) leftOut.delete(path)
  return { entries, conflicts, leftOut, made: new Set([...entries.keys()].flatMap((path) => madeOf.get(path) ?? [])) }
}

/** The files that may say how this one is converted (gitattributes(5)). */
const attributesOf = (path: string): string[] =>
  ['', ...ancestorsOf(path).map((one) => `${one}/`)].map((at) => `${at}.gitattributes`)

/** What is committed where the very bytes on disk are: attributes that came later converted nothing. */
const unconverted = (entry: Entry, state: PathState): Entry =>
  entry !== null && state.kind === 'present' ? { mode: entry.mode, oid: state.oid } : entry
