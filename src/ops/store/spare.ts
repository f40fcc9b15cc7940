/**
 * Room for a prune. On a disk that is full it could write neither its lock nor what moves the refs, and would free nothing:
 * a file that says nothing keeps that much.
 */
import type { Env } from '../../env.ts'
import { removeIfThere, writeFileWhole } from '../../git/whole-file.ts'

/** Bytes: each ref that moves takes a block, for a moment. */
const SPARE = 262_144
/** Bytes that are free, and that the store may take, where so much can be kept. */
const PLENTY = 64 * SPARE

/** `directory`: the store's own. */
const fileIn = (directory: string): string => `${directory}/spare`

/** Does nothing where there is some, or where the disk has little room itself, or the store. `limit`: its bytes. */
export function keepSpare(env: Env, directory: string, limit: number): void {
  const { bsize, bavail } = env.files.statfsSync(directory)
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
