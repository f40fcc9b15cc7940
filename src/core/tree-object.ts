/** git's tree objects: `<octal mode> <name>\0<raw oid>` a row, sorted as if directories ended in `/`. */
import { CkptError } from './errors.ts'
import type { Oid } from './ids.ts'

export type TreeMode = '100644' | '100755' | '120000' | '40000' | '160000'

export interface TreeEntry {
  mode: TreeMode
  /** One part of a path, latin1 bytes. */
  name: string
  oid: Oid
}

const modes = new Set<string>(['100644', '100755', '120000', '40000', '160000'])

/** An entry, and where its raw id begins. */
export interface PlacedEntry extends TreeEntry {
  at: number
}

/** @throws CkptError DAMAGED when the bytes are not a tree. */
export function parseTree(bytes: Buffer, oidBytes: number): PlacedEntry[] {
  const entries: PlacedEntry[] = []
  let at = 0
  while (at < bytes.length) {
    const space = bytes.indexOf(0x20, at)
    const nul = bytes.indexOf(0, at)
    if (space < 0 || nul < 0 || space > nul || nul + 1 + oidBytes > bytes.length) {
      throw new CkptError('DAMAGED', 'A tree of the store cannot be read. Nothing was changed.', {
        hints: ['ckpt verify'],
      })
    }
    const mode = bytes.toString('latin1', at, space)
    if (!modes.has(mode)) {
      throw new CkptError('DAMAGED', `A tree of the store has an entry of mode ${JSON.stringify(mode)}.`, {
        hints: ['ckpt verify'],
      })
    }
    const end = nul + 1 + oidBytes
    entries.push({
      mode: mode as TreeMode,
      name: bytes.toString('latin1', space + 1, nul),
      oid: bytes.toString('hex', nul + 1, end) as Oid,
      at: nul + 1,
    })
    at = end
  }
  return entries
}

const sortKey = (entry: TreeEntry) => (entry.mode === '40000' ? `${entry.name}/` : entry.name)

/** Entries in any order to the bytes of a tree object. */
export function formatTree(entries: readonly TreeEntry[]): Buffer {
  const rows = entries.map((entry) => ({ entry, key: sortKey(entry) }))
  // latin1 strings compare like the bytes they stand for.
  rows.sort((a, b) => (a.key < b.key ? -1 : a.key > b.key ? 1 : 0))
  const length = rows.reduce(
    (sum, { entry: { mode, name, oid } }) => sum + mode.length + name.length + oid.length / 2 + 2,
    0,
  )
  const out = Buffer.allocUnsafe(length)
  let at = 0
  for (const { entry } of rows) {
    at += out.write(`${entry.mode} ${entry.name}\0`, at, 'latin1')
    at += out.write(entry.oid, at, 'hex')
  }
  return out
}
