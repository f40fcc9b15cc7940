/** Frees the space of what no ref reaches any more. */
import { CkptError } from '../../core/errors.ts'
import { errno } from '../../env.ts'
import { sweepUnsynced } from '../../git/unsynced.ts'
import { damagedPackFiles } from '../store/verify-objects.ts'
import type { Context } from '../worktree/context.ts'

/** To pack anew drops the old packs, and with one that is damaged what can be read of it still. @throws CkptError DAMAGED */
export function refuseDamagedPacks(context: Context): void {
  const bad = damagedPackFiles(context)
  if (bad.length === 0) return
  throw new CkptError(
    'DAMAGED',
    `The store's ${bad.join(', ')} cannot be relied on: missing, or not the bytes it was written with. Nothing was removed.`,
    { hints: ['ckpt doctor --fix   (makes the index of a whole pack anew)', 'ckpt verify   (names what is lost)'] },
  )
}

/** Packs what is reachable and drops the rest: loose objects, linked packs, what killed processes left. */
export async function collect({ env, store }: Context): Promise<void> {
  const repack = () => {
    sweepLeftovers(env.files, `${store.gitDir}/objects`)
    return store.git(['repack', '-a', '-d', '-q', '--no-write-bitmap-index'])
  }
  const drop = () => store.git(['prune', '--expire=now'])
  await repack().catch(async (cause: unknown) => {
    // On a full disk there is no room for the new pack until what nothing reaches has gone.
    await drop().catch(() => {
      throw cause
    })
    await repack()
  })
  await drop()
  sweepUnsynced(env, store.gitDir)
  store.announce()
}

function sweepLeftovers(files: Context['env']['files'], objects: string): void {
  for (const directory of [objects, `${objects}/pack`]) {
    for (const name of files.readdirSync(directory)) {
      if (!/^(tmp_|\.tmp-)/.test(name)) continue
      try {
        files.unlinkSync(`${directory}/${name}`)
      } catch (error) {
        if (errno(error) !== 'ENOENT') throw error
      }
    }
  }
}
