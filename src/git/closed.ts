/** What this user may not read in a store, or may not write: another user's (root's, after sudo), or of a mode that was taken away. */
import { constants, type Dirent } from 'node:fs'
import { CkptError } from '../core/errors.ts'
import { quotedPath } from '../core/hint-words.ts'
import { printable } from '../core/paths.ts'
import { type Env, errno, lstatIfThere } from '../env.ts'

export interface Closed {
  path: string
  /** What is refused there. */
  to: 'read' | 'write'
  isOurs: boolean
}

/** Nothing writes an object twice, nor what links to one (unsynced-packs.ts). */
const OBJECTS = /\/store\.git\/(objects|unsynced)\//

/** They keep their modes. */
const OF_THE_WORKTREE = /\/(tmp|kept)\//

/** All of it below a directory, and the directory. */
export function closedIn(env: Env, directory: string): Closed[] {
  const found: Closed[] = []
  const open = [directory]
  for (let at = open.pop(); at !== undefined; at = open.pop()) {
    const closed = closedAt(env, at, READ | constants.X_OK) ?? closedAt(env, at, WRITE | constants.X_OK)
    if (closed) found.push(closed)
    if (closed?.to === 'read') continue
    for (const entry of entriesIn(env, at)) {
      const path = `${at}/${entry.name}`
      if (entry.isDirectory()) open.push(path)
      if (!entry.isFile() || OF_THE_WORKTREE.test(path.slice(directory.length))) continue
      const one =
        closedAt(env, path, READ) ?? (OBJECTS.test(path.slice(directory.length)) ? null : closedAt(env, path, WRITE))
      if (one) found.push(one)
    }
  }
  return found
}

/** None where the directory went meanwhile: others are at work in a store. */
function entriesIn({ files }: Env, directory: string): Dirent[] {
  try {
    return files.readdirSync(directory, { withFileTypes: true })
  } catch (error) {
    if (errno(error) === 'ENOENT') return []
    throw error
  }
}

const { R_OK: READ, W_OK: WRITE } = constants

/** `access`: of access(2). Null: it is granted, or refused for another reason than whose it is and its mode. */
export function closedAt(env: Env, path: string, access: number = READ): Closed | null {
  try {
    env.files.accessSync(path, access)
    return null
  } catch (error) {
    return errno(error) === 'EACCES' ? { path, to: access & WRITE ? 'write' : 'read', isOurs: isOurs(env, path) } : null
  }
}

/** Whose a path is; one that cannot be asked about is told by who needs it. */
function isOurs({ files, uid }: Env, path: string): boolean {
  try {
    return lstatIfThere(files, path)?.uid === uid
  } catch {
    return false
  }
}

/** What lets this user in again. */
export function opening(directory: string, closed: readonly Closed[]): string {
  const where = quotedPath(directory)
  return closed.every((one) => one.isOurs) ? `chmod -R u+rwX ${where}` : `sudo chown -R "$(id -u)" ${where}`
}

/** The first of them, and why. */
export function toldOf([first, ...others]: readonly Closed[]): string {
  const why = first!.isOurs ? 'is yours, and of a mode that keeps you out' : 'belongs to another user'
  return `${printable(first!.path)} ${why}${others.length > 0 ? ` (and ${others.length} more)` : ''}`
}

/** What cannot be read is not broken, and not gone. `directory`: the store's own. */
export function notReadable(directory: string, closed: readonly Closed[]): CkptError {
  return new CkptError('INTERNAL', `The store cannot be read: ${toldOf(closed)}. Nothing was changed.`, {
    hints: [opening(directory, closed)],
  })
}
