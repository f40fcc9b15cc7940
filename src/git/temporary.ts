/** What is only needed for a moment: a directory of its own below the temporary one. */
import { CkptError, reasonOf } from '../core/errors.ts'
import { printable } from '../core/paths.ts'
import { type Env, errno, temporaryDirectory } from '../env.ts'
import { isOutOfRoom } from './denied.ts'
import { removeTree } from './whole-file.ts'

/** The directory is there while `work` is at it. @throws CkptError INTERNAL where there is no room: see {@link withoutRoom} */
export async function withTemporary<T>(env: Env, name: string, work: (directory: string) => Promise<T>): Promise<T> {
  const directory = `${temporaryDirectory(env)}/${name}-${env.random(8)}`
  try {
    env.files.mkdirSync(directory, { mode: 0o700 })
    return await work(directory)
  } catch (error) {
    throw withoutRoom(env, error)
  } finally {
    removeQuietly(env, directory)
  }
}

/** What failed for want of room below the temporary directory: no store and no file is to blame for that. Any other is as it was. */
export function withoutRoom(env: Env, error: unknown): unknown {
  if (!isOutOfRoom(error)) return error
  const where = printable(temporaryDirectory(env))
  return new CkptError('INTERNAL', `There is no room below ${where}: ${reasonOf(error)} Nothing was changed.`, {
    hints: ['free some space there', 'TMPDIR=DIRECTORY ckpt COMMAND   (another one, with more room)'],
    cause: error,
  })
}

/** What stays there is nobody's loss, and hides no other failure. */
function removeQuietly(env: Env, directory: string): void {
  try {
    removeTree(env, directory)
  } catch (error) {
    if (errno(error) === undefined) throw error
  }
}
