/** The user's repository: found and asked, never written. git-rev-parse(1), git-cat-file(1). */
import { isUtf8 } from 'node:buffer'
import path from 'node:path'
import { CkptError } from '../core/errors.ts'
import { quotedPath } from '../core/hint-words.ts'
import { type HashName, isOid, type Oid } from '../core/ids.ts'
import { type Env, errno, lstatIfThere } from '../env.ts'
import { FETCHING, gitFailure, machineFailure } from './failure.ts'
import { askGit, runGit, scrubbed, tryGit } from './process.ts'

export interface Repository {
  /** Absolute path of the worktree's top directory. */
  root: string
  gitDir: string
  commonDir: string
  hash: HashName
}

/**
 * The repository around a directory. Null only when no `.git` lies there or above: a git that fails next to one is an
 * error, never "a plain directory".
 * @throws CkptError BAD_ROOT (bare, inside a git directory, or git refuses the repository)
 */
export async function findRepository(
  env: Env,
  cwd: string,
  outcome = 'Nothing was recorded.',
): Promise<Repository | null> {
  const asked = await tryGit(env, {
    args: [
      'rev-parse',
      '--path-format=absolute',
      '--is-bare-repository',
      '--is-inside-git-dir',
      '--git-dir',
      '--git-common-dir',
      '--show-object-format',
      '--show-toplevel', // last: it fails where there is no worktree
    ],
    cwd,
    vars: { GIT_DISCOVERY_ACROSS_FILESYSTEM: '1' }, // a directory of the worktree may be mounted there
  })
  if (!isUtf8(asked.stdout)) {
    throw new CkptError('BAD_ROOT', `The path of this repository is not UTF-8. ${outcome}`, {
      hints: ['move it to a path that is'],
    })
  }
  const lines = asked.stdout.toString('utf8').split('\n')
  const [bare, inside, gitDir, commonDir, format, root] = lines
  if (asked.code === 0 && lines.length !== 7) {
    throw new CkptError('BAD_ROOT', `The path of this repository holds a line feed. ${outcome}`, {
      hints: ['move it to a path without one'],
    })
  }
  // Everything else is asked of git there: it has to find this repository again.
  if (asked.code === 0 && root && !lstatIfThere(env.files, `${root}/.git`)) {
    throw new CkptError(
      'BAD_ROOT',
      `The repository ${gitDir} has its worktree at ${root} (core.worktree), which has no .git of its own. ${outcome}`,
      { hints: [`git -C ${quotedPath(cwd)} config --unset core.worktree   (if it has moved)`] },
    )
  }
  if (asked.code === 0 && gitDir && commonDir && root) {
    return { root, gitDir, commonDir, hash: format === 'sha256' ? 'sha256' : 'sha1' }
  }
  if (bare === 'true' && inside === 'false') {
    throw new CkptError('BAD_ROOT', `git takes this repository for one without files (core.bare is set). ${outcome}`, {
      hints: [`git -C ${quotedPath(cwd)} config core.bare false   (if it has files)`, 'git worktree list'],
    })
  }
  if (bare === 'true' || inside === 'true') {
    throw new CkptError(
      'BAD_ROOT',
      `This is a git directory, not a worktree: there are no files to checkpoint here. ${outcome}`,
      { hints: ['git worktree list'] },
    )
  }
  const at = dotGitAbove(env, cwd)
  if (at === null) return null
  if (/dubious ownership/.test(asked.stderr)) {
    throw new CkptError(
      'BAD_ROOT',
      `git refuses the repository at ${at}: it belongs to another user (dubious ownership). ${outcome}`,
      { hints: [`git config --global --add safe.directory ${quotedPath(at)}`] },
    )
  }
  const denied = machineFailure(['rev-parse'], asked)
  if (denied) throw denied
  throw new CkptError(
    'BAD_ROOT',
    `There is a .git at ${at}, but git cannot use it: ${gitFailure(['rev-parse'], asked).message}`,
    { hints: [`git -C ${quotedPath(at)} status`] },
  )
}

