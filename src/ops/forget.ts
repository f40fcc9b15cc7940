/**
 * Forget: removes a path from every checkpoint of the store, and proves that its content is gone. The one command that
 * changes ids; old ones keep resolving.
 */
import { createHmac } from 'node:crypto'
import type { Beside } from '../core/beside.ts'
import { formatBeside, parseBeside } from '../core/beside.ts'
import { formatRecord, parseRecord } from '../core/boundary.ts'
import { type Checkpoint, parseCheckpoint } from '../core/checkpoint.ts'
import { CkptError, reasonOf, unlessDamaged } from '../core/errors.ts'
import { quoted, quotedPath } from '../core/hint-words.ts'
import type { Oid } from '../core/ids.ts'
import { barePath, isWithin, type RelativePath, shown } from '../core/paths.ts'
import type { Env } from '../env.ts'
import { worktreeNames } from '../git/frame.ts'
import { writeCheckpoint } from '../git/history.ts'
import type { RefEdit } from '../git/refs.ts'
import { fanout, metaTree, oidOfFanned, promptsTree, writePrompts } from '../git/side-refs.ts'
import type { Store } from '../git/store.ts'
import type { FileEntry } from '../git/trees.ts'
import { cacheFiles } from '../snapshot/cache.ts'
import { look } from '../snapshot/disk.ts'
import { collect, refuseDamagedPacks } from './prune/collect.ts'
import { lockedStore } from './recovery/locked.ts'
import { settleUnfinished } from './recovery/unfinished.ts'
import { noteForgetting, readForgetting } from './store/forgetting.ts'
import { refusePushed } from './store/pushed-refs.ts'
import { refuseStrayed } from './store/strayed.ts'
import { wasSent } from './transport/remembered.ts'
import { readMarker } from './worktree/boundary-marker.ts'
import type { Context } from './worktree/context.ts'
import { notYet, refsJournal, removeJournal, writeJournal } from './worktree/journal.ts'
import { readReplaced, writeReplaced } from './worktree/replaced.ts'

export interface ForgetResult {
  path: RelativePath
  /** Old and new ids of the checkpoints that changed. */
  replaced: [Oid, Oid][]
  /** Contents that are gone from the store. */
  blobs: number
  warnings: string[]
}

/** @throws CkptError USAGE, NOT_FOUND, LOCKED, DAMAGED */
export async function forget(context: Context, path: RelativePath | ''): Promise<ForgetResult> {
  const { env, store, place } = context
  if (path === '')
    throw new CkptError('USAGE', 'A file or directory can be forgotten, not the whole worktree. Nothing was changed.', {
      hints: ['ckpt list', `rm -r ${quotedPath(place.directory)}   (all checkpoints, and nothing else)`],
    })
  return lockedStore(context, { command: 'forget' }, async () => {
    await settleUnfinished(context)
    refuseDamagedPacks(context)
    await refuseStrayed(context)
    await refusePushed(context)
    const isSent = wasSent(context) // what cannot be read is said while nothing was changed
    const commits = await allCheckpoints(store)
    const held = await contentsOf(store, commits, path)
    const forgetting = readForgetting(env, store)
    const cutShort = forgetting ? forgetting.get(path) : new Set<Oid>()
    if (held === null && !cutShort) {
      // What a scan read is in no checkpoint yet. And packs that were linked hold the history of the person's repository,
      // also what was purged there.
      await dropScans(context)
      await collect(context)
      const swept = 'Contents that no checkpoint holds are gone from the store; no checkpoint was changed.'
      throw new CkptError('NOT_FOUND', `No checkpoint holds ${shown(path)}. ${swept}`, { hints: ['ckpt list'] })
    }
    const blobs = new Set([...(held ?? []), ...(cutShort ?? [])])
    const replaced = held === null ? new Map<Oid, Oid>() : await rewriteAll(context, path, commits)
    if (replaced.size > 0) {
      noteForgetting(env, store, { path, blobs })
      await moveTo(context, replaced)
    }
    await dropScans(context)
    await collect(context).catch((cause: unknown) => {
      throw notCollected(path, cause)
    })
    const left = await stillThere(store, blobs)
    noteForgetting(env, store, { path, blobs: null })
    if (left.length > 0) {
      context.warnings.push(
        `${left.length} of its contents stay in the store: other paths of kept checkpoints hold the same bytes.`,
      )
    }
    if (look(env, context.worktree.root, path) !== null) {
      context.warnings.push(`It is on disk still: the next snapshot takes it again, unless snapshot.exclude names it.`)
    }
    if (isSent) {
      context.warnings.push(
        'Checkpoints were sent to a remote, which has what it was sent until `ckpt push REMOTE` is run again, and then until its own gc.',
      )
    }
    return { path, replaced: [...replaced], blobs: blobs.size - left.length, warnings: context.warnings }
  })
}

