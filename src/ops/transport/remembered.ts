/** What was sent to remotes and got from them, so that only what is new goes again. */
import { createHash } from 'node:crypto'
import { isOid, type Oid } from '../../core/ids.ts'
import type { ParcelRef } from '../../git/parcel.ts'
import { readIfThere, writeFileWhole } from '../../git/whole-file.ts'
import type { Context } from '../worktree/context.ts'

type Memory = 'sent' | 'got'

export function memory({ env, place }: Context, what: Memory): { key: string; ref: string; oid: Oid }[] {
  const text = readIfThere(env, `${place.directory}/${what}`)?.toString('latin1') ?? ''
  return text.split('\n').flatMap((line) => {
    const [key = '', ref = '', oid = ''] = line.split(' ')
    return isOid(oid) ? [{ key, ref, oid }] : []
  })
}

/** Whether checkpoints went to any remote. */
export const wasSent = (context: Context): boolean => memory(context, 'sent').length > 0

/** What a remote's refs were when we last spoke to it. A URL may hold a password: only its digest is kept. */
export function remembered(context: Context, what: Memory, url: string): Map<string, Oid> {
  const rows = memory(context, what).filter(({ key }) => key === keyOf(url))
  return new Map(rows.map(({ ref, oid }) => [ref, oid]))
}

const keyOf = (url: string) => createHash('sha256').update(url).digest('hex').slice(0, 16)

/** `beside`: what it was stays remembered. */
export function remember(
  context: Context,
  what: Memory,
  { url, refs, beside = false }: { url: string; refs: readonly ParcelRef[]; beside?: boolean },
): void {
  if (refs.length === 0) return
  const key = keyOf(url)
  const names = new Set(refs.map(({ ref }) => ref))
  const kept = memory(context, what).filter((row) => beside || row.key !== key || !names.has(row.ref))
  const rows = [...kept, ...refs.map(({ ref, oid }) => ({ key, ref, oid }))]
  const lines = new Set(rows.map((row) => `${row.key} ${row.ref} ${row.oid}\n`)) // a push may be tried again and again
  writeFileWhole(context.env, `${context.place.directory}/${what}`, { content: [...lines].join('') })
}
