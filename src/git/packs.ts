/** The directory of the store's packs. In a young store it is empty, and not every backup brings such a directory back. */
import { type Files, namesIfThere } from '../env.ts'

export const packsDirectory = (gitDir: string): string => `${gitDir}/objects/pack`

/** Names of all files in it. */
export const packFiles = (files: Files, gitDir: string): string[] => namesIfThere(files, packsDirectory(gitDir))

/** For who is about to put something into it. */
export function makePacksDirectory(files: Files, gitDir: string): void {
  files.mkdirSync(packsDirectory(gitDir), { recursive: true, mode: 0o700 })
}
