/** What a commit is to hold: what a session's visible turns changed, on top of HEAD, and nothing else. */
import type { ClaimedTransition } from '../../core/claims.ts'
import { CkptError, FIRST_TURN, unlessDamaged } from '../../core/errors.ts'
import { sessionOption } from '../../core/hint-words.ts'
import type { Oid, SessionId, TurnNumber } from '../../core/ids.ts'
import { noneVisibleIn } from '../../core/none-visible.ts'
import { reasonedList, shortList } from '../../core/paths.ts'
import { lastOf, type Turn, visibleTurns } from '../../core/timeline.ts'
import { promptReader } from '../../git/side-refs.ts'
import { refuseWhilePending } from '../change/boundary.ts'
import { refuseRunning } from '../change/refuse.ts'
import { CommitBlobs } from '../committed/blobs.ts'
import { type LastCommit, lastCommit, type Taken, takenAt } from '../committed/commits-file.ts'
import { type Entry, readHeadEntries, sameEntry } from '../committed/entries.ts'
import type { Following } from '../committed/note-file.ts'
import { finishCommit } from '../committed/under-way.ts'
import type { Passed } from '../committed/users-index.ts'
import { ChangeReader, type Part } from '../history/turn-changes.ts'
import { isNoted } from '../worktree/commit-note.ts'
import { type Context, headOf, refuseWhileBusy } from '../worktree/context.ts'
import { chooseSession, loadTimeline, readRefs } from '../worktree/sessions.ts'
import { byHand, chosenByHand, type Last } from './by-hand.ts'
import { withoutIgnored } from './ignored.ts'
import { takenBackAndStaged, uncoveredAndUncommitted, undoneSince } from './settled.ts'
import {
  type About,
  commitsApart,
  committedAt,
  isElsewhere,
  type Later,
  readApart,
  readMade,
  readSince,
  type Since,
  wentOnFrom,
} from './since.ts'
import { takeStagedSince } from './stopped.ts'
import { foldChanges } from './tree.ts'

/** What is known before git commits: the lock is not held while the user's hooks run, for they may call ckpt. */
export interface Planned extends Following {
  /** Of the turns that something in the commit is of. */
  prompts: { number: number; prompt: string | null }[]
  /** Staged, though the turns took it back, with what is staged. */
  takenBack: ReadonlyMap<string, Entry>
  blobs: CommitBlobs
  /** Why there can be nothing of its turns; null: one is visible, or was committed. */
  none: string | null
}

/**
 * The session's commit, where it stands on HEAD. The caller holds the worktree's lock.
 * @throws CkptError BOUNDARY_PENDING, TURN_RUNNING, GIT_BUSY, CONFLICT, NOT_FOUND
 */
