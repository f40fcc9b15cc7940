/**
 * Packs on their way into the store, not synced yet: an entry for each beside the objects, made before the pack is there and
 * removed once it is synced; one whose index never came was cut short.
 */
import { type Env, errno, type Files, namesIfThere } from '../env.ts'
import { isWholePack, type Sums } from './checksum.ts'
import { makePacksDirectory } from './packs.ts'
import { removeIfThere, syncDirectory, syncIfThere } from './whole-file.ts'

/** Entries that this process made: what it wrote itself is whole. */
const own = new WeakMap<Files, Set<string>>()

const directoryOf = (gitDir: string) => `${gitDir}/unsynced`

/** Moves a pack to its place. `from`: its path, without a suffix; the index comes last, for with it the pack is used. */
export function movePack(env: Env, gitDir: string, { from, pack }: { from: string; pack: string }): void {
  const { files } = env
  makePacksDirectory(files, gitDir)
  noteUnsynced(files, gitDir, { pack, index: `${from}.idx` })
  for (const suffix of ['.pack', '.rev', '.idx'])
    if (suffix !== '.rev' || files.existsSync(`${from}.rev`))
      files.renameSync(`${from}${suffix}`, `${gitDir}/objects/pack/${pack}${suffix}`)
}

/** `pack`: its name, without a suffix. `index`: a file that the entry may be a link to, which is cheaper than to make one. */
export function noteUnsynced(files: Files, gitDir: string, { pack, index }: { pack: string; index: string }): void {
  const entry = `${directoryOf(gitDir)}/${pack}`
  own.set(files, (own.get(files) ?? new Set()).add(entry))
  const make = () => {
    try {
      files.linkSync(index, entry)
    } catch (error) {
      const code = errno(error)
      if (code === 'EEXIST') return
      if (code === 'ENOENT') throw error
      files.writeFileSync(entry, '', { mode: 0o600 }) // a file system without links
    }
  }
  try {
    make()
  } catch (error) {
    if (errno(error) !== 'ENOENT') throw error
    files.mkdirSync(directoryOf(gitDir), { recursive: true, mode: 0o700 })
    make()
  }
}

/** Names of packs, without a suffix. */
export const unsyncedPacks = (files: Files, gitDir: string): string[] => namesIfThere(files, directoryOf(gitDir))

/**
 * Syncs them. One whose index is not there is just being written, or was cut short, and one that is not whole lost its bytes
 * in a power cut: nothing rests on it, and its entry goes on saying so.
 */
export function syncPacks(env: Env, gitDir: string, sums: Sums): void {
  const packs = `${gitDir}/objects/pack`
  const isWhole = (name: string) =>
    own.get(env.files)?.has(`${directoryOf(gitDir)}/${name}`) || isWholePack(env.files, `${packs}/${name}`, sums)
  const whole = unsyncedPacks(env.files, gitDir).filter(
    (name) => isWhole(name) && ['.pack', '.idx'].every((suffix) => syncIfThere(env, `${packs}/${name}${suffix}`)),
  )
  if (whole.length === 0) return
  syncDirectory(env, packs)
  for (const name of whole) forgetUnsynced(env, gitDir, name)
}

/** Of a pack that is there no more. */
export function forgetUnsynced(env: Env, gitDir: string, pack: string): void {
  const entry = `${directoryOf(gitDir)}/${pack}`
  own.get(env.files)?.delete(entry)
  removeIfThere(env, entry)
}

/**
 * Removes packs that were cut short, or lost their bytes in a power cut, and entries of packs that are gone. The caller
 * holds the locks of all worktrees, and what refs reach is in other packs.
 */
export function sweepUnsynced(env: Env, gitDir: string, sums: Sums): void {
  const packs = `${gitDir}/objects/pack`
  for (const name of unsyncedPacks(env.files, gitDir)) {
    if (isWholePack(env.files, `${packs}/${name}`, sums)) continue
    for (const suffix of ['.idx', '.rev', '.pack']) removeIfThere(env, `${packs}/${name}${suffix}`)
    forgetUnsynced(env, gitDir, name)
  }
}
