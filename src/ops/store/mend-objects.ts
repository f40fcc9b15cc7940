/** Objects that the store lacks or holds damaged, and that the disk or the user's repository has whole: written once more. */
import type { Oid } from '../../core/ids.ts'
import type { PathState } from '../../core/state.ts'
import type { ObjectType, PackObject } from '../../git/pack.ts'
import { observe, onlyNames } from '../../snapshot/disk.ts'
import type { Context } from '../worktree/context.ts'
import { readLoose } from './verify-objects.ts'

/** `states`: what the disk holds, by path (bytes). Whether that is enough is for the caller to prove. */
export async function mendObjects(
  context: Context,
  damaged: ReadonlySet<Oid>,
  states: Iterable<readonly [string, PathState]>,
): Promise<void> {
  const { env, store, worktree } = context
  const onDisk = new Map<Oid, string>()
  for (const [path, state] of states)
    if (state.kind === 'present' && damaged.has(state.oid)) onDisk.set(state.oid, path)
  const others = [...damaged].filter((oid) => !onDisk.has(oid))
  await store.objects.distrusting(async () => {
    for (const path of onDisk.values()) observe(env, { root: worktree.root, path }, store.objects)
    for await (const { type, bytes } of inRepository(context, others)) store.objects.write(type, bytes)
  })
}

/** Loose objects that are there in files that hold more than that, which git does not take. */
export async function rewriteSpilled(context: Context): Promise<Oid[]> {
  const { objects } = context.store
  const { spilled } = readLoose(context)
  await objects.distrusting(async () => {
    for (const { type, bytes } of spilled.values()) objects.write(type as ObjectType, bytes)
  })
  await objects.syncFresh()
  return [...spilled.keys()]
}

/** Those that the user's repository has whole: what was committed or staged. */
export async function* inRepository({ store, repository }: Context, oids: readonly Oid[]): AsyncGenerator<PackObject> {
  if (oids.length > 0 && repository?.hash === store.objects.hash)
    yield* store.objects.elsewhere(`${repository.commonDir}/objects`, oids)
}

/** The state of a file on disk that is an object's content, else null; nothing is written. */
export function diskHolds({ env, store, worktree }: Context, path: string, oid: Oid): PathState | null {
  const state = observe(env, { root: worktree.root, path }, onlyNames(store.objects))
  return state.kind === 'present' && state.oid === oid ? state : null
}
