/** Doctor, what the store tells of sessions: its refs, what the git hooks read, chains of checkpoints. */

import { unlessDamaged } from '../../core/errors.ts'
import { pendingHints, quotedPath } from '../../core/hint-words.ts'
import type { SessionId } from '../../core/ids.ts'
import { printable } from '../../core/paths.ts'
import type { Timeline } from '../../core/timeline.ts'
import { worktreeNames } from '../../git/frame.ts'
import { groupRefs } from '../../git/history.ts'
import { unsyncedPacks } from '../../git/unsynced-packs.ts'
import { clearStaleBoundary, staleTurn } from '../change/boundary.ts'
import { sweepAlone } from '../prune/collect.ts'
import { clearRefLocks } from '../recovery/recover.ts'
import { markPending } from '../recovery/rescue.ts'
import { pushedRefs, takeOut, toldPushed } from '../store/pushed-refs.ts'
import { toldUnled } from '../store/strayed.ts'
import { indexAnew, setPackAside } from '../store/torn-packs.ts'
import { damagedPackFiles, withoutSuffix } from '../store/verify-objects.ts'
import { isMarkerOf, readMarker } from '../worktree/boundary-marker.ts'
import type { Context } from '../worktree/context.ts'
import { journalExists } from '../worktree/journal.ts'
import { withLock } from '../worktree/lock.ts'
import { loadTimeline, readRefs } from '../worktree/sessions.ts'
import { foreignWorktree } from '../worktree/worktrees.ts'
import { FIX, type Finding } from './finding.ts'
import { findEnds, mendEnds } from './mend-history.ts'
import { mendRefs, readAnyRefs, setFileAside, unreadableFile } from './mend-refs.ts'

/** Runs work under the worktree's lock, with nothing finished first: what is damaged would be in the way. */
export function alone<T>({ env, store }: Context, work: () => Promise<T>): Promise<T> {
  return withLock(env, { path: `${store.worktreeDir}/lock`, command: 'doctor', wait: 30_000 }, work)
}

/**
 * Every pack and its index; an index is made anew from a pack that is whole (git-index-pack(1)), and a pack that a power
 * cut took the bytes of before it was synced is set aside: nothing was to rest on it yet.
 */
export async function checkPacks(context: Context, fix: boolean): Promise<Finding> {
  const { store } = context
  const said: string[] = []
  const swept = fix ? sweepAlone(context.env, store.gitDir) : []
  if (swept.length > 0) said.push(`${swept.join(', ')}, left of a pack that was replaced, went`)
  let bad = damagedPackFiles(context)
  const isUnsynced = (name: string) => unsyncedPacks(context.env.files, store.gitDir).includes(withoutSuffix(name))
  for (const name of bad) {
    const pack = `${withoutSuffix(name)}.pack`
    if (!fix || name === pack || bad.includes(pack)) continue
    await alone(context, () => indexAnew(context, withoutSuffix(pack)))
    said.push(`${name} was made anew`)
  }
  for (const pack of new Set(bad.filter((name) => name.endsWith('.pack')).map(withoutSuffix))) {
    if (!fix || !isUnsynced(pack)) continue
    said.push(await alone(context, async () => setPackAside(context, pack)))
  }
  if (said.length > 0) bad = damagedPackFiles(context)
  if (bad.length > 0) {
    const detail = `missing, or not the bytes they were written with: ${bad.join(', ')}`
    const isMendable = bad.every((name) => name.endsWith('.idx') || isUnsynced(name))
    const { directory } = context.place
    const mend = `put the pack back from a backup (ckpt verify names what is lost); to begin anew beside it: mv ${quotedPath(directory)} ${quotedPath(`${directory}.damaged`)}`
    return { name: 'packs', ok: false, detail, mend: isMendable ? FIX : mend }
  }
  if (said.length > 0) {
    store.objects.forget()
    return { name: 'packs', ok: true, fixed: true, detail: said.join('; ') }
  }
  return { name: 'packs', ok: true, detail: 'each is whole' }
}

export async function checkRefs(context: Context, fix: boolean): Promise<Finding> {
  const said: string[] = []
  for (let name = await unreadableFile(context.store); name; name = await unreadableFile(context.store)) {
    const file = name
    if (!fix) return damagedRefs([`git cannot read ${file}`])
    const aside = await alone(context, async () => setFileAside(context, file))
    said.push(`${file}, which git cannot read, is ${aside} now`)
  }
  const pushed = await pushedRefs(context)
  if (pushed.length > 0 && !fix) return damagedRefs(toldPushed(pushed))
  if (pushed.length > 0) said.push(...(await alone(context, () => takeOut(context, pushed))))
  const bad: string[] = []
  for (const one of await everyWorktree(context)) {
    const refs = await readAnyRefs(one)
    const { worktreeId } = one.place
    const wrong = refs.strayed.map((ref) => ref.said)
    if (refs.broken.length > 0) wrong.unshift(`cannot be read: ${refs.broken.map(printable).join(', ')}`)
    if (refs.unwritten) wrong.push(`nothing says where the refs of worktree ${worktreeId} were last moved to`)
    wrong.push(...toldUnled(refs.unled))
    bad.push(...wrong)
    if (wrong.length > 0 && fix) said.push(...(await mendWorktree(one)))
  }
  if (said.length > 0) return { name: 'refs', ok: true, fixed: true, detail: said.join('; ') }
  return bad.length > 0 ? damagedRefs(bad) : { name: 'refs', ok: true, detail: 'each names what is there' }
}

