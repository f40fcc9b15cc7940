/**
 * What leaves: for each worktree one commit whose tree holds its checkpoints as data. Commits that name a pruned parent
 * cannot go through git's transports as commits (a remote refuses what is shallow); as data they can, and keep their ids.
 *
 * ```
 * refs/ckpt/<origin>/<worktree>  →  manifest.json
 *                                   commits/<aa>/<id>   the bytes of each checkpoint's commit
 *                                   trees/<aa>/<id>     the snapshots
 *                                   beside/<aa>/<id>    what a tree cannot say, and the records of boundaries
 *                                   prompts/<aa>/<id>   only when asked for
 * ```
 */
import { parseRecord, recordObjects } from '../../core/boundary.ts'
import { CkptError, FIRST_TURN } from '../../core/errors.ts'
import type { Oid } from '../../core/ids.ts'
import { formatManifest } from '../../core/manifest.ts'
import { pathToText } from '../../core/paths.ts'
import { looksSecret } from '../../core/secrets.ts'
import { formatTree, type TreeEntry, type TreeMode } from '../../core/tree-object.ts'
import { readCheckpoint, type WorktreeRefs } from '../../git/history.ts'
import type { ObjectStore } from '../../git/objects.ts'
import type { Parcel } from '../../git/parcel.ts'
import { objectDirectories } from '../../git/repository.ts'
import { oidOfFanned, promptsTree } from '../../git/side-refs.ts'
import type { Store } from '../../git/store.ts'
import { readIfThere, writeFileWhole } from '../../git/whole-file.ts'
import type { Context } from '../worktree/context.ts'
import { withLock } from '../worktree/lock.ts'
import { allWorktrees, foreignWorktree } from '../worktree/worktrees.ts'
import { makeParcel } from './parcels.ts'

/** Milliseconds for the store's lock. */
const PATIENCE = 30_000

export interface Outgoing {
  parcel: Parcel
  /** The store's name in it. */
  origin: string
  /** Every checkpoint that goes, for each ref. */
  refs: { ref: string; checkpoints: Set<Oid> }[]
  sessions: number
  checkpoints: number
  prompts: number
  /** Paths in the snapshots whose names look like secrets. */
  secrets: string[]
}

const originFile = ({ place }: Context) => `${place.directory}/origin`

/** This store's name among others. It says nothing of the machine. */
export function storeOrigin(context: Context): string | null {
  const text = readIfThere(context.env, originFile(context))?.toString('latin1').trim() ?? ''
  return /^[0-9a-f]{12}$/.test(text) ? text : null
}

/**
 * A name for what has none, or goes by one that is another's: the store is a copy of the one that has it. Whoever is at it
 * at the same time gets the same: what goes by two names would stay on the remote under the one that nobody goes by.
 */
export const renewOrigin = (context: Context, old: string | null): Promise<string> =>
  withLock(context.env, { path: `${context.place.directory}/lock`, command: 'push', wait: PATIENCE }, async () => {
    const now = storeOrigin(context)
    if (now !== null && now !== old) return now
    const origin = context.env.random(6)
    writeFileWhole(context.env, originFile(context), { content: `${origin}\n` })
    return origin
  })

export interface PackOptions {
  withPrompts: boolean
  /** What is made for it stays in the store until the next prune, so that a remote that got it once need not get it again. */
  remembered: boolean
}

/** Makes the parcel; the caller closes it. @throws CkptError NOT_FOUND when there is nothing to send, DAMAGED */
export async function packParcel(context: Context, { withPrompts, remembered }: PackOptions): Promise<Outgoing> {
  const { env, place, store, repository } = context
  const views = (await allWorktrees(context)).filter((view) => !foreignWorktree(view.context.place.worktreeId))
  const full = views.filter(({ refs }) => refs.sessions.size > 0)
  if (full.length === 0)
    throw new CkptError('NOT_FOUND', 'Nothing was recorded here yet: there is nothing to send.', {
      hints: FIRST_TURN,
    })
  const origin = storeOrigin(context) ?? (await renewOrigin(context, null))
  // What the remote has of the user's own history need not be sent again.
  const users = repository?.hash === place.hash ? await objectDirectories(env, repository) : []
  const borrow = [`${store.gitDir}/objects`, ...users]
  const parcel = await makeParcel(env, { within: place.directory, hash: place.hash, borrow })
  try {
    const out: Outgoing = { parcel, origin, refs: [], sessions: 0, checkpoints: 0, prompts: 0, secrets: [] }
    const secrets = new Set<string>()
    const seen = new Set<Oid>()
    for (const { context: one, refs } of full) {
      const ref = `refs/ckpt/${origin}/${one.place.worktreeId}`
      const objects = writingTo(parcel.objects, remembered ? one.store.objects : null)
      const packed = await packWorktree(one.store, refs, { origin, withPrompts, time: env.now(), objects })
      if (remembered) await one.store.objects.syncFresh() // a remote that has them is to find them here
      await parcel.point(ref, packed.commit)
      out.refs.push({ ref, checkpoints: packed.checkpoints })
      out.sessions += refs.sessions.size
      out.checkpoints += packed.checkpoints.size
      out.prompts += packed.prompts
      for (const tree of packed.trees) await findSecrets(one.store, tree, { at: '', seen, secrets })
    }
    return { ...out, secrets: [...secrets].sort() }
  } catch (error) {
    parcel.close()
    throw error
  }
}

