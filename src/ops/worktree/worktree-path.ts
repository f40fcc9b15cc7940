/** From a path as somebody wrote it to a path of the worktree. */
import { pathFromText, type RelativePath } from '../../core/paths.ts'
import { type Env, errno, lstatIfThere } from '../../env.ts'
import type { Worktree } from '../../snapshot/worktree.ts'

/**
 * Links in the directories above are followed, as the system does; the last part may be a link of the worktree itself,
 * or not be there. `''`: the worktree; null: outside of it.
 */
export function worktreePath(
  { env, worktree }: { env: Env; worktree: Worktree },
  absolute: string,
): RelativePath | '' | null {
  const parts: string[] = []
  for (const part of absolute.split('/')) {
    if (part === '..') parts.pop()
    else if (part !== '' && part !== '.') parts.push(part)
  }
  const written = `/${parts.join('/')}`
  const { root } = worktree
  const inside = (path: string) =>
    path === root ? '' : path.startsWith(`${root}/`) ? pathFromText(path.slice(root.length + 1)) : null
  // A link from outside is followed whole; a directory that gave way to a link is still named by what was in it.
  return inside(followed(env, written)) ?? inside(followed(env, `${written}/`)) ?? inside(written)
}

/**
 * Whether a directory lies in another with no repository, and no worktree, of its own in between; told without git. Links
 * are followed: what leads out of a directory does not lie in it.
 */
export function liesWithin(env: Env, directory: string, root: string): boolean {
  if (directory === root) return true
  const top = followed(env, `${root}/`)
  for (let at = followed(env, `${directory}/`); at.length >= top.length; at = at.slice(0, at.lastIndexOf('/'))) {
    if (at === top) return true
    if (lstatIfThere(env.files, `${at}/.git`)) return false
  }
  return false
}

/** What lies in front of the last slash with its links followed, as far as it is there. */
function followed(env: Env, path: string): string {
  const cut = path.lastIndexOf('/')
  if (cut <= 0) return path
  const [above, name] = [path.slice(0, cut), path.slice(cut)]
  const end = name === '/' ? '' : name
  try {
    return `${env.files.realpathSync(above)}${end}`
  } catch (error) {
    const code = errno(error)
    if (code === 'ENOENT' || code === 'ENOTDIR' || code === 'EACCES' || code === 'ELOOP' || code === 'ENAMETOOLONG')
      return `${followed(env, above)}${end}`
    throw error
  }
}
