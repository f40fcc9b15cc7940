/**
 * chokidar that looks at directories alone. chokidar reads a whole directory, with a stat for each file in it, when it
 * begins to watch it and again whenever a file in it is written; all that is wanted of it here are the directories.
 */
import { lstatSync, type Stats } from 'node:fs'
import { lstat, readdir } from 'node:fs/promises'
import path from 'node:path'
import { Readable } from 'node:stream'
import { FSWatcher } from 'chokidar'
import { errno } from '../env.ts'

/** Milliseconds: a directory that changed less than this before it was read may have changed once more since. */
const SETTLED = 100

type DirectoryStream = NonNullable<ReturnType<FSWatcher['_readdirp']>>
type Wanted = NonNullable<Parameters<FSWatcher['_readdirp']>[1]>['directoryFilter']

export class DirectoryWatcher extends FSWatcher {
  /** Of a watched directory, by chokidar's own entry for it: a new watch knows nothing. */
  readonly #read = new WeakMap<object, { last: Stamp; ino: number }>()

  /** Directories that were read. */
  readings = 0

  /** Names come, go and change in no directory whose own times stay: it is not read again. */
  override _throttle(...[kind, directory, timeout]: Parameters<FSWatcher['_throttle']>) {
    const known = kind === 'readdir' ? this.#read.get(this._getWatchedDir(directory)) : undefined
    if (known?.last.settled && known.last.print === stampOf(directory)?.print) return false
    return super._throttle(kind, directory, timeout)
  }

  override _readdirp(
    root: string,
    { directoryFilter }: { directoryFilter?: Wanted } = {},
  ): DirectoryStream | undefined {
    if (this.closed) return undefined
    this.readings++
    const entry = this._getWatchedDir(root)
    const last = stampOf(root)
    // What is watched is an inode: the one that the name stood for at first.
    if (last) this.#read.set(entry, { last, ino: this.#read.get(entry)?.ino ?? last.ino })
    else this.#read.delete(entry)
    const stream = Readable.from(this.#directoriesIn(root, directoryFilter)) as DirectoryStream
    this._streams.add(stream)
    stream.once('close', () => this._streams.delete(stream))
    return stream
  }

  /** Whether a directory (absolute) is watched. */
  watches(directory: string): boolean {
    return this._watched.has(directory)
  }

  async *#directoriesIn(root: string, wanted: Wanted) {
    const found = await readdir(root, { withFileTypes: true }).catch(unlessGone)
    for (const { name } of found?.filter((one) => one.isDirectory()) ?? []) {
      const fullPath = path.join(root, name)
      const stats = await lstat(fullPath).catch(unlessGone)
      if (!stats) continue
      const entry = { path: name, basename: name, fullPath, stats }
      if (typeof wanted === 'function' && !wanted(entry)) continue
      // Another directory under a name that is watched: chokidar sees a name that stayed.
      const ino = this.watches(fullPath) ? this.#read.get(this._getWatchedDir(fullPath))?.ino : undefined
      if (ino !== undefined && ino !== stats.ino) this._remove(root, name, true)
      yield entry
    }
  }
}

interface Stamp {
  print: string
  ino: number
  settled: boolean
}

function stampOf(directory: string): Stamp | null {
  let stats: Stats
  try {
    stats = lstatSync(directory)
  } catch (error) {
    return unlessGone(error)
  }
  const { mtimeMs, ctimeMs, ino } = stats
  return { print: `${mtimeMs} ${ctimeMs} ${ino}`, ino, settled: Math.max(mtimeMs, ctimeMs) < Date.now() - SETTLED }
}

/** As readdirp has it: what went meanwhile, or may not be read, is not there. */
function unlessGone(error: unknown): null {
  if (['ENOENT', 'ENOTDIR', 'EACCES', 'EPERM', 'ELOOP'].includes(errno(error) ?? '')) return null
  throw error
}
