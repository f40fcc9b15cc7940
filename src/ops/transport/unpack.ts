/**
 * Taking in what came from another store. It goes into this worktree's own timeline only where that loses nothing: every
 * checkpoint there is among those that came. Else it gets a place of its own, `from-<origin>-<worktree>`, beside it.
 */
import type { Checkpoint } from '../../core/checkpoint.ts'
import { type CkptError, isDamage } from '../../core/errors.ts'
import type { Oid, SessionId } from '../../core/ids.ts'
import { abandonedName, groupRefs, sessionRef, type WorktreeRefs } from '../../git/history.ts'
import type { Parcel } from '../../git/parcel.ts'
import type { RefEdit } from '../../git/refs.ts'
import { fanout, keepObjects, promptsTree, writePrompts } from '../../git/side-refs.ts'
import type { Store } from '../../git/store.ts'
import type { FileEntry } from '../../git/trees.ts'
import { lockedStore } from '../recovery/locked.ts'
import { settleUnfinished } from '../recovery/unfinished.ts'
import { markerAfter, writeMarker } from '../worktree/boundary-marker.ts'
import type { Context } from '../worktree/context.ts'
import { refsJournal, removeJournal, writeJournal } from '../worktree/journal.ts'
import { readReplaced } from '../worktree/replaced.ts'
import { type Incoming, readIncoming } from './incoming.ts'
import { storeOrigin } from './outgoing.ts'

export interface Unpacked {
  /** The worktree there, and the one it is here. */
  from: string
  worktree: string
  sessions: SessionId[]
  /** Checkpoints that were not here before. */
  checkpoints: number
  /** Prompts that were not here before. */
  prompts: number
}

/**
 * All of it or nothing. `unreadable`: the refs that cannot be read are put there, with the reason, and nothing is taken in.
 * @throws CkptError DAMAGED, LOCKED
 */
export async function unpackParcel(
  context: Context,
  parcel: Parcel,
  unreadable?: Map<string, CkptError>,
): Promise<Unpacked[]> {
  return lockedStore(context, { command: 'import' }, async () => {
    await settleUnfinished(context)
    const refs = await parcel.refs()
    const seen = new Set<Oid>()
    const all: Incoming[] = []
    for (const ref of refs) {
      try {
        all.push(await readIncoming(parcel, ref, seen))
      } catch (error) {
        if (!unreadable || !isDamage(error)) throw error
        unreadable.set(ref.ref, error)
      }
    }
    if (unreadable?.size) return []
    if (all.length > 0) await parcel.movePacks(context.store)
    const done: Unpacked[] = []
    for (const incoming of all) done.push(await unpackOne(context, incoming))
    tellForgotten(context, all)
    return done
  })
}

/** Who has what was forgotten here brings it back. */
function tellForgotten({ env, store, warnings }: Context, all: readonly Incoming[]): void {
  const replaced = readReplaced(env, store)
  const back = all.flatMap(({ checkpoints }) => [...checkpoints.keys()].filter((id) => replaced.has(id)))
  if (back.length === 0) return
  const which = back.length === 1 ? 'A checkpoint that came holds' : `${back.length} checkpoints that came hold`
  warnings.push(
    `${which} what was forgotten here: ckpt forget PATH   (again, and also where they came from, or they bring it back once more)`,
  )
}

async function unpackOne(context: Context, incoming: Incoming): Promise<Unpacked> {
  const { env, place } = context
  const { manifest, checkpoints } = incoming
  const sessions = [...new Set([...checkpoints.values()].map(({ session }) => session))]
  if (await isOwn(context, incoming))
    return { from: manifest.worktree, worktree: manifest.worktree, sessions, checkpoints: 0, prompts: 0 }
  const target = await chooseTarget(context, incoming)
  const store = target === place.worktreeId ? context.store : context.store.of(target)
  env.files.mkdirSync(store.worktreeDir, { recursive: true, mode: 0o700 })
  const tips = await store.refs(store.refPrefix, store.notesRef)
  const refs = groupRefs(store.refPrefix, tips)
  const known = await recorded(store)
  for (const bytes of incoming.commits.values()) store.objects.write('commit', bytes)
  await store.objects.syncFresh()
  await joinHistory(store, incoming)
  const { notes, added } = await joinPrompts(store, refs.notes, incoming)
  // First what is kept, so that no ref names a checkpoint whose companions could be lost.
  const foreign = target !== place.worktreeId
  const edits = [...notes, ...(await refEdits(store, { refs, foreign }, incoming))]
  if (edits.length > 0) await move(context, store, { edits, refs, foreign })
  const result: Unpacked = {
    from: manifest.worktree,
    worktree: target,
    sessions,
    checkpoints: [...checkpoints.keys()].filter((id) => !known.has(id)).length,
    prompts: added,
  }
  return result
}

