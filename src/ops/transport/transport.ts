/** Checkpoints to another machine and from it: bundles, and remotes by git's own transport. */
import { CkptError, isDamage, reasonOf, unlessDamaged } from '../../core/errors.ts'
import { quoted } from '../../core/hint-words.ts'
import type { Oid } from '../../core/ids.ts'
import { printable } from '../../core/paths.ts'
import type { Parcel, ParcelRef } from '../../git/parcel.ts'
import { withTemporary } from '../../git/temporary.ts'
import type { Context } from '../worktree/context.ts'
import { allWorktrees, foreignWorktree } from '../worktree/worktrees.ts'
import { puttingAt, refuseToReplace, requireBundle } from './bundle-file.ts'
import { readIncoming } from './incoming.ts'
import { type Outgoing, packParcel, renewOrigin, storeOrigin } from './outgoing.ts'
import { makeParcel } from './parcels.ts'
import { memory, remember, remembered } from './remembered.ts'
import { type Remote, remoteFor } from './remotes.ts'
import { type Unpacked, unpackParcel } from './unpack.ts'

export interface SendOptions {
  withPrompts: boolean
  /** Told before anything leaves; false stops it. */
  confirm: (departure: Departure) => Promise<boolean>
}

/** What is about to leave. */
export interface Departure {
  to: string
  sessions: number
  checkpoints: number
  prompts: number
  secrets: string[]
}

export interface Sent extends Departure {
  /** False: the person said no. */
  sent: boolean
  warnings: string[]
}

export interface Received {
  from: string
  worktrees: Unpacked[]
  warnings: string[]
}

const departure = (to: string, { sessions, checkpoints, prompts, secrets }: Outgoing): Departure => ({
  to,
  sessions,
  checkpoints,
  prompts,
  secrets,
})

/** Writes a bundle. `file` is absolute. @throws CkptError NOT_FOUND, DAMAGED, USAGE when it would replace what is no bundle of ours */
export async function exportBundle(context: Context, file: string, options: SendOptions): Promise<Sent> {
  refuseToReplace(context.env, file, storeOrigin(context))
  const out = await packParcel(context, { ...options, remembered: false })
  try {
    const told = departure(file, out)
    const sent = await options.confirm(told)
    if (sent) await puttingAt(file, () => out.parcel.writeBundle(file))
    return { ...told, sent, warnings: context.warnings }
  } finally {
    out.parcel.close()
  }
}

/** Takes a bundle in. @throws CkptError NOT_FOUND, USAGE, DAMAGED, LOCKED */
export async function importBundle(context: Context, file: string): Promise<Received> {
  requireBundle(context.env, file, context.place.hash)
  // Nothing is borrowed: else git would not read what is here already, and a broken file would pass.
  return receiving(context, { from: file, borrow: [] }, async (parcel) => {
    await parcel.fetchBundle(file)
    if ((await parcel.refs()).length > 0) return undefined
    throw new CkptError('DAMAGED', `${file} holds no checkpoints. Nothing was changed.`, {
      hints: ['ckpt export FILE   (on the machine it came from)'],
    })
  })
}

async function receiving(
  context: Context,
  { from, borrow }: { from: string; borrow: readonly string[] },
  /** Gives a place for what may be left out, where something may. */
  fetch: (parcel: Parcel) => Promise<Map<string, CkptError> | undefined>,
): Promise<Received> {
  const { env, place } = context
  const parcel = await makeParcel(env, { within: place.directory, hash: place.hash, borrow })
  try {
    const unreadable = await fetch(parcel)
    return { from, worktrees: await unpackParcel(context, parcel, unreadable), warnings: context.warnings }
  } finally {
    parcel.close()
  }
}

