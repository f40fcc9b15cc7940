/**
 * Whose each line of a file is. git-blame(1) over the history of one session says with which checkpoint a line came; what
 * others did between that one and the one before it is told apart as undo tells it (core/claims.ts), and what was there
 * when the session began is looked for in the sessions before it.
 */

import { diffArrays } from 'diff'
import type { Checkpoint } from '../../core/checkpoint.ts'
import { type Claim, claimOf, isCut, turnsDuring, windowsOf, workUntil } from '../../core/claims.ts'
import { type Oid, parseOid, type SessionId } from '../../core/ids.ts'
import { pathFromText, pathToText, type RelativePath } from '../../core/paths.ts'
import type { Timeline, Turn } from '../../core/timeline.ts'
import { visibleTurns } from '../../core/timeline.ts'
import { readCheckpoint, type WorktreeRefs } from '../../git/history.ts'
import type { Context } from '../worktree/context.ts'
import { type Activity, loadTimeline, readActivity } from '../worktree/sessions.ts'

/** A file in a checkpoint of a session. */
export interface Recorded {
  session: SessionId
  checkpoint: Checkpoint
  path: RelativePath
}

export interface WrittenLine {
  text: string
  /** Null: it was there before all turns, or came from outside of them. */
  turn: Turn | null
}

/** What is known of a file on disk. */
export interface Newest {
  path: RelativePath
  /** The newest visible checkpoint of the session that is asked. */
  tip: Checkpoint
  /** Null: it does not have the file. */
  recorded: Recorded | null
}

/** A line as the checkpoint has it that it came with. */
interface Origin {
  id: Oid
  path: RelativePath
  /** From 0. */
  line: number
  text: string
}

/** One change of a file between two checkpoints that follow each other. */
interface Change {
  /** Null: it is not there. */
  before: Oid | null
  after: Oid | null
  turn: Turn | null
}

/** Whose a line is, from 0. */
type Owners = (line: number) => Turn | null

/** Insertions and deletions of lines that two states both have; what differs in more is taken for written anew. */
const MOST_EDITS = 2000

const NOBODY: Owners = () => null

export class LineOrigins {
  readonly #context: Context
  readonly #refs: WorktreeRefs
  readonly #timelines = new Map<SessionId, Promise<Timeline>>()

  constructor(context: Context, refs: WorktreeRefs) {
    this.#context = context
    this.#refs = refs
  }

  timeline(session: SessionId): Promise<Timeline> {
    const known = this.#timelines.get(session) ?? loadTimeline(this.#context, this.#refs, { session })
    this.#timelines.set(session, known)
    return known
  }

  /**
   * The file as it is on disk: whose a line is says the checkpoint that has it, else the newest one of the other sessions.
   * @throws CkptError DAMAGED
   */
  async linesNow(bytes: Buffer, { path, tip, recorded }: Newest): Promise<WrittenLine[]> {
    const now = linesIn(bytes)
    let owners = recorded ? await this.#ownersNow(now, recorded) : now.map(() => undefined)
    if (owners.includes(undefined)) {
      const other = await this.newestBeside(tip.session, Number.POSITIVE_INFINITY)
      if (other && other.last.seq > tip.seq) {
        const { session } = other.timeline
        const theirs = await this.#ownersNow(now, { session, checkpoint: other.last, path })
        owners = owners.map((turn, line) => (turn === undefined ? theirs[line] : turn))
      }
    }
    const lines = now.map((line, i) => ({ text: pathToText(line), turn: owners[i] ?? null }))
    // What follows the last line's end is no line.
    return now.at(-1) === '' ? lines.slice(0, -1) : lines
  }

