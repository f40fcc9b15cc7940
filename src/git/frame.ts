/** The files of a store without which git takes it for none, and how to get them back. */
import type { Env } from '../env.ts'
import { removeTree } from './parcel.ts'
import { makeFrame, type StorePlace } from './store.ts'
import { readIfThere } from './whole-file.ts'

/** Files that git wants to see before it takes a directory for a repository; they never change. */
const FRAME = { HEAD: /^ref: refs\//, config: /^\[core\]/ }

/** Of those, the ones that are missing or are not what git wrote. */
export function brokenFrame(env: Env, { directory }: StorePlace): string[] {
  return Object.entries(FRAME).flatMap(([name, form]) =>
    form.test(readIfThere(env, `${directory}/store.git/${name}`)?.toString('latin1') ?? '') ? [] : [name],
  )
}

/** Writes anew what {@link brokenFrame} names. */
export async function mendFrame(env: Env, place: StorePlace): Promise<void> {
  const { files } = env
  const fresh = await makeFrame(env, place)
  for (const name of brokenFrame(env, place))
    files.renameSync(`${fresh}/${name}`, `${place.directory}/store.git/${name}`)
  removeTree(env, fresh)
}