export async function plan(context: Context, options: { session?: string }): Promise<Planned> {
  const { store } = context
  if (isNoted(context)) context.warnings.push(...(await finishCommit(context)))
  const head = await headOf(context)
  refuseWhileBusy(context, head)
  const refs = await readRefs(context)
  let session: SessionId | null
  try {
    session = chooseSession(refs, options.session)
  } catch (error) {
    if (error instanceof CkptError && error.code === 'NOT_FOUND') await refuseWhilePending(context, refs) // which comes first
    throw error
  }
  if (session === null) {
    throw new CkptError('NOT_FOUND', 'There is no turn in this worktree yet. Nothing was committed.', {
      hints: FIRST_TURN,
    })
  }
  const timeline = await loadTimeline(context, refs, { session })
  refuseRunning(context, timeline, { outcome: 'Nothing was committed.' })
  await refuseWhilePending(context, refs)
  const last = await lastCommit(context, session, head.head)
  const reader = new ChangeReader(context, refs, timeline)
  const before = await readHeadEntries(context, head.head)
  const visible = visibleTurns(timeline)
  const since = last ? await notAllIn(visible, { reader, taken: last }) : visible
  const isTaken = last !== null && (last.isInHead || last.successor !== null)
  let turns = isTaken ? since : visible
  let taken: Taken = isTaken ? last : { turns: {} }
  const asChanged = ({ commit, turns }: LastCommit) =>
    `Commit ${commit.slice(0, 10)} is no part of HEAD any more: what turns up to ${Math.max(...Object.keys(turns).map(Number))} did is taken to be there as you have changed it.`
  if (last?.successor?.isSame === false) context.warnings.push(asChanged(last))
  const where = { reader, head: head.head, before }
  let folded = await foldTurns(context, { ...where, turns, taken })
  if (folded.conflicts.size > 0 && last && !isTaken) {
    const newer = await foldTurns(context, { ...where, turns: since, taken: last })
    if (newer.conflicts.size === 0) {
      ;[turns, folded, taken] = [since, newer, last]
      context.warnings.push(asChanged(last))
    }
  }
  const { entries, conflicts, passed, blobs } = folded
  context.warnings.push(...folded.warnings)
  if (last && isTaken) context.warnings.push(...(await undoneSince(context, { refs, session, last, before })))
  const open = [...folded.open]
  if (conflicts.size > 0) {
    const asked = new Map([...conflicts.keys()].map((path) => [path, folded.last.get(path)!]))
    const found = { session, head: head.head, entries: before, conflicts: asked, planned: entries }
    const { chosen, open: notThere } = await chosenByHand(context, found)
    for (const path of [...chosen, ...notThere]) {
      conflicts.delete(path)
      entries.delete(path)
    }
    open.push(...notThere)
    if (chosen.length > 0) context.warnings.push(`Left as you have committed it: ${shortList(chosen)}.`)
    if (notThere.length > 0)
      context.warnings.push(
        `Otherwise in HEAD, and on disk as in HEAD (stashed, it may be), left out of this commit and looked at again by the next: ${shortList(notThere)}.`,
      )
  }
  if (conflicts.size > 0) {
    const paths = [...conflicts.keys()]
    const shown = reasonedList([...conflicts].map(([path, reason]) => ({ path, reason })))
    throw new CkptError('CONFLICT', `Refused, nothing was committed: ${shown}.`, {
      paths,
      hints: [await byHand(context, paths, 'choose by hand'), `ckpt diff ${sessionOption(session)}`],
    })
  }
  await takeStagedSince(context, { session, entries, before })
  const asked = {
    turns: () => Promise.all(visible.map((turn) => reader.changesOf(turn))),
    head: before,
    blobs,
    isIn: (path: string) => entries.has(path),
  }
  // What turns did that are committed long since need not be readable for this commit.
  const takenBack = await unlessDamaged(() => takenBackAndStaged(context, asked), new Map<string, Entry>())
  const prompts = await promptReader(store, refs.notes)
  const isIn = ({ number }: Turn) => folded.turns.has(number)
  const told = await Promise.all(
    turns.filter(isIn).map(async ({ number, before }) => ({ number, prompt: await prompts(before.id) })),
  )
  await blobs.publish(entries.values())
  return {
    session,
    head: head.head,
    turns: turns.map((turn) => {
      return { number: turn.number, checkpoint: lastOf(turn).id, seq: lastOf(turn).seq, isIn: isIn(turn) }
    }),
    prompts: told,
    entries,
    before,
    passed,
    open,
    taken: { turns: taken.turns, leftOut: taken.leftOut ?? [] },
    takenBack,
    blobs,
    none: visible.length === 0 && last === null ? noneVisibleIn(timeline)[0] : null,
  }
}

/** Whether a part of a turn is not in HEAD. */
function openIn(taken: Taken, { number }: Turn): (part: Part) => boolean {
  const at = takenAt(taken)
  return ({ path, unclaimed, seq }) => !unclaimed && seq > (at(path)[number] ?? 0)
}

/** Turns that are not all in HEAD: their agents went on with them since, or a hook left something out. */
async function notAllIn(
  visible: readonly Turn[],
  { reader, taken }: { reader: ChangeReader; taken: Taken },
): Promise<Turn[]> {
  const open: Turn[] = []
  for (const turn of visible) {
    const isIn = (taken.turns[turn.number] ?? -1) >= lastOf(turn).seq
    const mayLack = isIn && (taken.leftOut ?? []).length > 0
    if (!isIn || (mayLack && (await reader.changesOf(turn)).parts.some(openIn(taken, turn)))) open.push(turn)
  }
  return open
}

interface Folded {
  entries: Map<string, Entry>
  conflicts: Map<string, string>
  /** Those that something in the entries is of. */
  turns: Set<TurnNumber>
  passed: Map<string, Passed[]>
  /** By path. */
  last: Map<string, Last>
  /** Left out, for they are committed on another branch: that may go. */
  open: string[]
  blobs: CommitBlobs
  warnings: string[]
}

