/** Directories of our own that are closed to us: opened for the moment in which something in them changes. */
import { type Env, errno } from '../env.ts'
import { behindSymlink, directoryAbove, isStats, look, native, needsOpening, permissions } from './disk.ts'

/** By directory, the mode that it had, and gets back at the end. */
export type Opened = Map<string, number>

/** Gives ourselves permission to change what the nearest directory above a path holds, if it is ours; and to see those below it. */
export function openAbove(env: Env, { root, path }: { root: string; path: string }, opened: Opened): void {
  for (let last: string | null = null; ; ) {
    const above = directoryAbove(env, root, path)
    if (!above || above.at === last || !needsOpening(env, above.stats)) return
    opened.set(above.at, permissions(above.stats))
    env.files.chmodSync(native(root, above.at), permissions(above.stats) | 0o700)
    last = above.at
  }
}

/**
 * Back to their modes, but for those that have another one by now, or are gone. Each is tried; returns the first that
 * could not be closed, and why.
 */
export function closeOpened(env: Env, root: string, opened: Opened): { path: string; reason: unknown } | null {
  let failed: ReturnType<typeof closeOpened> = null
  for (const [directory, mode] of [...opened].reverse()) {
    const stats = behindSymlink(env, root, directory) ? null : look(env, root, directory)
    if (!isStats(stats) || !stats.isDirectory() || permissions(stats) !== (mode | 0o700)) continue
    try {
      env.files.chmodSync(native(root, directory), mode)
    } catch (reason) {
      const code = errno(reason)
      if (code === undefined) throw reason
      if (code !== 'ENOENT' && code !== 'ENOTDIR') failed ??= { path: directory, reason }
    }
  }
  return failed
}
