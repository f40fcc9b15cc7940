/** A pack of whole objects, and its index, as bytes: gitformat-pack(5), versions 2. */
import { createHash } from 'node:crypto'
import { crc32, deflateSync } from 'node:zlib'
import type { HashName, Oid } from '../core/ids.ts'

export type ObjectType = 'blob' | 'tree' | 'commit'

export interface PackObject {
  oid: Oid
  type: ObjectType
  bytes: Buffer
}

export interface FormattedPack {
  /** The pack's checksum, which git names it by. */
  sum: string
  pack: Buffer
  index: Buffer
}

const TYPE_NUMBERS: Record<ObjectType, number> = { commit: 1, tree: 2, blob: 3 }

/** `level`: of zlib, for each type. */
export function formatPack(
  objects: readonly PackObject[],
  hash: HashName,
  level: (type: ObjectType) => number,
): FormattedPack {
  const head = Buffer.from('PACK\0\0\0\x02\0\0\0\0', 'latin1')
  head.writeUInt32BE(objects.length, 8)
  const parts: Uint8Array[] = [head]
  const rows: IndexRow[] = []
  const sum = createHash(hash).update(head)
  let offset = head.length
  for (const { oid, type, bytes } of objects) {
    const header = objectHeader(type, bytes.length)
    const packed = deflateSync(bytes, deflation(level(type), bytes.length))
    rows.push({ oid: Buffer.from(oid, 'hex'), crc: crc32(packed, crc32(header)), offset })
    parts.push(header, packed)
    sum.update(header).update(packed)
    offset += header.length + packed.length
  }
  const end = sum.digest()
  return { sum: end.toString('hex'), pack: Buffer.concat([...parts, end]), index: formatPackIndex(rows, end, hash) }
}

/** For zlib: room for all at once, for it makes 16 KiB for however little otherwise, and all are kept; no window for what is only stored. */
const deflation = (level: number, bytes: number) => ({
  level,
  chunkSize: bytes + Math.ceil(bytes / 100) + 64,
  ...(level === 0 ? { windowBits: 9, memLevel: 1 } : {}),
})

/** Type and size, seven bits a byte after the first four. */
function objectHeader(type: ObjectType, size: number): Buffer {
  const bytes = [(TYPE_NUMBERS[type] << 4) | (size & 15)]
  for (let rest = Math.floor(size / 16); rest > 0; rest = Math.floor(rest / 128)) {
    bytes[bytes.length - 1]! |= 0x80
    bytes.push(rest & 0x7f)
  }
  return Buffer.from(bytes)
}

interface IndexRow {
  oid: Buffer
  crc: number
  offset: number
}

function formatPackIndex(rows: readonly IndexRow[], packSum: Buffer, hash: HashName): Buffer {
  const sorted = [...rows].sort((a, b) => a.oid.compare(b.oid))
  const width = packSum.length
  const body = Buffer.alloc(8 + 1024 + sorted.length * (width + 8) + width)
  body.write('\xfftOc\0\0\0\x02', 0, 'latin1')
  const oids = 8 + 1024
  const crcs = oids + sorted.length * width
  const offsets = crcs + sorted.length * 4
  let row = 0
  for (let first = 0; first < 256; first++) {
    while (row < sorted.length && sorted[row]!.oid[0]! <= first) row++
    body.writeUInt32BE(row, 8 + first * 4)
  }
  for (const [i, { oid, crc, offset }] of sorted.entries()) {
    oid.copy(body, oids + i * width)
    body.writeUInt32BE(crc, crcs + i * 4)
    body.writeUInt32BE(offset, offsets + i * 4)
  }
  packSum.copy(body, body.length - width)
  return Buffer.concat([body, createHash(hash).update(body).digest()])
}
