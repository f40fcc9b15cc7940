/** Where a prompt of a transcript was given. */
import { basename, dirname, isAbsolute } from 'node:path'
import { type Env, errno, statIfThere } from '../env.ts'
import { commonDirOf } from '../git/repository.ts'
import { liesWithin } from '../ops/worktree/worktree-path.ts'
import type { SaidPrompt, Transcripts } from './agent.ts'

export interface Transcript {
  transcripts: Transcripts
  path: string
  prompts: readonly SaidPrompt[]
}

/** The directory in which the agent was at a prompt: where none is told, the first one that is. */
export const directoryOf = ({ cwd }: SaidPrompt, prompts: readonly SaidPrompt[]): string | null =>
  cwd ?? prompts.find((one) => one.cwd !== null)?.cwd ?? null

/**
 * Whether a directory is a worktree's: `gone` when it is not there any more. As hooks have it: an agent is followed into
 * another worktree of the same repository, where its turns are that one's, and not into another repository that lies inside.
 */
export async function placeOf(
  env: Env,
  { directory, root }: { directory: string; root: string },
  { transcripts, path }: Transcript,
): Promise<'here' | 'elsewhere' | 'gone'> {
  if (!isAbsolute(directory) || directory.includes('\0')) return 'gone'
  try {
    if (statIfThere(env.files, directory)?.isDirectory() !== true) return 'gone'
  } catch (error) {
    if (errno(error) === undefined) throw error
    return 'elsewhere' // it cannot be looked at
  }
  if (liesWithin(env, directory, root)) return 'here'
  if (!directory.startsWith(`${root}/`)) return 'elsewhere'
  // The directory of a transcript is named after where the conversation began.
  const began = basename(dirname(path)) === transcripts.prefix(root)
  return began && (await commonDirOf(env, directory)) !== (await commonDirOf(env, root)) ? 'here' : 'elsewhere'
}