function dotGitAbove(env: Env, cwd: string): string | null {
  for (let at = cwd; ; at = at.slice(0, at.lastIndexOf('/')) || '/') {
    try {
      env.files.lstatSync(at === '/' ? '/.git' : `${at}/.git`)
      return at
    } catch (error) {
      const code = errno(error)
      if (code !== 'ENOENT' && code !== 'ENOTDIR') throw error
    }
    if (at === '/') return null
  }
}

/** Which repository a directory is of; null where that is none, or one that cannot be worked in. */
export async function commonDirOf(env: Env, directory: string): Promise<string | null> {
  try {
    return (await findRepository(env, directory))?.commonDir ?? null
  } catch (error) {
    if (error instanceof CkptError && error.code === 'BAD_ROOT') return null
    throw error
  }
}

/** Where the user's own ignore files outside the worktree are looked for: `info/exclude`, `core.excludesFile` (gitignore(5)). */
export async function ignoreFiles(env: Env, repository: Repository): Promise<string[]> {
  const asked = await askGit(env, {
    args: ['config', '--type=path', '-z', '--get', 'core.excludesFile'],
    cwd: repository.root,
  })
  const configured = asked?.toString('utf8').replace(/\0$/, '') ?? ''
  // git resolves it from the worktree's root, where it goes first.
  const global = configured === '' ? `${userConfig(env)}/git/ignore` : path.resolve(repository.root, configured)
  return [global, `${repository.commonDir}/info/exclude`]
}

/** The files that say, among others, which ignore files there are; not those that they include (git-config(1)). */
export function configFiles(env: Env, { root, commonDir, gitDir }: Repository): string[] {
  const given = env.vars.GIT_CONFIG_GLOBAL
  const own =
    given === undefined ? [`${env.home}/.gitconfig`, `${userConfig(env)}/git/config`] : [path.resolve(root, given)]
  return [`${commonDir}/config`, `${gitDir}/config.worktree`, ...own]
}

const userConfig = ({ vars, home }: Env) => vars.XDG_CONFIG_HOME || `${home}/.config`

/** The directories that hold the user's objects: its own and every alternate's (git-count-objects(1)). */
export async function objectDirectories(env: Env, repository: Repository): Promise<string[]> {
  const own = `${repository.commonDir}/objects`
  const found = [own]
  // git looks at every loose object and opens every pack for this: it is asked only where there are others to name.
  if (!env.files.existsSync(`${own}/info/alternates`)) return found
  const out = await runGit(env, { args: ['count-objects', '-v'], cwd: repository.root })
  for (const line of out.toString('utf8').split('\n')) {
    if (line.startsWith('alternate: ')) found.push(line.slice('alternate: '.length))
  }
  return found
}

/** Variables that simple-git takes: it refuses what may name a program, which is not needed for what is only read. */
const unguarded = (vars: Env['vars']) =>
  Object.fromEntries(
    Object.entries(scrubbed(vars)).filter(([key]) => !/^(GIT_.*|EDITOR|PAGER|PREFIX|SSH_ASKPASS|VISUAL)$/i.test(key)),
  )

/** Commits between two heads, newest first, as `abc1234 subject`. Empty when they are not connected, or not here any more. */
export async function commitsBetween(
  env: Env,
  repository: Repository,
  { from, to }: { from: Oid; to: Oid },
): Promise<string[]> {
  const { GitError, simpleGit } = await import('simple-git')
  const git = simpleGit({
    baseDir: repository.root,
    timeout: { block: 10_000 },
    config: ['protocol.allow=never'], // a partial clone would fetch what is not here
    unsafe: { allowUnsafeProtocolOverride: true },
  })
  try {
    const shown = await git.env(unguarded(env.vars)).raw([
      '--no-pager', // core.pager is a command
      'log',
      '--no-show-signature', // log.showSignature would start gpg.program
      '-n',
      '20',
      '--format=%h %s',
      `${from}..${to}`,
      '--',
    ])
    return shown.split('\n').filter((line) => line !== '')
  } catch (error) {
    if (error instanceof GitError) return []
    throw error
  }
}

/** Whether objects may be missing that a remote has (git-clone(1), --filter). */
export const isPartialClone = async (env: Env, root: string): Promise<boolean> =>
  (await askGit(env, { args: ['config', '--get-regexp', String.raw`^remote\..*\.promisor$`], cwd: root })) !== null

