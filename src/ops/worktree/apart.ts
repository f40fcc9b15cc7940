/**
 * Where the store of a directory is that lies apart from it: plain directories, `store.location`. It is named after the
 * directory's path. One that was moved since is known by its inode number and the time when it was made, which go along.
 *
 * ```
 * <base>/<name>-<hash of the path>/owner   what its directory is known by; in the next line where it was last
 * <base>/owners/<inode>-<made>             the name of that directory's store
 * ```
 */
import { createHash } from 'node:crypto'
import { type Env, errno } from '../../env.ts'
import { makeDirectories, removeIfThere, writeFileWhole } from '../../git/whole-file.ts'
import { linkByPath, linkedByPath } from './by-path.ts'

interface Owner {
  id: string
  path: string
}

/** The store's directory, whether or not it is there. */
export function storeApart(env: Env, base: string, path: string): string {
  const id = identity(env, path)
  const known = id === null ? null : read(env, indexFile(base, id))
  if (known !== null && isName(known) && readOwner(env, `${base}/${known}`)?.id === id) return `${base}/${known}`
  const usual = named(base, path)
  const owner = readOwner(env, usual)
  if (owner ? owner.path !== path : !env.files.existsSync(usual)) {
    // What came here from elsewhere, and is gone, or was made anew: `.git` can be.
    const last = namesIn(env, base).find((name) => isLastAt(env, { base, name }, path))
    if (last !== undefined) return `${base}/${last}`
  }
  // One that was here before and is elsewhere now has it, its `.git` or not.
  const isElsewhere = owner && owner.id !== id && owner.path !== path
  return isElsewhere && (isThere(env, owner) || env.files.existsSync(rootOf(owner.path))) ? `${usual}-${id}` : usual
}

/** Keeps in a store whose it is, for when that directory is moved. Where that cannot be written nothing else fails for it. */
export function recordOwner(env: Env, directory: string, path: string): void {
  try {
    writeOwner(env, directory, path)
  } catch (error) {
    if (errno(error) === undefined) throw error
  }
}

function writeOwner(env: Env, directory: string, path: string): void {
  const id = identity(env, path)
  const before = readOwner(env, directory)
  if (id === null || (before?.id === id && before.path === path)) return
  const base = baseOf(directory)
  makeDirectories(env, `${base}/owners`)
  writeFileWhole(env, indexFile(base, id), { content: directory.slice(base.length + 1) })
  writeFileWhole(env, `${directory}/owner`, { content: `${id}\n${path}` })
  if (!before) return
  if (before.id !== id) removeIfThere(env, indexFile(base, before.id))
  const root = rootOf(before.path)
  if (before.path !== path && linkedByPath(env, root)?.startsWith(`${directory}/`)) linkByPath(env, root, null)
}

/** Stores beside this one whose directory was called like this one's, and is not there any more; and where that was. */
export function orphans(env: Env, store: string, path: string): { directory: string; was: string }[] {
  const base = baseOf(store)
  return namesIn(env, base).flatMap((name) => {
    const directory = `${base}/${name}`
    const owner = readOwner(env, directory)
    if (!owner || nameOf(rootOf(owner.path)) !== nameOf(rootOf(path)) || isThere(env, owner)) return []
    return [{ directory, was: rootOf(owner.path) }]
  })
}

/** None where that is no directory, or cannot be looked into: whoever makes a store there says so. */
function namesIn({ files }: Env, directory: string): string[] {
  try {
    return files.readdirSync(directory)
  } catch (error) {
    if (errno(error) === undefined) throw error
    return []
  }
}

const indexFile = (base: string, id: string): string => `${base}/owners/${id}`

const baseOf = (directory: string): string => directory.slice(0, directory.lastIndexOf('/'))

/** Of a repository its git directory is what is known. */
const rootOf = (path: string): string => path.replace(/\/\.git$/, '')

const nameOf = (path: string): string => path.slice(path.lastIndexOf('/') + 1)

function named(base: string, path: string): string {
  const name = nameOf(path)
    .replace(/[^A-Za-z0-9._-]/g, '_')
    .slice(0, 60)
  return `${base}/${name || 'root'}-${createHash('sha256').update(path).digest('hex').slice(0, 16)}`
}

const isName = (text: string): boolean => /^[A-Za-z0-9._-]+$/.test(text) && !/^\.+$/.test(text)

/** Null: it is not there, or its file system does not know when it was made (statx(2), stx_btime): the number alone is used again. */
function identity({ files }: Env, path: string): string | null {
  const stats = files.statSync(path, { bigint: true, throwIfNoEntry: false })
  return stats && stats.birthtimeNs > 0n ? `${stats.ino}-${stats.birthtimeNs}` : null
}

function isThere(env: Env, { id, path }: Owner): boolean {
  try {
    return identity(env, path) === id
  } catch (error) {
    if (errno(error) === undefined) throw error
    return true // it cannot be seen from here
  }
}

/** Whether a store's directory was there last; one that was set aside, or is a copy, is nobody's. */
function isLastAt(env: Env, { base, name }: { base: string; name: string }, path: string): boolean {
  const owner = readOwner(env, `${base}/${name}`)
  return owner?.path === path && read(env, indexFile(base, owner.id)) === name
}

function readOwner(env: Env, directory: string): Owner | null {
  const [id, ...path] = read(env, `${directory}/owner`)?.split('\n') ?? []
  return id === undefined || path.length === 0 ? null : { id, path: path.join('\n') }
}

/** What cannot be read is as if it were not there: then the name alone says whose a store is. */
function read({ files }: Env, path: string): string | null {
  try {
    return files.readFileSync(path, 'utf8')
  } catch (error) {
    if (errno(error) === undefined) throw error
    return null
  }
}
