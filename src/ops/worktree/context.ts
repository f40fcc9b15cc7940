/** One worktree with its store, opened for one command. */
import { type Config, DEFAULTS } from '../../config/defaults.ts'
import { CkptError, isDamage } from '../../core/errors.ts'
import { quotedPath, withArticle } from '../../core/hint-words.ts'
import { printable } from '../../core/paths.ts'
import { type Env, errno } from '../../env.ts'
import { closedIn, notReadable } from '../../git/closed.ts'
import { brokenFrame, createStore, isStoreLost, mendFrame, refuseOther, storeExists } from '../../git/frame.ts'
import { endings, HeadReader, type HeadState, NO_HEAD } from '../../git/head.ts'
import type { KeptProcess } from '../../git/line-process.ts'
import { ignoreFiles, type Repository } from '../../git/repository.ts'
import { Store, type StorePlace } from '../../git/store.ts'
import type { SnapshotCache } from '../../snapshot/cache.ts'
import type { Hint } from '../../snapshot/scan.ts'
import { asSpelled } from '../../snapshot/spelling.ts'
import type { Worktree } from '../../snapshot/worktree.ts'
import { orphans, recordOwner } from './apart.ts'
import { linkByPath } from './by-path.ts'
import { BEGUN_ANEW, goneFrom, MOUNT_IT, noteBegunAnew, settleBegunAnew, storeGone } from './gone.ts'
import { claimHalfMade, sweepDrafts, sweepHalfMade } from './half-made.ts'
import { waitingMarkers } from './marker-files.ts'
import {
  claimWorktreeId,
  describeWorktree,
  type Found,
  findWorktree,
  nearestAbove,
  nearestInitialized,
  placeStore,
  toldLeftBehind,
} from './place.ts'
import { liesWithin } from './worktree-path.ts'

export interface Context {
  env: Env
  worktree: Worktree
  repository: Repository | null
  /** Of the repository; {@link headOf} asks it. */
  head: HeadReader | null
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
  /** Null: it is recorded elsewhere by now. */
  context: (env: Env) => Promise<Context | null>
}

export interface OpenOptions {
  /**
   * Makes the store if it is not there. `unless-off`, for markers: not where checkpoints are switched off, but also in the place
   * of one that is away, unless it is to be `present`.
   */
  create?: boolean | 'unless-off'
  /** There may be none yet, but none that is away. */
  present?: boolean
  /** `init`: a plain directory may get a store. */
  init?: boolean
  /** The command only reads: a refusal says so. */
  reading?: boolean
  /** Passes over an invalid project file that is not committed. */
  forgiving?: boolean
  /** Puts right what keeps git from opening the store. */
  mend?: boolean
  /** All of the store is to be read: nothing is to be told from what this user may not read of it. */
  whole?: boolean
}

/** @throws CkptError BAD_ROOT, NOT_INITIALIZED, CONFIG */
export async function openContext(env: Env, cwd: string, options: OpenOptions = {}): Promise<Context> {
  const own = await heldContext(env, cwd)
  if (own) return fromDaemon(own, options)
  const outcome = options.reading ? 'Nothing was read.' : 'Nothing was recorded.'
  const found = await findRoot(env, cwd, outcome)
  const head = found.repository && new HeadReader(env, found.repository)
  try {
    return await openFound(env, { ...found, head }, { ...options, outcome })
  } catch (error) {
    head?.close()
    throw error
  }
}

/**
 * The root, checked without a word of configuration: a project's file says nothing of what is none. The user's own is wrong
 * wherever one is. @throws CkptError BAD_ROOT, CONFIG
 */
async function findRoot(env: Env, cwd: string, outcome: string): Promise<Found> {
  try {
    const found = await findWorktree(env, cwd, outcome)
    placeStore(env, found, { config: DEFAULTS, outcome })
    return found
  } catch (error) {
    if (error instanceof CkptError && error.code === 'BAD_ROOT')
      await (await import('../../config/load.ts')).checkUsersConfig(env)
    throw error
  }
}

