/**
 * Index files (gitformat-index(5)). The private index is written in version 2, with only entries that have come to rest,
 * so that git, which compares whole seconds, can be believed when it calls one unchanged. The user's is read in any version.
 */
import { createHash } from 'node:crypto'
import type { Stats } from 'node:fs'
import { CkptError } from '../core/errors.ts'
import type { HashName, Oid } from '../core/ids.ts'
import type { RelativePath } from '../core/paths.ts'

export interface IndexEntry {
  path: RelativePath
  mode: '100644' | '100755' | '120000'
  oid: Oid
  mtimeMs: number
  ctimeMs: number
  dev: number
  ino: number
  uid: number
  gid: number
  size: number
}

export function entryFromStats(path: RelativePath, oid: Oid, stats: Stats): IndexEntry {
  const { mtimeMs, ctimeMs, dev, ino, uid, gid, size } = stats
  const mode = stats.isSymbolicLink() ? '120000' : stats.mode & 0o100 ? '100755' : '100644'
  return { path, mode, oid, mtimeMs, ctimeMs, dev, ino, uid, gid, size }
}

const modeBits = { '100644': 0o100644, '100755': 0o100755, '120000': 0o120000 } as const
const modeNames = new Map<number, IndexEntry['mode']>([
  [0o100644, '100644'],
  [0o100755, '100755'],
  [0o120000, '120000'],
])

export function formatIndex(entries: readonly IndexEntry[], hash: HashName): Buffer {
  const oidBytes = hash === 'sha1' ? 20 : 32
  const sorted = [...entries].sort((a, b) => (a.path < b.path ? -1 : a.path > b.path ? 1 : 0))
  const length = (entry: IndexEntry) => (42 + oidBytes + entry.path.length + 8) & ~7
  const total = sorted.reduce((sum, entry) => sum + length(entry), 12)
  const out = Buffer.alloc(total)
  out.write('DIRC', 0, 'latin1')
  out.writeUInt32BE(2, 4)
  out.writeUInt32BE(sorted.length, 8)
  let at = 12
  const time = (ms: number, offset: number) => {
    const seconds = Math.floor(ms / 1000)
    out.writeUInt32BE(seconds >>> 0, offset)
    out.writeUInt32BE(Math.min(999_999_999, Math.max(0, Math.round((ms - seconds * 1000) * 1e6))), offset + 4)
  }
  for (const entry of sorted) {
    time(entry.ctimeMs, at)
    time(entry.mtimeMs, at + 8)
    out.writeUInt32BE(entry.dev >>> 0, at + 16)
    out.writeUInt32BE(entry.ino >>> 0, at + 20)
    out.writeUInt32BE(modeBits[entry.mode], at + 24)
    out.writeUInt32BE(entry.uid >>> 0, at + 28)
    out.writeUInt32BE(entry.gid >>> 0, at + 32)
    out.writeUInt32BE(entry.size >>> 0, at + 36)
    out.write(entry.oid, at + 40, 'hex')
    out.writeUInt16BE(Math.min(entry.path.length, 0xfff), at + 40 + oidBytes)
    out.write(entry.path, at + 42 + oidBytes, 'latin1')
    at += length(entry)
  }
  return Buffer.concat([out, createHash(hash).update(out).digest()])
}

/**
 * What an index says of the files and symlinks that it vouches for: none that is unmerged, assumed unchanged, added by
 * intent, or not meant to be on disk, and no repository or collapsed directory. None at all of a split index.
 * `unsummed`: zeros will do for its sum (git's `index.skipHash`).
 * @throws CkptError DAMAGED
 */
export function parseIndex(bytes: Buffer, hash: HashName, { unsummed = false } = {}): IndexEntry[] {
  try {
    return readEntries(bytes, hash, unsummed)
  } catch (error) {
    if (error instanceof RangeError) throw damaged() // it ends too early
    throw error
  }
}

function readEntries(bytes: Buffer, hash: HashName, unsummed: boolean): IndexEntry[] {
  const oidBytes = hash === 'sha1' ? 20 : 32
  const body = bytes.subarray(0, Math.max(0, bytes.length - oidBytes))
  const sum = bytes.subarray(body.length)
  const version = body.length < 12 || body.toString('latin1', 0, 4) !== 'DIRC' ? 0 : body.readUInt32BE(4)
  const whole = (unsummed && sum.every((byte) => byte === 0)) || sum.equals(createHash(hash).update(body).digest())
  if (version < 2 || version > 4 || !whole) throw damaged()
  const entries: IndexEntry[] = []
  const count = body.readUInt32BE(8)
  const ms = (offset: number) => body.readUInt32BE(offset) * 1000 + body.readUInt32BE(offset + 4) / 1e6
  let at = 12
  let path = '' as RelativePath
  for (let i = 0; i < count; i++) {
    const start = at
    const flags = body.readUInt16BE(start + 40 + oidBytes)
    const more = version >= 3 && (flags & EXTENDED) !== 0 ? body.readUInt16BE(start + 42 + oidBytes) : 0
    at = start + (flags & EXTENDED && version >= 3 ? 44 : 42) + oidBytes
    let kept = 0
    if (version === 4) {
      const [strip, next] = offsetNumber(body, at)
      kept = path.length - strip
      at = next
    }
    const nul = body.indexOf(0, at)
    if (nul < 0 || kept < 0) throw damaged()
    path = (path.slice(0, kept) + body.toString('latin1', at, nul)) as RelativePath
    // Before version 4 entries are padded to eight bytes, with one NUL at least.
    at = version === 4 ? nul + 1 : start + ((nul - start + 8) & ~7)
    const mode = modeNames.get(body.readUInt32BE(start + 24))
    if (mode === undefined || (flags & (ASSUME_VALID | STAGE)) !== 0 || (more & (SKIP_WORKTREE | INTENT_TO_ADD)) !== 0)
      continue
    entries.push({
      path,
      ctimeMs: ms(start),
      mtimeMs: ms(start + 8),
      dev: body.readUInt32BE(start + 16),
      ino: body.readUInt32BE(start + 20),
      mode,
      uid: body.readUInt32BE(start + 28),
      gid: body.readUInt32BE(start + 32),
      size: body.readUInt32BE(start + 36),
      oid: body.toString('hex', start + 40, start + 40 + oidBytes) as Oid,
    })
  }
  for (; at + 8 <= body.length; at += 8 + body.readUInt32BE(at + 4)) {
    if (body.toString('latin1', at, at + 4) === 'link') return [] // the rest is in another file
  }
  return entries
}

const ASSUME_VALID = 0x8000
const EXTENDED = 0x4000
const STAGE = 0x3000
const SKIP_WORKTREE = 0x4000
const INTENT_TO_ADD = 0x2000

/** The variable-width number of gitformat-pack(5)'s OFS_DELTA, and where it ends. */
function offsetNumber(bytes: Buffer, at: number): [value: number, next: number] {
  let byte = bytes.readUInt8(at)
  let value = byte & 0x7f
  let next = at + 1
  while (byte & 0x80) {
    byte = bytes.readUInt8(next++)
    value = ((value + 1) << 7) | (byte & 0x7f)
  }
  return [value, next]
}

const damaged = () => new CkptError('DAMAGED', 'The index cannot be read.', { hints: ['ckpt doctor'] })
