/**
 * Room for a prune. On a disk that is full it could write neither its lock nor what moves the refs, and would free nothing:
 * a file that says nothing keeps that much.
 */
import type { Env } from '../../env.ts'
import { removeIfThere, writeFileWhole } from '../../git/whole-file.ts'

/** Bytes: a lock, a journal and each ref that moves take a block, for a moment. */
const SPARE = 65_536
/** Bytes that are free, and that the store may take, where so much can be kept. */
const PLENTY = 64 * SPARE

/** Its name, in the store's own directory. */
export const SPARE_NAME = 'spare'

const fileIn = (directory: string): string => `${directory}/${SPARE_NAME}`

/** Not where the store may take little itself (`limit`, bytes); nothing new where the disk has not much room. */
export function keepSpare(env: Env, directory: string, limit: number): void {
  const { bsize, bavail } = env.files.statfsSync(directory)
  if (limit < PLENTY) removeIfThere(env, fileIn(directory))
  if (Math.min(limit, bavail * bsize) < PLENTY || env.files.existsSync(fileIn(directory))) return
  // Nothing that a file system could store in fewer blocks.
  const content = Buffer.from(env.random(SPARE), 'hex')
  writeFileWhole(env, fileIn(directory), { content, sync: false })
}

/** Gives it free; false: there was none. */
export function releaseSpare(env: Env, directory: string): boolean {
  const was = env.files.existsSync(fileIn(directory))
  removeIfThere(env, fileIn(directory))
  return was
}
