/** Doctor: finds what is wrong and says how to mend it; mends what is safe when asked. */
import { constants } from 'node:fs'
import { CkptError, isDamage, reasonOf, unlessDamaged } from '../../core/errors.ts'
import { quotedName, quotedPath } from '../../core/hint-words.ts'
import { printable, shortList } from '../../core/paths.ts'
import { type Env, errno } from '../../env.ts'
import { closedIn, opening, toldOf } from '../../git/closed.ts'
import { isNearlyFull } from '../../git/failure.ts'
import { runGit, tryGit } from '../../git/process.ts'
import { notFollowedYet } from '../committed/under-way.ts'
import { besideOf, newestCheckpoint } from '../record/record.ts'
import { locked, lockedStore } from '../recovery/locked.ts'
import { recoverRemoved, requireContents } from '../recovery/recover.ts'
import { markPending, rescueSafety } from '../recovery/rescue.ts'
import { isLeftOver, unfinishedOperations } from '../recovery/unfinished.ts'
import { readForgetting } from '../store/forgetting.ts'
import { steadily, untilQuiet } from '../store/steadily.ts'
import type { Context } from '../worktree/context.ts'
import { remoteFileSystem } from '../worktree/file-systems.ts'
import { goneFrom, MOUNT_IT, STAYS, storeGone, toldBegunAnew } from '../worktree/gone.ts'
import { journalExists, readJournal, setJournalAside } from '../worktree/journal.ts'
import { isAtWork } from '../worktree/lock.ts'
import { nearestAbove } from '../worktree/place.ts'
import { readReplaced, unreadReplaced, writeReplaced } from '../worktree/replaced.ts'
import { readRefs } from '../worktree/sessions.ts'
import { FIX, type Finding } from './finding.ts'
import { checkLocks } from './locks.ts'
import { checkMarkers } from './markers.ts'
import { checkObjects, mendSpilled } from './objects.ts'
import { alone, checkBoundaries, checkHistory, checkPacks, checkRefs } from './timeline.ts'

export interface DoctorOptions {
  fix: boolean
  breakLock: boolean
}

/** The oldest git that has all that is used here. */
const OLDEST_GIT = [2, 34] as const

export async function doctor(context: Context, asked: DoctorOptions): Promise<Finding[]> {
  const findings = [await checkGit(context.env), ...(await checkIndex(context)), ...checkSwitch(context)]
  if (!context.exists) {
    const above = nearestAbove(context.env, context.place.directory)
    const { root } = context.worktree
    const gone = storeGone(context.env, { root, repository: context.repository }, context.place)
    const none: Finding = gone
      ? { name: 'store', ok: false, detail: goneFrom(gone), mend: MOUNT_IT }
      : { name: 'store', ok: true, detail: 'nothing was recorded here yet' }
    return [...findings, unwritable(context.env, above, `chmod u+rwx ${quotedPath(above)}`) ?? none]
  }
  const place = checkFileSystem(context)
  const options = place.ok ? asked : { fix: false, breakLock: false }
  findings.push(checkLocks(context, options.breakLock), ...checkBegunAnew(context))
  await untilQuiet(context)
  // Who mends looks again under the lock.
  const seen = (look: () => Promise<Finding>) => (options.fix ? look() : steadily(context, look, ({ ok }) => ok))
  const packs = await seen(() => checkPacks(context, options.fix))
  const rewritten = options.fix ? await mendSpilled(context) : []
  // What a damaged pack held may be what a ref names: nothing is decided on what is left.
  const refs = await seen(() => checkRefs(context, options.fix && packs.ok))
  if (packs.mend && refs.mend) refs.mend = packs.mend
  const journals = await checkJournals(context, options.fix && packs.ok)
  if (!place.ok && place.mend) for (const one of journals) if (one.mend) one.mend = place.mend // nothing is finished before
  findings.push(packs, refs, ...journals)
  findings.push(...(await checkCommit(context, options.fix && packs.ok)), ...checkForgetting(context))
  findings.push(...(await checkReplaced(context, options.fix)))
  findings.push(...checkMarkers(context))
  let contents: Finding | null = null
  if (packs.ok && refs.ok) {
    // Of a history that was mended a turn may be gone that was hidden.
    const history = await seen(() => checkHistory(context, options.fix))
    findings.push(await seen(() => checkBoundaries(context, options.fix)), history)
    contents = await seen(() => checkObjects(context, options.fix, rewritten))
    findings.push(contents)
  }
  const newest = await seen(() => checkNewest(context))
  if (newest.mend && contents?.mend) newest.mend = contents.mend
  findings.push(place, ...checkMode(context, options.fix), newest, ...(await checkImportant(context)))
  const { durable } = context.store
  findings.push({
    name: 'durable',
    ok: durable,
    detail: durable ? 'no object is borrowed' : "objects are borrowed from the user's repository",
  })
  return findings
}

