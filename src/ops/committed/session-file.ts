/** Small files beside the timeline that hold something of each session, until its next commit. */
import type { SessionId } from '../../core/ids.ts'
import { readIfThere, writeFileWhole } from '../../git/whole-file.ts'
import type { Context } from '../worktree/context.ts'

interface Of {
  /** Of the file. */
  name: string
  session: SessionId
}

const fileOf = ({ store }: Context, name: string) => `${store.worktreeDir}/${name}`

/** A file that is damaged says nothing. */
function readAll(context: Context, name: string): Record<string, unknown> {
  try {
    const known: unknown = JSON.parse(readIfThere(context.env, fileOf(context, name))?.toString('utf8') ?? '{}')
    return typeof known === 'object' && known !== null ? (known as Record<string, unknown>) : {}
  } catch (error) {
    if (error instanceof SyntaxError) return {}
    throw error
  }
}

export const readOfSession = (context: Context, { name, session }: Of): unknown => readAll(context, name)[session]

/** `value`: null: what was there is over. */
export function writeOfSession(context: Context, { name, session }: Of, value: object | null): void {
  const { [session]: before, ...others } = readAll(context, name)
  if (before === undefined && value === null) return
  const all = value === null ? others : { ...others, [session]: value }
  writeFileWhole(context.env, fileOf(context, name), { content: JSON.stringify(all) })
}
