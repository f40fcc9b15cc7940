/**
 * File systems that take several spellings for one name: APFS, HFS+, ext4 with casefold. There a path of the worktree counts
 * as there only as its directory spells it. Else a file whose name changed its case would be there twice, and to delete the
 * one would be to delete the other.
 */
import type { BigIntStats, Dirent, PathLike, StatSyncOptions, Stats } from 'node:fs'
import { composedName, foldedPath, parentOf } from '../core/paths.ts'
import { type Env, errno, type Files, lstatIfThere } from '../env.ts'
import { native } from './disk.ts'
import { atRest } from './walk.ts'
import type { Worktree } from './worktree.ts'

/** Whether the file system takes the name of a directory, in the other case, for the same one. */
export function foldsCase(env: Env, path: string): boolean {
  const cut = path.lastIndexOf('/')
  const name = path.slice(cut + 1)
  const other = name === name.toUpperCase() ? name.toLowerCase() : name.toUpperCase()
  if (other === name) return cut > 0 && foldsCase(env, path.slice(0, cut))
  const [one, two] = [lstatIfThere(env.files, path), lstatIfThere(env.files, `${path.slice(0, cut)}/${other}`)]
  return one !== null && two !== null && one.ino === two.ino && one.dev === two.dev
}

/** What a command sees of a worktree: itself, where a name has one spelling. */
export function asSpelled(env: Env, { root, folds }: Pick<Worktree, 'root' | 'folds'>): Env {
  return folds ? { ...env, files: new Spelling(env, root).files } : env
}

/** The other spelling that a path has on disk, for it does not have this one. Null: it has none. */
export function otherSpelling(env: Env, root: string, path: string): string | null {
  const [directory, folded] = [parentOf(path), foldedPath(path)]
  const at = directory === '' ? '' : `${directory}/`
  try {
    const names: string[] = env.files.readdirSync(native(root, directory), 'latin1')
    return names.includes(path.slice(at.length))
      ? null
      : (names.map((name) => `${at}${name}`).find((one) => foldedPath(one) === folded) ?? null)
  } catch (error) {
    if (errno(error) === undefined) throw error
    return null // it is not there, or cannot be read: who writes into it will be told
  }
}

/** The names in a directory, as it spells them. */
interface Listed {
  print: string
  names: ReadonlySet<string>
  ctimeMs: number
  /** Milliseconds since 1970, when they were read. */
  seen: number
}

/** Calls of the file system that see a worktree as it is spelled. */
const asLatin1 = (name: string | Buffer): string => (typeof name === 'string' ? name : name.toString('latin1'))

class Spelling {
  readonly #env: Env
  readonly #within: Buffer
  readonly #root: string
  readonly #listed = new Map<string, Listed>()
  readonly files: Files

  constructor(env: Env, root: string) {
    this.#env = env
    this.#root = root
    this.#within = Buffer.from(`${root}/`, 'utf8')
    this.files = Object.assign(Object.create(env.files) as Files, {
      lstatSync: (path: PathLike, options?: StatSyncOptions) => this.#lstat(path, options),
      readdirSync: (path: PathLike, options?: never) => this.#readdir(path, options),
    })
  }

  #lstat(path: PathLike, options?: StatSyncOptions): Stats | BigIntStats | undefined {
    const stats = this.#env.files.lstatSync(path, options)
    if (stats === undefined || this.#isSpelledSo(path)) return stats
    if (options?.throwIfNoEntry === false) return undefined
    throw Object.assign(new Error('ENOENT: no such file or directory, in this spelling'), { code: 'ENOENT' })
  }

  #readdir(path: PathLike, options?: never): (string | Dirent)[] {
    const found: (string | Dirent)[] = this.#env.files.readdirSync(path, options)
    if (this.#partsOf(path) === null) return found
    return found.map((one) =>
      typeof one === 'string' ? composedName(one) : Object.assign(one, { name: composedName(asLatin1(one.name)) }),
    )
  }

  /** The parts of a path of the worktree; null: it is none. */
  #partsOf(path: PathLike): string[] | null {
    const whole = Buffer.isBuffer(path) ? path : Buffer.from(String(path), 'utf8')
    if (!whole.subarray(0, this.#within.length).equals(this.#within)) return null
    const parts = whole.subarray(this.#within.length).toString('latin1').split('/')
    return parts[0] === '.git' ? null : parts
  }

  #isSpelledSo(path: PathLike): boolean {
    let directory = ''
    for (const name of this.#partsOf(path) ?? []) {
      const names = this.#names(directory)
      if (names !== null && !names.has(composedName(name))) return false
      directory = directory === '' ? name : `${directory}/${name}`
    }
    return true
  }

  /** Null: it cannot be read, and what it is said to hold is believed. */
  #names(directory: string): ReadonlySet<string> | null {
    const { files, now } = this.#env
    const at = native(this.#root, directory)
    try {
      const { ino, mtimeMs, ctimeMs } = files.lstatSync(at)
      const print = `${ino} ${mtimeMs} ${ctimeMs}`
      const known = this.#listed.get(directory)
      if (known?.print === print && atRest(known)) return known.names
      const seen = now()
      const names = new Set(files.readdirSync(at, 'latin1').map(composedName))
      this.#listed.set(directory, { print, names, ctimeMs, seen })
      return names
    } catch (error) {
      if (errno(error) === undefined) throw error
      return null
    }
  }
}
