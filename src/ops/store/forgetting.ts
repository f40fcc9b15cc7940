/** Paths whose content is not proved gone yet: noted before `forget` changes anything, until it is. */
import * as z from 'zod/mini'
import type { Oid } from '../../core/ids.ts'
import type { Env } from '../../env.ts'
import type { Store } from '../../git/store.ts'
import { readIfThere, removeIfThere, writeFileWhole } from '../../git/whole-file.ts'

const fileSchema = z.array(z.tuple([z.string(), z.array(z.string())]))

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
  const found = fileSchema.safeParse(rows)
  return found.success ? new Map(found.data.map(([path, blobs]) => [path, new Set(blobs as Oid[])])) : null
}

/** Null: they are gone. */
export function noteForgetting(env: Env, store: Store, path: string, blobs: ReadonlySet<Oid> | null): void {
  const all = readForgetting(env, store) ?? new Map<string, Set<Oid>>()
  if (blobs) all.set(path, new Set([...(all.get(path) ?? []), ...blobs]))
  else all.delete(path)
  if (all.size === 0) removeIfThere(env, fileOf(store))
  else writeFileWhole(env, fileOf(store), JSON.stringify([...all].map(([one, ids]) => [one, [...ids]])))
}
