/** Verify, what the refs say: chains of checkpoints, boundaries, and whether any ref was moved by somebody else. */

import { parseBeside } from '../../core/beside.ts'
import { lostTurn, parseRecord, recordObjects } from '../../core/boundary.ts'
import { type Checkpoint, turnsBegun } from '../../core/checkpoint.ts'
import { CkptError } from '../../core/errors.ts'
import type { Oid, SessionId } from '../../core/ids.ts'
import { printable } from '../../core/paths.ts'
import { worktreeNames } from '../../git/frame.ts'
import { groupRefs, isRefOf, readCheckpoint } from '../../git/history.ts'
import type { RefTip } from '../../git/refs.ts'
import { fanout } from '../../git/side-refs.ts'
import { readTips, worktreeOf } from '../../git/tips.ts'
import { strayedRefs, toldUnled, unledSessions } from '../store/strayed.ts'
import { readAll } from '../store/verify-objects.ts'
import { isMarkerOf, readMarker } from '../worktree/boundary-marker.ts'
import type { Context } from '../worktree/context.ts'
import { foreignWorktree, refsByWorktree } from '../worktree/worktrees.ts'

const wrong = (message: string) => new CkptError('VERIFY_FAILED', message)

export interface TimelineResult {
  /** Every checkpoint that a ref reaches. */
  checkpoints: Map<Oid, Checkpoint>
  /** Those of each worktree. */
  chains: Checkpoint[][]
  /** Sessions whose boundary is pending, of every worktree. */
  pending: { session: SessionId; worktree: string }[]
}

/** Every chain from its tip to its root: commits readable, order rising, what lies beside them there. */
export async function verifyChains({ env, store }: Context, found: TimelineResult): Promise<void> {
  const tips = await store.refs('refs/ckpt/')
  const besides = new Set<Oid>()
  const recorded = new Set<Oid>()
  for (const prefix of new Set(tips.map(({ ref }) => `${ref.split('/').slice(0, 3).join('/')}/`))) {
    const own = tips.filter(({ ref }) => ref.startsWith(prefix))
    const chain = new Map<Oid, Checkpoint>()
    const { meta } = groupRefs(prefix, own)
    for (const tip of own) {
      const leaf = tip.ref.slice(prefix.length)
      if (leaf === '@meta' || leaf === '@scan') continue
      if (tip.type !== 'commit') throw wrong(`${printable(tip.ref)} names no checkpoint`)
      const { session } = await readCheckpoint(store, tip.oid)
      if (!isRefOf(session, tip.ref))
        throw wrong(`${printable(tip.ref)} names a checkpoint of session ${printable(session)}`)
      if (leaf.endsWith('/boundary')) found.pending.push({ session, worktree: prefix.split('/')[2]! })
      await walk(tip.oid, chain)
    }
    found.chains.push([...chain.values()])
    for (const oid of besides) {
      if (meta && (await store.trees.lookup(meta, fanout(oid)))) continue
      throw wrong(`what lies beside a checkpoint (${oid}) is not kept by ${prefix}@meta`)
    }
    besides.clear()
  }
  await readAll(env, store, [...recorded])

  async function walk(tip: Oid, chain: Map<Oid, Checkpoint>): Promise<void> {
    for (let id: Oid | undefined = tip, child: Checkpoint | null = null; id !== undefined; ) {
      const known: Checkpoint | undefined = found.checkpoints.get(id)
      const checkpoint: Checkpoint = known ?? (await readCheckpoint(store, id))
      if (child && checkpoint.seq >= child.seq) throw wrong(`${child.id} does not come after its parent ${id}`)
      if (chain.has(id)) return
      chain.set(id, checkpoint)
      child = checkpoint
      id = checkpoint.parents[0]
      if (known) continue
      found.checkpoints.set(checkpoint.id, checkpoint)
      besides.add(checkpoint.beside)
      parseBeside(await store.objects.get(checkpoint.beside, 'blob'))
      if (checkpoint.record) {
        besides.add(checkpoint.record)
        const record = parseRecord(await store.objects.get(checkpoint.record, 'blob'))
        for (const oid of recordObjects(record)) recorded.add(oid)
      }
    }
  }
}

/** Each pending boundary belongs to its session's live chain, and is what the git hooks read. */
export async function verifyBoundaries(context: Context, checkpoints: TimelineResult['checkpoints']): Promise<string> {
  const { env, store, place } = context
  const tips = await store.refs('refs/ckpt/')
  let count = 0
  for (const worktree of worktreesOf(context, tips)) {
    const prefix = `refs/ckpt/${worktree}/`
    const refs = groupRefs(
      prefix,
      tips.filter(({ ref }) => ref.startsWith(prefix)),
    )
    for (const { session, live, boundary } of refs.sessions.values()) {
      if (!boundary) continue
      count++
      const one = await readCheckpoint(store, boundary.id)
      const said = `the boundary of session ${printable(session)}`
      if (!one.record) throw wrong(`${said} has no record`)
      const record = parseRecord(await store.objects.get(one.record, 'blob'))
      if (record.session !== session) throw wrong(`${said} has the record of another session`)
      await readCheckpoint(store, record.baseline)
      const lost = lostTurn(record, turnsBegun(checkpoints, live?.id))
      if (lost !== null) throw wrong(`${said} hides turn ${lost}, which is not in its live chain`)
    }
    const directory = `${place.directory}/worktrees/${worktree}`
    if (foreignWorktree(worktree)) continue
    if (env.files.existsSync(`${directory}/journal.json`)) continue // its recovery writes what the hooks read
    if (!isMarkerOf(refs, readMarker(env, store.of(worktree))))
      throw wrong(`what the git hooks of worktree ${worktree} read is not what its refs say is pending`)
  }
  return count === 0 ? 'none is pending' : `${count} pending, each in its live chain`
}

/** Those that have refs, and those that have a directory. */
function worktreesOf({ env, place }: Context, tips: readonly RefTip[]): string[] {
  const named = tips.flatMap(({ ref }) => worktreeOf(ref) ?? [])
  return [...new Set([...named, ...worktreeNames(env, place)])].sort()
}

/** No ref is behind what it was last moved to, and none is gone. What a ref got ahead loses nothing. */
export async function verifyTips(context: Context): Promise<string> {
  const { env, place } = context
  const bad: string[] = []
  let count = 0
  const all = await refsByWorktree(context)
  const whole = new Map([...all.values()].flatMap((refs) => [...refs]))
  for (const [worktree, own] of all) {
    const tips = readTips(env, place.directory, worktree)
    if (tips === null) {
      bad.push(...toldUnled(await unledSessions(context, worktree, whole)))
      if (own.size > 0) bad.push(`nothing says where the refs of worktree ${worktree} were last moved to`)
      continue
    }
    count += tips.refs.size
    bad.push(...(await strayedRefs(context, tips, own)).map(({ said }) => said))
  }
  if (bad.length > 0) throw wrong(bad.join(', '))
  return `${count} are where they were last moved to`
}
