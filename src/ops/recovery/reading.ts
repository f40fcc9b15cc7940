/** Opening a worktree for a command that only reads: it still finishes what a killed one left, if it can. */
import { CkptError } from '../../core/errors.ts'
import { type Env, errno } from '../../env.ts'
import { tornPacks } from '../store/torn-packs.ts'
import { isNoted } from '../worktree/commit-note.ts'
import { type Context, closeContext, openContext } from '../worktree/context.ts'
import { journalExists } from '../worktree/journal.ts'
import { isAtWork } from '../worktree/lock.ts'
import { waitingMarkers } from '../worktree/marker-files.ts'
import { locked } from './locked.ts'

export async function openForReading(env: Env, cwd: string): Promise<Context> {
  const context = await openContext(env, cwd, { reading: true, present: true })
  try {
    return await recovered(env, cwd, context)
  } catch (error) {
    closeContext(context) // its git would stay
    throw error
  }
}

async function recovered(env: Env, cwd: string, context: Context): Promise<Context> {
  const { exists, store } = context
  if (!exists) return context
  const journal = journalExists(env, store)
  const commit = await isCommitCutShort(context)
  const waiting = hasMarkers(context)
  if (!journal && !commit && !waiting && tornPacks(context).length === 0) return context
  try {
    await locked(context, { command: 'recover', wait: 2000 }, async () => undefined)
  } catch (error) {
    const cannot = ['EACCES', 'EROFS', 'EPERM', 'ENOSPC', 'EDQUOT'].includes(errno(error) ?? '')
    const notNow = error instanceof CkptError && (error.code === 'LOCKED' || error.code === 'INTERNAL')
    if (!cannot && !notNow) throw error
    const again = await openedAgain(env, cwd, context)
    const isAlive = isAtWork(env, `${store.worktreeDir}/lock`)
    if (journal)
      again.warnings.push(
        `An operation is ${isAlive ? 'at work' : 'unfinished'} here: what is shown may be half of it.`,
      )
    else if (commit) again.warnings.push('A commit was cut short here, and your index does not follow it yet.')
    else if (waiting) again.warnings.push('Markers wait to be recorded: what is shown lacks them.')
    if (error instanceof CkptError && error.code === 'INTERNAL') again.warnings.push(error.message)
    return again
  }
  if (!store.objects.holds) return context
  const again = await openedAgain(env, cwd, context) // a marker could not be taken up
  again.warnings.push(...context.warnings.filter((one) => !again.warnings.includes(one)))
  return again
}

/** Without what could not be written. */
async function openedAgain(env: Env, cwd: string, context: Context): Promise<Context> {
  closeContext(context)
  return openContext(env, cwd, { reading: true })
}

/** A directory that this user may not read keeps nobody from looking at what is recorded. */
function hasMarkers({ env, store, warnings }: Context): boolean {
  try {
    return waitingMarkers(env, store).length > 0
  } catch (error) {
    if (errno(error) !== 'EACCES') throw error
    warnings.push('Whether markers wait to be recorded cannot be seen: ckpt doctor says what keeps you out.')
    return false
  }
}

async function isCommitCutShort(context: Context): Promise<boolean> {
  return isNoted(context) && (await import('../committed/under-way.ts')).isCutShort(context)
}
