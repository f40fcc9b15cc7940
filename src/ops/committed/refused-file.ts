/** What `ckpt commit` refused for a conflict, until the session's next commit. */
import { isOid, type Oid, type SessionId } from '../../core/ids.ts'
import type { Context } from '../worktree/context.ts'
import { readOfSession, writeOfSession } from './session-file.ts'

export interface Refused {
  /** What HEAD was. */
  head: Oid
  /** When: milliseconds since 1970, UTC. */
  time: number
  /** The place in the order of the last checkpoint that was refused. */
  seq: number
}

const NAME = 'refused.json'

/** By path. Where the file is damaged it is refused once more. */
export function readRefused(context: Context, session: SessionId): Map<string, Refused> {
  const rows = Object.entries((readOfSession(context, { name: NAME, session }) ?? {}) as Record<string, Refused>)
  return new Map(
    rows.filter(
      ([, row]) => typeof row?.head === 'string' && isOid(row.head) && [row.seq, row.time].every(Number.isInteger),
    ),
  )
}

/** `rows`: none: what was refused is over. */
export const rememberRefused = (context: Context, session: SessionId, rows: ReadonlyMap<string, Refused>): void =>
  writeOfSession(context, { name: NAME, session }, rows.size === 0 ? null : Object.fromEntries(rows))
