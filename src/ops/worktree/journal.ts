/** The journal of an operation that changes several things: present only while it is being carried out. */
import { createHash } from 'node:crypto'
import { refuseCancelled } from '../../core/cancel.ts'
import { CkptError, reasonOf } from '../../core/errors.ts'
import type { FileAction } from '../../core/plan.ts'
import { type Env, errno } from '../../env.ts'
import { isOutOfRoom } from '../../git/denied.ts'
import type { HeadState } from '../../git/head.ts'
import type { RefEdit } from '../../git/refs.ts'
import type { Store } from '../../git/store.ts'
import { readIfThere, removeIfThere, syncDirectory, writeFileWhole } from '../../git/whole-file.ts'
import type { ApplyEntry } from '../../snapshot/apply-entry.ts'

export interface Journal {
  version: 1
  /** undo, redo, restore, …; `refs` when only refs move. */
  op: string
  /** 12 hex digits: part of the names of temporary files. */
  nonce: string
  session: string
  time: string
  entries: ApplyEntry[]
  /** Directories that may go when they are empty: the target provably does not have them. Deepest first. */
  removable: string[]
  /** Permission bits of directories that have to be made. */
  directoryMode: number
  refs: RefEdit[]
  /** HEAD when it was begun, where files are written. */
  head?: Pick<HeadState, 'head' | 'branch'>
  /** What the git hooks read when it is done; null: no boundary is pending. */
  marker: string | null
}

/** One that only moves refs. */
export function refsJournal(
  env: Env,
  { op, session, refs, marker }: Pick<Journal, 'op' | 'session' | 'refs' | 'marker'>,
): Journal {
  const time = new Date(env.now()).toISOString()
  return {
    version: 1,
    op,
    nonce: env.random(6),
    session,
    time,
    entries: [],
    removable: [],
    directoryMode: 0,
    refs,
    marker,
  }
}

const fileOf = (store: Store) => `${store.worktreeDir}/journal.json`

export function journalEntries(actions: readonly FileAction[]): ApplyEntry[] {
  return actions
    .filter((a) => a.action !== 'conflict' && a.action !== 'skip')
    .map(({ path, pre, post }) => ({ path, pre, post }))
}

/**
 * Written whole and synced before anything it speaks of is touched. From here on an operation is carried out: this is the
 * last moment to cancel it. @throws CkptError CANCELLED
 */
export async function writeJournal(env: Env, store: Store, journal: Journal): Promise<void> {
  await store.objects.syncFresh() // it names them
  refuseCancelled(env.signal)
  const body = JSON.stringify(journal)
  const sum = createHash('sha256').update(body).digest('hex')
  try {
    writeFileWhole(env, fileOf(store), { content: `${sum}\n${body}\n` })
  } catch (error) {
    unwrite(env, store, journal)
    throw error
  }
}

/** Only that the disk has its name may have failed: nothing was begun, and nobody is to go on with it. */
function unwrite(env: Env, store: Store, { op }: Journal): void {
  try {
    removeIfThere(env, fileOf(store))
  } catch (error) {
    throw notYet(`The ${op} is written down, and nothing of it is done yet, for writing failed`, error)
  }
}

/** Refs that a journal speaks of cannot be moved now. It stays. */
export function notYet(what: string, cause: unknown): CkptError {
  return new CkptError(
    'INTERNAL',
    `${what}: ${reasonOf(cause)} Nothing is lost: the next command that can write finishes it.`,
    {
      cause,
      hints: [isOutOfRoom(cause) ? 'free some disk space, then: ckpt status' : 'ckpt status'],
    },
  )
}

export function removeJournal(env: Env, store: Store): void {
  env.files.unlinkSync(fileOf(store))
  try {
    syncDirectory(env, store.worktreeDir)
  } catch (error) {
    if (errno(error) === undefined) throw error // it is done: where the power fails now, the journal is there again, and all is as it says
  }
}

export function journalExists(env: Env, store: Store): boolean {
  return env.files.existsSync(fileOf(store))
}

/** @throws CkptError DAMAGED when it was cut short: nothing is done on its word */
export function readJournal(env: Env, store: Store): Journal | null {
  const bytes = readIfThere(env, fileOf(store))
  if (bytes === null) return null
  const text = bytes.toString('utf8')
  const newline = text.indexOf('\n')
  const body = text.slice(newline + 1).trimEnd()
  if (newline < 0 || createHash('sha256').update(body).digest('hex') !== text.slice(0, newline)) {
    throw new CkptError(
      'DAMAGED',
      'The journal of an unfinished operation is damaged. Nothing was changed; the files are as that operation left them, and its safety checkpoint is in the store.',
      { hints: ['ckpt doctor --fix   (sets the journal aside)', 'ckpt list --sessions'] },
    )
  }
  return JSON.parse(body) as Journal
}

/** Moves a damaged journal out of the way; it is kept for whoever wants to look. */
export function setJournalAside(env: Env, store: Store): string | null {
  const aside = `${store.worktreeDir}/journal.damaged-${env.random(4)}.json`
  try {
    env.files.renameSync(fileOf(store), aside)
    return aside
  } catch (error) {
    if (errno(error) === 'ENOENT') return null
    throw error
  }
}
