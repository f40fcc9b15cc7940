/** Which worktree a directory belongs to, and where its store is. */
import { constants, type Dirent } from 'node:fs'
import { dirname, isAbsolute, resolve } from 'node:path'
import type { Config } from '../../config/defaults.ts'
import { CkptError } from '../../core/errors.ts'
import { quotedPath } from '../../core/hint-words.ts'
import { pathFromText, printable } from '../../core/paths.ts'
import { type Env, errno } from '../../env.ts'
import { hashOfStore, storeExists, wasMoved } from '../../git/frame.ts'
import { findRepository, type Repository } from '../../git/repository.ts'
import type { StorePlace } from '../../git/store.ts'
import { linkOrCopy, readIfThere, removeIfThere, writeFileWhole } from '../../git/whole-file.ts'
import { foldsCase } from '../../snapshot/spelling.ts'
import type { Worktree } from '../../snapshot/worktree.ts'
import { storeApart } from './apart.ts'
import { stateDirectory } from './state-directory.ts'

export interface Found {
  root: string
  repository: Repository | null
}

/** The worktree around a directory; for a plain directory the nearest one above that was initialized, else itself. */
export async function findWorktree(env: Env, cwd: string, outcome = 'Nothing was recorded.'): Promise<Found> {
  const real = realDirectory(env, cwd, outcome)
  const repository = await findRepository(env, real, outcome)
  if (repository) return { root: repository.root, repository }
  refuseRelativeState(env, outcome)
  return { root: (await nearestInitialized(env, real)) ?? real, repository: null }
}

/** The nearest plain directory with a store, from a directory upwards, its links followed. Null: there is none. */
export async function nearestInitialized(env: Env, real: string): Promise<string | null> {
  const nearest = (isRoot: (at: string) => boolean): string | null => {
    let at = real
    while (at !== '/' && !isRoot(at)) at = at.slice(0, at.lastIndexOf('/')) || '/'
    return at === '/' ? null : at
  }
  const root = nearest((at) => storeExists(env, plainPlace(env, at)))
  if (root !== null) return root
  const { usersLocation } = await import('../../config/load.ts')
  const location = await usersLocation(env)
  return location === 'git' ? null : nearest((at) => storeExists(env, placeApart(env, at, location)))
}

/** A directory that somebody is in, links followed. @throws CkptError BAD_ROOT */
export function realDirectory(env: Env, cwd: string, outcome: string): string {
  let real: string
  try {
    real = env.files.realpathSync(cwd)
  } catch (cause) {
    const code = errno(cause)
    // Node gives such a name with U+FFFD in it.
    const isOddName = code === 'ENOENT' && (cwd.includes('\ufffd') || env.files.existsSync(cwd))
    const why = isOddName ? 'its name is not UTF-8' : (code ?? 'unknown')
    const there = nearestAbove(env, isOddName ? dirname(cwd) : cwd)
    throw new CkptError('BAD_ROOT', `${cwd} is not a directory that can be used (${why}). ${outcome}`, {
      cause,
      hints: [
        there === '/'
          ? 'cd DIRECTORY && ckpt status   (one that is there)'
          : `cd ${quotedPath(there)} && ckpt status   (what is left above it)`,
      ],
    })
  }
  if (!env.files.statSync(real).isDirectory())
    throw new CkptError('BAD_ROOT', `${cwd} is not a directory. ${outcome}`, {
      hints: [`cd ${quotedPath(dirname(real))} && ckpt status`],
    })
  const closed = whyClosed(env, real)
  if (closed === null) return real
  throw new CkptError('BAD_ROOT', `${cwd} is not a directory that can be used (${closed}). ${outcome}`, {
    hints: [`ls -ld ${quotedPath(real)}   (who may enter it)`],
  })
}

function whyClosed({ files }: Env, directory: string): string | null {
  try {
    files.accessSync(directory, constants.X_OK)
    return null
  } catch (error) {
    const code = errno(error)
    if (code === undefined) throw error
    return code
  }
}

export function nearestAbove({ files }: Env, path: string): string {
  let at = path
  while (at !== '/' && !files.existsSync(at)) at = at.slice(0, at.lastIndexOf('/')) || '/'
  return at
}

/** @throws CkptError CONFIG */
function refuseRelativeState({ vars: { CKPT_STATE_DIR: given = '' } }: Env, outcome: string): void {
  if (given === '' || isAbsolute(given)) return
  throw new CkptError('CONFIG', `CKPT_STATE_DIR is ${printable(given)}: it must be an absolute directory. ${outcome}`, {
    hints: ['unset CKPT_STATE_DIR   (then it is ~/.local/state/ckpt)'],
  })
}

