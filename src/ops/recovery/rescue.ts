/** The checkpoint that an operation made before it wrote anything, when the journal that led to it is not to be believed. */
import { type Checkpoint, parseCheckpoint } from '../../core/checkpoint.ts'
import { isOid, type Oid } from '../../core/ids.ts'
import { sessionRef } from '../../git/history.ts'
import type { RefEdit } from '../../git/refs.ts'
import { keepObjects } from '../../git/side-refs.ts'
import type { Store } from '../../git/store.ts'
import { markerAfter, writeMarker } from '../worktree/boundary-marker.ts'
import type { Context } from '../worktree/context.ts'
import { readRefs } from '../worktree/sessions.ts'

/**
 * Gives the newest safety checkpoint that no ref reaches a ref of its own (git-fsck(1)); null: there is none. The caller
 * holds the worktree's lock.
 */
export async function rescueSafety(context: Context): Promise<Checkpoint | null> {
  const { store } = context
  const { stdout } = await store.tryGit([
    'fsck',
    '--unreachable',
    '--no-reflogs',
    '--no-progress',
    '--connectivity-only',
  ])
  let newest: Checkpoint | null = null
  for (const line of stdout.toString('latin1').split('\n')) {
    const oid = line.replace(/^unreachable commit /, '')
    const object = isOid(oid) ? await store.objects.read(oid) : null
    if (!object?.bytes.includes('\nCkpt-Kind: safety\n')) continue
    const one = parseCheckpoint(oid as Checkpoint['id'], object.bytes.toString('utf8'))
    if (!one.result && (newest === null || one.seq > newest.seq || (one.seq === newest.seq && one.time > newest.time)))
      newest = one
  }
  if (newest) await keepSafety(context, newest)
  return newest
}

/** Gives a safety checkpoint a ref, and what lies beside it another, unless it has them. */
export async function keepSafety(context: Context, safety: Checkpoint): Promise<void> {
  const { store } = context
  const ref = sessionRef(store, safety.session, `safety/${safety.seq}`)
  if ((await store.refs(ref)).some(({ oid }) => oid === safety.id)) return
  const { meta } = await readRefs(context)
  const keep = await keepObjects(store, meta, [safety.beside])
  await store.moveRefs([...(keep ? [keep] : []), { ref, from: null, to: safety.id }], { durable: true })
}

/** The checkpoint that an operation made before it wrote anything, by the refs that it was to move; no ref leads to it yet. */
export async function safetyOf(store: Store, refs: readonly RefEdit[]): Promise<Oid | null> {
  // Of a turn of its own it is that one's beginning.
  const to = (refs.find(({ ref }) => ref.includes('/safety/')) ?? refs.find(({ ref }) => ref.endsWith('/live')))?.to
  const result = to ? await store.objects.read(to) : null
  return result ? (parseCheckpoint(to!, result.bytes.toString('utf8')).parents[0] ?? null) : null
}

/** What the git hooks read follows from the refs. */
export async function markPending(context: Context): Promise<void> {
  const refs = await readRefs(context)
  const pending = [...refs.sessions.values()].find((one) => one.boundary)
  const marker = pending ? markerAfter(refs, pending.session, pending.boundary) : null
  writeMarker(context.env, context.store, marker)
}
