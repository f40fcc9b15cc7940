/**
 * What git's hooks did not let pass, until the session's next commit. They want it otherwise, and may have made it so on disk: what
 * a person stages of it from then on is how it is to be committed.
 */
import { isOid, type SessionId } from '../../core/ids.ts'
import type { Context } from '../worktree/context.ts'
import { type Entry, sameEntry } from './entries.ts'
import { readOfSession, writeOfSession } from './session-file.ts'

/** What its turns made of a path, and what was staged when git refused that first. */
export interface Stopped {
  planned: Entry
  staged: Entry
}

interface Of {
  session: SessionId
  /** What is to be committed. */
  entries: ReadonlyMap<string, Entry>
}

const NAME = 'stopped.json'

/** `staged`: what the person's index has. */
export function rememberStopped(
  context: Context,
  { session, entries, staged }: Of & { staged: ReadonlyMap<string, Entry> },
): void {
  const known = readStopped(context, session)
  const rows = [...entries].map(([path, entry]): [string, Stopped] => {
    const [row, now] = [known.get(path), staged.get(path) ?? null]
    const isSame = row && (sameEntry(row.planned, entry) || sameEntry(now, entry)) // as staged since, that may be
    return [path, isSame ? row : { planned: entry, staged: now }]
  })
  // What is not among them now may be again: what is as HEAD has it was left out of this try.
  writeOfSession(context, { name: NAME, session }, Object.fromEntries([...known, ...rows]))
}

export const forgetStopped = (context: Context, session: SessionId): void =>
  writeOfSession(context, { name: NAME, session }, null)

/** Of what is to be committed what was refused, and is as it was then. */
export function stoppedAsPlanned(context: Context, { session, entries }: Of): Map<string, Stopped> {
  const isAsPlanned = ([path, { planned }]: [string, Stopped]) =>
    entries.has(path) && sameEntry(entries.get(path)!, planned)
  return new Map([...readStopped(context, session)].filter(isAsPlanned))
}

/** By path. A file that is damaged says nothing. */
function readStopped(context: Context, session: SessionId): Map<string, Stopped> {
  const rows = Object.entries((readOfSession(context, { name: NAME, session }) ?? {}) as Record<string, Stopped>)
  return new Map(rows.filter(([, row]) => isEntry(row?.planned) && isEntry(row.staged)))
}

const isEntry = (value: unknown): value is Entry =>
  value === null ||
  (typeof value === 'object' &&
    'mode' in value &&
    typeof value.mode === 'string' &&
    'oid' in value &&
    isOid(String(value.oid)))