/** Writes every checkpoint anew that holds the path, or follows one that does. Old and new ids. */
async function rewriteAll(
  { env, store }: Context,
  path: RelativePath,
  commits: readonly Checkpoint[],
): Promise<Map<Oid, Oid>> {
  const replaced = new Map<Oid, Oid>()
  const sign = signer(env)
  for (const [i, checkpoint] of commits.entries()) {
    await env.progress(`forgetting: ${i} of ${commits.length} checkpoints`)
    const next = await rewrite(store, checkpoint, { path, replaced, sign })
    if (next !== checkpoint.id) replaced.set(checkpoint.id, next)
  }
  return replaced
}

/** The refs go over to what was written anew. */
async function moveTo(context: Context, replaced: ReadonlyMap<Oid, Oid>): Promise<void> {
  const { env, store } = context
  const before = readReplaced(env, store)
  for (const [old, now] of before) before.set(old, replaced.get(now) ?? now)
  // Old ids first: whatever is killed after this, they resolve.
  await store.objects.syncFresh()
  writeReplaced(env, store, new Map([...before, ...replaced]))
  const edits = await refEdits(context, replaced)
  const cut = [...store.shallow].map((id) => replaced.get(id) ?? id)
  // Both, until the refs have moved: whichever they name, its history is cut where it was.
  store.writeShallow(new Set([...store.shallow, ...cut]))
  const marker = readMarker(env, store) // the same turns stay undone
  await writeJournal(env, store, refsJournal(env, { op: 'forget', session: '', refs: edits, marker }))
  await store.moveRefs(edits, { durable: true }).catch((error: unknown) => {
    throw notYet('The checkpoints were written anew, but not all refs could be moved', error)
  })
  removeJournal(env, store)
  store.writeShallow(new Set(cut))
}

function notCollected(path: RelativePath, cause: unknown): CkptError {
  const name = shown(path)
  return new CkptError(
    cause instanceof CkptError ? cause.code : 'INTERNAL',
    `No checkpoint holds ${name} any more, but its content is still in the store: ${reasonOf(cause)}`,
    { cause, hints: ['ckpt verify', `ckpt forget ${quoted(name)}   (goes on from there)`] },
  )
}

/** Every checkpoint that a ref reaches, parents before children. */
async function allCheckpoints(store: Store): Promise<Checkpoint[]> {
  const out = await store.git(['rev-list', '--topo-order', '--reverse', '--glob=refs/ckpt'])
  const found: Checkpoint[] = []
  for (const id of out.toString('latin1').split('\n')) {
    if (id === '') continue
    found.push(parseCheckpoint(id as Oid, (await store.objects.get(id as Oid, 'commit')).toString('utf8')))
  }
  return found
}

/** Null: no checkpoint has the path. */
async function contentsOf(store: Store, commits: readonly Checkpoint[], path: RelativePath): Promise<Set<Oid> | null> {
  const blobs = new Set<Oid>()
  let found = false
  for (const tree of new Set(commits.map((one) => one.tree))) {
    const entry = await store.trees.lookup(tree, path)
    found ||= entry !== null
    if (entry?.mode === '40000') for (const oid of await contentsBelow(store, entry.oid)) blobs.add(oid)
    else if (entry) blobs.add(entry.oid)
  }
  return found ? blobs : null
}

/** What a damaged directory held cannot be told; nothing names it any more once the directory is forgotten. */
async function contentsBelow(store: Store, tree: Oid): Promise<Oid[]> {
  const files = await unlessDamaged(() => store.trees.files(tree), new Map<string, FileEntry>())
  return [...files.values()].map(({ oid }) => oid)
}

/** Stands for what is forgotten: equal for equal contents, and nothing by which they could be known. */
type Sign = (content: Oid | null) => string

function signer(env: Env): Sign {
  const key = env.random(16)
  return (content) =>
    createHmac('sha256', key)
      .update(content ?? '')
      .digest('hex')
      .slice(0, 16)
}

async function rewrite(
  store: Store,
  checkpoint: Checkpoint,
  { path, replaced, sign }: { path: RelativePath; replaced: ReadonlyMap<Oid, Oid>; sign: Sign },
): Promise<Oid> {
  const tree = await store.trees.without(checkpoint.tree, path)
  const beside = await rewriteBeside(store, checkpoint, { path, sign })
  const record = checkpoint.record ? await rewriteRecord(store, checkpoint.record, { path, replaced }) : undefined
  // What was pruned is gone, and stays named: the history is cut there.
  const parents = checkpoint.parents.map((parent) => replaced.get(parent) ?? parent)
  const { id, tree: _tree, parents: _parents, ...meta } = checkpoint
  const same = tree === checkpoint.tree && beside === checkpoint.beside && record === checkpoint.record
  if (same && parents.every((parent, i) => parent === checkpoint.parents[i])) return id
  return writeCheckpoint(store, { tree, parents }, { ...meta, beside, ...(record ? { record } : {}) }).id
}

