/** Frees the space of what no ref reaches any more. */
import { CkptError } from '../../core/errors.ts'
import type { Env } from '../../env.ts'
import { packFiles, packsDirectory } from '../../git/packs.ts'
import { sweepUnsynced, unsyncedPacks } from '../../git/unsynced-packs.ts'
import { removeIfThere, syncIfThere } from '../../git/whole-file.ts'
import { damagedPackFiles, readLoose, unseenPacks, withoutSuffix } from '../store/verify-objects.ts'
import type { Context } from '../worktree/context.ts'
import { holdTogether } from '../worktree/lock.ts'

/**
 * To pack anew drops the old packs, and with one that is damaged what can be read of it still. What was not synced when the
 * power failed goes, unless something rests on it after all: then git cannot pack. @throws CkptError DAMAGED
 */
export function refuseDamagedPacks(context: Context): void {
  const damaged = damagedPackFiles(context)
  const torn = unsyncedPacks(context.env.files, context.store.gitDir).filter((name) => damaged.includes(`${name}.pack`))
  const bad = damaged.filter((name) => !torn.includes(withoutSuffix(name)))
  if (bad.length === 0) return
  throw new CkptError(
    'DAMAGED',
    `The store's ${bad.join(', ')} cannot be relied on: missing, or not the bytes it was written with. Nothing was removed.`,
    { hints: ['ckpt doctor --fix   (makes the index of a whole pack anew)', 'ckpt verify   (names what is lost)'] },
  )
}

/**
 * Packs what is reachable and drops the rest: loose objects, linked packs, what killed processes left. The caller holds the
 * store's lock; the gits that drop objects hold it too, for what others write meanwhile is reached by no ref yet.
 */
export async function collect(context: Context): Promise<void> {
  const { env, store, place } = context
  const begun = (pid: number) => holdTogether(env, `${place.directory}/lock`, pid)
  // What the old packs held is in the new one before they go, also where the power fails.
  const synced = ['-c', 'core.fsync=pack,pack-metadata']
  const git = async (...args: string[]) => {
    await store.git([...synced, ...args], { begun })
    syncIfThere(env, `${store.gitDir}/shallow`) // git writes it anew, and syncs it never
  }
  const repack = () => {
    sweepLeftovers(env, store.gitDir)
    return git('repack', '-a', '-d', '-q', '--no-write-bitmap-index')
  }
  const drop = () => git('prune', '--expire=now')
  // A newer git reads what it is to drop, and stops at what the power left of an object.
  const dropDamaged = async (cause: unknown) => {
    const { damaged } = readLoose(context)
    if (damaged.size === 0) throw cause
    for (const oid of damaged.keys()) removeIfThere(env, store.objects.loosePath(oid))
    await drop()
  }
  store.announce()
  await repack().catch(async (cause: unknown) => {
    // On a full disk there is no room for the new pack until what nothing reaches has gone.
    await drop().catch(() => {
      throw cause
    })
    await repack()
  })
  await drop().catch(dropDamaged) // by now a pack has all that a ref reaches
  sweepAlone(env, store.gitDir)
  sweepUnsynced(env, store.gitDir, store.objects)
  store.announce()
}

function sweepLeftovers(env: Env, gitDir: string): void {
  const { files } = env
  const [objects, packs] = [`${gitDir}/objects`, packsDirectory(gitDir)]
  const inPacks = packFiles(files, gitDir)
  removeIfThere(env, `${gitDir}/shallow.lock`) // git writes it under the store's lock alone, which is ours
  // Before the indexes that tell of them.
  for (const name of unseenPacks(inPacks)) removeIfThere(env, `${packs}/${name}.pack`)
  for (const [directory, names] of [
    [objects, files.readdirSync(objects)],
    [packs, inPacks],
  ] as const)
    for (const name of names) if (/^(tmp_|\.tmp-)/.test(name)) removeIfThere(env, `${directory}/${name}`)
}

/**
 * What went with a pack, of which a git that was killed removed the pack alone. What refs reach is in the new one. Returns
 * what was removed.
 */
export function sweepAlone(env: Env, gitDir: string): string[] {
  const packs = packsDirectory(gitDir)
  const alone = packFiles(env.files, gitDir).filter((name) => {
    const pack = /^(pack-[0-9a-f]+)\.(idx|rev|bitmap|mtimes|promisor)$/.exec(name)?.[1]
    return pack !== undefined && !env.files.existsSync(`${packs}/${pack}.pack`)
  })
  for (const name of alone) removeIfThere(env, `${packs}/${name}`)
  return alone
}
