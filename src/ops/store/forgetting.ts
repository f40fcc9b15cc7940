/** Paths whose content is not proved gone yet: noted before `forget` changes anything, until it is. */
import type { Oid } from '../../core/ids.ts'
import type { Env } from '../../env.ts'
import type { Store } from '../../git/store.ts'
import { readIfThere, removeIfThere, writeFileWhole } from '../../git/whole-file.ts'

type Row = [path: string, blobs: Oid[]]

/** By hand: every command looks here, and a schema's library takes longer to load than most of them run. */
const isRow = (row: unknown): row is Row =>
  Array.isArray(row) &&
  row.length === 2 &&
  Array.isArray(row[1]) &&
  [row[0], ...row[1]].every((one) => typeof one === 'string')

const fileOf = (store: Store) => `${store.place.directory}/forgetting.json`

/** Ids of the contents that each path had. Null: something was cut short, and what cannot be read. */
export function readForgetting(env: Env, store: Store): Map<string, Set<Oid>> | null {
  const text = readIfThere(env, fileOf(store))?.toString('utf8') ?? '[]'
  let rows: unknown
  try {
    rows = JSON.parse(text)
  } catch {
    return null
  }
  return Array.isArray(rows) && rows.every(isRow) ? new Map(rows.map(([path, blobs]) => [path, new Set(blobs)])) : null
}

/** Null: they are gone. */
export function noteForgetting(
  env: Env,
  store: Store,
  { path, blobs }: { path: string; blobs: ReadonlySet<Oid> | null },
): void {
  const all = readForgetting(env, store) ?? new Map<string, Set<Oid>>()
  if (blobs) all.set(path, new Set([...(all.get(path) ?? []), ...blobs]))
  else all.delete(path)
  if (all.size === 0) removeIfThere(env, fileOf(store))
  else writeFileWhole(env, fileOf(store), { content: JSON.stringify([...all].map(([one, ids]) => [one, [...ids]])) })
}