  /** Undefined: the checkpoint does not have that line. */
  async #ownersNow(
    now: string[],
    { session, checkpoint, path }: Recorded,
  ): Promise<readonly (Turn | null | undefined)[]> {
    const blob = await this.#blobOf(checkpoint, path)
    if (blob === null) return now.map(() => undefined)
    const then = await this.#linesOf(blob)
    const places = carried({ from: then, to: now }, [...then.keys()], -1)
    const lines = await this.linesAt({ session, checkpoint, path })
    return places.map((place) => lines[place]?.turn)
  }

  /** @throws CkptError DAMAGED */
  async linesAt({ session, checkpoint: { id }, path }: Recorded): Promise<WrittenLine[]> {
    const { store } = this.#context
    const out = await store.git(['blame', '--first-parent', '--porcelain', id, '--', pathToText(path)])
    const origins = readOrigins(out.toString('utf8'), path)
    const timeline = await this.timeline(session)
    const came = new Map<Oid, Checkpoint>()
    for (const one of origins) if (!came.has(one.id)) came.set(one.id, await readCheckpoint(store, one.id))
    const parents = await Promise.all([...came.values()].map((one) => this.#parentOf(one)))
    const since = Math.min(...parents.map((one) => one?.seq ?? Number.POSITIVE_INFINITY))
    const activity = await readActivity(this.#context, this.#refs, { timeline, since })
    const owners = new Map<string, Owners>()
    for (const one of origins) {
      const key = `${one.id} ${one.path}`
      if (!owners.has(key)) owners.set(key, await this.#ownersOf(came.get(one.id)!, one.path, { timeline, activity }))
    }
    return origins.map((one) => ({ text: one.text, turn: owners.get(`${one.id} ${one.path}`)!(one.line) }))
  }

  async #parentOf({ parents: [parent] }: Checkpoint): Promise<Checkpoint | null> {
    return parent === undefined ? null : readCheckpoint(this.#context.store, parent)
  }

  /** Of the lines that came with a checkpoint. */
  async #ownersOf(to: Checkpoint, path: RelativePath, around: Around): Promise<Owners> {
    const from = await this.#parentOf(to)
    if (!from) return this.#ownersBefore(to, path)
    const changes = await this.#changesBetween(from, to, { path, ...around })
    const [first] = changes
    if (!first || changes.every(({ turn }) => turn === first.turn)) return () => first?.turn ?? null
    let lines = await this.#linesOf(first.before)
    let labels = lines.map(() => -1)
    for (const [i, { after }] of changes.entries()) {
      const now = await this.#linesOf(after)
      labels = carried({ from: lines, to: now }, labels, i)
      lines = now
    }
    // Lines that look alike: to one eye it was there all the time, to the other it is new.
    const any = changes.find(({ turn }) => turn)?.turn ?? null
    return (line) => {
      const change = changes[labels[line] ?? -1]
      return change ? change.turn : any
    }
  }

  /** Of the lines that a session found when it began: those of the session that was there last before it. */
  async #ownersBefore(first: Checkpoint, path: RelativePath): Promise<Owners> {
    const found = await this.#blobOf(first, path)
    const earlier = await this.newestBeside(first.session, first.seq)
    const left = earlier && (await this.#blobOf(earlier.last, path))
    if (!found || !left) return NOBODY
    const { timeline, last } = earlier
    const begun = timeline.turns[0]!.before
    let owners: Owners
    // A session that did not change the file knows nothing of its lines.
    if ((await this.#blobOf(begun, path)) === left) owners = await this.#ownersBefore(begun, path)
    else {
      const lines = await this.linesAt({ session: timeline.session, checkpoint: last, path })
      owners = (line) => lines[line]?.turn ?? null
    }
    if (left === found) return owners
    const then = await this.#linesOf(left)
    const places = carried({ from: then, to: await this.#linesOf(found) }, [...then.keys()], -1)
    return (line) => owners(places[line] ?? -1)
  }

  /** The newest visible checkpoint of the other sessions before a place in the worktree's order. */
  async newestBeside(session: SessionId, seq: number): Promise<{ timeline: Timeline; last: Checkpoint } | null> {
    let newest: { timeline: Timeline; last: Checkpoint } | null = null
    for (const other of this.#refs.sessions.keys()) {
      if (other === session) continue
      const timeline = await this.timeline(other)
      const visible = visibleTurns(timeline).flatMap(({ checkpoints }) => checkpoints)
      const last = visible.findLast((one) => one.seq < seq)
      if (last && last.seq > (newest?.last.seq ?? 0)) newest = { timeline, last }
    }
    return newest
  }

  /** What became of a file between two checkpoints of a session, cut where other sessions and operations looked at it. */
  async #changesBetween(from: Checkpoint, to: Checkpoint, { path, timeline, activity }: Place): Promise<Change[]> {
    const { checkpoints, foreignTurns } = activity
    const turn = timeline.turns.find((one) => one.before.seq < to.seq && to.seq <= workUntil(one))
    const mine = turn ? windowsOf(turn, checkpoints) : []
    const others = turnsDuring(foreignTurns, from.seq, to.seq)
    const theirs = others.flatMap((one) => windowsOf(one, checkpoints, { asRival: true }))
    const ownerOf = (claim: Claim): Turn | null => {
      if (claim.kind === 'ambiguous' && typeof claim.with === 'string') return null
      if (claim.kind === 'mine' || claim.kind === 'ambiguous') return turn ?? null
      if (claim.kind === 'unclaimed') return null
      const { session, turnId } = claim.window
      return others.find((one) => one.session === session && one.id === turnId) ?? null
    }
    const meanwhile = checkpoints.filter(
      (one) => one.seq > from.seq && one.seq < to.seq && (one.session !== to.session || one.result === true),
    )
    const changes: Change[] = []
    let [last, before] = [from, await this.#blobOf(from, path)]
    for (const one of [...meanwhile, to]) {
      const after = await this.#blobOf(one, path)
      const isOperation = one.kind === 'safety' && one.result === true
      if (after !== before) {
        const claim = claimOf(path, { from: last, to: one, cut: isCut(last, one, checkpoints) }, { mine, theirs })
        changes.push({ before, after, turn: isOperation ? null : ownerOf(claim) })
      }
      ;[last, before] = [one, after]
    }
    return changes
  }

  async #blobOf({ tree }: Checkpoint, path: RelativePath): Promise<Oid | null> {
    const entry = await this.#context.store.trees.lookup(tree, path)
    return entry && entry.mode !== '40000' ? entry.oid : null
  }

  async #linesOf(blob: Oid | null): Promise<string[]> {
    if (blob === null) return []
    return linesIn(await this.#context.store.objects.get(blob, 'blob'))
  }
}

/** One character a byte, without their ends; what follows the last end is one too. */
const linesIn = (bytes: Buffer): string[] => bytes.toString('latin1').split('\n')

/** What surrounds a checkpoint of a session. */
interface Around {
  timeline: Timeline
  activity: Activity
}

interface Place extends Around {
  path: RelativePath
}

/** What was said of each line, carried from one state to the next, where `fresh` is said of the new lines. */
function carried({ from, to }: { from: string[]; to: string[] }, said: readonly number[], fresh: number): number[] {
  // A line that only one of them has is in no match: without those the rest is found as well, and sooner.
  const [old, kept] = [linesAlsoIn(to, from), linesAlsoIn(from, to)]
  const lines = [old.map((line) => from[line]!), kept.map((line) => to[line]!)] as const
  const parts = diffArrays(...lines, { maxEditLength: MOST_EDITS })
  if (!parts) return carriedAround({ from, to }, said, fresh)
  const carry = to.map(() => fresh)
  let [at, place] = [0, 0]
  for (const { added, removed, count } of parts) {
    if (!added && !removed) for (let i = 0; i < count; i++) carry[kept[place + i]!] = said[old[at + i]!]!
    if (!added) at += count
    if (!removed) place += count
  }
  return carry
}

/** The places of those lines that others have, too. */
function linesAlsoIn(others: readonly string[], lines: readonly string[]): number[] {
  const known = new Set(others)
  return [...lines.keys()].filter((line) => known.has(lines[line]!))
}

/** The same for states that differ in much: what begins and ends both is the same. */
function carriedAround(
  { from, to }: { from: string[]; to: string[] },
  said: readonly number[],
  fresh: number,
): number[] {
  const most = Math.min(from.length, to.length)
  let head = 0
  while (head < most && from[head] === to[head]) head++
  let tail = 0
  while (tail < most - head && from.at(-1 - tail) === to.at(-1 - tail)) tail++
  const shift = from.length - to.length
  return to.map((_, i) => (i < head ? said[i]! : i >= to.length - tail ? said[i + shift]! : fresh))
}

const ESCAPED = new Map(Object.entries({ a: '\x07', b: '\b', f: '\f', n: '\n', r: '\r', t: '\t', v: '\v' }))

/** A name as git writes it, in quotes where it has some itself, or control characters: git-config(1), core.quotePath. */
function unquoted(name: string): string {
  if (!name.startsWith('"')) return name
  return name.slice(1, -1).replace(/\\([0-7]{3}|.)/g, (_, code: string) => {
    return code.length === 3 ? String.fromCharCode(Number.parseInt(code, 8)) : (ESCAPED.get(code) ?? code)
  })
}

/** The porcelain form of git-blame(1): what it says of a commit stands before the first of its lines only. */
function readOrigins(text: string, path: RelativePath): Origin[] {
  const origins: Origin[] = []
  const paths = new Map<Oid, RelativePath>()
  let at: Pick<Origin, 'id' | 'line'> | null = null
  for (const row of text.split('\n')) {
    const [, id, line] = /^([0-9a-f]{40,64}) (\d+) \d+/.exec(row) ?? []
    if (id !== undefined) at = { id: parseOid(id), line: Number(line) - 1 }
    else if (row.startsWith('filename ') && at) paths.set(at.id, pathFromText(unquoted(row.slice(9))))
    else if (row.startsWith('\t') && at) origins.push({ ...at, path: paths.get(at.id) ?? path, text: row.slice(1) })
  }
  return origins
}