const damagedRefs = (bad: readonly string[]): Finding => ({
  name: 'refs',
  ok: false,
  detail: bad.join('; '),
  mend: FIX,
})

function mendWorktree(context: Context): Promise<string[]> {
  context.env.files.mkdirSync(context.store.worktreeDir, { recursive: true, mode: 0o700 })
  return alone(context, async () => {
    clearRefLocks(context)
    const mended = await mendRefs(context, await readAnyRefs(context))
    await markPending(context)
    return mended
  })
}

/** Contexts that read and mend the store's part of each worktree; this one's first. Their files are elsewhere. */
async function everyWorktree(context: Context): Promise<Context[]> {
  const { env, place, store } = context
  const { stdout, stderr } = await store.tryGit(['for-each-ref', '--format=%(refname)'])
  // Of a ref that is broken git tells by a warning.
  const named = [...`${stdout} ${stderr}`.matchAll(/\brefs\/(?:notes\/)?ckpt\/([^/\s]+)/g)].map((match) => match[1]!)
  const ids = new Set([...named, ...worktreeNames(env, place)])
  ids.delete(place.worktreeId)
  return [
    context,
    ...[...ids].map((worktreeId) => ({ ...context, place: { ...place, worktreeId }, store: store.of(worktreeId) })),
  ]
}

/** Of each worktree: what is pending hides turns that are there, and the git hooks read it as its refs say. */
export async function checkBoundaries(context: Context, fix: boolean): Promise<Finding> {
  const { env } = context
  const bad: string[] = []
  const cleared: string[] = []
  const bare: string[] = []
  for (const one of await everyWorktree(context)) {
    const { store, place } = one
    if (foreignWorktree(place.worktreeId)) continue
    bare.push(...(await withoutBaseline(one)))
    const stale = await staleBoundaries(one)
    bad.push(...stale)
    if (stale.length > 0 && fix) cleared.push(...(await alone(one, () => clearStale(one))))
    if (journalExists(env, store) || !env.files.existsSync(store.worktreeDir)) continue // its recovery writes it
    const refs = groupRefs(store.refPrefix, await store.refs(store.refPrefix))
    if (isMarkerOf(refs, readMarker(env, store))) continue
    bad.push(`what the git hooks of worktree ${place.worktreeId} read is not what its refs say is pending`)
    if (fix) await alone(one, () => markPending(one))
  }
  if (bare.length > 0) {
    const session = bare.map(printable).join(', ')
    const detail = `what the files were before the undo of session ${session} is lost: its turns, which redo and accept go by, are not`
    return { name: 'boundary', ok: false, detail, mend: pendingHints(bare[0]!).join(', or ') }
  }
  if (bad.length === 0) return { name: 'boundary', ok: true, detail: 'the git hooks read what is pending' }
  if (cleared.length > 0) return { name: 'boundary', ok: true, fixed: true, detail: cleared.join('; ') }
  if (fix) return { name: 'boundary', ok: true, fixed: true, detail: 'what the git hooks read was written anew' }
  return { name: 'boundary', ok: false, detail: bad.join('; '), mend: FIX }
}

/** Sessions whose boundary is pending. One that cannot be read is told of elsewhere. */
async function pendingTimelines(context: Context): Promise<Timeline[]> {
  const { store } = context
  const refs = groupRefs(store.refPrefix, await store.refs(store.refPrefix))
  const found: Timeline[] = []
  for (const { session, boundary } of refs.sessions.values()) {
    const timeline = boundary && (await unlessDamaged(() => loadTimeline(context, refs, { session }), null))
    if (timeline) found.push(timeline)
  }
  return found
}

/** Sessions whose boundary is pending, and goes back to a state that the store has lost. */
async function withoutBaseline(context: Context): Promise<SessionId[]> {
  const found: SessionId[] = []
  for (const { session, boundary } of await pendingTimelines(context)) {
    const baseline = () => context.store.objects.read(boundary!.baseline)
    if ((await unlessDamaged(baseline, null)) === null) found.push(session)
  }
  return found
}

async function staleBoundaries(context: Context): Promise<string[]> {
  return (await pendingTimelines(context)).flatMap((timeline) => {
    const turn = staleTurn(timeline)
    const said = `the boundary of session ${printable(timeline.session)} hides turn ${turn}, which is not in its live chain`
    return turn === null ? [] : [said]
  })
}

/** The caller holds the worktree's lock. */
async function clearStale(context: Context): Promise<string[]> {
  const said: string[] = []
  for (const timeline of await pendingTimelines(context)) {
    const turn = await clearStaleBoundary({ ...context, warnings: [] }, await readRefs(context), timeline)
    if (turn === null) continue
    said.push(
      `the boundary of session ${printable(timeline.session)}, whose turn ${turn} is no longer there, was cleared; the files stay as they are`,
    )
  }
  return said
}

/** No chain of checkpoints ends where none was cut. */
export async function checkHistory(context: Context, fix: boolean): Promise<Finding> {
  const { code, stderr } = await context.store.tryGit(['rev-list', '--count', '--glob=refs/ckpt/*'])
  if (code === 0) return { name: 'history', ok: true, detail: 'each chain of checkpoints is whole' }
  if (fix) {
    const said = await alone(context, () => mendEnds(context))
    if (said.length > 0) return { name: 'history', ok: true, fixed: true, detail: said.join('; ') }
  }
  const bad = await findEnds(context)
  if (bad.length > 0) return { name: 'history', ok: false, detail: bad.join('; '), mend: FIX }
  return { name: 'history', ok: false, detail: stderr.trim().split('\n')[0] ?? '', mend: 'ckpt verify' }
}
