/** The file system's clock: on a network mount, and in a virtual machine, it is not ours, and only its own times compare with it. */
import { constants } from 'node:fs'
import { type Env, errno } from '../env.ts'

/** The file system's own idea of now, milliseconds since 1970: the time that it gives to a file we write to. */
export function fileClock({ files }: Env, worktreeDir: string): number {
  const fd = files.openSync(`${worktreeDir}/clock`, constants.O_WRONLY | constants.O_CREAT, 0o600)
  try {
    files.writeSync(fd, '.', 0)
    return files.fstatSync(fd).mtimeMs
  } finally {
    files.closeSync(fd)
  }
}

/**
 * Milliseconds since a file of the store had this time, or until then: one that was written while the clock was ahead is not
 * young until that time comes again. By our clock where nothing can be written there.
 */
export function ageOf(env: Env, worktreeDir: string, { mtimeMs }: { mtimeMs: number }): number {
  try {
    return Math.abs(fileClock(env, worktreeDir) - mtimeMs)
  } catch (error) {
    if (errno(error) === undefined) throw error
    return ageByOurs(env, { mtimeMs })
  }
}

/** The same by our own clock: for what is old enough only after minutes, or lies where nothing is to be written for it. */
export const ageByOurs = (env: Env, { mtimeMs }: { mtimeMs: number }): number => Math.abs(env.now() - mtimeMs)
