/**
 * Directories that are put together beside a store: the store itself, parcels of exports, imports, pushes and pulls. They
 * bear the name of who is at work in them, and are removed when that one is gone.
 */
import { isDamage } from '../../core/errors.ts'
import { type Env, errno, lstatIfThere } from '../../env.ts'
import { removeIfThere, removeTree } from '../../git/whole-file.ts'
import { holderState, readHolder, writeHolder } from './lock.ts'

const HALF_MADE = /^(parcel-|store\.)[0-9a-f]+\.tmp$/
const OWNER = 'ckpt-owner'
/** Milliseconds: one that names nobody is being made, or was left by somebody long ago. */
const ABANDONED = 3600 * 1000

/** Says in a directory that we are making it. Returns the name of the file that says so. */
export const claimHalfMade =
  (env: Env, command: string) =>
  (directory: string): string => {
    writeHolder(env, `${directory}/${OWNER}`, command)
    return OWNER
  }

/** Removes what killed commands left. What cannot be looked at or removed is left where it is: no command fails of it. */
export function sweepHalfMade(env: Env, within: string): void {
  const { files } = env
  const tried = <T>(work: () => T, otherwise: T): T => {
    try {
      return work()
    } catch (error) {
      if (errno(error) === undefined && !isDamage(error)) throw error
      return otherwise
    }
  }
  for (const name of tried(() => files.readdirSync(within), [])) {
    if (!HALF_MADE.test(name)) continue
    tried(() => {
      if (isLeft(env, `${within}/${name}`)) removeTree(env, `${within}/${name}`)
    }, undefined)
  }
  // Killed between the store's last name and the end of it.
  const name = `${within}/store.git/${OWNER}`
  tried(() => {
    const holder = readHolder(env, name)
    if (holder !== null && holder !== 'unreadable' && holderState(env, holder) === 'dead') removeIfThere(env, name)
  }, undefined)
}

function isLeft(env: Env, path: string): boolean {
  const stats = lstatIfThere(env.files, path)
  if (!stats?.isDirectory()) return false
  const holder = readHolder(env, `${path}/${OWNER}`)
  return holder === null || holder === 'unreadable'
    ? env.now() - stats.mtimeMs > ABANDONED
    : holderState(env, holder) === 'dead'
}
