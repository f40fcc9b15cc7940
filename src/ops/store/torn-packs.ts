/** Packs of which a power cut took the bytes before they were synced: nothing was to rest on them yet. */
import { errno, statIfThere } from '../../env.ts'
import { isUnreadablePack } from '../../git/checksum.ts'
import { forgetUnsynced, unsyncedPacks } from '../../git/unsynced.ts'
import type { Context } from '../worktree/context.ts'
import { isFromBefore } from '../worktree/processes.ts'

/**
 * Names, without a suffix, of those that git can read nothing of. What is left of others may be needed after all, for the
 * daemon moves refs before it syncs: doctor and prune see to them.
 */
export function tornPacks({ env, store }: Context): string[] {
  return unsyncedPacks(env.files, store.gitDir).filter((pack) => {
    const path = `${store.gitDir}/objects/pack/${pack}`
    const index = statIfThere(env.files, `${path}.idx`)
    try {
      // One that was made since is somebody's, who may be about to put the rest of it there.
      return index !== null && isFromBefore(env, index.mtimeMs) && isUnreadablePack(env.files, path, store.objects)
    } catch (error) {
      if (errno(error) === undefined) throw error
      return false // what cannot be looked at is not known to be torn
    }
  })
}

/** Sets them aside: git complains of each as long as it is there. Returns what to tell the person. The caller holds the worktree's lock. */
export function setTornAside(context: Context): string[] {
  const said = tornPacks(context).map((pack) => `${setPackAside(context, pack)}.`)
  if (said.length > 0) context.store.objects.forget()
  return said
}

/** The index first: without it git does not look at the pack. Says where it is. */
export function setPackAside({ env, place, store }: Context, pack: string): string {
  const aside = `${place.directory}/${pack}.damaged-${env.random(4)}`
  for (const suffix of ['idx', 'pack']) {
    const path = `${store.gitDir}/objects/pack/${pack}.${suffix}`
    if (env.files.existsSync(path)) env.files.renameSync(path, `${aside}.${suffix}`)
  }
  forgetUnsynced(env, store.gitDir, pack)
  store.announce()
  return `${pack}, which was not synced when the power failed, is ${aside}.pack now`
}
