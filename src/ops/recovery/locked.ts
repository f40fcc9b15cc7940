/** Work under a lock: first what a killed command left is finished, and what waited is taken up. */
import { CkptError } from '../../core/errors.ts'
import { worktreeNames } from '../../git/frame.ts'
import { noteGrowth } from '../store/size.ts'
import { mendTorn } from '../store/torn-packs.ts'
import { isNoted } from '../worktree/commit-note.ts'
import type { Context } from '../worktree/context.ts'
import { journalExists } from '../worktree/journal.ts'
import { removeLeftovers } from '../worktree/leftovers.ts'
import { isHeld, withLock } from '../worktree/lock.ts'
import { type TakeUpOptions, waitingMarkers } from '../worktree/marker-files.ts'
import { recover } from './recover.ts'

/** Milliseconds. */
const PATIENCE = 30_000

export interface LockOptions {
  command: string
  /** Milliseconds; 30 s unless told. */
  wait?: number
  /** How many of the markers that wait are taken up first: all of them unless told. */
  first?: TakeUpOptions
}

/** Runs work under the worktree's lock, after finishing what a killed command left. */
export function locked<T>(
  context: Context,
  { command, wait = PATIENCE, first }: LockOptions,
  work: () => Promise<T>,
): Promise<T> {
  const { env, store, place } = context
  const end = env.monotonic() + wait
  const path = `${store.worktreeDir}/lock`
  const attempt = (): Promise<T> =>
    withLock(env, { path, command, wait: Math.max(0, end - env.monotonic()) }, async () => {
      // A prune holds the store's lock first and then every worktree's: who finds it held steps back.
      if (isHeld(env, `${place.directory}/lock`)) return null
      context.warnings.push(...(await catchUp(context, first)))
      return { done: await telling(context, work) }
    }).then((result) => (result ? result.done : waitForStore()))
  const waitForStore = async (): Promise<T> => {
    await withLock(
      env,
      { path: `${place.directory}/lock`, command, wait: Math.max(0, end - env.monotonic()) },
      async () => undefined,
    )
    return attempt()
  }
  return attempt()
}

/** Who is refused hears all the same of what was done before. */
async function telling<T>(context: Context, work: () => Promise<T>): Promise<T> {
  try {
    return await work()
  } catch (error) {
    if (error instanceof CkptError && error.warnings.length === 0) error.warnings = [...context.warnings]
    throw error
  } finally {
    noteGrowth(context)
  }
}

/** Finishes what a killed command left, and takes up the markers that waited. The caller holds the worktree's lock. */
async function catchUp(context: Context, first?: TakeUpOptions): Promise<string[]> {
  const warnings = await mendTorn(context)
  warnings.push(...(await recover(context)))
  if (isNoted(context)) {
    const { finishCommit } = await import('../committed/under-way.ts')
    warnings.push(...(await finishCommit(context, { isBeside: true })))
  }
  if (!isNoted(context)) removeLeftovers(context)
  if (waitingMarkers(context.env, context.store).length === 0) return warnings
  const { takeUpMarkers } = await import('../record/markers.ts')
  return [...warnings, ...(await takeUpMarkers(context, first))]
}

/** Runs work while nobody captures in any worktree of the store; waits 30 s for all of them together. */
export function lockedStore<T>(context: Context, { command }: { command: string }, work: () => Promise<T>): Promise<T> {
  const { env, place, store } = context
  const end = env.monotonic() + PATIENCE
  const lock = (path: string, inner: () => Promise<T>) =>
    withLock(env, { path, command, wait: Math.max(0, end - env.monotonic()) }, inner)
  return lock(`${place.directory}/lock`, async () => {
    const names = worktreeNames(env, place)
    const all = names.reduceRight<() => Promise<T>>(
      (inner, name) => () => lock(`${place.directory}/worktrees/${name}/lock`, inner),
      async () => {
        if (env.files.existsSync(store.worktreeDir)) context.warnings.push(...(await catchUp(context)))
        for (const other of names.map((name) => store.of(name)))
          if (!isNoted({ env, store: other }) && !journalExists(env, other)) removeLeftovers({ env, store: other })
        return telling(context, work)
      },
    )
    return all()
  })
}
