/** What the store takes on disk. */
import { type Env, lstatIfThere } from '../../env.ts'

/**
 * What deleting the store would free: a file that is linked from elsewhere costs nothing here. What is being made, or was
 * when somebody was killed, is no part of it: no turn that went would free that.
 */
export function bytesOf(env: Env, directory: string): number {
  let bytes = 0
  for (const entry of env.files.readdirSync(directory, { withFileTypes: true })) {
    if (entry.isDirectory() && entry.name.endsWith('.tmp')) continue
    const path = `${directory}/${entry.name}`
    if (entry.isDirectory()) bytes += bytesOf(env, path)
    else {
      const stats = lstatIfThere(env.files, path)
      if (stats && stats.nlink === 1) bytes += stats.blocks * 512
    }
  }
  return bytes
}
