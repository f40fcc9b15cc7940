/** Checkpoints as commits: written, found by their refs, and read as chains. */
import { createHash } from 'node:crypto'
import {
  type Checkpoint,
  type CheckpointMeta,
  formatMessage,
  markerTrailer,
  parseCheckpoint,
} from '../core/checkpoint.ts'
import { encodeSession, type Oid, parseOid, type SessionId } from '../core/ids.ts'
import type { RefTip } from './refs.ts'
import type { Store } from './store.ts'

/** The refs of one session. */
export interface SessionRefs {
  session: SessionId
  /** Newest checkpoint of the live chain. */
  live: Checkpoint | null
  boundary: Checkpoint | null
  abandoned: { ref: string; tip: Checkpoint }[]
  /** Results of undo, redo and restore, and late checkpoints. */
  others: { ref: string; tip: Checkpoint }[]
}

/** All that the refs of one worktree say. */
export interface WorktreeRefs {
  sessions: Map<SessionId, SessionRefs>
  /** The highest place in the worktree's order that is taken. */
  lastSeq: number
  /** Objects beside checkpoints, kept reachable by one tree. */
  meta: Oid | null
  /** Prompts, as git notes. */
  notes: Oid | null
}

/** Some ten megabytes. */
const MOST_KNOWN = 30_000

const digest = (text: string) => createHash('sha256').update(text).digest('hex')

export function sessionRef(store: Store, session: SessionId, name: string): string {
  return `${store.refPrefix}${encodeSession(session, digest)}/${name}`
}

/** Whether a ref is of a session, in whichever worktree. */
export const isRefOf = (session: SessionId, ref: string): boolean =>
  ref.split('/')[3] === encodeSession(session, digest)

/** An abandoned branch's name says when it was abandoned: its grace begins then. */
export function abandonedName(seq: number, time: string): string {
  return `abandoned/${seq}-${Math.floor(Date.parse(time) / 1000)}`
}

/** The ref of a branch that is abandoned now; none of the session has it, though there be several in one second. */
export function abandonedRef(
  store: Store,
  { session, abandoned }: { session: SessionId; abandoned: readonly { ref: string }[] },
  { seq, time }: { seq: number; time: string },
): string {
  const ref = sessionRef(store, session, abandonedName(seq, time))
  const isTaken = abandoned.some((one) => one.ref === ref)
  return isTaken ? abandonedRef(store, { session, abandoned }, { seq: seq + 1, time }) : ref
}

/** Milliseconds since 1970 when a branch was abandoned. */
export function abandonedAt(ref: string): number {
  return Number(/-(\d+)$/.exec(ref)?.[1] ?? 0) * 1000
}

export function metaRef(store: Store): string {
  return `${store.refPrefix}@meta`
}

export function readWorktreeRefs(store: Store): Promise<WorktreeRefs> {
  return store.wholeRefs(store.refPrefix, store.notesRef).then((tips) => groupRefs(store.refPrefix, tips))
}

/** What tips say. Trees and parents are not in their `contents`: those who need them read the commit. */
const parsed = new WeakMap<RefTip, Checkpoint>()

export function groupRefs(prefix: string, tips: readonly RefTip[]): WorktreeRefs {
  const sessions = new Map<SessionId, SessionRefs>()
  let lastSeq = 0
  let meta: Oid | null = null
  let notes: Oid | null = null
  for (const one of tips) {
    const { ref, oid, type, contents } = one
    if (ref.startsWith('refs/notes/')) {
      notes = oid
      continue
    }
    const name = ref.slice(prefix.length)
    if (name === '@meta') meta = oid
    if (type !== 'commit' || name.startsWith('@')) continue
    const tip = parsed.get(one) ?? parseCheckpoint(oid, `tree ${oid}\n\n${contents}`)
    parsed.set(one, tip)
    lastSeq = Math.max(lastSeq, tip.seq)
    let refs = sessions.get(tip.session)
    if (!refs) {
      refs = { session: tip.session, live: null, boundary: null, abandoned: [], others: [] }
      sessions.set(tip.session, refs)
    }
    const leaf = name.slice(name.indexOf('/') + 1)
    if (leaf === 'live') refs.live = tip
    else if (leaf === 'boundary') refs.boundary = tip
    else if (leaf.startsWith('abandoned/')) refs.abandoned.push({ ref, tip })
    else refs.others.push({ ref, tip })
  }
  return { sessions, lastSeq, meta, notes }
}

/**
 * The session of the newest turn marker in this worktree, never `manual`. What was imported is no news: it is before what
 * markers told of when it happened.
 */
