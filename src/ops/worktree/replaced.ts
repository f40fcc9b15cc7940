/** Ids that `forget` changed: old → new, so that old ones keep resolving. */
import { turnId } from '../../core/checkpoint.ts'
import { isOid, type Oid } from '../../core/ids.ts'
import type { Env } from '../../env.ts'
import type { Store } from '../../git/store.ts'
import { readIfThere, writeFileWhole } from '../../git/whole-file.ts'

const fileOf = (store: Store) => `${store.place.directory}/replaced`

export function readReplaced(env: Env, store: Store): Map<Oid, Oid> {
  const pairs = linesOf(env, store).map((line) => line.split(' '))
  return new Map(pairs.filter(([old = '', now = '']) => isOid(old) && isOid(now)) as [Oid, Oid][])
}

/** An id, or the one that it has since `ckpt forget` changed it. */
export function presentIds(env: Env, store: Store): (id: Oid) => Oid {
  const replaced = readReplaced(env, store)
  const since = (id: Oid): Oid => (replaced.has(id) ? since(replaced.get(id)!) : id)
  return since
}

/** How many of its lines say nothing. */
export const unreadReplaced = (env: Env, store: Store): number =>
  linesOf(env, store).length - readReplaced(env, store).size

const linesOf = (env: Env, store: Store): string[] =>
  (readIfThere(env, fileOf(store))?.toString('latin1') ?? '').split('\n').filter(Boolean)

export function writeReplaced(env: Env, store: Store, replaced: ReadonlyMap<Oid, Oid>): void {
  const text = [...replaced].map(([old, now]) => `${old} ${now}\n`).join('')
  writeFileWhole(env, fileOf(store), { content: text })
}

/** The ids of now for those that begin with a prefix and were replaced. */
export function replacedBy(env: Env, store: Store, prefix: string): Oid[] {
  return [...readReplaced(env, store)].filter(([old]) => old.startsWith(prefix)).map(([, now]) => now)
}

/** A turn's id and the one that it has since, for it comes of its first checkpoint's; a number stays. */
export function turnIds(env: Env, store: Store, id: string): Set<string> {
  const since = id.startsWith('t') ? replacedBy(env, store, id.slice(1)) : []
  return new Set([id, ...since.map(turnId)])
}
