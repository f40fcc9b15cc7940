/** Repositories of their own in a worktree, as git tells them: by what their `.git` leads to (gitrepository-layout(5)). */
import { errno, lstatIfThere, statIfThere } from '../env.ts'
import { native } from './disk.ts'
import type { Scan } from './scan.ts'

/** Bytes of a file that says where a repository lies: git reads no more of one either. */
const MOST = 2 ** 20

/**
 * Whether git may take a directory for a repository. It does not where its `.git` is gone, leads to nothing, or lacks what
 * every repository has; the directory itself need not have changed for that.
 */
export function mayBeRepository({ env, worktree }: Pick<Scan, 'env' | 'worktree'>, path: string): boolean {
  const { files } = env
  const directory = Buffer.from(native(worktree.root, path)).toString('latin1')
  const bytes = (at: string) => Buffer.from(at, 'latin1')
  const within = (base: string, at: string) => (at.startsWith('/') ? at : `${base}/${at}`)
  const read = (at: string) => {
    const stats = statIfThere(files, bytes(at))
    if (!stats?.isFile() || stats.size > MOST) return undefined
    return files
      .readFileSync(bytes(at))
      .toString('latin1')
      .replace(/[\r\n]+$/, '')
  }
  try {
    const own = `${directory}/.git`
    const stats = statIfThere(files, bytes(own))
    const told = /^gitdir: (.*)$/s.exec(read(own) ?? '')?.[1]
    const gitDir = stats?.isDirectory() ? own : told === undefined ? null : within(directory, told)
    if (gitDir === null || lstatIfThere(files, bytes(`${gitDir}/HEAD`)) === null) return false
    const common = within(gitDir, read(`${gitDir}/commondir`) ?? '.')
    return ['objects', 'refs'].every((name) => statIfThere(files, bytes(`${common}/${name}`)) !== null)
  } catch (error) {
    if (errno(error) === undefined) throw error
    return true // it cannot be looked at: git is not asked for that alone
  }
}
