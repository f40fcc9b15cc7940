/** What a parcel says of itself: one JSON document beside the checkpoints that it carries. */
import { isTime } from './checkpoint.ts'
import { CkptError } from './errors.ts'
import { isOid, type Oid } from './ids.ts'

export interface Manifest {
  /** Made once for each store, at its first export: 12 hex digits. */
  origin: string
  worktree: string
  hash: 'sha1' | 'sha256'
  time: string
  /** What the refs of the worktree name. */
  refs: ManifestRef[]
  /** Checkpoints before which the history was pruned. */
  cut: Oid[]
  prompts: boolean
}

export interface ManifestRef {
  /** The last part of the ref's name. */
  leaf: string
  id: Oid
}

const LEAF = /^(live|boundary|abandoned\/\d+-\d+|safety\/\d+|late\/\d+)$/
const FORMAT = 'ckpt-parcel'

export function formatManifest(manifest: Manifest): Buffer {
  return Buffer.from(`${JSON.stringify({ format: FORMAT, version: 1, ...manifest })}\n`, 'utf8')
}

/** Whether a ref's last part is one that a worktree's refs have. */
const isLeaf = (leaf: string): boolean => LEAF.test(leaf)

/** @throws CkptError DAMAGED: it came from elsewhere, so nothing in it is believed unseen */
export function parseManifest(bytes: Buffer): Manifest {
  const damaged = (why: string) =>
    new CkptError('DAMAGED', `What came is not what ckpt exports (${why}). Nothing was changed.`)
  let found: Partial<Manifest> & { format?: unknown; version?: unknown }
  try {
    found = JSON.parse(bytes.toString('utf8'))
  } catch {
    throw damaged('its manifest is no JSON')
  }
  if (found?.format !== FORMAT || found.version !== 1) throw damaged('another format, or a newer version')
  const { origin, worktree, hash, time, refs, cut, prompts } = found
  if (typeof origin !== 'string' || typeof worktree !== 'string' || typeof time !== 'string') throw damaged('origin')
  if (!isTime(time)) throw damaged('time')
  if (hash !== 'sha1' && hash !== 'sha256') throw damaged('hash')
  if (!Array.isArray(refs) || !refs.every((one) => isLeaf(String(one?.leaf)) && isOid(String(one?.id))))
    throw damaged('refs')
  if (!Array.isArray(cut) || !cut.every((id) => isOid(String(id)))) throw damaged('cut')
  return { origin, worktree, hash, time, refs, cut, prompts: prompts === true }
}