const plainPlace = (env: Env, root: string, base = stateDirectory(env)): StorePlace => ({
  directory: storeApart(env, base, root),
  worktreeId: '@main',
  hash: 'sha1',
  owner: root,
})

/** Of a plain directory, in `store.location`; that of the repository which it was until its `.git` was deleted. */
function placeApart(env: Env, root: string, location: string): StorePlace {
  const plain = plainPlace(env, root, location)
  const once = plainPlace(env, `${root}/.git`, location)
  return storeExists(env, plain) || !storeExists(env, once) ? plain : { ...once, hash: hashOfStore(env, once) }
}

/** @throws CkptError BAD_ROOT when checkpoints of this root would be dangerous or endless */
export function placeStore(
  env: Env,
  { root, repository }: Found,
  { config, outcome }: { config: Config; outcome: string },
): StorePlace {
  const refuse = (why: string, hint = 'git init DIRECTORY   (one of its own below it: run ckpt there)') =>
    new CkptError('BAD_ROOT', `${root} cannot be checkpointed: ${why}. ${outcome}`, { hints: [hint] })
  if (root === '/') throw refuse('it is the root of the file system')
  let home = env.home
  try {
    home = env.files.realpathSync(env.home)
  } catch (error) {
    if (errno(error) !== 'ENOENT') throw error
  }
  if (root === home) throw refuse('it is the home directory')
  const { location } = config.store
  let place: StorePlace
  if (!repository) {
    place = location === 'git' ? plainPlace(env, root) : placeApart(env, root, location)
  } else {
    place = placeInRepository(env, { root, repository }, location)
  }
  if (place.directory.startsWith(`${root}/`) && !insideGit(repository, place.directory)) {
    const elsewhere =
      location === 'git' ? undefined : `set store.location to a directory outside of ${quotedPath(root)}`
    throw refuse(`it contains the store (${place.directory})`, elsewhere)
  }
  return place
}

/**
 * A plain directory keeps its store when it becomes a repository, and its linked worktrees share that one: a second store
 * would hide it. One that is in the git directory all the same, and has checkpoints of this worktree or the main one, stays.
 */
function placeInRepository(
  env: Env,
  { root, repository }: { root: string; repository: Repository },
  location: string,
): StorePlace {
  const { gitDir, commonDir, hash } = repository
  const worktreeId = worktreeIdOf(env, repository)
  const inGit: StorePlace = { directory: `${commonDir}/ckpt`, worktreeId, hash }
  const own =
    location === 'git' ? inGit : { ...inGit, directory: storeApart(env, location, commonDir), owner: commonDir }
  const main = gitDir === commonDir ? root : besideGit(commonDir)
  if (main === null) return own
  const plain = plainPlace(env, main, location === 'git' ? stateDirectory(env) : location)
  if (!storeExists(env, plain)) return own
  const hasOwn = storeExists(env, own) && ['@main', worktreeId].some((id) => wasMoved(env, own, id))
  return hasOwn ? own : { ...plain, worktreeId }
}

/** Where the main worktree of a repository is recorded: the git hooks of all its worktrees look there, too. */
export function directoryOfMain(env: Env, repository: Repository, { store }: Config): string {
  const { commonDir } = repository
  const main = { root: besideGit(commonDir) ?? repository.root, repository: { ...repository, gitDir: commonDir } }
  return placeInRepository(env, main, store.location).directory
}

/** The directory whose `.git` this is; null: it is called otherwise. */
const besideGit = (gitDir: string): string | null =>
  gitDir.endsWith('/.git') ? gitDir.slice(0, -'/.git'.length) : null

/** What to tell of a store that the repository had before its configuration named another place. */
export function toldLeftBehind(
  env: Env,
  { repository, place, config }: { repository: Repository | null; place: StorePlace; config: Config },
): string[] {
  if (!repository || config.store.location === 'git') return []
  const inGit = { ...place, directory: `${repository.commonDir}/ckpt` }
  if (place.directory === inGit.directory || !canSeeStore(env, inGit)) return []
  return [
    `Earlier checkpoints of this repository are in ${printable(inGit.directory)}, and store.location names another place: with "git" there they are seen again.`,
  ]
}

/** One that may not be looked into is somebody else's, in a repository of several people. */
function canSeeStore(env: Env, place: StorePlace): boolean {
  try {
    return storeExists(env, place)
  } catch (error) {
    if (!(error instanceof CkptError)) throw error
    return false
  }
}