async function checkGit(env: Env): Promise<Finding> {
  const { stdout } = await tryGit(env, { args: ['--version'] })
  const [major = 0, minor = 0] = (/(\d+)\.(\d+)/.exec(stdout.toString('utf8')) ?? []).slice(1).map(Number)
  const ok = major > OLDEST_GIT[0] || (major === OLDEST_GIT[0] && minor >= OLDEST_GIT[1])
  const detail = `git ${major}.${minor}${ok ? '' : `, older than ${OLDEST_GIT.join('.')}`}`
  return { name: 'git', ok, detail, ...(ok ? {} : { mend: 'install a newer git' }) }
}

function checkBegunAnew({ env, place }: Context): Finding[] {
  const detail = toldBegunAnew(env, place.directory)
  return detail === null ? [] : [{ name: 'store', ok: false, advice: true, detail, mend: `${MOUNT_IT}, or: ${STAYS}` }]
}

function checkSwitch({ config }: Context): Finding[] {
  if (config.enableFileCheckpointing) return []
  const detail = 'enableFileCheckpointing is false: no turn is recorded'
  return [
    {
      name: 'switch',
      ok: true,
      advice: true,
      detail,
      mend: 'enableFileCheckpointing: true in .checkpointrc, here or your own',
    },
  ]
}

/** The user's index says which files are tracked. One that cannot be read is theirs to make anew. */
async function checkIndex({ env, repository }: Context): Promise<Finding[]> {
  if (!repository) return []
  try {
    await runGit(env, { args: ['ls-files', '-z', '--', '.git'], cwd: repository.root }) // no such path is in it: it is read, and that is all
    return []
  } catch (error) {
    if (!(error instanceof CkptError)) throw error
    const mend = error.hints.find((hint) => hint !== 'ckpt doctor')
    return [{ name: 'index', ok: false, detail: reasonOf(error), ...(mend ? { mend } : {}) }]
  }
}

/** This worktree's, those that nobody can finish in their own, and those that somebody can. */
async function checkJournals(context: Context, fix: boolean): Promise<Finding[]> {
  const own = await checkJournal(context, fix)
  const removed = await checkRemoved(context, fix)
  const found = [own, removed, ...checkElsewhere(context)].filter((one) => one !== null)
  return found.length > 0 ? found : [{ name: 'journal', ok: true, detail: 'no operation was cut short' }]
}

async function checkJournal(context: Context, fix: boolean): Promise<Finding | null> {
  const { env, store } = context
  if (!journalExists(env, store)) return null
  if (!fix && !isLeftOver(context)) return { name: 'journal', ok: true, detail: 'an operation is at work' }
  let damage: string | null = null
  try {
    const journal = readJournal(env, store)
    if (journal) await requireContents(store, journal)
  } catch (error) {
    damage = error instanceof Error ? error.message : String(error)
  }
  if (damage === null && fix) {
    await locked(context, { command: 'doctor' }, async () => undefined)
    return { name: 'journal', ok: true, fixed: true, detail: 'the operation that was cut short was finished' }
  }
  if (damage === null)
    return {
      name: 'journal',
      ok: false,
      detail: 'an operation was cut short',
      mend: 'any command that writes finishes it, or: ckpt doctor --fix',
    }
  if (!fix) return { name: 'journal', ok: false, detail: damage, mend: FIX }
  return { name: 'journal', ok: true, fixed: true, detail: await alone(context, () => setAside(context)) }
}

/** What is not to be believed; the state before that operation is kept. Returns what to tell the person. */
async function setAside(context: Context): Promise<string> {
  const safety = await rescueSafety(context)
  const aside = setJournalAside(context.env, context.store)
  await markPending(context)
  const before = safety ? `; as they were before it: ckpt restore ${safety.id.slice(0, 10)} --exact --force` : ''
  return `the journal was set aside (${aside}); the files are as that operation left them${before}`
}

