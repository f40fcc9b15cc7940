/** What somebody pushed to a store, which is no remote: it is not the store's, and none of it can be read as a checkpoint. */
import type { Oid } from '../../core/ids.ts'
import { isParcelRef } from '../../git/parcel.ts'
import { tipsFile } from '../../git/tips.ts'
import { removeIfThere } from '../../git/whole-file.ts'
import type { Context } from '../worktree/context.ts'

export interface PushedRef {
  ref: string
  oid: Oid
}

export async function pushedRefs({ store }: Context): Promise<PushedRef[]> {
  const { stdout } = await store.tryGit(['for-each-ref', '--format=%(refname) %(objectname)', 'refs/ckpt/'])
  return stdout
    .toString('latin1')
    .split('\n')
    .map((row) => row.split(' '))
    .flatMap(([ref = '', oid]) => (isParcelRef(ref) ? [{ ref, oid: oid as Oid }] : []))
}

/** One sentence for each. */
export const toldPushed = (refs: readonly PushedRef[]): string[] =>
  refs.map(({ ref }) => `${ref} was pushed to this store, which is no remote`)

/** Returns one sentence for each. The caller holds the worktree's lock. */
export async function takeOut({ env, place, store }: Context, refs: readonly PushedRef[]): Promise<string[]> {
  for (const { ref, oid } of refs) {
    await store.git(['update-ref', '-d', ref, oid])
    removeIfThere(env, tipsFile(place.directory, ref.split('/')[2]!)) // a doctor that took it for one of the store's
  }
  await store.moveRefs([]) // whoever keeps refs in memory reads them again
  return refs.map(
    ({ ref, oid }) => `${ref}, which was pushed here, is gone: ${oid.slice(0, 10)} goes with the next prune`,
  )
}
