/** What a commit changed, held against what lay on disk when a checkpoint was taken. */
import { createHash } from 'node:crypto'
import type { HashName, Oid } from '../../core/ids.ts'
import { splitNul } from '../../core/paths.ts'
import { WITH_SUBMODULES } from '../../git/diff.ts'
import { runGit, tryGit } from '../../git/process.ts'
import type { Repository } from '../../git/repository.ts'
import type { FileEntry } from '../../git/trees.ts'
import { type Entry, readHeadEntries } from '../committed/entries.ts'
import type { Context } from '../worktree/context.ts'

/** What the disk tells apart (core.fileMode, core.symlinks). */
interface Disk {
  programs: boolean
  links: boolean
}

/** What git may call a content of the store. */
type NamesOf = (oid: Oid) => Promise<ReadonlySet<string>>

/** One path of a commit: what it has there, and what each of its parents has; none has it of the first commit of all. */
interface Changed {
  now: Entry
  was: readonly Entry[]
}

export class ChangedFiles {
  readonly #rows: ReadonlyMap<string, Changed>
  readonly #disk: Disk
  readonly #namesOf: NamesOf

  constructor(rows: ReadonlyMap<string, Changed>, { disk, namesOf }: { disk: Disk; namesOf: NamesOf }) {
    this.#rows = rows
    this.#disk = disk
    this.#namesOf = namesOf
  }

  get paths(): string[] {
    return [...this.#rows.keys()]
  }

  /** What the commit has at a path; null: nothing. */
  entry(path: string): Entry {
    return this.#rows.get(path)?.now ?? null
  }

  /** What the commit's parents have at a path. */
  entriesBefore(path: string): readonly Entry[] {
    return this.#rows.get(path)?.was ?? []
  }

  /** Whether git, from a disk with this at a path, would commit it as the commit has it. */
  isAs(path: string, entry: Entry): Promise<boolean> {
    return this.isCommittedAs(entry, this.entry(path))
  }

  /** Whether git would commit what was on disk as another commit has it; a filter is not run for it. */
  async isCommittedAs(entry: Entry, wanted: Entry): Promise<boolean> {
    if (!entry || !wanted) return entry === wanted
    if (this.#kindOf(entry) !== this.#kindOf(wanted)) return false
    return entry.oid === wanted.oid || (await this.#namesOf(entry.oid)).has(wanted.oid)
  }

  /** Whether the disk held the same. */
  isSame(a: Entry, b: Entry): boolean {
    return !a || !b ? a === b : a.oid === b.oid && this.#kindOf(a) === this.#kindOf(b)
  }

  /** What the disk tells of a mode. */
  #kindOf({ mode }: FileEntry): string {
    if (mode === '120000') return this.#disk.links ? 'link' : 'file'
    return mode === '100755' && this.#disk.programs ? 'program' : 'file'
  }
}

/** `among`: these paths alone. `more`: what a merge has as a parent does, and should not. */
interface Asked {
  among?: readonly string[] | undefined
  more?: readonly string[]
}

/** Reads what commits changed; of a merge what it changed by itself. */
export async function changedFilesReader(
  context: Context,
  repository: Repository,
): Promise<(commit: Oid, asked?: Asked) => Promise<ChangedFiles>> {
  const { env } = context
  const shared = { disk: await readDisk(context, repository), namesOf: naming(context, repository) }
  return async (commit, { among, more = [] } = {}) => {
    const shown = [
      '--root',
      '-r',
      '-z',
      '-c',
      '--raw',
      '--no-abbrev',
      '--no-commit-id',
      '--no-renames',
      WITH_SUBMODULES,
    ]
    const args = ['diff-tree', ...shown, commit]
    const rows = readChanged(splitNul(await runGit(env, { args, cwd: repository.root })))
    if (more.length > 0) {
      const there = await readHeadEntries(context, commit)
      for (const path of more) {
        const now = there.get(path) ?? null
        rows.set(path, { now, was: [now] })
      }
    }
    const meant = among && new Set(among)
    if (meant) for (const path of rows.keys()) if (!meant.has(path)) rows.delete(path)
    return new ChangedFiles(rows, shared)
  }
}

/** `git diff-tree -c --raw -z`: a colon, a mode and an object for each parent, and then those of the commit itself. */
function readChanged(fields: readonly string[]): Map<string, Changed> {
  const rows = new Map<string, Changed>()
  for (let i = 0; i + 1 < fields.length; i += 2) {
    const [colons = ''] = /^:+/.exec(fields[i]!) ?? []
    const words = fields[i]!.slice(colons.length).split(' ')
    const all = Array.from({ length: colons.length + 1 }, (_, at): Entry => {
      const [mode, oid] = [words[at], words[colons.length + 1 + at]]
      return mode === '000000' ? null : { mode: mode as FileEntry['mode'], oid: oid as Oid }
    })
    rows.set(fields[i + 1]!, { now: all.at(-1)!, was: all.slice(0, -1) })
  }
  return rows
}

/**
 * By the bytes on disk, and by those with LF in the place of CRLF: git makes LF of it in what it takes for text (gitattributes(5),
 * on `text`), and another clone need not be told to. The store of what once was a plain directory may name objects by another hash.
 */
function naming({ store }: Context, { hash }: Repository): NamesOf {
  const known = new Map<Oid, Promise<ReadonlySet<string>>>()
  const nameOf = (bytes: Buffer) => blobName(hash, bytes)
  const read = async (oid: Oid) => {
    const bytes = await store.objects.get(oid, 'blob')
    const name = store.objects.hash === hash ? oid : nameOf(bytes)
    return new Set([name, ...(bytes.includes('\r\n') && !bytes.includes(0) ? [nameOf(withLf(bytes))] : [])])
  }
  return (oid) => {
    const names = known.get(oid) ?? read(oid)
    known.set(oid, names)
    return names
  }
}

/** What a repository calls a content. */
export const blobName = (hash: HashName, bytes: Buffer): string =>
  createHash(hash).update(`blob ${bytes.length}\0`).update(bytes).digest('hex')

const withLf = (bytes: Buffer): Buffer => Buffer.from(bytes.toString('latin1').replaceAll('\r\n', '\n'), 'latin1')

async function readDisk({ env }: Context, { root }: Repository): Promise<Disk> {
  const isOff = async (name: string) => {
    const { stdout } = await tryGit(env, { args: ['config', '--get', '--type=bool', name], cwd: root })
    return stdout.toString('latin1').trim() === 'false'
  }
  return { programs: !(await isOff('core.fileMode')), links: !(await isOff('core.symlinks')) }
}