/** Worktrees that were removed while an operation was not finished. */
async function checkRemoved(context: Context, fix: boolean): Promise<Finding | null> {
  const removed = unfinishedOperations(context).filter((one) => one.removed)
  if (removed.length === 0) return null
  const names = removed.map(({ context: { place } }) => place.worktreeId).join(', ')
  const detail = `an operation was cut short in a worktree that was removed since: ${names}`
  if (!fix) return { name: 'journal', ok: false, detail, mend: FIX }
  const said: string[] = []
  for (const { context: one } of removed) said.push(...(await alone(one, () => finishRemoved(one))))
  return { name: 'journal', ok: true, fixed: true, detail: said.join(' ') }
}

/** What other worktrees have not finished, and nobody is at work at: `prune` and `forget` wait for it. */
function checkElsewhere(context: Context): Finding[] {
  const { store } = context
  return unfinishedOperations(context)
    .filter((one) => !one.removed && one.context.store.worktreeDir !== store.worktreeDir && isLeftOver(one.context))
    .map(({ context: { place }, missing, ways }) => ({
      name: 'journal',
      ok: false,
      advice: true,
      detail: `an operation was cut short in worktree ${printable(place.worktreeId)}${missing ? ', which is not where git says' : ''}`,
      mend: ways.join(', or: '),
    }))
}

async function finishRemoved(context: Context): Promise<string[]> {
  try {
    return await recoverRemoved(context)
  } catch (error) {
    if (!isDamage(error)) throw error
    return [`In worktree ${printable(context.place.worktreeId)}, which was removed since: ${await setAside(context)}.`]
  }
}

/** A `ckpt commit` that the user's index does not follow yet: their next commit would take it back. */
async function checkCommit(context: Context, fix: boolean): Promise<Finding[]> {
  const commit = await notFollowedYet(context)
  if (commit === null) return []
  const detail = `commit ${commit.slice(0, 10)} was cut short: your index does not follow it yet`
  if (!fix) return [{ name: 'commit', ok: false, detail, mend: 'ckpt status   (finishes it)' }]
  await locked(context, { command: 'doctor' }, async () => undefined)
  const isLeft = (await notFollowedYet(context)) !== null
  if (isLeft) return [{ name: 'commit', ok: false, detail, mend: 'ckpt status   (once no other git is at work)' }]
  return [{ name: 'commit', ok: true, fixed: true, detail: `your index follows commit ${commit.slice(0, 10)}` }]
}

/** What `forget` was to remove is in the store until it went through. */
function checkForgetting({ env, store, place }: Context): Finding[] {
  const left = readForgetting(env, store)
  if (left?.size === 0 || isAtWork(env, `${place.directory}/lock`)) return []
  const paths = [...(left?.keys() ?? [])]
  const what = paths.length === 0 ? 'something' : shortList(paths)
  const mend = `ckpt forget ${paths.length === 0 ? 'PATH' : quotedName(paths[0]!)}   (again, until it says that it is done)`
  return [{ name: 'forget', ok: false, detail: `forgetting ${what} was cut short: it may be in the store still`, mend }]
}

/** The ids that `forget` changed: what of them is unreadable is lost, and old ids that stood there name nothing any more. */
async function checkReplaced(context: Context, fix: boolean): Promise<Finding[]> {
  const { env, store } = context
  const lost = unreadReplaced(env, store)
  if (lost === 0) return []
  const name = 'replaced'
  const what = `${lost} of the ids that ckpt forget changed cannot be read`
  if (!fix) return [{ name, ok: false, detail: what, mend: `${FIX}   (keeps the others)` }]
  await lockedStore(context, { command: 'doctor' }, async () => writeReplaced(env, store, readReplaced(env, store)))
  return [{ name, ok: true, fixed: true, detail: `${what}: old ids that stood there name nothing any more` }]
}

/** `open`: what lets us write there, if its mode is what stands in the way. */
function unwritable(env: Env, directory: string, open: string): Finding | null {
  try {
    env.files.accessSync(directory, constants.W_OK)
    return null
  } catch (error) {
    const code = errno(error) ?? 'unknown'
    const mend =
      code === 'EROFS'
        ? `mount the file system of ${printable(directory)} so that it can be written; until then nothing is recorded`
        : code === 'EPERM'
          ? `${env.platform === 'darwin' ? 'ls -ldO' : 'lsattr -d'} ${quotedPath(directory)}   (shows what forbids it to everybody)`
          : open
    return { name: 'store', ok: false, detail: `the store cannot be written (${code})`, mend }
  }
}

