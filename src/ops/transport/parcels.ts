/** Parcels of exports, imports, pushes and pulls: made with the name of who is at work in them. */
import type { Env } from '../../env.ts'
import { Parcel, type ParcelOptions } from '../../git/parcel.ts'
import { claimHalfMade, sweepHalfMade } from '../worktree/half-made.ts'

export function makeParcel(env: Env, options: Omit<ParcelOptions, 'claim'>): Promise<Parcel> {
  sweepHalfMade(env, options.within)
  return Parcel.make(env, { ...options, claim: claimHalfMade(env, 'parcel') })
}