/** The tree of HEAD; null only when HEAD is unborn. @throws CkptError DAMAGED when it is missing; INTERNAL in a partial clone */
export async function committedTree(env: Env, { root }: Repository): Promise<Oid | null> {
  const args = ['cat-file', '--batch-check=%(objectname)']
  const tree = (await runGit(env, { args, cwd: root, input: 'HEAD^{tree}\n' })).toString('latin1').trim()
  if (isOid(tree)) return tree
  // What HEAD names may be missing: git knows the name all the same.
  const named = await askGit(env, { args: ['rev-parse', '-q', '--verify', 'HEAD'], cwd: root })
  if (!named) return null
  if (await isPartialClone(env, root))
    throw new CkptError('INTERNAL', 'This partial clone lacks the tree of HEAD. Nothing was changed.', {
      hints: [FETCHING],
    })
  await runGit(env, { args: ['cat-file', '-e', 'HEAD^{tree}'], cwd: root })
  return null
}

/** Configuration that switches every filter driver off: a filter is somebody's program. */
export async function filtersOff(env: Env, repository: Repository): Promise<[string, string][]> {
  const asked = await askGit(env, {
    args: ['config', '-z', '--name-only', '--get-regexp', '^filter\\.'],
    cwd: repository.root,
  })
  const drivers = new Set<string>()
  for (const key of asked?.toString('utf8').split('\0') ?? []) {
    const end = key.lastIndexOf('.')
    if (end > 'filter.'.length) drivers.add(key.slice(0, end))
  }
  return [...drivers].flatMap((driver): [string, string][] => [
    [`${driver}.clean`, ''],
    [`${driver}.smudge`, ''],
    [`${driver}.process`, ''],
    [`${driver}.required`, 'false'],
  ])
}

/**
 * Whether the worktree has uncommitted changes, as `git status` sees it without any filter; `paths` (as text): only there.
 * False when the signal comes first: not known in time, nothing is said.
 */
export async function hasUncommittedChanges(
  env: Env,
  repository: Repository,
  { paths = [], signal }: { paths?: readonly string[]; signal?: AbortSignal } = {},
): Promise<boolean> {
  const status = ['status', '--porcelain', '-z', '--untracked-files=normal', '--ignore-submodules=all', '--no-renames']
  const args = paths.length === 0 ? status : [...status, '--', ...paths]
  const result = await tryGit(env, {
    args,
    cwd: repository.root,
    config: await filtersOff(env, repository),
    signal,
  })
  if (signal?.aborted) return false
  if (result.code !== 0) throw gitFailure(args, result, { store: false })
  return result.stdout.length > 0
}

/** git-remote(1), EXIT STATUS. */
const NO_SUCH_REMOTE = 2

/** The first line of what git printed, or null. */
const firstLine = (bytes: Buffer | null): string | null => bytes?.toString('utf8').replace(/\n[\s\S]*$/, '') || null

/** Where a remote of the user's lies (git-remote(1)); null: there is none of that name. Its URL alone is taken, nothing else. */
export async function remoteUrl(
  env: Env,
  repository: Repository,
  { remote, isPush }: { remote: string; isPush: boolean },
): Promise<string | null> {
  const args = ['remote', 'get-url', ...(isPush ? ['--push'] : []), '--', remote]
  return firstLine(await askGit(env, { args, cwd: repository.root }, NO_SUCH_REMOTE))
}

/** Where a URL leads by the user's own rules (git-config(1), `url.<base>.insteadOf`); nothing is asked there. */
export async function rewrittenUrl(env: Env, url: string): Promise<string> {
  const args = ['ls-remote', '--get-url', '--end-of-options', url]
  return firstLine(await runGit(env, { args, cwd: '/' })) ?? url
}

/** Whether commits that others name as parents may have been left out (git-clone(1), `--depth`). */
export async function isShallow(env: Env, cwd: string): Promise<boolean> {
  const { stdout } = await tryGit(env, { args: ['rev-parse', '--is-shallow-repository'], cwd })
  return stdout.toString('latin1').trim() !== 'false'
}
