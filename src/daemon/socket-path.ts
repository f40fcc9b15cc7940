/** Where a daemon listens. */
import { createHash } from 'node:crypto'
import { constants } from 'node:fs'
import { connect } from 'node:net'
import { dirname, isAbsolute } from 'node:path'
import { CkptError } from '../core/errors.ts'
import { printable } from '../core/paths.ts'
import { type Env, errno, lstatIfThere, statIfThere } from '../env.ts'
import { ageByOurs } from '../git/file-clock.ts'
import { makeDirectories, removeIfThere } from '../git/whole-file.ts'
import { stateDirectory } from '../ops/worktree/state-directory.ts'

/** Bytes of a path; more are cut off without a word where the daemon listens (unix(7) allows 108, macOS 104). */
const MOST = 99

/** Milliseconds in which a socket that was made is listened at. */
const YOUNG = 60_000

/**
 * A path for a socket, in a directory that only this user can enter: the first that can be used, for some systems have such a
 * directory far down, some programs are told of one that is another user's (in a container whose /tmp is shared, as root is),
 * and some of one in the worktree (`root`), where it would be in the way of snapshots. No other daemon gets the same path: a
 * socket's name goes when its server closes, and the server of a worktree that was replaced closes late.
 * @throws CkptError INTERNAL when there is no such directory
 */
export async function socketPath(
  env: Env,
  worktreeDir: string,
  { temporary, root }: { temporary: string; root: string },
): Promise<string> {
  const prefix = `${createHash('sha256').update(worktreeDir).digest('hex').slice(0, 16)}-`
  const name = `${prefix}${env.random(4)}.sock`
  const runtime = env.vars.XDG_RUNTIME_DIR
  const own = [...new Set([temporary, '/tmp'])].map((one) => `${one}/ckpt-${env.uid}`)
  const directories = [...(runtime ? [`${runtime}/ckpt`] : []), ...own, `${stateDirectory(env)}/run`]
  let directory: string | null = null
  const told: string[] = []
  for (const one of directories) {
    const isLong = Buffer.byteLength(`${one}/${name}`) > MOST
    const why = isLong ? 'is too long a path for a socket' : whyUnusable(env, one, root)
    if (why === null) {
      directory = one
      break
    }
    told.push(`${printable(one)} ${why}`)
  }
  if (directory === null)
    throw new CkptError(
      'INTERNAL',
      `The daemon has no directory to listen in: ${told.join(', ')}. It was not started.`,
      {
        hints: ['XDG_RUNTIME_DIR=DIRECTORY ckpt daemon start   (one of your own that others cannot enter)'],
      },
    )
  for (const other of env.files.readdirSync(directory)) {
    const path = `${directory}/${other}`
    // Of daemons that were killed. One of another worktree may be about to listen.
    const isOver = other.startsWith(prefix) || ageByOurs(env, lstatIfThere(env.files, path) ?? { mtimeMs: 0 }) > YOUNG
    if (isOver && other.endsWith('.sock') && (await isDeaf(env, path))) removeIfThere(env, path)
  }
  return `${directory}/${name}`
}

/** It is made where it is not there. Null: only this user can enter it, and it does not lie in the worktree (`root`). */
function whyUnusable(env: Env, directory: string, root: string): string | null {
  const { files, uid } = env
  if (!isAbsolute(directory)) return 'is another place in each directory'
  try {
    const above = dirname(directory)
    const real = statIfThere(files, above) ? files.realpathSync(above) : above // whatever links lead to it
    if ([directory, real].some((one) => one === root || one.startsWith(`${root}/`))) return 'lies in the worktree'
    makeDirectories(env, directory)
    const stats = files.lstatSync(directory)
    if (!stats.isDirectory()) return 'is no directory'
    if (stats.uid !== uid) return "is another user's"
    if ((stats.mode & 0o077) !== 0) return 'can be entered by others'
    files.accessSync(directory, constants.W_OK)
    return null
  } catch (error) {
    const code = errno(error)
    if (code === undefined) throw error
    return `cannot be used (${code})`
  }
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
