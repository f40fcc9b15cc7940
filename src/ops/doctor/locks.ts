/** Doctor, the locks: this worktree's, the store's own, and those of its other worktrees, which prune and forget take too. */
import { removeIfThere } from '../../git/whole-file.ts'
import { locksOf } from '../store/steadily.ts'
import type { Context } from '../worktree/context.ts'
import { type HolderState, holderState, lockedBy, readHolder } from '../worktree/lock.ts'
import type { Finding } from './finding.ts'

const DAEMON = 'the daemon: '

interface Held {
  path: string
  /** Empty: this worktree's. */
  whose: string
  state: HolderState
  by: string
  /** No command can do without it. */
  needed: boolean
}

/** `breakLock`: removes those whose holder cannot be seen. */
export function checkLocks(context: Context, breakLock: boolean): Finding {
  const all = heldLocks(context)
  const unseen = all.filter(({ state }) => state === 'unknown')
  const alive = all.filter(({ state }) => state === 'alive')
  if (unseen.length > 0 && !breakLock) {
    const detail = said(unseen, (by) => `held by ${by}, which cannot be seen from here`)
    return { name: 'lock', ok: false, detail, mend: 'ckpt doctor --break-lock' }
  }
  for (const { path } of unseen) removeIfThere(context.env, path)
  const inTheWay = breakLock ? alive.filter(({ needed }) => needed) : []
  if (inTheWay.length > 0) {
    const detail = said(inTheWay, (by) => `held by ${by}, which is alive: not broken`)
    return { name: 'lock', ok: false, detail, mend: 'end that process' }
  }
  if (unseen.length > 0) {
    return { name: 'lock', ok: true, fixed: true, detail: said(unseen, (by) => `the lock of ${by} was broken`) }
  }
  if (alive.length > 0)
    return { name: 'lock', ok: true, detail: said(alive, (by) => `held by ${by}, which is at work`) }
  if (all.length === 0) return { name: 'lock', ok: true, detail: 'not held' }
  const detail = said(all, (by) => `left by ${by}, which is gone: the next command takes it over`)
  return { name: 'lock', ok: true, detail }
}

const said = (locks: readonly Held[], words: (by: string) => string): string =>
  locks.map(({ whose, by }) => `${whose}${words(by)}`).join('; ')

function heldLocks(context: Context): Held[] {
  const { env, store } = context
  const locks = locksOf(context).map(({ path, worktree }) => {
    const own = path === `${store.worktreeDir}/lock`
    const whose = own ? '' : worktree === null ? 'the store: ' : `worktree ${worktree}: `
    return { path, whose, needed: own || worktree === null }
  })
  const held = [...locks, { path: `${store.worktreeDir}/daemon/lock`, whose: DAEMON, needed: false }]
  return held.flatMap((lock): Held[] => {
    const holder = readHolder(env, lock.path)
    if (holder === null) return []
    const state = holder === 'unreadable' ? 'unknown' : holderState(env, holder)
    // A daemon that is there, or whose place the next one takes, is no news.
    if (lock.whose === DAEMON && state !== 'unknown') return []
    return [{ ...lock, state, by: lockedBy(env, holder) }]
  })
}
