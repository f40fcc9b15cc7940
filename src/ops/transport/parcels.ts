/** Parcels of exports, imports, pushes and pulls: made with the name of who is at work in them. */
import type { Env } from '../../env.ts'
import { Parcel, type ParcelOptions } from '../../git/parcel.ts'
import { claimHalfMade, sweepHalfMade } from '../worktree/half-made.ts'

export async function makeParcel(env: Env, options: ParcelOptions): Promise<Parcel> {
  sweepHalfMade(env, options.within)
  const parcel = await Parcel.make(env, options)
  claimHalfMade(env, 'parcel')(parcel.gitDir)
  return parcel
}
