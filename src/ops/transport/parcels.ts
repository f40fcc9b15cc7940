/** Parcels of exports, imports, pushes and pulls: made with the name of who is at work in them. */
import type { Env } from '../../env.ts'
import { Parcel, type ParcelOptions } from '../../git/parcel.ts'
import { claimHalfMade, sweepHalfMade } from '../worktree/half-made.ts'
import { passOn } from '../worktree/signals.ts'

export function makeParcel(env: Env, options: Omit<ParcelOptions, 'claim' | 'heed'>): Promise<Parcel> {
  sweepHalfMade(env, options.within)
  const heed: ParcelOptions['heed'] = (git, told) => passOn(env, git, told)
  return Parcel.make(env, { ...options, claim: claimHalfMade(env, 'parcel'), heed })
}
