/** Where a daemon listens. */
import { createHash } from 'node:crypto'
import { connect } from 'node:net'
import { CkptError } from '../core/errors.ts'
import { quotedPath } from '../core/hint-words.ts'
import { type Env, errno, lstatIfThere } from '../env.ts'
import { removeIfThere } from '../git/whole-file.ts'

/**
 * A path for a socket, of under 100 bytes (unix(7) allows 108), in a directory that only this user can enter. No other daemon
 * gets the same one: a socket's name goes when its server closes, and the server of a worktree that was replaced closes late.
 * @throws CkptError INTERNAL when somebody else prepared that directory
 */
export async function socketPath(env: Env, worktreeDir: string, temporary: string): Promise<string> {
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
  const prefix = createHash('sha256').update(worktreeDir).digest('hex').slice(0, 16)
  for (const name of env.files.readdirSync(directory)) {
    const path = `${directory}/${name}`
    if (name.startsWith(`${prefix}-`) && (await isDeaf(env, path))) removeIfThere(env, path) // of one that was killed
  }
  return `${directory}/${prefix}-${env.random(4)}.sock`
}

/** Whether it is a socket that nobody listens at any more. */
async function isDeaf({ files }: Env, path: string): Promise<boolean> {
  if (!lstatIfThere(files, path)?.isSocket()) return false
  return new Promise((resolve) => {
    const socket = connect(path)
    const told = (deaf: boolean) => {
      socket.destroy()
      resolve(deaf)
    }
    socket.on('connect', () => told(false))
    socket.on('error', (error) => told(errno(error) === 'ECONNREFUSED'))
  })
}