function insideGit(repository: Repository | null, directory: string): boolean {
  return repository !== null && [repository.gitDir, repository.commonDir].some((own) => directory.startsWith(`${own}/`))
}

const ID_FILE = 'ckpt-worktree-id'

/** `@main`, or `<name>-<random>`: names of linked worktrees collide and are used again, so the random part lies in the worktree's own git directory. */
function worktreeIdOf(env: Env, { gitDir, commonDir }: Pick<Repository, 'gitDir' | 'commonDir'>): string {
  if (gitDir === commonDir) return '@main'
  const name = gitDir
    .slice(gitDir.lastIndexOf('/') + 1)
    .toLowerCase()
    .replace(/[^a-z0-9_-]/g, '_')
    .slice(0, 40)
    .replace(/^from-(?=[0-9a-f]{8}-)/, 'from_') // else it would be taken for one that came from elsewhere
  const known = readIfThere(env, `${gitDir}/${ID_FILE}`)?.toString('latin1').trim()
  return known && /^[0-9a-f]{12}$/.test(known) ? `${name}-${known}` : `${name}-new`
}

/** The linked worktrees that git knows, whether or not their files can be reached now: their own git directories, by id. */
export function linkedWorktrees(env: Env, { commonDir }: Repository): Map<string, string> {
  const own = `${commonDir}/worktrees`
  let entries: Dirent[] = []
  try {
    entries = env.files.readdirSync(own, { withFileTypes: true })
  } catch (error) {
    if (errno(error) !== 'ENOENT') throw error
  }
  const directories = entries.filter((entry) => entry.isDirectory()).map(({ name }) => `${own}/${name}`)
  return new Map(directories.map((gitDir) => [worktreeIdOf(env, { gitDir, commonDir }), gitDir]))
}

/**
 * Where git says that a worktree lies (gitrepository-layout(5), `gitdir`); null: nowhere that is there. Whoever opens it
 * looks whether it is that one.
 */
export function rootOfWorktree(env: Env, repository: Repository, id: string): string | null {
  const linked = id === '@main' ? null : linkedWorktrees(env, repository).get(id)
  if (linked === undefined) return null
  const file = linked === null ? repository.commonDir : gitFileOf(env, linked)
  return env.files.existsSync(file) ? besideGit(file) : null
}

/** The `.git` of a linked worktree, by its own git directory, whether or not it is there. */
const gitFileOf = (env: Env, linked: string): string =>
  resolve(linked, readIfThere(env, `${linked}/gitdir`)?.toString('utf8').trimEnd() ?? '')

/** What lets git forget a linked worktree that is gone, by its own git directory: one that is locked stays (git-worktree(1)). */
export function pruningCommand(env: Env, linked: string): string {
  if (!env.files.existsSync(`${linked}/locked`)) return 'git worktree prune'
  const root = besideGit(gitFileOf(env, linked))
  return `git worktree unlock ${root === null ? 'PATH' : quotedPath(root)} && git worktree prune`
}

/** Gives a linked worktree its id, once: the first of several processes wins. */
export function claimWorktreeId(env: Env, repository: Repository, place: StorePlace): StorePlace {
  if (!place.worktreeId.endsWith('-new') || repository.gitDir === repository.commonDir) return place
  const own = `${repository.gitDir}/${ID_FILE}`
  const temporary = `${own}.${env.random(6)}.tmp`
  writeFileWhole(env, temporary, { content: `${env.random(6)}\n` })
  try {
    linkOrCopy(env, temporary, own)
  } catch (error) {
    if (errno(error) !== 'EEXIST') throw error
    // Whoever was to write it may have been killed before that.
    if (worktreeIdOf(env, repository) === place.worktreeId) env.files.renameSync(temporary, own)
  } finally {
    removeIfThere(env, temporary)
  }
  return { ...place, worktreeId: worktreeIdOf(env, repository) }
}

export function describeWorktree(
  env: Env,
  { root, repository }: Found,
  { place, ignoreFiles }: { place: StorePlace; ignoreFiles: Worktree['ignoreFiles'] },
): Worktree {
  const own = [place.directory, stateDirectory(env), ...(repository ? [repository.gitDir, repository.commonDir] : [])]
  const ours = own
    .filter((directory) => directory.startsWith(`${root}/`))
    .map((directory) => pathFromText(directory.slice(root.length + 1)) as string)
    .filter((path) => path !== '.git' && !path.startsWith('.git/'))
  const folds = foldsCase(env, repository ? `${root}/.git` : root)
  return { root, repository, ours: [...new Set(ours)], ignoreFiles, folds }
}
