/** A bundle's first lines, which say what is in it (gitformat-bundle(5)): read before git is. */

import type { HashName } from '../core/ids.ts'
import type { Env } from '../env.ts'

export interface BundleHeader {
  hash: HashName
  refs: string[]
}

/** Bytes: it names one ref for each worktree. */
const LONGEST = 1 << 20

/** Null: the file does not begin as a bundle. */
export function readBundleHeader({ files }: Env, file: string): BundleHeader | null {
  const fd = files.openSync(file, 'r')
  try {
    const bytes = Buffer.alloc(Math.min(LONGEST, files.fstatSync(fd).size))
    return parseBundleHeader(bytes.toString('latin1', 0, files.readSync(fd, bytes, 0, bytes.length, 0)))
  } finally {
    files.closeSync(fd)
  }
}

function parseBundleHeader(text: string): BundleHeader | null {
  const end = text.indexOf('\n\n')
  const [first, ...lines] = text.slice(0, Math.max(0, end)).split('\n')
  if (!/^# v[23] git bundle$/.test(first!)) return null
  const refs = lines.filter((line) => !/^[@-]/.test(line)) // capabilities, and commits that must be there before
  return {
    hash: lines.includes('@object-format=sha256') ? 'sha256' : 'sha1',
    refs: refs.map((line) => line.slice(line.indexOf(' ') + 1)),
  }
}
