/**
 * What killed commands leave beside a store: directories that were being put together there (the store itself, parcels of
 * exports, imports, pushes and pulls), which bear the name of who is at work in them, and drafts of files.
 */
import path from 'node:path'
import { isDamage } from '../../core/errors.ts'
import { type Env, errno, lstatIfThere } from '../../env.ts'
import { ageByOurs } from '../../git/file-clock.ts'
import { removeIfThere, removeTree } from '../../git/whole-file.ts'
import { holderState, readHolder, writeHolder } from './lock.ts'

const HALF_MADE = /^(parcel-|store\.)[0-9a-f]+\.tmp$/
/** As whole-file.ts and lock.ts call them. */
const DRAFT = /^(?!parcel-|store\.)[a-z.-]+\.[0-9a-f]{12,16}(\.\d+|\.git)?\.tmp$/
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
  for (const name of tried(() => env.files.readdirSync(within), [])) {
    if (!HALF_MADE.test(name)) continue
    tried(() => {
      if (isLeft(env, `${within}/${name}`)) removeTree(env, `${within}/${name}`, OWNER)
    }, undefined)
  }
  // Killed between the store's last name and the end of it.
  const name = `${within}/store.git/${OWNER}`
  tried(() => {
    const holder = readHolder(env, name)
    if (holder !== null && holder !== 'unreadable' && holderState(env, holder) === 'dead') removeIfThere(env, name)
  }, undefined)
}

/** The same of files that were never put in their place, in a directory of ours. */
export const sweepDrafts = (env: Env, within: string): void => sweepNamed(env, within, (name) => DRAFT.test(name))

/** The same of one file, in a directory that others write into as well. */
export function sweepDraftsOf(env: Env, file: string): void {
  const name = path.basename(file)
  sweepNamed(
    env,
    path.dirname(file),
    (one) => one.startsWith(`${name}.`) && /^[0-9a-f]{12}\.tmp$/.test(one.slice(name.length + 1)),
  )
}

function sweepNamed(env: Env, within: string, isDraft: (name: string) => boolean): void {
  for (const name of tried(() => env.files.readdirSync(within), [])) {
    if (!isDraft(name)) continue
    tried(() => {
      const stats = lstatIfThere(env.files, `${within}/${name}`)
      if (stats?.isFile() && ageByOurs(env, stats) > ABANDONED) removeIfThere(env, `${within}/${name}`)
    }, undefined)
  }
}

function tried<T>(work: () => T, otherwise: T): T {
  try {
    return work()
  } catch (error) {
    if (errno(error) === undefined && !isDamage(error)) throw error
    return otherwise
  }
}

function isLeft(env: Env, path: string): boolean {
  const stats = lstatIfThere(env.files, path)
  if (!stats?.isDirectory()) return false
  const holder = readHolder(env, `${path}/${OWNER}`)
  return holder === null || holder === 'unreadable'
    ? ageByOurs(env, stats) > ABANDONED
    : holderState(env, holder) === 'dead'
}
