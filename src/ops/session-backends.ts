/** Which sessions of a worktree have a backend other than the default one: a small file that a backend's owner writes. */

import { CkptError } from '../core/errors.ts'
import { quotedPath } from '../core/hint-words.ts'
import type { SessionId } from '../core/ids.ts'
import { readIfThere, writeFileWhole } from '../git/whole-file.ts'
import { locked } from './recovery/locked.ts'
import type { Context } from './worktree/context.ts'

interface Stored {
  version: 1
  sessions: Record<string, string>
}

const fileOf = ({ store }: Context): string => `${store.worktreeDir}/backends.json`

/** Session → name of its backend. One that is not in it has the default. @throws CkptError DAMAGED */
export function readSessionBackends(context: Context): ReadonlyMap<SessionId, string> {
  const bytes = context.exists ? readIfThere(context.env, fileOf(context)) : null
  if (bytes === null) return new Map()
  try {
    const stored = JSON.parse(bytes.toString('utf8')) as Stored
    if (stored.version !== 1) throw new Error(`version ${String(stored.version)}`)
    return new Map(Object.entries(stored.sessions) as [SessionId, string][])
  } catch (cause) {
    throw new CkptError('DAMAGED', `${fileOf(context)} cannot be read. Nothing was changed.`, {
      hints: [`rm ${quotedPath(fileOf(context))}   (every session then has the default backend)`],
      cause,
    })
  }
}

/** Says whose a session is; null: the default backend's. */
export function setSessionBackend(context: Context, session: SessionId, name: string | null): Promise<void> {
  return locked(context, { command: 'backend' }, async () => {
    const sessions = new Map(readSessionBackends(context))
    if (name === null) sessions.delete(session)
    else sessions.set(session, name)
    const stored: Stored = { version: 1, sessions: Object.fromEntries(sessions) }
    writeFileWhole(context.env, fileOf(context), { content: `${JSON.stringify(stored)}\n` })
  })
}
