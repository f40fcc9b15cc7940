/** What every call is given, and how it opens the worktree. */
import type { Backends } from '../backends/backends.ts'
import { barePath, pathFromText, type RelativePath } from '../core/paths.ts'
import type { ConflictMode } from '../core/plan.ts'
import type { Env } from '../env.ts'
import { openForReading } from '../ops/recovery/reading.ts'
import { type Context, closeContext, type OpenOptions, openContext } from '../ops/worktree/context.ts'
import type { ConflictChoice } from './requests.ts'

export interface Scope {
  env: Env
  /** Absolute; a directory of the worktree. */
  cwd: string
  backends: Backends
  /** Milliseconds of the monotonic clock when the call came. */
  arrived: number
}

export async function reading<T>({ env, cwd }: Scope, work: (context: Context) => Promise<T>): Promise<T> {
  const context = await openForReading(env, cwd)
  return work(context).finally(() => closeContext(context))
}

export async function writing<T>(
  { env, cwd }: Scope,
  options: OpenOptions,
  work: (context: Context) => Promise<T>,
): Promise<T> {
  const context = await openContext(env, cwd, { create: true, ...options })
  return work(context).finally(() => closeContext(context))
}

export const bytesOf = (paths: readonly string[] = []): RelativePath[] =>
  paths.map((path) => barePath(pathFromText(path)))

export const modeOf = (choice: ConflictChoice = 'refuse'): ConflictMode => choice