/** Every checkpoint of this store, whatever its worktree. */
async function recorded(store: Store): Promise<Set<string>> {
  const out = await store.git(['rev-list', '--glob=refs/ckpt/*'])
  return new Set(out.toString('latin1').split('\n').filter(Boolean))
}

const ownTips = (refs: WorktreeRefs): { ref: string | null; tip: Checkpoint }[] =>
  [...refs.sessions.values()].flatMap(({ live, boundary, abandoned, others }) => [
    ...[live, boundary].flatMap((tip) => (tip ? [{ ref: null, tip }] : [])),
    ...abandoned,
    ...others,
  ])

async function reachable(store: Store, refs: WorktreeRefs): Promise<Set<string>> {
  const tips = ownTips(refs).map(({ tip }) => tip.id)
  if (tips.length === 0) return new Set()
  const out = await store.git(['rev-list', '--stdin'], { input: `${tips.join('\n')}\n` })
  return new Set(out.toString('latin1').split('\n').filter(Boolean))
}

/** What another worktree of this store sent out once comes back, and it still has all of it. */
async function isOwn(context: Context, { manifest, checkpoints }: Incoming): Promise<boolean> {
  const { place } = context
  if (manifest.origin !== storeOrigin(context) || manifest.worktree === place.worktreeId) return false
  const store = context.store.of(manifest.worktree)
  const refs = groupRefs(store.refPrefix, await store.refs(store.refPrefix))
  return (await reachableIds(store, refs, checkpoints)).length === checkpoints.size
}

/** This worktree itself if nothing of it is missing in what came; else a place that is named after where it came from. */
async function chooseTarget(context: Context, { manifest, checkpoints }: Incoming): Promise<string> {
  const { env, place, store } = context
  const own = place.worktreeId
  // Another worktree of this very store is not this one, be it the main one.
  const isMain = manifest.worktree === '@main' && manifest.origin !== storeOrigin(context)
  const main = isMain || manifest.worktree === own
  const refs = groupRefs(store.refPrefix, await store.refs(store.refPrefix))
  const contained = ownTips(refs).every(({ tip }) => checkpoints.has(tip.id))
  const there = env.files.existsSync(`${place.directory}/worktrees/${own}`)
  if (main && there && contained && keepsPending(refs, manifest)) return own
  // What came is older than what is here, and all of it is here: nothing to do.
  if (main && (await reachableIds(store, refs, checkpoints)).length === checkpoints.size) return own
  return `from-${manifest.origin.slice(0, 8)}-${manifest.worktree.replace('@', '')}`
}

/** What is pending here can be redone here, wherever its session went on meanwhile. */
const keepsPending = (refs: WorktreeRefs, { refs: came }: Incoming['manifest']): boolean =>
  [...refs.sessions.values()].every(
    ({ boundary }) => !boundary || came.some(({ leaf, id }) => leaf === 'boundary' && id === boundary.id),
  )

async function reachableIds(store: Store, refs: WorktreeRefs, among: ReadonlyMap<Oid, Checkpoint>): Promise<Oid[]> {
  const here = await reachable(store, refs)
  return [...among.keys()].filter((id) => here.has(id))
}

/** Where history is cut: what came without its past, and is not joined to any here. What came whole is cut no longer. */
async function joinHistory(store: Store, { checkpoints, manifest }: Incoming): Promise<void> {
  const shallow = new Set(store.shallow)
  for (const { id, parents } of checkpoints.values()) {
    const [parent] = parents
    if (parent === undefined) continue
    if (checkpoints.has(parent)) shallow.delete(id)
    else if (manifest.cut.includes(id) && (await store.objects.read(parent)) === null) shallow.add(id)
  }
  if (shallow.size !== store.shallow.size || [...shallow].some((id) => !store.shallow.has(id)))
    store.writeShallow(shallow)
}

/**
 * The refs as they came. What is here and did not come stays: as it is, or as an abandoned branch where its name is taken.
 * In a place that is nobody's worktree here (`foreign`) nothing can be redone, and what is pending there is as it came last.
 */
