/** Opening a worktree for a command that only reads: it still finishes what a killed one left, if it can. */
import { CkptError } from '../core/errors.ts'
import { type Env, errno } from '../env.ts'
import { type Context, locked, openContext } from './context.ts'
import { journalExists } from './journal.ts'

export async function openForReading(env: Env, cwd: string): Promise<Context> {
  const context = await openContext(env, cwd)
  if (!context.exists || !journalExists(env, context.store)) return context
  try {
    await locked(context, { command: 'recover', wait: 2000 }, async () => undefined)
  } catch (error) {
    const code = errno(error)
    const cannot = code === 'EACCES' || code === 'EROFS' || code === 'EPERM'
    const busy = error instanceof CkptError && error.code === 'LOCKED'
    if (!cannot && !busy) throw error
    context.warnings.push('An operation is unfinished here: what is shown may be half of it.')
  }
  return context
}
