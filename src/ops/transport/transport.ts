/** Checkpoints to another machine and from it: bundles, and remotes by git's own transport. */

import { createHash } from 'node:crypto'
import { CkptError } from '../../core/errors.ts'
import { isOid, type Oid } from '../../core/ids.ts'
import { printable } from '../../core/paths.ts'
import { errno, temporaryDirectory } from '../../env.ts'
import type { Parcel, ParcelRef } from '../../git/parcel.ts'
import { remoteUrl } from '../../git/repository.ts'
import { readIfThere, removeTree, writeFileWhole } from '../../git/whole-file.ts'
import type { Context } from '../worktree/context.ts'
import { allWorktrees, foreignWorktree } from '../worktree/worktrees.ts'
import { refuseToReplace, requireBundle } from './bundle-file.ts'
import { readIncoming } from './incoming.ts'
import { type Outgoing, packParcel, renewOrigin, storeOrigin } from './outgoing.ts'
import { makeParcel } from './parcels.ts'
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
  refuseToReplace(context.env, file)
  const out = await packParcel(context, { ...options, remembered: false })
  try {
    const told = departure(file, out)
    const sent = await options.confirm(told)
    if (sent) await out.parcel.writeBundle(file)
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
    if ((await parcel.refs()).length > 0) return
    throw new CkptError('DAMAGED', `${file} holds no checkpoints. Nothing was changed.`)
  })
}

async function receiving(
  context: Context,
  { from, borrow }: { from: string; borrow: readonly string[] },
  fetch: (parcel: Parcel) => Promise<void>,
): Promise<Received> {
  const { env, place } = context
  const parcel = await makeParcel(env, { within: place.directory, hash: place.hash, borrow })
  try {
    await fetch(parcel)
    return { from, worktrees: await unpackParcel(context, parcel), warnings: context.warnings }
  } finally {
    parcel.close()
  }
}

/** Fetches a bundle into a place of its own, with nothing borrowed, and reads all of it. @throws CkptError DAMAGED, NOT_FOUND */
export async function verifyBundle(context: Context, file: string): Promise<string> {
  const { env, place } = context
  requireBundle(env, file, place.hash)
  const within = `${temporaryDirectory(env)}/ckpt-verify-${env.random(8)}`
  env.files.mkdirSync(within, { mode: 0o700 })
  let parcel: Parcel | null = null
  try {
    parcel = await makeParcel(env, { within, hash: place.hash, borrow: [] })
    await parcel.fetchBundle(file)
    const refs = await parcel.refs()
    if (refs.length === 0) throw new CkptError('DAMAGED', `${file} holds no checkpoints.`)
    const { verifyReachable } = await import('../store/verify-objects.ts')
    const objects = await verifyReachable(env, parcel)
    let checkpoints = 0
    for (const ref of refs) checkpoints += (await readIncoming(parcel, ref)).checkpoints.size
    return `${checkpoints} checkpoints of ${refs.length} worktree${refs.length === 1 ? '' : 's'}, ${objects} objects read and hashed`
  } finally {
    parcel?.close()
    removeTree(env, within)
  }
}

/** Sends to a remote: refs/ckpt/ only, and only this store's own. @throws CkptError NOT_FOUND, INTERNAL */
export async function push(context: Context, remote: string, options: SendOptions): Promise<Sent> {
  const url = await urlOf(context, remote)
  let told = false
  for (let attempt = 0; ; attempt++) {
    const out = await packParcel(context, { ...options, remembered: true })
    try {
      const leaving = departure(remote, out)
      if (!told && !(await options.confirm(leaving))) return { ...leaving, sent: false, warnings: context.warnings }
      told = true
      const expected = await remoteState(context, url, out)
      if (expected === null && attempt === 0) {
        // Somebody goes by the same name, and has what is not here: this store is a copy.
        renewOrigin(context)
        continue
      }
      const refs = out.refs.map(({ ref }) => ({ ref, expected: expected?.get(ref) ?? null }))
      await out.parcel.push(url, refs, isLocal(url))
      remember(context, 'sent', url, await out.parcel.refs())
      return { ...leaving, sent: true, warnings: context.warnings }
    } finally {
      out.parcel.close()
    }
  }
}