async function refEdits(
  store: Store,
  { refs, foreign }: { refs: WorktreeRefs; foreign: boolean },
  incoming: Incoming,
): Promise<RefEdit[]> {
  const { checkpoints, manifest, beside } = incoming
  const now = new Map((await store.refs(store.refPrefix)).map(({ ref, oid }) => [ref, oid]))
  const here = await reachable(store, refs)
  const older =
    [...checkpoints.keys()].every((id) => here.has(id)) && ownTips(refs).some(({ tip }) => !checkpoints.has(tip.id))
  if (older || (!foreign && !keepsPending(refs, manifest))) return []
  const wanted = new Map<string, Oid>()
  for (const { leaf, id } of manifest.refs) wanted.set(sessionRef(store, checkpoints.get(id)!.session, leaf), id)
  const edits: RefEdit[] = []
  // A boundary's last checkpoint may have a name of its own as well.
  const own = new Map(ownTips(refs).map(({ tip }) => [tip.id, tip]))
  for (const tip of own.values()) {
    if (checkpoints.has(tip.id)) continue
    const names = [...now].filter(([, oid]) => oid === tip.id).map(([ref]) => ref)
    if (names.some((ref) => !wanted.has(ref) && !/\/(live|boundary)$/.test(ref))) continue
    edits.push({ ref: sessionRef(store, tip.session, abandonedName(tip.seq, manifest.time)), to: tip.id })
  }
  for (const [ref, to] of wanted) if (now.get(ref) !== to) edits.push({ ref, from: now.get(ref) ?? null, to })
  for (const [ref, oid] of now) {
    if (wanted.has(ref) || ref.startsWith(`${store.refPrefix}@`)) continue
    if (checkpoints.has(oid) || /\/(live|boundary)$/.test(ref)) edits.push({ ref, from: oid, to: null })
  }
  const meta = await keepObjects(store, refs.meta, beside)
  return [...(meta ? [meta] : []), ...edits]
}

/** Prompts that came are added, also to checkpoints that came before without them; one that is here stays as it is. */
async function joinPrompts(
  store: Store,
  notes: Oid | null,
  { prompts, manifest }: Incoming,
): Promise<{ notes: RefEdit[]; added: number }> {
  const tree = notes ? await promptsTree(store, notes) : store.trees.empty
  const added = new Map<string, FileEntry>()
  for (const [id, oid] of prompts) {
    const path = fanout(id)
    if (!(await store.trees.lookup(tree, path))) added.set(path, { mode: '100644', oid })
  }
  if (added.size === 0) return { notes: [], added: 0 }
  const seconds = Math.max(0, Math.floor(Date.parse(manifest.time) / 1000)) || 0
  const to = writePrompts(store, await store.trees.edit(tree, added), seconds)
  return { notes: [{ ref: store.notesRef, from: notes, to }], added: added.size }
}

async function move(
  { env }: Context,
  store: Store,
  { edits, refs, foreign }: { edits: RefEdit[]; refs: WorktreeRefs; foreign: boolean },
): Promise<void> {
  // No git hook looks at a place that is nobody's worktree here.
  if (foreign) return store.moveRefs(edits, { durable: true })
  const marker = await markerOf(store, edits, refs)
  await writeJournal(env, store, refsJournal(env, { op: 'import', session: '', refs: edits, marker }))
  await store.moveRefs(edits, { durable: true })
  writeMarker(env, store, marker)
  removeJournal(env, store)
}

/** What the git hooks are to read after these edits. */
async function markerOf(store: Store, edits: readonly RefEdit[], refs: WorktreeRefs): Promise<string | null> {
  const next: WorktreeRefs = { ...refs, sessions: new Map() }
  for (const [session, one] of refs.sessions) {
    const gone = edits.some(({ ref, to }) => to === null && ref === sessionRef(store, session, 'boundary'))
    next.sessions.set(session, gone ? { ...one, boundary: null } : one)
  }
  for (const { ref, to } of edits) {
    if (to === null || !ref.endsWith('/boundary')) continue
    const { readCheckpoint } = await import('../../git/history.ts')
    const boundary = await readCheckpoint(store, to)
    const { session } = boundary
    const empty = { session, live: null, boundary, abandoned: [], others: [] }
    next.sessions.set(session, { ...(next.sessions.get(session) ?? empty), boundary })
  }
  return markerAfter(next, '' as SessionId, null)
}
