/**
 * Two refs that go along with checkpoints: prompts as git notes (git-notes(1); plain `git log` in the store shows them),
 * and one tree for each worktree that keeps the objects beside checkpoints reachable.
 */
import { parseRecord, recordObjects } from '../core/boundary.ts'
import type { Checkpoint } from '../core/checkpoint.ts'
import { isDamage, unlessDamaged } from '../core/errors.ts'
import type { Oid } from '../core/ids.ts'
import { parseOid } from '../core/ids.ts'
import { metaRef } from './history.ts'
import type { RefEdit } from './refs.ts'
import type { Store } from './store.ts'
import type { FileEntry } from './trees.ts'

/** Where git's notes, and what lies beside checkpoints, have the entry of an id: two digits are a directory. */
export const fanout = (oid: Oid) => `${oid.slice(0, 2)}/${oid.slice(2)}`

/** The id whose entry that is. */
export const oidOfFanned = (path: string) => path.replace('/', '') as Oid

/** The tree of a commit of prompts. */
export async function promptsTree(store: Store, commit: Oid): Promise<Oid> {
  const text = (await store.objects.get(commit, 'commit')).toString('latin1')
  return parseOid(text.slice('tree '.length, text.indexOf('\n')))
}

/** The edit that attaches a prompt to a `before` checkpoint. */
export async function addPrompt(
  store: Store,
  tip: Oid | null,
  { before, text, seconds }: { before: Oid; text: string; seconds: number },
): Promise<RefEdit> {
  const blob = store.objects.write('blob', Buffer.from(text, 'utf8'))
  const tree = await store.trees.edit(
    tip === null ? store.trees.empty : await promptsTree(store, tip),
    new Map([[fanout(before), { mode: '100644', oid: blob } satisfies FileEntry]]),
  )
  return { ref: store.notesRef, from: tip, to: writePrompts(store, tree, seconds) }
}

/** The commit that holds what is left of a commit's prompts. */
export async function withoutPrompts(store: Store, tip: Oid, befores: readonly Oid[]): Promise<Oid> {
  const gone = new Map(befores.map((before) => [fanout(before), null]))
  return writePrompts(store, await store.trees.edit(await promptsTree(store, tip), gone), 0)
}

/** The commit that holds prompts. */
export function writePrompts(store: Store, tree: Oid, seconds: number): Oid {
  return store.objects.write(
    'commit',
    Buffer.from(
      // No parent: a note's history would keep the text of prompts that were pruned.
      `tree ${tree}\nauthor ckpt <ckpt@localhost> ${seconds} +0000\ncommitter ckpt <ckpt@localhost> ${seconds} +0000\n\nprompts\n`,
    ),
  )
}

/** Reads prompts; the text of a checkpoint without one is null, and so is one that is damaged, of which `lost` hears. */
export async function promptReader(
  store: Store,
  tip: Oid | null,
  lost: () => void = () => undefined,
): Promise<(before: Oid) => Promise<string | null>> {
  if (tip === null) return async () => null
  const unlessLost = <T>(read: () => Promise<T>): Promise<T | null> =>
    read().catch((error: unknown) => {
      if (!isDamage(error)) throw error
      lost()
      return null
    })
  const tree = await unlessLost(() => promptsTree(store, tip))
  if (tree === null) return async () => null
  return (before) =>
    unlessLost(async () => {
      const entry = await store.trees.lookup(tree, fanout(before))
      return entry && (await store.objects.get(entry.oid, 'blob')).toString('utf8')
    })
}

/** What an undo's record names; nothing, where the record is lost. */
export function recordedObjects(store: Store, record: Oid): Promise<ReadonlySet<Oid>> {
  return unlessDamaged(async () => recordObjects(parseRecord(await store.objects.get(record, 'blob'))), new Set())
}

/** The tree that keeps reachable what lies beside these checkpoints. */
export async function metaTree(
  store: Store,
  checkpoints: Iterable<Pick<Checkpoint, 'beside' | 'record'>>,
): Promise<Oid> {
  const needed = new Map<string, FileEntry>()
  const add = (oid: Oid) => needed.set(fanout(oid), { mode: '100644', oid })
  for (const { beside, record } of checkpoints) {
    add(beside)
    if (!record) continue
    add(record)
    for (const oid of await recordedObjects(store, record)) add(oid)
  }
  if (needed.size === 0) return store.objects.write('tree', Buffer.alloc(0)) // it is nobody's subtree, and so not there yet
  return store.trees.edit(store.trees.empty, needed)
}

/** The edit that keeps objects reachable; null when they are all kept already. */
export async function keepObjects(store: Store, meta: Oid | null, oids: Iterable<Oid>): Promise<RefEdit | null> {
  const tree = meta ?? store.trees.empty
  const edits = new Map<string, FileEntry>()
  for (const oid of oids) {
    if (!(await store.trees.lookup(tree, fanout(oid)))) edits.set(fanout(oid), { mode: '100644', oid })
  }
  if (edits.size === 0) return null
  const next = await store.trees.edit(tree, edits)
  return { ref: metaRef(store), from: meta, to: next }
}
