/** What somebody pushed to a store, which is no remote: refs that are not the store's own, and nobody reads. */
import { CkptError, unlessDamaged } from '../../core/errors.ts'
import type { Oid } from '../../core/ids.ts'
import { printable } from '../../core/paths.ts'
import { tipsFile, worktreeOf } from '../../git/tips.ts'
import { removeIfThere } from '../../git/whole-file.ts'
import type { Context } from '../worktree/context.ts'

export interface PushedRef {
  ref: string
  oid: Oid
}

export async function pushedRefs(context: Context): Promise<PushedRef[]> {
  const refs = await context.store.git(['for-each-ref', '--format=%(refname) %(objectname)'])
  const found: PushedRef[] = []
  for (const row of refs.toString('utf8').split('\n').filter(Boolean)) {
    const [ref = '', oid] = row.split(' ')
    const one = { ref, oid: oid as Oid }
    if (!(await isOwn(context, one))) found.push(one)
  }
  return found
}

/** By its name, and by what it names: a later ckpt may have checkpoints that we cannot read, and names that we do not know. */
async function isOwn({ store }: Context, { ref, oid }: PushedRef): Promise<boolean> {
  if (/^refs\/notes\/ckpt\/[^/]+$/.test(ref) || /^refs\/ckpt\/[^/]+\/@(?!main$)[^/]+$/.test(ref)) return true
  if (!/^refs\/ckpt\/[^/]+\/[^/]+\/./.test(ref)) return false
  const object = await unlessDamaged(() => store.objects.read(oid), null)
  return object?.type !== 'commit' || object.bytes.includes('\nCkpt-')
}

/** One sentence for each. */
export const toldPushed = (refs: readonly PushedRef[]): string[] =>
  refs.map(({ ref }) => `${printable(ref)} was pushed to this store, which is no remote`)

/** @throws CkptError DAMAGED */
export async function refusePushed(context: Context): Promise<void> {
  const [said] = toldPushed(await pushedRefs(context))
  if (said === undefined) return
  throw new CkptError('DAMAGED', `${said}: what it holds would stay. Nothing was changed.`, {
    hints: ['ckpt doctor --fix   (takes it out)'],
  })
}

/** Returns one sentence for each. The caller holds the worktree's lock. */
export async function takeOut({ env, place, store }: Context, refs: readonly PushedRef[]): Promise<string[]> {
  for (const { ref, oid } of refs) await store.git(['update-ref', '-d', ref, oid])
  const left = (await store.git(['for-each-ref', '--format=%(refname)'])).toString('utf8').split('\n')
  const worktrees = new Set(left.flatMap((ref) => worktreeOf(ref) ?? []))
  // A doctor of before took them for a worktree's.
  for (const { ref } of refs) {
    const worktree = worktreeOf(ref)
    if (worktree !== null && !worktrees.has(worktree)) removeIfThere(env, tipsFile(place.directory, worktree))
  }
  await store.moveRefs([]) // whoever keeps refs in memory reads them again
  return refs.map(
    ({ ref, oid }) => `${printable(ref)}, which was pushed here, is gone: ${oid.slice(0, 10)} goes with the next prune`,
  )
}
