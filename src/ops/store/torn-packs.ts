/** Packs of which a power cut took bytes before they were synced: nothing was to rest on them yet. */

import { CkptError } from '../../core/errors.ts'
import { errno, statIfThere } from '../../env.ts'
import { unreadablePart } from '../../git/checksum.ts'
import { packsDirectory } from '../../git/packs.ts'
import { forgetUnsynced, unsyncedPacks } from '../../git/unsynced-packs.ts'
import { removeTree } from '../../git/whole-file.ts'
import type { Context } from '../worktree/context.ts'
import { isFromBefore } from '../worktree/processes.ts'

interface Torn {
  /** Without a suffix. */
  pack: string
  lost: 'pack' | 'index'
}

/**
 * Those that git can read nothing of. What is left of others may be needed after all, for the daemon moves refs before it
 * syncs: doctor and prune see to them.
 */
export function tornPacks({ env, store }: Context): Torn[] {
  return unsyncedPacks(env.files, store.gitDir).flatMap((pack): Torn[] => {
    const path = `${packsDirectory(store.gitDir)}/${pack}`
    const index = statIfThere(env.files, `${path}.idx`)
    // One that was made since is somebody's, who may be about to put the rest of it there.
    if (index === null || !isFromBefore(env, index.mtimeMs)) return []
    try {
      const lost = unreadablePart(env.files, path, store.objects)
      return lost === null ? [] : [{ pack, lost }]
    } catch (error) {
      if (errno(error) === undefined) throw error
      return [] // what cannot be looked at is not known to be torn
    }
  })
}

/**
 * Git complains of each as long as it is there: they are set aside, and an index that alone is lost is made anew, for
 * something may rest on its pack. Returns what to tell the person. The caller holds the worktree's lock.
 */
export async function mendTorn(context: Context): Promise<string[]> {
  const said: string[] = []
  for (const { pack, lost } of tornPacks(context)) {
    if (lost === 'pack') said.push(`${setPackAside(context, pack)}.`)
    else if (await canIndex(context, pack))
      said.push(`The index of ${pack}, which was not synced when the power failed, was made anew.`)
  }
  if (said.length > 0) context.store.objects.forget()
  return said
}

/** Where it cannot be done nothing else fails for it: doctor says why. */
async function canIndex(context: Context, pack: string): Promise<boolean> {
  try {
    await indexAnew(context, pack)
    return true
  } catch (error) {
    if (error instanceof CkptError || errno(error) !== undefined) return false
    throw error
  }
}

/** Makes the index of a whole pack anew (git-index-pack(1)). `pack`: without a suffix. */
export async function indexAnew({ env, store }: Context, pack: string): Promise<void> {
  const path = `${packsDirectory(store.gitDir)}/${pack}`
  const temporary = `${packsDirectory(store.gitDir)}/tmp_idx_${env.random(6)}.idx`
  const empty = `${store.worktreeDir}/tmp/${env.random(6)}`
  env.files.mkdirSync(empty, { recursive: true, mode: 0o700 })
  try {
    // Not among the store's objects, where git would look through the damaged index.
    const vars = { GIT_OBJECT_DIRECTORY: empty }
    await store.git(['index-pack', '--no-rev-index', '-o', temporary, `${path}.pack`], { vars })
  } finally {
    removeTree(env, empty)
  }
  env.files.renameSync(temporary, `${path}.idx`)
}

/** The index first: without it git does not look at the pack. Says where it is. */
export function setPackAside({ env, place, store }: Context, pack: string): string {
  const aside = `${place.directory}/${pack}.damaged-${env.random(4)}`
  for (const suffix of ['idx', 'pack']) {
    const path = `${packsDirectory(store.gitDir)}/${pack}.${suffix}`
    if (env.files.existsSync(path)) env.files.renameSync(path, `${aside}.${suffix}`)
  }
  forgetUnsynced(env, store.gitDir, pack)
  store.announce()
  return `${pack}, which was not synced when the power failed, is ${aside}.pack now`
}
