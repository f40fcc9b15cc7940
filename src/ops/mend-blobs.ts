/** Content that the store lacks or holds damaged, and that the disk has whole: written once more. */
import type { Oid } from '../core/ids.ts'
import type { PathState } from '../core/state.ts'
import { observe } from '../snapshot/disk.ts'
import type { Context } from './context.ts'

/** `states`: what the disk holds, by path (bytes). Whether that is enough is for the caller to prove. */
export async function mendFromDisk(
  { env, store, worktree }: Context,
  damaged: ReadonlySet<Oid>,
  states: Iterable<readonly [string, PathState]>,
): Promise<void> {
  await store.objects.distrusting(async () => {
    for (const [path, state] of states)
      if (state.kind === 'present' && damaged.has(state.oid)) observe(env, worktree.root, path, store.objects)
  })
}
