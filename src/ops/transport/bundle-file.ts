/** The file that a bundle is read from or written to: refused in words of ours before git, or anything else, has touched it. */
import { dirname } from 'node:path'
import { CkptError } from '../../core/errors.ts'
import { quotedPath } from '../../core/hint-words.ts'
import type { HashName } from '../../core/ids.ts'
import { type Env, errno, lstatIfThere, statIfThere } from '../../env.ts'
import { readBundleHeader } from '../../git/bundle.ts'
import { closedAt, toldOf } from '../../git/closed.ts'

const FROM = ['ckpt export FILE   (on the machine it comes from)']
const words = { sha1: 'SHA-1', sha256: 'SHA-256' } as const

/** @throws CkptError NOT_FOUND, USAGE for what is no file: a directory, a fifo; INTERNAL where it may not be read */
export function requireFile(env: Env, file: string): void {
  const found = statIfThere(env.files, file)
  if (!found) throw new CkptError('NOT_FOUND', `There is no file ${file}. Nothing was changed.`, { hints: FROM })
  const closed = found.isFile() ? closedAt(env, file) : null
  if (closed)
    throw new CkptError('INTERNAL', `The bundle cannot be read: ${toldOf([closed])}. Nothing was changed.`, {
      hints: [`${closed.isOurs ? 'chmod u+r' : 'ls -l'} ${quotedPath(file)}`],
    })
  if (found.isFile()) return
  const what = found.isDirectory() ? 'a directory' : 'no regular file'
  throw new CkptError('USAGE', `${file} is ${what}, and no bundle. Nothing was changed.`, { hints: FROM })
}

/** @throws CkptError NOT_FOUND, USAGE; DAMAGED when it does not begin as a bundle of this store's kind */
export function requireBundle(env: Env, file: string, hash: HashName): void {
  requireFile(env, file)
  const damaged = (why: string, hints: readonly string[] = FROM) =>
    new CkptError('DAMAGED', `${file} ${why} Nothing was changed.`, { hints })
  if (env.files.statSync(file).size === 0) throw damaged('is empty.')
  const header = readBundleHeader(env, file)
  if (!header) throw damaged('does not begin as a bundle.')
  if (header.hash !== hash)
    throw damaged(`holds ${words[header.hash]} objects, and those of this repository are ${words[hash]}.`, [
      `git init --object-format=${header.hash} DIRECTORY   (a repository that can take it in)`,
    ])
}

/**
 * An older bundle of the store that goes by `origin` may go, and an empty file holds nothing.
 * @throws CkptError NOT_FOUND, USAGE for any other file, and for a link that leads nowhere
 */
export function refuseToReplace(env: Env, file: string, origin: string | null): void {
  const refused = (why: string, hint: string) =>
    new CkptError('USAGE', `${file} ${why} Nothing was changed.`, { hints: [hint] })
  const found = statIfThere(env.files, file)
  const directory = dirname(file)
  if (!found && lstatIfThere(env.files, file))
    throw refused('is a link that leads nowhere.', `ls -l ${quotedPath(file)}`)
  if (!found && !statIfThere(env.files, directory)?.isDirectory())
    throw new CkptError('NOT_FOUND', `There is no directory ${directory}. Nothing was changed.`, {
      hints: [`mkdir -p ${quotedPath(directory)}`],
    })
  if (!found || (found.isFile() && found.size === 0)) return
  if (found.isDirectory()) throw refused('is a directory.', `ckpt export ${quotedPath(`${file}/NAME`)}`)
  const another = `ckpt export ${quotedPath(`${file}.ckpt`)}`
  if (!found.isFile()) throw refused('is no regular file.', another)
  const refs = refsOf(env, file)
  const isOf = (prefix: string) => refs.length > 0 && refs.every((ref) => ref.startsWith(prefix))
  if (!isOf('refs/ckpt/')) throw refused('is there already, and no bundle of checkpoints: it stays.', another)
  if (origin === null || !isOf(`refs/ckpt/${origin}/`))
    throw refused('is there already, and holds the checkpoints of another store: it stays.', another)
}

/** What a system says of a directory in which nothing may be made, or that went meanwhile. */
const CLOSED: ReadonlySet<string | undefined> = new Set(['EACCES', 'EPERM', 'EROFS', 'ENOENT'])

/** Carries `write` out. @throws CkptError INTERNAL, told of the bundle and not of the store, where nothing may be made at `file` */
export async function puttingAt(file: string, write: () => Promise<void>): Promise<void> {
  try {
    await write()
  } catch (error) {
    const code = errno(error)
    if (!CLOSED.has(code)) throw error
    throw new CkptError('INTERNAL', `The bundle cannot be written to ${file} (${code}). Nothing was changed.`, {
      cause: error,
      hints: [`ls -ld ${quotedPath(dirname(file))}`, 'ckpt export FILE   (in another directory)'],
    })
  }
}

function refsOf(env: Env, file: string): readonly string[] {
  try {
    return readBundleHeader(env, file)?.refs ?? []
  } catch (error) {
    if (errno(error) === 'EACCES') return []
    throw error
  }
}