type Writer = Pick<ObjectStore, 'write'>

/** Into the parcel in any case: a prune that runs meanwhile drops from the store what no ref reaches. */
const writingTo = (parcel: ObjectStore, store: ObjectStore | null): Writer => ({
  write: (type, bytes) => {
    store?.write(type, bytes)
    return parcel.write(type, bytes)
  },
})

async function packWorktree(
  store: Store,
  refs: WorktreeRefs,
  { origin, withPrompts, time, objects }: { origin: string; withPrompts: boolean; time: number; objects: Writer },
) {
  const tips = [...refs.sessions.values()].flatMap(({ live, boundary, abandoned, others }) => [
    ...(live ? [{ leaf: 'live', id: live.id }] : []),
    ...(boundary ? [{ leaf: 'boundary', id: boundary.id }] : []),
    ...[...abandoned, ...others].map(({ ref, tip }) => ({ leaf: ref.split('/').slice(-2).join('/'), id: tip.id })),
  ])
  const commits = new Map<Oid, Oid>()
  const trees = new Set<Oid>()
  const beside = new Set<Oid>()
  const cut: Oid[] = []
  const checkpoints = new Set<Oid>()
  for (const { id: tip } of tips) {
    for (let id: Oid | undefined = tip; id !== undefined && !checkpoints.has(id); ) {
      checkpoints.add(id)
      commits.set(id, objects.write('blob', await store.objects.get(id, 'commit')))
      if (store.shallow.has(id)) cut.push(id)
      const one = await readCheckpoint(store, id)
      trees.add(one.tree)
      beside.add(one.beside)
      if (one.record) {
        beside.add(one.record)
        for (const oid of recordObjects(parseRecord(await store.objects.get(one.record, 'blob')))) beside.add(oid)
      }
      id = one.parents[0]
    }
  }
  const prompts = withPrompts && refs.notes ? await promptsOf(store, refs.notes, checkpoints) : new Map<Oid, Oid>()
  const worktree = store.place.worktreeId
  const manifest = formatManifest({
    origin,
    worktree,
    hash: store.objects.hash,
    time: new Date(time).toISOString(),
    refs: tips,
    cut: cut.sort(),
    prompts: withPrompts,
  })
  const same = (oids: Iterable<Oid>) => new Map([...oids].map((oid) => [oid, oid]))
  const parts: TreeEntry[] = [
    { mode: '100644', name: 'manifest.json', oid: objects.write('blob', manifest) },
    { mode: '40000', name: 'commits', oid: fanTree(objects, '100644', commits) },
    { mode: '40000', name: 'trees', oid: fanTree(objects, '40000', same(trees)) },
    { mode: '40000', name: 'beside', oid: fanTree(objects, '100644', same(beside)) },
    { mode: '40000', name: 'prompts', oid: fanTree(objects, '100644', prompts) },
  ]
  const seconds = Math.floor(time / 1000)
  const by = `ckpt <ckpt@localhost> ${seconds} +0000`
  const tree = objects.write('tree', formatTree(parts))
  const text = `tree ${tree}\nauthor ${by}\ncommitter ${by}\n\ncheckpoints of ${worktree}\n`
  const commit = objects.write('commit', Buffer.from(text))
  return { commit, checkpoints, trees, prompts: prompts.size }
}

async function promptsOf(store: Store, notes: Oid, checkpoints: ReadonlySet<Oid>): Promise<Map<Oid, Oid>> {
  const found = new Map<Oid, Oid>()
  for (const [path, { oid }] of await store.trees.files(await promptsTree(store, notes))) {
    const id = oidOfFanned(path)
    if (checkpoints.has(id)) found.set(id, oid)
  }
  return found
}

/** A tree of `<aa>/<rest of the id>`. */
function fanTree(objects: Writer, mode: TreeMode, entries: ReadonlyMap<Oid, Oid>): Oid {
  const fans = new Map<string, TreeEntry[]>()
  for (const [id, oid] of entries)
    fans.set(id.slice(0, 2), [...(fans.get(id.slice(0, 2)) ?? []), { mode, name: id.slice(2), oid }])
  const rows = [...fans].map(
    ([name, rest]): TreeEntry => ({ mode: '40000', name, oid: objects.write('tree', formatTree(rest)) }),
  )
  return objects.write('tree', formatTree(rows))
}

/** A tree met before below another directory has the same names in it. */
async function findSecrets(
  store: Store,
  tree: Oid,
  { at, seen, secrets }: { at: string; seen: Set<Oid>; secrets: Set<string> },
): Promise<void> {
  if (seen.has(tree)) return
  seen.add(tree)
  for (const { mode, name, oid } of (await store.trees.entries(tree)).values()) {
    const path = `${at}${name}`
    if (mode === '40000') await findSecrets(store, oid, { at: `${path}/`, seen, secrets })
    else if (looksSecret(path)) secrets.add(pathToText(path))
  }
}
