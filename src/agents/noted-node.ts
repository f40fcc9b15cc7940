/** The Node that `bin/ckpt-hook` takes where an agent has none in its PATH, or an older one. */
import { isDamage } from '../core/errors.ts'
import { type Env, errno, statIfThere } from '../env.ts'
import { makeDirectories, readIfThere, writeFileWhole } from '../git/whole-file.ts'
import { stateDirectory } from '../ops/worktree/state-directory.ts'
import { nodeProgram } from '../programs.ts'

/** Notes the one that runs this. Where it cannot be noted nothing fails by that. */
export function noteNode(env: Env): void {
  const [file, node] = [`${stateDirectory(env)}/node`, `${nodeProgram(env)}\n`]
  try {
    const stats = statIfThere(env.files, file)
    if (stats && (!stats.isFile() || readIfThere(env, file)?.toString('utf8') === node)) return
    makeDirectories(env, stateDirectory(env))
    writeFileWhole(env, file, { content: node })
  } catch (error) {
    if (errno(error) === undefined && !isDamage(error)) throw error
  }
}
