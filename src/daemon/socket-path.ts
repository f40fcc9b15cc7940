/** Where a daemon listens. */
import { createHash } from 'node:crypto'
import { CkptError } from '../core/errors.ts'
import { quotedPath } from '../core/hint-words.ts'
import type { Env } from '../env.ts'

/**
 * A socket path of under 100 bytes (unix(7) allows 108), in a directory that only this user can enter.
 * @throws CkptError INTERNAL when somebody else prepared that directory
 */
export function socketPath(env: Env, worktreeDir: string, temporary: string): string {
  const runtime = env.vars.XDG_RUNTIME_DIR
  const directory = runtime ? `${runtime}/ckpt` : `${temporary}/ckpt-${env.uid}`
  env.files.mkdirSync(directory, { recursive: true, mode: 0o700 })
  const stats = env.files.lstatSync(directory)
  if (!stats.isDirectory() || stats.uid !== env.uid || (stats.mode & 0o077) !== 0) {
    throw new CkptError(
      'INTERNAL',
      `${directory} is not a directory of your own that others cannot enter. The daemon was not started.`,
      {
        hints: [`rm -r ${quotedPath(directory)}`],
      },
    )
  }
  return `${directory}/${createHash('sha256').update(worktreeDir).digest('hex').slice(0, 24)}.sock`
}