export function latestSession(refs: WorktreeRefs): SessionId | null {
  let best: { session: SessionId; told: number; seq: number } | null = null
  for (const { session, live, abandoned, others } of refs.sessions.values()) {
    const late = others.filter(({ ref }) => /\/late\/\d+$/.test(ref)) // told while its turn was undone
    const tips = [...(live ? [live] : []), ...[...abandoned, ...late].map(({ tip }) => tip)]
    const told = Math.max(0, ...tips.map(({ seq, imported }) => imported ?? seq))
    const seq = Math.max(0, ...tips.map((tip) => tip.seq))
    if (session === 'manual' || seq === 0) continue
    if (!best || told > best.told || (told === best.told && seq > best.seq)) best = { session, told, seq }
  }
  return best?.session ?? null
}

/** @throws CkptError DAMAGED */
export async function readCheckpoint(store: Store, id: Oid): Promise<Checkpoint> {
  const known = store.checkpoints.get(id)
  if (known) return cutAt(store, known)
  return learned(store, parseCheckpoint(id, (await store.objects.get(id, 'commit')).toString('utf8')))
}

function learned(store: Store, checkpoint: Checkpoint): Checkpoint {
  if (store.checkpoints.size >= MOST_KNOWN) store.checkpoints.clear()
  store.checkpoints.set(checkpoint.id, checkpoint)
  return cutAt(store, checkpoint)
}

/** A checkpoint whose parent was pruned has none any more, though its commit still names it (gitformat shallow). */
function cutAt(store: Store, checkpoint: Checkpoint): Checkpoint {
  return store.shallow.has(checkpoint.id) ? { ...checkpoint, parents: [] } : checkpoint
}

/**
 * First-parent ancestors of a tip, oldest first, the tip last. `limit` counts from the tip; `not` leaves out what those
 * reach (git-rev-list(1)).
 */
export async function readChain(
  store: Store,
  tip: Oid,
  { limit, not = [] }: { limit?: number; not?: Oid[] } = {},
): Promise<Checkpoint[]> {
  const known = knownChain(store, tip, { limit, not })
  if (known) return known
  const most = limit === undefined ? [] : [`--max-count=${limit}`]
  const out = await store.git([
    'rev-list',
    '--first-parent',
    '--header',
    ...most,
    tip,
    ...not.map((oid) => `^${oid}`),
    '--',
  ])
  return learnedRows(store, out).reverse()
}

/** What `git rev-list --header` printed. */
function learnedRows(store: Store, out: Buffer): Checkpoint[] {
  const found: Checkpoint[] = []
  for (const row of out.toString('utf8').split('\0')) {
    if (row.trim() === '') continue
    const newline = row.indexOf('\n')
    // rev-list --header indents the message by four spaces.
    const commit = row.slice(newline + 1).replace(/^ {4}/gm, '')
    found.push(learned(store, parseCheckpoint(parseOid(row.slice(0, newline)), commit)))
  }
  return found
}

/** The same, where all that it takes is known already, or a few commits at hand; else null. */
function knownChain(
  store: Store,
  tip: Oid,
  { limit = Number.POSITIVE_INFINITY, not }: { limit: number | undefined; not: Oid[] },
) {
  const newest = store.checkpoints.get(tip) ?? atHand(store, tip)
  // A turn is two commits at least: of a long chain git is asked at once.
  let few = Math.min(limit, 2 * (newest?.turn ?? 0)) > FEW ? 0 : FEW
  const at = (id: Oid) => store.checkpoints.get(id) ?? (few-- > 0 ? atHand(store, id) : null)
  const out = new Set<Oid>()
  for (const wanted = [...not]; wanted.length > 0; ) {
    const id = wanted.pop()!
    if (out.has(id)) continue
    const one = at(id)
    if (!one) return null
    out.add(id)
    wanted.push(...cutAt(store, one).parents)
  }
  const near: Checkpoint[] = [] // newest first
  for (let id: Oid | undefined = tip; id !== undefined && near.length < limit; id = near.at(-1)!.parents[0]) {
    if (out.has(id)) break
    const one = at(id)
    if (!one) return null
    near.push(cutAt(store, one))
  }
  return near.reverse()
}

/** One that lies in a file of its own, as the newest do. */
function atHand(store: Store, id: Oid): Checkpoint | null {
  const found = store.objects.readLoose(id)
  return found?.type === 'commit' ? learned(store, parseCheckpoint(id, found.bytes.toString('utf8'))) : null
}

