/** The highest number that a session's turns had, where prune removed the turn that bore it: no number is given twice. */
import type { SessionId } from '../../core/ids.ts'
import { readIfThere, writeFileWhole } from '../../git/whole-file.ts'
import type { Context } from './context.ts'

const fileOf = ({ store }: Pick<Context, 'store'>) => `${store.worktreeDir}/numbers`

/** By session. A line that is none says nothing. */
function readNumbers({ env, store }: Pick<Context, 'env' | 'store'>): Map<string, number> {
  const text = readIfThere(env, fileOf({ store }))?.toString('latin1') ?? ''
  const lines = [...text.matchAll(/^(\d{1,9}) ((?:[0-9a-f]{2})+)$/gm)]
  return new Map(lines.map(([, number, hex]) => [Buffer.from(hex!, 'hex').toString('utf8'), Number(number)]))
}

/** 0: none. */
export const highestPruned = (context: Pick<Context, 'env' | 'store'>, session: SessionId): number =>
  readNumbers(context).get(session) ?? 0

export function rememberHighest(context: Context, highest: ReadonlyMap<SessionId, number>): void {
  if (highest.size === 0) return
  const all = readNumbers(context)
  for (const [session, number] of highest) all.set(session, Math.max(number, all.get(session) ?? 0))
  const lines = [...all].map(([session, number]) => `${number} ${Buffer.from(session, 'utf8').toString('hex')}\n`)
  writeFileWhole(context.env, fileOf(context), { content: lines.join('') })
}