async function rewriteBeside(
  store: Store,
  checkpoint: Checkpoint,
  { path, sign }: { path: RelativePath; sign: Sign },
): Promise<Oid> {
  const beside = parseBeside(await store.objects.get(checkpoint.beside, 'blob'))
  const entry = await store.trees.lookup(checkpoint.tree, path)
  const before = beside.uncovered.find((one) => one.path === path && one.reason === 'not-here')?.print
  const print = entry ? sign(entry.oid) : (before ?? sign(null))
  const keep = (one: string) => !isWithin(barePath(one), path)
  const next: Beside = {
    ...beside,
    modes: new Map([...beside.modes].filter(([one]) => keep(one))),
    emptyDirectories: new Set([...beside.emptyDirectories].filter(keep)),
    // Forgotten is not absent: no undo may take it for deleted.
    uncovered: [...beside.uncovered.filter((one) => keep(one.path)), { path, reason: 'not-here', print }],
    ignored: new Map([...beside.ignored].filter(([one]) => keep(one))),
  }
  return store.objects.write('blob', formatBeside(next))
}

async function rewriteRecord(
  store: Store,
  oid: Oid,
  { path, replaced }: { path: RelativePath; replaced: ReadonlyMap<Oid, Oid> },
): Promise<Oid> {
  const record = parseRecord(await store.objects.get(oid, 'blob'))
  const units = record.units.map((unit) => ({
    ...unit,
    changes: unit.changes.filter((change) => !isWithin(barePath(change.path), path)),
  }))
  return store.objects.write(
    'blob',
    formatRecord({ ...record, units, baseline: replaced.get(record.baseline) ?? record.baseline }),
  )
}

async function refEdits({ store }: Context, replaced: ReadonlyMap<Oid, Oid>): Promise<RefEdit[]> {
  const tips = await store.refs('refs/ckpt/', 'refs/notes/ckpt/')
  const edits: RefEdit[] = []
  for (const { ref, oid, type } of tips) {
    const worktreeId = ref.split('/')[ref.startsWith('refs/notes/') ? 3 : 2]!
    if (ref.startsWith('refs/notes/')) edits.push({ ref, from: oid, to: await movedPrompts(store, oid, replaced) })
    else if (ref.endsWith('/@meta'))
      edits.push({ ref, from: oid, to: await metaFor(store.of(worktreeId), tips, replaced) })
    else if (type === 'commit' && replaced.has(oid)) edits.push({ ref, from: oid, to: replaced.get(oid)! })
  }
  return edits.filter((edit) => edit.from !== edit.to)
}

async function movedPrompts(store: Store, tip: Oid, replaced: ReadonlyMap<Oid, Oid>): Promise<Oid> {
  const notes = new Map<string, FileEntry>()
  for (const [path, entry] of await store.trees.files(await promptsTree(store, tip))) {
    const id = oidOfFanned(path)
    const now = replaced.get(id) ?? id
    notes.set(fanout(now), entry)
  }
  return writePrompts(store, await store.trees.edit(store.trees.empty, notes), 0)
}

/** What the rewritten checkpoints of one worktree need beside them. */
async function metaFor(
  store: Store,
  tips: readonly { ref: string; oid: Oid; type: string }[],
  replaced: ReadonlyMap<Oid, Oid>,
): Promise<Oid> {
  const heads = tips
    .filter(({ ref, type }) => type === 'commit' && ref.startsWith(store.refPrefix))
    .map(({ oid }) => replaced.get(oid) ?? oid)
  const needed: Checkpoint[] = []
  const seen = new Set<Oid>()
  for (const head of heads) {
    for (let id: Oid | undefined = head; id !== undefined && !seen.has(id); ) {
      seen.add(id)
      const object = await store.objects.read(id)
      if (!object) break // pruned: the history is cut there
      const checkpoint: Checkpoint = parseCheckpoint(id, object.bytes.toString('utf8'))
      needed.push(checkpoint)
      id = checkpoint.parents[0]
    }
  }
  return metaTree(store, needed)
}

/** The next scans read everything again: what they knew named the old trees. */
async function dropScans({ env, place, store }: Context): Promise<void> {
  for (const name of worktreeNames(env, place))
    for (const file of cacheFiles(env, `${place.directory}/worktrees/${name}`)) env.files.unlinkSync(file)
  const scans = (await store.refs('refs/ckpt/')).filter(({ ref }) => ref.endsWith('/@scan'))
  const edits = scans.map(({ ref, oid }) => ({ ref, from: oid, to: null }))
  if (edits.length > 0) await store.moveRefs(edits, { durable: true })
}

async function stillThere(store: Store, blobs: ReadonlySet<Oid>): Promise<Oid[]> {
  if (blobs.size === 0) return []
  const out = await store.git(['cat-file', '--batch-check=%(objectname) %(objecttype)'], {
    input: `${[...blobs].join('\n')}\n`,
  })
  return out
    .toString('latin1')
    .split('\n')
    .filter((line) => line.endsWith(' blob'))
    .map((line) => line.split(' ')[0] as Oid)
}