/** Fetches a bundle into a place of its own, with nothing borrowed, and reads all of it. @throws CkptError DAMAGED, NOT_FOUND */
export async function verifyBundle(context: Context, file: string): Promise<string> {
  const { env, place } = context
  requireBundle(env, file, place.hash)
  return withTemporary(env, 'ckpt-verify', async (within) => {
    const parcel = await makeParcel(env, { within, hash: place.hash, borrow: [] })
    try {
      await parcel.fetchBundle(file)
      const refs = await parcel.refs()
      if (refs.length === 0) throw new CkptError('DAMAGED', `${file} holds no checkpoints.`)
      const { verifyReachable } = await import('../store/verify-objects.ts')
      const objects = await verifyReachable(env, parcel)
      let checkpoints = 0
      for (const ref of refs) checkpoints += (await readIncoming(parcel, ref)).checkpoints.size
      return `${checkpoints} checkpoints of ${refs.length} worktree${refs.length === 1 ? '' : 's'}, ${objects} objects read and hashed`
    } finally {
      parcel.close()
    }
  })
}

/** Sends to a remote: refs/ckpt/ only, and only this store's own. @throws CkptError NOT_FOUND, INTERNAL */
export async function push(context: Context, name: string, options: SendOptions): Promise<Sent> {
  const remote = await remoteFor(context, name, 'push')
  const { url } = remote
  let told = false
  for (let attempt = 0; ; attempt++) {
    const out = await packParcel(context, { ...options, remembered: true })
    try {
      const leaving = departure(name, out)
      if (!told && !(await options.confirm(leaving))) return { ...leaving, sent: false, warnings: context.warnings }
      told = true
      const expected = await remoteState(context, remote, out)
      if (expected === null && attempt === 0) {
        // Somebody goes by the same name, and has what is not here: this store is a copy.
        await renewOrigin(context, out.origin)
        continue
      }
      const refs = out.refs.map(({ ref }) => ({ ref, expected: expected?.get(ref) ?? null }))
      const leave = await out.parcel.refs()
      remember(context, 'sent', { url, refs: leave, beside: true }) // where this is killed, the remote may have them
      await out.parcel.push(url, refs, remote.isLocal)
      remember(context, 'sent', { url, refs: leave })
      return { ...leaving, sent: true, warnings: context.warnings }
    } finally {
      out.parcel.close()
    }
  }
}

/** What the remote's refs of ours are now. Null: one of them has checkpoints that are not among those that go. */
async function remoteState(
  context: Context,
  { name, url }: Remote,
  { parcel, origin, refs }: Outgoing,
): Promise<Map<string, Oid> | null> {
  const there = await parcel.remoteRefs(url, `refs/ckpt/${origin}/*`)
  const strange = there.filter(isStrange(context))
  if (strange.length > 0) {
    const { env, place, store } = context
    const other = await makeParcel(env, {
      within: place.directory,
      hash: place.hash,
      borrow: [`${store.gitDir}/objects`],
    })
    try {
      await other.fetchRemote(url, strange, [])
      for (const one of strange) {
        const own = refs.find(({ ref }) => ref === one.ref)?.checkpoints
        const { checkpoints } = await readIncoming(other, one).catch(async (error: unknown) => {
          if (isDamage(error)) await refuseDamageHere(context, url, { refs: there, left: new Map([[one.ref, error]]) })
          throw isDamage(error) ? new NotOurs(name, one.ref, error) : error
        })
        if (![...checkpoints.keys()].every((id) => own?.has(id))) return null
      }
    } finally {
      other.close()
    }
  }
  return new Map(there.map(({ ref, oid }) => [ref, oid]))
}

/**
 * What cannot be read with what is here can be where nothing of that is borrowed: then the damage is here, and nothing there
 * is to go for it. @throws CkptError that damage
 */
async function refuseDamageHere(
  context: Context,
  url: string,
  { refs, left }: { refs: readonly ParcelRef[]; left: ReadonlyMap<string, CkptError> },
): Promise<void> {
  const { env, place } = context
  const wanted = refs.filter(({ ref }) => left.has(ref))
  const parcel = await makeParcel(env, { within: place.directory, hash: place.hash, borrow: [] })
  try {
    await parcel.fetchRemote(url, wanted, [])
    for (const one of wanted) if (await unlessDamaged(() => readIncoming(parcel, one), null)) throw left.get(one.ref)
  } finally {
    parcel.close()
  }
}

