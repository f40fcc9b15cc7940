/**
 * What linked worktrees that were removed leave beside their checkpoints, which stay: nobody scans there again, nor watches.
 * If one comes back after all, its next scan takes longer.
 */
import { type Env, lstatIfThere } from '../../env.ts'
import { worktreeNames } from '../../git/frame.ts'
import { removeIfThere, removeTree } from '../../git/whole-file.ts'
import { cacheFiles } from '../../snapshot/cache.ts'
import type { Context } from '../worktree/context.ts'
import { isHeld } from '../worktree/lock.ts'
import { isRemoved } from '../worktree/worktrees.ts'

function leftBehind(context: Context): { directory: string; memory: string[] }[] {
  const { env, place } = context
  return worktreeNames(env, place)
    .filter((id) => isRemoved(context, id))
    .map((id) => `${place.directory}/worktrees/${id}`)
    .map((directory) => ({ directory, memory: cacheFiles(env, directory) }))
}

const bytesAt = (env: Env, path: string): number => (lstatIfThere(env.files, path)?.blocks ?? 0) * 512

/** Bytes that {@link sweepRemoved} frees. */
export const bytesLeftBehind = (context: Context): number =>
  leftBehind(context)
    .flatMap(({ memory }) => memory)
    .reduce((sum, path) => sum + bytesAt(context.env, path), 0)

/** The caller holds the locks of all worktrees. */
export function sweepRemoved(context: Context): void {
  const { env } = context
  for (const { directory, memory } of leftBehind(context)) {
    for (const path of memory) removeIfThere(env, path)
    if (isHeld(env, `${directory}/daemon/lock`)) continue
    for (const name of ['cookies', 'hooks/free']) removeTree(env, `${directory}/daemon/${name}`)
  }
}