function checkFileSystem({ env, store, place }: Context): Finding {
  const directory = env.files.existsSync(store.worktreeDir) ? store.worktreeDir : place.directory
  const closed = closedIn(env, place.directory)
  const mend = opening(place.directory, closed)
  const readOnly = unwritable(env, directory, mend)
  if (readOnly) return readOnly
  if (isNearlyFull(env, directory))
    return {
      name: 'store',
      ok: false,
      detail: 'hardly any room is left where the store is: nothing may be recorded until there is',
      // It would have to finish first what was cut short, which needs room.
      mend: `free some space on the file system of ${printable(directory)}${journalExists(env, store) ? '' : ', or: ckpt prune --keep N'}`,
    }
  if (closed.length > 0)
    return { name: 'store', ok: false, detail: `the store cannot be written: ${toldOf(closed)}`, mend }
  const remote = remoteFileSystem(env, directory)
  if (remote)
    return {
      name: 'store',
      ok: true,
      detail: `writable, on ${remote}: locks of other hosts cannot be judged from here`,
    }
  return { name: 'store', ok: true, detail: 'writable' }
}

/** What was copied, or brought back from a backup, may have other modes than it was made with: a store holds all that was ever captured. */
function checkMode({ env: { files }, place: { directory } }: Context, fix: boolean): Finding[] {
  const isOpen = () => (files.statSync(directory).mode & 0o077) !== 0
  if (!isOpen()) return []
  const mode = (files.statSync(directory).mode & 0o777).toString(8)
  const detail = `other users can look into the store, ${printable(directory)} (mode ${mode})`
  if (!fix) return [{ name: 'store', ok: false, advice: true, detail, mend: FIX }]
  try {
    files.chmodSync(directory, 0o700)
  } catch (error) {
    if (errno(error) === undefined) throw error
  }
  // Not every file system has modes of its own.
  if (isOpen()) return [{ name: 'store', ok: false, advice: true, detail }]
  return [{ name: 'store', ok: true, fixed: true, detail: 'only you can look into the store now' }]
}

/** The newest checkpoint can be read to its last tree; `ckpt verify` reads everything. */
async function checkNewest(context: Context): Promise<Finding> {
  try {
    const newest = await newestCheckpoint(context, await readRefs(context))
    if (!newest) return { name: 'checkpoint', ok: true, detail: 'none yet' }
    const files = await context.store.trees.files(newest.tree)
    await besideOf(context, newest)
    return { name: 'checkpoint', ok: true, detail: `the newest names ${files.size} file${files.size === 1 ? '' : 's'}` }
  } catch (error) {
    const detail = error instanceof Error ? error.message : String(error)
    const { directory } = context.place
    const mendable = error instanceof CkptError && error.hints.some((hint) => hint.startsWith(FIX))
    if (mendable) return { name: 'checkpoint', ok: false, detail, mend: FIX }
    const mend = `ckpt verify names all that is missing; to begin anew beside it: mv ${quotedPath(directory)} ${quotedPath(`${directory}.damaged`)}`
    return { name: 'checkpoint', ok: false, detail, mend }
  }
}

/** What is left out though its loss would hurt: secrets and databases are ignored by most projects. */
const IMPORTANT = /(^|\/)(\.env(\..+)?|[^/]+\.(sqlite3?|db|mdb))$/

async function checkImportant(context: Context): Promise<Finding[]> {
  const newest = await readRefs(context)
    .then((refs) => newestCheckpoint(context, refs))
    .catch(() => null) // said by the finding above
  if (!newest) return []
  const beside = await unlessDamaged(() => besideOf(context, newest), null)
  if (!beside) return [] // the same
  const found = [...beside.ignored.keys(), ...beside.uncovered.map((entry) => entry.path)].filter((path) =>
    IMPORTANT.test(path),
  )
  if (found.length === 0)
    return [{ name: 'coverage', ok: true, detail: 'no left-out file looks like a secret or a database' }]
  return [
    {
      name: 'coverage',
      ok: false,
      advice: true,
      detail: `not in any checkpoint: ${shortList(found)}`,
      mend: `name them in snapshot.include of .checkpointrc`,
    },
  ]
}