/** What the remote's refs of ours are now. Null: one of them has checkpoints that are not among those that go. */
async function remoteState(
  context: Context,
  url: string,
  { parcel, refs }: Outgoing,
): Promise<Map<string, Oid> | null> {
  const origin = storeOrigin(context)
  const there = await parcel.remoteRefs(url, `refs/ckpt/${origin}/*`)
  const sent = remembered(context, 'sent', url)
  const strange = there.filter(({ ref, oid }) => sent.get(ref) !== oid)
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
        const { checkpoints } = await readIncoming(other, one)
        if (![...checkpoints.keys()].every((id) => own?.has(id))) return null
      }
    } finally {
      other.close()
    }
  }
  return new Map(there.map(({ ref, oid }) => [ref, oid]))
}

/** Takes in what others sent to a remote. @throws CkptError NOT_FOUND, INTERNAL, DAMAGED, LOCKED */
export async function pull(context: Context, remote: string): Promise<Received> {
  const url = await urlOf(context, remote)
  const { store } = context
  let fetched: ParcelRef[] = []
  const result = await receiving(context, { from: remote, borrow: [`${store.gitDir}/objects`] }, async (parcel) => {
    const all = await parcel.remoteRefs(url)
    if (await isCopy(context, url, all)) renewOrigin(context)
    const origin = storeOrigin(context)
    const there = all.filter((one) => one.origin !== origin)
    const got = remembered(context, 'got', url)
    const here = await placesHere(context)
    fetched = there.filter(({ ref, oid, origin: from }) => got.get(ref) !== oid || !here(from))
    const have: Oid[] = []
    for (const oid of got.values()) if (await store.objects.read(oid)) have.push(oid)
    if (fetched.length > 0) await parcel.fetchRemote(url, fetched, have)
  })
  remember(context, 'got', url, fetched)
  return result
}

/** Whether the remote has what is not here from somebody who goes by this store's own name. */
async function isCopy(context: Context, url: string, there: readonly ParcelRef[]): Promise<boolean> {
  const origin = storeOrigin(context)
  const sent = remembered(context, 'sent', url)
  if (!there.some((one) => one.origin === origin && sent.get(one.ref) !== one.oid)) return false
  const out = await packParcel(context, { withPrompts: false, remembered: true })
  try {
    return (await remoteState(context, url, out)) === null
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

/** A remote's name, a URL, or a directory: as git would reach it from anywhere. */
async function urlOf({ env, repository, worktree }: Context, remote: string): Promise<string> {
  if (remote === '' || remote.startsWith('-'))
    throw new CkptError('USAGE', `${JSON.stringify(remote)} is no remote. Nothing was changed.`, {
      hints: ['git remote -v'],
    })
  const known = repository ? await remoteUrl(env, repository, remote) : null
  const url = known ?? remote
  if (/^[a-z][a-z0-9+.-]*:\/\//i.test(url) || /^[^/]+:/.test(url)) return url
  const path = url.startsWith('/') ? url : `${known ? worktree.root : env.cwd}/${url}`
  try {
    return env.files.realpathSync(path)
  } catch (error) {
    if (errno(error) !== 'ENOENT' && errno(error) !== 'ENOTDIR') throw error
    const why = known
      ? `Remote ${JSON.stringify(remote)} is ${printable(path)}, and there is nothing.`
      : `There is no remote ${JSON.stringify(remote)}.`
    throw new CkptError('NOT_FOUND', `${why} Nothing was changed.`, { hints: ['git remote -v'] })
  }
}

const isLocal = (url: string) => url.startsWith('/') || url.startsWith('file:')

type Memory = 'sent' | 'got'

/** What a remote's refs were when we last spoke to it. A URL may hold a password: only its digest is kept. */
function remembered({ env, place }: Context, what: Memory, url: string): Map<string, Oid> {
  const text = readIfThere(env, `${place.directory}/${what}`)?.toString('latin1') ?? ''
  const rows = text.split('\n').map((line) => line.split(' '))
  return new Map(
    rows.filter(([key, , oid = '']) => key === keyOf(url) && isOid(oid)).map(([, ref, oid]) => [ref!, oid as Oid]),
  )
}

const keyOf = (url: string) => createHash('sha256').update(url).digest('hex').slice(0, 16)

function remember(context: Context, what: Memory, url: string, refs: readonly ParcelRef[]): void {
  if (refs.length === 0) return
  const { env, place } = context
  const file = `${place.directory}/${what}`
  const key = keyOf(url)
  const old = (readIfThere(env, file)?.toString('latin1') ?? '').split('\n').filter((line) => line !== '')
  const names = new Set(refs.map(({ ref }) => ref))
  const kept = old.filter((line) => !(line.startsWith(`${key} `) && names.has(line.split(' ')[1]!)))
  writeFileWhole(env, file, [...kept, ...refs.map(({ ref, oid }) => `${key} ${ref} ${oid}`), ''].join('\n'))
}
