/**
 * The private index as git reads it (gitformat-index(5), version 2). Only entries that have come to rest are put in, so
 * that git, which compares whole seconds, can be believed when it calls one unchanged.
 */
import { createHash } from 'node:crypto'
import type { Stats } from 'node:fs'
import { CkptError } from '../core/errors.ts'
import type { Oid } from '../core/ids.ts'
import type { HashName } from '../git/objects.ts'

export interface IndexEntry {
  path: string
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

export function entryFromStats(path: string, oid: Oid, stats: Stats): IndexEntry {
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

/** Reads back what {@link formatIndex} wrote. @throws CkptError DAMAGED: the caller then builds it anew */
export function parseIndex(bytes: Buffer, hash: HashName): IndexEntry[] {
  const oidBytes = hash === 'sha1' ? 20 : 32
  const body = bytes.subarray(0, Math.max(0, bytes.length - oidBytes))
  const sum = createHash(hash).update(body).digest()
  if (body.length < 12 || body.toString('latin1', 0, 4) !== 'DIRC' || !sum.equals(bytes.subarray(body.length))) {
    throw new CkptError('DAMAGED', 'The private index cannot be read.', { hints: ['ckpt doctor'] })
  }
  const entries: IndexEntry[] = []
  const count = body.readUInt32BE(8)
  let at = 12
  for (let i = 0; i < count; i++) {
    const ms = (offset: number) => body.readUInt32BE(offset) * 1000 + body.readUInt32BE(offset + 4) / 1e6
    const nul = body.indexOf(0, at + 42 + oidBytes)
    const path = body.toString('latin1', at + 42 + oidBytes, nul)
    entries.push({
      path,
      ctimeMs: ms(at),
      mtimeMs: ms(at + 8),
      dev: body.readUInt32BE(at + 16),
      ino: body.readUInt32BE(at + 20),
      mode: modeNames.get(body.readUInt32BE(at + 24)) ?? '100644',
      uid: body.readUInt32BE(at + 28),
      gid: body.readUInt32BE(at + 32),
      size: body.readUInt32BE(at + 36),
      oid: body.toString('hex', at + 40, at + 40 + oidBytes) as Oid,
    })
    at += (42 + oidBytes + path.length + 8) & ~7
  }
  return entries
}