/** Reads what is not known of all sessions at once: to start git for each takes as long as there are sessions. */
export async function learnSessions(store: Store, refs: WorktreeRefs): Promise<void> {
  const tips = [...refs.sessions.values()].flatMap(({ live, boundary, abandoned, others }) => [
    live,
    boundary,
    ...[...abandoned, ...others].map(({ tip }) => tip),
  ])
  const unknown = tips.flatMap((tip) => (tip && !store.checkpoints.has(tip.id) ? [tip.id] : []))
  if (unknown.length < 2) return
  const read = await store.tryGit(['rev-list', '--header', '--stdin'], { input: unknown.join('\n') })
  if (read.code === 0) learnedRows(store, read.stdout) // what is damaged is said by who needs it
}

/** So many commits that are not known are read one by one before another process is worth its start. */
const FEW = 48

/** Reads back from a tip until `enough` says so of what was read (oldest first), in growing pieces. */
export async function readChainUntil(
  store: Store,
  tip: Oid,
  enough: (chain: Checkpoint[]) => boolean,
): Promise<Checkpoint[]> {
  const near: Checkpoint[] = [] // newest first
  let [unknown, turns] = [0, 0]
  for (let id: Oid | undefined = tip; id !== undefined; id = near.at(-1)!.parents[0]) {
    const known = store.checkpoints.get(id)
    if (!known && ++unknown > FEW) break
    // A turn may have thousands of steps: what is known is not waited for.
    const one = known ? cutAt(store, known) : await readCheckpoint(store, id)
    near.push(one)
    if (one.parents.length === 0) return near.reverse()
    // Of a long chain not each turn is worth asking about: a little more is read instead.
    if (one.kind !== 'before' || (++turns > FEW && turns % FEW > 0)) continue
    const chain = near.toReversed()
    if (enough(chain)) return chain
  }
  for (let limit = FEW * 8; ; limit *= 8) {
    const chain = await readChain(store, tip, { limit })
    if (chain.length < limit || enough(chain)) return chain
  }
}

/** Writes a checkpoint's commit. Author and committer are ckpt itself: nobody's name leaves the machine with it. */
export function writeCheckpoint(
  store: Store,
  { tree, parents }: { tree: Oid; parents: readonly Oid[] },
  meta: CheckpointMeta,
): Checkpoint {
  const seconds = Math.floor(Date.parse(meta.time) / 1000)
  const lines = [
    `tree ${tree}`,
    ...parents.map((parent) => `parent ${parent}`),
    `author ckpt <ckpt@localhost> ${seconds} +0000`,
    `committer ckpt <ckpt@localhost> ${seconds} +0000`,
    '',
    formatMessage(meta),
  ]
  const text = lines.join('\n')
  const id = store.objects.write('commit', Buffer.from(text, 'utf8'))
  learned(store, parseCheckpoint(id, text))
  return { ...meta, id, tree, parents: [...parents] }
}

/** The checkpoints that clients' markers made, on whatever branch of their sessions. All of history is read for it, once. */
export async function findByMarkers(store: Store, markers: readonly string[]): Promise<Map<string, Checkpoint>> {
  const asked = new Set(markers)
  const found = new Map<string, Checkpoint>()
  const trailers = [...asked].map((marker) => `--grep=${markerTrailer(marker)}`)
  if (trailers.length === 0) return found
  const out = await store.git(['rev-list', '--fixed-strings', ...trailers, `--glob=${store.refPrefix}*`])
  for (const id of out.toString('latin1').split('\n')) {
    if (id === '' || found.size === asked.size) continue
    const checkpoint = await readCheckpoint(store, id as Oid)
    const { marker } = checkpoint
    if (marker !== undefined && asked.has(marker) && !found.has(marker)) found.set(marker, checkpoint)
  }
  return found
}

export const findByMarker = async (store: Store, marker: string): Promise<Checkpoint | null> =>
  (await findByMarkers(store, [marker])).get(marker) ?? null

/** The turn's first checkpoint with that message id, back from a tip. One that remembers reads each checkpoint once. */
export async function findPrompt(store: Store, tip: Checkpoint, messageId: string): Promise<Checkpoint | null> {
  const isIt = (one: Checkpoint) => one.kind === 'before' && one.messageId === messageId
  if (store.remembers && tip.seq <= MOST_KNOWN) return (await readChain(store, tip.id)).findLast(isIt) ?? null
  const out = await store.git([
    'rev-list',
    '--first-parent',
    '--fixed-strings',
    '--grep=Ckpt-Kind: before',
    '--grep=Ckpt-Message-Id: ',
    '--all-match',
    tip.id,
    '--',
  ])
  for (const id of out.toString('latin1').split('\n')) {
    if (id === '') continue
    const one = await readCheckpoint(store, id as Oid)
    if (isIt(one)) return one
  }
  return null
}
