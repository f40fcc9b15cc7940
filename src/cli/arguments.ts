/** From yargs' values to what the operations take. */
import { resolve } from 'node:path'
import { CkptError } from '../core/errors.ts'
import { parseAlone, parsePlace, parseTarget } from '../core/ids.ts'
import type { RelativePath } from '../core/paths.ts'
import type { ConflictMode } from '../core/plan.ts'
import { lstatIfThere } from '../env.ts'
import type { Context } from '../ops/worktree/context.ts'
import { worktreePath } from '../ops/worktree/worktree-path.ts'
import { ITS_HELP } from './again.ts'
import type { Arguments } from './command.ts'

const usage = (message: string) => new CkptError('USAGE', `${message} Nothing was changed.`, { hints: [ITS_HELP] })

/** An option that was given once; twice is a mistake. */
export function text(args: Arguments, name: string): string | undefined {
  const value = args[name]
  if (value === undefined) return undefined
  if (Array.isArray(value)) throw usage(`--${name} was given more than once.`)
  if (String(value) === '') throw usage(`--${name} is empty.`)
  return String(value)
}

/** The same of what is to be read: blanks alone say nothing. */
export function words(args: Arguments, name: string): string | undefined {
  const value = text(args, name)
  if (value?.trim() === '') throw usage(`--${name} is empty.`)
  return value
}

/** What names a turn or checkpoint: no id at all is a mistake, wherever the command was started. */
export function target(args: Arguments, name: string): string | undefined {
  const id = args[name] === '' ? '' : text(args, name)
  if (id !== undefined) parseTarget(id)
  return id
}

/** The same for what one goes back to. */
export function place(args: Arguments, name: string): string | undefined {
  const id = target(args, name)
  if (id !== undefined) parsePlace(id)
  return id
}

/** The same for what is undone alone. */
export function alone(args: Arguments, name: string): string | undefined {
  const id = place(args, name)
  if (id !== undefined) parseAlone(id)
  return id
}

export function flag(args: Arguments, name: string): boolean {
  return args[name] === true
}

/** A whole number of at least 1. */
export function count(args: Arguments, name: string): number | undefined {
  const value = text(args, name)
  if (value === undefined) return undefined
  if (!/^[1-9]\d*$/.test(value))
    throw usage(`--${name} wants a whole number of at least 1, not ${JSON.stringify(value)}.`)
  return Math.min(Number(value), Number.MAX_SAFE_INTEGER)
}

export function oneOf<T extends string>(args: Arguments, name: string, allowed: readonly T[]): T | undefined {
  const value = text(args, name)
  if (value === undefined) return undefined
  if (!allowed.includes(value as T))
    throw usage(`--${name} is one of ${allowed.join(', ')}, not ${JSON.stringify(value)}.`)
  return value as T
}

/** At most one of several flags. */
export function exclusive(args: Arguments, names: readonly string[]): void {
  const given = names.filter((name) => args[name] !== undefined && args[name] !== false)
  if (given.length > 1) throw usage(`${given.map((name) => `--${name}`).join(' and ')} do not go together.`)
}

export function conflictMode(args: Arguments): ConflictMode {
  exclusive(args, ['merge', 'force', 'skip-conflicts'])
  return flag(args, 'merge')
    ? 'merge'
    : flag(args, 'force')
      ? 'force'
      : flag(args, 'skip-conflicts')
        ? 'skip'
        : 'refuse'
}

/** Paths as they were given. @throws CkptError USAGE for an empty one */
export function givenPaths(paths: readonly string[] = []): readonly string[] {
  if (paths.includes(''))
    throw usage('A path is empty; the whole worktree is named by none at all, or by its top directory.')
  return paths
}

/** Paths as given, relative to where the command was started, to paths of the worktree. */
export function worktreePaths(context: Context, cwd: string, given: readonly string[]): RelativePath[] {
  const real = context.env.files.realpathSync(cwd)
  return given.map((path) => {
    // Node reads an argument as UTF-8, and this is what it makes of other bytes.
    if (path.includes('\ufffd') && !lstatIfThere(context.env.files, path.startsWith('/') ? path : `${real}/${path}`)) {
      throw new CkptError(
        'USAGE',
        `${JSON.stringify(path)} holds bytes that are not UTF-8: no argument can name it. Nothing was changed.`,
        { hints: ['name the directory that it lies in', 'ckpt show ID   (its exact name: pathBase64, with --json)'] },
      )
    }
    const found = worktreePath(context, path.startsWith('/') ? path : `${real}/${path}`)
    if (found === null) throw usage(`${JSON.stringify(path)} is not in the worktree ${context.worktree.root}.`)
    return found as RelativePath
  })
}

/** The file that a command is about. */
export function fileName(args: Arguments): string {
  const name = String(args.file)
  if (name === '') throw usage('The name of the file is empty.')
  return name
}

export function remoteName(args: Arguments): string {
  const name = String(args.remote)
  if (name === '') throw usage('The name of the remote is empty.')
  return name
}

/** A file of the person's, relative to where the command was started. */
export function absolute(cwd: string, path: string): string {
  return resolve(cwd, path)
}
