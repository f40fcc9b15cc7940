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

export class ChangedFiles {
  readonly #entries: ReadonlyMap<string, Entry>
  readonly #disk: Disk
  readonly #namesOf: NamesOf

  constructor(entries: ReadonlyMap<string, Entry>, { disk, namesOf }: { disk: Disk; namesOf: NamesOf }) {
    this.#entries = entries
    this.#disk = disk
    this.#namesOf = namesOf
  }

  get paths(): string[] {
    return [...this.#entries.keys()]
  }

  /** What the commit has at a path; null: nothing. */
  entry(path: string): Entry {
    return this.#entries.get(path) ?? null
  }

  /** Whether git, from a disk with this at a path, would commit it as the commit has it; a filter is not run for it. */
  async isAs(path: string, entry: Entry): Promise<boolean> {
    const wanted = this.entry(path)
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
    const shown = ['--root', '-r', '-z', '-c', '--name-only', '--no-commit-id', '--no-renames', WITH_SUBMODULES]
    const args = ['diff-tree', ...shown, commit]
    const all = [...splitNul(await runGit(env, { args, cwd: repository.root })), ...more]
    const meant = among && new Set(among)
    const paths = meant ? all.filter((path) => meant.has(path)) : all
    const there: ReadonlyMap<string, Entry> = paths.length === 0 ? new Map() : await readHeadEntries(context, commit)
    return new ChangedFiles(new Map(paths.map((path) => [path, there.get(path) ?? null])), shared)
  }
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
