/**
 * A state laid out in a directory of its own, below the temporary directory: a command may do there what it likes. What
 * no checkpoint holds (dependencies that are ignored, what is too large, nested repositories) comes along as a copy, as it is
 * in the worktree now. Of what is ignored all comes that is there now: dependencies may have been installed since.
 */
import type { ChildProcess } from 'node:child_process'
import type { Stats } from 'node:fs'
import { constants } from 'node:fs'
import { type UncoveredReason, uncoveredAt, uncoveredPaths } from '../../core/beside.ts'
import type { Checkpoint } from '../../core/checkpoint.ts'
import { CkptError } from '../../core/errors.ts'
import { ancestorsOf, barePath, parentOf, printable, type RelativePath } from '../../core/paths.ts'
import { type Env, errno, lstatIfThere, temporaryDirectory } from '../../env.ts'
import { scrubbed } from '../../git/process.ts'
import { withoutRoom } from '../../git/temporary.ts'
import { behindSymlink, entriesIn, mountsWithin, native, permissions } from '../../snapshot/disk.ts'
import { viewOf } from '../../snapshot/view.ts'
import type { Context } from '../worktree/context.ts'

export interface Tried {
  exitCode: number
  /** What the state had and could not be laid out: no checkpoint holds it, and it is no more, or cannot be copied. */
  missing: Missing[]
}

export interface Missing {
  path: string
  reason: UncoveredReason
}

export interface State {
  checkpoint: Checkpoint
  now: Now
}

/** The worktree, from which comes what no checkpoint holds. */
interface Now {
  ignored: readonly RelativePath[]
  /** Whether a checkpoint of now would hold it: to a state without it, it does not come. */
  isHeld: (path: string) => boolean
}

/** What the command says of that state. @throws CkptError USAGE when it cannot be run at all */
export async function tryAt(context: Context, state: State, command: readonly string[]): Promise<Tried> {
  const { env } = context
  const within = env.files.realpathSync(temporaryDirectory(env)) // as the mounts are told
  const directory = `${within}/ckpt-bisect-${env.random(8)}`
  let child: ChildProcess | null = null
  let made: Stats | null = null
  const remove = () => made === null || removeLaidOut(env, directory, made)
  const stops = (['SIGINT', 'SIGTERM', 'SIGHUP'] as const).map((signal) =>
    env.onSignal(signal, () => {
      child?.kill(signal)
      remove()
      for (const stop of stops) stop()
      env.kill(env.pid, signal)
    }),
  )
  try {
    env.files.mkdirSync(directory, { mode: 0o700 })
    made = env.files.lstatSync(directory)
    const missing = await layOut(context, state, directory).catch((error: unknown) => {
      throw withoutRoom(env, error)
    })
    const started = (one: ChildProcess) => {
      child = one
    }
    return { exitCode: await exitOf(env, command, { cwd: directory, within, started }), missing }
  } finally {
    for (const stop of stops) stop()
    if (!remove())
      context.warnings.push(
        `${printable(directory)}, where a state was tried, was not removed, or not all of it: look at what the command left there, or mounted.`,
      )
  }
}

async function layOut(context: Context, { checkpoint, now }: State, directory: string): Promise<Missing[]> {
  const { env, store, worktree } = context
  const { files } = env
  const view = await viewOf(store, checkpoint)
  for (const [path, entry] of await store.trees.files(view.tree)) {
    const at = native(directory, path)
    files.mkdirSync(native(directory, parentOf(path)), { recursive: true })
    const bytes = await store.objects.get(entry.oid, 'blob')
    const state = view.fileState(path, entry)
    if (entry.mode === '120000') files.symlinkSync(bytes, at)
    else {
      files.writeFileSync(at, bytes)
      if (state.kind === 'present') files.chmodSync(at, state.mode) // which no umask cuts
    }
  }
  for (const path of view.beside.emptyDirectories) files.mkdirSync(native(directory, path), { recursive: true })
  const missing: Missing[] = []
  for (const path of new Set([...uncoveredPaths(view.beside), ...now.ignored])) {
    const bare = barePath(path)
    if (ancestorsOf(bare).some((above) => lstatIfThere(files, native(directory, above))?.isDirectory() === false))
      continue
    files.mkdirSync(native(directory, parentOf(bare)), { recursive: true })
    const isBehind = behindSymlink(env, worktree.root, bare)
    if (!isBehind) await env.progress(`copying ${printable(bare)}`)
    const isCopied = !isBehind && copyTree(env, { from: worktree.root, to: directory, isHeld: now.isHeld }, bare)
    const { reason = 'ignored' } = uncoveredAt(view.beside, path) ?? {}
    if (!isCopied && reason !== 'ignored') missing.push({ path, reason })
  }
  // The innermost first: one that is closed lets nobody at what is in it.
  for (const path of [...(await view.paths())]
    .filter((one) => one.endsWith('/'))
    .sort()
    .reverse()) {
    const state = await view.state(path)
    if (state.kind === 'directory') files.chmodSync(native(directory, path), state.mode)
  }
  return missing
}

