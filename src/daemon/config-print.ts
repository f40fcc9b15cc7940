/** Whether the configuration that a held worktree goes by is still the one that was read. */
import type { Stats } from 'node:fs'
import { CONFIG_NAMES, usersDirectory } from '../config/load.ts'
import { type Env, errno, lstatIfThere, statIfThere } from '../env.ts'
import { configFiles, type Repository } from '../git/repository.ts'
import { fingerprint } from '../snapshot/disk.ts'

/** What may not be looked at is not read either. */
function statUnlessShut({ files }: Env, file: string): Stats | null {
  try {
    return statIfThere(files, file)
  } catch (error) {
    if (errno(error) !== 'EACCES') throw error
    return null
  }
}

/** Fingerprint of the files that configuration comes from, the user's and the project's, and git's, which names ignore files. */
export function configPrint(env: Env, root: string, repository: Repository | null): string {
  const home = usersDirectory(env)
  const own = [
    ...CONFIG_NAMES.map((name) => statUnlessShut(env, `${home}/${name}`)),
    ...CONFIG_NAMES.map((name) => lstatIfThere(env.files, `${root}/${name}`)),
  ]
  const gits = repository ? configFiles(env, repository).map((file) => statUnlessShut(env, file)) : []
  return [...own, ...gits].map((stats) => (stats ? fingerprint(stats) : '-')).join(' ')
}
