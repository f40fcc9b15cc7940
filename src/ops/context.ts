/** One worktree with its store, opened for one command. */
import { type Config, DEFAULTS } from '../config/defaults.ts'
import { CkptError } from '../core/errors.ts'
import { printable } from '../core/paths.ts'
import { type Env, errno } from '../env.ts'
import { brokenFrame, createStore, isStoreLost, mendFrame, storeExists, worktreeNames } from '../git/frame.ts'
import type { KeptProcess } from '../git/line-process.ts'
import { type HeadState, ignoreFiles, type Repository, readHead } from '../git/repository.ts'
import { Store, type StorePlace } from '../git/store.ts'
import type { SnapshotCache } from '../snapshot/cache.ts'
import type { Hint } from '../snapshot/scan.ts'
import type { Worktree } from '../snapshot/worktree.ts'
import { isHeld, withLock } from './lock.ts'
import { waitingMarkers } from './marker-files.ts'
import { claimWorktreeId, describeWorktree, findWorktree, placeStore } from './place.ts'
import { recover } from './recover.ts'
import { liesWithin } from './worktree-path.ts'

export interface Context {
  env: Env
  worktree: Worktree
  repository: Repository | null
  config: Config
  place: StorePlace
  store: Store
  /** False: nothing was ever recorded in this repository; reading commands then see an empty store. */
  exists: boolean
  warnings: string[]
  /** In the daemon: what it knows of the worktree without looking. */
  live?: LiveScan
}

/** What a watcher adds to a scan. */
export interface LiveScan {
  /** Waits until every change before now was seen. `hint` null: a scan has to decide. */
  barrier: () => Promise<{ hint: Hint | null; barrier: 'ok' | 'timeout' | 'none' }>
  cache: () => SnapshotCache | null
  /** The git that has read the ignore rules. */
  rules: KeptProcess
  head: () => Promise<HeadState>
  /** As it was when this call began, if that was just now. */
  headOfCall: () => Promise<HeadState>
  /** What the next scan goes on from; the caller holds the worktree's lock. */
  keep: (cache: SnapshotCache, mode: 'fast' | 'scan') => void
}

/** A worktree that the daemon holds open. */
export interface HeldWorktree {
  root: string
  context: (env: Env) => Promise<Context>
}

export interface OpenOptions {
  /** Makes the store if it is not there. `unless-off`: not where checkpoints are switched off. */
  create?: boolean | 'unless-off'
  /** `init`: a plain directory may get a store. */
  init?: boolean
  /** The command only reads: a refusal says so. */
  reading?: boolean
  /** Passes over an invalid project file that is not committed. */
  forgiving?: boolean
  /** Puts right what keeps git from opening the store. */
  mend?: boolean
}

/** @throws CkptError BAD_ROOT, NOT_INITIALIZED, CONFIG */
export async function openContext(env: Env, cwd: string, options: OpenOptions = {}): Promise<Context> {
  const held = env.held as HeldWorktree | undefined
  if (held && liesWithin(env, cwd, held.root)) return held.context(env)
  const outcome = options.reading ? 'Nothing was read.' : 'Nothing was recorded.'
  const found = await findWorktree(env, cwd, outcome)
  // Without a word of configuration the root itself is checked first: a bad root wins over a bad file.
  placeStore(env, found, { config: DEFAULTS, outcome })
  const { loadConfig } = await import('../config/load.ts')
  const [{ config, warnings }, ignored] = await Promise.all([
    loadConfig(env, { ...found, forgiving: options.forgiving ?? false }),
    found.repository ? ignoreFiles(env, found.repository) : [],
  ])
  let place = placeStore(env, found, { config, outcome })
  let exists = storeExists(env, place)
  const broken = exists && !options.mend ? brokenFrame(env, place) : []
  if (broken.length > 0)
    throw new CkptError(
      'DAMAGED',
      `The store cannot be opened: ${broken.join(' and ')} of it is missing or damaged. ${outcome}`,
      { hints: ['ckpt doctor --fix'] },
    )
  if (!exists && !options.create && !options.init && isStoreLost(env, place))
    throw new CkptError(
      'DAMAGED',
      `The store is gone from ${printable(place.directory)}: what was recorded is only told of there. ${outcome}`,
      {
        hints: ['bring it back from a backup', `to begin anew: rm -r ${printable(place.directory)}`],
      },
    )
  const mended = exists && options.mend ? await mendFrame(env, place) : []
  if (mended.length > 0) warnings.push(`The store could not be opened: its ${mended.join(' and ')} was written anew.`)
  if (!exists && !found.repository && !options.init) {
    throw new CkptError('NOT_INITIALIZED', `${found.root} is a plain directory without a store. ${outcome}`, {
      hints: ['ckpt init   (checkpoints for this directory)', 'git init'],
    })
  }
  const off = options.create === 'unless-off' && !config.enableFileCheckpointing
  if ((options.create && !off) || options.init) {
    if (found.repository) place = claimWorktreeId(env, found.repository, place)
    await createStore(env, place).catch((cause: unknown) => {
      throw misplaced(config, outcome, cause) ?? cause
    })
    exists = true
  }
  const store = Store.open(env, place)
  // Only other worktrees may have been recorded in it, or this one's directory is lost.
  if (exists && options.mend && !place.worktreeId.endsWith('-new'))
    env.files.mkdirSync(store.worktreeDir, { recursive: true, mode: 0o700 })
  return {
    env,
    worktree: describeWorktree(found, place, ignored),
    repository: found.repository,
    config,
    place,
    store,
    exists,
    warnings,
  }
}

