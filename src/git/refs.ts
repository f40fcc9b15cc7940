/** Refs of the store: read as files or with for-each-ref, moved by `git update-ref --stdin` transactions that name the old values. */
import { dirname } from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import { CkptError } from '../core/errors.ts'
import { type Oid, parseOid } from '../core/ids.ts'
import { type Env, errno } from '../env.ts'
import { closedAt, notReadable } from './closed.ts'
import { gitFailure } from './failure.ts'
import { ageOf } from './file-clock.ts'
import type { FoundObject } from './object-reader.ts'
import type { ObjectStore } from './objects.ts'
import { tryGit } from './process.ts'
import { plainRefs } from './ref-files.ts'

export interface RefEdit {
  ref: string
  /** Null: must not exist yet. Undefined: whatever it is. */
  from?: Oid | null
  /** Null: delete. */
  to: Oid | null
}

export interface RefTip {
  ref: string
  oid: Oid
  /** The commit object's message and the like; empty for other types. */
  contents: string
  type: string
}

/** A commit's message as for-each-ref gives it. */
export function messageOf({ type, bytes }: FoundObject): string {
  const text = type === 'commit' ? bytes.toString('utf8') : ''
  const end = text.indexOf('\n\n')
  return end < 0 ? '' : text.slice(end).replace(/^\n+/, '')
}

/** By git, on its way out: what is in another encoding, or goes on after a NUL. */
const isConverted = ({ type, bytes }: FoundObject): boolean =>
  type === 'commit' && (bytes.includes(0) || bytes.includes('\nencoding '))

/** Without a git, where the refs and what they name are plain files; null: {@link listRefs} is to be asked. */
export function plainTips(
  env: Env,
  { gitDir, objects }: { gitDir: string; objects: ObjectStore },
  prefixes: readonly string[],
): RefTip[] | null {
  const tips: RefTip[] = []
  const refs = plainRefs(env, { gitDir, hash: objects.hash }, prefixes)
  if (!refs) return null
  for (const { ref, oid } of refs) {
    const object = objects.readLoose(oid)
    if (!object || object.type === 'tag' || isConverted(object)) return null
    tips.push({ ref, oid, type: object.type, contents: messageOf(object) })
  }
  return tips
}

/** @throws CkptError DAMAGED when a ref does not hold an id */
export async function listRefs(
  env: Env,
  { gitDir, vars }: { gitDir: string; vars: Record<string, string> },
  prefixes: readonly string[],
): Promise<RefTip[]> {
  const args = ['for-each-ref', '--format=%(refname)%00%(objectname)%00%(objecttype)%00%(contents)%00%00', ...prefixes]
  const result = await tryGit(env, { args, cwd: gitDir, vars })
  // git passes over a ref that was cut short, and exits 0: a session would be begun anew over it.
  const broken = /ignoring broken ref (\S+)/.exec(result.stderr)?.[1]
  if (broken !== undefined) {
    refuseUnreadable(env, gitDir, [broken])
    throw new CkptError('DAMAGED', `The store's ref ${broken} cannot be read. Nothing was changed.`, {
      hints: ['ckpt doctor --fix   (sets it to the newest checkpoint that is left)'],
    })
  }
  if (result.code !== 0) throw gitFailure(args, result, { store: true })
  return result.stdout
    .toString('utf8')
    .split('\0\0\n')
    .filter((row) => row !== '')
    .map((row) => {
      const [ref, oid, type, contents] = row.split('\0')
      return { ref: ref!, oid: parseOid(oid!), type: type!, contents: contents ?? '' }
    })
}

/** What this user may not read is not broken. `names`: of files in the git directory. @throws CkptError INTERNAL */
export function refuseUnreadable(env: Env, gitDir: string, names: readonly string[]): void {
  for (const name of names) {
    const closed = closedAt(env, `${gitDir}/${name}`)
    if (closed) throw notReadable(dirname(gitDir), [closed])
  }
}

/** Somebody else moved a ref between reading and writing. */
const refMoved = (detail: string) =>
  new CkptError('INTERNAL', `The store changed meanwhile (${detail}). Nothing was changed.`, {
    hints: ['run the command again'],
  })

const NO_OID = '0'.repeat(40)

/** The edits as `git update-ref --stdin` reads them, old values named. */
export function transaction(edits: readonly RefEdit[]): string {
  const width = edits.find((edit) => edit.to)?.to ?? edits.find((edit) => edit.from)?.from ?? NO_OID
  const zero = '0'.repeat(width.length)
  return edits
    .map(({ ref, from, to }) => {
      const old = from === undefined ? '' : ` ${from ?? zero}`
      return to === null ? `delete ${ref}${old}` : `update ${ref} ${to}${old}`
    })
    .join('\n')
}

/**
 * One transaction: all edits or none. `durable` syncs the refs to disk before it returns.
 * @throws CkptError INTERNAL when an old value is not what was named
 */
export async function moveRefs(
  env: Env,
  { gitDir, vars }: { gitDir: string; vars: Record<string, string> },
  { edits, durable }: { edits: readonly RefEdit[]; durable: boolean },
): Promise<void> {
  if (edits.length === 0) return
  const args = [...(durable ? ['-c', 'core.fsync=reference'] : []), 'update-ref', '--stdin']
  const result = await tryGit(env, {
    args,
    cwd: gitDir,
    vars,
    input: `start\n${transaction(edits)}\nprepare\ncommit\n`,
  })
  if (result.code === 0 && /^commit: ok$/m.test(result.stdout.toString('latin1'))) return
  if (/is at [0-9a-f]+ but expected|reference already exists|unable to resolve reference/.test(result.stderr)) {
    throw refMoved(result.stderr.trim().split('\n')[0]!.slice(0, 200))
  }
  throw gitFailure(args, result, { store: true })
}

/** Milliseconds after which a shared ref's lock file is taken for a killed process's. */
const STALE_LOCK = 5000

/**
 * Clears a lock file that a killed git left on a ref: at once where nobody else can be at work on it (`own`), else when it
 * is old, and after a moment for its holder to end. `clock`: a directory on the same file system, for its time.
 */
export async function clearRefLock(
  env: Env,
  lock: string,
  { own, clock }: { own: boolean; clock: string },
): Promise<void> {
  const { files } = env
  try {
    if (own || ageOf(env, clock, files.lstatSync(lock)) > STALE_LOCK) files.unlinkSync(lock)
  } catch (error) {
    if (errno(error) !== 'ENOENT') throw error
  }
  if (!own) await pause(50)
}
