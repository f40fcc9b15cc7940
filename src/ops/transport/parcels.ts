/** Parcels of exports, imports, pushes and pulls: made with the name of who is at work in them, and removed when that one is gone. */
import type { Env } from '../../env.ts'
import { lstatIfThere } from '../../env.ts'
import { Parcel, type ParcelOptions, removeTree } from '../../git/parcel.ts'
import { holderState, readHolder, takeAtOnce } from '../worktree/lock.ts'

const PARCEL = /^parcel-[0-9a-f]+\.tmp$/
const OWNER = 'ckpt-owner'
/** Milliseconds: one that names nobody is being made, or was left by somebody long ago. */
const ABANDONED = 3600 * 1000

export async function makeParcel(env: Env, options: ParcelOptions): Promise<Parcel> {
  sweepParcels(env, options.within)
  const parcel = await Parcel.make(env, options)
  takeAtOnce(env, `${parcel.gitDir}/${OWNER}`, 'parcel')
  return parcel
}

/** Removes what killed commands left. */
export function sweepParcels(env: Env, within: string): void {
  const { files, now } = env
  for (const name of files.readdirSync(within)) {
    if (!PARCEL.test(name)) continue
    const path = `${within}/${name}`
    const holder = readHolder(env, `${path}/${OWNER}`)
    const stats = lstatIfThere(files, path)
    const isLeft =
      holder === null || holder === 'unreadable'
        ? stats !== null && now() - stats.mtimeMs > ABANDONED
        : holderState(env, holder) === 'dead'
    if (isLeft) removeTree(env, path)
  }
}
