/** A store elsewhere (`store.location`) that is away, for its disk is not mounted, or somebody took it; and one that was begun in its place. */
import { printable } from '../../core/paths.ts'
import type { Env } from '../../env.ts'
import type { StorePlace } from '../../git/store.ts'
import { removeIfThere, writeFileWhole } from '../../git/whole-file.ts'
import { linkedByPath } from './by-path.ts'
import { type Found, linkedWorktrees, rootOfWorktree } from './place.ts'

/**
 * Where it was when this worktree was last recorded, or another one of its repository, of which it would be, too. Null:
 * nothing is known of any.
 */
export function storeGone(env: Env, { root, repository }: Found, { owner, directory }: StorePlace): string | null {
  if (owner === undefined) return null
  const own = goneOf(env, root)
  if (own !== null || !repository) return own
  const others = ['@main', ...linkedWorktrees(env, repository).keys()].map((id) => rootOfWorktree(env, repository, id))
  return others.some((at) => at !== null && goneOf(env, at) === directory) ? directory : null
}

function goneOf(env: Env, root: string): string | null {
  const directory = /^(\/.*)\/worktrees\/[^/]+$/s.exec(linkedByPath(env, root) ?? '')?.[1]
  return directory && !env.files.existsSync(directory) ? directory : null
}

export const goneFrom = (directory: string): string =>
  `The checkpoints of this worktree were in ${printable(directory)}, which is not there.`

export const MOUNT_IT = 'mount the disk that it is on, or bring it back'

export const BEGUN_ANEW =
  ' A new store was begun, without them: where their disk is mounted later, they hide what is recorded until then.'

/** Beside a store that was begun so, until a person says that it stays; the git hooks look for it, too. */
const noteIn = (directory: string): string => `${directory}/begun-anew`

export function noteBegunAnew(env: Env, directory: string): void {
  writeFileWhole(env, noteIn(directory), { content: `${new Date(env.now()).toISOString()}\n` })
}

export function settleBegunAnew(env: Env, directory: string): void {
  removeIfThere(env, noteIn(directory))
}

export const STAYS = 'ckpt init   (this one stays)'

/** For status and doctor. */
export function toldBegunAnew(env: Env, directory: string): string | null {
  if (!env.files.existsSync(noteIn(directory))) return null
  return `The store in ${printable(directory)} was begun in the place of one that was away: what was recorded before is not in it, and may be undone there.`
}
