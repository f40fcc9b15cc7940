/** Cuts the history where what stays begins. What stays keeps its ids: git's own `shallow` file says where. */
import type { Checkpoint } from '../../core/checkpoint.ts'
import type { Oid, SessionId } from '../../core/ids.ts'
import type { PrunedTurns } from '../../core/prune-plan.ts'
import { errno } from '../../env.ts'
import type { RefEdit } from '../../git/refs.ts'
import { metaTree, oidOfFanned, promptsTree, writePrompts } from '../../git/side-refs.ts'
import type { Store } from '../../git/store.ts'
import type { FileEntry } from '../../git/trees.ts'
import { loadCache } from '../../snapshot/cache.ts'
import type { Context } from '../worktree/context.ts'
import { rememberHighest } from '../worktree/numbers.ts'
import { keptHistory, type WorktreePlan } from './plan.ts'
import { goesOnBefore, type Kept } from './shared.ts'

/** By session, the highest number of a turn that goes. */
const goneNumbers = (sessions: readonly PrunedTurns[]): Map<SessionId, number> =>
  new Map(
    sessions.flatMap(({ timeline: { session }, abandoned }) => {
      const highest = Math.max(0, ...abandoned.map(({ number }) => number))
      return highest > 0 ? [[session, highest] as const] : []
    }),
  )

/** Moves the refs to what stays, and tells git where the history ends now. */
export async function cut(context: Context, plans: readonly WorktreePlan[]): Promise<void> {
  const { store } = context
  const edits: RefEdit[] = []
  const histories: Kept[] = []
  const shallow = new Set<Oid>()
  for (const plan of plans) {
    // A branch whose fork lies in what goes begins where it forked.
    const { kept, gone } = await keptHistory(plan)
    histories.push(kept)
    for (const { id, parents } of kept.values()) if (parents.some((parent) => !kept.has(parent))) shallow.add(id)
    for (const id of store.shallow) if (kept.has(id)) shallow.add(id)
    edits.push(...gone, ...(await sideEdits(plan, kept)))
  }
  for (const id of shallow) if (histories.some((kept) => goesOnBefore(kept, id))) shallow.delete(id)
  for (const { context: one, sessions } of plans) rememberHighest(one, goneNumbers(sessions))
  // Where the history was cut before it ends still, until no ref leads there any more.
  const before = store.shallow
  store.writeShallow(new Set([...before, ...shallow]))
  await store.moveRefs(edits, { durable: true }).catch((error: unknown) => {
    putBack(store, before)
    throw error
  })
  store.writeShallow(shallow)
}

/** Nothing goes where the refs could not be moved, on a full disk for one. Where this cannot be written either, the next prune goes on. */
function putBack(store: Store, shallow: ReadonlySet<Oid>): void {
  try {
    store.writeShallow(shallow)
  } catch (error) {
    if (errno(error) === undefined) throw error
  }
}

/** `@meta` and the prompts, with only what the kept checkpoints need; and the scan's own tree, while one may go on from it. */
async function sideEdits({ context, refs }: WorktreePlan, kept: ReadonlyMap<Oid, Checkpoint>): Promise<RefEdit[]> {
  const { store, env } = context
  const edits: RefEdit[] = []
  const meta = await metaTree(store, kept.values())
  if (refs.meta && refs.meta !== meta) edits.push({ ref: `${store.refPrefix}@meta`, from: refs.meta, to: meta })
  if (refs.notes) edits.push(...(await keptPrompts(store, refs.notes, kept)))
  const cache = loadCache(env, store)
  const [scan] = await store.refs(`${store.refPrefix}@scan`)
  if (cache && (await store.objects.read(cache.tree))) edits.push({ ref: `${store.refPrefix}@scan`, to: cache.tree })
  else if (scan) edits.push({ ref: scan.ref, from: scan.oid, to: null })
  return edits
}

async function keptPrompts(store: Store, tip: Oid, kept: ReadonlyMap<Oid, Checkpoint>): Promise<RefEdit[]> {
  const tree = await promptsTree(store, tip)
  const notes = new Map<string, FileEntry>()
  for (const [path, entry] of await store.trees.files(tree)) if (kept.has(oidOfFanned(path))) notes.set(path, entry)
  const next = writePrompts(store, await store.trees.edit(store.trees.empty, notes), 0)
  return next === tip ? [] : [{ ref: store.notesRef, from: tip, to: next }]
}
