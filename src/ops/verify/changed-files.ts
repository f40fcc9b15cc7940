/** What a commit changed, held against what lay on disk when a checkpoint was taken. */
import type { Oid } from '../../core/ids.ts'
import { splitNul } from '../../core/paths.ts'
import { runGit, tryGit } from '../../git/process.ts'
import type { Repository } from '../../git/repository.ts'
import type { FileEntry } from '../../git/trees.ts'
import { type Entry, readHeadEntries } from '../committed/entries.ts'
import type { Context } from '../worktree/context.ts'

export class ChangedFiles {
  readonly #context: Context
  readonly #repository: Repository
  readonly #entries: ReadonlyMap<string, Entry>
  readonly #disk: Disk
  /** By both ids: whether the one is what git makes of the other. */
  readonly #converted = new Map<string, Promise<boolean>>()

  private constructor(
    context: Context,
    { repository, entries, disk }: { repository: Repository; entries: ReadonlyMap<string, Entry>; disk: Disk },
  ) {
    this.#context = context
    this.#repository = repository
    this.#entries = entries
    this.#disk = disk
  }

  /** Of a merge what it changed by itself. */
  static async of(context: Context, repository: Repository, commit: Oid): Promise<ChangedFiles> {
    const args = ['diff-tree', '--root', '-r', '-z', '-c', '--name-only', '--no-commit-id', '--no-renames', commit]
    const paths = splitNul(await runGit(context.env, { args, cwd: repository.root }))
    const there: ReadonlyMap<string, Entry> = paths.length === 0 ? new Map() : await readHeadEntries(context, commit)
    const entries = new Map(paths.map((path) => [path, there.get(path) ?? null]))
    return new ChangedFiles(context, { repository, entries, disk: await readDisk(context, repository) })
  }

  get paths(): string[] {
    return [...this.#entries.keys()]
  }

  /** Whether git, from a disk with this tree, would commit a path as the commit has it; a filter is not run for it. */
  async isAsIn(tree: Oid, path: string): Promise<boolean> {
    const { store } = this.#context
    const wanted = this.#entries.get(path) ?? null
    const found = await store.trees.lookup(tree, path)
    const entry = found?.mode === '40000' ? null : (found as FileEntry | null)
    if (!entry || !wanted) return entry === wanted
    if (this.#kindOf(entry) !== this.#kindOf(wanted)) return false
    if (entry.oid === wanted.oid) return true
    const key = `${wanted.oid} ${entry.oid}`
    const isConverted = this.#converted.get(key) ?? this.#isConverted(wanted, entry)
    this.#converted.set(key, isConverted)
    return isConverted
  }

  /** What the disk tells of a mode. */
  #kindOf({ mode }: FileEntry): string {
    if (mode === '120000') return this.#disk.links ? 'link' : 'file'
    return mode === '100755' && this.#disk.programs ? 'program' : 'file'
  }

  /** Whether they are the same but for line ends, of which git makes LF (gitattributes(5), on `text`), or for their hash alone. */
  async #isConverted(wanted: FileEntry, there: FileEntry): Promise<boolean> {
    const { env, store } = this.#context
    const args = ['cat-file', 'blob', wanted.oid]
    const [{ code, stdout }, bytes] = await Promise.all([
      tryGit(env, { args, cwd: this.#repository.root }),
      store.objects.get(there.oid, 'blob'),
    ])
    if (code !== 0) return false // a submodule, or not here
    return stdout.equals(bytes) || stdout.equals(withLf(bytes))
  }
}

const withLf = (bytes: Buffer): Buffer => Buffer.from(bytes.toString('latin1').replaceAll('\r\n', '\n'), 'latin1')

/** What the disk tells apart (core.fileMode, core.symlinks). */
interface Disk {
  programs: boolean
  links: boolean
}

async function readDisk({ env }: Context, { root }: Repository): Promise<Disk> {
  const isOff = async (name: string) => {
    const { stdout } = await tryGit(env, { args: ['config', '--get', '--type=bool', name], cwd: root })
    return stdout.toString('latin1').trim() === 'false'
  }
  return { programs: !(await isOff('core.fileMode')), links: !(await isOff('core.symlinks')) }
}