/**
 * Copies with times, for build tools go by them, and says whether it could. What goes meanwhile, may not be read or is no
 * file is left out, and so is every `.git`: it may lead to the user's own repository, or to its files. What is of the state
 * stays, and a directory that is there gets the rest.
 */
function copyTree(env: Env, places: { from: string; to: string; isHeld: Now['isHeld'] }, path: string): boolean {
  const { files } = env
  const { from, to, isHeld } = places
  const [source, target] = [native(from, path), native(to, path)]
  const stats = lstatIfThere(files, source)
  if (!stats || String(source) === to) return false // the temporary directory may lie in the worktree
  const there = lstatIfThere(files, target)
  if (there && !(there.isDirectory() && stats.isDirectory())) return false
  const copyBelow = () => {
    for (const { name } of entriesIn(env, source))
      if (name !== '.git' && !isHeld(`${path}/${name}`)) copyTree(env, places, `${path}/${name}`)
  }
  try {
    if (there) {
      copyBelow()
      return true
    }
    if (stats.isSymbolicLink()) files.symlinkSync(files.readlinkSync(source, 'buffer'), target)
    else if (stats.isFile()) files.copyFileSync(source, target, constants.COPYFILE_FICLONE)
    else if (stats.isDirectory()) {
      files.mkdirSync(target)
      copyBelow()
      files.chmodSync(target, permissions(stats) | 0o700)
    } else return false
  } catch (error) {
    if (!['ENOENT', 'EACCES', 'EPERM'].includes(errno(error) ?? '')) throw error
    return false
  }
  if (!stats.isSymbolicLink()) files.utimesSync(target, stats.atime, stats.mtime)
  return true
}

/** What the command prints goes to standard error. No repository is found from there: none of the user's is changed. */
function exitOf(
  env: Env,
  command: readonly string[],
  { cwd, within, started }: { cwd: string; within: string; started: (child: ChildProcess) => void },
): Promise<number> {
  const vars = { ...scrubbed(env.vars), GIT_CEILING_DIRECTORIES: within }
  const failed = (cause: unknown) => {
    const missing = errno(cause) === 'ENOENT'
    const why = missing ? ': there is no such program' : cause instanceof Error ? `: ${cause.message}` : ''
    return new CkptError('USAGE', `${printable(command[0]!)} could not be run${why}. Nothing was changed.`, {
      hints: ['ckpt bisect --help'],
      cause,
    })
  }
  return new Promise((resolve, reject) => {
    try {
      const child = env.spawn(command[0]!, command.slice(1), { cwd, env: vars, stdio: ['ignore', 2, 2] })
      started(child)
      child.on('error', (cause) => {
        if (child.pid === undefined) reject(failed(cause)) // else a signal that may not be sent to it
      })
      child.on('close', (code) => resolve(code ?? 1))
    } catch (cause) {
      reject(failed(cause)) // some failures Node throws
    }
  })
}

/**
 * Whether it is gone. The command may have closed directories in it; what it mounted there, or put in its place, is not
 * ours, and stays.
 */
function removeLaidOut(env: Env, directory: string, made: Stats): boolean {
  const found = lstatIfThere(env.files, directory)
  if (!found) return true
  const isIt = found.isDirectory() && found.ino === made.ino && found.dev === made.dev
  if (!isIt || mountsWithin(env, directory).size > 0) return false
  try {
    removeBelow(env, { root: directory, device: made.dev }, '')
    return true
  } catch (error) {
    if (errno(error) === undefined) throw error
    return !env.files.existsSync(directory)
  }
}

function removeBelow(env: Env, within: { root: string; device: number }, path: string): void {
  const { files } = env
  const { root, device } = within
  const at = native(root, path)
  if (files.lstatSync(at).dev !== device) return // mounted, where no list of the mounts is
  files.chmodSync(at, 0o700)
  for (const entry of entriesIn(env, at)) {
    const below = path === '' ? entry.name : `${path}/${entry.name}`
    if (entry.isDirectory()) removeBelow(env, within, below)
    else files.unlinkSync(native(root, below))
  }
  files.rmdirSync(at)
}
