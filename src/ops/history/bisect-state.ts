/**
 * A state laid out in a directory of its own, below the temporary directory: a command may do there what it likes. What
 * is ignored (dependencies, say) no checkpoint holds: it comes along as a copy, as it is in the worktree now.
 */
import type { ChildProcess } from 'node:child_process'
import { constants } from 'node:fs'
import type { Checkpoint } from '../../core/checkpoint.ts'
import { CkptError } from '../../core/errors.ts'
import { barePath, parentOf, printable } from '../../core/paths.ts'
import { type Env, errno, lstatIfThere, temporaryDirectory } from '../../env.ts'
import { scrubbed } from '../../git/process.ts'
import { entriesIn, native, permissions } from '../../snapshot/disk.ts'
import { viewOf } from '../../snapshot/view.ts'
import type { Context } from '../worktree/context.ts'

/** The command's exit code in that state. @throws CkptError USAGE when it cannot be run at all */
export async function exitCodeAt(
  context: Context,
  checkpoint: Checkpoint,
  command: readonly string[],
): Promise<number> {
  const { env } = context
  const within = temporaryDirectory(env)
  const directory = `${within}/ckpt-bisect-${env.random(8)}`
  const remove = () => removeLaidOut(env, directory)
  let child: ChildProcess | null = null
  const stops = (['SIGINT', 'SIGTERM', 'SIGHUP'] as const).map((signal) =>
    env.onSignal(signal, () => {
      child?.kill(signal)
      remove()
      env.exit(signal === 'SIGINT' ? 130 : signal === 'SIGTERM' ? 143 : 129)
    }),
  )
  try {
    env.files.mkdirSync(directory, { mode: 0o700 })
    await layOut(context, checkpoint, directory)
    const started = (one: ChildProcess) => {
      child = one
    }
    return await exitOf(env, command, { cwd: directory, within, started })
  } finally {
    for (const stop of stops) stop()
    if (!remove()) context.warnings.push(`${printable(directory)} could not be removed: it is not needed any more.`)
  }
}

async function layOut({ env, store, worktree }: Context, checkpoint: Checkpoint, directory: string): Promise<void> {
  const { files } = env
  const view = await viewOf(store, checkpoint)
  for (const [path, entry] of await store.trees.files(view.tree)) {
    const at = native(directory, path)
    files.mkdirSync(native(directory, parentOf(path)), { recursive: true })
    const bytes = await store.objects.get(entry.oid, 'blob')
    const state = view.fileState(path, entry)
    if (entry.mode === '120000') files.symlinkSync(bytes, at)
    else files.writeFileSync(at, bytes, { mode: state.kind === 'present' ? state.mode : 0o644 })
  }
  for (const path of view.beside.emptyDirectories) files.mkdirSync(native(directory, path), { recursive: true })
  for (const path of view.beside.ignored.keys()) {
    const bare = barePath(path)
    if (!files.existsSync(native(directory, parentOf(bare))) || lstatIfThere(files, native(directory, bare))) continue
    await env.progress(`copying ${printable(bare)}`)
    copyTree(env, { from: worktree.root, to: directory }, bare)
  }
}

/** Copies with times, for build tools go by them. What goes meanwhile, may not be read or is no file is left out. */
function copyTree(env: Env, { from, to }: { from: string; to: string }, path: string): void {
  const { files } = env
  const [source, target] = [native(from, path), native(to, path)]
  const stats = lstatIfThere(files, source)
  if (!stats) return
  try {
    if (stats.isSymbolicLink()) files.symlinkSync(files.readlinkSync(source, 'buffer'), target)
    else if (stats.isFile()) files.copyFileSync(source, target, constants.COPYFILE_FICLONE)
    else if (stats.isDirectory()) {
      files.mkdirSync(target)
      for (const name of files.readdirSync(source, 'latin1')) copyTree(env, { from, to }, `${path}/${name}`)
      files.chmodSync(target, permissions(stats) | 0o700)
    } else return
  } catch (error) {
    if (!['ENOENT', 'EACCES', 'EPERM'].includes(errno(error) ?? '')) throw error
    return
  }
  if (!stats.isSymbolicLink()) files.utimesSync(target, stats.atime, stats.mtime)
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
    return new CkptError('USAGE', `${printable(command[0]!)} could not be run${why}. Nothing was changed.`, { cause })
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

/** Whether it is gone; the command may have closed directories in it. */
function removeLaidOut(env: Env, directory: string): boolean {
  try {
    removeBelow(env, directory, '')
    return true
  } catch (error) {
    if (errno(error) === undefined) throw error
    return !env.files.existsSync(directory)
  }
}

function removeBelow(env: Env, root: string, path: string): void {
  const { files } = env
  const at = native(root, path)
  files.chmodSync(at, 0o700)
  for (const entry of entriesIn(env, at)) {
    const below = path === '' ? entry.name : `${path}/${entry.name}`
    if (entry.isDirectory()) removeBelow(env, root, below)
    else files.unlinkSync(native(root, below))
  }
  files.rmdirSync(at)
}
