/** Refs that are not where they were last moved to, though no command of ours moved them. */
import type { Checkpoint } from '../../core/checkpoint.ts'
import { CkptError, isDamage, unlessDamaged } from '../../core/errors.ts'
import type { Oid, SessionId } from '../../core/ids.ts'
import { printable } from '../../core/paths.ts'
import { worktreeNames } from '../../git/frame.ts'
import { isRefOf } from '../../git/history.ts'
import { refuseUnreadable } from '../../git/refs.ts'
import { promptsTree } from '../../git/side-refs.ts'
import { readTips, type Tips, worktreeOf } from '../../git/tips.ts'
import type { Context } from '../worktree/context.ts'
import { journalExists } from '../worktree/journal.ts'
import { refsByWorktree } from '../worktree/worktrees.ts'
import { comesFromSafety, reachable, readKnown } from './known.ts'

export interface Strayed {
  ref: string
  /** A checkpoint that is on no branch any more: the ref was moved on after it had been moved back. */
  lost?: Oid
  said: string
}

/** `now`: the refs of one worktree. One that is behind, or gone; what a ref got ahead loses nothing. */
export async function strayedRefs(context: Context, tips: Tips, now: ReadonlyMap<string, Oid>): Promise<Strayed[]> {
  const strayed: Strayed[] = []
  for (const [ref, values] of tips.refs) {
    const actual = now.get(ref) ?? null
    if (values.has(actual)) continue
    if (actual === null) refuseUnreadable(context.env, context.store.gitDir, [ref])
    const was = [...values].map((one) => one?.slice(0, 10) ?? 'nothing').join(' or ')
    if (actual === null) strayed.push({ ref, said: `${printable(ref)} is gone: it was moved to ${was} last` })
    else if (!(await isAhead(context, { ref, actual, values })))
      strayed.push({ ref, said: `${printable(ref)} is at ${actual.slice(0, 10)}, and was moved to ${was} last` })
  }
  for (const { ref, was } of tips.overtaken) {
    if (!(await isLost(context, was))) continue
    const said = `${printable(ref)} had been moved back when it was next moved on: ${was.slice(0, 10)} is on no branch`
    strayed.push({ ref, lost: was, said })
  }
  return strayed
}

/** What a ref led to that somebody else moved or removed would go for good. @throws CkptError DAMAGED */
export async function refuseStrayed(context: Context): Promise<void> {
  const all = await refsByWorktree(context)
  for (const [worktree, now] of all) {
    const tips = believable(context, worktree)
    const whole = new Map([...all.values()].flatMap((refs) => [...refs]))
    const said = tips
      ? (await strayedRefs(context, tips, now)).map((one) => `The store's ref ${one.said}.`)
      : toldUnled(await unledSessions(context, worktree, whole)).map((one) => `In the store ${one}.`)
    if (said[0] !== undefined)
      throw new CkptError('DAMAGED', `${said[0]} Nothing was removed.`, {
        hints: ['ckpt doctor --fix   (puts it back)'],
      })
  }
}

/**
 * Sessions of which no ref is left in any worktree, though their checkpoints are there, while nothing says where this
 * worktree's refs were moved to. `whole`: the refs of every worktree.
 */
export async function unledSessions(
  context: Context,
  worktree: string,
  whole: ReadonlyMap<string, Oid>,
): Promise<SessionId[]> {
  const { env, place, store } = context
  const names = worktreeNames(env, place)
  if (names.some((name) => journalExists(env, store.of(name)))) return [] // what is on its way has no refs yet
  // A worktree without any ref, beside others that have some, never had one.
  if (whole.size > 0 && ![...whole.keys()].some((ref) => worktreeOf(ref) === worktree)) return []
  const known = await readKnown(context, whole)
  const others = names.filter((name) => name !== worktree)
  const written = others.flatMap((name) =>
    [...(believable(context, name)?.refs.values() ?? [])].flatMap((to) => [...to]),
  )
  const led = reachable(known, [...whole.values(), ...written.filter((oid) => oid !== null)])
  // The very first of a store may have been cut short before its ref was made: nobody was told of it.
  const isUnled = (one: Checkpoint) => one.parents.length > 0 && !led.has(one.id) && !comesFromSafety(known, one)
  const unled = [...known.checkpoints.values()].filter(isUnled)
  const isThere = (session: SessionId) => [...whole.keys()].some((ref) => isRefOf(session, ref))
  return [...new Set(unled.map(({ session }) => session))].filter((session) => !isThere(session))
}

/** One sentence for each. */
export const toldUnled = (sessions: readonly SessionId[]): string[] =>
  sessions.map((session) => `no ref leads to the checkpoints of session ${printable(session)}, which are there`)

/** Null: nothing is known of where refs were moved to, and they are believed as they are. */
export function believable({ env, place }: Context, worktree: string): Tips | null {
  try {
    return readTips(env, place.directory, worktree)
  } catch (error) {
    if (isDamage(error)) return null
    throw error
  }
}

interface Moved {
  ref: string
  actual: Oid
  values: ReadonlySet<Oid | null>
}

/** Whether a ref still has all that it was moved to: its history, or its rows. */
async function isAhead({ store }: Context, { ref, actual, values }: Moved): Promise<boolean> {
  const notes = ref.startsWith('refs/notes/')
  const isOfRows = notes || /\/@(meta|scan)$/.test(ref)
  if (!isOfRows && (await store.objects.read(actual))?.type !== 'commit') return false
  for (const was of values) {
    if (was === null) continue
    if ((await store.objects.read(was)) === null) continue
    if (!isOfRows) {
      const args = ['merge-base', '--is-ancestor', was, actual]
      if ((await store.tryGit(args)).code === 0) return true
      continue
    }
    const left = await unlessDamaged(async () => {
      const [before, after] = notes ? [await promptsTree(store, was), await promptsTree(store, actual)] : [was, actual]
      return store.trees.compare(before, after)
    }, null)
    if (left && !ref.endsWith('/@scan') && left.every(({ from }) => from === null)) return true
  }
  return false
}

/** On no branch, though it is there: what was pruned since is nobody's loss. */
async function isLost({ store }: Context, was: Oid): Promise<boolean> {
  if ((await store.objects.read(was))?.type !== 'commit') return false
  const args = ['for-each-ref', `--contains=${was}`, '--count=1', 'refs/ckpt/']
  const found = await store.tryGit(args)
  return found.code === 0 && found.stdout.length === 0
}