/** How a ref of a remote goes that is none of ours. */
const takenOut = (remote: string, ref: string) =>
  `git push ${quoted(remote)} :${ref}   (takes it out there, where nobody needs it)`

/** A ref of a remote that cannot be read, also where nothing of what is here is borrowed. */
class NotOurs extends CkptError {
  constructor(remote: string, ref: string, cause: CkptError) {
    const message = `${ref} of ${printable(remote)} cannot be read. ${cause.message}`
    super('DAMAGED', message, { hints: [takenOut(remote, ref)], cause })
  }
}

const leftOut = (error: NotOurs): string => ['Left out:', reasonOf(error), ...error.hints].join(' ')

/** Of what goes by this store's name: whether it did not go from here, wherever it went. */
function isStrange(context: Context): (one: { ref: string; oid: Oid }) => boolean {
  const sent = new Set(memory(context, 'sent').map(({ ref, oid }) => `${ref} ${oid}`))
  return ({ ref, oid }) => !sent.has(`${ref} ${oid}`)
}

/** Takes in what others sent to a remote. @throws CkptError NOT_FOUND, INTERNAL, DAMAGED, LOCKED */
export async function pull(context: Context, name: string): Promise<Received> {
  const remote = await remoteFor(context, name, 'pull')
  const { url } = remote
  const { store, warnings } = context
  const left = new Map<string, CkptError>()
  let there: ParcelRef[] = []
  let fetched: ParcelRef[] = []
  const receive = () =>
    receiving(context, { from: name, borrow: [`${store.gitDir}/objects`] }, async (parcel) => {
      const all = await parcel.remoteRefs(url)
      const before = storeOrigin(context)
      if (await isCopy(context, remote, { there: all, origin: before })) await renewOrigin(context, before)
      const origin = storeOrigin(context)
      there = all.filter((one) => one.origin !== origin)
      const got = remembered(context, 'got', url)
      const here = await placesHere(context)
      const wanted = there.filter(({ ref }) => !left.has(ref))
      fetched = wanted.filter(({ ref, oid, origin: from }) => got.get(ref) !== oid || !here(from))
      const have: Oid[] = []
      for (const oid of got.values()) if (await store.objects.read(oid)) have.push(oid)
      if (fetched.length > 0) await parcel.fetchRemote(url, fetched, have)
      return left.size === 0 ? left : undefined
    })
  let result = await receive()
  const [first] = left
  if (first) {
    await refuseDamageHere(context, url, { refs: there, left })
    if (there.every(({ ref }) => left.has(ref))) throw new NotOurs(name, ...first)
    result = await receive() // without those
    for (const [ref, error] of left) warnings.push(leftOut(new NotOurs(name, ref, error)))
  }
  remember(context, 'got', { url, refs: fetched })
  return result
}

/** Whether the remote has what is not here from somebody who goes by this store's own name. */
async function isCopy(
  context: Context,
  remote: Remote,
  { there, origin }: { there: readonly ParcelRef[]; origin: string | null },
): Promise<boolean> {
  const strange = there.filter((one) => one.origin === origin).filter(isStrange(context))
  if (strange.length === 0) return false
  const out = await packParcel(context, { withPrompts: false, remembered: true })
  try {
    if ((await remoteState(context, remote, out)) === null) return true
    remember(context, 'sent', { url: remote.url, refs: strange })
    return false
  } catch (error) {
    if (!(error instanceof NotOurs)) throw error
    const said = leftOut(error)
    if (!context.warnings.includes(said)) context.warnings.push(said)
    return false
  } finally {
    out.parcel.close()
  }
}

/** Whether what came from an origin is still here: in a place of its own, or in this worktree. */
async function placesHere(context: Context): Promise<(origin: string) => boolean> {
  const ids = (await allWorktrees(context)).map((view) => view.context.place.worktreeId)
  const own = ids.some((id) => !foreignWorktree(id))
  return (origin) => own || ids.some((id) => id.startsWith(`from-${origin.slice(0, 8)}-`))
}