/** Null: it is not for where the configuration wants the store. */
function misplaced({ store: { location } }: Config, outcome: string, cause: unknown): CkptError | null {
  const code = errno(cause)
  if (location === 'git' || !code || !/^(ENOTDIR|ENOENT|EEXIST|EACCES|EPERM|EROFS)$/.test(code)) return null
  return new CkptError(
    'CONFIG',
    `"store.location" is ${printable(location)}, where no store can be made (${code}): it must be "git" or an absolute directory. ${outcome}`,
    { hints: ['edit store.location of .checkpointrc'], cause },
  )
}

/** The same for what follows a first change: from there on nothing is cancelled. */
export function uncancelled(context: Context): Context {
  const { signal: _, ...env } = context.env
  return { ...context, env }
}

export function closeContext(context: Context): void {
  if (!context.live) context.store.close()
}

export interface LockOptions {
  command: string
  /** Milliseconds; 30 s unless told. */
  wait?: number
}

/** Runs work under the worktree's lock, after finishing what a killed command left. */
export function locked<T>(
  context: Context,
  { command, wait = 30_000 }: LockOptions,
  work: () => Promise<T>,
): Promise<T> {
  const { env, store, place } = context
  const end = env.monotonic() + wait
  const path = `${store.worktreeDir}/lock`
  const attempt = (): Promise<T> =>
    withLock(env, path, { command, wait: Math.max(0, end - env.monotonic()) }, async () => {
      // A prune holds the store's lock first and then every worktree's: who finds it held steps back.
      if (isHeld(env, `${place.directory}/lock`)) return null
      context.warnings.push(...(await catchUp(context)))
      return { done: await telling(context, work) }
    }).then((result) => (result ? result.done : waitForStore()))
  const waitForStore = async (): Promise<T> => {
    await withLock(
      env,
      `${place.directory}/lock`,
      { command, wait: Math.max(0, end - env.monotonic()) },
      async () => undefined,
    )
    return attempt()
  }
  return attempt()
}

/** Who is refused hears all the same of what was done before. */
async function telling<T>({ warnings }: Context, work: () => Promise<T>): Promise<T> {
  try {
    return await work()
  } catch (error) {
    if (error instanceof CkptError && error.warnings.length === 0) error.warnings = [...warnings]
    throw error
  }
}

/** Finishes what a killed command left, and takes up the markers that waited. The caller holds the worktree's lock. */
async function catchUp(context: Context): Promise<string[]> {
  const warnings = await recover(context)
  if (waitingMarkers(context.env, context.store).length === 0) return warnings
  const { takeUpMarkers } = await import('./markers.ts')
  return [...warnings, ...(await takeUpMarkers(context))]
}

/** Runs work while nobody captures in any worktree of the store. */
export function lockedStore<T>(
  context: Context,
  { command, wait = 30_000 }: LockOptions,
  work: () => Promise<T>,
): Promise<T> {
  const { env, place, store } = context
  return withLock(env, `${place.directory}/lock`, { command, wait }, async () => {
    const names = worktreeNames(env, place)
    const all = names.reduceRight<() => Promise<T>>(
      (inner, name) => () => withLock(env, `${place.directory}/worktrees/${name}/lock`, { command, wait }, inner),
      async () => {
        if (env.files.existsSync(store.worktreeDir)) context.warnings.push(...(await catchUp(context)))
        return telling(context, work)
      },
    )
    return all()
  })
}

export async function headOf({ env, repository, live }: Context): Promise<HeadState> {
  if (live) return live.head()
  return repository ? readHead(env, repository) : { head: null, tree: null, branch: null, busy: null }
}

/** @throws CkptError GIT_BUSY */
export function refuseWhileBusy(head: HeadState): void {
  if (head.busy === null) return
  const finish = head.busy === 'am' ? 'git am --continue' : `git ${head.busy} --continue`
  throw new CkptError('GIT_BUSY', `git is in the middle of a ${head.busy}. Nothing was changed.`, {
    hints: [finish, finish.replace('--continue', '--abort')],
  })
}