async function openFound(
  env: Env,
  found: Found & { head: HeadReader | null },
  { outcome, ...options }: OpenOptions & { outcome: string },
): Promise<Context> {
  const { loadConfig } = await import('../../config/load.ts')
  const ignored = ignoreFilesOf(env, found)
  if (!options.reading) ignored().catch(() => undefined) // asked meanwhile: it will be needed, and fails then
  const { config, warnings } = await loadConfig(env, { ...found, forgiving: options.forgiving ?? false })
  let place = placeStore(env, found, { config, outcome })
  let exists = storeExists(env, place)
  if (!exists) refuseOther(env, place, outcome)
  const closed = exists && options.whole ? closedIn(env, place.directory).filter(({ to }) => to === 'read') : []
  if (closed.length > 0) throw notReadable(place.directory, closed)
  const off = options.create === 'unless-off' && !config.enableFileCheckpointing
  const wants = (options.create && !off) || options.init === true
  const makes = wants || (!exists && config.enableFileCheckpointing && isAwaited(env, found, place))
  const gone = exists ? null : storeGone(env, found, place)
  if (gone !== null && found.repository && (options.create === true || options.present))
    throw new CkptError('DAMAGED', `${goneFrom(gone)} ${outcome}`, {
      hints: [MOUNT_IT, 'ckpt init   (begins anew, without them)'],
    })
  if (!exists)
    warnings.push(
      ...toldLeftBehind(env, { ...found, place, config }),
      ...(gone === null ? [] : [`${goneFrom(gone)}${makes ? BEGUN_ANEW : ''}`]),
      ...toldOrphans(env, found, { place, makes }),
    )
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
        hints: ['bring it back from a backup', `to begin anew: rm -r ${quotedPath(place.directory)}`],
      },
    )
  const mended = exists && options.mend ? await mendFrame(env, place, claimHalfMade(env, 'store')) : []
  if (mended.length > 0) warnings.push(`The store could not be opened: its ${mended.join(' and ')} was written anew.`)
  if (!exists && !found.repository && !options.init) {
    const moved = orphans(env, place.directory, found.root).map(
      ({ directory, was }) => `${moving(directory, place)}   (if this is what was ${printable(was)}: its checkpoints)`,
    )
    const elsewhere = env.vars.GIT_DIR ? ' GIT_DIR is set, and ckpt does not follow it.' : ''
    throw new CkptError(
      'NOT_INITIALIZED',
      `${found.root} is a plain directory without a store.${elsewhere}${gone === null ? '' : ` ${goneFrom(gone)}`} ${outcome}`,
      {
        hints: [
          ...(gone === null ? [] : [MOUNT_IT]),
          ...moved,
          'ckpt init   (checkpoints for this directory)',
          ...(elsewhere ? [] : ['git init']),
        ],
      },
    )
  }
  if (makes) {
    if (found.repository) place = claimWorktreeId(env, found.repository, place)
    await createStore(env, place, claimHalfMade(env, 'store')).catch((cause: unknown) => {
      throw misplaced(config, outcome, cause) ?? cause
    })
    if (place.owner !== undefined) recordOwner(env, place.directory, place.owner)
    if (gone !== null && !options.init) noteBegunAnew(env, place.directory)
    exists = true
  }
  const store = Store.open(env, place)
  if (exists && (options.create || options.init || options.mend)) {
    sweepHalfMade(env, place.directory)
    for (const directory of [place.directory, store.gitDir, store.worktreeDir]) sweepDrafts(env, directory)
  }
  if (options.init) settleBegunAnew(env, place.directory)
  if (makes) linkByPath(env, found.root, place.owner === undefined ? null : store.worktreeDir)
  // Only other worktrees may have been recorded in it, or this one's directory is lost.
  if (exists && options.mend && !place.worktreeId.endsWith('-new'))
    env.files.mkdirSync(store.worktreeDir, { recursive: true, mode: 0o700 })
  const worktree = describeWorktree(env, found, { place, ignoreFiles: ignored })
  return {
    env: asSpelled(env, worktree),
    worktree,
    repository: found.repository,
    head: found.head,
    config,
    place,
    store,
    exists,
    warnings,
  }
}

/** Whether markers wait for a store: who can only write files was told where, and made the directory. */
function isAwaited(env: Env, { repository }: Found, place: StorePlace): boolean {
  try {
    return repository !== null && waitingMarkers(env, Store.open(env, place)).length > 0
  } catch (error) {
    if (errno(error) === undefined && !isDamage(error)) throw error
    return false // what is wrong with the place is said by who needs it
  }
}

/** They are asked for once. */
function ignoreFilesOf(env: Env, { repository }: Found): Worktree['ignoreFiles'] {
  let asked: Promise<readonly string[]> | null = null
  return () => {
    asked ??= repository ? ignoreFiles(env, repository) : Promise.resolve([])
    return asked
  }
}

/** Null: nothing is held open, or not the worktree of that directory. */
async function heldContext(env: Env, cwd: string): Promise<Context | null> {
  const held = env.held as HeldWorktree | undefined
  if (!held || !liesWithin(env, cwd, held.root)) return null
  const context = await held.context(env)
  if (!context || context.repository || cwd === held.root) return context
  // Another plain directory may lie in between.
  const real = env.files.realpathSync(nearestAbove(env, cwd))
  return (await nearestInitialized(env, real)) === held.root ? context : null
}

/** A daemon passes over what a marker passes over, and says so: for others it is asked again. @throws CkptError CONFIG */
async function fromDaemon(context: Context, { forgiving = false }: OpenOptions): Promise<Context> {
  if (!forgiving && context.warnings.length > 0) {
    const { loadConfig } = await import('../../config/load.ts')
    const { env, worktree, head } = context
    await loadConfig(env, { root: worktree.root, head, forgiving })
  }
  return context
}

/** What to tell of stores that a copied repository may have had; `makes`: it gets a new one now. */
function toldOrphans(
  env: Env,
  { repository }: Found,
  { place, makes }: { place: StorePlace; makes: boolean },
): string[] {
  if (!repository || place.owner === undefined) return []
  const aside = `mv ${quotedPath(place.directory)} ${quotedPath(`${place.directory}-set-aside`)} && `
  return orphans(env, place.directory, place.owner).map(
    ({ directory, was }) =>
      `Checkpoints of ${printable(was)}, which is gone, are in ${printable(directory)}. If this is that repository: ${makes ? aside : ''}${moving(directory, place)}`,
  )
}

const moving = (from: string, { directory }: StorePlace): string => `mv ${quotedPath(from)} ${quotedPath(directory)}`

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
  if (context.live) return
  context.store.close()
  context.head?.close()
}

export async function headOf({ head, live }: Pick<Context, 'head' | 'live'>): Promise<HeadState> {
  return live?.head() ?? head?.read() ?? NO_HEAD
}

/** @throws CkptError GIT_BUSY */
export function refuseWhileBusy({ env, repository }: Context, { busy }: HeadState): void {
  if (busy === null || !repository) return
  throw new CkptError('GIT_BUSY', `git is in the middle of ${withArticle(busy)}. Nothing was changed.`, {
    hints: endings(env, repository, busy),
  })
}
