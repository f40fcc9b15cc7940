/** What `ckpt commit` refused for a conflict, until the session's next commit: a small file beside the timeline. */
import { isOid, type Oid, type SessionId } from '../../core/ids.ts'
import { readIfThere, writeFileWhole } from '../../git/whole-file.ts'
import type { Context } from '../worktree/context.ts'

export interface Refused {
  /** What HEAD was. */
  head: Oid
  /** When: milliseconds since 1970, UTC. */
  time: number
  /** The place in the order of the last checkpoint that was refused. */
  seq: number
}

/** Of each session, by path. */
type Sessions = Record<SessionId, Record<string, Refused>>

const refusedFile = ({ store }: Context) => `${store.worktreeDir}/refused.json`

/** A file that is damaged says nothing: then it is refused once more. */
function readAll(context: Context): Sessions {
  try {
    const known: unknown = JSON.parse(readIfThere(context.env, refusedFile(context))?.toString('utf8') ?? '{}')
    return typeof known === 'object' && known !== null ? (known as Sessions) : {}
  } catch (error) {
    if (error instanceof SyntaxError) return {}
    throw error
  }
}

export function readRefused(context: Context, session: SessionId): Map<string, Refused> {
  const rows = Object.entries(readAll(context)[session] ?? {})
  return new Map(
    rows.filter(
      ([, row]) => typeof row?.head === 'string' && isOid(row.head) && [row.seq, row.time].every(Number.isInteger),
    ),
  )
}

/** `rows`: none: what was refused is over. */
export function rememberRefused(context: Context, session: SessionId, rows: ReadonlyMap<string, Refused>): void {
  const { [session]: before, ...others } = readAll(context)
  if (before === undefined && rows.size === 0) return
  const all = rows.size === 0 ? others : { ...others, [session]: Object.fromEntries(rows) }
  writeFileWhole(context.env, refusedFile(context), { content: JSON.stringify(all) })
}