/** What turns did, on top of HEAD. */
async function foldTurns(
  given: Context,
  {
    turns,
    taken,
    reader,
    head,
    before: headEntries,
  }: {
    turns: readonly Turn[]
    /** Of turns that are in part in HEAD: how far. */
    taken: Taken
    reader: ChangeReader
    head: Oid | null
    before: Map<string, Entry>
  },
): Promise<Folded> {
  const warnings: string[] = []
  const context = { ...given, warnings }
  const read = await Promise.all(turns.map((turn) => reader.changesOf(turn)))
  const known = new Map<Oid | null, Since>()
  const about = new Map<ClaimedTransition, About & { turn: TurnNumber }>()
  const sinceOf = async (from: Oid | null) => {
    if (!known.has(from)) known.set(from, await readSince(context, from, { head, entries: headEntries }))
    return known.get(from)!
  }
  const between = new Map<string, Promise<Later['made']>>()
  const madeBetween = (from: Oid | null, to: Oid) => {
    const key = `${from} ${to}`
    const known = between.get(key) ?? readMade(context, from, to)
    between.set(key, known)
    return known
  }
  const apart = await commitsApart(context, head)
  const last = new Map<string, Last>()
  const changes: ClaimedTransition[] = []
  for (const [i, one] of read.entries()) {
    if (one.unclaimed.length > 0)
      warnings.push(
        `Turn ${one.turn.number} also saw changes outside its steps, which are not committed: ${shortList(one.unclaimed.map(({ path }) => path))}.`,
      )
    // Where HEAD moved amid the turn, what it did before and after that is carried over one after the other.
    const { number, before, checkpoints } = turns[i]!
    const { seq, time } = lastOf(turns[i]!)
    const hasMoved = checkpoints.some(({ head }) => head !== before.head)
    const ofCkpt = await Promise.all(
      checkpoints.flatMap(({ id, seq }) =>
        (apart.get(id) ?? []).map(async (commit) => ({ seq, later: await readApart(context, commit) })),
      ),
    )
    const isInParts = hasMoved || number in taken.turns || ofCkpt.some((one) => one.seq < seq)
    const own: (ClaimedTransition & Partial<Part>)[] = isInParts
      ? one.parts.filter(openIn(taken, turns[i]!))
      : one.claimed
    for (const change of own) {
      const then = change.head ?? before.head ?? null // where it was not moved, that is what it was at the end, too
      const since = await sinceOf(then)
      const later: Later[] = []
      if (hasMoved)
        for (const to of headsAfter(turns[i]!, change))
          later.push({ isElsewhere: isElsewhere(await sinceOf(to)), made: await madeBetween(then, to) })
      const others = ofCkpt.flatMap((one) => ((change.seq ?? 0) <= one.seq ? [one.later] : []))
      const { head: start } = checkpoints.findLast((one) => one.seq < (change.seq ?? seq)) ?? before
      const amid =
        then === null || (start ?? null) === then
          ? null
          : { since: await sinceOf(start ?? null), made: await madeBetween(start ?? null, then) }
      const begun = await sinceOf(before.head ?? null)
      about.set(change, { turn: number, since, begun, later, apart: others, amid })
      last.set(change.path, { seq, time: Date.parse(time), since })
      changes.push(change)
    }
  }
  const left = new Map(changes.filter(({ path }) => !path.endsWith('/')).map(({ path, to }) => [path, to]))
  const kept = new Set(await withoutIgnored(context, left, headEntries))
  const missed = await uncoveredAndUncommitted(context, { turns: read, captured: left })
  const blobs = await CommitBlobs.open(context, { paths: [...kept], head: headEntries })
  const elsewhere = new Map<string, Entry>()
  const folded = await foldChanges({
    changes: changes.filter(({ path }) => kept.has(path)),
    head: headEntries,
    blobs,
    committed(change, to, applies) {
      const at = committedAt(about.get(change)!, { path: change.path, to, applies })
      if (at === 'elsewhere') elsewhere.set(change.path, to)
      return at !== null
    },
    wentOnFrom: (change, entries) => wentOnFrom(about.get(change)!, { path: change.path, ...entries }),
  })
  const missing = [...missed, ...[...folded.leftOut].map(([path, reason]) => ({ path, reason }))]
  if (missing.length > 0) warnings.push(`Not captured, and left out of the commit: ${reasonedList(missing)}.`)
  const onOthers: string[] = []
  for (const [path, entry] of elsewhere) {
    const isOpen = !folded.entries.has(path) && !folded.conflicts.has(path)
    const end = isOpen ? await blobs.entryOf(path, left.get(path)!) : undefined
    if (end !== undefined && sameEntry(end, entry)) onOthers.push(path)
  }
  if (onOthers.length > 0)
    warnings.push(`Committed on another branch, and left out of the commit: ${shortList(onOthers)}.`)
  const passed = new Map<string, Passed[]>()
  const isGone = (path: string) => left.get(path)?.kind === 'absent' && !headEntries.has(path)
  for (const { path, from, to, unclaimed } of read.flatMap(({ parts }) => parts)) {
    if (unclaimed || !(folded.entries.has(path) || isGone(path))) continue
    const [was, entry] = [await blobs.entryOf(path, from), await blobs.entryOf(path, to)]
    if (entry === undefined) continue
    // Of what was not captured nothing can be carried further.
    const earlier = was === undefined ? [] : (passed.get(path) ?? [])
    passed.set(path, [...earlier, [was === undefined ? entry : was, entry]])
  }
  const madeOf = new Set([...folded.made].map((change) => about.get(change)!.turn))
  return { ...folded, turns: madeOf, passed, last, open: onOthers, blobs, warnings }
}

/** What HEAD was in a turn, from a change of it on, beside what it was at the change. */
function headsAfter({ checkpoints }: Turn, { seq, head }: Partial<Part>): Set<Oid> {
  const after = checkpoints.filter((one) => one.seq >= (seq ?? 0)).flatMap((one) => one.head ?? [])
  return new Set(after.filter((one) => one !== head))
}
